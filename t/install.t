#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools packaging
# runs: beside
#
# "make install" into a directory installs the module, its helper, the program
# and its manual page, which work from there, and uses no network.

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

# programs that use the network tell that they were called

for (qw/ npm curl wget apt-get /) {
    $t->write_file($_, "#!/bin/sh\ntouch $to.network\nexit 1\n");
    chmod 0755, $t->testdir() . "/$_";
}

local $ENV{PATH} = $t->testdir() . ":$ENV{PATH}";

my ($status, $out) = $t->command('make', '-s', '-C', $root, 'install',
                                 "DESTDIR=$to", "NGINX=$t->{binary}",
                                 'BINDIR=/usr/bin',
                                 'MANDIR=/usr/share/man');

is($status, 0, 'make install succeeds') or diag($out);
ok(!-e "$to.network", 'make install does not use the network');

my $viewer = -e "$root/build/viewer/index.html";

is($out =~ /without the viewer/ ? 1 : 0, $viewer ? 0 : 1,
    'a message tells that the viewer is missing');

my %files;

find(sub { $files{substr($File::Find::name, length $to)} = -s if -f }, $to);

my ($module) = grep { m{/ngx_http_profile_module\.so$} } keys %files;

is($files{$module // ''}, -s $built, 'the module is installed');
is((stat("$to$module"))[2] & 0777, 0644, 'other users can read the module');

ok($files{'/usr/bin/nginx-profile'}, 'the program is installed');
is((stat("$to/usr/bin/nginx-profile"))[2] & 0777, 0755,
    'other users can run the program');

my $helper = dirname($module) . '/ngx_http_profile_symbolizer';

ok(delete($files{$helper}), 'the helper is installed beside the module');
is((stat("$to$helper"))[2] & 0777, 0755, 'other users can run the helper');

my $manual = '/usr/share/man/man1/nginx-profile.1';

ok(delete($files{$manual}), 'the manual page is installed');
like($t->read_file("root$manual"), qr/EXIT STATUS/,
    'the manual page has the exit codes');

is(scalar(grep { m{/profile_viewer/} } keys %files) ? 1 : 0, $viewer ? 1 : 0,
    'the viewer is installed if it was built before');

is(join(' ', grep { !m{/profile_viewer/} && $_ ne '/usr/bin/nginx-profile'
                    && $_ ne $module } keys %files), '',
    'nothing else is installed');

($status, $out) = $t->test_config(<<"EOF2");
load_module $to$module;
events { }
http { server { listen 127.0.0.1:8081; profile_endpoint on; } }
EOF2

is($status, 0, 'nginx loads the installed module') or diag($out);

my $svg = $t->testdir() . '/out.svg';

($status, $out) = $t->command("$to/usr/bin/nginx-profile", '-s', '0.3', '-o',
                              $svg, '-u', 'http://127.0.0.1:' . port(8080)
                                          . '/-/profile/');

is($status, 0, 'the program runs') or diag($out);
like($t->read_file('out.svg'), qr/^<svg /, 'the program writes a picture');
