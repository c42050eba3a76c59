package ProfileTest::Preload;

# Copyright (C) The ngx_http_profile_module authors
#
# Libraries of t/preload/, which tests preload into nginx.

use strict;
use warnings;

use File::Basename qw/ dirname /;

use Exporter qw/ import /;

our @EXPORT = qw/ build_preload fault_calls run_ahead /;

my $sources = dirname(__FILE__) . '/../../preload';


# builds NAME.c in the test's directory, and returns the path of the library
sub build_preload {
    my ($t, $name) = @_;

    my $so = $t->testdir() . "/$name.so";

    $t->run_command($ENV{CC} || 'cc', '-shared', '-fPIC', '-O1', '-W', '-Wall',
                    '-Werror', '-o', $so, "$sources/$name.c", '-ldl');

    return $so;
}


# Starts nginx with a clock of the day that is ahead by the seconds in the file
# "clock" of the test's directory.
sub run_ahead {
    my ($t, $seconds) = @_;

    local $ENV{PROF_CLOCK} = $t->testdir() . '/clock';
    local $ENV{LD_PRELOAD} = build_preload($t, 'prof_clock');

    $t->write_file('clock', $seconds);
    $t->run();
}


# The calls that prof_fault.c lets fail.  The number of a call is that of its
# line in the table of the source, from 1.
sub fault_calls {
    open my $f, '<', "$sources/prof_fault.c" or die "prof_fault.c: $!\n";
    local $/;

    return ('', <$f> =~ /^\s+x\((\w+)\)/mg);
}


1;
