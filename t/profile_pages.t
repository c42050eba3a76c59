#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: console
# runs: beside
#
# Stored profiles in the console: the list, one profile in all formats, changes,
# and which clients may make them.

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

is_deeply(profiles(), [], 'a new store has no profiles');
is(http_get('/-/profile/profiles.json')->body(),
   '{"profiles":[],"more":false}', 'the list of a new store is empty');


# the list

my $host = 'localhost';
my %id;

for my $uri ('/', '/none', "/evil%3Cscript%3E%22?\x{ff}=%00&x=%3C/script%3E") {
    my $r = http_get($uri . ($uri =~ /\?/ ? '&' : '?')
                     . 'performance_bar=record');

    ($id{$uri}) = $r->header('X-Profile-Id') =~ /^([0-9a-f]{32})$/;
    is($r->header('Link'), "</-/profile/p/$id{$uri}>; rel=\"describedby\"; "
                           . 'title="profile"',
        "the response of $uri links its profile");
}

my $posted = http_post('/index.html?a=b&performance_bar=record', 'x=y')
                 ->header('X-Profile-Id');

ok(wait_for(sub { @{profiles()} == 4 }), 'the list has four profiles');

my ($p) = grep { $_->{id} eq $id{'/none'} } @{profiles()};

is($p->{method}, 'GET', 'the list has the method');
is($p->{uri}, '/none', 'the list has the URI');
is($p->{status}, 404, 'the list has the status');
is($p->{mode}, 'wall', 'the list has the mode');
is($p->{scope}, 'request', 'the list has the scope');
is($p->{pinned}, JSON::PP::false, 'a new profile is not pinned');
cmp_ok($p->{wall}, '>', 1000, 'the list has the wall time');
cmp_ok($p->{wall}, '>=', $p->{cpu} * 0.5, 'the list has a plausible CPU time');
ok((grep { $_ == $p->{worker} } $t->worker_pids()), 'the list has the worker');
cmp_ok(abs($p->{start} / 1000 - time), '<', 60, 'the list has the start time');

($p) = grep { $_->{id} eq $posted } @{profiles()};
is($p->{uri}, '/index.html?a=b',
    'the list has the URI of a POST request with its arguments');
is($p->{method}, 'POST', 'the list has the method POST');


# the page of one profile

my $one = "/-/profile/p/$id{'/'}";
my $r = http_get($one);

is($r->status(), 200, 'the page of a profile is served');
like($r->content(), qr/data-id="$id{'\/'}"/,
    'the page has the id of the profile');
like($r->content(), qr/data-root="\.\.\/" /,
    'the page has the relative URL of the console');
unlike($r->content(), qr/\{\{|\}\}/, 'the page has no placeholder left');

my $json = decode_json(http_get("$one.json")->content());

is($json->{title}, 'GET /', 'the JSON has the title');
is($json->{id}, $id{'/'}, 'the JSON has the id');

my %summary = map { $_->{name} => $_ } @{$json->{summary}};

like($summary{request}{value}, qr{^GET /\?performance_bar=record HTTP/1\.},
     'the JSON has the facts');
is($summary{samples}{unit}, 'count', 'the JSON has the counters');

my @formats = map { $_->{name} } @{$json->{formats}};

is("@formats", 'speedscope pprof folded svg html',
    'the JSON lists the formats');

my %starts = (
    speedscope => qr/^\{"\$schema":/, pprof => qr/^\x1f\x8b/,
    folded => qr/^\S/, svg => qr/^<\?xml|^<svg/, html => qr/^<!DOCTYPE html>/
);

for my $format (@formats) {
    $r = http_get("$one/$format");

    is($r->status(), 200, $format);
    like($r->body(), $starts{$format}, "the format $format is served");
    is($r->header('Cache-Control'), 'no-store', "$format is not cached");
    like($r->header('Content-Disposition') // '',
         $format =~ /svg|html/ ? qr/^$/
             : qr/^attachment; filename="GET-wall-\d+T\d+Z\.[a-z.]+"$/,
         "$format has a file name if it is a download");
    is($r->header('X-Frame-Options'),
       $format =~ /svg|html/ ? 'SAMEORIGIN' : 'DENY',
        "$format can be framed by the console if it is a page");

    next if $format eq 'pprof';

    my $gzipped = http_get("$one/$format",
                           headers => [ 'Accept-Encoding: gzip' ]);

    is($gzipped->header('Content-Encoding'), 'gzip', "$format is compressed");
    is($gzipped->content(), $r->body(),
        "the compressed $format has the same content");
}

# the formats that the links of the page name

is(http_get("$one/html?profile_format=folded")->body(),
   http_get("$one/folded")->body(), 'an argument chooses the format');
like(http_get("$one/svg?profile_mode=cpu")->body(), qr/data-mode="cpu"/,
     'an argument chooses the mode');
is(http_get("$one/svg?profile_mode=x")->status(), 400,
    'an unknown mode has the status 400');
is(http_get("$one/svg?profile_format=x")->status(), 400,
    'an unknown format in an argument has the status 400');
is(http_get("$one/none")->status(), 404,
    'an unknown format in the URL has the status 404');
is(http_head("$one/svg")->body(), '', 'HEAD has no body');
is(http_get("/debug/pprof/p/$id{'/'}/folded")->status(), 200,
   'another console serves the same profile');

for my $format ('html', 'svg') {
    my $evil = http_get("/-/profile/p/"
                        . (grep { $_->{uri} =~ /evil/ } @{profiles()})[0]{id}
                        . "/$format");

    is($evil->status(), 200,
        "a profile with an evil URI is served as $format");
    unlike($evil->content(), qr/evil<script/,
        "the evil URI is escaped in $format");
}


# ids are not guessed

for my $forged ('0' x 32, 'x' x 32, uc $id{'/'}, substr($id{'/'}, 1),
                "$id{'/'}0", '%252e%252e%252f', '..%5c..%5cetc%5cpasswd', '%01' x 32,
                '%ff' x 32, 'a' x 4000, "$id{'/'}%0a")
{
    my $name = substr($forged, 0, 40);

    is(http_get("/-/profile/p/$forged")->status(), 404,
        "the page of an id with $name has the status 404");
    is(http_get("/-/profile/p/$forged.json")->status(), 404,
        "the JSON of an id with $name has the status 404");
    is(http_get("/-/profile/p/$forged/svg")->status(), 404,
        "the picture of an id with $name has the status 404");
    is(change('DELETE', "p/$forged")->status(), 404,
        "an id with $name cannot be deleted");
    is(change('POST', "p/$forged/pin")->status(), 404,
        "an id with $name cannot be pinned");
}


# requests that may not change anything

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
       ->status(), 405, 'a preflight request of another site is refused');
is(http_get("/-/profile/p/$id{'/'}/delete")->status(), 404,
    'GET does not delete a profile');
is(send_request('PUT', "p/$id{'/'}", 'X-Profile-Console: 1')
       ->header('Allow'), 'GET, HEAD, POST, DELETE',
    'the answer to PUT lists the permitted methods');
is(scalar @{profiles()}, 4, 'refused changes delete no profile');
is((grep { $_->{pinned} } @{profiles()}), 0, 'refused changes pin no profile');

my $denied = send_request('DELETE', "/denied/p/$id{'/'}",
                          'X-Profile-Console: 1');
is($denied->status(), 403, '"deny" refuses the list');
is(http_get("/denied/p/$id{'/'}")->status(), 403,
    '"deny" refuses the page of a profile');


# changes

is(change('POST', "p/$id{'/'}/pin", 'Sec-Fetch-Site: same-origin',
          "Origin: http://$host")->status(), 204, 'a profile can be pinned');
is(join(' ', map { $_->{id} } grep { $_->{pinned} } @{profiles()}), $id{'/'},
   'the list shows the pin');
is(change('POST', "p/$id{'/'}/unpin")->status(), 204,
    'a profile can be unpinned');
is((grep { $_->{pinned} } @{profiles()}), 0, 'the list shows no pin');
is(change('POST', "p/$id{'/'}/paint")->status(), 404,
    'an unknown change has the status 404');

is(change('DELETE', "p/$id{'/none'}")->status(), 204,
    'DELETE deletes a profile');
is(scalar @{profiles()}, 3, 'the list no longer has the profile');
is(change('DELETE', "p/$id{'/none'}")->status(), 404,
    'a deleted profile cannot be deleted again');
is(change('POST', "p/$posted/delete")->status(), 204,
    'POST to "delete" deletes a profile');
is(scalar @{profiles()}, 2, 'the list no longer has that profile');
is(http_get("/-/profile/p/$posted/svg")->status(), 404,
    'a deleted profile has the status 404');


# two compared

my ($a, $b) = map { $_->{id} } @{profiles()};

$json = decode_json(http_get("/-/profile/diff.json?a=$a&b=$b")->content());
is($json->{before}{id}, $a, 'a difference names its first profile');
is($json->{after}{id}, $b, 'a difference names its second profile');
is($json->{shares}, JSON::PP::false,
    'a difference compares weights by default');
cmp_ok(scalar @{$json->{functions}}, '>', 2, 'a difference lists functions');

my ($before, $after) = (0, 0);

for my $f (@{$json->{functions}}) {
    $before += $f->{self}[0];
    $after += $f->{self}[1];
}

is($after - $before, $json->{after}{wall} - $json->{before}{wall},
   'the changes of all functions sum to the whole change');

like(http_get("/-/profile/diff/svg?a=$a&b=$b")->content(), qr/<svg/,
     'a difference is served as SVG');
like(http_get("/-/profile/diff/html?a=$a&b=$b&shares=on&profile_mode=cpu")
         ->content(), qr/<html/, 'a difference of shares is served as a page');
is(http_get("/-/profile/diff?a=$a&b=$b")->status(), 200,
    'the console has a page for differences');

$json = decode_json(http_get("/-/profile/diff.json?a=$a&b=$a")->content());
is_deeply($json->{functions}, [], 'a profile does not differ from itself');

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
   'GET captures workers without storing the profile');
is(send_request('POST', 'cpu?seconds=0.1')->status(), 403,
   'another site cannot store a capture');
is(scalar @{profiles()}, $n, 'these captures store nothing');

$r = change('POST', 'wall?seconds=0.2&frequency=1000');
is($r->status(), 201, 'POST stores a capture of workers');

my $stored = decode_json($r->body())->{id};
($p) = grep { $_->{id} eq $stored } @{profiles()};

is($p->{scope}, 'all', 'the stored capture has the scope "all"');
is($p->{mode}, 'wall', 'the stored capture has its mode');
is($p->{uri}, 'all workers', 'the stored capture has a title');
like(http_get("/-/profile/p/$stored/speedscope")->body(), qr/all workers/,
     'the stored capture is served');
is(change('POST', 'cpu?seconds=x')->status(), 400,
    'a wrong number of seconds has the status 400');

my ($pid) = $t->worker_pids();

$r = change('POST', "cpu?seconds=0.1&workers=$pid");
($p) = grep { $_->{scope} eq 'worker' } @{profiles()};
is($p->{worker}, $pid, 'a capture of one worker names this worker');


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

    is("@got", "@all", "pages of $limit profiles contain all profiles");
    is($pages, int((@all + $limit - 1) / $limit),
        'the number of these pages is right');
}

is_deeply(list('before=1'), { profiles => [], more => JSON::PP::false },
          'no profile is older than the oldest one');

for my $args (qw/ limit=0 limit=1001 limit=x limit= before=0 before=-1
                  before=99999999999999999999 before=id /)
{
    my ($name, $value) = split(/=/, $args);

    $r = http_get("/-/profile/profiles.json?$args");
    is($r->status(), 400, "the list refuses $args");
    like($r->content(), qr/\"$name\\" is \\"\Q$value\E\\", it must be a/,
         "the answer to $args names the wrong value");
}


# memory

http_get('/index.html?performance_bar=record&profile_mode=object');
ok(wait_for(sub { ($p) = grep { $_->{mode} eq 'object' } @{profiles()} }),
   'a profile of allocations is stored');

cmp_ok($p->{allocated}, '>', 1000, 'the list has the allocated bytes');
cmp_ok($p->{allocations}, '>=', 1, 'the list has the number of allocations');
cmp_ok($p->{in_use}, '<', $p->{allocated}, 'the list has the bytes in use');
is((profiles())->[1]{allocated}, undef,
    'profiles of time have no allocated bytes');

$r = change('POST', 'object?seconds=0.2&interval=0');
$stored = decode_json($r->body())->{id};
http_get('/index.html');
($p) = grep { $_->{id} eq $stored } @{profiles()};
is($p->{mode}, 'object', 'a capture of the allocations of workers is stored');
like($p->{allocated}, qr/^\d+$/, 'the list has the allocated bytes');


# a capture of an endpoint in a browser: the page of the stored profile

my $page = http_get('/index.html?performance_bar=flamegraph'
                    . '&profile_requests=1&profile_seconds=30',
                    headers => [ 'Accept: text/html' ], start => 1);

ok(wait_for(sub {
    http_get('/index.html');
    ($p) = grep { $_->{scope} eq 'endpoint' } @{profiles()};
}), 'a capture of an endpoint is stored');

$page = http_end($page);
is($page->status(), 200, 'the trigger for an endpoint gets a page');
like($page->content(), qr/data-id="$p->{id}"/,
    'the page has the id of the endpoint\'s profile');


# clients that do not wait

for (1 .. 30) {
    my $socket = http("GET $one/html HTTP/1.0\r\n\r\n", start => 1);
    close $socket;
}

ok(wait_for(sub { http_get("$one/html")->status() == 200 }),
   'pictures are made after clients disconnected');


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
