#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers
# runs: quiet
#
# Captures of a worker that runs one event for long: a loop that does not end,
# or a system call that waits.  Another worker is asked.  The test ends the
# loops, by a file.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;
use ProfileTest::Process;

my $t = ProfileTest->new()->has(qw/ lua rewrite /)->allow(qr/on signal 9/)
                          ->allow(qr/cannot reach worker/);

$t->conf(<<'EOF', workers => 2);
server {
    listen 127.0.0.1:8080;

    location /loop {
        content_by_lua_block {
            local function endless_loop(file)
                while true do
                    for i = 1, 1e5 do math.sin(i) end

                    local f = io.open(file)
                    if f then f:close() return end
                end
            end

            endless_loop("%%TESTDIR%%/stop")
            ngx.say("end")
        }
    }

    location /blocked {
        content_by_lua_block {
            local function blocked_call()
                return os.execute("while ! test -e %%TESTDIR%%/stop; "
                                  .. "do sleep 0.1; done")
            end

            ngx.say(blocked_call())
        }
    }

    location /fast { return 200 "fast\n"; }
    location /-/profile/ { profile_console; }
}
EOF

$t->run();

###############################################################################

# a loop, in the modes "cpu" and "wall"

my ($loop, $pid) = begin('/loop');

for my $mode (qw/ cpu wall /) {
    my $begin = time();
    my $s = http_get("/-/profile/$mode?seconds=3&frequency=99&format=pprof",
                     start => 1);

    # the capture of this worker begins a second after the others

    wait_for(sub { process_signals($pid) }, 5);

    my $since = time();
    my $before = process_cpu($pid);

    sleep($begin + 3 - $since);

    my $most = $mode eq 'cpu' ? process_cpu($pid) - $before : time() - $since;
    my $p = ProfileTest::Pprof->new(http_end($s, timeout => 20));

    cmp_ok(time() - $begin, '<', 3 + 3, "$mode: the capture ends in time");
    is(named($p, 'left_out'), undef, "$mode: no worker is left out");
    like(named($p, 'workers'), qr/\b$pid \(busy with one event\)/,
        "$mode: the profile tells that the worker did not answer");

    my $got = $p->total("$mode/nanoseconds", \&is_loop) / 1e9;

    cmp_ok($got, '>', 0.6 * $most, "$mode: the loop has the time since then");
    cmp_ok($got, '<=', $most + 0.2,
        "$mode: the loop has no more time than it used");
    ok((grep { is_loop($_) && $_->{labels}{thread} eq 'main' } $p->samples()),
        "$mode: the samples are of the main thread");
}

# requests and allocations need the event loop

for my $what ('wall?uri=/fast&seconds=2', 'object?seconds=2') {
    my $begin = time();
    my $s = http_get("/-/profile/$what&format=pprof", start => 1);

    sleep(0.3);
    http_get('/fast') for 1 .. 3;

    my $p = ProfileTest::Pprof->new(http_end($s, timeout => 20));

    cmp_ok(time() - $begin, '<', 2 + 2, "$what: the capture ends in time");
    like(named($p, 'left_out'), qr/^$pid \(busy with one event, which the modes/,
        "$what: the profile tells why the worker takes no part");
}

# the client disconnects

my $s = http_get('/-/profile/wall?seconds=60&frequency=99', start => 1);
ok(wait_for(sub { process_signals($pid) }, 5), 'the worker is captured');
close($s);
ok(wait_for(sub { !process_signals($pid) }, 5),
    'the capture ends when its client leaves');

# the loop ends while it is captured

$s = http_get('/-/profile/cpu?seconds=3&format=pprof', start => 1);
ok(wait_for(sub { process_signals($pid) }, 5), 'the worker is captured again');

my $before = process_cpu($pid);
wait_for(sub { process_cpu($pid) > $before + 0.3 }, 1.5);
finish($loop);

my $p = ProfileTest::Pprof->new(http_end($s, timeout => 20));
is(named($p, 'left_out'), undef, 'a loop that ends leaves no worker out');
like(named($p, 'workers'), qr/\b$pid \(busy with one event\)/,
    'the worker takes part once');
ok((grep { is_loop($_) } $p->samples()), 'the profile has the loop');

$p = capture('cpu?seconds=0.5');
unlike(named($p, 'workers'), qr/busy/, 'the event loop takes part again');
is(named($p, 'left_out'), undef, 'all workers take part again');

# a call that waits uses no CPU time

($loop, $pid) = begin('/blocked');
$p = capture('wall?seconds=2.5&frequency=99');

cmp_ok($p->total('wall/nanoseconds', sub { has($_[0], qr/blocked_call/) }), '>',
    1e9, 'the wall time of a call that waits is shown');
cmp_ok($p->total('cpu/nanoseconds', sub { has($_[0], qr/blocked_call/) }), '<',
    0.3e9, 'its CPU time is not more than it used');
finish($loop);

# the worker is killed while it is captured

($loop, $pid) = begin('/loop');
$s = http_get('/-/profile/cpu?seconds=3&format=pprof', start => 1);
ok(wait_for(sub { process_signals($pid) }, 5), 'a loop is captured once more');
kill 'KILL', $pid;

$p = ProfileTest::Pprof->new(http_end($s, timeout => 20));
unlike(named($p, 'workers'), qr/\b$pid\b/,
    'the profile does not name a worker that is killed');

ok(wait_for(sub { $t->worker_pids() == 2 }), 'nginx starts another worker');

# the asker is killed

($loop, $pid) = begin('/loop');
$s = http_get('/-/profile/cpu?seconds=60&format=pprof', start => 1);
ok(wait_for(sub { process_signals($pid) }, 5), 'a loop is captured by another');
kill 'KILL', grep { $_ != $pid } $t->worker_pids();
ok(wait_for(sub { !process_signals($pid) }, 5),
    'the capture ends when the asker is killed');
finish($loop);

###############################################################################

# starts a request; returns its connection, and the worker that runs it
sub begin {
    my ($uri) = @_;

    unlink($t->testdir() . '/stop');

    my %before = map { $_ => process_cpu($_) } $t->worker_pids();
    my $s = http_get($uri, start => 1);

    my $pid;

    if ($uri eq '/blocked') {
        wait_for(sub {
            ($pid) = grep { my @children = $t->child_processes($_) }
                          $t->worker_pids() });

    } else {
        wait_for(sub {
            ($pid) = grep { process_cpu($_) > ($before{$_} // 0) + 0.2 }
                          $t->worker_pids() });
    }

    return ($s, $pid // die "no worker runs $uri\n");
}


sub finish {
    my ($s) = @_;

    $t->write_file('stop', '');
    http_end($s, timeout => 20);
}


sub capture {
    my ($what) = @_;
    return ProfileTest::Pprof->new(http_get("/-/profile/$what&format=pprof",
                                            timeout => 20));
}


sub is_loop { return has($_[0], qr/endless_loop/) }


sub has {
    my ($sample, $re) = @_;
    return grep { /$re/ } @{$sample->{stack}};
}


sub named {
    my ($p, $name) = @_;
    return (map { /^$name: (.*)/s ? $1 : () } $p->comments())[0];
}
