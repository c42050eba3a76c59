#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: quiet

# Metrics of event handlers: calls, time and latency.  A handler that blocks has
# its time, and events that have waited for its end have their latency.

use strict;
use warnings;

use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest::Metrics;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua rewrite /);

use constant BUSY => 0.5;

my ($calls, $time, $latency) = map { "nginx_profile_handler_$_" }
    qw/ calls_total time_seconds_total latency_seconds_total /;

configure(1);
$t->run();


# calls

http_get('/');
my $before = scrape();

is(join(' ', grep { /^$|^0x/ } handlers($before)), '',
   'each handler has a name, or an object and an offset');

http_get('/') for 1 .. 100;
my $m = scrape();

my @most = sort { more($calls, $b) <=> more($calls, $a) } handlers($m);

note(join("\n", map { join(' ', $_, map { sprintf '%.6f', $_ }
                                    more($calls, $_), more($time, $_),
                                    more($latency, $_)) } @most));

cmp_ok(more($calls, 'ngx_event_accept'), '>=', 100,
       'each connection is a call of the handler that accepts it');
is_deeply([ handlers($m, $_) ], [ handlers($m) ], "$_ has the same handlers")
    for $time, $latency;
is(of($m, $calls, 'other'), 0, 'each handler has counters of its own');

cmp_ok(sum0(map { of($m, $time, $_) } handlers($m)), '<=', 30,
       'the time is in seconds');


# a handler that blocks, and another event that waits for it

for my $way (qw/ busy timer /) {

    unlink map { $t->testdir() . "/$_" } qw/ begun go /;
    $before = scrape();

    my $busy = http_get("/$way", start => 1);
    ok(wait_for(sub { -e $t->testdir() . '/begun' }), "$way: it has begun");

    my $other = http_get('/', start => 1);
    sleep BUSY;
    $t->write_file('go', '');
    http_end($_) for $busy, $other;
    $m = scrape();

    my @slow = grep { more($time, $_) >= BUSY } handlers($m);

    is(scalar @slow, 1, "$way: one handler has the time");
    cmp_ok(more($latency, 'ngx_event_accept'), '>=', BUSY / 2,
           "$way: an event has waited meanwhile")
        or diag(map { "$_ " . more($latency, $_) . "\n" } handlers($m));
}


# a timer that is due while a handler runs

$before = scrape();
http_get('/due');
$m = scrape();

cmp_ok((sort { $b <=> $a } map { more($latency, $_) } handlers($m))[0], '>=',
       0.5 * BUSY, 'a timer waits from the time at which it is due');


# the time of the loop: handlers and the poll

$before = scrape();
sleep 1;
http_get('/');
$m = scrape();

my $idle = $m->{'nginx_profile_worker_idle_seconds_total{worker="0"}'}
           - $before->{'nginx_profile_worker_idle_seconds_total{worker="0"}'};

cmp_ok($idle, '>=', 1, 'the time of the poll is counted');
cmp_ok($idle, '<=', 60, 'the time of the poll is in seconds');


# counters survive reloads and killed workers

configure(2);

for my $way ('a reload', 'a kill', 'another reload') {

    my ($last, %old) = (scrape(), map { $_ => 1 } $t->worker_pids());

    if ($way eq 'a kill') {
        kill 'KILL', $_ for keys %old;

    } else {
        $t->reload();
    }

    ok(wait_for(sub { my @now = $t->worker_pids();
                      @now == 2 && !grep { $old{$_} } @now }),
       "$way: there are new workers");

    http_get('/') for 1 .. 10;
    $m = scrape();

    is(join(' ', grep { /handler|idle/ } metrics_less($last, $m)), '',
       "$way: no counter decreases");
    cmp_ok(of($m, $calls, 'ngx_event_accept'), '>=',
           10 + of($last, $calls, 'ngx_event_accept'),
           "$way: the calls of new workers are added");
}


# no metrics

$t->conf('server { listen 127.0.0.1:8080; location / { return 204; } }');

my %old = map { $_ => 1 } $t->worker_pids();

$t->reload();
ok(wait_for(sub { !grep { $old{$_} } $t->worker_pids() }), 'no metrics');
is(http_get('/')->status(), 204, 'requests are served without metrics');

$t->allow(qr/\[alert\].*exited on signal 9/);


sub configure {
    my ($workers) = @_;
    my ($dir, $busy) = ($t->testdir(), BUSY);

    $t->conf(<<"EOC", workers => $workers);
server {
    listen 127.0.0.1:8080;

    location / { return 200 text; }

    location /busy {
        content_by_lua_block {
            io.open("$dir/begun", "w"):close()
            for i = 1, 20000000 do
                if io.open("$dir/go") then break end
            end
            ngx.say("done")
        }
    }

    location /timer {
        content_by_lua_block {
            ngx.timer.at(0, function ()
                io.open("$dir/begun", "w"):close()
                for i = 1, 20000000 do
                    if io.open("$dir/go") then break end
                end
            end)
            ngx.say("done")
        }
    }

    location /due {
        content_by_lua_block {
            ngx.update_time()
            ngx.timer.at(0.01, function () end)
            local till = ngx.now() + $busy
            while ngx.now() < till do ngx.update_time() end
            ngx.say("done")
        }
    }

    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}
EOC
}


sub scrape {
    my $m;

    wait_for(sub { $m = metrics_of(http_get('/metrics')->body()); %$m });

    return $m;
}


sub handlers {
    my ($m, $name) = (@_, $calls);
    return map { /^\Q$name\E\{handler="(.*)"\}$/ ? $1 : () } sort keys %$m;
}


sub of {
    my ($m, $name, $handler) = @_;
    return $m->{qq/$name\{handler="$handler"}/} // 0;
}


sub more {
    my ($name, $handler) = @_;
    return of($m, $name, $handler) - of($before, $name, $handler);
}
