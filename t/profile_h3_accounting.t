#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: quiet
#
# Accounting of every request of HTTP/3: the times of streams, and of clients
# that leave, and the worker's CPU time.

use strict;
use warnings;

use List::Util qw/ sum0 /;
use Test::More;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::H3;
use ProfileTest::Upstream;

my $t = h3_test(qw/ map proxy rewrite /);

$t->write_certificate('localhost');

$t->conf(<<'EOF');
%%SLOW_MAP%%

log_format times '$request_uri rt=$request_time cpu=$profile_cpu_time '
                 'wait=$profile_wait_time stall=$profile_stall_time '
                 'turns=$profile_turns protocol=$server_protocol '
                 'timing=$profile_server_timing';
access_log %%TESTDIR%%/times.log times;

ssl_certificate localhost.crt;
ssl_certificate_key localhost.key;

profile_accounting on;

server {
    listen 127.0.0.1:8443 quic;

    location / { }

    location /loop {
        return 200 "$uri$slow";
    }

    location /proxy {
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }

    location /held {
        proxy_pass http://127.0.0.1:8081/wait=20000/;
    }
}
EOF

$t->write_file('small', 'x' x 30000);
run_upstream($t, 8081);
$t->run();

my $busy = '/loopaaaaaaaaaaaaaa!';


# streams of one connection

my @mixed = ('/small?m', '/proxy?m', "$busy?m") x 6;
my @got = h3($t, \@mixed);

is(scalar(grep { $_->status() == 200 } @got), @mixed, 'all streams are served');

my @lines = lines(qr/\?m\b/, scalar @mixed);
is(scalar(grep { $_->{protocol} eq 'HTTP/3.0' } @lines), @mixed,
   'all requests are logged');

# nginx's clock is read by polls, which may precede the worker's code by a while

my @off = sort { $a <=> $b } map { abs($_->{total} - $_->{rt}) } @lines;
cmp_ok($off[@off / 2], '<', 0.0011, 'the times add up to $request_time');

my ($least) = sort { $a <=> $b } map { $_->{wait} + $_->{stall} }
              grep { $_->{uri} =~ m{^/proxy} } @lines;
cmp_ok($least, '>', 0.28, 'proxied requests wait');


# QUIC runs the streams of a connection that ends

h3($t, [ $busy, '/held?left' ], quit => 1);

my ($l) = lines(qr!^/held\?left!, 1);
cmp_ok(abs($l->{total} - $l->{rt}), '<', 0.02,
       'a request without a client has its whole time');
cmp_ok($l->{turns}, '>=', 2, 'the end of such a request is a turn');


# The sum over all requests; handshakes are before any request.  The CPU time of
# a short turn is an estimate, which the next window of 10 ms corrects.  So the
# sum is wrong by a part of the last window, and the requests last long enough
# that this part is little.

my $before = (worker_cpu($t))[0];

h3($t, [ ("$busy?sum") x 60 ]) for 1 .. 20;
@lines = lines(qr/\?sum/, 1200);

my $used = (worker_cpu($t))[0] - $before;
my $cpu = sum0(map { $_->{cpu} } @lines);

is(scalar @lines, 1200, 'all requests of the sum are logged');
cmp_ok($cpu, '>', 0.9 * $used, 'the sum contains the CPU time of the worker');
cmp_ok($cpu, '<', 1.01 * $used, 'the sum does not exceed the CPU time');


# waits for n lines of the log with such URIs, and returns them
sub lines {
    my ($uri, $n) = @_;
    my @lines;

    wait_for(sub {
        @lines = grep { $_->{uri} =~ $uri }
                 map { +{ / (\w+)=(\S+)/g, uri => s/ .*//r,
                          total => /total;dur=([\d.]+)/ ? $1 / 1000 : 0 } }
                 split /\n/, $t->read_file('times.log');
        @lines >= $n;
    });

    return @lines;
}
