#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# How long other requests of a worker wait while the store's disk and /proc are
# slow: each call that uses one of their files takes 300 ms more.
#
# The same operations run with the fast disk and with the slow one, in turns:
# recorded requests, flamegraphs, captures of workers, pins, lists, a deleted
# profile, metrics.  Another client sends a small request each millisecond over
# a kept connection.  The table has its times in milliseconds.  The second row
# "fast" is the A/A run.
#
# usage: bench/disk.pl [SECONDS]: of each row, 20 by default

use strict;
use warnings;

use File::Basename qw/ dirname /;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__);

use Bench;

my $seconds = shift // 20;
my $dir = dir();
my $port = free_port();
my $disk = "$dir/store";

system('cc', qw/ -shared -fPIC -O1 -o /, "$dir/disk.so",
       dirname(__FILE__) . '/../t/preload/prof_disk.c', '-ldl') == 0
    or die "the library is not built\n";

write_file("$dir/html/text", "hello\n");

my $server = start(port => $port, main => "env PROF_DISK;\n" . module(),
                   env => { LD_PRELOAD => "$dir/disk.so", PROF_DISK => $disk },
                   http => <<"EOC");
    profile_zone store:1m;
    profile_store $disk max=10m;
    profile_max_captures 100;
    profile_accounting on;
    profile_continuous on slice=1s;

    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        profile_endpoint on;
        location / { }
        location /small { return 200 "small\\n"; }
        location /-/profile/ { profile_console; }
        location = /metrics { profile_metrics; }
    }
EOC

my @rows = map { { name => $_, ms => [] } } qw/ idle fast slow fast /;

# in turns, so that a slow minute of the machine is in all rows

for (1 .. 4) {
    for my $row (@rows) {
        open my $slow, '>', "$disk.slow" if $row->{name} eq 'slow';

        my $busy = $row->{name} eq 'idle' ? undef : operate();

        push @{$row->{ms}}, others($seconds / 4);
        kill('TERM', $busy), waitpid($busy, 0) if $busy;

        unlink "$disk.slow";
        sleep 1;
    }
}

stop($server);

printf "%-8s %8s %8s %8s %8s %8s\n", '', 'requests', 'p50', 'p99', 'p99.9',
       'longest';

for my $row (@rows) {
    my @ms = sort { $a <=> $b } @{$row->{ms}};

    printf "%-8s %8d %8.2f %8.2f %8.2f %8.2f\n", $row->{name}, scalar @ms,
           map { $ms[$_ * $#ms] } 0.5, 0.99, 0.999, 1;
}


# milliseconds of requests, one after the other, each in its millisecond
sub others {
    my ($long) = @_;

    my $s = connect_to($port) or die "no connection\n";
    my $end = time() + $long;
    my @ms;

    while ((my $now = time()) < $end) {
        request($s, '/small');
        push @ms, (time() - $now) * 1e3;
        sleep 0.001;
    }

    return @ms;
}


# a process that uses the store until it is killed
sub operate {
    my $pid = fork() // die "fork: $!\n";

    return $pid if $pid;

    while (1) {
        my ($id) = get('/text?performance_bar=record') =~ /X-Profile-Id: (\w+)/;

        get('/text?performance_bar=flamegraph');
        get('/-/profile/cpu?seconds=0.1');
        get('/-/profile/profiles.json');
        get('/-/profile/status.json');
        get('/metrics');

        if ($id) {
            get("/-/profile/p/$id.json");
            get("/-/profile/p/$id/$_", 'POST') for qw/ pin unpin delete /;
        }
    }
}


sub get {
    my ($uri, $method) = @_;

    my $s = connect_to($port) or POSIX::_exit(1);
    my $text = '';

    print $s join("\r\n", ($method // 'GET') . " $uri HTTP/1.0",
                  'Host: localhost', 'X-Profile-Console: 1',
                  'Content-Length: 0', '', '');
    1 while sysread($s, $text, 65536, length $text);

    return $text;
}
