#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside

# Responses of other modules, recorded: caches, subrequests, mirrors, threads,
# Lua, FastCGI, without a master.

use strict;
use warnings;

use IO::Socket::INET;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Record;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ addition auth_request mirror proxy rewrite
                                    slice sub threads /);

my $lua = $t->has_module('lua') ? <<'EOF2' : '';

        location /lua/sleep {
            content_by_lua_block {
                ngx.say("one")
                ngx.flush(true)
                ngx.sleep(0.1)
                ngx.print("two")
                ngx.flush(true)
                ngx.say(ngx.var.args, " ", ngx.var.http_x_profile)
            }
        }

        location /lua/socket {
            content_by_lua_block {
                local s = ngx.socket.tcp()
                s:connect("127.0.0.1", %%PORT_8081%%)
                s:send("GET /file HTTP/1.0\r\n\r\n")
                ngx.print((s:receive("*a"):gsub("Date:[^\n]*\n", "")))
            }
        }

        location /lua/capture {
            content_by_lua_block {
                ngx.print(ngx.location.capture("/app/file").body)
            }
        }

        location /lua/raw {
            content_by_lua_block {
                ngx.req.read_body()
                local s = ngx.req.socket(true)
                s:send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nraw")
            }
        }

        location /lua/exit {
            access_by_lua_block { ngx.exit(418) }
        }
EOF2

$t->write_file_expand('nginx.conf', <<'EOF2' =~ s/%%LUA%%/$t->expand($lua)/er);
%%MODULES%%
%%GLOBALS%%

master_process off;
thread_pool default threads=2;

events {
}

http {
    %%GLOBALS_HTTP%%

    proxy_cache_path %%TESTDIR%%/cache keys_zone=c:1m;
    default_type text/plain;

    # a slot is in use until its profile is stored
    profile_max_captures 1000;

    server {
        listen 127.0.0.1:8080;
        profile_endpoint on;

        location / { }

        location /-/profile/ { profile_console; }

        location /app/ {
            proxy_pass http://127.0.0.1:8081/;
        }

        location /cached/ {
            proxy_cache c;
            proxy_cache_valid 1m;
            proxy_cache_lock on;
            add_header X-Cache $upstream_cache_status;
            proxy_pass http://127.0.0.1:8081/;
        }

        location /slice/ {
            slice 10000;
            proxy_cache c;
            proxy_cache_key $uri$slice_range;
            proxy_set_header Range $slice_range;
            proxy_cache_valid 200 206 1m;
            proxy_pass http://127.0.0.1:8081/;
        }

        location /auth/ {
            auth_request /app/file;
            alias %%TESTDIR%%/;
        }

        location /denied/ {
            auth_request /app/none;
            alias %%TESTDIR%%/;
        }

        location /mirror/ {
            mirror /app/large;
            alias %%TESTDIR%%/;
        }

        location /after/ {
            post_action /app/file;
            alias %%TESTDIR%%/;
        }

        location /threads/ {
            aio threads;
            directio 1k;
            alias %%TESTDIR%%/;
        }

        location /sub/ {
            sub_filter_types *;
            sub_filter_once off;
            sub_filter line LINE;
            alias %%TESTDIR%%/;
        }

        location /add/ {
            addition_types *;
            add_before_body /app/file;
            add_after_body /app/file;
            alias %%TESTDIR%%/;
        }

        location /try/ {
            try_files /none /file =404;
        }

        location /named/ {
            error_page 404 = @named;
            return 404;
        }

        location @named {
            return 200 "named $args $request_uri";
        }
%%LUA%%
    }

    server {
        listen 127.0.0.1:8081;
        location / { }
    }
}
EOF2

$t->write_file('file', "file\n");
$t->write_file('large', join('', map { "line $_\n" } 1 .. 9000));
$t->run();
wait_for(sub { http_get('/file')->status() == 200 });

my @cases = (
    [ 'a cache', 'GET /cached/large' ],
    [ 'slices', 'GET /slice/large' ],
    [ 'a slice', 'GET /slice/large', [ 'Range: bytes=15000-25000' ] ],
    [ 'auth_request', 'GET /auth/large' ],
    [ 'auth_request that denies', 'GET /denied/large' ],
    [ 'a mirror', 'GET /mirror/large' ],
    [ 'an action afterwards', 'GET /after/large' ],
    [ 'threads', 'GET /threads/large' ],
    [ 'sub_filter', 'GET /sub/large' ],
    [ 'before and after', 'GET /add/large' ],
    [ 'try_files', 'GET /try/x' ],
    [ 'a named location', 'GET /named/x?a' ],
);

push @cases, (
    [ 'Lua that sleeps', 'GET /lua/sleep?a=b' ],
    [ 'a socket of Lua', 'GET /lua/socket' ],
    [ 'a subrequest of Lua', 'GET /lua/capture' ],
    [ 'a status of Lua', 'GET /lua/exit' ],
) if $lua;

# the first one fills the caches

raw(split(/ /, $_->[1]), $_->[2] || []) for @cases;

my @ids = map { same_recorded(@$_) } @cases;

for my $expected (@ids) {
    my ($name, $id, $method, $uri, $status) = @$expected;

    my $st;

    wait_for(sub { ($st) = grep { $_->{id} eq $id } list(); $st });

    is(join(' ', map { $_ // '-' } @{$st || {}}{qw/ method uri status /}),
       "$method $uri $status", "$name: in the store");

    my $r = http_get("/-/profile/p/$id/speedscope");
    my $json = eval { decode_json($r->body()) };

    ok($json && @{$json->{profiles}} > 0, "$name: a profile");
}

# a connection that a script takes over has no header of nginx to write into

if ($lua) {
    my $before = list();

    is(raw('GET', '/lua/raw?performance_bar=record', []),
       raw('GET', '/lua/raw', []), 'a raw socket of Lua sends the same');
    ok(wait_for(sub { list() > $before }), 'a raw socket is recorded');
}


sub list {
    my $r = http_get('/-/profile/profiles.json');
    return @{(eval { decode_json($r->body()) } || {})->{profiles} || []};
}
