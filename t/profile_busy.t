#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: quiet

# A request could run, but its worker did something else: it ran another request, a
# timer of no request, or a page of the profiler, or it had no processor.  Each is
# made to last for a known time.  A script measures this time, and how long the
# worker was in the queue for a processor, and the profile and the metrics tell the
# same.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep time /;

use lib 't/lib';
use ProfileTest;
use ProfileTest::Metrics;

# seconds: the clock of the queue is read at the ends of turns

use constant OFF => 0.04;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua /)->has_program(qw/ taskset /);

$t->conf(<<'EOF');
lua_package_path "%%TESTDIR%%/?.lua;/usr/share/lua/5.1/?.lua;;";
init_by_lua_block { app = require "app" }

server {
    listen 127.0.0.1:8080;
    server_name localhost;

    profile_endpoint on;

    location = /sleep {
        content_by_lua_block { ngx.sleep(0.4) ngx.print("slept") }
    }

    location = /burn {
        content_by_lua_block { app.burn(0.4) app.report() }
    }

    location = /timer {
        content_by_lua_block {
            ngx.timer.at(0.1, function() app.burn(0.4) end)
            ngx.print(ngx.worker.pid())
        }
    }

    location = /report {
        content_by_lua_block { app.report() }
    }

    location = /metrics {
        profile_metrics;
    }

    location /profile/ {
        access_by_lua_block { if ngx.var.arg_burn then app.burn(0.4) end }
        profile_console;
    }
}
EOF

$t->write_file('app.lua', <<'EOF');
local ffi = require "ffi"

ffi.cdef[[
typedef struct { long sec; long nsec; } test_timespec_t;
int clock_gettime(int id, test_timespec_t *ts);
]]

local ts = ffi.new("test_timespec_t")
local app = {}

-- 1 is CLOCK_MONOTONIC, 3 is CLOCK_THREAD_CPUTIME_ID
function app.clock(id)
    ffi.C.clock_gettime(id, ts)
    return tonumber(ts.sec) + tonumber(ts.nsec) / 1e9
end

local function queue()
    local f = io.open("/proc/thread-self/schedstat")
    local ns = f:read("*a"):match("%d+ (%d+)")
    f:close()
    return tonumber(ns) / 1e9
end

-- CPU time, so that other processes make it longer; with an old time nginx would
-- sleep in its next poll although the request's timer is due

function app.burn(seconds)
    local used, queued = app.clock(3), queue()
    app.from = app.clock(1)
    while app.clock(3) < used + seconds do end
    app.to = app.clock(1)
    app.queued = queue() - queued
    ngx.update_time()
end

function app.report()
    ngx.print(string.format("%.6f %.6f %.6f", app.from, app.to, app.queued))
end

return app
EOF

$t->run();

plan(skip_all => 'no /proc/thread-self/schedstat')
    if !-r '/proc/thread-self/schedstat';

my %busy = (
    'with other requests' => sub { http_get('/burn', start => 1) },
    'with timers' => sub { http_get('/timer', start => 1) },
    'with the profiler' => sub {
        http_get('/profile/profiles.json?burn=1', start => 1)
    },
);

for my $kind (sort keys %busy) {
    busy($kind, $busy{$kind});
}

# other threads on the worker's processor

my ($worker) = $t->worker_pids();

SKIP: {
    skip 'the worker cannot be moved to one processor', 8
        if system("taskset -pc 0 $worker >/dev/null 2>&1");

    my $hogs = 3;
    my @hogs = map { $t->run_daemon(sub {
        system("taskset -pc 0 $$ >/dev/null 2>&1");
        my $end = time() + 30;
        1 while time() < $end;
    }) } 1 .. $hogs;

    sleep 0.3;

    my $queued = busy('with other requests', $busy{'with other requests'},
                      'one processor for many');

    cmp_ok($queued, '>', 0.1, 'the worker had no processor');
}


# runs something 0.2 s before the request could run; returns the time in the queue
sub busy {
    my ($kind, $run, $name) = @_;

    $name ||= $kind;

    my $late = $kind eq 'with timers' ? 0.1 : 0.2;

    my $before = metrics_of(http_get('/metrics')->body());

    my $r = http_get('/sleep?performance_bar=flamegraph'
                     . '&profile_format=speedscope', start => 1);
    sleep $late;
    my $other = $run->();

    my $p = ProfileTest::Profile->new(http_end($r));
    http_end($other);

    my ($from, $to, $queued) = split / /, http_get('/report')->content();

    my %sum;

    for ($p->profile('wall')->stacks()) {
        my ($root, $what) = @{$_->[0]};

        $sum{$1} += $_->[1] / 1e9
            if $root eq '[waiting]' && $what =~ /^worker (?:busy )?(.*)/;
    }

    my $all = 0;
    $all += $_ for values %sum;

    my $after = metrics_of(http_get('/metrics')->body());

    my %counted = map {
        my @sample = ('nginx_profile_request_busy_seconds_total',
                      location => '= /sleep', cause => "worker $_");

        $_ => metric_sum($after, @sample) - metric_sum($before, @sample);
    } 'without a processor', map { "busy $_" } keys %busy;

    my $share = $queued / ($to - $from);
    my $stopped = delete $sum{'without a processor'} || 0;
    my $ran = delete $sum{$kind} || 0;

    my $folded = join("\n", map { "$_ $sum{$_}" } sort keys %sum) . "\n"
                 . $p->profile('wall')->folded(10);

    cmp_ok($all, '>', 0.05, "$name: the worker was busy") or diag($folded);
    cmp_ok($all, '<', 1.05 * ($to - $from) + OFF, "$name: not longer than it was")
        or diag($folded);
    near($ran, $all * (1 - $share), $all,
         "$name: it ran") or diag($folded);
    near($stopped, $all * $share, $all,
         "$name: it had no processor")
        or diag($folded);
    near($counted{"busy $kind"}, $ran, $all, "$name: metrics");
    near($counted{'without a processor'}, $stopped, $all,
         "$name: metrics, no processor");
    cmp_ok($all - $ran - $stopped, '<', 0.01 + 0.02 * $all,
           "$name: nothing else")
        or diag($folded);

    return $queued;
}


sub near {
    my ($got, $truth, $all, $name) = @_;

    my $ok = ok(abs($got - $truth) < OFF + 0.05 * $all, $name);
    diag("$got, not $truth") if !$ok;

    return $ok;
}
