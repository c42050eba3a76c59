#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: continuous
# runs: quiet
#
# The continuous profile while a worker runs one event for long: a loop in Lua, a
# loop in C, or a call that waits.  Ranges have the slices of this worker while it
# loops, and count no time twice.  The truth is the kernel's clock of the worker.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;
use ProfileTest::Preload;
use ProfileTest::Process;

my $t = ProfileTest->new()->has(qw/ lua /)->allow(qr/on signal 9/);

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

$t->conf(<<'EOF', workers => 2);
profile_continuous on slice=1s wall=on;

init_by_lua_block {
    ffi = require "ffi"
    ffi.cdef "void prof_endless_c_loop(const char *file);"
}

server {
    listen 127.0.0.1:8080;

    location /lua {
        content_by_lua_block {
            local function endless_lua_loop(file)
                while true do
                    for i = 1, 1e5 do math.sin(i) end

                    local f = io.open(file)
                    if f then f:close() return end
                end
            end

            endless_lua_loop("%%TESTDIR%%/stop")
            ngx.say("end")
        }
    }

    location /c {
        content_by_lua_block {
            ffi.C.prof_endless_c_loop("%%TESTDIR%%/stop")
            ngx.say("end")
        }
    }

    location /call {
        content_by_lua_block {
            local function endless_call()
                return os.execute("while ! test -e %%TESTDIR%%/stop; "
                                  .. "do sleep 0.1; done")
            end

            ngx.say(endless_call())
        }
    }

    location /-/profile/ { profile_console; }
}
EOF

$ENV{LD_PRELOAD} = build_preload($t, 'prof_loop');

$t->run();

for my $what (qw/ lua c /) {
    my ($s, $pid, $begin, $cpu) = begin("/$what");
    my $loop = qr/endless_${what}_loop/;
    my (@clock, $p);

    # the clock of the worker at many times; slices end between them

    my $seen = wait_for(sub {
        push @clock, [ time(), process_cpu($pid) - $cpu ];
        $p = range($begin);
        return $p && used($p, $loop) > 2;
    }, 60);

    ok($seen, "$what: a range has the loop while it runs");

    my $to = named($p, 'to');
    my ($low) = map { $_->[1] } grep { iso($_->[0]) lt $to } reverse @clock;
    my ($high) = map { $_->[1] } grep { iso($_->[0]) gt $to } @clock;

    $high //= process_cpu($pid) - $cpu;

    cmp_ok(used($p, $loop), '>', 0.9 * ($low // 0) - 0.3,
        "$what: it has the time that the loop used");
    cmp_ok(used($p, $loop), '<', 1.05 * $high + 0.3,
        "$what: and no more");
    like(named($p, 'busy'), qr/^$pid \(one event since 20\d\d-\S+Z\)$/,
        "$what: the range names the worker");
    is(named($p, 'left_out'), undef, "$what: no worker is left out");
    ok((grep { has($_, $loop) && $_->{labels}{thread} eq 'main' } $p->samples()),
        "$what: the samples are of the main thread");

    finish($s);
    my $all = process_cpu($pid) - $cpu;

    wait_for(sub {
        $p = range($begin);
        return used($p, $loop) > 0.9 * $all - 0.3 && !named($p, 'busy');
    }, 30);

    cmp_ok(used($p, $loop), '>', 0.9 * $all - 0.3,
        "$what: the rest is there when the loop has ended");
    cmp_ok(used($p, $loop), '<', 1.05 * $all + 0.3, "$what: no time is there twice");
    is(named($p, 'busy'), undef, "$what: then no worker is named");
}

# a call that waits has wall time, and no CPU time

my ($s, $pid, $begin) = begin('/call');
my $p;

ok(wait_for(sub {
    $p = range($begin, 'wall');
    return $p && used($p, qr/endless_call/, 'wall') > 2;
}, 60), 'a range of wall time has a call that waits while it waits');

my $elapsed = time() - $begin;

cmp_ok(used($p, qr/endless_call/, 'wall'), '<', $elapsed + 0.3,
    'for no more than the time that passed');
cmp_ok(used($p, qr/endless_call/), '<', 0.5, 'without CPU time');

finish($s);

# a worker that is killed while it loops leaves its slices

($s, $pid, $begin) = begin('/c');

wait_for(sub { $p = range($begin); $p && used($p, qr/endless_c/) > 1.5 }, 60);
my $before = used($p, qr/endless_c/);
kill 'KILL', $pid;
wait_for(sub { !process_lives($pid) });
$p = range($begin);

cmp_ok(used($p, qr/endless_c/), '>=', $before,
    'a worker that is killed while it loops leaves its slices');

###############################################################################

# starts a request; returns its connection, the worker that runs it, the time, and
# the worker's CPU time
sub begin {
    my ($uri) = @_;

    unlink($t->testdir() . '/stop');

    my $begin = time();
    my %before = map { $_ => process_cpu($_) } $t->worker_pids();
    my $s = http_get($uri, start => 1);
    my $pid;

    wait_for(sub {
        ($pid) = grep { $uri eq '/call' ? scalar(my @c = $t->child_processes($_))
                        : process_cpu($_) > ($before{$_} // 0) + 0.2 }
                      $t->worker_pids();
    });

    die "no worker runs $uri\n" if !$pid;

    return ($s, $pid, $begin, $before{$pid});
}


sub finish {
    my ($s) = @_;

    $t->write_file('stop', '');
    http_end($s, timeout => 20);
}


# the slices since the one in which the loop began
sub range {
    my ($from, $mode) = @_;

    my $r = http_get('/-/profile/' . ($mode // 'cpu') . '?from=' . int($from - 1)
                     . '&format=pprof');

    return $r->status() eq '200' ? ProfileTest::Pprof->new($r) : undef;
}


sub used {
    my ($p, $what, $mode) = @_;

    $mode //= 'cpu';
    return $p ? $p->total("$mode/nanoseconds", sub { has($_[0], $what) }) / 1e9
              : 0;
}


sub has {
    my ($sample, $what) = @_;
    return scalar grep { /$what/ } @{$sample->{stack}};
}


sub named {
    my ($p, $name) = @_;
    return (map { /^\Q$name\E: (.*)/ ? $1 : () } $p->comments())[0];
}


sub iso {
    my ($time) = @_;

    my @tm = gmtime($time);
    return sprintf('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', $tm[5] + 1900,
                   $tm[4] + 1, @tm[3, 2, 1, 0], 1000 * ($time - int($time)));
}
