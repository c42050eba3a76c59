#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers
# runs: beside
#
# The worker that a client asked for a capture is killed.  The shares of the
# other workers in this capture end, and take no part in later captures.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;
use ProfileTest::Process;

# the captures of endpoints that one worker runs at the same time

use constant AT_ONCE => 8;

my $t = ProfileTest->new()->has(qw/ rewrite /)->allow(qr/on signal 9/)
                          ->allow(qr/cannot reach worker/);

$t->conf(<<'EOF', workers => 3);
server {
    listen 127.0.0.1:8080;

    location / { return 200 "ok\n"; }
    location /-/profile/ { profile_console; }
}
EOF

$t->run();

# the counter of a killed asker

for my $round (1 .. 3) {
    my ($s, $asker) = ask();

    start($s, 'wall?uri=/a&requests=6&seconds=60');
    wait_for_shares();
    kill_worker($asker);

    # a capture with the same number of requests has the same counter

    ($s, $asker) = ask();
    start($s, 'wall?uri=/a&requests=6&seconds=8');
    wait_for_shares();

    # captures take at most a tenth of the time, and skip requests above it

    sleep(0.01), http_get('/a') for 1 .. 60;

    is(named(answer($s), 'requests'), 6,
        "round $round: the next capture gets all its requests");
}

# the places of shares, in a worker that is not killed

my ($kept) = $t->worker_pids();

for my $round (1 .. AT_ONCE + 1) {
    my ($s, $asker) = ask_other($kept);

    start($s, 'wall?uri=/a&seconds=60');
    wait_for_shares();
    kill_worker($asker);
}

my ($s) = ask();
ok(wait_for(sub { start($s, 'wall?uri=/a&seconds=0.3');
                  http_end($s)->body() !~ /without an answer/ }, 5),
    'captures of killed workers take no places');

# captures of all threads

($s, my $asker) = ask();
start($s, 'wall?seconds=60&frequency=999');
ok(wait_for(sub { 3 == grep { process_signals($_) } $t->worker_pids() }),
    'all workers are captured');
kill_worker($asker);
ok(wait_for(sub { !grep { process_signals($_) } $t->worker_pids() }, 5),
    'the other workers restore their signals when the asker is killed');

###############################################################################

# a connection, and the worker that serves it
sub ask {
    my $s = ProfileTest::HTTP::connect_to(8080);

    start($s, 'cpu?seconds=0.1&workers=self');

    return ($s, named(answer($s), 'workers') =~ /(\d+)/);
}


sub ask_other {
    my ($pid) = @_;

    my @got = ask();
    my @held;

    while ($got[1] == $pid) {
        push @held, $got[0];
        @got = ask();
    }

    return @got;
}


sub start {
    my ($s, $what) = @_;

    http_get("/-/profile/$what&format=pprof", socket => $s, start => 1,
             keepalive => 1);
}


sub answer {
    my ($s) = @_;
    return ProfileTest::Pprof->new(http_end($s, timeout => 70));
}


sub named {
    my ($p, $name) = @_;
    return (map { /^$name: (.*)/s ? $1 : () } $p->comments())[0];
}


# waits until all workers hold a file of a capture
sub wait_for_shares {
    wait_for(sub { !grep { !grep { m{memfd:profile} } process_files($_) }
                   $t->worker_pids() })
        or die "no shares\n";
}


sub kill_worker {
    my ($pid) = @_;

    kill 'KILL', $pid;
    wait_for(sub { my @pids = $t->worker_pids();
                   @pids == 3 && !grep { $_ == $pid } @pids })
        or die "no other worker\n";
}
