#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# Runs the benchmarks, and writes one page and one JSON file: the machine, and a
# row for each figure, with its budget.  Each benchmark runs its variants by
# turns, and measures two equal variants ("A/A"), if it measures time.
#
# A benchmark that needs a program that is not installed is a row that says so.
# The program ends with an error if a benchmark fails, and not if a budget does
# not hold: the page shows that.
#
# usage: bench/report.pl
#
# SHORT=1  fewer rounds, for a look; ROWS=EXPRESSION  only these rows: the other
# ones stay as they are in the file; OUT=docs  the folder of report.md and
# report.json

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use JSON::PP;

use lib dirname(abs_path($0));

use Machine;

my $bench = dirname(abs_path($0));
my $build = $ENV{BUILD} || 'build';
my $out = $ENV{OUT} || 'docs';
my $short = $ENV{SHORT} ? 1 : 0;
my $rows = $ENV{ROWS} // '';

# programs that are needed, the command, and the command if time is short

my %runs = (
    idle => [ 'valgrind', "$bench/idle.pl" ],
    instructions => [ 'valgrind', "$bench/accounting.pl --instructions" ],
    accounting => [ 'wrk taskset', "LOADS=KB $bench/accounting.pl 12 1",
                    "LOADS=KB $bench/accounting.pl 3 1" ],
    continuous => [ 'wrk taskset cc', "$bench/continuous.pl",
                    "$bench/continuous.pl 15" ],
    outage => [ 'wrk taskset', "$bench/outage.pl", "$bench/outage.pl 3" ],
    record => [ '', "$bench/record.pl", "$bench/record.pl 3 30" ],
    neighbours => [ 'wrk taskset', "$bench/neighbours.pl",
                    "$bench/neighbours.pl 2" ],
    latency => [ '', "$bench/loop_latency.pl html",
                 "SAMPLES=2000 $bench/loop_latency.pl html" ],
    workers => [ 'wrk taskset openssl',
                 "ROUNDS=5 SECONDS=1 $bench/server.pl",
                 "ROUNDS=1 SECONDS=1 LOADS=static $bench/server.pl" ],
    stacks => [ 'wrk taskset openssl readelf', "$bench/stacks.pl",
                "SECONDS=1 $bench/stacks.pl static" ],
    capacity => [ '', "$bench/capacity.pl" ],
    names => [ '', "$build/bench/bench_names" ],
    scrape => [ 'cc', "$bench/scrape.pl", "$bench/scrape.pl 1000 5" ],
    walk => [ '', "$build/bench/bench_walk" ],
    encode => [ '', "$build/bench/bench_encode" ],
);

my @loads = $short ? 'static' : qw/ gzip tls proxied static /;

my $number = qr/(-?\d[\d.]*)/;
my $quartiles = qr/(-?\d[\d.]* \(.*?\))/;

# Run, name, unit, the figure in the output of the run, that of the A/A run or
# of a peer, budget.  A budget is a comparison with a number ("<= 400"), or with
# a multiple of the other figure ("<= 2 A/A").  The budgets "A/A" and "peer"
# compare quartiles, as the text of the page says.

my @table = (
    [ 'idle', 'untriggered request, no arguments', 'instructions',
      qr{^/small\.html\s.*\s$number$}m, undef, '<= 55' ],
    [ 'idle', 'untriggered request, three long arguments', 'instructions',
      qr{session=\S+\s.*\s$number$}m, undef, '<= 60' ],
    [ 'instructions', 'accounting, a small file', 'instructions',
      qr/^ +accounting, 1 KB file +\d+ +$number/m, undef, '<= 400' ],
    [ 'instructions', 'accounting and metrics, a small file', 'instructions',
      qr/^ +metrics, 1 KB file +\d+ +$number/m, undef, '<= 400' ],
    [ 'instructions', 'accounting, a proxied request', 'instructions',
      qr/^ +accounting, proxied +\d+ +$number/m, undef, '' ],
    [ 'accounting', 'accounting', 'of throughput',
      qr/^1 KB.*?^ +accounting +$quartiles/ms,
      qr/^1 KB.*?^ +plain again +$quartiles/ms, 'A/A' ],
    [ 'accounting', 'accounting and metrics', 'of throughput',
      qr/^1 KB.*?^ +metrics +$quartiles/ms,
      qr/^1 KB.*?^ +plain again +$quartiles/ms, 'A/A' ],
    [ 'accounting', '`profile_keep`, nothing kept', 'of throughput',
      qr/^1 KB.*?^ +keep at 99 Hz +$quartiles/ms,
      qr/^1 KB.*?^ +plain again +$quartiles/ms, '>= 0.98' ],
    [ 'accounting',
      '`profile_keep`, one request in a hundred kept, 1,000 a second at most',
      'of throughput', qr/^1 KB.*?^ +keep 1 in 100 +$quartiles/ms,
      qr/^1 KB.*?^ +plain again +$quartiles/ms, '' ],
    [ 'continuous', 'continuous profile at 19 Hz', 'CPU per request',
      qr/^continuous +$quartiles/m, qr/^again +$quartiles/m, 'A/A' ],
    [ 'outage', '`profile_keep`, everything kept', 'of throughput',
      qr/^always +$quartiles/m, qr/^again +$quartiles/m, '>= 0.9' ],
    [ 'record', 'recorded request, CPU in total', 'ms',
      qr{^/small\.html record(?: +-?[\d.]+ \(.*?\)){2} +$quartiles}m,
      qr{^/small\.html again(?: +-?[\d.]+ \(.*?\)){2} +$quartiles}m,
      '<= 0.3' ],
    [ 'record', 'flamegraph as the response, CPU in total', 'ms',
      qr{^/small\.html flamegraph(?: +-?[\d.]+ \(.*?\)){2} +$quartiles}m,
      qr{^/small\.html again(?: +-?[\d.]+ \(.*?\)){2} +$quartiles}m, '' ],
    [ 'neighbours', 'other clients, while files are recorded', 'of throughput',
      qr/^record +$quartiles/m, qr/^again +$quartiles/m, '>= 0.95' ],
    [ 'neighbours', 'other clients, while flamegraphs are made',
      'of throughput', qr/^flamegraph +$quartiles/m, qr/^again +$quartiles/m,
      '>= 0.95' ],
    [ 'neighbours', 'other clients, p50 while files are recorded', 'ms',
      qr/^record +[\d.]+ \(.*?\) +$quartiles/m,
      qr/^again +[\d.]+ \(.*?\) +$quartiles/m, '<= 2 A/A' ],
    [ 'neighbours', 'other clients, p50 while flamegraphs are made', 'ms',
      qr/^flamegraph +[\d.]+ \(.*?\) +$quartiles/m,
      qr/^again +[\d.]+ \(.*?\) +$quartiles/m, '<= 2 A/A' ],
    [ 'neighbours', 'other clients, p99 while files are recorded', 'ms',
      qr/^record(?: +[\d.]+ \(.*?\)){2} +$quartiles/m,
      qr/^again(?: +[\d.]+ \(.*?\)){2} +$quartiles/m, '<= 2 A/A' ],
    [ 'neighbours', 'other clients, p99 while flamegraphs are made', 'ms',
      qr/^flamegraph(?: +[\d.]+ \(.*?\)){2} +$quartiles/m,
      qr/^again(?: +[\d.]+ \(.*?\)){2} +$quartiles/m, '<= 2 A/A' ],
    [ 'latency', 'event loop held while a flamegraph is made', 'ms',
      qr/^html(?: +[\d.]+){3} +$number/m,
      qr/^ +before(?: +[\d.]+)* +$number(?: +[\d.]+){3}$/m, '<= 1' ],
    [ 'scrape', 'event loop held by metrics of 1,000 locations', 'ms',
      qr/^OpenMetrics +\d+ +[\d.]+ +$number/m,
      qr/^nothing +\d+ +[\d.]+ +$number/m, '<= 1' ],
    [ 'scrape', 'event loop held by compressed metrics of 1,000 locations',
      'ms', qr/^OpenMetrics, gzip +\d+ +[\d.]+ +$number/m,
      qr/^nothing +\d+ +[\d.]+ +$number/m, '<= 1' ],
    [ 'scrape', 'event loop held by the overview of 1,000 locations', 'ms',
      qr/^overview +\d+ +[\d.]+ +$number/m,
      qr/^nothing +\d+ +[\d.]+ +$number/m, '<= 1' ],
    [ 'walk', 'unwinding a stack', 'times faster than `backtrace()`',
      qr/^ratio +$number/m, undef, '>= 20' ],
    [ 'encode', 'html of 100,000 samples, typical', 'ms',
      qr/^typical.*?^html +$number/ms, qr/^typical.*?^go pprof -top +$number/ms,
      '<= 100' ],
    [ 'encode', 'html of 100,000 samples, random', 'ms',
      qr/^random.*?^html +$number/ms, qr/^random.*?^go pprof -top +$number/ms,
      '<= 500' ],
    [ 'encode', 'memory for the html of 100,000 samples, typical', 'MB',
      qr/^typical.*?^html +[\d.]+ +$number/ms,
      qr/^typical.*?^go pprof -top +[\d.]+ +$number/ms, 'peer' ],
    [ 'encode', 'memory for the html of 100,000 samples, random', 'MB',
      qr/^random.*?^html +[\d.]+ +$number/ms,
      qr/^random.*?^go pprof -top +[\d.]+ +$number/ms, 'peer' ],
    [ 'names', 'names for the second profile of the same code',
      'of the time for the first one', qr/^ratio +$number/m, undef, '<= 0.1' ],
    [ 'capacity', 'private memory of a worker, everything on and idle', 'kB',
      qr/^everything on, idle +\+?$number/m, undef, '<= 80' ],
    [ 'capacity', 'shared memory, everything on and idle', 'kB',
      qr/^everything on, idle +\S+ +\+?$number/m, undef, '<= 2355' ],
    (map {
        my $load = $_;

        map {
            my ($what, $unit, $column, $peer, $budget) = @$_;
            my $before = qr/ +(?:\S+ +){$column}/;

            [ 'stacks', "worker capture, $load, $what", $unit,
              qr/^$load .*?^cpu, 1000 Hz$before$number/ms,
              qr/^$load .*?^\Q$peer\E$before$number/ms, $budget ],
        } [ 'complete stacks', '% of samples', 1, 'perf dwarf, 99 Hz',
            '>= 100' ],
          [ 'wrong names', '% of samples', 2, 'perf dwarf, 99 Hz', '<= 0' ],
          [ 'innermost functions with a name', '% of samples', 3,
            'perf dwarf, 99 Hz', '' ],
          [ 'size', 'bytes a sample', 4, 'perf -g, 999 Hz', 'peer' ]
    } @loads),
    map {
        my $load = $_;

        map {
            my ($ours, $peer) = @$_;

            [ 'workers', "worker capture, $load, $ours", 'CPU per request',
              qr/^$load .*?^\Q$ours\E +$quartiles/ms,
              $peer && qr/^$load .*?^\Q$peer\E +$quartiles/ms,
              $peer ? 'peer' : '' ],
        } [ 'cpu, 99 Hz', 'gperftools, 100 Hz' ],
          [ 'cpu, 1000 Hz', 'perf -g, 999 Hz' ],
          [ 'wall, 99 Hz', 'gperftools, 100 Hz' ],
          [ 'wall, 1000 Hz', 'perf -g, 999 Hz' ],
          [ 'gperftools, 100 Hz' ], [ 'perf -g, 99 Hz' ],
          [ 'perf -g, 999 Hz' ], [ 'perf dwarf, 99 Hz' ]
    } @loads,
);

my %output;
my %machine = (machine(), rounds => $short ? 'few' : 'all');
my ($commit, $cpu) = delete @machine{qw/ commit cpu /};
my %row = before();
my $failed = 0;

# the page is complete after each row: a benchmark that never ends loses no other

for my $line (grep { $_->[1] =~ /(?:$rows)/ } @table) {
    my $row = measured(@$line);

    $failed = 1 if ($row->{missing} // '') eq 'failed';
    $row{$row->{name}} = { %$row, commit => $commit, cpu => $cpu };

    my @all = map { judged($_) } grep { $row{$_->[1]} } @table;

    write_file("$out/report.json",
               JSON::PP->new->canonical->pretty->encode({
                   machine => \%machine, rows => \@all }));
    write_file("$out/report.md", page(@all));
}

exit $failed;


# the rows of the file that are not measured now, by name

sub before {
    return if $rows eq '' || !-e "$out/report.json";

    open my $f, '<', "$out/report.json" or die "$out/report.json: $!\n";
    local $/;

    return map { $_->{name} => $_ } @{decode_json(<$f>)->{rows}};
}


sub measured {
    my ($run, $name, $unit, $value, $other) = @_;

    my %row = (name => $name, unit => $unit, run => $run);

    $output{$run} //= output(@{$runs{$run}});

    if ($output{$run} =~ /^(?:no .*|failed)\z/) {
        $row{missing} = $output{$run};
        return \%row;
    }

    my ($of) = $name =~ /(gperftools|perf)/;

    ($row{value}) = $output{$run} =~ $value;
    ($row{other}) = $output{$run} =~ $other if $other;
    $row{missing} = $of ? "no $of" : 'failed' if !defined $row{value};

    return \%row;
}


# the row of a line of the table, with the line's budget, also if an earlier run
# has measured the row

sub judged {
    my ($line) = @_;

    my %row = (%{$row{$line->[1]}}, budget => $line->[5]);

    delete $row{holds};
    $row{holds} = holds(@row{qw/ value other budget unit /})
        if defined $row{value};

    return \%row;
}


# undef: there is nothing to compare with

sub holds {
    my ($value, $other, $budget, $unit) = @_;

    my ($n, $low, $high) = $value =~ /$number/g;
    my ($theirs, $from, $to) = ($other // '') =~ /$number/g;
    my ($sign, $limit, $of) = $budget =~ m{^([<>]=) (\S+)(?: (A/A|peer))?$};

    if ($sign) {
        return undef if $of && !defined $theirs;

        $limit *= $theirs if $of;

    } else {
        return undef if $budget eq '' || !defined $theirs;

        my $cost = $budget eq 'peer' || $unit eq 'CPU per request';

        $sign = $cost ? '<=' : '>=';
        $n = ($cost ? $low : $high) // $n;
        $limit = ($cost ? $to : $from) // $theirs;
    }

    my $ok = $sign eq '<=' ? $n <= $limit : $n >= $limit;

    return $ok ? JSON::PP::true : JSON::PP::false;
}


sub output {
    my ($needs, $long, $fast) = @_;

    for my $program (split / /, $needs) {
        return "no $program" if !grep { -x "$_/$program" }
                                     split(/:/, $ENV{PATH});
    }

    my $command = $short ? $fast // $long : $long;

    print STDERR "$command\n";

    my $text = `$command`;

    return $? || $text eq '' ? 'failed' : $text;
}


sub page {
    my (@all) = @_;

    my $text = "# Report\n\nThis page shows what the module costs, and what "
               . "other profilers cost on the\nsame machine.  `make report` "
               . "writes this page.\n\n" . machine_table(%machine) . <<'EOF2';

A value is a median, with quartiles in parentheses.  The column "A/A or peer"
has the value of a second run of the same thing, or of another tool that does
the same work.  The units "of throughput" and "CPU per request" are ratios to
the same server without the feature.  The columns "cpu" and "commit" have the
processor and the version that were measured.  A run of some rows leaves the
other rows as they are: the table above describes the last run.

The column "holds" shows whether the value is within the budget.  With the
budget "A/A" or "peer", the quartiles of both values decide.  A cost holds if
its lower quartile is not above the upper quartile of the other value.
Throughput holds if its upper quartile is not below the lower quartile of the
other value.

| what | value | unit | A/A or peer | budget | holds | cpu | commit |
|---|---|---|---|---|---|---|---|
EOF2

    for my $row (@all) {
        my $holds = exists $row->{holds} && defined $row->{holds}
                    ? $row->{holds} ? 'yes' : '**no**' : '';

        $text .= '| ' . join(' | ', $row->{name},
                             $row->{value} // $row->{missing}, $row->{unit},
                             $row->{other} // '', $row->{budget}, $holds,
                             $row->{cpu}, $row->{commit})
                 . " |\n";
    }

    return $text;
}
