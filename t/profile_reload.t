#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: main
# runs: beside

# Captures beside load while nginx is reloaded, and while a worker is killed.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use ProfileTest;

use constant ROUNDS => 20;

my $t = ProfileTest->new()->has(qw/ gunzip /);

$t->conf(<<'EOF', workers => 2, events => 'worker_connections 128;');
profile_endpoint on;

gzip on;
gzip_comp_level 9;
gzip_min_length 0;
gzip_types *;

upstream app {
    server 127.0.0.1:8081;
    keepalive 4;
}

server {
    listen 127.0.0.1:8080;
    server_name localhost;

    location / {
    }

    location /app {
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_pass http://app;
    }
}

server {
    listen 127.0.0.1:8081;
    server_name localhost;

    location / {
        limit_rate 300k;
    }
}
EOF

$t->write_file('small', 'x' x 100);
$t->write_file('app', join('', map { "line $_ of some text\n" } 1 .. 8000));

$t->run();

# a worker that shuts down closes idle connections, which a client that is
# just using one cannot tell from a failure

my $load = $t->load('/small', clients => 2, rate => 200, keepalive => 0);

my ($captures, $whole) = (0, 0);
my @worker_sets = (join ' ', $t->worker_pids());

for my $round (1 .. ROUNDS) {

    # begun before the reload, ended after it, by a worker that shuts down

    my @sockets = map {
        http_get('/app?performance_bar=flamegraph', start => 1,
                 headers => [ 'Accept-Encoding: gzip' ])
    } 1 .. 3;

    select undef, undef, undef, 0.05;

    $t->reload();

    for my $socket (@sockets) {
        my $r = http_end($socket);

        $captures++;

        $whole++ if $r->status() == 200 && $r->header('X-Profile-Id')
                    && $r->content() =~ /^\{.*\]\}\s*$/s;
    }

    push @worker_sets, join ' ', $t->worker_pids();
}

my $result = $load->stop();

is($whole, $captures, "captures across @{[ROUNDS]} reloads");
is($result->{failed}, 0, 'no request beside them failed')
    or diag($result->{error});
cmp_ok($result->{requests}, '>', 200, 'there were requests beside them');

my %sets = map { $_ => 1 } @worker_sets;
is(scalar keys %sets, ROUNDS + 1, "each reload made new workers");

# a worker dies in the middle of captures

my @pids = $t->worker_pids();
my @sockets = map {
    http_get('/app?performance_bar=flamegraph', start => 1,
             headers => [ 'Accept-Encoding: gzip' ])
} 1 .. 4;

select undef, undef, undef, 0.1;

$t->allow(qr/exited on signal 9/);
kill 'KILL', @pids;

http_end($_) for @sockets;

wait_for(sub { my @now = $t->worker_pids(); @now == @pids && $now[0] != $pids[0] },
         10);

my $p = profile_get('/app', headers => [ 'Accept-Encoding: gzip' ]);
cmp_ok($p->json()->{profile_info}{wall}, '>', 0,
       'a profile from the workers that replaced them');
