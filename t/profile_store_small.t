#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store keep
# runs: beside

# profile_keep and a store in which no profile fits: all are counted, and the
# log gets at most one line a second.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;

use constant N => 60;

my $t = ProfileTest->new();

$t->conf(<<'EOF', workers => 1);
profile_store %%TESTDIR%%/store max=100;

server {
    listen 127.0.0.1:8080;
    profile_keep 1 rate=1000;

    location / { }
    location /-/profile/ { profile_console; }
}
EOF

$t->write_file('file', "file\n");
$t->run();

# fewer at a time than a worker keeps

for my $n (1 .. N) {
    http_get('/file');

    wait_for(sub { dropped() >= $n }) or last unless $n % 10;
}

ok(wait_for(sub { dropped() >= N }), 'all profiles are counted as dropped');

my %lines;

for (split /\n/, $t->read_log()) {
    /^(\S+ \S+) \[warn\].* does not fit in the store/
        or next;
    $lines{$1}++;
}

my ($most) = sort { $b <=> $a } values %lines;

is($most, 1, 'at most one line a second is logged');


sub dropped {
    my $s = decode_json(http_get('/-/profile/status.json')->body());

    return $s->{store}{dropped};
}
