#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store
# runs: beside

# A store on a full disk: full of profiles, which new profiles replace, and full
# of other files.  Requests are served as usual.  The disk is a small tmpfs, so
# the test needs the permission to mount it.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest;
use ProfileTest::Store;

use constant DISK => 256 * 1024;

my $t = ProfileTest->new()->has_program(qw/ mount umount /);
my $dir = $t->testdir();

mkdir("$dir/disk") or die "mkdir: $!\n";

my ($status, $out) = $t->command('mount', '-t', 'tmpfs', '-o',
                                 'size=' . DISK, 'tmpfs', "$dir/disk");
$t->skip_all('no disk can be mounted') if $status;

my $mounted = $$;

END {
    system('umount', '-l', "$dir/disk") if $mounted && $mounted == $$;
}

chmod(0755, "$dir/disk");

$t->conf(<<"EOF", workers => 2);
# a machine that does other things does few jobs
profile_max_captures 1000;

profile_zone store:1m;
profile_store $dir/disk/store max=100m;

%%CONF console%%
EOF

$t->write_file('file', "file\n");
$t->run();


# full of profiles

my @ids = record(200);

my $found = ProfileTest::Store::read_store("$dir/disk/store");
my ($bytes, $files) = ProfileTest::Store::store_size("$dir/disk/store");

cmp_ok(scalar @ids, '==', 200, 'all responses have a profile id');
cmp_ok($files * 4096, '>', DISK / 2, "the disk is in use: $bytes");
is(scalar(grep { $_->{error} } values %$found), 0, 'all files are complete');
is($files, scalar keys %$found, 'no unfinished file remains');
ok($found->{$ids[-1]}, 'the newest profile is stored');
ok(!$found->{$ids[0]}, 'the oldest profile is removed');
is(scalar(grep { !$found->{$_} } @ids[-($files - 2) .. -1]), 0,
   'only the oldest profiles are removed');

my @lines = grep { /\[error\]/ } split(/\n/, $t->read_log());
my $said = qr{the disk of "\Q$dir\E/disk/store" is full, \d+ profiles were }
           . qr{removed, the new one was stored, \d+ more not logged};
my @full = grep { /$said/ } @lines;

cmp_ok(scalar @full, '>=', 1, 'the log has the full disk');

# on a busy machine the helper for names may miss its deadline

my $late = qr/the helper for names did not answer in time, names are missing/;

is(join("\n", grep { !/$said/ && !/$late/ } @lines), '',
   'the log has no other messages');

cmp_ok(scalar @full, '<=', 2 * (time() - $^T + 1),
       'the log has at most two messages in a second');

my $evicted = stat_of('evicted');
cmp_ok($evicted, '>', 50, 'the removed profiles are counted');
is(stat_of('failed'), 0, 'no profile has failed');


# full of other files: new profiles replace the old ones

fill();
my @more = record(5);
$found = ProfileTest::Store::read_store("$dir/disk/store");
ok($found->{$more[-1]},
   'a new profile is stored after other programs filled the disk');
is(scalar(grep { $_->{error} } values %$found), 0,
   'all files are still complete');


# without the other files

unlink("$dir/disk/others");
http("DELETE /-/profile/p/$_ HTTP/1.1\r\nHost: localhost\r\n"
     . "Connection: close\r\nX-Profile-Console: 1\r\n\r\n") for keys %$found;
ok(wait_for(sub {
    !(ProfileTest::Store::store_size("$dir/disk/store"))[0]
}), 'all profiles can be deleted');
fill();

my $r = http_get('/file?performance_bar=record');
is($r->body(), "file\n",
   'if nothing can be stored, a recorded response is the same');

$r = http_get('/file?performance_bar=flamegraph');
is($r->status(), 200, 'if nothing can be stored, a flamegraph is sent');
is($r->header('X-Profile-Dropped'), 'the store failed, see the error log',
   'a header says that the store failed');
like($t->read_log(), qr/is full, 0 profiles were removed, the new one was not /,
     'the log has the number of removed profiles');
is((ProfileTest::Store::store_size("$dir/disk/store"))[1], 0,
   'no unfinished file remains after the failure');
cmp_ok(stat_of('failed'), '>=', 1, 'the failure is counted');

unlink("$dir/disk/others");
my ($again) = record(1);
ok(wait_for(sub { -e "$dir/disk/store/$again" }),
   'a profile is stored when the disk has space again');


# all that is left of the disk
sub fill {
    open my $f, '>', "$dir/disk/others" or die "others: $!\n";
    my $old = select($f);
    $| = 1;
    select($old);
    1 while syswrite($f, 'x' x 4096);
    close $f;
}


# ids of new profiles, oldest first, once the last one was stored or dropped
sub record {
    my ($n) = @_;

    my @new;

    for (1 .. $n) {
        my $before = stat_of('added') + stat_of('failed');

        push @new, http_get('/file?performance_bar=record')
                       ->header('X-Profile-Id') // ();

        # one after the other, so that their order is known

        wait_for(sub { stat_of('added') + stat_of('failed') > $before });
    }

    return @new;
}


sub stat_of {
    my ($name) = @_;

    return http_get('/-/profile/status.json')->body() =~ /"$name": ?(\d+)/
           ? $1 : -1;
}
