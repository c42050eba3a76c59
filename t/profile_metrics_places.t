#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside

# Places of metrics are given back: reloads that rename locations do not use
# them up.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use ProfileTest::Metrics;
use ProfileTest;

use constant ROUNDS => 12;

my $t = ProfileTest->new();

# places for the server outside of its locations, for the metrics, and for two
# other locations

configure('round0');
$t->run();

for my $round (1 .. ROUNDS) {
    my @old = $t->worker_pids();

    configure("round$round");
    $t->reload();

    # workers with the old location end first

    wait_for(sub { !grep { kill(0, $_) } @old });

    http_get("/round$round/") for 1 .. $round;
    http_get('/same/');

    my $m = metrics_of(http_get('/metrics')->body());
    my $name = 'nginx_profile_request_duration_seconds_count';

    is(metric_sum($m, $name, location => "/round$round/"), $round,
       "reload $round: the new location has its own counters");
    is(metric_sum($m, $name, location => '/same/'), $round,
       "reload $round: a location that stays keeps its counters");
    is(metric_sum($m, $name, location => 'other'), 0,
       "reload $round: no request is counted as other");
    cmp_ok(scalar(grep { /^$name/ } keys %$m), '<=', 9,
           "reload $round: the number of series is bounded");
}


sub configure {
    my ($name) = @_;

    $t->conf(<<"CONF");
server {
    listen 127.0.0.1:8080;
    server_name localhost;

    location = /metrics { profile_metrics locations=4; }
    location /$name/ { return 200 "x"; }
    location /same/ { return 200 "x"; }
}
CONF
}
