#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: quiet

# Causes of waiting: each is made to last for a known time, and the profile
# must name it and give it that time.

use strict;
use warnings;

use List::Util qw/ max sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib 't/lib';
use ProfileTest::Upstream;
use ProfileTest;

use constant DELAY => 0.4;

my $t = ProfileTest->new()->has(qw/ lua auth_request /);

$t->conf(<<'EOF', events => 'worker_connections 128;');
profile_endpoint on;

limit_req_zone $server_name zone=slow:1m rate=150r/m;

server {
    listen 127.0.0.1:8080;
    server_name localhost;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /buffering/ {
        proxy_buffering off;
        proxy_pass http://127.0.0.1:8081;
    }

    location /retry/ {
        proxy_read_timeout 400ms;
        proxy_next_upstream timeout;
        proxy_pass http://two/first/0;
    }

    location /post {
        proxy_pass http://127.0.0.1:8081;
    }

    location /auth {
        auth_request /check;
        proxy_pass http://127.0.0.1:8081/first/0;
    }

    location = /check {
        internal;
        proxy_pass http://127.0.0.1:8081/first/400;
    }

    location /delayed {
        limit_req zone=slow burst=5;
        proxy_pass http://127.0.0.1:8081/first/0;
    }

    location /sleep {
        content_by_lua_block {
            ngx.sleep(0.4)
            ngx.say("slept")
        }
    }

    location /socket {
        content_by_lua_block {
            local s = ngx.socket.tcp()
            s:connect("127.0.0.1", %%PORT_8081%%)
            s:send("GET /first/400 HTTP/1.0\r\n\r\n")
            ngx.say(s:receive("*a"))
        }
    }

    location /stall {
        content_by_lua_block {
            ngx.update_time()
            local till = ngx.now() + 0.4
            while ngx.now() < till do ngx.update_time() end
            ngx.say("stalled")
        }
    }
}

upstream two {
    server 127.0.0.1:8082 max_fails=0;
    server 127.0.0.1:8081 max_fails=0 backup;
}
EOF

run_server($t, 8081, \&upstream);
run_server($t, 8082, sub { upstream(@_, 'silent') });
$t->run();


gap('/first/400', qr/^upstream first byte 127\.0\.0\.1:\d+$/, 'first byte');
gap('/header/400', qr/^upstream header 127\.0\.0\.1:\d+$/, 'header');
gap('/body/400', qr/^upstream body 127\.0\.0\.1:\d+$/, 'body');
gap('/buffering/body/400', qr/^upstream body 127\.0\.0\.1:\d+$/,
    'body, unbuffered');
gap('/retry/', qr/^upstream first byte 127\.0\.0\.1:@{[port(8082)]}$/,
    'a try that failed');
gap('/auth', qr/^upstream first byte/, 'subrequest', 'subrequest /check');
gap('/sleep', qr/^script timer$/, 'sleep');
gap('/socket', qr/^script socket 127\.0\.0\.1:@{[port(8081)]}$/, 'socket');

http_get('/delayed');
gap('/delayed', qr/^limit_req$/, 'limit_req');


# the client sends the body late

{
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                     PeerPort => port(8080));
    print $sock "POST /post/first/0?performance_bar=flamegraph&"
                . "profile_format=speedscope HTTP/1.1\r\nHost: localhost\r\n"
                . "Connection: close\r\nContent-Length: 10\r\n\r\n12345";
    sleep DELAY;
    print $sock '67890';

    my $raw = do { local $/; <$sock> };
    my $p = ProfileTest::Profile->new(ProfileTest::Response->new($raw, undef,
                                                                 'POST'));
    caused($p, qr/^client sending the request body$/, 'request body');
}


# the worker runs another request when the answer arrives

my $stall = http_get('/first/100?performance_bar=flamegraph'
                     . '&profile_format=speedscope', start => 1);
sleep 0.02;
my $other = http_get('/stall', start => 1);
my $p = ProfileTest::Profile->new(http_end($stall));
http_end($other);

my $busy = gaps($p, qr/^worker (?:busy|without)/);
cmp_ok($busy, '>', 0.2, 'stall: the worker was busy for the rest');
cmp_ok($busy, '<', 0.42, 'stall: and not longer');
sums($p, 'stall');


# seconds of waiting with the cause
sub gaps {
    my ($p, $cause, $outer) = @_;

    return sum0(map { $_->[1] }
                grep { $_->[0][0] eq '[waiting]'
                       && (grep { $_ =~ $cause } @{$_->[0]})
                       && (!$outer || $_->[0][1] eq $outer) }
                $p->profile('wall')->stacks()) / 1e9;
}


sub gap {
    my ($uri, $cause, $name, $outer) = @_;

    my $p = profile_get($uri);
    caused($p, $cause, $name, $outer);
}


sub caused {
    my ($p, $cause, $name, $outer) = @_;

    my $info = $p->json()->{profile_info};

    cmp_ok(gaps($p, $cause, $outer), '>=', 0.95 * DELAY * 0.97, "$name: cause")
        or diag(map { "$_->[1] @{$_->[0]}\n" }
                grep { $_->[0][0] eq '[waiting]' }
                $p->profile('wall')->stacks());
    cmp_ok(gaps($p, qr/^unknown$/), '<=', 0.01 * $info->{waiting} / 1e9,
           "$name: no cause is unknown");
    sums($p, $name);
}


sub sums {
    my ($p, $name) = @_;

    my $info = $p->json()->{profile_info};
    my $off = abs($info->{wall} / 1e9 - $info->{request_time});

    # $request_time is in milliseconds

    cmp_ok($off, '<=', max(0.0011, 0.01 * $info->{request_time}),
           "$name: turns and gaps are the request's time")
        or diag("wall $info->{wall}, request_time $info->{request_time}");
    is($info->{running} + $info->{waiting}, $info->{wall}, "$name: sum");
}


# /first/MS, /header/MS, /body/MS: waits before that part of the response
sub upstream {
    my ($c, $silent) = @_;

    my $request = read_request($c) // return;

    sleep 5 if $silent;

    my ($part, $ms) = $request =~ m{/(first|header|body)/(\d+)};
    my $wait = sub { sleep(($ms // 0) / 1000) if ($part // '') eq $_[0] };

    $wait->('first');
    print $c "HTTP/1.0 200 OK\r\n";
    $wait->('header');
    print $c "Content-Length: 4\r\n\r\nab";
    $wait->('body');
    print $c 'cd';
}
