package ProfileTest::Attribution;

# Copyright (C) The ngx_http_profile_module authors
#
# Checks of attribution: which code is in a profile, whether its times add up,
# and whether the worker has the same timers, signals and threads as before.  The
# last check needs a log of the worker alone, without the logs of requests:
#
#     error_log %%TESTDIR%%/worker.log debug_http;
#     http { error_log %%TESTDIR%%/error.log info; ...

use strict;
use warnings;

use Exporter qw/ import /;
use List::Util qw/ max sum0 /;
use Test::More;

use ProfileTest;
use ProfileTest::Process;

our @EXPORT = qw/ about code_of info is_attributed is_captured is_clean is_sum
    plain running share_of waiting worker_cpu /;

# Kinds of code, by the name of a frame, its source or its object.  Code that
# LuaJIT has compiled is in no object.
my %CODE = (
    lua => qr/lua|\blj_|^\[anonymous code\]/i,
    pcre => qr/pcre|^ngx_regex_exec$/,
    map => qr/^ngx_http_map_find$/,
    njs => qr/njs|ngx_js|ngx_http_js/i,
    zlib => qr/\b(?:libz|zlib|deflate|inflate)/i,
);

# the outermost frame of stacks that stand for the time between two turns
my $GAP = qr/^\[waiting\]$/;


# Spans are named by modules whose handlers all requests pass.
my $SPAN = qr/^(?:phase |event|header filters|body filters)/;


# The stacks with a frame of that kind, in all pictures.  The filters of all
# modules are called for all responses, so they belong to no request.
sub code_of {
    my ($p, $kind) = @_;

    my @found;

    # modules say less than functions: filters of others pass responses on

    for my $picture (grep { $_->{name} !~ /^by module/ }
                     @{$p->json()->{profiles}})
    {
        push @found, map { $_->[0] } stacks_of($p, $picture, $kind);
    }

    return @found;
}


# their share of the CPU time
sub share_of {
    my ($p, $kind) = @_;

    my $cpu = $p->profile('cpu');

    return sum0(map { $_->[1] } stacks_of($p, $cpu->json(), $kind))
           / ($cpu->total() || 1);
}


# [ names, weight ]
sub stacks_of {
    my ($p, $picture, $kind) = @_;

    my $re = $CODE{$kind} or die "no kind of code: $kind\n";
    my @names = map { $_->{name} } @{$p->json()->{shared}{frames}};
    my @files = map { $_->{file} // '' } @{$p->json()->{shared}{frames}};
    my @found;

    for my $n (0 .. $#{$picture->{samples}}) {
        my $stack = $picture->{samples}[$n];

        # code of other requests appears only below "worker busy with other
        # requests", and such

        next if @$stack > 2
                && $names[$stack->[1]] =~ /^worker (?:busy|without)/;

        for my $i (@$stack) {
            last if $names[$i] =~ /^ngx_http_(?:output_filter|send_header)$/
                    && $kind ne 'zlib';
            next unless $names[$i] =~ $re || $files[$i] =~ $re;
            next if $names[$i] =~ $SPAN;

            push @found, [ join(';', @names[@$stack]),
                           $picture->{weights}[$n] ];
            last;
        }
    }

    return @found;
}


sub info {
    my ($p) = @_;
    return $p->json()->{profile_info};
}


# in seconds
sub running { return info($_[0])->{running} / 1e9 }

sub waiting { return info($_[0])->{waiting} / 1e9 }


# whether two numbers differ by less than a share of the larger one
sub about {
    my ($a, $b, $share) = @_;
    return abs($a - $b) <= $share * max($a, $b);
}


# a test: nothing of that kind is in the profile
sub is_attributed {
    my ($p, $foreign, $name) = @_;

    my @stacks = code_of($p, $foreign);

    is(scalar @stacks, 0, "$name: no stack is of another request")
        or diag(join("\n", @stacks));
}


# A test: the weights in each picture sum to what the capture has measured,
# and each moment is either running or waiting.
sub is_sum {
    my ($p, $name) = @_;

    my $info = info($p);
    my $wall = $p->profile('wall');

    my $gaps = sum0(map { $_->[1] }
                    grep { $_->[0][0] =~ $GAP }
                    $wall->stacks());

    my %sums = (
        wall => [ $wall->total(), $info->{wall} ],
        running => [ $wall->total() - $gaps, $info->{running} ],
        cpu => [ $p->profile('cpu')->total(), $info->{cpu} ],
        kinds => [ $info->{running} + $info->{waiting}, $info->{wall} ],
    );

    my @wrong = map { "$_: @{$sums{$_}}" }
                grep { !about(@{$sums{$_}}, 0.01) } sort keys %sums;

    is("@wrong", '', "$name: the weights add up");
}


# Seven tests: gets the profile of a request that waits more than it runs, in a
# worker that is kept busy by others, and the same request without a profile
# before and after it.
#
# foreign  kind of the others' code; map, which is %%SLOW_MAP%%
# waits    seconds at least; 0
# runs     seconds of CPU time at most; 0.05
# status   of the response; 200
# cut      the response is cut off anywhere
# get      how to get it, instead of http_get(); others are passed to it
sub is_captured {
    my ($t, $name, $uri, %extra) = @_;

    my $foreign = delete $extra{foreign} || 'map';
    my $waits = delete $extra{waits} || 0;
    my $runs = delete $extra{runs} || 0.05;
    my $status = delete $extra{status} || 200;
    my $cut = delete $extra{cut} ? qr/\r\n\r\n.*/s : qr/\z/;
    my $get = delete $extra{get} || \&http_get;

    my $before = $get->($uri, %extra);
    my $query = 'performance_bar=flamegraph&profile_format=speedscope';
    my $response = $get->($uri . ($uri =~ /\?/ ? '&' : '?') . $query, %extra);
    my $p = eval { ProfileTest::Profile->new($response) };

    SKIP: {
        if (!$p) {
            fail("$name: $@");
            skip('no profile', 4);
        }

        is(info($p)->{status}, $status, "$name: the response has its status");
        is_attributed($p, $foreign, $name);
        is_sum($p, $name);

        # nginx's timers count from the time at which it has last looked at
        # the clock, and the worker may wait for a processor in its turns

        my $waited = waiting($p) + running($p) - info($p)->{cpu} / 1e9;

        cmp_ok($waited, '>', 0.95 * $waits - 0.03,
               "$name: the profile shows the wait");
        cmp_ok(info($p)->{cpu} / 1e9, '<', $runs,
               "$name: the request uses little CPU time");
    }

    my $after = $get->($uri, %extra);

    ok(plain($after) =~ s/$cut//r eq plain($before) =~ s/$cut//r,
       "$name: the next response is as before")
        or diag(substr($after, 0, 1000));
    is_clean($t, $name);

    return $p;
}


# A response without what differs from one to the next: the time, and how the
# body was cut for chunks and for compression.
sub plain {
    my ($response) = @_;

    my ($head) = $response->raw() =~ /^(.*?\r\n)\r\n/s;
    my $body = $response->content() // $response->body();

    return ($head // $response->error()) =~ s/^Date: [^\r\n]*\r\n//gmir
           . "\r\n$body";
}


# process_times() of the worker's main thread
sub worker_cpu {
    my ($t) = @_;

    my ($pid) = $t->worker_pids();
    return process_times($pid);
}


# A test: all that a capture replaces or installs in the worker is put back.
# The first call takes the worker as it should be, and does not test.
my %before;

sub is_clean {
    my ($t, $name) = @_;

    my ($pid) = $t->worker_pids();

    if (!$before{$pid}) {
        $before{$pid} = state_of($pid);
        return;
    }

    my ($armed, $disarmed, $now);

    wait_for(sub {
        my $log = $t->read_log('worker.log');

        $armed = () = $log =~ /: profile armed/g;
        $disarmed = () = $log =~ /: profile disarmed/g;
        $now = state_of($pid);

        return $armed == $disarmed && $now eq $before{$pid};
    }, 20);

    is("$now armed $armed", "$before{$pid} armed $disarmed",
       "$name: the worker is as before");
}


# signal handlers, timers and threads of a process, but for those of our jobs
sub state_of {
    my ($pid) = @_;

    open my $f, '<', "/proc/$pid/status" or return 'gone';
    my $status = do { local $/; <$f> };

    my ($caught) = $status =~ /^SigCgt:\s*(\S+)/m;
    my ($blocked) = $status =~ /^SigBlk:\s*(\S+)/m;
    my $threads = grep { (comm_of($_) // 'profile') !~ /^profile/ }
                       glob("/proc/$pid/task/*/comm");

    # the C library installs two handlers of its own with the first thread
    no warnings 'portable';
    $caught = hex($caught) & ~(3 << 31);

    my $timers = 0;

    if (open my $g, '<', "/proc/$pid/timers") {
        $timers = grep { /^ID:/ } <$g>;
    }

    return sprintf('signals %x blocked %s threads %d timers %d', $caught,
                   $blocked, $threads, $timers);
}


sub comm_of {
    my ($file) = @_;

    open my $f, '<', $file or return;
    chomp(my $name = <$f> // return);
    return $name;
}


1;
