#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: continuous

# Ranges of the continuous profile agree with the time that passed, and the modes
# of one range with each other, also after the clock of the day was set back: then a
# time is there twice, and ranges have it once.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep time /;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;
use ProfileTest::Preload;

my $t = ProfileTest->new()->has(qw/ lua /);

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

my $dir = $t->testdir();

$t->conf(<<'EOF');
profile_continuous on slice=1s wall=on;

init_worker_by_lua_block {
    -- a third of the time
    ngx.timer.every(0.1, function()
        local ffi = require "ffi"
        local begin = os.clock()
        while os.clock() < begin + 0.03 do end
    end)
}

server {
    listen 127.0.0.1:8080;
    location /-/profile/ { profile_console; }
    location = /time {
        content_by_lua_block { ngx.update_time() ngx.print(ngx.now()) }
    }
}
EOF

$t->write_file('clock', 0);
chmod 0644, "$dir/clock";

$ENV{PROF_CLOCK} = "$dir/clock";
$ENV{LD_PRELOAD} = build_preload($t, 'prof_clock');

$t->run();

my $begin = int(http_get('/time')->body()) + 1;

stored($begin + 8);
agree($begin, $begin + 8, 'a range');

# then the half of this time is there again

$t->write_file('clock', $begin + 4 - int(http_get('/time')->body()));
my $now = http_get('/time')->body();
cmp_ok($now, '<', $begin + 7, 'the clock was set back');

my $again = int($now) + 1;

stored($again + 4);
agree($again, $again + 4, 'a range of a time that is there twice');
agree($begin, $again + 4, 'a range with a part that is there twice', 2);

###############################################################################

# waits until the slices that begin before this time are stored
sub stored {
    my ($time) = @_;

    my $now = http_get('/time')->body();

    sleep($time + 1.5 - $now) if $now < $time + 1.5;

    wait_for(sub { http_get('/-/profile/status.json')->body() =~ /"jobs":0\b/ },
             60);
}


# without: seconds that were removed with a slice that was not complete
sub agree {
    my ($from, $to, $name, $without) = @_;

    my %p = map { $_ => ProfileTest::Pprof->new(
                      http_get("/-/profile/$_?from=$from&to=$to&format=pprof")) }
            qw/ cpu wall /;

    my %sum = map { $_ => $p{wall}->total("$_/nanoseconds") / 1e9 } qw/ cpu wall /;

    cmp_ok($sum{wall}, '<', $to - $from + 0.5,
        "$name: no more wall time than passed");
    cmp_ok($sum{wall}, '>', $to - $from - 0.5 - ($without // 0),
        "$name: and no less");
    cmp_ok($sum{cpu}, '<', $sum{wall}, "$name: no more CPU time than that");

    is($p{cpu}->total('cpu/nanoseconds'), $p{wall}->total('cpu/nanoseconds'),
        "$name: both modes have the same CPU time");
    is(fact($p{cpu}, 'wall'), fact($p{wall}, 'wall'),
        "$name: and the same wall time");
    cmp_ok(abs(fact($p{wall}, 'wall') / 1e9 - $sum{wall}), '<',
        0.01 * $sum{wall},
        "$name: the head has the sum of the samples");
    cmp_ok(fact($p{wall}, 'wall'), '<', 1.05 * fact($p{wall}, 'duration') + 1e8,
        "$name: one worker has no more time than passed");
}


sub fact {
    my ($p, $name) = @_;
    return (map { /\b$name=(\d+)/ ? $1 : () } $p->comments())[0] // 0;
}
