#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: main
# runs: first
#
# Workers end in every possible way while captures of all modes and scopes run:
# no worker crashes, nginx logs no alert, and no descriptor or thread remains.
# PROFILE_TEST_ROUNDS is the number of rounds of each way, 8.
#
# A preloaded library makes each process run for a while after nginx has
# unloaded its modules.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Process;
use ProfileTest;
use ProfileTest::Preload;

my $rounds = $ENV{PROFILE_TEST_ROUNDS} || 8;

# the length of the log that was read
my $seen = 0;

# the test causes these messages by kill -9, also while profiles are stored
my $t = ProfileTest->new()->has(qw/ map proxy rewrite /)
                          ->allow(qr/exited on signal 9/)
                          ->allow(qr/shared memory zone .* was locked by/);

# a new binary is started with the variables that are named
my $env = 'env LD_PRELOAD;';

my $conf = <<"EOC";
%%MODULES%%
%%GLOBALS%%
$env
worker_processes 2;
worker_shutdown_timeout 300ms;

events {
}

http {
    %%GLOBALS_HTTP%%
    %%SLOW_MAP%%

    default_type text/plain;

    profile_accounting on;
    profile_keep 1 share=5%;
    profile_stall_threshold 50ms;
    profile_object_grace 1s;
    profile_max_captures 32;
    profile_store %%TESTDIR%%/store;

    server {
        listen 127.0.0.1:8080;
        profile_endpoint on;
        keepalive_requests 100000;

        location /loop {
            set \$said \$slow;
            return 200 "looped";
        }

        location /slow {
            proxy_pass http://127.0.0.1:8081;
        }

        location /-/profile/ {
            profile_console;
        }
    }

    server {
        listen 127.0.0.1:8081;

        location / {
            limit_rate 20k;
        }
    }
}
EOC

$t->write_file('slow', 'x' x 20000);
$t->write_file_expand('nginx.conf', $conf);

# sanitizers do not take a preloaded library

if (!$t->sanitizers()) {
    $ENV{LD_PRELOAD} = build_preload($t, 'prof_exit');
}

alarm(600 + 30 * $rounds);

# each way: the signal, and the end of the workers

for my $signal (qw/ TERM QUIT /) {
    for my $round (1 .. $rounds) {
        $t->run();
        my @live = capture($round);
        $t->stop($signal);
        close $_ for @live;
    }

    is(crashes(), '', "no crash in $rounds rounds of $signal");
}

$t->run();
http_get('/loop');

my $master = $t->{pid};
my $before = rest($master);
my $memory;

for my $round (1 .. $rounds) {
    my @live = capture($round);
    my %old = map { $_ => 1 } $t->worker_pids();

    kill 'HUP', $master;
    wait_for(sub { 2 == grep { !$old{$_} } $t->worker_pids() })
        or fail("round $round: new workers");
    close $_ for @live;
    gone(keys %old) or fail("round $round: old workers are gone");

    # what nginx itself needs for a second configuration is there by then
    # to sanitizers, freed memory is in use for a while
    $memory //= memory($master) if $round == 5 && !$t->sanitizers();
}

is(crashes(), '', "no crash in $rounds rounds of HUP");
remains($master, $before, 'reloads leave no descriptor and no thread');
cmp_ok(memory($master) - $memory, '<=', 512,
       'reloads leave no memory in the master, kB') if defined $memory;

for my $round (1 .. $rounds) {
    my @live = capture($round);
    my @old = $t->worker_pids();

    kill 'KILL', @old;
    close $_ for @live;
    gone(@old) or fail("round $round: killed workers are gone");
    wait_for(sub { $t->worker_pids() == 2 })
        or fail("round $round: new workers");
}

is(crashes(), '', "no crash in $rounds rounds of KILL");
remains($master, $before,
        'killed workers leave no descriptor and no thread');

# resources of captures in workers that continue

my ($worker) = $t->worker_pids();

$before = rest($worker);

for (1 .. 3) {
    my @live = capture($_);
    close $_ for @live;
}

remains($worker, $before, 'captures leave no descriptor and no thread');

$t->stop();

# A new binary replaces the old one.  nginx accepts the signal only as a
# daemon.

$t->write_file_expand('nginx.conf', $conf =~ s/%%GLOBALS%%/
                      $t->conf_globals() =~ s{daemon off}{daemon on}r/er);

my ($rc, $out) = $t->command($t->{binary}, '-p', $t->testdir(), '-c',
                             $t->testdir() . '/nginx.conf', '-e',
                             $t->testdir() . '/error.log');
is($rc, 0, 'a daemon') or diag($out);

$t->{pid} = $master = pid();

for my $round (1 .. $rounds) {
    wait_for(sub { $t->worker_pids() == 2 })
        or fail("round $round: workers");

    my @live = capture($round);

    kill 'USR2', $master;
    wait_for(sub { (pid() || $master) != $master
                   && (() = $t->child_processes(pid() // 0)) >= 2 })
        or fail("round $round: a new master");
    kill 'QUIT', $master;
    close $_ for @live;
    gone($master) or fail("round $round: the old master is gone");

    $t->{pid} = $master = pid();
}

is(crashes(), '', "no crash in $rounds rounds of USR2 and QUIT");

kill 'TERM', $master;
ok(gone($master), 'the daemon ends');
$t->{pid} = undef;

###############################################################################

# captures of all modes and scopes, in the middle of turns and gaps; returns
# their connections
sub capture {
    my ($round) = @_;
    my @live;

    # Hooks of allocations keep the module in memory, so every other round has
    # no hooks.

    for my $mode (qw/ wall cpu /, $round % 2 ? () : 'object') {
        push @live, map { http_get($_, start => 1) }
            "/slow?performance_bar=flamegraph&stackprof_mode=$mode",
            "/slow?performance_bar=record&stackprof_mode=$mode",
            "/-/profile/$mode?seconds=20&uri=/loop",
            "/-/profile/$mode?seconds=20&workers=self",
            "/-/profile/$mode?seconds=20&frequency=1000";
    }

    # requests that keep the workers running, some of them captured

    my $loop = '/loop' . 'a' x 15 . '!';

    for my $query ('', 'performance_bar=record') {
        push @live, http("GET $loop?$query HTTP/1.1\nHost: localhost\n\n" x 5
                         . "GET $loop HTTP/1.1\nHost: localhost\n\n" x 100,
                         start => 1);
    }

    sleep(0.02 + rand(0.1));

    return @live;
}


# since the last call
sub crashes {
    my $log = substr($t->read_log(), $seen);

    $seen += length($log);
    return join("\n", grep { /exited on signal (?!9\b)/ } split(/\n/, $log));
}


sub gone {
    my (@pids) = @_;

    return wait_for(sub { !grep { process_lives($_) }
                          @pids }, 20);
}


# descriptors and threads of a process, but for the threads of its jobs, and for
# the helpers for names: their processes and their sockets
sub rest {
    my ($pid) = @_;

    my @fds = glob("/proc/$pid/fd/*");
    my $helpers = grep { (readlink($_) // '') eq 'anon_inode:[pidfd]' } @fds;
    my $threads = grep { open my $f, '<', $_; ($f && <$f>) !~ /^profile/ }
                       glob("/proc/$pid/task/*/comm");

    return @fds - 2 * $helpers . ' descriptors, ' . $threads . ' threads';
}


sub remains {
    my ($pid, $before, $name) = @_;

    my ($fds, $threads) = $before =~ /(\d+)/g;

    # before, a connection may have been there

    ok(wait_for(sub { my @now = rest($pid) =~ /(\d+)/g;
                      $now[0] <= $fds && $now[1] <= $threads }, 30), $name)
        or diag("$before before, now ", rest($pid), "\n",
                join("\n", process_files($pid)));
}


sub memory { return process_status($_[0], 'VmData') }


sub pid { return $t->read_file('nginx.pid') =~ /^(\d+)\n/ ? $1 : undef }
