#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop stages
# runs: quiet

# Ways of ngx_lua to be woken that have no connection of a client or an upstream:
# the pipes and the end of a process, a balancer, and handlers of a TLS handshake,
# which wait before their request exists.  Each script measures its own waits and its
# own work.

use strict;
use warnings;

use IO::Socket::SSL;
use List::Util qw/ max sum0 /;
use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

# seconds: the CPU time of a long turn contains that of other work since the last
# window, and a machine that is busy may stop the worker between two looks at clocks

use constant { CPU => 0.02, BUSY => 0.04 };

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua proxy ssl /);

my $handlers = join("\n", map { "
    server {
        listen 127.0.0.1:$_->[0] ssl;
        server_name two;
        ssl_certificate %%TESTDIR%%/localhost.crt;
        ssl_certificate_key %%TESTDIR%%/localhost.key;
        ssl_protocols TLSv1.2;
        ssl_session_tickets off;
        profile_accounting on;
        profile_endpoint on;
        access_log %%TESTDIR%%/times.log times;
        set \$waited 0;
        set \$ran 0;
        set \$used 0;
        $_->[1]
        location / {
            content_by_lua_block { app.burn() app.done() }
        }
    }" }
    [ 8443, 'ssl_certificate_by_lua_block {
                 ngx.sleep(0.1)
                 local s = ngx.socket.tcp()
                 s:connect("127.0.0.1", %%PORT_8081%%)
                 s:send("GET /wait=100/ HTTP/1.0\\r\\n\\r\\n")
                 s:receive("*a")
                 spin(0.05)
             }' ],
    [ 8444, 'ssl_client_hello_by_lua_block { spin(0.05) }' ],
    [ 8445, '' ]);

$t->conf(<<"EOF");
lua_package_path "%%TESTDIR%%/?.lua;/usr/share/lua/5.1/?.lua;;";

init_by_lua_block {
    has_pipe, pipe = pcall(require, "ngx.pipe")
    app = require "app"
    spin = app.spin
    sessions = {}
}

log_format times '\$server_port \$request_uri rt=\$request_time cpu=\$profile_cpu_time '
                 'wait=\$profile_wait_time stall=\$profile_stall_time '
                 'waited=\$waited ran=\$ran used=\$used '
                 'upstream=\$upstream_response_time';

upstream balanced {
    server 0.0.0.1;
    balancer_by_lua_block {
        spin(0.05)
        local b = require "ngx.balancer"
        assert(b.set_current_peer("127.0.0.1", %%PORT_8081%%))
    }
}

ssl_session_store_by_lua_block {
    local ssl = require "ngx.ssl.session"
    sessions[ssl.get_session_id()] = ssl.get_serialized_session()
}

ssl_session_fetch_by_lua_block {
    local ssl = require "ngx.ssl.session"
    local session = sessions[ssl.get_session_id()]
    if session then spin(0.05) ssl.set_serialized_session(session) end
}

$handlers

server {
    listen 127.0.0.1:8080;
    profile_accounting on;
    profile_endpoint on;
    access_log %%TESTDIR%%/times.log times;
    set \$waited 0;
    set \$ran 0;
    set \$used 0;

    location = /spun {
        access_log off;
        content_by_lua_block { ngx.say("ran=", app.ran, " used=", app.used) }
    }

    location = /pipe {
        access_log off;
        content_by_lua_block { ngx.print(has_pipe and "yes" or pipe) }
    }

    # a process writes, and ends

    location = /pipe/read {
        content_by_lua_block {
            local p = pipe.spawn({"sh", "-c", "sleep 0.1; echo a; sleep 5"})
            app.wait(p.stdout_read_line, p)
            app.burn()
            p:kill(9)
            app.done()
        }
    }

    location = /pipe/wait {
        content_by_lua_block {
            local p = pipe.spawn({"sleep", "0.1"})
            app.wait(p.wait, p)
            app.burn()
            app.done()
        }
    }

    location = /pipe/timeout {
        content_by_lua_block {
            local p = pipe.spawn({"sleep", "5"})
            p:set_timeouts(nil, 100)
            app.wait(function() p:stdout_read_line() return true end)
            app.burn()
            p:kill(9)
            app.done()
        }
    }

    location = /pipe/write {
        content_by_lua_block {
            local p = pipe.spawn({"sh", "-c", "sleep 0.1; cat >/dev/null"})
            app.wait(p.write, p, ("x"):rep(300000))
            app.burn()
            p:kill(9)
            app.done()
        }
    }

    location = /balancer {
        proxy_pass http://balanced/wait=100/;
    }

    location /-/profile/ { profile_console; }
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
    assert(f(...))
    add("waited", clock(1) - from)
end

-- returns the wall time and the CPU time; other processes cannot make it longer
function app.spin(seconds)
    local from, used = clock(1), clock(3)
    while clock(1) < from + seconds do end
    app.ran, app.used = clock(1) - from, clock(3) - used
    return app.ran, app.used
end

function app.burn()
    local ran, used = app.spin(0.05)
    add("ran", ran)
    add("used", used)
end

function app.done() ngx.print("done") end

return app
EOF


$t->write_certificate('localhost');
run_upstream($t, 8081);
$t->run();

# URI, the cause

my @cases = ([ '/balancer', qr/^upstream / ]);

# ngx.pipe needs a patch of nginx, which OpenResty has

push @cases, map { [ "/pipe/$_", qr/^script / ] } qw/ read wait timeout write /
    if http_get('/pipe')->body() eq 'yes';

for my $case (@cases) {
    my ($name, $cause) = @$case;

    my $r = http_get("$name?a&performance_bar=flamegraph"
                     . '&profile_format=speedscope');
    my $l = line("$name?a");
    my %sum = map { $_ => 0 } qw/ all waiting named spinning /;

    for (ProfileTest::Profile->new($r)->profile('wall')->stacks()) {
        my ($root, @frames) = @{$_->[0]};
        my $seconds = $_->[1] / 1e9;

        $sum{all} += $seconds;

        if ($root ne '[waiting]') {
            $sum{spinning} += $seconds if grep { /\bspin\b/ } @frames;
            next;
        }

        $sum{waiting} += $seconds;
        $sum{named} += $seconds
            if "@frames" =~ $cause || "@frames" =~ /^worker (?:busy|without)/;
    }

    my $waited = waited($name, $l);
    my $ran = spun('ran');

    near($sum{waiting}, $waited, "$name: the wait");
    near($sum{named}, $waited, "$name: its cause");
    near($sum{spinning}, $ran, "$name: the work, with its functions");
    near($sum{all}, $waited + $ran, "$name: the whole", BUSY);

    http_get("$name?b");
    $l = line("$name?b");
    $waited = waited($name, $l);

    near($l->{wait} + $l->{stall}, $waited, "$name: the wait is accounted");
    near($l->{cpu}, spun('used'), "$name: the CPU time is accounted", CPU);
}

# Handlers of a handshake wait before the request exists: the request does not
# contain the wait, and the first request of the connection has the CPU time
# until the first wait.

my $cache = IO::Socket::SSL::Session_Cache->new(10);

for my $case ([ 8443, 'certificate' ], [ 8444, 'client hello' ],
              [ 8445, 'session' ], [ 8445, 'session of a client that is known' ])
{
    my ($port, $name) = @$case;
    my $known = $name =~ /known/ ? 1 : 0;
    my $s;

    if ($known) {
        ok(wait_for(sub {
            $s = tls($port, SSL_session_cache => $cache);
            $s->get_session_reused();
        }), 'a client has its session again');

    } else {
        $s = tls($port);
    }

    my $r = http_get("/$known?captured$port&performance_bar=flamegraph"
                     . '&profile_format=speedscope', socket => $s,
                     keepalive => 1);
    my $p = ProfileTest::Profile->new($r)->profile('wall');

    my $l = line("/$known?captured$port");

    cmp_ok($p->total() / 1e9, '<', $l->{rt} + 0.01, "$name: the whole request");
    cmp_ok($p->total() / 1e9, '>', $l->{ran} - 0.01, "$name: not less");
    near($p->weight_below(qr/^\[waiting\]$/) / 1e9, 0, "$name: it does not wait");

    http_get("/$known?second$port", socket => $s, keepalive => 1);

    $l = line("/$known?second$port");

    near($l->{cpu}, $l->{used}, "$name: the CPU time of the second request", CPU);
    near($l->{wait} + $l->{stall}, 0, "$name: it does not wait either");
    $s->close();

    wait_for(sub {
        $s = tls($port, $known ? (SSL_session_cache => $cache) : ());
        !$known || $s->get_session_reused();
    });

    # Lua code that continues after a wait runs in an event of no connection, so
    # it is known of no request.

    my $spun = $name =~ /^(?:session|certificate)$/ ? 0 : spun('used');

    http_get("/$known?first$port", socket => $s);
    $l = line("/$known?first$port");

    near($l->{cpu}, $l->{used} + $spun,
         "$name: the CPU time of the handshake is the first request's",
         2 * CPU);
    near($l->{wait} + $l->{stall}, 0, "$name: the wait is not");
    near($l->{rt}, $l->{ran}, "$name: the time of the request", BUSY);
}


sub tls {
    my ($port, @options) = @_;

    return IO::Socket::SSL->new(PeerAddr => '127.0.0.1', PeerPort => port($port),
                                SSL_verify_mode => 0,
                                SSL_hostname => 'localhost', @options)
           // die "TLS: $SSL_ERROR\n";
}


# the times of the last work
sub spun {
    my ($name) = @_;
    return http_get('/spun')->body() =~ /$name=(\S+)/ ? $1 : die "no $name\n";
}


# nginx counts the balancer as time of the upstream
sub waited {
    my ($name, $l) = @_;
    return $name eq '/balancer' ? $l->{upstream} - spun('ran') : $l->{waited};
}


# the clocks are read some lines apart, and other processes run meanwhile
sub near {
    my ($value, $truth, $name, $by) = @_;

    cmp_ok(abs($value - $truth), '<=', $by // max(0.02, 0.02 * $truth), $name)
        or diag("$value instead of $truth");
}


sub line {
    my ($uri) = @_;
    my @found;

    wait_for(sub { @found = grep { /^\d+ \Q$uri\E / }
                            split /\n/, $t->read_file('times.log') });

    return { ($found[-1] // '') =~ /(\w+)=(\S+)/g };
}
