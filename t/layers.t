#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools docs
# runs: beside
#
# tools/check-layers reports uses between rooms that their tables do not allow.
# The module exports only the symbols that nginx needs.  "make lint" runs the
# checker over the sources.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $check = "$root/tools/check-layers";

my %tree = (
    'shared/prof.h'                => '#include "base/prof_base.h"',
    'shared/base/prof_base.h'      => '#include <stdint.h>',
    'shared/profile/prof_x.h'      => '#include "base/prof_base.h"',
    'shared/formats/prof_encode.c'  => '#include "profile/prof_x.h"',
    'docs/architecture.md' =>
        "| room of `shared/` | may use | what |\n|---|---|---|\n"
        . "| `formats` | `profile` `base` | |\n| `profile` | `base` | |\n"
        . "| `base` | | |\n\n"
        . "| room of `ngx_http_profile_module/` | may use | what |\n"
        . "|---|---|---|\n| `upper` | `lower` | |\n| `lower` | | |\n",
    'ngx_http_profile_module/lower/ngx_http_profile_low.h' => '',
    'ngx_http_profile_module/upper/ngx_http_profile_up.h' =>
        '#include "lower/ngx_http_profile_low.h"',
    'ngx_http_profile_module/upper/ngx_http_profile.c' =>
        "#include <ngx_http.h>\n#include \"prof.h\"",
);

is(check(), '', 'good layers pass');

like(check('shared/base/prof_a.c' => '#include "profile/prof_x.h"'),
     qr{^shared/base/prof_a\.c:1: base does not use "profile/prof_x\.h"$},
     'an include upwards in the core is seen');
like(check('ngx_http_profile_module/lower/ngx_http_profile_a.c' =>
           '#include "upper/ngx_http_profile_up.h"'),
     qr{lower does not use "upper/ngx_http_profile_up\.h"$},
     'an include upwards in the module is seen');
like(check('ngx_http_profile_module/other/ngx_http_profile_a.c' =>
           '#include "lower/ngx_http_profile_low.h"'),
     qr{ngx_http_profile_module/other has no row$},
     'a room without a row is seen');
like(check('docs/architecture.md' =>
           "| room of `shared/` | may use | what |\n|---|---|---|\n"
           . "| `base` | | |\n| `profile` | `base` | |\n"),
     qr{docs/architecture\.md:4: profile uses base, a row above$}m,
     'a row that uses a row above it is seen');
like(check('shared/formats/prof_a.c' => '#include "prof.h"'),
     qr/formats does not use "prof\.h"/, 'the facade is above');
like(check('shared/base/prof_a.c' => '#include "base/prof_none.h"'),
     qr/is no header of the core/, 'an unknown header is seen');
like(check('shared/base/prof_a.c' => '#include <ngx_core.h>'),
     qr/is no header of the core/, 'an nginx header is seen');
like(check('shared/base/prof_a.c' => 'ngx_int_t  i;'),
     qr/does not know nginx: ngx_int_t/, 'an nginx type is seen');
is(check('shared/base/prof_a.c' => '/* as ngx_int_t */'), '',
     'a comment may speak of nginx');
like(check('ngx_http_profile_module/upper/ngx_http_profile_a.c' =>
           '#include "base/prof_base.h"'),
     qr/only "prof\.h" is for the module/, 'an inner header is seen');
like(check('shared/base/prof_a.c' => '#include <jansson.h>'),
     qr/<jansson\.h> belongs to/, 'the use of a library is seen');
like(check('shared/base/prof_a.c' => '#include <curl/curl.h>'),
     qr{<curl/curl\.h> has no owner}, 'a new library is seen');
like(check('shared/base/prof_a.c' => "\ndl_iterate_phdr(f, NULL);"),
     qr/prof_a\.c:2: dl_iterate_phdr\(\) belongs to/,
     'the use of a function is seen');
like(check('shared/base/prof_a_sig.c' => '#include <stdio.h>'),
     qr/<stdio\.h> in a signal handler/, 'stdio in a handler is seen');
like(check('shared/formats/prof_x.h' => ''), qr/there is also/,
     'two files of the same name are seen');

is(check(ring(3)), '', 'three files may use each other');
like(check(ring(4)),
     qr{^shared/base/prof_1\.c:1:\ 4\ files\ use\ each\ other:
        \ prof_1\.c\ prof_2\.c\ prof_3\.c\ prof_4\.c$}x,
     'a cycle of four files is seen');
like(check(ring(4), 'shared/base/prof_4.c' =>
           "char  *s = \"/*\";\n\nvoid\nprof_f4(void)\n{\n    f1();\n}\n",
           'shared/base/prof_f.h' => "#define f1()  \\\n    prof_f1()\n"),
     qr/4 files use each other/, 'a use by way of a macro is seen');
is(check(ring(4), 'shared/base/prof_3.c' =>
         "static void\nprof_f4(void)\n{\n}\n\n\nvoid\nprof_f3(void)\n{\n"
         . "    prof_f4();\n}\n"),
   '', 'a static function is the own one');
like(check('shared/base/util.c' => ''), qr/does not begin with prof/,
     'a foreign name is seen');

chdir($root) or die "chdir: $!\n";


# nginx loads modules with RTLD_GLOBAL

SKIP: {
    my $so = $ENV{TEST_NGINX_MODULE} // 'build/ngx_http_profile_module.so';

    skip('no dynamic module', 1) unless -f $so;

    # num: value size type bind visibility section name; hidden ones bind to
    # nothing outside
    my @names = map { (split)[-1] }
                grep { /^\s*\d+:/ && !/ (?:UND|HIDDEN) / && (split) == 8 }
                `readelf -W --dyn-syms $so`;

    is_deeply([ sort grep { !/asan/ } @names ],
              [ qw/ ngx_http_profile_bar_filter_module
                    ngx_http_profile_module ngx_module_names ngx_module_order
                    ngx_modules otel_thread_ctx_v1 / ],
              'the module exports only what other programs look up');
}

done_testing();


# writes n files, each of which calls a function of the next one
sub ring {
    my ($n) = @_;

    return map {
        my $next = $_ % $n + 1;

        ("shared/base/prof_$_.c" =>
         "void\nprof_f$_(void)\n{\n    prof_f$next();\n}\n");
    } 1 .. $n;
}


# checks a copy of the good tree with these files in addition
sub check {
    my %files = (%tree, @_);

    my $dir = tempdir(CLEANUP => 1);

    for my $name (keys %files) {
        make_path(dirname("$dir/$name"));

        open my $f, '>', "$dir/$name" or die "$name: $!\n";
        print $f "$files{$name}\n";
        close $f;
    }

    return scalar `$check $dir`;
}
