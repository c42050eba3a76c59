#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: beside

# Stages beyond phases and filters: callbacks of an upstream, the log phase, and
# what a request was redirected to.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ auth_request empty_gif mirror proxy
                                    rewrite /);

$t->conf(<<'EOF');
proxy_cache_path %%TESTDIR%%/cache keys_zone=one:1m;

upstream closed {
    server 127.0.0.1:8083 max_fails=0;
    server 127.0.0.1:8081 max_fails=0 backup;
}

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /none {
        alias %%TESTDIR%%/none;
        error_page 404 /other;
    }

    location /auth {
        auth_request /check;
        proxy_pass http://127.0.0.1:8081;
    }

    location /buffered {
        proxy_pass http://127.0.0.1:8081;
    }

    location /direct {
        proxy_buffering off;
        proxy_pass http://127.0.0.1:8081;
    }

    location /cached {
        proxy_cache one;
        proxy_cache_valid 1m;
        proxy_pass http://127.0.0.1:8081;
    }

    location /retried {
        proxy_next_upstream error;
        proxy_pass http://closed;
    }

    location /mirrored {
        mirror /gif1;
        mirror /gif2;
        proxy_pass http://127.0.0.1:8081;
    }

    location /gif {
        empty_gif;
    }

    location /plain {
        profile_endpoint on;
        proxy_pass http://127.0.0.1:8081;
    }

    location /-/profile/ {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8082;

    profile_endpoint on;
    profile_spans off;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }
}
EOF

run_upstream($t, 8081);
run_server($t, 8083, \&closes);
$t->run();
$t->wait_for_socket(8083);

my $p = profile_get('/wait=10/')->profile('wall');
cmp_ok($p->weight_below(qr/^upstream: process header$/), '>', 0,
       'the header of an upstream has its stage');
cmp_ok($p->weight_below(qr/^upstream: finalize$/), '>', 0,
       'the end of an upstream has its stage');
is($p->weight_below(qr/^(?:redirect|subrequest) /), 0,
   'a request without redirects has no such stage');

for my $uri (qw{ /buffered/wait=10/ /direct/wait=10/ }) {
    my $r = http_post("$uri?performance_bar=flamegraph"
                      . '&profile_format=speedscope', 'x' x 100000);

    $p = ProfileTest::Profile->new($r)->profile('wall');
    is(join(' ', map { count($p, qr/(?:^|;)$_(?:;|$)/) }
            'upstream: create request', 'upstream: process header',
            'upstream: input filter init', 'upstream: input filter',
            'upstream: finalize', 'request body filters'), '1 1 1 1 1 1',
       "$uri has each callback of its upstream once");
    is(count($p, qr/upstream: .*upstream: /), 0,
       "$uri has no callback within another one");
}

$p = profile_get('/cached')->profile('wall');
is(count($p, qr/upstream: create key(?:;|$)/), 1,
   'the key of a cache has its stage');

$p = profile_get('/retried')->profile('wall');
is(count($p, qr/upstream: reinit request(?:;|$)/), 1,
   'another try has its stage');
is(count($p, qr/upstream first byte \S+ \(try 2\)$/), 1,
   'the wait for another try has its number');

$p = profile_get('/none')->profile('wall');
cmp_ok($p->weight_below(qr/^redirect \/other$/), '>', 0,
       'a redirect has its stage');
is(count($p, qr/(?:^|;)redirect \/other;.*phase content/), 1,
   'the phases of a redirect are below its stage');
is(count($p, qr/redirect \/other;.*redirect \/other/), 0,
   'a redirect has one stage');

# one after the other, both with a content handler

$p = profile_get('/mirrored')->profile('wall');
is(count($p, qr/(?:^|;)subrequest \/gif$_;phase content/), 1,
   "subrequest $_") for 1, 2;
is(count($p, qr/subrequest .*;subrequest /), 0,
   'no subrequest is within another one');

$p = profile_get('/auth')->profile('wall');
cmp_ok($p->weight_below(qr/^subrequest \/check$/), '>', 0,
       'a subrequest has its stage');

$p = profile_get('/wait=10/', port => 8082)->profile('wall');
is($p->weight_below(qr/^upstream: /), 0,
   'without spans, callbacks have no stage');


# each log handler of a recorded request runs once

my $r = http_get('/plain?performance_bar=record');
is($r->status(), 200, 'a recorded request is served');

my $id = $r->header('X-Profile-Id');
wait_for(sub { $r = http_get("/-/profile/p/$id/folded");
               $r->status() == 200 });

like($r->content(), qr/phase log: ngx_http_log_module/,
     'handlers of the log phase have a stage');
is(scalar(grep { / "GET \/plain/ } split /\n/, $t->read_file('access.log')),
   1, 'a recorded request is logged once');
is(scalar(grep { / "GET \/auth/ } split /\n/, $t->read_file('access.log')),
   1, 'a replaced response is logged once');


# reads the request and closes the connection without a response
sub closes {
    my ($c) = @_;
    sysread($c, my $request, 65536);
}


# 1 if a stack matches; a span ends a stack, unless a sample hit its callback
sub count {
    my ($p, $re) = @_;
    return (grep { join(';', @{$_->[0]}) =~ $re } $p->stacks()) ? 1 : 0;
}
