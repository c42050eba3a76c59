#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: capture stacks
# runs: beside

# Requests with very many stages, turns, or names: functions have their samples
# and their shares, the heaviest names are shown, and what is merged is counted.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ lua proxy /);

$t->conf(<<'EOF');
init_by_lua_block {
    text = ("x"):rep(1000)

    function hash(n)
        for i = 1, n do ngx.md5(text) end
    end
}

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /say {
        content_by_lua_block { for i = 1, 200000 do ngx.say(i) end }
    }

    # the same work, one part of four in the content and three in a filter
    location /hash {
        content_by_lua_block {
            for i = 1, 20000 do
                hash(1)
                ngx.print("x")
            end
        }
        body_filter_by_lua_block { hash(3) }
    }

    location /storm {
        content_by_lua_block {
            for i = 1, 400 do
                ngx.location.capture(i == 395 and "/wait=250/slow"
                                               or "/wait=0/item" .. i)
            end
        }
    }

    location /large {
        proxy_buffering off;
        proxy_pass http://127.0.0.1:8082;
    }

    location /wait {
        proxy_pass http://127.0.0.1:8081;
    }
}
EOF

run_upstream($t, 8081);
run_server($t, 8082, \&large);
$t->run();


# the time of the stages is that of their functions

my ($info, $p) = stages('/say');
cmp_ok(part($p, qr/^content_by_lua\(/), '>', 0.8,
       'most of the time with 400,000 borders is below the Lua line');
cmp_ok($info->{merged_stages}, '>', 100000,
       'borders that were not timed are counted');
is($info->{frequency_end}, $info->{frequency_asked},
   'the frequency is that of the beginning');
is($p->total(), $info->{cpu}, 'the sum of the stages is that of the turns');

($info, $p) = stages('/hash');
my $in = part($p, qr/^body filters$/);
cmp_ok(abs($in - 0.75), '<', 0.15, "a stage with three parts of four has $in");
$in = part($p, qr/\bhash$/);
cmp_ok($in, '>', 0.8, "the function that does the work has $in");

($info, $p) = stages('/large');
cmp_ok($info->{sampled_cpu}, '>', 0.8 * $info->{cpu},
       "the time of $info->{turns} turns is below functions");


# the heaviest names are shown

$p = profile_get('/storm')->profile('wall');
cmp_ok($p->weight_below(qr{^subrequest /wait=250/slow$}) / 1e6, '>', 200,
       'of 400 subrequests the slow one has its name');


$t->teardown();


sub stages {
    my ($uri) = @_;

    my $profile = profile_get("$uri?performance_bar=flamegraph&"
                              . 'profile_format=speedscope&profile_mode=cpu');

    return ($profile->json()->{profile_info}, $profile->profile('cpu'));
}


# the part of the time below frames that match
sub part {
    my ($p, $re) = @_;
    return sprintf('%.3f', $p->weight_below($re) / ($p->total() || 1));
}


sub large {
    my ($c) = @_;

    read_request($c) // return;

    syswrite($c, "HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n");

    for (1 .. 600) {
        my $sent = 0;

        while ($sent < 100000) {
            $sent += syswrite($c, 'x' x (100000 - $sent)) || return;
        }
    }
}
