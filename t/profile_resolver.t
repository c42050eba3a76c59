#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# Captured requests that wait for a name to be resolved.  The connection of the
# resolver serves all requests, but the code that runs when the address is known
# belongs to one request.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Names;

my $t = ProfileTest->new()->has(qw/ debug gzip lua proxy /);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
error_log %%TESTDIR%%/error.log info;

default_type text/plain;
gzip_comp_level 9;
gzip_types text/plain;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    resolver 127.0.0.1:8053 ipv6=off;
    resolver_timeout 2s;

    location /small {
        gzip on;
        access_log off;
    }

    # the work, and with it the whole time, is gzip's

    location /proxy/ {
        gzip on;
        proxy_set_header Host localhost;
        proxy_pass http://$arg_host:%%PORT_8081%%/;
    }

    # Lua code works after the name was resolved

    location /lua/ {
        content_by_lua_block {
            local x = 0
            local s = ngx.socket.tcp()
            s:settimeouts(5000, 5000, 5000)
            local ok, err = s:connect(ngx.var.arg_host, %%PORT_8081%%)
            if not ok then
                ngx.status = 502
                ngx.print(err)
                return
            end
            for i = 1, 500 do
                for k = 1, 5000 do
                    x = x + math.sin(k)
                end
            end
            s:close()
            ngx.print("done")
        }
    }
}

server {
    listen 127.0.0.1:8081;

    location / {
        rewrite ^ /text break;
    }
}
EOF

my $text = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 20000);
$t->write_file('text', $text);
$t->write_file('small', substr($text, 0, 20000));

run_names($t, 8053);
$t->run()->plan(43);


ok(http_get("/proxy/x?host=slow0.test")->body() eq $text,
   "a name is resolved");
is_clean($t);


# The answer takes 0.3 seconds.  Meanwhile the worker runs other requests, some
# of which wait for names as well.

my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);

my $lua = $t->load('/lua/x?host=fast.test', clients => 2);
my $p = profile_get("/proxy/x?host=slow1.test", @gzip);
is($lua->stop()->{failed}, 0, 'proxy: other requests are served');

is(info($p)->{status}, 200, 'proxy: the response has its status');
cmp_ok(waiting($p), '>', 0.285,
       'proxy: the profile shows the wait for the name');
cmp_ok(share_of($p, 'zlib'), '>', 0.5,
       'proxy: the profile has the work of gzip');
is_attributed($p, 'lua', 'proxy');
is_sum($p, 'proxy');
is_clean($t, 'proxy');

my $zip = $t->load('/small', clients => 2, @gzip);
$p = profile_get("/lua/x?host=slow2.test");
is($zip->stop()->{failed}, 0, 'Lua: other requests are served');

is(info($p)->{status}, 200, 'Lua: the response has its status');
cmp_ok(waiting($p), '>', 0.285,
       'Lua: the profile shows the wait for the name');
cmp_ok(running($p), '>', 0.01, 'Lua: the request runs');
cmp_ok(share_of($p, 'lua'), '>', 0.8, 'Lua: the profile has the work of Lua');
is_attributed($p, 'zlib', 'Lua');
is_sum($p, 'Lua');
is_clean($t, 'Lua');


# a name in the resolver's cache; an unknown name; a resolver without an answer

for my $uri ('/proxy/x?host=slow1.test', '/lua/x?host=slow2.test') {
    $p = profile_get($uri, @gzip);

    is(info($p)->{status}, 200, "cached: $uri: the response has its status");
    cmp_ok(info($p)->{wall}, '<', 0.28e9,
           "cached: $uri: the request does not wait");
    is_clean($t, "cached: $uri");
}

for my $uri ('/proxy/x?host=none.test', '/lua/x?host=none.test') {
    $p = profile_get($uri);

    is(info($p)->{status}, 502, "no name: $uri: the response has its status");
    is_clean($t, "no name: $uri");
}

for my $uri ('/proxy/x?host=silent1.test', '/lua/x?host=silent2.test') {
    $p = profile_get($uri);

    is(info($p)->{status}, 502, "silent: $uri: the response has its status");
    cmp_ok(waiting($p), '>', 1.9, "silent: $uri: the profile shows the wait");
    is_clean($t, "silent: $uri");
}


# the client leaves while the name is being resolved

for my $uri ('/proxy/x?host=slow3.test', '/lua/x?host=slow4.test') {
    my $s = http("GET $uri&performance_bar=flamegraph HTTP/1.0\r\n\r\n",
                 start => 1);
    sleep(0.1);
    close $s;
    is_clean($t, "left: $uri");
}


# two captured requests wait for the same name

my $args = 'performance_bar=flamegraph&profile_format=speedscope';
my @s = map {
    http("GET $_?host=slow5.test&$args HTTP/1.1\r\nHost: localhost\r\n"
         . "Connection: close\r\nAccept-Encoding: gzip\r\n\r\n", start => 1)
} '/proxy/x', '/lua/x', '/proxy/x', '/lua/x';

my @p = map { ProfileTest::Profile->new(http_end($_)) } @s;

for my $i (0 .. 3) {
    my ($own, $foreign) = $i % 2 ? qw/ lua zlib / : qw/ zlib lua /;

    is_attributed($p[$i], $foreign, "same name $i");
    cmp_ok(share_of($p[$i], $own), '>', 0.5,
           "same name $i: the profile has its own work");
}

is_clean($t, 'same name');
