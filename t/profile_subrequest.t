#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: beside
#
# Captured requests with subrequests: SSI, auth_request, mirror, addition,
# slice.  The profile has the work of their subrequests, and no work of
# subrequests for other clients, which keep the worker busy.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ addition auth_request debug gzip map
                                    mirror proxy rewrite slice ssi /)
                          ->plan(11 * 7 + 10);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
error_log %%TESTDIR%%/error.log info;

default_type text/html;
gzip_comp_level 9;
%%SLOW_MAP%%

proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;
slice 100k;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    # other requests: a subrequest with a regular expression that fails after
    # about a millisecond

    location /loop.html {
        ssi on;
    }

    location /match {
        return 200 "done$slow";
    }

    location /ssi {
        ssi on;
    }

    location /ssi_gzip {
        ssi on;
        gzip on;
    }

    location /wait/ {
        proxy_pass http://127.0.0.1:8081/wait=200/;
    }

    location /part {
        gzip on;
    }

    location /auth {
        auth_request /auth_ok;
        rewrite ^ /part break;
    }

    location /auth_gzip {
        gzip on;
        auth_request /auth_ok;
        rewrite ^ /part break;
    }

    location /denied {
        auth_request /auth_denied;
    }

    location = /auth_ok {
        internal;
        proxy_pass http://127.0.0.1:8081/wait=200/;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
    }

    location = /auth_denied {
        internal;
        proxy_pass http://127.0.0.1:8081/wait=200/status=403/;
    }

    location /mirror {
        mirror /mirrored;
        rewrite ^ /part break;
    }

    location /mirror_body {
        mirror /mirrored;
        proxy_pass http://127.0.0.1:8081/;
    }

    location = /mirrored {
        internal;
        proxy_pass http://127.0.0.1:8081/wait=200/;
    }

    location /addition {
        add_before_body /wait/;
        add_after_body /part;
        rewrite ^ /part break;
    }

    location /slice {
        slice 100k;
        proxy_cache cache;
        proxy_cache_key $uri$slice_range;
        proxy_cache_valid 206 1s;
        proxy_set_header Range $slice_range;
        proxy_pass http://127.0.0.1:8082/big;
    }

    location /nested {
        ssi on;
        auth_request /auth_ok;
    }
}

server {
    listen 127.0.0.1:8082;
}
EOF

my $part = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 20000);

$t->write_file('part', $part);
$t->write_file('big', $part);
$t->write_file('loop.html',
               '<!--#include virtual="/matchaaaaaaaaaaaaaa!" -->' x 2);
$t->write_file('ssi', join("\n", map { "$_ <!--#include virtual=\"$_\" -->" }
               '/part', '/wait/1', '/wait/2', '/part'));
$t->write_file('ssi_gzip', join("\n",
               map { "$_ <!--#include virtual=\"$_\" wait=\"yes\" -->" }
                   '/part', '/wait/1', '/part'));
$t->write_file('nested', join("\n", map { "$_ <!--#include virtual=\"$_\" -->" }
               '/ssi', '/auth', '/part', '/ssi'));

run_upstream($t, 8081);
$t->run();

is(http_get('/loop.html')->body(), 'donedone',
   'a request without a trigger is served');
is_clean($t);

my $load = $t->load('/loop.html', clients => 3);
my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);

is_captured($t, 'SSI', '/ssi', waits => 0.2);

my $p = is_captured($t, 'SSI, gzip', '/ssi_gzip', @gzip, waits => 0.2,
                    runs => 1);
cmp_ok(share_of($p, 'zlib'), '>', 0.7, 'SSI: work of the main request');

is_captured($t, 'auth_request', '/auth', waits => 0.2);

$p = is_captured($t, 'auth_request, gzip', '/auth_gzip', @gzip, waits => 0.2,
                 runs => 1);
cmp_ok(share_of($p, 'zlib'), '>', 0.7, 'auth_request: work after it');

is_captured($t, 'auth_request, denied', '/denied', waits => 0.2,
            status => 403);
is_captured($t, 'mirror', '/mirror');
is_captured($t, 'mirror, body', '/mirror_body', get => \&post);
is_captured($t, 'addition', '/addition', waits => 0.2);
is_captured($t, 'slice', '/slice');
is_captured($t, 'SSI in SSI', '/nested', waits => 0.4);


# the work is that of the subrequest

$p = is_captured($t, 'work of a subrequest', '/loop.html', foreign => 'zlib',
                 runs => 0.2);
cmp_ok(share_of($p, 'pcre'), '>', 0.5, 'work of a subrequest is there');


# the client leaves while subrequests wait

for my $uri (qw( /ssi /auth /nested /mirror )) {
    my $s = http("GET $uri?performance_bar=flamegraph HTTP/1.0\r\n\r\n",
                 start => 1);
    select(undef, undef, undef, 0.1);
    close $s;
    is_clean($t, "left: $uri");
}

is($load->stop()->{failed}, 0, 'other requests are served');

my $after = http_get('/loop.html')->body();
is($after, 'donedone', 'later requests are served as before');


sub post {
    my ($uri, %extra) = @_;
    return http_post($uri, 'x' x 10000, %extra);
}
