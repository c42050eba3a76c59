#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: context
# runs: beside

# The running request, read from another process (context/reader.c), which stops
# the worker as a profiler does.  Requests of /hold/NAME run until the test
# writes the file NAME.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use Test::More;

use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua proxy rewrite /);
my $dir = $t->testdir();
my $reader = "$dir/reader";
my $cc = $ENV{CC} || 'cc';

my $hold = <<'EOF2';
local name = ngx.var.uri:match("[^/]*$")
local seen = io.open(ngx.var.dir .. "/running." .. name, "w")
seen:close()
repeat
    local f = io.open(ngx.var.dir .. "/" .. name)
    if f then f:close() end
until f
ngx.print("held")
EOF2

my $conf = <<"EOC";
\%\%CONTEXT\%\%

server {
    listen 127.0.0.1:8080;
    set \$dir $dir;

    location /hold/ { content_by_lua_block { $hold } }

    location /from/ { rewrite ^/from/(.*) /to/\$1 last; }
    location ~ ^/to/ { content_by_lua_block { $hold } }

    location /main/ {
        content_by_lua_block {
            ngx.location.capture("/hold/" .. ngx.var.uri:match("[^/]*\$"))
        }
    }

    location /\xc3\xa4\%\%LONG\%\%/ { content_by_lua_block { $hold } }

    location /wait { proxy_pass http://127.0.0.1:8081/hold=w/; }

    location /a/ { return 200 "a"; }
    location /b/ { rewrite ^ /c/ last; }
    location /c/ { return 200 "c"; }
}
EOC

my $long = "\xc3\xa4" x 60;
$conf =~ s/%%LONG%%/$long/;

sub conf {
    my ($context) = @_;
    $t->conf($conf =~ s/%%CONTEXT%%/$context/r);
}

conf('profile_context on;');
run_upstream($t, 8081);
$t->run();

my $source = abs_path(dirname(__FILE__)) . '/context/reader.c';
my $out = `$cc -O1 -Wall -Werror -o $reader $source 2>&1`;
is($?, 0, 'the reader is built') or diag($out);

my $trace = '0af7651916cd43dd8448eb211c80319c';
my $span = 'b7ad6b7169203331';
my ($pid) = $t->worker_pids();


# the process

my $process = process($pid);

is_deeply(resource($process), { 'service.name' => 'nginx' },
          'the process context has the resource');
is_deeply(extra($process),
          { 'threadlocal.schema_version' => 'tlsdesc_v1_dev',
            'threadlocal.attribute_key_map' => [ 'http.route' ] },
          'the process context has the keys of the thread context');


# a single request

is(record(), '-', 'nothing is published before the first request');

is(held('/hold/', 'one', "00-$trace-$span-01"),
   "$trace $span 01 0=/hold/",
   'a running request is published with its trace and location');
is(record(), '-', 'nothing is published after the request');
is(held('/hold/', 'two', '00-' . ('1' x 32) . '-' . ('2' x 16) . '-00'),
   ('1' x 32) . ' ' . ('2' x 16) . ' 00 0=/hold/',
   'the next request is published with its own trace');
is(held('/hold/', 'three'), ('0' x 32) . ' ' . ('0' x 16) . ' 00 0=/hold/',
   'a request without a trace is published with its location');
is(held('/hold/', 'four', "00-$trace-XYZ-01"),
   ('0' x 32) . ' ' . ('0' x 16) . ' 00 0=/hold/',
   'an invalid trace is not published');
is(held('/from/', 'five', "00-$trace-$span-01"),
   "$trace $span 01 0=^/to/",
   'a redirected request is published with its last location');
is(held('/main/', 'six', "00-$trace-$span-01"),
   "$trace $span 01 0=/main/",
   'a subrequest is published as its main request');

my $cut = "/\xc3\xa4" . "\xc3\xa4" x 47;
is(held("/\xc3\xa4$long/", 'seven'),
   ('0' x 32) . ' ' . ('0' x 16) . " 00 0=$cut",
   'a long location is cut off at the end of a character');


# a request that waits, and is described again after its first turn

my $s = http_get('/wait', start => 1, headers => [ "traceparent: 00-$trace-"
                                                   . "$span-01" ]);

ok(wait_for(sub { upstream_requests($t) }), 'a request waits for its upstream');
ok(wait_for(sub { record() eq '-' }),
   'a waiting request is not published');
is((grep { $_ ne '-' } records($pid, 20)), 0,
   'the context is not published later');

is(held('/hold/', 'eight', '00-' . ('3' x 32) . '-' . ('4' x 16) . '-01'),
   ('3' x 32) . ' ' . ('4' x 16) . ' 01 0=/hold/',
   'another request is published while the first one waits');

upstream_release($t, 'w');
is(http_end($s)->status(), 200, 'the waiting request ends');
is(record(), '-', 'no context is published then');


# many requests: each record is of one request

my $stop = "$dir/stop";
my @clients = map { my $n = $_; $t->run_daemon(sub { client($n) }) } 1 .. 4;

my %seen;
my @wrong;

for (records($pid, 4000)) {
    $seen{$_ eq '-' ? '-' : 'record'}++;

    next if $_ eq '-';

    my ($high, $low, $s, $route)
        = /^([0-9a-f]{16})([0-9a-f]{16}) ([0-9a-f]{16}) 01 0=(.*)$/;

    push @wrong, $_
        unless $route && $high eq $low && $low eq $s
               && $route eq (hex($low) % 2 ? '/a/' : $route =~ /b/ ? '/b/' : '/c/');
}

cmp_ok($seen{record} || 0, '>', 100, 'requests under load are published')
    or diag(explain(\%seen));
is_deeply(\@wrong, [], 'each record is of one request');

$t->write_file('stop', '');


# reloads

is(held('/hold/', 'nine', "00-$trace-$span-01",
        sub { $t->reload() }), "$trace $span 01 0=/hold/",
   'a request of an old worker is published after a reload');

($pid) = new_worker($pid);

is_deeply(extra(process($pid))->{'threadlocal.attribute_key_map'},
          [ 'http.route' ], 'the new worker has a process context');
is(held('/hold/', 'ten', "00-$trace-$span-01"), "$trace $span 01 0=/hold/",
   'the new worker publishes requests');

conf('');
$t->reload();
($pid) = new_worker($pid);

is(process($pid), undef, 'without the directive there is no process context');
is(held('/hold/', 'eleven', "00-$trace-$span-01"), '-',
   'without the directive no request is published');


# the record while a request of the location runs
sub held {
    my ($location, $name, $traceparent, $meanwhile) = @_;

    my $path = "$location$name" =~ s/([\x80-\xff])/sprintf '%%%02X', ord $1/ger;
    my $s = http_get($path, start => 1,
                     headers => [ $traceparent ? "traceparent: $traceparent"
                                               : 'X-A: b' ]);

    wait_for(sub { -e "$dir/running.$name" }) or diag("$name does not run");

    $meanwhile->() if $meanwhile;

    my $record = record();

    $t->write_file($name, '');
    http_end($s)->status() == 200 or diag("$name failed");

    # the turn ends after the response was sent

    wait_for(sub { $meanwhile || record() eq '-' })
        or diag("$name is still published");

    return $record;
}


sub record { return (records($pid, 1))[0] }


sub records {
    my ($pid, $n) = @_;
    my @lines = split(/\n/, `$reader $pid threads $n`);

    diag($lines[-1]) if $?;
    return @lines;
}


# requests with a trace that consists of one number; those of /a/ are odd
sub client {
    my ($n) = @_;

    for (my $i = $n; ; $i += 4) {
        exit(0) if -e $stop;

        http_get($i % 2 ? '/a/' : '/b/', headers => [ sprintf(
                     'traceparent: 00-%016x%016x-%016x-01', ($i) x 3) ]);
    }
}


# the only worker, when the old one has ended
sub new_worker {
    my ($old) = @_;
    my @pids;

    wait_for(sub { @pids = $t->worker_pids(); @pids == 1 && $pids[0] != $old });

    return @pids;
}


# the decoded ProcessContext, or undef
sub process {
    my ($pid) = @_;
    my $hex = `$reader $pid process`;

    chomp($hex);
    return if $hex eq '-';

    $hex =~ /^[0-9a-f]+$/ or do { diag($hex); return };
    return fields(pack('H*', $hex));
}


sub resource {
    my ($process) = @_;
    return pairs(fields($process->{1}[0])->{1});
}


sub extra {
    my ($process) = @_;
    return pairs($process->{2});
}


# KeyValue messages with an AnyValue, which is a string or an array of strings
sub pairs {
    my ($list) = @_;

    return { map {
        my $pair = fields($_);
        my $any = fields($pair->{2}[0]);

        $pair->{1}[0] => $any->{5}
            ? [ map { fields($_)->{1}[0] } @{fields($any->{5}[0])->{1}} ]
            : $any->{1}[0];
    } @$list };
}


# a message whose fields have wire type 2 and are short
sub fields {
    my ($s) = @_;
    my %fields;

    while (length $s) {
        my ($tag, $len) = unpack('CC', $s);
        die "wrong message\n" if ($tag & 7) != 2 || $len + 2 > length $s;

        push @{$fields{$tag >> 3}}, substr($s, 2, $len);
        $s = substr($s, 2 + $len);
    }

    return \%fields;
}
