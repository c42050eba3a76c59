package ProfileTest::Module;

# Copyright (C) The ngx_http_profile_module authors
#
# Modules of nginx that tests bring with them: one source file each, built with
# the headers that the module under test was built with, and their debug files.
# Also programs of t/store/, which use sources of the module without nginx.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;

use Exporter qw/ import /;

our @EXPORT = qw/ build_module run_store_program split_module /;


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


# Builds t/store/NAME.c with the sources of the store, and of more files without
# "ngx_http_profile_" and ".c", and runs the program in place of the test.  Skips
# the file if the module was not built here.
sub run_store_program {
    my ($name, $sources, @args) = @_;

    my $root = abs_path(dirname(__FILE__) . '/../../..');
    my $module = $ENV{TEST_NGINX_MODULE}
                 || "$root/build/ngx_http_profile_module.so";
    my $build = abs_path(dirname($module) . '/nginx') || '';
    my $core = abs_path(dirname($module) . '/libprof.a');
    my $cc = $ENV{CC} || 'cc';
    my $dir = tempdir(CLEANUP => 1);

    # where nginx's headers are, as the module is built

    open my $f, '<', "$build/objs/Makefile"
        or Test::More::plan(skip_all => 'the module was not built here');
    my $makefile = do { local $/; <$f> };

    my ($includes) = $makefile =~ /^ALL_INCS = (.*?)\n\n/ms;
    $includes =~ s/\\\n//g;

    my @sources = map { s{(\w+)$}{ngx_http_profile_$1.c}r }
                  (map { "store/$_" }
                       qw/ zone entry evict store memory file files /),
                  qw{ core/alive core/lock core/log_limit }, @$sources;

    my $out = qx{cd "$build" && $cc -g -O1 -W -Wall -Wno-unused-parameter \\
                 -Werror $includes -I "$root/t/unit" -o "$dir/$name" \\
                 "$root/t/store/$name.c" \\
                 @{[ map { "$root/ngx_http_profile_module/$_" } @sources ]} \\
                 "$core" -lz 2>&1};

    if ($? != 0) {
        Test::More::plan(tests => 1);
        Test::More::fail('the program is built');
        Test::More::diag($out);
        exit;
    }

    exec("$dir/$name", @args) or die "exec: $!\n";
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
