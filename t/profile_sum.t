#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
#
# Requests whose turns and waits are not $request_time are counted.  A library
# sets the clock of the day while a request waits, so nginx's own time of this
# request is wrong by a known time, and the sums are right.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Metrics;
use ProfileTest::Preload;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ proxy /);

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

$t->conf(<<'EOF', workers => 1);
log_format times 'rt=$request_time wait=$profile_wait_time '
                 'stall=$profile_stall_time';
access_log %%TESTDIR%%/times.log times;

profile_accounting on;

server {
    listen 127.0.0.1:8080;

    location / { }
    location /proxy/ { proxy_pass http://127.0.0.1:8081/; }
    location /-/profile/ { profile_console; access_log off; }
    location = /metrics { profile_metrics; access_log off; }
}
EOF

$t->write_file('file', "file\n");
$t->write_file('clock', 0);

my $so = build_preload($t, 'prof_clock');

run_upstream($t, 8081);

{
    local $ENV{PROF_CLOCK} = $t->testdir() . '/clock';
    local $ENV{LD_PRELOAD} = $so;

    $t->run();
}

for my $step (0, 5, 5, 0) {
    my $s = http_get('/proxy/wait=400/', start => 1);

    sleep(0.2);
    $t->write_file('clock', $step);
    http_end($s);
    http_get('/file');
}

my @lines;

wait_for(sub { @lines = $t->read_file('times.log') =~ /^(rt=.*)$/mg;
               @lines == 8 });

# the truth

my $wrong = 0;

for (@lines) {
    my %l = /(\w+)=([-\d.]+)/g;
    my $off = abs($l{rt} - $l{wait} - $l{stall});

    $wrong++ if $off > 0.1;
}

is($wrong, 2, 'the clock was set in two requests');
is(counted(), 2, 'the status page has their number');
is(metric_sum(metrics_of(http_get('/metrics')->body()),
              'nginx_profile_unequal_requests_total'), 2,
    'metrics have their number');

###############################################################################

sub counted {
    my $status = decode_json(http_get('/-/profile/status.json')->body());

    return sum0(map { $_->{unequal_requests} } @{$status->{workers}});
}
