#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

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

is(report(), 0, 'a report');

my $json = decode_json(read_file("$dir/out/report.json"));
my %rows = map { $_->{name} => $_ } @{$json->{rows}};
my $page = read_file("$dir/out/report.md");

ok($json->{machine}{$_}, "the machine: $_") for qw/ cpu cpus kernel date /;

is($rows{'unwinding a stack'}{value}, '27.9', 'a figure');
ok($rows{'unwinding a stack'}{holds}, 'its budget holds');

my $typical = $rows{'html of 100,000 samples, typical'};
is($typical->{value}, 127, 'another figure');
ok(exists $typical->{holds} && !$typical->{holds}, 'its budget does not hold');
is($typical->{other}, 499, 'that of a peer');

ok($rows{'html of 100,000 samples, random'}{holds}, 'the figure of its part');

is($rows{'untriggered request, no arguments'}{missing}, 'no valgrind',
   'a program that is not installed');
is($rows{'accounting'}{missing}, 'no wrk', 'another one');

is(() = $page =~ /^\| .*\| (?:yes|\*\*no\*\*|) \|$/mg, @{$json->{rows}},
   'a line of the page for each row');
like($page, qr/^\| unwinding a stack \| 27\.9 \|.* yes \|$/m, 'a line');
like($page, qr/^\| accounting \| no wrk \|/m, 'a line without a figure');

unlink "$dir/bench/bench_walk";

isnt(report(), 0, 'a benchmark that fails');
like(read_file("$dir/out/report.md"), qr/^\| unwinding a stack \| failed \|/m,
     'its line');
is(report(ROWS => 'unwinding'), 256, 'one row');
is(@{decode_json(read_file("$dir/out/report.json"))->{rows}}, 1,
   'and no other one');

done_testing();


# returns the status; the benchmarks that need no other program are chosen
sub report {
    local %ENV = (%ENV, ROWS => 'unwinding|html|untriggered|^accounting$',
                  @_, BUILD => $dir, OUT => "$dir/out", PATH => "$dir/bin");

    return system("'$^X' '$root/bench/report.pl' 2>'$dir/err'");
}


sub program {
    my ($name, $text) = @_;

    write_file("$dir/bench/$name", "#!/bin/sh\ncat <<'END'\n$text\nEND\n");
    chmod 0755, "$dir/bench/$name";
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
