#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: bench
#
# A short form of bench/soak.pl: captures of all scopes and modes beside load,
# reloads, killed workers and aborted clients.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use Test::More;

use constant SECONDS => 25;

chdir(dirname(abs_path(__FILE__)) . '/..') or die "chdir: $!\n";

my $module = $ENV{TEST_NGINX_MODULE} // 'build/ngx_http_profile_module.so';

plan(skip_all => 'a twin without the module needs a dynamic module')
    unless length $module;
plan(skip_all => 'sanitizers keep freed memory')
    if `nm -D '$module'` =~ /__asan_init/;

$ENV{MODULE} = $module;
$ENV{NGINX} = $ENV{TEST_NGINX_BINARY} if $ENV{TEST_NGINX_BINARY};

my $out = `bench/soak.pl @{[ SECONDS ]} 2>&1`;

is($?, 0, 'nothing crashes, leaks or stays changed') or diag($out);
like($out, qr/^No worker crashed/m, 'the run is complete');
cmp_ok(($out =~ /^\| stored profiles \| (\d+)/m)[0] // 0, '>', 0,
       'profiles were stored');

note($out);

done_testing();
