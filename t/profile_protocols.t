#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside
#
# Servers of stream {} and mail {} in the worker that serves http {}: their
# connections work while requests and workers are captured, profiles of requests
# have none of their code, and requests are not charged for their CPU time.

use strict;
use warnings;

use IO::Socket::INET;
use List::Util qw/ sum0 /;
use Test::More;

use ProfileTest;
use ProfileTest::Process;
use ProfileTest::Profile;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ gzip mail proxy stream /);

$t->conf(<<'EOF', main => <<'EOM');
profile_accounting on;

log_format times '$uri $profile_cpu_time';
access_log %%TESTDIR%%/times.log times;

gzip_types text/plain;
gzip_comp_level 9;
default_type text/plain;
keepalive_requests 1000000;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    # some tenths of a millisecond
    location /small {
        gzip on;
    }

    # through the stream server of the same worker
    location /streamed/ {
        proxy_pass http://127.0.0.1:8081/;
    }

    location /-/profile/ {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8082;

    location / {
        gzip on;
    }

    location /auth {
        add_header Auth-Status "no such user";
        return 200;
    }
}
EOF
stream {
    server {
        listen 127.0.0.1:8081;
        proxy_pass 127.0.0.1:8082;
    }

    server {
        listen 127.0.0.1:8083;
        proxy_pass 127.0.0.1:8084;
    }
}

mail {
    auth_http 127.0.0.1:8082/auth;
    server_name localhost;

    server {
        listen 127.0.0.1:8085;
        protocol imap;
    }
}
EOM

$t->write_file('text', join('', map { "line $_ of many\n" } 1 .. 20000));
$t->write_file('small', join('', map { "line $_ of some\n" } 1 .. 500));

# sends back what it receives
run_server($t, 8084, sub {
    my ($c) = @_;
    my $buf;
    syswrite($c, $buf) while sysread($c, $buf, 65536);
});

$t->run();

my $text = $t->read_file('text');


# one request, whose upstream is a stream server of the same worker

my $p = profile_get('/streamed/text',
                    headers => [ 'Accept-Encoding: gzip' ]);
my $wall = $p->profile('wall');

cmp_ok($wall->weight_below(qr/^upstream /), '>', 0,
       'the profile of a request has its upstream');
is($wall->weight_below(qr/^ngx_stream_/), 0,
   'the profile of a request has no code of the stream server');
is($wall->weight_below(qr/deflate/), 0,
   'the profile of a request has no code of the request behind it');


# a capture of the worker

my $load = $t->load('/text', port => 8081, clients => 2);
my $capture = http_get('/-/profile/cpu?seconds=2&format=speedscope',
                       start => 1);
my @answers = map { imap() } 1 .. 20;

$p = ProfileTest::Profile->new(http_end($capture, timeout => 60));

is_deeply($load->stop()->{failed}, 0, 'no request through the stream failed');
is_deeply(\@answers, [ (imap_expected()) x 20 ],
          'mail clients get their answers during a capture');
is(http_get('/text', port => 8081)->body(), $text,
   'the stream server sends what its upstream sends');
cmp_ok($p->profile('cpu')->weight_below(qr/^ngx_stream_/), '>', 0,
       'the profile of the worker has the stream server');


# CPU time

my ($plain) = cpu_of_requests(0);
my ($beside, $worker) = cpu_of_requests(1);

cmp_ok($worker, '>', 0.3, 'the stream server used CPU time');
# caches of the processor are cold after the stream's data

cmp_ok($beside, '<', 3.5 * $plain,
       "requests beside a stream: $beside s, and without: $plain s");

$t->reload();
is(imap(), imap_expected(), 'mail works after a reload');


# seconds of the requests in the log, and of the worker
sub cpu_of_requests {
    my ($echo) = @_;

    my $from = length $t->read_file('times.log');
    my ($pid) = $t->worker_pids();
    my $before = process_cpu($pid);
    my $socket = ProfileTest::HTTP::connect_to(8080);

    for (1 .. 300) {
        echo() if $echo;
        http_get('/small', socket => $socket, keepalive => 1,
                 headers => [ 'Accept-Encoding: gzip' ]);
    }

    my @lines;

    wait_for(sub {
        @lines = grep { m{^/small } }
                      split /\n/, substr($t->read_file('times.log'), $from);
        return @lines == 300;
    });

    return (sum0(map { (split / /)[1] } @lines), process_cpu($pid) - $before);
}


# a megabyte through the stream server, and back
sub echo {
    my $s = ProfileTest::HTTP::connect_to(8083) or die "no stream server\n";
    my $block = 'x' x 65536;

    for (1 .. 16) {
        my ($left, $buf) = (length $block, '');

        syswrite($s, $block);

        while ($left > 0) {
            my $n = sysread($s, $buf, 65536) or die "the stream ended\n";
            $left -= $n;
        }
    }
}


# greeting, capabilities and the answer to a login
sub imap {
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => port(8085))
        or return 'no mail server';
    my $out = <$s>;

    print $s "a NOOP\r\n";
    $out .= <$s>;
    print $s "b LOGIN user secret\r\n";

    return $out . (<$s> // '');
}


sub imap_expected {
    return "* OK IMAP4 ready\r\na OK completed\r\nb NO no such user\r\n";
}
