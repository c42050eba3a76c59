#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: bar
# runs: first
#
# The Performance Bar in a browser.  Its buttons lead to a flamegraph of the
# page's request, for pages with any content security policy.  It can be used
# with a keyboard and with assistive technology.  Its facts are right.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;


my $t = ProfileTest->new()->has(qw/ gzip proxy ssi ssl v2 /)
    ->has_program(qw/ openssl /);

has_browser($t);

$t->conf(<<'EOF');
types {
    text/html html;
}

ssl_certificate localhost.crt;
ssl_certificate_key localhost.key;

proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8081 ssl http2;

    profile_endpoint on;
    profile_bar on;
    profile_frequency 5000;

    location / {
    }

    location /gzip/ {
        gzip on;
        alias %%TESTDIR%%/;
    }

    location /ssi/ {
        ssi on;
        alias %%TESTDIR%%/;
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8082/;
    }

    location /cached/ {
        proxy_pass http://127.0.0.1:8082/;
        proxy_cache cache;
        proxy_cache_valid 1h;
    }

    location /strict/ {
        add_header Content-Security-Policy "default-src 'self'; require-trusted-types-for 'script'";
        alias %%TESTDIR%%/;
    }

    location /nonce/ {
        add_header Content-Security-Policy "default-src 'none'; connect-src 'self'; script-src 'nonce-$request_id' 'strict-dynamic'";
        alias %%TESTDIR%%/;
    }

    location /silent/ {
        add_header Content-Security-Policy "default-src 'none'; script-src 'self'; frame-src 'self'";
        alias %%TESTDIR%%/;
    }

    location /api/ {
        default_type application/json;
        return 200 '{}';
    }

    location /not/ {
        profile_if 0;
        alias %%TESTDIR%%/;
    }

    location = /favicon.ico {
        return 204;
    }

    location /-/profile/ {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8082;

    location / {
    }
}
EOF

$t->write_certificate('localhost');

my $head = '<!DOCTYPE html><html lang="en"><head><title>A page</title>'
    . '<meta charset="utf-8">';
my $style = '<style>* { font-size: 40px !important;'
    . ' display: none !important }'
    . ' html, body, main, h1, p, input, label { display: block !important }</style>';
my $main = '<main><h1>A page</h1><p>text <label>Text <input></label></p>';

$t->write_file('page.html', "$head</head><body>$main</main></body></html>");
$t->write_file('styled.html',
               "$head$style</head><body>$main</main></body></html>");
$t->write_file('include.html', "$head</head><body>$main"
               . '<!--#include virtual="/ssi/part.html" --></body></html>');
$t->write_file('part.html', '<p>a part</p></main>');
$t->write_file('frames.html', "$head</head><body>$main"
               . '<iframe title="a frame" src="/page.html"></iframe></main>'
               . '</body></html>');
$t->write_file('scripts.html', "$head</head><body>$main</main><script>"
    . "fetch('/api/get?a=1'); fetch('/api/post', { method: 'POST' });"
    . "const x = new XMLHttpRequest(); x.open('GET', '/api/x'); x.send();"
    . '</script></body></html>');

$t->run();
share_browser($t);

my $http = 'http://127.0.0.1:' . port(8080);
my $https = 'https://127.0.0.1:' . port(8081);


# buttons

my @cases = (
    [ 'static', "$http/page.html" ],
    [ 'with arguments', "$http/page.html?q=%22%3Cb%3E&profile_mode=x#part" ],
    [ 'compressed', "$http/gzip/page.html" ],
    [ 'SSI', "$http/ssi/include.html" ],
    [ 'proxied', "$http/proxy/page.html" ],
    [ 'from a cache', "$http/cached/page.html" ],
    [ 'TLS and HTTP/2', "$https/page.html" ],
    [ 'strict policy', "$http/strict/page.html" ],
    [ 'nonce', "$http/nonce/page.html" ],
);

# some pages in one browser, since a program may take a minute

my @pages;

for my $first (0, 3, 6) {
    my $some = browser('click', map { $_->[1] } @cases[$first .. $first + 2]);

    unharmed('buttons', $some);
    push @pages, @{$some->{pages}};
}

for my $case (@cases) {
    my ($name, $url) = @$case;

    my $s = shift @pages;
    my ($path) = $url =~ m{^https?://[^/]+([^?#]*)};

    cmp_ok(scalar @{$s->{buttons}}, '>=', 2, "$name: the bar has buttons");

    my ($total) = grep { /^total/ } @{$s->{strip}};
    like($total, qr/^total (?:< 1|[1-9][\d.]*) m?s$/,
        "$name, the time of the request is not 0 ms");

    for my $mode (sort keys %{$s->{flamegraphs}}) {
        my $f = $s->{flamegraphs}{$mode};

        like($f->{page}, qr{/-/profile/p/[0-9a-f]{32}$},
             "$name, $mode: the button opens a profile");
        like($f->{title}, qr/^GET \Q$path\E/,
             "$name, $mode: the profile has the title of the page");
        is($f->{mode}, lc $mode, "$name, $mode: the profile has this mode")
            unless $mode eq 'Object';
        cmp_ok($f->{boxes}, '>', 3, "$name, $mode: the profile has boxes");
        unlike($f->{text}, qr/_bar_(?:create|snippet|data)/,
               "$name, $mode: the profile does not show the bar's work");
    }

    my $details = join("\n", @{$s->{details}});

    like($details, qr{request GET \Q$path\E},
         "$name: the details have the request");
    like($details, qr{Upstream 127\.0\.0\.1:\d+ status 200},
         "$name: the details have the upstream") if $name eq 'proxied';
    like($details, qr{cache HIT}, "$name: the details have the cache")
        if $name eq 'from a cache';
    like($details, qr{protocol HTTP/2\.0 TLS TLSv1\.\d \w+},
         "$name: the details have the protocol") if $name =~ /TLS/;
    like($s->{consolePage}, qr{^https?://[^/]+/-/profile/},
         "$name: a link leads to the console");
}


# a page with styles for all elements

my $s = browser('use', "$http/styled.html");

unharmed('use', $s);
is($s->{host}, 'html', 'the bar is outside of the body');
is($s->{first}{font}, '13px', 'styles of the page do not change the bar');
ok($s->{first}{bar} && !$s->{first}{pill}, 'the bar is shown at first');
like(join(' ', map { $_ // '-' } @{$s->{order}}),
     qr/^- Wall CPU (?:Object )?Details Hide - /,
     'the bar follows the page in the order of the focus');
ok(!$s->{first}{details} && $s->{panel}{details}, 'a button opens the details');
ok($s->{panelAgain}{details}, 'the next page opens the details again');
ok(!$s->{collapsed}{bar} && $s->{collapsed}{pill},
   'a button collapses the bar');
like($s->{collapsed}{focus}, qr/^(?:< 1|[\d.]+) ms$/,
     'the focus stays in the bar');
ok($s->{collapsedAgain}{pill}, 'the next page has a collapsed bar');
ok(!$s->{hidden}{pill} && !$s->{hidden}{bar}, 'keys hide the bar');
ok($s->{back}{pill}, 'keys show the bar again');
ok($s->{expanded}{bar}, 'a collapsed bar can be expanded');
ok($s->{typed}{bar}, 'typing a text does not hide the bar');
ok(!$s->{print}{bar}, 'the bar is not printed');
isnt($s->{dark}{background}, $s->{first}{background},
     'the bar has other colors in the dark theme');
cmp_ok($s->{axePassed}, '>', 100,
       'rules of accessibility were applied to the bar');
cmp_ok($s->{axeContrast}, '>', 30, 'the contrast of colors was checked');

my ($url) = $s->{curl} =~ /^curl -OJ '(\S+)'$/;
is($url, "$http/styled.html?performance_bar=flamegraph&stackprof_mode=wall",
   'the bar has a command for a shell') or diag($s->{curl});


# requests of scripts

$s = browser('requests', "$http/scripts.html");

unharmed('requests', $s);
is(scalar(grep { m{^GET /api/get\?a=1 200 (?:< 1|\d+) ms } } @{$s->{rows}}),
   1, 'the bar lists requests of fetch()') or diag(join("\n", @{$s->{rows}}));
is(scalar(grep { m{^POST /api/post 200 } } @{$s->{rows}}), 1,
   'the bar lists POST requests');
is(scalar(grep { m{^GET /api/x 200 } } @{$s->{rows}}), 1,
   'the bar lists requests of XMLHttpRequest');
like($s->{note}, qr{^Recorded /api/get\?a=1\.},
     'the bar tells that a request was recorded');
like($s->{flamegraph}{title}, qr{^GET /api/get},
     'the profile of the request has its title');
like($s->{waiting}, qr{^Waiting for the next POST /api/post},
     'the bar waits for the next request');
like($s->{next}{title}, qr{^POST /api/post}, 'the next request has a profile');
is($s->{canceled}, 204, 'the wait for the next request is canceled');


# requests of other clients

$s = browser('endpoint', "$http/page.html");

unharmed('endpoint', $s);
like($s->{note}, qr{^Recording all requests to /page\.html for 10 s},
     'the bar tells which requests are recorded');

# captures may take a tenth of the time; the other requests are counted

my ($captured) = $s->{flamegraph}{text} =~ /^requests\s+(\d+)$/m;
my ($skipped) = $s->{flamegraph}{text} =~ /^skipped\s+(\d+)$/m;

cmp_ok($captured // 0, '>', 0, 'requests of the endpoint are captured');
is(($captured // 0) + ($skipped // 0), 20,
   'captured and skipped requests are all requests')
    or diag($s->{flamegraph}{text});


# other types of pages

$s = browser('replace', "$http/page.html");
unharmed('replaced body', $s);
is("$s->{before} $s->{after}", '1 1', 'a replaced body keeps one bar');

$s = browser('links', "$http/silent/page.html");
is(scalar(grep { !/Content Security Policy/ } @{$s->{console}}), 0,
   'a policy without connections causes no other message');
is(scalar(grep { /^Connecting to/ } @{$s->{console}}), 1,
   'the bar connects once in spite of the policy')
    or diag(join("\n", @{$s->{console}}));
like($s->{text}, qr/policy of the page \(connect-src\)/,
     'the bar tells that the policy forbids connections');
like($s->{flamegraph}{page}, qr{page\.html\?performance_bar=flamegraph},
     'the bar has links in place of buttons');

$s = browser('none', "$http/not/page.html");
unharmed('not permitted', $s);
is($s->{bars}, 0, 'a page without permission has no bar');

$s = browser('none', "$http/frames.html");
unharmed('frames', $s);
is($s->{bars}, 1, 'a page with frames has one bar');


sub browser {
    my ($scenario, @urls) = @_;

    return in_browser($t, $scenario, 'bar', $scenario, @urls);
}


sub unharmed {
    my ($name, $s) = @_;

    is(join("\n", @{$s->{console}}), '',
       "$name: the browser reports no messages");
    is(join("\n", @{$s->{elsewhere}}), '',
       "$name: nothing is loaded from other hosts");
    is(join("\n", @{$s->{axe}}), '',
       "$name: the rules of accessibility are met");
}
