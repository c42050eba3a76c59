#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: console viewer
# runs: beside
#
# The files of the viewer: which are served, with which headers, and that
# there is no way to others.

use strict;
use warnings;

use IO::Uncompress::Gunzip qw/ gunzip /;
use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new();

my $dir = $t->testdir();

mkdir "$dir/viewer";
mkdir "$dir/viewer/sub.js";

$t->write_file('viewer/index.html', '<html>viewer</html>');
$t->write_file('viewer/speedscope-Y2522XSH.js', 'alert(1)' x 500);
$t->write_file('viewer/plain.js', 'plain');
$t->write_file('viewer/plain.js.gz', 'not what the other is');
$t->write_file('viewer/font-ILST5JV6.woff2', "\0\1\2\3");
$t->write_file('viewer/LICENSE', 'a license');
$t->write_file('secret.js', 'secret');

my $conf = <<'EOF2';
%%MODULES%%
%%GLOBALS%%

events {
}

http {
    %%GLOBALS_HTTP%%

    server {
        listen 127.0.0.1:8080;
        profile_viewer %%TESTDIR%%/viewer;

        location /p/ {
            profile_console;
        }

        location /off/ {
            profile_viewer off;
            profile_console;
        }
    }
}
EOF2

$t->write_file_expand('nginx.conf', $conf);
$t->run();

my $r = http_get('/p/viewer/index.html');

is($r->status(), 200, 'the page of the viewer is found');
is($r->body(), '<html>viewer</html>', 'the page has the content of its file');
is($r->header('Content-Type'), 'text/html; charset=utf-8',
   'the page has the type HTML');
is($r->header('Cache-Control'), 'no-store', 'the page is not cached');
is($r->header('X-Frame-Options'), 'SAMEORIGIN',
   'only the same site may frame the page');
like($r->header('Content-Security-Policy'),
     qr/^default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; /,
     'the page has its policy');
unlike($r->header('Content-Security-Policy'), qr/'unsafe-eval'/,
       'the policy of the page forbids eval()');

$r = http_get('/p/viewer/speedscope-Y2522XSH.js');
is($r->header('Cache-Control'), 'private, max-age=31536000, immutable',
   'a script with a hash in its name is cached');
is($r->header('Content-Encoding'), undef,
   'a script is not compressed without Accept-Encoding');
is($r->body(), 'alert(1)' x 500, 'the script has the content of its file');

# the module compresses files that have no compressed copy

$r = http_get('/p/viewer/speedscope-Y2522XSH.js',
              headers => [ 'Accept-Encoding: gzip' ]);
is($r->header('Content-Encoding'), 'gzip',
   'a client that accepts gzip gets a compressed script');
is($r->content(), 'alert(1)' x 500,
   'the compressed script has the same content');
is($r->header('Vary'), 'Accept-Encoding',
   'the response varies with Accept-Encoding');

# the copy is sent as it is

$r = http_get('/p/viewer/plain.js', headers => [ 'Accept-Encoding: gzip' ]);
is($r->header('Content-Encoding'), 'gzip',
   'the compressed file beside a script is sent');
is($r->body(), 'not what the other is',
   'the compressed file is sent unchanged');
is($r->header('Cache-Control'), 'no-store',
   'a name without a hash is not cached');

$r = http_get('/p/viewer/plain.js', headers => [ 'Accept-Encoding: gzip;q=0' ]);
is($r->body(), 'plain', 'a client that refuses gzip gets the plain file');

$r = http_get('/p/viewer/font-ILST5JV6.woff2',
              headers => [ 'Accept-Encoding: gzip' ]);
is($r->header('Content-Type'), 'font/woff2', 'a font has its type');
is($r->body(), "\0\1\2\3", 'the font has the content of its file');


# nothing else

for my $path ('none.js', 'LICENSE', '../secret.js', '..%2fsecret.js',
              '%2e%2e%2fsecret.js', 'sub/../plain.js%00', '.hidden.js',
              'plain.js%00.js', 'sub/plain.js', 'plain.js.gz', 'a%0db.js',
              '%2fetc%2fpasswd.js', '..%5csecret.js')
{
    $r = http_get("/p/viewer/$path");

    cmp_ok($r->status(), '>=', 400, "$path is not there");
    unlike($r->body(), qr/^(?:secret|plain)/,
           "$path: no other file is sent");
}

is(http_get('/p/viewer/')->status(), 404, 'an empty name is not found');

$t->allow(qr/"[^"]*sub\.js" is not a file of the viewer/);
is(http_get('/p/viewer/sub.js')->status(), 500,
   'a directory in place of a file is an error');

$r = http_get('/off/viewer/index.html');
is($r->status(), 404, 'without the viewer its files are not found');
like($r->body(), qr/^the viewer is not installed/,
     'the response tells that the viewer is missing');


# configurations

my ($status, $out) = $t->test_config('%%MODULES%%
events { } http { %%GLOBALS_HTTP%%
    profile_viewer /nowhere; }');

isnt($status, 0, 'a missing directory is an error of the configuration');
like($out, qr{invalid value "/nowhere" in "profile_viewer" directive, it must },
     'a message names the missing directory');

