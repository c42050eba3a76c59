#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: views assets
# runs: beside
#
# Pictures and pages of a hand-built profile in a browser: inferred names look
# different, and stages, scripts, the kernel and inferred names can be left out.
# The weights stay exact.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use JSON::PP;
use List::Util qw/ sum0 /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;

my $root = dirname(abs_path(__FILE__));
my $module = $ENV{TEST_NGINX_MODULE}
             || "$root/../build/ngx_http_profile_module.so";
my $program = dirname($module) . '/t/prof_source.t';

my $t = ProfileTest->new();

has_browser($t);
$t->skip_all('run "make units" first') unless -x $program;

my %mark = (stages => 'h', scripts => 'f', kernel => 'y',
            'inferred names' => 'i');

share_browser($t);

for my $format (qw/ html svg /) {
    test_format($format);
}

$t->stop();


sub test_format {
    my ($format) = @_;

    my ($status, $page) = $t->command($program, $format);
    is($status, 0, "$format: the document is written") or return;

    my $file = $t->testdir() . "/page.$format";
    $t->write_file("page.$format", $page);

    my $s = in_browser($t, $format, 'sorts', "file://$file",
                       $ENV{PROFILE_TEST_SHOTS}
                       ? "$ENV{PROFILE_TEST_SHOTS}/$format" : ());

    return if $s->{failed};

    is_deeply($s->{console}, [], "$format: the browser logs no message");
    is_deeply($s->{sorts}, ['stages', 'scripts', 'kernel', 'inferred names'],
              "$format: each category of frames has a switch");
    is($s->{group}, 'Frames to show', "$format: the group has a name");
    like($s->{legend}, qr/inferred name/,
         "$format: the legend explains inferred names");

    my @all = @{$s->{states}{all}};

    for my $box (grep { $_->{name} ne 'all wall time' } @all) {
        my $inferred = $box->{mark} =~ /\bi\b/;

        is($box->{dash} ne 'none', $inferred ? 1 : '',
           "$format: only inferred names have a dashed line: $box->{name}");
        is($box->{slant} eq 'italic', $inferred ? 1 : '',
           "$format: only inferred names are slanted: $box->{name}")
            if $box->{slant};
    }

    for my $state (sort keys %{$s->{states}}) {
        test_state("$format, $state", $s->{states}{$state}, \@all,
                   $state eq 'all' ? () : $state eq 'none' ? values %mark
                                        : $mark{$state});
    }

    is_deeply($s->{again}, \@all, "$format: all frames can be shown again");
    is($s->{hash}, '',
       "$format: the URL has no fragment when all frames are shown");
    is($s->{hashNone}, '#stages=off&scripts=off&kernel=off&inferred=off',
       "$format: the URL has the state of the switches");
    is_deeply($s->{reloaded}, $s->{states}{none},
              "$format: a reload shows the same frames");
    is_deeply($s->{checked}, [(JSON::PP::false) x 4],
              "$format: a reload shows the same switches");

    like($s->{zoomed}, qr/ngx_http_request\.c.* \x{203a} app\.lua:40 handler/,
         "$format: a frame of a script can be zoomed");
    like($s->{zoomedCaller}, qr/\x{203a} ngx_http_request\.c \(nginx\+0x81d10\)$/,
         "$format: its caller is zoomed when it is left out");
    is_deeply($s->{axe} || [], [], "$format: axe finds no violation");
}


sub test_state {
    my ($name, $boxes, $all, @marks) = @_;

    my ($whole, @rest) = @$boxes;
    my $marks = @marks ? join('|', @marks) : 'none';

    is(join(', ', map { $_->{name} } grep { $_->{mark} =~ /\b(?:$marks)\b/ }
            @rest), '', "$name: no frame of these categories is shown");

    # the self weights of all boxes add up to the whole

    my $self = sum0(map { (split(/ /, $_->{n}))[1] // 0 } @$boxes);

    is($self, 25734567, "$name: the self weights add up to the whole");

    my %before = map { $_->{name} => $_ } @$all;
    my @wrong = grep { (split / /, $_->{n})[0]
                       != (split / /, $before{$_->{name}}{n})[0] }
                @rest;

    is(join(', ', map { $_->{name} } @wrong), '',
       "$name: all frames keep their total weight");

    # boxes are on their callers, and side by side

    my %rows;
    push @{$rows{$_->{row}}}, $_ for @$boxes;

    my @outside;

    for my $box (grep { $_->{row} } @$boxes) {
        push @outside, $box->{name} unless grep {
            $_->{x} <= $box->{x} + 0.001
            && $_->{x} + $_->{width} >= $box->{x} + $box->{width} - 0.001
        } @{$rows{$box->{row} - 18} || []};
    }

    is(join(', ', @outside), '', "$name: each box lies within its caller");
}
