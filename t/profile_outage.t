#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: keep
# runs: beside

# profile_keep while its condition is true for all requests: all are answered,
# a sample is kept, the rest is counted, and threads and memory stay few.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use JSON::PP qw/ decode_json /;
use List::Util qw/ max sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest::Process;
use ProfileTest;

use constant CONNECTIONS => 16;
use constant REQUESTS => 250;

my $t = ProfileTest->new()->has(qw/ ssl /)->has_perl('IO::Socket::SSL');

$t->conf(<<'EOF');
log_format keep '$request_uri $profile_id $profile_dropped';
access_log %%TESTDIR%%/keep.log keep;

keepalive_requests 100000;

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8443 ssl;
    profile_keep 1;

    ssl_certificate localhost.crt;
    ssl_certificate_key localhost.key;

    location / { }
}

server {
    listen 127.0.0.1:8081;
    access_log off;
    profile_keep off;

    location /-/profile/ { profile_console; }
    location / { }
}

# servers without the directive share this rate

profile_keep 1 rate=2;

server {
    listen 127.0.0.1:8085;
    location / { }
}

server {
    listen 127.0.0.1:8086;
    location / { }
}

server {
    listen 127.0.0.1:8082;
    profile_keep 1 rate=1;
    location / { }
}

server {
    listen 127.0.0.1:8083;
    profile_keep 1 rate=1000;
    location / { }
}

# many turns, whose notes become a capture before the end

server {
    listen 127.0.0.1:8084;
    profile_keep 1 rate=1;

    location / {
        limit_rate 400k;
        limit_rate_after 1;
        sendfile_max_chunk 8k;
    }
}
EOF

$t->write_file('text', 'x' x 1000);
$t->write_file('long', 'x' x 300_000);
$t->write_certificate('localhost');
$t->run();

my ($worker) = $t->worker_pids();

http_get('/text', port => 8081);

my $threads = process_status($worker, 'Threads');
my $memory = process_status($worker, 'VmRSS');


# all at once

my $end = time() + 60;
my ($right, $most) = pipelined(CONNECTIONS, REQUESTS, $end);

is($right, CONNECTIONS * REQUESTS, 'all requests are answered');
cmp_ok($most, '<=', $threads + 1, 'the worker starts at most one thread');

my $s = settled();
my $all = CONNECTIONS * REQUESTS;
my %dropped = %{$s->{dropped}};

is($s->{kept} + sum0(values %dropped), $all,
   'kept and dropped profiles are all profiles')
    or diag(explain($s));
cmp_ok($s->{kept}, '>=', 10, 'some profiles are kept');
cmp_ok($dropped{rate}, '>', $all / 2, 'most profiles are above the rate');

SKIP: {
    skip 'sanitizers take memory of their own', 1 if $t->sanitizers();

    cmp_ok(process_status($worker, 'VmHWM') - $memory, '<=', 32 * 1024,
           'the worker uses at most 32 MB more memory');
}

my @log = map { [ split ] }
          grep { m{^/text} } split /\n/, $t->read_file('keep.log');

is(scalar @log, $all, 'all requests are logged');
is(scalar(grep { $_->[1] =~ /^\w{32}$/ } @log), $s->{kept},
   'the log has the ids of kept profiles');

for my $cause (sort keys %dropped) {
    is(scalar(grep { $_->[2] eq $cause } @log), $dropped{$cause},
       "the log has the profiles that were dropped by $cause");
}

is(scalar(grep { ($_->[1] eq '-') == ($_->[2] eq '-') } @log), 0,
   'each profile is either kept or dropped');

my ($id) = map { $_->[1] } grep { $_->[1] ne '-' } @log;

ok(wait_for(sub { http_get("/-/profile/p/$id/folded", port => 8081)->status()
                  == 200 }), 'a kept profile is in the store');

my @lines = $t->read_log() =~ /profile: dropped, .*"rate" allows, (\d+) more/g;

cmp_ok(scalar @lines, '>', 0, 'drops are in the error log');
cmp_ok(scalar @lines, '<=', time() - $end + 60 + 2,
       'the error log has at most one line in a second');


# rates of servers

my $before = $s;
my $begin = time();

http_get('/text?one', port => 8082) for 1 .. 6;

my $took = time() - $begin;

$s = settled();

my $n = $s->{kept} - $before->{kept};

cmp_ok($n, '>=', 1, 'rate=1 keeps not fewer profiles');
cmp_ok($n, '<=', 1 + $took, 'rate=1 keeps not more profiles');
is($n + $s->{dropped}{rate} - $before->{dropped}{rate}, 6,
   'rate=1 counts all profiles');

$before = $s;
http_get('/text?many', port => 8083) for 1 .. 20;
$s = settled();

is($s->{kept} - $before->{kept}, 20, 'rate=1000 keeps all profiles');

$before = $s;
$begin = time();

http_get('/text?shared', port => 8085 + $_ % 2) for 1 .. 12;

$took = time() - $begin;
$s = settled();
$n = $s->{kept} - $before->{kept};

cmp_ok($n, '>=', 2, 'rate=2 of two servers keeps not fewer profiles');
cmp_ok($n, '<=', 2 + 2 * $took,
       'rate=2 of two servers keeps not more profiles');
is($n + $s->{dropped}{rate} - $before->{dropped}{rate}, 12,
   'rate=2 of two servers counts all profiles');

$before = $s;
http_get('/text?off', port => 8081) for 1 .. 3;
$s = settled();

is_deeply([ @$s{qw/ kept dropped /} ], [ @$before{qw/ kept dropped /} ],
          'a server without profile_keep counts nothing');


# requests with many turns

$before = $s;
my @socks = map { http_get("/long?$_", port => 8084, start => 1) } 1 .. 6;
is(scalar(grep { length http_end($_)->body() == 300_000 } @socks), 6,
   'requests with many turns are answered');
$s = settled();

is($s->{kept} - $before->{kept}
   + $s->{dropped}{rate} - $before->{dropped}{rate}, 6,
   'requests with many turns are counted');
cmp_ok($s->{dropped}{rate} - $before->{dropped}{rate}, '>', 0,
       'some requests with many turns are dropped');


# on one connection with TLS

my $ssl = IO::Socket::SSL->new(PeerAddr => '127.0.0.1',
                               PeerPort => port(8443),
                               SSL_verify_mode => 0) or die "no TLS";

my $request = "GET /text HTTP/1.1\r\nHost: localhost\r\n\r\n";
my $data = '';

local $SIG{ALRM} = sub { die "timeout\n" };

alarm(30);

eval {
    print $ssl $request x 999, $request =~ s/\r\n\r\n/\r\nConnection: close$&/r;
    while (sysread($ssl, $data, 65536, length $data)) { }
};

alarm(0);

is(scalar(() = $data =~ m{HTTP/1.1 200 OK}g), 1000,
   '1,000 pipelined requests with TLS are answered');


sub pipelined {
    my ($connections, $requests, $end) = @_;
    my ($right, $most, $open) = (0, 0, $connections);
    my (%got, $last);

    my $text = "GET /text HTTP/1.1\r\nHost: localhost\r\n\r\n";
    my $select = IO::Select->new();

    for (1 .. $connections) {
        my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                         PeerPort => port(8080)) or die;
        $sock->syswrite($text x ($requests - 1)
                        . $text =~ s/\r\n\r\n/\r\nConnection: close$&/r);
        $select->add($sock);
        $got{$sock} = '';
    }

    while ($open && time() < $end) {

        for my $sock ($select->can_read(0.05)) {

            next if $sock->sysread($got{$sock}, 65536, length $got{$sock});

            $right += () = $got{$sock} =~ m{HTTP/1.1 200 OK}g;
            $select->remove($sock);
            $open--;
        }

        $most = max($most, process_status($worker, 'Threads'));
    }

    return ($right, $most);
}


# when all jobs are done

sub settled {
    my $s;

    wait_for(sub {
        my $all = decode_json(http_get('/-/profile/status.json', port => 8081)
                              ->body());
        $s = $all->{workers}[0];
        return $s->{jobs} == 0;
    });

    return $s;
}
