#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers
# runs: first
#
# Captures of workers that are killed, exit or are busy, and captures whose
# client disconnects.  Each capture has an answer that names the missing
# workers, and no signal, timer or file remains.  TEST_NGINX_ROUNDS is the
# number of rounds, 5.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ time sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Pprof;
use ProfileTest::Process;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ rewrite /)->allow(qr/on signal 9/)
                          ->allow(qr/cannot reach worker/);

$t->conf(<<'EOF', workers => 4);
server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location / {
        return 200 "ok\n";
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

my $rounds = $ENV{TEST_NGINX_ROUNDS} || 5;

# many of them take longer than a test may
alarm(600 + 15 * $rounds);

# killed in the middle

for my $round (1 .. $rounds) {
    my ($s, $asker) = ask();
    my ($victim) = grep { $_ != $asker } $t->worker_pids();

    my $begin = time();
    start($s, 2, 99);
    all_capture();
    kill 'KILL', $victim;

    my $p = answer($s);

    ok(defined $p, "round $round: the client gets an answer after a kill");
    cmp_ok(time() - $begin, '<', 2 + 3 + 2, 'the capture ends in time');
    is(named($p, 'left_out'), "$victim (died)",
       'the profile names the worker that died');
    is(scalar(split(/, /, named($p, 'workers'))), 3,
       'the profile has the other workers');

    ok(wait_for(sub { $t->worker_pids() == 4 }), 'nginx starts another worker');
}

# the new worker takes part

my ($s) = ask();
start($s, 0.2, 99);
is(named(answer($s), 'left_out'), undef, 'all workers take part again');

# A worker is killed before it reads the order.  The order waits for the worker
# that replaces it.

for my $round (1 .. $rounds) {
    ($s, my $asker) = ask();
    my ($victim) = grep { $_ != $asker } $t->worker_pids();

    kill 'STOP', $victim;
    start($s, 1, 99);
    sleep(0.1);
    kill 'KILL', $victim;

    my $p = answer($s);

    ok(defined $p,
       "round $round: the client gets an answer after an early kill");
    unlike(named($p, 'workers'), qr/\b$victim\b/,
           'the profile does not name the killed worker');

    ok(wait_for(sub { $t->worker_pids() == 4 }), 'nginx starts another worker');
}

# a worker that does not answer

($s, my $asker) = ask();
my ($stopped) = grep { $_ != $asker } $t->worker_pids();
kill 'STOP', $stopped;

my $begin = time();
start($s, 0.2, 99);
my $p = answer($s);

is(named($p, 'left_out'), "$stopped (no answer)",
   'the profile names a stopped worker');
cmp_ok(time() - $begin, '>', 3, 'the asker waited for the stopped worker');
kill 'CONT', $stopped;

start($s, 0.2, 99);
is(named(answer($s), 'left_out'), undef,
   'the continued worker takes part again');

# Workers read the order after the capture has ended.  The asker takes part in
# any case.

($s, $asker) = ask();
my @others = grep { $_ != $asker } $t->worker_pids();
kill 'STOP', @others;

$begin = time();
start($s, 0.2, 99);
sleep(0.5);
kill 'CONT', @others;
$p = answer($s);

is(join(' ', sort(named($p, 'left_out') =~ /(\d+) \(busy until the end\)/g)),
    join(' ', sort @others), 'late workers are reported as busy');
is(named($p, 'workers'), $asker, 'the asker takes part');

# a reload: old workers send their part early, except for the asker

for my $round (1 .. $rounds) {
    ($s) = ask();
    start($s, 3, 1000);
    all_capture();
    $t->reload();

    $p = answer($s);

    ok(defined $p, "round $round: the client gets an answer after a reload");
    is(scalar(split(/, /, named($p, 'workers'))), 4,
       'the profile names all workers');
    is(named($p, 'left_out'), undef, 'the profile names no missing worker');
    is(scalar(() = named($p, 'workers') =~ /until it exited/g), 3,
        'three workers took part until they exited');

    ok(wait_for(sub { $t->worker_pids() == 4 }), 'nginx starts new workers');
}

($s) = ask();
start($s, 0.2, 99);
is(named(answer($s), 'left_out'), undef, 'all new workers take part');

# A new binary: workers of both binaries are captured, then the new master
# exits.  nginx accepts the signal only as a daemon.

my $port = port(8080);
my $other = port(8081);
my $dir = $t->testdir();

$t->write_file('daemon.conf', $t->read_file('nginx.conf')
                                  =~ s/daemon off/daemon on/r
                                  =~ s/nginx\.pid/daemon.pid/r
                                  =~ s/127\.0\.0\.1:$port/127.0.0.1:$other/r);

my ($rc, $out) = $t->command($t->{binary}, '-p', "$dir/", '-c',
                             "$dir/daemon.conf", '-e', "$dir/error.log");
is($rc, 0, 'nginx starts as a daemon') or diag($out);

my ($master) = $t->read_file('daemon.pid') =~ /^(\d+)/;
ok(wait_for(sub { workers($master) == 4 }), 'the daemon has its workers');

for my $round (1 .. $rounds) {
    my @old = workers($master);

    # an old worker has the connection before new workers start

    $s = ProfileTest::HTTP::connect_to(8081);
    http_get('/', socket => $s, keepalive => 1);
    start($s, 1.5, 99);
    kill 'USR2', $master;

    my $new;

    ok(wait_for(sub { ($new) = $t->read_file('daemon.pid') =~ /^(\d+)\n/;
                      $new && $new != $master && workers($new) == 4 }),
        "round $round: the new binary starts its workers");

    my @both = map { http_get('/-/profile/cpu?seconds=0.5&format=pprof',
                              start => 1, port => 8081) } 1 .. 6;
    $p = answer($s);

    is(join(' ', sort(pids($p))), join(' ', sort @old),
        'the old workers answer');
    is(scalar(grep { http_end($_, timeout => 20)->status() == 200 } @both), 6,
        'workers of both binaries answer');

    kill 'QUIT', $new;
    ok(wait_for(sub { !-e "$dir/daemon.pid.oldbin" }), 'the new master exits');
}

kill 'QUIT', $master;
ok(wait_for(sub { !kill(0, $master) }), 'the daemon exits');

# clients that disconnect

for my $round (1 .. $rounds) {
    ($s, $asker) = ask();
    start($s, 30, 1000);
    ok(all_capture(), "round $round: all workers capture");

    close $s;

    ok(wait_for(sub { !grep { process_signals($_) } $t->worker_pids() }),
        'without a client, the workers restore their signals');
}

# idle workers do not wake up

my %before = map { $_ => switches($_) } $t->worker_pids();
sleep(2);
my @woken = grep { switches($_) > $before{$_} } $t->worker_pids();

is("@woken", '', 'no worker wakes up when nothing is captured');

# files of captures are closed

my @left = grep { m{memfd:profile} }
           map { process_files($_) } $t->worker_pids();
is("@left", '', 'no file is left open');

###############################################################################

# a connection, and the worker that serves it
sub ask {
    my $s = ProfileTest::HTTP::connect_to(8080);
    start($s, 0.1, 99, 'workers=self');
    return ($s, (pids(answer($s)))[0]);
}


sub start {
    my ($s, $seconds, $frequency, @more) = @_;

    http_get('/-/profile/cpu?' . join('&', "seconds=$seconds",
                                      "frequency=$frequency", 'format=pprof',
                                      @more),
             socket => $s, start => 1, keepalive => 1);
}


sub all_capture {
    return wait_for(sub { 4 == grep { process_signals($_) } $t->worker_pids() });
}


sub answer {
    my ($s) = @_;
    my $got = http_end($s, timeout => 30);

    diag($got->raw()), return unless $got->status() == 200;
    return ProfileTest::Pprof->new($got);
}


sub named {
    my ($p, $name) = @_;
    return (map { /^$name: (.*)/s ? $1 : () } $p->comments())[0];
}


sub pids { return named($_[0], 'workers') =~ /(\d+)/g }


# returns the workers of a master
sub workers {
    my ($master) = @_;

    return grep {
        open my $f, '<', "/proc/$_/cmdline";
        $f && (<$f> // '') =~ /^nginx: worker process[\0 ]*$/;
    } $t->child_processes($master);
}


sub switches {
    return process_status($_[0], 'voluntary_ctxt_switches')
           + process_status($_[0], 'nonvoluntary_ctxt_switches');
}
