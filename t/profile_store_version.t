#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store archive
# runs: beside

# Files of the store that another version of the module has written stay in the
# directory, since that version may use the directory as well.  A time in the
# future does not change the order of the profiles that follow.

use strict;
use warnings;

use Compress::Zlib qw/ crc32 /;
use JSON::PP qw/ decode_json /;
use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest::Store;
use ProfileTest;

use constant HEAD => ProfileTest::Store::HEAD;
use constant HEAD_SIZE => ProfileTest::Store::HEAD_SIZE;

my $t = ProfileTest->new()->plan(11);
my $dir = $t->testdir();

$t->conf(<<'EOF');
profile_zone store:1m;
profile_store %%TESTDIR%%/store;

%%CONF console%%
EOF

$t->write_file('file', "file\n");
$t->run();

my $first = recorded();
my $content = $t->read_file("store/$first");
my @owner = (stat "$dir/store/$first")[4, 5];

$t->stop();

# other layouts: shorter than a head of this version, as long, and longer

my %others = (
    '1' x 32 => 'ngxprof1' . 'x' x 40,
    '2' x 32 => 'ngxprof3' . substr($content, 8),
    '3' x 32 => 'ngxprof9' . 'y' x 100_000,
);

store($_, $others{$_}) for keys %others;

# what no version has written is damaged

my %damaged = (
    '4' x 32 => 'ngxprof2' . 'x' x 40,
    '5' x 32 => 'ngxproof' . substr($content, 8),
    '6' x 32 => 'ngxprof',
);

store($_, $damaged{$_}) for keys %damaged;

my $late = 'f' x 32;
store($late, stored_at($content, $late, ~0));

$t->run();

is_deeply([ grep { $t->read_file("store/$_") ne $others{$_} }
            sort keys %others ], [],
          'files of other versions are as before');
is_deeply([ grep { -e "$dir/store/$_" } sort keys %damaged ], [],
          'damaged files are removed');

my @list = list();

is_deeply([ sort @list ], [ sort $first, $late ],
          'the list has the profiles of this version');

my @next = map { recorded() } 1 .. 3;

is_deeply([ list() ], [ reverse(@next), @list ],
          'later profiles are newer than one from the future');

is_deeply([ pages() ], [ list() ], 'pages of the list have all profiles');

$t->reload();

is_deeply([ list() ], [ reverse(@next), @list ], 'the same after a reload');

is(scalar(() = $t->read_log() =~ /removed the damaged profile/g),
   scalar(keys %damaged), 'the log has one line for each damaged file');

$t->stop();
$t->run();

is_deeply([ sort(list()) ], [ sort($first, $late, @next) ],
          'the profiles are found again');
is((list())[-1], $first, 'the oldest profile is the last one');
is_deeply([ grep { $t->read_file("store/$_") ne $others{$_} }
            sort keys %others ], [],
          'files of other versions are still as before');

###############################################################################

sub recorded {
    my $id = http_get('/file?performance_bar=record')->header('X-Profile-Id');

    wait_for(sub { -e "$dir/store/$id" }) or die "no profile is stored\n";

    return $id;
}


sub list {
    my $list = decode_json(http_get('/-/profile/profiles.json?limit=100')
                               ->body());
    return map { $_->{id} } @{$list->{profiles}};
}


# the list in pages of one profile

sub pages {
    my @ids;
    my $before = '';

    for (1 .. 10) {
        my $list = decode_json(http_get("/-/profile/profiles.json?limit=1$before")
                                   ->body());

        push @ids, map { $_->{id} } @{$list->{profiles}};
        last unless $list->{more};
        $before = "&before=$list->{next}";
    }

    return @ids;
}


sub store {
    my ($id, $bytes) = @_;

    $t->write_file("store/$id", $bytes);
    chown @owner, "$dir/store/$id";
}


# the profile with another id and time, and correct checksums

sub stored_at {
    my ($bytes, $id, $time) = @_;

    my @head = unpack(HEAD, $bytes);
    my $rest = substr($bytes, HEAD_SIZE);
    my $texts = 0;
    $texts += $_ for @head[7 .. 10];

    $head[11] = $time;
    $head[21] = $id;
    $head[2] = crc32(substr(pack(HEAD, @head), 16) . substr($rest, 0, $texts));

    return pack(HEAD, @head) . $rest;
}
