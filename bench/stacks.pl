#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# What a sample of a worker is worth, beside samples of perf and gperftools, for
# each load of bench/server.pl.  Only frames in user space are compared.  The
# columns:
#
#     samples   with such frames
#     complete  percent of the samples whose outermost frame is nginx's _start
#     wrong     percent of the samples with a wrong name: a name that the symbol
#               table of the object has, but for other addresses.  gperftools
#               stores no names.
#     named     percent of the samples whose innermost frame has more than an
#               offset
#     bytes     of the profile's file, for each sample
#
# usage: bench/stacks.pl [LOAD...]
#
# SECONDS=3  of each profile

use strict;
use warnings;
no warnings 'portable';     # addresses have 64 bits

use Cwd qw/ abs_path /;
use File::Basename qw/ basename dirname /;
use List::Util qw/ sum0 /;

use lib dirname(abs_path($0)), dirname(abs_path($0)) . '/../t/lib';

use Bench;
use Workers;

use ProfileTest::Pprof;

# of _start, which calls the C library once
use constant START_SIZE => 0x40;

use constant WORD => 8;

my $seconds = $ENV{SECONDS} || 3;
my @loads = @ARGV ? @ARGV : qw/ gzip tls proxied static /;
my %readers = (ours => \&read_pprof, perf => \&read_perf,
               gperftools => \&read_gperftools);
my %symbols;

start_workers(@loads);

my $nginx = readlink '/proc/' . server_of('ours')->{worker} . '/exe';
my ($start) = `readelf -hW $nginx` =~ /Entry point address: +0x(\w+)/
    or die "no readelf\n";

$start = hex $start;

for my $load (@loads) {
    printf "%-20s %8s %9s %7s %7s %9s\n", $load,
           qw/ samples complete wrong named bytes /;

    for (grep { $_->[0] =~ /^(?:cpu, 1000|gperf|perf -g, 999|perf dwarf)/ }
              profilers())
    {
        my ($name, $which, $begin, $file) = @$_;
        my $end = $begin->($seconds);

        load($which, $load, $seconds + 1);
        $end->('wait for the end');

        my ($tool) = $name =~ /^(perf|gperftools)/;
        my @samples = grep { @{$_->{frames}} }
                           $readers{$tool // 'ours'}->($file);
        my $n = sum0(map { $_->{n} } @samples);

        die "$name: no samples\n" if $n == 0;

        printf "%-20s %8d %9s %7s %7s %9.1f\n", $name, $n,
               percent(\&complete, $n, @samples),
               $name =~ /^gperf/ ? ('-', '-')
                                 : (percent(\&wrong, $n, @samples),
                                    percent(\&named, $n, @samples)),
               (-s $file) / $n;
    }

    print "\n";
}

stop_workers();


sub percent {
    my ($is, $n, @samples) = @_;

    # a single sample of many must not be rounded away

    my $part = 100 * sum0(map { $_->{n} } grep { $is->($_) } @samples) / $n;

    return sprintf '%.2f', $part > 99.99 && $part < 100 ? 99.99 : $part;
}


sub complete {
    my $frame = $_[0]{frames}[-1];

    return $frame->{object} eq $nginx && $frame->{at} >= $start
           && $frame->{at} < $start + START_SIZE;
}


sub named {
    my $frame = $_[0]{frames}[0];

    return defined $frame->{name}
           && $frame->{name} !~ /^\S+\+0x[0-9a-f]+$|^\[anonymous code\]$/;
}


sub wrong {
    for my $frame (@{$_[0]{frames}}) {
        my $of = symbols($frame->{object})->{$frame->{name} // next} or next;

        # a return address may be behind the last instruction

        return 1 if !grep { $frame->{at} >= $_->[0]
                            && $frame->{at} <= $_->[0] + $_->[1] } @$of;
    }

    return 0;
}


# { name => [ [ address, size ], ... ] } of the functions of an object
sub symbols {
    my ($object) = @_;

    return $symbols{$object} //= do {
        my %of;

        for (-e $object ? `readelf -sW $object` : ()) {
            my ($at, $size, $name) =
                /^ +\d+: (\w+) +(\w+) I?FUNC +\w+ +\w+ +\d+ ([^\s@]+)/ or next;

            push @{$of{$name}}, [ hex $at, $size =~ /^0x/ ? hex $size : $size ]
                if $size;
        }

        \%of;
    };
}


# Each reader returns { n, frames => [ { object, at, name }, ... ] }, innermost
# first.  "at" is the offset in the file, which Debian's objects have as the
# address as well.

sub read_pprof {
    my ($file) = @_;

    my $p = ProfileTest::Pprof->new(read_file($file));
    my %objects = map { $p->field($_, 1) => $_ } $p->list(3);
    my %functions = map { $p->field($_, 1) => $p->string($p->field($_, 2)) }
                        $p->list(5);
    my %frames;

    for my $l ($p->list(4)) {
        my $object = $objects{$p->field($l, 2)} or next;

        # the last line has the function that others were inlined into

        $frames{$p->field($l, 1)} = {
            object => $p->string($p->field($object, 5)),
            at => $p->field($l, 3) - $p->field($object, 2)
                  + $p->field($object, 4),
            name => $functions{$p->field($l->{4}[-1], 1)},
        };
    }

    my @types = $p->types();
    my ($i) = grep { $types[$_] eq 'samples/count' } 0 .. $#types;

    return map { { n => $_->{2}[$i], frames => [ grep { $_ }
                                                 @frames{@{$_->{1}}} ] } }
               $p->list(2);
}


sub read_perf {
    my ($file) = @_;

    my @samples;

    for my $sample (split /\n\n+/,
                    `perf script --no-inline -i $file -F ip,sym,dso 2>/dev/null`)
    {
        my @frames;

        for (split /\n/, $sample) {
            my ($at, $name, $object) = /^\s*(\w+) (.*) \((.*)\)$/ or next;

            push @frames, {
                object => $object,
                at => hex $at,
                name => $name eq '[unknown]' ? undef : $name,
            } if $object !~ /^\[(?:kernel|guest)/;
        }

        push @samples, { n => 1, frames => \@frames } if $sample =~ /\S/;
    }

    return @samples;
}


# Words: a header, then samples with a number, a depth and addresses, until one
# whose only address is 0; then the text of /proc/PID/maps.

sub read_gperftools {
    my ($file) = @_;

    my $data = read_file($file);
    my @words = unpack 'Q<*', $data;
    my $at = 2 + $words[1];
    my @samples;

    while (1) {
        my ($n, $depth) = @words[$at, $at + 1];
        my @stack = @words[$at + 2 .. $at + 1 + $depth];

        $at += 2 + $depth;
        last if $n == 0 && $depth == 1;
        push @samples, { n => $n, stack => \@stack };
    }

    my @maps = map { /^(\w+)-(\w+) r?-?w?-?x\w (\w+) \S+ \d+ +(\/.*)/
                     ? [ hex $1, hex $2, hex $3, $4 ] : () }
                   split /\n/, substr($data, $at * WORD);

    for my $sample (@samples) {
        $sample->{frames} = [ map { file_address($_, @maps) }
                                  @{$sample->{stack}} ];
    }

    return @samples;
}


sub file_address {
    my ($address, @maps) = @_;

    my ($map) = grep { $address >= $_->[0] && $address < $_->[1] } @maps;

    return $map ? { object => $map->[3], at => $address - $map->[0] + $map->[2] }
                : { object => '', at => $address };
}
