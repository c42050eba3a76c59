#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside

# A capture does not change what LuaJIT compiles.  The same code runs without a
# capture and in captures of all modes.  LuaJIT reports each trace that it has
# compiled: its number, its first line, and the trace and the exit where it
# begins.  All reports must be equal.
#
# Before each run the traces and the counters of loops are removed.  The code
# runs without garbage collection, because the collector leaves traces at times
# that depend on earlier runs.  The loop that cannot be compiled is tried again
# at random times, so failed attempts are not compared.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua /);

$t->write_file('traces.lua', <<'END');
local util = require "jit.util"

local M = { report = {} }

local function branch(i)
    if i % 3 == 0 then return i * 2 end
    if i % 5 == 0 then return i + 1 end
    return i
end

local function sum(n)
    local s = 0
    for i = 1, n do s = s + branch(i) end
    return s
end

local function strings(n)
    local t = {}
    for i = 1, n do t[#t + 1] = tostring(i) end
    return #table.concat(t)
end

local function pairwise(n)
    local s = 0
    for i = 1, n do
        for j = 1, 20 do s = s + i * j % 7 end
    end
    return s
end

-- closures cannot be compiled

local function closures(n)
    local s = 0
    for i = 1, n do
        local f = function() return i end
        s = s + f()
    end
    return s
end

local function trace(what, number, fn, pc, parent, exit)
    if what == "start" then
        M.start = string.format("%d line %d parent %s/%s", number,
                                util.funcinfo(fn, pc).currentline,
                                tostring(parent), tostring(exit))
    elseif what == "stop" then
        table.insert(M.report, M.start)
    end
end

jit.off(trace)

function M.run()
    M.report = {}

    jit.flush()
    jit.opt.start("hotloop=56")
    collectgarbage()
    collectgarbage("stop")
    jit.attach(trace, "trace")

    local till = 20
    for i = 1, till do
        sum(100000)
        strings(500)
        pairwise(2000)
        closures(15000)
    end

    jit.attach(trace)
    collectgarbage("restart")
end

jit.off(M.run)

return M
END

$t->conf(<<'EOF');
lua_package_path "%%TESTDIR%%/?.lua;;";

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /run {
        content_by_lua_block { require("traces").run() ngx.say("ok") }
    }

    location /report {
        content_by_lua_block {
            ngx.say(table.concat(require("traces").report, "\n"))
        }
    }
}
EOF

$t->run();

###############################################################################

http_get('/run');

my $plain = traces();

cmp_ok(() = $plain =~ m{parent nil}g, '>', 3, 'loops are compiled');
cmp_ok(() = $plain =~ m{parent \d+/}g, '>', 3, 'side exits are compiled');

http_get('/run');
is(traces(), $plain, 'without a capture each run has the same traces');

for my $mode (qw/ wall cpu object /) {

    my $profile = http_get("/run?performance_bar=flamegraph&profile_mode=$mode"
                           . '&profile_format=folded&profile_frequency=2000')
                  ->body();

    my $samples = () = $profile =~ /traces\.lua/g;

    cmp_ok($samples, '>', 0, "$mode: the capture has stacks of the code");
    is(traces(), $plain, "$mode: the capture does not change the traces");
}

###############################################################################

sub traces {
    return http_get('/report')->body();
}

###############################################################################
