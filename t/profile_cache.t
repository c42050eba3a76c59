#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: quiet
#
# A cache in front of nginx, here nginx's own: it gives no client a header that
# describes another client's request, and it keeps all other responses as
# before.  The client's own cache may do with a recorded response what it may do
# with any other.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ cache map proxy rewrite /);

$t->conf(<<'EOF');
profile_max_captures 20;

proxy_cache_path %%TESTDIR%%/cache keys_zone=c:1m;

# the origin

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    profile_allow 127.0.0.1;
    profile_bar on;
    root %%TESTDIR%%;

    location /-/profile/ { profile_console; }

    location /last/ { alias %%TESTDIR%%/; }
    location /age/ {
        add_header Cache-Control max-age=60;
        alias %%TESTDIR%%/;
    }
    location /public/ {
        add_header Cache-Control 'public, max-age=60';
        add_header Cache-Control s-maxage=60;
        alias %%TESTDIR%%/;
    }
    location /expires/ {
        expires 1m;
        alias %%TESTDIR%%/;
    }
    location /accel/ {
        add_header X-Accel-Expires 60;
        alias %%TESTDIR%%/;
    }
    location /surrogate/ {
        add_header Cache-Control max-age=60;
        add_header Surrogate-Control max-age=600;
        add_header CDN-Cache-Control max-age=600;
        add_header Some-CDN-Cache-Control max-age=600;
        alias %%TESTDIR%%/;
    }
    location /field/ {
        add_header Cache-Control 'max-age=60, private="Set-Cookie"';
        alias %%TESTDIR%%/;
    }
    location /vary/ {
        add_header Cache-Control max-age=60;
        add_header Vary X-Kind;
        alias %%TESTDIR%%/;
    }
    location /no-store/ {
        add_header Cache-Control No-Store;
        alias %%TESTDIR%%/;
    }
    location /private/ {
        add_header Cache-Control 'max-age=60, Private';
        alias %%TESTDIR%%/;
    }
    location /old/ {
        add_header Cache-Control max-age=1;
        alias %%TESTDIR%%/;
    }
    location /return/ {
        add_header Cache-Control max-age=60 always;
        return 404 none;
    }
    location /moved/ {
        add_header Cache-Control max-age=60 always;
        return 301 /;
    }
    location /slow/ {
        limit_rate 1k;
        alias %%TESTDIR%%/;
    }
}

# caches

server {
    listen 127.0.0.1:8081;

    proxy_cache c;
    proxy_cache_valid any 60s;
    proxy_cache_revalidate on;
    proxy_cache_key $request_uri;
    add_header X-Cache $upstream_cache_status always;

    location / {
        proxy_pass http://127.0.0.1:8080;
    }
}

server {
    listen 127.0.0.1:8082;

    proxy_cache c;
    proxy_cache_valid any 60s;
    proxy_cache_convert_head off;
    proxy_cache_key "$request_method $http_range $request_uri";
    proxy_set_header Range $http_range;
    add_header X-Cache $upstream_cache_status always;

    location / {
        proxy_pass http://127.0.0.1:8080;
    }
}
EOF

$t->write_file('a', "a" x 100 . "\n");
$t->write_file('large', 'x' x 100_000);
$t->run();

my @record = ('X-Profile: record');
my @data = ('Sec-Fetch-Dest: empty');


# recorded by a header, which is no part of the cache's key

for my $uri (qw{ /last/a /age/a /public/a /expires/a /accel/a /surrogate/a
                 /vary/a /return/a /moved/a })
{
    my $r = front($uri, @record);
    like($r->header('X-Profile-Id') // '', qr/^\w{32}$/, "$uri is recorded");

    is(seen(front($uri)), 'MISS', "a cache does not keep $uri");
    is(seen(front($uri)), 'HIT', "a cache keeps $uri of the next client");
    is(seen(front($uri, @record)), 'HIT',
       "a cache answers $uri without the profiler");
}

# nginx does not keep a response with "private" for some headers either

for my $uri (qw{ /no-store/a /private/a /field/a }) {
    front($uri, @record);
    is(seen(front($uri)), 'MISS', "no cache keeps $uri");
}


# recorded by an argument, which is a part of the cache's key

my $args = '/age/a?performance_bar=record';

like(front($args)->header('X-Profile-Id'), qr/^\w{32}$/,
     'a request with the argument is recorded');
my $first = front($args)->header('X-Profile-Id');
isnt(front($args)->header('X-Profile-Id'), $first,
     'a second request with the argument is recorded');


# the bar's data

for my $uri (qw{ /last/a?bar /accel/a?bar /public/a?bar }) {
    like(front($uri, @data)->header('Server-Timing') // '', qr/profile;desc=/,
         "$uri has data for the bar");
    is(seen(front($uri)), 'MISS', "a cache does not keep $uri");
    is(seen(front($uri)), 'HIT', "a cache keeps $uri of the next client");
}


# a recording that is dropped

my @slow = map { http_get("/slow/large", headers => [ @record ], start => 1) }
               1 .. 20;

ok(wait_for(sub {
       http_get('/last/a', headers => [ @record ])
           ->header('X-Profile-Dropped')
   }), 'a recording is dropped');
ok(front('/age/a?dropped', @record)->header('X-Profile-Dropped'),
   'a recording behind a cache is dropped');
is(seen(front('/age/a?dropped')), 'MISS',
   'a cache does not keep what says that a recording is dropped');
close $_ for @slow;
ok(wait_for(sub {
       http_get('/last/a', headers => [ @record ])->header('X-Profile-Id')
   }), 'the slots are free again');


# methods and ranges

for my $case ([ 'HEAD', 'HEAD' ], [ 'a range', 'GET', 'Range: bytes=1-5' ]) {
    my ($name, $method, @headers) = @$case;

    my $ask = sub {
        http(join("\r\n", "$method /age/a HTTP/1.1", 'Host: localhost',
                  'Connection: close', @headers, @_, '', ''), port => 8082);
    };

    # a slot is free again when the profile before is made

    ok(wait_for(sub { $ask->(@record)->header('X-Profile-Id') }),
       "$name is recorded");
    is(seen($ask->()), 'MISS', "a cache does not keep $name");
    is(seen($ask->()), 'HIT', "a cache keeps $name of the next client");
}


# a response that the cache has, and asks for again

is(seen(front('/old/a')), 'MISS', 'a response is in the cache');
ok(wait_for(sub { $first = seen(front('/old/a', @record)); $first ne 'HIT' }),
   'the cache asks again');
is($first, 'REVALIDATED', 'a recorded 304 has no header of the profiler');
is(seen(front('/old/a')), 'HIT', 'the cache has no such header either');

my $etag = http_get('/age/a')->header('ETag');

for my $headers ([ @record ], [ @data ]) {
    for my $uri ('/age/a', '/last/a') {
        is(headers(http_get($uri, headers => [ "If-None-Match: $etag",
                                               @$headers ])),
           headers(http_get($uri, headers => [ "If-None-Match: $etag" ])),
           "a 304 of $uri is the same with @$headers");
    }
}

ok(wait_for(sub {
       http_get('/-/profile/profiles.json')->body() =~ /"status":304/
   }), 'the profile of a 304 is stored');


# what the client's own cache reads

my %control = (
    '/last/a' => 'private',
    '/age/a' => 'max-age=60, private',
    '/expires/a' => 'max-age=60, private',
    '/accel/a' => 'private',
    '/surrogate/a' => 'max-age=60, private',
    '/field/a' => 'max-age=60, private="Set-Cookie", private',
    '/no-store/a' => 'No-Store',
    '/private/a' => 'max-age=60, Private'
);

for my $uri (sort keys %control) {
    my $plain = http_get($uri);
    my $r = http_get($uri, headers => [ @record ]);

    is($r->header('Cache-Control'), $control{$uri},
       "the recorded $uri is private to shared caches");
    is(headers($r, 'Cache-Control'), headers($plain, 'Cache-Control'),
       "the other headers of the recorded $uri are the same");
}

my $r = http_get('/public/a', headers => [ @record ]);
is(join(' | ', "$r" =~ /^Cache-Control: (.*)\r/mg),
   'public, max-age=60 | s-maxage=60, private',
   'the last of several headers gets the directive');
is(http_get('/surrogate/a')->header('Surrogate-Control'), 'max-age=600',
   'headers for shared caches are in other responses');


sub front {
    my ($uri, @headers) = @_;
    return http_get($uri, port => 8081, headers => \@headers);
}


# what the cache did; with the headers of the profiler, if there are any
sub seen {
    my ($r) = @_;

    return join ' ', $r->header('X-Cache') // 'no cache',
                grep { defined $r->header($_) }
                     qw/ X-Profile-Id Link X-Profile-Dropped Server-Timing /;
}


# the headers but those of the profiler, of the time, and for shared caches
sub headers {
    my ($r, @but) = @_;

    my $but = join '|', 'Date', 'X-Profile-Id', 'Link', 'X-Accel-Expires',
                        'Surrogate-Control', '(?:Some-)?CDN-Cache-Control',
                        $r->status() == 304 ? 'Expires' : (),
                        $r->header('Expires') ? 'Expires' : (), @but;

    $but =~ s/\|(?:X-Profile-Id|Link)//g if $r->status() == 304;

    return join "\n", $r->status(), grep { !/^(?:$but):/ } @{$r->{lines}};
}
