#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request workers
# runs: quiet
#
# Debug messages: the log at the level "debug" tells what the module decides
# about a trigger, how its capture and its reply go on, and which jobs, stored
# profiles and captures of workers follow.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ debug proxy /);

$t->conf(<<'EOF', main => 'error_log %%TESTDIR%%/worker.log debug;');
error_log %%TESTDIR%%/worker.log debug;

profile_store zone=store:1m;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /denied {
        profile_allow 192.0.2.1;
        return 200 "denied\n";
    }

    location /unless {
        profile_if "";
        alias %%TESTDIR%%/file;
    }

    location /-/profile/ {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8081;
    return 200 "upstream\n";
}

server {
    listen 127.0.0.1:8082;
    profile_allow 192.0.2.1;
    profile_endpoint on;
    return 200 "refused\n";
}
EOF

$t->write_file('file', "file\n");
$t->run();

my $id = qr/[0-9a-f]{32}/;
my $read = length($t->read_file('worker.log'));


http_get('/?a=b');
my $log = news(qr/ "GET .*close http connection/s);
like($log, qr/http request line/, 'the log has messages of nginx');
unlike($log, qr/\bprofile/, 'a request without a trigger causes no message');


http_get('/?performance_bar=flamegraph&a=b');
$log = news(qr/context $id dropped(?s:.*)worker disarmed/);

in_order('a flamegraph', $log,
    qr/capture $id begins/,
    qr/arguments "performance_bar=flamegraph&a=b" become "a=b"/,
    qr/trigger admitted, captures: 0 of \d+/,
    qr/gap of [0-9A-F]+: upstream first byte/,
    qr/replace response, status 200/,
    qr/original response complete/,
    qr/render $id, format "speedscope", store: 1/,
    qr/store add $id, \d+ bytes: 0/,
    qr/rendered: 0, stored: 0, request waits: 1/,
    qr/send reply, status 200, \d+ bytes/,
    qr/context $id dropped/);

like($log, qr/capture $id ends, \d+ samples/,
     'the end of a capture is logged');
like($log, qr/worker armed.*worker disarmed/s,
     'a worker that is armed is disarmed after the capture');
like($log, qr/job ([0-9A-F]+) starts, rank \d.*job \1 done, jobs: 0/s,
     'the job that renders the profile starts and is done');


http_get('/?performance_bar=record');
$log = news(qr/job [0-9A-F]+ done/);
like($log, qr/record $id, response is sent/,
     'a recorded request logs that its response is sent');


http_get('/?performance_bar=flamegraph&profile_frequency=x');
$log = news(qr/context $id dropped/);
like($log, qr/wrong trigger: .*frequency/,
     'a wrong parameter is logged with its name');
like($log, qr/send reply, status 400/,
     'the error reply of a wrong parameter is logged');


http_get('/denied?performance_bar=flamegraph');
$log = news(qr/context $id dropped/);
like($log, qr/location of "\/denied" does not permit the trigger/,
     'a location that does not permit the client is logged');
like($log, qr/arguments "performance_bar=flamegraph" restored/,
     'arguments that are restored are logged');


http_get('/unless?performance_bar=flamegraph');
$log = news(qr/context $id dropped/);
like($log, qr/trigger refused by "profile_if"/,
     'a trigger that profile_if refuses is logged');


http_get('/?performance_bar=flamegraph', port => 8082);
$log = news(qr/ "GET .*close http connection/s);
like($log, qr/trigger refused by "profile_allow"/,
     'a trigger that no location permits is logged');
unlike($log, qr/capture $id begins/,
       'no capture begins for a trigger that no location permits');


http_get('/-/profile/wall?seconds=0.1');
$log = news(qr/console answer, status/);
in_order('a capture of workers', $log,
    qr/console answer comes later/,
    qr/share of capture \d+ begins, asker 0/,
    qr/console answer, status 200, \d+ bytes/);


# waits for the last message; returns the messages since the last call

sub news {
    my ($last) = @_;

    my ($all, $new);

    wait_for(sub {
        $all = $t->read_file('worker.log');
        $new = substr($all, $read);
        return $new =~ $last;
    });

    $read = length($all);

    return $new;
}


sub in_order {
    my ($name, $text, @messages) = @_;

    my @lines = grep { /\bprofile/ } split(/\n/, $text);
    my $at = 0;

    for my $message (@messages) {
        my $i = $at;
        $i++ while $i < @lines && $lines[$i] !~ $message;

        ok($i < @lines, "$name logs its steps in order: $message")
            or diag(join("\n", @lines));

        $at = $i + 1 if $i < @lines;
    }
}
