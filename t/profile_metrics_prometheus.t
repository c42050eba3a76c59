#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics

# A real Prometheus scrapes the metrics of four workers under load, through a
# reload and a killed worker.  Its counters never decrease, their sums are those
# of the access log, and an exemplar leads to the flamegraph of a request in its
# bucket.  PROFILE_TEST_SCRAPES sets the number of seconds, 12 by default.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use List::Util qw/ max sum0 /;
use Test::More;
use Time::HiRes qw/ time /;

use ProfileTest::Metrics;
use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ proxy /)
                          ->has_program(qw/ prometheus promtool /);
my $dir = $t->testdir();
my $seconds = $ENV{PROFILE_TEST_SCRAPES} || 12;
my $family = 'nginx_profile_request_duration_seconds';
my @bounds = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
              5, 10, 30, 60);

$t->conf(<<'EOF', workers => 4);
log_format times '$uri rt=$request_time cpu=$profile_cpu_time '
                 'wait=$profile_wait_time '
                 'connect=$upstream_connect_time '
                 'first=$upstream_header_time';
access_log %%TESTDIR%%/times.log times;

profile_zone store:4m;
profile_keep 0;

server {
    listen 127.0.0.1:8080;
    server_name one;

    location / { }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=150/;
    }

    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}
EOF

$t->write_file('text', 'x' x 1000);

run_upstream($t, 8081);
$t->run();

run_prometheus($t);

my $begin = int(time());
my @load = map { $t->load($_, clients => 2, rate => 100,
                          seconds => $seconds + 60) } qw{ /text /upstream };

ok(wait_until($seconds / 3, sub { query("count($family\_count)") }),
   'Prometheus scrapes');
checked('at first');

$t->reload();
wait_until(2 * $seconds / 3);
checked('after a reload');

kill 'KILL', ($t->worker_pids())[0];
wait_until($seconds);
checked('after the end of a worker');

$_->stop() for @load;

# the last scrape has all requests

my $all = scalar lines();

ok(wait_for(sub { query("sum($family\_count{location!~'.*metrics'})") >= $all }),
   'Prometheus has counted all requests')
    or diag(query("sum($family\_count)"), " of $all");

my $span = int(time()) - $begin + 1;

for my $counter ("$family\_count", "$family\_bucket",
                 'nginx_profile_request_wait_seconds_sum',
                 'nginx_profile_request_cpu_seconds_sum',
                 'nginx_profile_request_turns_total')
{
    is(query("sum(resets($counter\[${span}s]))"), 0,
       "$counter never decreases");
}

my %sums = (rt => $family, cpu => 'nginx_profile_request_cpu_seconds',
            wait => 'nginx_profile_request_wait_seconds');

for my $name (sort keys %sums) {
    my $log = sum0(map { /\b$name=([\d.]+)/ } lines());
    my $sum = query("sum($sums{$name}_sum{location!~'.*metrics'})");

    cmp_ok(abs($sum - $log), '<=',
           max(0.01 * $log, ($name eq 'rt' ? 0.001 : 0.000001) * lines()),
           "$name: the sum in Prometheus is that of the access log");
}

# nginx measures in milliseconds; the errors of its two times cancel each other

my $log = sum0(map { /connect=([\d.]+) first=([\d.]+)/ ? $2 - $1 : () }
               lines());
my $sum = query("sum($sums{wait}_sum{cause='upstream first byte'})");

cmp_ok($log, '>', 0, 'nginx has waited for the upstream');
cmp_ok(abs($sum - $log), '<=', 0.01 * $log,
       'the wait for the upstream is that which nginx measures');


# Prometheus has the exemplars, and they lead to profiles of their buckets

my $list = api("query_exemplars?query=$family\_bucket&start=$begin&end="
               . int(time() + 1));
my @exemplars = sort { $a->{timestamp} <=> $b->{timestamp} }
                map { my $labels = $_->{seriesLabels};
                      map { { %$_, le => $labels->{le},
                              location => $labels->{location} } }
                          @{$_->{exemplars}} } @$list;
my ($newest) = grep { $_->{location} eq '/upstream' } reverse @exemplars;

cmp_ok(scalar @exemplars, '>', 0, 'Prometheus has exemplars');
is(scalar(grep { !in_bucket($_->{value}, $_->{le}) } @exemplars), 0,
   'the time of each exemplar is in its bucket');

my $url = "/-/profile/p/$newest->{labels}{profile_id}";
my $flamegraph = http_get("$url/svg");
my $profile = eval { decode_json(http_get("$url.json")->content()) } || {};

is($flamegraph->status(), 200, 'one URL leads from an exemplar to a flamegraph');
like($flamegraph->content(), qr/upstream first byte/,
     'the flamegraph is that of a request of the location');
ok(in_bucket(($profile->{wall} // 0) / 1e9, $newest->{le}),
   'the time of the flamegraph is in the bucket of the exemplar');

$t->allow(qr/exited on signal 9|was locked by/);


# the value of an expression with one result, or 0
sub query {
    my ($expr) = @_;

    $expr =~ s/([^\w.-])/sprintf '%%%02X', ord $1/ge;

    return api("query?query=$expr")->{result}[0]{value}[1] // 0;
}


sub api {
    my ($path) = @_;
    my $body = http_get("/api/v1/$path", port => 8082)->content();
    my $json = eval { decode_json($body) } || {};

    return $json->{data} || {};
}


sub wait_until {
    my ($second, $done) = @_;

    return wait_for(sub { time() - $begin >= $second && (!$done || $done->()) },
                    $second + 30);
}


# whether a time is in the bucket with this upper bound
sub in_bucket {
    my ($seconds, $le) = @_;
    my $below = max(0, grep { $_ < $le } @bounds);

    return $seconds > $below && $seconds <= $le;
}


# promtool has no remarks about the metrics
sub checked {
    my ($when) = @_;

    $t->write_file('metrics.txt', http_get('/metrics')->content());

    my $out = `promtool check metrics < $dir/metrics.txt 2>&1`;

    is("$? $out", '0 ', "$when: promtool has no remarks");
}


sub lines {
    return grep { !/metrics/ } split /\n/, $t->read_file('times.log');
}
