#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: keep
# runs: quiet

# profile_keep with "slow=", with and without a condition, in servers and in
# locations.  The access log tells the request's time, which the module does not
# make, and whether a profile was kept.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua rewrite /);

$t->conf(<<'EOF');
log_format keep '$request_uri $request_time $profile_id $profile_dropped';
access_log %%TESTDIR%%/keep.log keep;

map $status $failed {
    "~^5"    1;
    default  0;
}

# only time

server {
    listen 127.0.0.1:8080;
    server_name slow;
    profile_keep slow=150ms rate=1000;

    location /wait/ {
        content_by_lua_block {
            ngx.sleep(tonumber(ngx.var.uri:match("%d+")) / 1000)
            ngx.say("waited")
        }
    }

    location /run/ {
        content_by_lua_block {
            local till = os.clock() + tonumber(ngx.var.uri:match("%d+")) / 1000
            while os.clock() < till do end
            ngx.say("ran")
        }
    }

    location /off/ {
        profile_keep off;
        rewrite ^/off(/.*) $1 break;
        content_by_lua_block { ngx.sleep(0.3) ngx.say("waited") }
    }

    location /moved/ {
        profile_keep off;
        rewrite ^/moved(/.*) $1 last;
    }

    location /later/ {
        profile_keep slow=10s;
        content_by_lua_block { ngx.sleep(0.3) ngx.say("waited") }

        location /later/nested/ {
            content_by_lua_block { ngx.sleep(0.3) ngx.say("waited") }
        }
    }

    location /failed {
        return 503;
    }

    location /-/profile/ {
        profile_console;
    }
}

# either reason is enough

server {
    listen 127.0.0.1:8080;
    server_name both;
    profile_keep $failed slow=150ms rate=1000;

    location /wait {
        content_by_lua_block { ngx.sleep(0.2) ngx.say("waited") }
    }

    location /fast {
        return 200 fast;
    }

    location /failed {
        return 503;
    }
}

# only in locations, with different shares

server {
    listen 127.0.0.1:8080;
    server_name locations;

    location /none {
        return 200 none;
    }

    location /half {
        profile_keep 1 share=50% rate=1000;
        return 200 half;
    }

    location /all {
        profile_keep 1 rate=1000;
        return 200 all;
    }

    location /turns {
        profile_keep 1 share=50% rate=1000;
        content_by_lua_block { ngx.sleep(0.001) ngx.say("turns") }
    }
}
EOF

$t->run();

for ([ 'slow', '/wait/10', 0 ], [ 'slow', '/wait/300', 1 ],
     [ 'slow', '/run/1', 0 ], [ 'slow', '/run/300', 1 ],
     [ 'slow', '/off/wait/300', 0 ], [ 'slow', '/moved/wait/300', 1 ],
     [ 'slow', '/later/', 0 ], [ 'slow', '/later/nested/', 0 ],
     [ 'slow', '/failed', 0 ], [ 'slow', '/none', 0 ],
     [ 'both', '/wait', 1 ], [ 'both', '/failed', 1 ], [ 'both', '/fast', 0 ],
     [ 'locations', '/none', 0 ], [ 'locations', '/all', 1 ])
{
    my ($host, $uri, $kept) = @$_;

    http_get("$uri?$host", headers => [ "Host: $host" ]);

    my ($line) = logged("$uri?$host");
    my ($time, $id, $dropped) = (split / /, $line)[1 .. 3];

    like($id, $kept ? qr/^[0-9a-f]{32}$/ : qr/^-$/,
         "$host$uri " . ($kept ? 'is kept' : 'is not kept')) or diag($line);
    is($dropped, '-', "$host$uri is not dropped");

    cmp_ok($time, '>=', 0.15, "$host$uri: the log says so too")
        if $kept && $uri =~ /wait|run/;
}

# each location has its own share of its requests, whether they wait or not

for my $uri ('/half', '/turns', '/all') {
    http_get("$uri?share", headers => [ 'Host: locations' ]) for 1 .. 200;

    my @lines = logged("$uri?share", 200);
    my $kept = grep { !/ - -$/ } @lines;

    is(scalar(@lines), 200, "$uri: all requests are logged");

    if ($uri eq '/all') {
        is($kept, 200, "$uri: all requests are chosen");
        next;
    }

    cmp_ok($kept, '>=', 60, "$uri: not fewer than its share are chosen");
    cmp_ok($kept, '<=', 140, "$uri: not more than its share are chosen");
}


sub logged {
    my ($uri, $n) = @_;
    my @lines;

    wait_for(sub { @lines = grep { /^\Q$uri\E / }
                            split /\n/, $t->read_file('keep.log');
                   @lines >= ($n // 1) });

    return @lines;
}
