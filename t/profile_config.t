#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core main
# runs: beside
#
# Directives: where they may be, and that their values arrive.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new();


# the table of formats

open my $source, '<', dirname(__FILE__) . '/../shared/formats/prof_encode.h'
    or die "prof_encode.h: $!\n";
my ($table) = do { local $/; <$source> }
    =~ /^#define PROF_ENCODERS\(x\)(.*?)\n\n/ms;
my @formats = $table =~ /\bx\((\w+)\)/g;


# contexts

my %all = (
    profile_endpoint => [ 'on', 'off' ],
    profile_allow => [ '127.0.0.1', '10.0.0.0/8 ::1', '2001:db8::/32',
                       'unix:', 'all' ],
    profile_if => [ '1', '$arg_token', '"$http_a$cookie_b"' ],
    profile_mode => [ 'wall', 'cpu', 'object' ],
    profile_object_interval => [ '0', '1', '512k', '1024m' ],
    profile_object_grace => [ '0', '1ms', '60s' ],
    profile_format => \@formats,
    profile_keep => [ 'off', '0', '1', '$arg_slow', 'slow=300ms',
                      'slow=1s rate=5 share=10% frequency=100',
                      '$arg_failed slow=1s rate=5', '1 rate=1' ],
    profile_timeout => [ '1ms', '30s', '1d' ],
);

my %server = (
    profile_frequency => [ '1', '99', '10000' ],
    profile_arg => [ 'profile', 'a-b_C9', 'off' ],
    profile_header => [ 'X-Flamegraph', 'X-' . 'a' x 200, 'off' ],
    profile_spans => [ 'on', 'off' ],
    profile_buffer => [ '128k', '1m', '1024m' ],
);

my %http = (profile_max_captures => [ '1', '1000' ],
            profile_turn_log => [ 'on', 'off', 'on size=64k', 'on size=16m' ]);

config_ok('without any directive', '', '', '');

for my $name (sort keys %all) {
    for my $value (@{$all{$name}}) {
        my $line = "$name $value;";
        config_ok("$line in all contexts", $line, $line, $line);
    }
}

for my $name (sort keys %server) {
    for my $value (@{$server{$name}}) {
        my $line = "$name $value;";
        config_ok("$line in http and server", $line, $line, '');
    }
}

for my $name (sort keys %http) {
    config_ok("$name $_; in http", "$name $_;", '', '') for @{$http{$name}};
}

config_ok('profile_allow may be given more than once',
          'profile_allow 127.0.0.1; profile_allow 10.0.0.1 ::1;', '', '');

my ($status, $out) = $t->test_config("%%MODULES%%\nevents { }\n");
is($status, 0, 'a configuration without http is valid') or diag($out);

($status, $out) = $t->test_config(<<'EOF');
%%MODULES%%
events { }
http { profile_endpoint on; profile_allow 10.0.0.1/8; server { } }
EOF

is($status, 0, 'low address bits are accepted');
like($out, qr/warn.*low address bits of "10\.0\.0\.1\/8" in "profile_allow"/,
     'low address bits cause a warning');


# values

$t->conf(<<'EOF');
default_type text/plain;

server {
    listen 127.0.0.1:8080;
    server_name defaults;
    profile_endpoint on;
}

server {
    listen 127.0.0.1:8080;
    server_name values;

    profile_endpoint on;
    profile_mode cpu;
    profile_format folded;
    profile_frequency 123;

    location /other/ {
        profile_mode wall;
        profile_format speedscope;
    }
}

server {
    listen 127.0.0.1:8080;
    server_name names;

    profile_endpoint on;
    profile_arg flame;
    profile_header X-Flame;
}

server {
    listen 127.0.0.1:8080;
    server_name no-arg;

    profile_endpoint on;
    profile_arg off;
}

server {
    listen 127.0.0.1:8080;
    server_name no-header;

    profile_endpoint on;
    profile_header off;
}

server {
    listen 127.0.0.1:8080;
    server_name neither;

    profile_endpoint on;
    profile_arg off;
    profile_header off;
}

server {
    listen 127.0.0.1:8080;
    server_name no-spans;

    profile_endpoint on;
    profile_spans off;
}

server {
    listen 127.0.0.1:8080;
    server_name disabled;

    profile_endpoint off;
}

server {
    listen 127.0.0.1:8080;
    server_name default-is-off;
}
EOF

$t->write_file('a', "a\n");
mkdir($t->testdir() . '/other') or die "mkdir: $!\n";
$t->write_file('other/a', "a\n");

$t->run();

my $query = '?performance_bar=flamegraph';
my $header = 'X-Profile: flamegraph';

my $info = info(get('defaults', "/a$query"));

is($info->{mode}, 'wall', 'the default mode is wall');
is($info->{frequency_asked}, 1000, 'the default frequency is 1000');
is($info->{server}, 'defaults', 'the server is in the profile');
is($info->{host}, 'defaults', 'the host is in the profile');

my $r = get('values', "/a$query");

like($r->header('Content-Disposition'), qr/-cpu-.*\.folded\.txt"$/,
     'mode and format of the server apply');

$info = info(get('values', "/a$query&profile_format=speedscope"));

is($info->{mode}, 'cpu',
    'the request chooses its format, the server its mode');
is($info->{frequency_asked}, 123, 'the frequency of the server applies');

$info = info(get('values', "/other/a$query&stackprof_mode=cpu"));

is($info->{mode}, 'cpu',
    'the request chooses its mode, the location its format');
is(info(get('values', "/other/a$query"))->{mode}, 'wall',
   'the mode of the location applies');
is(info(get('values', "/other/a$query"))->{location}, '/other/',
   'the location is in the profile');

cmp_ok(phases(get('defaults', "/a$query")), '>', 1,
    'stages are shown by default');
is(phases(get('no-spans', "/a$query")), 0, 'profile_spans off hides stages');
is(phases(get('defaults', "/a$query&profile_spans=off")), 0,
   'a request may hide stages');
cmp_ok(phases(get('no-spans', "/a$query&profile_spans=on")), '>', 1,
       'a request may show stages');
is(phases(get('defaults', '/a', "$header; spans=off")), 0,
   'a header may hide stages');
cmp_ok(phases(get('no-spans', '/a', "$header; spans=on")), '>', 1,
       'a header may show stages');

is(profiled(get('names', '/a?flame=flamegraph')), 1,
    'profile_arg renames the argument');
is(profiled(get('names', "/a$query")), 0,
   'with a renamed argument, the default one has no effect');
is(profiled(get('names', '/a', 'X-Flame: flamegraph')), 1,
    'profile_header renames the header');
is(profiled(get('names', '/a', $header)), 0,
   'with a renamed header, the default one has no effect');
is(profiled(get('defaults', '/a?flame=flamegraph')), 0,
   'an argument of another server has no effect');
is(profiled(get('defaults', '/a', 'X-Flame: flamegraph')), 0,
   'a header of another server has no effect');

is(profiled(get('no-arg', "/a$query")), 0,
    'profile_arg off disables the argument');
is(profiled(get('no-arg', '/a', $header)), 1,
    'profile_arg off does not disable the header');
is(profiled(get('no-header', "/a$query")), 1,
    'profile_header off does not disable the argument');
is(profiled(get('no-header', '/a', $header)), 0,
    'profile_header off disables the header');
is(profiled(get('neither', "/a$query", $header)), 0,
    'both triggers may be disabled');

for my $off (qw/ off: a: performance_bar: /) {
    is(profiled(get('neither', '/a', "$off flamegraph")), 0,
       "the header $off is no trigger if triggers are disabled");
}

is(profiled(get('neither', '/a?off=flamegraph&=flamegraph')), 0,
   'neither "off" nor an empty name is a trigger');
is(profiled(get('disabled', "/a$query", $header)), 0,
    'profile_endpoint off disables triggers');
is(profiled(get('default-is-off', "/a$query", $header)), 0,
    'profile_endpoint is off by default');


sub config_ok {
    my ($name, $in_http, $in_server, $in_location) = @_;

    my ($status, $out) = $t->test_config(<<EOF);
%%MODULES%%
events { }
http {
    $in_http
    server {
        $in_server
        location / {
            $in_location
        }
    }
}
EOF

    is($status, 0, $name) or diag($out);
}


sub get {
    my ($host, $uri, @headers) = @_;
    return http_get($uri, headers => [ "Host: $host", @headers ]);
}


sub profiled {
    my ($r) = @_;

    return 1 if $r->status() == 200 && $r->header('X-Profile-Id');
    return 0 if $r->status() == 200 && $r->body() eq "a\n";

    return "neither: $r";
}


sub info {
    my ($r) = @_;
    return ProfileTest::Profile->new($r)->json()->{profile_info};
}


sub phases {
    my ($r) = @_;
    return ProfileTest::Profile->new($r)->profile('wall')
           ->count_frames(qr/^phase /);
}
