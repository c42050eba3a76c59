#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: first
#
# The fuzzers, with the same inputs in each run; "make fuzz" looks for new
# ones.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ basename dirname /;
use File::Temp qw/ tempdir /;
use Test::More;

chdir(dirname(abs_path(__FILE__)) . '/..') or die "chdir: $!\n";

use constant RUNS => 3000;

my $dir = tempdir(CLEANUP => 1);

open my $f, '>', "$dir/none.c" or die "$dir/none.c: $!\n";
print $f <<'EOF';
int LLVMFuzzerTestOneInput(const char *data, unsigned long size);
int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return 0; }
EOF
close $f;

plan(skip_all => 'no clang with libFuzzer')
    if system("clang -fsanitize=fuzzer,address -o $dir/none $dir/none.c"
              . ' 2> /dev/null') != 0;

my $build = `make -s -j \$(nproc) fuzzers 2>&1`;
is($?, 0, 'the fuzzers are built') or diag($build);

# without nginx's sources those with nginx are not built
my @fuzzers = grep { /prof_fuzz_/ || -x }
              map { 'build/fuzz/' . basename($_, '.c') }
                  glob('t/fuzz/*_fuzz_*.c');

cmp_ok(scalar @fuzzers, '>', 0, 'there are some');

for my $fuzzer (@fuzzers) {
    my $name = basename($fuzzer);
    my ($corpus) = $name =~ /_fuzz_(\w+)/;
    my @corpus = grep { -d } "t/fuzz/corpus/$corpus";

    mkdir "$dir/$name" or die "$dir/$name: $!\n";

    my $command = join(' ', $fuzzer, '-runs=' . RUNS, '-seed=1',
                       '-len_control=0', '-max_len=2048',
                       "-artifact_prefix=$dir/", "$dir/$name", @corpus);
    my $out = `$command 2>&1`;

    is($?, 0, $name) or diag($out);
    like($out, qr/^Done @{[ RUNS ]} runs/m, "$name: all runs");
}

done_testing();
