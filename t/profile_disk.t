#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store
# runs: quiet

# A disk that hangs, below the store, and a /proc that hangs.  A preloaded
# library makes each use of their files slow, and notes which thread uses them:
# the event loop uses none, and no other client waits for one.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Preload;

# what one call on the disk takes longer, in seconds; see prof_disk.c
use constant DELAY => 0.3;

my $t = ProfileTest->new()->has(qw/ threads /);
$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

my $so = build_preload($t, 'prof_disk');
my $disk = $t->testdir() . '/store';

my $main = "env PROF_DISK;\nthread_pool default threads=64;";

$t->conf(<<'EOC', workers => 2, main => $main);
profile_zone store:1m;
profile_store %%TESTDIR%%/store max=60k;
profile_max_captures 100;
profile_accounting on;
profile_continuous on slice=1s;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / { }
    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}

server {
    listen 127.0.0.1:8081;
    profile_keep 1 rate=1000;

    location / { }
}
EOC

$t->write_file('text', "hello\n");

{
    local $ENV{PROF_DISK} = $disk;
    local $ENV{LD_PRELOAD} = $so;

    $t->run();
}

my $console = '/-/profile';
my @ids = map { http_get('/text?performance_bar=record')
                    ->header('X-Profile-Id') } 1 .. 4;

ok(wait_for(sub { !grep { !-e "$disk/$_" } @ids }), 'profiles are stored');


# a capture beside 64 threads

$t->write_file('store.seen', '');
my $folded = http_get("$console/cpu?seconds=1&workers=self&format=folded",
                      timeout => 60);
unlink "$disk.seen";

my %files = (maps => 0, status => 0, loop => 0);

for ($t->read_file('store.log') =~ /^(.*\n)/mg) {
    $files{maps}++ if m!open\w* /proc/self/maps!;
    $files{status}++ if m!open\w* /proc/self/task/\d+/status!;
    $files{loop}++ if m!^\d+ loop \w+ /proc!;
}

cmp_ok($files{status}, '>=', 64, 'a capture finds 64 threads');
cmp_ok($files{maps}, '<=', $files{status} / 60,
       'each look for threads reads the mappings once');
is($files{loop}, 0, 'no look is in the event loop');


# the disk and /proc are slow

my $longest = watch_others();

$t->write_file('store.slow', '');
my $began = time;


# pins

my %post = (headers => [ 'X-Profile-Console: 1' ], timeout => 60);

is(http_post("$console/p/$ids[0]/pin", '', %post)->status(), 204,
   'a pin is answered');
cmp_ok(time - $began, '>', DELAY, 'its client waits for the disk');
is(pinned($ids[0]), 1, 'the pin is in the file then');

is(http_post("$console/p/$ids[0]/unpin", '', %post)->status(), 204,
   'the end of a pin is answered');
is(pinned($ids[0]), 0, 'it is in the file then');

# more of them at a time, of both workers: the last one holds

my @many = map { http_post("$console/p/$ids[1]/" . ($_ % 2 ? 'pin' : 'unpin'),
                           '', %post, start => 1) } 1 .. 6;
is(scalar(grep { http_end($_)->status() == 204 } @many), 6,
   'six of them at a time are answered');
is(pinned($ids[1]), listed($ids[1]), 'the file and the list have the same pin');

is(http_post("$console/p/" . 'f' x 32 . '/pin', '', %post)->status(), 404,
   'an unknown profile is not pinned');


# everything else that reads, writes or removes profiles, at the same time

my @answers = map { http_get($_, start => 1, timeout => 60) }
    '/text?performance_bar=flamegraph', '/text?performance_bar=record',
    '/text?performance_bar=flamegraph&profile_mode=object',
    ('/text?performance_bar=record') x 20,
    "$console/profiles.json", "$console/p/$ids[0]/folded",
    "$console/p/$ids[0].json", "$console/diff/$ids[0]/$ids[2]",
    "$console/status.json", "$console/overview.json", "$console/hour.json",
    "$console/wall?seconds=1", "$console/cpu?seconds=1&workers=all",
    "$console/object?seconds=1", "$console/wall?seconds=1&uri=/text",
    '/metrics', "$console/debug/pprof/symbol?0x400000",
    "$console/debug/pprof/cmdline";

push @answers, (map { http_get('/text', start => 1, port => 8081) } 1 .. 20),
               http_post("$console/p/$ids[2]/names", '', %post, start => 1),
               http_post("$console/p/$ids[3]/delete", '', %post, start => 1);

my @failed = grep { !($_->status() // 0) || $_->status() == 500 }
             map { http_end($_) } @answers;
is(scalar(@failed), 0, 'all requests are answered') or diag($failed[0]);

unlink "$disk.slow";

cmp_ok($longest->(), '<', DELAY, 'no other client waits for the disk');

# the cache manager, which is no worker, reads the directory

my %workers = map { $_ => 1 } $t->worker_pids();
my @calls = grep { /^(\d+) loop / && $workers{$1} }
            $t->read_file('store.log') =~ /^(.*\n)/mg;
my %calls;

for (@calls) {
    my ($call, $path) = /^\d+ loop (\w+) (.*)/;
    $path =~ s/\d+/N/g if $path =~ m!^/proc/!;
    $path =~ s/\w{32}/ID/;
    $calls{"$call $path"}++;
}

is(scalar(@calls), 0, 'the event loop uses no file of the disk or of /proc')
    or diag(map { "$calls{$_} times $_\n" } sort keys %calls);
like($t->read_file('store.log'), qr/ thread write \Q$disk\E/,
     'the thread for jobs does');


# workers that shut down have jobs for half a minute

my @old = $t->worker_pids();

$t->write_file('store.slow', '');
http_end($_) for map { http_get('/text?performance_bar=record', start => 1) }
                     1 .. 40;

kill 'QUIT', @old;
ok(wait_for(sub { !grep { kill 0, $_ } @old }, 14),
   'a slow disk does not keep workers that shut down');
unlink "$disk.slow";

like($t->read_log(), qr/the worker exits, \d+ profiles are not made or not st/,
     'the log has the number of profiles that were dropped');

# 1 if the file has a pin
sub pinned {
    my ($id) = @_;
    return unpack('x8L', $t->read_file("store/$id"));
}


# 1 if the list has a pin
sub listed {
    my ($id) = @_;
    my $list = http_get("$console/profiles.json", timeout => 60)->content();
    return $list =~ /\{[^{}]*"$id"[^{}]*"pinned":\s*true|"pinned":\s*true[^{}]*"$id"/
           ? 1 : 0;
}


# Requests of another client, until the returned function is called, which
# returns the longest time of one
sub watch_others {
    pipe(my $stop, my $end) or die "pipe: $!\n";
    pipe(my $out, my $in) or die "pipe: $!\n";

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        close $end;

        my ($max, $bits) = (0, '');
        vec($bits, fileno($stop), 1) = 1;

        until (select(my $ready = $bits, undef, undef, 0.01)) {
            my $sent = time;
            http_get('/text', timeout => 60);
            $max = time - $sent if time - $sent > $max;
        }

        syswrite $in, $max;
        POSIX::_exit(0);
    }

    close $in;

    return sub {
        close $end;
        my $max = <$out>;
        waitpid($pid, 0);
        return $max;
    };
}
