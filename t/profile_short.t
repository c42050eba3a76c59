#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: capture
#
# Captured requests that are shorter than a sampling period.  One such request
# is shown although no sample may hit it, and all of them together are sampled
# in proportion to their length.

use strict;
use warnings;

use List::Util qw/ sum0 /;
use Test::More;

use ProfileTest;
use ProfileTest::Attribution;

my $t = ProfileTest->new()->has(qw/ debug gzip map rewrite /)->plan(28);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
%%SLOW_MAP%%
%%CONF worker_log%%

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /return {
        return 200 short;
    }

    location /file { }

    location /none { }

    location /loop {
        return 200 "done$slow";
    }

    location /small {
        gzip on;
    }
}
EOF

$t->write_file('file', 'a file');
$t->write_file('small', join('', map { sprintf("line %d: %x\n", $_,
                                $_ * 2654435761 % 4294967296) } 1 .. 1000));

$t->run();

my $busy = '/loopaaaaaaaaaaaaaa!';
my $args = 'performance_bar=flamegraph&profile_format=speedscope';

http_get($busy);
is_clean($t);


# one sample in a second: the request has its turns without samples

for my $case ([ '/return', 200 ], [ '/file', 200 ], [ '/none', 404 ]) {
    my ($uri, $status) = @$case;

    my $p = profile_get("$uri?$args&profile_frequency=1");
    my $info = info($p);
    my $wall = $p->profile('wall');

    is($info->{status}, $status, "$uri: the profile has the status");
    is_sum($p, $uri);
    cmp_ok($info->{turns}, '>', 0, "$uri: the request has turns");
    cmp_ok($wall->total(), '>', 0, "$uri: takes time");
    cmp_ok($info->{running}, '<', 0.02e9,
           "$uri: the request runs for a short time");
    cmp_ok($wall->count_stacks(qr/^(?:ngx_|phase )/), '>', 0,
           "$uri: the running code has a name") or diag($wall->folded());
    is_clean($t, $uri);
}


# As many samples as the time of the worker asks for, by the kernel's count.
# Some of the CPU time is not the request's: connections and replies.  In a turn
# the worker may wait for a processor.

my $samples = 0;
my ($used, $waited) = worker_cpu($t);

for (1 .. 200) {
    my $info = info(profile_get("$busy?$args&profile_frequency=2000"));

    $samples += $info->{samples} + $info->{lost_overrun};
}

my ($used_then, $waited_then) = worker_cpu($t);
my $due = ($used_then - $used) * 2000;
my $most = $due + ($waited_then - $waited) * 2000;

cmp_ok($samples, '>', 0.6 * $due, "$samples samples of $due, not too few");
cmp_ok($samples, '<', 1.25 * $most, "$samples samples of $most, not too many");


# short requests between other requests

my $load = $t->load('/small', clients => 3,
                    headers => [ 'Accept-Encoding: gzip' ]);
my (@foreign, @long, $matched);

for (1 .. 100) {
    my $p = profile_get($busy);

    push @foreign, code_of($p, 'zlib');
    push @long, info($p)->{cpu} if info($p)->{cpu} > 0.02e9;
    $matched += share_of($p, 'map');
}

is(scalar(@foreign), 0, 'profiles contain no code of other requests')
    or diag(join("\n", @foreign));
is("@long", '', 'no profile has CPU time of other requests');
cmp_ok($matched, '>', 10, 'profiles contain the code of their request');
is_clean($t, 'beside other requests');
is($load->stop()->{failed}, 0, 'no other request failed');
