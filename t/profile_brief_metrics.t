#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside

# Metrics of requests that end in their first event.  Such a request is counted
# at the end of the event, when nginx has freed the request, unless a script has
# read its times.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Metrics;
use ProfileTest::Process;

my $t = ProfileTest->new()->has(qw/ js map rewrite /)->plan(13);

$t->conf(<<'EOF');
js_path %%TESTDIR%%;
js_import times.js;
js_set $said times.ask;

log_format said '$request_uri $said';

map $arg_asks $asks {
    ""       0;
    default  1;
}

access_log %%TESTDIR%%/said said if=$asks;

server {
    listen 127.0.0.1:8080;
    server_name one;

    location / { }

    location /busy {
        js_content times.busy;
    }

    location /later {
        js_content times.later;
    }

    location = /metrics {
        profile_metrics;
    }
}
EOF

$t->write_file('times.js', <<'EOF');
function ask(r) {
    return r.variables.profile_cpu_time + ' ' + r.variables.profile_turns;
}

function busy(r) {
    var till = Date.now() + 20;
    while (Date.now() < till) { }
    r.return(200, 'busy');
}

function later(r) {
    setTimeout(() => r.return(200, 'later'), 20);
}

export default { ask, busy, later };
EOF

$t->write_file('text', 'x' x 1000);
$t->run();

my ($worker) = $t->worker_pids();
my $s = ProfileTest::HTTP::connect_to(8080);

get('/text') for 1 .. 100;
get('/text?asks=1') for 1 .. 10;

my $before = process_cpu($worker);
get($_) for ('/busy') x 5, ('/busy?asks=1') x 2;
my $busy = process_cpu($worker) - $before;

get('/later');
get('/later?asks=1');

# pipelined requests: each request is counted in its own event

$s->print("GET /text HTTP/1.1\r\nHost: one\r\n\r\n" x 20);
my $data = '';
while ((() = $data =~ /x{1000}/g) < 20) {
    sysread($s, $data, 65536, length $data) or last;
}

# a request with an error, and a request without a response body

get('/missing');
http_head('/text');

my $m = metrics_of(http_get('/metrics')->body());

for my $kind ([ '/', 132 ], [ '/busy', 7 ], [ '/later', 2 ]) {
    my ($location, $n) = @$kind;

    is(value('request_duration_seconds_count', $location), $n,
       "$location: each request is counted once");
    is(value('request_cpu_seconds_count', $location), $n,
       "$location: the CPU time of each request is counted once");
    cmp_ok(value('request_cpu_seconds_sum', $location), '>', 0,
           "$location: the requests have CPU time");
}

is(value('request_turns_total', '/'), 132, 'a brief request has one turn');
cmp_ok(value('longest_turn_seconds', '/busy'), '>', 0.015,
       'the longest turn is as long as the work');
cmp_ok(abs(value('request_cpu_seconds_sum', '/busy') - $busy), '<',
       0.1 * $busy, 'the CPU time is that of the worker')
    or diag(value('request_cpu_seconds_sum', '/busy') . " of $busy s");
cmp_ok(value('request_duration_seconds_sum', '/busy'), '>=', 7 * 0.018,
       'the duration includes the work');


sub value {
    my ($name, $location) = @_;

    return metric_sum($m, "nginx_profile_$name", server => 'one',
                      location => $location);
}


sub get {
    my ($uri) = @_;

    return http_end(http_get($uri, socket => $s, keepalive => 1, start => 1));
}
