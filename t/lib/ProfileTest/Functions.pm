package ProfileTest::Functions;

# Copyright (C) The ngx_http_profile_module authors
#
# What is known of the functions of an nginx with a symbol table, and the names
# that a stripped copy of it gets.

use strict;
use warnings;

# addresses have more than 32 bits
no warnings 'portable';

use Exporter qw/ import /;
use File::Basename qw/ basename /;

use ProfileTest;

our @EXPORT = qw/ functions_test functions asked_names /;

# addresses in one question
use constant ADDRESSES => 1000;

my $original;


# A test of a stripped copy of an nginx that was built here.  The names are
# those of has().
sub functions_test {
    my (@names) = @_;

    if (my $objs = $ENV{TEST_NGINX_HTTP3}) {
        $ENV{TEST_NGINX_BINARY} = "$objs/nginx";
        $ENV{TEST_NGINX_MODULE} = "$objs/ngx_http_profile_module.so";
    }

    my $t = ProfileTest->new()->has(@names)->has_program(qw/ readelf strip /);

    $original = $t->{binary};

    $t->skip_all("$original has no symbol table")
        if ($t->command('readelf', '-SW', $original))[1] !~ /\.symtab/;

    my $copy = $t->testdir() . '/' . basename($original);

    my ($status, $out) = $t->command('strip', '-o', $copy, $original);
    die "strip: $out" if $status;

    # the helper of a module that is linked into nginx is beside nginx
    my $helper = $original =~ s{[^/]+$}{ngx_http_profile_symbolizer}r;
    symlink($helper, $t->testdir() . '/ngx_http_profile_symbolizer')
        if -x $helper;

    $t->{binary} = $copy;

    return $t;
}


# By address: the name of the function and its source file, which is unknown
# for functions that are visible outside of it.
sub functions {
    my ($t) = @_;

    my ($status, $out) = $t->command('readelf', '-sW', $original);
    die "readelf: $out" if $status;

    my (%functions, $file);

    for (split(/\n/, $out)) {

        # Num: Value Size Type Bind Vis Ndx Name
        my ($value, $size, $type, $bind, $index, $name) =
            /^\s*\d+: ([0-9a-f]+) +(\w+) (\w+) +(\w+) +\w+ +(\w+) (.*)/
            or next;

        $file = $bind eq 'LOCAL' && $type eq 'FILE' ? basename($name) : $file;

        next if $type ne 'FUNC' || $index eq 'UND' || $size eq '0';

        $functions{hex($value)} //= {
            name => $name,
            file => $bind eq 'LOCAL' ? $file : undef,
        };
    }

    return \%functions;
}


# The names that nginx has for addresses of its program.
sub asked_names {
    my ($t, @addresses) = @_;

    my $base = base(($t->worker_pids())[0]);
    my %names;

    while (my @some = splice(@addresses, 0, ADDRESSES)) {
        my $body = http_post('/-/profile/debug/pprof/symbol',
                             join('+', map { sprintf('0x%x', $base + $_) }
                                           @some))->content();

        $names{hex($1) - $base} = $2
            while $body =~ /^0x([0-9a-f]+) (.*)$/mg;
    }

    return \%names;
}


# where the program of a process begins
sub base {
    my ($pid) = @_;

    my $exe = readlink("/proc/$pid/exe");

    open my $f, '<', "/proc/$pid/maps" or die "maps: $!\n";

    while (<$f>) {
        return hex($1) if /^([0-9a-f]+)-\S+ \S+ 0+ .* \Q$exe\E$/;
    }

    die "no $exe in maps\n";
}


1;
