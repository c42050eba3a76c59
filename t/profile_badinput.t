#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# Wrong triggers.  Permitted clients get an error with the reason.  Other
# clients get the same bytes as from nginx without the module.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ proxy rewrite /);

$t->conf(<<'EOF');
default_type text/plain;

# all may

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /file/ {
    }

    location /return/ {
        return 201 "returned\n";
    }
}

# servers that permit no client, each in another way

server {
    listen 127.0.0.1:8082;
    profile_endpoint on;
    profile_allow 192.0.2.1;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /file/ {
    }

    location /return/ {
        return 201 "$args $request_uri $http_x_profile\n";
    }
}

server {
    listen 127.0.0.1:8083;
    profile_endpoint on;
    profile_if 0;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /file/ {
    }

    # the condition is not asked before there is an answer

    location /return/ {
        profile_endpoint off;
        return 201 "$args $request_uri $http_x_profile\n";
    }
}

# some may, elsewhere

server {
    listen 127.0.0.1:8084;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /file/ {
    }

    location /return/ {
        return 201 "$args $request_uri $http_x_profile\n";
    }

    location /elsewhere/ {
        profile_endpoint on;
    }
}

# the servers with which the test compares

server {
    listen 127.0.0.1:8085;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /file/ {
    }

    location /return/ {
        return 201 "$args $request_uri $http_x_profile\n";
    }
}
EOF

mkdir($t->testdir() . '/file') or die "mkdir: $!\n";
$t->write_file('file/a', "a\n");

run_upstream($t, 8081);
$t->run();

my $arg = 'performance_bar=flamegraph';

my $action = qr/takes "flamegraph", "record" or "help"/;
my $mode = qr/takes "wall", "cpu" or "object"/;
my $format = qr/takes "speedscope"(?:, "\w+")+ or "\w+"/;
my $hz = qr/takes a number from 1 to 10000/;
my $twice = qr/was given more than once/;
my $unknown = qr/has an unknown parameter, it takes mode, format, /;


# values that no parameter takes

my @values = ('', ' ', '%', '%%', '%2', '%zz', '%00', "\xff\xfe", "\x80",
              "\xc3\xa4", '-1', '-0', '+1', '1e9', '0x10', '1.5', '1,2',
              'null', '"wall"', "'cpu'", 'wall;', 'wall cpu', '../../x',
              '<script>', '$mode', '{}', '=', '==', '=wall', '?', '/',
              '99999999999999999999999999', 'x' x 3000, '%61' x 1000);

my %args = (performance_bar => [ $action, 'flamegrap', 'flamegraphs',
                                 'Flamegraph', 'FLAMEGRAPH', '1', 'Record',
                                 'flame%67raph', 'flamegraph%20' ],
            profile_mode => [ $mode, 'Wall', 'wal', 'walll', 'objects', 'CPU',
                              '%63pu', 'wall%00' ],
            stackprof_mode => [ $mode, 'Wall', 'wal', 'walll', 'Object' ],
            profile_format => [ $format, 'xml', 'json', 'Folded', 'folded%0a',
                                'speedscopespeedscope', 'fold' ],
            profile_frequency => [ $hz, '0', '10001', '100000000', '1k', '99Hz',
                                   '%31' ],
            profile_spans => [ qr/takes "on" or "off"/, 'On', 'OFF', 'yes', '0',
                               'on%00', 'of' ]);

my %params = (mode => $args{profile_mode}, format => $args{profile_format},
              frequency => $args{profile_frequency},
              spans => $args{profile_spans});

my @cases;

for my $name (sort keys %args) {
    my ($takes, @more) = @{$args{$name}};
    my $rest = $name eq 'performance_bar' ? '' : "$arg&";

    # the name alone is the name with no value
    push @cases, [ $name, $takes, "/x?$rest$name" ];

    for my $value (@values, @more) {
        next if $value =~ / /;
        push @cases, [ $name, $takes, "/x?$rest$name=$value" ];
    }

    push @cases, [ $name, $takes, "/x?a=1&$name=x&b=2"
                                  . ($rest ? "&$arg" : '') ];
}

my %good = (profile_mode => 'cpu', stackprof_mode => 'wall',
            profile_format => 'folded', profile_frequency => 10,
            profile_spans => 'off');

for my $name (sort keys %good) {
    push @cases, [ $name, $twice, "/x?$arg&$name=$good{$name}"
                                  . "&$name=$good{$name}" ];
}

push @cases, [ 'performance_bar', $twice, "/x?$arg&$arg" ],
             [ 'performance_bar', $twice, "/x?$arg&a=1&performance_bar=x" ],
             [ 'performance_bar', $twice, "/x?$arg" . "&$arg" x 200 ],
             [ 'stackprof_mode', $twice,
               "/x?$arg&profile_mode=cpu&stackprof_mode=cpu" ];

# the same parameters in a header

for my $name (sort keys %params) {
    my ($takes, @more) = @{$params{$name}};

    for my $value (@values, @more) {
        next if $value =~ /^ |;/;
        push @cases, [ $name, $takes, '/x', "flamegraph; $name=$value" ];
    }

    push @cases, [ $name, $takes, '/x', "flamegraph; $name" ],
                 [ $name, $takes, '/x', "flamegraph;$name;" ];
}

for my $value (@values, 'flamegrap', 'Flamegraph', 'flamegraph x', ';',
               '; mode=cpu', 'mode=cpu', 'mode=cpu; flamegraph',
               'flamegraph, flamegraph', '"flamegraph"')
{
    push @cases, [ 'X-Profile', $action, '/x', $value ];
}

for my $param ('x', 'x=1', 'Mode=cpu', 'mode =cpu', '=', '=cpu', 'profile_mode'
               . '=cpu', 'frequency : 5', "\xff=1", 'x' x 3000,
               'mode=cpu; formats=x')
{
    push @cases, [ 'X-Profile', $unknown, '/x', "flamegraph; $param" ];
}

# there is no store here

push @cases, [ 'performance_bar', qr/needs a store to record to/,
               '/x?performance_bar=record' ],
             [ 'X-Profile', qr/needs a store to record to/, '/x', 'record' ];

push @cases, [ 'mode', $twice, '/x', 'flamegraph; mode=cpu; mode=wall' ],
             [ 'frequency', $twice, '/x',
               'flamegraph; frequency=1; mode=cpu; frequency=1' ],
             [ 'X-Profile', $twice, '/x', 'flamegraph', 'flamegraph' ],
             [ 'X-Profile', $twice, '/x', 'x', 'y', 'z' ];


for my $case (@cases) {
    my ($name, $takes, $uri, @values) = @$case;

    my @lines = map { "X-Profile: $_" } @values;
    my $request = request($uri, 'A: 1', @lines, 'B: 2');
    my $label = printable(join(' ', $uri, @lines));

    my $r = http($request);

    is($r->status(), 400, "$label: the status is 400");
    is($r->header('Content-Type'), 'text/plain',
       "$label: the error is plain text")
        or diag("$r");
    like($r->body(), qr/\A\Q$name\E $takes[ -~]*\n\z/,
         "$label: the text names what is accepted");

    is_without($request, $label);
}

is(scalar(grep { !/^GET / } upstream_lines($t)), 0, 'only whole requests');


# errors of permitted clients

for my $uri (qw{ /file/a /return/ /none }) {
    my $request = request("$uri?$arg&profile_mode=x");
    my $r = http($request);

    is($r->status(), 400, "$uri: the status is 400");
    is_deeply([ sort map { /^([^:]+)/ } @{$r->{lines}} ],
              [ sort qw/ Server Date Content-Type Content-Length Connection
                         Cache-Control Vary X-Content-Type-Options / ],
              "$uri: the error has only these headers");
    is($r->header('Cache-Control'), 'private, no-store', "$uri, not cached");
    is($r->header('X-Content-Type-Options'), 'nosniff', "$uri, not guessed");

    is_without($request, $uri);
}

my $r = http(request("/x?$arg&profile_mode=x", 'HEAD'));

is($r->status(), 400, 'HEAD gets the status 400');
is($r->body(), '', 'HEAD gets no body');
is($r->header('Content-Length'), length('profile_mode takes "wall", "cpu" or '
                                        . "\"object\"\n"),
                                        'HEAD gets the length of the text');


# for other clients a trigger without mistakes has no effect

for my $uri (qw{ /x /file/a /return/ /none /file/ }) {
    is_without(request("$uri?$arg"), "$uri, argument");
    is_without(request("$uri?a=1&$arg&profile_mode=cpu&b=2"),
               "$uri, between other requests");
    is_without(request($uri, 'A: 1', 'X-Profile: flamegraph', 'B: 2'),
               "$uri, header");
    is_without(request($uri, 'X-Profile: flamegraph; mode=cpu'),
               "$uri, last header");
    is_without(request("$uri?$arg", 'X-Profile: flamegraph'), "$uri, both");
    is_without(request("$uri?$arg", 'Range: bytes=0-0'), "$uri, range");
}


# requests that nginx itself refuses

for my $request ("GET /x?$arg HTTP/1.1\r\n\r\n",
                 "GET /x?$arg HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n",
                 "GET /x?$arg HTTP/3.0\r\nHost: localhost\r\n\r\n",
                 "GET x?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 "GET /%00?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 "GET /%?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 "GET /../?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 "GET /x?$arg\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 "TRACE /x?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 "CONNECT /x?$arg HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 "GET /x?" . 'x' x 9000 . "&$arg HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 "GET /x HTTP/1.1\r\nX-Profile: flamegraph\r\n\r\n",
                 "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Profile: flame\0graph\r\n"
                 . "Connection: close\r\n\r\n",
                 "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Profile: " . 'x' x 9000
                 . "\r\n\r\n",
                 "\x16\x03\x01\x00$arg")
{
    my $label = printable(substr($request, 0, 60));
    my $r = http($request);

    like($r->status(), qr/^(?:400|405|414|505|494)$/, $label);
    is($r->header('X-Profile-Id'), undef, "$label, no profile");
    is_without($request, $label);
}


# the profile itself is well-formed whatever was asked for

for my $uri ('/%ff%fe%80', '/%c3%a4%e2%80%a8', '/%22%5c%2f%08%0a%0d',
             '/%3c/script%3e', '/;%20;', '/%ef%bf%be%ed%a0%80', '/' . 'x' x 2000,
             '/' . '%ff' x 600, "/\xff\xfe", "/a\xc3", '/%f0%9f%94%a5')
{
    my $label = printable(substr($uri, 0, 60));
    my $r = http(request("$uri?\xff=%ff&$arg", "X: \xff"));
    my $p = eval { ProfileTest::Profile->new($r) };

    ok($p, "$label: the profile is valid JSON") or diag($@);
    like($r, qr/\AHTTP[ -~\r\n]+\r\n\r\n/,
         "$label: the headers are printable");

    $r = http(request("$uri?$arg&profile_format=folded"));

    is(join('', grep { !/^\S.* [1-9]\d*\n$/ } $r->body() =~ /^(.*\n)/mg), '',
       "$label: each line of the profile is a stack");
    is($r->header('X-Profiled-Status'), 200, "$label: the request is served");
}


sub request {
    my ($uri, @headers) = @_;

    my $method = @headers && $headers[0] !~ /:/ ? shift @headers : 'GET';

    return join("\r\n", "$method $uri HTTP/1.1", 'Host: localhost', @headers,
                'Connection: close', '', '');
}


# compares the servers that do not permit profiles with one without the module
sub is_without {
    my ($request, $label) = @_;

    my (%got, %others);

    for my $port (8082 .. 8085) {
        $got{$port} = http($request, port => $port) . '';
        $got{$port} =~ s/^Date: .*\r\n//m;
    }

    my $want = delete $got{8085};

    for my $port (sort keys %got) {
        push @{$others{$got{$port}}}, $port if $got{$port} ne $want;
    }

    is(join(' ', map { @$_ } values %others), '', "$label, not permitted")
        or diag("expected: $want\ngot: ", join("\nand: ", keys %others));
}


sub printable {
    my ($s) = @_;

    $s =~ s/([^ -~])/sprintf('\x%02x', ord($1))/ge;
    $s =~ s/^(.{100}).*/$1.../s;

    return $s;
}
