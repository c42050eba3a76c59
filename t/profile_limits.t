#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: quiet
#
# Limits: how many captures, for how long, and in how much memory.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Attribution ();
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ auth_request gzip proxy rewrite /);

$t->conf(<<'EOF');
default_type text/plain;

gzip_comp_level 9;
gzip_min_length 1;
gzip_types text/plain;

profile_max_captures 2;

server {
    listen 127.0.0.1:8080;
    server_name on;

    profile_endpoint on;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /refused/ {
        profile_if 0;
        proxy_pass http://127.0.0.1:8081;
    }

    location /address/ {
        profile_allow 192.0.2.1;
        proxy_pass http://127.0.0.1:8081;
    }

    location /off/ {
        profile_endpoint off;
        proxy_pass http://127.0.0.1:8081;
    }

    # admitted first, and not where it ends up

    location /on-off/ {
        proxy_intercept_errors on;
        error_page 404 = /off/hold=off/;
        proxy_pass http://127.0.0.1:8081/status=404/;
    }

    location /return/ {
        return 200 "a\n";
    }

    location /close/ {
        return 444;
    }

    location /gzip/ {
        alias %%TESTDIR%%/;
        gzip on;
    }

    location /long/ {
        profile_timeout 60s;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /short/ {
        profile_timeout 200ms;
        proxy_pass http://127.0.0.1:8081/;
    }
}

server {
    listen 127.0.0.1:8080;
    server_name small;

    profile_endpoint on;
    profile_buffer 128k;
    profile_frequency 10000;

    location / {
        gzip on;
    }
}

# the time of the server counts until the location is decided

server {
    listen 127.0.0.1:8080;
    server_name short;

    profile_endpoint on;
    profile_timeout 200ms;

    auth_request /auth;

    location /admitted/ {
        proxy_pass http://127.0.0.1:8081;
    }

    location /refused/ {
        profile_if 0;
        proxy_pass http://127.0.0.1:8081;
    }

    location = /auth {
        proxy_pass http://127.0.0.1:8081/auth/wait=700/;
    }
}
EOF

$t->write_file('large.txt', join('', map { "line $_ of many\n" } 1 .. 300000));

run_upstream($t, 8081);
$t->run();

my $arg = 'performance_bar=flamegraph';
my $name = 'name0';
my $worker = ($t->worker_pids())[0];
my $before = ProfileTest::Attribution::state_of($worker);


# the maximum number of captures

my @slow = map { slow("/hold=first/$_/?$arg") } 1, 2;

my $r = http_get("/a?$arg", on());

is($r->status(), 429, 'a capture above the limit has the status 429');
is($r->header('Retry-After'), 1, 'the answer has Retry-After');
is($r->header('Content-Type'), 'text/plain', 'the answer is a text');
is($r->header('Cache-Control'), 'private, no-store',
    'caches must not store the answer');
is($r->header('X-Profile-Id'), undef, 'the answer has no profile id');
is($r->body(), "too many captures are running in this worker\n",
   'the answer names the reason');

is(http_get("/a?$arg", on('X-Profile: flamegraph'))->status(), 429,
   'a capture by argument and header has the status 429');
is(http_get('/a', on('X-Profile: flamegraph'))->status(), 429,
   'a capture by a header has the status 429');
is(http_get("/return/?$arg", on())->status(), 429,
   'the limit applies to responses of the rewrite phase');
is(http_post("/a?$arg", 'x' x 100000, on())->status(), 429,
   'the limit applies to requests with a body');
is(http_head("/a?$arg", on())->status(), 429, 'the limit applies to HEAD');
is(http_get("/a?$arg&profile_mode=x", on())->status(), 400,
   'a wrong parameter above the limit has the status 400');
is(scalar(grep { m{ /a} } upstream_lines($t)), 0,
   'the upstream gets no request above the limit');

for my $uri ('/a', "/refused/?$arg", "/address/?$arg", "/off/?$arg") {
    is(http_get($uri, on())->status(), 200,
        "the limit does not apply to $uri");
}

upstream_release($t, 'first');

for my $s (@slow) {
    is(http_end($s)->header('X-Profiled-Status'), 200,
        'a capture within the limit is answered');
}

is(free(), 2, 'all slots are free after the captures');


# refused requests take no slot while they run

@slow = map { slow("$_/hold=refused/?$arg") }
            qw{ /refused/1 /address/2 /off/3 /refused/4 /off/5 };

is(free(), 2, 'refused requests take no slot');
upstream_release($t, 'refused');
is(http_end($_)->header('X-Profile-Id'), undef,
    'a refused request has no profile') for @slow;

my $s = slow("/on-off/?$arg", qr{/off/hold=off});

is(free(), 2, 'a request that is refused later releases its slot');
upstream_release($t, 'off');
is(http_end($s)->header('X-Profile-Id'), undef,
    'a request that is refused later has no profile');


# whatever the end is

for my $uri ('/status=500/', '/close/', '/return/', '/short/wait=400/',
             "/a?$arg&profile_mode=x", '/none/status=404/', '/status=204/')
{
    http_get($uri =~ /\?/ ? $uri : "$uri?$arg", on()) for 1 .. 3;
    is(free(), 2, "$uri releases its slot");
}

for my $uri ('', '/refused') {
    close($_) for map { slow("$uri/hold=gone/$_/?$arg") } 1 .. 2;
    ok(wait_for(sub { free() == 2 }),
        "a client that disconnects from $uri releases the slot");
}

upstream_release($t, 'gone');


# time

my $begin = time();

$r = http_get("/short/wait=1500/?$arg", on());

my $p = ProfileTest::Profile->new($r);
my $info = $p->json()->{profile_info};

is($r->header('X-Profiled-Status'), 200,
    'a capture that times out has the original status');
is($info->{ended_by}, 'profile_timeout',
    'the profile names profile_timeout as its end');
cmp_ok(time() - $begin, '>', 1.4, 'the request continues after the timeout');
cmp_ok($info->{wall}, '>', 150e6,
    'the capture does not end before the timeout');
cmp_ok($info->{wall}, '<', 1200e6, 'the capture ends soon after the timeout');
cmp_ok($info->{request_time}, '>', 1.4,
    'the profile has the time of the whole request');
is($p->profile('wall')->total(), $info->{wall},
    'the stacks add up to the time of the capture');

$info = ProfileTest::Profile->new(http_get("/long/wait=300/?$arg", on()))
        ->json()->{profile_info};
is($info->{ended_by}, undef, 'a capture without a timeout does not name one');

$r = http_get("/admitted/a?$arg", headers => [ 'Host: short' ]);
$info = ProfileTest::Profile->new($r)->json()->{profile_info};

is($info->{ended_by}, 'profile_timeout',
    'a capture may time out before it is admitted');
like((upstream_lines($t))[-1], qr!^GET /admitted/a HTTP/1\.[01]$!,
     'the upstream does not see the trigger of an admitted capture');

$r = http_get("/refused/a?$arg", headers => [ 'Host: short',
                                              'X-Profile: flamegraph' ]);

is($r->header('X-Profile-Id'), undef,
    'a capture may time out before it is refused');
like($r->body(), qr{^GET /refused/a\?\Q$arg\E HTTP.*^X-Profile: flamegr}ms,
     'the upstream sees the trigger of a refused capture');
is(free(), 2, 'captures that time out release their slots');


# memory

$r = http_get("/large.txt?$arg", headers => [ 'Host: small',
                                              'Accept-Encoding: gzip' ]);
$p = ProfileTest::Profile->new($r);
$info = $p->json()->{profile_info};

cmp_ok($info->{samples}, '>', 100,
    'a small buffer does not limit the number of samples');
is($p->profile('wall')->total(), $info->{wall},
    'with a small buffer, the stacks add up to the time');
cmp_ok($p->profile('wall')->weight_below(qr/deflate/), '>',
       $info->{wall} / 2, 'with a small buffer, functions keep their share')
    or diag($p->profile('wall')->folded(20));


# after all captures

ok(wait_for(sub { ProfileTest::Attribution::state_of($worker) eq $before }),
   'the worker has the timers, signals and threads of the start')
    or diag("$before\n", ProfileTest::Attribution::state_of($worker));


sub on { return (headers => [ 'Host: on', 'Accept-Encoding: gzip', @_ ]) }


# a request that has got to the upstream, and waits there
sub slow {
    my ($uri, $re) = @_;

    my ($path) = $uri =~ /^([^?]*)/;

    $re ||= qr{^GET \Q$path\E};

    my $n = grep { /$re/ } upstream_lines($t);
    my $s = http_get($uri, on(), start => 1);

    wait_for(sub { grep({ /$re/ } upstream_lines($t)) > $n });

    return $s;
}


# how many more there may be: 2, or 0, 1 or 3
sub free {
    $name++;

    my @s = map { slow("/hold=$name/$_/?$arg") } 1, 2;
    my $more = http_get("/a?$arg", on());

    upstream_release($t, $name);

    my $n = grep { http_end($_)->status() == 200 } @s;

    return $n + ($more->status() == 200);
}
