#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# What profile_keep costs when its condition is true for every request, as when
# a server fails as a whole: throughput as a ratio to a condition that is never
# true, threads and memory of the worker, and whether all requests are counted.
#
# The servers run all the time and are loaded by turns, a second at a time, in a
# random order.  The last line is a second server whose condition is never true:
# it shows the noise of the machine.  Workers run on one CPU and the load on
# another one.  Prints the median and the quartiles of the rounds.
#
# needs wrk and taskset, and two CPUs
#
# usage: bench/outage.pl [ROUNDS]

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use List::Util qw/ shuffle sum0 /;

use lib dirname(__FILE__);

use Bench;

use constant CONNECTIONS => 64;

my $rounds = $ARGV[0] || 12;

my $dir = dir();

write_file("$dir/html/small.html", 'x' x 1000);

my %servers = (
    never => keeping('never', 'profile_keep $never;'),
    always => keeping('always', 'profile_keep 1;'),
    again => keeping('again', 'profile_keep $never;'),
);

my %ratio;

# the first round warms up

load($_) for values %servers;

my %before = map { $_ => { memory_of($servers{$_}) } } keys %servers;

for (1 .. $rounds) {
    my %rate = map { $_ => load($servers{$_}) } shuffle keys %servers;

    push @{$ratio{$_}}, $rate{$_} / $rate{never} for qw/ always again /;
}

for my $name (qw/ always again /) {
    my %now = memory_of($servers{$name});

    printf "%-8s %s  %d threads, %+d kB since the first round, %d kB at most\n",
           $name, quartiles(@{$ratio{$name}}), $now{Threads},
           $now{VmRSS} - $before{$name}{VmRSS}, $now{VmHWM};
}

my ($status) = grep { $_->{this} } @{status($servers{always})->{workers}};
my $dropped = sum0(values %{$status->{dropped}});

printf "%d requests, %d kept + %d dropped = %d\n", $servers{always}{requests},
       $status->{kept}, $dropped, $status->{kept} + $dropped;

stop(values %servers);


# requests a second; wrk does not count requests without a complete response

sub load {
    my ($s) = @_;

    my $out = `taskset -c 1 wrk -t1 -c@{[ CONNECTIONS ]} -d1s @{[
               ]}http://127.0.0.1:$s->{port}/small.html`;
    my ($n) = $out =~ /(\d+) requests in/ or die "no wrk\n";
    my ($rate) = $out =~ m{Requests/sec:\s+(\S+)};

    $s->{requests} += $n;

    return $rate;
}


sub memory_of {
    my ($s) = @_;

    open my $f, '<', "/proc/$s->{worker}/status" or die "no worker: $!\n";
    return map { /^(Threads|VmRSS|VmHWM):\s+(\d+)/ ? ($1, $2) : () } <$f>;
}


sub status {
    my ($s) = @_;

    my $sock = connect_to($s->{console}) or die "no console: $!\n";
    return decode_json(request($sock, '/status.json') =~ s/.*?\r\n\r\n//sr);
}


sub keeping {
    my ($name, $conf) = @_;

    my ($port, $console) = (free_port(), free_port());
    my $s = start(name => $name, port => $port, cpu => 0, http => <<"EOC");
    map \$uri \$never { default 0; }
    server { listen 127.0.0.1:$port; root $dir/html; $conf }
    server { listen 127.0.0.1:$console; location / { profile_console; } }
EOC

    return { %$s, console => $console, requests => 0 };
}
