#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# What profile_accounting, profile_context, profile_keep, profile_stall_threshold
# and profile_metrics cost every request: throughput and CPU time per request, as
# ratios to nginx with the module loaded and nothing switched on.
#
# Each round starts all variants again and loads them in turn, a tenth of a
# second at a time, until each has had its seconds.  Workers run on one CPU and
# the load on another CPU.  A ratio compares a variant with the mean of two plain
# variants.  The ratio of the plain variants shows the noise of the machine.  The
# output has the median and the quartiles of the rounds.
#
# The module computes times only if they are read.  So there are variants with
# logs: one with four of its variables, compared with four numbers of nginx.
#
# With --instructions: instructions in user space per request, by callgrind,
# without malloc() and the clock, and with the thread that stores profiles.  The
# clocks are those of still_clock.c, so the load of the machine has no influence.
#
# VARIANTS is an expression for the variants to be measured, LOADS for the loads.
#
# needs wrk and taskset, and two CPUs
#
# usage: bench/accounting.pl [--instructions] [ROUNDS [SECONDS]]

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ shuffle /;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__);

use Bench;

use constant SLICE => 0.1;

use constant SHORT => 200;
use constant LONG => 1200;

use constant IDLE => 8;

my $instructions = @ARGV && $ARGV[0] eq '--instructions' && shift;
my $rounds = $ARGV[0] || 16;
my $seconds = $ARGV[1] || 2;

my $dir = dir();

my $times = 'cpu=$profile_cpu_time wait=$profile_wait_time '
            . 'stall=$profile_stall_time turns=$profile_turns';
my $numbers = 'cpu=$request_time wait=$request_time '
              . 'stall=$request_time turns=$connection_requests';

my @variants = (
    [ plain => '' ],
    [ accounting => 'profile_accounting on;' ],
    [ context => 'profile_context on;' ],
    [ 'plain, logged' => '', $numbers ],
    [ 'accounting, logged' => 'profile_accounting on;', $times ],
    [ 'keep at 99 Hz' => 'profile_keep 0;' ],
    [ 'keep 1 in 100' => 'split_clients $connection:$connection_requests '
                         . '$some { 1% 1; * 0; } '
                         . 'profile_keep $some rate=1000;' ],
    [ stalls => 'profile_stall_threshold 50ms;' ],
    [ 'turn log' => 'profile_turn_log on;' ],
    [ continuous => 'profile_continuous on;' ],
    [ metrics => "server { listen unix:$dir/metrics; "
                 . 'location / { profile_metrics; } }' ],
);

# The plain variants, and the variants that match.  An empty pattern would match
# as the last pattern did, so each pattern is a group.

my $which = $ENV{VARIANTS} // '';
my $logged = 'accounting, logged' =~ /(?:$which)/ ? 'plain, logged' : '';

@variants = ($variants[0],
             grep { $_->[0] =~ /(?:$which)/ || $_->[0] eq $logged }
                  @variants[1 .. $#variants]);

my %loads = ('1 KB file' => '/small.html', 'proxied' => '/proxied');
my $some = $ENV{LOADS} // '';

delete @loads{grep { !/(?:$some)/ } keys %loads};

write_file("$dir/html/small.html", 'x' x 1000);

if ($instructions) {
    count_instructions();
    exit;
}

push @variants, [ 'plain again' => '' ];

my $upstream = variant('upstream', '', undef, 'return 200 hello;');

for my $load (sort keys %loads) {
    printf "%-24s %26s  %26s\n", $load, 'throughput', 'CPU per request';

    my (%rate, %cpu);

    # the first round warms up

    for my $round (0 .. $rounds) {
        my %got = measure($loads{$load});
        my ($a, $b) = @got{'plain', 'plain again'};

        for my $name ($round ? keys %got : ()) {
            my $of = $name =~ /^plain/ ? $a
                   : $name =~ /^accounting, / ? $got{'plain, logged'}
                   : {
                         rate => ($a->{rate} + $b->{rate}) / 2,
                         cpu => ($a->{cpu} + $b->{cpu}) / 2,
                     };

            push @{$rate{$name}}, $got{$name}{rate} / $of->{rate};
            push @{$cpu{$name}}, $got{$name}{cpu} / $of->{cpu};
        }
    }

    printf "  %-22s %26s  %26s\n", $_, quartiles(@{$rate{$_}}),
           quartiles(@{$cpu{$_}})
        for map { $_->[0] } @variants[1 .. $#variants];
}

stop($upstream);


# requests a second, and CPU time of one in ns, by variant

sub measure {
    my ($uri) = @_;

    my %servers = map { $_->[0] => variant(@$_[0 .. 2]) } shuffle @variants;
    my @servers = values %servers;

    sleep 0.2;
    load($_, $uri, $seconds * @servers * 1.1 + 1) for @servers;

    my $end = time() + $seconds * @servers;

    while (time() < $end) {
        for my $s (shuffle @servers) {
            my $from = time();

            kill 'CONT', $s->{wrk};
            sleep SLICE;
            kill 'STOP', $s->{wrk};

            $s->{time} += time() - $from;
        }
    }

    # pending answers count; the time until wrk ends does not

    ($_->{cpu}) = cpu_of($_->{worker}) for @servers;
    kill 'INT', map { $_->{wrk} } @servers;

    my %got;

    for my $name (keys %servers) {
        my $s = $servers{$name};

        kill 'CONT', $s->{wrk};
        waitpid $s->{wrk}, 0;
        stop($s);

        my ($n) = read_file($s->{out}) =~ /(\d+) requests in/
            or die "no wrk\n";

        $got{$name} = { rate => $n / $s->{time},
                        cpu => ($s->{cpu} - $s->{before}) / $n };
    }

    return %got;
}


# starts wrk in a stopped process

sub load {
    my ($s, $uri, $time) = @_;

    $s->{out} = "$dir/wrk.$s->{port}";
    $s->{time} = 0;
    ($s->{before}) = cpu_of($s->{worker});
    $s->{wrk} = fork() // die "fork: $!\n";

    if ($s->{wrk} == 0) {
        open STDOUT, '>', $s->{out} or die;
        exec qw/ taskset -c 1 wrk -t1 -c32 /, '-d' . int($time) . 's',
             "http://127.0.0.1:$s->{port}$uri" or die "no wrk: $!\n";
    }

    sleep 0.02;
    kill 'STOP', $s->{wrk};
}


sub variant {
    my ($name, $conf, $log, $content, @command) = @_;

    (my $file = $name) =~ s/\W/-/g;

    my $port = free_port();
    my $to = $upstream ? $upstream->{port} : $port;

    $log = "log_format times '$log'; access_log $dir/$file.access "
           . 'times buffer=64k;' if $log;
    $content ||= "root $dir/html;";

    return start(name => $file, port => $port, cpu => $upstream ? 0 : 1,
                 log => $log, command => @command ? \@command : undef,
                 env => @command ? { LD_PRELOAD => "$dir/clock.so" } : undef,
                 http => <<"EOC");
    $conf
    upstream one { server 127.0.0.1:$to; keepalive 16; }
    server {
        listen 127.0.0.1:$port;
        location / { $content }
        location /proxied {
            proxy_pass http://one/;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }
    }
EOC
}


sub count_instructions {
    system(qw/ cc -shared -fPIC -O2 -W -Wall -o /, "$dir/clock.so",
           dirname(__FILE__) . '/still_clock.c', '-ldl') == 0
        or die "no cc\n";

    $upstream = variant('upstream', '', undef, 'return 200 hello;');

    my %plain;

    printf "%-24s %10s %10s %10s\n", 'instructions per request', 'total',
           'added', 'ratio';

    for my $load (sort keys %loads) {
        for my $variant (@variants) {
            my ($short, $long) = map { count(@$variant[0 .. 2], $loads{$load},
                                               $_) }
                                     SHORT, LONG;
            my $n = ($long - $short) / (LONG - SHORT);
            my $base = $variant->[2] ? 'logged' : '';

            $plain{"$load$base"} = $n if $variant->[0] =~ /^plain/;
            my $plain = $plain{"$load$base"} || $plain{$load};

            printf "  %-22s %10.0f %10.0f %10.3f\n", "$variant->[0], $load",
                   $n, $n - $plain, $n / $plain;
        }
    }

    stop($upstream);
}


sub count {
    my ($name, $conf, $log, $uri, $n) = @_;

    my $server = variant('callgrind', $conf, $log, undef, 'valgrind',
                       '--tool=callgrind', "--callgrind-out-file=$dir/out");
    my $s = connect_to($server->{port});

    # as in a server with clients, nginx has other timers than those of $s

    my @idle = map { connect_to($server->{port}) } 1 .. IDLE;

    request($_, $uri) for @idle, ($s) x $n;
    wait_for_jobs($server);
    close $_ for @idle, $s;
    stop($server);

    my %count = callgrind("$dir/out");

    return $count{total};
}


# a process without a master drops the profiles that its thread has not stored

sub wait_for_jobs {
    my ($server) = @_;

    my ($before, $cpu) = (-1, 0);

    while ($cpu != $before) {
        $before = $cpu;
        sleep 0.5;
        (undef, $cpu) = cpu_of($server->{worker});
    }
}
