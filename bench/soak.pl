#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# Everything at once, for a long time.  Two servers run side by side with the
# same load: one has the module with everything on, the other does not load it.
# Captures of all scopes, modes and formats begin and are aborted at random.
# Workers are killed and the configuration is reloaded during the first half of
# each period; the second half is calm, so that growth of a worker can be seen.
#
# Prints tables: memory, descriptors and threads of a worker at the start and at
# the end of the calm halves, and memory in each period; the latency of another
# client at both servers; the words of read-only tables of addresses (GOT) that
# differ between a worker and its master in the end; stored profiles, killed
# workers and reloads.  Exits with 1 if a worker crashed, an alert was logged, an
# answer was wrong, descriptors or threads leaked, a pointer was not restored, or
# memory grew by more than 16 MB.
#
# OUT=docs  writes a page with the tables, soak.md, to this folder
#
# usage: bench/soak.pl [SECONDS [PERIOD]]

use strict;
use warnings;
no warnings 'portable';     # addresses have 64 bits

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use List::Util qw/ max sum0 /;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__);

use Bench;
use Machine qw/ machine machine_table /;

use constant WORKERS => 2;
use constant GROWTH => 16 * 1024;       # kB
use constant TABLES => qr/^([0-9a-f]+)-([0-9a-f]+) r--p .* (\/\S+)$/;

my $seconds = $ARGV[0] || 3600;
my $period = $ARGV[1] || ($seconds < 240 ? $seconds : 240);

my $dir = dir();

write_file("$dir/html/small.html", 'x' x 1000);
write_file("$dir/html/page.html", "<html><body>" . 'x' x 2000
                                  . '</body></html>');
write_file("$dir/html/large.txt", join('', map { "line $_ of many\n" }
                                           1 .. 6000));

my $upstream = free_port();
my %server = (profiled => server('profiled'), twin => server('twin'));
my @uris = qw{ /small.html /page.html /large.txt /slow/small.html
               /proxy/large.txt /missing };

my $begin = time();
my @actors = ((map { actor(\&client, $server{$_}) } qw/ profiled twin / x 2),
              (map { actor(\&capturer, $server{profiled}) } 1 .. 2),
              actor(\&operator, $server{profiled}),
              actor(\&killer, $server{profiled}));

my (%latency, @calm, $stored);
my $measured = 0;

while ((my $age = time() - $begin) < $seconds) {
    measure();

    # the calm half begins with some seconds for the last old workers

    my $phase = $age - $period * int($age / $period) - $period / 2;

    next if $phase < max(3, $period / 10) || time() - $measured < 1;

    $measured = time();
    push @calm, { period => int($age / $period), usage($server{profiled}) };
}

kill 'TERM', @actors;
waitpid $_, 0 for @actors;

# a capture of allocations shows that the comparison finds changed words

my $object = actor(sub { ask($_[0]{console}, '/object?seconds=3') },
                   $server{profiled});
my $hooked = 0;

for (1 .. 40) {
    last if $hooked = changed_words($server{profiled});
    sleep 0.1;
}

fail('no hook of a capture was seen') if !$hooked;

kill 'TERM', $object;
waitpid $object, 0;

idle($server{profiled}) or fail('captures that do not end');

my $changed = changed_words($server{profiled});
my $page = tables();

stop(values %server);

my @alerts = grep { /\[(?:alert|emerg|crit)\]/
                    && !/exited on signal 9|\d+ (?:child )?process/
                    && !/zone "\S+" was locked by/ }
                 split /\n/, read_file("$dir/profiled.log");

fail(scalar(@alerts) . " alerts, the first: $alerts[0]") if @alerts;
fail("$changed words of tables of addresses differ") if $changed;

$page .= "\n" . (fail() ? "The run has failed.\n" : <<'EOF');
No worker crashed, nginx logged no alert, no answer was wrong, and the limits of
memory, threads and descriptors held.
EOF

print "\n$page";
write_file("$ENV{OUT}/soak.md", page()) if defined $ENV{OUT};
exit(fail() ? 1 : 0);


# collects the reasons, and returns their number

my @failed;

sub fail {
    my ($why) = @_;

    if (defined $why) {
        push @failed, $why;
        print "failed: $why\n";
    }

    return scalar @failed;
}


sub server {
    my ($name) = @_;

    my ($port, $console) = (free_port(), free_port());
    my $on = $name eq 'profiled';

    my $s = start(name => $name, port => $port, workers => WORKERS,
                  main => $on ? module() : '', http => <<"EOC");
    gzip on;
    gzip_types text/plain;

    @{[ $on ? <<"END" : '' ]}
    profile_store $dir/store max=64m;
    profile_accounting on;
    profile_keep 1;
    profile_stall_threshold 2ms;
    profile_continuous on wall=on slice=2s;
    profile_context on;
    profile_max_captures 8;
END

    server {
        listen 127.0.0.1:$port;
        root $dir/html;
        @{[ $on ? 'profile_endpoint on; profile_bar on;
           location /-/profile/ { profile_console; }' : '' ]}

        location /slow/ { alias $dir/html/; limit_rate 20k; }
        location /proxy/ { proxy_pass http://127.0.0.1:$port/; }
    }

    server {
        listen 127.0.0.1:$console;
        @{[ $on ? 'location = /metrics { profile_metrics; }
                   location / { profile_console; }' : '' ]}
    }
EOC

    return { %$s, console => $console, on => $on };
}


sub actor {
    my ($code, $server) = @_;

    my $pid = fork() // die "fork: $!\n";
    return $pid if $pid;

    local $SIG{TERM} = sub { POSIX::_exit(0) };
    local $SIG{PIPE} = 'IGNORE';

    srand $$;
    $code->($server) while 1;
}


sub pick { return $_[rand @_] }


# the answer, or nothing if the server or the client closes the connection

sub ask {
    my ($port, $uri, @headers) = @_;

    my $sock = connect_to($port) or return;

    return eval { request($sock, $uri, @headers) };
}


# half of the load, with aborted requests

sub client {
    my ($s) = @_;

    my $sock = connect_to($s->{port}) or return sleep 0.05;

    for (1 .. 1 + rand 20) {
        my $uri = pick(@uris);

        if (rand() < 0.05) {
            print $sock "GET $uri HTTP/1.1\r\nHost: localhost\r\n\r\n";
            sleep rand 0.01;
            return close $sock;
        }

        eval { request($sock, $uri, rand() < 0.5 ? 'Accept-Encoding: gzip'
                                                 : ()) } or return;
        sleep rand 0.02;
    }
}


sub capturer {
    my ($s) = @_;

    my $mode = pick(qw/ wall cpu object /);
    my $format = pick(qw/ html svg folded pprof speedscope json /);
    my $frequency = pick(100, 1000, 5000);
    my $args = "profile_mode=$mode&profile_format=$format"
               . ($mode eq 'object' ? '' : "&profile_frequency=$frequency");
    my $answer = pick(qw/ flamegraph record /);
    my $n = pick(5, 50);

    my ($port, $uri) = @{+pick(
        ([ $s->{port}, pick(@uris) . "?performance_bar=$answer&$args" ]) x 6,
        [ $s->{port}, "/small.html?performance_bar=flamegraph&$args"
                      . "&profile_requests=$n" ],
        ([ $s->{console}, "/$mode?seconds=1&format=$format" ]) x 2,
        [ $s->{console}, "/wall?uri=/&requests=$n&seconds=2&format=$format" ],
    )};

    if (rand() < 0.2) {
        my $sock = connect_to($port) or return;
        print $sock "GET $uri HTTP/1.1\r\nHost: localhost\r\n\r\n";
        sleep rand 0.2;

    } else {
        ask($port, $uri);
        sleep rand 0.1;
    }
}


# an operator's browser with the console, and a collector of metrics

sub operator {
    my ($s) = @_;

    my ($list) = (ask($s->{console}, '/profiles.json') // '')
                     =~ /\r\n\r\n(.*)/s;
    my $profiles = eval { decode_json($list // '')->{profiles} } || [];
    my $id = (pick(@$profiles) || {})->{id};

    ask($s->{console}, pick('/', '/status', '/status.json', '/metrics',
                            '/stalls.json',
                            $id ? ("/p/$id", "/p/$id?format=pprof",
                                   "/p/$id?format=html") : ()));
    sleep rand 0.5;
}


# in the first half of each period

sub killer {
    my ($s) = @_;

    my $age = time() - $begin;

    sleep 1 + rand max(1, $period / 40);
    return if $age - $period * int($age / $period) > $period / 2 - 2;

    my $reload = rand() < 0.5;
    my @workers = workers($s);

    if ($reload) {
        kill 'HUP', $s->{pid};

    } elsif (@workers > 1) {
        kill 'KILL', pick(@workers);
    }

    open my $f, '>>', "$dir/reloads" or die "reloads: $!\n";
    print $f "\n" if $reload;
}


sub workers {
    my ($s) = @_;

    return grep { read_file("/proc/$_/cmdline") =~ /^nginx: worker process\0*$/ }
                split ' ', `pgrep -P $s->{pid}`;
}


# A request to each server, in turns.  The connection is new: a killed worker
# cannot answer on a kept one.

sub measure {
    for my $name (rand() < 0.5 ? qw/ profiled twin / : qw/ twin profiled /) {
        my $from = time();
        my $answer = ask($server{$name}{port}, '/small.html');

        push @{$latency{$name}}, time() - $from if $answer;
        fail("$name: " . substr $answer, 0, 20)
            if $answer && $answer !~ m{^HTTP/1.1 200 .*\r\n\r\nx{1000}\z}s;
    }

    sleep 0.02;
}


sub usage {
    my ($s) = @_;

    my (%sum, $n);

    for my $pid (workers($s)) {
        my $status = read_file("/proc/$pid/status") or next;
        my @fds = glob "/proc/$pid/fd/*";

        $n++;
        $sum{$1} += $2 while $status =~ /^(RssAnon|Threads):\s+(\d+)/mg;
        $sum{fds} += @fds;
    }

    return map { $_ => $sum{$_} / ($n || 1) } keys %sum;
}


# no capture runs, and no job waits

sub idle {
    my ($s) = @_;

    for (1 .. 300) {
        my ($text) = (ask($s->{console}, '/status.json') // '')
                         =~ /\r\n\r\n(.*)/s;
        my $status = eval { decode_json($text // '') };

        $stored = $status->{store}{added} if $status;
        return 1 if $status && !@{$status->{captures}}
                    && !sum0(map { $_->{jobs} + $_->{captures} }
                                 @{$status->{workers}});
        sleep 0.1;
    }

    return 0;
}


# Words of read-only data of objects that differ between the workers and the
# master, from which they were forked.

sub changed_words {
    my ($s) = @_;

    my $changed = 0;

    for my $line (split /\n/, read_file("/proc/$s->{pid}/maps")) {
        my ($start, $end, $file) = $line =~ TABLES or next;

        my ($want, @got) = map { memory($_, hex $start, hex $end) }
                               $s->{pid}, workers($s);

        for my $got (@got) {
            next if $got eq $want;

            my @old = unpack 'Q*', $want;
            my @new = unpack 'Q*', $got;
            $changed += grep { ($old[$_] // 0) != ($new[$_] // 0) } 0 .. $#old;
        }
    }

    return $changed;
}


sub memory {
    my ($pid, $start, $end) = @_;

    open my $f, '<:raw', "/proc/$pid/mem" or die "/proc/$pid/mem: $!\n";
    sysseek $f, $start, 0;
    sysread $f, my $data, $end - $start;

    return $data // '';
}


sub page {
    return "# Soak\n\n`make soak` writes this page.\n\n"
           . machine_table(machine()) . <<'EOF' . $page;

Two servers of two workers run side by side with the same mixed load, which
includes aborted requests.  One server loads the module with accounting, a
profile of each request, the watch for stalls, the continuous profile with wall
time, the thread context, the Performance Bar and a store in files.  Captures of
all scopes, modes and formats begin and are aborted at random.  During the first
half of each period, workers are killed and the configuration is reloaded.  The
second half is calm, so that growth of a worker can be seen.  The other server
does not load the module.

EOF
}


sub tables {
    my %p = map { $_ => [ sort { $a <=> $b } @{$latency{$_}} ] } keys %latency;

    my $tables = sprintf "%d seconds in periods of %d; %d requests of the client"
                         . " whose latency was\nmeasured.\n\n",
                         $seconds, $period, scalar @{$p{profiled}};

    $tables .= "| a worker, in calm | at the begin | at the end |\n"
               . "|---|---|---|\n";

    for my $what ([ 'private memory, kB', 'RssAnon', GROWTH ],
                  [ 'threads', 'Threads', 1 ], [ 'descriptors', 'fds', 8 ])
    {
        my ($name, $key, $most) = @$what;
        my ($first, $last) = map { median($_, $key) } 0, 1;

        $tables .= sprintf "| %s | %.0f | %.0f |\n", $name, $first, $last;
        fail("$name: from $first to $last")
            if !$first || !$last || $last > $first + $most;
    }

    $tables .= "\n| calm half of a period | private memory, kB, at the begin "
               . "| at the end |\n|---|---|---|\n";

    for my $n (0 .. $calm[-1]{period}) {
        my @in = grep { $_->{period} == $n } @calm or next;
        $tables .= sprintf "| %d | %.0f | %.0f |\n", $n + 1,
                           map { $_->{RssAnon} } @in[0, -1];
    }

    $tables .= "\n| latency, ms | p50 | p99 |\n|---|---|---|\n";

    for my $name (qw/ profiled twin /) {
        my @sorted = @{$p{$name}};
        $tables .= sprintf "| %s | %.2f | %.2f |\n",
                           $name eq 'twin' ? 'without the module' : $name,
                           map { 1000 * $_ } @sorted[@sorted / 2,
                                                     @sorted * 0.99];
    }

    return $tables . sprintf <<'EOF', $changed, $hooked, $stored,

| what | number |
|---|---|
| words of read-only tables of addresses that differ from the master's in the end | %d |
| the same, while allocations were captured | %d |
| stored profiles | %d |
| killed workers | %d |
| reloads | %d |
EOF
           scalar(() = read_file("$dir/profiled.log") =~ /on signal 9/g),
           length read_file("$dir/reloads");
}


# of the first or the last third of all calm measurements

sub median {
    my ($last, $key) = @_;

    my $n = int(@calm / 3) || 1;
    my @v = sort { $a <=> $b } map { $_->{$key} // 0 }
                $last ? @calm[-$n .. -1] : @calm[0 .. $n - 1];

    return $v[@v / 2];
}
