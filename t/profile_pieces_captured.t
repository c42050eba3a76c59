#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: call
# runs: beside
#
# Long responses of the module while their own requests are captured: recorded,
# kept, captured with all requests of an endpoint or with the workers.  The
# capture must not hold up the rest of the response.  Over HTTP/1.1 and HTTP/2;
# to clients that read slowly, and in a worker that shuts down.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

use constant PIECE => 256 * 1024;
use constant LOCATIONS => 200;

my $t = ProfileTest->new()->has(qw/ ssi v2 /)->has_program(qw/ curl /);

my $locations = join "\n", map { "location /l$_/ { return 204; }" }
                               1 .. LOCATIONS;

# send_timeout is longer than the clients wait

$t->conf(<<"EOF");
profile_zone profiles:64m;
send_timeout 60s;

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8082 http2;

    profile_endpoint on;
    profile_keep \$arg_keep rate=1000;
    profile_buffer 8m;

    location /many.html { ssi on; }
    location /part { return 200 part; }
    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }

    location = /brief {
        profile_metrics;
        profile_timeout 200ms;
    }

    $locations
}
EOF

$t->write_file('many.html', '<!--#include virtual="/part" -->' x 9000);
$t->run();

http_get("/l$_/") for 1 .. LOCATIONS;

my @ids = map {
    http_get('/many.html?profile_frequency=10000&performance_bar=record')
        ->header('X-Profile-Id')
} 1 .. 2;

ok(wait_for(sub { http_get("/-/profile/p/$ids[1]")->status() == 200 }),
   'a long profile is stored');

# enough profiles for a long list; a worker makes them one after the other

my $listed;

for my $n (1 .. 1000) {
    my $r = http_get("/l1/" . 'x' x 800 . '?performance_bar=record');
    my $id = $r->header('X-Profile-Id');

    next if $n % 10;

    wait_for(sub { http_get("/-/profile/p/$id")->status() == 200 });
    $listed = length http_get('/-/profile/profiles.json')->body();
    last if $listed > PIECE;
}

# long responses, by what they are; all of them are sent by the same function

my %long = (
    'metrics' => '/metrics',
    'the list of profiles' => '/-/profile/profiles.json',
    'a profile for speedscope' => "/-/profile/p/$ids[0]/speedscope",
);

for my $name (sort keys %long) {
    cmp_ok(length http_get($long{$name})->body(), '>', PIECE,
           "$name: a long response");
}

my %protocols = (
    'HTTP/1.1' => [ 8080, '--http1.1' ],
    'HTTP/2' => [ 8082, '--http2-prior-knowledge' ]
);

my %how = (
    'recorded' => 'performance_bar=record',
    'kept' => 'keep=1',
    'recorded and kept' => 'performance_bar=record&keep=1',
    'replaced' => 'performance_bar=flamegraph',
);

for my $name (sort keys %long) {
    for my $how (sort keys %how) {
        whole("$name, $how", $long{$name}, $how{$how});
    }
}

whole('metrics, recorded by a header', '/metrics', '', 'X-Profile: record');


# captures of others, of which the requests are a part

for my $capture ('wall?seconds=30&uri=/', 'cpu?seconds=30&uri=/',
                 'wall?seconds=30&location=/', 'object?seconds=30&uri=/',
                 'wall?seconds=30', 'cpu?seconds=30')
{
    my $s = http_get("/-/profile/$capture", start => 1);
    my $endpoint = $capture =~ /uri|location/;

    ok(wait_for(sub {
           my $now = decode_json(http_get('/-/profile/status.json')->body());
           return $endpoint ? grep { $_->{uri} =~ /status/ }
                                   @{$now->{captures}}
                            : 1;
       }), "$capture captures requests");

    for my $name (sort keys %long) {
        whole("$name, in $capture", $long{$name}, '');
    }

    whole("metrics, recorded in $capture", '/metrics',
          'performance_bar=record');

    close $s;
}


# clients that read slowly

for my $how ('', sort values %how) {
    next if $how =~ /flamegraph/;
    my $s = http_get("/metrics?$how", start => 1);

    sleep 0.3;
    my $r = http_end($s);
    is(length $r->body(), $r->header('Content-Length'),
       "a slow client gets all metrics with \"$how\"");
}

# the capture of the request ends while its response is sent

my $s = http_get('/brief?performance_bar=record', start => 1);
sleep 0.5;
my $r = http_end($s);
is(length $r->body(), $r->header('Content-Length'),
   'the end of the capture does not cut the response');
ok(wait_for(sub {
       http_get('/-/profile/p/' . $r->header('X-Profile-Id'))->status() == 200
   }), 'the profile of that capture is stored');


# a worker that shuts down sends the rest

for my $how ('performance_bar=record', 'keep=1') {
    my ($old) = $t->worker_pids();

    $s = http_get("/-/profile/p/$ids[0]/speedscope?$how", start => 1);
    sysread($s, my $first, 1000);

    $t->reload();

    my $rest = '';
    while (sysread($s, $rest, 100_000, length $rest)) { }

    my ($length) = $first =~ /Content-Length: (\d+)/;
    like($first . $rest, qr/\r\n\r\n.{$length}\z/s,
         "a worker that shuts down sends the rest with $how")
        if $length < 32767;
    is(length($first . $rest) - index($first, "\r\n\r\n") - 4, $length,
       "a worker that shuts down sends all of the response with $how");
    ok(wait_for(sub { !kill 0, $old }), "that worker ends, $how");
}


# the response has the length that its header says, or the end of its stream

sub whole {
    my ($name, $uri, $args, @headers) = @_;

    $uri .= ($uri =~ /\?/ ? '&' : '?') . $args if $args ne '';

    for my $protocol (sort keys %protocols) {
        my ($port, @options) = @{$protocols{$protocol}};

        my ($rc, $text) = $t->command('curl', '-sg', '--max-time', 5,
                              @options, '-D', '-', map({ ('-H', $_) } @headers),
                              'http://127.0.0.1:' . port($port) . $uri);
        my ($head, $body) = split /\r\n\r\n/, $text, 2;
        my ($length) = $head =~ /^content-length: (\d+)/mi;

        is("$rc " . length($body // ''), "0 $length",
           "$protocol: the client gets $name");
    }
}
