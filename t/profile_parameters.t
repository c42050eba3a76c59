#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: beside

# A control character makes the value of a parameter a wrong value, wherever the
# character is.  The error names the parameter, the whole value and
# the values that the parameter takes.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new();

$t->conf(<<'EOC');
profile_zone p:1m;
profile_bar on;
profile_continuous on;

server {
    listen 127.0.0.1:8080;

    location / {
        return 200 "served\n";
    }

    location /asked/ {
        profile_endpoint on;
        return 200 "served\n";
    }

    location /-/profile/ {
        profile_console;
    }

    location = /metrics {
        profile_metrics;
    }

    location /debug/pprof/ {
        profile_console;
    }
}
EOC

$t->run();

my $unknown = '0' x 32;
my $diff = "/-/profile/diff.json?a=$unknown&b=$unknown";
my $workers = qr/"all", "self" or the process id of a worker/;
my $number = qr/a number from /;
my $text = qr/a text of 1 to 255 bytes without control characters/;
my $moment = qr/a time as in /;

my @parameters = (
    [ '/-/profile/cpu', 'workers', 'all', $workers ],
    [ '/-/profile/cpu', 'workers', 'self', $workers ],
    [ '/-/profile/cpu', 'labels', 'trace', qr/"trace"/ ],
    [ '/-/profile/cpu', 'seconds', '0.1', $number ],
    [ '/-/profile/cpu', 'requests', '1', $number ],
    [ '/-/profile/cpu', 'frequency', '99', $number ],
    [ '/-/profile/cpu', 'format', 'folded', qr/"speedscope"/ ],
    [ '/-/profile/cpu', 'uri', '/', $text ],
    [ '/-/profile/cpu', 'server', 'localhost', $text ],
    [ '/-/profile/cpu', 'location', '/', $text ],
    [ '/-/profile/cpu', 'from', '-1m', $moment ],
    [ '/-/profile/cpu', 'from', 'now', $moment ],
    [ '/-/profile/cpu?from=-1m&', 'to', 'now', $moment ],
    [ '/-/profile/cpu?from=-1m&', 'worker', '0', qr/the number of a worker/ ],
    [ '/-/profile/object', 'interval', '1k', qr/a size from / ],
    [ '/debug/pprof/profile', 'workers', 'all', $workers ],
    [ '/debug/pprof/profile', 'seconds', '1', $number ],
    [ '/debug/pprof/profile', 'labels', 'trace', qr/"trace"/ ],
    [ '/debug/pprof/allocs', 'seconds', '1', $number ],
    [ '/-/profile/?', 'format', 'json', qr/"json"/ ],
    [ '/-/profile/?', 'cause', 'script timer', qr/a cause of waiting/ ],
    [ '/-/profile/profiles.json', 'limit', '1', $number ],
    [ '/-/profile/profiles.json', 'before', '1', $number ],
    [ "$diff&", 'shares', 'on', qr/"on" or "off"/ ],
    [ "$diff&", 'shares', 'off', qr/"on" or "off"/ ],
);

for (@parameters) {
    my ($uri, $name, $value, $takes) = @$_;

    $uri .= '?' unless $uri =~ /\?/;
    $value =~ s/ /%20/g;

    for my $wrong ("$value%00", "$value%00x", "%00$value", "$value%01",
                   "$value%0a", "$value%1b", "$value%7f")
    {
        my $r = http_get("$uri$name=$wrong");
        my $shown = $wrong =~ s/%20/ /r;

        is($r->status(), 400, "$uri$name=$wrong: the status is 400");
        like($r->content() =~ s/\\"/"/gr,
             qr/"?$name"? is "\Q$shown\E", it must be $takes/,
             'the error has the parameter, its value, and what it takes');
        unlike($r->content(), qr/[\x00-\x09\x0b-\x1f\x7f]/,
               'the error has no control characters');
    }
}

for my $value ('wall%00', 'wall%00x', 'wall%0a', '%00wall') {
    my $r = http_get("/asked/?performance_bar=flamegraph&profile_mode=$value");

    is($r->status(), 400, "profile_mode=$value: the status is 400");
    like($r->content(), qr/^profile_mode takes "wall", "cpu" or "object"$/,
         'the error has the parameter and what it takes');
}

for my $value ('POST%00', 'POST%0a', '%01') {
    my $r = http(<<"EOF");
POST /-/profile/bar/order?method=$value&uri=/&mode=cpu HTTP/1.1
Host: localhost
X-Profile-Console: 1
Content-Length: 0
Connection: close

EOF

    is($r->status(), 400, "method=$value: the status is 400");
    like($r->content(), qr/method/, 'the error has the parameter');
}

is(http_get('/-/profile/cpu?seconds=0.1&workers=all')->status(), 200,
   'the value without a control character is accepted');
