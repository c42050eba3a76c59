#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages capture
# runs: quiet

# Waits that overlap: subrequests of Lua, of SSI, of njs and of a mirror, sockets and
# timers of light threads, ngx.fetch().  Upstreams and timers wait for known times.
# The profile has each wait with its own length, the last one is critical, and the
# sum is the time of the request.  If some waits are short, only those change.
# Kept profiles, metrics and variables agree.

use strict;
use warnings;

use List::Util qw/ max sum0 /;
use Test::More;
use Time::HiRes qw/ sleep /;

use lib 't/lib';
use ProfileTest::Metrics;
use ProfileTest::Upstream;
use ProfileTest;

# Waits differ by 0.2 s.  On a busy machine turns are a part of the time, and
# upstreams are late (seconds, of each wait).

use constant OFF => 0.17;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua js mirror proxy ssi /);

$t->conf(<<'EOF');
js_path %%TESTDIR%%;
js_import main.js;

map $arg_keep $keep { 1 1; default 0; }

log_format times '$request_uri rt=$request_time wait=$profile_wait_time '
                 'stall=$profile_stall_time id=$profile_id';

server {
    listen 127.0.0.1:8080;
    server_name localhost;

    profile_endpoint on;
    profile_accounting on;
    profile_keep $keep;
    access_log %%TESTDIR%%/times.log times;

    location /profile/ { profile_console; }
    location = /metrics { profile_metrics; }

    location = /s/0 {
        return 200 ok;
    }

    location ~ ^/s/(\d+) {
        proxy_pass http://127.0.0.1:%%PORT_8081%%/$1;
    }

    location /three.html { ssi on; }

    location /mirror/ {
        mirror /s/200;
        mirror /s/400;
        proxy_pass http://127.0.0.1:%%PORT_8081%%/600/;
    }

    location /multi {
        content_by_lua_block {
            local a = ngx.req.get_uri_args()
            ngx.location.capture_multi({ { "/s/" .. a.a }, { "/s/" .. a.b },
                                         { "/s/" .. a.c } })
            ngx.say("done")
        }
    }

    location /threads {
        content_by_lua_block {
            local function socket(ms)
                local s = ngx.socket.tcp()
                assert(s:connect("127.0.0.1", %%PORT_8081%%))
                s:send("GET /" .. ms .. " HTTP/1.0\r\n\r\n")
                assert(s:receive("*a"))
            end

            local function sleep(ms)
                ngx.sleep(ms / 1000)
            end

            local function chain()
                for i = 1, 3 do ngx.sleep(0.2) end
            end

            local kinds = { socket = socket, sleep = sleep, chain = chain }
            local threads = {}

            for name, n in pairs(ngx.req.get_uri_args()) do
                local f = kinds[name:match("^%a+")]

                if f then
                    threads[#threads + 1] = ngx.thread.spawn(f, tonumber(n))
                end
            end

            for _, thread in ipairs(threads) do
                ngx.thread.wait(thread)
            end

            ngx.say("done")
        }
    }

    # between two readings of a socket, the request does not wait for it

    location /again {
        content_by_lua_block {
            local s = ngx.socket.tcp()
            assert(s:connect("127.0.0.1", %%PORT_8082%%))
            assert(s:receive(1))
            ngx.sleep(0.2)
            assert(s:receive(1))
            ngx.say("done")
        }
    }

    # the script does not wait for the end of the second one

    location /race {
        content_by_lua_block {
            local function sleep(n) ngx.sleep(n) end
            local a = ngx.thread.spawn(sleep, 0.2)
            local b = ngx.thread.spawn(sleep, 5)
            ngx.thread.wait(a, b)
            ngx.thread.kill(b)
            ngx.sleep(0.2)
            ngx.say("done")
        }
    }

    location /fetch { js_content main.fetch; }
    location /timers { js_content main.timers; }
    location /njs { js_content main.subrequests; }
}
EOF

$t->write_file('three.html', join('', map {
    qq(<!--# include virtual="/s/$_" -->) } 200, 600, 400));

$t->write_file_expand('main.js', <<'EOF');
async function fetch(r) {
    await Promise.all([200, 600, 400].map(ms =>
        ngx.fetch('http://127.0.0.1:%%PORT_8081%%/' + ms)));
    r.return(200, 'done');
}

async function timers(r) {
    await Promise.all([200, 600, 400].map(ms =>
        new Promise(done => setTimeout(done, ms))));
    r.return(200, 'done');
}

async function subrequests(r) {
    await Promise.all([200, 600, 400].map(ms => r.subrequest('/s/' + ms)));
    r.return(200, 'done');
}

export default { fetch, timers, subrequests };
EOF

run_server($t, 8081, sub {
    my ($c) = @_;
    my $request = read_request($c) // return;

    my ($ms) = $request =~ m{^\S+ /(\d+)};
    sleep($ms / 1000);

    syswrite($c, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
    close $c;
});

run_server($t, 8082, sub {
    my ($c) = @_;

    syswrite($c, 'a');
    sleep 0.5;
    syswrite($c, 'b');
    sleep 0.1;
});

$t->run();

my $byte = 'upstream first byte 127\.0\.0\.1:\d+';
my $socket = '^script socket 127\.0\.0\.1:\d+';
my $timer = '^script timer';

# a URI, the critical waits, and the waits beside them, with their lengths

my @cases = (
    [ '/multi?a=200&b=600&c=400', subrequests(0.6), subrequests(0.4, 0.2) ],
    [ '/multi?a=0&b=600&c=0', subrequests(0.6), {} ],
    [ '/multi?a=0&b=0&c=200', subrequests(0.2), {} ],
    [ '/multi?a=400&b=600&c=0', subrequests(0.6), subrequests(0.4) ],
    [ '/three.html', subrequests(0.6), subrequests(0.4, 0.2) ],
    [ '/njs', subrequests(0.6), subrequests(0.4, 0.2) ],
    [ '/mirror/', { "^$byte" => 0.6 }, subrequests(0.4, 0.2) ],
    [ '/threads?socket1=200&socket2=600&socket3=400', { $socket => 0.6 },
      { $socket => 0.6 } ],
    [ '/threads?sleep1=200&sleep2=600&sleep3=400', { $timer => 0.6 },
      { $timer => 0.6 } ],
    [ '/threads?sleep1=200&socket2=600&sleep3=400', { $socket => 0.6 },
      { $timer => 0.6 } ],
    [ '/threads?chain=1&socket=400', { $timer => 0.6 }, { $socket => 0.4 } ],
    [ '/threads?chain=1&socket=800', { $socket => 0.8 }, { $timer => 0.6 } ],
    [ '/again', { $socket => 0.3, $timer => 0.2 }, {} ],
    [ '/race', { $timer => 0.4 }, {} ],
    [ '/fetch', { $socket => 0.6 }, { $socket => 0.6 } ],
    [ '/timers', { $timer => 0.6 }, { $timer => 0.6 } ],
);

for my $case (@cases) {
    my ($uri, $critical, $beside) = @$case;

    waits($uri, profile_get($uri), $critical, $beside);

    # the same from notes

    my $plain = $uri . ($uri =~ /\?/ ? '&' : '?') . 'keep=1';

    my $before = metrics_of(http_get('/metrics')->content());
    http_get($plain);
    my $l = logged($plain);
    my $after = metrics_of(http_get('/metrics')->content());

    waits("$uri, kept", kept($l->{id}), $critical, $beside);

    for my $cause ('script timer', 'script socket', 'upstream first byte') {
        my @sums = map { metric_sum($_, 'nginx_profile_request_wait_seconds_sum',
                                    cause => $cause) } $before, $after;

        near($sums[1] - $sums[0],
             sum0(map { $critical->{$_} } grep { /\Q$cause/ } keys %$critical),
             "$uri: metrics: $cause");
    }

    near($l->{wait} + $l->{stall}, sum0(values %$critical), "$uri: variables");
    cmp_ok(abs($l->{wait} + $l->{stall} - $l->{rt}), '<', 0.06,
           "$uri: the variables are the time of the request");
}


sub subrequests {
    return { map { ('subrequest /s/' . 1000 * $_ . ";$byte" => $_) } @_ };
}


# each wait has its length, and the sum is the time of the request
sub waits {
    my ($name, $p, $critical, $beside) = @_;

    my $info = $p->json()->{profile_info};
    my (@critical, @beside);

    for ($p->profile('wall')->stacks()) {
        my ($root, @frames) = @{$_->[0]};
        my $seconds = $_->[1] / 1e9;

        next if $root ne '[waiting]';

        my ($first, @others) = split /(?:^|;)beside;/, join(';', @frames);

        push @critical, [ $first, $seconds ];
        push @beside, map { [ $_, $seconds ] } @others;
    }

    for ([ 'critical', $critical, @critical ], [ 'beside', $beside, @beside ]) {
        my ($what, $truth, @waits) = @$_;

        for my $cause (sort keys %$truth) {
            near(sum0(map { $_->[1] } grep { $_->[0] =~ $cause } @waits),
                 $truth->{$cause}, "$name: $what: $cause", 2)
                or diag($p->profile('wall')->folded(30));
        }

        near(sum0(map { $_->[1] } @waits), sum0(values %$truth),
             "$name: nothing else is $what", 2)
            or diag($p->profile('wall')->folded(30));
    }

    near($info->{waiting} / 1e9, sum0(values %$critical), "$name: the sum");
    is($info->{running} + $info->{waiting}, $info->{wall},
       "$name: turns and gaps");
    cmp_ok(abs($info->{wall} / 1e9 - $info->{request_time}), '<',
           max(0.003, 0.02 * $info->{request_time}),
           "$name: the time of the request");
}


sub near {
    my ($got, $truth, $name, $n) = @_;

    my $ok = ok(abs($got - $truth) < OFF * ($n || 1), $name);
    diag("$got, not $truth") if !$ok;

    return $ok;
}


sub logged {
    my ($uri) = @_;
    my $line;

    wait_for(sub {
        ($line) = reverse grep { /^\Q$uri\E rt=/ }
                  split /\n/, $t->read_file('times.log');
        return defined $line;
    });

    return { $line =~ /(\w+)=([\w.]+)(?: |$)/g };
}


sub kept {
    my ($id) = @_;
    my $r;

    wait_for(sub {
        $r = http_get("/profile/p/$id/speedscope");
        return $r->status() == 200;
    });

    return ProfileTest::Profile->new($r);
}
