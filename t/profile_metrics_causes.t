#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics stages
# runs: quiet

# Metrics: what requests wait for.

use strict;
use warnings;

use IO::Socket::INET;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest::Metrics;
use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ limit_req lua proxy /);

$t->conf(<<'EOF');
log_format times '$uri wait=$profile_wait_time';
access_log %%TESTDIR%%/times.log times;
limit_req_zone $server_name zone=one:1m rate=5r/s;

server {
    listen 127.0.0.1:8080;
    server_name one;

    location / { }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=200/;
    }

    location /limited {
        limit_req zone=one burst=5;
    }

    location /rate {
        limit_rate 10k;
    }

    location /sleep {
        content_by_lua_block {
            ngx.sleep(0.2)
            ngx.say("slept")
        }
    }

    location /socket {
        content_by_lua_block {
            local s = ngx.socket.tcp()
            s:connect("127.0.0.1", %%PORT_8081%%)
            s:send("GET /wait=200/ HTTP/1.0\r\nHost: a\r\n\r\n")
            s:receive("*a")
            s:close()
            ngx.say("received")
        }
    }

    location /both {
        content_by_lua_block {
            ngx.sleep(0.1)
            ngx.location.capture("/upstream")
            ngx.sleep(0.1)
            ngx.say("done")
        }
    }

    location = /metrics { profile_metrics; }
}
EOF

$t->write_file($_, 'x' x 15000) for qw/ text limited rate /;
run_upstream($t, 8081);
$t->run();

http_get($_) for qw{ /upstream /upstream /limited /limited /rate /sleep /socket
                     /both };

# the header, and the body, come in two parts

slowly("GET /text HTTP/1.0\r\n", "\r\n");
slowly("POST /upstream HTTP/1.0\r\nContent-Length: 4\r\n\r\nab", 'cd');

my $m = metrics_of(http_get('/metrics')->body());

waits('/upstream', 'upstream first byte', 0.6, 3);
waits('/upstream', 'client sending the request body', 0.2, 1);
waits('/limited', 'limit_req', 0.15, 1);
waits('/rate', 'limit_rate', 0.15, 1);
waits('/sleep', 'script timer', 0.2, 1);
waits('/socket', 'script socket', 0.2, 1);
waits('/both', 'upstream first byte', 0.2, 1);
waits('/both', 'script timer', 0.2, 1);
waits('/', 'client sending the request header', 0.2, 1);


# causes are parts of a request's wait

for my $location (qw{ /upstream /limited /rate /sleep /socket /both }) {
    my $log = sum0(map { /wait=([\d.]+)/ } grep { /^\Q$location\E / }
                   split /\n/, $t->read_file('times.log'));
    my $sum = metric_sum($m, 'nginx_profile_request_wait_seconds_sum',
                         location => $location);

    cmp_ok(abs($sum - $log), '<', 0.00001,
           "$location: the sum of all causes is that of the access log");
}

is(scalar(grep { /cause="unknown"/ && /location="\/(?:up|both|sleep|socket)/ }
          keys %$m), 0, 'every wait has a cause');


sub slowly {
    my ($first, $second) = @_;

    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => port(8080));
    print $s $first;
    sleep 0.25;
    print $s $second;
    1 while sysread($s, my $buf, 4096);
}


sub waits {
    my ($location, $cause, $seconds, $requests) = @_;
    my %labels = (location => $location, cause => $cause);
    my $name = 'nginx_profile_request_wait_seconds';

    cmp_ok(metric_sum($m, "${name}_sum", %labels), '>=', $seconds * 0.95,
           "$location: the wait for: $cause");
    is(metric_sum($m, "${name}_count", %labels), $requests,
       "$location: the requests that waited for: $cause");
}
