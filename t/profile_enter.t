#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside

# Unusual ways by which nginx runs code of a request: a request that another
# request has entered, a kept handler that is called for a request without a
# track, a timer whose log was freed, and a connection whose data is a number.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Module;

my $t = ProfileTest->new();
my $so = build_module($t, 'ngx_http_enter_test_module');

$t->conf(<<"EOF", main => "load_module $so;");
log_format times '\$args \$request_time \$profile_stall_time '
                 '\$profile_wait_time \$profile_turns';
access_log %%TESTDIR%%/times.log times;
profile_accounting on;

server {
    listen 127.0.0.1:8080;

    location / {
        enter_test;
    }
}

server {
    listen 127.0.0.1:8081;
    profile_accounting off;

    location / {
        enter_test;
    }
}
EOF

$t->run();

# the worker has read a request when it answers a later one

my %waiting;

for my $name (qw/ a b /) {
    $waiting{$name} = http_get("/?$name", start => 1);
    http_get('/?expired');
}

is(http_get('/?save')->body(), 'saved', 'handler is saved');
is(http_get('/?lost', port => 8081)->body(), 'lost',
   'handler of a tracked request, called for another one');
is(() = $t->read_log() =~ /handler called for a request that is not tracked/g,
   1, 'the call is logged');
is(http_get('/?go')->body(), 'its own', 'a handler runs in its own turn');
is(http_end($waiting{$_})->body(), $_, "$_ is answered") for qw/ a b /;

for my $name (qw/ a b /) {
    my ($all, $stall, $wait, $turns);

    wait_for(sub {
        ($all, $stall, $wait, $turns) =
            $t->read_log('times.log') =~ /^$name (\S+) (\S+) (\S+) (\d+)$/m;
    });

    cmp_ok($stall + $wait, '<=', $all + 0.002,
           "$name: the times fit in the duration");
    is($turns, 2, "$name: the request has two turns");
}

is(http_get('/?foreign')->body(), 'set', 'a timer is set');
ok(wait_for(sub { http_get('/?expired')->body() eq 'expired' }),
   'the timer has expired');

# the request opens the connection in its first turn, and is answered when the
# connection is ready

is(http_get('/?number')->body(), 'number', 'data of a connection is a number');
like(wait_for(sub { ($t->read_log('times.log') =~ /^(number .*)$/m)[0] }),
     qr/ 2$/, 'number: the request has two turns');
