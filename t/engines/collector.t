#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: beside
#
# "make engines": the OpenTelemetry Collector receives what "nginx-profile push"
# sends, and sends it on.  What it sends on is what the module holds.  ENGINES is
# the directory of the Collector.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use JSON::PP qw/ encode_json /;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest::Pprof;
use ProfileTest::Push;
use ProfileTest;

plan(skip_all => '"make engines" builds the Collector') unless $ENV{ENGINES};

my $collector = "$ENV{ENGINES}/otelcol";
my $tool = dirname(abs_path(__FILE__)) . '/../../tools/nginx-profile';

my $t = ProfileTest->new()->has(qw/ gzip /)->has_program('protoc');
my $dir = $t->testdir();

$t->conf(<<'EOC', workers => 2);
profile_continuous on slice=1s;

server {
    %%CONF gzip%%
}
EOC

$t->write_file('text', join('', map { "line $_ " . $_ ** 2 . "\n" } 1 .. 40_000));
$t->write_file('collector.yaml', <<"EOC");
receivers:
  otlp: { protocols: { http: { endpoint: "127.0.0.1:@{[ port(8081) ]}" } } }
exporters:
  otlp_http:
    endpoint: "http://127.0.0.1:@{[ port(8082) ]}"
    sending_queue: { enabled: false }
service:
  telemetry: { metrics: { level: none } }
  pipelines: { profiles: { receivers: [ otlp ], exporters: [ otlp_http ] } }
EOC

$t->run();
run_receiver($t, 8082);
$t->run_daemon($collector, "--config=$dir/collector.yaml",
               '--feature-gates=service.profilesSupport');
ok(wait_for(sub { $t->wait_for_socket(8081) }, 60),
   'the Collector runs');

my $load = $t->load('/text', clients => 1, rate => 20, seconds => 60,
                    headers => [ 'Accept-Encoding: gzip' ]);
my $begin = int(time()) + 1;
my $end = $begin + 4;

sleep(0.1) while time() < $end;
$load->stop();
sleep(0.1) while time() < $end + 3;

my $to = 'http://127.0.0.1:' . port(8081);
my $url = 'http://127.0.0.1:' . port(8080) . '/-/profile/';

$t->write_file('state', encode_json({ position => $begin, receiver => $to,
                                      mode => 'cpu' }));

my ($rc, $out) = $t->command($tool, 'push', '--otlp', $to, '--state',
                             "$dir/state", '--slice', 1, '--service', 'web',
                             '--host', 'machine', '-u', $url);
is($rc, 0, 'the Collector accepts the slices') or diag($out);

my @pushed = pushed($t);

cmp_ok(scalar @pushed, '>=', 2, 'it sends them on');
is_deeply(otlp_attributes(map { ($_->{body}, gzipped($_)) } $pushed[0]),
          { 'service.name' => 'web', 'host.name' => 'machine' },
          'the pushed profile has the resource');

my %got;

for my $p (@pushed) {
    for my $profile (otlp_profiles($p->{body}, gzipped($p))) {
        next if $profile->{time} >= $end * 1e9
                || $profile->{type} ne 'cpu/nanoseconds';

        $got{join(';', reverse @{$_->{stack}})} += $_->{values}[0]
            for @{$profile->{samples}};
    }
}

my $held = ProfileTest::Pprof->new(http_get(
               "/-/profile/cpu?from=$begin&to=$end&format=pprof"));
my ($i) = grep { ($held->types())[$_] eq 'cpu/nanoseconds' } 0 .. 1;
my %held;

$held{join(';', reverse @{$_->{stack}})} += $_->{values}[$i]
    for $held->samples();

cmp_ok(sum0(values %held), '>', 0, 'the module holds CPU time');
is_deeply(\%got, { map { $_ => $held{$_} } grep { $held{$_} } keys %held },
          'the stacks and times are those that the module holds');


sub gzipped { return $_[0]{headers} =~ /^Content-Encoding: *gzip/mi ? 1 : 0 }
