#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: continuous
# runs: quiet

# The heatmap of the continuous profile in a browser: load at a known time is
# where it was, and its flamegraph names the cause.
#
# PROFILE_TEST_SPIKE is the length of the load in seconds (3).
# PROFILE_TEST_PICTURES is a directory for pictures of the page.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ max min /;
use Test::More;
use Time::HiRes qw/ time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;

my $t = ProfileTest->new()->has(qw/ gzip /);

has_browser($t);

$t->plan(25);

my $seconds = $ENV{PROFILE_TEST_SPIKE} || 3;
my $slice = $seconds < 10 ? 1 : 5;
my $keep = 60 * $slice;

$t->conf(<<"EOC", workers => 2);
profile_continuous on slice=${slice}s keep=${keep}s;
server {
    %%CONF gzip%%
}
EOC

$t->write_file('text',
               join('', map { "line $_ " . $_ ** 2 . "\n" } 1 .. 40_000));
$t->write_file('small', 'x');
$t->run();

# some light work, so that there is a time before the load

my $until = time() + 2 * $slice;
http_get('/small') while time() < $until;

my $from = time();
my $end = $from + $seconds;

http_get('/text', headers => [ 'Accept-Encoding: gzip' ])
    while time() < $end;

my $to = time();

# waits until the last slice of the load is stored, and a while longer

ok(wait_for(sub { time() > $to + 2 * $slice
                  && http_get("/-/profile/cpu?format=folded&from="
                              . ($to - $slice))->status() == 200 },
            30), 'the load is in slices');

my $s = in_browser($t, 'the range', 'hour', 'http://127.0.0.1:' . port(8080),
                   $from, $to, $ENV{PROFILE_TEST_PICTURES} // ());

# the load, a slice more at each side: it may begin and end within a slice

my @cells = @{$s->{cells} || []};
my @inside = map { $_->[1] } grep { $_->[0] >= $from
                                    && $_->[0] + $slice <= $to } @cells;
my @outside = map { $_->[1] } grep { $_->[0] + $slice <= $from
                                     || $_->[0] >= $to + $slice } @cells;

cmp_ok(scalar @inside, '>=', 1, 'the load has cells');
cmp_ok(min(@inside), '>', max(@outside, 0.1),
       'they are darker than the cells before and after');

like($s->{calm}, qr/Select a range/, 'nothing is selected at first');
like($s->{told}, qr/CPU [\d.]+ s of all workers, \d+ samples/,
     'the selected range is described');
like($s->{query}, qr/^\?from=\d+&to=\d+&mode=cpu$/, 'the URL has the range');
cmp_ok(scalar @{$s->{names} || []}, '>', 0,
       'the flamegraph names compression');
is($s->{again}, $s->{told}, 'a reload shows the same range');

isnt($s->{home}, $s->{told}, 'the key Home moves the selection');
isnt($s->{extended}, $s->{home}, 'keys extend the range');
ok($s->{changed}, 'the key Enter opens the range');
is($s->{valuetext}, $s->{extended}, 'screen readers are told the range');

like($s->{compared}, qr/Before.*all workers.*After.*all workers/s,
     'two ranges are compared');

for my $name (qw/ light dark narrow narrow-dark /) {
    is_deeply($s->{axe}{$name}, [], "$name is accessible");
    cmp_ok($s->{width}{$name} // 1, '<=', 0, "$name fits in the window");
}

is(join("\n", @{$s->{console} || []}), '', 'the browser logs no messages');
is(join("\n", @{$s->{elsewhere} || []}), '',
   'the page loads nothing from elsewhere');
