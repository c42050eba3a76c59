#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers formats
# runs: beside
#
# Go's paths: its tool against a server under load, as a report and as pages,
# several at once and beside a captured request; the requests that collectors
# make; symbols; the errors that these clients show.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use POSIX qw/ WNOHANG /;
use Test::More;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Pprof;
use ProfileTest::Process;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip proxy rewrite /);
my $pprof = ProfileTest::Pprof::program();

$t->conf(<<'EOF', workers => 2);
default_type text/plain;
gzip_types text/plain;
gzip_comp_level 9;

log_format asked '$request_uri';

server {
    listen 127.0.0.1:8080 reuseport;

    profile_endpoint on;

    location /text {
        gzip on;
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8080/;
    }

    location /-/profile/ {
        profile_console;
    }

    location /debug/pprof/ {
        profile_console;
        access_log %%TESTDIR%%/asked.log asked;
    }
}
EOF

$t->write_file('text', join('', map { "line $_ " . rand() . "\n" } 1 .. 20000));
$t->write_file('small', 'small');
$t->run();

my $url = 'http://127.0.0.1:' . port(8080) . '/debug/pprof';
my @gzip = (headers => [ 'Accept-Encoding: gzip' ]);

my @load = ($t->load('/text', clients => 2, @gzip),
            $t->load('/proxy/small', clients => 1));

###############################################################################

# two reports and the tool's web server at the same time, beside a request

SKIP: {
    skip 'no go', 25 unless $pprof;

    local %ENV = (%ENV, HOME => $t->testdir(),
                  PPROF_TMPDIR => $t->testdir() . '/pprof',
                  PPROF_BINARY_PATH => $t->testdir());

    my $port = port(8085);

    $t->run_daemon($pprof, "-http=127.0.0.1:$port",
                   '-no_browser', "$url/profile?seconds=4");

    my @tops = map { start('top', $_, '-top', "$url/profile?seconds=4") } 1, 2;

    # all three captures run now

    ok(wait_for(sub { files() >= 3 * 2 * 2 }, 30),
        'three captures of workers end');

    my $request = profile_get('/text?performance_bar=flamegraph', @gzip);

    cmp_ok($request->profile('cpu')->weight_below(qr/^deflate/), '>', 0,
        'a request is captured at the same time');
    is($request->profile('cpu')->weight_below(qr/proxy/), 0,
        'the profile of the request has only its own samples');

    for my $top (@tops) {
        my ($status, $out) = finish($top);

        is($status, 0, "go tool pprof reads $top->{name}") or diag($out);
        like($out, qr/^File: nginx$/m, "$top->{name} names nginx as its file");
        like($out, qr/^Type: cpu$/m, "$top->{name} has the type cpu");
        like($out, qr/^Duration: (?:3\.9\d*|4(?:\.\d+)?)s, Total samples = /m,
            "$top->{name} lasts four seconds");
        like($out, qr/^scope: all$/m, "$top->{name} has all workers");
        like($out, qr/\d+(?:\.\d+)?%\s+deflate/,
            "$top->{name} has names of functions");
    }

    ok(wait_for(sub { ProfileTest::HTTP::connect_to(8085) }, 60),
        'the server of go tool pprof starts');

    like(http_get('/ui/top', port => 8085), qr/ 200 OK.*deflate/s,
        'the server shows the table of functions');
    like(http_get('/ui/flamegraph', port => 8085), qr/ 200 OK.*deflate/s,
        'the server shows a flamegraph');
    like(http_get('/ui/peek?f=deflate', port => 8085),
        qr/ 200 OK.*ngx_http|nginx/s, 'the server shows callers');
    like(http_get('/ui/source?f=deflate', port => 8085), qr/ 200 OK/,
        'the server shows the source page');

    SKIP: {
        skip 'no dot', 1 unless grep { -x "$_/dot" } split(/:/, $ENV{PATH});

        # in older versions of the tool the graph is the first page

        my $graph = http_get('/ui/graph', port => 8085, timeout => 60);
        $graph = http_get('/ui/', port => 8085, timeout => 60)
            if $graph->status() == 404;

        like($graph, qr/ 200 OK.*<svg .*deflate/s, 'the server shows a graph');
    }

    # profiles have all names, so the tool sends no other request

    is(join(' ', sort split(/\n/, $t->read_file('asked.log'))),
        join(' ', ('/debug/pprof/profile?seconds=4') x 3),
        'the tool makes no other requests');

    # the errors that it prints

    my ($status, $out) = finish(start('wrong', 1, '-top',
                                      "$url/profile?seconds=4&frequency=x"));

    isnt($status, 0, 'a wrong parameter fails');
    like($out, qr/400 Bad Request - "frequency" is "x", it must be /,
        'the tool shows which parameter is wrong');

    ($status, $out) = finish(start('wrong', 2, '-top', "$url/mutex"));
    like($out, qr/404 Not Found - .*\/mutex/,
        'the tool shows that nginx has no such profile');
}

# requests of collectors: Alloy (seconds is its interval less one), Parca
# (seconds is its interval), both with parameters of their own, maybe twice

for my $agent ([ 'Alloy', '/debug/pprof/profile?seconds=1', [
                     'User-Agent: Alloy/v1.5.1 (linux; binary)',
                     'Accept-Encoding: gzip' ] ],
               [ 'Alloy, two profiles', '/debug/pprof/wall?seconds=1&seconds=1',
                     [ 'User-Agent: Alloy/v1.5.1 (linux; binary)',
                       'Accept-Encoding: gzip' ] ],
               [ 'Parca', '/debug/pprof/profile?seconds=1', [
                     'User-Agent: Parca/v0.22.0',
                     'Accept-Encoding: gzip' ] ],
               [ 'a prefix of the path', '//debug/pprof/profile?seconds=1', [
                     'Accept-Encoding: gzip' ] ])
{
    my ($name, $uri, $headers) = @$agent;
    my $got = http_get($uri, headers => $headers, timeout => 30);

    is($got->status(), 200, "$name is served");
    is($got->header('Content-Type'), 'application/octet-stream',
        "$name has the type of binary data");
    like($got->header('Content-Disposition'), qr/^attachment; filename=/,
        "$name is a download");
    is($got->header('X-Content-Type-Options'), 'nosniff',
        "$name forbids guesses of its type");
    is($got->header('Content-Encoding'), undef,
        "$name has no Content-Encoding");

    my $p = ProfileTest::Pprof->new($got);

    cmp_ok($p->total('samples/count'), '>', 0, "$name has samples");
    is(scalar(grep { $_->[2] } $p->mappings()), scalar(my @m = $p->mappings()),
        "$name has the functions of all its mappings");
}

$_->stop() for @load;

# a scrape of an idle server is no error

my $p = ProfileTest::Pprof->new(http_get('/debug/pprof/profile?seconds=0.2'));

is(join(' ', $p->types()), 'samples/count cpu/nanoseconds',
    'a profile of idle workers is valid');

# profiles that collectors request by default, and that nginx does not have

for my $what (qw/ goroutine mutex block threadcreate trace /) {
    my $got = http_get("/debug/pprof/$what");

    is($got->status(), 404, "$what has the status 404");
    is($got->header('X-Go-Pprof'), 1, "Go's client shows the error for $what");
    like($got->header('Content-Type'), qr{^text/plain},
        "the error for $what is a text");
    like($got->body(), qr/\Q$what\E/, "the error names $what");
}

# the index

my $index = http_get('/debug/pprof/', headers => [ 'Accept: text/html' ]);

is($index->status(), 200, 'the index is served');
like($index->header('Content-Type'), qr{^text/html}, 'the index is a page');

for my $link ($index->content() =~ /href="([a-z]+)(?=[?"])/g) {
    isnt(http_head("/debug/pprof/$link")->status(), 404,
        "the link $link of the index works");
}

is(http_get('/-/profile/debug/pprof/')->status(), 200,
    'the console has the index');
is(http_get('/-/profile/debug/pprof')->header('X-Go-Pprof'), undef,
    'the URL of the index without a slash does not answer as Go does');

# symbols: Go's tool asks for those that a profile does not have

my ($worker) = $t->worker_pids();
my %at = addresses();

for my $name (qw/ main ngx_http_process_request ngx_palloc /) {
    my $at = sprintf('%#x', $at{$name} // 0);

    is(symbol($at), "$at $name\n", "the address of $name has its name");
}

my @some = map { sprintf('%#x', $at{$_}) } qw/ main ngx_palloc /;
my $inside = sprintf('%#x', $at{main} + 4);

is(symbol(join('+', @some)), "$some[0] main\n$some[1] ngx_palloc\n",
    'two addresses have two names');
is(symbol("$some[0]+$some[0]"), "$some[0] main\n" x 2,
    'an address given twice is answered twice');
is(symbol($inside), "$inside main\n", 'an address in a function has its name');
is(symbol($at{main}), "$some[0] main\n", 'an address may be decimal');
is(http_get("/debug/pprof/symbol?$some[0]+$some[1]")->body(),
    "num_symbols: 1\n$some[0] main\n$some[1] ngx_palloc\n",
    'addresses may be in the query');
is(http_get('/debug/pprof/symbol')->body(), "num_symbols: 1\n",
    'GET without addresses reports that symbols exist');

is(symbol(join('+', ($some[0]) x 4096)), "$some[0] main\n" x 4096,
    'a body in a file is read');

for my $nothing ('', '0', '0x0', '0x1', '0x', '+', '++', 'x', '-1', '0x12g',
                 '0x' . 'f' x 16, '0x' . 'f' x 17, '9' x 30, "\0", "0x1\n")
{
    is(symbol($nothing), '', "\"$nothing\" has no name");
}

my $many = http_post('/debug/pprof/symbol', join('+', ('1') x 4097));

is($many->status(), 400, 'too many addresses have the status 400');
is($many->header('X-Go-Pprof'), 1,
    'Go\'s client shows the error about many addresses');

$many = http_post('/debug/pprof/symbol', '1' x 100_000);

is($many->status(), 413, 'a long body has the status 413');
is($many->header('X-Go-Pprof'), 1,
    'Go\'s client shows the error about a long body');
is(http("POST /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\n"
        . "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        . sprintf("%x\r\n%s\r\n0\r\n\r\n", length($some[0]), $some[0]))
   ->body(),
    "num_symbols: 1\n$some[0] main\n", 'a chunked body is read');

###############################################################################

# returns the lines after the first one
sub symbol {
    my ($addresses) = @_;
    my $body = http_post('/debug/pprof/symbol', $addresses)->body();
    $body =~ s/^num_symbols: 1\n// or return "unexpected: $body";
    return $body;
}


# those that nginx exports, as they are in the memory of a worker
sub addresses {
    no warnings 'portable';

    my ($start) = map { /^([0-9a-f]+)-\S+ \S+ 0+ .*nginx/ ? hex($1) : () }
                  split(/\n/, `cat /proc/$worker/maps`);

    return map { /^([0-9a-f]+) T (\S+)$/ ? ($2 => hex($1) + $start) : () }
           split(/\n/, `nm -D $t->{binary} 2>/dev/null`);
}


# that are open for captures: each has one in each worker, and the worker that
# was asked has them, too
sub files {
    return grep { m{memfd:profile} }
           map { process_files($_) } $t->worker_pids();
}


sub start {
    my ($name, $n, @args) = @_;

    my $file = $t->testdir() . "/$name$n.out";

    my $pid = $t->start_child(sub {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $file;
        open STDERR, '>&', \*STDOUT;
        exec $pprof, @args;
    });

    return { name => $n, pid => $pid, file => "$name$n.out" };
}


# (status, output)
sub finish {
    my ($child) = @_;

    my $done = wait_for(sub { waitpid($child->{pid}, WNOHANG) }, 60);
    my $status = $done ? $? >> 8 : -1;

    $t->forget_child($child->{pid}) if $done;

    return ($status, $t->read_file($child->{file}));
}
