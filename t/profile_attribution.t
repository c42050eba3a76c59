#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop capture
# runs: beside
#
# One worker, one captured request, and eight clients that keep the worker
# busy: the profile contains no code of their requests.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest::Attribution;
use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ debug gzip lua proxy /)->plan(27);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
%%CONF worker_log%%

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /text {
        gzip on;
    }

    location /small {
        gzip on;
    }

    # ten megabytes in pieces
    location /pieces {
        gzip on;
        proxy_pass http://127.0.0.1:8081;
        proxy_buffer_size 16k;
        proxy_buffers 64 16k;
    }

    # runs for about a millisecond
    location /loop {
        content_by_lua_block {
            local x = 0
            for i = 1, 50000 do
                x = x + math.sin(i)
            end
            ngx.print("done")
        }
    }

    # the same work, in many turns
    location /loops {
        content_by_lua_block {
            local x = 0
            for i = 1, 100 do
                for k = 1, 400000 do
                    x = x + math.sin(k)
                end
                ngx.sleep(0.001)
            end
            ngx.print("done")
        }
    }

    # keeps the worker busy, and reports the time by two clocks
    location /busy {
        content_by_lua_block {
            ngx.update_time()
            local wall, cpu = ngx.now(), os.clock()
            local x = 0
            for i = 1, 20000000 do
                x = x + math.sin(i)
            end
            ngx.update_time()
            local f = io.open("%%TESTDIR%%/busy", "w")
            f:write(ngx.now() - wall, " ", os.clock() - cpu)
            f:close()
            ngx.print("done")
        }
    }
}
EOF

# compressible, and new all the time

my $text = '';

for (my $i = 0; length($text) < 20e6; $i++) {
    $text .= sprintf("line %d: the quick brown %x jumps over %s\n", $i,
                     $i * 2654435761 % 4294967296, 'x' x ($i % 23));
}

$t->write_file('text', $text);
$t->write_file('small', substr($text, 0, 30000));

run_server($t, 8081, sub { pieces(@_, substr($text, 0, 10e6)) });
$t->run()->wait_for_socket(8081);

my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);

my $small = http_get('/small', @gzip)->body();

is_clean($t);


# one turn: nginx sends the reply without waiting

my $load = $t->load('/loop', clients => 8);
my $p = profile_get('/text', @gzip);
served($load->stop(), 'one turn');

my $cpu = $p->profile('cpu');

cmp_ok(info($p)->{samples}, '>=', 200, 'one turn: enough samples are taken');
cmp_ok(info($p)->{frequency_asked}, '==', 1000,
       'one turn: the frequency is the default');
cmp_ok($cpu->weight_below(qr/^deflate/), '>', 0.9 * $cpu->total(),
       'one turn: the time is in deflate()');
is_attributed($p, 'lua', 'one turn');
is_sum($p, 'one turn');
is_clean($t, 'one turn');


# many turns, between which the worker runs other requests

$load = $t->load('/loop', clients => 8);
$p = profile_get('/pieces', @gzip);
served($load->stop(), 'turns');

$cpu = $p->profile('cpu');

cmp_ok(info($p)->{turns}, '>=', 10, 'turns: the request has many turns');
cmp_ok(due($p), '>=', 200, 'turns: enough samples are due');
cmp_ok($cpu->weight_below(qr/^deflate/), '>', 0.9 * $cpu->total(),
       'turns: the time is in deflate()');
is_attributed($p, 'lua', 'turns');
is_sum($p, 'turns');
is_clean($t, 'turns');


# the other way round

$load = $t->load('/small', clients => 8, @gzip);
$p = profile_get('/loops');
served($load->stop(), 'reverse');

cmp_ok(info($p)->{turns}, '>=', 100, 'reverse: the request has many turns');
cmp_ok(due($p), '>=', 200, 'reverse: enough samples are due');
cmp_ok(share_of($p, 'lua'), '>', 0.9, 'reverse: the time is in Lua');
is_attributed($p, 'zlib', 'reverse');
is_sum($p, 'reverse');
is_clean($t, 'reverse');


# two captures at the same time

my $uri = '?performance_bar=flamegraph&profile_format=speedscope';
my $one = http("GET /pieces$uri HTTP/1.1\r\nHost: localhost\r\n"
               . "Accept-Encoding: gzip\r\nConnection: close\r\n\r\n",
               start => 1);
my $two = http("GET /loops$uri HTTP/1.1\r\nHost: localhost\r\n"
               . "Connection: close\r\n\r\n", start => 1);

$two = ProfileTest::Profile->new(http_end($two));
$one = ProfileTest::Profile->new(http_end($one));

is_attributed($one, 'lua', 'two captures, gzip');
is_attributed($two, 'zlib', 'two captures, Lua');
is_clean($t, 'two captures');


# The time of the turns, and their CPU time, against clocks that the request
# itself reads.  Both pairs are of the same time: what other processes take from
# the worker is in both.

$p = profile_get('/busy');

my ($wall, $used) = split / /, $t->read_file('busy');
my $took = running($p);
$cpu = info($p)->{cpu} / 1e9;

ok(about($took, $wall, 0.05),
   'the time of the turns is the time of the script')
    or diag("$took s in the profile, $wall s in the script");
ok(about($cpu, $used, 0.05),
   'the CPU time of the turns is the CPU time of the script')
    or diag("$cpu s in the profile, $used s in the script");

is(http_get('/small', @gzip)->body(), $small,
   'other requests are served as before');


sub served {
    my ($result, $name) = @_;

    ok($result->{failed} == 0 && $result->{requests} > 8,
       "$name: other requests are served")
        or diag(explain($result));
}


# samples that were taken, or came too late on a busy machine

sub due {
    my ($p) = @_;
    return info($p)->{samples} + info($p)->{lost_overrun};
}


# an upstream that sends fifty pieces with a break before each

sub pieces {
    my ($client, $body) = @_;

    read_request($client) // return;

    syswrite($client, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                      . "Connection: close\r\n\r\n");

    my $size = int(length($body) / 50);

    for (my $at = 0; $at < length($body); $at += $size) {
        my $piece = substr($body, $at, $size);

        sleep(0.02);

        while (length($piece)) {
            my $n = syswrite($client, $piece) or last;
            substr($piece, 0, $n, '');
        }
    }
}
