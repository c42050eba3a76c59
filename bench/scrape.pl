#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# How long the event loop is held while metrics of many locations, or the
# overview of them, are made and sent.
#
# All locations have served a request that waited for an upstream.  A library
# that is preloaded into nginx measures the longest time between two calls of
# epoll_wait(), in CPU time of the thread ("cpu"), which other processes do not
# change, and in wall time ("wall"), which they change.  "nothing" is the same
# worker with small requests only.  Printed are the bytes of an answer, the time
# until a client has it, and the longest times of all answers, in milliseconds.
#
# usage: bench/scrape.pl [LOCATIONS [ANSWERS]]
#
# 1,000 locations, 40 answers

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__);

use Bench;

my $locations = $ARGV[0] || 1000;
my $answers = $ARGV[1] || 40;

my $dir = dir();
my ($port, $upstream) = (free_port(), free_port());
my $hold = "$dir/hold";
my $so = "$dir/scrape_hold.so";

system('cc', '-shared', '-fPIC', '-O2', '-o', $so,
       dirname(abs_path($0)) . '/scrape_hold.c', '-ldl') == 0
    or die "cc failed\n";

write_file($hold, pack 'q2', 0, 0);

my $in = join "\n", map { "location /l$_/ { proxy_pass http://one/; }" }
                        1 .. $locations;

my $server = start(port => $port,
                   env => { LD_PRELOAD => $so, SCRAPE_HOLD => $hold },
                   http => <<"EOC");
    upstream one { server 127.0.0.1:$upstream; }
    server { listen 127.0.0.1:$upstream; return 200 hello; }
    server {
        listen 127.0.0.1:$port;
        location /small { return 200 hello; }
        location /-/profile/ { profile_console; }
        location = /metrics { profile_metrics locations=10000; }
        $in
    }
EOC

my $s = connect_to($port) or die "no nginx: $!\n";

request($s, "/l$_/") for 1 .. $locations;

my @gzip = ('Accept-Encoding: gzip');
my @open = ('Accept: application/openmetrics-text');

my @kinds = (
    [ 'nothing', '/small' ],
    [ 'text', '/metrics' ],
    [ 'text, gzip', '/metrics', @gzip ],
    [ 'OpenMetrics', '/metrics', @open ],
    [ 'OpenMetrics, gzip', '/metrics', @open, @gzip ],
    [ 'overview', '/-/profile/', 'Accept: text/html' ],
    [ 'overview, gzip', '/-/profile/', 'Accept: text/html', @gzip ],
    [ 'overview as JSON', '/-/profile/?format=json' ],
);

printf "%-20s %10s %8s %8s %8s %8s\n", "$locations locations", 'bytes', 'ms',
       'cpu', 'wall', 'p90 wall';

for my $kind (@kinds) {
    my ($name, $uri, @headers) = @$kind;
    my (@ms, @cpu, @wall, $bytes);

    for (1 .. $answers) {
        reset_longest();

        my $from = time();
        my $answer = request($s, $uri, @headers);

        push @ms, (time() - $from) * 1000;
        $bytes = length $answer;

        die "$uri: ", substr($answer, 0, 300), "\n"
            if $answer !~ m{^HTTP/1.1 200 };

        # memory is freed after the answer

        sleep 0.01;
        request($s, '/small') for 1 .. 3;

        my ($cpu, $wall) = longest();
        push @cpu, $cpu;
        push @wall, $wall;
    }

    printf "%-20s %10d %8.1f %8.2f %8.2f %8.2f\n", $name, $bytes,
           map { at($$_[0], @{$$_[1]}) }
           [ 0.5, \@ms ], [ 1, \@cpu ], [ 1, \@wall ], [ 0.9, \@wall ];
}

close $s;
stop($server);


# nginx has mapped the file, so it keeps its length
sub reset_longest {
    open my $f, '+<', $hold or die "$hold: $!\n";
    syswrite $f, pack 'q2', 0, 0;
}


# milliseconds: of CPU time, of wall time
sub longest {
    return map { $_ / 1e6 } unpack 'q2', read_file($hold);
}


sub at {
    my ($part, @v) = @_;

    return (sort { $a <=> $b } @v)[$#v * $part];
}
