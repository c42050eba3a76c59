package ProfileTest::Process;

# Copyright (C) The ngx_http_profile_module authors
#
# What the kernel tells about a process.  Of a process that is gone all of it
# is empty or 0.

use strict;
use warnings;

use Exporter qw/ import /;

our @EXPORT = qw/ process_cpu process_files process_lives process_signals
                  process_status /;


# a field of /proc/PID/status, without its unit: "VmHWM" (kB), "Threads"
sub process_status {
    my ($pid, $name) = @_;

    open my $f, '<', "/proc/$pid/status" or return '';
    return (map { /^$name:\s+(\S+)/ ? $1 : () } <$f>)[0] // '';
}


# a process that ended is there until its parent waits for it
sub process_lives {
    return process_status($_[0], 'State') !~ /^Z?$/;
}


# seconds of CPU time of a thread, by the scheduler's clock: the first one's,
# unless told otherwise
sub process_cpu {
    my ($pid, $tid) = @_;

    open my $f, '<', "/proc/$pid/task/" . ($tid // $pid) . '/schedstat'
        or return 0;
    return (split / /, <$f>)[0] / 1e9;
}


# what the open descriptors refer to
sub process_files {
    return map { readlink($_) // () } glob("/proc/$_[0]/fd/*");
}


# a bit for each real-time signal that is caught, without the C library's own
sub process_signals {
    return hex(substr(process_status($_[0], 'SigCgt') || '0' x 8, 0, 8)) >> 1;
}


1;
