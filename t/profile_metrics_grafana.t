#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside

# The dashboard for Grafana: a real Prometheus that scrapes nginx answers each of
# its queries.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ time /;

use ProfileTest::Metrics;
use ProfileTest::Upstream;
use ProfileTest;

my $file = dirname(abs_path(__FILE__)) . '/../docs/grafana/nginx-profile.json';

my $t = ProfileTest->new()->has(qw/ proxy /)->has_program('prometheus');

$t->conf(<<'EOF', workers => 2);
profile_zone store:4m;
profile_keep 0;

server {
    listen 127.0.0.1:8080;
    server_name one;

    location / { }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=20/;
    }

    location = /metrics { profile_metrics; }
}
EOF

$t->write_file('text', 'x' x 1000);

run_upstream($t, 8081);
$t->run();

open my $f, '<', $file or die "$file: $!\n";
my $dashboard = decode_json(join('', <$f>));
my @targets = map { my $title = $_->{title};
                    map { { %$_, title => $title } } @{$_->{targets} || []} }
              @{$dashboard->{panels}};
my @variables = grep { $_->{type} eq 'query' }
                @{$dashboard->{templating}{list}};

run_prometheus($t);

my $begin = int(time());
my @load = map { $t->load($_, clients => 1, rate => 20, seconds => 120) }
               qw{ /text /upstream };


# the values of the variables, as Grafana requests them

my %values;

for my $v (@variables) {
    my ($metric, $label) = $v->{query}{query} =~ /^label_values\((.*), (\w+)\)$/
        or die "$v->{name}: $v->{query}{query}\n";

    ok(wait_for(sub { @{$values{$v->{name}} = values_of($label, $metric)} },
                60), "the variable $v->{name} has values");
}

is_deeply($values{server}, [ 'one' ], 'the variable server has the server');
ok(wait_for(sub { grep { $_ eq '/upstream' }
                       @{values_of('location',
                            'nginx_profile_request_duration_seconds_count')} },
            60), 'the variable location has the locations');


# "All", and one value of each variable

for my $target (@targets) {
    my $name = "$target->{title}: $target->{legendFormat}";

    ok(wait_for(sub { numbers($target->{expr}, {}) }, 60),
       "$name has data") or diag($target->{expr});
}

for my $target (grep { $_->{expr} =~ /\$location/ } @targets) {
    ok(wait_for(sub { numbers($target->{expr}, { server => 'one',
                                                 location => '/upstream' }) },
                60),
       "$target->{title}: $target->{legendFormat} has data of a location");
}


# the values are those of nginx

$_->stop() for @load;

my ($turns) = grep { $_->{title} eq 'Turns per request' } @targets;
my ($exemplars) = grep { $_->{exemplar} } @targets;

ok((grep { $_->{value}[1] >= 2 }
    results($turns->{expr}, { server => 'one', location => '/upstream' })),
   'a request of an upstream takes several turns');

ok($exemplars && @{api('query_exemplars?query='
                       . escape(expand($exemplars->{expr}, {}))
                       . "&start=$begin&end=" . int(time() + 1))},
   'the query with exemplars has exemplars');


# the dashboard has all metrics that nginx has, and no others

my $m = metrics_of(http_get('/metrics')->content());
my %has = map { s/_(?:bucket|sum|count)$//r => 1 } metric_names($m);
my %shown = map { map { s/_(?:bucket|sum|count)$//r => 1 }
                  $_->{expr} =~ /\b(nginx_profile_\w+)/g } @targets;

is_deeply([ sort keys %shown ], [ sort keys %has ],
          'the dashboard shows all metrics');


# results with a number; an expression may have no number at first
sub numbers {
    return scalar grep { $_->{value}[1] =~ /^[\d.e+-]+$/ } results(@_);
}


sub results {
    my $result = api('query?query=' . escape(expand(@_)))->{result};
    return @{$result || []};
}


# replaces variables and macros as Grafana does
sub expand {
    my ($expr, $set) = @_;

    $expr =~ s/\$__rate_interval\b/4s/g;
    $expr =~ s/\$(instance|server|location)\b/$set->{$1} || '.*'/ge;
    die "unknown variable in $expr\n" if $expr =~ /\$/;

    return $expr;
}


sub values_of {
    my ($label, $metric) = @_;

    my $values = api("label/$label/values?match%5B%5D="
                     . escape(expand($metric, {})));

    return ref $values eq 'ARRAY' ? $values : [];
}


sub escape {
    return $_[0] =~ s/([^\w.-])/sprintf '%%%02X', ord $1/ger;
}


sub api {
    my ($path) = @_;
    my $body = http_get("/api/v1/$path", port => 8082)->content();
    my $json = eval { decode_json($body) } || {};

    return $json->{data} || {};
}
