#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The cost of a capture of the worker: CPU time per request and throughput, as
# ratios to the same worker without a capture, in pairs that follow one another.
# "again" is a second run without a capture: it shows the noise of the ratios.
# The worker runs on one CPU and the load on another one.
# perf and gperftools (by LD_PRELOAD) are measured as well, if installed.  The
# CPU time of perf's own process while it records counts as the worker's.
#
# The loads are a text that is compressed, 1 KB files, the same files from an
# upstream server, and the same files with a TLS handshake for each request.
#
# LOADS="gzip tls proxied static" ROUNDS=7 SECONDS=3 bench/server.pl
#
# VARIANTS is an expression for the variants to be measured besides "again".
#
# The table has the median and the quartiles of the rounds.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ shuffle sum0 /;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__);

use Bench;

my $rounds = $ENV{ROUNDS} || 7;
my $seconds = $ENV{SECONDS} || 3;
my @loads = split(/\s+/, $ENV{LOADS} || 'gzip tls proxied static');
my $signal = 23;

my %loads = (gzip => '/text', tls => '/small', proxied => '/proxied/small',
             static => '/small');

for (@loads) {
    die "there is no load \"$_\", but " . join(', ', sort keys %loads) . "\n"
        unless $loads{$_};
}

my ($gperftools) = glob('/usr/lib/*/libprofiler.so.0');

die "wrk is not installed\n" if system('command -v wrk >/dev/null');

my $dir = dir();

write_file("$dir/html/text", join('', map { "line $_ " . rand() . "\n" }
                                      1 .. 6000));

write_file("$dir/html/small", 'x' x 1000);

system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bench"
       . " -out $dir/crt -keyout $dir/key 2>/dev/null") == 0
    or die "openssl failed\n";

# the upstream server has the CPU of the load

my $behind = free_port();
my $upstream = start(name => 'behind', port => $behind, cpu => 1,
                     http => <<"EOC");
    server {
        listen 127.0.0.1:$behind;
        location /proxied/ { alias $dir/html/; }
    }
EOC

my ($child, $recorder);
my %server = (ours => server('ours', module()));
$server{theirs} = server('theirs', 'env CPUPROFILE; env CPUPROFILESIGNAL;'
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
        ? ([ 'perf -g, 99 Hz', 'ours', sub { perf('-g', -F => 99) } ],
           [ 'perf -g, 999 Hz', 'ours', sub { perf('-g', -F => 999) } ],
           [ 'perf dwarf, 99 Hz', 'ours',
             sub { perf('--call-graph=dwarf', -F => 99) } ])
        : (),
);

if (defined $ENV{VARIANTS}) {
    @variants = ($variants[0], grep { $_->[0] =~ /$ENV{VARIANTS}/ }
                                    @variants[1 .. $#variants]);
}

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
               map { quartiles(@{$ratios{$name}{$_}}) } qw/ cpu rate /;
    }

    print "\n";
}

stop(values %server, $upstream);


sub server {
    my ($name, $main, %env) = @_;

    my ($port, $tls) = (free_port(), free_port());
    my $console = $name eq 'ours' ? 'location /-/profile/ { profile_console; }'
                                  : '';

    my $s = start(name => $name, port => $port, main => $main, cpu => 0,
                  env => \%env, http => <<"EOC");
    upstream behind { server 127.0.0.1:$behind; keepalive 16; }
    gzip on;
    gzip_types text/plain;
    gzip_comp_level 6;
    server {
        listen 127.0.0.1:$port;
        listen 127.0.0.1:$tls ssl;
        ssl_certificate $dir/crt;
        ssl_certificate_key $dir/key;
        root $dir/html;
        $console

        location /proxied/ {
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass http://behind;
        }
    }
EOC

    return { %$s, tls => $tls };
}


# CPU time per request, in ns, and requests per second
sub run {
    my ($which, $load) = @_;
    my $s = $server{$which};
    my $to = $load eq 'tls' ? "https://127.0.0.1:$s->{tls}"
                            : "http://127.0.0.1:$s->{port}";
    my $header = $load eq 'tls' ? 'Connection: close' : 'Accept-Encoding: gzip';
    my @counted = ($s->{worker}, $recorder // ());

    my $before = sum0(map { cpu_of($_) } @counted);
    my $out = `taskset -c 1 wrk -t1 -c4 -d$seconds -H '$header' \\
               $to$loads{$load}`;
    my $cpu = sum0(map { cpu_of($_) } @counted) - $before;

    my ($requests) = $out =~ /(\d+) requests in/;
    my ($rate) = $out =~ m{^Requests/sec:\s+(\S+)}m;

    die "wrk: $out\n" unless $requests && $rate && $cpu;

    return { cpu => $cpu / $requests, rate => $rate };
}


# each function starts a profiler, and returns the code that stops it; a
# profiler that does not start has no result

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
    my (@options) = @_;

    unlink "$dir/perf";

    my $end = child('perf', 'record', '-q', @options, '-o', "$dir/perf",
                    '-p', $server{ours}{worker});

    $recorder = $child;

    return sub {
        $recorder = undef;
        $end->();
        die "perf has no samples\n" unless (-s "$dir/perf" || 0) > 5000;
    };
}


sub child {
    my (@command) = @_;

    my $pid = $child = fork() // die "fork: $!\n";

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
