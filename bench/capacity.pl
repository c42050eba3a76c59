#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The memory, the threads and the descriptors of one worker, for several
# configurations and captures.  Private memory is the memory that belongs to the
# worker alone: a second worker needs as much again.  Shared memory exists once.
# Both count pages in use, not reserved ones.
#
# usage: bench/capacity.pl

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__);

use Bench;

my $dir = dir();
my %plain;

write_file("$dir/html/small.html", 'x' x 1000);
write_file("$dir/html/slow.txt", 'x' x 4_000_000);

printf "%-44s %9s %9s %8s %12s\n", 'one worker', 'private', 'shared',
       'threads', 'descriptors';

my $endpoint = 'profile_endpoint on;';
my $console = "location /-/profile/ { profile_console; }";

# name, directives in http, directives in server, work

for ([ 'without the module', '', '', undef, 'none' ],
     [ 'module without directives', '', '' ],
     [ 'profile_endpoint', '', $endpoint ],
     [ 'profile_accounting', 'profile_accounting on;', '' ],
     [ 'profile_stall_threshold', 'profile_stall_threshold 100ms;', '' ],
     [ 'profile_continuous', 'profile_continuous on slice=1s;', '',
       sub { many('/small.html', 20000) } ],
     [ 'profile_console, zone of 8 MB', '', $console ],
     [ 'profile_keep, no request', 'profile_keep $never;', $console ],
     [ 'everything on, idle', 'profile_accounting on; profile_keep $never; '
                              . 'profile_stall_threshold 100ms; '
                              . 'profile_continuous on; profile_context on;',
       "$endpoint $console location /metrics { profile_metrics; }" ],
     [ 'profile_keep, every request', 'profile_keep 1;', $console,
       sub { many('/small.html', 2000) } ],
     [ 'one request captured, wall', '', $endpoint,
       sub { held(1, '&profile_mode=wall') } ],
     [ '16 requests captured, wall', '', $endpoint,
       sub { held(16, '&profile_mode=wall') } ],
     [ 'one request captured, object', '', $endpoint,
       sub { held(1, '&profile_mode=object') } ],
     [ 'after 100 captures', '', $endpoint,
       sub { many('/small.html?performance_bar=flamegraph', 100) } ],
     [ 'the worker captured, 1000 Hz, 5 s', '', "$endpoint $console",
       sub { worker('cpu') } ],
     [ 'the worker captured, object, 5 s', '', "$endpoint $console",
       sub { worker('object') } ])
{
    row(@$_);
}


sub row {
    my ($name, $http, $in, $do, $none) = @_;

    my $port = free_port();

    my $server = start(port => $port, $none ? (main => '') : (),
                       http => <<"EOC");
    map \$uri \$never { default 0; }
    $http
    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        $in
        location = /slow.txt { limit_rate 400k; }
    }
EOC

    my $sock = connect_to($port) or die "no nginx: $!\n";

    request($sock, '/small.html') for 1 .. 1000;

    our $now = { server => $server, port => $port, sock => $sock };
    my $end = $do ? $do->() : undef;
    my %got = usage($server->{worker});

    %plain = %got if $none;

    printf "%-44s %9s %9s %8s %12s\n", $name,
           $none ? map { "$got{$_}" } qw/ private shared threads fds /
                 : map { sprintf '%+d', $got{$_} - $plain{$_} }
                       qw/ private shared threads fds /;

    $end->() if $end;
    stop($server);
}


# the resources of a process: kilobytes, and numbers

sub usage {
    my ($pid) = @_;

    my %kb = read_file("/proc/$pid/smaps_rollup") =~ /^(\w+): +(\d+) kB$/mg;
    my $shared = 0;

    for my $map (split /^(?=[0-9a-f]+-[0-9a-f]+ )/m,
                 read_file("/proc/$pid/smaps"))
    {
        $shared += $1 if $map =~ /^\S+ \S{3}s /
                         && $map =~ /^Rss: +(\d+) kB$/m;
    }

    opendir(my $fds, "/proc/$pid/fd") or die "/proc/$pid/fd: $!\n";
    my $n = grep { /^\d/ } readdir $fds;

    opendir(my $tasks, "/proc/$pid/task") or die "/proc/$pid/task: $!\n";

    return (private => $kb{Private_Dirty} + $kb{Private_Clean},
            shared => $shared,
            threads => scalar(grep { /^\d/ } readdir $tasks), fds => $n);
}


# sends requests, and waits until their work is done

sub many {
    my ($uri, $n) = @_;

    our $now;

    request($now->{sock}, $uri) for 1 .. $n;
    sleep 3;

    return undef;
}


# captured requests that wait for their clients

sub held {
    my ($n, $args) = @_;

    our $now;
    my @socks = map { connect_to($now->{port}) } 1 .. $n;

    for my $sock (@socks) {
        print $sock "GET /slow.txt?performance_bar=flamegraph$args HTTP/1.1\r\n"
                    . "Host: localhost\r\n\r\n";
        $sock->flush();
    }

    sleep 3;

    return sub { close $_ for @socks };
}


sub worker {
    my ($mode) = @_;

    our $now;
    my $sock = connect_to($now->{port});

    print $sock "GET /-/profile/$mode?seconds=5&frequency=1000&workers=self "
                . "HTTP/1.1\r\nHost: localhost\r\n\r\n";
    $sock->flush();

    my $end = Time::HiRes::time() + 4;
    request($now->{sock}, '/small.html') while Time::HiRes::time() < $end;

    return sub { close $sock };
}
