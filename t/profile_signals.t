#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: capture
#
# Signals that look like those of the profiler's timers, a million of them,
# sent by another process of the worker's user during captures of all modes:
# they are counted, and profiles are as without them.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;

my $COUNT = 1_000_000;

my $t = ProfileTest->new()->has(qw/ lua rewrite threads /)
                          ->has_program($ENV{CC} || 'cc');

$t->conf(<<'EOF', main => 'thread_pool default threads=2;');
sendfile off;
aio threads;
output_buffers 2 1m;

# this directive keeps a watch running
profile_stall_threshold 100s;
profile_endpoint on;

server {
    listen 127.0.0.1:8080;

    location /busy {
        content_by_lua_block {
            local till = os.clock() + 0.1
            while os.clock() < till do end
            ngx.say("was busy")
        }
    }

    location /large { }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->write_file('large', 'x' x 5_000_000);

my $forge = $t->testdir() . '/forge';
my ($rc, $out) = $t->command($ENV{CC} || 'cc', '-O2', '-W', '-Wall', '-o',
                             $forge, dirname(__FILE__)
                             . '/fixtures/prof_forge.c');
is($rc, 0, 'the program that forges signals') or diag($out);

$t->run();

http_get('/large');             # the threads begin

my ($pid) = $t->worker_pids();
my $before = refused();
my ($sent, $copies, $faults, $rounds) = (0, 0, 0, 0);
my (@requests, @captures);

while ($sent < $COUNT && $rounds++ < 100) {
    my $seconds = 15;
    my %capture = map {
        $_ => http_get("/-/profile/$_?seconds=$seconds&format=pprof",
                       start => 1)
    } qw/ cpu wall object /;

    my $result = forge($seconds - 5);

    for my $mode (sort keys %capture) {
        my $response = http_end($capture{$mode}, timeout => 3 * $seconds);
        my $pprof = eval { ProfileTest::Pprof->new($response) };
        push @captures, [ $mode, $pprof || $response ];
    }

    last unless $result;

    $sent += $result->[0];
    $copies += $result->[1];
    $faults += $result->[2];
}

diag("$sent signals sent, $copies of them copied, and $faults SIGFPE,"
     . " in $rounds rounds; " . @requests . ' requests profiled');

cmp_ok($sent, '>=', $COUNT, 'a million signals were sent');
cmp_ok($copies, '>', $COUNT / 10,
       'some of the signals have copies of payloads');
cmp_ok($faults, '>', 1000,
       'signals for threads that block other signals are sent');
is(join(' ', $t->worker_pids()), $pid, 'the worker is the same');

# late signals of the profiler's own timers are refused, too

my $refused = refused() - $before;
cmp_ok($refused, '>=', $sent - $copies, 'forged signals are counted');
cmp_ok($refused, '<=', $sent + $faults + 1000, 'no other signal is counted');

is(scalar(grep { !ref $_->[1] || $_->[1]->isa('ProfileTest::Response') }
          @captures), 0, 'captures of the worker, all with a profile');

# A request to /busy ends when the worker has used 0.1 s of CPU time.  All other
# time depends on the machine: a forged signal wakes a thread that waits, and
# the worker then sets its timers anew.  Samples of forged signals would be
# hundreds of times the work.

for my $mode (qw/ cpu wall /) {
    my $known = 0.1e9 * @requests;
    my ($busy, $cpu) = (0, 0);

    for my $capture (grep { $_->[0] eq $mode } @captures) {
        $cpu += $capture->[1]->total('cpu/nanoseconds');
        $busy += $capture->[1]->total('cpu/nanoseconds', sub {
            grep { /lua/i } @{$_[0]{stack}} });
    }

    diag(sprintf('%s: %.2f s of %.2f s in Lua, %.2f s known', $mode,
                 map { $_ / 1e9 } $busy, $cpu, $known));
    cmp_ok($busy, '>', 0.85 * $known,
           "$mode: the samples show the work of the requests");
    cmp_ok($busy, '<', 1.5 * $known,
           "$mode: forged signals add no work to the requests");
}

ok(@requests >= 5, 'requests were profiled meanwhile')
    or diag(scalar @requests);

# samples that were not due, stacks of other code, lost time

my %bad = (samples => 0, time => 0);
my ($below, $total) = (0, 0);

for my $profile (@requests) {
    my $info = $profile->json()->{profile_info};
    my $wall = $profile->profile('wall');

    $bad{samples}++ if $info->{samples}
                       > 1.1 * $info->{running} / 1e9
                         * $info->{frequency_asked} + 5;
    $below += $wall->weight_below(qr/lua/i);
    $total += $wall->total();
    $bad{time}++ if abs($wall->total() - $info->{wall}) > 0.01 * $info->{wall};
}

is($bad{samples}, 0, 'no capture has more samples than its frequency allows');
cmp_ok($below, '>', 0.9 * $total, 'the samples show the code that was busy');
is($bad{time}, 0, 'the times are those of the requests');

like(http_get('/large'), qr/200 OK/, 'requests are answered');

###############################################################################

# sends signals while requests are profiled; returns their number
sub forge {
    my ($seconds) = @_;

    my $file = $t->testdir() . '/forged';
    my $child = $t->start_child(sub {
        open STDOUT, '>', $file or exit 1;
        exec($forge, $pid, $COUNT - $sent + 1000, $seconds) or exit 1;
    });

    my $ended = wait_for(sub {
        push @requests, profile_get('/busy');
        http_get('/large');
        return waitpid($child, POSIX::WNOHANG()) == $child;
    }, 3 * $seconds);

    my $status = $?;
    $t->forget_child($child);

    if (!$ended || $status != 0) {
        diag("the program that forges signals: status $status");
        return;
    }

    return [ split ' ', $t->read_file('forged') ];
}


sub refused {
    my $status = decode_json(http_get('/-/profile/status.json')
                             ->content());

    return $status->{workers}[0]{refused_signals} // 0;
}

###############################################################################
