#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: first
#
# tools/make-debug: debug files for stripped programs, made of another build and
# of a Debian package; and programs that differ from the build.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use Test::More;

# exit codes of the program
use constant { DONE => 0, REFUSED => 1, UNAVAILABLE => 77 };

# a small package, which is built in seconds
use constant PACKAGE => 'libnginx-mod-http-echo';

my $program = dirname(__FILE__) . '/../tools/make-debug';

for my $needed (qw/ cc objcopy readelf strip /) {
    plan(skip_all => "no $needed")
        if system("command -v $needed > /dev/null") != 0;
}

my $dir = tempdir('make-debug-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);

###############################################################################

# two builds of the same functions, whose build-ids differ

my $source = <<'EOF';
static __attribute__((noinline)) int hidden(int x) { return x * 3 + SALT; }
int shown(int x) { return hidden(x) + 1; }
EOF

my $installed = library('installed', $source, '-DSALT=7', '-g0');
my $built = library('built', $source, '-DSALT=7', '-g');

system('strip', $installed) == 0 or die "strip\n";

my $id = build_id($installed);

isnt(build_id($built), $id, 'the build-ids differ');
is(make_debug('-b', $built, $installed), DONE,
   'a file with the same functions gets a debug file');

my $debug = sprintf('%s/debug/.build-id/%.2s/%s.debug', $dir, $id,
                    substr($id, 2));

ok(-f $debug, 'the tool makes a debug file');
is(build_id($debug), $id,
   'the debug file has the build-id of the installed file');
like(qx{readelf -sW $debug}, qr/ hidden$/m,
     'the debug file names a static function');
like(qx{readelf --debug-dump=decodedline $debug}, qr/\bbuilt\.c\b/,
     'the debug file has lines');

unlink($debug);

# programs that differ from the build

my %others = (
    'a longer function' => library('longer',
        $source =~ s/x \* 3/x * x * x * x * 3/r, '-DSALT=7', '-g'),
    'another function' => library('another', "$source int more(void)"
        . " { return 1; }\n", '-DSALT=7', '-g'),
    'another order' => library('order', "int before(int x) { return x * 9; }\n"
        . $source, '-DSALT=7', '-g'),
);

for my $name (sort keys %others) {
    is(make_debug('-b', $others{$name}, $installed), REFUSED, $name);
    ok(!-e $debug, "$name: the tool makes no debug file");
}

is(make_debug('-b', library('plain', $source, '-DSALT=7', '-g0'), $installed),
   REFUSED, 'a build without debugging information is refused');

# an installed file that was changed after it was built

change_function_size($installed);

is(make_debug('-b', $built, $installed), REFUSED,
   'a changed installed file is refused');
ok(!-e $debug, 'a changed installed file gets no debug file');

is(make_debug('-b', $built, library('no_id', $source, '-DSALT=7',
                                    '-Wl,--build-id=none')),
   255, 'an installed file without a build-id');

# a package of Debian: its source, its build, the debug file

SKIP: {
    my ($file) = grep { /_echo_module\.so$/ }
                 split(/\n/, qx{dpkg -L ${\ PACKAGE} 2> /dev/null});

    skip('the package ' . PACKAGE . ' is not installed', 2) unless $file;

    # packages that are missing are not installed by a test
    skip('dpkg-dev and debhelper are not installed', 2)
        if system('command -v dpkg-buildpackage dh > /dev/null') != 0;

    my $rc = make_debug(PACKAGE);

    skip('apt cannot get the source of ' . PACKAGE, 2) if $rc == UNAVAILABLE;

    is($rc, DONE, 'a package gets a debug file');

    my $id = build_id($file);
    my $debug = sprintf('%s/debug/.build-id/%.2s/%s.debug', $dir, $id,
                        substr($id, 2));

    like(qx{readelf -sW $debug}, qr/ ngx_http_echo_handler$/m,
         'the debug file names its functions');
}

done_testing();

###############################################################################

sub library {
    my ($name, $source, @flags) = @_;

    open(my $f, '>', "$dir/$name.c") or die "$dir: $!\n";
    print {$f} $source;
    close($f) or die "$dir: $!\n";

    system('cc', '-O2', '-shared', '-fPIC', '-Wl,--build-id', @flags,
           '-o', "$dir/$name.so", "$dir/$name.c") == 0 or die "cc\n";

    return "$dir/$name.so";
}


# the exit code
sub make_debug {
    my (@arguments) = @_;

    system("$program -d $dir/debug @arguments > $dir/log 2>&1");

    open(my $f, '<', "$dir/log") or die "$dir: $!\n";
    note(<$f>);

    return $? >> 8;
}


sub build_id {
    my ($file) = @_;

    return qx{readelf -nW $file 2> /dev/null} =~ /Build ID: ([0-9a-f]+)/
           ? $1 : '';
}


# adds a byte to the size of a function in the unwind information
sub change_function_size {
    my ($file) = @_;

    my ($pos) = qx{readelf -SW $file}
                =~ /\.eh_frame +PROGBITS +\w+ +(\w+)/ or die "no .eh_frame\n";

    open(my $f, '+<:raw', $file) or die "$file: $!\n";

    $pos = hex($pos);

    # an entry of a function has the distance to its description, which is not
    # 0; the size of the function is the fourth word

    for ( ;; ) {
        seek($f, $pos, 0);
        my $entry;
        (read($f, $entry, 16) // 0) == 16 or die "no function\n";

        my ($length, $id, $start, $size) = unpack('V4', $entry);

        $length or die "no function\n";

        if ($id) {
            seek($f, $pos + 12, 0);
            print {$f} pack('V', $size + 1);
            close($f) or die "$file: $!\n";
            return;
        }

        $pos += 4 + $length;
    }
}
