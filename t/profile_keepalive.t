#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request loop
# runs: beside
#
# A captured request among others of one connection, kept alive and pipelined:
# the other requests get their usual responses, and are not in the profile.

use strict;
use warnings;

use IO::Socket::INET;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ debug gzip map proxy rewrite /)->plan(34);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
%%SLOW_MAP%%
%%CONF worker_log%%

keepalive_requests 10000;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /text {
        gzip on;
    }

    location /loop {
        return 200 "$request_uri$slow";
    }

    location /proxy {
        gzip on;
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }
}
EOF

my $text = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 50000);
$t->write_file('text', $text);

run_upstream($t, 8081);
$t->run();

my $args = 'performance_bar=flamegraph&profile_format=speedscope';

my $busy = '/loopaaaaaaaaaaaaaa!';
my ($loop, $loop_args, $proxy) =
    map { plain($_) } pipelined(map { get($_) } $busy, "$busy?a=b", '/proxy');

is_clean($t);


# requests one after the other

my $s = connection();

for my $i (1 .. 3) {
    is(plain(http(get($busy), socket => $s)), $loop,
       "request $i without a trigger has its response");

    my $p = ProfileTest::Profile->new(http(get("/text?$args"), socket => $s));

    is_attributed($p, 'map', "kept alive $i");
    cmp_ok($p->profile('cpu')->weight_below(qr/^deflate/), '>',
           0.5 * $p->profile('cpu')->total(),
           "kept alive $i: deflate() uses most of the time");
    is_sum($p, "kept alive $i");
}

is(plain(http(get("$busy?a=b"), socket => $s)), $loop_args,
   'the next request has its response');
is_clean($t, 'kept alive');


# all requests at once

my @uris = ($busy, "/text?$args", "$busy?a=b", $busy, "/text?$args",
            $busy);
my @got = pipelined(map { get($_) } @uris);

is(plain($got[0]), $loop, 'pipelined, 1: the response is the same');
is(plain($got[2]), $loop_args, 'pipelined, 3: the response is the same');
is(plain($got[3]), $loop, 'pipelined, 4: the response is the same');
is(plain($got[5]), $loop, 'pipelined, 6: the response is the same');

for my $i (1, 4) {
    my $p = ProfileTest::Profile->new($got[$i]);

    is_attributed($p, 'map', 'pipelined, ' . ($i + 1));
    is(info($p)->{turns}, 1,
       'pipelined, ' . ($i + 1) . ': the request has one turn');
}

is_clean($t, 'pipelined');


# the other requests come while the captured one waits and has a body

my $body = "POST /proxy?$args HTTP/1.1\r\nHost: localhost\r\n"
           . "Content-Length: 10\r\n\r\n0123456789";

$s = connection();
http($body, socket => $s, start => 1);
sleep(0.1);
http(get($busy) . get("$busy?a=b"), socket => $s, start => 1);

my $p = ProfileTest::Profile->new(http_end($s));

cmp_ok(waiting($p), '>', 0.28, 'meanwhile: waits for its upstream');
cmp_ok(running($p), '<', 0.1, 'meanwhile: does not run');
is_attributed($p, 'map', 'meanwhile');
is(plain(http_end($s)), $loop,
   'meanwhile: the second request has its response');
is(plain(http_end($s)), $loop_args,
   'meanwhile: the third request has its response');
is_clean($t, 'meanwhile');


# a body that is split, and the last of several captured requests in a row

@got = pipelined($body, get('/proxy'), $body, get($busy));

is(info(ProfileTest::Profile->new($_))->{status}, 200, 'in a row')
    for @got[0, 2];
is(plain($got[1]), $proxy,
   'in a row: a request without a trigger has its response');
is(plain($got[3]), $loop, 'in a row: the last request has its response');
is_clean($t, 'in a row');


sub connection {
    return IO::Socket::INET->new(Proto => 'tcp', PeerAddr => '127.0.0.1',
                                 PeerPort => port(8080))
        || die "connect: $!\n";
}


sub get {
    my ($uri) = @_;
    return "GET $uri HTTP/1.1\r\nHost: localhost\r\n"
           . "Accept-Encoding: gzip\r\n\r\n";
}


sub pipelined {
    my @requests = @_;

    my $s = connection();
    http(join('', @requests), socket => $s, start => 1);

    return map { http_end($s) } @requests;
}
