#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: beside
#
# Directives that are inherited, and that are not.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ rewrite /);

$t->conf(<<'EOF');
default_type text/plain;

# in http

profile_endpoint on;
profile_allow 127.0.0.1;
profile_mode cpu;
profile_format folded;
profile_frequency 77;
profile_arg http_arg;
profile_header X-Http;

server {
    listen 127.0.0.1:8080;
    server_name http;

    location / {
    }

    location /off/ {
        profile_endpoint off;

        location /off/on/ {
            profile_endpoint on;
        }

        location /off/off/ {
        }
    }

    location /deny/ {
        profile_allow 192.0.2.1;

        location /deny/deny/ {
        }

        location /deny/allow/ {
            profile_allow 127.0.0.0/8;
        }
    }

    location /if/ {
        profile_if $arg_may;

        location /if/inherited/ {
        }

        location /if/always/ {
            profile_if 1;
        }
    }

    location /values/ {
        profile_mode wall;

        location /values/nested/ {
            profile_format speedscope;
        }
    }

    # blocks within a location have their own configuration

    location /block/ {
        profile_mode wall;

        if ($arg_block) {
            add_header X-Block yes;
        }

        limit_except GET {
            allow all;
        }
    }
}

server {
    listen 127.0.0.1:8080;
    server_name overrides;

    profile_mode wall;
    profile_format speedscope;
    profile_frequency 88;
    profile_arg server_arg;
    profile_header X-Server;

    location / {
    }
}

server {
    listen 127.0.0.1:8080;
    server_name off;

    profile_endpoint off;

    location / {
    }

    location /on/ {
        profile_endpoint on;
    }
}

server {
    listen 127.0.0.1:8080;
    server_name list;

    # the list of http is not added to

    profile_allow 192.0.2.1;
    profile_allow 192.0.2.2;

    location / {
    }

    location /more/ {
        profile_allow 192.0.2.3;
        profile_allow 127.0.0.1;
    }
}
EOF

for my $dir (qw{ off off/on off/off deny deny/deny deny/allow if if/inherited
                 if/always values values/nested block on more })
{
    mkdir($t->testdir() . "/$dir") or die "mkdir $dir: $!\n";
    $t->write_file("$dir/a", "a\n");
}

$t->write_file('a', "a\n");
$t->run();


# on and off

is(got('http', '/a'), 'cpu folded 77',
   'a location inherits all directives of http');
is(got('http', '/off/a'), 'none', 'profile_endpoint may be off in a location');
is(got('http', '/off/off/a'), 'none', 'a nested location inherits "off"');
is(got('http', '/off/on/a'), 'cpu folded 77',
   'a nested location may be on again');
is(got('off', '/a', 'http_arg'), 'none',
   'profile_endpoint may be off in a server');
is(got('off', '/on/a'), 'cpu folded 77',
   'a location of this server may be on');


# permissions

is(got('http', '/deny/a'), 'none',
   'a location may have its own profile_allow');
is(got('http', '/deny/deny/a'), 'none',
   'a nested location inherits profile_allow');
is(got('http', '/deny/allow/a'), 'cpu folded 77',
   'a nested location may replace profile_allow');
is(got('list', '/a'), 'none',
   'profile_allow of a server replaces that of http');
is(got('list', '/more/a'), 'cpu folded 77',
   'several profile_allow in a location make one list');
is(got('http', '/if/a'), 'none', 'a condition may refuse');
is(got('http', '/if/a?may=1'), 'cpu folded 77', 'a condition may admit');
is(got('http', '/if/inherited/a'), 'none',
   'an inherited condition may refuse');
is(got('http', '/if/inherited/a?may=1'), 'cpu folded 77',
   'an inherited condition may admit');
is(got('http', '/if/always/a'), 'cpu folded 77',
   'a nested location may replace the condition');


# values

is(got('http', '/values/a'), 'wall folded 77', 'a location may set the mode');
is(got('http', '/values/nested/a'), 'wall speedscope 77',
   'a nested location may set the format and inherit the mode');
is(got('overrides', '/a', 'server_arg'), 'wall speedscope 88',
   'a server may replace all directives');
is(got('overrides', '/a', 'http_arg'), 'none',
   'a server may replace the argument of http');


# headers

is(got('http', '/a', undef, 'X-Http'), 'cpu folded 77',
   'a server inherits the header of http');
is(got('overrides', '/a', undef, 'X-Server'), 'wall speedscope 88',
   'a server may set its own header');
is(got('overrides', '/a', undef, 'X-Http'), 'none',
   'a server may replace the header of http');
is(got('http', '/a', undef, 'X-Server'), 'none',
   'the header of another server has no effect');


# blocks in a location

is(got('http', '/block/a'), 'wall folded 77',
   'a location with blocks has its own mode');
is(got('http', '/block/a?block=1'), 'wall folded 77',
   '"if" inherits the directives of its location');

my $r = http("POST /block/a?http_arg=flamegraph HTTP/1.0\r\n"
             . "Host: http\r\nContent-Length: 1\r\n\r\nx");

is($r->header('X-Profiled-Status'), 405,
   'limit_except inherits the directives of its location');


# returns the values in effect: "MODE FORMAT FREQUENCY", or "none"
sub got {
    my ($host, $uri, $arg, $header) = @_;

    $arg = 'http_arg' unless defined $arg || $header;
    $uri .= ($uri =~ /\?/ ? '&' : '?') . "$arg=flamegraph" if $arg;

    my @headers = ("Host: $host", $header ? "$header: flamegraph" : ());
    my $r = http_get($uri, headers => \@headers);

    return 'none' if $r->status() == 200 && $r->body() eq "a\n"
                     && !defined $r->header('X-Profile-Id');

    my ($mode, $format) = ($r->header('Content-Disposition') // '')
        =~ /-(wall|cpu)-\w+\.(speedscope|folded)\./
        or return "neither: $r";

    # this one tells the frequency

    if ($format eq 'folded') {
        if ($header) {
            $headers[-1] .= '; format=speedscope';

        } else {
            $uri .= '&profile_format=speedscope';
        }

        $r = http_get($uri, headers => \@headers);
    }

    my $info = ProfileTest::Profile->new($r)->json()->{profile_info};

    return "mode in the name: $mode, inside: $info->{mode}"
        if $mode ne $info->{mode};
    return "$mode $format $info->{frequency_asked}";
}
