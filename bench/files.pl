#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The CPU time that the file system takes for a file of 6,000 bytes, without
# nginx: to create and rename it, as the store does; to create it without a name
# (O_TMPFILE) and link it; to create it with its final name; and, for comparison,
# to append the bytes to a file that exists.  Each step is printed on its own, so
# what bench/record.pl measures with STORE=1 can be divided into the module's
# part and the file system's part.
#
# Files remain until the end, as in the store: an inode that was freed a moment
# before costs less than a new one.
#
# usage: bench/files.pl [FILES [DIRECTORY]]

use strict;
use warnings;

use Fcntl qw/ O_CREAT O_DIRECTORY O_EXCL O_WRONLY /;
use File::Temp qw/ tempdir /;
use POSIX ();
use Time::HiRes qw/ clock_gettime CLOCK_PROCESS_CPUTIME_ID /;

my $files = $ARGV[0] || 2000;
my $dir = tempdir(DIR => $ARGV[1] || $ENV{TMPDIR} || '/tmp', CLEANUP => 1);
my $bytes = 'x' x 6000;

open my $segment, '>', "$dir/segment" or die "$dir/segment: $!\n";

# of Linux, on x86-64 and on aarch64
use constant O_TMPFILE => 020000000 | O_DIRECTORY;
use constant { AT_FDCWD => -100, AT_SYMLINK_FOLLOW => 0x400 };

my $linkat = (POSIX::uname())[4] eq 'aarch64' ? 37 : 265;

printf "%-24s %9s %9s %9s %9s\n", 'ms for each file', 'open', 'write',
       'name', 'sum';

for my $round (1 .. 3) {
    for my $kind ('create without a name', 'create and rename',
                  'create with its name', 'append')
    {
        my @ms = (0, 0, 0);

        for my $i (1 .. $files) {
            my $name = "$dir/$kind.$round.$i";
            my $first = $kind eq 'create and rename' ? "$name.1" : $name;
            my $f = $kind eq 'append' ? $segment : undef;
            my @at = now();

            if ($kind eq 'create without a name') {
                sysopen($f, $dir, O_TMPFILE|O_WRONLY, 0600)
                    or die "$dir: $!\n";

            } elsif ($kind ne 'append') {
                sysopen($f, $first, O_CREAT|O_EXCL|O_WRONLY, 0600)
                    or die "$first: $!\n";
            }

            push @at, now();
            syswrite($f, $bytes) == length($bytes) or die "write: $!\n";
            push @at, now();

            if ($kind eq 'create without a name') {
                my $from = '/proc/self/fd/' . fileno($f);

                syscall($linkat, AT_FDCWD, $from, AT_FDCWD, "$name",
                        AT_SYMLINK_FOLLOW) == 0 or die "linkat: $!\n";

            } elsif ($first ne $name) {
                rename($first, $name) or die "rename: $!\n";
            }

            push @at, now();
            $ms[$_] += $at[$_ + 1] - $at[$_] for 0 .. 2;
        }

        printf "%-24s %9.4f %9.4f %9.4f %9.4f\n", $kind,
               map({ $_ / $files } @ms), ($ms[0] + $ms[1] + $ms[2]) / $files;
    }
}


# in milliseconds
sub now {
    return 1000 * clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
}
