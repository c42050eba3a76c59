#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: keep

# profile_stall_threshold: what keeps a worker from everything else is logged,
# with what it ran, and not more often than once in a second.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua rewrite /);

$t->conf(<<'EOF');
profile_stall_threshold 100ms;

server {
    listen 127.0.0.1:8080;

    location / {
        return 200 fast;
    }

    location /busy {
        content_by_lua_block {
            ngx.update_time()
            local till = ngx.now() + 0.3
            while ngx.now() < till do ngx.update_time() end
            ngx.say("was busy")
        }
    }

    location /sleep {
        content_by_lua_block {
            ngx.sleep(0.3)
            ngx.say("slept")
        }
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

http_get('/');
http_get('/sleep');

my $start = time();
http_get("/busy?$_") for 1 .. 6;

# some of them in the same second

ok(wait_for(sub {
    return 1 if grep { /, [1-9]\d* more/ } stalls();
    http_get('/busy?again');
    return 0;
}), 'stalls are logged');

my $seconds = time() - $start;

my @lines = stalls();
cmp_ok(scalar @lines, '>=', 2, 'stalls are logged in several lines');
cmp_ok(scalar @lines, '<=', $seconds + 2,
       'at most one stall in a second is logged');

like($lines[0], qr/\[warn\]/, 'a stall is logged as a warning');
my ($ms) = $lines[0] =~ /held for (\d+) ms by "GET \/busy\?1 localhost"/;
cmp_ok($ms // 0, '>=', 280, 'the line has the request and its time');
like($lines[0], qr/, handler: (\w|nginx\+0x)/,
     'the line has the handler that the event loop called');
like($lines[0], qr/, running: .*ngx_http_lua_run_thread/,
     'the line has the functions that ran');
like($lines[0], qr/, 0 more not logged/,
     'the first line counts no other stalls');
like(join('', @lines[1 .. $#lines]), qr/, [1-9]\d* more not logged/,
     'stalls that are not logged are counted');
unlike("@lines", qr/sleep/, 'a request that sleeps is no stall');

my $json = http_get('/-/profile/status.json')->content();
like($json, qr/"stalls":\s*\[\s*\{/, 'the console has a list');
like($json, qr/"request":\s*"GET \/busy\?\d localhost"/,
     'the list has the requests');


sub stalls {
    return grep { /profile: the worker was held/ } split /\n/, $t->read_log();
}
