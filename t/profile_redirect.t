#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request stages
# runs: beside
#
# Captured requests that pass through several locations: error_page,
# X-Accel-Redirect, named locations, try_files, index, rewrite.  The profile has
# the work in all locations, and no work for other clients, which keep the
# worker busy.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ debug gzip map proxy rewrite /)
                          ->plan(17 * 7 + 16);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
error_log %%TESTDIR%%/error.log info;

default_type text/html;
gzip on;
gzip_comp_level 9;
gzip_proxied any;
gzip_types text/plain;
%%SLOW_MAP%%

upstream dead {
    server 127.0.0.1:8082 max_fails=0;
}

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /loop {
        gzip off;
        return 200 "done$slow";
    }

    location /text { }
    location /dir/ { }

    location /upstream/ {
        proxy_pass http://127.0.0.1:8081/wait=100/;
    }

    location /error_page {
        error_page 404 /text;
        return 404;
    }

    location /error_status {
        error_page 404 =503 /text;
    }

    location /error_named {
        error_page 404 = @named;
    }

    location /error_upstream {
        error_page 502 = @named;
        proxy_pass http://dead;
    }

    location /error_intercepted {
        proxy_intercept_errors on;
        error_page 503 =200 /upstream/2;
        proxy_pass http://127.0.0.1:8081/wait=100/status=503/;
    }

    location /error_recursive {
        recursive_error_pages on;
        error_page 404 = /error_upstream;
        return 404;
    }

    location @named {
        proxy_pass http://127.0.0.1:8081;
    }

    location /accel/ {
        proxy_pass http://127.0.0.1:8081;
    }

    location /internal {
        internal;
        alias %%TESTDIR%%/text;
    }

    location /try {
        try_files /none /nothing/ @named;
    }

    location /try_file {
        try_files /none /text;
    }

    location /try_uri {
        try_files /none /upstream/3;
    }

    location /try_status {
        try_files /none =410;
    }

    location /rewrite_last {
        rewrite ^ /upstream/4 last;
    }

    location /rewrite_break {
        rewrite ^ /text break;
    }

    location /rewrite_redirect {
        rewrite ^ /text permanent;
    }

    location /return {
        return 200 "a text";
    }

    location /off {
        profile_endpoint off;
        rewrite ^ /text break;
    }

    location /to_off {
        rewrite ^ /off last;
    }

    location /accel_to_off/ {
        proxy_pass http://127.0.0.1:8081/accel=/off/;
    }
}
EOF

$t->write_file('text', join('', map { sprintf("line %d: %x\n", $_,
                                $_ * 2654435761 % 4294967296) } 1 .. 10000));
mkdir $t->testdir() . '/dir';
$t->write_file('dir/index.html', 'an index');

run_upstream($t, 8081);
port(8082);
$t->run();

my $busy = '/loopaaaaaaaaaaaaaa!';
my $query = 'performance_bar=flamegraph&profile_format=speedscope';

is(http_get($busy)->body(), 'done', 'a request without a trigger is served');
# it takes less than a millisecond on a fast processor

cmp_ok(scalar(code_of(ProfileTest::Profile->new(
                          http_get("$busy?$query&profile_frequency=10000")),
                      'map')), '>', 0, 'the code of other requests is known');

my $text = plain(http_get('/text'));
is_clean($t);

my $load = $t->load($busy, clients => 3);
my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);
my %wait = (waits => 0.1);

my $p = is_captured($t, 'error_page', '/error_page', @gzip, runs => 0.3,
                    status => 404);
cmp_ok(share_of($p, 'zlib'), '>', 0.5, 'error_page: the work is there');

is_captured($t, 'error_page, status', '/error_status', status => 503);
is_captured($t, 'error_page, named', '/error_named/wait=100/', %wait);
is_captured($t, 'error_page, upstream', '/error_upstream/wait=100/', %wait);
is_captured($t, 'error_page, intercepted', '/error_intercepted', waits => 0.2);
is_captured($t, 'error_page, recursive', '/error_recursive/wait=100/');

$p = is_captured($t, 'X-Accel-Redirect', '/accel/wait=100/accel=/internal',
                 @gzip, %wait, runs => 0.3);
cmp_ok(share_of($p, 'zlib'), '>', 0.5, 'X-Accel-Redirect: the work is there');

is_captured($t, 'X-Accel-Redirect to an upstream',
            '/accel/wait=100/accel=/upstream/1', waits => 0.2);
is_captured($t, 'try_files, named', '/try/wait=100/', %wait);
is_captured($t, 'try_files, file', '/try_file');
is_captured($t, 'try_files, URI', '/try_uri', %wait);
is_captured($t, 'try_files, status', '/try_status', status => 410);
is_captured($t, 'index', '/dir/');
is_captured($t, 'rewrite last', '/rewrite_last', %wait);
is_captured($t, 'rewrite break', '/rewrite_break');
is_captured($t, 'redirect', '/rewrite_redirect', status => 301);
is_captured($t, 'return', '/return');


# where the way ends it is off: the request is like any other

for my $uri (qw( /off /to_off /accel_to_off/ )) {
    my $got = http_get("$uri?performance_bar=flamegraph");

    is(length($got->body()), length(http_get('/text')->body()),
       "$uri: the trigger has no effect");
    is($got->header('X-Profile-Id'), undef,
       "$uri: the response has no profile");
    is_clean($t, $uri);
}


# many requests at the same time, whose clients disconnect

my @s = map {
    http("GET $_?performance_bar=flamegraph HTTP/1.0\r\n\r\n", start => 1)
} '/error_named/wait=300/', '/error_intercepted', '/accel/wait=300/accel=/text',
  '/try/wait=300/';

select(undef, undef, undef, 0.15);
close $_ for @s;
is_clean($t, 'left');

is($load->stop()->{failed}, 0, 'other requests are served');
is(plain(http_get('/text')), $text, 'later requests are served as before');
