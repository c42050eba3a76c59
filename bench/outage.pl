#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# What profile_keep costs when its condition is true for every request, as when
# a server fails as a whole: throughput as a ratio to a condition that is never
# true, threads and memory of the worker, and whether all requests are counted.
#
# The servers run all the time and are loaded by turns, a second at a time, in a
# random order.  The last line is a second server whose condition is never true:
# what machine's noise makes of equal things.  Workers run on one CPU and the
# load on another one.  Printed are the median and the quartiles of the rounds.
#
# needs wrk and taskset, and two CPUs
#
# usage: bench/outage.pl [ROUNDS]

use strict;
use warnings;

use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use JSON::PP qw/ decode_json /;
use List::Util qw/ shuffle sum0 /;
use Time::HiRes qw/ sleep /;

use constant CONNECTIONS => 64;

my $rounds = $ARGV[0] || 12;

my $nginx = $ENV{NGINX} || '/usr/sbin/nginx';
my $module = $ENV{MODULE} || 'build/ngx_http_profile_module.so';
my $user = $> == 0 ? 'user root;' : '';
my $dir = tempdir(CLEANUP => 1);

$module = `realpath $module`;
chomp $module;

mkdir "$dir/html";
write_file("$dir/html/small.html", 'x' x 1000);

my %servers = (
    never => start('never', 'profile_keep $never;'),
    always => start('always', 'profile_keep 1;'),
    again => start('again', 'profile_keep $never;'),
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

kill 'QUIT', map { $_->{pid} } values %servers;
waitpid $_->{pid}, 0 for values %servers;


sub quartiles {
    my @v = sort { $a <=> $b } @_;

    return sprintf '%.3f (%.3f .. %.3f)', @v[@v / 2, @v / 4, @v * 3 / 4];
}


# requests a second; wrk does not count those that it has sent and not read

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

    my $sock = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$s->{console}")
        or die "no console: $!\n";
    print $sock "GET /status.json HTTP/1.0\r\n\r\n";
    local $/;
    return decode_json(<$sock> =~ s/.*?\r\n\r\n//sr);
}


sub start {
    my ($name, $conf) = @_;

    my @ports = map { $_->sockport() }
                map { IO::Socket::INET->new(Listen => 1,
                                            LocalAddr => '127.0.0.1') } 1, 2;

    write_file("$dir/$name.conf", <<"EOC");
load_module $module;
$user
daemon off;
worker_processes 1;
pid $dir/$name.pid;
error_log $dir/$name.log;
events { worker_connections 512; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $dir/$name.body;
    proxy_temp_path $dir/$name.proxy;
    fastcgi_temp_path $dir/$name.fastcgi;
    uwsgi_temp_path $dir/$name.uwsgi;
    scgi_temp_path $dir/$name.scgi;
    map \$uri \$never { default 0; }
    server { listen 127.0.0.1:$ports[0]; root $dir/html; $conf }
    server { listen 127.0.0.1:$ports[1]; location / { profile_console; } }
}
EOC

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDERR, '>', "$dir/$name.err" or die;
        exec qw/ taskset -c 0 /, $nginx, '-c', "$dir/$name.conf", '-e',
             "$dir/$name.log" or die "no taskset: $!\n";
    }

    my $worker;

    for (1 .. 100) {
        ($worker) = `pgrep -P $pid` =~ /(\d+)/;

        last if $worker
                && IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ports[0]");
        sleep 0.1;
    }

    return { port => $ports[0], console => $ports[1], pid => $pid,
             worker => $worker, requests => 0 };
}


sub write_file {
    my ($name, $text) = @_;

    open my $f, '>', $name or die "$name: $!\n";
    print $f $text;
    close $f or die "$name: $!\n";
}
