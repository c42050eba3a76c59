package ProfileTest::Pprof;

# Copyright (C) The ngx_http_profile_module authors
#
# A profile in pprof's format, read from its bytes, without what writes it.

use strict;
use warnings;

use IO::Uncompress::Gunzip ();
use List::Util qw/ sum0 /;

# the fields of profile.proto that are not numbers, by message
my %MESSAGES = (
    Profile  => { 1 => 'ValueType', 2 => 'Sample', 3 => 'Mapping',
                  4 => 'Location', 5 => 'Function', 6 => '', 11 => 'ValueType' },
    Sample   => { 3 => 'Label' },
    Location => { 4 => 'Line' },
);

# lists of numbers, which are in one field
my %PACKED = (
    Profile => { 13 => 1 },
    Sample  => { 1 => 1, 2 => 1 },
);


# Go's own reader, "go tool pprof", or undef without Go.  Go builds the program
# when it is asked for first, into a cache below the home directory, so tests
# that have a home of their own need its path.
sub program {
    my ($path) = grep { -x "$_/go" } split(/:/, $ENV{PATH});
    return undef unless defined $path;

    chomp(my $program = qx{"$path/go" tool -n pprof 2> /dev/null} // '');
    return -x $program ? $program : undef;
}


# takes a response, or the bytes of a file
sub new {
    my ($class, $from) = @_;

    my $gz = ref $from ? $from->body() : $from;

    IO::Uncompress::Gunzip::gunzip(\$gz => \my $raw, Transparent => 0)
        or die "no profile: $IO::Uncompress::Gunzip::GunzipError: "
               . (ref $from ? $from->error() . ' ' : '')
               . substr(ref $from ? $from->raw() : $from, 0, 1000) . "\n";

    return bless { pb => message('Profile', $raw) }, $class;
}


# a message as { field number => [ values ] }
sub message {
    my ($type, $s) = @_;

    my ($at, %fields) = (0);

    while ($at < length $s) {
        my $key = varint($s, \$at);
        my ($field, $wire) = ($key >> 3, $key & 7);

        if ($wire == 0) {
            push @{$fields{$field}}, varint($s, \$at);
            next;
        }

        die "$type: wire type $wire of field $field\n" if $wire != 2;

        my $len = varint($s, \$at);
        die "$type: field $field is too long\n" if $at + $len > length $s;

        my $value = substr($s, $at, $len);
        my $sub = $MESSAGES{$type}{$field};
        $at += $len;

        if ($PACKED{$type}{$field}) {
            my $i = 0;
            push @{$fields{$field}}, varint($value, \$i)
                while $i < length $value;
            next;
        }

        die "$type: unknown field $field\n" unless defined $sub;
        push @{$fields{$field}}, $sub eq '' ? $value : message($sub, $value);
    }

    return \%fields;
}


sub varint {
    my ($s, $at) = @_;

    my ($n, $shift) = (0, 0);

    while (1) {
        die "a number without an end\n" if $$at >= length $s || $shift > 63;

        my $byte = ord(substr($s, $$at++, 1));

        $n |= ($byte & 0x7f) << $shift;
        return $n if $byte < 0x80;
        $shift += 7;
    }
}


sub field {
    my ($self, $message, $n) = @_;
    return $message->{$n} ? $message->{$n}[0] : 0;
}


sub list {
    my ($self, $n) = @_;
    return @{$self->{pb}{$n} || []};
}


sub string {
    my ($self, $i) = @_;
    return ($self->list(6))[$i] // die "no string $i\n";
}


# "cpu/nanoseconds", of all types
sub types {
    my ($self) = @_;
    return map { $self->type($_) } $self->list(1);
}


sub type {
    my ($self, $t) = @_;
    return join('/', map { $self->string($self->field($t, $_)) } 1, 2);
}


sub period_type { return $_[0]->type($_[0]->field($_[0]{pb}, 11)) }
sub period { return $_[0]->field($_[0]{pb}, 12) }
sub time_nanos { return $_[0]->field($_[0]{pb}, 9) }
sub duration { return $_[0]->field($_[0]{pb}, 10) }
sub default_type { return $_[0]->string($_[0]->field($_[0]{pb}, 14)) }

sub comments { return map { $_[0]->string($_) } $_[0]->list(13) }


# [ file, build-id, has_functions ]
sub mappings {
    my ($self) = @_;

    return map { [ $self->string($self->field($_, 5)),
                   $self->string($self->field($_, 6)),
                   $self->field($_, 7) ] } $self->list(3);
}


sub locations { return $_[0]->list(4) }


# { stack => [ names, innermost first ], values => [], labels => {} }
sub samples {
    my ($self) = @_;

    my %functions = map { $self->field($_, 1)
                              => $self->string($self->field($_, 2)) }
                        $self->list(5);
    my %names;

    for my $l ($self->list(4)) {
        my $id = $self->field($l, 1);

        die "two locations $id\n" if exists $names{$id};

        $names{$id} = [ map { $functions{$self->field($_, 1)}
                                  // die "no function\n" }
                            @{$l->{4} || []} ];
    }

    return map { {
        stack  => [ map { @{$names{$_} // die "no location $_\n"} }
                        @{$_->{1}} ],
        values => $_->{2},
        labels => { map { $self->string($self->field($_, 1))
                              => $self->string($self->field($_, 2)) }
                        @{$_->{3} || []} },
    } } $self->list(2);
}


# returns the sum of a type, "cpu/nanoseconds", over the samples that match
sub total {
    my ($self, $type, $match) = @_;

    return sum0(map { $self->value($type, $_) }
                grep { !$match || $match->($_) } $self->samples());
}


# returns the value of a sample
sub value {
    my ($self, $type, $sample) = @_;

    my @types = $self->types();
    my ($i) = grep { $types[$_] eq $type } 0 .. $#types;

    die "no $type in @types\n" unless defined $i;

    return $sample->{values}[$i];
}


1;
