#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request

# The profile of a recorded response has all time of the request, with the time
# of sending, and no time of other requests.  HTTP/2; more captures than slots;
# the store in memory.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use List::Util qw/ max sum /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest;
use ProfileTest::Attribution;

my $t = ProfileTest->new()->has(qw/ gzip limit_req map proxy rewrite v2 /)
                          ->has_program('curl');

$t->conf(<<'EOF');
%%SLOW_MAP%%

log_format times '$sent_http_x_profile_id $request_time $status $uri';
access_log %%TESTDIR%%/times.log times;

profile_zone store:256k;
profile_max_captures 3;
profile_endpoint on;

gzip_comp_level 9;
gzip_types text/plain;
default_type text/plain;

limit_req_zone $uri zone=one:1m rate=5r/s;

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8081 http2;

    location / { }

    location /-/profile/ { profile_console; }

    location /gz/ {
        alias %%TESTDIR%%/;
        gzip on;
    }

    location /rate/ {
        alias %%TESTDIR%%/;
        limit_rate 4m;
    }

    location /hold/ {
        alias %%TESTDIR%%/;
        limit_rate 300k;
    }

    location /req/ {
        alias %%TESTDIR%%/;
        limit_req zone=one burst=5;
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8082/;
    }

    location /pass/ {
        proxy_buffering off;
        proxy_pass http://127.0.0.1:8082/;
    }

    location /error/ {
        proxy_pass http://127.0.0.1:8083/;
        error_page 502 = /small;
    }

    location /empty { return 204; }
    location /moved { return 302 /small; }

    location /loop {
        return 200 "done$slow";
    }
}

server {
    listen 127.0.0.1:8082;
    profile_endpoint off;

    location / {
        limit_rate 3m;
    }
}
EOF

my $text = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 50000);

$t->write_file('text', $text);
$t->write_file('large', $text x 10);
$t->write_file('small', "small\n");
$t->run();


# the first capture of a worker installs the hooks, which takes a millisecond
# that is the profiler's

http_get('/small', headers => [ 'X-Profile: record' ]);

# the sums

my @uris = qw{ /small /text /gz/text /rate/text /req/small /req/small
               /proxy/text /pass/text /error/x /empty /moved };

for my $protocol (qw{ HTTP/1 HTTP/2 }) {
    for my $uri (@uris) {
        my ($plain) = curl($protocol, $uri);
        my ($with, $id) = curl($protocol, $uri,
                               '-H', 'X-Profile: record; frequency=1000');

        # shared caches must not keep the recorded response

        $with =~ s/^cache-control: private\r?\n//mi or $with .= '!';

        ok($with eq $plain,
           "$protocol $uri: the recorded response is the same")
            or diag(substr($plain, 0, 500), substr($with, 0, 500));

        my $st = stored($id);
        my ($logged) = wait_for(sub {
            ($t->read_file('times.log') =~ /^\Q$id\E ([\d.]+) /m)[0];
        });

        is($st->{uri}, $uri, "$protocol $uri: the profile is in the store");

        my $p = speedscope($id);
        is_sum($p, "$protocol $uri");

        # the log uses nginx's clock, which stands still while nginx runs code

        my $time = info($p)->{request_time};
        my $wall = $st->{wall} / 1e9;

        cmp_ok(abs($wall - $time), '<=', max(0.0011, 0.01 * $time),
               "$protocol $uri: the profile contains the whole time, $time");
        cmp_ok($wall, '>', $logged - 0.003,
               "$protocol $uri: the profile has the logged time, $logged");
    }
}


# the client does not read

my $s = http_get('/large?performance_bar=record', start => 1);
my $load = $t->load('/loopaaaaaaaaaaaaaa!', clients => 2, seconds => 20);

sleep(0.5);
my $r = http_end($s);
$load->stop();

ok($r->body() eq $text x 10, 'a slow client gets the whole response');

my $p = speedscope($r->header('X-Profile-Id'));
cmp_ok($p->profile('wall')->weight_below(qr/^client not reading/), '>',
       0.2e9, 'the profile shows the wait for the slow client');
is_attributed($p, 'map', 'a slow client');

$p = speedscope((curl('HTTP/1', '/gz/text', '-H', 'X-Profile: record',
                      '-H', 'Accept-Encoding: gzip'))[1]);
cmp_ok($p->profile('cpu')->weight_below(qr/deflate/), '>',
       0.5 * $p->profile('cpu')->total(),
       'the profile shows the work of filters for the slow client');


# more captures than slots

my @sockets = map { http_get('/hold/text?performance_bar=record', start => 1) }
                  1 .. 3;

for my $i (1 .. 3) {
    sleep(0.02);
    $r = http_get('/small?performance_bar=record');
    is($r->body(), "small\n", "response $i above the limit is the same");
    is($r->header('X-Profile-Id'), undef,
       "response $i above the limit has no id");
    is($r->header('X-Profile-Dropped'),
       'too many captures are running in this worker',
       "response $i above the limit has the reason");
}

is(http_get('/small?performance_bar=flamegraph')->status(), 429,
   'a flamegraph above the limit has the status 429');

# a line a second, which knows of all those before it

my $dropped = 4;
my @omitted = not_recorded();

wait_for(sub {
    my $lines = @omitted;

    sleep(0.1);
    http_get('/small?performance_bar=record');
    $dropped++;

    @omitted = not_recorded();
    return @omitted > $lines;
});

is(@omitted + sum(@omitted), $dropped,
   'each refusal is in the log, or counted there');
cmp_ok(scalar @omitted, '<', $dropped,
       'the log does not have a line for each refusal');

for my $socket (@sockets) {
    $r = http_end($socket);
    is($r->body(), $text, 'running recordings get their whole response');
    is(stored($r->header('X-Profile-Id'))->{uri}, '/hold/text',
       'running recordings are stored');
}

my $again = wait_for(sub { http_get('/small?performance_bar=record')
                               ->header('X-Profile-Id') });
is(stored($again)->{uri}, '/small',
   'a recording is possible when a slot is free');


# the list: newest first, pinned, deleted

my @ids;

for (1 .. 5) {
    my ($id) = (curl('HTTP/1', "/small?n=$_&performance_bar=record"))[1];

    # one after the other, so that their order is known

    stored($id);
    push @ids, $id;
}

is(join(' ', map { $_->{id} } (list())[0 .. 4]), join(' ', reverse @ids),
   'the list has the newest profiles first');

my $link = http_get('/small?performance_bar=record')->header('Link');
my ($url) = $link =~ /^<(.*)>/;

ok(wait_for(sub { http_get($url)->status() == 200 }),
   'the link leads to the profile');
is(change('DELETE', $url =~ s{^/-/profile/}{}r), 204,
   'the profile of the link can be deleted');

is(change('POST', "p/$ids[2]/pin"), 204, 'a profile can be pinned');
is(join(' ', map { $_->{id} } (list())[0 .. 4]), join(' ', reverse @ids),
   'a pinned profile keeps its place in the list');
is(join(' ', map { $_->{id} } grep { $_->{pinned} } list()), $ids[2],
   'the list shows one pinned profile');

is(change('DELETE', "p/$ids[3]"), 204, 'a profile can be deleted');
is(change('DELETE', "p/$ids[3]"), 404, 'a profile cannot be deleted twice');
is(join(' ', map { $_->{id} } (list())[0 .. 3]), join(' ', @ids[4, 2, 1, 0]),
   'the list no longer has the deleted profile');

for my $id ('0' x 32, '../x', 'A' x 32, $ids[0] . '0', substr($ids[0], 1),
            uc($ids[4]) . 'x', '%2e%2e')
{
    is(http_get("/-/profile/p/$id.json")->status(), 404,
       "the id $id has the status 404");
}

# the zone becomes full: of the old profiles only the pinned one remains

my @more = map { http_get('/small?performance_bar=flamegraph')
                     ->header('X-Profile-Id') } 1 .. 200;

my @list = list();

is($list[0]{id}, $more[-1], 'the newest profile is first in a full store');
cmp_ok(scalar(@list), '<', 200, 'a full store has not all profiles');
is($list[-1]{id}, $ids[2],
   'the oldest profile of a full store is the pinned one');
is(join(' ', map { $_->{id} } @list[0 .. $#list - 1]),
   join(' ', reverse @more[-$#list .. -1]),
   'the other profiles of a full store are the newest ones');

$t->reload();

is(join(' ', map { "$_->{id} $_->{pinned}" } list()),
   join(' ', map { "$_->{id} $_->{pinned}" } @list),
   'a reload keeps all profiles and pins');

is(change('POST', "p/$ids[2]/unpin"), 204, 'a profile can be unpinned');
is(scalar(grep { $_->{pinned} } list()), 0,
   'the list shows no pinned profile');


sub curl {
    my ($protocol, $uri, @more) = @_;

    my ($port, @how) = $protocol eq 'HTTP/2'
                       ? (8081, '--http2-prior-knowledge') : 8080;

    my ($status, $out) = $t->command('curl', '-sSi', '--raw', '-m', 20, @how,
                                     @more, '-H', 'Host: localhost',
                                     'http://127.0.0.1:' . port($port) . $uri);

    $out =~ s/^date: .*\r\n//im;
    my ($id) = $out =~ /^x-profile-id: (\w+)\r/im;
    $out =~ s/^x-profile-id: .*\r\n//im;
    $out =~ s/^link: .*\r\n//im;

    return ($out, $id // 'none');
}


sub stored {
    my ($id) = @_;

    my $json;

    wait_for(sub {
        ($json) = grep { $_->{id} eq $id } list();
        return $json;
    });

    return $json || {};
}


sub list {
    my $r = http_get('/-/profile/profiles.json');
    return @{(eval { decode_json($r->body()) } || {})->{profiles} || []};
}


sub change {
    my ($method, $path) = @_;

    return http("$method /-/profile/$path HTTP/1.1\r\nHost: localhost\r\n"
                . "Connection: close\r\nX-Profile-Console: 1\r\n"
                . "Content-Length: 0\r\n\r\n")->status();
}


sub speedscope {
    my ($id) = @_;

    stored($id);

    return ProfileTest::Profile->new(
        http_get("/-/profile/p/$id/speedscope"));
}


# how many each line of the log has left out
sub not_recorded {
    return $t->read_log() =~ /dropped, .*, (\d+) more not logged/g;
}
