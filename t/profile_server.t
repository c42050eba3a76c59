#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers
#
# Captures of workers: sums against the CPU time of the processes, which
# workers, formats, wrong parameters, and captures at the same time.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ clock_gettime sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;
use ProfileTest::Profile;

my $t = ProfileTest->new()->has(qw/ gzip proxy rewrite /);

$t->conf(<<'EOF', workers => 4);
default_type text/plain;
gzip_types text/plain;
gzip_comp_level 9;

server {
    listen 127.0.0.1:8080 reuseport;
    listen unix:%%TESTDIR%%/console;

    profile_endpoint on;

    location /text {
        gzip on;
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8080/;
    }

    location /return {
        return 200 "ok\n";
    }

    location /-/profile/ {
        profile_console;
    }

    location /debug/pprof/ {
        profile_console;
    }
}
EOF

$t->write_file('text', join('', map { "line $_ " . rand() . "\n" } 1 .. 20000));
$t->write_file('small', 'small');
$t->run();

###############################################################################

# idle workers

my $p = cpu('seconds=0.3&format=pprof');

is($p->period_type(), 'cpu/nanoseconds',
   'the profile in pprof has the period of CPU time');
is(join(' ', $p->types()), 'samples/count cpu/nanoseconds',
   'the profile in pprof has samples and CPU time');
cmp_ok(abs($p->duration() - 0.3e9), '<', 0.2e9, 'the duration is as requested');
cmp_ok($p->total('cpu/nanoseconds'), '<', 0.1e9, 'idle workers use no time');

# all workers under mixed load, which begins and ends within the capture

my @pids = $t->worker_pids();
my %before = map { $_ => used($_) } @pids;
my $before = used(@pids);
my $capture = http_get('/-/profile/cpu?seconds=8&format=pprof', start => 1);

sleep(0.5);
my @load = mixed();
sleep(3);
$_->stop() for @load;

# workers without requests still use some time for the capture

sleep(4);

my $used = used(@pids) - $before;
my %used = map { $_ => used($_) - $before{$_} } @pids;

$p = ProfileTest::Pprof->new(http_end($capture, timeout => 60));

my $sum = $p->total('cpu/nanoseconds') / 1e9;

is((grep { /^left_out/ } $p->comments())[0], undef, 'all workers took part');
cmp_ok(abs($sum / $used - 1), '<', 0.03,
    "CPU time: $sum s in the profile, $used s used by the processes");

my ($pids) = map { /^workers: (.*)/ } $p->comments();
is(join(' ', sort split(/, /, $pids)), join(' ', sort @pids),
    'the workers that took part are named');

# the label is the number of the worker, and orders the list of processes

my @order = split(/, /, $pids);

for my $i (0 .. $#order) {
    my $own = $p->total('cpu/nanoseconds',
                        sub { ($_[0]{labels}{worker} // '') eq $i }) / 1e9;
    my $of = $used{$order[$i]};

    cmp_ok(abs($own - $of), '<', 0.03 * $of + 0.01,
        "worker $i: $own s in the profile, $of s used by the process");
}

ok((grep { grep { /deflate/ } @{$_->{stack}} } $p->samples())
   && (grep { grep { /^ngx_/ } @{$_->{stack}} } $p->samples()),
    'the profile has functions of nginx and of zlib');

# captures of different frequencies at the same time, and one of a request

$before = used(@pids);

my @at_once = map { http_get("/-/profile/cpu?seconds=8&format=pprof"
                             . "&frequency=$_", start => 1) }
    99, 1000, 99;

sleep(0.5);
@load = $t->load('/text', clients => 2,
                 headers => [ 'Accept-Encoding: gzip' ]);
my $request = profile_get('/text?performance_bar=flamegraph',
                          headers => [ 'Accept-Encoding: gzip' ]);

cmp_ok($request->profile('cpu')->weight_below(qr/^ngx_http_/), '>', 0,
    'a request is captured at the same time');

sleep(3);
$_->stop() for @load;
$used = used(@pids) - $before;

for my $frequency (99, 1000, 99) {
    $p = ProfileTest::Pprof->new(http_end(shift @at_once, timeout => 30));

    # waiting for events takes time that is not sampled, but read from the
    # clock; so do threads that make profiles of other captures

    my $unsampled = $p->total('cpu/nanoseconds',
                              sub { $_[0]{stack}[0] =~ /^\[/ }) / 1e9;
    my $expected = ($used - $unsampled) * $frequency;
    my ($lost) = map { /\blost_overrun=(\d+)/ } $p->comments();
    my $samples = $p->total('samples/count') + $lost;

    cmp_ok($unsampled, '<', 0.1 * $used,
           "$frequency Hz: most of the CPU time is sampled");

    # each worker may have one sample more or less

    cmp_ok(abs($samples - $expected), '<=', 0.05 * $expected + @pids,
        "$frequency Hz: $samples samples of $expected");
}

@load = mixed();

# a single worker

my ($pid) = @pids;

$p = cpu("seconds=2&format=pprof&workers=$pid");
is((map { /^workers: (.*)/ } $p->comments())[0], $pid,
   'a worker is selected by its pid');

$p = cpu("seconds=2&format=pprof&workers=self");
like((map { /^workers: (.*)/ } $p->comments())[0], qr/^\d+$/,
     'the asker alone is selected');

# wall time: busy and idle time of all workers

for my $frequency (99, 1000) {
    my $seconds = 2;

    $p = ProfileTest::Pprof->new(
        http_get("/-/profile/wall?seconds=$seconds&format=pprof"
                 . "&frequency=$frequency", timeout => 60));

    is((grep { /^left_out/ } $p->comments())[0], undef,
       'all workers take part in a capture of wall time');
    is($p->default_type(), 'wall', "$frequency Hz: wall time is shown first");

    my ($wall) = map { /\bwall=(\d+)/ } $p->comments();
    my $idle = $p->total('wall/nanoseconds',
                         sub { $_[0]{stack}[0] eq '[idle]' });
    my $busy = $p->total('wall/nanoseconds') - $idle;

    cmp_ok($wall, '>', 0.75e9 * $seconds * @pids,
        "the wall time has $seconds s of each worker");
    cmp_ok(abs($idle + $busy - $wall), '<', $wall / 100,
           'idle and busy time make up the wall time');
    cmp_ok($idle, '>', 0, 'the profile has idle time');
    cmp_ok($busy, '>', 0, 'the profile has busy time');
    cmp_ok($p->total('cpu/nanoseconds'), '<=', $wall,
           'CPU time does not exceed wall time');

    my $text = $p->total('wall/nanoseconds', \&is_text);
    my $other = $p->total('wall/nanoseconds', sub {
        is_text($_[0]) && !grep { /deflate|gzip|text|^libz|crc32|^ngx_|^nginx/ }
                @{$_[0]{stack}} });

    cmp_ok($text, '>', $busy / 3, 'one location has much of the busy time');
    cmp_ok($other, '<', $text / 10,
           'hardly any stack has the label of another location');
}

$_->stop() for @load;

# other formats

my $got = http_get('/-/profile/cpu?seconds=0.2', headers => [ 'Accept: text/html' ]);
like($got->header('Content-Type'), qr{^text/html}, 'a browser gets a page');

$got = http_get('/-/profile/cpu?seconds=0.2&format=svg');
is($got->header('Content-Type'), 'image/svg+xml',
   'the format svg is a picture');

$got = http_get('/-/profile/cpu?seconds=0.2', unix => $t->testdir()
                                                      . '/console');
ok(decode_json($got->body())->{profiles}, 'a unix socket serves the console');

is(http_head('/-/profile/cpu?seconds=300')->status(), 204,
    'a HEAD request captures nothing');

# wrong parameters

for my $wrong (
    [ 'seconds=0', qr/"seconds" is "0", it must be a number from 0.1 to 600/ ],
    [ 'seconds=601', qr/from 0.1 to 600/ ],
    [ 'seconds=', qr/"seconds" is ""/ ],
    [ 'seconds=abc', qr/"seconds" is "abc"/ ],
    [ 'frequency=0', qr/"frequency" is "0", it must be .* from 1 to 10000/ ],
    [ 'frequency=10001', qr/1 to 10000/ ],
    [ 'format=xml', qr/"format" is "xml", it must be "speedscope", .*or "html"/ ],
    [ 'workers=1', qr/"workers" is "1", it must be "all", "self" or / ],
    [ 'workers=x', qr/"workers" is "x"/ ])
{
    my ($args, $text) = @$wrong;
    $got = http_get("/-/profile/cpu?$args");

    is($got->status(), 400, "$args has the status 400");
    like($got->body(), $text, "the error for $args tells the valid values");
}

$got = http_get('/debug/pprof/profile?seconds=x');
is($got->status(), 400, 'an error for Go has its status');
is($got->header('X-Go-Pprof'), 1, 'a header makes Go show the error');
like($got->header('Content-Type'), qr{^text/plain},
     'an error for Go is plain text');

like(http_get('/debug/pprof/cmdline')->body(), qr/nginx\0.*-c\0/s,
    'cmdline has the arguments of nginx');

# too many captures

@at_once = map { http_get('/-/profile/cpu?seconds=2&workers=' . $pid,
                          start => 1) } 1 .. 8;
sleep(0.3);

$got = http_get('/debug/pprof/profile?seconds=1&workers=' . $pid);
is($got->status(), 429, 'a ninth capture is refused');
like($got->header('Retry-After'), qr/^\d+$/,
     'the refusal tells when to ask again');
like($got->body(), qr/8 captures/, 'the refusal names the limit');

is(scalar(grep { http_end($_, timeout => 30)->status() == 200 } @at_once), 8,
    'the other captures succeed');


###############################################################################

sub cpu {
    my ($args) = @_;

    my $got = http_get("/-/profile/cpu?$args", timeout => 30);

    return ProfileTest::Pprof->new($got);
}


sub is_text { return ($_[0]{labels}{location} // '') eq '/text' }


sub mixed {
    return (
        $t->load('/text', clients => 2,
                 headers => [ 'Accept-Encoding: gzip' ]),
        $t->load('/proxy/small', clients => 1),
        $t->load('/return', clients => 1),
    );
}


# CPU time of all workers, in seconds, by the clock that getrusage() reads:
# threads that have ended are in it
sub used {
    my (@pids) = @_;

    use integer;
    my @clocks = map { ~$_ << 3 | 2 } @pids;
    no integer;

    return sum0(map { clock_gettime($_) } @clocks);
}
