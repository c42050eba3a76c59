#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: heap workers
# runs: quiet
#
# What workers allocate: all requests, threads too, sampled or not, in our
# paths and in those of Go's clients.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Module;
use ProfileTest::Object;
use ProfileTest::Pprof;

# memory is leaked on purpose

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new();
my $so = build_module($t, 'ngx_http_object_test_module');

$t->conf(<<"EOF", main => "load_module $so;");
server {
    listen 127.0.0.1:8080;

    # the profile must not contain the allocations for kept profiles
    profile_keep 1;

    location / {
        object_test;
    }

    location /grace {
        object_test;
        profile_object_grace 60s;
    }

    location /-/profile/ {
        profile_console;
        profile_object_interval 64k;
    }

    location /debug/pprof/ {
        profile_console;
    }
}
EOF

$t->run();


# all requests of all workers

my $p = capture('/-/profile/object?seconds=1&interval=0&format=pprof',
                map { ('/?known=100', '/?thread=50', '/?leak=5000') } 1 .. 5);

is_deeply([ $p->types() ], [ object_types() ],
          'the profile has the types of allocations');
is_deeply(sums($p, 'known'), [ 500, 500_000, 0, 0 ],
          'blocks of requests are counted exactly');
is_deeply(sums($p, 'thread'), [ 250, 125_000, 0, 0 ],
          'blocks of threads are counted exactly');
is_deeply(sums($p, 'leak'), [ 5, 25_000, 5, 25_000 ],
          'leaks are counted exactly');
like(join("\n", $p->comments()), qr/^scope: all$/m,
     'the scope is all workers');

my @own = grep { grep { /prof_/ } @{$_->{stack}} } $p->samples();
is(scalar @own, 0, 'the profile has no allocations of the profiler')
    or diag(join("\n", map { join(' ', @{$_->{stack}}) } @own));

# sampled: each block of 128k counts with a probability of 86 %

$p = capture('/-/profile/object?seconds=1&format=pprof',
             map { '/?known=10000' } 1 .. 40);

is($p->period(), 65536, 'the profile has the interval');

my $sum = sums($p, 'known');

cmp_ok(abs($sum->[1] / 400_000_000 - 1), '<', 0.08,
       "sampled bytes are near their sum: $sum->[1] of 400000000");
cmp_ok(abs($sum->[0] / 400_000 - 1), '<', 0.08,
       "sampled blocks are near their sum: $sum->[0] of 400000");

# Go's clients

$p = capture('/debug/pprof/allocs?seconds=1&interval=1k',
             map { '/?leak=400000' } 1 .. 5);

is_deeply([ $p->types() ], [ object_types() ], '"allocs" has the types of allocations');
is($p->default_type(), 'alloc_space', '"allocs" shows allocated bytes first');
is(sums($p, 'leak')->[1], 2_000_000, '"allocs" counts bytes exactly');

$p = capture('/debug/pprof/heap?seconds=1&interval=0',
             map { ('/?leak=400', '/?known=3') } 1 .. 5);

is($p->default_type(), 'inuse_space', '"heap" shows bytes in use first');
is_deeply(sums($p, 'leak'), [ 5, 2000, 5, 2000 ],
          '"heap" counts leaks exactly');
is($p->total('inuse_space/bytes', sub {
       grep { $_ eq 'ngx_http_object_test_known' } @{$_[0]{stack}}
   }), 0, '"heap" does not show freed memory');

# requests of an endpoint: each is counted as a whole

$p = capture('/-/profile/object?seconds=1&uri=/kept&format=pprof',
             map { ('/kept?known=4&leak=100', '/?known=100') } 1 .. 5);

is_deeply(sums($p, 'known'), [ 20, 20_000, 0, 0 ],
          'a capture of an endpoint counts blocks exactly');
is_deeply(sums($p, 'leak'), [ 5, 500, 5, 500 ],
          'a capture of an endpoint counts leaks exactly');

$p = capture('/-/profile/object?seconds=1&uri=/grace&format=pprof',
             map { '/grace?known=4&leak=100' } 1 .. 5);

is_deeply(sums($p, 'leak'), [ 5, 500, 5, 500 ],
          'a capture of an endpoint does not wait for profile_object_grace');

# two captures with different intervals; the client of a third one disconnects

my @two = map {
    http_get("/-/profile/object?seconds=3&format=pprof&interval=$_",
             start => 1)
} 0, 1000;

my $gone = http_get('/-/profile/object?seconds=600', start => 1);

sleep(0.3);
http_get('/?known=1000') for 1 .. 20;
close($gone);

my ($all, $some) = map {
    ProfileTest::Pprof->new(http_end($_, timeout => 20))
} @two;

is_deeply(sums($all, 'known'), [ 20_000, 20_000_000, 0, 0 ],
          'two captures may run at the same time');
cmp_ok(abs(sums($some, 'known')->[1] / 20_000_000 - 1), '<', 0.1,
       'the second capture may have another interval');

# errors

for my $value (qw/ -1 x 1025m 1t /) {
    my $r = http_get("/-/profile/object?interval=$value");

    is($r->status(), 400, "interval=$value has the status 400");
    like($r->body(), qr/interval.*$value.*a size from 0 to 1024m/,
         "the error for interval=$value names the permitted values");
}


sub capture {
    my ($uri, @requests) = @_;

    # all requests must be served during the capture

    for my $seconds (1, 4, 16) {
        my $end = time() + $seconds;
        my $s = http_get($uri =~ s/seconds=\K1/$seconds/r, start => 1);

        sleep(0.3);
        http_get($_) for @requests;

        my $late = time() > $end - 0.1;
        my $r = http_end($s, timeout => 60);

        return ProfileTest::Pprof->new($r->body()) unless $late;
    }

    die "the worker is too slow\n";
}
