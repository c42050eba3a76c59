#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop stages
# runs: quiet

# Requests that are woken by an event without a connection, a timer or a pointer
# of the request: a semaphore that other code posts, a thread of a pool, the queue of
# another module.  Each script measures its own waits and its own work, and the
# accounting, the kept profile, the metrics and the flamegraph must agree.

use strict;
use warnings;

use IO::Socket::INET;
use List::Util qw/ max sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest::Metrics;
use ProfileTest::Module;
use ProfileTest;

# the CPU time of a long turn contains that of other work since the last window
# (seconds)

use constant CPU => 0.02;

# a machine that is busy may stop the worker between two looks at clocks

use constant BUSY => 0.04;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua threads v2 /)
                          ->has_perl(qw/ Protocol::HTTP2::Client /);

my $module = build_module($t, 'ngx_http_wake_test_module');

my $locations = <<'EOF';
    profile_endpoint on;
    set $waited 0;
    set $ran 0;
    set $used 0;

    # a light thread of the request posts

    location /thread {
        content_by_lua_block {
            local s = semaphore.new(0)
            ngx.thread.spawn(function() ngx.sleep(0.1) s:post(1) end)
            app.wait(s.wait, s, 5)
            app.burn()
            app.done()
        }
    }

    # another request posts

    location = /posted {
        content_by_lua_block {
            app.wait(shared.wait, shared, 5)
            app.burn()
            app.done()
        }
    }

    location = /access {
        access_by_lua_block {
            app.wait(shared.wait, shared, 5)
            app.burn()
        }
        content_by_lua_block { app.done() }
    }

    # a request without output waits and works several times; the timers are
    # not its own, although it sets them

    location /rounds {
        content_by_lua_block {
            local s = semaphore.new(0)
            for i = 1, 4 do
                ngx.timer.at(0.05, function() s:post(1) end)
                app.wait(s.wait, s, 5)
                app.burn(0.02)
            end
            app.done()
        }
    }

    location /parts {
        content_by_lua_block {
            ngx.print(ngx.location.capture("/thread", { share_all_vars = true })
                      .body)
        }
    }

    location /pool {
        content_by_lua_block {
            for i = 1, 2 do
                app.wait(ngx.run_worker_thread, "some", "worker", "run")
                app.burn()
            end
            app.done()
        }
    }

    # posted for the next iteration of the event loop

    location /zero {
        content_by_lua_block {
            for i = 1, 5 do
                app.wait(ngx.sleep, 0)
                app.burn(0.02)
            end
            app.done()
        }
    }

    # sockets of scripts that are no cosockets for TCP

    location /udp {
        content_by_lua_block {
            local s = ngx.socket.udp()
            s:settimeout(5000)
            s:setpeername("127.0.0.1", %%PORT_8053%%)
            s:send("a")
            app.wait(s.receive, s)
            app.burn()
            app.done()
        }
    }

    location /client {
        lingering_close off;

        content_by_lua_block {
            local s = ngx.req.socket()
            s:settimeout(5000)
            app.wait(s.receive, s, 4)
            app.burn()
            app.done()
        }
    }

    # a module posts an event of its own

    location /module {
        wake_test;
    }
EOF

$t->conf(<<"EOF", main => "load_module $module;\nthread_pool some threads=2;");
lua_package_path "%%TESTDIR%%/?.lua;/usr/share/lua/5.1/?.lua;;";
profile_max_captures 100;

init_by_lua_block {
    semaphore = require "ngx.semaphore"
    app = require "app"
    shared = semaphore.new(0)
}

map \$arg_keep \$keep { 1 1; default 0; }

log_format times '\$request_uri server=\$server_name rt=\$request_time cpu=\$profile_cpu_time '
                 'wait=\$profile_wait_time stall=\$profile_stall_time '
                 'longest=\$profile_longest_turn id=\$profile_id '
                 'waited=\$waited ran=\$ran used=\$used '
                 'timing=\$profile_server_timing';

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8088 http2;
    server_name one;
    profile_accounting on;
    profile_keep \$keep frequency=250;
    access_log %%TESTDIR%%/times.log times;

$locations

    location /profile/ { profile_console; }
    location = /metrics { profile_metrics; }

    location = /post {
        access_log off;
        content_by_lua_block { shared:post(tonumber(ngx.var.arg_n or 1)) }
    }

    location = /waiting {
        access_log off;
        content_by_lua_block { ngx.print(-shared:count()) }
    }
}

# captures without accounting

server {
    listen 127.0.0.1:8082;
    server_name two;
    profile_accounting off;
    profile_keep off;
    access_log %%TESTDIR%%/times.log times;

$locations
}
EOF

$t->write_file('app.lua', <<'EOF');
local ffi = require "ffi"

ffi.cdef[[
typedef struct { long sec; long nsec; } test_timespec_t;
int clock_gettime(int id, test_timespec_t *ts);
]]

local ts = ffi.new("test_timespec_t")

-- 1 is CLOCK_MONOTONIC, 3 is CLOCK_THREAD_CPUTIME_ID
local function clock(id)
    ffi.C.clock_gettime(id, ts)
    return tonumber(ts.sec) + tonumber(ts.nsec) / 1e9
end

local app = {}

local function add(name, seconds)
    ngx.ctx[name] = (ngx.ctx[name] or 0) + seconds
    ngx.var[name] = ngx.ctx[name]
end

function app.wait(f, ...)
    local from = clock(1)
    local ok, err = f(...)
    add("waited", clock(1) - from)
    assert(ok == nil or ok, err)
end

-- wall clock, so that other processes cannot make it longer
function app.burn(seconds)
    local from, used = clock(1), clock(3)
    while clock(1) < from + (seconds or 0.05) do end
    add("ran", clock(1) - from)
    add("used", clock(3) - used)
end

function app.done()
    ngx.print("done")
end

return app
EOF

$t->write_file('worker.lua', <<'EOF');
local ffi = require "ffi"
ffi.cdef[[ int usleep(unsigned int us); ]]
return { run = function() ffi.C.usleep(100000) return true end }
EOF

my $udp = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1',
                                LocalPort => port(8053))
    or die "cannot listen: $!\n";

$t->run_daemon(sub {
    while (my $peer = $udp->recv(my $buf, 512)) {
        sleep 0.1;
        $udp->send("answer", 0, $peer);
    }
});

$t->run();

is(http_get('/module?warm', port => 8082)->status(), 204,
   'the timer of the module is set by no request that is tracked');

# location, the cause, how the request is woken

my @cases = (
    [ '/thread', qr/^script timer / ],
    [ '/posted', qr/^script event /, \&post_once ],
    [ '/access', qr/^script event /, \&post_once ],
    [ '/rounds', qr/^script event / ],
    [ '/parts', qr/^script timer / ],
    [ '/pool', qr/^script event / ],
    [ '/zero', qr/./ ],
    [ '/udp', qr/^script socket 127/ ],
    [ '/client', qr/^(?:client|script)/, \&body_late ],
    [ '/module', qr/^unknown / ],
);

my $number = 0;

for my $case (@cases) {
    my ($uri, $cause, $wake) = @$case;

    for my $port (8080, 8082) {
        my ($r, $l) = run_case("$uri?performance_bar=flamegraph"
                               . '&profile_format=speedscope', $port, $wake);

        my @stacks = ProfileTest::Profile->new($r)->profile('wall')->stacks();
        my $name = "$uri, flamegraph"
                   . ($port == 8082 ? ' without accounting' : '');

        my %sum = map { $_ => 0 } qw/ all waiting named burning /;

        for (@stacks) {
            my ($root, @frames) = @{$_->[0]};
            my $seconds = $_->[1] / 1e9;

            $sum{all} += $seconds;

            if ($root ne '[waiting]') {
                $sum{burning} += $seconds if grep { /\bburn\b/ } @frames;
                next;
            }

            $sum{waiting} += $seconds;
            $sum{named} += $seconds
                if "@frames " =~ $cause || "@frames" =~ /^worker (?:busy|without)/;
        }

        near($sum{waiting}, $l->{waited}, "$name: the wait");
        near($sum{named}, $l->{waited}, "$name: its cause");
        near($sum{burning}, $l->{ran}, "$name: the work, with its functions");
        near($sum{all}, $l->{waited} + $l->{ran}, "$name: the whole");
    }

    my ($r, $l) = run_case("$uri?plain", 8080, $wake);

    near($l->{wait} + $l->{stall}, $l->{waited}, "$uri: the wait is accounted");
    near($l->{cpu}, $l->{used}, "$uri: the CPU time is accounted", CPU);
    near(($l->{timing} =~ /nginx-total;dur=([\d.]+)/)[0] / 1000, $l->{rt},
         "$uri: the times add up", BUSY);

    ($r, $l) = run_case("$uri?keep=1", 8080, $wake);

    my $p = stored($l->{id});

    near(folded($p, qr/^\[waiting\];/), $l->{waited}, "$uri: the wait is kept");
    near(folded($p, qr/^(?!\[waiting\])/), $l->{ran}, "$uri: the work is kept");
    near(folded($p, qr/./), $l->{rt}, "$uri: the kept profile is whole", BUSY);
}


# one event resumes two requests, and each has its own work only

my @two = map { http_get("/posted?two=$_", start => 1) } 1, 2;

wait_for(sub { http_get('/waiting')->body() == 2 });
http_get('/post?n=2');
http_end($_) for @two;

for (1, 2) {
    my $l = line("/posted?two=$_");

    near($l->{cpu}, $l->{used}, "two requests of one event: CPU time of $_",
         CPU);
    near($l->{wait} + $l->{stall}, $l->{waited},
         "two requests of one event: the wait of $_");
}

# a captured request beside one that is not

@two = (http_get('/posted?beside', start => 1),
        http_get('/posted?captured&performance_bar=flamegraph'
                 . '&profile_format=speedscope', start => 1));

wait_for(sub { http_get('/waiting')->body() == 2 });
sleep 0.1;
http_get('/post?n=2');

my ($other, $captured) = map { http_end($_) } @two;
my $p = ProfileTest::Profile->new($captured)->profile('wall');
my $l = line('/posted?captured');

near($p->weight_below(qr/\bburn\b/) / 1e9, $l->{ran},
     'a captured request has its own work');


# code that runs in the event of another request's connection is not seen: the
# time is shown, and counted

my $unseen = http_get('/module?hold&performance_bar=flamegraph'
                      . '&profile_format=speedscope', start => 1, port => 8082);
sleep 0.1;
http_get('/module?kick', port => 8082);
$p = ProfileTest::Profile->new(http_end($unseen));
$l = line('/module?hold');

near($p->profile('wall')->total() / 1e9, $l->{waited} + $l->{ran},
     'code that is not seen: the profile has the whole time');
near($p->profile('wall')->weight_below(qr/^untracked$/) / 1e9,
     $l->{waited} + $l->{ran}, 'code that is not seen: it is not tracked');
near($p->json()->{profile_info}{untracked_ns} / 1e9,
     $l->{waited} + $l->{ran}, 'code that is not seen: it is counted');


# HTTP/2

h2('/thread?h2');
$l = line('/thread?h2');
near($l->{cpu}, $l->{used}, 'HTTP/2: the CPU time is accounted', CPU);
near($l->{wait} + $l->{stall}, $l->{waited}, 'HTTP/2: the wait is accounted');


# the client leaves while the script waits

for my $uri ('/posted?gone', '/posted?gone&performance_bar=flamegraph') {
    my $s = http_get($uri, start => 1);
    wait_for(sub { http_get('/waiting')->body() == 1 });
    $s->close();
    http_get('/post');
    wait_for(sub { http_get('/waiting')->body() == 0 });
}

is(http_get('/thread?after')->body(), 'done', 'clients that leave do no harm');


# metrics have the same causes

my $m = metrics_of(http_get('/metrics')->body());
my $log = sum0(map { /waited=([\d.]+)/ } grep { /^\/rounds.* server=one / }
               split /\n/, $t->read_file('times.log'));

near(metric_sum($m, 'nginx_profile_request_wait_seconds_sum',
                server => 'one', location => '/rounds',
                cause => 'script event'), $log,
     'metrics: the cause', 0.04);


sub run_case {
    my ($uri, $port, $wake) = @_;

    # the log has no arguments of triggers

    $number++;
    $uri =~ s/\?/?n=$number&/;

    my $s = ($uri =~ m{^/client} ? \&post_head : \&http_get)
            ->($uri, port => $port, start => 1);
    $wake->($s) if $wake;
    my $r = http_end($s);

    $uri =~ s/&performance_bar=.*//;

    return ($r, line($uri));
}


sub post_once {
    wait_for(sub { http_get('/waiting')->body() == 1 });
    sleep 0.1;
    http_get('/post');
}


# the header of a request, without its body
sub post_head {
    my ($uri, %extra) = @_;

    return http("POST $uri HTTP/1.0\r\nHost: localhost\r\n"
                . "Content-Length: 4\r\n\r\n", %extra);
}


sub body_late {
    my ($s) = @_;

    sleep 0.1;
    syswrite($s, 'body');
}


# the clocks are read some lines apart, and other processes run meanwhile
sub near {
    my ($value, $truth, $name, $by) = @_;

    cmp_ok(abs($value - $truth), '<=', $by // max(0.02, 0.02 * $truth), $name)
        or diag("$value instead of $truth");
}


sub folded {
    my ($folded, $re) = @_;

    return sum0(map { /^(.*) (\d+)$/ && $1 =~ $re ? /(\d+)$/ : 0 }
                split /\n/, $folded) / 1e9;
}


sub stored {
    my ($id) = @_;
    my $r;

    wait_for(sub { $r = http_get("/profile/p/$id/folded");
                   $r->status() == 200 });

    return $r->content();
}


sub line {
    my ($uri) = @_;
    my @found;

    wait_for(sub { @found = grep { /^\Q$uri\E / }
                            split /\n/, $t->read_file('times.log') });

    return { ($found[-1] // '') =~ /(\w+)=(\S+)/g };
}


sub h2 {
    my ($uri) = @_;
    my $done = 0;

    my $client = Protocol::HTTP2::Client->new();

    $client->request(':scheme' => 'http', ':authority' => 'localhost',
                     ':path' => $uri, ':method' => 'GET', headers => [],
                     on_done => sub { $done = 1 },
                     on_error => sub { $done = 1 });

    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => port(8088)) or die "$!\n";

    while (!$done) {
        while (my $frame = $client->next_frame()) {
            syswrite($s, $frame);
        }

        sysread($s, my $buf, 65536) or last;
        $client->feed($buf);
    }
}
