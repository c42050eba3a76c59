#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: beside
#
# Code that runs in signal handlers calls nothing that is not known to be safe
# there, and the checker that says so sees what it should.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $check = "$root/tools/check-signal-safe";
my $cc = $ENV{CC} || 'cc';
my $dir = tempdir(CLEANUP => 1);

is(check('int f(int a) { return a + 1; }'), 0,
   'a function without calls is safe');
is(check('#include <string.h>
          void f(char *a, char *b, int n) { memcpy(a, b, n); }'), 0,
   'a name that is listed');
isnt(check('#include <stdlib.h>
            void *f(void) { return malloc(1); }'), 0, 'malloc() is seen');
isnt(check('#include <stdio.h>
            int f(void) { return printf("%d", 1); }'), 0,
     'printf() is seen');
isnt(check('static __thread int n; int *f(void) { return &n; }'), 0,
     'thread-local storage is seen');
is(check('int g(void); int f(void) { return g(); }',
         'int g(void) { return 1; }'), 0,
   'a function of another object is safe');
isnt(check('int g(void); int f(void) { return g(); }'), 0,
     'a function of no object');

my $out = `$check 2>&1`;
is($?, 0, 'the signal handlers of the project') or diag($out);

# Storage of the initial-exec model has to be there when the process starts:
# musl loads no module that has any, and others may have no room for it.

SKIP: {
    my $module = $ENV{TEST_NGINX_MODULE}
                 // "$root/build/ngx_http_profile_module.so";

    skip('no module', 1) unless -f $module;

    my $dynamic = `readelf -d "$module"`;

    skip('the module has a sanitizer', 1) if $dynamic =~ /lib[atu]b?san\b/;

    unlike($dynamic, qr/STATIC_TLS|^$/, 'the module has no static TLS');
}

done_testing();


# checks objects with these sources
sub check {
    my @objects;

    for my $source (@_) {
        my $file = "$dir/" . scalar(@objects);

        open my $f, '>', "$file.c" or die "$file.c: $!\n";
        print $f "$source\n";
        close $f;

        system("$cc -O2 -fPIC -c -o $file.o $file.c") == 0
            or die "cannot compile $file.c\n";

        push @objects, "$file.o";
    }

    system("$check @objects > /dev/null");

    return $? >> 8;
}
