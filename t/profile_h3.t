#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside
#
# Captured streams beside other streams of HTTP/3 connections: the profiles have
# no work of the other streams, and they get their usual responses. nginx
# supports HTTP/3 since 1.25.0.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::H3;
use ProfileTest::Module;
use ProfileTest::Upstream;

my $t = h3_test(qw/ debug limit_req map proxy rewrite /);
my $so = build_module($t, 'ngx_http_pointers_test_module');

# long work that is not a regular expression
my $work = $t->has_module('gunzip') ? 'zlib'
         : $t->has_module('lua') ? 'lua' : '';

my %work = ('' => '', zlib => <<'EOF', lua => <<'EOF2');
        location /work {
            gunzip on;
            gzip_static always;
        }
EOF
        location /work {
            content_by_lua_block {
                local x = 0
                for i = 1, 20 do
                    for k = 1, 100000 do
                        x = x + math.sin(k)
                    end
                    ngx.sleep(0.005)
                end
                ngx.print("done")
            }
        }
EOF2

$t->write_certificate('localhost');

$t->write_file_expand('nginx.conf', <<"EOF" =~ s/%%WORK%%/$work{$work}/r);
%%MODULES%%
load_module $so;
%%GLOBALS%%
error_log %%TESTDIR%%/worker.log debug_http;
worker_processes 1;

events {
    worker_connections 256;
}

http {
    %%GLOBALS_HTTP%%
    %%SLOW_MAP%%
    error_log %%TESTDIR%%/error.log info;

    log_format times '\$request_uri rt=\$request_time status=\$status '
                     'id=\$profile_id';
    access_log %%TESTDIR%%/times.log times;

    default_type text/plain;
    limit_req_zone \$uri zone=one:1m rate=5r/s;

    # QUIC closes the connection of a silent client after this time
    keepalive_timeout 2s;

    ssl_certificate localhost.crt;
    ssl_certificate_key localhost.key;

    server {
        listen 127.0.0.1:8443 quic;
        listen 127.0.0.1:8080;
        listen 127.0.0.1:8082;

        profile_endpoint on;

        location / { }

        location /loop {
            return 200 "\$uri\$slow";
        }

        location /proxy {
            proxy_pass http://127.0.0.1:8081/wait=300/;
        }

        location /held {
            proxy_pass http://127.0.0.1:8081/wait=20000/;
        }

        location /limited {
            limit_req zone=one burst=5;
            alias %%TESTDIR%%/small;
        }

%%WORK%%

        location = /pointers {
            pointers_test;
        }

        location /-/profile/ {
            profile_console;
        }
    }
}
EOF

my $text = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 50000);
$t->write_file('text', $text);
$t->write_file('work', $text x 4);
$t->write_file('small', substr($text, 0, 30000));

my ($failed, $out) = $t->command('gzip', '-1', $t->testdir() . '/work');
die "gzip: $out\n" if $failed;

run_upstream($t, 8081);
$t->run();

my $args = 'performance_bar=flamegraph&profile_format=speedscope';

my $busy = '/loopaaaaaaaaaaaaaa!';
my ($loop) = h3($t, [ $busy ]);
my ($worked) = h3($t, [ $work ? '/work' : '/small' ]);

is($loop->status(), 200, 'a request without a trigger has its status');
is($loop->body(), $busy, 'a request without a trigger has its body');
is_clean($t);

my $pointers = http_get('/pointers')->body();


# formats

my %formats = (
    speedscope => qr/^\{.*"shared":.*\}\s*$/s,
    html => qr/^<!DOCTYPE html>.*<\/html>\s*$/si,
    svg => qr/<svg.*<\/svg>\s*$/s,
    pprof => qr/^\x1f\x8b/,
    folded => qr/^(?:\S.* \d+\n)+$/,
);

for my $format (sort keys %formats) {
    my ($r) = h3($t, [ "/text?performance_bar=flamegraph"
                       . "&profile_format=$format" ]);

    is($r->status(), 200, "a profile as $format has the status 200");
    like($r->body(), $formats{$format}, "a profile as $format is complete");
    is($r->header('X-Profiled-Status'), 200,
       "a profile as $format tells the status of the request");
}

my ($refused) = h3($t, [ '/text?performance_bar=flamegraph'
                         . '&profile_format=none' ]);
is($refused->status(), 400, 'an unknown format has the status 400');
is_clean($t, 'formats');


# requests of other connections, during all captures

my $load = $t->load($busy, port => 8082, clients => 2);

my ($p, @others) = among("/proxy?$args", ($busy) x 19);

is_attributed($p, 'map', 'proxy');
cmp_ok(waiting($p), '>', 0.28, 'the profile of a proxied request has its wait');
cmp_ok(running($p), '<', 0.1, 'a proxied request hardly runs');
is_sum($p, 'proxy');
same($loop, 'proxy', @others);
is_clean($t, 'proxy');


# compression beside nineteen streams of regular expressions, and the reverse

if ($work) {
    ($p, @others) = among("/work?$args", ($busy) x 19);

    is_attributed($p, 'map', 'work');
    cmp_ok(share_of($p, $work), '>', 0.4,
           'most of the profile is the work of the request');
    is_sum($p, 'work');
    same($loop, 'work', @others);
    is_clean($t, 'work');

    ($p, @others) = among("/loopaaaaaaaaaaaaaaaaaaa!?$args", ('/work') x 19);

    is_attributed($p, $work, 'match');
    cmp_ok(share_of($p, 'map'), '>', 0.8,
           'most of the profile is regular expressions');
    is_sum($p, 'match');
    same($worked, 'match', @others);
    is_clean($t, 'match');
}


# bodies

@others = h3($t, [ $busy, "/proxy?$args", ($busy) x 8 ],
             body => 'x' x 200000);
$p = ProfileTest::Profile->new(splice(@others, 1, 1));

is_attributed($p, 'map', 'body');
cmp_ok(waiting($p), '>', 0.28,
       'the profile of a request with a body has its wait');
is_sum($p, 'body');
is(length((upstream_requests($t))[-1] =~ s/.*?\r\n\r\n//sr), 200000,
   'the upstream receives the whole body');
same($loop, 'body', @others);
is_clean($t, 'body');


# The delay of a stream is a timer of the stream: two streams before it make it
# 0.2 to 0.4 seconds.

($p, @others) = among("/limited?$args", ('/limited') x 2, ($busy) x 2);

is(shift(@others)->status(), 200,
   'limit_req: another request is served') for 1 .. 2;
is_attributed($p, 'map', 'limit_req');
cmp_ok(waiting($p), '>', 0.15, 'the profile of a delayed request has its wait');
cmp_ok(running($p), '<', 0.05, 'a delayed request hardly runs');
like($p->profile('wall')->folded(), qr/^\[waiting\];limit_req /m,
     'the cause of the delay is limit_req');
same($loop, 'limit_req', @others);
is_clean($t, 'limit_req');


# all streams are captured

my @all = h3($t, [ map { ("/small?$args", "/proxy?$args") } 1 .. 4 ]);

is_attributed(ProfileTest::Profile->new($all[$_]), 'map',
              "captured together, $_") for 0 .. $#all;
is_clean($t, 'captured together');


# a recorded request: the response is sent, the profile is stored

my ($recorded) = h3($t, [ '/text?performance_bar=record' ]);
my $id = $recorded->header('X-Profile-Id') // '';

is($recorded->body(), $text, 'a recorded request has its own response');
is(info(stored($id))->{status}, 200,
   'the stored profile has the status of the request');
is_sum(stored($id), 'recorded');
is_clean($t, 'recorded');


# While captured streams wait for an upstream, the client first closes the
# connection, and then disappears: nginx closes the connection after a timeout.

for my $how (qw/ quit leave /) {
    h3($t, [ $busy, "/held?${how}none",
             map { "/held?$how$_&performance_bar=$_" }
             qw/ flamegraph record / ],
       $how => 1);

    my ($none, $flamegraph, $l) = map { line("/held?$how$_") }
                                  qw/ none flamegraph record /;

    is($flamegraph->{status}, $none->{status},
       "$how: a request that would be replaced ends");
    is($l->{status}, $none->{status}, "$how: a recorded request ends");

    my $stored = stored($l->{id});

    is_sum($stored, "$how: recorded");
    cmp_ok(abs(info($stored)->{wall} / 1e9 - $l->{rt}), '<', 0.05,
           "$how: the profile ends with the request");
    like($stored->profile('wall')->folded(),
         qr/^\[waiting\];upstream first byte /m,
         "$how: the profile has the cause of the wait");
    is_clean($t, $how);
}

is($load->stop()->{failed}, 0, 'requests of other connections succeed');
is((h3($t, [ $busy ]))[0]->body(), $busy,
   'requests succeed after all captures');


# the pointers that captures replace

my $now;
wait_for(sub { ($now = http_get('/pointers')->body()) eq $pointers });
is($now, $pointers, 'all pointers of the worker are restored');


# the profile of one stream, and the responses to the others
sub among {
    my ($first, @others) = @_;

    # the first stream is not captured: its request may come before the others

    my @half = splice(@others, 0, @others / 2);
    my @got = h3($t, [ @half, $first, @others ]);
    my ($response) = splice(@got, scalar @half, 1);

    return (ProfileTest::Profile->new($response), @got);
}


sub same {
    my ($want, $name, @got) = @_;

    my @wrong = grep { plain($_) ne plain($want) } @got;

    is("@wrong", '', "$name: other streams have their own responses");
}


sub stored {
    my ($id) = @_;
    my $r;

    wait_for(sub { $r = http_get("/-/profile/p/$id/speedscope");
                   $r->status() == 200 });

    return ProfileTest::Profile->new($r);
}


# a line of the log
sub line {
    my ($uri) = @_;
    my %line;

    wait_for(sub {
        my ($line) = $t->read_file('times.log') =~ /^(\Q$uri\E.*)/m;

        %line = $line =~ / (\w+)=(\S+)/g if $line;
        return $line;
    });

    return \%line;
}
