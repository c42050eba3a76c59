#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: console
# runs: beside
#
# The location of the console: where it may be configured, how its URLs are
# found, what its answers have in common, and which clients may change
# something.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip rewrite /);

$t->conf(<<'EOF');
gzip on;
gzip_types *;
add_header X-Frame-Options DENY;
add_header Content-Security-Policy "default-src 'none'" always;
add_header Set-Cookie "a=b";

server {
    listen 127.0.0.1:8080;

    location /-/profile/ {
        profile_console;
    }

    location /plain {
        profile_console;
    }

    location ~ ^/regex/(one|two)/ {
        profile_console;
    }

    location = /exact/status.json {
        profile_console;
    }

    location "/a b/" {
        profile_console;
    }

    location /denied/ {
        deny all;
        profile_console;
    }

    location /rewritten/ {
        rewrite ^/rewritten/(.*) /-/profile/$1;
    }

    location /broken/ {
        rewrite ^ /elsewhere/status break;
        profile_console;
    }

    location /named {
        error_page 418 = @console;
        return 418;
    }

    location @console {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8081;

    location / {
        profile_console;
    }
}
EOF

$t->run();


# where it is

my $r = http_get('/-/profile/status.json');

is($r->status(), 200, 'the status is served');
is($r->header('Content-Type'), 'application/json', 'the status is JSON');

my $json = decode_json($r->content());

ok((grep { $_ == $json->{worker}{pid} } $t->worker_pids()),
    'the status names a worker');
cmp_ok($json->{unwind}{rows}, '>', 1000,
    'the status has the number of rows of the unwind tables');
is_deeply($json->{captures}, [], 'the status lists no captures');

is(http_get('/-/profile')->status(), 301,
    'the URL of the console without a slash is redirected');
is(http_get('/-/profile/none')->status(), 404,
    'an unknown URL of the console has the status 404');

$r = http_get('/plain?a=b');
is($r->status(), 301,
    'a location without a slash redirects to its URL with a slash');
like($r->header('Location'), qr{^http://[^/]+/plain/\?a=b$},
     'the redirect keeps the arguments');
is(http_get('/plain/status.json')->status(), 200,
    'a location without a slash serves URLs below it');
is(http_get('/plainer')->status(), 404,
    'a URL that only begins as the location is not a URL of the console');
is(http_get('/plainer/status.json')->status(), 404,
    'a route behind such a URL is not served');

is(http_get($_)->status(), 200, $_)
    for qw{ /regex/one/ /regex/two/status.json /exact/status.json
            /a%20b/status.json /rewritten/status.json /broken/x
            /named/status.json };

is(http_get('/regex/one/none')->status(), 404,
    'an unknown URL in a regex location has the status 404');
is(http_get('/denied/status.json')->status(), 403,
    '"deny" refuses a URL of the console');

is(http_get('/status.json', port => 8081)->status(), 200,
    'a console may be at the root');


# the headers of all answers

for my $uri (qw{ /-/profile/status.json /-/profile/status /-/profile/none }) {
    $r = http_get($uri);

    is($r->header('Cache-Control'), 'no-store', "$uri is not cached");
    is($r->header('X-Content-Type-Options'), 'nosniff',
        "$uri forbids guesses of its type");
    is($r->header('Referrer-Policy'), 'same-origin',
        "$uri sends its referrer only to its origin");
    like("$r", qr/^X-Frame-Options: DENY\r$/m, "$uri cannot be framed");

    my @csp = "$r" =~ /^Content-Security-Policy: (.*?)\r$/mg;
    is(scalar @csp, 1, "$uri has one policy");
    like($csp[0], qr/^default-src 'none'; (?!.*unsafe)/,
        "the policy of $uri forbids inline code");

    is($r->header('Set-Cookie'), undef, "$uri has no headers of the site");
}

like(http_get('/-/profile/none', headers => [ 'Accept: application/json' ])
         ->content(),
     qr/^\{"error":"the console has nothing at .*none\\""\}$/,
     'scripts get errors as JSON');
like(http_get('/-/profile/none')->content(), qr{^the console has nothing at},
     'other clients get errors as text');


# forms

$r = http_get('/-/profile/status', headers => [ 'Accept: application/json' ]);
is($r->header('Content-Type'), 'application/json',
    '"Accept: application/json" selects JSON');
is($r->header('Vary'), 'Accept, Accept-Encoding',
    'the answer depends on Accept');

$r = http_get('/-/profile/status',
              headers => [ 'Accept: text/html, application/json;q=0.9' ]);
like($r->header('Content-Type'), qr{^text/html}, 'browsers get a page');

is_deeply([ $r->content() =~ m{<a href="./(\w*)" aria-current="page">} ],
          [ 'status' ], 'the page marks its own link');
like($r->content(), qr{<meta charset="utf-8">.*<title>Status}s,
    'the page has a title');
unlike($r->content(), qr/\{\{|\}\}/, 'all placeholders are replaced');

my ($css) = $r->content() =~ m{href="./(assets/[^"]*/console\.css)"};
isnt($css, undef, 'the page links a style');

$r = http_get("/-/profile/$css", headers => [ 'Accept-Encoding: gzip' ]);
is($r->status(), 200, 'a style is served');
is($r->header('Cache-Control'), 'private, max-age=31536000, immutable',
   'browsers cache a style');
like($r->header('Content-Type'), qr{^text/css}, 'a style has its type');

$r = http_get('/-/profile/assets/00000000/console.css');
is($r->status(), 200, 'a style of another version is served');
is($r->header('Cache-Control'), 'no-store',
    'browsers do not cache a style of another version');
is(http_get('/-/profile/assets/x/none.css')->status(), 404,
    'an unknown asset has the status 404');

$r = http_get('/-/profile/status', headers => [ 'Accept-Encoding: gzip' ]);

SKIP: {
    skip('it is short', 2) if length($r->content()) < 1024;

    is($r->header('Content-Encoding'), 'gzip', 'a page is compressed');
    unlike($r->body(), qr/<html/, 'the compressed body contains no text');
}

$r = http_head('/-/profile/status.json');
is($r->status(), 200, 'HEAD is permitted');
is($r->body(), '', 'HEAD has no body');

$r = http_post('/-/profile/status', 'a=b');
is($r->status(), 405, 'POST is not permitted');
is($r->header('Allow'), 'GET, HEAD', 'the error names the permitted methods');

