#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside

# The sum of $profile_cpu_time over all requests is the CPU time of a fully
# loaded worker, as getrusage() in the worker reports it.  The loads are static
# files, proxied files, gzip, TLS, HTTP/2 and Lua, each alone and all together.

use strict;
use warnings;

use List::Util qw/ sum0 /;
use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip lua proxy ssl v2 /)
                          ->has_program(qw/ h2load openssl /);

$t->write_certificate('localhost');

$t->conf(<<'EOF');
log_format cpu '$uri $profile_cpu_time';
access_log %%TESTDIR%%/cpu.log cpu;

profile_accounting on;
keepalive_requests 1000000;

upstream files {
    server 127.0.0.1:8081;
    keepalive 8;
}

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8081;
    listen 127.0.0.1:8443 ssl http2;
    server_name localhost;

    ssl_certificate localhost.crt;
    ssl_certificate_key localhost.key;

    location / { }

    location /proxied {
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_pass http://files/text;
    }

    location /gzip {
        gzip on;
        gzip_types *;
        alias %%TESTDIR%%/large;
    }

    location /lua {
        content_by_lua_block {
            local t = {}
            for i = 1, 2000 do t[i] = tostring(i) end
            ngx.sleep(0)
            ngx.say(#table.concat(t))
        }
    }

    # user and system time of this process, in seconds

    location = /rusage {
        content_by_lua_block {
            local ffi = require "ffi"

            pcall(ffi.cdef, [[
                int getrusage(int who, long *usage);
            ]])

            local usage = ffi.new("long[32]")
            ffi.C.getrusage(0, usage)

            ngx.say(string.format("%.6f",
                    tonumber(usage[0] + usage[2])
                    + tonumber(usage[1] + usage[3]) / 1e6))
        }
    }
}
EOF

$t->write_file('text', 'x' x 1000);
$t->write_file('large', join('', map { "line $_ of many\n" } 1 .. 2000));
$t->run();

my $h1 = 'http://127.0.0.1:' . port(8080);
my $tls = 'https://127.0.0.1:' . port(8443);

# Requests that cost about a second of CPU time, of which a part is made.  A
# load that ends after some seconds would leave requests behind, and cost little
# on a busy machine.

my %loads = (
    'static'         => [ 40000, '--h1', "$h1/text" ],
    'proxied'        => [ 20000, '--h1', "$h1/proxied" ],
    'gzip'           => [ 10000, '--h1', '-H', 'Accept-Encoding: gzip',
                          "$h1/gzip" ],
    'TLS'            => [ 30000, '--h1', "$tls/text" ],
    'HTTP/2'         => [ 40000, '-m', 8, "$tls/text" ],
    'HTTP/2 proxied' => [ 16000, '-m', 8, "$tls/proxied" ],
    'Lua'            => [ 12000, '--h1', "$h1/lua" ]
);

for my $name (sort keys %loads) {
    adds_up($name, $name);
}

adds_up('all of them', sort keys %loads);


sub adds_up {
    my ($name, @names) = @_;

    # once, for what nginx does at the first time only

    run(0.05, @names);

    my $log = length $t->read_file('cpu.log');
    my $before = http_get('/rusage')->body();

    # a log line with all variables costs more CPU time than with one

    my $part = @names > 1 ? 0.2 : 0.5;
    my $requests = run($part, @names);

    my $used = http_get('/rusage')->body() - $before;

    my @lines;
    wait_for(sub {
        @lines = split /\n/, substr $t->read_file('cpu.log'), $log;
        grep { m{^/rusage } } @lines[1 .. $#lines];
    });

    my $accounted = sum0(map { (split / /)[1] } @lines);

    # sanitizers take more of it outside of turns

    my $most = $t->sanitizers() ? 0.1 : 0.03;

    is($requests, sum0(map { $part * $loads{$_}[0] } @names),
       "$name: all requests are counted");
    cmp_ok(abs($accounted / $used - 1), '<=', $most,
           "$name: $accounted s in the log, $used s used");
}


# makes a part of the requests, and returns how many had the status 200
sub run {
    my ($part, @names) = @_;

    my @pipes = map {
        my ($n, @args) = @{$loads{$_}};
        open my $f, '-|', 'h2load', '-c', 2, '-n', $part * $n, @args
            or die "h2load: $!\n";
        $f;
    } @names;

    return sum0(map { my $out = do { local $/; <$_> };
                      close $_;
                      $out =~ /status codes: (\d+) 2xx/ ? $1 : 0 } @pipes);
}
