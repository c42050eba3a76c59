#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside

# Recorded responses are those that are not recorded, byte for byte, but for
# the headers that name the profile; and the profile is in the store.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest::Record;
use ProfileTest::Store;
use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ auth_basic gzip proxy rewrite ssi /);

$t->conf(<<'EOF', workers => 2);
# a machine that does other things does few jobs
profile_max_captures 1000;

profile_store %%TESTDIR%%/store;

gzip_types text/plain;
log_format line '$uri $status $body_bytes_sent';
access_log %%TESTDIR%%/access.log line;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;
    client_max_body_size 10m;
    error_page 404 /404.html;
    lingering_close off;

    location / { }

    location /gz/ {
        alias %%TESTDIR%%/;
        gzip on;
    }

    location /ssi/ {
        alias %%TESTDIR%%/;
        ssi on;
        ssi_types *;
    }

    location /auth {
        auth_basic "x";
        auth_basic_user_file %%TESTDIR%%/users;
    }

    location /moved { return 301 /elsewhere?a=b; }
    location /empty { return 204; }
    location /gone { return 410 "gone, $args"; }
    location /deny { deny all; }
    location /drop { return 444; }

    location /limited/ {
        alias %%TESTDIR%%/;
        limit_rate 2m;
        limit_rate_after 64k;
    }

    location /app/ {
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $http_connection;
        proxy_pass http://127.0.0.1:8081;
    }

    location /old/ {
        proxy_pass http://127.0.0.1:8081/app/;
    }

    location /stream/ {
        profile_timeout 300ms;
        proxy_buffering off;
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $http_connection;
        proxy_pass http://127.0.0.1:8081/app/;
    }

    location /refused/ { proxy_pass http://127.0.0.1:8083; }

    location /internal/ {
        internal;
        alias %%TESTDIR%%/;
    }

    location /-/profile/ { profile_console; }
}

server {
    listen 127.0.0.1:8082;
    listen unix:%%TESTDIR%%/sock;
    profile_endpoint on;

    location / { }
    location /off { profile_endpoint off; }
    location /if { profile_if $arg_yes; }
}
EOF

$t->write_file('small', "small\n");
$t->write_file('large', join('', map { "line $_ of a large file\n" }
                                 1 .. 60000));
$t->write_file('page.html', "a<!--# include virtual=\"/small\" -->b"
                            . "<!--# include virtual=\"/app/chunked\" -->c\n");
$t->write_file('404.html', "a page of our own\n");
$t->write_file('users', "u:{PLAIN}p\n");
mkdir $t->testdir() . '/dir' or die "mkdir: $!\n";

my $store = $t->testdir() . '/store';

run_server($t, 8081, \&answer);
$t->run();

my $owner = (stat $store)[4];
is($owner, $> == 0 ? getpwnam($t->{user}) : $>,
   'the user of the workers owns the directory');
is((stat $store)[2] & 07777, 0700,
   'other users have no access to the directory');


# the recorded response has the same bytes

my $tag = (http_get('/small')->header('ETag') // '');
my $auth = 'Authorization: Basic dTpw';

my @cases = (
    [ 'a small file', 'GET /small' ],
    [ 'a large one', 'GET /large' ],
    [ 'a slow one', 'GET /limited/large' ],
    [ 'HEAD', 'HEAD /large' ],
    [ 'not modified', 'GET /small', [ "If-None-Match: $tag" ] ],
    [ 'a precondition that fails', 'GET /small', [ 'If-Match: "x"' ] ],
    [ 'a range', 'GET /large', [ 'Range: bytes=10-1000' ] ],
    [ 'ranges', 'GET /large', [ 'Range: bytes=10-19,100000-200000' ] ],
    [ 'a range that is none', 'GET /large', [ 'Range: bytes=99999999-' ] ],
    [ 'gzip', 'GET /gz/large', [ 'Accept-Encoding: gzip' ] ],
    [ 'a page for an error', 'GET /none' ],
    [ 'a redirect to a directory', 'GET /dir' ],
    [ 'a redirect', 'GET /moved' ],
    [ 'no content', 'GET /empty' ],
    [ 'a text of the configuration', 'GET /gone' ],
    [ 'forbidden', 'GET /deny' ],
    [ 'unauthorized', 'GET /auth/small' ],
    [ 'authorized, not found', 'GET /auth/small', [ $auth ] ],
    [ 'a method that is not allowed', 'POST /small', [], 'a=b' ],
    [ 'an unknown method', 'FROB /small' ],
    [ 'a subrequest', 'GET /ssi/page.html' ],
    [ 'an application', 'GET /app/plain?a=b' ],
    [ 'chunks', 'GET /app/chunked' ],
    [ 'HTTP/1.0 behind', 'GET /old/plain' ],
    [ 'POST', 'POST /app/plain', [], 'x' x 10000 ],
    [ 'PUT with a large body', 'PUT /app/plain', [], 'y' x 300000 ],
    [ 'DELETE', 'DELETE /app/plain?a&b' ],
    [ 'an error of the application', 'GET /app/error' ],
    [ 'a redirect inside', 'GET /app/accel' ],
    [ 'a stream', 'GET /app/stream' ],
    [ 'a response that breaks off', 'GET /app/broken' ],
    [ 'no application', 'GET /refused/' ],
    [ 'a switch of protocols', 'GET /app/upgrade',
      [ 'Connection: upgrade', 'Upgrade: echo' ] ],
    [ 'HTTP/1.0', 'GET /large', [], undef, '1.0' ],
);

my @ids = map { same_recorded(@$_) } @cases;

my %ids = map { $_->[1] => 1 } @ids;
is(scalar(keys %ids), scalar(@ids), 'each profile has its own id');

my $found;
wait_for(sub { $found = ProfileTest::Store::read_store($store);
               !grep { !$found->{$_->[1]} } @ids });

for my $expected (@ids) {
    my ($name, $id, $method, $uri, $status) = @$expected;
    my $st = $found->{$id} || {};

    is($st->{error}, undef, "$name: the profile is stored completely");
    is(join(' ', map { $_ // '-' } @$st{qw/ scope method host uri status /}),
       "request $method localhost $uri $status",
        "$name: the profile has the facts of the request");
}

my @odd = grep { $_->{mode} != 0 || $_->{wall} == 0
                 || $_->{waited} > $_->{wall}
                 || $_->{cpu} > $_->{wall} - $_->{waited} + 50000 }
          values %$found;
is(join(', ', map { "$_->{uri} wall $_->{wall} waited $_->{waited}"
                    . " cpu $_->{cpu}" } @odd), '',
    'the times of profiles are plausible');

my %pids = map { $_ => 1 } $t->worker_pids();
is(scalar(grep { !$pids{$_->{worker}} } values %$found), 0,
    'profiles have the ids of workers');

my ($limited) = grep { $_->{uri} eq '/limited/large' } values %$found;
cmp_ok($limited->{waited} / 1e6, '>', 300,
       'the profile has the wait for a slow client');


# the client leaves

my %before = %$found;

my $s = ProfileTest::HTTP::connect_to(8080);
print $s "GET /app/silent?performance_bar=record HTTP/1.1\r\n"
         . "Host: localhost\r\n\r\n";
wait_for(sub { -e $t->testdir() . '/silent' });
close $s;

my ($st) = wait_for_new(1);
is("$st->{uri} $st->{status}", '/app/silent 499',
   'a request whose client disconnected is recorded');

$s = http_get('/limited/large?performance_bar=record', start => 1);
sysread($s, my $buf, 100);
my ($id) = $buf;
close $s;

($st) = wait_for_new(1);
is("$st->{uri} $st->{status}", '/limited/large 200',
   'an interrupted download is recorded');


# streams that do not end

for my $case ([ 'a stream', '/stream/endless', [] ],
              [ 'a switch of protocols', '/stream/ticker',
                [ 'Connection: upgrade', 'Upgrade: echo' ] ])
{
    my ($name, $uri, $headers) = @$case;

    $s = http_get("$uri?performance_bar=record", start => 1,
                  headers => $headers);

    ($st) = wait_for_new(1);
    is($st->{uri}, $uri, "$name: the profile is in the store");
    cmp_ok($st->{wall} / 1e6, '>=', 250,
        "$name: the capture lasts until the timeout");
    cmp_ok($st->{wall} / 1e6, '<', 5000,
        "$name: the capture ends after the timeout");

    my $bytes = read_for($s, 0.3);
    my $more = read_for($s, 0.5);
    like($bytes, qr/^X-Profile-Id: $st->{id}\r$/m,
        "$name: the response has the profile's id");
    cmp_ok(length($more), '>', 0, "$name: the response continues");
    close $s;
}

# an upstream that is silent for longer than the timeout

$s = http_get('/stream/late?performance_bar=record', start => 1);
my $r = http_end($s);
($st) = wait_for_new(1);
is($r->header('X-Profile-Id'), $st->{id},
    'a response after the timeout has the profile\'s id');
is("$st->{uri} $st->{status}", '/stream/late 200',
    'a response after the timeout is in the profile');
cmp_ok($st->{wall}, '<', 900e6,
    'the capture of a late response ended before it');


# 101 in place of a flamegraph, and other things that cannot be replaced

$s = ProfileTest::HTTP::connect_to(8080);
print $s "GET /app/upgrade?performance_bar=flamegraph HTTP/1.1\r\n"
         . "Host: localhost\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
$r = read_for($s, 10, qr/ready\n/);
like($r, qr/^HTTP\/1.1 101 .*^X-Profile-Id: /ms,
    'a switch of protocols is recorded');
syswrite($s, "hello\n");
is(read_for($s, 10, qr/\n/), "hello\n", 'the new protocol works');
close $s;

($st) = wait_for_new(1);
is($st->{status}, 101, 'the profile of a switch of protocols is stored');

$r = http_get('/small?performance_bar=flamegraph',
              headers => [ 'If-Match: "x"' ]);
is($r->status(), 412, 'a failed precondition is not replaced');
($st) = wait_for_new(1);
is($st->{id}, $r->header('X-Profile-Id'), 'a failed precondition is recorded');


# replaced responses are stored as well

$r = http_get('/small?performance_bar=flamegraph&profile_format=folded'
              . '&stackprof_mode=cpu');
is($r->status(), 200, 'a flamegraph is sent');
ok(-e "$store/" . $r->header('X-Profile-Id'),
   'the profile is stored before the reply is sent');
like($r->header('Link'), qr{^</-/profile/p/[0-9a-f]{32}>},
     'the reply links to the stored profile');
($st) = wait_for_new(1);
is("$st->{mode} $st->{status}", '1 200', 'the stored profile has its mode');

$r = http_get('/small?performance_bar=flamegraph', port => 8082);
is($r->header('Link'), undef, 'without a console there is no link');
wait_for_new(1);


# wrong parameters, and clients without permission

for my $uri (qw{ /small?performance_bar=records
                 /small?performance_bar=record&profile_mode=x
                 /small?performance_bar=record&profile_frequency=0 })
{
    is(http_get($uri)->status(), 400,
        "a wrong parameter in $uri has the status 400");
}

for my $uri (qw{ /off?performance_bar=record /if?performance_bar=record }) {
    $r = http_get($uri, port => 8082);
    is($r->header('X-Profile-Id'), undef, "$uri is not recorded");
}

my $none = ProfileTest::Store::read_store($store);
is(scalar(keys %$none), scalar(keys %before), 'these requests store nothing');


# a response on a kept-alive connection

$s = undef;

for my $i (1 .. 3) {
    my $request = "GET /small?performance_bar=record HTTP/1.1\r\n"
                  . "Host: localhost\r\n\r\n";

    $s //= ProfileTest::HTTP::connect_to(8080);
    $r = http($request x 2, socket => $s);
    is($r->body(), "small\n", "pipelined request $i gets its body");
    is(http_end($s)->body(), "small\n", 'the request after it gets its body');
}

is(scalar(wait_for_new(6)), 6, 'all pipelined requests are stored');


# waits for this number of new entries
sub wait_for_new {
    my ($n) = @_;

    my @new;

    wait_for(sub {
        my $now = ProfileTest::Store::read_store($store);
        @new = map { $now->{$_} } grep { !$before{$_} } keys %$now;
        return @new >= $n;
    }) or diag("waited for $n, there are " . scalar(@new));

    $before{$_->{id}} = 1 for @new;

    return @new;
}


sub answer {
    my ($c) = @_;

    my ($line, $len, $head) = ('', 0, '');

    while (defined(my $l = <$c>)) {
        $line ||= $l;
        $len = $1 if $l =~ /^Content-Length: (\d+)/i;
        $head .= $l;
        last if $l =~ /^\r?\n$/;
    }

    read($c, my $body, $len) if $len;

    my ($what) = $line =~ m{^\w+ /app/(\w+)} or return;

    if ($what eq 'chunked' || $what eq 'stream' || $what eq 'broken'
        || $what eq 'endless' || $what eq 'late')
    {
        sleep(0.8) if $what eq 'late';

        print $c "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                 . ($what =~ /stream|endless/
                    ? "Content-Type: text/event-stream\r\n"
                      . "X-Accel-Buffering: no\r\n" : '')
                 . "Connection: close\r\n\r\n";

        my @chunks = map { sprintf("%x\r\ndata: %03d\n\n\r\n", 11, $_) }
                         1 .. ($what eq 'endless' ? 600 : 5);
        push @chunks, "0\r\n\r\n" unless $what eq 'broken';

        if ($what =~ /stream|endless/) {
            for my $chunk (@chunks) {
                print $c $chunk;
                sleep(0.05);
            }

        } else {

            # in one write: the boundaries of reads decide how nginx divides the
            # body

            print $c join('', @chunks);
        }

    } elsif ($what eq 'upgrade' || $what eq 'ticker') {
        print $c "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n"
                 . "Connection: upgrade\r\n\r\nready\n";

        for (1 .. ($what eq 'ticker' ? 600 : 0)) {
            print $c "tick\n";
            sleep(0.05);
        }

        while (defined(my $l = <$c>)) {
            last if $l eq "quit\n";
            print $c $l;
        }

    } elsif ($what eq 'silent') {
        $t->write_file('silent', 1);
        sleep(20);

    } elsif ($what eq 'accel') {
        print $c "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /internal/large\r\n"
                 . "Content-Length: 0\r\nConnection: close\r\n\r\n";

    } elsif ($what eq 'error') {
        print $c "HTTP/1.1 500 No\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n"
                 . "Content-Length: 3\r\nConnection: close\r\n\r\nno\n";

    } else {
        my $echo = "$line$head" . ($body // '');

        # the lines of the module's own trigger would show here

        print $c "HTTP/1.1 200 OK\r\nContent-Length: " . length($echo)
                 . "\r\nX-Odd:  two  spaces\r\nConnection: close\r\n\r\n"
                 . $echo;
    }
}
