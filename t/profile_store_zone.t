#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# Builds and runs store/zone_test.c: the store's memory, whose writer is
# killed.  PROFILE_TEST_KILLS says how often.

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
my @sources = ("$root/t/store/zone_test.c",
               map { "$glue/store/ngx_http_profile_$_.c" }
                   qw/ zone entry evict store memory file files /);

push @sources, map { "$glue/core/ngx_http_profile_$_.c" } qw/ alive log_limit /;

my $out = `cd "$build" && $cc -g -O1 -W -Wall -Wno-unused-parameter -Werror \\
           $includes -I "$root/t/unit" -o "$dir/zone_test" @sources 2>&1`;

if ($? != 0) {
    plan tests => 1;
    fail('build');
    diag($out);
    exit;
}

exec("$dir/zone_test", $ENV{PROFILE_TEST_KILLS} || 3000) or die "exec: $!\n";
