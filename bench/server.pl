#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The cost of a capture of the worker: CPU time per request and throughput, as
# ratios to the same worker without a capture, in pairs that follow one another.
# "again" is a second run without a capture: it shows the noise of the ratios.
# perf and gperftools are measured as well, if installed.  The CPU time of perf's
# own process while it records counts as the worker's.
#
# LOADS="gzip tls proxied static" ROUNDS=7 SECONDS=3 bench/server.pl
#
# VARIANTS is an expression for the variants to be measured besides "again".
#
# The table has the median and the quartiles of the rounds.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ shuffle /;

use lib dirname(__FILE__);

use Bench;
use Workers;

my $rounds = $ENV{ROUNDS} || 7;
my $seconds = $ENV{SECONDS} || 3;
my @loads = split(/\s+/, $ENV{LOADS} || 'gzip tls proxied static');
my $wanted = $ENV{VARIANTS} // '';

start_workers(@loads);

my @variants = ([ 'again', 'ours', sub { sub { } } ],
                grep { $_->[0] =~ /(?:$wanted)/ } profilers());

for my $load (@loads) {
    my %ratios;

    for (1 .. $rounds) {
        for my $variant (shuffle @variants) {
            my ($name, $which, $begin) = @$variant;
            my $plain = load($which, $load, $seconds);
            my $end = $begin->($seconds + 5);
            my $captured = load($which, $load, $seconds);
            $end->();

            push @{$ratios{$name}{$_}}, $captured->{$_} / $plain->{$_}
                for qw/ cpu rate /;
        }
    }

    printf "%-20s %-28s %-28s\n", $load, 'CPU per request', 'requests/s';

    for my $name (map { $_->[0] } @variants) {
        printf "%-20s %-28s %-28s\n", $name,
               map { quartiles(@{$ratios{$name}{$_}}) } qw/ cpu rate /;
    }

    print "\n";
}

stop_workers();
