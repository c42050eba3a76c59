#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# The promise: one directive, one argument, and the answer is the flamegraph
# of that one request.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ gzip proxy /)->plan(35);

$t->conf(<<'EOF');
gzip_comp_level 9;
gzip_types text/plain;
gzip_min_length 1;
default_type text/plain;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location / {
    }

    location /gzip/ {
        alias %%TESTDIR%%/;
        gzip on;
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8081/;
    }
}
EOF

$t->write_file('small.txt', "small\n");
$t->write_file('large.txt', join('', map { "line $_ of many\n" } 1 .. 300000));

run_upstream($t, 8081);
$t->run();

# requests without a trigger

my $r = http_get('/small.txt');

is($r->status(), 200, 'a request without a trigger succeeds');
is($r->body(), "small\n", 'a request without a trigger gets its own body');
is($r->header('X-Profile-Id'), undef,
    'a request without a trigger has no profile id');


# the default format

$r = http_get('/small.txt?performance_bar=flamegraph');

is($r->status(), 200, 'the flamegraph has the status 200');
is($r->header('Content-Type'), 'application/json', 'the flamegraph is JSON');
like($r->header('X-Profile-Id'), qr/^[0-9a-f]{32}$/,
    'the response has the id of the profile');
is($r->header('X-Profiled-Status'), 200, 'a header has the original status');
unlike($r->body(), qr/small\n/, 'the profile replaces the original body');

my $p = ProfileTest::Profile->new($r);
my $info = $p->json()->{profile_info};

is(scalar $p->names(), 3, 'the file has three profiles');
like(($p->names())[0], qr/^wall: GET \/small\.txt/,
    'the first profile shows wall time');
like(($p->names())[1], qr/^cpu: GET \/small\.txt/,
    'the second profile shows CPU time');
is($info->{id}, $r->header('X-Profile-Id'), 'the profile contains its id');
like($info->{request}, qr{^GET /small\.txt\?performance_bar=flamegraph HTTP/1},
     'the profile contains the request line');
is($info->{status}, 200, 'the profile contains the status');
is($info->{wall}, $info->{running} + $info->{waiting},
   'wall time is the sum of running and waiting');
is($p->profile('wall')->total(), $info->{wall},
   'the stacks of wall add up to the time');
is($p->profile('cpu')->total(), $info->{cpu},
   'the stacks of cpu add up to the CPU time');
cmp_ok($info->{cpu}, '>', 0, 'the request used CPU time');

isnt(http_get('/small.txt?performance_bar=flamegraph')
     ->header('X-Profile-Id'), $r->header('X-Profile-Id'),
     'each profile has its own id');


# a request that runs

$p = profile_get('/gzip/large.txt', headers => [ 'Accept-Encoding: gzip' ]);
$info = $p->json()->{profile_info};

is($p->response()->header('X-Profiled-Status'), 200,
    'a compressed request is profiled');
cmp_ok($info->{samples}, '>', 10, 'samples are taken');

my $wall = $p->profile('wall');

cmp_ok($wall->weight_below(qr/deflate|libz|zlib/), '>', $wall->total() / 2,
       'compression takes most of the time')
    or diag($wall->folded(20));
cmp_ok($wall->weight_below(qr/^ngx_http_core_run_phases$/), '>',
       $wall->total() / 2, 'functions of nginx have names');


# a request that waits

$p = profile_get('/proxy/wait=300/');
$info = $p->json()->{profile_info};
$wall = $p->profile('wall');

cmp_ok($info->{waiting}, '>', 250e6,
    'the profile shows the wait for an upstream');
cmp_ok($info->{waiting}, '<=', $info->{wall},
    'the wait is not longer than the request');
cmp_ok($info->{cpu}, '<', 250e6, 'waiting takes no CPU time');
cmp_ok($wall->weight_below(qr/wait/i), '>=', 250e6,
       'the wall profile shows the wait')
    or diag($wall->folded(20));
is($p->profile('cpu')->weight_below(qr/wait/i), 0,
   'the cpu profile shows no wait');
cmp_ok(abs($info->{request_time} * 1e9 - $info->{wall}), '<=',
       0.01 * $info->{wall},
       'the wall time is $request_time')
    or diag("request_time $info->{request_time}, wall $info->{wall}");


# folded stacks

$r = http_get('/gzip/large.txt?performance_bar=flamegraph'
              . '&profile_format=folded',
              headers => [ 'Accept-Encoding: gzip' ]);

is($r->status(), 200, 'a profile in the folded format has the status 200');
like($r->header('Content-Type'), qr{^text/plain\b},
    'the folded format is plain text');

my @lines = split(/\n/, $r->content());
my @bad = grep { !/^\S.* \d+$/ } @lines;

cmp_ok(scalar @lines, '>', 1, 'the folded format has several lines');
is("@bad", '', 'each folded line is a stack and a number');


# after all captures

is(http_get('/small.txt')->body(), "small\n",
    'a later request without a trigger gets its own body');
is(scalar(grep { /performance_bar/ } upstream_lines($t)), 0,
   'the upstream does not see the trigger');
