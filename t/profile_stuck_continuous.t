#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# The continuous profile while a worker runs one event for long: a range names
# the worker, and has its slice when the event has ended.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Process;

my $t = ProfileTest->new()->has(qw/ lua /);

$t->conf(<<'EOF', workers => 2);
profile_continuous on slice=1s;

server {
    listen 127.0.0.1:8080;

    location /loop {
        content_by_lua_block {
            local function endless_loop(file)
                while true do
                    for i = 1, 1e5 do math.sin(i) end

                    local f = io.open(file)
                    if f then f:close() return end
                end
            end

            endless_loop("%%TESTDIR%%/stop")
            ngx.say("end")
        }
    }

    location /-/profile/ { profile_console; }
}
EOF

$t->run();

my %before = map { $_ => process_cpu($_) } $t->worker_pids();
my $s = http_get('/loop', start => 1);
my $pid;

wait_for(sub { ($pid) = grep { process_cpu($_) > $before{$_} + 0.2 }
                             $t->worker_pids() })
    or die "no worker loops\n";

ok(wait_for(sub { range() =~ /\b$pid \(one event since 20\d\d-/ }, 30),
    'a range names a worker that runs one event for long');
unlike(range(), qr/workers were idle/, 'the worker is not said to be idle');

$t->write_file('stop', '');
http_end($s, timeout => 20);

ok(wait_for(sub { range() =~ /endless_loop/ }, 30),
    'the slice of the worker is stored when the event has ended');
unlike(range(), qr/one event since/, 'then no worker is named');

###############################################################################

sub range {
    return http_get('/-/profile/cpu?from=-10m&format=html')->content();
}
