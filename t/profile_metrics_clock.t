#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside

# The clock of the day was a day ahead when a bucket got its exemplar, and is
# set right.  A bucket whose profile is gone gets another exemplar.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Preload;

use constant DAY => 24 * 60 * 60;

my $t = ProfileTest->new();

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();


# only requests that profile_keep chooses for a bucket are kept

$t->conf(<<'EOF', workers => 1);
profile_zone store:1m;
profile_keep $http_x_keep;

server {
    listen 127.0.0.1:8080;

    location / { }
    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}
EOF

$t->write_file('file', "file\n");

run_ahead($t, DAY);

my ($before) = exemplar('');
ok($before, 'a bucket has an exemplar');

$t->write_file('clock', 0);

is(http_post("/-/profile/p/$before/delete", '',
             headers => [ 'X-Profile-Console: 1' ])->status() < 300, 1,
   'its profile is deleted');

ok(exemplar($before), 'the bucket has another exemplar');


# the profile of a request in the shortest bucket, other than the given one
sub exemplar {
    my ($not) = @_;

    my $id;

    wait_for(sub {
        http_get('/file');

        my $r = http_get('/metrics',
                         headers => [ 'Accept: application/openmetrics-text' ]);

        ($id) = $r->body() =~ m{^nginx_profile_request_duration_seconds_bucket
                                \{[^\}]*location="/",le="0\.001"\}\ \d+
                                \ \#\ \{profile_id="(\w+)"}mx;

        return defined $id && $id ne $not;
    }, 20) or return;

    return $id;
}
