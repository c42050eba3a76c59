#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
#
# Captured requests that njs code serves: timers, ngx.fetch() by address and by
# name, subrequests, filters.  Without other clients, the profile has all work
# of the worker.  With other clients, it has only the work of the request.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ time /;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Names;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ debug gzip js proxy /);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug_http;');
%%CONF worker_log%%

js_path %%TESTDIR%%;
js_import main.js;

resolver 127.0.0.1:8053 ipv6=off;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /small {
        gzip on;
    }

    location /busy { js_content main.busy; }
    location /timer { js_content main.timer; }
    location /fetch { js_content main.fetch_address; }
    location /name { js_content main.fetch_name; }
    location /several { js_content main.several; }
    location /subrequest { js_content main.subrequest; }

    location /filter {
        js_header_filter main.header;
        js_body_filter main.body;
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }

    location /sub {
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }
}
EOF

$t->write_file_expand('main.js', <<'EOF');
function work() {
    let x = 0;

    for (let i = 0; i < 150000; i++) {
        x += i % 7;
    }

    return x;
}

function busy(r) {
    work();
    work();
    r.return(200, 'done');
}

function timer(r) {
    work();

    setTimeout(() => {
        work();
        setTimeout(() => { work(); r.return(200, 'done'); }, 150);
    }, 150);
}

async function get(url) {
    let reply = await ngx.fetch(url);
    work();

    let text = await reply.text();
    work();

    return text.length;
}

async function fetch_address(r) {
    work();
    await get('http://127.0.0.1:%%PORT_8081%%/wait=300/');
    r.return(200, 'done');
}

async function fetch_name(r) {
    work();
    await get(`http://slow${Date.now()}.test:%%PORT_8081%%/wait=300/`);
    r.return(200, 'done');
}

async function several(r) {
    work();
    await Promise.all([
        get('http://127.0.0.1:%%PORT_8081%%/wait=300/'),
        get(`http://slow${Date.now()}.test:%%PORT_8081%%/`),
        get(`http://fast${Date.now()}.test:%%PORT_8081%%/wait=100/`),
    ]);
    work();
    r.return(200, 'done');
}

async function subrequest(r) {
    work();
    let replies = await Promise.all([ r.subrequest('/sub'),
                                      r.subrequest('/sub') ]);
    work();
    r.return(200, 'done ' + replies.map(reply => reply.status));
}

function header(r) {
    work();
    delete r.headersOut['Content-Length'];
}

function body(r, data, flags) {
    work();
    r.sendBuffer(data, flags);
}

export default { busy, timer, fetch_address, fetch_name, several, subrequest,
                 header, body };
EOF

$t->write_file('small', join('', map { sprintf("line %d: %x\n", $_,
                                $_ * 2654435761 % 4294967296) } 1 .. 1000));

run_upstream($t, 8081);
run_names($t, 8053);
$t->run();

# seconds that each waits for, whatever others do

my @cases = (
    [ busy => 0 ],
    [ timer => 0.3 ],
    [ fetch => 0.3 ],
    [ name => 0.6 ],
    [ several => 0.3 ],
    [ subrequest => 0.3 ],
    [ filter => 0.3 ],
);

$t->plan(11 * @cases + 5);

is_clean($t);

# the first request starts the interpreter
profile_get('/busy');

for my $case (@cases) {
    my ($name, $waits) = @$case;

    my ($before) = worker_cpu($t);
    my $p = profile_get("/$name");
    my $used = (worker_cpu($t))[0] - $before;
    my $cpu = info($p)->{cpu} / 1e9;

    is(info($p)->{status}, 200, "$name: the profile has the status");
    is_sum($p, $name);
    cmp_ok(waiting($p) + running($p), '>=', 0.95 * $waits,
           "$name: the waits are in the profile");

    # besides, the worker only accepts the connection and sends the reply

    ok($cpu > 0.9 * $used - 0.002 && $cpu < $used,
       "$name: what ran is in the profile")
        or diag("in the profile $cpu, used $used");

    cmp_ok($cpu, '>', 0.002, "$name: something ran");
    is_clean($t, $name);
}

# the function of the location, in samples and in gaps

my $p = profile_get('/busy');
cmp_ok($p->profile('wall')->weight_below(qr/^js_content main\.busy$/), '>',
       0.9 * $p->profile('wall')->weight_below(qr/^phase content$/),
       'the content is a stage with the name of its function');

for my $case ([ timer => 'script timer' ], [ fetch => 'script socket' ]) {
    my ($name, $cause) = @$case;

    my $function = { fetch => 'fetch_address' }->{$name} // $name;
    my @stacks = map { join(';', @{$_->[0]}) }
                 profile_get("/$name")->profile('wall')->stacks();

    cmp_ok(scalar(grep { /^\[waiting\];$cause[^;]*;js_content main\.$function$/ }
                       @stacks),
           '>', 0, "$name: a gap has the name of the function that waits");
}

is(profile_get('/small')->profile('wall')->count_frames(qr/js_content/), 0,
   'other locations have no function');

my $load = $t->load('/small', clients => 2,
                    headers => [ 'Accept-Encoding: gzip' ]);

for my $case (@cases) {
    my ($name, $waits) = @$case;

    my $start = time();
    my $p = profile_get("/$name");
    my $took = time() - $start;
    my $wall = info($p)->{wall} / 1e9;

    is_attributed($p, 'zlib', "$name beside other requests");

    # The timer may expire while the request waits for something else, and nginx
    # counts from its last reading of the clock.

    cmp_ok(waiting($p), '>=', 0.8 * $waits,
           "$name beside other requests: its waits are gaps");

    ok($wall <= $took && $wall < info($p)->{request_time} + 0.002,
       "$name beside other requests: its time fits other clocks")
        or diag("wall $wall, took $took, ", info($p)->{request_time});
    is(http_get("/$name")->status(), 200,
       "$name beside other requests: it is served without a trigger");
    is_clean($t, "$name beside other requests");
}

is($load->stop()->{failed}, 0, 'other requests are served');
