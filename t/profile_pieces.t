#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: call console
# runs: beside
#
# Long responses of the module are sent in pieces, so other events do not wait
# for them: a profile instead of the response, a stored profile, metrics.  Over
# HTTP/1.1 and HTTP/2, with and without TLS; to clients that read slowly, leave,
# or send the next request.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

use constant PIECE => 256 * 1024;
use constant LOCATIONS => 200;

my $t = ProfileTest->new()->has(qw/ debug ssi ssl v2 /)
                          ->has_program(qw/ curl openssl /)->plan(38);

my $locations = join "\n", map { "location /l$_/ { return 204; }" }
                               1 .. LOCATIONS;

$t->conf(<<"EOF");
error_log %%TESTDIR%%/debug.log debug;

profile_zone profiles:32m;

server {
    %%CONF protocols%%

    location /many.html { ssi on; }
    location /part { return 200 part; }
    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }

    location /limited/ {
        limit_rate 4m;
        location /limited/-/ { profile_console; }
    }

    $locations
}
EOF

$t->write_certificate('localhost');
$t->write_file('many.html', '<!--#include virtual="/part" -->' x 2500);
$t->run();

# the profile of a request with many subrequests has many different stacks
my $many = '/many.html?profile_frequency=10000&profile_format=speedscope'
           . '&performance_bar=';

http_get("/l$_/") for 1 .. LOCATIONS;


# a stored profile

my $id = http_get("${many}record")->header('X-Profile-Id');

wait_for(sub { http_get("/-/profile/p/$id")->status() == 200 });

my $url = "/-/profile/p/$id/speedscope";
my $profile = http_get($url);
my $text = $profile->body();

cmp_ok(length $text, '>', 4 * PIECE, 'a stored profile needs several pieces');
is(length $text, $profile->header('Content-Length'),
   'a stored profile is complete');
like($text, qr/\]\}\n\z/, 'a stored profile has its end');

for my $protocol (sort keys %PROTOCOLS) {
    my ($body, $pieces) = curl($protocol, $url);

    ok($body eq $text, "$protocol: a stored profile is the same");
    cmp_ok($pieces, '<=', PIECE + 1024,
           "$protocol: a stored profile is sent in pieces");

    ($body, $pieces) = curl($protocol, '/metrics');

    cmp_ok(length $body, '>', 2 * PIECE,
           "$protocol: metrics need several pieces");
    like($body, qr/\S \d+\n\z/, "$protocol: metrics have their end");
    cmp_ok($pieces, '<=', PIECE + 1024,
           "$protocol: metrics are sent in pieces");

    ($body, $pieces) = curl($protocol, "${many}flamegraph");

    cmp_ok(length $body, '>', 2 * PIECE,
           "$protocol: a profile that is the response needs several pieces");
    cmp_ok($pieces, '<=', PIECE + 1024,
           "$protocol: a profile that is the response is sent in pieces");
}


# several requests on one connection

my $s = http_get($url, keepalive => 1, start => 1);
my $one = http_end($s);
my $two = http_get($url, socket => $s);

ok($one->body() eq $text && $two->body() eq $text,
   'the connection serves the next request after a long response');

is(http_head($url)->body(), '', 'HEAD has no body');


# a client that reads slowly

$s = http_get($url, start => 1);

my ($got, $reads) = ('', 0);

while (sysread($s, $got, 20_000, length $got)) {
    sleep 0.001;
    is(http_get('/l1/')->status(), 204,
       'another client is served during a long response') if ++$reads == 10;
}

ok($got =~ /\r\n\r\n(.*)/s && $1 eq $text,
   'a client that reads slowly gets all pieces');

ok(http_get("/limited/-/p/$id/speedscope")->body() eq $text,
   'a limited rate does not change a long response');


# clients that leave

for (1 .. 20) {
    $s = http_get($url, start => 1);
    sysread($s, $got, 1 + int rand 300_000);
    close $s;
}

ok(http_get($url)->body() eq $text, 'clients that leave change nothing');

$t->stop();

unlike($t->read_log('debug.log'), qr/\[(?:alert|crit|emerg)\]/,
       'there are no alerts');


# the response to a request, and the longest piece that was written for it

sub curl {
    my ($protocol, $uri) = @_;

    my ($scheme, $port, @options) = @{$PROTOCOLS{$protocol}};
    my $from = length $t->read_log('debug.log');

    my (undef, $body) = $t->command('curl', '-sk', @options,
                           "$scheme://127.0.0.1:" . port($port) . $uri);

    my $longest = 0;
    my $log = substr $t->read_log('debug.log'), $from;

    while ($log =~ /http write filter: l:\d f:\d s:(\d+)/g) {
        $longest = $1 if $1 > $longest;
    }

    die "no writes in the log\n" if !$longest;

    return ($body, $longest);
}
