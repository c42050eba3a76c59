#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: continuous
# runs: first

# The continuous profile: slices of all workers, ranges of time, and what
# happens to slices in reloads and when workers are killed.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip /)->plan(53);

$t->conf(<<'EOC', workers => 2);
profile_continuous on slice=1s wall=on;
profile_zone small:64k;
server {
    %%CONF gzip%%
    location = /none { return 204; }
}
EOC

$t->write_file('text', join('', map { "line $_ " . $_ ** 2 . "\n" } 1 .. 10_000));
$t->run();

my $gzip = [ 'Accept-Encoding: gzip' ];

like(http_get('/-/profile/cpu?from=-1m'), qr/ 404 .*has no slice that began/s,
     'an idle server has no slices');

# work at a known time; a slice that has begun before it contains it as well

my $begin = time() - 1;

busy(1);

ok(wait_for(sub { status()->{stored} >= 1 }, 10), 'a slice is stored');

my $end = time() + 0.001;

my $p = range($begin, $end);

cmp_ok($p->total(), '>', 0, 'the range has CPU time');
cmp_ok($p->weight_below(qr/deflate|libz|longest_match/), '>', 0.3 * $p->total(),
       'most of it was compression');

like(http_get('/-/profile/cpu?from=' . int($begin - 60) . '&to='
              . int($begin - 30)), qr/ 404 .*has no slice that began/s,
     'a range before the work has no slices');

my $json = get("wall?from=$begin&to=$end&format=speedscope")->content();

like($json, qr/"wall"/, 'a range has wall time');
like(get("cpu?from=-1m&format=svg")->content(), qr/<svg/,
     'a range is shown as a picture');
like(get("cpu?from=-1m&format=folded")->content(), qr/^\S.* \d+$/m,
     'a range is shown as folded stacks');

# Go's tool reads it

SKIP: {
    my $file = $t->testdir() . '/range.pb.gz';

    open my $f, '>:raw', $file or die $!;
    print $f get("cpu?from=$begin&to=$end&format=pprof",
                 [ 'Accept-Encoding: identity' ])->content();
    close $f;

    skip 'go is not installed', 1
        if system('command -v go >/dev/null') != 0;

    my ($rc, $out) = $t->command('go', 'tool', 'pprof', '-top',
                                 '-symbolize=none', $file);
    like($out, qr/Type: cpu.*deflate|libz/s, 'go tool pprof reads it');
}

# consecutive ranges have each slice once

busy(2);

my $last = time();

# slices that have begun before end within a second, and jobs store them

busy(1.2);
wait_for(sub { !grep { $_->{jobs} } @{decode_json(
                   get('status.json')->content())->{workers}} }, 10);

my $middle = ($begin + $last) / 2;
my ($whole, @parts) = map { range(@$_)->total() }
                      [ $begin, $last ], [ $begin, $middle ],
                      [ $middle, $last ];

cmp_ok(abs($whole - sum0(@parts)), '<=', 1,
       'consecutive ranges have each slice once');

# a single worker

my @workers = map { eval { range($begin, $last, "&worker=$_")->total() } // 0 }
              0, 1;

cmp_ok(abs($whole - sum0(@workers)), '<=', 1,
       'the workers of a range make the range');

# slices outlive workers

$t->reload();

cmp_ok(range($begin, $last)->total(), '>=', $whole, 'a reload keeps slices');

my $stored = status()->{stored};

busy(1.5);

ok(wait_for(sub { status()->{stored} > $stored }, 10),
   'the new workers add slices');

is(status()->{lost}, 0, 'a reload loses no slice');

# a worker that ends stores its last slice

$stored = status()->{stored};

busy(0.4);
$t->reload();

ok(wait_for(sub { status()->{stored} > $stored }, 5),
   'a worker that ends stores its last slice');

# killed workers

wait_for(sub { $t->worker_pids() == 2 }, 10);

my ($pid) = $t->worker_pids();

kill 'KILL', $pid;

ok(wait_for(sub { my $n = eval { status()->{lost} }; $n && $n == 1 }, 10),
   'the slice of a killed worker is counted as lost');

$t->allow(qr/exited on signal 9/);

cmp_ok(range($begin, $last)->total(), '>=', $whole,
       'a killed worker takes no stored slice with it');

$stored = status()->{stored};

busy(1.5);

ok(wait_for(sub { status()->{stored} > $stored }, 10),
   'the next worker adds slices');

# stored: for comparisons

my $post = http_post("/-/profile/cpu?from=$begin&to=$last", '',
                     headers => [ 'X-Profile-Console: 1' ]);

like($post, qr/ 201 .*"id"/s, 'POST stores the range');

my ($id) = $post->content() =~ /"id": "(\w+)"/;

like(get("p/$id.json")->content(), qr/"all workers"/, 'as a profile');

my $list = get('profiles.json')->content();

is(() = $list =~ /"id"/g, 1, 'slices are not in the list of profiles');

# wrong arguments

my @wrong = (
    [ 'from=', 'from' ], [ 'from=yesterday', 'from' ], [ 'from=-', 'from' ],
    [ 'from=-1x', 'from' ], [ 'from=2026-11-23', 'from' ],
    [ 'from=-1m&to=', 'to' ], [ 'from=-1m&to=2026-13-23T06:44:20Z', 'to' ],
    [ 'from=2026-11-23T06:44:20', 'from' ],
    [ 'from=99999999999999999999', 'from' ], [ 'from=12a', 'from' ],
    [ 'to=now', 'from' ], [ 'from=now&to=-1m', 'from' ],
    [ 'from=-1m&seconds=1', 'seconds' ], [ 'from=-1m&worker=x', 'worker' ],
    [ 'from=-1m&format=gif', 'format' ], [ 'from=-1m&uri=/', 'uri' ],
    [ 'from=-1m&frequency=19', 'frequency' ],
    [ 'from=-1m&to=now%00x', 'to' ],
    [ 'from=2026-11-23T06:44:20Z%00x', 'from' ],
    [ 'from=2026-11-23T06:44:20%2B24:00', 'from' ],
    [ 'from=2026-11-23T06:44:20%2B01:60', 'from' ],
);

for (@wrong) {
    my $r = get("cpu?$_->[0]");

    like($r, qr/ 400 .*"$_->[1]" is /s, "wrong: $_->[0]");
}

# nothing follows the error, also not in a connection that is kept

for ('cpu?from=x', 'cpu?from=-1m&to=x', 'cpu?from=-1m&uri=/',
     'cpu?from=-1m&worker=x', 'cpu?from=-1m&format=gif')
{
    is(http_after("/-/profile/$_")->status(), 204, "the only answer to $_");
}

# one moment in several forms

my $sec = int($begin);
my @t = gmtime($sec);
my $date = sprintf('%04d-%02d-%02dT%02d:%02d:%02d', $t[5] + 1900, $t[4] + 1,
                   @t[3, 2, 1, 0]);
my @t2 = gmtime($sec + 5400);
my $east = sprintf('%04d-%02d-%02dT%02d:%02d:%02d%%2B01:30', $t2[5] + 1900,
                   $t2[4] + 1, @t2[3, 2, 1, 0]);

my $total = range($sec, $last)->total();

cmp_ok(abs(range($_, $last)->total() - $total), '<=', 1, "from=$_")
    for "${date}Z", "$date.000Z", "$sec.0", $east;


sub busy {
    my ($seconds) = @_;

    # also on a busy machine the workers have used CPU time

    my $until = time() + $seconds;
    my $n = 40 * $seconds;

    http_get('/text', headers => $gzip) while $n-- > 0 || time() < $until;
}

sub get {
    my ($uri, $headers) = @_;

    return http_get("/-/profile/$uri", headers => $headers || []);
}

# the response to another request in the connection of the request

sub http_after {
    my ($uri) = @_;

    my $s = http("GET $uri HTTP/1.1\r\nHost: localhost\r\n\r\n", start => 1);

    http_end($s);

    return http("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n",
                socket => $s, timeout => 3);
}

sub range {
    my ($from, $to, $rest) = @_;

    my $r = get("cpu?from=$from&to=$to&format=speedscope" . ($rest // ''));

    return ProfileTest::Profile->new($r)->profile('cpu');
}

sub status {
    return decode_json(get('status.json')->content())->{continuous};
}
