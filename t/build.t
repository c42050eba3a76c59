#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: first
#
# Builds: what make says when something is missing or was interrupted, and
# nginx's own configure with options that read the "config" script in their way.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use File::Spec;
use File::Temp qw/ tempdir /;
use Test::More;

my $ROOT = File::Spec->rel2abs(dirname(__FILE__) . '/..');
my $SOURCES = '/usr/share/nginx/src';

plan(skip_all => 'no package nginx-dev') unless -f "$SOURCES/auto/module";

my $dir = tempdir('build-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);

delete @ENV{qw/ MAKEFLAGS MAKELEVEL /};

###############################################################################

my ($status, $out) = make("BUILD=$dir/none", "NGINX_SRC=$dir/nothing",
                          'module');

isnt($status, 0, 'without sources of nginx nothing is built');
like($out, qr/install the package nginx-dev/, 'make names the missing package');

# a linker that ends in the middle of its work

my @module = ("BUILD=$dir/build", "NGINX_SRC=$SOURCES", 'module');
my $objs = "$dir/build/nginx/objs";
my $so = "$objs/ngx_http_profile_module.so";

# what "make test" has compiled is not compiled again; the link is repeated

my $built = dirname($ENV{TEST_NGINX_MODULE} || "$ROOT/build/module");

mkdir "$dir/build";
system('cp', '-a', $_, "$dir/build/")
    for grep { -e } map { "$built/$_" } qw{ nginx nginx.args core core.args
        core.list gen libprof.a ngx_http_profile_symbolizer };

($status, $out) = make(@module);
is($status, 0, 'the module is built') or diag($out);

my $size = -s $so;

truncate($so, $size / 2);
($status, $out) = make(@module);
is(-s $so, $size, 'half a module is linked again') or diag($out);

unlink $so;

write_file("$dir/cc", <<'SH');
#!/bin/sh
for arg; do case $arg in -shared)
    for out; do case $last in -o) : > "$out" ;; esac; last=$out; done
    kill -KILL $PPID
    sleep 1
    exit 1
    ;;
esac; done
exec cc "$@"
SH
chmod 0755, "$dir/cc";

system('sed', '-i', '-e', "s,^LINK =.*,LINK = $dir/cc,", "$objs/Makefile");

($status, $out) = make(@module);
isnt($status, 0, 'the shell of the linker is killed');

system('sed', '-i', '-e', 's,^LINK =.*,LINK = cc,', "$objs/Makefile");

($status, $out) = make(@module);
is($status, 0, 'the next make succeeds') or diag($out);
is(-s $so, $size, 'it does not take the file that the linker has left');

# nginx's module for Perl writes the directories of headers into a Makefile

mkdir "$dir/perl";
symlink($_, "$dir/perl/" . (split m{/})[-1]) for glob("$SOURCES/*");
unlink map { "$dir/perl/$_" } qw/ objs Makefile /;
symlink('auto/configure', "$dir/perl/configure") unless -e "$dir/perl/configure";

($status, $out) = run("cd $dir/perl && ./configure --builddir=objs"
                      . ' --with-compat --with-http_perl_module'
                      . " --add-dynamic-module=$ROOT");
is($status, 0, 'configure with --with-http_perl_module') or diag($out);

($status, $out) = run("make -n -C $dir/perl -f objs/Makefile"
                      . ' objs/src/http/modules/perl/Makefile 2>&1;'
                      . " make -n -C $dir/perl -f objs/Makefile"
                      . ' objs/addon/core/ngx_http_profile_built_for.h');
unlike($out, qr/missing separator/, 'make can read the Makefile');
is($status, 0, 'make knows the files of the module') or diag($out);

done_testing();

###############################################################################

sub make {
    my (@args) = @_;

    return run("make -s -j2 -C $ROOT @args");
}


sub run {
    my ($command) = @_;

    my $out = qx{( $command ) 2>&1 < /dev/null};

    return ($? >> 8 || $? & 127, $out);
}


sub write_file {
    my ($name, $content) = @_;

    open my $f, '>', $name or die "$name: $!\n";
    print $f $content;
    close $f;
}
