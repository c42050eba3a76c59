#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# What a capture of the worker costs: CPU time per request and throughput, as
# ratios to the same worker without a capture, in pairs that follow one another.
# "again" is a second run without one: what the other ratios cannot resolve.
# The worker runs on one CPU and the load on another one.
# perf and gperftools (by LD_PRELOAD) stand beside it, if they are there.
#
# LOADS="gzip static" ROUNDS=7 SECONDS=3 bench/server.pl
#
# The table has the median and the quartiles of the rounds.

use strict;
use warnings;

use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use List::Util qw/ shuffle /;
use Time::HiRes qw/ sleep /;

# nginx itself takes the variable for sockets that it inherits
my $nginx = delete $ENV{NGINX} || '/usr/sbin/nginx';
my $module = $ENV{MODULE} || 'build/ngx_http_profile_module.so';
my $rounds = $ENV{ROUNDS} || 7;
my $seconds = $ENV{SECONDS} || 3;
my @loads = split(/\s+/, $ENV{LOADS} || 'gzip static');
my $signal = 23;

my %loads = (gzip => '/text', static => '/small');

for (@loads) {
    die "there is no load \"$_\", but " . join(', ', sort keys %loads) . "\n"
        unless $loads{$_};
}

chomp(my $path = `realpath $module`);
my ($gperftools) = glob('/usr/lib/*/libprofiler.so.0');

die "wrk is not installed\n" if system('command -v wrk >/dev/null');

my $dir = tempdir(CLEANUP => 1);
mkdir "$dir/html" or die;
write_file("$dir/html/text", join('', map { "line $_ " . rand() . "\n" }
                                      1 .. 6000));

write_file("$dir/html/small", 'x' x 1000);

my %server = (ours => start('ours', "load_module $path;"));
$server{theirs} = start('theirs', 'env CPUPROFILE; env CPUPROFILESIGNAL;'
                                  . 'env CPUPROFILE_FREQUENCY;',
                        LD_PRELOAD => $gperftools, CPUPROFILE => "$dir/prof",
                        CPUPROFILE_FREQUENCY => 100,
                        CPUPROFILESIGNAL => $signal)
    if $gperftools;

my @variants = (
    [ 'again', 'ours', sub { () } ],
    [ 'cpu, 99 Hz', 'ours', sub { capture('cpu', 99) } ],
    [ 'cpu, 1000 Hz', 'ours', sub { capture('cpu', 1000) } ],
    [ 'wall, 99 Hz', 'ours', sub { capture('wall', 99) } ],
    [ 'wall, 1000 Hz', 'ours', sub { capture('wall', 1000) } ],
    $gperftools
        ? [ 'gperftools, 100 Hz', 'theirs', sub { toggled() } ] : (),
    !system('command -v perf >/dev/null')
        ? map { my $f = $_; [ "perf -g, $f Hz", 'ours', sub { perf($f) } ] }
              99, 999 : (),
);

for my $load (@loads) {
    my %ratios;

    for (1 .. $rounds) {
        for my $variant (shuffle @variants) {
            my ($name, $which, $begin) = @$variant;
            my $plain = run($which, $load);
            my @end = $begin->();
            my $captured = run($which, $load);
            $_->() for @end;

            push @{$ratios{$name}{$_}}, $captured->{$_} / $plain->{$_}
                for qw/ cpu rate /;
        }
    }

    printf "%-20s %-28s %-28s\n", $load, 'CPU per request', 'requests/s';

    for my $name (map { $_->[0] } @variants) {
        printf "%-20s %-28s %-28s\n", $name,
               map { spread(@{$ratios{$name}{$_}}) } qw/ cpu rate /;
    }

    print "\n";
}

kill 'QUIT', map { $_->{master} } values %server;


sub spread {
    my @r = sort { $a <=> $b } @_;

    return sprintf('%.3f  (%.3f .. %.3f)', $r[$#r / 2], $r[$#r / 4],
                   $r[$#r * 3 / 4]);
}


sub write_file {
    my ($name, $content) = @_;
    open my $f, '>', $name or die "$name: $!\n";
    print $f $content;
    close $f or die;
}


sub start {
    my ($name, $head, %env) = @_;

    my $port = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
               ->sockport();
    my $console = $name eq 'ours' ? 'location /-/profile/ { profile_console; }'
                                  : '';

    write_file("$dir/$name.conf", <<"END");
$head
user root;
worker_processes 1;
pid $dir/$name.pid;
error_log $dir/$name.log;
events { }
http {
    access_log off;
    default_type text/plain;
    gzip on;
    gzip_types text/plain;
    gzip_comp_level 6;
    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        $console
    }
}
END

    local %ENV = (%ENV, %env);
    system(qw/ taskset -c 0 /, $nginx, '-p', "$dir/",
           '-c', "$dir/$name.conf") == 0
        or die "nginx does not start\n";

    my $master;

    for (1 .. 100) {
        sleep(0.05);
        chomp($master = `cat $dir/$name.pid 2>/dev/null`);
        last if $master && `pgrep -P $master` =~ /\d/;
    }

    chomp(my $worker = `pgrep -P $master`);

    return { port => $port, master => $master, worker => $worker };
}


# CPU time per request, in ns, and requests per second
sub run {
    my ($which, $load) = @_;
    my $s = $server{$which};

    my $before = used($s->{worker});
    my $out = `taskset -c 1 wrk -t1 -c4 -d$seconds -H 'Accept-Encoding: gzip' \\
               http://127.0.0.1:$s->{port}$loads{$load}`;
    my $cpu = used($s->{worker}) - $before;

    my ($requests) = $out =~ /(\d+) requests in/;
    my ($rate) = $out =~ m{^Requests/sec:\s+(\S+)}m;

    die "wrk: $out\n" unless $requests && $rate && $cpu;

    return { cpu => $cpu / $requests, rate => $rate };
}


sub used {
    my ($pid) = @_;
    my $sum = 0;

    for my $file (glob("/proc/$pid/task/*/schedstat")) {
        open my $f, '<', $file or next;
        $sum += (split / /, <$f>)[0];
    }

    return $sum;
}


# these begin something, and return what ends it; what does not begin is no
# result

sub capture {
    my ($mode, $frequency) = @_;

    my $end = child('curl', '-s', '-o', '/dev/null', "http://127.0.0.1:"
                    . "$server{ours}{port}/-/profile/$mode?seconds="
                    . ($seconds + 5) . "&frequency=$frequency&format=folded");

    # a real-time signal, but for the C library's own

    open my $f, '<', "/proc/$server{ours}{worker}/status" or die;
    my ($caught) = map { /^SigCgt:\s+(\S+)/ ? $1 : () } <$f>;

    die "the worker is not captured\n" unless hex(substr($caught, 0, 8)) >> 1;

    return $end;
}


sub perf {
    my ($frequency) = @_;

    unlink "$dir/perf";

    my $end = child('perf', 'record', '-q', '-F', $frequency, '-g', '-o',
                    "$dir/perf", '-p', $server{ours}{worker});

    return sub {
        $end->();
        die "perf has no samples\n" unless (-s "$dir/perf" || 0) > 5000;
    };
}


sub child {
    my (@command) = @_;

    my $pid = fork() // die "fork: $!\n";

    if (!$pid) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec @command;
    }

    sleep(0.4);

    return sub { kill 'INT', $pid; waitpid($pid, 0) };
}


sub toggled {
    kill $signal, $server{theirs}{worker};

    return sub {
        kill $signal, $server{theirs}{worker};
        sleep(0.2);
        die "gperftools has no samples\n" unless grep { (-s || 0) > 500 }
                                                      glob("$dir/prof*");
        unlink glob("$dir/prof*");
    };
}
