#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: heap
# runs: beside
#
# The mode "object" begins and ends again and again, under load and with
# threads that allocate: afterwards all that the loader has made of the
# worker's objects is as it was, byte for byte.

use strict;
use warnings;

use Digest::MD5;
use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Module;
use ProfileTest::Pprof;

my $ROUNDS = 50;

my $t = ProfileTest->new()->has(qw/ gzip threads /);
my $so = build_module($t, 'ngx_http_object_test_module');

$t->conf(<<"EOF", main => "load_module $so;");
default_type text/plain;
gzip_types text/plain;

server {
    %%CONF object%%

    location /file {
        gzip on;
        aio threads;
        directio 1;
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->write_file('file', join('', map { "line $_ " . rand() . "\n" } 1 .. 5000));
$t->run();

my ($pid) = $t->worker_pids();
my $object = 'performance_bar=flamegraph&stackprof_mode=object';

plan(skip_all => 'the memory of the worker cannot be read')
    unless keys %{memory($pid)};

# work that is done once: lazy binding, caches, libraries

http_get("/?known=1&thread=10&$object") for 1 .. 3;
http_get('/file', headers => [ 'Accept-Encoding: gzip' ]);
http_end(http_get('/-/profile/object?seconds=0.2', start => 1));

my $before = memory($pid);

cmp_ok(scalar keys %$before, '>', 5, 'the worker has ranges to compare');

# while a capture is running they differ

my $s = http_get('/-/profile/object?seconds=1', start => 1);

sleep(0.4);
isnt(differences($before, memory($pid)), 0, 'armed: hooks are there');

http_end($s, timeout => 20);
is(differences($before, memory($pid)), 0, 'disarmed: no hook is');

my @load = map { $t->load($_, clients => 2) }
           '/?known=100&thread=50', '/file', '/?work=1';

my ($good, $foreign, $changed) = (0, 0, 0);

for my $i (1 .. $ROUNDS) {
    my $p = ProfileTest::Pprof->new(
        http_get("/?known=7&thread=20&$object")->body());

    my $n = known($p);

    $good++ if $n == 7;
    $foreign++ if $n > 7 || $p->total('alloc_objects/count', sub {
        grep { /_(?:thread|work)$/ } @{$_[0]{stack}} });

    $changed += differences($before, memory($pid)) if $i % 10 == 0;
}

my @lost = map { my $r = $_->stop(); $r->{failed} } @load;

is($good, $ROUNDS, 'rounds that count what is known');
is($foreign, 0, 'nothing of other requests, or of threads');
is($changed, 0, 'between rounds all is as it was');
is_deeply(\@lost, [ 0, 0, 0 ], 'no request failed');
is(differences($before, memory($pid)), 0, 'all is as it was');
is(($t->worker_pids())[0], $pid, 'the worker is the same');


sub known {
    my ($p) = @_;

    return $p->total('alloc_objects/count', sub {
        grep { /^ngx_http_object_test_known$/ } @{$_[0]{stack}}
    });
}


# the mappings of files that the program does not write: code, constants, and
# relocated words that the loader has made read-only
sub memory {
    my ($pid) = @_;

    my %memory;

    no warnings 'portable';

    open my $maps, '<', "/proc/$pid/maps" or return {};
    open my $mem, '<:raw', "/proc/$pid/mem" or return {};

    while (<$maps>) {
        my ($from, $to, $mode, $path)
            = m{^(\w+)-(\w+) (\S+) \S+ \S+ \d+\s+(/\S+)} or next;

        $memory{"$from-$to $mode $path"} = '', next if $mode =~ /w/;

        sysseek($mem, hex($from), 0) or return {};

        my $len = hex($to) - hex($from);

        sysread($mem, my $bytes, $len) == $len or return {};

        $memory{"$from-$to $mode $path"} = Digest::MD5::md5($bytes);
    }

    return \%memory;
}


sub differences {
    my ($x, $y) = @_;

    my %all = (%$x, %$y);

    return scalar grep { !exists $x->{$_} || !exists $y->{$_}
                         || $x->{$_} ne $y->{$_} } keys %all;
}
