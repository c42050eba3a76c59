package ProfileTest::Metrics;

# Copyright (C) The ngx_http_profile_module authors
#
# Reads metrics in Prometheus' text format and in OpenMetrics.  Runs Prometheus.

use strict;
use warnings;

use Exporter qw/ import /;

our @EXPORT = qw/ metrics_of metric_names metric_sum metrics_less
                  run_prometheus /;


# Runs Prometheus, which scrapes port 8080 once a second and listens on 8082.
sub run_prometheus {
    my ($t) = @_;
    my $dir = $t->testdir();

    $t->write_file_expand('prometheus.yml', <<'EOC');
global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs:
  - job_name: nginx
    static_configs: [ { targets: [ "127.0.0.1:8080" ] } ]
EOC

    $t->run_daemon('prometheus', "--config.file=$dir/prometheus.yml",
                   "--storage.tsdb.path=$dir/tsdb", '--log.level=error',
                   '--enable-feature=exemplar-storage',
                   '--web.listen-address=127.0.0.1:'
                   . ProfileTest::port(8082));
    $t->wait_for_socket(8082);
}


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
