#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers
# runs: beside
#
# A capture of an endpoint that ends without a request is an error, in each way
# to ask for it.  The answer tells what was asked for, and where the requests of
# this time ended.  While a capture runs, clients of the console can count its
# requests.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;
use ProfileTest::Upstream;

my $tool = dirname(__FILE__) . '/../tools/nginx-profile';

my $t = ProfileTest->new()->has(qw/ rewrite proxy /)->has_program('script');

$t->conf(<<'EOF', workers => 2);
server {
    listen 127.0.0.1:8080;
    server_name one;
    profile_endpoint on;

    location /a { return 200 "a\n"; }
    location /b { return 200 "b\n"; }
    location /moved { rewrite ^ /b last; }
    location = /wait { proxy_pass http://127.0.0.1:8081/wait=9000/; }
    location = /rare { return 200 "rare\n"; }

    location /-/profile/ { profile_console; }
}

server {
    listen 127.0.0.1:8080;
    server_name two;

    location /c { return 200 "c\n"; }
}
EOF

$t->run();

run_upstream($t, 8081);

###############################################################################

# each way to ask

for my $case (
    [ 'a location', 'wall?location=/nonexist&requests=5&seconds=0.7',
        '/nonexist' ],
    [ 'a URI', 'cpu?uri=/nonexist&seconds=0.7', '/nonexist' ],
    [ 'a server', 'wall?server=three&seconds=0.7&format=folded', 'three' ],
    [ 'one worker', 'wall?uri=/x&workers=all&seconds=0.7', '/x' ],
    [ 'allocations', 'object?uri=/x&seconds=0.7', '/x' ],
    [ 'Go', 'debug/pprof/profile?uri=/x&seconds=0.7', '/x' ])
{
    my ($what, $uri, $title) = @$case;
    my $s = http_get("/-/profile/$uri", start => 1);

    is_empty($what, beside($s), $title);
}

is_empty('a trigger', beside(http_get('/rare?performance_bar=flamegraph'
         . '&profile_seconds=0.7', start => 1)), '/rare');
is_empty('a header', beside(http_get('/rare', start => 1, headers => [
         'X-Profile: flamegraph; requests=2; seconds=0.7' ])), '/rare');

my $s = http_post('/-/profile/wall?uri=/x&seconds=0.7', '', start => 1,
                  headers => [ 'X-Profile-Console: 1',
                               'Accept: application/json' ]);
my $got = beside($s);
is($got->status(), 404, 'the console: the status is 404');
like(decode_json($got->body())->{error}, qr/^no request of "\/x" ended in 0\.7/,
    'the console: the error is JSON');
is(scalar @{decode_json(http_get('/-/profile/profiles.json')->body())
            ->{profiles}}, 0, 'nothing is stored');

# other reasons

$got = http_get('/-/profile/wall?uri=/x&seconds=0.3');
like($got->body(), qr/^no request of "\/x" ended in 0\.3 seconds; requests that ended in other locations: 0$/,
    'nobody asked for anything');

$s = http_get('/-/profile/wall?uri=/wait&seconds=0.8', start => 1);
sleep(0.3);
my $waits = http_get('/wait', start => 1);
like(http_end($s)->body(), qr/ended in 0\.8 seconds; still running: 1$/,
    'a request that waits is longer than the capture');
close($waits);

# the program

my ($rc, $out) = $t->command($^X, $tool, '-u', 'http://127.0.0.1:' . port(8080),
                             '--location', '/nonexist', '-n', '5', '-s', '0.3',
                             '-o', $t->testdir() . '/a.svg');

is($rc, 3, 'the program has an exit status for it');
like($out, qr/^nginx-profile: no request of "\/nonexist" ended in 0\.3 seconds/,
    'the program says why');
ok(!-e $t->testdir() . '/a.svg', 'the program writes no file');

# the requests so far

$s = http_get('/-/profile/wall?location=/a&requests=3&seconds=20&format=pprof',
              start => 1);
my $all = http_get('/-/profile/cpu?uri=/&seconds=4', start => 1);

ok(wait_for(sub { running() == 2 }, 5), 'captures that run are listed');
sleep(0.3);

for my $n (1 .. 2) {
    http_get('/a');
    http_get('/b');
    ok(wait_for(sub { far('/a')->{requests} == $n }, 5),
        "$n of 3 requests are counted");
}

is(far('/a')->{wanted}, 3, 'the number that is wanted is known');
cmp_ok(far('/a')->{seconds_left}, '<', 20, 'the time that is left is known');
is(far('/')->{wanted}, 0, 'a capture may have no limit');
ok(wait_for(sub { far('/')->{requests} == 4 }, 5), 'its requests are counted');

($rc, $out) = $t->command('script', '-qec', "$^X $tool -u http://127.0.0.1:"
                          . port(8080) . ' --location /a -n 3 -s 1.2 -f svg'
                          . ' -o /dev/null', '/dev/null');
like($out, qr/capturing: 1 of 1\.2 s, [02] of 3 requests/,
    'the program shows them on a terminal');

http_get('/a');
is(named(ProfileTest::Pprof->new(http_end($s, timeout => 25)), 'requests'), 3,
    'the capture has its requests');
http_end($all);
ok(wait_for(sub { running() == 0 }, 5),
   'captures that have ended are not listed');

###############################################################################

# some requests that end elsewhere; returns the answer of the capture
sub beside {
    my ($s) = @_;

    sleep(0.3);
    http_get('/a') for 1 .. 3;
    http_get('/moved');
    http_get('/c', headers => [ 'Host: two' ]);
    http_get('/-/profile/help');

    return http_end($s, timeout => 20);
}


sub is_empty {
    my ($what, $got, $title) = @_;

    is($got->status(), 404, "$what: the status is 404");
    is($got->header('X-Profile-Dropped'), 'no request was captured',
        "$what: a header tells it to programs");

    my ($text) = $got->body() =~ /^no request of "\Q$title\E" ended in 0\.7 seconds; requests that ended in other locations: (.*)/;

    is(join(', ', sort split(/, /, $text // '')),
       '"/a" of the server "one": 3, "/b" of the server "one": 1, '
       . '"/c" of the server "two": 1',
       "$what: the answer tells where requests ended")
        or diag($got->body());
}


sub captures {
    return @{decode_json(http_get('/-/profile/endpoints')->body())->{captures}};
}


sub running { return scalar(my @all = captures()) }


sub far {
    my ($title) = @_;
    return (grep { $_->{title} eq $title } captures())[0] // {};
}


sub named {
    my ($p, $name) = @_;
    return (map { /^$name: (.*)/s ? $1 : () } $p->comments())[0];
}
