#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: bench
# runs: beside
#
# A short form of bench/scale.pl.  Times depend on the machine, sizes do not.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use Test::More;

chdir(dirname(abs_path(__FILE__)) . '/..') or die "chdir: $!\n";

my $module = $ENV{TEST_NGINX_MODULE} // 'build/ngx_http_profile_module.so';

plan(skip_all => 'the benchmark loads a dynamic module')
    unless length $module;
plan(skip_all => 'sanitizers change the size of memory')
    if `nm -D '$module'` =~ /__asan_init/;

my $out = tempdir(CLEANUP => 1);

$ENV{MODULE} = $module;
$ENV{NGINX} = $ENV{TEST_NGINX_BINARY} if $ENV{TEST_NGINX_BINARY};
$ENV{SHORT} = 1;
$ENV{OUT} = $out;

my $text = `bench/scale.pl profiles locations 2>&1`;

is($?, 0, 'the benchmark ends without an error') or diag($text);

open my $f, '<', "$out/scale.md" or die "scale.md: $!\n";
my $page = do { local $/; <$f> };

my %row;

$row{$1}{$2} = { memory => $3, bytes => $4 }
    while $page =~ /^\| (.*?) \| (\d+) \|.*\| (\d+) \| (\d*) \|$/mg;

my $list = $row{'list of profiles, newest 1000'};
my $metrics = $row{'metrics'};

cmp_ok($list->{1000}{bytes}, '>', 5 * $list->{100}{bytes},
       'a list of 1,000 profiles contains more than a list of 100');
cmp_ok($list->{10000}{bytes}, '<', 1.1 * $list->{1000}{bytes},
       'a page of the list has at most 1,000 profiles');
cmp_ok($list->{10000}{memory}, '>', 5 * $list->{1000}{memory},
       'the store holds 10,000 profiles');
cmp_ok($list->{10000}{memory} / 10000, '<', 4,
       'a profile of a small request needs less than 4 kB of the store');
cmp_ok($metrics->{100}{bytes}, '>', 5 * $metrics->{10}{bytes},
       'the metrics of 100 locations have series of each');
cmp_ok($row{overview}{100}{bytes}, '<', 100_000,
       'the overview of 100 locations stays small');

like(`bench/scale.pl nothing 2>&1`, qr/^there is no subject "nothing"$/m,
     'an unknown subject is an error');

done_testing();
