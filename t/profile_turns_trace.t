#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: turns
# runs: beside

# The turn log as a trace, read by the engine of Chromium's DevTools and by
# speedscope: all runs and all turns of requests are there, with their times.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use List::Util qw/ sum0 /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $root = dirname(abs_path(__FILE__));
my $t = ProfileTest->new()->has(qw/ lua rewrite /)->plan(16);

$t->conf(<<'EOC');
profile_turn_log on;

server {
    listen 127.0.0.1:8080;
    server_name shop;

    location /once { content_by_lua_block { ngx.print("once") } }
    location /waits {
        content_by_lua_block {
            for i = 1, 3 do ngx.sleep(0.01) end
            ngx.print("waited")
        }
    }
    location /-/profile/ { profile_console; }
}
EOC

$t->run();

http_get("/once?n=$_") for 1 .. 3;
http_get("/waits?n=$_") for 1 .. 3;

my $r = http_post('/-/profile/turns?seconds=60', '',
                  headers => [ 'X-Profile-Console: 1' ]);
my $id = decode_json($r->body() || '{}')->{id} // '';

my $log = get("turns/$id?format=json");
my $trace = get("turns/$id?format=trace");

is(http_get('/-/profile/turns?format=trace')->status(), 200,
   'the last seconds are a trace, too');
$r = http_get('/-/profile/turns?format=x');
is($r->status(), 400, 'another format is an error');
like($r->body(), qr/json.*trace/, 'the error names the formats');

# the truth is the log

my ($worker) = @{$log->{workers}};
my %column = map { $log->{columns}[$_] => $_ } 0 .. $#{$log->{columns}};
my (@runs, %turns);

for (my $i = 0; $i < @{$worker->{runs}}; $i += @{$log->{columns}}) {
    my %run = map { $_ => $worker->{runs}[$i + $column{$_}] } keys %column;

    next if $log->{kinds}[$run{kind}] ne 'run';

    push @runs, \%run;
    push @{$turns{$run{request}}}, $run{start} if $run{request};
}

my @flows = sort map { join(' ', map { us($_) } @$_) }
            grep { @$_ > 1 } values %turns;

cmp_ok(scalar(@flows), '>=', 3, 'requests have several turns');

my @events = @{$trace->{traceEvents}};
my @boxes = grep { $_->{ph} eq 'X' } @events;

is(join("\n", map { "$_->{ts} $_->{dur}" } @boxes),
   join("\n", map { us($_->{start}) . ' ' . us($_->{length}) } @runs),
   'each run is an event');

my ($waits) = grep { ($_->{args}{request} // '') eq 'GET /waits?n=2' } @boxes;

is($waits->{name}, '/waits', 'an event has the name of its location');
is($waits->{pid}, $worker->{pid}, 'an event has its process');
is($waits->{args}{server}, 'shop', 'an event has its server');
is($waits->{args}{status}, 200, 'an event has the status of its request');

# DevTools

$t->write_file('trace.json', JSON::PP->new()->encode($trace));

my $file = $t->testdir() . '/trace.json';

SKIP: {
    skip 'no engine of DevTools', 4 unless -d "$root/trace/node_modules";

    my ($status, $out) = $t->command('node', "$root/trace/check.mjs", $file);
    my ($json) = $out =~ /^(\{.*\})$/m;
    my $s = decode_json($json // '{}');

    is($status, 0, 'DevTools reads the trace') or diag($out);

    my ($thread) = @{$s->{threads} || []};

    is($thread->{name}, 'event loop', 'DevTools shows the event loop');
    is(scalar(@{$thread->{events} || []}), scalar(@runs),
       'DevTools shows each run');
    is(join("\n", sort map { join(' ', map { us(1000 * $_->{ts}) } @$_) }
                       @{$s->{flows} || []}),
       join("\n", @flows), 'DevTools connects the turns of requests');
}

# speedscope

SKIP: {
    skip 'no speedscope', 3 unless -d "$root/speedscope/node_modules";

    my ($status, $out) = $t->command('node', "$root/speedscope/check.mjs",
                                     $file);
    my ($json) = $out =~ /^(\{.*\})$/m;
    my $s = decode_json($json // '{}');

    is($status, 0, 'speedscope reads the trace') or diag($out);
    is(scalar(@{$s->{profiles} || []}), 1, 'speedscope shows the worker');
    like($s->{profiles}[0]{name} // '', qr/nginx worker 0/, 'by its name');
}


sub get {
    my ($what) = @_;
    return decode_json(http_get("/-/profile/$what")->body());
}


# nanoseconds as microseconds

sub us {
    return sprintf('%.3f', $_[0] / 1000) + 0;
}
