#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: capture
# runs: quiet

# Whose blocking calls end early with EINTR, by feature.  Only wall time of a
# worker or of the own request does that; the reference and the pages about wall
# time say it.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

# calls of each kind, each of which takes 60 ms
use constant CALLS => 4;

my $t = ProfileTest->new()->has(qw/ lua /);

my @kinds = qw/ usleep nanosleep poll select epoll_wait sem_timedwait /;

configure('profile_accounting on; profile_stall_threshold 1s;');
$t->run();

is(join(' ', sort keys %{slept('/sleep')}), join(' ', sort @kinds),
   'the calls of all kinds are tried');
is(early('/sleep'), 0, 'accounting and stalls end no call early');
is(early('/sleep', port => 8081), 0, 'neither does profile_keep');

# another request is captured meanwhile

for my $mode (qw/ wall cpu object /) {
    my $s = http_get("/wait?performance_bar=flamegraph&profile_mode=$mode"
                     . '&profile_frequency=1000', start => 1, timeout => 30);

    is(early('/sleep'), 0,
       "a capture of another request ends no call early: $mode");
    is(http_end($s)->status(), 200, "its profile is sent: $mode");
}

# the own request

cmp_ok(early('/sleep?performance_bar=record&profile_frequency=1000'), '>', 0,
       'a captured request has its own calls ended early');
cmp_ok(early('/sleep?performance_bar=record&profile_mode=object'), '>', 0,
       'in the mode object as well, which has times');

# workers

for my $what ('cpu?frequency=99', 'object?') {
    is(beside($what), 0, "a capture of workers ends no call early: $what");
}

for my $what ('wall?frequency=99', 'cpu?frequency=1000') {
    cmp_ok(beside($what), '>', 0, "a capture of workers does: $what");
}

# the continuous profile

for my $wall (qw/ off on /) {
    configure("profile_continuous on frequency=100 wall=$wall;");

    my ($old) = $t->worker_pids();
    $t->reload();
    wait_for(sub { !kill 0, $old });

    my $n = early('/sleep');

    if ($wall eq 'on') {
        cmp_ok($n, '>', 0, 'the wall time of the continuous profile does');

    } else {
        is($n, 0, 'the continuous profile does not');
    }
}

my %page = map { $_ => page($_) }
    qw/ ngx_http_profile_module.md continuous.md workers.md time.md /;

ok($page{$_} =~ /EINTR/, "$_ says so") for sort keys %page;


# the number of calls that ended early
sub early {
    my $slept = slept(@_);
    my $n = 0;

    $n += $_ for values %$slept;

    diag(join(', ', "$_[0]: ", map { "$_ $slept->{$_}" } sort keys %$slept))
        if $n;

    return $n;
}


# for each kind of call, the number of those that ended early
sub slept {
    my ($uri, @more) = @_;
    my $r = http_get($uri, timeout => 30, @more);

    return { $r->body() =~ /^(\w+) (\d+)$/mg };
}


# those beside a capture of workers
sub beside {
    my ($what) = @_;
    my $s = http_get("/-/profile/$what&seconds=3&format=folded", start => 1,
                     timeout => 30);

    # the capture has begun when the status has it

    wait_for(sub {
        http_get('/-/profile/status.json')->body() =~ /"captures":\s*[1-9]/
    }, 1);

    my $n = early('/sleep');
    http_end($s);

    return $n;
}


sub page {
    open my $f, '<', dirname(__FILE__) . "/../docs/$_[0]" or die "$_[0]: $!\n";
    local $/;

    return scalar <$f>;
}


sub configure {
    my ($directives) = @_;
    my $calls = CALLS;

    $t->conf(<<"EOF");
$directives
profile_zone store:1m;

init_by_lua_block {
    local ffi = require "ffi"

    ffi.cdef[[
        struct sleep_ts { long sec; long nsec; };
        struct sleep_sem { char data[64]; };
        int usleep(unsigned us);
        int nanosleep(const struct sleep_ts *req, struct sleep_ts *rem);
        int poll(void *fds, unsigned long n, int timeout);
        int select(int n, void *r, void *w, void *e, struct sleep_ts *tv);
        int epoll_create(int size);
        int epoll_wait(int fd, void *events, int max, int timeout);
        int close(int fd);
        int sem_init(struct sleep_sem *sem, int shared, unsigned value);
        int sem_timedwait(struct sleep_sem *sem, const struct sleep_ts *ts);
        int clock_gettime(int clock, struct sleep_ts *ts);
    ]]

    local C = ffi.C
    local ms = 60
    local epoll = C.epoll_create(1)
    local events = ffi.new("char[64]")
    local sem = ffi.new("struct sleep_sem")

    C.sem_init(sem, 0, 0)

    local function ts(ns)
        return ffi.new("struct sleep_ts", 0, ns)
    end

    local function now(clock)
        local t = ffi.new("struct sleep_ts")
        C.clock_gettime(clock, t)
        return tonumber(t.sec) * 1000 + tonumber(t.nsec) / 1e6, t
    end

    local kinds = {
        usleep = function() C.usleep(ms * 1000) end,
        nanosleep = function() C.nanosleep(ts(ms * 1000000), nil) end,
        poll = function() C.poll(nil, 0, ms) end,
        select = function() C.select(0, nil, nil, nil, ts(ms * 1000)) end,
        epoll_wait = function() C.epoll_wait(epoll, events, 1, ms) end,
        sem_timedwait = function()
            local _, t = now(0)
            local nsec = tonumber(t.nsec) + ms * 1000000
            t.sec = t.sec + math.floor(nsec / 1e9)
            t.nsec = nsec % 1e9
            C.sem_timedwait(sem, t)
        end,
    }

    function sleep()
        for name, call in pairs(kinds) do
            local early = 0

            for i = 1, $calls do
                local began = now(1)
                call()
                if now(1) - began < ms - 1 then early = early + 1 end
            end

            ngx.say(name, " ", early)
        end
    end
}

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    profile_timeout 30s;

    location = /sleep { content_by_lua_block { sleep() } }
    location = /wait { content_by_lua_block { ngx.sleep(0.3) } }
    location /-/profile/ { profile_console; }
}

server {
    listen 127.0.0.1:8081;
    profile_keep 1 rate=1000;

    location = /sleep { content_by_lua_block { sleep() } }
}
EOF
}
