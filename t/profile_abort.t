#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# Captured requests that fail: the upstream refuses, fails midway or does not
# respond, or the client disconnects.  The client gets a profile of the part
# that ran, and no capture, timer or descriptor remains.

use strict;
use warnings;

use Socket qw/ SOL_SOCKET SO_LINGER /;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ debug gzip map proxy rewrite ssi /)
                          ->plan(15 * 7 + 21);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
%%SLOW_MAP%%
error_log %%TESTDIR%%/error.log info;

log_format status '$uri $status';

gzip_comp_level 9;
gzip_types text/plain;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;
    access_log %%TESTDIR%%/status.log status;

    location /loop {
        access_log off;
        return 200 "done$slow";
    }

    location / {
        proxy_read_timeout 300ms;
        proxy_pass http://127.0.0.1:8081;
    }

    location /gzip/ {
        gzip on;
        proxy_read_timeout 300ms;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /unbuffered/ {
        proxy_buffering off;
        proxy_read_timeout 300ms;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /unbuffered_gzip/ {
        gzip on;
        proxy_buffering off;
        proxy_read_timeout 300ms;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /ignore/ {
        proxy_ignore_client_abort on;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /refused {
        proxy_pass http://127.0.0.1:8082;
    }

    location /none {
        root %%TESTDIR%%/nowhere;
    }

    location /text {
        gzip on;
    }

    location /impatient {
        send_timeout 1ms;
        rewrite ^ /text break;
    }

    location /ssi {
        ssi on;
        ssi_types text/plain;
    }
}
EOF

my $text = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 15000);

$t->write_file('text', $text);
$t->write_file('ssi', '<!--#include virtual="/midway" -->'
                      . '<!--#include virtual="/reset" --> end');

run_server($t, 8081, sub { answer($_[0]) });
port(8082);

$t->run();

my $busy = '/loopaaaaaaaaaaaaaa!';
my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);

is(http_get($busy)->body(), 'done', 'a request without a trigger is served');
is_clean($t);

my $load = $t->load($busy, clients => 2);


# upstreams that fail

is_captured($t, 'not found', '/none', status => 404);
is_captured($t, 'refused', '/refused', status => 502);
is_captured($t, 'closed', '/closed', status => 502);
is_captured($t, 'reset', '/reset', status => 502);
is_captured($t, 'HTTP/0.9', '/nonsense', status => 9);
is_captured($t, 'invalid', '/invalid', status => 502);
is_captured($t, 'silent', '/silent', status => 504, waits => 0.3);

is_captured($t, 'midway', '/midway', waits => 0.1, cut => 1);
is_captured($t, 'midway, gzip', '/gzip/midway', @gzip, waits => 0.1, cut => 1);
is_captured($t, 'midway, unbuffered', '/unbuffered/midway', waits => 0.1, cut => 1);
is_captured($t, 'midway, unbuffered, gzip', '/unbuffered_gzip/midway', @gzip,
            waits => 0.1, cut => 1);
is_captured($t, 'stalled', '/stalled', waits => 0.3, cut => 1);
is_captured($t, 'stalled, unbuffered', '/unbuffered/stalled', waits => 0.3, cut => 1);
is_captured($t, 'in a subrequest', '/ssi', waits => 0.1);


# making the profile takes longer than the client may, and is not its fault

is_captured($t, 'send_timeout', '/impatient');


# clients that leave: in the request, while it waits, when the profile is
# being made, while it is sent

my $args = 'performance_bar=flamegraph&profile_format=speedscope';

for my $how (qw/ close reset /) {

    for my $uri (qw( /slow /gzip/slow /unbuffered/slow /ignore/slow )) {
        my $s = http("GET $uri?$args HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     start => 1);
        sleep(0.05);
        leave($s, $how);
        is_clean($t, "$how: $uri");
    }

    my $s = http("POST /slow?$args HTTP/1.1\r\nHost: localhost\r\n"
                 . "Content-Length: 100\r\n\r\n0123", start => 1);
    sleep(0.05);
    leave($s, $how);
    is_clean($t, "$how: in the body");

    # one long turn; the profile is sent in small pieces

    for my $i (1 .. 10) {
        $s = http("GET /text?$args HTTP/1.1\r\nHost: localhost\r\n"
                  . "Accept-Encoding: gzip\r\n\r\n", start => 1);
        sleep(0.004 * $i);
        leave($s, $how);
    }

    is_clean($t, "$how: any time");

    # a client that has said all it has to say is still there

    $s = http("GET /slow?$args HTTP/1.0\r\n\r\n", start => 1);
    shutdown($s, 1) if $how eq 'close';
    sleep(0.3);
    close $s;
    is_clean($t, "$how: half");
}

my $log = $t->read_log('status.log');
my $gone = () = $log =~ m!^\S*/slow 499$!mg;

cmp_ok($gone, '>=', 6, 'nginx has seen clients leave');


# many clients disconnect at the same time; some of them have an answer

my @s = map {
    http("GET /slow?$args HTTP/1.0\r\n\r\n", start => 1)
} 1 .. 8;

sleep(0.05);
leave($s[$_], 'reset') for 0, 2, 4, 6;

my @p = map { eval { ProfileTest::Profile->new(http_end($_)) } } @s[1, 3, 5, 7];

is(scalar(grep { $_ } @p), 4, 'clients that wait get their answers');
is(scalar(grep { $_ && waiting($_) > 0.15 } @p), 4,
   'the profiles show the wait');
is_clean($t, 'some have left');

is($load->stop()->{failed}, 0, 'other requests are served');
is(http_get($busy)->body(), 'done', 'later requests are served as before');


sub leave {
    my ($s, $how) = @_;

    setsockopt($s, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0))
        if $how eq 'reset';
    close $s;
}


sub answer {
    my ($s) = @_;

    my $request = '';

    while ($request !~ /\r\n\r\n/) {
        sysread($s, $request, 65536, length($request)) or return;
    }

    my ($what) = $request =~ m{^\S+ /(\w+)};
    my $head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
               . "Content-Length: 40000\r\n\r\n";
    my $half = 'half of it, ' x 1000;

    if ($what eq 'reset') {
        leave($s, 'reset');

    } elsif ($what eq 'nonsense') {
        syswrite($s, "\0\1\2 nonsense\r\n\r\n");

    } elsif ($what eq 'invalid') {
        syswrite($s, "HTTP/1.1 200 OK\r\n\0: nonsense\r\n\r\n");

    } elsif ($what eq 'silent') {
        sleep(1);

    } elsif ($what eq 'midway') {
        syswrite($s, $head . $half);
        sleep(0.1);

    } elsif ($what eq 'stalled') {
        syswrite($s, $head . $half);
        sleep(1);

    } elsif ($what eq 'slow') {
        sleep(0.1);
        syswrite($s, $head . 'x' x 20000);
        sleep(0.1);
        syswrite($s, 'x' x 20000);
    }
}
