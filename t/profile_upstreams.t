#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: beside

# Upstreams whose filters are called with something else than the request:
# memcached and gRPC.  Their callbacks are stages, and their responses remain
# what they are.

use strict;
use warnings;

use Test::More;

use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ grpc memcached rewrite v2 /);

$t->conf(<<'EOF');
server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /memcached {
        set $memcached_key key;
        memcached_pass 127.0.0.1:8082;
    }

    location /grpc {
        grpc_pass 127.0.0.1:8083;
    }

    location /-/profile/ {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8083 http2;

    location /grpc {
        alias %%TESTDIR%%/large;
    }
}
EOF

$t->write_file('large', 'x' x 300000);
run_server($t, 8082, \&memcached);
$t->run();
$t->wait_for_socket(8082);

for my $uri (qw{ /memcached /grpc }) {
    my $plain = http_get($uri);

    cmp_ok(length($plain->body()), '>', 60000,
           "$uri: the response is complete");
    ok(http_get("$uri?performance_bar=record")->body() eq $plain->body(),
       "$uri: the same one when it is recorded");

    my $p = profile_get($uri);
    is($p->response()->header('X-Profiled-Status'), 200,
       "$uri: the request is captured");

    for my $name ('create request', 'process header', 'input filter init',
                  'input filter', 'finalize')
    {
        cmp_ok($p->profile('wall')->weight_below(qr/^upstream: $name$/), '>',
               0, "$uri: the profile has the stage $name");
    }
}


sub memcached {
    my ($c) = @_;

    sysread($c, my $request, 4096) or return;
    print $c "VALUE key 0 70000\r\n", 'v' x 70000, "\r\nEND\r\n";
}
