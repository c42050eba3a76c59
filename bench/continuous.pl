#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# What the samples of the continuous profile cost a request: CPU time per request
# of the event loop of one worker with its timers armed, as a ratio to the same
# worker with its timers disarmed.
#
# Two processes with the same configuration differ by some hundredths, because
# their memory lies in other places.  One process has no such difference.  The
# library continuous_timers.c, preloaded into nginx, disarms and arms the timers.
# The instructions that the profile adds to each request are in both states:
# bench/accounting.pl counts these.
#
# Each pair measures both states once, in random order.  The pairs of the A/A run
# have the timers armed twice.  Both kinds of pairs take turns.  The output has
# the median and the quartiles of the pairs, their mean, and its standard error.
#
# needs wrk, taskset and cc, and two CPUs
#
# usage: bench/continuous.pl [PAIRS [SECONDS]]
#
# 100 pairs, 0.3 seconds for each state

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use List::Util qw/ shuffle sum /;
use POSIX qw/ SIGRTMAX WNOHANG /;
use Time::HiRes qw/ sleep /;

use lib dirname(abs_path($0));

use Bench;

use constant SETTLE => 0.02;        # seconds, for a signal to take effect

my $pairs = $ARGV[0] || 100;
my $seconds = $ARGV[1] || 0.3;

my ($disarmed, $armed) = (SIGRTMAX(), SIGRTMAX() - 1);

my $dir = dir();
my $port = free_port();
my $so = "$dir/continuous_timers.so";

system('cc', '-shared', '-fPIC', '-O2', '-W', '-Wall', '-o', $so,
       dirname(abs_path($0)) . '/continuous_timers.c', '-ldl') == 0
    or die "cc failed\n";

write_file("$dir/html/small.html", 'x' x 1000);

my $server = start(port => $port, cpu => 0, env => { LD_PRELOAD => $so },
                   http => <<"EOC");
    profile_continuous on;
    server {
        listen 127.0.0.1:$port;
        location / { root $dir/html; }
        location = /status { stub_status; }
    }
EOC

my $s = connect_to($port) or die "no nginx: $!\n";
my $timers = "/proc/$server->{worker}/timers";

for (1 .. 50) {
    last if read_file($timers) =~ /^ID:/m;
    sleep 0.1;
}

die "the worker has no timers\n" if read_file($timers) !~ /^ID:/m;

my $load = load();
sleep 1;
die "no wrk\n" if waitpid($load, WNOHANG);

my %ratios;

for (1 .. $pairs) {
    push @{$ratios{continuous}}, pair($armed, $disarmed);
    push @{$ratios{again}}, pair($armed, $armed);
}

die "wrk has ended\n" if waitpid($load, WNOHANG);

kill TERM => $load;
waitpid $load, 0;

close $s;
stop($server);

printf "%-12s %26s %18s\n", '', 'CPU per request', 'mean';

for my $kind (qw/ continuous again /) {
    my @v = @{$ratios{$kind}};
    my $mean = sum(@v) / @v;
    my $variance = sum(map { ($_ - $mean) ** 2 } @v) / (@v - 1);

    printf "%-12s %26s %8.4f +- %6.4f\n", $kind, quartiles(@v), $mean,
           sqrt($variance / @v);
}


# the CPU time per request in the first state, to that in the second state
sub pair {
    my @states = @_;
    my @cost;

    $cost[$_] = cost($states[$_]) for shuffle 0, 1;

    return $cost[0] / $cost[1];
}


sub cost {
    my ($signal) = @_;

    kill $signal, $server->{worker};
    sleep SETTLE;

    my @from = counts();
    sleep $seconds;
    my @to = counts();

    return ($to[0] - $from[0]) / ($to[1] - $from[1]);
}


# nanoseconds of CPU time of the event loop, and its requests
sub counts {
    my ($cpu) = cpu_of($server->{worker});
    my ($requests) = request($s, '/status') =~ /^ \d+ \d+ (\d+)/m;

    return ($cpu, $requests);
}


sub load {
    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>', '/dev/null' or die;
        exec qw/ taskset -c 1 wrk -t1 -c8 /,
             '-d' . int(60 + $pairs * 8 * ($seconds + 2 * SETTLE)),
             "http://127.0.0.1:$port/small.html"
            or die "wrk: $!\n";
    }

    return $pid;
}
