#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# An error of the console is a page with a link to the console if a browser asks,
# and plain text, or JSON, for other clients.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new();

$t->conf(<<'EOC');
profile_zone p:1m;

server {
    listen 127.0.0.1:8080;

    location /-/profile/ {
        profile_console;
    }

    location /debug/pprof/ {
        profile_console;
    }
}
EOC

$t->run();

my $html = 'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,'
           . 'image/avif,*/*;q=0.8';
my $unknown = '0' x 32;

for ([ "p/$unknown", 404, qr/no profile/, '../' ],
     [ "p/$unknown/svg", 404, qr/no profile/, '../../' ],
     [ 'none', 404, qr/the console has nothing at/, './' ],
     [ 'a/b/c', 404, qr/the console has nothing at/, '../../' ],
     [ 'cpu?workers=none', 400, qr/&quot;workers&quot; is &quot;none&quot;/,
       './' ],
     [ 'cpu?workers=%3cb%3e%00', 400, qr/is &quot;&lt;b&gt;%00&quot;/, './' ],
     [ 'diff/svg', 400, qr/&quot;a&quot; is missing/, '../' ])
{
    my ($uri, $status, $text, $root) = @$_;
    my $r = http_get("/-/profile/$uri", headers => [ $html ]);

    is($r->status(), $status, "$uri: the page has the status $status");
    is($r->header('Content-Type'), 'text/html; charset=utf-8',
       'a browser gets a page');
    like($r->header('Vary'), qr/Accept\b(?!-)/, 'caches know that');
    like($r->content(), qr{<p class="note" role="alert">[^<]*$text},
         'the page has the text of the error');
    like($r->content(), qr{<a href="\Q$root\E">Back to the console</a>},
         'the page has a link to the console');
    like($r->content(), qr{<link rel="stylesheet" href="\Q$root\Eassets/},
         'the page has the style of the console');
    like($r->content(), qr{<h1>Error $status</h1>}, 'the page has a title');
    like($r->header('Content-Security-Policy'), qr/script-src 'self'/,
         'the policy is that of a page');

    for my $accept ('', 'Accept: */*', 'Accept: text/plain, text/html;q=0.5') {
        $r = http_get("/-/profile/$uri",
                      headers => [ $accept ? $accept : () ]);

        is($r->status(), $status, "$uri, \"$accept\": the same status");
        is($r->header('Content-Type'), 'text/plain; charset=utf-8',
           'other clients get plain text');
        like($r->content(), qr/\A[^\n<]*(?:<b>[^\n]*)?\n\z/,
             'the text is one line');
    }
}

my $r = http_get("/-/profile/p/$unknown.json", headers => [ $html ]);

is($r->header('Content-Type'), 'application/json',
   'the suffix of the URL asks for JSON');

$r = http_get('/debug/pprof/profile?seconds=none', headers => [ $html ]);

is($r->header('Content-Type'), 'text/plain; charset=utf-8',
   'the URLs of Go\'s clients have plain text');
