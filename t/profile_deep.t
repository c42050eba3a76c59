#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stacks
# runs: beside

# Stacks of thousands of frames keep both ends: the functions that began the
# recursion and those that run.  The C library reads a regular expression with
# nested parentheses by a function that calls itself.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Profile;

my $t = ProfileTest->new()->has(qw/ lua /);

$t->conf(<<'EOF');
profile_zone store:8m;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location = /deep {
        content_by_lua_block {
            local ffi = require "ffi"

            pcall(ffi.cdef, [[
                int regcomp(void *re, const char *text, int flags);
                void regfree(void *re);
                long clock(void);
            ]])

            local n = 2500
            local text = string.rep("(", n) .. "a" .. string.rep(")", n)
            local re = ffi.new("char[256]")
            local began = ffi.C.clock()

            repeat
                if ffi.C.regcomp(re, text, 1) == 0 then ffi.C.regfree(re) end
            until ffi.C.clock() - began > 300000

            ngx.say("done")
        }
    }

    location /-/profile/ { profile_console; }
}
EOF

$t->run();

for my $uri ('/deep?performance_bar=flamegraph&profile_format=speedscope',
             '/-/profile/cpu?seconds=1&format=speedscope&frequency=1000')
{
    my $s = http_get($uri, start => 1, timeout => 30);

    if ($uri =~ /seconds/) {
        http_get('/deep', timeout => 30) for 1 .. 3;
    }

    my $p = ProfileTest::Profile->new(http_end($s));
    my $info = $p->json()->{profile_info};
    my $cpu = $p->profile('cpu');

    my ($deep, $both, $cut, $most) = (0, 0, 0, 0);

    for ($cpu->stacks()) {
        my @names = @{$_->[0]};
        my ($gap) = grep { $names[$_] eq '[frames left out]' } 0 .. $#names;

        $cut++ if grep { $_ eq '[truncated]' } @names;
        next if !defined $gap;

        $deep++;
        $both++ if $#names - $gap >= 100
                   && grep { /^ngx_|worker|content|regcomp/ } @names[0 .. 20];
        $most = @names if @names > $most;
    }

    (my $what = $uri) =~ s/\?.*//;

    cmp_ok($deep, '>', 0, "$what: there are deep stacks");
    is($both, $deep, "$what: they have both ends");
    is($cut, 0, "$what: no stack is truncated");
    cmp_ok($most, '<', 300, "$what: $most frames at most");
    cmp_ok($info->{elided} // 0, '>', 100 * $deep,
           "$what: the frames that are left out are counted");
}
