#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside
#
# Stacks in Lua code are those that debug.traceback() returns at the same place:
# in phases of requests, light threads and nested coroutines, below errors, and
# in functions that are loaded from text and collected before the capture ends.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua /);

# mark() keeps the stack of its callers, and then runs for a while

$t->write_file('truth.lua', <<'END');
local M = {}

function M.mark(ms)
    M.truth = debug.traceback("", 2)
    local x, till = 0, os.clock() + ms / 1000
    while os.clock() < till do
        for i = 1, 1000 do x = x + i % 7 end
    end
    return x
end

function M.call(ms)
    local x = M.mark(ms)
    return x + 1
end

function M.protected(ms)
    local ok, x = pcall(M.call, ms)
    return x + 1
end

function M.failed(ms)
    for i = 1, 10 do
        pcall(function() local x = nil + i return x end)
    end
    local x = M.protected(ms)
    return x + 1
end

function M.deep(ms, n)
    local x
    if n == 0 then
        x = M.mark(ms)
    else
        x = M.deep(ms, n - 1)
    end
    return x + 1
end

function M.nested(ms)
    local outer = coroutine.wrap(function()
        local inner = coroutine.wrap(function()
            local x = M.protected(ms)
            return x
        end)
        local x = inner()
        return x
    end)
    local x = outer()
    return x + 1
end

function M.loaded(ms)
    local text = "local M = ... local x = M.mark(" .. ms .. ")\nreturn x"
    local x = assert(loadstring(text, "@loaded.lua"))(M)
    collectgarbage()
    collectgarbage()
    return x + 1
end

return M
END

my @calls = qw/ call protected failed nested loaded /;

my $calls = join('', map { <<EOF } @calls);
    location /$_ {
        content_by_lua_block {
            local x = require("truth").$_(60)
            ngx.say(x)
        }
    }
EOF

$t->conf(<<"EOF");
lua_package_path "%%TESTDIR%%/?.lua;;";

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

$calls
    # debug.traceback() leaves out functions of stacks with more than 22

    location /deep {
        content_by_lua_block {
            local x = require("truth").deep(60, 15)
            ngx.say(x)
        }
    }

    location /rewrite {
        rewrite_by_lua_block { local x = require("truth").call(60) }
        content_by_lua_block { ngx.say("ok") }
    }

    location /access {
        access_by_lua_block { local x = require("truth").call(60) }
        content_by_lua_block { ngx.say("ok") }
    }

    location /set {
        set_by_lua_block \$x { local x = require("truth").call(60) return x }
        content_by_lua_block { ngx.say(ngx.var.x) }
    }

    location /header {
        content_by_lua_block { ngx.say("ok") }
        header_filter_by_lua_block { local x = require("truth").call(60) }
    }

    location /thread {
        content_by_lua_block {
            local w = require("truth")
            ngx.thread.wait(ngx.thread.spawn(function()
                ngx.sleep(0.01)
                local x = w.nested(60)
                return x
            end))
            ngx.say("ok")
        }
    }

    location /truth {
        content_by_lua_block { ngx.say(require("truth").truth) }
    }

    location /jit {
        content_by_lua_block {
            if ngx.var.arg_on == "1" then jit.on() else jit.off() end
            jit.flush()
            ngx.say("ok")
        }
    }
}
EOF

$t->run();

###############################################################################

for my $on (0, 1) {
    http_get("/jit?on=$on");

    my $code = $on ? 'compiled' : 'interpreted';

    for my $uri (@calls, qw/ deep rewrite access set header thread /) {
        is_true($uri, $_, "$code, $uri, $_") for qw/ wall cpu /;
    }
}

###############################################################################

sub is_true {
    my ($uri, $mode, $name) = @_;

    my $body = http_get("/$uri?performance_bar=flamegraph&profile_mode=$mode"
                        . '&profile_format=folded&profile_frequency=2000')
               ->body();

    # innermost first: those of the coroutine that runs

    my @truth = map { m{([^/\s]+:\d+): in } ? $1 : () }
                    split(/\n/, http_get('/truth')->body());

    my ($all, $right, %wrong) = (0, 0);

    for (split(/\n/, $body)) {
        my ($stack, $n) = /^(.*) (\d+)$/ or next;

        my @lua = map { m{([^/\s]+:\d+) \S} ? $1 : () }
                      reverse(split(/;/, $stack));

        # without the lines of mark()

        next unless @lua && $lua[0] =~ /^truth\.lua:[3-9]$/;
        shift @lua;

        $all += $n;

        if (@lua >= @truth && "@lua[0 .. $#truth]" eq "@truth") {
            $right += $n;

        } else {
            $wrong{"@lua"} += $n;
        }
    }

    cmp_ok($all, '>', 30e6, "$name: most of the time is in the function");
    ok(@truth && $right >= 0.995 * $all,
       "$name: 99.5 % of the stacks are those of debug.traceback()")
        or diag("of $all, not @truth:",
                map { "\n$wrong{$_} $_" } sort keys %wrong);
}

###############################################################################
