#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# The console's location: where it may be, how its URLs are found, what all of
# its answers have in common, and who may change something.

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

is($r->status(), 200, 'status');
is($r->header('Content-Type'), 'application/json', 'status, content type');

my $json = decode_json($r->content());

ok((grep { $_ == $json->{worker}{pid} } $t->worker_pids()), 'status, a worker');
cmp_ok($json->{unwind}{rows}, '>', 1000, 'status, unwind tables');
is_deeply($json->{captures}, [], 'status, no captures');

is(http_get('/-/profile')->status(), 301, 'no slash');
is(http_get('/-/profile/none')->status(), 404, 'no route');

$r = http_get('/plain?a=b');
is($r->status(), 301, 'no slash in the location');
like($r->header('Location'), qr{^http://[^/]+/plain/\?a=b$},
     'no slash in the location, redirect');
is(http_get('/plain/status.json')->status(), 200, 'with a slash');
is(http_get('/plainer')->status(), 404, 'not below it');
is(http_get('/plainer/status.json')->status(), 404, 'not below it, a route');

is(http_get($_)->status(), 200, $_)
    for qw{ /regex/one/ /regex/two/status.json /exact/status.json
            /a%20b/status.json /rewritten/status.json /broken/x
            /named/status.json };

is(http_get('/regex/one/none')->status(), 404, 'no route, regex');
is(http_get('/denied/status.json')->status(), 403, 'denied');

is(http_get('/status.json', port => 8081)->status(), 200, 'root');


# what all answers have

for my $uri (qw{ /-/profile/status.json /-/profile/status /-/profile/none }) {
    $r = http_get($uri);

    is($r->header('Cache-Control'), 'no-store', "$uri, not cached");
    is($r->header('X-Content-Type-Options'), 'nosniff', "$uri, nosniff");
    is($r->header('Referrer-Policy'), 'same-origin', "$uri, referrer");
    like("$r", qr/^X-Frame-Options: DENY\r$/m, "$uri, frames");

    my @csp = "$r" =~ /^Content-Security-Policy: (.*?)\r$/mg;
    is(scalar @csp, 1, "$uri, one policy");
    like($csp[0], qr/^default-src 'none'; (?!.*unsafe)/, "$uri, policy");

    is($r->header('Set-Cookie'), undef, "$uri, nothing of the site");
}

like(http_get('/-/profile/none', headers => [ 'Accept: application/json' ])
         ->content(),
     qr/^\{"error":"the console has nothing at .*none\\""\}$/,
     'an error for a script');
like(http_get('/-/profile/none')->content(), qr{^the console has nothing at},
     'an error for people');


# forms

$r = http_get('/-/profile/status', headers => [ 'Accept: application/json' ]);
is($r->header('Content-Type'), 'application/json', 'by Accept');
is($r->header('Vary'), 'Accept, Accept-Encoding', 'by Accept, vary');

$r = http_get('/-/profile/status',
              headers => [ 'Accept: text/html, application/json;q=0.9' ]);
like($r->header('Content-Type'), qr{^text/html}, 'for a browser');

is_deeply([ $r->content() =~ m{<a href="./(\w*)" aria-current="page">} ],
          [ 'status' ], 'the current page');
like($r->content(), qr{<meta charset="utf-8">.*<title>Status}s, 'its head');
unlike($r->content(), qr/\{\{|\}\}/, 'all is filled in');

my ($css) = $r->content() =~ m{href="./(assets/[^"]*/console\.css)"};
isnt($css, undef, 'a style in the page');

$r = http_get("/-/profile/$css", headers => [ 'Accept-Encoding: gzip' ]);
is($r->status(), 200, 'asset');
is($r->header('Cache-Control'), 'private, max-age=31536000, immutable',
   'asset, cached');
like($r->header('Content-Type'), qr{^text/css}, 'asset, content type');

$r = http_get('/-/profile/assets/00000000/console.css');
is($r->status(), 200, 'asset of another version');
is($r->header('Cache-Control'), 'no-store', 'asset of another version, cache');
is(http_get('/-/profile/assets/x/none.css')->status(), 404, 'no asset');

$r = http_get('/-/profile/status', headers => [ 'Accept-Encoding: gzip' ]);

SKIP: {
    skip('it is short', 2) if length($r->content()) < 1024;

    is($r->header('Content-Encoding'), 'gzip', 'gzip');
    unlike($r->body(), qr/<html/, 'gzip, body');
}

$r = http_head('/-/profile/status.json');
is($r->status(), 200, 'HEAD');
is($r->body(), '', 'HEAD, no body');

$r = http_post('/-/profile/status', 'a=b');
is($r->status(), 405, 'POST');
is($r->header('Allow'), 'GET, HEAD', 'POST, allow');

