#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside
#
# One captured stream beside nineteen other streams of an HTTP/2 connection: the
# profile has no work of the other streams, and they get their usual responses.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw/ time /;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ debug gzip limit_req map proxy rewrite v2 /)
                          ->has_perl(qw/ Protocol::HTTP2::Client /);

# a location that works in many turns
my $lua = $t->has_module('lua') ? <<'EOF' : '';
        location /turns {
            content_by_lua_block {
                local x = 0
                for i = 1, 20 do
                    for k = 1, 200000 do
                        x = x + math.sin(k)
                    end
                    ngx.sleep(0.01)
                end
                ngx.print("done")
            }
        }
EOF

$t->plan($lua ? 48 : 42);

$t->write_file_expand('nginx.conf', <<'EOF' =~ s/%%LUA%%/$lua/r);
%%MODULES%%
%%GLOBALS%%
error_log %%TESTDIR%%/worker.log debug_http;
worker_processes 1;

events {
    worker_connections 256;
}

http {
    %%GLOBALS_HTTP%%
    %%SLOW_MAP%%
    %%CONF worker_log%%

    limit_req_zone $uri zone=one:1m rate=5r/s;

    server {
        listen 127.0.0.1:8080 http2;
        listen 127.0.0.1:8082;

        profile_endpoint on;

        location /text {
            gzip on;
        }

        location /loop {
            return 200 "$request_uri$slow";
        }

        location /small {
            gzip on;
        }

        location /proxy {
            gzip on;
            proxy_pass http://127.0.0.1:8081/wait=300/;
        }

        location /limited {
            limit_req zone=one burst=5;
            alias %%TESTDIR%%/small;
        }

%%LUA%%
    }
}
EOF

my $text = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 50000);
$t->write_file('text', $text);
$t->write_file('small', substr($text, 0, 30000));

run_upstream($t, 8081);
$t->run();

my $args = 'performance_bar=flamegraph&profile_format=speedscope';

my $busy = '/loopaaaaaaaaaaaaaa!';
my ($loop) = h2($busy);
my ($small) = h2('/small');

is($loop->body(), $busy, 'a request without a trigger is not captured');
is_clean($t);

# over the whole time, on other connections
my $load = $t->load($busy, port => 8082, clients => 2);


# gzip among nineteen streams of regular expressions, and the reverse

my ($p, @others) = among("/text?$args", ($busy) x 19);

is_attributed($p, 'map', 'gzip');
cmp_ok($p->profile('cpu')->weight_below(qr/^deflate/), '>',
       0.8 * $p->profile('cpu')->total(),
       'gzip: most CPU time is below deflate()');
is_sum($p, 'gzip');
same($loop, 'gzip', @others);
is_clean($t, 'gzip');

($p, @others) = among("/loopaaaaaaaaaaaaaaaaaaa!?$args", ('/small') x 19);

is_attributed($p, 'zlib', 'match');
cmp_ok(share_of($p, 'map'), '>', 0.8,
       'match: most CPU time is in regular expressions');
is_sum($p, 'match');
same($small, 'match', @others);
is_clean($t, 'match');

if ($lua) {
    ($p, @others) = among("/turns?$args", ('/small', $busy) x 10);

    is_attributed($p, 'zlib', 'turns');
    is_attributed($p, 'map', 'turns');
    cmp_ok(info($p)->{turns}, '>=', 20, 'turns: the request has many turns');
    cmp_ok(share_of($p, 'lua'), '>', 0.8, 'turns: most CPU time is in Lua');
    is_sum($p, 'turns');
    is_clean($t, 'turns');
}


# an upstream

($p, @others) = among("/proxy?$args", ($busy) x 19);

is_attributed($p, 'map', 'proxy');
cmp_ok(waiting($p), '>', 0.28, 'proxy: the profile shows the wait');
cmp_ok(running($p), '<', 0.1, 'proxy: the request hardly runs');
is_sum($p, 'proxy');
same($loop, 'proxy', @others);
is_clean($t, 'proxy');


# a body in many frames

($p, @others) = among([ "/proxy?$args", 'x' x 200000 ], ($busy) x 19);

is_attributed($p, 'map', 'body');
cmp_ok(waiting($p), '>', 0.28, 'body: the profile shows the wait');
cmp_ok(running($p), '<', 0.1, 'body: the request hardly runs');
same($loop, 'body', @others);
is_clean($t, 'body');


# the delay of a stream is a timer of the stream

h2('/limited') for 1 .. 2;
($p, @others) = among("/limited?$args", ($busy) x 5);

is_attributed($p, 'map', 'limit_req');
cmp_ok(waiting($p), '>', 0.1, 'limit_req: the profile shows the wait');
cmp_ok(running($p), '<', 0.05, 'limit_req: the request hardly runs');
same($loop, 'limit_req', @others);
is_clean($t, 'limit_req');


# all streams are captured

my @all = h2(map { ("/text?$args", "/proxy?$args") } 1 .. 4);

is_attributed(ProfileTest::Profile->new($all[$_]), 'map',
              "captured together, $_") for 0 .. $#all;
is_clean($t, 'captured together');


# The client resets the captured stream and keeps the others.  Then it closes
# the connection without a GOAWAY.

@others = h2(cancel => "/proxy?$args", ($busy) x 10);
same($loop, 'reset', @others);
is_clean($t, 'reset');

h2(leave => "/proxy?$args", ($busy) x 10);
is_clean($t, 'left');

my $gone = () = $t->read_log('access.log') =~ m!/proxy\S* HTTP/2\.0" 499 !g;
is($gone, 2, 'two captured requests are logged with status 499');
is($load->stop()->{failed}, 0,
   'requests of other connections are served meanwhile');

is((h2($busy))[0]->body(), $busy, 'a new connection is served afterwards');


# returns the profile of the first request, and the responses to the others

sub among {
    my ($first, @others) = @_;

    # the first stream is not captured: its request may arrive before the others

    my @half = splice(@others, 0, @others / 2);
    my @got = h2(@half, $first, @others);
    my ($response) = splice(@got, scalar @half, 1);

    return (ProfileTest::Profile->new($response), @got);
}


sub same {
    my ($want, $name, @got) = @_;

    my @wrong = grep { plain($_) ne plain($want) } @got;

    is("@wrong", '', "$name: requests of other streams get the same response");
}


# Sends all requests of one connection at once; returns the responses as if
# HTTP/1.1 had brought them.  A request is a URI, or a URI and a body.
#
# cancel   the first request is reset after a while, and has no response
# leave    the connection is closed after a while, no request has a response

sub h2 {
    my @requests = @_;
    my $how = $requests[0] =~ /^(?:cancel|leave)$/ ? shift @requests : '';

    my $client = Protocol::HTTP2::Client->new(keepalive => 1);
    my @got;

    for my $i (0 .. $#requests) {
        my ($uri, $body) = ref $requests[$i] ? @{$requests[$i]}
                                             : ($requests[$i]);

        $client->request(
            ':scheme' => 'http',
            ':authority' => 'localhost',
            ':path' => $uri,
            ':method' => defined $body ? 'POST' : 'GET',
            headers => [ 'accept-encoding' => 'gzip' ],
            defined $body ? (data => $body) : (),
            on_done => sub { $got[$i] = as_http1(@_) },
            on_error => sub {
                $got[$i] = ProfileTest::Response->new('', "reset: @_");
            },
        );
    }

    my $s = IO::Socket::INET->new(Proto => 'tcp', PeerAddr => '127.0.0.1',
                                  PeerPort => port(8080))
        or die "connect: $!\n";

    my $select = IO::Select->new($s);
    my $end = time() + 20;
    my $act = time() + 0.1;

    while ((grep { defined } @got) < @requests && time() < $end) {

        if ($how && time() > $act) {
            return if $how eq 'leave';

            # CANCEL, on the stream of the first request
            $client->{con}->stream_error(1, 8);
            $got[0] = 'cancelled';
            $how = '';
        }

        while (my $frame = $client->next_frame()) {
            $s->blocking(1);
            syswrite($s, $frame);
        }

        next unless $select->can_read(0.02);
        sysread($s, my $buf, 65536) or last;

        $client->feed($buf);
    }

    shift @got if @got && $got[0] eq 'cancelled';

    return map { $_ // ProfileTest::Response->new('', 'no response') } @got;
}


sub as_http1 {
    my ($headers, $body) = @_;

    my ($head, $status) = ('', 0);

    while (my ($name, $value) = splice(@$headers, 0, 2)) {
        $status = $value if $name eq ':status';
        $head .= "$name: $value\r\n" unless $name =~ /^:/;
    }

    return ProfileTest::Response->new("HTTP/1.1 $status X\r\n$head\r\n"
                                      . ($body // ''));
}
