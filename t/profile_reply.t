#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# The reply that replaces a response: its status and its headers.  It has no
# part of the original response.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()
    ->has(qw/ auth_basic autoindex charset empty_gif gzip limit_req proxy
              rewrite ssi sub /);

$t->conf(<<'EOF');
default_type text/plain;
log_format reply '$uri $status $body_bytes_sent "$request" '
                 '[$upstream_response_length]';
access_log %%TESTDIR%%/reply.log reply;

limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;

map $http_upgrade $upgrade {
    default upgrade;
    '' close;
}

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8082 sndbuf=4k;

    profile_endpoint on;
    profile_allow 127.0.0.1;

    location / {
        add_header X-Added yes always;
        add_trailer X-Trailer yes always;
        expires 1h;
    }

    location /gzip/ {
        alias %%TESTDIR%%/;
        gzip on;
        gzip_min_length 1;
        gzip_vary on;
    }

    location /charset/ {
        alias %%TESTDIR%%/;
        charset utf-8;
    }

    location /sub/ {
        alias %%TESTDIR%%/;
        sub_filter_types text/plain;
        sub_filter small large;
        ssi on;
    }

    location /autoindex/ {
        alias %%TESTDIR%%/;
        autoindex on;
    }

    location /gif {
        empty_gif;
    }

    location /return/ {
        location /return/200 { return 200 "text"; }
        location /return/201 { return 201; }
        location /return/204 { return 204; }
        location /return/301 { return 301 /other; }
        location /return/302 { return 302 http://example.com/; }
        location /return/307 { return 307 /other; }
        location /return/308 { return 308 /other; }
        location /return/400 { return 400; }
        location /return/404 { return 404 "not here"; }
        location /return/410 { return 410; }
        location /return/418 { return 418; }
        location /return/429 { return 429; }
        location /return/500 { return 500; }
        location /return/503 { return 503; }
        location /return/599 { return 599; }
        location /return/999 { return 999 "?"; }
    }

    location /return/444 {
        return 444;
    }

    location /basic/ {
        auth_basic closed;
        auth_basic_user_file %%TESTDIR%%/users;
    }

    location /limit/ {
        limit_req zone=one;
        alias %%TESTDIR%%/;
    }

    location /size/ {
        client_max_body_size 1;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /page/ {
        error_page 404 /small.txt;
    }

    location /page-200/ {
        error_page 404 =200 /small.txt;
    }

    location /page-302/ {
        error_page 404 http://example.com/;
    }

    location /page-none/ {
        error_page 404 /page-none/404;
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8081/;
    }

    location /intercept/ {
        proxy_intercept_errors on;
        error_page 500 /small.txt;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /closed/ {
        proxy_pass http://127.0.0.1:8083/;
    }

    location /timeout/ {
        proxy_read_timeout 200ms;
        proxy_pass http://127.0.0.1:8081/wait=2000/;
    }

    location /slow/ {
        limit_rate 100;
        alias %%TESTDIR%%/;
    }

    location /buffers/ {
        proxy_buffers 4 4k;
        proxy_buffer_size 4k;
        proxy_max_temp_file_size 0;
        proxy_pass http://127.0.0.1:8084/;
    }

    location /unbuffered/ {
        proxy_buffering off;
        proxy_pass http://127.0.0.1:8084/;
    }

    location /file/ {
        proxy_buffers 4 4k;
        proxy_pass http://127.0.0.1:8084/;
    }

    location /rate/ {
        proxy_buffering off;
        limit_rate 4m;
        proxy_pass http://127.0.0.1:8084/;
    }

    location /upgrade/ {
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $upgrade;
        proxy_pass http://127.0.0.1:8085;
    }
}

server {
    listen 127.0.0.1:8084;
}
EOF

mkdir($t->testdir() . '/dir') or die "mkdir: $!\n";
$t->write_file('small.txt', "small\n");
$t->write_file('large.txt', join('', map { "line $_ of many\n" } 1 .. 100000));
$t->write_file('users', "user:{PLAIN}password\n");

run_upstream($t, 8081);
run_upgrade($t, 8085);
$t->run();

my $arg = 'performance_bar=flamegraph';
my $large = -s $t->testdir() . '/large.txt';

my @names = sort('Server', 'Date', 'Content-Type', 'Content-Length',
                 'Connection', 'Cache-Control', 'X-Content-Type-Options',
                 'X-Profile-Id', 'X-Profiled-Status', 'Content-Disposition',
                 'Vary');
my @gzip_names = sort(@names, 'Content-Encoding');


# values

my $r = http_get("/small.txt?$arg");

is($r->header('Cache-Control'), 'private, no-store',
    'caches must not store the reply');
is($r->header('X-Content-Type-Options'), 'nosniff',
    'the reply forbids guesses of its type');
is($r->header('Content-Length'), length($r->body()),
    'the length is that of the reply');
is_deeply([ names($r) ], \@names, 'the reply has only headers of the module');
like($r, qr{^HTTP/1\.1 200 OK\r\n}, 'the status line is 200 OK');


# the reply has no header of the original response

for my $uri (qw{ /small.txt /gzip/small.txt /gzip/large.txt
                 /charset/small.txt /sub/small.txt /autoindex/ /gif
                 /proxy/cookie=a/ /return/302 /basic/ /proxy/status=206/cookie=a
                 /proxy/status=401/cookie=a /none /proxy/status=201/cookie=a })
{
    $r = http_get("$uri?$arg", headers => [ 'Accept-Encoding: gzip',
                                            'TE: trailers' ]);

    is_deeply([ names($r) ], \@gzip_names,
        "the reply of $uri has only headers of the module") or diag($r);
    is($r->header('Vary'), 'Accept, Accept-Encoding',
        "the reply of $uri depends on Accept headers");
    is($r->header('Content-Type'), 'application/json',
        "the reply of $uri is JSON");
    ProfileTest::Profile->new($r);
}

$r = http_get("/small.txt?$arg", headers => [ 'Range: bytes=1-2' ]);

is_deeply([ names($r) ], \@names,
    'the reply for a range has only headers of the module');
is($r->header('X-Profiled-Status'), 206,
    'the original status of a range is 206');
is($r->status(), 200, 'the reply for a range is complete');
ProfileTest::Profile->new($r);

is(http_get("/small.txt?$arg", headers => [ 'Range: bytes=100-' ])
   ->header('X-Profiled-Status'), 416,
    'the original status of an invalid range is 416');


# statuses

for my $status (200, 201, 204, 301, 302, 307, 308, 400, 404, 410, 418, 429,
                500, 503, 599, 999)
{
    status_is("/return/$status", $status, "return $status");
}

for my $status (200, 204, 206, 301, 304, 400, 401, 404, 500, 502, 503, 600) {
    status_is("/proxy/status=$status/", $status, "upstream, $status");
}

my $modified = http_get('/small.txt')->header('Last-Modified');
my $etag = http_get('/small.txt')->header('ETag');

status_is('/small.txt', 304, 'not modified',
          "If-Modified-Since: $modified");
status_is('/small.txt', 304, 'not modified, by its tag',
          "If-None-Match: $etag");
status_is('/none', 404, 'not found');
status_is('/dir', 301, 'directory');
status_is('/basic/', 401, 'no password');
status_is('/basic/', 404, 'password', 'Authorization: Basic '
          . 'dXNlcjpwYXNzd29yZA==');
status_is('/closed/', 502, 'no upstream');
status_is('/timeout/', 504, 'slow upstream');
status_is('/limit/small.txt', 200, 'limit_req, the first');
status_is('/limit/small.txt', 503, 'limit_req, the second');
status_is('/page/', 404, 'error_page');
status_is('/page-200/', 200, 'error_page =200');
status_is('/page-302/', 302, 'error_page, redirect');
status_is('/page-none/', 404, 'error_page that is missing');
status_is('/intercept/status=500/', 500, 'upstream, error_page');

is(http_post("/small.txt?$arg", 'body')->header('X-Profiled-Status'), 405,
   'the original status of a forbidden method is 405');
is(http_post("/size/?$arg", 'body')->header('X-Profiled-Status'), 413,
   'the original status of a large body is 413');

is(http_get("/return/444?$arg") . '', '',
    'a connection that "return 444" closes has no reply');


# HEAD, as of any response

for my $uri (qw{ /small.txt /none /return/200 /return/204 /return/301 /gif
                 /proxy/ /proxy/status=500/ /gzip/large.txt /timeout/ })
{
    $r = http_head("$uri?$arg", headers => [ 'Accept-Encoding: gzip' ]);

    is($r->status(), 200, "HEAD of $uri is profiled");
    is($r->body(), '', "HEAD of $uri has no body");
    is_deeply([ names($r) ], \@gzip_names,
        "HEAD of $uri has only headers of the module");
    cmp_ok($r->header('Content-Length'), '>', 100,
        "HEAD of $uri has the length of the reply");
}


# versions, connections

$r = http("GET /proxy/?$arg HTTP/1.0\r\n\r\n");

like($r, qr{^HTTP/1\.1 200 }, 'a request of HTTP/1.0 is profiled');
is_deeply([ names($r) ], \@names,
    'the reply of HTTP/1.0 has only headers of the module');
is($r->header('Connection'), 'close',
    'the reply of HTTP/1.0 closes the connection');
ProfileTest::Profile->new($r);

my $s = http("GET /small.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
             start => 1);
http_end($s);

is(http("GET /small.txt?$arg HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        socket => $s)->header('Connection'), 'keep-alive',
   'a connection of HTTP/1.0 may be kept alive');
is(http("GET /small.txt HTTP/1.0\r\n\r\n", socket => $s)->body(), "small\n",
   'the next request of HTTP/1.0 is answered');

$s = undef;

for my $uri ('/return/204', '/return/301', '/none', '/small.txt', '/proxy/',
             '/gzip/large.txt', '/proxy/status=500/', '/proxy/status=304/')
{
    $s ||= http("GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
                start => 1);
    http_end($s);

    $r = http("GET $uri?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n",
              socket => $s);
    is($r->header('Connection'), 'keep-alive',
        "the connection is kept alive after $uri");

    http("GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
         socket => $s, start => 1);
}

is(http_end($s)->body(), "small\n",
    'the next request on the connection is answered');


# the reply itself is sent in pieces, to a client with small buffers

$r = http_get("/gzip/large.txt?$arg&profile_frequency=10000",
              headers => [ 'Accept-Encoding: gzip' ], port => 8082);

is(length($r->body()), $r->header('Content-Length'),
    'small buffers do not cut the reply');
ProfileTest::Profile->new($r);


# the rate of the original is not that of the reply

$r = http_get("/slow/small.txt?$arg", timeout => 8);

is($r->error(), '', 'limit_rate does not cause an error');
is(length($r->body()), $r->header('Content-Length'),
    'limit_rate does not cut the reply');


# The original is produced to its end, however nginx gets it.

for my $uri (qw{ buffers unbuffered file rate }) {
    $r = http_get("/$uri/large.txt?$arg");

    is($r->header('X-Profiled-Status'), 200, "a request to $uri is profiled");
    ProfileTest::Profile->new($r);
}


# names of files

for my $case ([ '/small.txt', 'localhost-small.txt' ],
              [ '/', 'localhost' ],
              [ '/a/b/c', 'localhost-a-b-c' ],
              [ '/%22;%20x=%0d%0a', 'localhost-x' ],
              [ '/..;/%5c..%5c', 'localhost-..-..' ],
              [ '/%c3%a4%ff%01%7f', 'localhost' ],
              [ '/---//%2d', 'localhost' ],
              [ '/a', 'example.com-a', 'EXAMPLE.com:8080' ],
              [ '/a', '1-a', '[::1]' ],
              [ '/a', '127.0.0.1-a', '127.0.0.1' ])
{
    my ($uri, $want, $host) = @$case;

    $host ||= 'localhost';
    $r = http_get("$uri?$arg", headers => [ "Host: $host" ]);

    like($r->header('Content-Disposition') // $r,
         qr/^attachment;\ filename="\Q$want\E-wall-
            \d{8}T\d{6}Z\.speedscope\.json"$/x,
        "the file name of $host$uri has host, path, mode and time");
}

for my $host ('h' x 63, join('.', ('h' x 60) x 4)) {
    $r = http_get('/' . 'x' x 2000 . "?$arg", headers => [ "Host: $host" ]);

    like($r->header('Content-Disposition'),
         qr/^attachment; filename="[\w.-]{80,254}"$/,
        'the file name of a long path is cut');
}


# A filter that gives up makes nginx close the connection after the response:
# there is no time for another one.

$r = http_get("/small.txt?$arg", headers => [ 'If-Match: "other"' ]);

is($r->status(), 412, 'a response of a filter is not replaced');
is($r->header('X-Profile-Id'), undef,
    'a response of a filter has no profile id');
like($t->read_log(), qr/profile: a response of a filter cannot be replaced/,
     'the log names the filter as the reason');


# a switch of protocols is let through

$s = http("GET /upgrade/?$arg&x=y HTTP/1.1\r\nHost: localhost\r\n"
          . "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n",
          port => 8080, start => 1);
$r = http_end($s);

is($r->status(), 101, 'a switch of protocols is not replaced');
is($r->header('X-Profile-Id'), undef,
    'a switch of protocols has no profile id');
is($r->header('X-Request'), 'GET /upgrade/?x=y HTTP/1.1',
   'the upstream of a switch of protocols does not see the trigger');

syswrite($s, "hello\n");
is(scalar(readline($s)), "HELLO\n", 'the new protocol works');
syswrite($s, "again\n");
is(scalar(readline($s)), "AGAIN\n", 'the new protocol continues to work');
close($s);

like($t->read_log(), qr/profile: a switch of protocols cannot be replaced/,
     'the log names the switch of protocols as the reason');

is(http_get("/upgrade/?$arg")->header('X-Profiled-Status'), 426,
   'a refused switch of protocols is replaced');


# the access log has the sent bytes, and the request line with the trigger

$t->stop();

my $log = $t->read_file('reply.log');

like($log, qr{^/none 200 \d{3,} "GET /none\?\Q$arg\E HTTP/1\.1" \[-\]$}m,
     'the access log has the status and size of the reply');
like($log, qr{^/buffers/large\.txt 200 \d+ ".*" \[$large\]$}m,
     'all of the original response is read');
like($log, qr{^/unbuffered/large\.txt 200 \d+ ".*" \[$large\]$}m,
     'all of an unbuffered original response is read');
like($log, qr{^/rate/large\.txt 200 \d+ ".*" \[$large\]$}m,
     'all of a rate-limited original response is read');


sub status_is {
    my ($uri, $status, $name, @headers) = @_;

    my $r = http_get("$uri?$arg", headers => [ @headers ]);

    is($r->status(), 200, $name);
    is($r->header('X-Profiled-Status'), $status,
        "$name: a header has the original status");
    is($r->header('Location') // '', '', "$name: the reply has no Location");

    my $p = eval { ProfileTest::Profile->new($r) };

    is($p && $p->json()->{profile_info}{status}, $status,
       "$name: the profile has the original status") or diag($r);
}


sub names {
    my ($r) = @_;
    return sort map { /^([^:]+):/ ? $1 : $_ } @{$r->{lines}};
}


# an upstream that switches to a protocol which answers in capitals
sub run_upgrade {
    my ($t, $port) = @_;

    run_server($t, $port, sub {
        my ($c) = @_;
        my ($line, $upgrade) = (scalar(readline($c)), 0);

        $line =~ s/[\r\n]+\z//;

        while (defined(my $h = readline($c))) {
            $upgrade = 1 if $h =~ /^Upgrade: echo/i;
            last if $h eq "\r\n";
        }

        if (!$upgrade) {
            syswrite($c, "HTTP/1.1 426 Upgrade Required\r\n"
                         . "Content-Length: 0\r\nConnection: close\r\n\r\n");
            return;
        }

        syswrite($c, "HTTP/1.1 101 Switching Protocols\r\n"
                     . "Upgrade: echo\r\nConnection: Upgrade\r\n"
                     . "X-Request: $line\r\n\r\n");

        while (defined(my $l = readline($c))) {
            syswrite($c, uc $l);
        }
    });
}
