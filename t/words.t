#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools docs
# runs: beside
#
# tools/check-words reports words without a subject in comments and documents,
# and only there.  "make lint" runs it over the sources.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $check = "$root/tools/check-words";
my $dir = tempdir('words-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);

my @bad = (
    [ 'a.c', "int i;\n\n/* the lock of whoever waits */\n", 3, 'whoever' ],
    [ 'a.h', "/*\n * The list is\n * none.\n */\n", 2, 'is none' ],
    [ 'a.js', "/* Somebody asks. */\n", 1, 'Somebody' ],
    [ 'a.css', "a { }\n/* of ours */\n", 2, 'of ours' ],
    [ 'a.t', "my \$i;   # nobody waits\n", 1, 'nobody' ],
    [ 'a.md', "Text.\n\nEverybody asks.\n", 3, 'Everybody' ],
    [ 'CHANGES', "    *) Change: on the quiet.\n", 1, 'on the quiet' ],
);

for (@bad) {
    my ($name, $text, $line, $words) = @$_;

    like(check($name, $text),
         qr/^\Q$dir\/$name\E:$line: words: "$words": [^\n]+\n\z/,
         "\"$words\" is reported in $name");
}

my @good = (
    [ 'a.c', "char  *user = \"nobody\";\n" ],
    [ 'a.js', "const name = 'somebody';\n" ],
    [ 'a.t', "my \$user = 'nobody';\n" ],
    [ 'a.md', "The user `nobody`.\n\n```nginx\nuser nobody;\n```\n" ],
    [ 'a.md', "The list of hosts is nonempty.\n" ],
);

is(check(@$_), '', "code and other words are not reported: $_->[1]")
    for @good;

my $wide = 'word ' x 16 . 'end';

like(check('a.md', "Text.\n\n$wide\n"),
     qr/^\Q$dir\E\/a\.md:3: width: 83 columns, a document has 80\n\z/,
     'a wide line of a document is reported');

is(check('a.md', $_), '', 'a wide line that cannot break is not reported')
    for "| $wide |\n", "```\n$wide\n```\n", "    $wide\n", "# $wide\n",
        "[$wide]: x\n", 'x' x 90 . "\n", "\xe2\x89\xa4 " x 40 . "\n";

is(check('a.c', "/* $wide */\n"), '',
   'the width of comments is left to check-style');

done_testing();


sub check {
    my ($name, $text) = @_;

    open my $f, '>', "$dir/$name" or die "$0: $!\n";
    print $f $text;
    close $f or die "$0: $!\n";

    return scalar(qx{$check $dir/$name 2>&1});
}
