#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The queue of jobs: one thread for all of them, which one comes first, what
# happens when the queue is full, when there is no thread, when clients leave,
# and when the worker exits.  A preloaded library holds the thread back.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest::Process;
use ProfileTest;

my $t = ProfileTest->new();

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

$t->conf(<<'EOF', events => 'worker_connections 1024;');
profile_max_captures 4;

log_format drops '$request_uri $profile_dropped';
access_log %%TESTDIR%%/drops.log drops;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / { }
    location /-/profile/ { profile_console; }
}

server {
    listen 127.0.0.1:8081;
    profile_keep 1 rate=1000;

    location / { }
}
EOF

$t->write_file('text', "hello\n");

my $so = $t->testdir() . '/prof_hold.so';
my ($status, $out) = $t->command('cc', '-shared', '-fPIC', '-O1', '-W', '-Wall',
                                 '-Werror', '-o', $so,
                                 dirname(__FILE__) . '/preload/prof_hold.c',
                                 '-ldl');
die "cc: $out\n" if $status != 0;

my $hold = $t->testdir() . '/hold';

{
    local $ENV{PROF_HOLD} = $hold;
    local $ENV{LD_PRELOAD} = $so;

    fail_threads();
    $t->run();
}

my ($worker) = $t->worker_pids();

my $asked = 'performance_bar=flamegraph';
my $recorded = 'performance_bar=record';
my $symbol = '/-/profile/debug/pprof/symbol?0x1234';


# without a thread

my $r = http_get("/text?$asked");
is($r->status(), 500, 'no thread: a flamegraph');
like($r->body(), qr/^the profile could not be made/, 'no thread: it says so');

$r = http_get("/text?$recorded");
is($r->body(), "hello\n", 'no thread: a recorded response');

is(http_get('/text', port => 8081)->body(), "hello\n",
   'no thread: a response that is kept');
is(http_get($symbol)->status(), 500, 'no thread: names');
is(http_get('/-/profile/profiles?format=json',
            headers => [ 'Accept: application/json' ])->status(), 500,
   'no thread: the list');

my $s = worker();
is($s->{dropped}{memory}, 5, 'no thread: counted');
is($s->{kept}, 0, 'no thread: nothing is kept');
is(drops_of('/text'), 'memory', 'no thread: in the log');
is(threads(), 1, 'no thread');

unlink "$hold.fail";


# in the order of their ranks

hold();

# another try is made in another second

wait_for(sub { http_get('/text?kept', port => 8081);
               worker()->{jobs} == 1 }) or diag(explain(worker()));

is(http_get("/text?recorded&$recorded")->status(), 200, 'recorded');
my $flame = http_get("/text?asked&$asked", start => 1);
ok(wait_for(sub { worker()->{jobs} == 3 }), 'three jobs');
cmp_ok(worker()->{jobs_bytes}, '>', 3000, 'their memory');

release();

is(http_end($flame)->status(), 200, 'asked');
ok(wait_for(sub { worker()->{jobs} == 0 }), 'no jobs');
is(worker()->{jobs_bytes}, 0, 'no memory');
is(threads(), 2, 'one thread more');
is(join(' ', map { $_->{uri} } reverse @{stored()}),
   '/text?asked /text?recorded /text?kept', 'the order of ranks');


# in one thread, however many clients leave

my $most = 0;

for my $i (1 .. 100) {
    for my $uri ("/text?left&$asked", $symbol) {
        close(http_get($uri, start => 1));
    }

    my $threads = threads();
    $most = $threads if $threads > $most;
}

cmp_ok($most, '<=', 2, 'clients that leave: one thread');
ok(wait_for(sub { my $s = worker(); !$s->{jobs} && !$s->{captures} }),
   'clients that leave: nothing remains');

my @now = map { http_get($symbol, start => 1) } 1 .. 64;
cmp_ok(threads(), '<=', 2, 'names: one thread');
is(scalar(grep { http_end($_)->body() =~ /^num_symbols: 1/ } @now), 64,
   'names: all of them');


# a slot is that of the job, when the client has left

restart();

my @left = map { http_get("/text?slots$_&$asked", start => 1) } 1 .. 4;

ok(wait_for(sub { worker()->{jobs} == 4 }), 'four jobs');
close($_) for @left;

$r = http_get("/text?$asked");
is($r->status(), 429, 'all slots are taken');
is($r->header('Retry-After'), 1, 'Retry-After');
is(http_get("/text?$recorded")->header('X-Profile-Dropped'),
   'too many captures are running in this worker', 'and cannot be recorded');
is(worker()->{captures}, 4, 'slots');
is(worker()->{dropped}{slots}, 2, 'they are counted');

# jobs of clients that have left

@left = map { http_get($symbol, start => 1) } 1 .. 20;
ok(wait_for(sub { worker()->{jobs} == 24 }), 'names are waited for');
close($_) for @left;
ok(wait_for(sub { worker()->{jobs} == 4 }), 'clients left, jobs are cancelled');

release();

ok(wait_for(sub { worker()->{captures} == 0 }), 'slots are free');
is(http_get("/text?$asked")->status(), 200, 'and can be taken');


# the queue is full

restart();

my @first = map { http_get($symbol, start => 1) } 1 .. 40;

ok(wait_for(sub { worker()->{jobs} == 40 }), '40 jobs');

is(http_get('/text?full', port => 8081)->body(), "hello\n",
   'full for what is kept: the response');
is(worker()->{dropped}{queue}, 1, 'full for what is kept: counted');
is(drops_of('/text?full'), 'queue', 'full for what is kept: in the log');
ok(http_get("/text?$recorded")->header('X-Profile-Id'),
   'not for what is recorded');

push @first, map { http_get($symbol, start => 1) } 1 .. 247;
ok(wait_for(sub { worker()->{jobs} == 288 }), '288 jobs');

$r = http_get($symbol);
is($r->status(), 429, 'full: names');
is($r->header('Retry-After'), 1, 'full: names, Retry-After');

$r = http_get("/text?$asked");
is($r->status(), 429, 'full: a flamegraph');
is($r->header('Retry-After'), 1, 'full: a flamegraph, Retry-After');
is($r->body(), "too many profiles wait to be made in this worker\n",
   'full: a flamegraph, text');

is(http_get("/text?$recorded")->body(), "hello\n", 'full: recorded');
is(worker()->{dropped}{queue}, 4, 'full: counted');
is(worker()->{captures}, 1, 'full: no slots are lost');

release();

is(scalar(grep { http_end($_)->status() == 200 } @first), 287,
   'those that were queued are answered');
like($t->read_log(), qr/profile: dropped, too many profiles wait .* 0 more/,
     'full: it is in the log');


# a worker that shuts down finishes, one that is told to exit at once does not

restart();

my $id = http_get("/text?quit&$recorded")->header('X-Profile-Id');

kill 'QUIT', $worker;
sleep 0.1;
ok(kill(0, $worker), 'a job is left, and the worker waits');
release();
ok(wait_for(sub { alive() }), 'it exits') or diag($worker);
is(http_get("/-/profile/p/$id/folded")->status(), 200, 'it has stored it');

restart();

my @ids = map { http_get("/text?term$_&$recorded")->header('X-Profile-Id') }
              1 .. 4;

kill 'TERM', $worker;
sleep 0.1;
release();
ok(wait_for(sub { alive() }), 'it exits at once');

is(scalar(grep { http_get("/-/profile/p/$_/folded")->status() == 200 } @ids), 0,
   'nothing that was not begun is stored');


# new worker, whose thread does nothing yet
sub restart {
    my $old = $worker;

    hold();
    $t->reload();
    wait_for(sub { !kill(0, $old) });
    ($worker) = $t->worker_pids();
}


sub alive {
    my ($now) = $t->worker_pids();
    return if !$now || $now == $worker;
    $worker = $now;
    return 1;
}


sub hold { $t->write_file('hold', '') }
sub release { unlink $hold }
sub fail_threads { $t->write_file('hold.fail', '') }


sub worker {
    my $all = decode_json(http_get('/-/profile/status.json')->body());
    return (grep { $_->{this} } @{$all->{workers}})[0];
}


sub stored {
    my $r = http_get('/-/profile/profiles',
                     headers => [ 'Accept: application/json' ]);
    return decode_json($r->body())->{profiles};
}


sub threads { return process_status($worker, 'Threads') }


sub drops_of {
    my ($uri) = @_;

    wait_for(sub { $t->read_file('drops.log') =~ /^\Q$uri\E \w/m });

    return ($t->read_file('drops.log') =~ /^\Q$uri\E (\w+)$/mg)[-1];
}
