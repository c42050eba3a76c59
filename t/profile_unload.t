#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: unwind names
# runs: beside

# Libraries that a request loads and unloads with LuaJIT's FFI: nothing reads
# what is not mapped any more, and functions have the names of the library that
# was there, also if another one is at the same address now.

use strict;
use warnings;

use List::Util qw/ sum0 /;
use Test::More;

use ProfileTest;

# LuaJIT's thread-local storage is gone when LeakSanitizer looks for it

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua /)->has_program(qw/ cc /);

# libraries of the same size, whose code is at the same place

for my $name (qw/ one two late early /) {
    $t->write_file("$name.c", <<"EOF");
#include <stdlib.h>
#include <time.h>

static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

__attribute__((noinline)) double
unload_$name(double ms)
{
    int        i;
    double     end;
    static volatile double  sum;
    void *volatile  p;

    for (end = now() + ms; now() < end; /* void */ ) {
        for (i = 0; i < 50000; i++) {
            sum += i;
        }

        p = malloc(100);
        free(p);
    }

    return sum;
}
EOF

    my ($status, $out) = $t->command($ENV{CC} || 'cc', '-shared', '-fPIC', '-g',
                                     '-O1', '-o', $t->testdir() . "/$name.so",
                                     $t->testdir() . "/$name.c");
    die "cc: $out\n" if $status != 0;
}

$t->conf(<<'EOF');
log_format keep '$request_uri id=$profile_id';
access_log %%TESTDIR%%/keep.log keep;

init_by_lua_block {
    ffi = require "ffi"

    ffi.cdef[[
        double unload_one(double ms);
        double unload_two(double ms);
        double unload_late(double ms);
        double unload_early(double ms);
    ]]

    held = { early = ffi.load("%%TESTDIR%%/early.so") }

    -- loads the library, runs its function in that turn and in the next
    -- one, and then unloads it unless it is to be held; where it was
    function run(name, ms, hold)
        local lib = held[name] or ffi.load("%%TESTDIR%%/" .. name .. ".so")
        local fn = lib["unload_" .. name]
        local at = tostring(ffi.cast("void *", fn))
        fn(ms / 2)
        if not ngx.var.arg_together then
            ngx.sleep(0.001)
        end
        fn(ms / 2)
        held[name] = hold and lib
        fn = nil
        lib = nil
        collectgarbage()
        collectgarbage()
        return at
    end

    function mapped(name)
        for line in io.lines("/proc/self/maps") do
            if line:find(name, 1, true) then return true end
        end
        return false
    end

    -- each of the libraries
    function serve()
        local at = {}
        for name in ngx.var.arg_run:gmatch("%w+") do
            at[#at + 1] = run(name, ngx.var.arg_ms or 60, ngx.var.arg_hold)
            if not ngx.var.arg_hold and mapped(name .. ".so") then
                at[#at] = "still mapped"
            end
            if not ngx.var.arg_together then
                ngx.sleep(0.001)
            end
        end
        ngx.say(table.concat(at, " "))
    end
}

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    profile_format folded;

    location / {
        content_by_lua_block { serve() }
    }
}

server {
    listen 127.0.0.1:8081;
    profile_keep $arg_keep frequency=250;

    location / {
        content_by_lua_block { serve() }
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

my ($pid) = $t->worker_pids();


# CPU time is what functions have used, however busy the machine is

my $cpu = 'performance_bar=flamegraph&stackprof_mode=cpu';

# profile_keep has its samples from a timer on the CPU clock, which the kernel
# looks at when it ticks: on a busy machine once in some 30 ms of CPU time

my $long = 'ms=300';


# a request that unloads what was loaded before

place('/?run=one&hold=1');

my $p = folded("/?run=one&$cpu");
cmp_ok(share($p, qr/unload_one/), '>', 0.7, 'cpu: unloaded at the end')
    or diag($p);

place('/?run=two&hold=1');

$p = folded('/?run=two&performance_bar=flamegraph&stackprof_mode=object');
like($p, qr/unload_two/, 'object: unloaded at the end') or diag($p);

$p = kept("/?run=early&$long&keep=1");
cmp_ok(share($p, qr/unload_early/), '>', 0.7, 'keep: unloaded at the end')
    or diag($p);


# requests that load the libraries themselves

is(place('/?run=one'), place('/?run=two'),
   'the libraries are at the same address');

$p = folded("/?run=one&$cpu");
cmp_ok(share($p, qr/unload_one/), '>', 0.7, 'cpu: loaded and unloaded')
    or diag($p);

$p = folded("/?run=one,two,one&$cpu");
cmp_ok(share($p, qr/unload_one/), '>', 0.5,
       'cpu: the first of two libraries has its time');
cmp_ok(share($p, qr/unload_two/), '>', 0.2, 'cpu: the second at its place')
    or diag($p);

# 60 ms each: in one turn it is not known whose some of the samples are

$p = folded("/?run=one,two&together=1&$cpu");
cmp_ok($_->[1], '<', 0.065e9, "cpu: $_->[0] has not more than it used")
    or diag($p) for map { [ $_, weight($p, qr/unload_$_/) ] } qw/ one two /;

$p = folded('/?run=one,two&performance_bar=flamegraph&stackprof_mode=object');
like($p, qr/unload_one/, 'object: the first of two libraries has its blocks');
like($p, qr/unload_two/,
     'object: the second library has its blocks at this place') or diag($p);


# no capture, only what watches for slow requests

for (1 .. 5) {
    place('/?run=one,two', 8081);
}

$p = kept("/?run=two,one&$long&keep=1");
cmp_ok(share($p, qr/unload_two/), '>', 0.3,
       'keep: the first of two libraries has its time');
cmp_ok(share($p, qr/unload_one/), '>', 0.3, 'keep: the second at its place')
    or diag($p);

place('/?run=late&hold=1', 8081);

$p = kept("/?run=late&hold=1&$long&keep=1");
cmp_ok(share($p, qr/unload_late/), '>', 0.7, 'keep: loaded meanwhile');
unlike($p, qr/no unwind/, 'keep: its stacks have callers') or diag($p);

is_deeply([ $t->worker_pids() ], [ $pid ], 'the worker is alive');


sub place {
    my ($uri, $port) = @_;

    my $r = http_get($uri, port => $port || 8080);
    my ($at) = $r->body() =~ /: (0x[0-9a-f]+)/;

    return $at || $r;
}


sub folded {
    my ($uri) = @_;
    return http_get($uri)->content();
}


sub kept {
    my ($uri) = @_;
    my ($r, $id);

    http_get($uri, port => 8081);

    wait_for(sub {
        ($id) = $t->read_file('keep.log') =~ /^\Q$uri\E id=(\S+)/m;
    });

    wait_for(sub {
        $r = http_get("/-/profile/p/$id/folded", port => 8081);
        $r->status() == 200
    });

    return $r->content();
}


# returns the share of the functions in the time without waiting

sub share {
    my ($folded, $re) = @_;
    return weight($folded, $re) / (weight($folded, qr/^(?!\[waiting\])/) || 1);
}


sub weight {
    my ($folded, $re) = @_;

    return sum0(map { my ($stack, $weight) = /^(.*) (\d+)$/;
                      $stack =~ $re ? $weight : 0 }
                split /\n/, $folded);
}
