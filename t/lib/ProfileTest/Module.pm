package ProfileTest::Module;

# Copyright (C) The ngx_http_profile_module authors
#
# Modules of nginx that tests bring with them: one source file each, built with
# the headers that the module under test was built with, and their debug files.

use strict;
use warnings;

use File::Basename qw/ dirname /;

use Exporter qw/ import /;

our @EXPORT = qw/ build_module split_module /;


# Builds t/fixtures/NAME.c in the test's directory and returns the path of the
# module, or skips the file.  May be given more flags for the compiler.
sub build_module {
    my ($t, $name, @flags) = @_;

    my $root = dirname(__FILE__) . '/../../..';
    my $from = dirname($ENV{TEST_NGINX_MODULE} || $ENV{TEST_NGINX_BINARY}
                       || "$root/build/x");

    # beside nginx as it was built here, or where the module was built
    my ($nginx) = grep { -f "$_/objs/ngx_auto_config.h" }
                  "$from/..", "$from/nginx", "$root/build/nginx";

    if (!$nginx) {
        Test::More::plan(skip_all => 'no headers of nginx');
    }

    my $so = $t->testdir() . "/$name.so";

    my ($status, $out) = $t->command($ENV{CC} || 'cc', '-shared', '-fPIC',
        '-O1', '-g', '-W', '-Wall', '-Wno-unused-parameter', '-Werror',
        '-o', $so, (map { ('-I', "$nginx/$_") } qw{ objs src/core src/event
        src/event/modules src/event/quic src/os/unix src/http src/http/modules
        src/http/v2 src/http/v3
        }), @flags, "$root/t/fixtures/$name.c");

    if ($status) {
        Test::More::plan(skip_all => "$name is not built: $out");
    }

    return $so;
}


# Strips the module, and keeps its debugging information in "MODULE.split".
# Returns the path where programs look for it as a debug file, which is removed
# when the test ends, or skips the file: only root may write there.
my ($debug, $owner);

sub split_module {
    my ($t, $so) = @_;

    my (undef, $notes) = $t->command('readelf', '-n', $so);
    my ($id) = $notes =~ /Build ID: ([0-9a-f]+)/;

    $t->skip_all('/usr/lib/debug cannot be written') if $> != 0;

    ($debug, $owner) = ('/usr/lib/debug/.build-id/' . substr($id, 0, 2) . '/'
                        . substr($id, 2) . '.debug', $$);

    $t->run_command('objcopy', '--only-keep-debug', $so, "$so.split");
    $t->run_command('strip', '--strip-unneeded', $so);

    return $debug;
}


END {
    if ($owner && $owner == $$) {
        unlink($debug);
        rmdir(dirname($debug));
    }
}


1;
