#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside

# Triggers in requests that a page of another site makes an operator's browser
# send: they have no effect, unless the browser opens a link in its own tab.

use strict;
use warnings;

use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ rewrite /);

$t->conf(<<'EOF');
profile_zone store:4m;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / {
        return 200 "ordinary $args $http_x_profile";
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

my $host = 'localhost';

my @navigate = ('Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document');

# the headers of the browser, and whether GET and POST with a trigger take
# effect

my @cases = (
    [ 'a client that is no browser', 1, 1 ],
    [ 'an address that was typed', 1, 1, 'Sec-Fetch-Site: none', @navigate ],
    [ 'a page of the same origin', 1, 1, 'Sec-Fetch-Site: same-origin' ],
    [ 'a form of the same origin', 1, 1, "Origin: http://$host" ],
    [ 'a page of the same site', 1, 1, 'Sec-Fetch-Site: same-site',
      'Origin: https://www.example.com' ],
    [ 'a link of another site', 1, 0, 'Sec-Fetch-Site: cross-site',
      @navigate ],
    [ 'an image of another site', 0, 0, 'Sec-Fetch-Site: cross-site',
      'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: image' ],
    [ 'a frame of another site', 0, 0, 'Sec-Fetch-Site: cross-site',
      'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: iframe' ],
    [ 'a script of another site', 0, 0, 'Sec-Fetch-Site: cross-site',
      'Sec-Fetch-Mode: cors', 'Sec-Fetch-Dest: empty',
      'Origin: https://example.com' ],
    [ 'a page that another site loads beforehand', 0, 0,
      'Sec-Fetch-Site: cross-site', @navigate, 'Sec-Purpose: prefetch' ],
    [ 'two answers about the site', 0, 0, 'Sec-Fetch-Site: same-origin',
      'Sec-Fetch-Site: cross-site' ],
    [ 'a form of another site, by an old browser', 0, 0,
      'Origin: http://example.com' ],
    [ 'a page without an origin', 0, 0, 'Origin: null' ],
);

for my $case (@cases) {
    my ($what, $get, $post, @headers) = @$case;

    effect($what, $get, http_get('/?performance_bar=flamegraph',
                                 headers => \@headers));
    effect("$what, POST", $post, http_post('/?performance_bar=flamegraph', '',
                                           headers => \@headers));
    effect("$what, by header", $get,
           http_get('/', headers => [ @headers, 'X-Profile: flamegraph' ]));
    effect("$what, recording", $get,
           http_get('/?performance_bar=record', headers => \@headers), 1);
}

like($t->read_log(), qr/trigger "performance_bar" refused by "Sec-Fetch-Site"/,
     'the log tells why');


sub effect {
    my ($what, $expected, $r, $record) = @_;

    if ($expected) {
        ok($r->header('X-Profile-Id'), "$what: a profile");

    } else {
        is($r->header('X-Profile-Id'), undef, "$what: no profile");
        like($r->body(), $record ? qr/^ordinary performance_bar=record/
                                 : qr/^ordinary .*flamegraph/,
             "$what: the trigger is the application's");
    }
}
