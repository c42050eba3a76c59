#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store
# runs: beside

# Objects in the directory of the store that have the names of profiles, and
# that cannot be read or removed.  The store looks for files every ten seconds.
# Nothing is counted or logged as removed that is still there, and the log gets
# a line for all of them, not a line for each.

use strict;
use warnings;

use IO::Socket::UNIX;
use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;

use constant N => 60;

# a directory cannot be removed by unlink(), a socket cannot be opened

my $t = ProfileTest->new()->allow(qr/unlink\(\) ".+" failed/);

my $dir = $t->testdir();

configure(1000000);

$t->write_file('file', "file\n");
mkdir("$dir/store") or die "mkdir: $!\n";

my @dirs = map { sprintf('%032x', $_) } 1 .. N;
my @sockets = map { sprintf('%032x', 16 * N + $_) } 1 .. N;

mkdir("$dir/store/$_") or die "mkdir: $!\n" for @dirs;

chdir("$dir/store") or die "chdir: $!\n";
my @open = map { IO::Socket::UNIX->new(Local => $_, Listen => 1) } @sockets;
chdir('/');

is(scalar(@open), N, 'the directory has directories and sockets');

$t->run();

# the first search is that of the master, the next is that of the cache manager

searched();

is(scalar(grep { -d "$dir/store/$_" } @dirs), N, 'the directories remain');
is(scalar(grep { -S "$dir/store/$_" } @sockets), N, 'the sockets remain');

is(scalar(() = $t->read_log() =~ /removed the damaged profile/g), 0,
    'the log names nothing as removed');
is(stat_of('torn'), 0, 'nothing is counted as a removed profile');

bounded(qr/cannot remove "\Q$dir\E\/store\/0+/, 'that cannot be removed');
bounded(qr/cannot read "\Q$dir\E\/store\/0+/, 'that cannot be read');


# profiles whose files cannot be removed

my @ids = record(N);

for my $id (@ids) {
    unlink("$dir/store/$id") or die "unlink: $!\n";
    mkdir("$dir/store/$id") or die "mkdir: $!\n";
}

configure(10000);
$t->reload();

ok(wait_for(sub { stat_of('profiles') < 10 }), 'a lower limit applies');
searched();

cmp_ok(stat_of('evicted'), '<=', N, 'an entry is removed once');
bounded(qr/unlink\(\) "\Q$dir\E\/store\/\w+" failed/,
    'whose file remains');


sub configure {
    my ($max) = @_;

    $t->conf(<<"EOF", workers => 1);
# a machine that does other things does few jobs
profile_max_captures 1000;

profile_zone store:1m;
profile_store $dir/store max=$max;

%%CONF console%%
EOF
}


# waits until a search that begins later has ended: each search removes an
# unfinished file
sub searched {
    my $name = 'f' x 32 . '.99999999';

    $t->write_file("store/$name", 'unfinished');
    wait_for(sub { !-e "$dir/store/$name" }, 30) or die "no search\n";

    # the search has ended when the next one begins

    $t->write_file("store/$name", 'unfinished');
    wait_for(sub { !-e "$dir/store/$name" }, 30) or die "no search\n";
}


# one line a second, of each process
sub bounded {
    my ($expr, $what) = @_;

    my (%lines, $most);

    for (split /\n/, $t->read_log()) {
        $lines{"$1 $2"}++ if /$expr/ && /^(\S+ \S+) \[\w+\] (\d+)#/;
    }

    ($most) = sort { $b <=> $a } values %lines;

    is($most, 1, "one line a second is logged for objects $what");
}


sub record {
    my ($n) = @_;

    my @new;

    for (1 .. $n) {
        my $id = http_get('/file?performance_bar=record')
                 ->header('X-Profile-Id');

        push @new, $id;
        wait_for(sub { -e "$dir/store/$id" });
    }

    return @new;
}


sub stat_of {
    my ($name) = @_;

    my $s = decode_json(http_get('/-/profile/status.json')->body());

    return $s->{store}{$name};
}
