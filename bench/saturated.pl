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
# Some of the delay is the scheduler's: workers and clients get a processor late,
# whatever they do.  So the same is measured without the module: the same server
# sends a response in two parts, a second apart, over a connection for each
# worker.  The last part is as late as a capture of a second must be.
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

write_file("$dir/html/second", 'x' x 1200);

for my $n (@loops) {
    my $s = server("loops$n", module(), 'profile_endpoint on;
                   location /-/profile/ { profile_console; }');
    my $plain = server("plain$n", '', '');

    sleep $idle;

    my @busy = map { busy() } 1 .. $n;

    print "$n loops beside 4 workers\n";

    my $reader = start_wrk($plain, 3 * $rounds);
    my @late = map { second($plain) } 1 .. $rounds;

    printf "  %-16s %s ms late\n", 'without a module',
           join('/', map { sprintf '%.0f', 1000 * $_ } @late);
    printf "  others: p99 %s\n", end_wrk($reader);

    my $alone = wrk($s, 5);

    # the load's end is not waited for: it lasts longer than the captures
    $reader = start_wrk($s, 8 * $rounds);

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
    stop($s, $plain);
}


sub server {
    my ($name, $main, $conf) = @_;

    my $port = free_port();

    return start(name => $name, port => $port, workers => 4, main => $main,
                 http => <<"EOC");
    gzip on;
    gzip_types text/plain;
    gzip_comp_level 6;
    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        location = /second { gzip off; limit_rate 1000; }
        $conf
    }
EOC
}


# seconds by which the last of four responses is late
sub second {
    my ($s) = @_;

    my @socks = map { connect_to($s->{port}) or die "connect: $!\n" } 1 .. 4;
    my $began = time;

    print $_ "GET /second HTTP/1.0\r\n\r\n" for @socks;

    for my $sock (@socks) {
        1 while sysread($sock, my $data, 65536);
    }

    return time - $began - 1;
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

    # the first one may be cold

    printf "  %-16s %s ms late, %s of %d functions without a name\n", $name,
           join('/', map { sprintf '%.0f', 1000 * $_ } @late),
           join('/', @nameless), $frames
        if defined $expected;

    return (sort { $a <=> $b } @late)[@late / 2];
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
