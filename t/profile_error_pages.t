#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: call console
# runs: beside

# An error of the console, or of a trigger, is a page if a browser asks, and
# plain text, or JSON, for other clients.  The action "help" of a trigger has a
# page as well.

use strict;
use warnings;

use Digest::SHA qw/ sha256_base64 /;
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

    location /page {
        profile_endpoint on;
        return 200 $request_uri;
    }

    location /closed {
        profile_endpoint on;
        profile_allow 192.0.2.1;
        return 200 $request_uri;
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

###############################################################################

# triggers

my $trigger = 'performance_bar=flamegraph';

for (['performance_bar=<b>', 400, 'performance_bar takes "flamegraph", "record"'
                                  . ' or "help"'],
     [ "$trigger&profile_mod=cpu", 400,
       'profile_mod is unknown, the nearest name is profile_mode' ],
     [ "$trigger&profile_Mode=cpu", 400, 'the nearest name is profile_mode' ],
     [ "$trigger&profile_freq=9", 400, 'is profile_frequency' ],
     [ "$trigger&profile_frequenzy=9", 400, 'is profile_frequency' ],
     [ "$trigger&profile_request=9", 400, 'is profile_requests' ],
     [ 'performance_bar=help', 200, "X-Profile: flamegraph; mode=cpu" ])
{
    my ($query, $status, $text) = @$_;

    $r = http_get("/page?a=%3C%26&b=\"&$query");

    is($r->status(), $status, "$query: the text has the status $status");
    is($r->header('Content-Type'), 'text/plain', '... its type is text');
    like($r->content(), qr/\Q$text\E/, '... it says what is wrong');
    is($r->header('Vary'), 'Accept', '... caches know that there are two');

    $r = http_get("/page?a=%3C%26&b=\"&$query", headers => [ $html ]);

    is($r->status(), $status, "$query: the page has the status");
    is($r->header('Content-Type'), 'text/html; charset=utf-8',
       '... its type is that of a page');

    my $escaped = $text =~ s/</&lt;/gr =~ s/"/&quot;/gr;
    my ($style) = $r->content() =~ m{<style>(.*?)</style>};

    like($r->content(), qr/<pre>[^<]*\Q$escaped\E/, '... it has the text');
    like($r->content(), qr/<a href="\?a=%3C%26&amp;b=&quot;/,
         '... and a link to the page itself');
    unlike($r->content(), qr/<b>|<ode|\x{fffd}/, '... the text is escaped');
    like($r->header('Content-Security-Policy'),
         qr/style-src 'sha256-\Q@{[ sha256_base64($style) ]}\E/,
         '... its style is permitted');
}

# arguments of the application, and clients without permission

for my $query ("$trigger&profile_id=1", "$trigger&profile_name=1",
               "$trigger&profile_interval=1", "$trigger&xprofile_mod=1",
               "$trigger&profile_" . 'mode' x 300)
{
    is(http_get("/page?$query")->status(), 200,
       substr($query, 0, 50) . ': an argument of the application');
}

for my $query ('performance_bar=help', "$trigger&profile_mod=cpu") {
    is(http_get("/closed?$query", headers => [ $html ])->body(),
       "/closed?$query", "$query: no effect for other clients");
}

$r = http_get('/page', headers => [ 'X-Profile: help' ]);

like($r->content(), qr/^profile_mode\n/m, 'the header has the action "help"');
is($r->header('X-Profile-Id'), undef, 'there is no profile of it');
