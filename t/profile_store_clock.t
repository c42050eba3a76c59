#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store
# runs: beside

# The clock of the day was a day ahead when nginx was started, and is set right.
# The store looks for files and removes unused profiles as before.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Preload;

use constant DAY => 24 * 60 * 60;

my $t = ProfileTest->new();

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

my $dir = $t->testdir();

$t->conf(<<"EOF", workers => 1);
profile_zone store:1m;
profile_store $dir/store inactive=2s;

%%CONF console%%
EOF

$t->write_file('file', "file\n");

run_ahead($t, DAY);

my $left = "$dir/store/" . 'f' x 32 . '.99999999';

leave();
ok(wait_for(sub { !-e $left }, 30), 'files are looked for');

my $ahead = record();
$t->write_file('clock', 0);
my $id = record();

leave();
ok(wait_for(sub { !-e $left }, 30),
   'after a step backwards, files are looked for');
ok(wait_for(sub { !-e "$dir/store/$id" }, 30),
   'after a step backwards, an unused profile is removed');
ok(wait_for(sub { !-e "$dir/store/$ahead" }, 30),
   'an unused profile is removed that was stored while the clock was ahead');


sub leave {
    open my $f, '>', $left or die "$left: $!\n";
}


# the id of a profile that is stored
sub record {
    my $r = http_get('/file?performance_bar=record');
    my $id = $r->header('X-Profile-Id');

    ok(wait_for(sub { -e "$dir/store/$id" }), 'a profile is stored');

    return $id;
}
