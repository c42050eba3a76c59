package Workers;

# Copyright (C) The ngx_http_profile_module authors
#
# A worker with a load, and profilers of the worker: this module, and perf and
# gperftools (by LD_PRELOAD), if they are installed.
#
# The worker runs on one CPU and the load on another one.  The loads are a text
# that is compressed, 1 KB files, the same files from an upstream server, and
# the same files with a TLS handshake for each request.

use strict;
use warnings;

use Exporter qw/ import /;
use List::Util qw/ sum0 /;
use Time::HiRes qw/ sleep /;

use Bench;

our @EXPORT = qw/ load profilers server_of start_workers stop_workers /;

use constant SIGNAL => 23;

my %loads = (gzip => '/text', tls => '/small', proxied => '/proxied/small',
             static => '/small');

my ($gperftools) = glob('/usr/lib/*/libprofiler.so.0');
my $perf = !system('command -v perf >/dev/null');

my (%server, $upstream, $behind, $child, $recorder);


# starts the servers for these loads
sub start_workers {
    my (@wanted) = @_;

    my $dir = dir();

    for (@wanted) {
        die "there is no load \"$_\", but " . join(', ', sort keys %loads)
            . "\n" unless $loads{$_};
    }

    die "wrk is not installed\n" if system('command -v wrk >/dev/null');

    write_file("$dir/html/text", join('', map { "line $_ " . rand() . "\n" }
                                          1 .. 6000));

    write_file("$dir/html/small", 'x' x 1000);

    system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bench"
           . " -out $dir/crt -keyout $dir/key 2>/dev/null") == 0
        or die "openssl failed\n";

    # the upstream server has the CPU of the load

    $behind = free_port();
    $upstream = start(name => 'behind', port => $behind, cpu => 1,
                      http => <<"EOC");
    server {
        listen 127.0.0.1:$behind;
        location /proxied/ { alias $dir/html/; }
    }
EOC

    $server{ours} = server('ours', module());
    $server{theirs} = server('theirs', 'env CPUPROFILE; env CPUPROFILESIGNAL;'
                                      . 'env CPUPROFILE_FREQUENCY;',
                             LD_PRELOAD => $gperftools,
                             CPUPROFILE => "$dir/prof",
                             CPUPROFILE_FREQUENCY => 100,
                             CPUPROFILESIGNAL => SIGNAL)
        if $gperftools;
}


sub stop_workers { stop(values %server, $upstream) }


sub server_of { return $server{$_[0]} }


# Names, servers, functions that start the profiler for some seconds, and the
# files of the profiles.  Each function returns the code that stops the
# profiler.
sub profilers {
    my $dir = dir();

    return (
        (map { ours(@$_) } [ 'cpu', 99 ], [ 'cpu', 1000 ], [ 'wall', 99 ],
                           [ 'wall', 1000 ]),
        $gperftools ? [ 'gperftools, 100 Hz', 'theirs', \&toggled,
                        "$dir/prof" ] : (),
        $perf ? (perf('perf -g, 99 Hz', '-g', -F => 99),
                 perf('perf -g, 999 Hz', '-g', -F => 999),
                 perf('perf dwarf, 99 Hz', '--call-graph=dwarf', -F => 99))
              : (),
    );
}


sub server {
    my ($name, $main, %env) = @_;

    my $dir = dir();
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
sub load {
    my ($which, $load, $seconds) = @_;
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


# each function starts a profiler; a profiler that does not start has no result

sub ours {
    my ($mode, $frequency) = @_;

    my $file = dir() . '/pprof';

    return [ "$mode, $frequency Hz", 'ours', sub {
        my ($seconds) = @_;

        unlink $file;

        my $end = child('curl', '-s', '-o', $file, "http://127.0.0.1:"
                        . "$server{ours}{port}/-/profile/$mode?seconds="
                        . "$seconds&frequency=$frequency&format=pprof");

        # a real-time signal, but for the C library's own

        my ($caught) = read_file("/proc/$server{ours}{worker}/status")
                           =~ /^SigCgt:\s+(\S+)/m;

        die "the worker is not captured\n"
            unless hex(substr($caught, 0, 8)) >> 1;

        return $end;
    }, $file ];
}


sub perf {
    my ($name, @options) = @_;

    my $file = dir() . '/perf';

    return [ $name, 'ours', sub {
        unlink $file;

        my $end = child('perf', 'record', '-q', @options, '-o', $file,
                        '-p', $server{ours}{worker});

        $recorder = $child;

        return sub {
            $recorder = undef;
            $end->();
            die "perf has no samples\n" unless (-s $file || 0) > 5000;
        };
    }, $file ];
}


# returns the code that stops the program, or that waits for its end
sub child {
    my (@command) = @_;

    my $pid = $child = fork() // die "fork: $!\n";

    if (!$pid) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec @command;
    }

    sleep(0.4);

    return sub {
        kill 'INT', $pid if !$_[0];
        waitpid($pid, 0);
    };
}


sub toggled {
    my $dir = dir();

    unlink glob("$dir/prof*");
    kill SIGNAL, $server{theirs}{worker};

    return sub {
        kill SIGNAL, $server{theirs}{worker};
        sleep(0.2);

        my ($file) = grep { (-s || 0) > 500 } glob("$dir/prof*");

        die "gperftools has no samples\n" unless defined $file;
        rename $file, "$dir/prof";
    };
}


1;
