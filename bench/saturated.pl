#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# Captures on a machine without an idle processor: how much later than asked a
# client gets its answer, how many functions of nginx have no name, and the
# latency of the other requests.
#
# Four workers compress a text, and wrk asks for it without a pause.  Beside
# them run loops, if asked for.  Then clients ask for captures of all workers,
# and for flamegraphs of a request.  The same request without a trigger tells
# how long it takes.
#
# usage: bench/saturated.pl [LOOPS...]
#
#     LOOPS      0 12; the numbers of busy loops to measure with
#     ROUNDS=5   of each kind of capture
#     IDLE=3     seconds between the start of nginx and the load

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ max /;
use POSIX ();
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__), dirname(__FILE__) . '/../t/lib';

use Bench;
use ProfileTest::Pprof;

my @loops = @ARGV ? @ARGV : (0, 12);
my $rounds = $ENV{ROUNDS} || 5;
my $idle = $ENV{IDLE} // 3;

my $dir = dir();

srand(1);

write_file("$dir/html/$_->[0]", join('', map { "line $_ " . rand() . "\n" }
                                             1 .. $_->[1]))
    for [ 'small', 300 ], [ 'large', 20000 ];

my $others = '';

for my $n (@loops) {
    my $port = free_port();

    my $s = start(name => "loops$n", port => $port, workers => 4,
                  http => <<"EOC");
    gzip on;
    gzip_types text/plain;
    gzip_comp_level 6;
    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        profile_endpoint on;
        location /-/profile/ { profile_console; }
    }
EOC

    sleep $idle;

    my @busy = map { busy() } 1 .. $n;

    my $alone = wrk($s, 5);
    my ($plain) = captures($s, 'plain', '/large');

    # the load's end is not waited for: it lasts longer than the captures
    my $reader = start_wrk($s, 8 * $rounds);

    print "$n loops beside 4 workers\n";

    my ($usual) = captures($s, 'plain', '/large');

    captures($s, 'capture of 1 s', '/-/profile/debug/pprof/profile?seconds=1', 1);
    captures($s, 'flamegraph', '/large?performance_bar=flamegraph'
                               . '&profile_format=pprof', $usual);

    my $beside = end_wrk($reader);

    printf "  others: p99 %s alone, %s beside captures\n", $alone, $beside;
    printf "  log: %d messages about the helper\n",
           scalar(() = read_file("$dir/loops$n.log") =~ /helper for names/g);

    kill 'KILL', @busy;
    waitpid $_, 0 for @busy;
    stop($s);
}


# seconds of the median round
sub captures {
    my ($s, $name, $uri, $expected) = @_;

    my (@late, @nameless, $frames);

    for (1 .. $rounds) {
        my $sock = connect_to($s->{port}) or die "connect: $!\n";
        my $began = time;
        my $response = request($sock, $uri, 'Accept-Encoding: gzip');

        push @late, time - $began - ($expected // 0);

        next unless defined $expected;

        my (undef, $body) = split /\r\n\r\n/, $response, 2;
        $body = unchunked($body) if $response =~ /^Transfer-Encoding: chunked/m;

        my %names = map { map { $_ => 1 } @{$_->{stack}} }
                    ProfileTest::Pprof->new($body)->samples();

        push @nameless, scalar grep { /^nginx\+0x/ } keys %names;
        $frames = keys %names;
    }

    @late = sort { $a <=> $b } @late;

    printf "  %-15s %4.0f ms late (%.0f to %.0f), %s of %d functions without "
           . "a name\n", $name, 1000 * $late[@late / 2], 1000 * $late[0],
           1000 * $late[-1], join('/', @nameless), $frames
        if defined $expected;

    return $late[@late / 2];
}


sub unchunked {
    my ($body) = @_;

    my $data = '';

    while ($body =~ s/^([0-9a-f]+)\r\n//i) {
        $data .= substr($body, 0, hex $1, '');
        $body =~ s/^\r\n//;
    }

    return $data;
}


sub start_wrk {
    my ($s, $seconds) = @_;

    open my $out, '-|', qw/ wrk -t2 -c16 --latency /, "-d${seconds}s",
        qw/ -H /, 'Accept-Encoding: gzip', "http://127.0.0.1:$s->{port}/small"
        or die "wrk: $!\n";

    sleep 0.5;

    return $out;
}


sub end_wrk {
    my ($out) = @_;

    my ($p99) = join('', <$out>) =~ /^\s+99%\s+(\S+)/m;
    close $out;

    return $p99 // '?';
}


sub wrk { return end_wrk(start_wrk(@_)) }


sub busy {
    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        my $parent = getppid();
        my $n = 0;
        while (1) {
            POSIX::_exit(0) if ++$n % 10_000_000 == 0 && getppid() != $parent;
        }
    }

    return $pid;
}
