#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers
# runs: beside
#
# Captures of an endpoint: the next requests of a URI prefix, a server or a
# location in all workers, merged.  Other requests are not in the profile.  The
# profile shows the distribution of the requests' times, and clients get their
# usual responses.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ time sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ gzip map proxy rewrite /);

$t->conf(<<'EOF', workers => 3);
%%SLOW_MAP%%

default_type text/plain;
gzip_types text/plain;
gzip_comp_level 9;

server {
    listen 127.0.0.1:8080 reuseport;
    server_name one;
    profile_endpoint on;

    location /text {
        gzip on;
    }

    location /loop {
        set $said $slow;
        rewrite ^ /small break;
    }

    location /moved/ {
        rewrite ^ /text;
    }

    location /slow/ {
        proxy_pass http://127.0.0.1:8081/;
    }

    location /-/profile/ {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8080;
    server_name two;

    location / {
        return 200 "two\n";
    }
}
EOF

$t->write_file('text', join('', map { "line $_ " . rand() . "\n" } 1 .. 3000));
$t->write_file('small', 'small');
$t->run();

run_upstream($t, 8081);

my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);
my $plain = http_get('/text', @gzip);

###############################################################################

# the next requests of a prefix, beside other requests

my @load = (
    $t->load('/text', clients => 2, @gzip),
    $t->load('/loop' . 'a' x 16 . '!', clients => 2, headers => []),
);

my $begin = time();
my $p = capture('wall?uri=/text&requests=40&seconds=60');

cmp_ok(time() - $begin, '<', 30,
    'the capture ends after the given number of requests');
is(named($p, 'requests'), 40, 'the profile has the given number of requests');
is(named($p, 'scope'), 'endpoint', 'the scope is "endpoint"');
is(named($p, 'title'), '/text', 'the title is the URI');
like(named($p, 'request_times'), qr/^from \d+ \S+s to \d+ \S+s, mean \d+ \S+s, half /,
    'the profile has the distribution of the requests\' times');

my ($least, $most, $mean) = named($p, 'request_times')
                                =~ /(\d+) \S+s to (\d+) \S+s, mean (\d+)/;
cmp_ok($least, '<=', $mean, 'the shortest time is at most the mean');
cmp_ok($mean, '<=', $most, 'the longest time is at least the mean');

my $wall = $p->total('wall/nanoseconds') / 1000 / 40;
cmp_ok(abs($wall - $mean), '<=', 2 + $mean / 100,
    'the sum of the times is that of the requests');

ok((grep { grep { /deflate/ } @{$_->{stack}} } $p->samples()),
    'the stacks show the requests of the endpoint');
is(scalar(grep { grep { /pcre2_match/ } @{$_->{stack}} } $p->samples()), 0,
    'the stacks show no other requests');

my %workers = map { $_->{labels}{worker} => 1 } $p->samples();
cmp_ok(scalar keys %workers, '>', 0, 'entries have workers as labels');

# for some seconds

$p = capture('cpu?uri=/loop&seconds=1');

cmp_ok(named($p, 'requests'), '>', 0,
    'a capture may take a time instead of a number');
ok((grep { grep { /pcre2_match/ } @{$_->{stack}} } $p->samples()),
    'a second capture shows the other endpoint');
is(scalar(grep { grep { /deflate/ } @{$_->{stack}} } $p->samples()), 0,
    'a second capture does not show the first endpoint');

# two captures of endpoints and one of all workers at the same time

my @at_once = map { start($_) } 'cpu?uri=/text&requests=10&seconds=60',
                                'cpu?uri=/te&requests=20&seconds=60',
                                'cpu?seconds=1';

my @got = map { answer($_) } @at_once;

is(named($got[0], 'requests'), 10, 'a capture of ten requests gets ten');
is(named($got[1], 'requests'), 20,
    'a simultaneous capture of the same requests gets its own');
cmp_ok($got[2]->total('cpu/nanoseconds'), '>', 0,
    'a simultaneous capture of all workers gets samples');

$_->stop() for @load;

# the responses of captured requests

my $s = start('wall?uri=/text&requests=1&seconds=20');
sleep(0.3);
my $got = http_get('/text', @gzip);

is(join('|', map { $got->header($_) // '' } qw/ Content-Type ETag Vary
         Content-Encoding X-Profile-Id X-Profiled-Status Link /),
   join('|', map { $plain->header($_) // '' } qw/ Content-Type ETag Vary
         Content-Encoding X-Profile-Id X-Profiled-Status Link /),
   'a captured request has the same header');
is($got->content(), $plain->content(), 'a captured request has the same body');
is(named(answer($s), 'requests'), 1, 'the request was captured');

# a location is where a request ends up

$s = start('wall?location=/text&requests=3&seconds=20');
sleep(0.3);
http_get('/moved/x');
http_get('/loop');
http_get('/text');
http_get('/moved/y');

$p = answer($s);
is(named($p, 'requests'), 3, 'a capture may be limited to a location');
is(named($p, 'title'), '/text', 'the title is the name of the location');

# a server

$s = start('wall?server=two&requests=2&seconds=20');
sleep(0.3);
http_get('/text');
http_get('/a', headers => [ 'Host: two' ]);
http_get('/b', headers => [ 'Host: two' ]);
is(named(answer($s), 'requests'), 2, 'a capture may be limited to a server');

# waiting is in it

$s = start('wall?uri=/slow&requests=2&seconds=20');
sleep(0.3);
http_get('/slow/wait=100/1');
http_get('/slow/wait=100/2');
$p = answer($s);

my $waited = $p->total('wall/nanoseconds',
                       sub { grep { $_ eq '[waiting]' } @{$_[0]{stack}} });
cmp_ok($waited, '>', 0.15e9, 'the profile contains waits');
ok((grep { grep { /upstream/ } @{$_->{stack}} } $p->samples()),
    'the profile names the cause of a wait');

# the trigger of a location; the request with the trigger is not captured

$s = http_get('/text?performance_bar=flamegraph&profile_requests=3'
              . '&profile_format=pprof&profile_mode=cpu', start => 1);
sleep(0.3);
http_get($_) for '/text', '/loop', '/text', '/moved/x', '/text';

$got = http_end($s, timeout => 70);
$p = ProfileTest::Pprof->new($got);

is($got->status(), 200, 'a trigger with a number of requests succeeds');
is(named($p, 'requests'), 3, 'the trigger captures requests of its location');
is($p->default_type(), 'cpu', 'the profile has the mode of the trigger');
is(named($p, 'title'), '/text', 'the title is the location of the trigger');

my $id = $got->header('X-Profile-Id');
like($id, qr/^[0-9a-f]{32}$/, 'the response has the id of the profile');
is($got->header('Link'), "</-/profile/p/$id>; rel=\"describedby\"; "
                         . 'title="profile"',
    'the response links the page of the profile');
is($got->header('X-Profile-Dropped'), undef, 'the profile was not dropped');

# the stored profile is the one of the response

my $stored = ProfileTest::Pprof->new(http_get("/-/profile/p/$id/pprof"));
is(named($stored, 'requests'), 3, 'the stored profile has the same requests');
is($stored->total('cpu/nanoseconds'), $p->total('cpu/nanoseconds'),
   'the stored profile has the same time');

ok((grep { grep { /^phase / } @{$_->{stack}} } $p->samples()),
   'the trigger shows stages');

$s = http_get('/text?performance_bar=flamegraph&profile_requests=1'
              . '&profile_format=pprof&profile_spans=off', start => 1);
sleep(0.3);
http_get('/text');
$p = ProfileTest::Pprof->new(http_end($s, timeout => 70));

is(scalar(grep { grep { /^(?:phase|event|body) / } @{$_->{stack}} }
          $p->samples()), 0, 'the trigger may hide stages');

$begin = time();
http_get('/text', headers => [ 'X-Profile: flamegraph; seconds=0.5' ]);
cmp_ok(time() - $begin, '>=', 0.5, 'a trigger with seconds waits for them');

for my $wrong (
    [ 'profile_seconds=0', qr/profile_seconds takes a number from 0.1 to 600/ ],
    [ 'profile_requests=a', qr/profile_requests takes a number from 1 to 100000/ ],
    [ 'profile_requests=1&profile_mode=object', qr/are for flamegraphs in the/ ])
{
    my ($args, $text) = @$wrong;
    $got = http_get("/text?performance_bar=flamegraph&$args");

    is($got->status(), 400, "$args: the status is 400");
    like($got->body(), $text, 'the error names the permitted values');
}

$got = http_get('/text?profile_requests=1', @gzip);
is($got->content(), $plain->content(),
    'without permission the trigger has no effect');

# requests to the console do not count, so no request is captured

$s = start('wall?requests=1&seconds=1');
sleep(0.2);
http_get('/-/profile/help');
is(http_end($s, timeout => 70)->status(), 404,
   'requests of the console are not captured');

# wrong parameters

for my $wrong (
    [ 'requests=0', qr/"requests" is "0", it must be a number from 1 to 100000/ ],
    [ 'requests=x', qr/"requests" is "x"/ ],
    [ 'uri=text', qr/"uri" is "text", it must be a prefix that begins with a / ],
    [ 'uri=', qr/"uri" is "", it must be a text of 1 to 255 bytes/ ],
    [ 'location=' . 'a' x 300, qr/it must be a text of 1 to 255 bytes/ ],
    [ 'server=', qr/"server" is ""/ ])
{
    my ($args, $text) = @$wrong;
    $got = http_get("/-/profile/cpu?$args");

    is($got->status(), 400, substr($args, 0, 20) . ': the status is 400');
    like($got->body(), $text, 'the error names the permitted values');
}

# no request is captured afterwards

my $state = http_get('/-/profile/status.json')->body();
like($state, qr/"captures":\[\]/, 'no capture remains');

###############################################################################

sub start {
    my ($what) = @_;
    return http_get("/-/profile/$what&format=pprof", start => 1);
}


sub answer {
    my ($s) = @_;
    return ProfileTest::Pprof->new(http_end($s, timeout => 70));
}


sub capture { return answer(start(@_)) }


sub named {
    my ($p, $name) = @_;
    return (map { /^$name: (.*)/s ? $1 : () } $p->comments())[0];
}
