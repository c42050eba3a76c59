#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside

# Exemplars: from a bucket to the profile of a request in it.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest::Metrics;
use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ proxy /);
my $family = 'nginx_profile_request_duration_seconds';
my $trace = '0af7651916cd43dd8448eb211c80319c';

$t->conf(<<'EOF', workers => 2);
profile_zone store:4m;
profile_keep $http_x_keep;

server {
    listen 127.0.0.1:8080;
    server_name one;

    location / { }

    location /slow {
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }

    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}

server {
    listen 127.0.0.1:8082;
    server_name two;
    profile_keep off;

    location / { }
}
EOF

$t->write_file('text', 'x' x 1000);
run_upstream($t, 8081);
$t->run();


# a request that the condition has chosen

http_get('/slow', headers => [ 'X-Keep: 1',
                               "traceparent: 00-$trace-b7ad6b7169203331-01" ]);

my $ex = exemplar('/slow', 0.5);

is($ex->{trace_id}, $trace, 'the exemplar has the trace of the request');
cmp_ok($ex->{value}, '>', 0.25, 'the value is above the bucket below');
cmp_ok($ex->{value}, '<=', 0.5, 'the value is in the bucket');
cmp_ok(abs($ex->{time} - time()), '<', 60,
       'the exemplar has the time of the request');

# a URL with the id of an exemplar leads to the flamegraph

my $r = http_get("/-/profile/p/$ex->{profile_id}/svg");

is($r->status(), 200, 'one URL leads to the flamegraph');
like($r->body(), qr/upstream first byte/,
     'the flamegraph is that of the request');

my $json = decode_json(http_get("/-/profile/p/$ex->{profile_id}.json")->body());
my $wall = $json->{wall} / 1e9;

cmp_ok($wall, '>', 0.25, 'the time of the profile is in the bucket');
cmp_ok($wall, '<=', 0.5, 'the time of the profile is not above the bucket');
cmp_ok(abs($wall - $ex->{value}), '<', 0.01,
       'the time of the exemplar is that of the profile');


# profile_keep chooses a request for a bucket without an exemplar

http_get('/text') for 1 .. 3;

$ex = exemplar('/', 0.001, sub { http_get('/text') });

is($ex->{trace_id}, undef, 'an exemplar may lack a trace');
is(http_get("/-/profile/p/$ex->{profile_id}")->status(), 200,
   'profile_keep has kept a request for a bucket');

my $profiles = profiles();

http_get('/text') for 1 .. 50;
is(profiles(), $profiles, 'a bucket with a recent exemplar needs no other one');


# no exemplar without its profile

http_get('/text', port => 8082) for 1 .. 3;
is(scalar(grep { /server="two"/ } exemplars()), 0,
   'requests without profile_keep have no exemplar');

is(http_post("/-/profile/p/$ex->{profile_id}/delete", '',
             headers => [ 'X-Profile-Console: 1' ])->status() < 300, 1,
   'the profile is deleted');
is(scalar(grep { /$ex->{profile_id}/ } exemplars()), 0,
   'no exemplar leads to a profile that the store does not have');

# the profiler counts itself

http_get('/text', headers => [ 'X-Keep: 1' ]) for 1 .. 60;

my $status = decode_json(http_get('/-/profile/status.json')->body());
my $metrics = metrics_of(http_get('/metrics')->body());

for my $cause (qw/ rate queue memory slots /) {
    my $dropped = 0;
    $dropped += $_->{dropped}{$cause} for @{$status->{workers}};

    is(metric_sum($metrics, 'nginx_profile_dropped_profiles_total',
                  cause => $cause),
       $dropped, "profiles that were dropped: $cause");
}

cmp_ok(metric_sum($metrics, 'nginx_profile_dropped_profiles_total',
                  cause => 'rate'),
       '>', 0, 'the rate has dropped some profiles');
cmp_ok($metrics->{nginx_profile_kept_profiles_total}, '>', 0,
       'profiles that were kept');

my $store;

ok(wait_for(sub {
       $store = decode_json(http_get('/-/profile/status.json')->body())
                ->{store};
       $metrics = metrics_of(http_get('/metrics')->body());
       $metrics->{nginx_profile_stored_profiles} == $store->{profiles}
   }), 'the number of stored profiles is that of the status page');
is($metrics->{nginx_profile_store_added_profiles_total}, $store->{added},
   'profiles that were added to the store');


unlike(http_get('/metrics')->body(), qr/profile_id/,
       'the text format has no exemplars');


sub exemplars {
    my $r = http_get('/metrics',
                     headers => [ 'Accept: application/openmetrics-text' ]);

    return grep { /^${family}_bucket\{.*\} \d+ # / } split /\n/, $r->body();
}


# waits until the job has stored the profile
sub exemplar {
    my ($location, $le, $request) = @_;
    my $line;

    wait_for(sub {
        $request->() if $request;
        ($line) = grep { /location="\Q$location\E",le="$le"/ } exemplars();
    });

    $line //= '';
    like($line, qr/ # \{profile_id="[0-9a-f]{32}"[^}]*\} [\d.]+ [\d.]+$/,
         "$location: a bucket has an exemplar");

    my ($labels, $value, $time) = $line =~ / # \{(.*)\} (\S+) (\S+)$/;

    return { value => $value, time => $time,
             ($labels // '') =~ /(\w+)="([^"]*)"/g };
}


sub profiles {
    my $list = decode_json(http_get('/-/profile/profiles.json')->body());
    return scalar @{$list->{profiles}};
}
