#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: beside

# tools/matrix: what it makes of passed, failed and skipped tests, of a build
# that fails, and of a row that this machine cannot run.  It keeps the lines of
# the other rows.  The builds and the tests are scripts.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Copy qw/ copy /;
use File::Temp qw/ tempdir /;
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $dir = tempdir(CLEANUP => 1);

mkdir "$dir/$_" for qw{ tools t docs };
copy("$root/tools/matrix", "$dir/tools/matrix") or die "copy: $!\n";

script('tools/build-nginx', <<'EOS');
test "$1" != "$NO_SOURCES" || exit 77
test "$1" != "$BROKEN" || exit 1
mkdir -p "$2/objs"
printf '#!/bin/sh\necho nginx version: nginx/1.2.3 >&2\n' > "$2/objs/nginx"
chmod +x "$2/objs/nginx"
EOS

write_file('t/good.t', 'print "1..2\nok 1\nok 2\n";');
write_file('t/part.t', 'print "1..2\nok 1\nok 2 # skip no gzip\n";');
write_file('t/none.t', 'print "1..0 # SKIP no Lua\n";');
write_file('t/bad.t', 'print "1..2\nok 1\nnot ok 2\n";');
write_file('t/dies.t', 'print "1..2\nok 1\n"; exit 3;');
write_file('t/level.t', 'print "1..1\n", $ENV{TEST_NGINX_VERBOSE} ? "ok 1\n"'
                        . ' : "not ok 1\n";');
write_file('t/unstable.t', <<'EOC');
print "1..1\n", -e "once" ? "ok 1\n" : "not ok 1\n";
open my $f, '>', 'once';
EOC


is(matrix('static-gcc', CAPTURES => 'good'), 0, 'all tests of a row pass');
like(page(), qr/^\|\ static-gcc\ \|\ 1\.2\.3\ \|\ gcc\ [\d.]+\ \|
                \ static:\ captures\ \|\ 2\ \|\ 0\ \|\ 0\ \|
                \ \d{4}-\d\d-\d\d\ \|/mx, 'a line has the numbers of tests');
unlike(page(), qr/^## Notes/m, 'a page without notes');

isnt(matrix('debug-log', CAPTURES => 'good part none level'), 0,
     'a row with unexpected skips fails');
like(page(), qr/^\| debug-log \|.*\| 4 \| 0 \| 2 \|/m,
     'skipped tests and files are counted, and tests get the environment');
like(page(), qr/^\| debug-log \| part\.t \| unexpected: skipped, no gzip \|$/m,
     'a skipped test is listed');
like(page(), qr/^\| debug-log \| none\.t \| unexpected: skipped, no Lua \|$/m,
     'a skipped file is listed');
like(page(), qr/^\| static-gcc \|.*\| 2 \| 0 \| 0 \|/m,
     'the line of another row stays');

isnt(matrix('static-gcc', CAPTURES => 'bad dies'), 0,
     'failed tests fail the run');
like(page(), qr/^\| static-gcc \|.*\| 2 \| 2 \| 0 \|/m,
     'a file that ends too early has a failed test');
like(page(), qr/^\| static-gcc \| bad\.t \| failed twice \|$/m,
     'a failed file is listed');
is(() = page() =~ /^\| static-gcc \| 1/mg, 1, 'a row has one line');
like(page(), qr/^\| debug-log \| none\.t /m, 'notes of another row stay');

is(matrix('static-gcc', CAPTURES => 'unstable'), 0,
   'a file that passes the second time');
like(page(), qr/^\| static-gcc \| unstable\.t \| failed at first, and passed/m,
     'a file that passes the second time is listed');
unlike(page(), qr/bad\.t/, 'earlier notes of the row are gone');

is(matrix('http3', NO_SOURCES => 'http3'), 0, 'a row that cannot run here');
like(page(), qr/^\| http3 \| .*cannot run here: no sources of nginx/m,
     'the line says why');
isnt(matrix('http3', BROKEN => 'http3'), 0, 'a build that fails');
like(page(), qr/^\| http3 \| .*failed: does not build/m, 'the line says it');
isnt(matrix('nothing'), 0, 'a row that does not exist');

# A chroot that is not complete.  The programs are scripts; a file has the list
# of mounts.

mkdir "$dir/$_" for qw/ bin packaging /;
copy("$root/packaging/chroots.sh", "$dir/packaging/chroots.sh")
    or die "copy: $!\n";

my $mounted = "$dir/mounted";

script('bin/mount', qq{echo "\$4" >> $mounted});
script('bin/mountpoint', qq{grep -qxsF "\$2" $mounted});
script('bin/umount', qq{grep -vxF "\$1" $mounted > $mounted.new\n}
                     . qq{mv $mounted.new $mounted});
script('bin/debootstrap', <<'EOS');
mkdir -p "$3/proc" "$3/usr/sbin"
mount -t proc proc "$3/proc"
test "$FAILS" != debootstrap || exit 1
umount "$3/proc"
EOS
script('bin/chroot', <<'EOS');
case "$*" in *"$FAILS"*) exit 1 ;; esac
EOS
script('bin/git', <<'EOS');
printf 'tools/matrix\0'
EOS

SKIP: {
    skip 'only root can make chroots', 6 if $>;

    for ([ 'debootstrap', qr/cannot run here: debootstrap failed/ ],
         [ 'apt-get', qr/cannot run here: debootstrap failed/ ],
         [ 'install-deps', qr/failed: the packages do not install/ ])
    {
        my ($fails, $text) = @$_;

        matrix('debian-12', FAILS => $fails,
               PATH => "$dir/bin:$ENV{PATH}");

        like(page(), qr/^\| debian-12 \| .*$text/m,
             "$fails fails: the line says it");
        ok(!-s $mounted, "$fails fails: nothing stays mounted");
    }
}

done_testing();


sub matrix {
    my ($row, %env) = @_;

    local %ENV = (%ENV, DEPS => ':', BUILD => "$dir/build", NO_SOURCES => '',
                  BROKEN => '', CAPTURES => 'good', %env);
    my $out = `$^X $dir/tools/matrix $row 2>&1`;

    note($out);

    return $?;
}


sub page {
    open my $f, '<', "$dir/docs/matrix.md" or return '';
    local $/;
    return scalar <$f>;
}


sub script {
    my ($name, $code) = @_;

    write_file($name, "#!/bin/sh\n$code");
    chmod 0755, "$dir/$name";
}


sub write_file {
    my ($name, $content) = @_;

    open my $f, '>', "$dir/$name" or die "$name: $!\n";
    print $f $content;
    close $f or die "$name: $!\n";
}
