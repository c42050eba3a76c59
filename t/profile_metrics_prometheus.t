#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# A real Prometheus scrapes the metrics of four workers under load, through a
# reload and a killed worker.  PROFILE_TEST_SCRAPES sets the number of seconds,
# 12 by default.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use List::Util qw/ max sum0 /;
use Test::More;
use Time::HiRes qw/ time /;

use ProfileTest::Metrics;
use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ proxy /)->has_program('prometheus');
my $dir = $t->testdir();
my $seconds = $ENV{PROFILE_TEST_SCRAPES} || 12;
my $family = 'nginx_profile_request_duration_seconds';

$t->conf(<<'EOF', workers => 4);
log_format times '$uri rt=$request_time cpu=$profile_cpu_time '
                 'wait=$profile_wait_time';
access_log %%TESTDIR%%/times.log times;

profile_zone store:4m;
profile_keep 0;

server {
    listen 127.0.0.1:8080;
    server_name one;

    location / { }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=20/;
    }

    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}
EOF

$t->write_file('text', 'x' x 1000);
$t->write_file('prometheus.yml', <<"EOC");
global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs:
  - job_name: nginx
    static_configs: [ { targets: [ "127.0.0.1:@{[ port(8080) ]}" ] } ]
EOC

run_upstream($t, 8081);
$t->run();

$t->run_daemon('prometheus', "--config.file=$dir/prometheus.yml",
               "--storage.tsdb.path=$dir/tsdb", '--log.level=error',
               '--enable-feature=exemplar-storage',
               '--web.listen-address=127.0.0.1:' . port(8082));
$t->wait_for_socket(port(8082));

my $begin = int(time());
my @load = map { $t->load($_, clients => 2, rate => 100,
                          seconds => $seconds + 60) } qw{ /text /upstream };

ok(wait_until($seconds / 3, sub { query("count($family\_count)") }),
   'Prometheus scrapes');

$t->reload();
wait_until(2 * $seconds / 3);

kill 'KILL', ($t->worker_pids())[0];
wait_until($seconds);

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


# Prometheus has the exemplars, and they lead to profiles

my $list = api("query_exemplars?query=$family\_bucket&start=$begin&end="
               . int(time() + 1));
my @exemplars = map { @{$_->{exemplars}} } @$list;

cmp_ok(scalar @exemplars, '>', 0, 'Prometheus has exemplars');
is(http_get("/-/profile/p/$exemplars[-1]{labels}{profile_id}/svg")->status(),
   200, 'an exemplar in Prometheus leads to a flamegraph')
    if @exemplars;

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


sub lines {
    return grep { !/metrics/ } split /\n/, $t->read_file('times.log');
}
