#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store
# runs: beside

# The store on a disk: its limit to the byte, which profiles are removed, what
# nginx finds after a restart, and a disk that fails.

use strict;
use warnings;

use Fcntl qw/ LOCK_EX /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest::Process;
use ProfileTest::Store;
use ProfileTest;

use constant MAX => 100000;

my $t = ProfileTest->new()->has(qw/ rewrite /);

my $dir = $t->testdir();

configure(MAX, '');

$t->write_file('file', "file\n");
$t->write_file('large', 'x' x 20000);
$t->run();


# the limit

my @ids = record(40);
is(scalar(grep { -e "$dir/store/$_" } @ids), 40,
    'all profiles are in the directory');

my $largest = 0;

# no worker stores while the files are counted

for my $round (1 .. 10) {
    my @sockets = map { http_get('/file?performance_bar=record', start => 1) }
                      1 .. 12;
    http_end($_) for @sockets;

    my @pids = $t->child_processes($t->{pid});

    kill 'STOP', @pids;
    wait_for(sub { !grep { process_status($_, 'State') ne 'T' } @pids });
    my $bytes = ProfileTest::Store::store_size("$dir/store");
    kill 'CONT', @pids;

    $largest = $bytes if $bytes > $largest;
}

cmp_ok($largest, '<=', MAX, "the directory never exceeds the limit: $largest");

@ids = (@ids, record(120));

my ($bytes, $files) = ProfileTest::Store::store_size("$dir/store");
my $found = ProfileTest::Store::read_store("$dir/store");
my ($size) = sort { $b <=> $a } map { $_->{length} } values %$found;

cmp_ok($bytes, '<=', MAX, "the directory is within the limit: $bytes");
cmp_ok($bytes, '>', MAX - 2 * $size,
    'the directory is filled up to the limit');
is(scalar(grep { $_->{error} } values %$found), 0, 'all files are complete');

my @last = @ids[-($files - 1) .. -1];
is(scalar(grep { $found->{$_} } @last), scalar(@last),
    'the oldest profiles are removed');


# the profiles after a restart

$t->stop();

my ($pinned, $torn, $short) = (sort { $found->{$a}{stored}
                                      <=> $found->{$b}{stored} }
                               keys %$found)[0 .. 2];

patch("$dir/store/$pinned", 8, pack('L', 1));
patch("$dir/store/$torn", 60, 'x');
truncate("$dir/store/$short", 300) or die "truncate: $!\n";

$t->write_file("store/$ids[-1].99999999", 'unfinished');
$t->write_file("store/$ids[-1].1", 'unfinished, and another one has the id');
$t->write_file("store/$ids[-1].99999998", 'being written, by another container');
open my $writer, '+<', "$dir/store/$ids[-1].99999998" or die "open: $!\n";
flock($writer, LOCK_EX) or die "flock: $!\n";
$t->write_file('store/' . 'f' x 32, 'nonsense');
$t->write_file('store/README', 'of somebody else');
$t->write_file('store/' . 'a' x 31, 'a name that is none');
symlink('/etc/passwd', "$dir/store/" . 'e' x 32) or die "symlink: $!\n";

$t->run();

ok(!-e "$dir/store/$torn", 'a damaged file is removed');
ok(!-e "$dir/store/$short", 'a truncated file is removed');
ok(!-e "$dir/store/$ids[-1].99999999", 'an unfinished file is removed');
ok(!-e "$dir/store/$ids[-1].1",
   'an unfinished file is removed if its writer\'s id is in use');
ok(-e "$dir/store/$ids[-1].99999998",
    'an unfinished file with a writer remains');
close $writer;
ok(wait_for(sub { !-e "$dir/store/$ids[-1].99999998" }, 30),
   'that file is removed when its writer ends');
ok(!-e "$dir/store/" . 'f' x 32, 'a file that is no profile is removed');
ok(!-l "$dir/store/" . 'e' x 32, 'a symbolic link is removed');
ok(-e '/etc/passwd', 'the target of the link remains');
ok(-e "$dir/store/README", 'files with other names remain');
ok(-e "$dir/store/" . 'a' x 31, 'files with similar names remain');
ok(-e "$dir/store/$pinned", 'a pinned profile remains');

my $log = $t->read_log();
like($log, qr/profile: \d+ profiles found in "\Q$dir\E\/store"/,
     'the log has the number of profiles found');
like($log, qr/\[error\].*removed the damaged profile "\Q$dir\E\/store\/$torn"/,
     'the log names the damaged file');

unlink("$dir/store/README", "$dir/store/" . 'a' x 31);

@ids = record(120);

($bytes, $files) = ProfileTest::Store::store_size("$dir/store");
cmp_ok($bytes, '<=', MAX, "later the directory is within the limit: $bytes");
cmp_ok($bytes, '>', MAX - 2 * $size,
    'later the directory is filled up to the limit');
ok(-e "$dir/store/$pinned", 'the pinned profile has remained');

$found = ProfileTest::Store::read_store("$dir/store");
@last = @ids[-($files - 2) .. -1];
is(scalar(grep { $found->{$_} } @last), scalar(@last),
    'the oldest profiles were removed');


# a reload sets a lower limit, then a limit below the size of any profile

configure(30000, '');
reload();

ok(wait_for(sub { ProfileTest::Store::store_size("$dir/store") <= 30000 }),
   'a lower limit applies after a reload');
ok(-e "$dir/store/$pinned", 'a lower limit keeps the pinned profile');

configure((-s "$dir/store/$pinned") + 100, '');
reload();

wait_for(sub { (ProfileTest::Store::store_size("$dir/store"))[1] == 1 });
is(join(' ', keys %{ProfileTest::Store::read_store("$dir/store")}), $pinned,
   'with a small limit, only the pinned profile remains');

my $r = http_get('/file?performance_bar=flamegraph');
is($r->status(), 200, 'a profile that does not fit is sent');
is($r->header('X-Profile-Dropped'), 'does not fit in the store',
   'a header says that the profile does not fit');
is($r->header('Link'), undef, 'a profile that is not stored has no link');
like($t->read_log(), qr/\[warn\].*does not fit in the store/,
     'the log says that the profile does not fit');


# all processes are killed

configure(1000000, '');
reload();

@ids = record(50);

$t->allow(qr/exited on signal 9|was locked by/);

my @pids = ($t->child_processes($t->{pid}), $t->{pid});
kill 'KILL', $t->{pid}, @pids;
waitpid($t->{pid}, 0);
wait_for(sub { !grep { kill 0, $_ } @pids });
unlink("$dir/nginx.pid");

$t->run();

$found = ProfileTest::Store::read_store("$dir/store");
is(scalar(grep { $found->{$_} && !$found->{$_}{error} } @ids), 50,
   'all profiles survive a kill of all processes');


# profiles that are not read

configure(1000000, 'inactive=2s');
reload();

my ($fresh) = record(1);
ok(-e "$dir/store/$fresh", 'a new profile is stored after the kill');
ok(wait_for(sub { (ProfileTest::Store::store_size("$dir/store"))[1] == 1 },
            20), 'unused profiles are removed after their time');
ok(-e "$dir/store/$pinned", 'a pinned profile is not removed after this time');


# a scrape of the exemplars and a look of the bar are no reading

configure(1000000, 'inactive=3s');
reload();

my ($unread) = record(1);
my $until = time + 20;

http_get('/file', port => 8081);
ok(wait_for(sub { scraped() =~ /profile_id="\w+"/ }),
   'the metrics have an exemplar');
my ($exemplar) = scraped() =~ /profile_id="(\w+)"/;

while (time < $until && (-e "$dir/store/$unread" || -e "$dir/store/$exemplar")) {
    scraped();
    http_get("/-/profile/bar/requests?profile=$unread");
    select undef, undef, undef, 0.2;
}

ok(!-e "$dir/store/$exemplar", 'a profile that is only scraped is removed');
ok(!-e "$dir/store/$unread", 'and one that the bar only asks for');


# a reload to another zone, while an old worker still records

my $s = http_get('/slow?performance_bar=record', start => 1);
select undef, undef, undef, 0.2;

configure(1000000, '', undef, '512k');
$t->reload();

my $slow = http_end($s)->header('X-Profile-Id');

ok(wait_for(sub { -e "$dir/store/$slow" }),
    'a worker that shuts down stores its profile');
ok(!listed($slow), 'the new workers do not know this profile at first');
ok(wait_for(sub { listed($slow) }, 40), 'the new workers find this profile');
ok(listed($pinned), 'the new workers have the other profiles');


# another directory; a directory that cannot be used

configure(1000000, '', 'elsewhere/');
reload();

my ($other) = record(1, 'elsewhere');
ok(-e "$dir/elsewhere/$other", 'a profile is stored in another directory');
ok(!-e "$dir/store/$other", 'the first directory does not get this profile');

rename("$dir/elsewhere", "$dir/gone") or die "rename: $!\n";

$r = http_get('/file?performance_bar=record');
is($r->body(), "file\n",
    'without a directory, a recorded response is the same');

$r = http_get('/file?performance_bar=flamegraph');
is($r->status(), 200, 'without a directory, a flamegraph is sent');
is($r->header('X-Profile-Dropped'), 'the store failed, see the error log',
   'a header says that the store failed');
like($t->read_log(), qr/\[error\].*open\(\) "\Q$dir\E\/elsewhere\/\w+\.\d+" /,
     'the log names the failed call');


sub configure {
    my ($max, $more, $path, $zone) = @_;

    $path //= "$dir/store";
    $zone //= '1m';

    $t->conf(<<"EOF", workers => 2);
# a machine that does other things does few jobs
profile_max_captures 1000;

profile_zone store:$zone;
profile_store $path max=$max $more;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    profile_bar on;

    location / { }
    location /-/profile/ { profile_console; }

    location = /metrics { profile_metrics; }

    location = /slow {
        alias %%TESTDIR%%/large;
        limit_rate 10k;
    }
}

server {
    listen 127.0.0.1:8081;
    server_name kept;
    profile_keep 1 rate=1000;

    location / { }
}
EOF
}


# the metrics as Prometheus asks for them
sub scraped {
    return http_get('/metrics', headers => [
        'Accept: application/openmetrics-text' ])->body();
}


sub listed {
    my ($id) = @_;
    return http_get('/-/profile/profiles.json')->body() =~ /"$id"/;
}


# ids of new profiles, oldest first, once all are stored
sub record {
    my ($n, $where) = @_;

    my @new;

    for (1 .. $n) {
        my $r = http_get('/file?performance_bar=record');
        my $id = $r->header('X-Profile-Id') or next;

        push @new, $id;

        # one after the other, so that their order is known

        wait_for(sub { -e "$dir/" . ($where || 'store') . "/$id" });
    }

    return @new;
}


# waits until the old workers, which have the old limits, have ended
sub reload {
    my @old = $t->child_processes($t->{pid});

    $t->reload();
    wait_for(sub { !grep { kill 0, $_ } @old });
}


sub patch {
    my ($file, $pos, $bytes) = @_;

    open my $f, '+<', $file or die "$file: $!\n";
    binmode $f;
    seek $f, $pos, 0;
    print $f $bytes;
    close $f;
}
