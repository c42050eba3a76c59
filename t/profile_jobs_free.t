#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: beside

# Large data of jobs and of captures is freed in the thread, because it would
# hold the event loop.  Cases: an answer was sent, the client has left, also
# during the capture, the queue is full, the worker exits.  Also jobs that merge
# the requests of an endpoint, whose capture is canceled while they wait.  The
# number of the thread is in the debug messages.  With sanitizers, no library is
# preloaded that delays the thread.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;
use ProfileTest::Preload;

my $t = ProfileTest->new()->has('debug');

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/debug.log debug;',
profile_max_captures 4;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / { }
    location /upload { proxy_pass http://127.0.0.1:8080/text; }
    location /-/profile/ { profile_console; }
}
EOF
         events => 'worker_connections 1024;');

$t->write_file('text', "hello\n");

my $so = $t->sanitizers() ? undef : build_preload($t, 'prof_hold');
my $symbol = '/-/profile/debug/pprof/symbol?0x1234';

{
    local $ENV{PROF_HOLD} = $t->testdir() . '/hold';
    local $ENV{LD_PRELOAD} = $so if $so;

    $t->run();
}

my ($worker) = $t->worker_pids();


# an answer was sent

my $r = http_end(flamegraph());
my $id = $r->header('X-Profile-Id');

is($r->status(), 200, 'a flamegraph is sent');
ok(wait_for(sub { freed() == 1 }), 'the data of a flamegraph is freed');
is(freed('thread'), 1, 'the thread has freed the data of a flamegraph');

for my $i (1 .. 20) {
    close(flamegraph());
}

ok(wait_for(sub { my $s = worker(); !$s->{jobs} && !$s->{captures} }),
   'clients that disconnect leave no jobs or captures');
ok(wait_for(sub { freed() == rendered() }),
   'the data of all clients that disconnect is freed');
is(freed('thread'), freed(), 'the thread has freed the data of all clients');


# A client leaves during a large capture: each turn that reads a part of its
# body, and each gap before it, is an entry of the capture.

my $before = freed();
my $upload = http("POST /upload?performance_bar=flamegraph HTTP/1.1\r\n"
                  . "Host: localhost\r\nContent-Length: 100000\r\n\r\n",
                  start => 1);

for my $i (1 .. 4000) {
    syswrite($upload, 'x');
    select(undef, undef, undef, 0.0005);
}

close($upload);

ok(wait_for(sub { freed() == $before + 1 }), 'a large capture is freed');
is(freed('thread'), $before + 1, 'the thread has freed a large capture');


SKIP: {
    skip 'sanitizers and a preloaded library', 15 unless $so;

    # a capture of an endpoint is canceled while jobs add to it

    restart();

    my $endpoint = '/-/profile/wall?uri=/text&seconds=60&format=folded';
    my $client = http_get($endpoint, start => 1);

    ok(wait_for(sub { http_get('/text'); worker()->{jobs} >= 5 }),
       'the requests of an endpoint are merged by jobs');

    my $waiting = worker()->{jobs};
    close($client);

    ok(wait_for(sub { worker()->{jobs} == $waiting + 1 }),
       'a job frees the capture of the endpoint after its requests');

    unlink $t->testdir() . '/hold';
    ok(wait_for(sub { worker()->{jobs} == 0 }), 'all these jobs are done');

    # a capture ends while jobs add to it

    restart();

    $client = http_get("$endpoint&requests=5", start => 1);
    ok(wait_for(sub { http_get('/text'); worker()->{jobs} >= 6 }),
       'the profile of an endpoint is a job, too');

    unlink $t->testdir() . '/hold';

    my $all = http_end($client);

    is($all->status(), 200, 'the profile of an endpoint is sent');
    like($all->body(), qr/ngx_http_|phase|event/,
         'the profile of an endpoint has the stacks of its requests');

    # the clients have left, and the queue is full

    restart();

    my @left = map { http_get("/-/profile/p/$id/svg", start => 1) } 1 .. 4;
    ok(wait_for(sub { worker()->{jobs} == 4 }), 'four jobs wait');

    my @all = map { http_get($symbol, start => 1) } 1 .. 284;
    ok(wait_for(sub { worker()->{jobs} == 288 }), 'the queue is full');
    is(http_get($symbol)->status(), 429, 'a full queue accepts no job');

    close($_) for @left;
    ok(wait_for(sub { worker()->{jobs} == 284 }), 'four jobs are canceled');
    is(freed(), 0, 'the event loop does not free the data of canceled jobs');

    unlink $t->testdir() . '/hold';

    is(scalar(grep { http_end($_)->status() == 200 } @all), 284,
       'all other jobs are done');
    is(freed('thread'), 4, 'the thread has freed the data of canceled jobs');
}


# the worker exits

restart();

my @last = map { flamegraph() } 1 .. 4;
ok(wait_for(sub { rendered() == 4 }), 'four profiles are to be made');

my $old = $worker;
kill 'TERM', $worker;
unlink $t->testdir() . '/hold';

ok(wait_for(sub { !kill(0, $old) }), 'the worker exits');
is(freed(), 4, 'a worker that exits frees the data of all jobs');


sub flamegraph {
    return http_get('/text?performance_bar=flamegraph', start => 1);
}


# starts a new worker, whose thread does not run yet
sub restart {
    my $old = $worker;

    $t->write_file('hold', '') if $so;
    $t->reload();
    wait_for(sub { !kill(0, $old) });
    ($worker) = $t->worker_pids();
}


# jobs of the worker that were freed, by any thread or by that of jobs
sub freed {
    my ($thread) = @_;

    my @by = $t->read_file('debug.log')
             =~ / $worker#(\d+): profile: job \w+ freed$/mg;

    return scalar($thread ? grep { $_ != $worker } @by : @by);
}


# flamegraphs of the worker whose jobs were queued
sub rendered {
    my @all = $t->read_file('debug.log')
              =~ / $worker#\d+: \*\d+ profile: render \w+, /g;

    return scalar(@all);
}


sub worker {
    my $all = decode_json(http_get('/-/profile/status.json')->body());
    return (grep { $_->{this} } @{$all->{workers}})[0];
}
