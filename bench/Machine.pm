package Machine;

# Copyright (C) The ngx_http_profile_module authors
#
# The machine that a benchmark runs on, for the pages that benchmarks write.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use Exporter qw/ import /;
use File::Basename qw/ dirname /;
use POSIX qw/ strftime uname /;

our @EXPORT = qw/ machine machine_table read_file write_file /;

my $bench = dirname(abs_path(__FILE__));
my $nginx = $ENV{NGINX} || '/usr/sbin/nginx';


# CPU, kernel, nginx, commit and date, as pairs
sub machine {
    my ($system, undef, $kernel, undef, $architecture) = uname();
    my $cpuinfo = read_file('/proc/cpuinfo');
    my ($cpu) = $cpuinfo =~ /^model name\s*: (.*)/m;
    my $cpus = () = $cpuinfo =~ /^processor/mg;

    return (
        cpu => $cpu // $architecture,
        cpus => $cpus,
        kernel => "$system $kernel $architecture",
        nginx => first(`$nginx -v 2>&1`),
        commit => first(`git -C $bench rev-parse --short HEAD 2>/dev/null`),
        date => strftime('%Y-%m-%d', gmtime),
    );
}


# as a table of Markdown
sub machine_table {
    my (%machine) = @_;

    return join '', "| | |\n|---|---|\n",
                    map { "| $_ | $machine{$_} |\n" } sort keys %machine;
}


sub first {
    my ($line) = (shift // '') =~ /^(.*)/;
    return $line;
}


sub read_file {
    my ($name) = @_;

    open my $f, '<', $name or return '';
    local $/;
    return <$f> // '';
}


sub write_file {
    my ($name, $content) = @_;

    open my $f, '>', $name or die "$name: $!\n";
    print $f $content;
    close $f or die "$name: $!\n";
}


1;
