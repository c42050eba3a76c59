#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: quiet
#
# Captured requests that are delayed.  The profile shows the delay as waiting,
# to the millisecond, without other clients and beside clients that keep the
# worker busy.

use strict;
use warnings;

use IO::Select;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ auth_basic debug limit_req map proxy
                                    rewrite /)
                          ->plan(2 * 6 * 7 + 23);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
%%SLOW_MAP%%
error_log %%TESTDIR%%/error.log info;

limit_req_zone $uri zone=one:1m rate=5r/s;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /loop {
        return 200 "done$slow";
    }

    location /text { }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }

    location /body {
        proxy_pass http://127.0.0.1:8081/;
    }

    location /streamed {
        proxy_request_buffering off;
        proxy_http_version 1.1;
        proxy_pass http://127.0.0.1:8081/;
    }

    # the second and each one after it waits for 200 ms
    location /limit_req {
        limit_req zone=one burst=20;
        rewrite ^ /text break;
    }

    location /limit_rate {
        limit_rate 1000k;
    }

    location /auth {
        auth_delay 300ms;
        auth_basic "closed";
        auth_basic_user_file %%TESTDIR%%/none;
    }
}
EOF

$t->write_file('text', 'x' x 300000);
$t->write_file('limit_rate', 'x' x 300000);
$t->write_file('none', '');

run_upstream($t, 8081);
$t->run();

my $busy = '/loopaaaaaaaaaaaaaa!';

is(http_get($busy)->body(), 'done',
    'other requests are served before the test');
is_clean($t);

# uri, seconds it takes, what makes it

my @cases = (
    [ '/upstream', 0.3 ],
    [ '/limit_req', 0.15 ],
    [ '/auth', 0.3, 401 ],
    [ '/body', 0.3, 200, \&slow_post ],
    [ '/streamed', 0.3, 200, \&slow_post ],

    # nginx does not wait for a body that it discards
    [ '/text', 0, 405, \&slow_post ],
);

for my $load (0, 1) {
    my $others = $load && $t->load($busy, clients => 3);

    for my $case (@cases) {
        my ($uri, $delay, $status, $get) = @$case;
        my $name = $uri . ($load ? ' beside other requests' : '');

        is_captured($t, $name, $uri, waits => $delay, status => $status,
                    get => $get || \&http_get, runs => 0.02);
    }

    is($others->stop()->{failed}, 0,
        'other requests are served during the test') if $load;
}


# What the client and nginx measure: the answer takes as long as the request
# and, besides, only the time to make the picture.

my $start = time();
my $p = profile_get('/upstream');
my $took = time() - $start;
my $info = info($p);
my $wall = $info->{wall} / 1e9;

cmp_ok($wall, '<=', $took, 'the wall time is not longer than for the client');
cmp_ok($wall, '>=', 0.3, 'the wall time is not shorter than the delay');
cmp_ok(abs($wall - $info->{request_time}), '<=', 0.002 + 0.01 * $wall,
       'the wall time is $request_time');
cmp_ok(waiting($p), '>=', 0.95 * 0.3, 'the request waits for the upstream');
cmp_ok(running($p), '<', 0.015, 'the request runs for a short time only');
cmp_ok($p->profile('wall')->weight_below(qr/^\[waiting\]$/), '>=',
       0.95 * 0.3e9, 'the wall picture shows the wait');
cmp_ok($p->profile('cpu')->total(), '<', 0.015e9,
       'the CPU picture does not show the wait');


# limit_rate delays the original response only.  A profile is sent without
# delay, and does not contain one.

$start = time();
is(length(http_get('/limit_rate')->body()), 300000,
    'limit_rate does not change the body');
cmp_ok(time() - $start, '>', 0.15, 'limit_rate delays the response');

$p = profile_get('/limit_rate');
cmp_ok(info($p)->{wall}, '<', 0.15e9, 'limit_rate does not delay the capture');
is_clean($t, 'limit_rate');


# Clients that read slowly: only the text of their profile remains in memory,
# and the worker profiles other requests meanwhile.

my $args = 'performance_bar=flamegraph&profile_format=speedscope';
my @s = map {
    http("GET /upstream?$args HTTP/1.0\r\n\r\n", start => 1)
} 1 .. 4;

sleep(0.6);
is_clean($t, 'slow reader');

my @plain = map { http_get($_)->status() } '/text', $busy;
is("@plain", '200 200', 'other requests are served beside a slow reader');

for my $s (@s) {
    is(read_slowly($s)->status(), 200, 'a slow reader gets its profile');
}

is_clean($t, 'slow reader, after');


# a request that arrives byte by byte, and one that never ends

my $request = "GET /text?$args HTTP/1.1\r\nHost: localhost\r\n"
              . "Connection: close\r\n\r\n";
my $s = ProfileTest::HTTP::connect_to(8080);

for my $byte (split(//, $request)) {
    syswrite($s, $byte);
    sleep(0.001);
}

is(info(ProfileTest::Profile->new(http_end($s)))->{status}, 200,
   'a request that arrives byte by byte is profiled');

$s = http("POST /body?$args HTTP/1.1\r\nHost: localhost\r\n"
          . "Content-Length: 100\r\n\r\n0123456789", start => 1);
sleep(0.1);
close $s;
is_clean($t, 'body without end');

is(http_get($busy)->body(), 'done',
    'other requests are served after the test');


sub slow_post {
    my ($uri, %extra) = @_;

    my $s = ProfileTest::HTTP::connect_to(8080);

    http("POST $uri HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
         . "Connection: close\r\n\r\n", socket => $s, start => 1);

    for (1 .. 10) {
        sleep(0.031);
        syswrite($s, 'x' x 100);
    }

    return http_end($s);
}


sub read_slowly {
    my ($s) = @_;

    my ($raw, $select) = ('', IO::Select->new($s));

    while ($select->can_read(5) && sysread($s, my $buf, 500)) {
        $raw .= $buf;
        sleep(0.002);
    }

    return ProfileTest::Response->new($raw);
}
