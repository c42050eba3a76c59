#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: main
# runs: first
#
# Each call of the C library by which the module asks for a resource fails once,
# at start, at a reload, in captures, while names are looked up, and while a
# profile is stored.  Requests without a trigger get their usual response,
# neither the master nor a worker ends, the log or the answer names the failure,
# lost profiles are counted, and the next reload or capture works.  Then all
# calls of one function fail.
#
# If a function is called too often, only its first calls and a part of the
# other ones fail; with PROFILE_TEST_FAULTS all of them fail.

use strict;
use warnings;

use Fcntl qw/ SEEK_SET /;
use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ time sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Process;
use ProfileTest;
use ProfileTest::Preload;

# calls of one function in one place that fail, unless all of them fail
my $FIRST = 2;
my $OTHERS = 2;

# the number for new workers, whose first profile needs all names
my $OTHERS_NEW = 4;

my $t = ProfileTest->new()->has(qw/ rewrite /)->allow(qr/profile: /);

$t->skip_all('the module is linked into nginx') if $t->{module} eq '';
$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

$t->conf(<<'EOF', workers => 2);
profile_accounting on;
profile_keep $arg_keep rate=1000;
profile_stall_threshold 1s;
profile_context on;
profile_continuous on wall=on;
profile_store %%TESTDIR%%/store;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / {
        return 200 "ordinary";
    }

    location /-/profile/ {
        profile_console;
    }

    location = /metrics {
        profile_metrics;
    }
}
EOF

my $so = eval { build_preload($t, 'prof_fault') };

$t->skip_all("the C library has no _dl_find_object(): $@") unless $so;

my @calls = fault_calls();

$t->write_file('fault', "\0" x 4096);
chmod 0666, $t->testdir() . '/fault';
open my $control, '+<', $t->testdir() . '/fault' or die "fault: $!\n";

$ENV{PROF_FAULT} = $t->testdir() . '/fault';
$ENV{LD_PRELOAD} = $so;

my ($tried, $seen, @bad) = (0, 0);

###############################################################################

# at start and at a reload

fault();
$t->run();
my %start = counts();

fault();
renew();
my %reload = counts();

$t->stop('TERM');

cmp_ok($start{mmap}, '>', 0, 'calls of the module are seen');

for my $call (grep { $start{$_} || $reload{$_} } @calls) {
    for my $n (chosen(larger($start{$call}, $reload{$call}))) {
        my $what = ref $n ? "all $call()" : "$call(), $n";

        fault($call, $n);

        if (!eval { $t->run() }) {
            bad("$what at start: nginx does not start");
            next;
        }

        ordinary("$what at start");

        fault($call, $n);
        renew("$what at reload");
        ordinary("$what at reload");

        fault();
        renew("$what, and a reload");
        works("$what, and a reload");

        $t->stop('TERM');
    }
}

is(join("\n", splice @bad), '', "$tried faults at start and reload");

# in captures

$t->run();
works('before');

my @workers = $t->worker_pids();

my @scenes = (
    [ 'a flamegraph', '/?performance_bar=flamegraph&profile_format=speedscope' ],
    [ 'CPU time', '/?performance_bar=flamegraph&profile_format=speedscope&profile_mode=cpu' ],
    [ 'allocations', '/?performance_bar=flamegraph&profile_format=speedscope&profile_mode=object' ],
    [ 'recording', '/?performance_bar=record' ],
    [ 'recording in a new nginx', '/?performance_bar=record', 'new' ],
    [ 'a kept request', '/?keep=1' ],
    [ 'a kept request in a new nginx', '/?keep=1', 'new' ],
    [ 'workers', '/-/profile/cpu?seconds=0.1&format=speedscope' ],
    [ 'allocations of workers', '/-/profile/object?seconds=0.1&format=speedscope' ],
    [ 'requests', '/-/profile/wall?uri=/&requests=1&seconds=1&format=speedscope' ],
);

my $helpers = 0;

for my $scene (@scenes) {
    my ($name, $uri, $new) = @$scene;

    $tried = 0;
    fault();
    begin_anew() if $new;
    scene($uri);
    my %counts = counts_when_done($uri);

    # workers share names, so only the first of them start helpers

    $helpers += $counts{clone} // 0;

    for my $call (grep { $counts{$_} } @calls) {

        # hooks of the module call it for all that allocate
        next if $name =~ /^alloc/ && $call =~ /alloc|mmap|strdup|asprintf/;

        for my $n (chosen($counts{$call}, $new ? $OTHERS_NEW : $OTHERS)) {
            my $what = ref $n ? "all $call()" : "$call(), $n";

            begin_anew() if $new;

            # What clients can cause is logged once a second.

            captured("$name, $what", $uri, $call, $n) eq 'unsaid'
                && sleep(1.1)
                && captured("$name, $what", $uri, $call, $n) eq 'unsaid'
                && bad("$name, $what: no profile, and no word of why");

            ordinary("$name, $what");

            if (join(' ', $t->worker_pids()) ne "@workers") {
                bad("$name, $what: a worker ended");
                @workers = $t->worker_pids();
            }
        }
    }

    fault();
    works("$name, afterwards");

    is(join("\n", splice @bad), '', "$tried faults in captures: $name");
}

cmp_ok($helpers, '>', 0, 'helpers for names are started');

###############################################################################

# resets the counts of calls; without arguments no call fails
sub fault {
    my ($call, $n) = @_;

    my ($first, $last) = ref $n ? (1, 0xffffffff) : ($n // 0, $n // 0);
    my ($number) = grep { $calls[$_] eq ($call // '') } 0 .. $#calls;

    $tried++ if $call;

    sysseek($control, 0, SEEK_SET);
    syswrite($control, pack('L*', 0, $first, $last, (0) x 60));
    sysseek($control, 0, SEEK_SET);
    syswrite($control, pack('L', $number));
}


sub numbers {
    sysseek($control, 0, SEEK_SET);
    sysread($control, my $bytes, 256);
    return unpack('L*', $bytes);
}


sub counts {
    my @n = numbers();
    return map { $calls[$_] => $n[16 + $_] } 1 .. $#calls;
}


# returns which calls fail: numbers, or all of them
sub chosen {
    my ($count, $others) = @_;

    $others //= $OTHERS;

    my @n = 1 .. $count;

    if (!$ENV{PROFILE_TEST_FAULTS} && $count > $FIRST + $others) {
        @n = (1 .. $FIRST, map { $FIRST + int(($count - $FIRST) * $_ / $others) }
                           1 .. $others);
    }

    return (@n, [ 'all' ]);
}


sub larger { return $_[0] > $_[1] ? $_[0] : $_[1] }


sub bad {
    push @bad, substr(join('', @_) =~ s/\n.*//sr, 0, 200);
    return;
}


# a reload
sub renew {
    my ($what) = @_;

    $what //= 'reload';
    my %old = map { $_ => 1 } $t->worker_pids();

    kill 'HUP', $t->{pid};

    wait_for(sub { !process_lives($t->{pid})
                   || 2 == grep { !$old{$_} } $t->worker_pids() })
        or bad("$what: no new workers");

    die "$what: the master is gone\n" unless process_lives($t->{pid});

    wait_for(sub { !grep { $old{$_} } $t->child_processes($t->{pid}) })
        or bad("$what: old workers remain");
}


sub ordinary {
    my ($what) = @_;

    die "$what: the master is gone\n" unless process_lives($t->{pid});

    for (1 .. 2) {
        my $r = http_get('/');

        bad("$what: ", $r->status() || $r->error(), ' ', $r->body())
            if $r->status() ne '200' || $r->body() ne 'ordinary';
    }

    wait_for(sub { $t->worker_pids() == 2 }) or bad("$what: a worker is gone");
}


# captures do what they should
sub works {
    my ($what) = @_;

    my $r = http_get('/?performance_bar=flamegraph', timeout => 20);

    bad("$what: no flamegraph: ", $r->status(), ' ', $r->body())
        if $r->status() ne '200' || $r->body() !~ /ngx_http_|nginx/;

    $r = http_get('/-/profile/cpu?seconds=0.1&format=speedscope');

    bad("$what: no capture of workers: ", $r->status(), ' ', $r->body())
        if $r->status() ne '200' || $r->body() =~ /"left_out": ?"/;
}


# a capture with a fault; "unsaid": there is no profile, and no word of why
sub captured {
    my ($what, $uri, $call, $n) = @_;

    my $stores = $uri =~ /keep|record/;
    my $lost = $stores ? lost() : 0;

    fault($call, $n);

    my $from = length($t->read_log());
    my %before = map { $_ => 1 } stored();
    my $stored = sub { grep { !$before{$_} } stored() };
    my $r = scene($uri);

    bad("$what: no answer") if $r->status() !~ /^\d+$/;
    bad("$what: the response is another one")
        if $stores && $r->body() ne 'ordinary';

    my $said = sub { substr($t->read_log(), $from) =~ /profile: / };

    if ($stores) {
        my $done = wait_for(sub { $stored->() || $said->() }, 1);

        return '' if $stored->() || $r =~ /X-Profile-Dropped/;

        fault();

        # a response without an id promises no profile: its capture never began

        bad("$what: the lost profile is not counted")
            unless ($uri =~ /record/ && $r !~ /X-Profile-Id/)
                || wait_for(sub { $stored->() || lost() > $lost });

        # a job without a fault takes its time

        return $done || $stored->() ? '' : 'unsaid';
    }

    # errors of the module are a line of text

    return $said->() || ($r->status() eq '200' ? $r =~ /"profile_info"/
                                               : $r->body() !~ /<html>/)
           ? '' : 'unsaid';
}


# profiles that were not stored, by the status page
sub lost {
    my $status = decode_json(http_get('/-/profile/status.json')->body());

    return sum0((map { values %{$_->{dropped} // {}} } @{$status->{workers}}),
                @{$status->{store}}{qw/ dropped failed /});
}


# an nginx that knows no names yet
sub begin_anew {
    fault();
    $t->stop('TERM');
    $t->run();
    @workers = $t->worker_pids();
}


# returns the counts of a scene; a profile may be stored after the response
sub counts_when_done {
    my ($uri) = @_;

    if ($uri =~ /keep|record/) {
        my $last = '';

        wait_for(sub {
            my %now = counts();
            my $same = join(' ', %now{@calls[1 .. $#calls]}) eq $last;
            $last = join(' ', %now{@calls[1 .. $#calls]});
            sleep(0.1);
            return $same;
        });
    }

    return counts();
}


# files of the store; those that are being written have longer names
sub stored { return grep { m{/\w{32}$} } glob($t->testdir() . '/store/*') }


sub scene {
    my ($uri) = @_;

    return http_get($uri) unless $uri =~ /uri=/;

    my $s = http_get($uri, start => 1);

    sleep(0.05);
    http_get('/captured');

    return http_end($s);
}
