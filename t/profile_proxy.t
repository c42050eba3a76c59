#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: beside
#
# Captured requests with upstreams: connections that are kept for other
# requests, responses in pieces, caches.  Meanwhile other clients use the same
# upstreams, and keep the worker busy with regular expressions.

use strict;
use warnings;

use IO::Socket::INET;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ auth_request debug gzip map proxy rewrite /)
                          ->plan(18 * 7 + 11);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
%%SLOW_MAP%%
%%CONF worker_log%%

proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;

upstream kept {
    server 127.0.0.1:8081;
    keepalive 2;
}

upstream two {
    server 127.0.0.1:8082 max_fails=0;
    server 127.0.0.1:8081 backup;
    keepalive 2;
}

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    proxy_http_version 1.1;
    proxy_set_header Connection "";

    # other requests: a regular expression that fails after about a
    # millisecond, and the same upstream

    location /loop {
        set $said $slow;
        rewrite ^ /fast break;
        proxy_pass http://kept;
    }

    location /new {
        proxy_set_header Connection close;
        proxy_pass http://127.0.0.1:8081/wait;
    }

    location /kept {
        proxy_pass http://kept/wait;
    }

    location /gzip {
        gzip on;
        proxy_pass http://kept/pieces;
    }

    location /unbuffered {
        gzip on;
        proxy_buffering off;
        proxy_pass http://kept/pieces;
    }

    location /temp {
        gzip on;
        proxy_buffers 4 4k;
        proxy_buffer_size 4k;
        proxy_busy_buffers_size 8k;
        proxy_pass http://kept/big;
    }

    location /limited {
        proxy_limit_rate 100k;
        proxy_buffers 4 4k;
        proxy_buffer_size 4k;
        proxy_busy_buffers_size 8k;
        proxy_pass http://kept/forty;
    }

    location /chunked {
        proxy_pass http://kept/chunked;
    }

    location /stream {
        proxy_request_buffering off;
        proxy_pass http://kept/wait;
    }

    location /next {
        proxy_pass http://two/wait;
    }

    location /cut {
        proxy_next_upstream error timeout http_502;
        proxy_pass http://two/cut;
    }

    # other requests get its first upstream before its second one answers

    location /released {
        auth_request /auth;
        proxy_set_header Connection close;
        proxy_pass http://127.0.0.1:8081/wait;
    }

    location = /auth {
        proxy_pass http://kept/fast;
    }

    # works when its upstream answers

    location /zip {
        gzip on;
        proxy_buffers 32 8k;
        proxy_pass http://kept/some;
    }

    location /cached {
        proxy_cache cache;
        proxy_cache_valid 1h;
        proxy_cache_lock on;
        proxy_pass http://kept/wait;
    }

    location /stale {
        proxy_cache cache;
        proxy_cache_valid 1s;
        proxy_cache_use_stale updating;
        proxy_cache_background_update on;
        proxy_pass http://kept/wait;
    }
}
EOF

run_server($t, 8081, sub { 1 while serve($_[0]) });

# an upstream that accepts connections and closes them at once
$t->run_daemon(\&closer, IO::Socket::INET->new(LocalAddr => '127.0.0.1',
    LocalPort => port(8082), Listen => 64, ReuseAddr => 1));

$t->run();
my $busy = '/loopaaaaaaaaaaaaaa!';

is(http_get($busy)->body(), 'fast', 'a request without a trigger is served');
is_clean($t);

my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);
my $load = $t->load($busy, clients => 3);

is_captured($t, 'new connection', '/new', waits => 0.15);
is_captured($t, 'kept alive', '/kept', waits => 0.15) for 1 .. 3;
is_captured($t, 'pieces', '/gzip', @gzip, waits => 0.15, runs => 0.2);
is_captured($t, 'unbuffered', '/unbuffered', @gzip, waits => 0.15,
            runs => 0.2);
is_captured($t, 'temporary file', '/temp', @gzip, runs => 1);
is_captured($t, 'rate limit', '/limited', waits => 0.2);
is_captured($t, 'chunked', '/chunked', waits => 0.15);
is_captured($t, 'body', '/kept', waits => 0.15, get => \&post);
is_captured($t, 'streamed body', '/stream', waits => 0.15, get => \&post);
is_captured($t, 'next upstream', '/next', waits => 0.15);
is_captured($t, 'no upstream', '/cut', status => 502);
is_captured($t, 'head', '/kept', waits => 0.15, get => \&head);

# the request before has filled the cache
is_captured($t, 'hit', '/cached');

# other requests get the connections of the request while it waits
my $zip = $t->load('/zip', clients => 3, @gzip);
is_captured($t, 'released', '/released', waits => 0.15, foreign => 'zlib',
            runs => 0.015) for 1 .. 3;
is($zip->stop()->{failed}, 0,
   'other requests are served with the released connections');


# two requests for a response that is not in the cache: the second one waits
# until the first one has filled the cache

my $query = 'performance_bar=flamegraph&profile_format=speedscope';
my $get = "HTTP/1.0\r\n\r\n";

my $first = http("GET /cached/2?$query $get", start => 1);
sleep(0.05);
my $second = http("GET /cached/2?$query $get", start => 1);

$second = ProfileTest::Profile->new(http_end($second));
$first = ProfileTest::Profile->new(http_end($first));

cmp_ok(waiting($first), '>', 0.12,
       'the request that fills the cache waits for its upstream');
cmp_ok(waiting($second), '>', 0.05,
       'the second request waits for the first one');
is_attributed($first, 'map', 'the request that fills the cache');
is_attributed($second, 'map', 'the request that waits for the cache');
is_clean($t, 'cache lock');


# The response is stale.  The update continues after the response, in a
# subrequest of the captured request.

http_get('/stale');
sleep(2.1);
my $p = profile_get('/stale');

cmp_ok(info($p)->{wall}, '<', 0.2e9,
       'a stale response does not wait for its update');
is_attributed($p, 'map', 'stale');
is_clean($t, 'stale');

is($load->stop()->{failed}, 0, 'other requests are served');


sub post {
    my ($uri, %extra) = @_;
    return http_post($uri, 'x' x 300000, %extra);
}


# a response to HEAD has no body, so the profile is requested by GET

sub head {
    my ($uri, %extra) = @_;

    return http_get($uri, %extra) if $uri =~ /performance_bar/;
    return http_head($uri, %extra);
}


sub closer {
    my ($listen) = @_;
    close($_) while $_ = $listen->accept();
}


# keeps connections alive, and serves each connection in its own process

sub serve {
    my ($s) = @_;

    my $request = read_request($s) // return;

    my ($method, $what) = $request =~ m{^(\S+) /(\w+)};
    my $close = $request =~ /^Connection: close/mi;

    return if $what eq 'cut';

    my @pieces = pieces($what);
    my $chunked = $what eq 'chunked';
    my $length = 0;
    my $started;

    $length += length($_) for grep { !ref } @pieces;

    for my $piece (@pieces, '') {
        if (ref $piece) {
            sleep($$piece);
            next;
        }

        my $out = $chunked ? sprintf("%x\r\n%s\r\n", length($piece), $piece)
                           : $piece;
        $out = '' if $method eq 'HEAD';
        $out = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
               . 'Connection: ' . ($close ? 'close' : 'keep-alive') . "\r\n"
               . ($chunked ? 'Transfer-Encoding: chunked'
                           : "Content-Length: $length")
               . "\r\n\r\n$out" if !$started++;

        while (length($out)) {
            my $n = syswrite($s, $out) or return;
            substr($out, 0, $n, '');
        }
    }

    return !$close;
}


# parts of the body, and references to seconds to sleep before them

sub pieces {
    my ($what) = @_;

    return 'fast' if $what eq 'fast';
    return (\0.15, 'slow and steady') if $what eq 'wait';
    return 'x' x 40960 if $what eq 'forty';

    my @lines = map { sprintf("%x\n", $_ * 2654435761 % 4294967296) }
                    1 .. 100000;

    return join('', @lines) if $what eq 'big';
    return join('', @lines[0 .. 4999]) if $what eq 'some';
    return map { (\0.015, join('', splice(@lines, 0, 500))) } 1 .. 10;
}
