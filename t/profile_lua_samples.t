#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside
#
# Samples of requests that Lua code serves have the functions in Lua, with
# their lines, between the native frames that run them, interpreted and
# compiled, in all modes.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua /);

# the lines of the functions are known

$t->write_file('work.lua', <<'END');
local M = {}

local function inner(till)
    local x = 0
    while os.clock() < till do
        for i = 1, 1000 do x = x + i % 7 end
    end
    return x
end

function M.middle(ms)
    local x = inner(os.clock() + ms / 1000)
    return x + 1
end

function M.outer(ms)
    local ok, x = pcall(M.middle, ms)
    return x + 1
end

function M.coroutine(ms)
    return coroutine.wrap(function() return M.outer(ms) + 1 end)() + 1
end

function M.allocate()
    local t = {}
    for i = 1, 20000 do t[i] = { i } end
    return #t
end

return M
END

$t->conf(<<'EOF');
lua_package_path "%%TESTDIR%%/?.lua;;";

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /content {
        content_by_lua_block { require("work").outer(60) ngx.say("ok") }
    }

    location /access {
        access_by_lua_block { require("work").outer(60) }
        content_by_lua_block { ngx.say("ok") }
    }

    location /filter {
        content_by_lua_block { ngx.say("ok") }
        header_filter_by_lua_block { require("work").outer(60) }
    }

    location /coroutine {
        content_by_lua_block { require("work").coroutine(60) ngx.say("ok") }
    }

    location /thread {
        content_by_lua_block {
            local w = require("work")
            ngx.thread.wait(ngx.thread.spawn(function()
                local x = w.outer(60)
                return x
            end))
            ngx.say("ok")
        }
    }

    location /allocate {
        content_by_lua_block { require("work").allocate() ngx.say("ok") }
    }

    location /jit {
        content_by_lua_block {
            if ngx.var.arg_on == "1" then jit.on() else jit.off() end
            jit.flush()
            ngx.say("ok")
        }
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

###############################################################################

for my $on (0, 1) {
    http_get("/jit?on=$on");

    my $code = $on ? 'compiled' : 'interpreted';

    for my $uri (qw{ /content /access /filter /coroutine /thread }) {
        is_complete($uri, $_, "$code, $uri, $_") for qw/ wall cpu /;
    }
}

my @memory = folded('/allocate', 'object');

cmp_ok(sum(grep { $_->[0] =~ /work\.lua:2[4-7] / } @memory), '>', 0,
    'allocations have the function in Lua');

my $status = http_get('/-/profile/status',
                      headers => [ 'Accept: application/json' ])->body();

like($status, qr/"LuaJIT":\s*"on/, 'the status says that the engine works');

###############################################################################

# the time inside of inner() has all functions in Lua, with lines
sub is_complete {
    my ($uri, $mode, $name) = @_;

    my @stacks = folded($uri, $mode);

    my $chain = qr/work\.lua:17\ [^;]*; (?:[^;]*;)*?
                   work\.lua:12\ [^;]*; (?:[^;]*;)*?
                   work\.lua:[4-8]\ /x;

    my $lua = sum(grep { $_->[0] =~ /libluajit|work\.lua/ } @stacks);
    my $whole = sum(grep { $_->[0] =~ /$chain/ } @stacks);

    cmp_ok($lua, '>', 30e6, "$name: most of the time is in Lua code");
    cmp_ok($whole / ($lua || 1), '>', 0.95, "$name: stacks are complete")
        or diag(join("\n", map { "$_->[1] $_->[0]" }
                           grep { $_->[0] !~ /$chain/ } @stacks));
}


# [ stack, value ] of each line
sub folded {
    my ($uri, $mode) = @_;

    my $body = http_get("$uri?performance_bar=flamegraph&profile_mode=$mode"
                        . '&profile_format=folded&profile_frequency=2000')
               ->body();

    return map { /^(.*) (\d+)$/ ? [ $1, $2 ] : () } split(/\n/, $body);
}


sub sum {
    my $sum = 0;
    $sum += $_->[1] for @_;
    return $sum;
}

###############################################################################
