#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: heap
# runs: beside
#
# The mode "object": what a request allocates and leaves behind, by stack, with
# a module that allocates what it is told to.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

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
    %%CONF object%%

    location /object {
        object_test;
        profile_mode object;
    }
}

# all is in one block of the pool
server {
    listen 127.0.0.1:8081;
    request_pool_size 32k;

    profile_endpoint on;
    profile_format pprof;

    location / {
        object_test;
    }
}
EOF

$t->run();

my $args = 'performance_bar=flamegraph&stackprof_mode=object';

# known allocations

my $p = object('/?known=20');

is_deeply([ $p->types() ], [ object_types() ],
          'the profile has the types of allocations');
is_deeply(sums($p, 'known'), [ 20, 20000, 0, 0 ],
          'known blocks are counted exactly');

# a leak is named with its stack

$p = object('/?leak=1048576&known=3');

is_deeply(sums($p, 'leak'), [ 1, 1048576, 1, 1048576 ],
          'a leak is counted exactly');
is_deeply(sums($p, 'known'), [ 3, 3000, 0, 0 ],
          'known blocks beside a leak are counted exactly');

my ($leak) = grep { $_->{values}[3] >= 1048576 } $p->samples();

is($leak->{stack}[0], 'ngx_http_object_test_leak',
   'the stack of the leak begins with the caller of malloc()');
is($leak->{stack}[1], 'ngx_http_object_test_handler',
   'the stack of the leak has the handler');
like(join(' ', @{$leak->{stack}}), qr/phase content/,
     'the stack of the leak has the content phase');
unlike(join(' ', @{$leak->{stack}}), qr/prof_|ngx_http_profile/,
       'the stack of the leak has no function of the profiler');

my @others = grep { $_->{values}[3]
                    && $_->{stack}[0] ne 'ngx_http_object_test_leak' }
             $p->samples();

is_deeply(\@others, [], 'no other memory remains in use');

# the profile as pprof shows it

SKIP: {
    my $pprof = ProfileTest::Pprof::program();
    skip 'no go', 3 unless $pprof;

    $t->write_file('leak.pb.gz', http_get("/?leak=3145728&$args")->body());

    my $file = $t->testdir() . '/leak.pb.gz';
    my ($rc, $top) = $t->command($pprof, '-top',
                                 '-sample_index=inuse_space', $file);

    is($rc, 0, 'go tool pprof reads the profile');
    like($top, qr/^Type: inuse_space$/m,
         'go tool pprof shows the memory in use');
    like($top, qr/^\s+3MB .* ngx_http_object_test_leak$/m,
         'go tool pprof shows the leak');
}

# the mode of a location

$p = ProfileTest::Pprof->new(
    http_get('/object?known=7&performance_bar=flamegraph')->body());

is_deeply(sums($p, 'known'), [ 7, 7000, 0, 0 ],
          'a location may choose the mode "object"');

# pools: the block belongs to the stack that makes the pool grow, until its end

$p = object('/?pool=3000');

my $pool = sums($p, 'pool');

is($pool->[0], 1, 'a pool grows by one block');
cmp_ok($pool->[1], '>=', 3000, 'the block of the pool has its size');
is($pool->[2], 0, 'the block of the pool is freed with the request');

SKIP: {
    skip 'pools of an nginx with sanitizers have no blocks', 1
        if $t->sanitizers();

    is(pool_bytes('/?pool=900') - pool_bytes('/?pool=100'), 800,
       'the bytes taken from a pool are exact');
}

# memory that a cleanup of the pool frees is in use when the reply is made

is_deeply([ @{sums(object('/?cleanup=5000'), 'cleanup')}[2, 3] ], [ 1, 5000 ],
          'memory that a cleanup frees counts as in use');

# threads are not turns

is_deeply(sums(object('/?thread=50&known=1'), 'thread'), [ 0, 0, 0, 0 ],
          'allocations of other threads are not counted');

# every format, and the mode by a header

for my $format (qw/ speedscope svg html folded pprof /) {
    my $r = http_get("/?known=1&$args&profile_format=$format");

    is($r->status(), 200, "the format $format is available");
}

my $r = http_get('/?known=2',
                 headers => [ 'X-Profile: flamegraph; mode=object' ]);

is_deeply(sums(ProfileTest::Pprof->new($r->body()), 'known'),
          [ 2, 2000, 0, 0 ], 'a header may choose the mode "object"');
like($r->header('Content-Disposition'), qr/-object-\d+T\d+Z\.pb\.gz"/,
     'the file name has the mode');

$r = http_get("/?performance_bar=flamegraph&profile_mode=objects");

is($r->status(), 400, 'an unknown mode has the status 400');
is($r->body(), qq{profile_mode takes "wall", "cpu" or "object"\n},
   'the error names the modes');

# no allocations in other modes

$p = ProfileTest::Pprof->new(
    http_get('/?known=7&performance_bar=flamegraph')->body());

unlike(join(' ', $p->types()), qr/alloc/,
       'a profile of wall time has no types of allocations');


sub object {
    my ($uri) = @_;

    $uri .= ($uri =~ /\?/ ? '&' : '?') . $args;

    return ProfileTest::Pprof->new(http_get($uri));
}


# returns the bytes of the request's pool in the content phase
sub pool_bytes {
    my ($uri) = @_;

    my $r = http_get("$uri&$args", port => 8081);

    my ($n) = join("\n", ProfileTest::Pprof->new($r->body())->comments())
              =~ /request_pool.*phase content (\d+)/ or return 0;

    return $n;
}
