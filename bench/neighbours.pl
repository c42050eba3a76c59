#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The effect on other connections of a worker while one client has gzipped files
# recorded, or answered by flamegraphs, 40 in a second: throughput of 16
# connections as a ratio to that beside the same requests without a trigger, and
# the median and the 99th percentile of their latency.
#
# One server is loaded for a second each with all types of requests, in a random
# order.  "none" and "again" are two equal types without a trigger: their ratio
# shows the noise of the machine, and the other types are compared with the mean
# of both.  The worker and its helper run on one CPU; the load and the client
# run on another one, so that the client takes no time of the worker.  Prints
# the median and the quartiles of the rounds.
#
# needs wrk and taskset, and two CPUs
#
# usage: bench/neighbours.pl [ROUNDS]

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ shuffle /;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__);

use Bench;

use constant CONNECTIONS => 16;
use constant RATE => 40;

my $rounds = $ARGV[0] || 12;

my $dir = dir();
my $port = free_port();

write_file("$dir/html/small.html", 'x' x 1000);
write_file("$dir/html/large.txt", join('', map { "line $_ of many\n" } 1 .. 6000));

my %kinds = (
    none => '',
    record => '?performance_bar=record',
    flamegraph => '?performance_bar=flamegraph',
    again => '',
);

system("taskset -p -c 1 $$ >/dev/null") == 0 or die "no taskset\n";

my $server = start(port => $port, cpu => 0, http => <<"EOC");
    gzip on;
    gzip_types text/plain;
    profile_max_captures 100;
    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        profile_endpoint on;
        location /-/profile/ { profile_console; }
    }
EOC

my (%ratio, %ms, %answers);

# the first round warms up

for my $round (0 .. $rounds) {
    my %got = map { $_ => measure($_) } shuffle keys %kinds;

    my $none = $got{none}{rate};
    my $plain = ($none + $got{again}{rate}) / 2;

    for my $kind ($round ? keys %got : ()) {
        my $of = $kind =~ /none|again/ ? $none : $plain;

        push @{$ratio{$kind}}, $got{$kind}{rate} / $of;
        push @{$ms{$_}{$kind}}, $got{$kind}{$_} for qw/ p50 p99 /;
    }
}

printf "%-12s %26s  %26s  %26s  %s\n", '', 'throughput', 'p50, ms', 'p99, ms',
       'answers';

printf "%-12s %26s  %26s  %26s  %s\n", $_, quartiles(@{$ratio{$_}}),
       quartiles(@{$ms{p50}{$_}}), quartiles(@{$ms{p99}{$_}}), $answers{$_}
    for qw/ none again record flamegraph /;

stop($server);


# throughput and latency of other connections, beside the requests of one kind

sub measure {
    my ($kind) = @_;

    my $out = "$dir/wrk.out";
    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>', $out or die;
        exec qw/ taskset -c 1 wrk --latency -t1 -d1s /,
             '-c' . CONNECTIONS, "http://127.0.0.1:$port/small.html"
            or die "no wrk: $!\n";
    }

    my $end = time() + 1;
    my $due = time();
    my $sock = connect_to($port) or die "no nginx: $!\n";

    while (($due += 1 / RATE) < $end) {
        sleep $due - time() if $due > time();
        request($sock, "/large.txt$kinds{$kind}", 'Accept-Encoding: gzip');
        $answers{$kind}++;
    }

    waitpid $pid, 0;

    my $text = read_file($out);
    my ($rate) = $text =~ m{Requests/sec:\s+(\S+)} or die "no wrk\n";
    my %unit = (us => 0.001, ms => 1, s => 1000);
    my ($p50, $p99) = map { $text =~ m{\b$_%\s+([\d.]+)(us|ms|s)}
                            ? $1 * $unit{$2} : die "no wrk\n" } 50, 99;

    return { rate => $rate, p50 => $p50, p99 => $p99 };
}
