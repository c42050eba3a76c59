#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: beside
#
# tools/check-style reports each kind of deviation from nginx's style.  "make
# lint" runs it over the sources.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $check = "$root/tools/check-style";

my $header = "\n/*\n * Copyright (C) The ngx_http_profile_module authors\n"
             . " */\n\n\n";

# the body of a function, and the rule that it breaks
my %bodies = (
    length         => '    ' . 'a' x 80 . ';',
    tab            => "\ti = 1;",
    space          => '    i = 1; ',
    ascii          => "    i = '\xc3\xa9';",
    comment        => '    i = 1;    // one',
    hex            => '    i = 0xA5;',
    keyword        => "    if(i) {\n        i = 0;\n    }",
    for            => "    for (;;) {\n        i++;\n    }",
    cast           => '    i = (int) 1 + (size_t)i;',
    if             => "#if NGX_DEBUG\n#endif",
    break          => "    i = 1 &&\n        2;",
    empty          => "    i = 1;\n\n\n\n    i = 2;",
    else           => "    if (i) {\n        i = 0;\n    } else {\n"
                      . "        i = 1;\n    }",
    label          => "    i = 1;\nfailed:\n    i = 2;",
    brace          => "    if (i)\n        i = 0;",
    case           => "    switch (i) {\n        case 1:\n        break;\n"
                      . "    }",
    note           => '    /* TODO: the rest */',
    dead           => "#if 0\n    i = 1;\n#endif",
);

my %declarations = (
    column         => '    int i;',
    initialization => '    int  i = 1;',
    order          => "    size_t   n;\n    int      i;",
    declaration    => "    int  i;\n    i = 1;",
);

# whole files after the copyright
my %files = (
    between        => "int\nf(void)\n{\n    g();\n}\n\nint\nh(void)\n{\n"
                      . "    g();\n}\n",
    define         => "#define NAME 1\n",
    prototype      => "static int\nf(void)\n{\n    return 0;\n}\n",
    type           => "int f(void)\n{\n    return 0;\n}\n",
    function       => "int\nf(void) {\n    return 0;\n}\n",
    end            => "#define NAME  1\n\n",
);

my $dir = tempdir(CLEANUP => 1);


my $good = "static int f(int i, char *s);\n\n\n"
    . "static int\nf(int i, char *s)\n{\n"
    . "    int           n;\n    const char   *p;\n    static u_char a[2];\n\n"
    . "    n = (i & 0xff) + (int) sizeof(\"a // b\");\n\n"
    . "    for ( ;; ) {\n        n++;\n    }\n\n"
    . "    if (n == 1\n        && i)\n    {\n        goto failed;\n"
    . "    }\n\n"
    . "    if (n) {\n        n = 0;\n\n    } else if (i) {\n        n = 2;\n"
    . "    }\n\n"
    . "    switch (n) {\n\n    case 1:\n        break;\n\n"
    . "    default:\n        return 1;\n    }\n\n"
    . "failed:\n\n    return 0;\n}\n";

is(check($header . $good), '', 'good code passes');

for my $rule (sort keys %bodies) {
    my $s = "int\nf(void)\n{\n    int  i;\n\n$bodies{$rule}\n}\n";
    like(check($header . $s), qr/: \Q$rule\E: /, "$rule is seen");
}

for my $rule (sort keys %declarations) {
    my $s = "int\nf(void)\n{\n$declarations{$rule}\n}\n";
    like(check($header . $s), qr/: \Q$rule\E: /, "$rule is seen");
}

for my $rule (sort keys %files) {
    like(check($header . $files{$rule}), qr/: \Q$rule\E: /, "$rule is seen");
}

like(check("int  i;\n"), qr/: top: .*: copyright: /s,
     'a missing copyright is seen');
like(check("$header#ifndef _X_H\n#define _X_H\n#endif\n", 'x.h'),
     qr/: guard: /, 'a wrong guard is seen');

done_testing();


sub check {
    my ($content, $name) = @_;

    $name ||= 'x.c';

    open my $f, '>', "$dir/$name" or die "$name: $!\n";
    print $f $content;
    close $f;

    return scalar `$check $dir/$name`;
}
