#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: assets
# runs: beside
#
# The colors of pictures and pages: texts have the contrast that WCAG 2 asks
# for (AA), and the kinds of code can be told apart, by the color-blind as
# well.  How they see colors is computed after Machado, Oliveira and Fernandes
# (2009).

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use List::Util qw/ max min sum /;
use Test::More;

use constant CONTRAST => 4.5;

# The distance (CIE 1976) of two kinds.  2.3 is just noticeable.  What waits
# is hatched, notes have a frame, and are not told by color.
use constant DISTANCE => 10;

my @KINDS = qw/ program module script libc kernel tls zlib library unknown /;

# neighbors of a kind are shades of it: the opacities in prof_flame.css
my @SHADES = (1, .87, .74);

my %VISION = (
    usual => [ 1, 0, 0, 0, 1, 0, 0, 0, 1 ],
    protanopia => [ 0.152286, 1.052583, -0.204868, 0.114503, 0.786281,
                    0.099216, -0.003882, -0.048116, 1.051998 ],
    deuteranopia => [ 0.367322, 0.860646, -0.227968, 0.280085, 0.672501,
                      0.047413, -0.011820, 0.042940, 0.968881 ],
    tritanopia => [ 1.255528, -0.076749, -0.178779, -0.078411, 0.930809,
                    0.147602, 0.004733, 0.691367, 0.303900 ],
);

my $assets = dirname(abs_path(__FILE__)) . '/../shared/assets';


# the computations themselves

is(sprintf('%.1f', contrast([ 0, 0, 0 ], [ 1, 1, 1 ])), '21.0',
   'black on white has the highest contrast');
is(sprintf('%.2f', contrast(rgb('#777777'), rgb('#ffffff'))), '4.48',
   'gray on white has the contrast of the standard');
is(sprintf('%.1f', distance([ 1, 1, 1 ], [ 0, 0, 0 ], 'usual')), '100.0',
   'white is 100 away from black');
cmp_ok(distance(rgb('#c04040'), rgb('#6f6f2d'), 'deuteranopia'), '<',
       distance(rgb('#c04040'), rgb('#6f6f2d'), 'usual') / 3,
       'red and green are near to each other without green cones');

my $style = slurp("$assets/prof_theme.css");
my ($light, $dark) = split(/^\@media .*dark/m, $style);

check('light', colors($light));
check('dark', colors($dark));

my @opacities = slurp("$assets/prof_flame.css")
    =~ /^\.prof-plot \.[ab] > rect \{ fill-opacity: ([.\d]+); \}/mg;
is_deeply([ map { $_ + 0 } @opacities ], [ @SHADES[1, 2] ],
          'the style has the shades that are tested');

done_testing();


sub check {
    my ($name, $c) = @_;

    for my $pair ([ qw/ fg bg / ], [ qw/ fg panel / ], [ qw/ fg all / ],
                  [ qw/ fg waiting / ], [ qw/ fg note / ],
                  [ qw/ muted bg / ], [ qw/ muted panel / ],
                  [ qw/ accent bg / ], [ qw/ warn bg / ],
                  [ qw/ warn warn-bg / ])
    {
        my ($text, $ground) = @$pair;

        cmp_ok(contrast($c->{$text}, $c->{$ground}), '>=', CONTRAST,
               "$name: $text on $ground");
    }

    for my $kind (@KINDS) {
        cmp_ok(min(map { contrast($c->{'box-fg'},
                                  blend($c->{$kind}, $c->{bg}, $_)) }
                   @SHADES),
               '>=', CONTRAST, "$name: text on $kind");
    }

    my @changes = ('same', map { ("more$_", "less$_") } 1 .. 3);

    for my $change (@changes) {
        cmp_ok(contrast($c->{$change eq 'same' ? 'fg' : 'box-fg'},
                        $c->{$change}),
               '>=', CONTRAST, "$name: text on $change");
    }

    for my $vision (sort keys %VISION) {
        my @near;

        for my $i (0 .. $#changes) {
            for my $j (0 .. $i - 1) {
                my $d = distance(@{$c}{@changes[$i, $j]}, $vision);

                push @near, sprintf('%s and %s: %.1f', @changes[$j, $i], $d)
                    if $d < DISTANCE;
            }
        }

        is(join(', ', @near), '', "$name: changes differ ($vision)");
        @near = ();

        my @all = (@KINDS, 'all');

        for my $i (0 .. $#all) {
            for my $j (0 .. $i - 1) {
                my $d = distance($c->{$all[$i]}, $c->{$all[$j]}, $vision);

                push @near, sprintf('%s and %s: %.1f', @all[$j, $i], $d)
                    if $d < DISTANCE;
            }
        }

        is(join(', ', @near), '', "$name: kinds differ ($vision)");
    }
}


sub colors {
    my ($text) = @_;

    return { map { $_->[0] => rgb($_->[1]) }
             map { [ /^(.*)=(.*)$/ ] }
             map { s/:\s*/=/r }
             $text =~ /--prof-([\w-]+:\s*\#[0-9a-f]{6});/g };
}


sub rgb {
    return [ map { hex($_) / 255 } $_[0] =~ /([0-9a-f]{2})/g ];
}


sub blend {
    my ($over, $under, $opacity) = @_;

    return [ map { $over->[$_] * $opacity + $under->[$_] * (1 - $opacity) }
             0 .. 2 ];
}


sub linear {
    return [ map { $_ <= .04045 ? $_ / 12.92 : (($_ + .055) / 1.055) ** 2.4 }
             @{$_[0]} ];
}


sub contrast {
    my ($high, $low) = sort { $b <=> $a } map {
        my $l = linear($_);
        .2126 * $l->[0] + .7152 * $l->[1] + .0722 * $l->[2] + .05;
    } @_;

    return $high / $low;
}


sub distance {
    my ($one, $two, $vision) = @_;

    my ($lab1, $lab2) = map { lab($_, $VISION{$vision}) } $one, $two;

    return sqrt(sum(map { ($lab1->[$_] - $lab2->[$_]) ** 2 } 0 .. 2));
}


sub lab {
    my ($color, $vision) = @_;

    my $rgb = multiply($vision, linear($color));
    $rgb = [ map { max(0, min(1, $_)) } @$rgb ];

    my $xyz = multiply([ .4124564, .3575761, .1804375, .2126729, .7151522,
                         .0721750, .0193339, .1191920, .9503041 ], $rgb);

    my @white = (.95047, 1, 1.08883);
    my ($x, $y, $z) = map {
        my $t = $xyz->[$_] / $white[$_];
        $t > 216 / 24389 ? $t ** (1 / 3) : (24389 / 27 * $t + 16) / 116;
    } 0 .. 2;

    return [ 116 * $y - 16, 500 * ($x - $y), 200 * ($y - $z) ];
}


sub multiply {
    my ($m, $v) = @_;

    return [ map { my $i = $_; sum(map { $m->[3 * $i + $_] * $v->[$_] }
                                   0 .. 2) } 0 .. 2 ];
}


sub slurp {
    open my $f, '<', $_[0] or die "$_[0]: $!\n";
    local $/;

    return scalar <$f>;
}
