#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop main
# runs: quiet

# Accounting of every request: the variables in the access log, for requests
# that run, wait, and are kept from running; beside captures, and without them.

use strict;
use warnings;

use List::Util qw/ max min sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest::Process;
use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua proxy rewrite /);

$t->conf(<<'EOF');
log_format times '$request_uri rt=$request_time cpu=$profile_cpu_time '
                 'wait=$profile_wait_time stall=$profile_stall_time '
                 'own=$profile_own_time '
                 'turns=$profile_turns longest=$profile_longest_turn '
                 'samples=$profile_samples id=$profile_id '
                 'timing=$profile_server_timing';
access_log %%TESTDIR%%/times.log times;

profile_accounting on;
proxy_cache_path %%TESTDIR%%/cache keys_zone=one:1m;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / { }

    location /upstream {
        add_header Server-Timing $profile_server_timing;
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }

    location /cached {
        add_header Server-Timing $profile_server_timing;
        proxy_cache one;
        proxy_cache_valid 1m;
        proxy_pass http://127.0.0.1:8081/wait=200/;
    }

    location /redirected {
        error_page 404 = /other;
    }

    location /other {
        proxy_pass http://127.0.0.1:8081/wait=200/;
    }

    location /parts {
        content_by_lua_block {
            ngx.location.capture("/upstream")
            ngx.say("done")
        }
    }

    location /sleep {
        content_by_lua_block {
            ngx.sleep(0.2)
            ngx.say("slept")
        }
    }

    location /held {
        proxy_pass http://127.0.0.1:8081/hold=answer/;
    }

    # from the file "busy" until the file "idle"
    location /busy {
        content_by_lua_block {
            local till = os.time() + 20
            io.open("%%TESTDIR%%/busy", "w"):close()
            while not io.open("%%TESTDIR%%/idle") and os.time() < till do
            end
            ngx.say("was busy")
        }
    }
}

server {
    listen 127.0.0.1:8082;
    profile_accounting off;

    location / { }
}
EOF

$t->write_file('text', 'x' x 1000);
run_upstream($t, 8081);
$t->run();


# one request, one turn

is(http_get('/text?static')->status(), 200, 'a static file is served');
my $l = line('/text?static');

is($l->{turns}, 1, 'a static file takes one turn');
cmp_ok($l->{cpu}, '>', 0, 'a static file uses CPU time');
cmp_ok($l->{longest}, '>', 0, 'a static file has a longest turn');
is($l->{samples}, 0, 'an accounted request has no samples');
is($l->{id}, '-', 'an accounted request has no profile');
like($l->{$_}, qr/^\d+\.\d{6}$/, "$_ of a static file is in seconds")
    for qw/ cpu wait stall longest /;
like($l->{timing}, qr{
    ^nginx-total;dur=\d+\.\d{3},[ ]
    nginx-cpu;dur=\d+\.\d{3},[ ]
    nginx-wait;dur=\d+\.\d{3},[ ]
    nginx-stall;dur=\d+\.\d{3}$ }x,
    'Server-Timing lists the times of a static file');
sums($l, 'static');

is(http_get('/text?other', port => 8082)->status(), 200,
    'a server without accounting serves the file');
$l = line('/text?other');
is($l->{$_}, '-', "$_ is empty without accounting")
    for qw/ cpu wait stall turns longest samples id timing /;


# waiting

waits('/upstream', 0.3, 'upstream');
waits('/redirected', 0.2, 'after a redirect');
waits('/sleep', 0.2, 'script timer');
waits('/parts', 0.3, 'subrequest');


# the header arrives in two parts

my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                 PeerPort => port(8080));
print $sock "GET /text?slow HTTP/1.0\r\n";
sleep 0.3;
print $sock "\r\n";
1 while sysread($sock, my $buf, 4096);

$l = line('/text?slow');
cmp_ok($l->{wait}, '>=', 0.28, 'a request to an upstream waits');
sums($l, 'header');


# the header of the response has the times until the header is sent

my $r = http_get('/upstream?timing');
my ($total, $cpu) = $r->header('Server-Timing')
                    =~ /nginx-total;dur=([\d.]+), nginx-cpu;dur=([\d.]+)/;
cmp_ok($total, '>=', 290, 'the total in the header contains the wait');
cmp_ok($cpu, '<', 200, 'the CPU time in the header does not contain the wait');
like($r->header('Server-Timing'), qr/, nginx-upstream;dur=(29\d|[3-9]\d\d)$/,
     'the header has the time of the upstream');

like(http_get('/cached')->header('Server-Timing'),
     qr/nginx-upstream;dur=(19\d|[2-9]\d\d)/,
    'the header of a cache miss has the time of the upstream');

$r = http_get('/cached');
unlike($r->header('Server-Timing'), qr/nginx-upstream/,
       'the header of a cache hit has no time of an upstream');
($total) = $r->header('Server-Timing') =~ /nginx-total;dur=([\d.]+)/;
cmp_ok($total, '<', 150,
    'the total of a cache hit is that of its own request');


# the worker runs something else

my $dir = $t->testdir();

my $waiting = http_get('/held?stalled', start => 1);
wait_for(sub { grep { /stalled/ } upstream_lines($t) });

my $busy = http_get('/busy', start => 1);
wait_for(sub { -e "$dir/busy" });

my $queued = http_get('/text?queued', start => 1);

# When the upstream has sent its answer, nginx does not read it for a while.
# The kernel knows to a tick when it came.

my $begin = time();
upstream_release($t, 'answer');
wait_for(sub { -e "$dir/answered.answer" });
my $answered = time();

sleep 0.3;
my $stalled = time() - $answered - 0.005;

$t->write_file('idle', '');
http_end($_) for $waiting, $busy, $queued;
my $took = time() - $begin;

$l = line('/busy');
cmp_ok($l->{longest}, '>=', $stalled,
    'the longest turn of a busy request contains its work');
cmp_ok($l->{cpu}, '>', 0.01, 'a busy request uses CPU time');
cmp_ok($l->{cpu}, '<=', $l->{rt} + 0.002,
    'a busy request uses no more CPU time than it took');
sums($l, 'busy');

$l = line('/held?stalled');
cmp_ok($l->{stall}, '>=', $stalled, 'a request behind a busy one has a stall');
cmp_ok($l->{stall}, '<=', $took + 0.005,
    'the stall is not longer than the busy request');
sums($l, 'stalled');

# nginx does not know of a connection in the listen queue

$l = line('/text?queued');
is($l->{turns}, 1, 'a request in the listen queue takes one turn');
cmp_ok($l->{wait} + $l->{stall} + $l->{longest}, '<', $stalled,
       'the time in the listen queue does not count');
sums($l, 'queued');


# beside a capture

my $p = profile_get('/upstream?captured');
$l = line_like(qr/^\/upstream\?captured/);
is($l->{id}, $p->response()->header('X-Profile-Id'),
    'the log has the id of a captured request');
cmp_ok($l->{turns}, '>=', 3, 'a captured request takes at least three turns');
cmp_ok($l->{wait}, '>=', 0.28, 'a captured request waits');
cmp_ok($p->profile('wall')->weight_below(qr/^upstream first byte/), '>=', 0.28e9,
       'the profile shows the wait for the upstream');
sums($l, 'captured');
cmp_ok($l->{own}, '>', 0, 'the profile of a captured request is made');


# each request of a connection has its own times

my $k = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => port(8080));
print $k map { "GET /text?pipe$_ HTTP/1.1\r\nHost: localhost\r\n"
               . ($_ == 5 ? "Connection: close\r\n" : '') . "\r\n" } 1 .. 5;
1 while sysread($k, $buf, 65536);

for (1 .. 5) {
    $l = line("/text?pipe$_");
    is($l->{turns}, 1, "a pipelined $_ takes one turn") if $_ < 5;
    sums($l, "pipelined $_");
}


# under load: sums hold, and CPU times sum to the worker's

my ($worker) = $t->worker_pids();
my $log = length $t->read_file('times.log');
my $before = process_cpu($worker);

my $load = $t->load('/text?load', clients => 4);
sleep 2;
my $got = $load->stop();
sleep 0.1;

my $used = process_cpu($worker) - $before;
my @lines = map { parsed($_) }
            split /\n/, substr $t->read_file('times.log'), $log;
my $accounted = sum0(map { $_->{cpu} } @lines);

is($got->{failed}, 0, 'no request fails under load');
cmp_ok(scalar @lines, '>=', $got->{requests},
    'all requests are logged under load');
cmp_ok(abs($accounted / $used - 1), '<=', 0.05,
    'CPU times add up to that of the workers')
    or diag("$accounted of $used s in ", scalar @lines, ' requests');

# a machine that is busy may stop the worker between two looks at the clock

my @off = grep { off($_) > 0.0011 } @lines;
cmp_ok(scalar @off, '<=', 0.01 * @lines,
    'times of a request add up to its wall time')
    or diag(explain($off[0]));


sub waits {
    my ($uri, $seconds, $name) = @_;

    is(http_get("$uri?w")->status(), 200, $name);
    my $l = line("$uri?w");

    cmp_ok($l->{turns}, '>=', 2, "$name: the request takes several turns");
    cmp_ok($l->{wait} + $l->{stall}, '>=', $seconds * 0.95,
        "$name: the request waits");
    cmp_ok($l->{cpu}, '<', $seconds, "$name: the wait uses no CPU time");
    sums($l, $name);
}


# $request_time is in milliseconds, of a clock that may be 0.1 ms behind
sub sums {
    my ($l, $name) = @_;

    cmp_ok(off($l), '<=', max(0.0011, 0.01 * $l->{rt}),
           "$name: the times add up to the request time") or diag(explain($l));
}


sub off {
    my ($l) = @_;

    my ($total) = $l->{timing} =~ /nginx-total;dur=([\d.]+)/;

    return abs($total / 1000 + $l->{own} - $l->{rt});
}


sub line {
    my ($uri) = @_;
    return line_like(qr/^\Q$uri\E /);
}


sub line_like {
    my ($re) = @_;
    my @found;

    wait_for(sub { @found = grep { /$re/ }
                            split /\n/, $t->read_file('times.log') });

    return parsed($found[-1] // '');
}


sub parsed {
    my ($line) = @_;

    my ($timing) = $line =~ / timing=(.*)/;

    return { $line =~ /(\w+)=(\S+)/g, timing => $timing };
}
