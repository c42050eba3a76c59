#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: console
# runs: beside

# The console sends one response to each wrong request.  A second response would
# be taken for the answer to the client's next request on the connection, so each
# wrong request here is followed by one whose answer is known.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new();

$t->conf(<<'EOF');
profile_zone p:1m;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / {
        return 200 "next answer\n";
    }

    location /p/ {
        profile_console;
    }
}
EOF

$t->run();

my $unknown = '0' x 32;
my $s = http_get('/', keepalive => 1, start => 1);

is(http_end($s)->content(), "next answer\n",
   'the first response answers the first request');

for ([ 'GET', "p/$unknown", 404 ],
     [ 'GET', "p/$unknown.json", 404 ],
     [ 'GET', "p/$unknown/speedscope", 404 ],
     [ 'GET', "p/$unknown/none", 404 ],
     [ 'HEAD', "p/$unknown/speedscope", 404 ],
     [ 'DELETE', "p/$unknown", 404 ],
     [ 'POST', "p/$unknown/pin", 404 ],
     [ 'POST', "p/$unknown/unpin", 404 ],
     [ 'POST', "p/$unknown/names", 404 ],
     [ 'POST', "p/$unknown/delete", 404 ],
     [ 'POST', "p/$unknown/none", 404 ],
     [ 'GET', "profiles.json?limit=none", 400 ],
     [ 'GET', "profiles.json?before=none", 400 ],
     [ 'GET', "diff.json?a=$unknown", 400 ],
     [ 'GET', "diff.json?a=$unknown&b=$unknown", 404 ],
     [ 'GET', "diff/svg?a=$unknown&b=$unknown", 404 ],
     [ 'GET', "diff/none?a=$unknown&b=$unknown", 404 ],
     [ 'GET', "cpu?seconds=none", 400 ],
     [ 'GET', "cpu?frequency=none", 400 ],
     [ 'GET', "cpu?workers=none", 400 ],
     [ 'GET', "cpu?uri=", 400 ],
     [ 'GET', "cpu?labels=none", 400 ],
     [ 'GET', "none", 404 ],
     [ 'POST', "status", 405 ])
{
    my ($method, $uri, $status) = @$_;

    my $r = http(<<"EOF", socket => $s);
$method /p/$uri HTTP/1.1
Host: localhost
X-Profile-Console: 1
Content-Length: 0

EOF

    is($r->status(), $status, "$method $uri: the status is $status");

    is(http_get('/', keepalive => 1, socket => $s)->content(),
       "next answer\n", "$method $uri: the next response answers the next "
                        . "request");
}
