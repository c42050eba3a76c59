#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: turns

# The turn log: what each worker ran, who delayed whom, and what it ran when it
# died.  Handlers in Lua note by themselves when they ran.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP;
use List::Util qw/ max min sum0 /;
use POSIX ();
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua proxy rewrite /)
                    ->allow(qr/exited on signal|profile: worker \d+ died/);

$t->write_file_expand('nginx.conf', <<'EOF');
%%MODULES%%
%%GLOBALS%%
error_log %%TESTDIR%%/worker.log info;
worker_processes 1;

events {
    worker_connections 256;
}

http {
    %%GLOBALS_HTTP%%
    error_log %%TESTDIR%%/error.log info;

    log_format stalls '$uri $profile_stall_time $arg_n';
    access_log %%TESTDIR%%/stalls.log stalls;

    profile_turn_log on;
    profile_zone store:16m;
    profile_stall_threshold 150ms;

    init_by_lua_block {
        local ffi = require "ffi"

        ffi.cdef [[
            typedef struct { long sec; long nsec; } turn_log_time_t;
            int clock_gettime(int id, turn_log_time_t *t);
            int raise(int signal);
            void abort(void);
        ]]

        local ts = ffi.new("turn_log_time_t")

        function clock()
            ffi.C.clock_gettime(1, ts)
            return tonumber(ts.sec) * 1e9 + tonumber(ts.nsec)
        end

        notes = {}

        function note(...)
            notes[#notes + 1] = string.format(...)
        end

        function burn(ms)
            local begin = clock()
            while clock() - begin < ms * 1e6 do end
        end

        die = {
            segv = function() ffi.C.raise(11) end,
            kill = function() ffi.C.raise(9) end,
            bus = function() ffi.C.raise(7) end,
            abort = function() ffi.C.abort() end,
            null = function() return ffi.cast("int *", 8)[0] end,
        }
    }

    server {
        listen 127.0.0.1:8080;
        server_name first;
        profile_redact token;

        location / { }

        location /fast {
            content_by_lua_block {
                note("fast %s %d", ngx.var.arg_n, clock())
                ngx.print("fast")
            }
        }

        location /slow {
            rewrite_by_lua_block { ngx.ctx.from = clock() }
            content_by_lua_block { burn(80) ngx.print("slow") }
            log_by_lua_block { note("slow %d %d", ngx.ctx.from, clock()) }
        }

        location /less {
            rewrite_by_lua_block { ngx.ctx.from = clock() }
            content_by_lua_block { burn(5) ngx.print("less") }
            log_by_lua_block { note("less %d %d", ngx.ctx.from, clock()) }
        }

        location /waits {
            profile_endpoint on;
            content_by_lua_block {
                ngx.sleep(0.05)
                ngx.location.capture("/part")
                ngx.print("waited")
            }
        }

        location /part {
            proxy_pass http://127.0.0.1:8080/text;
        }

        location /posted {
            content_by_lua_block {
                local s = require("ngx.semaphore").new(0)

                ngx.thread.spawn(function() ngx.sleep(0.05) s:post(1) end)
                s:wait(2)
                burn(10)
                ngx.print("posted")
            }
        }

        location /timer {
            content_by_lua_block {
                ngx.timer.at(0, function() burn(20) end)
                ngx.print("set")
            }
        }

        location /kept {
            profile_keep 1 slow=1h;
            content_by_lua_block {
                ngx.sleep(0.05)
                ngx.print("kept")
            }
        }

        location /held {
            content_by_lua_block { burn(200) ngx.print("held") }
        }

        location /notes {
            content_by_lua_block { ngx.print(table.concat(notes, "\n")) }
        }

        location /moved {
            rewrite ^ /text last;
        }

        location ~ ^/die/(\w+) {
            content_by_lua_block {
                burn(12)
                die[ngx.var[1]]()
            }
        }

        location /-/profile/ {
            profile_console;
        }
    }
}
EOF

$t->write_file('text', 'x' x 1000);
$t->run();


# what is logged of requests

http_get('/text?a=b&token=secret');
http_get('/moved?' . 'y' x 300);
http_get('/waits');
http_get('/none');

my $log = turns(10);
my ($worker) = @{$log->{workers}};

is(scalar(@{$log->{workers}}), 1, 'each worker has a log');
ok($worker->{alive}, 'the worker of the log lives');

my @runs = runs($log, $worker);

is(scalar(grep { $_->{length} < 0 } @runs), 0, 'no run ends before its begin');
is(scalar(grep { $runs[$_]{start} < $runs[$_ - 1]{start} } 1 .. $#runs), 0,
   'runs are ordered');
is(scalar(grep { $_->{kind} eq 'begin' } @runs), 1,
   'the begin of the worker is logged');
cmp_ok(scalar(grep { $_->{kind} eq 'sleep' } @runs), '>', 3,
       'the worker has slept');

my $r = request($worker, qr{^GET /text\?a=b});
is($r->{text}, 'GET /text?a=b&token=***', 'arguments may be hidden');
is($r->{status}, 200, 'the status is logged');
cmp_ok($r->{bytes}, '>', 1000, 'the bytes are logged');
like($r->{client}, qr/^127\.0\.0\.1:\d+$/, 'the client is logged');
is(location($log, $r), 'first /', 'the location is logged');
ok(!defined $r->{upstream}, 'no upstream is logged');

$r = request($worker, qr{^GET /moved});
is(length($r->{text}) + $r->{cut}, length('GET /moved?') + 300,
   'a long text is cut');
is(location($log, $r), 'first /', 'the location is the last one');

$r = request($worker, qr{^GET /none});
is($r->{status}, 404, 'the status of an error is logged');

$r = request($worker, qr{^GET /waits});
my @turns = grep { $_->{request} == $r->{number} } @runs;
my $flags = $log->{flags};

cmp_ok(scalar(@turns), '>=', 3, 'a request that waits has several turns');
ok($turns[0]{flags} & $flags->{first}, 'the first turn has a flag');
ok(!($turns[1]{flags} & $flags->{first}), 'the second one does not');
ok($turns[-1]{flags} & $flags->{last}, 'the last turn has a flag');
is(scalar(grep { location($log, $_) ne 'first /waits' } @turns), 0,
   'its turns have its location');
cmp_ok($turns[1]{start} - $turns[0]{start}, '>=', 0.045e9,
       'its turns have their times');

like((grep { $_->{flags} & $flags->{accept} } @runs)[0]{handler},
     qr/ngx_event_accept/, 'accepting is logged');


# a turn that begins with an event of no request

http_get('/posted');
$log = turns(10);
$r = request($log->{workers}[0], qr{^GET /posted});

my ($long) = grep { $_->{length} >= 9e6 && $_->{kind} eq 'run'
                    && $_->{request} == $r->{number} }
             runs($log, $log->{workers}[0]);
ok($long, 'a turn that a semaphore began has its request');
is(location($log, $long // { location => -1 }), 'first /posted',
   'it has the location of the request');


# work for no request

http_get('/timer');
sleep 0.1;
$log = turns(10);

my ($timer) = grep { !$_->{request} && $_->{length} >= 18e6
                     && $_->{kind} eq 'run' }
              runs($log, $log->{workers}[0]);
ok($timer, 'a timer of a script is logged without a request');
like(($timer // {})->{handler} // '', qr/\S/, 'its handler has a name');


# who delayed whom

my $end = time() + 6;
my @pids = map { my $n = $_; $t->start_child(sub { load($n, $end) }) } 1 .. 8;
waitpid $_, 0 for @pids;

$log = turns(20);

my $stalled = sum0(map { m{^/fast ([\d.]+) } } lines('stalls.log'));
my %blame = blame($log, 'first /fast');
my $sum = sum0(values %blame) / 1e9;
my $requests = () = grep { m{^/fast } } lines('stalls.log');

cmp_ok($stalled, '>', 1, 'requests of the fast location were delayed');
cmp_ok(abs($sum - $stalled), '<=', 1.1e-6 * $requests,
       'the parts of all culprits are the time of the victims')
    or diag("$sum $stalled $requests");

my $known = sum0(map { /^(?:loop|overwritten)$/ ? () : $blame{$_} }
                 keys %blame) / 1e9;

cmp_ok($known, '>=', 0.99 * $sum, 'nearly all of it has its culprit')
    or diag(explain(\%blame));

# the same from the notes of the handlers

my (@busy, %at, %truth);

for (split /\n/, http_get('/notes')->content()) {
    push @busy, [ "first /$1", $2, $3 ] if /^(slow|less) (\d+) (\d+)/;
    $at{$1} = $2 if /^fast (\S+) (\d+)/;
}

for (lines('stalls.log')) {
    my ($stall, $n) = m{^/fast ([\d.]+) (\S+)} or next;
    my ($from, $to) = ($at{$n} - $stall * 1e9, $at{$n});

    $truth{$_->[0]} += max(0, min($to, $_->[2]) - max($from, $_->[1]))
        for @busy;
}

for my $culprit ('first /slow', 'first /less') {
    cmp_ok(abs($blame{$culprit} / $truth{$culprit} - 1), '<=',
           $culprit =~ /less/ ? 0.06 : 0.02,
           "$culprit has its part")
        or diag("$blame{$culprit} $truth{$culprit}");
}


# the log around a kept request

@pids = map { my $n = $_; $t->start_child(sub { load($n, time() + 1.5) }) }
        1 .. 4;
sleep 0.2;
http_get('/kept?a=b');
waitpid $_, 0 for @pids;

my $kept = stored(qr{^/kept});
my $part = one($kept->{id});
my $number = $part->{about}{request};

is($part->{reason}, 'request', 'the part of a request is stored');
($r) = grep { $_->{number} == $number } @{$part->{workers}[0]{requests}};
is(($r // {})->{text}, 'GET /kept?a=b', 'it is about the request');
is(scalar(@{$part->{workers}}), 1, 'it has the log of one worker');

@runs = runs($part, $part->{workers}[0]);
@turns = grep { $_->{request} == $number } @runs;

cmp_ok(scalar(@turns), '>=', 2, 'it has the turns of the request');
cmp_ok(scalar(grep { $_->{request} && $_->{request} != $number } @runs), '>=',
       1, 'it has the runs of others');
is(scalar(grep { $_->{start} > $turns[-1]{start} } @runs), 0,
   'later runs are left out');
my $begin = $turns[0]{start} - $turns[0]{stall} - 1e6;
is(scalar(grep { $_->{start} + $_->{length} < $begin } @runs), 0,
   'earlier runs are left out');


# the culprits in its profile, and in one that replaces a response

my $folded = http_get("/-/profile/p/$kept->{id}/folded")->content();
my %culprits = culprits($folded);
my %delays;

for my $turn (@turns) {
    my ($to, $from) = ($turn->{start}, $turn->{start} - $turn->{stall});

    for (grep { $_->{kind} eq 'run' && $_->{request} != $number } @runs) {
        $delays{location($part, $_)} +=
            max(0, min($to, $_->{start} + $_->{length})
                   - max($from, $_->{start}));
    }
}

for my $name (qw/ slow less /) {
    my $sum = sum0(map { $culprits{$_} }
                   grep { m{^GET /$name\?n=[\d.]+ \(location /$name\)$} }
                   keys %culprits);

    # shorter delays are not shown

    cmp_ok(abs($sum - ($delays{"first /$name"} // 0)), '<=', 0.1e6 * @turns,
           "$name stands in the profile") or diag(explain(\%culprits));
}

is($culprits{''} // 0, 0, 'all of the time has a culprit');

@pids = map { my $n = $_; $t->start_child(sub { load($n, time() + 1.5) }) }
        1 .. 4;
sleep 0.2;
%culprits = culprits(http_get('/waits?performance_bar=flamegraph'
                              . '&profile_format=folded')->content());
waitpid $_, 0 for @pids;

cmp_ok(scalar(keys %culprits), '>=', 1, 'a flamegraph has culprits');
is(scalar(grep { m{GET|\?} } keys %culprits), 0,
   'it has no URIs of other requests');
cmp_ok(scalar(grep { m{^location /(?:slow|less|fast)$} } keys %culprits), '>=',
       1, 'it has their locations') or diag(explain(\%culprits));


# the log and the profile of a stall

http_get('/held?token=secret');

my $held = stored(qr{^stall: GET /held\?token=\*\*\*});
$part = one($held->{id});

is($held->{scope}, 'stall', 'a stall is stored');
is($part->{reason}, 'stall', 'its part of the log is stored');

my ($stall) = grep { $_->{start} == $part->{about}{start} }
              runs($part, $part->{workers}[0]);
cmp_ok(($stall // {})->{length} // 0, '>=', 199e6, 'it is about the run');
is(location($part, $stall), 'first /held', 'the run has its location');

$folded = http_get("/-/profile/p/$held->{id}/folded")->content();
my $all = sum0($folded =~ / (\d+)$/mg);
cmp_ok($all, '>=', 199e6, 'the profile has the whole run') or diag($folded);
ok(wait_for(sub { $t->read_file('error.log') =~ /held for.*$held->{id}/ }),
   'the line of the stall has the id');


# what a worker ran when it died

# sanitizers report all of these signals but one

for my $how ($t->sanitizers() ? 'kill' : qw/ segv kill bus abort null /) {
    my $wrong = 0;

    for my $n (1 .. 10) {
        my $pid = $log->{workers}[0]{pid};

        http_get("/die/$how?n=$n&token=secret");

        wait_for(sub {
            my $r = http_get('/-/profile/turns.json?seconds=1');
            $log = decode_json($r->content()) if $r->status() == 200;
            $log->{workers}[0]{pid} != $pid;
        });

        my ($line) = grep { /worker $pid died/ } lines('worker.log');

        $wrong++, diag($line // "no line of $pid")
            unless ($line // '')
                   =~ /\[alert\].*GET\ \/die\/$how\?n=$n&token=\*\*\*
                       \ \(server\ "first",\ location\ "~\ \^\/die[^"]*",
                       \ handler\ \S+\),\ (\d+)\ ms\ into\ the\ turn/x
                   && $1 >= 11 && $1 < 1000;
    }

    is($wrong, 0, "$how: the log names the request each time");
}

# at most one snapshot in a second

my @deaths = grep { $_->{scope} eq 'turns' } @{list()};
cmp_ok(scalar(@deaths), '>=', 1, 'the log of a dead worker is stored');

for my $death (@deaths) {
    my ($how, $n) = $death->{uri} =~ m{^worker \d+ died: GET /die/(\w+)\?n=(\d+)};
    my $part = one($death->{id});
    my @died = grep { $_->{flags} & $part->{flags}{died}
                      && $_->{start} == $part->{about}{start} }
               runs($part, $part->{workers}[0]);
    my ($r) = grep { $_->{number} == $part->{about}{request} }
              @{$part->{workers}[0]{requests}};

    is($part->{reason}, 'death', 'the reason is stored');
    like(($r // {})->{text} // '', qr{^GET /die/$how\?n=$n&token=\*\*\*$},
         'the request is stored');
    is(scalar(@died), 1, 'the last run is stored');
    cmp_ok($died[0]{length}, '>=', 11e6, 'it has its length');
}

my $pid = $log->{workers}[0]{pid};

kill 'KILL', $pid;
ok(wait_for(sub { grep { /worker $pid died while it waited for events/ }
                  lines('worker.log') }),
   'a worker that ran nothing has no request');


# how far the log reaches back

my ($reach) = @{decode_json(http_get('/-/profile/status.json')->content())
                    ->{turns}};
my ($first) = grep { $_->{kind} eq 'begin' }
              runs($log = turns(3600), $log->{workers}[0]);

is($reach->{worker}, 0, 'the status has the logs');
cmp_ok(abs($reach->{reach_ns} / 1e9
           - ((time() - $first->{start} / 1e9)
              - $log->{workers}[0]{epoch} / 1e9)), '<', 3,
       'it tells how far a log reaches back');


# the program

my $tool = dirname(__FILE__) . '/../tools/nginx-profile turns -u http://127.0.0.1:'
           . port(8080) . '/-/profile/';

like(`$tool -o - -s 60`, qr/^\{"version".*"runs"/, 'it prints the log');
like(`$tool --store`, qr{^http://.*/-/profile/turns/\w{32}$}, 'it stores the log');


# stored snapshots

$r = post('/-/profile/turns?seconds=20');
is($r->status(), 201, 'the log is stored') or diag($r->content());

my $id = decode_json($r->content())->{id};
my $stored = one($id);

is($stored->{reason}, 'asked', 'the reason is stored');
ok((grep { $_->{kind} eq 'begin' } runs($stored, $stored->{workers}[0])),
   'runs are stored');
ok(request($stored->{workers}[0], qr{^GET /die}), 'requests are stored');
is($stored->{workers}[0]{pid}, turns(1)->{workers}[0]{pid},
   'workers are stored');
is(scalar(grep { $_->{flags} & $stored->{flags}{died} }
               runs($stored, $stored->{workers}[0])),
   $t->sanitizers() ? 10 : 50, 'runs in which a worker died are logged');

my ($facts) = grep { $_->{id} eq $id } @{list()};

is($facts->{scope}, 'turns', 'the list has the snapshot');
is(http_get("/-/profile/p/$id/svg")->status(), 200,
   'the snapshot is a profile without stacks');
is(post("/-/profile/p/$id/delete")->status(), 204, 'it can be deleted');
is(http_get("/-/profile/turns/$id.json")->status(), 404, 'then it is gone');
is(http_get('/-/profile/turns/0123.json')->status(), 404,
   'an id may be unknown');


# a reload

my $died = () = $t->read_file('worker.log') =~ /worker \d+ died/g;

$t->reload();

ok(wait_for(sub {
    my $log = decode_json(http_get('/-/profile/turns.json?seconds=60')
                              ->content());
    grep { $_->{kind} eq 'end' } map { runs($log, $_) } @{$log->{workers}};
}), 'the end of a worker is logged');
is(scalar(() = $t->read_file('worker.log') =~ /worker \d+ died/g), $died,
   'a worker that ended by itself has not died');


sub turns {
    my ($seconds) = @_;
    my $r = http_get("/-/profile/turns.json?seconds=$seconds");

    is($r->status(), 200, 'the log is shown') or diag($r->content());

    return decode_json($r->content());
}


sub post {
    my ($uri) = @_;

    return http("POST $uri HTTP/1.1\r\nHost: localhost\r\n"
                . "Content-Length: 0\r\nX-Profile-Console: 1\r\n"
                . "Connection: close\r\n\r\n");
}


sub one {
    my ($id) = @_;
    my $r = http_get("/-/profile/turns/$id.json");

    is($r->status(), 200, 'a snapshot is shown') or diag($r->content());

    return decode_json($r->content());
}


# the newest stored profile of this URI, when it is there

sub stored {
    my ($re) = @_;
    my $found;

    wait_for(sub { ($found) = grep { $_->{uri} =~ $re } @{list()}; $found })
        or BAIL_OUT("nothing is stored for $re");

    return $found;
}


sub list {
    return decode_json(http_get('/-/profile/profiles.json')->content())
               ->{profiles};
}


sub runs {
    my ($log, $worker) = @_;
    my @columns = @{$log->{columns}};
    my @numbers = @{$worker->{runs}};
    my @runs;

    while (my @row = splice(@numbers, 0, scalar @columns)) {
        my %run;

        @run{@columns} = @row;
        $run{kind} = $log->{kinds}[$run{kind}];
        $run{handler} = $run{handler} < 0 ? ''
                                          : $log->{handlers}[$run{handler}];
        push @runs, \%run;
    }

    return @runs;
}


sub request {
    my ($worker, $re) = @_;
    return (grep { $_->{text} =~ $re } @{$worker->{requests}})[-1];
}


sub location {
    my ($log, $of) = @_;
    my $l = $of->{location} < 0 ? undef : $log->{locations}[$of->{location}];

    return $l ? "$l->{server} $l->{location}" : '';
}


# { culprit => ns }

sub blame {
    my ($log, $victim) = @_;
    my %parts;

    for my $cell (@{$log->{blame}}) {
        next if location($log, { location => $cell->{victim} }) ne $victim;

        my $culprit = $cell->{what} ne 'run' ? $cell->{what}
                      : $cell->{culprit} < 0
                        ? $log->{handlers}[$cell->{handler}]
                        : location($log, { location => $cell->{culprit} });
        $parts{$culprit} += $cell->{ns};
    }

    return %parts;
}


# { culprit => ns } of the time in which the worker was busy

sub culprits {
    my ($folded) = @_;
    my %parts;

    for (split /\n/, $folded) {
        /^\[waiting\];worker busy[^;]*(?:;([^;]*))?.* (\d+)$/
            and $parts{$1 // ''} += $2;
    }

    return %parts;
}


sub lines {
    my ($name) = @_;
    return split /\n/, $t->read_file($name);
}


# a client whose connection stays open, so that the worker reads the requests of
# several clients at once; of ten requests one is slow and two are less slow

sub load {
    my ($client, $end) = @_;
    my $s = ProfileTest::HTTP::connect_to(8080) or die "connect: $!\n";

    srand($client);

    for (my $i = 0; time() < $end; $i++) {
        my $what = int(rand 10);
        my $uri = $what == 0 ? '/slow' : $what < 3 ? '/less' : '/fast';

        http_get("$uri?n=$client.$i", socket => $s, keepalive => 1);
    }

    POSIX::_exit(0);
}
