package ProfileTest::Preload;

# Copyright (C) The ngx_http_profile_module authors
#
# Libraries of t/preload/, which tests preload into nginx.

use strict;
use warnings;

use File::Basename qw/ dirname /;

use Exporter qw/ import /;

our @EXPORT = qw/ build_preload fault_calls /;

my $sources = dirname(__FILE__) . '/../../preload';


# builds NAME.c in the test's directory, and returns the path of the library
sub build_preload {
    my ($t, $name) = @_;

    my $so = $t->testdir() . "/$name.so";

    $t->run_command($ENV{CC} || 'cc', '-shared', '-fPIC', '-O1', '-W', '-Wall',
                    '-Werror', '-o', $so, "$sources/$name.c", '-ldl');

    return $so;
}


# The calls that prof_fault.c lets fail.  The number of a call is that of its
# line in the table of the source, from 1.
sub fault_calls {
    open my $f, '<', "$sources/prof_fault.c" or die "prof_fault.c: $!\n";
    local $/;

    return ('', <$f> =~ /^\s+x\((\w+)\)/mg);
}


1;
