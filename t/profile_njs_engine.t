#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside
#
# The engine of njs reads the njs that serves requests: after the module of njs
# was replaced, and after another module with njs was loaded.

use strict;
use warnings;

use File::Copy qw/ copy /;
use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ js /);

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();
$t->plan(9);

$t->write_file('main.js', <<'EOF');
function leaf(n) {
    let x = 0;
    for (let i = 0; i < n; i++) {
        x += i % 7;
    }
    return x;
}

function content(r) {
    r.return(200, `sum ${leaf(100000)}`);
}

export default { content };
EOF

# the module is a copy, which the test replaces

my $packaged = delete $t->{dynamic}{js};
my $path = $t->testdir() . '/ngx_http_js_module.so';

my @module = (main => "load_module $path;");

my $server = <<'EOF';
server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    location / { %%CONTENT%% }
    location /-/profile/ { profile_console; }
}
EOF

my $with = "js_path %%TESTDIR%%;\njs_import main.js;\n"
           . $server =~ s/%%CONTENT%%/js_content main.content;/r;
my $without = $server =~ s/%%CONTENT%%/return 200 "none";/r;

###############################################################################

install(read_binary($packaged));

$t->conf($with, @module);
$t->run();

is(state(), 'on', 'the engine is on');
cmp_ok(scripts(), '>', 0, 'samples have the functions of the script');

my $place = place();

$t->conf($without);
$t->reload();
like(body(), qr/^none/, 'the module is unloaded');

install(other_version(read_binary($packaged)));

$t->conf($with, @module);
$t->reload();
like(body(), qr/^sum/, 'another version of the module is loaded');

is(place(), $place, 'the loader has put it in the place of the first one');
is(state(), 'off: this version is not known', 'the engine has examined it');

$t->stop();

###############################################################################

# The calls of a module go to the first module with the same functions, as they
# do in an nginx that loads the module of njs for "stream" before that for HTTP.

my $first = $t->testdir() . '/first.so';

copy($packaged, $first) or die "$first: $!";
install(read_binary($packaged));

{
    local $ENV{LD_PRELOAD} = $first;

    $t->run();
}

cmp_ok(scripts(), '>', 0,
       'samples have the functions that an earlier module with njs runs');

$t->stop();

###############################################################################

sub state {
    my $body = http_get('/-/profile/status.json')->body();

    return $body =~ /"njs":"([^"]*)"/ ? $1 : $body;
}


sub scripts {
    my $profile = profile_get('/?profile_frequency=5000')->profile('wall');

    return scalar grep { grep { /^main\.js:\d+ leaf$/ } @{$_->[0]} }
                  $profile->stacks();
}


# the response of the new worker: an old one accepts connections for a while

sub body {
    wait_for(sub { 1 == grep { 1 } $t->child_processes($t->{pid}) });

    return http_get('/')->body();
}


# where the master has the module

sub place {
    return read_binary("/proc/$t->{pid}/maps") =~ /^(\w+)-.* \Q$path\E$/m
           ? $1 : undef;
}


# the same code with another version, and another build-id

sub other_version {
    my ($module) = @_;

    $module =~ s{(?:0\.[78]\.9|1\.0\.2)\0}{0.0.0\0}g;
    $module =~ s/(\x14\0\0\0\x03\0\0\0GNU\0)(.{20})/$1 . ~$2/se;

    return $module;
}


# a new file, since the old one may be mapped

sub install {
    my ($content) = @_;

    unlink($path);

    open(my $f, '>:raw', $path) or die "$path: $!";
    print {$f} $content;
    close($f) or die "$path: $!";
}


sub read_binary {
    my ($file) = @_;

    open(my $f, '<:raw', $file) or die "$file: $!";
    local $/;

    return scalar(<$f>);
}
