#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers capture
#
# The threads of a pool in a profile of the workers. nginx blocks all signals in
# these threads except for those of faults.  The profile has their CPU time and
# their stacks nevertheless.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use POSIX ();
use Test::More;
use Time::HiRes qw/ time sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Pprof;
use ProfileTest::Process;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ threads /);

$t->conf(<<'EOF', workers => 2, main => 'thread_pool default threads=3;');
sendfile off;
aio threads;
output_buffers 2 1m;

server {
    listen 127.0.0.1:8080;

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->write_file('large', 'x' x 20_000_000);
$t->run();

read_much(time() + 0.3);        # the threads begin

my @workers = $t->worker_pids();
my $caught = grep { signal_number($_) } @workers;

for my $frequency (99, 1000) {
    my $end = time() + 5;
    my $s = http_get('/-/profile/cpu?seconds=5&format=pprof'
                     . "&frequency=$frequency", start => 1);

    sleep(0.5);

    my $before = used();
    read_much($end - 1.5);
    my $used = used() - $before;

    my $p = ProfileTest::Pprof->new(http_end($s, timeout => 30));

    my $in_pool = sub {
        ($_[0]{labels}{thread} // '') eq 'thread'
        && grep { /^(?:pread|__pread|__libc_pread)/ } @{$_[0]{stack}};
    };

    my $threads = $p->total('cpu/nanoseconds',
        sub { ($_[0]{labels}{thread} // '') eq 'thread' }) / 1e9;

    cmp_ok($used, '>', 0.05, "$frequency Hz: the threads are used");
    cmp_ok(abs($threads / $used - 1), '<', 0.03,
        "the profile has $threads s of the threads' $used s of CPU time");
    cmp_ok($p->total('cpu/nanoseconds', $in_pool) / 1e9, '>', $used * 0.7,
        'most of this time is in functions that read files');
    cmp_ok($p->total('samples/count', $in_pool), '>', 3,
           'these functions have samples');
}

is(scalar(grep { signal_number($_) } @workers), $caught,
    'SIGFPE has its former handler afterwards');

###############################################################################

# two connections, read until then as fast as possible
sub read_much {
    my ($end) = @_;

    my @pids = map { $t->start_child(sub {
        while (time() < $end) {
            my $s = http_get('/large', start => 1);

            while (time() < $end && sysread($s, my $buf, 1_000_000)) { }
        }

        POSIX::_exit(0);
    }) } 1, 2;

    waitpid($_, 0), $t->forget_child($_) for @pids;
}


# CPU time of the threads that are not the first of their process, in seconds
sub used {
    my $sum = 0;

    for my $pid (@workers) {
        for my $task (glob("/proc/$pid/task/*")) {
            my ($tid) = $task =~ /(\d+)$/;
            $sum += process_cpu($pid, $tid) if $tid != $pid;
        }
    }

    return $sum;
}


# whether the process catches SIGFPE, 8; sanitizers do
sub signal_number {
    my ($pid) = @_;

    return hex(substr(process_status($pid, 'SigCgt'), -2)) & 0x80;
}
