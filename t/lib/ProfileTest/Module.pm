package ProfileTest::Module;

# Copyright (C) The ngx_http_profile_module authors
#
# Modules of nginx that tests bring with them: one source file each, built with
# the headers that the module under test was built with.

use strict;
use warnings;

use File::Basename qw/ dirname /;

use Exporter qw/ import /;

our @EXPORT = qw/ build_module /;


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


1;
