#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: bar
# runs: beside
#
# The Performance Bar in pages: which pages get it, at which place, and how
# their headers change.  A client that may not profile gets the same bytes as
# without the bar.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip proxy ssi sub /);

my $common = <<'EOF';
        location / {
            sub_filter PLACE '</body';
            sub_filter_once off;
        }

        location /plain/ {
            alias %%TESTDIR%%/;
        }

        location /gzip/ {
            gzip on;
            gzip_min_length 0;
            alias %%TESTDIR%%/;
        }

        location /ssi/ {
            ssi on;
            alias %%TESTDIR%%/;
        }

        location /proxy/ {
            proxy_pass http://127.0.0.1:8082/;
        }

        location /stream/ {
            proxy_pass http://127.0.0.1:8082/;
            proxy_buffering off;
        }

        location /small/ {
            gzip off;
            output_buffers 1 7;
            postpone_output 0;
            alias %%TESTDIR%%/;
        }

        location /late/ {
            proxy_pass http://127.0.0.1:8083/;
            proxy_buffering off;
        }

        location /cached {
            add_header Cache-Control 'public, max-age=60';
            add_header Expires 'Thu, 01 Jan 2037 00:00:00 GMT';
            add_header Surrogate-Control 'max-age=60';
            add_header Some-CDN-Cache-Control 'max-age=60';
            add_header X-Accel-Expires 60;
            add_header Content-MD5 Q2hlY2sgSW50ZWdyaXR5IQ==;
            add_header X-Kept yes;
            alias %%TESTDIR%%/page.html;
            default_type text/html;
        }

        location /status/ {
            default_type text/html;

            location /status/404 {
                return 404;
            }

            location /status/302 {
                return 302 /page.html;
            }

            location /status/204 {
                return 204;
            }

            location /status/200 {
                return 200 "<p>a</p>";
            }

            location /status/echo {
                return 200 "<$http_cookie|$cookie_site>";
            }

            location /status/empty {
                return 200 "";
            }
        }

        location /attached {
            add_header Content-Disposition 'attachment; filename=a.html';
            alias %%TESTDIR%%/page.html;
            default_type text/html;
        }

        location /inline {
            add_header Content-Disposition 'inline; filename=a.html';
            alias %%TESTDIR%%/page.html;
            default_type text/html;
        }

        location /compressed {
            add_header Content-Encoding br;
            alias %%TESTDIR%%/page.html;
            default_type text/html;
        }

        location /wide {
            alias %%TESTDIR%%/page.html;
            default_type 'text/html; charset=utf-16';
        }

        location /sse {
            alias %%TESTDIR%%/page.html;
            default_type text/event-stream;
        }

        location /text {
            alias %%TESTDIR%%/page.html;
            default_type text/plain;
        }

        location /policy {
            add_header Content-Security-Policy "default-src 'none'; style-src 'nonce-no'; Script-Src 'self' 'nonce-abc+/='; img-src 'self'";
            alias %%TESTDIR%%/page.html;
            default_type text/html;
        }

        location /styles {
            add_header Content-Security-Policy "style-src 'nonce-no'";
            alias %%TESTDIR%%/page.html;
            default_type text/html;
        }
EOF

my $bars = <<'EOF';
        location /policies/ {
            alias %%TESTDIR%%/;
            add_header Content-Security-Policy $http_x_first;
            add_header Content-Security-Policy $http_x_second;
            add_header Content-Security-Policy-Report-Only $http_x_report;
        }

        location /nonce {
            set $n 'a"b<c';
            profile_bar_nonce $n;
            alias %%TESTDIR%%/page.html;
            default_type text/html;
        }

        location /off/ {
            profile_bar off;
            alias %%TESTDIR%%/;
        }

        location /endpoint/ {
            profile_endpoint off;
            alias %%TESTDIR%%/;
        }

        location /cookie/ {
            profile_if $cookie_profile;
            alias %%TESTDIR%%/;
        }

        location /headers/ {
            proxy_pass http://127.0.0.1:8085/;
            proxy_pass_request_body off;
        }

        location /-/profile/ {
            profile_console;
        }
EOF

my $v2 = $t->has_module('v2') ? 'listen 127.0.0.1:8086 http2;' : '';

$t->conf(<<"EOF");
types {
    text/html html;
}

server {
    listen 127.0.0.1:8080;
    listen unix:%%TESTDIR%%/bar.sock;
    $v2

    profile_endpoint on;
    profile_allow unix: 127.0.0.1;
    profile_bar on;

$common
$bars
}

# pages of a server without the module

server {
    listen 127.0.0.1:8081;

$common
}

# pages for clients without permission

server {
    listen 127.0.0.1:8084;

    profile_endpoint on;
    profile_allow 192.0.2.1;
    profile_bar on;

$common
$bars
}

server {
    listen 127.0.0.1:8082;

    location / {
    }

    location /chunked/ {
        alias %%TESTDIR%%/;
        ssi on;
    }
}
EOF

my $page = "<!DOCTYPE html>\n<title>A page</title>\n<body>\n"
    . "<script>document.write('</body>')</script>\n"
    . ("<p>" . 'x' x 60 . "</p>\n") x 40 . "</BODY>\n</html>\n";

$t->write_file('page.html', $page);
$t->write_file('long.html', $page =~ s/(?=<\/BODY)/'<p>' . 'y' x 300000/er);
$t->write_file('sub.html', "<p>a</p>PLACE></html>");
$t->write_file('none.html', '<p>no end of the body </bod');
$t->write_file('include.html',
               '<p>a</p><!--#include virtual="/ssi/tail.html" --><p>z</p>');
$t->write_file('tail.html', "<p>tail</p></body></html>");
$t->write_file('held.html', '<p>a</p> < b </bod>' x 100 . '</body>');

run_late($t);
run_upstream($t, 8085);
$t->run();

my $bar = qr{<script\ async\ src="/-/profile/bar\.js\?v=[0-9a-f]{8}"
             \ data-id="[0-9a-f]{32}"\ data-console="/-/profile/"
             \ data-arg="performance_bar"\ data-header="X-Profile"
             \ data-method="GET"\ data-modes="wall\ cpu[a-z ]*"
             \ data-store></script>}x;


# where it is put

placed($_) for qw{ /page.html /plain/page.html /gzip/page.html /ssi/page.html
                   /proxy/page.html /stream/page.html /small/page.html
                   /proxy/chunked/page.html /cached /inline /styles
                   /long.html /plain/long.html /proxy/long.html
                   /gzip/long.html /small/long.html };

like(body('/sub.html'), qr{^<p>a</p>$bar</body></html>$},
     'a page that sub_filter changes gets the bar');
like(body('/none.html'), qr{^<p>no end of the body </bod$bar$},
     'a page without an end tag gets the bar at its end');
like(body('/small/none.html'), qr{^<p>no end of the body </bod$bar$},
     'a page without an end tag in small buffers gets the bar');
like(body('/ssi/include.html'),
     qr{^<p>a</p><p>tail</p>$bar</body></html><p>z</p>$},
     'an end tag of a subrequest gets the bar, once');
like(body('/small/held.html'),
     qr{^(?:<p>a</p>\ <\ b\ </bod>){100}$bar</body>$}x,
     'bytes may be held back many times');
like(body('/status/404'), qr{404 Not Found.*$bar</body>}s,
    'an error page gets the bar');
like(body('/status/200'), qr{^<p>a</p>$bar$},
    'the text of "return" gets the bar');
like(page('/page.html', headers => [ 'Sec-Fetch-Dest: document' ]),
     qr/$bar/, 'a request with "Sec-Fetch-Dest: document" gets the bar');
like(page('/page.html', unix => $t->testdir() . '/bar.sock'), qr/$bar/,
     'a page by a unix socket gets the bar');
like(page('/page.html', version => '1.0'), qr/$bar/,
    'a page by HTTP/1.0 gets the bar');


# the page is not delayed until its end

for my $uri (qw{ /late/split /late/rest }) {
    my $s = page($uri, start => 1);
    my $got = '';

    wait_for(sub { sysread($s, $got, 65536, length($got)); $got =~ /first/ });
    like($got, qr/first/, "the first part of $uri is sent at once");
    go_on($t);
    wait_for(sub { !sysread($s, $got, 65536, length($got)) });

    $got =~ s/^.*?\r\n\r\n//s;
    $got =~ s/([0-9a-f]+)\r\n(.*?)\r\n(?=[0-9a-f]+\r\n)/$2/gs;
    $got =~ s/0\r\n\r\n$//;

    like($got, qr{^<p>first</p><p>second</p>$bar(?:</body></html>)?$},
         "the later part of $uri gets the bar");
}


# headers

my $r = page('/plain/page.html');
my $plain = http_get('/plain/page.html', port => 8081);

is($r->header('Cache-Control'), 'private, no-store',
    'caches must not store a page with a bar');
is($r->header($_), undef,
    "a page with a bar has no $_") for qw/ ETag Last-Modified Accept-Ranges /;
isnt($plain->header($_), undef, "the page without a bar has a header $_")
    for qw/ ETag Last-Modified Accept-Ranges /;
is($r->header('Content-Length'), length($r->body()),
    'the length is that of the page with the bar');
cmp_ok($r->header('Content-Length') // 0, '>', length($page),
    'the page with the bar is longer');

$r = page('/cached');
is($r->header('Cache-Control'), 'private, no-store',
    'the header Cache-Control of a page is replaced');
is(scalar(() = "$r" =~ /^Cache-Control:/mg), 1,
    'the page has one header Cache-Control');
is($r->header($_), undef, "a page with a bar loses the header $_")
    for qw/ Expires Surrogate-Control Some-CDN-Cache-Control X-Accel-Expires
            Content-MD5 /;
is($r->header('X-Kept'), 'yes', 'other headers remain');

$r = page('/plain/page.html', headers => [ 'Range: bytes=0-9' ]);
is($r->status(), 200, 'a request for a range gets the whole page');

$r = page('/gzip/page.html', headers => [ 'Accept-Encoding: gzip' ]);
is($r->header('Content-Encoding'), 'gzip', 'a page with a bar is compressed');
like($r->content(), qr/$bar<\/BODY>/, 'the compressed page contains the bar');
is($r->header('Cache-Control'), 'private, no-store',
    'caches must not store the compressed page');

like(page('/policy'), qr{ nonce="abc\+/="></script></BODY},
     'the bar gets the nonce of the page\'s policy');
# the directive that decides about scripts, wherever it stands

for my $case ([ "script-src-attr 'nonce-no'; script-src 'nonce-yes'", 'yes' ],
              [ "script-src 'nonce-no'; script-src-elem 'nonce-yes'", 'yes' ],
              [ "script-src-elem 'nonce-yes'; script-src 'nonce-no'", 'yes' ],
              [ "script-src-elem 'nonce-yes'", 'yes' ],
              [ "script-src-elem 'self'; script-src 'nonce-no'", undef ],
              [ "script-src-attr 'nonce-no'", undef ],
              [ "script-src-attr 'none'; default-src 'nonce-yes'", 'yes' ],
              [ "default-src 'nonce-no'; script-src 'self'", undef ],
              [ "script-src 'self'; default-src 'nonce-no'", undef ],
              [ "default-src 'self';\tSCRIPT-SRC-ELEM\t'self' 'NONCE-Yes'",
                'Yes' ],
              [ "script-src 'nonce-yes'; script-src 'nonce-no'", 'yes' ],
              [ "style-src 'nonce-no'; script-src-elem 'sha256-x' 'nonce-yes'",
                'yes' ],
              [ "script-src x'nonce-no'", undef ],
              [ "script-src 'nonce-no", undef ],
              [ "script-src 'nonce-'", undef ],
              [ "report-uri /script-src; img-src 'nonce-no'", undef ],
              [ "img-src 'self', script-src 'nonce-yes'", 'yes' ],
              [ "", undef ], [ ";;, ;", undef ])
{
    my ($policy, $want) = @$case;
    my ($nonce) = page('/policies/page.html',
                       headers => [ "X-First: $policy" ])
                  =~ / nonce="([^"]*)"/;

    is($nonce, $want, "the nonce of $policy");
}

for my $name (qw/ Second Report /) {
    like(page('/policies/page.html', headers =>
              [ "X-First: script-src 'self'",
                "X-$name: script-src-elem 'nonce-yes'" ]),
         qr/ nonce="yes"/, "the nonce of a later policy: $name");
}

like(page('/nonce'), qr{ nonce="a&quot;b&lt;c"></script></BODY},
     'the bar gets the nonce of the directive, escaped');

my %ids = map { page('/page.html') =~ /data-id="(\w+)"/ ? ($1 => 1) : () }
              1 .. 5;
is(scalar keys %ids, 5, 'each page has its own id');

like(http_post('/status/200', '', headers => [ 'Accept: text/html' ]),
     qr/data-method="POST"/, 'a response to POST gets the bar');


# responses without a bar, although the client may profile

my $etag = $plain->header('ETag');

for my $case (
    [ 'script', '/plain/page.html', 'Sec-Fetch-Dest: empty' ],
    [ 'frame', '/plain/page.html', 'Sec-Fetch-Dest: iframe' ],
    [ 'library', '/plain/page.html', 'X-Requested-With: XMLHttpRequest' ],
    [ 'no page is asked for', '/plain/page.html', 'Accept: */*' ],
    [ 'not modified', '/plain/page.html', "If-None-Match: $etag" ],
    [ 'redirect', '/status/302' ],
    [ 'no content', '/status/204' ],
    [ 'empty', '/status/empty' ],
    [ 'attachment', '/attached' ],
    [ 'compressed before', '/compressed' ],
    [ 'UTF-16', '/wide' ],
    [ 'events', '/sse' ],
    [ 'text', '/text' ],
)
{
    my ($name, $uri, @headers) = @$case;

    same($name, $uri, 8080, @headers);
}

same('range of a script', '/plain/page.html', 8080, 'Sec-Fetch-Dest: empty',
     'Range: bytes=0-9');

unlike(page('/off/page.html'), qr/bar\.js/,
    'a location may switch the bar off');
unlike(page('/endpoint/page.html'), qr/bar\.js/,
       'a location without profile_endpoint has no bar');
unlike(page('/-/profile/status'), qr/bar\.js/,
    'a page of the console has no bar');
unlike(page('/page.html?performance_bar=flamegraph'), qr/bar\.js/,
       'a page that is a profile has no bar');
unlike(page('/page.html?performance_bar=flamegraph&profile_format=folded'),
       qr/_bar_body/, 'a profile does not contain the code of the bar');

my $head = http_head('/plain/page.html', headers => [ 'Accept: text/html' ]);
is($head->header('Content-Length'), length($page),
    'HEAD returns the length of the page without a bar');
is($head->header('ETag'), $etag,
    'HEAD returns the ETag of the page without a bar');

like($t->read_log(),
     qr/no bar in a page that came with "Content-Encoding: br"/,
     'the log names the reason for a missing bar');


# clients without permission

same("not permitted, $_", $_, 8084)
    for qw{ /page.html /plain/page.html /gzip/page.html /ssi/include.html
            /proxy/page.html /cached /status/404 /policy /sub.html
            /none.html };

same('not permitted, data', '/plain/page.html', 8084,
     'Sec-Fetch-Dest: empty');

unlike(page('/cookie/page.html'), qr/bar\.js|Server-Timing/,
    'a client that profile_if refuses gets no bar');
like(page('/cookie/page.html', headers => [ 'Cookie: profile=1' ]), qr/$bar/,
     'a client that profile_if admits gets the bar');
unlike($t->read_log(), qr/refused/, 'refusals of the bar are not logged');


# data

$r = http_get('/plain/page.html', headers => [ 'Sec-Fetch-Dest: empty' ]);
like($r->header('Server-Timing') // '', qr/^profile;desc="[0-9a-f]{32}"$/,
     'data for a script gets an id in Server-Timing');
is($r->header('ETag'), $etag, 'data for a script keeps its ETag');
is($r->body(), $page, 'data for a script keeps its body');
is(http_get('/page.html', headers => [ 'Sec-Fetch-Dest: image' ])
       ->header('Server-Timing'), undef, 'an image gets no id');
is(http_get('/page.html', headers => [ 'Accept: image/webp,*/*' ])
       ->header('Server-Timing'), undef,
    'an image for an old browser gets no id');
is(http_get('/page.html')->header('Server-Timing'), undef,
    'data for other tools gets no id');


# facts

my ($id) = page('/proxy/page.html') =~ /data-id="(\w+)"/;
my $facts = facts($id);

is($facts->{method}, 'GET', 'facts contain the method');
is($facts->{uri}, '/proxy/page.html', 'facts contain the URI');
is($facts->{status}, 200, 'facts contain the status');
is($facts->{protocol}, 'HTTP/1.1', 'facts contain the protocol');
is($facts->{tls}, undef, 'facts without TLS have no version of it');
is($facts->{connection_requests}, 1,
    'facts contain the number of requests on the connection');
like($facts->{worker}, qr/^\d+$/, 'facts contain the worker');
cmp_ok($facts->{sent}, '>', length($page),
    'facts contain the number of sent bytes');
is($facts->{upstreams}[0]{peer}, '127.0.0.1:' . port(8082),
   'facts contain the upstream server');
is($facts->{upstreams}[0]{status}, 200,
    'facts contain the status of the upstream');
like($facts->{upstreams}[0]{$_}, qr/^\d+$/, "facts contain $_ of the upstream")
    for qw/ connect header response received /;

my %answer = %{decode_json(http_get('/-/profile/bar/requests?id=a,,'
                                    . 'f' x 32 . ",$id")->content())};
is(scalar @{$answer{requests}}, 1, 'facts of unknown ids are omitted');

(my $path) = page('/page.html') =~ m{src="(/-/profile/bar\.js\?v=\w+)"};
$r = http_get($path);
is($r->status(), 200, 'the script is served');
like($r->header('Content-Type'), qr{^text/javascript},
    'the script has the type of JavaScript');
like($r->header('Cache-Control'), qr/immutable/, 'browsers cache the script');
like($r->content(), qr/--prof-bg.*\.pill/s, 'the script contains its styles');
unlike(http_get('/-/profile/bar.js?v=0')->header('Cache-Control'),
       qr/immutable/, 'browsers do not cache the script for another version');


# orders

my @orderly = (headers => [ 'X-Profile-Console: 1' ]);

for my $case (
    [ 'no method', 'uri=/a&mode=wall', '"method" must have from 1 to 15' ],
    [ 'no URI', 'method=GET&mode=wall', '"uri" must have from 1 to 255' ],
    [ 'header', 'method=GET&uri=/a%0D%0Aa:b&mode=wall',
      '"uri" must have from 1 to 255' ],
    [ 'attribute', 'method=GET;Domain=a&uri=/a&mode=wall',
      '"method" is "GET;Domain=a"' ],
    [ 'mode', 'method=GET&uri=/a&mode=x',
      '"mode" is "x", it must be "wall", "cpu" or "object"' ],
)
{
    my ($name, $args, $want) = @$case;

    $r = http_post("/-/profile/bar/order?$args", '', @orderly);
    is($r->status(), 400, "an order with $name has the status 400");
    like($r->body(), qr/\Q$want\E/,
        "an order with $name gets an error that names the reason");
    is($r->header('Set-Cookie'), undef, "an order with $name sets no cookie");
}

is(http_post('/-/profile/bar/order?method=GET&uri=/a&mode=wall', '')
       ->status(), 403, 'an order of another site is refused');

$r = order('POST', '/status/200', 'cpu');

my $attributes = qr{Path=(/[^;]*); Max-Age=(\d+); HttpOnly; SameSite=Strict};

like($r->header('Set-Cookie'), qr{^\w+=[\w.]+; $attributes$},
     'the cookie of an order is limited to its site and path');

my ($order, $cookie) = @$r{qw/ id cookie /};

is(recorded('POST', '/status/200'), undef,
    'a request without the order is not recorded');
is(recorded('GET', '/status/200', $cookie), undef,
    'an order ignores another method');
is(recorded('POST', '/status/404', $cookie), undef,
    'an order ignores another URI');
is(recorded('POST', '/status/200/a', $cookie), undef,
    'an order ignores a URI below its own');
is(recorded('POST', '/status/200', $cookie =~ s/=\K./x/r), undef,
   'a guessed order has no effect');
is(recorded('POST', '/status/200', $cookie =~ s/$order/A$order/r), undef,
   'an order with another id has no effect');

$r = post('/status/200?a=b', $cookie);
is($r->header('X-Profile-Id'), $order,
    'an order records the request that fits');
is($r->body(), '<p>a</p>', 'an order does not change the body');
like($r->header('Set-Cookie'), qr{^\w+=; Path=/status/200; Max-Age=0;},
     'the response removes the cookie of the order');

my $stored = wait_for(sub {
    my $r = http_get("/-/profile/bar/requests?profile=$order");
    return decode_json($r->content())->{profiles}[0];
});
is($stored, $order, 'the profile of an order is stored');
is(decode_json(http_get("/-/profile/p/$stored.json")->content())->{mode},
   'cpu', 'the profile has the mode of the order');

is(recorded('POST', '/status/200', $cookie), undef,
    'an order records one request only');

# the application

$cookie = order('POST', '/status/echo', 'wall')->{cookie};

for my $case (
    [ "$cookie", '', '' ],
    [ "$cookie; site=a", 'site=a', 'a' ],
    [ "site=a; $cookie", 'site=a', 'a' ],
    [ "b=c; $cookie; site=a", 'b=c; site=a', 'a' ],
    [ "$cookie; site=a; $cookie", 'site=a', 'a' ],
)
{
    my ($cookies, $want, $site) = @$case;

    is(http_get('/status/echo', headers => [ "Cookie: $cookies" ])->body(),
       "<$want|$site>", "the application sees only its own cookies: $want");
}

is(http_post('/status/echo', '',
             headers => [ "Cookie: site=a; $cookie" ])->body(),
   '<site=a|a>',
    'the application sees only its own cookies of a recorded request');

# several headers, and an order that is the only cookie of its header

$cookie = order('GET', '/headers/', 'wall')->{cookie};

for my $case (
    [ [ "Cookie: $cookie" ], 'A: 1|B: 2' ],
    [ [ "Cookie: $cookie", "Cookie: $cookie" ], 'A: 1|B: 2' ],
    [ [ "Cookie: $cookie", 'Cookie: c=d' ], 'A: 1|Cookie: c=d|B: 2' ],
    [ [ 'Cookie: c=d', "Cookie: $cookie" ], 'A: 1|Cookie: c=d|B: 2' ],
    [ [ 'Cookie: c=d', "Cookie: e=f; $cookie" ],
      'A: 1|Cookie: c=d|Cookie: e=f|B: 2' ],
    [ [ map({ "C$_: $_" } 1 .. 17), "Cookie: $cookie" ],
      join('|', 'A: 1', map({ "C$_: $_" } 1 .. 17), 'B: 2') ],
    [ [ map({ "C$_: $_" } 1 .. 18), "Cookie: $cookie",
        map({ "C$_: $_" } 19 .. 30) ],
      join('|', 'A: 1', map({ "C$_: $_" } 1 .. 30), 'B: 2') ],
)
{
    my ($headers, $want) = @$case;

    is(sent(http_get('/headers/', headers => [ 'A: 1', @$headers, 'B: 2' ])
                ->body()),
       $want, 'the application sees only its own headers');
}

is(sent(http("GET /headers/ HTTP/1.0\r\nCookie: $cookie\r\n\r\n")->body()),
   '', 'a header that contains only an order is removed');

SKIP: {
    my $curl = `sh -c "curl -V 2>&1"` =~ /HTTP2/;

    skip 'no curl with HTTP/2', 3 unless $curl && $t->has_module('v2');

    my $url = 'http://127.0.0.1:' . port(8086) . '/headers/';
    my @curl = ('curl', '-s', '--http2-prior-knowledge', '-A', '',
                '-H', 'Accept:', $url);

    for my $case (
        [ [ $cookie ], '' ],
        [ [ $cookie, 'c=d' ], 'cookie: c=d' ],
        [ [ 'c=d', $cookie, 'e=f' ], 'cookie: c=d; e=f' ],
    )
    {
        my ($cookies, $want) = @$case;

        my (undef, $body) = $t->command(@curl, map { ('-H', "Cookie: $_") }
                                               @$cookies);

        is(sent($body), $want, "in HTTP/2 the application sees \"$want\"");
    }
}

$cookie = order('GET', '/headers/', 'wall')->{cookie};
like(http_get('/headers/', headers => [ 'Cookie: c=d', "Cookie: $cookie" ])
         ->header('X-Profile-Id') // '', qr/^[0-9a-f]{32}$/,
     'an order may be in the second header');

# orders of clients that may not profile

$cookie = order('POST', '/cookie/page.html', 'wall')->{cookie};
$r = post('/cookie/page.html', $cookie);
is($r->header('X-Profile-Id'), undef,
    'an order needs the permission of the location');
is($r->header('Set-Cookie'), undef,
    'an order without permission keeps waiting');
like(recorded('POST', '/cookie/page.html', "profile=1; $cookie") // '',
     qr/^[0-9a-f]{32}$/, 'an order with permission is recorded');

$cookie = order('GET', '/plain/page.html', 'wall')->{cookie};
is(http_get('/plain/page.html', port => 8084,
            headers => [ "Cookie: $cookie" ])->header('X-Profile-Id'), undef,
   'an order of a client that may not profile has no effect');

# paths that a cookie cannot have, and those of other bytes

like(order('GET', '/plain/page.html;a=b', 'wall')->header('Set-Cookie'),
     qr{Path=/; }, 'the path of an order cannot contain a semicolon');

$cookie = order('POST', '/status/%2532%2530%2530', 'wall')->{cookie};
like(recorded('POST', '/status/%32%30%30', $cookie) // '',
     qr/^[0-9a-f]{32}$/, 'the path of an order may be sent with escapes');

# canceled, and after a reload

$r = http_post('/-/profile/bar/order?cancel=1&method=POST&uri=/status/200'
               . '&mode=wall', '', @orderly);
is($r->status(), 204, 'an order can be canceled');
like($r->header('Set-Cookie'), qr{^\w+=; Path=/status/200; Max-Age=0;},
     'the cookie of a canceled order is removed');

$cookie = order('POST', '/status/200', 'wall')->{cookie};
$t->reload();
is(facts($id)->{uri}, '/proxy/page.html', 'facts survive a reload');
like(recorded('POST', '/status/200', $cookie) // '', qr/^[0-9a-f]{32}$/,
     'orders survive a reload');


# configurations

my $locations = 'location / { } location /-/p { profile_console; }';

for my $case (
    [ 'no console', 'profile_bar on; profile_endpoint on;',
      qr{\[emerg\].*"profile_bar\ on"\ needs\ a\ console:\ add
         \ "location\ /-/profile/\ \{\ profile_console;\ \}"
         \ to\ the\ server\ in\ \S+:\d+}x ],
    [ 'nobody profiles', "profile_bar on; $locations",
      qr{\[warn\].*"profile_bar\ on"\ has\ no\ effect\ without
         \ "profile_endpoint\ on"}x ],
    [ 'off', "profile_bar off; profile_endpoint on; $locations",
      qr/successful/ ],
    [ 'any text', "profile_bar maybe; $locations",
      qr/invalid value "maybe" in "profile_bar" directive, it must be/ ],
)
{
    my ($name, $directives, $want) = @$case;

    my (undef, $out) = $t->test_config(
        "%%MODULES%%\nevents { }\nhttp { server { listen 127.0.0.1:8089; "
        . "$directives } }\n");

    like($out, $want, "nginx -t reports: $name");
}


sub page {
    my ($uri, %options) = @_;

    my @headers = @{delete $options{headers} || []};

    push @headers, 'Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8'
        unless grep { /^Accept:/ } @headers;

    return http_get($uri, headers => \@headers, %options);
}


sub body {
    return page(@_)->content();
}


# the response, with the order's id and cookie
sub order {
    my ($method, $uri, $mode) = @_;

    my $r = http_post("/-/profile/bar/order?method=$method&uri=$uri"
                      . "&mode=$mode", '', @orderly);

    $r->{id} = decode_json($r->content())->{id};
    ($r->{cookie}) = ($r->header('Set-Cookie') // '') =~ /^([^;]*)/;

    return $r;
}


# the client's headers in what the upstream server was sent
sub sent {
    my ($request) = @_;

    my (undef, @headers) = split(/\r\n/, $request);

    return join('|', grep { !/^(?:Host|Connection):/i } @headers);
}


# the profile of a request with cookies
sub recorded {
    my ($method, $uri, $cookie) = @_;

    my $r = $method eq 'POST' ? post($uri, $cookie)
            : http_get($uri, headers => [ "Cookie: $cookie" ]);

    return $r->header('X-Profile-Id');
}


sub post {
    my ($uri, $cookie) = @_;

    return http_post($uri, 'c=d',
                     headers => [ $cookie ? "Cookie: $cookie" : () ]);
}


# waits for the facts of a request
sub facts {
    my ($id) = @_;

    return wait_for(sub {
        my $r = http_get("/-/profile/bar/requests?id=$id");

        return decode_json($r->content())->{requests}[0];
    });
}


sub placed {
    my ($uri) = @_;

    my $got = body($uri);
    my $want = http_get($uri, port => 8081)->content();

    my $n = ($got =~ s/$bar(?=<\/BODY>)//g);

    is($n, 1, "$uri gets one bar, before its end");
    ok($got eq $want, "$uri keeps all other bytes")
        or diag(length($got) . ' of ' . length($want));
}


# compares a response with that of a server without the module
sub same {
    my ($name, $uri, $port, @headers) = @_;

    my ($got, $want) = map {
        my $s = page($uri, port => $_, headers => \@headers) . '';
        $s =~ s/^Date: .*\r\n//m;
        $s =~ s/^Location: http:\/\/[^\/]+//m;

        if ($_ == 8080 && $s =~ s/^Server-Timing: profile;.*\r\n//m) {
            $s =~ s/^Cache-Control: private\r\n//m or $s .= 'not private';
        }

        $s;
    } ($port, 8081);

    ok($got eq $want, $name) or diag($got, "\n", $want);
}


# An upstream that sends a part of a page, and the rest when go_on() says so.
# The parts are split in the end tag.
sub run_late {
    my ($t) = @_;

    run_server($t, 8083, sub {
        my ($c) = @_;
        my $line = read_request($c) =~ s/\r\n.*//sr;

        syswrite($c, "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"
                     . '<p>first</p>');

        wait_for(sub { -e $t->testdir() . '/go' });
        unlink($t->testdir() . '/go');

        for my $part ('<p>second</p><', '/bo', "dy></html>") {
            last if $line =~ /rest/ && $part ne '<p>second</p><';
            syswrite($c, $line =~ /rest/ ? $part =~ s/<$//r : $part);
            select(undef, undef, undef, 0.05);
        }
    });
}


sub go_on {
    my ($t) = @_;

    $t->write_file('go', '');
}
