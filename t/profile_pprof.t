#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: formats
# runs: beside
#
# The format of pprof: its content; "go tool pprof" reads it from a file and
# from nginx, and sends no other request to nginx.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;

my $t = ProfileTest->new()->has(qw/ gzip proxy /);

$t->conf(<<'EOF');
default_type text/plain;
gzip_comp_level 9;
gzip_types text/plain;

server {
    listen 127.0.0.1:8080;
    server_name www.example.com;

    profile_endpoint on;

    location /text {
        gzip on;
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8081/;
    }

    location /static {
        profile_format pprof;
        profile_mode cpu;
    }

    # for a reader that asks for symbols
    location /log {
        access_log %%TESTDIR%%/reader.log;
        alias %%TESTDIR%%/text;
        gzip on;
        gzip_types application/octet-stream text/plain;
    }
}

server {
    listen 127.0.0.1:8081;

    location / {
        limit_rate 1000;
    }
}
EOF

$t->write_file('text', join('', map { sprintf("line %d: %x\n", $_,
                                      $_ * 2654435761 % 4294967296) }
                                1 .. 50000));
$t->write_file('slow', 'a' x 1200);
$t->write_file('static', 'small');
$t->run();

my $args = 'performance_bar=flamegraph&profile_format=pprof';
my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);


# the time of a request that computes

my $r = http_get("/text?$args", @gzip);

is($r->header('Content-Type'), 'application/octet-stream',
   'the format has the type of binary data');
is($r->header('Content-Encoding'), undef,
   'the format has no Content-Encoding');
is($r->header('Vary'), undef, 'the reply has no Vary');
like($r->header('Content-Disposition'),
     qr/^attachment; filename="[\w.-]+-text-wall-\d{8}T\d{6}Z\.pb\.gz"$/,
     'the file name has path, mode and time');

my $p = ProfileTest::Pprof->new($r->body());

is(join(' ', $p->types()),
   'samples/count cpu/nanoseconds wall/nanoseconds',
   'a wall profile has samples, CPU time and wall time');
is($p->default_type(), 'wall', 'the default type of a wall profile is wall');
is($p->period_type(), 'wall/nanoseconds',
   'the period of a wall profile is wall time');
is($p->period(), 1000000, 'the period of a wall profile is a millisecond');
is($p->total('wall/nanoseconds'), $p->duration(),
   'the samples of a wall profile sum to the duration');
cmp_ok(abs($p->time_nanos() / 1e9 - time()), '<', 60,
       'the profile has the time of the capture');

cmp_ok($p->total('cpu/nanoseconds', sub { grep { /^deflate/ }
                                               @{$_[0]{stack}} }),
       '>', 0.5 * $p->total('cpu/nanoseconds'),
       'most of the CPU time is in deflate()');

my ($program, @objects) = $p->mappings();

like($program->[0], qr/nginx/, 'the first mapping is nginx');
like($program->[1], qr/^(?:[0-9a-f]{2}){8,}$/,
     'the first mapping has a build-id');
is(scalar(grep { !$_->[2] } $program, @objects), 0,
   'all mappings have functions');
is(scalar(grep { !$_->{4} } $p->locations()), 0,
   'all locations have a line');

my @samples = $p->samples();

is($samples[0]{labels}{server}, 'www.example.com',
   'samples have the server as a label');
is($samples[0]{labels}{location}, '/text',
   'samples have the location as a label');
is_deeply([ sort keys %{$samples[0]{labels}} ], [ qw/ location server state / ],
          'samples have no other labels');

my @comments = $p->comments();

like($comments[0], qr{^wall: GET /text, [\d.]+ ms, \d+ samples},
     'the first comment is the summary');
is(scalar(grep { $_ eq "request: GET /text?$args HTTP/1.1" } @comments), 1,
   'one comment is the request line');
like("@comments", qr/\bwall=@{[ $p->duration() ]}\b/,
     'the comments have the counters');


# the CPU time of the same

$p = ProfileTest::Pprof->new(http_get("/text?$args&profile_mode=cpu",
                                      @gzip)->body());

is(join(' ', $p->types()), 'samples/count cpu/nanoseconds',
   'a CPU profile has samples and CPU time');
is($p->default_type(), 'cpu', 'the default type of a CPU profile is cpu');
is($p->period_type(), 'cpu/nanoseconds',
   'the period of a CPU profile is CPU time');
cmp_ok($p->total('cpu/nanoseconds'), '>', 0, 'a CPU profile has CPU time');
my $cpu = $p->total('cpu/nanoseconds');
like(join(' ', $p->comments()), qr/\bcpu=$cpu\b/,
     'the samples of a CPU profile sum to the CPU clock');


# a request that waits, and one that is too short for a sample

$p = ProfileTest::Pprof->new(http_get("/proxy/slow?$args")->body());

my $waiting = $p->total('wall/nanoseconds',
                        sub { $_[0]{labels}{state} eq 'waiting' });

cmp_ok($waiting, '>', 0.9 * $p->duration(),
       'a request that waits has the state "waiting"');
is($p->total('cpu/nanoseconds', sub { $_[0]{labels}{state} eq 'waiting' }), 0,
   'waiting takes no CPU time');
is($p->total('samples/count', sub { $_[0]{labels}{state} eq 'waiting' }), 0,
   'waiting is not sampled');

$p = ProfileTest::Pprof->new(http_get('/static?performance_bar=flamegraph')
                             ->body());

is($p->default_type(), 'cpu', 'directives may choose mode and format');
cmp_ok($p->total('cpu/nanoseconds'), '>', 0, 'a short request has CPU time');


# the decoder of the tests

my $pprof = ProfileTest::Pprof::program();

SKIP: {
    skip('no go', 15) unless $pprof;

    local %ENV = (%ENV, HOME => $t->testdir(),
                  PPROF_TMPDIR => $t->testdir() . '/pprof',
                  PPROF_BINARY_PATH => $t->testdir());

    my $file = $t->testdir() . '/profile.pb.gz';
    $t->write_file('profile.pb.gz', http_get("/text?$args", @gzip)->body());

    my ($status, $out) = pprof('-top', $file);

    is($status, 0, '"-top" succeeds');
    like($out, qr/^Type: wall$/m, '"-top" shows the type');
    like($out, qr/^File: nginx$/m, '"-top" shows the file');
    like($out, qr{^request: GET /text\?\S+ HTTP/1\.1$}m,
         '"-top" shows the comments');
    like($out, qr/^Duration: \S+, Total samples = \S+ \(  ?100%\)$/m,
         '"-top" shows all of the time');

    ($status, $out) = pprof('-top', '-sample_index=cpu', $file);
    like($out, qr/^Type: cpu$/m, '"-sample_index" selects the type');

    ($status, $out) = pprof('-tags', $file);
    like($out, qr/^ *state: .*^ *\S+ \(\S* *\S+%\): running$/ms,
         '"-tags" shows the state');

    ($status, $out) = pprof('-raw', $file);
    like($out, qr{^1: 0x[0-9a-f]+/0x[0-9a-f]+/0x[0-9a-f]+ \S*nginx \S+ \[FN\]}m,
         '"-raw" shows mappings with functions');

    SKIP: {
        skip('no dot', 1) unless grep { -x "$_/dot" } split(/:/, $ENV{PATH});

        ($status, $out) = pprof('-svg', '-output', $t->testdir() . '/top.svg',
                                $file);
        like($t->read_file('top.svg'), qr/<svg .*deflate/s,
             '"-svg" draws the functions');
    }

    my $port = port(8085);
    $t->run_daemon($pprof, "-http=127.0.0.1:$port",
                   '-no_browser', $file);
    $t->wait_for_socket($port);

    like(http_get('/ui/flamegraph', port => 8085), qr/200 OK.*deflate/s,
         '"-http" shows a flamegraph');
    like(http_get('/ui/top', port => 8085), qr/200 OK.*deflate/s,
         '"-http" shows the table of functions');

    # from nginx

    my $url = 'http://127.0.0.1:' . port(8080);

    ($status, $out) = pprof('-top', "$url/log?$args&profile_mode=cpu");

    is($status, 0, 'the tool reads a profile from a URL');
    like($out, qr/^Type: cpu\n.*\bdeflate\b/ms,
         'the tool reports the profile of a URL');
    is(scalar(() = $t->read_file('reader.log') =~ /\n/g), 1,
       'the tool makes no other request');

    ($status, $out) = pprof('-top', "$url/text?$args", "$url/text?$args");
    like($out, qr/^Type: wall\n.*\bdeflate\b/ms,
         'the tool merges profiles of two URLs');
}


sub pprof { return $t->command($pprof, @_) }
