#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# Captured requests with bodies, and the requests that follow them on the
# connection.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ proxy rewrite /);

my $lua = !$t->has_module('lua') ? '' : <<'EOF';
        location /lua/ {
            content_by_lua_block {
                ngx.req.read_body()
                ngx.log(ngx.NOTICE, "BODY: ", #(ngx.req.get_body_data() or ""))
                ngx.say("read")
            }
        }
EOF

$t->conf(<<"EOF");
default_type text/plain;
client_body_buffer_size 4k;
client_max_body_size 10m;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / {
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8081;
    }

    location /unbuffered/ {
        proxy_request_buffering off;
        proxy_pass http://127.0.0.1:8081;
    }

    location /return/ {
        return 200 "returned\\n";
    }

    location /refused/ {
        profile_if 0;
        proxy_pass http://127.0.0.1:8081;
    }

    location /discard/ {
        alias %%TESTDIR%%/;
    }

$lua
}
EOF

$t->write_file('a', "a\n");

run_upstream($t, 8081);
$t->run();

my $arg = 'performance_bar=flamegraph';
my $wrong = "$arg&profile_mode=x";
my $plain = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
my $body = join('', map { sprintf("%08d\n", $_) } 1 .. 20000);


# bodies that get to the upstream

for my $uri ('/proxy/', '/unbuffered/') {
    for my $len (0, 1, 100, 4096, 5000, length($body)) {
        my $r = http_post("$uri?$arg", substr($body, 0, $len));

        is($r->header('X-Profiled-Status'), 200,
            "a request to $uri with $len bytes is profiled");
        is(sent(), substr($body, 0, $len),
            "the upstream of $uri gets all $len bytes");
    }

    my $s = http(post($uri, $arg, 30), start => 1);

    for my $part ('first part', 'second part', 'third part') {
        sleep(0.05);
        syswrite($s, substr("$part.................", 0, 10));
    }

    my $p = ProfileTest::Profile->new(http_end($s));

    is(sent(), 'first part' . 'second par' . 'third part',
        "a body in parts reaches the upstream of $uri");
    cmp_ok($p->json()->{profile_info}{waiting}, '>', 100e6,
           "the profile of $uri contains the wait for the client");
}

my $r = http(chunked('/proxy/', $arg, 'first', 'second', $body));

is($r->header('X-Profiled-Status'), 200,
    'a request with a chunked body is profiled');
is(sent(), "firstsecond$body", 'the upstream gets the chunked body');

SKIP: {
    skip 'no lua', 2 unless $lua;

    is(http_post("/lua/?$arg", 'x' x 1234)->header('X-Profiled-Status'), 200,
       'a request with a body that Lua reads is profiled');
    ok(wait_for(sub { $t->read_log() =~ /BODY: 1234/ }),
        'Lua reads the whole body');
}

is(http_post("/refused/?$arg", 'body')->header('X-Profile-Id'), undef,
   'a request without permission gets no profile');
is(sent(), 'body',
    'the upstream gets the body of a request without permission');
like((upstream_lines($t))[-1], qr/\?\Q$arg\E /,
    'the upstream gets the trigger of a request without permission');


# 100-continue

for my $case ([ '/proxy/', $arg, 200, 200 ], [ '/return/', $arg, 200, 200 ],
              [ '/proxy/', $wrong, 400, undef ],
              [ '/return/', $wrong, 400, undef ])
{
    my ($uri, $args, $status, $profiled) = @$case;

    my $s = http(post($uri, $args, 4, 'Expect: 100-continue'), start => 1);

    # the client waits for the status 100

    my $line = '';
    1 while $line !~ /\r\n\r\n/ && sysread($s, $line, 1, length($line));
    like($line, qr{^HTTP/1\.1 100 Continue\r\n},
        "$uri?$args gets 100 Continue");

    syswrite($s, 'body');
    $r = http_end($s);

    is($r->status(), $status, "$uri?$args gets its status");
    is($r->header('X-Profiled-Status'), $profiled,
       "$uri?$args gets its original status");
    is(http($plain, socket => $s)->body(), "a\n",
       "the connection serves a request after $uri?$args");
}


# nginx does not take a body that no handler reads for the next request.  The
# body arrives with the request, or after the response.

for my $uri (qw{ /discard/a /return/ /none /proxy/ }) {
    for my $args ($arg, $wrong) {
        my $name = "$uri?$args";
        my $method = $uri eq '/discard/a' ? 'GET' : 'POST';

        my $s = http(post($uri, $args, length($plain), '', $method) . $plain
                     . $plain, start => 1);

        is(kind(http_end($s)), $args eq $arg ? 'a profile' : 400,
           "$name: a body that is sent at once is read");
        is(kind(http_end($s)), 'a',
            "$name: the next request after such a body is answered");

        next if $uri eq '/proxy/' && $args eq $arg;

        $s = http(post($uri, $args, length($plain), '', $method),
                  start => 1);

        is(kind(http_end($s)), $args eq $arg ? 'a profile' : 400,
           "$name: a body that is sent later is read");

        syswrite($s, substr($plain, 0, 10));
        sleep(0.05);
        syswrite($s, substr($plain, 10));

        is(kind(http($plain, socket => $s)), 'a',
           "$name: the next request after a late body is answered");

        $s = http(chunked($uri, $args, $plain, $body) . $plain, start => 1);

        is(kind(http_end($s)), $args eq $arg ? 'a profile' : 400,
           "$name: a chunked body is read");
        is(kind(http_end($s)), 'a',
            "$name: the next request after a chunked body is answered");
    }
}

$r = http(post('/return/', $wrong, 0, 'Transfer-Encoding: chunked')
          . "nonsense\r\n");

is($r->status(), 400, 'a broken chunked body gets 400');


# pipelines

my $s = http($plain . "GET /a?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n" . $plain
             . "GET /a?$wrong HTTP/1.1\r\nHost: localhost\r\n\r\n" x 2 . $plain
             . "GET /return/?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n" x 2
             . post('/proxy/', $arg, 4) . 'body' . $plain
             . "GET /proxy/?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n"
             . "HEAD /a?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n", start => 1);

is(join(', ', map { kind(http_end($s)) } 1 .. 11),
   'a, a profile, a, 400, 400, a, a profile, a profile, a profile, a, '
   . 'a profile', 'each request of a pipeline gets its own answer');

# the library knows the method of the last request only

${*$s}{profile_test_method} = 'HEAD';
$r = http_end($s);

is($r->header('X-Profiled-Status'), 200,
    'a HEAD request at the end of a pipeline is profiled');

# a client that sends everything and then no more

$s = http("GET /a?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n" x 5 . $plain,
          start => 1);

is(join(', ', map { kind(http_end($s)) } 1 .. 6),
   'a profile, ' x 5 . 'a',
    'a connection serves several profiles in sequence');
is(kind(http("GET /a?$arg HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
             socket => $s)), 'a profile',
    'the last request on a connection may be profiled');
is(sysread($s, my $rest, 1), 0,
    'the connection is closed after "Connection: close"');


# the body of the last request that the upstream got
sub sent {
    my ($body) = (upstream_requests($t))[-1] =~ /\r\n\r\n(.*)\z/s;
    return $body;
}


# the head of a request with a body
sub post {
    my ($uri, $args, $len, $header, $method) = @_;

    return ($method || 'POST') . " $uri?$args HTTP/1.1\r\nHost: localhost\r\n"
           . ($header ? "$header\r\n" : '')
           . ($len ? "Content-Length: $len\r\n" : '') . "\r\n";
}


sub chunked {
    my ($uri, $args, @chunks) = @_;

    return post($uri, $args, 0, 'Transfer-Encoding: chunked')
           . join('', map { sprintf("%x\r\n%s\r\n", length($_), $_) }
                      @chunks, '');
}


# "a profile", "a" (the contents of the file), or the status
sub kind {
    my ($r) = @_;

    return $r->error() || 'nothing' if !$r->status();
    return $r->status() if $r->status() != 200;
    return $r->body() eq "a\n" ? 'a' : "neither: $r"
        unless $r->header('X-Profile-Id');

    ProfileTest::Profile->new($r);
    return 'a profile';
}
