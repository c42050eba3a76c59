#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# Captures of an endpoint: the next requests of a URI prefix, a server or a
# location over all workers, merged, and nothing of others; how their times are
# spread; that clients notice nothing.

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

# the next requests of a prefix, beside others

my @load = (
    $t->load('/text', clients => 2, @gzip),
    $t->load('/loop' . 'a' x 16 . '!', clients => 2, headers => []),
);

my $begin = time();
my $p = capture('wall?uri=/text&requests=40&seconds=60');

cmp_ok(time() - $begin, '<', 30, 'it ends when all were there');
is(named($p, 'requests'), 40, 'so many requests');
is(named($p, 'scope'), 'endpoint', 'scope');
is(named($p, 'title'), '/text', 'title');
like(named($p, 'request_times'), qr/^from \d+ us to \d+ us, mean \d+ us, half /,
    'the spread of their times');

my ($least, $most, $mean) = named($p, 'request_times')
                                =~ /(\d+) us to (\d+) us, mean (\d+)/;
cmp_ok($least, '<=', $mean, 'least');
cmp_ok($mean, '<=', $most, 'most');

my $wall = $p->total('wall/nanoseconds') / 1000 / 40;
cmp_ok(abs($wall - $mean), '<=', 2 + $mean / 100,
    'the sum is that of the requests');

ok((grep { grep { /deflate/ } @{$_->{stack}} } $p->samples()),
    'what they did');
is(scalar(grep { grep { /pcre2_match/ } @{$_->{stack}} } $p->samples()), 0,
    'and nothing that others did');

my %workers = map { $_->{labels}{worker} => 1 } $p->samples();
cmp_ok(scalar keys %workers, '>', 0, 'workers are labels');

# for some seconds

$p = capture('cpu?uri=/loop&seconds=1');

cmp_ok(named($p, 'requests'), '>', 0, 'requests in a second');
ok((grep { grep { /pcre2_match/ } @{$_->{stack}} } $p->samples()),
    'the others now');
is(scalar(grep { grep { /deflate/ } @{$_->{stack}} } $p->samples()), 0,
    'and not those');

# two at once, and one of all workers

my @at_once = map { start($_) } 'cpu?uri=/text&requests=10&seconds=60',
                                'cpu?uri=/te&requests=20&seconds=60',
                                'cpu?seconds=1';

my @got = map { answer($_) } @at_once;

is(named($got[0], 'requests'), 10, 'one');
is(named($got[1], 'requests'), 20, 'another that takes the same');
cmp_ok($got[2]->total('cpu/nanoseconds'), '>', 0, 'and all');

$_->stop() for @load;

# clients notice nothing

my $s = start('wall?uri=/text&requests=1&seconds=20');
sleep(0.3);
my $got = http_get('/text', @gzip);

is(join('|', map { $got->header($_) // '' } qw/ Content-Type ETag Vary
         Content-Encoding X-Profile-Id X-Profiled-Status Link /),
   join('|', map { $plain->header($_) // '' } qw/ Content-Type ETag Vary
         Content-Encoding X-Profile-Id X-Profiled-Status Link /),
   'the same header');
is($got->content(), $plain->content(), 'the same body');
is(named(answer($s), 'requests'), 1, 'it was captured');

# a location is where a request ends up

$s = start('wall?location=/text&requests=3&seconds=20');
sleep(0.3);
http_get('/moved/x');
http_get('/loop');
http_get('/text');
http_get('/moved/y');

$p = answer($s);
is(named($p, 'requests'), 3, 'those of a location');
is(named($p, 'title'), '/text', 'its name');

# a server

$s = start('wall?server=two&requests=2&seconds=20');
sleep(0.3);
http_get('/text');
http_get('/a', headers => [ 'Host: two' ]);
http_get('/b', headers => [ 'Host: two' ]);
is(named(answer($s), 'requests'), 2, 'those of a server');

# waiting is in it

$s = start('wall?uri=/slow&requests=2&seconds=20');
sleep(0.3);
http_get('/slow/wait=100/1');
http_get('/slow/wait=100/2');
$p = answer($s);

my $waited = $p->total('wall/nanoseconds',
                       sub { grep { $_ eq '[waiting]' } @{$_[0]{stack}} });
cmp_ok($waited, '>', 0.15e9, 'they waited');
ok((grep { grep { /upstream/ } @{$_->{stack}} } $p->samples()), 'for what');

# by the trigger of a location; the request that asks is not one of them

$s = http_get('/text?performance_bar=flamegraph&profile_requests=3'
              . '&profile_format=pprof&profile_mode=cpu', start => 1);
sleep(0.3);
http_get($_) for '/text', '/loop', '/text', '/moved/x', '/text';

$got = http_end($s, timeout => 70);
$p = ProfileTest::Pprof->new($got);

is($got->status(), 200, 'trigger: status');
is(named($p, 'requests'), 3, 'trigger: requests of the location');
is($p->default_type(), 'cpu', 'trigger: mode');
is(named($p, 'title'), '/text', 'trigger: location');

my $id = $got->header('X-Profile-Id');
like($id, qr/^[0-9a-f]{32}$/, 'trigger: id');
is($got->header('Link'), "</-/profile/p/$id>; rel=\"describedby\"; "
                         . 'title="profile"', 'trigger: link');
is($got->header('X-Profile-Dropped'), undef, 'trigger: it is stored');

# what is stored is what was sent

my $stored = ProfileTest::Pprof->new(http_get("/-/profile/p/$id/pprof"));
is(named($stored, 'requests'), 3, 'trigger: stored');
is($stored->total('cpu/nanoseconds'), $p->total('cpu/nanoseconds'),
   'trigger: stored, the same time');

ok((grep { grep { /^phase / } @{$_->{stack}} } $p->samples()),
   'trigger: stages');

$s = http_get('/text?performance_bar=flamegraph&profile_requests=1'
              . '&profile_format=pprof&profile_spans=off', start => 1);
sleep(0.3);
http_get('/text');
$p = ProfileTest::Pprof->new(http_end($s, timeout => 70));

is(scalar(grep { grep { /^(?:phase|event|body) / } @{$_->{stack}} }
          $p->samples()), 0, 'trigger: no stages');

$begin = time();
$p = ProfileTest::Pprof->new(http_get('/text', headers => [
         'X-Profile: flamegraph; seconds=0.5; format=pprof' ])->body());

cmp_ok(time() - $begin, '>=', 0.5, 'trigger header: seconds');
is(named($p, 'requests'), 0, 'trigger header: none came');

for my $wrong (
    [ 'profile_seconds=0', qr/profile_seconds takes a number from 0.1 to 600/ ],
    [ 'profile_requests=a', qr/profile_requests takes a number from 1 to 100000/ ],
    [ 'profile_requests=1&profile_mode=object', qr/are for flamegraphs in the/ ])
{
    my ($args, $text) = @$wrong;
    $got = http_get("/text?performance_bar=flamegraph&$args");

    is($got->status(), 400, "$args: status");
    like($got->body(), $text, 'what it takes');
}

$got = http_get('/text?profile_requests=1', @gzip);
is($got->content(), $plain->content(), 'without the trigger it is nothing');

# the console is no endpoint; none came

$s = start('wall?requests=1&seconds=1');
sleep(0.2);
http_get('/-/profile/help');
$p = answer($s);

is(named($p, 'requests'), 0, 'no request, but one of the console');
is($p->total('wall/nanoseconds'), 0, 'no time');

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

    is($got->status(), 400, substr($args, 0, 20) . ': status');
    like($got->body(), $text, 'what it takes');
}

# no request is captured afterwards

my $state = http_get('/-/profile/status.json')->body();
like($state, qr/"captures":\[\]/, 'no capture is left');

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
