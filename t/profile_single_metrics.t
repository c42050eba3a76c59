#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside
#
# Metrics with "master_process off".  The process keeps its counters when it
# gets another configuration, and requests on open connections count as their
# own configuration says: with more places, with fewer, without metrics, and
# with metrics again.  Freed memory is overwritten, so that its use shows.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

use constant LOCATIONS => 900;

my $t = ProfileTest->new()->has(qw/ rewrite /)
                          ->allow(qr/worker_connections are not enough/);

my $locations = join "\n", map { "location = /l$_ { return 200 l$_; }" }
                               1 .. LOCATIONS;

my $text = <<'EOF';

%%MODULES%%
%%GLOBALS%%

master_process off;

events {
}

http {
    %%GLOBALS_HTTP%%

    profile_zone profiles:1m;
    profile_continuous on;
    profile_stall_threshold 10ms;

    server {
        listen 127.0.0.1:8080;

        profile_endpoint on;
        location /-/profile/ { profile_console; }
        location = /metrics { %%METRICS%% }

        %%LOCATIONS%%
    }
}

EOF

configure('profile_metrics locations=1000;', $locations);

{
    local $ENV{MALLOC_PERTURB_} = 165;
    $t->run();
}

my $s = http_get('/l1', start => 1, keepalive => 1);
is(http_end($s)->body(), 'l1', 'a connection gets a response');
get("/l$_") for 1 .. LOCATIONS;

like(get('/metrics'), counted('/l1', 2), 'requests are counted');

my $n = 1;

for my $round ([ 'the same', 'profile_metrics locations=1000;', $locations ],
               [ 'the same again', 'profile_metrics locations=1000;',
                 $locations ],
               [ 'fewer places', 'profile_metrics locations=1;', '' ],
               [ 'the fewer places again', 'profile_metrics locations=1;',
                 $locations ],
               [ 'no metrics', 'return 200 none;', $locations ],
               [ 'few places again', 'profile_metrics locations=2;', '' ],
               [ 'more places', 'profile_metrics locations=2000;', $locations ],
               [ 'no metrics again', 'return 200 none;', $locations ])
{
    my ($name, @conf) = @$round;

    my $reloads = reloads();
    configure(@conf);
    kill 'HUP', $t->{pid};
    ok(wait_for(sub { reloads() > $reloads }), "$name: the reload is done");

    is(get('/l' . LOCATIONS)->body(), 'l' . LOCATIONS,
       "$name: a request of the earlier configuration is answered");
    $n++;

    my $r = get('/metrics');

    if ($conf[0] =~ /metrics/) {
        is($r->status(), 200, "$name: metrics are read");

    } else {
        is($r->status(), 503, "$name: there are no metrics");
    }

    like($r, counted('/l' . LOCATIONS, $n), "$name: the request is counted")
        if $name =~ /^the same|fewer/;

    is(get('/-/profile/status.json')->status(), 200,
       "$name: the status is answered");
    is(get('/l2?performance_bar=flamegraph')->status(), 200,
       "$name: a request is captured");
    ok(kill(0, $t->{pid}), "$name: the process lives");
}


sub configure {
    my ($metrics, $more) = @_;

    $t->write_file_expand('nginx.conf', $text =~ s/%%METRICS%%/$metrics/r
                                              =~ s/%%LOCATIONS%%/$more/r);
}


sub get {
    my ($uri) = @_;
    return http_get($uri, socket => $s, keepalive => 1);
}


sub counted {
    my ($location, $count) = @_;
    return qr/^\w+_count\{[^}]*location="=? ?$location"[^}]*\} $count$/m;
}


# each ends with a line that names the method of the new configuration
sub reloads { return () = $t->read_log() =~ /using the "\w+" event method/g }
