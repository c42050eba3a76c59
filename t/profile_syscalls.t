#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: names
# runs: beside
#
# Stacks that end in a system call have the call as their innermost frame, in
# both modes of time, in all formats, and in stored and merged profiles.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Load;
use ProfileTest::Pprof;
use ProfileTest::Profile;

my $t = ProfileTest->new()->plan(11);

$t->conf(<<'EOF', workers => 2);
profile_store %%TESTDIR%%/store;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    sendfile on;

    location / { }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->write_file('large', 'x' x (32 * 1024 * 1024));
$t->run();

my $call = 'sys_sendfile';
my $stack = qr/(^|;)sendfile(64)?;$call(?![^; ])/;

# the highest frequency
my $often = 'profile_frequency=10000';

###############################################################################

# one stored request in all formats

my ($id) = http_get("/large?performance_bar=record&$often")
               =~ /^X-Profile-Id: (\w+)\r\n/m;

my $r = ProfileTest::wait_for(sub {
    my $answer = http_get("/-/profile/p/$id/speedscope");
    return $answer->status() == 200 && $answer;
});

my $p = ProfileTest::Profile->new($r);

for my $mode (qw/ wall cpu /) {
    my $one = $p->profile($mode);
    my ($with, $without) = (0, 0);

    for my $s ($one->stacks()) {
        $with += $s->[1] if join(';', @{$s->[0]}) =~ /$stack$/;
        $without += $s->[1] if ($s->[0][-1] // '') =~ /^sendfile/;
    }

    cmp_ok($with, '>', 0, "$mode: stacks end in the call");
    cmp_ok($without, '<=', $with / 20, "$mode: and not in its function")
        or diag($one->folded(10));
}

for my $format (qw/ folded html svg /) {
    my $body = http_get("/-/profile/p/$id/$format")->content();

    ok($body =~ /\b$call\b/, "the format $format has the system call");
}

my $pprof = http_get("/-/profile/p/$id/pprof");
my @ends = grep { $_->{stack}[0] eq $call }
               ProfileTest::Pprof->new($pprof)->samples();

cmp_ok(@ends, '>', 0, 'the format pprof has the system call');
is(scalar(grep { $_->{stack}[1] !~ /^sendfile/ } @ends), 0,
   'pprof shows the call below its function');

# captures of workers, whose parts are merged

my $load = ProfileTest::Load->start($t, '/large', clients => 4);

for my $mode (qw/ cpu wall /) {
    my $uri = "/-/profile/$mode?seconds=3&frequency=1000&format=folded";

    like(http_get($uri)->content(), $stack,
         "a capture of workers has system calls, $mode");
}

$load->stop();

###############################################################################
