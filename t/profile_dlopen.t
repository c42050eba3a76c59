#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: unwind
# runs: beside
#
# Captures of every mode beside two threads of the worker that load and unload
# libraries all the time: with RELRO and immediate binding, with RELRO and lazy
# binding, and without RELRO.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Module;
use ProfileTest::Pprof;

my $THREAD = qr/ngx_http_dlopen_test_thread/;

# The functions that the thread calls: those of the C library, whose static
# functions may have no names, and hooks of the profiler and of sanitizers.
my $CALLED = qr/_*(?:libc_)?(?:dl(?:open|sym|close)|cfree|free)|libc\.so|prof_
                |_*(?:interceptor|asan|sanitizer)_/x;

my $ROUNDS = $ENV{TEST_NGINX_ROUNDS} || 60;

my $t = ProfileTest->new()->has_program($ENV{CC} || 'cc');

# calls of malloc(), its address in constants, and much to relocate

$t->write_file('library.c', <<'EOF');
#include <stdlib.h>
#include <string.h>

void *const dlopen_test_table[5000] = {
    malloc, free, [2 ... 4999] = (void *) getenv
};

__attribute__((noinline)) void *
dlopen_test_work(size_t size)
{
    int             i;
    char           *p;
    volatile long   n = 0;

    for (i = 0; i < 200000; i++) {
        n += i;
    }

    free(malloc(100));
    p = malloc(size);

    return p ? memset(p, (int) n, size) : NULL;
}
EOF

my %flags = (now => 'relro,-z,now', lazy => 'relro,-z,lazy',
             plain => 'norelro,-z,lazy');

for my $name (sort keys %flags) {
    my ($status, $out) = $t->command($ENV{CC} || 'cc', '-shared', '-fPIC', '-g',
        '-O1', "-Wl,-z,$flags{$name}", '-o', $t->testdir() . "/$name.so",
        $t->testdir() . '/library.c');
    die "cc: $out\n" if $status != 0;
}

my $libraries = join(',', map { '"' . $t->testdir() . "/$_.so\"" }
                     sort keys %flags);
my $so = build_module($t, 'ngx_http_dlopen_test_module', '-pthread',
                      "-DDLOPEN_TEST_LIBRARIES=$libraries");

$t->write_file_expand('nginx.conf', <<"EOF");
load_module $so;
%%MODULES%%
%%GLOBALS%%

worker_processes 1;

events {
}

http {
    %%GLOBALS_HTTP%%

    profile_endpoint on;

    server {
        listen 127.0.0.1:8080;

        location / { }
        location /loads { dlopen_test; }
        location /-/profile/ { profile_console; }
    }
}
EOF

$t->write_file('page', 'x' x 100_000);
$t->run();

my ($pid) = $t->worker_pids();

held('before');

my $before = loads();

# requests; each capture of memory replaces the slots and puts them back

my ($bad, %seen) = (0);

for my $round (1 .. $ROUNDS) {
    for my $mode (qw/ object wall cpu /) {
        my $p = eval {
            profile_get("/page?performance_bar=flamegraph&stackprof_mode=$mode")
        };

        $bad++ unless $p && $p->response()->status() == 200;
    }

    last if $bad;
}

is($bad, 0, "$ROUNDS requests in each mode, all with a profile");

# Functions of objects that stay loaded have their names.  Functions of the
# libraries have their names or no names.

my %capture = map {
    $_ => http_get("/-/profile/$_?seconds=3&format=pprof"
                   . ($_ eq 'object' ? '&interval=4k' : '&frequency=500'),
                   start => 1)
} qw/ object wall cpu /;

for my $mode (qw/ object wall cpu /) {
    my $response = http_end($capture{$mode}, timeout => 60);
    my $p = eval { ProfileTest::Pprof->new($response) };
    my $type = $mode eq 'object' ? 'alloc_space/bytes' : 'cpu/nanoseconds';

    if (!$p) {
        fail("$mode: no profile: " . substr($response, 0, 300));
        next;
    }

    my ($total, $threads, $cut, %wrong) = (0, 0, 0);

    $p->total($type, sub {
        my $stack = join(' < ', @{$_[0]{stack}});
        my $weight = $p->value($type, $_[0]);

        $total += $weight;
        $threads += $weight if $stack =~ /$THREAD/;

        # Code that was unloaded before the next snapshot: either the stack has
        # its caller, which is the loader for the first and the last function of
        # a library, or the stack ends.

        if ($stack =~ /\Q[anonymous code]\E/) {
            $wrong{$stack} += $weight
                unless $stack =~ /^(?:(?:(?!\[anonymous).)+\ <\ )?
                                  \Q[anonymous code]\E\ <
                                  \ (?:$THREAD\b|call_init\b|_dl_call_fini\b
                                     |_dl_fini\b|ld-linux[^ ]*\+0x
                                     |\[no\ unwind\ info\]$)/x;
            return 0;
        }

        $cut += $weight if $stack =~ /\[no unwind info\]/;

        # the thread calls no other functions

        $wrong{$stack} += $weight
            if $stack =~ /([^ ]+) < $THREAD/
               && $1 !~ /^(?:dlopen_test_work|$CALLED)/;

        return 0;
    });

    cmp_ok($threads, '>', 0, "$mode: functions of what stays");
    is(join("\n", map { "$_ $wrong{$_}" } sort keys %wrong), '',
       "$mode: no frame has the name of other code");
    cmp_ok($cut, '<=', 0.01 * $total, "$mode: stacks of what stays are whole");

    next if $mode ne 'object';  # most libraries are gone before a snapshot

    cmp_ok($p->total($type, sub {
        grep { /dlopen_test_work/ } @{$_[0]{stack}} }), '>', 0,
        "$mode: functions of what comes and goes");
}

cmp_ok(loads() - $before, '>', 100, 'libraries were loaded meanwhile');
is((split ' ', http_get('/loads?stop')->body())[1], 0, 'all of them work');

held('after');

is(join(' ', $t->worker_pids()), $pid, 'the worker is the same');

###############################################################################

# a library that stays while the worker is captured
sub held {
    my ($when) = @_;

    http_get('/loads?hold');

    my $p = ProfileTest::Pprof->new(
        http_get('/-/profile/cpu?seconds=1&frequency=500&format=pprof',
                 timeout => 60));
    my $type = 'cpu/nanoseconds';

    cmp_ok($p->total($type, sub {
        join(' ', @{$_[0]{stack}}) =~ /dlopen_test_work $THREAD/ }), '>',
        0.9 * $p->total($type), "$when: a library that stays has names");

    http_get('/loads?stop');
}


sub loads {
    return (split ' ', http_get('/loads')->body())[0];
}

###############################################################################
