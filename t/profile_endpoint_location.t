#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers
# runs: beside
#
# Captures of the location of a request with a trigger.  The location is the one
# in which the request ends, in whichever way nginx chooses it.  The capture has
# the requests that end in the same block of the configuration, and no others.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;

# the captures of endpoints that one worker runs at the same time

use constant AT_ONCE => 8;

# names of two locations have this text and the bytes before it in common

my $long = 'x' x 260;

my $t = ProfileTest->new()
        ->has(qw/ access auth_request index mirror proxy rewrite ssi /);

my $lua = $t->has_module('lua');

my $exec = $lua ? <<'EOF' : '';
    location /exec/ {
        content_by_lua_block { ngx.exec("/run/f") }
    }

    location /run/ { return 200 "run\n"; }
EOF

$t->conf(<<"EOF", workers => 2);
profile_endpoint on;
server_names_hash_bucket_size 512;

server {
    listen 127.0.0.1:8080;
    server_name one;

    location / { }

    location /prefix/ { return 200 "prefix\\n"; }
    location ^~ /only/ { return 200 "only\\n"; }
    location ~ ^/regex/ { return 200 "regex\\n"; }

    location = /same { return 200 "exact\\n"; }
    location /same { return 200 "prefix\\n"; }

    location /outer/ {
        return 200 "outer\\n";

        location /outer/inner/ { return 200 "inner\\n"; }
    }

    location /try/ { try_files \$uri /script.x; }
    location ~ \\.x\$ { }

    location /fallback/ { try_files \$uri \@named; }
    location \@named { return 200 "named\\n"; }

    location /index/ { index start.y; }
    location ~ \\.y\$ { }

    location /error/ { error_page 404 = /sorry/f; }
    location /sorry/ { return 200 "sorry\\n"; }

    location /last/ { rewrite ^ /rewritten/f last; }
    location /rewritten/ { return 200 "rewritten\\n"; }

    location /break/ { rewrite ^ /small break; }

    location /accel/ { proxy_pass http://127.0.0.1:8084/; }
    location /accelerated/ { internal; alias %%TESTDIR%%/; }

    location /proxy/ { proxy_pass http://127.0.0.1:8084/plain/; }

    location /auth/ { auth_request /authorized; alias %%TESTDIR%%/; }
    location /authorized { return 204; }

    location /mirror/ { mirror /mirrored; alias %%TESTDIR%%/; }
    location /mirrored { return 204; }

    location /ssi/ { ssi on; ssi_types *; alias %%TESTDIR%%/; }
    location /part { return 200 "part\\n"; }

    location /if/ {
        if (\$arg_inner) { set \$inner 1; }
        alias %%TESTDIR%%/;
    }

    location /except/ {
        limit_except POST { deny 10.0.0.0/8; }
        proxy_pass http://127.0.0.1:8084/plain/;
    }

    location ~ ^/long/($long|a) { return 200 "a\\n"; }
    location ~ ^/long/($long|b) { return 200 "b\\n"; }

    $exec
}

server {
    listen 127.0.0.1:8081;
    server_name one;

    location /prefix/ { return 200 "the same name at another port\\n"; }
}

server {
    listen 127.0.0.1:8082;

    location /prefix/ { return 200 "no name\\n"; }
}

server {
    listen 127.0.0.1:8083;

    location /prefix/ { return 200 "no name either\\n"; }
}

server {
    listen 127.0.0.1:8084;

    location / {
        add_header X-Accel-Redirect /accelerated/small;
        return 200;
    }

    location /plain/ { return 200 "plain\\n"; }
}

server {
    listen 127.0.0.1:8085;

    return 200 "no location\\n";
}

server {
    listen 127.0.0.1:8086;
    server_name $long;

    if (\$arg_inner) { return 200 "inner\\n"; }

    return 200 "no location either\\n";
}
EOF

$t->write_file($_, $_) for qw/ small script.x f /;
$t->write_file('page', '<!--#include virtual="/part" -->');
mkdir($t->testdir() . '/index');
$t->write_file('index/start.y', 'start');
$t->run();

# the URI with the trigger, its port, the title of its profile, and other
# requests that end in the same location: [ URI, port, method ]

my @cases = (
    [ 'the root', '/small', 8080, '/', [ '/small' ], [ '/f' ] ],
    [ 'a prefix', '/prefix/a', 8080, '/prefix/', [ '/prefix/b' ] ],
    [ 'a prefix without regular expressions', '/only/a', 8080, '/only/',
        [ '/only/b' ] ],
    [ 'a regular expression', '/regex/a', 8080, '^/regex/', [ '/regex/b' ] ],
    [ 'an exact location', '/same', 8080, '/same', [ '/same' ], [ '/same?a' ] ],
    [ 'a prefix beside an exact location', '/same/a', 8080, '/same',
        [ '/same/b' ], [ '/samea' ], [ '/same/c' ] ],
    [ 'an outer location', '/outer/a', 8080, '/outer/', [ '/outer/b' ] ],
    [ 'a nested location', '/outer/inner/a', 8080, '/outer/inner/',
        [ '/outer/inner/b' ] ],
    [ 'try_files', '/try/a', 8080, '\\.x$', [ '/try/b' ], [ '/script.x' ] ],
    [ 'a named location', '/fallback/a', 8080, '@named', [ '/fallback/b' ] ],
    [ 'index', '/index/', 8080, '\\.y$', [ '/index/' ], [ '/index/start.y' ] ],
    [ 'error_page', '/error/a', 8080, '/sorry/', [ '/error/b' ],
        [ '/sorry/b' ] ],
    [ 'rewrite with last', '/last/a', 8080, '/rewritten/', [ '/last/b' ],
        [ '/rewritten/c' ] ],
    [ 'rewrite with break', '/break/a', 8080, '/break/', [ '/break/b' ] ],
    [ 'X-Accel-Redirect', '/accel/a', 8080, '/accelerated/', [ '/accel/b' ] ],
    [ 'proxy_pass', '/proxy/a', 8080, '/proxy/', [ '/proxy/b' ] ],
    [ 'auth_request', '/auth/small', 8080, '/auth/', [ '/auth/f' ] ],
    [ 'mirror', '/mirror/small', 8080, '/mirror/', [ '/mirror/f' ] ],
    [ 'SSI', '/ssi/page', 8080, '/ssi/', [ '/ssi/page' ], [ '/ssi/f' ] ],
    [ 'a location with a block "if"', '/if/small', 8080, '/if/' ],
    [ 'a block "if"', '/if/small?inner=1', 8080, '/if/',
        map { [ $_ ] } qw{ /if/f /if/f?inner=1 /if/small } ],
    [ 'a block "limit_except"', '/except/a', 8080, '/except/',
        [ '/except/b' ], [ '/except/c', 8080, 'POST' ] ],
    [ 'a name of more than 256 bytes', '/long/b', 8080, undef,
        [ '/long/b1' ] ],
    [ 'a server of the same name at another port', '/prefix/a', 8081,
        '/prefix/', [ '/prefix/b', 8081 ] ],
    [ 'a server without a name', '/prefix/a', 8082, '/prefix/',
        [ '/prefix/b', 8082 ] ],
    [ 'another server without a name', '/prefix/a', 8083, '/prefix/',
        [ '/prefix/b', 8083 ], [ '/prefix/c', 8083 ] ],
    [ 'a server without a location', '/a', 8085, 'a server without a name',
        [ '/b', 8085 ] ],
    [ 'a server with a long name and without a location', '/a', 8086, undef,
        [ '/b', 8086 ], [ '/c?inner=1', 8086 ] ],
);

push @cases, [ 'ngx.exec()', '/exec/a', 8080, '/run/', [ '/exec/b' ],
               [ '/run/b' ] ]
    if $lua;

# the requests of all cases run beside each of the captures

my @visits = map { @{$_}[4 .. $#$_] } @cases;
push @visits, [ '/long/a' ];

my %ends = map { $_->[0] => $#$_ - 3 } @cases;
$ends{'a location with a block "if"'} = $ends{'a block "if"'};

while (my @some = splice(@cases, 0, AT_ONCE)) {
    my @asked = map {
        http_get($_->[1] . ($_->[1] =~ /\?/ ? '&' : '?')
                 . 'performance_bar=flamegraph&profile_seconds=3'
                 . '&profile_format=pprof', port => $_->[2], start => 1)
    } @some;

    sleep(0.6);
    visit(@$_) for @visits;

    for (@some) {
        my ($what, undef, undef, $title) = @$_;

        my $got = http_end(shift @asked, timeout => 30);
        is($got->status(), 200, "$what: the client gets a profile");

        my $p = ProfileTest::Pprof->new($got);
        is(named($p, 'requests'), $ends{$what},
            "$what: requests that end there are captured, and no others");
        is(named($p, 'title'), $title, "$what: the title is the location")
            if defined $title;
    }
}

###############################################################################

# the request with the trigger runs, and its response is discarded

my $begin = time();
my $s = http_get('/proxy/a?performance_bar=flamegraph&profile_requests=2'
                 . '&profile_format=folded', start => 1);

sleep(0.5);
visit('/prefix/a');
visit('/proxy/b');
visit('/proxy/c');

my $got = http_end($s, timeout => 70);
cmp_ok(time() - $begin, '<', 20, 'a number of requests ends the capture');
unlike($got->body(), qr/^plain$/m, 'the original response is discarded');
is($got->header('Content-Type'), 'text/plain; charset=utf-8',
    'the type of the original response does not remain');

# HEAD has no body, and a wrong mode does not run the request

$s = http_head('/small?performance_bar=flamegraph&profile_seconds=2', start => 1);
sleep(0.5);
visit('/small');
$got = http_end($s);
is($got->status(), 200, 'a HEAD request gets the header of the profile');
is($got->body(), '', 'a HEAD request gets no body');

$got = http_get('/proxy/wrong?performance_bar=flamegraph&profile_seconds=1'
                . '&profile_mode=object');
is($got->status(), 400, 'another mode is an error');
unlike($t->read_file('access.log'), qr{/plain/wrong},
    'a request with an error is not passed on');

# a reload makes new locations, even if the configuration has not changed

$s = http_get('/prefix/a?performance_bar=flamegraph&profile_seconds=3'
              . '&profile_format=pprof', start => 1);
sleep(0.3);
visit('/prefix/b');

my %old = map { $_ => 1 } $t->worker_pids();
$t->reload();
wait_for(sub { !grep { $old{$_} } $t->worker_pids() }, 10);
visit('/prefix/c') for 1 .. 3;

my $p = ProfileTest::Pprof->new(http_end($s, timeout => 30));
is(named($p, 'requests'), 1, 'new workers take no part in the capture');

# a client that does not want to wait

my $connected = http_get('/small?performance_bar=flamegraph&profile_requests=9',
                         start => 1);
sleep(0.3);
close($connected);

ok(wait_for(sub { $t->read_log() =~ /client prematurely closed/ }, 5),
    'the capture ends when its client leaves');

###############################################################################

sub visit {
    my ($uri, $port, $method) = @_;

    my @port = (port => $port // 8080);

    return $method ? http_post($uri, 'body', @port) : http_get($uri, @port);
}


sub named {
    my ($p, $name) = @_;
    return (map { /^$name: (.*)/s ? $1 : () } $p->comments())[0];
}
