#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: beside
#
# Captured requests that Lua code serves: it sleeps, talks over cosockets,
# runs light threads.  Each tells by the process's own clock for how long its
# code ran, which is what the profile must show, while other clients keep the
# worker busy with gzip.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ time /;

use ProfileTest;
use ProfileTest::Attribution;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ debug gzip lua proxy /);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
error_log %%TESTDIR%%/error.log info;

log_format used '$used';

default_type text/plain;
gzip_comp_level 9;
gzip_types text/plain;

init_by_lua_block {

    used = 0

    -- runs for about so many milliseconds, and notes for how long all
    -- requests have
    function work(ms)
        local from, x = os.clock(), 0
        for i = 1, ms * 2 do
            for k = 1, 50000 do
                x = x + math.sin(k)
            end
        end
        used = used + os.clock() - from
        ngx.var.used = used
        ngx.update_time()
        return x
    end

    function ask(host, keep)
        local s = ngx.socket.tcp()
        s:settimeouts(5000, 5000, 5000)
        assert(s:connect(host, %%PORT_8081%%))
        assert(s:send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        local length
        repeat
            local line = assert(s:receive())
            length = line:match("^Content%-Length: (%d+)") or length
        until line == ""
        assert(s:receive(tonumber(length)))
        if keep then
            s:setkeepalive(10000, 10)
        else
            s:close()
        end
    end
}

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;
    access_log %%TESTDIR%%/used.log used;
    set $used 0;

    location /small { access_log off;
        gzip on;
    }

    location /sleep {
        content_by_lua_block {
            work(5)
            ngx.sleep(0.3)
            work(5)
            ngx.print("awake")
        }
    }

    location /yield {
        content_by_lua_block {
            for i = 1, 20 do
                work(2)
                ngx.sleep(0)
            end
            ngx.print("awake")
        }
    }

    location /flush {
        content_by_lua_block {
            for i = 1, 10 do
                work(1)
                ngx.print("some ")
                assert(ngx.flush(true))
            end
            ngx.sleep(0.3)
            work(1)
            ngx.print("flushed")
        }
    }

    location /socket {
        content_by_lua_block {
            work(5)
            ask("127.0.0.1", false)
            work(5)
            ngx.print("answered")
        }
    }

    location /pool {
        content_by_lua_block {
            work(2)
            for i = 1, 3 do
                ask("127.0.0.1", true)
                work(2)
            end
            ngx.print("answered")
        }
    }

    location /threads {
        content_by_lua_block {
            local function one(n)
                work(n)
                ngx.sleep(0.1)
                work(n)
                ask("127.0.0.1", true)
                work(n)
            end
            local threads = {}
            for i = 1, 4 do
                threads[i] = ngx.thread.spawn(one, i)
            end
            for i = 1, 4 do
                ngx.thread.wait(threads[i])
            end
            work(2)
            ngx.print("joined")
        }
    }

    location /capture {
        content_by_lua_block {
            work(2)
            local one, two = ngx.location.capture_multi({
                { "/sub?1" }, { "/sub?2" }
            })
            work(2)
            ngx.print(#one.body + #two.body)
        }
    }

    location /sub {
        proxy_pass http://127.0.0.1:8081/;
    }

    location /phases {
        rewrite_by_lua_block { work(2) ngx.sleep(0.1) work(2) }
        access_by_lua_block { work(2) ngx.sleep(0.1) work(2) }
        content_by_lua_block {
            work(2) ngx.sleep(0.1) work(2) ngx.print("content")
        }
        header_filter_by_lua_block { work(2) }
        body_filter_by_lua_block { work(2) }
    }

    location /exec {
        content_by_lua_block { work(5) ngx.exec("/sleep") }
    }

    location /fail {
        content_by_lua_block { work(5) ngx.sleep(0.3) ngx.exit(500) }
    }
}

server {
    listen 127.0.0.1:8081;

    location / {
        content_by_lua_block {
            ngx.sleep(0.3)
            ngx.header["Content-Length"] = 16000
            ngx.print(string.rep("slow and steady\n", 1000))
        }
    }
}
EOF

$t->write_file('small', join('', map { sprintf("line %d: %x\n", $_,
                                $_ * 2654435761 % 4294967296) } 1 .. 1200));

$t->run();

my %plain = map { $_ => http_get("/$_")->body() } qw/ sleep yield flush socket
    pool threads capture phases exec fail /;
my $requests = keys %plain;

is_clean($t);

# the seconds that each case waits

my @cases = (
    [ sleep => 0.3 ],
    [ yield => 0 ],
    [ flush => 0.3 ],
    [ socket => 0.3 ],
    [ pool => 0.9 ],
    [ threads => 0.4 ],
    [ capture => 0.3 ],
    [ phases => 0.3 ],
    [ exec => 0.3 ],
    [ fail => 0.3, 500 ],
);

$t->plan(9 * @cases + 1);

my $load = $t->load('/small', clients => 4,
                    headers => [ 'Accept-Encoding: gzip' ]);

for my $case (@cases) {
    my ($name, $waits, $status) = @$case;

    my $start = time();
    my $p = profile_get("/$name");
    my $took = time() - $start;
    my $used = used($requests + 1) - used($requests);

    is_attributed($p, 'zlib', $name);
    cmp_ok(share_of($p, 'lua'), '>', 0.5, "$name: most of the time is in Lua");
    is_sum($p, $name);
    is(info($p)->{status}, $status || 200,
       "$name: the profile has the status");

    my $cpu = info($p)->{cpu} / 1e9;

    ok(about($cpu, $used, 0.1) || $cpu > $used && $cpu < $used + 0.005,
       "$name: what ran is in the profile")
        or diag("in the profile $cpu, used $used");

    cmp_ok(waiting($p), '>=', 0.95 * $waits,
           "$name: the waits are in the profile");

    my $wall = info($p)->{wall} / 1e9;

    ok($wall <= $took && $wall < info($p)->{request_time} + 0.002,
       "$name: not longer than by other clocks")
        or diag("wall $wall, took $took, ", info($p)->{request_time});

    is(http_get("/$name")->body(), $plain{$name},
       "$name: the response is as before");
    is_clean($t, $name);

    $requests += 2;
}

is($load->stop()->{failed}, 0, 'other requests are served');


# returns the CPU time of all requests when the n-th one was logged

sub used {
    my ($n) = @_;

    return wait_for(sub {
        my @lines = split(/\n/, $t->read_log('used.log'));
        return @lines >= $n && $lines[$n - 1];
    });
}
