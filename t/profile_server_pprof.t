#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
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

# the tool: two reports and a server of pages, at once, beside a request

SKIP: {
    skip 'no go', 25 unless $pprof;

    local %ENV = (%ENV, HOME => $t->testdir(),
                  PPROF_TMPDIR => $t->testdir() . '/pprof',
                  PPROF_BINARY_PATH => $t->testdir());

    my $port = port(8085);

    $t->run_daemon($pprof, "-http=127.0.0.1:$port",
                   '-no_browser', "$url/profile?seconds=4");

    my @tops = map { start('top', $_, '-top', "$url/profile?seconds=4") } 1, 2;

    # all of them are captured now

    ok(wait_for(sub { files() >= 3 * 2 * 2 }, 30), 'three captures at once');

    my $request = profile_get('/text?performance_bar=flamegraph', @gzip);

    cmp_ok($request->profile('cpu')->weight_below(qr/^deflate/), '>', 0,
        'a request is captured beside them');
    is($request->profile('cpu')->weight_below(qr/proxy/), 0,
        'and nothing but the request');

    for my $top (@tops) {
        my ($status, $out) = finish($top);

        is($status, 0, "-top $top->{name}: status") or diag($out);
        like($out, qr/^File: nginx$/m, "-top $top->{name}: file");
        like($out, qr/^Type: cpu$/m, "-top $top->{name}: type");
        like($out, qr/^Duration: (?:3\.9\d*|4(?:\.\d+)?)s, Total samples = /m,
            "-top $top->{name}: duration");
        like($out, qr/^scope: all$/m, "-top $top->{name}: all workers");
        like($out, qr/\d+(?:\.\d+)?%\s+deflate/, "-top $top->{name}: names");
    }

    ok(wait_for(sub { ProfileTest::HTTP::connect_to(8085) }, 60),
        '-http: it has a profile');

    like(http_get('/ui/top', port => 8085), qr/ 200 OK.*deflate/s,
        '-http: top');
    like(http_get('/ui/flamegraph', port => 8085), qr/ 200 OK.*deflate/s,
        '-http: flamegraph');
    like(http_get('/ui/peek?f=deflate', port => 8085),
        qr/ 200 OK.*ngx_http|nginx/s, '-http: callers');
    like(http_get('/ui/source?f=deflate', port => 8085), qr/ 200 OK/,
        '-http: source');

    SKIP: {
        skip 'no dot', 1 unless grep { -x "$_/dot" } split(/:/, $ENV{PATH});

        # in older versions of the tool the graph is the first page

        my $graph = http_get('/ui/graph', port => 8085, timeout => 60);
        $graph = http_get('/ui/', port => 8085, timeout => 60)
            if $graph->status() == 404;

        like($graph, qr/ 200 OK.*<svg .*deflate/s, '-http: graph');
    }

    # profiles have all names: the tool asks for nothing else

    is(join(' ', sort split(/\n/, $t->read_file('asked.log'))),
        join(' ', ('/debug/pprof/profile?seconds=4') x 3),
        'no other request was made');

    # the errors that it prints

    my ($status, $out) = finish(start('wrong', 1, '-top',
                                      "$url/profile?seconds=4&frequency=x"));

    isnt($status, 0, 'a wrong parameter: status');
    like($out, qr/400 Bad Request - "frequency" is "x", it must be /,
        'a wrong parameter: the tool says which');

    ($status, $out) = finish(start('wrong', 2, '-top', "$url/mutex"));
    like($out, qr/404 Not Found - .*\/mutex/, 'what nginx does not have');
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

    is($got->status(), 200, "$name: status");
    is($got->header('Content-Type'), 'application/octet-stream',
        "$name: type of the content");
    like($got->header('Content-Disposition'), qr/^attachment; filename=/,
        "$name: a download");
    is($got->header('X-Content-Type-Options'), 'nosniff',
        "$name: that is what it is");
    is($got->header('Content-Encoding'), undef,
        "$name: compressed by itself only");

    my $p = ProfileTest::Pprof->new($got);

    cmp_ok($p->total('samples/count'), '>', 0, "$name: samples");
    is(scalar(grep { $_->[2] } $p->mappings()), scalar(my @m = $p->mappings()),
        "$name: nothing to be asked for");
}

$_->stop() for @load;

# a scrape of a server that does nothing is no error

my $p = ProfileTest::Pprof->new(http_get('/debug/pprof/profile?seconds=0.2'));

is(join(' ', $p->types()), 'samples/count cpu/nanoseconds', 'idle: a profile');

# what is on by default, and not there: collectors show the text

for my $what (qw/ goroutine mutex block threadcreate trace /) {
    my $got = http_get("/debug/pprof/$what");

    is($got->status(), 404, "$what: status");
    is($got->header('X-Go-Pprof'), 1, "$what: the text is to be shown");
    like($got->header('Content-Type'), qr{^text/plain}, "$what: it is a text");
    like($got->body(), qr/\Q$what\E/, "$what: which says what is not there");
}

# the index

my $index = http_get('/debug/pprof/', headers => [ 'Accept: text/html' ]);

is($index->status(), 200, 'index');
like($index->header('Content-Type'), qr{^text/html}, 'index: a page');

for my $link ($index->content() =~ /href="([a-z]+)(?=[?"])/g) {
    isnt(http_head("/debug/pprof/$link")->status(), 404,
        "index: $link is there");
}

is(http_get('/-/profile/debug/pprof/')->status(), 200,
    'index: below the console');
is(http_get('/-/profile/debug/pprof')->header('X-Go-Pprof'), undef,
    'index: without the slash it is another URL');

# symbols: Go's tool asks for those that a profile does not have

my ($worker) = $t->worker_pids();
my %at = addresses();

for my $name (qw/ main ngx_http_process_request ngx_palloc /) {
    my $at = sprintf('%#x', $at{$name} // 0);

    is(symbol($at), "$at $name\n", "symbol: $name");
}

my @some = map { sprintf('%#x', $at{$_}) } qw/ main ngx_palloc /;
my $inside = sprintf('%#x', $at{main} + 4);

is(symbol(join('+', @some)), "$some[0] main\n$some[1] ngx_palloc\n",
    'symbol: two');
is(symbol("$some[0]+$some[0]"), "$some[0] main\n" x 2, 'symbol: one twice');
is(symbol($inside), "$inside main\n", 'symbol: an address within');
is(symbol($at{main}), "$some[0] main\n", 'symbol: in decimal');
is(http_get("/debug/pprof/symbol?$some[0]+$some[1]")->body(),
    "num_symbols: 1\n$some[0] main\n$some[1] ngx_palloc\n",
    'symbol: in the query');
is(http_get('/debug/pprof/symbol')->body(), "num_symbols: 1\n",
    'symbol: whether there are any');

is(symbol(join('+', ($some[0]) x 4096)), "$some[0] main\n" x 4096,
    'symbol: many, which are not in memory');

for my $nothing ('', '0', '0x0', '0x1', '0x', '+', '++', 'x', '-1', '0x12g',
                 '0x' . 'f' x 16, '0x' . 'f' x 17, '9' x 30, "\0", "0x1\n")
{
    is(symbol($nothing), '', "symbol: nothing at \"$nothing\"");
}

my $many = http_post('/debug/pprof/symbol', join('+', ('1') x 4097));

is($many->status(), 400, 'symbol: too many');
is($many->header('X-Go-Pprof'), 1, 'symbol: the text is to be shown');

$many = http_post('/debug/pprof/symbol', '1' x 100_000);

is($many->status(), 413, 'symbol: too long');
is($many->header('X-Go-Pprof'), 1, 'symbol: the text is to be shown');
is(http("POST /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\n"
        . "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        . sprintf("%x\r\n%s\r\n0\r\n\r\n", length($some[0]), $some[0]))
   ->body(),
    "num_symbols: 1\n$some[0] main\n", 'symbol: of no length that is told');

###############################################################################

# what is behind the first line
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
