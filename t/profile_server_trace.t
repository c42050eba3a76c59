#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers
# runs: beside
#
# Labels of traces, from the header "traceparent": in captures of workers with
# the parameter labels=trace, in captures of endpoints, and in profiles of
# single requests.  Other profiles have no such labels.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Pprof;
use ProfileTest::Process;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip proxy rewrite /);

$t->conf(<<'EOF', workers => 2);
default_type text/plain;
gzip_types text/plain;
gzip_comp_level 9;

server {
    listen 127.0.0.1:8080 reuseport;

    profile_endpoint on;

    location /text {
        gzip on;
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8080/;
        proxy_set_header Accept-Encoding gzip;
        proxy_set_header traceparent "";
    }

    location /inner/ {
        rewrite ^/inner(.*) /proxy$1;
    }

    location /-/profile/ {
        profile_console;
    }

    location /debug/pprof/ {
        profile_console;
    }
}
EOF

$t->write_file('text', join('', map { "line $_ " . rand() . "\n" } 1 .. 5000));
$t->run();

my @gzip = ('Accept-Encoding: gzip');
my @traces = map { sprintf('4bf92f3577b34da6a3ce929d0e0e%04x', $_) } 0 .. 4;
my @spans = map { sprintf('00f067aa0ba9%04x', $_) } 0 .. 4;

###############################################################################

# three traces, one of them not valid, and requests of none

my @load = ((map { $t->load('/text', clients => 1,
                            headers => [ @gzip, parent($_) ]) } 0, 1),
            $t->load('/text', clients => 1,
                     headers => [ @gzip, "traceparent: 00-$traces[2]-"
                                         . ('0' x 16) . '-01' ]),
            $t->load('/text', clients => 1,
                     headers => [ @gzip, parent(3), parent(4) ]),
            $t->load('/proxy/text', clients => 1, headers => [ ]));

for my $what ([ 'debug/pprof/profile', 'cpu' ], [ '-/profile/cpu', 'cpu' ],
              [ 'debug/pprof/wall', 'wall' ])
{
    my ($path, $mode) = @$what;
    my $type = "$mode/nanoseconds";

    my $p = capture("/$path?labels=trace&seconds=3&format=pprof");

    for my $i (0, 1) {
        my $of = sub { ($_[0]{labels}{span_id} // '') eq $spans[$i] };

        cmp_ok($p->total('samples/count', $of), '>', 5,
            "$path: trace $i has samples");
        is(join(' ', unique(map { $_->{labels}{trace_id} // 'none' }
                            grep { $of->($_) } $p->samples())), $traces[$i],
            'the samples of a span have one trace');

        # samples before the location is known have no location

        is(join(' ', unique(map { $_->{labels}{location} // () }
                            grep { $of->($_) } $p->samples())), '/text',
            'the samples of a span have one location');
        cmp_ok($p->total($type, sub { $of->($_[0])
                                      && grep { /deflate/ } @{$_[0]{stack}} }),
            '>', $p->total($type, $of) / 2,
            "most of the span's time is the work of its request");
    }

    is(join(' ', unique(map { $_->{labels}{span_id} // () } $p->samples())),
        "$spans[0] $spans[1]", "$path: invalid headers give no label");
    cmp_ok($p->total($type, sub { !$_[0]{labels}{span_id}
                                  && grep { /deflate/ } @{$_[0]{stack}} }),
        '>', 0, "$path: the work without a label is in the profile");
    unlike(join("\n", $p->comments()), qr/lost_traces=[1-9]/,
        "$path: no trace is lost");
}

# a capture without labels=trace

my $p = capture('/debug/pprof/profile?seconds=1');

is(scalar(grep { $_->{labels}{span_id} || $_->{labels}{trace_id} }
          $p->samples()), 0,
          'without labels=trace, samples have no labels of traces');
is(join(' ', unique(map { keys %{$_->{labels}} } $p->samples())),
    'state thread worker', 'the other labels are three');

# two captures, one with labels=trace

my @both = map { http_get("/-/profile/cpu?seconds=2&format=pprof$_",
                          start => 1) } '&labels=trace', '';
@both = map { ProfileTest::Pprof->new(http_end($_, timeout => 30)) } @both;

is(scalar(grep { $_->{labels}{span_id} } $both[1]->samples()), 0,
    'a capture beside another one has no labels of traces');
is(join(' ', unique(map { $_->{labels}{span_id} // () } $both[0]->samples())),
    "$spans[0] $spans[1]", 'the other capture has the labels of its traces');

$_->stop() for @load;

# turns of upstream events belong to the trace of the proxied request

@load = ($t->load('/inner/text', clients => 2, headers => [ parent(2) ]));

$p = capture('/debug/pprof/wall?labels=trace&seconds=2&frequency=1000');

cmp_ok($p->total('samples/count', sub {
        ($_[0]{labels}{span_id} // '') eq $spans[2]
        && ($_[0]{labels}{location} // '') eq '/proxy/' }),
    '>', 5, 'turns of upstream events have the trace after a redirect');

$_->stop() for @load;

# an endpoint

@load = map { $t->load('/text', clients => 1,
                       headers => [ @gzip, parent($_) ]) } 0 .. 2;
push @load, $t->load('/text', clients => 1, headers => [ @gzip ]);

$p = capture('/-/profile/wall?uri=/text&requests=60&labels=trace&format=pprof');

is(join(' ', unique(map { $_->{labels}{span_id} // 'none' } $p->samples())),
    "$spans[0] $spans[1] $spans[2] none",
    'a capture of an endpoint has all spans');
is(join(' ', unique(map { $_->{labels}{trace_id} // 'none' } $p->samples())),
    "$traces[0] $traces[1] $traces[2] none",
    'a capture of an endpoint has all traces');

$p = capture('/-/profile/wall?uri=/text&requests=20&format=pprof');

is(scalar(grep { $_->{labels}{span_id} } $p->samples()), 0,
    'without labels=trace, an endpoint has no spans');

$_->stop() for @load;

# the profile of a request

my $args = 'performance_bar=flamegraph&profile_format=pprof';

$p = ProfileTest::Pprof->new(http_get("/text?$args",
                                      headers => [ @gzip, parent(1) ]));

is(join(' ', unique(map { "$_->{labels}{trace_id} $_->{labels}{span_id}" }
                    $p->samples())), "$traces[1] $spans[1]",
                    'the profile of a request has its trace and its span');
is((grep { $_ eq "trace_id: $traces[1]" } $p->comments()), 1,
    'the profile of a request has the trace in a comment');

for my $wrong ('', '00', "00-$traces[1]-$spans[1]", "00-$traces[1]-$spans[1]-",
               uc("00-$traces[1]-$spans[1]-01"),
               "ff-$traces[1]-$spans[1]-01", 'x' x 55, 'x' x 5000,
               "00-$traces[1]-$spans[1]-01-more", "\xff" x 55)
{
    my $r = http_get("/text?$args", headers => [ "traceparent: $wrong" ]);
    my $name = substr($wrong, 0, 60) =~ s/[^ -~]/?/gr;

    is($r->status(), 200, "\"$name\": the request is served");
    is(scalar(grep { $_->{labels}{trace_id} }
              ProfileTest::Pprof->new($r)->samples()), 0,
        "\"$name\": no label");
}

# wrong values of the parameter

for my $wrong ('', 'traces', 'trace,', 'TRACE') {
    my $r = http_get("/debug/pprof/profile?seconds=1&labels=$wrong");

    is($r->status(), 400, "labels=$wrong has the status 400");
    like($r->body(), qr/"labels" is "\Q$wrong\E", it must be "trace"/,
        "the error for labels=$wrong tells the valid value");
}

is(http_get('/debug/pprof/allocs?seconds=0.2&labels=trace')->status(), 200,
    'profiles of memory accept labels=trace');

# after all captures

ok(wait_for(sub { !grep { process_signals($_) } $t->worker_pids() }),
    'no timer remains');

###############################################################################

sub parent {
    my ($i) = @_;
    return "traceparent: 00-$traces[$i]-$spans[$i]-01";
}


sub capture {
    my ($uri) = @_;
    return ProfileTest::Pprof->new(http_get($uri, timeout => 70));
}


sub unique {
    my %seen = map { $_ => 1 } @_;
    return sort keys %seen;
}
