package ProfileTest::Metrics;

# Copyright (C) The ngx_http_profile_module authors
#
# Reads metrics in Prometheus' text format and in OpenMetrics.

use strict;
use warnings;

use Exporter qw/ import /;

our @EXPORT = qw/ metrics_of metric_names metric_sum metrics_less /;


# the samples of a text: { 'name{labels}' => value }
sub metrics_of {
    my ($text) = @_;

    return { map { /^([^#\s]\S*?(?:\{.*?\})?) (\S+)(?: # .*)?$/ ? ($1 => $2)
                                                                : () }
             split /\n/, $text };
}


# the names of all samples, without their labels
sub metric_names {
    my ($m) = @_;
    my %names = map { s/\{.*//sr => 1 } keys %$m;

    return sort { $a cmp $b } keys %names;
}


# the sum of the samples with this name that have all of these labels
sub metric_sum {
    my ($m, $name, %labels) = @_;
    my $sum = 0;

    SAMPLE: for my $key (keys %$m) {
        next unless $key =~ /^\Q$name\E(?:\{|$)/;

        for my $label (keys %labels) {
            next SAMPLE unless $key =~ /[{,]\Q$label="$labels{$label}"\E/;
        }

        $sum += $m->{$key};
    }

    return $sum;
}


# the counters of $before that are missing in $after or less there
sub metrics_less {
    my ($before, $after) = @_;

    return sort { $a cmp $b }
           grep { /^\w+_(?:total|count|sum|bucket)(?:\{|$)/
                  && (!defined $after->{$_} || $after->{$_} < $before->{$_}) }
           keys %$before;
}


1;
