#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: quiet

# The queue of jobs: one thread runs the jobs that clients wait for, and another
# one the other jobs, in the order of their ranks.  Cases: a full queue, no
# thread, clients that disconnect, a worker that exits.  A preloaded library
# delays the threads.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest::Process;
use ProfileTest;
use ProfileTest::Preload;

my $t = ProfileTest->new();

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

$t->conf(<<'EOF', events => 'worker_connections 1024;');
profile_max_captures 4;

log_format drops '$request_uri $profile_dropped';
access_log %%TESTDIR%%/drops.log drops;

%%CONF console%%

server {
    listen 127.0.0.1:8081;
    profile_keep 1 rate=1000;

    location / { }
}
EOF

$t->write_file('text', "hello\n");

my $so = build_preload($t, 'prof_hold');

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


# no thread can be started

my $r = http_get("/text?$asked");
is($r->status(), 500, 'without a thread, a flamegraph has the status 500');
like($r->body(), qr/^the profile could not be made/,
    'without a thread, the answer names the reason');

$r = http_get("/text?$recorded");
is($r->body(), "hello\n", 'without a thread, a recorded response is sent');

is(http_get('/text', port => 8081)->body(), "hello\n",
   'without a thread, a kept response is sent');
is(http_get($symbol)->status(), 500,
    'without a thread, names have the status 500');
is(http_get('/-/profile/profiles?format=json',
            headers => [ 'Accept: application/json' ])->status(), 500,
   'without a thread, the list has the status 500');

my $s = worker();
is($s->{dropped}{memory}, 5,
    'profiles without a thread are counted as dropped');
is($s->{kept}, 0, 'no profile is kept without a thread');
is(drops_of('/text'), 'memory', 'the log of requests has the cause "memory"');
is(threads(), 1, 'the worker has no second thread');

unlink "$hold.fail";


# in the order of their ranks

hold();

# another try is made in another second; a job begins after its response

my $kept;

wait_for(sub { http_get('/text?kept', port => 8081);
               wait_for(sub { $kept = worker()->{jobs} }, 0.5) })
    or diag(explain(worker()));

is(http_get("/text?recorded&$recorded")->status(), 200,
    'a request is recorded');
my $flame = http_get("/text?asked&$asked", start => 1);
ok(wait_for(sub { worker()->{jobs} == $kept + 2 }), 'three jobs wait');
cmp_ok(worker()->{jobs_bytes}, '>', 3000,
    'the state has the memory of the jobs');

release();

is(http_end($flame)->status(), 200, 'a flamegraph is sent');
ok(wait_for(sub { worker()->{jobs} == 0 }), 'all jobs end');
is(worker()->{jobs_bytes}, 0, 'jobs that ended have no memory');
is(threads(), 3, 'all jobs ran in two threads');
# the thread for clients runs beside the thread for the other jobs
my @others = grep { $_ ne '/text?asked' } map { $_->{uri} } reverse @{stored()};
is("@others", join(' ', '/text?recorded', ('/text?kept') x $kept),
   'jobs run in the order of their ranks');


# in these threads, however many clients leave

my $most = 0;

for my $i (1 .. 100) {
    for my $uri ("/text?left&$asked", $symbol) {
        close(http_get($uri, start => 1));
    }

    my $threads = threads();
    $most = $threads if $threads > $most;
}

cmp_ok($most, '<=', 3, 'clients that disconnect cause no more threads');
ok(wait_for(sub { my $s = worker(); !$s->{jobs} && !$s->{captures} }),
   'clients that disconnect leave no jobs or captures');

my @now = map { http_get($symbol, start => 1) } 1 .. 64;
cmp_ok(threads(), '<=', 3, 'requests for names cause no more threads');
is(scalar(grep { http_end($_)->body() =~ /^num_symbols: 1/ } @now), 64,
   'all requests for names are answered');


# a slot is that of the job, when the client has left

restart();

my @left = map { http_get("/text?slots$_&$asked", start => 1) } 1 .. 4;

ok(wait_for(sub { worker()->{jobs} == 4 }), 'four jobs wait');
close($_) for @left;

$r = http_get("/text?$asked");
is($r->status(), 429, 'a capture without a slot has the status 429');
is($r->header('Retry-After'), 1, 'the answer has Retry-After');
is(http_get("/text?$recorded")->header('X-Profile-Dropped'),
   'too many captures are running in this worker',
    'a request without a slot is not recorded');
is(worker()->{captures}, 4, 'four slots are in use');
is(worker()->{dropped}{slots}, 2, 'both requests are counted as dropped');

# jobs of clients that have left

@left = map { http_get($symbol, start => 1) } 1 .. 20;
ok(wait_for(sub { worker()->{jobs} == 24 }), 'twenty jobs for names wait');
close($_) for @left;
ok(wait_for(sub { worker()->{jobs} == 4 }),
    'jobs of disconnected clients are canceled');

release();

ok(wait_for(sub { worker()->{captures} == 0 }), 'their slots are free');
is(http_get("/text?$asked")->status(), 200, 'a new capture gets a slot');


# the queue is full

restart();

my @first = map { http_get($symbol, start => 1) } 1 .. 40;

ok(wait_for(sub { worker()->{jobs} == 40 }), '40 jobs wait');

is(http_get('/text?full', port => 8081)->body(), "hello\n",
   'a request that cannot be kept is answered');
is(worker()->{dropped}{queue}, 1, 'a request that cannot be kept is counted');
is(drops_of('/text?full'), 'queue',
    'the log of requests has the cause "queue"');
ok(http_get("/text?$recorded")->header('X-Profile-Id'),
   'a recorded request has a larger limit');

push @first, map { http_get($symbol, start => 1) } 1 .. 247;
ok(wait_for(sub { worker()->{jobs} == 288 }), '288 jobs wait');

$r = http_get($symbol);
is($r->status(), 429, 'with a full queue, names have the status 429');
is($r->header('Retry-After'), 1,
    'with a full queue, the answer for names has Retry-After');

$r = http_get("/text?$asked");
is($r->status(), 429, 'with a full queue, a flamegraph has the status 429');
is($r->header('Retry-After'), 1,
    'with a full queue, the answer for a flamegraph has Retry-After');
is($r->body(), "too many profiles wait to be made in this worker\n",
   'with a full queue, the answer names the reason');

is(http_get("/text?$recorded")->body(), "hello\n",
    'with a full queue, a response to be recorded is sent');
is(worker()->{dropped}{queue}, 4, 'the jobs that do not fit are counted');
is(worker()->{captures}, 1, 'the jobs that do not fit release their slots');

release();

is(scalar(grep { http_end($_)->status() == 200 } @first), 287,
   'the queued requests are answered');
like($t->read_log(), qr/profile: dropped, too many profiles wait .* 0 more/,
     'the error log has dropped profiles');


# a worker that shuts down completes its jobs; one that exits at once does not

restart();

my $id = http_get("/text?quit&$recorded")->header('X-Profile-Id');

kill 'QUIT', $worker;
sleep 0.1;
ok(kill(0, $worker), 'a worker that shuts down waits for its job');
release();
ok(wait_for(sub { alive() }),
    'the worker exits after its job') or diag($worker);
is(http_get("/-/profile/p/$id/folded")->status(), 200,
    'the job has stored its profile');

restart();

my @ids = map { http_get("/text?term$_&$recorded")->header('X-Profile-Id') }
              1 .. 4;

kill 'TERM', $worker;
sleep 0.1;
release();
ok(wait_for(sub { alive() }), 'a worker that is told to exit at once exits');

is(scalar(grep { http_get("/-/profile/p/$_/folded")->status() == 200 } @ids), 0,
   'jobs that have not started store nothing');


# starts a new worker, whose thread has no job yet
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
