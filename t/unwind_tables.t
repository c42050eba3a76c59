#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: unwind
# runs: beside
#
# The unwind tables of real libraries, hand-written code included, against
# readelf's view of the same unwind entries.

use strict;
use warnings;

use Test::More;

my $dump = 'build/tools/prof-unwind-dump';
my @libraries = qw/ libc.so.6 libcrypto.so.3 libssl.so.3 libz.so.1
                    libpcre2-8.so.0 libgcc_s.so.1 libstdc++.so.6 /;

plan(skip_all => "no $dump") unless -x $dump;
plan(skip_all => 'no readelf') unless `readelf --version 2>/dev/null`;
plan(skip_all => 'x86-64 only') unless `uname -m` eq "x86_64\n";

for my $library (undef, @libraries) {
    my $name = $library // 'the dumping program';

    SKIP: {
        skip("no $name", 1)
            if defined $library && system("$dump $library > /dev/null 2>&1");

        my $out = `tools/check-unwind-tables $dump @{[ $library // '' ]} \\
                   2>/dev/null`;

        is($?, 0, $name) or diag($out);
        note($out);
    }
}

done_testing();
