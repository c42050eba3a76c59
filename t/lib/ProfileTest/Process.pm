package ProfileTest::Process;

# Copyright (C) The ngx_http_profile_module authors
#
# What the kernel tells about a process.  Of a process that is gone all of it
# is empty or 0.

use strict;
use warnings;

use Exporter qw/ import /;

our @EXPORT = qw/ process_cpu process_cpu_all process_files process_lives
                  process_signals process_status process_times /;


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


# Seconds of a thread by the scheduler's clock: on a processor, and waiting for
# one.  It is the first thread, unless told otherwise.  Returns an empty list if
# the thread is gone, or the kernel does not tell.
sub process_times {
    my ($pid, $tid) = @_;

    open my $f, '<', "/proc/$pid/task/" . ($tid // $pid) . '/schedstat'
        or return ();
    return map { $_ / 1e9 } (<$f> =~ /^(\d+) (\d+)/);
}


# seconds of CPU time
sub process_cpu { return (process_times(@_))[0] // 0 }


# seconds of CPU time of all threads that live
sub process_cpu_all {
    my ($pid) = @_;
    my $sum = 0;
    $sum += process_cpu($pid, $_)
        for map { m{(\d+)$} } glob("/proc/$pid/task/*");

    return $sum;
}


# returns the targets of the open descriptors
sub process_files {
    return map { readlink($_) // () } glob("/proc/$_[0]/fd/*");
}


# a bit for each real-time signal that is caught, without the C library's own
sub process_signals {
    return hex(substr(process_status($_[0], 'SigCgt') || '0' x 8, 0, 8)) >> 1;
}


1;
