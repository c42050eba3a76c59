#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: t
# runs: beside
#
# The library of the tests: it reads responses right, and a test fails when
# nginx crashes, logs an alert or does not stop, though it made no test of
# that.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use File::Temp;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Response;

my $lib = dirname(__FILE__) . '/lib';


# responses

my $r = response("HTTP/1.1 200 OK\r\nA: 1\r\na:2 \r\nContent-Length: 3\r\n"
                 . "\r\nabc");

is($r->status(), 200, 'a response has its status');
is($r->header('a'), 1, 'header() returns the first value');
is_deeply([ $r->header('A') ], [ 1, 2 ],
          'header() returns all values in list context');
is($r->body(), 'abc', 'a response has its body');
like($r, qr/^HTTP.*abc$/s, 'a response is a string as well');

$r = response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\nx");

is($r->status(), 404, 'an interim response is skipped');

$r = response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
              . "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n");

is($r->body(), 'abcde', 'chunks are joined');

is(response('')->status(), 0, 'the status of an empty response is 0');

my $head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";

is(complete("${head}abcHTTP/1.1"), length("${head}abc"),
   'a response ends after its length');
is(complete("${head}ab"), undef, 'a short body does not end a response');
is(complete($head, 'HEAD'), length($head),
   'a response to HEAD ends after its headers');
is(complete("HTTP/1.1 304 Not Modified\r\n\r\n"), 29,
   'a response 304 ends after its headers');
is(complete("HTTP/1.0 200 OK\r\n\r\nabc"), undef,
   'without a length the response has no known end');

$head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

is(complete("${head}1\r\na\r\n0\r\n\r\nHTTP"),
   length("${head}1\r\na\r\n0\r\n\r\n"), 'the last chunk ends a response');
is(complete("${head}1\r\na\r\n0\r\n"), undef,
   'a missing chunk does not end a response');


# failures

my $passes = test('is(http_get("/")->status(), 200, "get");');

is($passes->{status}, 0, 'a good test passes') or diag($passes->{out});
is($passes->{out}, "ok 1 - get\nok 2 - no alerts\nok 3 - no sanitizer errors\n"
                   . "ok 4 - nginx stopped\n1..4\n",
   'the tests that all files have');

my $crash = test('my ($pid) = $t->worker_pids(); kill "SEGV", $pid;'
                 . 'wait_for(sub { $t->read_log() =~ /\d exited/ });');

isnt($crash->{status}, 0, 'a crash fails');

# a sanitizer reports it first
like($crash->{out}, qr/^not ok \d - no (?:alerts|sanitizer errors)$/m,
     'a crash is seen');

my $allowed = test('$t->allow(qr/signal 9/); my ($pid) = $t->worker_pids();'
                   . 'kill "KILL", $pid;'
                   . 'wait_for(sub { $t->read_log() =~ /exited on/ });');

is($allowed->{status}, 0, 'an alert that was allowed') or diag($allowed->{out});

my $hangs = test('kill "STOP", $t->worker_pids();', TEST_NGINX_TIMEOUT => 1);

isnt($hangs->{status}, 0, 'a worker that does not stop fails');
like($hangs->{out}, qr/^not ok \d - nginx stopped$/m, 'stop is a test');

my $report = test('$t->write_file("sanitizer.1", "==1==ERROR: leak\n");');

isnt($report->{status}, 0, 'a report of a sanitizer fails');
like($report->{out}, qr/^not ok \d - no sanitizer errors$/m,
     'sanitizers are a test');

my $events = test('like($t->read_file("nginx.conf"),'
                  . ' qr/^events {\s*accept_mutex on;/m, "events");',
                  TEST_NGINX_GLOBALS_EVENTS => 'accept_mutex on;');

is($events->{status}, 0, 'directives of the environment for the events block')
    or diag($events->{out});

my $own = test('$t->conf("", events => "accept_mutex off;");'
               . 'unlike($t->read_file("nginx.conf"), qr/accept_mutex on;/,'
               . ' "events");',
               TEST_NGINX_GLOBALS_EVENTS => 'accept_mutex on;');

is($own->{status}, 0, 'a test keeps its own value of such a directive')
    or diag($own->{out});

my $proxied = test('is(http_get("/")->status(), 200, "with the header");'
                   . 'my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1",'
                   . ' PeerPort => port(8080));'
                   . 'is(http_get("/", socket => $s)->status(), 0, "without");',
                   TEST_NGINX_PROXY_PROTOCOL => 1);

is($proxied->{status}, 0, 'requests with the header of the proxy protocol')
    or diag($proxied->{out});

my $dies = test('die "enough\n";');

isnt($dies->{status}, 0, 'a test that dies fails');

done_testing();


sub response {
    my ($raw) = @_;
    return ProfileTest::Response->new($raw, undef, 'GET');
}


sub complete {
    my ($s, $method) = @_;
    return ProfileTest::Response::complete($s, $method || 'GET');
}


# a test file with this code, in a process of its own
sub test {
    my ($code, %env) = @_;

    my $file = File::Temp->new(SUFFIX => '.t');

    print $file <<"EOF2";
use strict;
use warnings;
use lib '$lib';
use Test::More;
use ProfileTest;

my \$t = ProfileTest->new();

\$t->conf(<<'EOF');
server {
    listen 127.0.0.1:8080;
    location / { return 200; }
}
EOF

\$t->run();

$code
EOF2

    close $file;

    local %ENV = (%ENV, %env);
    my $out = `$^X $file 2>&1`;

    return { status => $?, out => $out };
}
