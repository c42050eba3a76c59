#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# Builds and runs store/day_test.c: a day of the continuous profile, or the
# number of hours in PROFILE_TEST_HOURS.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $module = $ENV{TEST_NGINX_MODULE}
             || "$root/build/ngx_http_profile_module.so";
my $build = abs_path(dirname($module) . '/nginx') || '';
my $cc = $ENV{CC} || 'cc';
my $dir = tempdir(CLEANUP => 1);

# where nginx's headers are, as the module is built

open my $f, '<', "$build/objs/Makefile"
    or plan skip_all => 'the module was not built here';
my $makefile = do { local $/; <$f> };

my ($includes) = $makefile =~ /^ALL_INCS = (.*?)\n\n/ms;
$includes =~ s/\\\n//g;

my $glue = "$root/ngx_http_profile_module";
my $core = dirname($module) . '/libprof.a';
my @sources = ("$root/t/store/day_test.c",
               "$glue/continuous/ngx_http_profile_slices.c",
               map { "$glue/store/ngx_http_profile_$_.c" }
                   qw/ zone entry evict store memory file files /);

push @sources, map { "$glue/core/ngx_http_profile_$_.c" } qw/ alive log_limit /;
push @sources, abs_path($core), '-lz';

my $out = `cd "$build" && $cc -g -O1 -W -Wall -Wno-unused-parameter -Werror \\
           $includes -I "$root/t/unit" -o "$dir/day_test" @sources 2>&1`;

if ($? != 0) {
    plan tests => 1;
    fail('build');
    diag($out);
    exit;
}

exec("$dir/day_test", $ENV{PROFILE_TEST_HOURS} || 24) or die "exec: $!\n";
