#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# Stored profiles in the console: list, one of them in all formats, changes,
# and who may make them.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip /);

$t->conf(<<'EOF', workers => 2);
profile_zone profiles:4m;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / { }

    location /-/profile/ {
        profile_console;
    }

    location /denied/ {
        deny all;
        profile_console;
    }

    location /debug/pprof/ {
        profile_console;
    }
}
EOF

$t->write_file('index.html', 'a' x 100000);
$t->run();

is_deeply(profiles(), [], 'nothing yet');
is(http_get('/-/profile/profiles.json')->body(),
   '{"profiles":[],"more":false}', 'nothing yet, JSON');


# the list

my $host = 'localhost';
my %id;

for my $uri ('/', '/none', "/evil%3Cscript%3E%22?\x{ff}=%00&x=%3C/script%3E") {
    my $r = http_get($uri . ($uri =~ /\?/ ? '&' : '?')
                     . 'performance_bar=record');

    ($id{$uri}) = $r->header('X-Profile-Id') =~ /^([0-9a-f]{32})$/;
    is($r->header('Link'), "</-/profile/p/$id{$uri}>; rel=\"describedby\"; "
                           . 'title="profile"', "$uri, link");
}

my $posted = http_post('/index.html?a=b&performance_bar=record', 'x=y')
                 ->header('X-Profile-Id');

ok(wait_for(sub { @{profiles()} == 4 }), 'four profiles');

my ($p) = grep { $_->{id} eq $id{'/none'} } @{profiles()};

is($p->{method}, 'GET', 'list, method');
is($p->{uri}, '/none', 'list, URI');
is($p->{status}, 404, 'list, status');
is($p->{mode}, 'wall', 'list, mode');
is($p->{scope}, 'request', 'list, scope');
is($p->{pinned}, JSON::PP::false, 'list, pinned');
cmp_ok($p->{wall}, '>', 1000, 'list, wall');
cmp_ok($p->{wall}, '>=', $p->{cpu} * 0.5, 'list, cpu');
ok((grep { $_ == $p->{worker} } $t->worker_pids()), 'list, worker');
cmp_ok(abs($p->{start} / 1000 - time), '<', 60, 'list, time');

($p) = grep { $_->{id} eq $posted } @{profiles()};
is($p->{uri}, '/index.html?a=b', 'POST, URI');
is($p->{method}, 'POST', 'POST, method');


# one

my $one = "/-/profile/p/$id{'/'}";
my $r = http_get($one);

is($r->status(), 200, 'page');
like($r->content(), qr/data-id="$id{'\/'}"/, 'page, its id');
like($r->content(), qr/data-root="\.\.\/" /, 'page, the way to the console');
unlike($r->content(), qr/\{\{|\}\}/, 'page, nothing is left of the template');

my $json = decode_json(http_get("$one.json")->content());

is($json->{title}, 'GET /index.html', 'JSON, title');
is($json->{id}, $id{'/'}, 'JSON, id');

my %summary = map { $_->{name} => $_ } @{$json->{summary}};

like($summary{request}{value}, qr{^GET /\?performance_bar=record HTTP/1\.},
     'JSON, facts');
is($summary{samples}{unit}, 'count', 'JSON, counters');

my @formats = map { $_->{name} } @{$json->{formats}};

is("@formats", 'speedscope pprof folded svg html', 'JSON, formats');

my %starts = (
    speedscope => qr/^\{"\$schema":/, pprof => qr/^\x1f\x8b/,
    folded => qr/^\S/, svg => qr/^<\?xml|^<svg/, html => qr/^<!DOCTYPE html>/
);

for my $format (@formats) {
    $r = http_get("$one/$format");

    is($r->status(), 200, $format);
    like($r->body(), $starts{$format}, "$format, body");
    is($r->header('Cache-Control'), 'no-store', "$format, not cached");
    like($r->header('Content-Disposition') // '',
         $format =~ /svg|html/ ? qr/^$/
             : qr/^attachment; filename="GET-wall-\d+T\d+Z\.[a-z.]+"$/,
         "$format, name");
    is($r->header('X-Frame-Options'),
       $format =~ /svg|html/ ? 'SAMEORIGIN' : 'DENY', "$format, frames");

    next if $format eq 'pprof';

    my $gzipped = http_get("$one/$format",
                           headers => [ 'Accept-Encoding: gzip' ]);

    is($gzipped->header('Content-Encoding'), 'gzip', "$format, gzip");
    is($gzipped->content(), $r->body(), "$format, gzip, content");
}

# as links of the page say it

is(http_get("$one/html?profile_format=folded")->body(),
   http_get("$one/folded")->body(), 'format by argument');
like(http_get("$one/svg?profile_mode=cpu")->body(), qr/data-mode="cpu"/,
     'mode by argument');
is(http_get("$one/svg?profile_mode=x")->status(), 400, 'wrong mode');
is(http_get("$one/svg?profile_format=x")->status(), 400, 'wrong format');
is(http_get("$one/none")->status(), 404, 'no format');
is(http_head("$one/svg")->body(), '', 'HEAD');
is(http_get("/debug/pprof/p/$id{'/'}/folded")->status(), 200,
   'below another console');

for my $format ('html', 'svg') {
    my $evil = http_get("/-/profile/p/"
                        . (grep { $_->{uri} =~ /evil/ } @{profiles()})[0]{id}
                        . "/$format");

    is($evil->status(), 200, "evil URI, $format");
    unlike($evil->content(), qr/evil<script/, "evil URI, $format, escaped");
}


# ids are not guessed

for my $forged ('0' x 32, 'x' x 32, uc $id{'/'}, substr($id{'/'}, 1),
                "$id{'/'}0", '%252e%252e%252f', '..%5c..%5cetc%5cpasswd', '%01' x 32,
                '%ff' x 32, 'a' x 4000, "$id{'/'}%0a")
{
    my $name = substr($forged, 0, 40);

    is(http_get("/-/profile/p/$forged")->status(), 404, "$name, page");
    is(http_get("/-/profile/p/$forged.json")->status(), 404, "$name, JSON");
    is(http_get("/-/profile/p/$forged/svg")->status(), 404, "$name, picture");
    is(change('DELETE', "p/$forged")->status(), 404, "$name, delete");
    is(change('POST', "p/$forged/pin")->status(), 404, "$name, pin");
}


# who may change something

my %refused = (
    'no header' => [ ],
    'another site' => [ 'X-Profile-Console: 1', 'Sec-Fetch-Site: cross-site' ],
    'a sister site' => [ 'X-Profile-Console: 1', 'Sec-Fetch-Site: same-site' ],
    'an address bar' => [ 'X-Profile-Console: 1', 'Sec-Fetch-Site: none' ],
    'another origin' => [ 'X-Profile-Console: 1',
                          'Origin: http://example.com' ],
    'an origin that begins so' => [ 'X-Profile-Console: 1',
                                    "Origin: http://$host.example.com" ],
    'an origin of nothing' => [ 'X-Profile-Console: 1', 'Origin: null' ],
    'two origins' => [ 'X-Profile-Console: 1', "Origin: http://$host",
                       "Origin: http://$host" ],
    'half an origin' => [ 'X-Profile-Console: 1', 'Origin: http:/' ],
    'a form' => [ 'Content-Type: application/x-www-form-urlencoded',
                  'Origin: http://example.com' ],
);

for my $name (sort keys %refused) {
    for my $request ([ 'DELETE', "p/$id{'/'}" ],
                     [ 'POST', "p/$id{'/'}/delete" ],
                     [ 'POST', "p/$id{'/'}/pin" ])
    {
        is(send_request(@$request, @{$refused{$name}})->status(), 403,
           "$name, @{$request}[0] " . ($request->[1] =~ s{.*/}{}r));
    }
}

is(send_request('OPTIONS', "p/$id{'/'}", 'Origin: http://example.com',
                'Access-Control-Request-Headers: x-profile-console')
       ->status(), 405, 'preflight');
is(http_get("/-/profile/p/$id{'/'}/delete")->status(), 404, 'GET');
is(send_request('PUT', "p/$id{'/'}", 'X-Profile-Console: 1')
       ->header('Allow'), 'GET, HEAD, POST, DELETE', 'PUT, allow');
is(scalar @{profiles()}, 4, 'all are still there');
is((grep { $_->{pinned} } @{profiles()}), 0, 'none is pinned');

my $denied = send_request('DELETE', "/denied/p/$id{'/'}",
                          'X-Profile-Console: 1');
is($denied->status(), 403, 'denied location');
is(http_get("/denied/p/$id{'/'}")->status(), 403, 'denied location, page');


# changes

is(change('POST', "p/$id{'/'}/pin", 'Sec-Fetch-Site: same-origin',
          "Origin: http://$host")->status(), 204, 'pin');
is(join(' ', map { $_->{id} } grep { $_->{pinned} } @{profiles()}), $id{'/'},
   'pinned');
is(change('POST', "p/$id{'/'}/unpin")->status(), 204, 'unpin');
is((grep { $_->{pinned} } @{profiles()}), 0, 'no longer pinned');
is(change('POST', "p/$id{'/'}/paint")->status(), 404, 'no such change');

is(change('DELETE', "p/$id{'/none'}")->status(), 204, 'DELETE');
is(scalar @{profiles()}, 3, 'deleted');
is(change('DELETE', "p/$id{'/none'}")->status(), 404, 'DELETE again');
is(change('POST', "p/$posted/delete")->status(), 204, 'delete');
is(scalar @{profiles()}, 2, 'deleted');
is(http_get("/-/profile/p/$posted/svg")->status(), 404, 'it is gone');


# two compared

my ($a, $b) = map { $_->{id} } @{profiles()};

$json = decode_json(http_get("/-/profile/diff.json?a=$a&b=$b")->content());
is($json->{before}{id}, $a, 'diff, before');
is($json->{after}{id}, $b, 'diff, after');
is($json->{shares}, JSON::PP::false, 'diff, weights');
cmp_ok(scalar @{$json->{functions}}, '>', 2, 'diff, functions');

my ($before, $after) = (0, 0);

for my $f (@{$json->{functions}}) {
    $before += $f->{self}[0];
    $after += $f->{self}[1];
}

is($after - $before, $json->{after}{wall} - $json->{before}{wall},
   'diff, all of the change');

like(http_get("/-/profile/diff/svg?a=$a&b=$b")->content(), qr/<svg/,
     'diff, svg');
like(http_get("/-/profile/diff/html?a=$a&b=$b&shares=on&profile_mode=cpu")
         ->content(), qr/<html/, 'diff, html');
is(http_get("/-/profile/diff?a=$a&b=$b")->status(), 200, 'diff, page');

$json = decode_json(http_get("/-/profile/diff.json?a=$a&b=$a")->content());
is_deeply($json->{functions}, [], 'diff, nothing changed');

my %wrong = (
    "diff/svg?a=$a" => 400, "diff/svg?b=$b" => 400,
    "diff/svg?a=$a&b=$b&shares=x" => 400,
    "diff/svg?a=$a&b=$b&profile_mode=x" => 400,
    "diff/pprof?a=$a&b=$b" => 404, "diff/svg?a=$a&b=x" => 404,
    "diff/svg?a=%00&b=$b" => 404, "diff.json?a=$a&b=" => 404,
);

is(http_get("/-/profile/$_")->status(), $wrong{$_}, $_) for sort keys %wrong;


# captures of workers

my $n = @{profiles()};

is(http_get('/-/profile/cpu?seconds=0.1&format=folded')->status(), 200,
   'workers, not stored');
is(send_request('POST', 'cpu?seconds=0.1')->status(), 403,
   'workers, another site');
is(scalar @{profiles()}, $n, 'workers, nothing is stored');

$r = change('POST', 'wall?seconds=0.2&frequency=1000');
is($r->status(), 201, 'workers, stored');

my $stored = decode_json($r->body())->{id};
($p) = grep { $_->{id} eq $stored } @{profiles()};

is($p->{scope}, 'all', 'workers, scope');
is($p->{mode}, 'wall', 'workers, mode');
is($p->{uri}, 'all workers', 'workers, title');
like(http_get("/-/profile/p/$stored/speedscope")->body(), qr/all workers/,
     'workers, profile');
is(change('POST', 'cpu?seconds=x')->status(), 400, 'workers, wrong');

my ($pid) = $t->worker_pids();

$r = change('POST', "cpu?seconds=0.1&workers=$pid");
($p) = grep { $_->{scope} eq 'worker' } @{profiles()};
is($p->{worker}, $pid, 'one worker');


# the list, page by page

my @all = map { $_->{id} } @{profiles()};

for my $limit (1, 2, 3, scalar @all) {
    my (@got, $pages);
    my $before = '';

    do {
        my $list = list("limit=$limit$before");

        push @got, map { $_->{id} } @{$list->{profiles}};
        $pages++;
        $before = $list->{more} ? "&before=$list->{next}" : '';

    } while ($before);

    is("@got", "@all", "list, $limit at a time");
    is($pages, int((@all + $limit - 1) / $limit), 'no more pages than that');
}

is_deeply(list('before=1'), { profiles => [], more => JSON::PP::false },
          'list, before all');

for my $args (qw/ limit=0 limit=1001 limit=x limit= before=0 before=-1
                  before=99999999999999999999 before=id /)
{
    my ($name, $value) = split(/=/, $args);

    $r = http_get("/-/profile/profiles.json?$args");
    is($r->status(), 400, "list, $args");
    like($r->content(), qr/\"$name\\" is \\"\Q$value\E\\", it must be a/,
         "list, $args, error");
}


# memory

http_get('/index.html?performance_bar=record&profile_mode=object');
ok(wait_for(sub { ($p) = grep { $_->{mode} eq 'object' } @{profiles()} }),
   'memory, stored');

cmp_ok($p->{allocated}, '>', 1000, 'memory, bytes');
cmp_ok($p->{allocations}, '>=', 1, 'memory, number');
cmp_ok($p->{in_use}, '<', $p->{allocated}, 'memory, in use');
is((profiles())->[1]{allocated}, undef, 'not of others');

$r = change('POST', 'object?seconds=0.2&interval=0');
$stored = decode_json($r->body())->{id};
http_get('/index.html');
($p) = grep { $_->{id} eq $stored } @{profiles()};
is($p->{mode}, 'object', 'memory of workers');
like($p->{allocated}, qr/^\d+$/, 'memory of workers, bytes');


# an endpoint, for a browser: the page of what is stored

my $page = http_get('/index.html?performance_bar=flamegraph'
                    . '&profile_requests=1&profile_seconds=30',
                    headers => [ 'Accept: text/html' ], start => 1);

ok(wait_for(sub {
    http_get('/index.html');
    ($p) = grep { $_->{scope} eq 'endpoint' } @{profiles()};
}), 'endpoint, stored');

$page = http_end($page);
is($page->status(), 200, 'endpoint, page');
like($page->content(), qr/data-id="$p->{id}"/, 'endpoint, page, its id');


# clients that do not wait

for (1 .. 30) {
    my $socket = http("GET $one/html HTTP/1.0\r\n\r\n", start => 1);
    close $socket;
}

ok(wait_for(sub { http_get("$one/html")->status() == 200 }),
   'pictures after clients that have left');


sub profiles {
    return list('')->{profiles};
}


sub list {
    my ($args) = @_;

    return decode_json(http_get("/-/profile/profiles.json?$args")->content());
}


sub change {
    my ($method, $path, @headers) = @_;

    return send_request($method, $path, 'X-Profile-Console: 1', @headers);
}


sub send_request {
    my ($method, $path, @headers) = @_;

    $path = "/-/profile/$path" unless $path =~ m{^/};

    return http("$method $path HTTP/1.0\r\n"
                . join('', map { "$_\r\n" } "Host: $host", @headers)
                . "\r\n");
}
