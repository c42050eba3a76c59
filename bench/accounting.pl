#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# What profile_accounting, profile_keep and profile_stall_threshold cost every
# request: throughput and CPU time per request, as ratios to nginx with the
# module loaded and nothing switched on.
#
# In each round all variants are started anew, and loaded by turns, a tenth of a
# second at a time, until each had its seconds.  Workers run on one CPU and the
# load on another one.  A ratio is that to the mean of two plain ones; what these
# differ by is what the machine's noise makes of equal things.  Printed are the
# median and the quartiles of the rounds.
#
# Much is left undone while nobody reads what is accounted, so there are logs, too:
# one with four variables of ours, as a ratio to one with four numbers of nginx's.
#
# With --instructions: instructions in user space per request, by callgrind.
#
# VARIANTS is an expression for the variants to be measured, LOADS for the loads.
#
# needs wrk and taskset, and two CPUs
#
# usage: bench/accounting.pl [--instructions] [ROUNDS [SECONDS]]

use strict;
use warnings;

use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use List::Util qw/ shuffle /;
use POSIX qw/ :sys_wait_h /;
use Time::HiRes qw/ sleep time /;

use constant SLICE => 0.1;

use constant SHORT => 200;
use constant LONG => 1200;

my $instructions = @ARGV && $ARGV[0] eq '--instructions' && shift;
my $rounds = $ARGV[0] || 16;
my $seconds = $ARGV[1] || 2;

my $nginx = delete $ENV{NGINX} || '/usr/sbin/nginx';
my $module = $ENV{MODULE} || 'build/ngx_http_profile_module.so';
my $user = $> == 0 ? 'user root;' : '';

my $dir = tempdir(CLEANUP => 1);

$module = `realpath $module`;
chomp $module;

my $times = 'cpu=$profile_cpu_time wait=$profile_wait_time '
            . 'stall=$profile_stall_time turns=$profile_turns';
my $numbers = 'cpu=$request_time wait=$request_time '
              . 'stall=$request_time turns=$connection_requests';

my @variants = (
    [ plain => '' ],
    [ accounting => 'profile_accounting on;' ],
    [ 'plain, logged' => '', $numbers ],
    [ 'accounting, logged' => 'profile_accounting on;', $times ],
    [ 'keep at 99 Hz' => 'profile_keep 0;' ],
    [ stalls => 'profile_stall_threshold 50ms;' ],
);

# plain, and those that match

my $which = $ENV{VARIANTS} // '';
my $logged = 'accounting, logged' =~ /$which/ ? 'plain, logged' : '';

@variants = ($variants[0], grep { $_->[0] =~ /$which/ || $_->[0] eq $logged }
                                @variants[1 .. $#variants]);

my %loads = ('1 KB file' => '/small.html', 'proxied' => '/proxied');
my $some = $ENV{LOADS} // '';

delete @loads{grep { !/$some/ } keys %loads};

mkdir "$dir/html";
write_file("$dir/html/small.html", 'x' x 1000);

if ($instructions) {
    count_instructions();
    exit;
}

push @variants, [ 'plain again' => '' ];

my $upstream = start('upstream', '', undef, 'return 200 hello;');

for my $load (sort keys %loads) {
    printf "%-24s %26s  %26s\n", $load, 'throughput', 'CPU per request';

    my (%rate, %cpu);

    # the first one warms up

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


sub quartiles {
    my @v = sort { $a <=> $b } @_;

    return sprintf '%.3f (%.3f .. %.3f)', @v[@v / 2, @v / 4, @v * 3 / 4];
}


# requests a second, and CPU time of one in ns, by variant

sub measure {
    my ($uri) = @_;

    my %servers = map { $_->[0] => start(@$_[0 .. 2]) } shuffle @variants;
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

    # answers that are on their way count, the time until wrk ends does not

    $_->{cpu} = cpu_of($_->{worker}) for @servers;
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


# wrk, which is stopped

sub load {
    my ($s, $uri, $time) = @_;

    $s->{out} = "$dir/wrk.$s->{port}";
    $s->{time} = 0;
    $s->{before} = cpu_of($s->{worker});
    $s->{wrk} = fork() // die "fork: $!\n";

    if ($s->{wrk} == 0) {
        open STDOUT, '>', $s->{out} or die;
        exec qw/ taskset -c 1 wrk -t1 -c32 /, '-d' . int($time) . 's',
             "http://127.0.0.1:$s->{port}$uri" or die "no wrk: $!\n";
    }

    sleep 0.02;
    kill 'STOP', $s->{wrk};
}


sub cpu_of {
    my ($pid) = @_;

    open my $f, '<', "/proc/$pid/schedstat" or die "no worker: $!\n";
    return (split / /, <$f>)[0];
}


sub start {
    my ($name, $conf, $log, $content, @command) = @_;

    (my $file = $name) =~ s/\W/-/g;

    my $port = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
               ->sockport();
    my $to = $upstream ? $upstream->{port} : $port;
    my $cpu = $upstream ? 0 : 1;

    $log = $log ? "log_format times '$log'; access_log $dir/$file.access "
                  . 'times buffer=64k;'
                : 'access_log off;';
    $content ||= "root $dir/html;";

    write_file("$dir/$file.conf", <<"EOC");
load_module $module;
$user
daemon off;
@{[ @command ? 'master_process off;' : 'worker_processes 1;' ]}
pid $dir/$file.pid;
error_log $dir/$file.log;
events { worker_connections 512; }
http {
    $log
    keepalive_requests 1000000000;
    client_body_temp_path $dir/$file.body;
    proxy_temp_path $dir/$file.proxy;
    fastcgi_temp_path $dir/$file.fastcgi;
    uwsgi_temp_path $dir/$file.uwsgi;
    scgi_temp_path $dir/$file.scgi;
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
}
EOC

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDERR, '>', "$dir/$file.err" or die;
        exec qw/ taskset -c /, $cpu, @command, $nginx,
             '-c', "$dir/$file.conf", '-e', "$dir/$file.log"
            or die "no taskset: $!\n";
    }

    my $worker;

    for (1 .. 300) {
        ($worker) = `pgrep -P $pid` =~ /(\d+)/;
        $worker //= $pid if @command;

        last if $worker
                && IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
        sleep 0.1;
    }

    return { port => $port, pid => $pid, worker => $worker };
}


# a single process may miss a signal between its check and the poll

sub stop {
    my ($server) = @_;

    do {
        kill 'QUIT', $server->{pid};
        sleep 0.1;
    } until waitpid $server->{pid}, WNOHANG;
}


sub count_instructions {
    $upstream = start('upstream', '', undef, 'return 200 hello;');

    my %plain;

    printf "%-24s %10s %10s %10s\n", 'instructions per request', 'total',
           'added', 'ratio';

    for my $load (sort keys %loads) {
        for my $variant (@variants) {
            my ($short, $long) = map { callgrind(@$variant[0 .. 2], $loads{$load},
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


sub callgrind {
    my ($name, $conf, $log, $uri, $n) = @_;

    my $server = start("callgrind", $conf, $log, undef, 'valgrind',
                       '--tool=callgrind', "--callgrind-out-file=$dir/out");
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$server->{port}")
        or die "nginx did not start\n";

    for (1 .. $n) {
        print $s "GET $uri HTTP/1.1\r\nHost: localhost\r\n\r\n";

        my $data = '';

        while ($data !~ /\r\n\r\n/) {
            sysread($s, $data, 4096, length $data) or die "closed\n";
        }

        my ($len) = $data =~ /Content-Length: (\d+)/ or die $data;
        my $end = index($data, "\r\n\r\n") + 4 + $len;

        while (length $data < $end) {
            sysread($s, $data, 4096, length $data) or die "closed\n";
        }
    }

    close $s;
    stop($server);

    open my $f, '<', "$dir/out" or die "no callgrind: $!\n";
    local $/;
    my ($total) = <$f> =~ /^(?:summary|totals): (\d+)/m;

    return $total;
}


sub write_file {
    my ($name, $text) = @_;

    open my $f, '>', $name or die "$name: $!\n";
    print $f $text;
    close $f or die "$name: $!\n";
}


sub read_file {
    my ($name) = @_;

    open my $f, '<', $name or die "$name: $!\n";
    local $/;
    return <$f> // '';
}
