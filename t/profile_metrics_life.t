#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside

# Counters of metrics survive reloads and killed workers, and are bounded.

use strict;
use warnings;

use Test::More;

use ProfileTest::Metrics;
use ProfileTest::Process;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua rewrite /);
my $dir = $t->testdir();

configure(workers => 2);
$t->write_file('text', 'x' x 100);
$t->run();


my $last = scrape();
my ($decreased, $scrapes) = (0, 0);


# the CPU time of a worker goes on in the next worker

work();

my %victims;
@victims{qw/ KILL QUIT /} = $t->worker_pids();

for my $end (sort keys %victims) {
    my %before = %{scrape()};
    my $victim = $victims{$end};

    kill $end, $victim;
    wait_for(sub { my @p = $t->worker_pids();
                   @p == 2 && !grep { $_ == $victim } @p });

    look();
    http_get('/text') for 1 .. 50;
    look();

    is_deeply([ grep { ($last->{$_} // 0) < $before{$_} } cpu_of(\%before) ],
              [], "$end: the CPU time of no worker decreases");
    is_deeply([ cpu_of($last) ], [ cpu_of(\%before) ],
              "$end: the next worker has the same number");
}

my $begun = worker_cpu();
my $used = used();

work();

my $least = used() - $used;
look();
cmp_ok(worker_cpu() - $begun, '>=', 0.9 * $least,
       'the CPU time of new workers is added');


# reloads and kills under load: no counter decreases

my $load = $t->load('/text', clients => 4);

for my $round (1 .. 3) {

    progress('before a reload');

    # a request of an old worker is counted when it ends

    unlink "$dir/go";
    my $slow = http_get('/slow', start => 1);
    wait_for(sub { -e "$dir/slow" });

    $t->reload();
    progress('after a reload');

    my $before = of('/slow');
    $t->write_file('go', '');
    http_end($slow);
    unlink "$dir/slow";
    ok(wait_for(sub { look(); of('/slow') == $before + 1 }),
       "round $round: the request of an old worker is counted");

    my ($victim) = $t->worker_pids();
    kill 'KILL', $victim;
    ok(wait_for(sub { my @p = $t->worker_pids();
                      @p == 2 && !grep { $_ == $victim } @p }),
       "round $round: another worker starts");
    progress('after a kill');
}

$load->stop();
look();

is($decreased, 0, "no counter has decreased in $scrapes scrapes");


# other numbers of workers

my $before = of('/');

configure(workers => 4);
renew();
look();
cmp_ok(of('/'), '>=', $before, 'counters survive more workers');

configure(workers => 1);
renew();
look();
cmp_ok(of('/'), '>=', $before, 'counters survive fewer workers');


# locations come and go

$before = of('/');
configure(workers => 1, more => 'location /new { return 204; }');
renew();
http_get('/new');
look();
is(of('/new'), 1, 'a location that a reload has added');

configure(workers => 1);
renew();
http_get('/text');
look();
cmp_ok(of('/'), '>', $before, 'other locations keep their counters');

configure(workers => 1, more => 'location /new { return 204; }');
renew();
http_get('/new');
look();
is(of('/new'), 2, 'a location that has returned counts on');


# more locations than places

configure(workers => 1, places => ' locations=4',
          more => join("\n", map { "location /l$_ { return 204; }" } 1 .. 9));
renew();
http_get("/l$_") for 1 .. 9;
my $m = metrics();

my @places = grep { /^nginx_profile_request_duration_seconds_count/ } keys %$m;

cmp_ok(scalar @places, '<=', 5, 'the number of places is bounded');
cmp_ok(metric_sum($m, 'nginx_profile_request_duration_seconds_count',
                  server => 'other', location => 'other'),
       '>=', 5, 'locations without a place are added up');
cmp_ok(metric_sum($m, 'nginx_profile_request_duration_seconds_count'),
       '>=', 9, 'all requests are counted');


# no metrics any more

$t->conf('server { listen 127.0.0.1:8080; location / { } }', workers => 1);
renew();
is(http_get('/text')->status(), 200,
   'a configuration without metrics is served');

configure(workers => 1);
renew();
http_get('/text');
look(1);
is(of('/'), 1, 'counters begin anew when metrics return');

$t->allow(qr/\[alert\].*exited on signal 9/);


sub configure {
    my (%o) = @_;

    $o{$_} //= '' for qw/ more places /;

    $t->conf(<<"EOC", workers => $o{workers});
server {
    listen 127.0.0.1:8080;

    location / { }

    location /slow {
        content_by_lua_block {
            io.open("$dir/slow", "w"):close()
            for i = 1, 2000 do
                if io.open("$dir/go") then break end
                ngx.sleep(0.01)
            end
            ngx.say("done")
        }
    }

    location = /metrics { profile_metrics$o{places}; }
    $o{more}
}
EOC
}


# the workers use half a second of CPU time
sub work {
    my $enough = used() + 0.5;
    my $requests = $t->load('/text', clients => 4);

    wait_for(sub { used() > $enough });
    $requests->stop();
}


sub used {
    my $sum = 0;
    $sum += process_cpu_all($_) for $t->worker_pids();

    return $sum;
}


sub worker_cpu {
    return metric_sum($last, 'nginx_profile_worker_cpu_seconds_total');
}


sub cpu_of {
    my ($m) = @_;
    return sort { $a cmp $b } grep { /^nginx_profile_worker_cpu/ } keys %$m;
}


# a reload, after which old workers take no connections
sub renew {
    my %old = map { $_ => 1 } $t->worker_pids();

    $t->reload();
    wait_for(sub { !grep { $old{$_} } $t->worker_pids() });
}


sub metrics {
    return metrics_of(http_get('/metrics')->body());
}


sub scrape {
    my $m;

    wait_for(sub { $m = metrics(); %$m });

    return $m;
}


# scrapes once more, and compares with the last time
sub look {
    my ($anew) = @_;
    my $m = metrics();

    # a worker that was killed does not answer

    return unless %$m;

    my @less = $anew ? () : metrics_less($last, $m);
    diag("less: $_: $last->{$_}, " . ($m->{$_} // 'none')) for @less;

    $decreased += @less;
    $scrapes++;
    $last = $m;
}


sub of {
    my ($location) = @_;

    return metric_sum($last, 'nginx_profile_request_duration_seconds_count',
                      location => $location);
}


sub progress {
    my ($when) = @_;
    my $before = of('/');

    ok(wait_for(sub { look(); of('/') > $before + 100 }),
       "requests are counted $when");
}


