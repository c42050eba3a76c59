#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside
#
# Captured requests over TLS, and to upstreams over TLS, while other clients
# keep the worker busy with regular expressions.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ debug gzip map proxy rewrite ssl /)
                          ->has_perl('IO::Socket::SSL')
                          ->has_program('openssl')
                          ->plan(7 * 7 + 18);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
%%SLOW_MAP%%
%%CONF worker_log%%

ssl_certificate localhost.crt;
ssl_certificate_key localhost.key;

upstream kept {
    server 127.0.0.1:8444;
    keepalive 4;
}

upstream failing {
    server 127.0.0.1:8445 max_fails=0;
    server 127.0.0.1:8444 backup;
}

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8443 ssl;

    profile_endpoint on;

    # nginx leaves the sessions that it keeps at its exit
    proxy_ssl_session_reuse off;

    location /text {
        gzip on;
    }

    location /loop {
        return 200 "$request_uri$slow";
    }

    location /proxy {
        proxy_pass https://127.0.0.1:8444/;
    }

    location /new {
        proxy_ssl_session_reuse off;
        proxy_pass https://127.0.0.1:8444/;
    }

    location /kept {
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_pass https://kept/;
    }

    location /failing {
        proxy_pass https://failing/;
    }
}

server {
    listen 127.0.0.1:8444 ssl;

    keepalive_requests 10000;

    location / {
        proxy_pass http://127.0.0.1:8081/wait=200/;
    }
}

# no TLS here

server {
    listen 127.0.0.1:8445;
}
EOF

my $text = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 50000);
$t->write_file('text', $text);
$t->write_certificate('localhost');

run_upstream($t, 8081);
$t->run();

my @tls = (port => 8443, SSL => 1);
my $args = 'performance_bar=flamegraph&profile_format=speedscope';

my $busy = '/loopaaaaaaaaaaaaaa!';
my $loop = http_get($busy, @tls, keepalive => 1);
is_clean($t);

my $load = $t->load($busy, @tls, clients => 3);


# a response that is written in many turns

is_captured($t, 'gzip', '/text', @tls, runs => 1,
            headers => [ 'Accept-Encoding: gzip' ]);


# upstreams, over TLS from the client on and not

is_captured($t, 'upstream', '/proxy', waits => 0.2);
is_captured($t, 'both', '/proxy', @tls, waits => 0.2);
is_captured($t, 'without session', '/new', @tls, waits => 0.2);
is_captured($t, 'kept alive', '/kept', @tls, waits => 0.2) for 1 .. 2;
is_captured($t, 'another upstream', '/failing', @tls, waits => 0.2);


# between other requests of the same connection

my $s = ProfileTest::HTTP::connect_to(8443, 1);

for my $i (1 .. 3) {
    is(plain(http(get($busy), socket => $s)), plain($loop),
       "others $i: the response is the same");

    my $p = ProfileTest::Profile->new(http(get("/text?$args"), socket => $s));

    is_attributed($p, 'map', "between other requests, $i");
    cmp_ok(share_of($p, 'zlib'), '>', 0.5,
           "between other requests, $i: most time is in gzip");
}

http(get($busy) . get("/text?$args") . get($busy) . get("/text?$args")
     . get($busy), socket => $s, start => 1);

my @got = map { http_end($s) } 1 .. 5;

is(plain($got[$_]), plain($loop),
   "pipelined $_: the response is the same") for 0, 2, 4;
is_attributed(ProfileTest::Profile->new($got[$_]), 'map', "pipelined $_")
    for 1, 3;

is_clean($t, 'pipelined');


# the client closes TLS, or the connection, while it waits

for my $how (qw/ shutdown close /) {
    $s = ProfileTest::HTTP::connect_to(8443, 1);
    http(get("/proxy?$args"), socket => $s, start => 1);
    select(undef, undef, undef, 0.1);

    $how eq 'shutdown' ? $s->close() : CORE::close($s);
    is_clean($t, "left by $how");
}

is($load->stop()->{failed}, 0, 'other requests are served');


sub get {
    my ($uri) = @_;
    return "GET $uri HTTP/1.1\r\nHost: localhost\r\n"
           . "Accept-Encoding: gzip\r\n\r\n";
}
