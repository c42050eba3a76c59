#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside

# No variable with times is in the configuration.  So the module does not read
# the clock for a request that ends in its first event, until a script reads a
# time: before the request is logged, or later.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Process;

my $t = ProfileTest->new()->has(qw/ js map /);

$t->conf(<<'EOF', events => 'worker_connections 64;');
js_path %%TESTDIR%%;
js_import times.js;
js_set $said times.ask;
js_set $worked times.work;
js_set $again times.ask_again;

log_format said '$request_uri $said$worked again: $again';

map $arg_asks $asks {
    ""       0;
    default  1;
}

access_log %%TESTDIR%%/said said if=$asks;

server {
    listen 127.0.0.1:8080;
    profile_accounting on;

    location / { }

    location /busy {
        js_content times.busy;
    }

    location /later {
        js_content times.later;
    }
}
EOF

$t->write_file('times.js', <<'EOF');
var early = '';

var names = ['turns', 'cpu_time', 'wait_time', 'stall_time', 'longest_turn',
             'server_timing'];

function ask(r) {
    return names.map(name => name + '=' + r.variables['profile_' + name])
                .join(' ');
}

function ask_again(r) {
    return ask(r) + early;
}

function spin(ms) {
    var till = Date.now() + ms;
    while (Date.now() < till) { }
}

function work(r) {
    spin(2);
    return '';
}

function busy(r) {
    early = r.args.early ? ' early: ' + ask(r) : '';
    spin(20);
    r.return(200, 'busy');
}

function later(r) {
    setTimeout(() => r.return(200, 'busy'), 20);
}

export default { ask, ask_again, work, busy, later };
EOF

$t->write_file('text', 'x' x 1000);
$t->run();

my @s = map { ProfileTest::HTTP::connect_to(8080) } 1 .. 3;

# single requests, after requests whose times are not read

for (1 .. 5) {
    get($s[0], '/busy');
    get($s[0], '/text');
}

get($s[0], '/text?asks=alone');

# the kernel's clock, since other processes may have used the processor

my %used = (busy => cpu_of(sub { get($s[0], '/busy?asks=busy') }),
            early => cpu_of(sub { get($s[0], '/busy?asks=early&early=1') }));

get($s[0], '/text?asks=last');
sleep 0.2;
get($s[0], '/later');
get($s[0], '/later?asks=later');

# in one poll: each waits for those before it, and is charged for itself

for my $n (1 .. 5) {
    send_to($s[0], '/busy');
    sleep 0.005;
    send_to($s[1], '/busy');
    send_to($s[2], "/text?asks=third$n");
    http_end($_) for @s;
}

my %said;

ok(wait_for(sub {
    %said = map { /^(\S+asks=(\w+)\S*) (.*)/ ? ($2 => $3) : () }
            split /\n/, $t->read_file('said');
    return keys %said == 10;
}), 'scripts read all variables') or diag($t->read_file('said'));

for my $name (sort keys %said) {
    my $got = values_of($name);

    is($got->{turns}, $name eq 'later' ? 2 : 1,
        "$name: the number of turns is right");
    like($said{$name}, qr/^(.*) again: \1/,
        "$name: a second read has the same values");
    cmp_ok($got->{cpu_time}, '>', 0, "$name: the request has CPU time");
    cmp_ok($got->{longest_turn}, '>', 0,
        "$name: the request has a longest turn");
    like($said{$name}, qr/nginx-total;dur=\d{1,3}\./,
        "$name: Server-Timing has the total");
}

for my $name (qw/ alone last later /) {
    cmp_ok(values_of($name)->{cpu_time}, '<', 0.01,
        "$name: the request uses little CPU time");
}

for my $name (qw/ busy early /) {
    my $got = values_of($name);

    cmp_ok(abs($got->{cpu_time} - $used{$name}), '<', 0.004,
           "$name: the CPU time is that of the worker");
    cmp_ok($got->{longest_turn}, '>', 0.015,
        "$name: the turn is as long as the work");
}

cmp_ok(values_of('later')->{wait_time}, '>=', 0.0185,
    'a request that waits has the time of its wait');
like($said{early}, qr/ early: turns=1 cpu_time=0\.00/,
     'a script may read the times before the log phase');

my @third = map { values_of("third$_") } 1 .. 5;

cmp_ok(scalar(grep { $_->{longest_turn} < 0.01 && $_->{cpu_time} < 0.01 }
                   @third), '>=', 4,
    'each request of a pipeline has its own times');
cmp_ok(scalar(grep { $_->{stall_time} > 0.015 } @third), '>=', 1,
       'a request of a pipeline is stalled by earlier ones');


# seconds of CPU time that the worker used meanwhile

sub cpu_of {
    my ($code) = @_;

    my ($pid) = $t->worker_pids();

    my $before = process_cpu($pid);
    $code->();

    return process_cpu($pid) - $before;
}


sub values_of {
    my ($name) = @_;
    return { ($said{$name} // '') =~ /(\w+)=(\S+)(?= .*again)/g };
}


sub send_to {
    my ($s, $uri) = @_;
    return http_get($uri, socket => $s, keepalive => 1, start => 1);
}


sub get {
    my ($s, $uri) = @_;
    return http_end(send_to($s, $uri));
}
