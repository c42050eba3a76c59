#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside

# Requests that end in the event in which they begin, between longer requests
# and requests that are not accounted, on the same connections: each request has
# its own times, or no times.

use strict;
use warnings;

use IO::Socket::INET;
use Test::More;

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ limit_req proxy rewrite threads /);

$t->conf(<<'EOF');
log_format times '$request_uri turns=$profile_turns '
                 'cpu=$profile_cpu_time wait=$profile_wait_time '
                 'stall=$profile_stall_time status=$status';
access_log %%TESTDIR%%/times.log times;

limit_req_zone $server_name zone=one:64k rate=20r/s;

server {
    listen 127.0.0.1:8080;
    server_name accounted;
    profile_accounting on;

    location / { }

    location /return {
        return 200 "$profile_turns $profile_wait_time";
    }

    location /again {
        error_page 404 = /text;
    }

    location /early {
        add_header X-Turns $profile_turns;
        alias %%TESTDIR%%/text;
    }

    location /limited {
        limit_req zone=one burst=1000;
        alias %%TESTDIR%%/text;
    }

    location /threads {
        aio threads;
        sendfile off;
        alias %%TESTDIR%%/text;
    }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=20/;
    }
}

server {
    listen 127.0.0.1:8080;
    server_name other;

    location / { }
}
EOF

$t->write_file($_->[0], 'x' x $_->[1])
    for [ 'text', 1000 ], [ 'index.html', 500 ];

run_upstream($t, 8081);
$t->run();

# how they end: with a status, in one turn or in more

my %kinds = (
    '/text' => [ 200, 1 ], '/' => [ 200, 1 ], '/return' => [ 200, 1 ],
    '/again' => [ 200, 1 ], '/early' => [ 200, 1 ], '/missing' => [ 404, 1 ],
    '/limited' => [ 200, 2 ], '/threads' => [ 200, 2 ],
    '/upstream' => [ 200, 2 ],
);

my @kinds = sort keys %kinds;
my %sent;

srand 7;

# requests one after the other

my $s = client();
one($s) for 1 .. 120;
close $s;

# pipelined: nginx reads a part of the next request with the first one

$s = client();
my @batch = map { [ request_of('/text', $_ % 3 ? 'accounted' : 'other') ] }
                1 .. 20;
print $s map { $_->[1] } @batch;
is(scalar(answers($s, 20)), 20, 'all pipelined requests are answered');
close $s;

# requests of several connections by turns; some clients disconnect

my @s = map { client() } 1 .. 8;

for my $round (1 .. 15) {
    my @some = grep { rand() < 0.7 } @s;
    print $_ (request_of(any()))[1] for @some;

    if ($round == 10) {
        my $gone = shift @some;
        @s = grep { $_ != $gone } @s;
        close $gone;
    }

    answers($_, 1) for @some;
}

close $_ for @s;


my %lines;

ok(wait_for(sub {
    my @lines = split /\n/, $t->read_file('times.log');
    %lines = map { m{\?(\d+) (.*)} ? ($1 => $2) : () } @lines;
    return keys %lines == keys %sent;
}), 'each request is logged');

my %wrong;

for my $n (keys %sent) {
    my ($uri, $host) = @{$sent{$n}};
    my ($status, $turns) = @{$kinds{$uri}};
    my %l = ($lines{$n} // '') =~ /(\w+)=(\S+)/g;

    if ($host eq 'other') {
        push @{$wrong{other}}, $lines{$n}
            if grep { $l{$_} ne '-' } qw/ turns cpu wait stall /;
        next;
    }

    push @{$wrong{$uri}}, $lines{$n}
        unless $l{turns} =~ /^\d+$/
               && ($turns == 1 ? $l{turns} == 1 : $l{turns} >= 1)
               && $l{cpu} =~ /^0\.\d+$/ && $l{wait} < 1 && $l{stall} < 1
               && $l{status} =~ /^($status|499)$/;
}

is_deeply($wrong{$_} || [], [],
    "each request has its own times: $_") for 'other', @kinds;

# the accounted requests with more than one turn

my %lasted = map { ($sent{$_}[0] => 1) }
             grep { ($lines{$_} =~ /turns=(\d+)/)[0] > 1 }
             grep { $sent{$_}[1] eq 'accounted' } keys %sent;

is_deeply([ sort keys %lasted ], [ '/limited', '/threads', '/upstream' ],
          'only requests that wait get a lasting track');


sub client {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                 PeerPort => port(8080)) || die;
}


sub any {
    my $host = rand() < 0.5 ? 'accounted' : 'other';

    return ($host eq 'other' ? '/text' : $kinds[rand @kinds], $host);
}


sub request_of {
    my ($uri, $host) = @_;

    my $n = keys(%sent) + 1;
    $sent{$n} = [ $uri, $host ];

    return ($n, "GET $uri?$n HTTP/1.1\r\nHost: $host\r\n\r\n");
}


sub one {
    my ($s) = @_;

    print $s (request_of(any()))[1];
    answers($s, 1);
}


# reads this number of responses; returns their status lines

sub answers {
    my ($s, $n) = @_;
    my ($data, @found) = ('');

    while (@found < $n) {

        if ($data =~ /^(.*?\r\n)\r\n/s && $1 =~ /^Content-Length: (\d+)/mi
            || $data =~ /^(.*?\r\n)\r\n/s && $1 =~ /chunked/i)
        {
            my ($head) = $data =~ /^(.*?\r\n\r\n)/s;
            my ($length) = $head =~ /^Content-Length: (\d+)/mi;
            my $end = defined $length ? length($head) + $length
                    : ($data =~ /\r\n0\r\n\r\n/g ? pos($data) : undef);

            if (defined $end && length $data >= $end) {
                push @found, (split /\r\n/, $head)[0];
                $data = substr($data, $end);
                next;
            }
        }

        sysread($s, $data, 65536, length $data) or last;
    }

    return @found;
}
