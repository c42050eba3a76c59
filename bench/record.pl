#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The CPU time of a request that is recorded, or answered by a flamegraph, beyond
# the same request without the trigger: of the worker's event loop, of its
# thread for jobs, and of both.
# The kernel counts it per thread, in nanoseconds, so other processes matter
# little.
#
# The requests of all types follow one another on one connection, in rounds of
# a random order; "again" is a second type without a trigger: it shows the noise
# of the machine.  Prints the median and the quartiles of the rounds.
#
# The profiles are stored in memory, or in files if STORE is set.
#
# usage: [STORE=1] bench/record.pl [ROUNDS [REQUESTS]]

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ shuffle /;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__);

use Bench;

my $rounds = $ARGV[0] || 20;
my $requests = $ARGV[1] || 100;

my $dir = dir();
my $port = free_port();
my $store = $ENV{STORE} ? "profile_store $dir/store;" : '';

write_file("$dir/html/small.html", 'x' x 1000);
write_file("$dir/html/large.txt",
           join('', map { "line $_ of many\n" } 1 .. 6000));

my %kinds = (none => '', again => '', record => '?performance_bar=record',
             flamegraph => '?performance_bar=flamegraph');
my $server = start(port => $port, http => <<"EOC");
    profile_max_captures 1000;
    $store
    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        profile_endpoint on;
        location /-/profile/ { profile_console; }
    }
EOC

printf "%-24s %22s %22s %22s\n", 'more than none, in ms', 'event loop',
       'jobs', 'both';

for my $uri (qw{ /small.html /large.txt }) {
    my $sock = connect_to($port) or die "no nginx: $!\n";
    my %more;

    # the first round warms up

    for my $round (0 .. $rounds) {
        my %got = map { $_ => measure($sock, "$uri$kinds{$_}") }
                      shuffle keys %kinds;

        for my $kind ($round ? qw/ again record flamegraph / : ()) {
            my @more = map { $got{$kind}[$_] - $got{none}[$_] } 0, 1;

            push @{$more{$kind}[$_]}, $more[$_] for 0, 1;
            push @{$more{$kind}[2]}, $more[0] + $more[1];
        }
    }

    printf "%-24s %22s %22s %22s\n", "$uri $_",
           map { quartiles(@$_) } @{$more{$_}}
        for qw/ again record flamegraph /;
}

stop($server);


# milliseconds of the event loop and of the other threads, per request

sub measure {
    my ($sock, $uri) = @_;

    my @before = cpu_of($server->{worker});
    request($sock, $uri) for 1 .. $requests;
    jobs_end($sock);
    my @after = cpu_of($server->{worker});

    return [ map { ($after[$_] - $before[$_]) / $requests / 1e6 } 0, 1 ];
}


# all types request the status equally often

sub jobs_end {
    my ($sock) = @_;

    for (1 .. 5) {
        sleep 0.02;
        request($sock, '/-/profile/status.json');
    }

    for (1 .. 500) {
        return if request($sock, '/-/profile/status.json') =~ /"jobs": ?0\b/;
        sleep 0.01;
    }

    die "jobs do not end\n";
}
