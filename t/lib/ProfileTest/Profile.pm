package ProfileTest::Profile;

# Copyright (C) The ngx_http_profile_module authors
#
# A flamegraph in speedscope's file format, as a test wants to look at it.
# Weights are nanoseconds.

use strict;
use warnings;

use JSON::PP;
use List::Util qw/ sum0 /;


sub new {
    my ($class, $response) = @_;

    my $body = $response->content();
    my $json = $response->status() == 200 && defined $body
               && eval { JSON::PP->new()->utf8()->decode($body) };

    if (ref $json ne 'HASH' || ref $json->{profiles} ne 'ARRAY') {
        die 'no profile: ', $response->error() || substr($response, 0, 400),
            "\n";
    }

    return bless { response => $response, json => $json }, $class;
}


sub response { return $_[0]{response} }

sub json { return $_[0]{json} }

# returns the names of all profiles in the file
sub names { return map { $_->{name} } @{$_[0]{json}{profiles}} }


# the profile whose name begins with the word, without regard to case: wall,
# cpu
sub profile {
    my ($self, $word) = @_;

    for my $p (@{$self->{json}{profiles}}) {
        next unless $p->{name} =~ /^\Q$word\E\b/i;

        return ProfileTest::Profile::One->new($self->{json}{shared}{frames},
                                              $p);
    }

    die "no \"$word\" in: ", join(', ', $self->names()), "\n";
}


package ProfileTest::Profile::One;

use strict;
use warnings;

use List::Util qw/ sum0 /;


sub new {
    my ($class, $frames, $p) = @_;

    my @stacks;

    for my $i (0 .. $#{$p->{samples}}) {
        push @stacks, [ [ map { $frames->[$_]{name} } @{$p->{samples}[$i]} ],
                        $p->{weights}[$i] ];
    }

    return bless { json => $p, stacks => \@stacks }, $class;
}


sub json { return $_[0]{json} }

# in order of time: [ [ names, outermost first ], weight ]
sub stacks { return @{$_[0]{stacks}} }

sub total { return sum0(map { $_->[1] } $_[0]->stacks()) }


# returns the weight of all stacks with a frame that matches
sub weight_below {
    my ($self, $re) = @_;

    return sum0(map { $_->[1] } grep { grep { /$re/ } @{$_->[0]} }
                $self->stacks());
}


# returns the weight of all stacks whose innermost frame matches
sub weight_self {
    my ($self, $re) = @_;

    return sum0(map { $_->[1] } grep { ($_->[0][-1] // '') =~ /$re/ }
                $self->stacks());
}


# how many stacks have a frame that matches
sub count_stacks {
    my ($self, $re) = @_;

    return scalar grep { grep { /$re/ } @{$_->[0]} } $self->stacks();
}


# how many different frames match
sub count_frames {
    my ($self, $re) = @_;

    my %seen = map { $_ => 1 } grep { /$re/ } map { @{$_->[0]} }
                   $self->stacks();

    return scalar keys %seen;
}


# the heaviest first, "a;b;c 1000" each: for diag() and people
sub folded {
    my ($self, $max) = @_;

    my %weights;
    $weights{join(';', @{$_->[0]})} += $_->[1] for $self->stacks();

    my @lines = map { "$_ $weights{$_}" }
                sort { $weights{$b} <=> $weights{$a} || $a cmp $b }
                keys %weights;

    splice(@lines, $max) if $max && @lines > $max;

    return join("\n", @lines);
}


1;
