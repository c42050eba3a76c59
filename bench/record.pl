#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The CPU time of a request that is recorded, beyond the same request without
# the trigger: of the worker's event loop, of its thread for jobs, and of both.
# The kernel counts it per thread, in nanoseconds, so other processes matter
# little.
#
# The requests of all kinds follow one another on one connection, in rounds of
# a random order; "again" is without a trigger, too: what the machine's noise
# makes of equal things.  Printed are the median and the quartiles of the
# rounds.
#
# The profiles are stored in memory, or in files if STORE is set.
#
# usage: [STORE=1] bench/record.pl [ROUNDS [REQUESTS]]

use strict;
use warnings;

use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use List::Util qw/ shuffle /;
use Time::HiRes qw/ sleep /;

my $rounds = $ARGV[0] || 20;
my $requests = $ARGV[1] || 100;

my $nginx = $ENV{NGINX} || '/usr/sbin/nginx';
my $module = $ENV{MODULE} || 'build/ngx_http_profile_module.so';
my $user = $> == 0 ? 'user root;' : '';
my $dir = tempdir(CLEANUP => 1);
my $store = $ENV{STORE} ? "profile_store $dir/store;" : '';

$module = `realpath $module`;
chomp $module;

mkdir "$dir/html" or die;
write_file("$dir/html/small.html", 'x' x 1000);
write_file("$dir/html/large.txt",
           join('', map { "line $_ of many\n" } 1 .. 6000));

my %kinds = (none => '', again => '', record => '?performance_bar=record');
my ($port, $pid, $worker) = start();

printf "%-24s %22s %22s %22s\n", 'more than none, in ms', 'event loop',
       'jobs', 'both';

for my $uri (qw{ /small.html /large.txt }) {
    my $sock = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port")
        or die "no nginx: $!\n";
    my %more;

    # the first round warms up

    for my $round (0 .. $rounds) {
        my %got = map { $_ => measure($sock, "$uri$kinds{$_}") }
                      shuffle keys %kinds;

        for my $kind ($round ? qw/ again record / : ()) {
            my @more = map { $got{$kind}[$_] - $got{none}[$_] } 0, 1;

            push @{$more{$kind}[$_]}, $more[$_] for 0, 1;
            push @{$more{$kind}[2]}, $more[0] + $more[1];
        }
    }

    printf "%-24s %22s %22s %22s\n", "$uri $_",
           map { quartiles(@$_) } @{$more{$_}}
        for qw/ again record /;
}

kill 'QUIT', $pid;
waitpid $pid, 0;


sub quartiles {
    my @v = sort { $a <=> $b } @_;

    return sprintf '%.3f (%.3f .. %.3f)', @v[@v / 2, @v / 4, @v * 3 / 4];
}


# milliseconds of the event loop and of the other threads, per request

sub measure {
    my ($sock, $uri) = @_;

    my @before = cpu();
    request($sock, $uri) for 1 .. $requests;
    jobs_end($sock);
    my @after = cpu();

    return [ map { ($after[$_] - $before[$_]) / $requests / 1e6 } 0, 1 ];
}


sub cpu {
    my @ns = (0, 0);

    for my $task (glob "/proc/$worker/task/*") {
        open my $f, '<', "$task/schedstat" or die "$task/schedstat: $!\n";
        my ($ns) = split ' ', <$f>;
        $ns[$task !~ m{/$worker$}] += $ns;
    }

    return @ns;
}


# all kinds ask for the status as often

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


sub request {
    my ($sock, $uri) = @_;

    print $sock "GET $uri HTTP/1.1\r\nHost: localhost\r\n\r\n";

    my $data = '';

    while (1) {
        sysread($sock, $data, 65536, length $data) or die "closed\n";

        my $body = index($data, "\r\n\r\n");
        next if $body < 0;

        return $data if $data =~ /^Content-Length: (\d+)\r\n/m
                        && length $data == $body + 4 + $1;
        return $data if $data =~ /\r\n0\r\n\r\n\z/;
    }
}


sub start {
    my $port = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
               ->sockport();

    write_file("$dir/nginx.conf", <<"EOC");
load_module $module;
$user
daemon off;
worker_processes 1;
pid $dir/nginx.pid;
error_log $dir/error.log;
events { worker_connections 64; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $dir/body;
    proxy_temp_path $dir/proxy;
    fastcgi_temp_path $dir/fastcgi;
    uwsgi_temp_path $dir/uwsgi;
    scgi_temp_path $dir/scgi;
    default_type text/plain;
    profile_max_captures 1000;
    $store
    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        profile_endpoint on;
        location /-/profile/ { profile_console; }
    }
}
EOC

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDERR, '>', "$dir/stderr.log" or die;
        exec $nginx, '-c', "$dir/nginx.conf", '-e', "$dir/error.log"
            or die "no nginx: $!\n";
    }

    for (1 .. 100) {
        my ($worker) = `pgrep -P $pid` =~ /(\d+)/;

        return ($port, $pid, $worker)
            if $worker
               && IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
        sleep 0.1;
    }

    die "no nginx, see $dir\n";
}


sub write_file {
    my ($name, $text) = @_;

    open my $f, '>', $name or die "$name: $!\n";
    print $f $text;
    close $f or die "$name: $!\n";
}
