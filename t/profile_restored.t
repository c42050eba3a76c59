#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop main
# runs: beside

# Whatever is replaced in nginx and in the worker while requests are captured is
# put back after the last one: a module of the test reads it all.

use strict;
use warnings;

use IO::Select;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Module;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ auth_basic gzip proxy rewrite /);
my $so = build_module($t, 'ngx_http_pointers_test_module');

$t->conf(<<"EOF", main => "load_module $so;");
gzip on;
gzip_types text/plain;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location / { }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }

    location /closed {
        auth_basic closed;
        auth_basic_user_file %%TESTDIR%%/none;
    }

    location /late {
        profile_timeout 300ms;
        postpone_output 0;
        proxy_pass http://127.0.0.1:8082;
    }

    location /late/direct {
        profile_timeout 300ms;
        proxy_buffering off;
        proxy_pass http://127.0.0.1:8082;
    }

    location = /pointers {
        pointers_test;
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->write_file('text', 'x' x 10000);
$t->write_file('none', '');
run_upstream($t, 8081);
run_server($t, 8082, \&upstream);
$t->run();
$t->wait_for_socket(8082);

my $before = http_get('/pointers')->body();

like($before, qr/^process_events [0-9A-F]+\n/, 'the test knows the pointers');
cmp_ok(() = $before =~ /^checker/mg, '>', 5, 'the test knows the checkers');


# while a request is captured they are ours

my $waiting = http_get('/upstream?performance_bar=flamegraph', start => 1);
sleep 0.1;

my %was = named($before);
my %are = named(http_get('/pointers')->body());

isnt($are{$_}, $was{$_}, "$_ is replaced")
    for qw/ process_events add insert header_filter body_filter
            request_body_filter /, 'checker 0', 'checker 5', 'log 0';
is($are{client}, $was{client}, 'no handler of a connection is');
like(join('', %are), qr/ID/, 'there is a timer');

is(http_end($waiting)->status(), 200, 'a capture succeeds');
restored('after a capture');


# other modes

for my $mode (qw/ wall cpu /) {
    profile_get("/upstream?profile_mode=$mode", headers =>
                [ 'Accept-Encoding: gzip' ]);
    restored("after the mode $mode");
}

http_get('/upstream?performance_bar=record');
restored('after a recorded one');

http_get('/closed?performance_bar=flamegraph');
restored('after an error');

http_get('/text?performance_bar=wrong');
restored('after a bad trigger');

my $left = http_get('/upstream?performance_bar=flamegraph', start => 1);
sleep 0.1;
close $left;
restored('after a client that left');

my @many = map { http_get("/upstream?performance_bar=flamegraph&$_",
                          start => 1) } 1 .. 5;
http_end($_) for @many;
restored('after five at once');


# callbacks of an upstream, whose request continues after the capture

for my $uri (qw{ /late /late/direct }) {
    my $plain = http_get($uri, start => 1);
    my $own = callbacks($plain);
    http_end($plain);

    like($own, qr/^(?:[0-9A-F]+ ){6}[0-9A-F]+$/,
         "$uri: the test knows the callbacks");

    my $s = http_get("$uri?performance_bar=record", start => 1);
    my $ours = callbacks($s);
    my @own = split / /, $own;
    my @ours = split / /, $ours;

    isnt($ours[$_], $own[$_], "$uri: callback $_ is replaced") for 0 .. 5;

    ok(wait_for(sub { callbacks($s) eq $own }, 3),
       "$uri: all as before while the request goes on");
    is(http_end($s)->status(), 200, "$uri: the response is complete");
    restored($uri);
}


# returns the callbacks of the upstream when nginx has read its header
sub callbacks {
    my ($s) = @_;

    IO::Select->new($s)->can_read(10);
    my ($found) = http_get('/pointers')->body() =~ /^upstream (.*)$/m;

    return $found // '';
}


# sends the header and a part of the body, and the rest later
sub upstream {
    my ($c) = @_;

    sysread($c, my $request, 65536) or return;
    syswrite($c, "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nab");
    sleep 1.5;
    syswrite($c, 'cd');
}


# a thread may end its work after the answer was sent
sub restored {
    my ($name) = @_;
    my $now;

    wait_for(sub { ($now = http_get('/pointers')->body()) eq $before }, 3);

    is($now, $before, "$name: all as before");
}


sub named {
    my ($text) = @_;

    my %named = map { /^((?:checker|log) \d+|signal \d+|[a-z]\w+) (.*)/ ? ($1, $2)
                                                                : () }
                split /\n/, $text;
    $named{timers} = join(' ', $text =~ /^(ID: \d+)/mg);

    return %named;
}
