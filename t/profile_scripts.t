#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts stages
# runs: beside

# Gaps show the stack of the Lua code that waits.  Each location stores its own
# traceback in the line in which it waits, and the profile must have the same
# functions and lines.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua proxy /);

$t->conf(<<'EOF');
lua_package_path "%%TESTDIR%%/?.lua;/usr/share/lua/5.1/?.lua;;";
lua_socket_log_errors off;
profile_max_captures 100;

init_by_lua_block { app = require "app" }

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    default_type text/plain;

    location = /tell { content_by_lua_block { app.tell() } }

    location = /sleep {
        content_by_lua_block {
            app.nap(0.1)
            ngx.print("awake")
        }
    }

    location = /file { content_by_lua_file %%TESTDIR%%/file.lua; }

    location = /deep {
        content_by_lua_block { ngx.print(app.methods:deep(18)) }
    }

    location = /endless {
        content_by_lua_block { ngx.print(app.methods:deep(150)) }
    }

    location = /phases {
        rewrite_by_lua_block { app.nap(0.1) }
        access_by_lua_block { app.nap(0.1) }
        content_by_lua_block { app.nap(0.1) ngx.print("content") }
    }

    location = /pass {
        access_by_lua_block { app.nap(0.1) }
        proxy_pass http://127.0.0.1:8081/;
    }

    location = /socket {
        content_by_lua_block { app.ask() ngx.print("answered") }
    }

    location = /nested {
        content_by_lua_block { app.nested() ngx.print("nested") }
    }

    location = /threads {
        content_by_lua_block { app.threads() ngx.print("joined") }
    }

    location = /orphan {
        content_by_lua_block { ngx.print("first") app.orphan() }
    }

    location = /capture {
        content_by_lua_block { app.capture() ngx.print("captured") }
    }

    location = /semaphore {
        content_by_lua_block { app.semaphore() ngx.print("timeout") }
    }

    location = /uncached {
        lua_code_cache off;
        content_by_lua_block { ngx.sleep(0.1) ngx.print("uncached") }
    }

    location = /plain { proxy_pass http://127.0.0.1:8081/; }

    location = /slow { proxy_pass http://127.0.0.1:8081/; }

    location /profile/ { profile_console; }
}

server {
    listen 127.0.0.1:8081;
    access_log off;

    location / {
        content_by_lua_block { ngx.sleep(0.1) ngx.print("slow") }
    }
}
EOF

$t->write_file_expand('app.lua', <<'EOF');
local app = { seen = {} }

-- the stack of the caller, for the test
function app.note()
    table.insert(app.seen, debug.traceback("", 2))
end

function app.tell()
    ngx.print(table.concat(app.seen, "\n--\n"))
    app.seen = {}
end

local function nap(seconds) app.note() ngx.sleep(seconds)
end

app.nap = nap

function app.ask()
    local s = ngx.socket.tcp()
    s:settimeout(5000)
    assert(s:connect("127.0.0.1", %%PORT_8081%%))
    assert(s:send("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"))
    app.note() assert(s:receive("*a"))
    s:close()
end

app.methods = {}

function app.methods:deep(n)
    if n > 0 then
        local x = self:deep(n - 1)
        return x + 1
    end
    nap(0.1)
    return 0
end

function app.nested()
    local inner = coroutine.wrap(function()
        local innermost = coroutine.create(function()
            nap(0.1)
            return 1
        end)
        local ok, n = coroutine.resume(innermost)
        assert(ok and n == 1)
        return 2
    end)
    assert(inner() == 2)
end

function app.threads()
    local threads = {}
    for i = 1, 3 do
        threads[i] = ngx.thread.spawn(function()
            for _ = 1, i do ngx.sleep(0.02) end
            if i == 2 then app.ask() else nap(0.1) end
        end)
    end
    for i = 1, 3 do
        ngx.thread.wait(threads[i])
    end
end

function app.orphan()
    ngx.thread.spawn(function() nap(0.15) end)
end

function app.capture()
    app.note() local res = ngx.location.capture("/slow")
    assert(res.status == 200)
end

function app.semaphore()
    local sema = require("ngx.semaphore").new()
    app.note() local ok, err = sema:wait(0.1)
    assert(not ok and err == "timeout")
end

return app
EOF

$t->write_file('file.lua', <<'EOF');
local app = require "app"

app.nap(0.1)
ngx.print("file")
EOF

$t->allow(qr/lua_code_cache is off/);
$t->run();

is(status()->{scripts}{lua_in_gaps}, 'no coroutine was recognized yet',
   'the status page tells when none was seen');

# the location, a pattern of the cause, and the functions of C that wait

my @cases = (
    [ sleep => qr/^script timer$/, 'sleep' ],
    [ file => qr/^script timer$/, 'sleep' ],
    [ deep => qr/^script timer$/, 'sleep' ],
    [ phases => qr/^script timer$/, 'sleep' ],
    [ pass => qr/^script timer$/, 'sleep' ],
    [ socket => qr/^script socket /, 'receive' ],
    [ nested => qr/^script timer$/, 'sleep' ],
    [ orphan => qr/^script timer$/, 'sleep' ],
    [ capture => qr/^upstream first byte /, 'capture' ],
    [ semaphore => qr/^script timer$/, 'semaphore\.lua:\d+ wait > co_yield' ],
);

for my $case (@cases) {
    my ($name, $cause, @leaves) = @$case;

    http_get('/tell');

    my $profile = profile_get("/$name");
    my @seen = map { [ traceback($_) ] }
               split(/\n--\n/, http_get('/tell')->body());

    cmp_ok(scalar(@seen), '>', 0, "$name: waits are noted");

    for my $i (0 .. $#seen) {
        my $path = join(' > ', @{$seen[$i]});
        my $n = waits($profile, $cause, \@leaves, $path);

        cmp_ok($n, '>', 50, "$name: wait $i has the stack of the traceback")
            or diag("wanted $path\n", map { "$_\n" } stacks($profile));
    }
}

# coroutines show who has resumed them

my $profile = profile_get('/nested');

cmp_ok(waits($profile, qr/^script timer$/, [ 'sleep' ],
             'app.lua:48 nested > inner > app.lua:44 function at line 39'
             . ' > resume > app.lua:41 function at line 40 > app.lua:13 nap'),
       '>', 50, 'nested coroutines are one stack');

# three light threads: a gap has the stack of the thread that is resumed next

$profile = profile_get('/threads');

cmp_ok(waits($profile, qr/^script timer$/, [ 'sleep' ],
             'app.lua:56 function at line 54 > app.lua:13 nap'),
       '>', 50, 'light threads: those that sleep');
cmp_ok(waits($profile, qr/^script socket /, [ 'receive' ],
             'app.lua:56 function at line 54 > app.lua:23 ask'),
       '>', 5, 'light threads: the one that uses a socket');

# a deep stack loses its outermost frames

$profile = profile_get('/endless');

my ($deep) = grep { /nap > sleep = / } stacks($profile);
like($deep, qr/^\[waiting\] > script timer (> app\.lua:31 deep ){61}> app/,
     'a deep stack has its innermost frames');

# an interpreter for one request has no place where its coroutines are found

$profile = profile_get('/uncached');
is(scalar(grep { /sleep/ } stacks($profile)), 0,
   'without the code cache there is no stack');
like($profile->response()->status(), qr/^200$/, 'the request has not failed');

# clients that leave while Lua code waits, and an old worker

for (1 .. 5) {
    for my $uri (qw/ sleep nested threads socket orphan capture /) {
        http_get("/$uri?performance_bar=flamegraph", start => 1)->close();
    }

    $t->reload() if $_ == 3;
}

wait_for(sub {
    return !grep { $_->{captures} } @{status()->{workers}};
});

$profile = profile_get('/sleep');
cmp_ok(waits($profile, qr/^script timer$/, [ 'sleep' ], 'app.lua:13 nap'),
       '>', 50, 'after a reload, and after clients left');

ok(wait_for(sub {
       profile_get('/sleep');
       return status()->{scripts}{lua_in_gaps} eq 'shown';
   }),
   'the status page tells that stacks are shown');

# scripts that do not wait are not shown

$profile = profile_get('/pass');
is(scalar(grep { /upstream/ && /\.lua/ } stacks($profile)), 0,
   'a request that Lua code has passed on shows no script');

$profile = profile_get('/plain');
is(scalar(grep { /lua/ } stacks($profile)), 0, 'other requests show none');


# functions of a traceback, outermost first, as profiles show them
sub traceback {
    my ($text) = @_;

    my @frames;

    for my $line (split(/\n/, $text)) {
        next unless $line =~ /^\t(.*?): in (main chunk|function (.*))$/;

        my ($place, $function) = ($1, $3 // 'main chunk');

        $function =~ s/^'(.*)'$/$1/;
        $function =~ s/^<.*:(\d+)>$/function at line $1/;

        if ($place eq '[C]') {
            unshift @frames, $function;

        } else {
            $place =~ s{.*/(?=[^/]*$)}{} unless $place =~ /[)]/;
            unshift @frames, "$place $function";
        }
    }

    return @frames;
}


sub status {
    return decode_json(http_get('/profile/status.json')->body());
}


# stacks below [waiting]
sub stacks {
    my ($profile) = @_;

    return map { join(' > ', @{$_->[0]}) . " = $_->[1]" }
           grep { $_->[0][0] eq '[waiting]' }
           $profile->profile('wall')->stacks();
}


# milliseconds of a wait with this cause and stack
sub waits {
    my ($profile, $cause, $leaves, $path) = @_;

    my $sum = 0;

    for my $stack ($profile->profile('wall')->stacks()) {
        my ($root, @frames) = @{$stack->[0]};

        next if $root ne '[waiting]';

        # each of the waits that overlap

        for (split / > beside > /, join(' > ', @frames)) {
            my $wait = s/^(?:subrequest [^>]* > )*//r;

            $sum += $stack->[1] / 1e6
                if (split / > /, $wait)[0] =~ $cause
                   && grep { $wait =~ / > \Q$path\E > $_$/ } @$leaves;
        }
    }

    return $sum;
}
