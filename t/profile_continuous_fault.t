#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: continuous
# runs: beside
#
# The continuous profile in a worker that gets no timers: each slice tries
# again, and frees what it has mapped.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Fcntl qw/ SEEK_SET /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Preload;

my $t = ProfileTest->new()->allow(qr/profile: /);

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

$t->conf(<<'EOF');
profile_continuous on slice=1s;

server {
    listen 127.0.0.1:8080;

    location / {
        return 200 "ordinary";
    }
}
EOF

my $so = eval { build_preload($t, 'prof_fault') };

$t->skip_all("the C library has no _dl_find_object(): $@") unless $so;

my @calls = fault_calls();
my ($timer) = grep { $calls[$_] eq 'timer_create' } 0 .. $#calls;

$t->write_file('fault', pack('L4', $timer, 1, 0xffffffff, 0) . "\0" x 4080);
chmod 0666, $t->testdir() . '/fault';
open my $control, '<', $t->testdir() . '/fault' or die "fault: $!\n";

$ENV{PROF_FAULT} = $t->testdir() . '/fault';
$ENV{LD_PRELOAD} = $so;

$t->run();

my ($worker) = $t->worker_pids();

tries(2);
my $before = size();
tries(4);

ok(wait_for(sub { size() <= $before }),
   'slices without timers leave nothing mapped');


# waits until timers were asked for this many times more
sub tries {
    my ($n) = @_;

    my $from = failed();

    wait_for(sub { failed() >= $from + $n }) or die "no slice\n";
}


sub failed {
    sysseek($control, 0, SEEK_SET);
    sysread($control, my $bytes, 16);

    return (unpack('L4', $bytes))[3];
}


# kilobytes of address space
sub size {
    open my $f, '<', "/proc/$worker/status" or die "status: $!\n";

    return (map { /^VmSize:\s+(\d+)/ } <$f>)[0];
}
