#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# "make install" into a directory: the module, and the program, which work from
# there, and nothing else.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Find qw/ find /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $root = abs_path(dirname(__FILE__) . '/..');
my $built = "$root/build/ngx_http_profile_module.so";

my $t = ProfileTest->new()->has(qw/ rewrite /)->has_program('make');

$t->skip_all('another build is tested')
    unless -e $built && ($ENV{TEST_NGINX_MODULE} // $built) eq $built;

$t->conf(<<'EOF');
server {
    listen 127.0.0.1:8080;

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

my $to = $t->testdir() . '/root';

# the viewer comes from elsewhere, if it is not there yet; without it, it works

$t->write_file('npm', "#!/bin/sh\nexit 1\n");
chmod 0755, $t->testdir() . '/npm';
local $ENV{PATH} = $t->testdir() . ":$ENV{PATH}";

my ($status, $out) = $t->command('make', '-s', '-C', $root, 'install',
                                 "DESTDIR=$to", "NGINX=$t->{binary}",
                                 'BINDIR=/usr/bin');

is($status, 0, 'make install') or diag($out);

my %files;

find(sub { $files{substr($File::Find::name, length $to)} = -s if -f }, $to);

my ($module) = grep { m{/ngx_http_profile_module\.so$} } keys %files;

is($files{$module // ''}, -s $built, 'the module');
is((stat("$to$module"))[2] & 0777, 0644, 'the module: its mode');

ok($files{'/usr/bin/nginx-profile'}, 'the program');
is((stat("$to/usr/bin/nginx-profile"))[2] & 0777, 0755,
    'the program: its mode');

my $helper = dirname($module) . '/ngx_http_profile_symbolizer';

ok(delete($files{$helper}), 'the helper, beside the module');
is((stat("$to$helper"))[2] & 0777, 0755, 'the helper: its mode');

is(join(' ', grep { !m{/profile_viewer/} && $_ ne '/usr/bin/nginx-profile'
                    && $_ ne $module } keys %files), '',
    'nothing else, but the viewer');

($status, $out) = $t->test_config(<<"EOF2");
load_module $to$module;
events { }
http { server { listen 127.0.0.1:8081; profile_endpoint on; } }
EOF2

is($status, 0, 'nginx loads it') or diag($out);

my $svg = $t->testdir() . '/out.svg';

($status, $out) = $t->command("$to/usr/bin/nginx-profile", '-s', '0.3', '-o',
                              $svg, '-u', 'http://127.0.0.1:' . port(8080)
                                          . '/-/profile/');

is($status, 0, 'the program runs') or diag($out);
like($t->read_file('out.svg'), qr/^<svg /, 'and writes a picture');
