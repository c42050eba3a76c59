#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside

# Metrics: what they count, for which locations, in which format, and for whom.

use strict;
use warnings;

use List::Util qw/ max sum0 /;
use Test::More;

use ProfileTest::Metrics;
use ProfileTest::Process;
use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ proxy realip rewrite /);

$t->conf(<<'EOF', workers => 2);
log_format times '$host $uri rt=$request_time cpu=$profile_cpu_time '
                 'wait=$profile_wait_time stall=$profile_stall_time '
                 'turns=$profile_turns longest=$profile_longest_turn';
access_log %%TESTDIR%%/times.log times;

server {
    listen 127.0.0.1:8080;
    server_name one.example "" *.one.example;

    location / { }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=100/;
    }

    location = /exact { return 204; }
    location ~ "php$" { return 204; }
    location '/a"b\c' { return 204; }

    location /redirected {
        error_page 404 = @named;
        return 404;
    }

    location @named { return 204; }

    location = /metrics {
        profile_metrics;
    }

    location = /others-metrics {
        profile_allow 192.0.2.0/24;
        profile_metrics;
    }
}

server {
    listen 127.0.0.1:8080;
    server_name two.example;

    location / { return 204; }
}
EOF

$t->write_file('text', 'x' x 1000);
run_upstream($t, 8081);
$t->run();


# the counters

http_get('/text') for 1 .. 20;
http_get('/upstream') for 1 .. 3;
http_get('/exact');
http_get('/php');
http_get('/a"b%5Cc');
http_get('/redirected');
http_get('/', headers => [ 'Host: two.example' ]);

my $m = scrape();

is(count('/', 'one.example'), 20, 'requests of a location');
is(count('/upstream'), 3, 'requests of another location');
is(count('= /exact'), 1, 'an exact location has a name of its own');
is(count('~ php$'), 1, 'a regular expression is the name of its location');
is(count('/a\"b\\\\c'), 1, 'the name of a location is escaped');
is(count('@named'), 1, 'a redirected request counts in its last location');
is(count('/redirected'), 0, 'a redirected request counts only there');
is(count('/', 'two.example'), 1, 'requests of another server');
is(metric_sum($m, 'nginx_profile_request_duration_seconds_bucket',
              location => '/upstream', le => '0.05'),
   0, 'no request to the upstream took at most 50 ms');
is(metric_sum($m, 'nginx_profile_request_duration_seconds_bucket',
              location => '/upstream', le => '60.0'),
   3, 'all requests to the upstream took at most a minute');

agrees();


# under load

my $load = $t->load('/text', clients => 4);
wait_for(sub { () = lines() > 2000 });
my $more = $t->load('/upstream', clients => 8);
wait_for(sub { () = grep({ $_->{uri} eq '/upstream' } lines()) > 30 });
is($_->stop()->{failed}, 0, 'load: no request failed') for $load, $more;

# the last requests may end after their clients have gone

ok(wait_for(sub { $m = scrape();
                  counted() == scalar(() = lines()) }),
   'load: each request of the log is counted');

agrees();


# the CPU time of workers

is(join(' ', sort grep { /^nginx_profile_worker_cpu/ } keys %$m),
   'nginx_profile_worker_cpu_seconds_total{worker="0"} '
   . 'nginx_profile_worker_cpu_seconds_total{worker="1"}',
   'each worker has its CPU time');

# the CPU time of a short turn follows from its length, and is not exact

cmp_ok(1.25 * worker_cpu($m), '>=',
       metric_sum($m, 'nginx_profile_request_cpu_seconds_sum'),
       'the requests have used a part of it');

my $least = sum0(map { process_cpu_all($_) } $t->worker_pids());
my $total = worker_cpu(scrape());
my $most = sum0(map { process_cpu_all($_) } $t->worker_pids());

cmp_ok($total, '>=', $least / 2, 'it is about what the kernel has told');
cmp_ok($total, '<=', 2 * $most, 'it is about what the kernel tells');


# formats

my %formats = (
    '' => 'text/plain',
    '*/*' => 'text/plain',
    'text/html,*/*;q=0.8' => 'text/plain',
    'application/openmetrics-text; version=1.0.0' =>
        'application/openmetrics-text',
    'application/openmetrics-text;q=0.3,text/plain;q=0.5' => 'text/plain',
    'application/openmetrics-text;version=1.0.0,'
    . 'application/openmetrics-text;version=0.0.1;q=0.75,'
    . 'text/plain;version=0.0.4;q=0.5,*/*;q=0.1' =>
        'application/openmetrics-text',
);

for my $accept (sort keys %formats) {
    my $r = get($accept ? "Accept: $accept" : ());

    is($r->header('Content-Type') =~ s/;.*//r, $formats{$accept},
       "format for Accept: $accept");
}

my $r = get('Accept: application/openmetrics-text');

is($r->header('Content-Type'),
   'application/openmetrics-text; version=1.0.0; charset=utf-8',
   'OpenMetrics has a version');
like($r->body(), qr/\n# EOF\n\z/, 'OpenMetrics has an end');
like($r->body(), qr/^# TYPE nginx_profile_request_turns counter$/m,
     'OpenMetrics: the family of a counter has no suffix');
like($r->body(), qr/^# UNIT nginx_profile_request_cpu_seconds seconds$/m,
     'OpenMetrics has units');
like($r->header('Vary'), qr/Accept/, 'caches know that there are formats');

$r = get();

is($r->header('Content-Type'), 'text/plain; version=0.0.4; charset=utf-8',
   'the text format has a version');
unlike($r->body(), qr/^# (?:EOF|UNIT)/m,
       'the text format has neither units nor an end');
like($r->body(), qr/^# TYPE nginx_profile_request_turns_total counter$/m,
     'the text format: the family of a counter has its suffix');

is(get('Accept-Encoding: gzip')->content() =~ /^# HELP/, 1,
   'the answer is compressed on request');
is(http_head('/metrics')->status(), 200, 'HEAD is a method of metrics');
is(http_post('/metrics', 'x=1')->status(), 405, 'POST is no method of metrics');

SKIP: {
    skip 'no promtool', 2 unless `sh -c 'command -v promtool'`;

    $t->write_file('metrics.txt', get()->body());
    my $out = `promtool check metrics < @{[ $t->testdir() ]}/metrics.txt 2>&1`;

    is($?, 0, 'promtool accepts the text');
    is($out, '', 'promtool has no remarks');
}


# labels come from the configuration

my $before = keys %{scrape()};

http_get("/text?$_", headers => [ "Host: $_.example" ]) for 1 .. 300;
http_get("/missing/$_") for 1 .. 300;
http_get('/text', headers => [ 'Host: a"b\\c{d}' ]);
http_get('/text', headers => [ "Host: caf\xc3\xa9\xff.example" ]);

$m = scrape();

is(scalar keys %$m, $before, 'other hosts and URIs make no series');
is(scalar(grep { /\xff|caf|a"b/ } keys %$m), 0,
   'no label has what a client has sent');


# the clients that may read metrics

is(http_get('/others-metrics')->status(), 403, 'another list of addresses');
is(get('X-Forwarded-For: 192.0.2.1')->status(), 403,
   'a client behind a local proxy is not local');



sub get {
    my (@headers) = @_;
    return http_get('/metrics', headers => \@headers);
}


sub scrape {
    return metrics_of(get()->body());
}


sub count {
    my ($location, $server) = @_;

    return metric_sum($m, 'nginx_profile_request_duration_seconds_count',
                      location => $location, $server ? (server => $server) : ());
}


sub worker_cpu {
    my ($metrics) = @_;
    return metric_sum($metrics, 'nginx_profile_worker_cpu_seconds_total');
}


# the requests that are logged, without those for metrics
sub lines {
    return map { my ($uri) = /^\S+ (\S+)/; +{ uri => $uri, /(\w+)=(\S+)/g } }
           grep { !/metrics/ } split /\n/, $t->read_file('times.log');
}


# the requests that are counted, without those for metrics
sub counted {
    my $count = 'nginx_profile_request_duration_seconds_count';

    return metric_sum($m, $count)
           - metric_sum($m, $count, location => '= /metrics');
}


# the metrics are the sums of the access log; each line is rounded
sub agrees {
    my @lines = lines();
    my %times = (duration => 'rt', cpu => 'cpu', stall => 'stall');

    for my $name (sort keys %times) {
        my $log = sum0(map { $_->{$times{$name}} } @lines);
        my $sum = metric_sum($m, "nginx_profile_request_${name}_seconds_sum")
                  - metric_sum($m, "nginx_profile_request_${name}_seconds_sum",
                               location => '= /metrics');
        my $unit = $name eq 'duration' ? 0.001 : 0.000001;

        cmp_ok(abs($sum - $log), '<=', max(0.01 * $log, $unit * @lines),
               "$name: the sum is that of the access log");
    }

    my $turns = 'nginx_profile_request_turns_total';

    is(metric_sum($m, $turns) - metric_sum($m, $turns,
                                           location => '= /metrics'),
       sum0(map { $_->{turns} } @lines), 'turns: the sum is that of the log');

    my $longest = max(map { $_->{longest} }
                      grep { $_->{uri} eq '/upstream' } @lines);

    cmp_ok(abs(metric_sum($m, 'nginx_profile_longest_turn_seconds',
                          location => '/upstream') - $longest),
           '<', 0.000002, 'the longest turn is that of the log');
}


