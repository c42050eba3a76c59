#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: console workers
# runs: beside
#
# The status of all workers, from any of them: what they count and capture; a
# worker that does not answer; a worker that has died.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use IO::Socket::INET;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new();

$t->conf(<<'EOF', workers => 3, events => 'worker_connections 100;');
profile_endpoint on;
profile_max_captures 20;

server {
    listen 127.0.0.1:8080;

    location / { }
    location /slow/ {
        alias %%TESTDIR%%/;
        limit_rate 20k;
    }
    location /-/profile/ { profile_console; }
}
EOF

$t->write_file('text', 'x' x 100000);
$t->run();

my @pids = $t->worker_pids();


# all workers

my $status = settled();

is_deeply([ sort { $a <=> $b } map { $_->{pid} } @{$status->{workers}} ],
          [ sort { $a <=> $b } @pids ], 'the status has all workers');
is(join(' ', map { $_->{worker} } @{$status->{workers}}), '0 1 2',
   'workers are in the order of their numbers');
is(scalar(grep { $_->{captures} != 0 } @{$status->{workers}}), 0,
   'workers without captures count none');
is(scalar(grep { $_->{max_captures} != 20 } @{$status->{workers}}), 0,
   'how many they may');
is(scalar(grep { $_->{max_connections} != 100 } @{$status->{workers}}), 0,
   'connections they may have');

my ($this) = grep { $_->{this} } @{$status->{workers}};
is($this->{pid}, $status->{worker}{pid}, 'the one that was asked');
cmp_ok($this->{connections}, '>', 0,
       'the worker that was asked has a connection');


# captures in any of them

my @slow = map { http_get("/slow/text?n=$_&performance_bar=record",
                          start => 1) } 1 .. 12;

for (1 .. 20) {
    $status = settled();
    last if sum($status) != 12 || @{$status->{captures}} != 12;
}

is(sum($status), 12, 'captures, as all count them');
is(scalar @{$status->{captures}}, 12, 'the status has each capture');
is(join(' ', sort map { $_->{uri} } @{$status->{captures}}),
   join(' ', ('/slow/text') x 12), 'the captures have their URIs');

my %count;
$count{$_->{worker}}++ for @{$status->{captures}};

for my $worker (@{$status->{workers}}) {
    is($worker->{captures}, $count{$worker->{pid}} || 0,
       "worker $worker->{worker} has its captures");
}

cmp_ok((sort { $a <=> $b } map { $_->{wall} } @{$status->{captures}})[0], '>',
       0, 'the captures have their times');

http_end($_) for @slow;


# a stopped worker: other workers send it at most one message

# a new connection could be the stopped one's

my @kept = (socket => IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                            PeerPort => port(8080)),
            keepalive => 1);

$status = status(@kept);

my ($stopped) = grep { $_ != $status->{worker}{pid} } @pids;
my ($longest, $busy, $others) = (0, 0, 0);

kill('STOP', $stopped);

for (1 .. 30) {
    my $from = time();
    $status = status(@kept);
    my $took = time() - $from;
    $longest = $took if $took > $longest;

    my ($silent) = grep { $_->{pid} == $stopped } @{$status->{workers}};

    $busy++ if $silent->{busy} && !defined $silent->{connections};
    $others++ if 2 == grep { !$_->{busy} } @{$status->{workers}};
}

is($busy, 30, 'a worker that does not answer');
cmp_ok($others, '>', 0, 'the other workers answer');
cmp_ok($longest, '<', 5, 'the other workers do not wait for the stopped one');

kill('CONT', $stopped);

ok(settled(), 'the continued worker answers again');

# the continued worker takes part in captures

my $r = http_get('/-/profile/cpu?seconds=0.2&format=folded');
is($r->status(), 200, 'all workers are captured');
unlike($t->read_log(), qr/cannot reach worker/, 'no worker was unreachable');


# a worker that is killed

kill('KILL', $stopped);
$t->allow(qr/worker process $stopped exited on signal 9/);

ok(wait_for(sub {
    my @now = map { $_->{pid} } grep { !$_->{busy} } @{status()->{workers}};
    return @now == 3 && !grep { $_ == $stopped } @now;
}), 'another has its place');


sub status {
    return decode_json(http_get('/-/profile/status.json', @_)->content());
}


# once no worker is busy: the machine may be
sub settled {
    my $status;

    wait_for(sub {
        $status = status();
        return !grep { $_->{busy} } @{$status->{workers}};
    }) or return;

    return $status;
}


sub sum {
    my ($status) = @_;

    my $sum = 0;
    $sum += $_->{captures} || 0 for @{$status->{workers}};

    return $sum;
}
