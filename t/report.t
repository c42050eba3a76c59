#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: bench
# runs: beside

# bench/report.pl: what it makes of the output of benchmarks, of programs that
# are not installed, and of a benchmark that fails.  The benchmarks are scripts
# that print figures.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use JSON::PP qw/ decode_json /;
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $dir = tempdir(CLEANUP => 1);

mkdir "$dir/$_" for qw{ bench bin out };
symlink $_, "$dir/bin/" . (split m{/})[-1]
    for grep { -x } map { ("/bin/$_", "/usr/bin/$_") } qw/ sh cat git /;

program('bench_walk', 'ratio          27.9');
program('bench_encode', <<'EOF');
typical: 100000 samples of 22 frames, 79625 nodes
html                  127        8    1405715
go pprof -top         499       39      23398

random: 100000 samples of 22 frames, 1982975 nodes
html                  450      137     306233
EOF

is(report(), 0, 'the report is made');

my $json = decode_json(read_file("$dir/out/report.json"));
my %rows = map { $_->{name} => $_ } @{$json->{rows}};
my $page = read_file("$dir/out/report.md");

ok($json->{machine}{$_}, "the machine: $_") for qw/ cpus kernel date /;
is(scalar(grep { !$_->{cpu} || !$_->{commit} } @{$json->{rows}}), 0,
   'each row has its processor and its version');

is($rows{'unwinding a stack'}{value}, '27.9', 'a row has its figure');
ok($rows{'unwinding a stack'}{holds}, 'a figure may be within its budget');

my $typical = $rows{'html of 100,000 samples, typical'};
is($typical->{value}, 127, 'another row has its figure');
ok(exists $typical->{holds} && !$typical->{holds},
   'a figure may exceed its budget');
is($typical->{other}, 499, 'a row has the figure of a peer');

ok($rows{'html of 100,000 samples, random'}{holds},
   'a row has the figure of its part');

is($rows{'untriggered request, no arguments'}{missing}, 'no valgrind',
   'a program that is not installed');
is($rows{'accounting'}{missing}, 'no wrk', 'another missing program is named');

is(() = $page =~ /^\| .*\| (?:yes|\*\*no\*\*|) \| [^|]+ \| \w+ \|$/mg,
   @{$json->{rows}},
   'the page has a line for each row');
like($page, qr/^\| unwinding a stack \| 27\.9 \|.* yes \| [^|]+ \| \w+ \|$/m,
     'a line has the figure, the budget and the result');
like($page, qr/^\| accounting \| no wrk \|/m,
     'a line without a figure names the missing program');

unlink "$dir/bench/bench_walk";

isnt(report(), 0, 'a benchmark that fails');
like(read_file("$dir/out/report.md"), qr/^\| unwinding a stack \| failed \|/m,
     'the line tells that the benchmark has failed');
is(report(ROWS => 'unwinding'), 256, 'a report of one row');
is(@{decode_json(read_file("$dir/out/report.json"))->{rows}},
   @{$json->{rows}}, 'the other rows stay in the report');

# A copy, beside a benchmark that prints figures: the benchmark, its output, the
# row, and the result.  Quartiles decide for figures of A/A runs and of peers.

my $accounting = "1 KB file\n  accounting   0.980 (0.970 .. %s)\n"
                 . "  plain again  1.000 (0.990 .. 1.010)";
my $server = "gzip        CPU per request\ncpu, 99 Hz  1.012 (%s .. 1.020)\n"
             . 'gperftools, 100 Hz  1.003 (1.001 .. 1.007)';
my $neighbours = join "\n",
    'again   1.0 (0.9 .. 1.1)  0.2 (0.1 .. 0.3)  0.4 (0.3 .. 0.5)',
    'record  1.0 (0.9 .. 1.1)  0.2 (0.1 .. 0.3)  %s (0.1 .. 2.0)';

mkdir "$dir/copy";
write_file("$dir/copy/$_", read_file("$root/bench/$_"))
    for qw/ report.pl Machine.pm /;
script("$dir/bin/$_", '') for qw/ wrk taskset openssl /;

for my $case ([ 'accounting', $accounting, '0.999', 'accounting', 1 ],
              [ 'accounting', $accounting, '0.985', 'accounting', 0 ],
              [ 'server', $server, '1.006', 'worker capture, gzip, cpu, 99 Hz',
                1 ],
              [ 'server', $server, '1.008', 'worker capture, gzip, cpu, 99 Hz',
                0 ],
              [ 'neighbours', $neighbours, '0.8',
                'other clients, p99 while files are recorded', 1 ],
              [ 'neighbours', $neighbours, '0.9',
                'other clients, p99 while files are recorded', 0 ])
{
    my ($program, $text, $figure, $name, $holds) = @$case;

    unlink "$dir/out/report.json";
    script("$dir/copy/$program.pl", sprintf($text, $figure));

    is(report(SCRIPT => "$dir/copy/report.pl", ROWS => "^$name\$"), 0,
       "$name, $figure: the report succeeds");
    is(read_file("$dir/err") =~ tr/\n//, 1,
       "$name, $figure: no warnings follow the command");

    my ($row) = @{decode_json(read_file("$dir/out/report.json"))->{rows}};

    like($row->{value}, qr/^[\d.]+ \(.*\Q$figure\E|^\Q$figure\E \(/,
         "$name, $figure: the value has its quartiles");
    ok(exists $row->{holds} && !!$row->{holds} == !!$holds,
       "$name, $figure: compared with the other figure");
}

done_testing();


# returns the status; the benchmarks that need no other program are chosen
sub report {
    local %ENV = (%ENV, ROWS => 'unwinding|html|untriggered|^accounting$',
                  SCRIPT => "$root/bench/report.pl", @_, BUILD => $dir,
                  OUT => "$dir/out", PATH => "$dir/bin");

    return system("'$^X' '$ENV{SCRIPT}' 2>'$dir/err'");
}


sub program {
    my ($name, $text) = @_;
    script("$dir/bench/$name", $text);
}


sub script {
    my ($path, $text) = @_;

    write_file($path, "#!/bin/sh\ncat <<'END'\n$text\nEND\n");
    chmod 0755, $path;
}


sub write_file {
    my ($name, $content) = @_;

    open my $f, '>', $name or die "$name: $!\n";
    print $f $content;
    close $f or die "$name: $!\n";
}


sub read_file {
    my ($name) = @_;

    open my $f, '<', $name or return '';
    local $/;
    return <$f> // '';
}
