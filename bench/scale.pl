#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# How time and memory grow with the number of idle connections, captured
# workers, stored profiles, seconds of a capture, and locations with metrics.
# Prints a table for each subject, and writes a page with all of them.
#
# Another client sends small requests to the same worker during each operation.
# Its longest response time shows how long the operation holds the event loop.
# At the same time, a third client sends small requests to a twin: a server with
# nothing else to do.  Its longest response time shows the noise of the machine.
#
# SUBJECT is connections, workers, profiles, capture or locations; the default
# is all of them.
#
# SHORT=1   each number is a tenth
# SHARED=1  the page says that other processes ran on the machine
# OUT=docs  the folder of scale.md
#
# usage: bench/scale.pl [SUBJECT...]

use strict;
use warnings;

use File::Basename qw/ dirname /;
use IO::Select;
use JSON::PP qw/ decode_json /;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__);

use Bench;
use Machine;

use constant REPEAT => 5;
use constant FILES => 12_000;           # descriptors of each process

# the limit of descriptors is that of the shell that starts the script again

exec 'sh', '-c', 'ulimit -n ' . FILES . ' && exec "$@"', 'sh', $^X, $0, @ARGV
    if !$ENV{SCALE_LIMIT}++;

$| = 1;

my $part = $ENV{SHORT} ? 10 : 1;
my $out = $ENV{OUT} || 'docs';
my $dir = dir();
my $page = '';
my (@names, %rows);

write_file("$dir/html/small.html", 'x' x 1000);

my @subjects = (
    [ 'connections', \&connections, 'idle connections' ],
    [ 'workers', \&workers, 'captured workers' ],
    [ 'profiles', \&profiles, 'stored profiles' ],
    [ 'capture', \&capture, 'seconds of a capture' ],
    [ 'locations', \&locations, 'locations with metrics' ],
);

for my $name (@ARGV) {
    die "there is no subject \"$name\"\n"
        if !grep { $_->[0] eq $name } @subjects;
}

my $twin = server();

for my $subject (@subjects) {
    my ($name, $code, $title) = @$subject;
    next if @ARGV && !grep { $_ eq $name } @ARGV;

    printf "%-44s %8s %10s %9s %9s %9s %9s\n", $title, 'number', 'ms',
           'longest', 'twin', 'memory', 'bytes';
    $page .= "\n## " . ucfirst($title) . "\n\n"
             . "| operation | number | ms | longest | twin | memory, kB "
             . "| bytes |\n|---|---|---|---|---|---|---|\n";

    $code->();
    print "\n";
}

stop($twin);

write_file("$out/scale.md",
           "# Scale\n\n`make scale` writes this page.\n\n"
           . machine_table(machine()) . ($ENV{SHARED} ? <<'EOS' : '')

Other processes ran on this machine, so times are too long, and single times may
be much too long.  Memory and bytes do not depend on other processes.
EOS
           . <<'EOF' . $page . growth());

* **ms**: the time of the operation; the median of five.  For idle connections,
  the CPU time of a request on one other connection.
* **longest**: the longest response time of another client of the same worker
  during the operation, in ms; the median of five.
* **twin**: the same at the same time, for a client of a server that has nothing
  else to do: the noise of the machine.
* **memory**: private memory of the worker that answers, after the operation;
  for stored profiles, the memory of the store.
* **bytes**: of the response.
EOF


sub connections {
    for my $on ('off', 'on') {
        for my $n (100, 1000 / $part, 10_000 / $part) {
            my $s = server(http => "profile_accounting $on;",
                           connections => 11_000);
            my @idle = map { idle($s) } 1 .. $n;
            my $sock = connect_to($s->{port}) or die "no nginx: $!\n";

            request($sock, '/small.html') for 1 .. 1000;

            my @cpu = map {
                my ($before) = cpu_of($s->{worker});
                request($sock, '/small.html') for 1 .. 2000;
                (cpu_of($s->{worker}))[0] - $before;
            } 1 .. REPEAT;

            row("idle connections, accounting $on", $n,
                median(@cpu) / 2000 / 1e6, undef, undef, private($s));
            close $_ for @idle;
            stop($s);
        }
    }
}


# a connection that is kept after its first request

sub idle {
    my ($s) = @_;

    my $sock = connect_to($s->{port}) or die "no connection: $!\n";
    request($sock, '/small.html');

    return $sock;
}


sub workers {
    for my $n (1, 8, 64 / ($part == 10 ? 4 : 1)) {
        my $s = server(workers => $n);

        my $sock = connect_to($s->{port}) or die "no nginx: $!\n";

        for my $mode (qw/ wall cpu object /) {
            request($sock, "/-/profile/$mode?seconds=0.1");
            operation($s, "all workers captured, $mode, beyond 1 s", $n,
                      "/-/profile/$mode?seconds=1&format=pprof", 1);
        }

        stop($s);
    }
}


sub profiles {
    for my $n (map { $_ / $part } 1000, 10_000, 100_000) {
        my $s = server(http => 'profile_zone profiles:1200m;'
                               . 'profile_max_captures 1000;');
        my $sock = connect_to($s->{port}) or die "no nginx: $!\n";
        my $stored = 0;

        # a recorded request is lost if the queue of jobs is full

        while ($stored < $n) {
            request($sock, '/small.html?performance_bar=record') for 1 .. 20;
            sleep 0.001 while status($sock, 'jobs');
            $stored = status($sock, 'profiles');
        }

        my ($oldest, $id) = oldest($sock);

        $s->{store} = $sock;

        operation($s, 'list of profiles, newest 1000', $n,
                  '/-/profile/profiles.json');
        operation($s, 'list of profiles, oldest', $n,
                  "/-/profile/profiles.json$oldest");
        operation($s, 'one profile', $n, "/-/profile/p/$id/svg");
        operation($s, 'bar: is it stored?', $n,
                  "/-/profile/bar/requests?profile=$id");
        operation($s, 'one more is recorded', $n,
                  '/small.html?performance_bar=record');
        stop($s);
    }
}


# the arguments of the last page of the list, and the id of the last profile

sub oldest {
    my ($sock) = @_;

    my ($args, $page) = ('');

    while (1) {
        my ($json) = request($sock, "/-/profile/profiles.json$args")
                         =~ /\r\n\r\n(.*)/s;

        $page = decode_json($json);
        return ($args, $page->{profiles}[-1]{id}) if !$page->{more};
        $args = "?before=$page->{next}";
    }
}


sub capture {
    for my $n (map { $_ / $part } 10, 60, 600) {
        for my $mode ($n * $part < 600 ? qw/ cpu wall object / : 'wall') {
            my $s = server();
            my $sock = connect_to($s->{port}) or die "no nginx: $!\n";

            # the first profile starts the helper process for names

            request($sock, "/-/profile/$mode?seconds=0.1");
            operation($s, "capture of the worker, $mode, beyond its time", $n,
                      "/-/profile/$mode?seconds=$n&format=pprof", $n, 1);
            stop($s);
        }
    }
}


sub locations {
    for my $n (map { $_ / $part } 10, 100, 1000) {
        my $in = join "\n",
                     map { "location /l$_/ { alias $dir/html/; }" } 1 .. $n;
        my $s = server(in => $in, http => 'profile_accounting on;');
        my $sock = connect_to($s->{port}) or die "no nginx: $!\n";

        request($sock, "/l$_/small.html") for 1 .. $n;

        operation($s, 'metrics', $n, '/metrics');
        operation($s, 'metrics, gzip', $n, '/metrics', 0, REPEAT,
                  'Accept-Encoding: gzip');
        operation($s, 'overview', $n, '/-/profile/?format=json');
        stop($s);
    }
}


# a server with everything that the operations need

sub server {
    my (%o) = @_;

    my $port = free_port();

    return start(port => $port, workers => $o{workers} // 1,
                 connections => $o{connections} // 1024,
                 main => module() . ' worker_rlimit_nofile ' . FILES . ';',
                 http => <<"EOC");
    keepalive_timeout 3600s;
    @{[ $o{http} // '' ]}
    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        gzip_types *;
        profile_endpoint on;
        profile_bar on;
        location /-/profile/ { profile_console; }
        location = /metrics { gzip on; profile_metrics locations=2000; }
        @{[ $o{in} // '' ]}
    }
EOC
}


# Requests the URI beside other clients, and prints a row.  The given number of
# seconds belongs to the operation and is not counted.

sub operation {
    my ($s, $name, $n, $uri, $seconds, $repeat, @headers) = @_;

    my (@ms, @longest, @twin, $bytes);

    for (1 .. $repeat // REPEAT) {
        my @others = map { other($_) } $s, $twin;
        my $from = time();
        my $sock = connect_to($s->{port}) or die "no nginx: $!\n";
        my $answer = request($sock, $uri, @headers);

        die "$uri: ", substr($answer, 0, 300), "\n"
            if $answer !~ m{^HTTP/1.1 200 };

        push @ms, (time() - $from - ($seconds // 0)) * 1000;
        $bytes = length $answer;

        push @longest, $others[0]->();
        push @twin, $others[1]->();
    }

    my $kb = $s->{store} ? status($s->{store}, 'memory_used') / 1024
                         : private($s);

    row($name, $n, median(@ms), median(@longest), median(@twin), $kb, $bytes);
}


# Starts a client that sends small requests.  Returns a function that stops it
# and returns its longest response time, in milliseconds.

sub other {
    my ($s) = @_;

    pipe my $result, my $write or die "pipe: $!\n";
    pipe my $wait, my $end or die "pipe: $!\n";

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        my $longest = 0;
        my $ended = IO::Select->new($wait);
        my $sock = connect_to($s->{port});

        close $end;

        do {
            my $from = time();
            request($sock, '/small.html');
            my $ms = (time() - $from) * 1000;

            $longest = $ms if $longest < $ms;
        } until $ended->can_read(0.0005);

        syswrite $write, $longest;
        POSIX::_exit(0);
    }

    close $write;
    close $wait;
    sleep 0.02;

    # a later client has the descriptor as well, so closing it is not enough

    return sub {
        syswrite $end, 'x';
        my $longest = <$result>;
        waitpid $pid, 0;

        return $longest;
    };
}


# how each operation grows from its smallest to its largest number

sub growth {
    my $text = <<'EOT';

## Growth

The factors from the smallest to the largest number of each operation.  Memory
is what the largest number needs in addition to the smallest one.

| operation | number | ms | memory, kB | bytes |
|---|---|---|---|---|
EOT

    for my $name (@names) {
        my ($first, $last) = @{$rows{$name}}[0, -1];
        next if $first->{n} == $last->{n};

        $text .= "| $name | " . join(' | ', map {
            $_ eq 'kb' ? sprintf('%+d', $last->{kb} - $first->{kb})
                       : $first->{$_} ? sprintf('%.1f', $last->{$_}
                                                        / $first->{$_}) : ''
        } qw/ n ms kb bytes /) . " |\n";
    }

    return $text;
}


sub row {
    my ($name, $n, $ms, $longest, $beside, $kb, $bytes) = @_;

    push @names, $name if !$rows{$name};
    push @{$rows{$name}}, { n => $n, ms => $ms, kb => $kb, bytes => $bytes };

    my @row = ($name, $n, sprintf('%.3f', $ms),
               (map { defined ? sprintf('%.2f', $_) : '' } $longest, $beside),
               int $kb, $bytes // '');

    printf "%-44s %8s %10s %9s %9s %9s %9s\n", @row;
    $page .= '| ' . join(' | ', @row) . " |\n";
}


sub median { return (sort { $a <=> $b } @_)[@_ / 2] }


sub private {
    my ($s) = @_;

    my ($kb) = read_file("/proc/$s->{worker}/status") =~ /^RssAnon:\s+(\d+)/m;

    return $kb;
}


sub status {
    my ($sock, $name) = @_;

    my ($value) = request($sock, '/-/profile/status.json')
                      =~ /"$name": ?(\d+)/;

    return $value // die "the status has no \"$name\"\n";
}
