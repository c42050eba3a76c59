#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside
#
# The module takes none of the worker_connections: a worker serves as many
# clients with all features of the module as without them, and closes all idle
# connections when it shuts down.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

use constant CONNECTIONS => 12;

my $t = ProfileTest->new()->allow(qr/worker_connections are not enough/);

my $all = <<'EOF';
profile_zone profiles:1m;
profile_continuous on;
profile_keep 1;
profile_stall_threshold 100ms;
profile_context on;
EOF

my $server = <<'EOF';
profile_endpoint on;
profile_bar on;
location /-/profile/ { profile_console; }
location = /metrics { profile_metrics; }
EOF

configure('', '');
$t->write_file('slow', 'x' x 100_000);
$t->write_file('a', "a\n");
$t->run();

my ($clients, $message) = fill();

cmp_ok($clients, '>', CONNECTIONS / 2, 'nginx serves clients');

change($all, $server);

is(http_get('/a?performance_bar=flamegraph')->status(), 200,
   'the module captures');
like(http_get('/-/profile/status.json')->body(),
     qr/"max_connections": ?${\CONNECTIONS}\b/,
     'the status has the configured number');

my ($with, $other) = fill();

is($with, $clients, 'as many clients are served');
is($other, $message, 'the log names the same number');

# idle connections

my @idle = map {
    my $s = http_get('/a', start => 1, keepalive => 1);
    http_end($s);
    $s;
} 1 .. $clients;

is(http_get('/-/profile/status.json', socket => $idle[-1])->status(), 200,
   'the last connection is served again');

my @old = $t->worker_pids();
change('', '');
ok(wait_for(sub { !grep { kill 0, $_ } @old }),
   'the worker closes all idle connections');


sub configure {
    my ($http, $server) = @_;

    my $n = CONNECTIONS;

    $t->conf(<<"EOF", events => "worker_connections $n;");
$http

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8081;

    $server

    location = /slow { limit_rate 10; }
}
EOF
}


sub change {
    configure(@_);

    my @old = $t->worker_pids();

    $t->reload();
    wait_for(sub { !grep { kill 0, $_ } @old });
}


# clients that workers serve at a time, and what they log about one more
sub fill {
    my $from = length $t->read_log();
    my @clients;

    for (1 .. 4 * CONNECTIONS) {
        my $s = http_get('/slow', start => 1);
        my $in = '';

        vec($in, fileno($s), 1) = 1;
        select($in, undef, undef, 10) or last;
        sysread($s, my $head, 1) or last;

        push @clients, $s;
    }

    my ($message) = substr($t->read_log(), $from)
                    =~ /(\d+ worker_connections are not enough)/;

    return (scalar @clients, $message);
}
