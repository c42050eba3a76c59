#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools t
# runs: beside
#
# tools/list-tests: the tests of rooms and of changed files, tests without a
# mark, and marks that name no room.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Copy qw/ copy /;
use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;
use Test::More;

my $dir = tempdir('list-tests-XXXXXXXXXX', TMPDIR => 1, CLEANUP => 1);

make_path(map { "$dir/$_" } qw{ tools docs t/unit t/lib/Lib t/browser
    shared/stacks ngx_http_profile_module/loop ngx_http_profile_module/keep });

copy(dirname(abs_path(__FILE__)) . '/../tools/list-tests', "$dir/tools")
    or die "copy: $!\n";
chmod 0755, "$dir/tools/list-tests";

test('a.t', 'rooms: loop keep', 'use Lib::One;');
test('b.t', 'rooms: loop');
test('c.t', 'rooms: docs tools t', 'browser("page.mjs")');
test('unit/prof_stack_test.c', 'rooms: stacks');
file('t/lib/Lib/One.pm', 'package Lib::One;');
file('t/browser/page.mjs', "import { open } from './launch.mjs';");
file('t/browser/launch.mjs', '');
file($_, '') for qw{ shared/stacks/stack.c docs/time.md
    ngx_http_profile_module/keep/keep.c ngx_http_profile_module/loop/loop.c };

is(list('units loop'), 't/a.t t/b.t', 'the tests of a room');
is(list('units stacks keep'), 't/a.t units/prof_stack.t',
   'the tests of two rooms, one of them built');
like(list('units nowhere'), qr/no room "nowhere", there are: docs keep loop /,
     'a room that does not exist is an error');
is(list('--check'), '', 'each test has its mark, and each room a test');

git('init -q -b main', 'add .', 'commit -q -m first');
is(list('units --changed'), '', 'nothing has changed');

for ([ 'ngx_http_profile_module/keep/keep.c', 't/a.t' ],
     [ 'shared/stacks/new.c', 'units/prof_stack.t' ],
     [ 'docs/time.md', 't/c.t' ], [ 'Makefile', 't/c.t' ],
     [ 't/b.t', 't/b.t' ], [ 't/lib/Lib/One.pm', 't/a.t' ],
     [ 't/browser/launch.mjs', 't/c.t' ])
{
    my ($name, $tests) = @$_;
    my $text = -e "$dir/$name" ? content($name) : '';

    file($name, "$text\n");
    is(list('units --changed'), $tests, "the tests of $name");

    if ($name =~ /keep/) {
        git('checkout -q -b mine', 'commit -q -a -m second');
        is(list('units --changed'), $tests, 'the tests of a branch');
        git('checkout -q main');
    }

    git('checkout -q .', 'clean -q -f -d');
}

test('b.t', 'runs: often');
file('shared/views/view.c', '');

is(list('--check'), join(' ',
    't/b.t: no "rooms: ROOM..." in the first lines',
    't/b.t: "runs: often" is not one of first, beside, quiet',
    'room "views": no test has it'), 'what is wrong with marks');

test('b.t', 'rooms: loop cellar');
like(list('--check'), qr{^t/b\.t: no room "cellar"}, 'a mark without a room');

done_testing();


sub list {
    my ($args) = @_;
    return join(' ', split(/\n/, `$dir/tools/list-tests $args 2>&1`));
}


sub git {
    system("git -C $dir -c user.name=x -c user.email=x $_") && die "git $_\n"
        for @_;
}


sub test {
    my ($name, $mark, $text) = @_;
    file("t/$name", join("\n", "# $mark", $text // (), ''));
}


sub file {
    my ($name, $text) = @_;

    make_path(dirname("$dir/$name"));
    open my $f, '>', "$dir/$name" or die "$name: $!\n";
    print $f $text;
}


sub content {
    my ($name) = @_;

    open my $f, '<', "$dir/$name" or die "$name: $!\n";
    local $/;
    return <$f>;
}
