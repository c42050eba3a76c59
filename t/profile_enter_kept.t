#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside

# Another module may keep a pointer that the module has replaced in a waiting
# request, and call it for a request that the module does not track.  nginx's
# pointer is not known then, so the call has no effect, and both requests get
# their answers.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use Test::More;

use ProfileTest;
use ProfileTest::Module;
use ProfileTest::Names;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ proxy v2 /)
                          ->has_perl(qw/ Protocol::HTTP2::Client /);
my $so = build_module($t, 'ngx_http_kept_test_module');

$t->conf(<<'EOF', main => "load_module $so;");
profile_accounting on;

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8088 http2;

    profile_endpoint on;
    resolver 127.0.0.1:8053 ipv6=off;

    location / {
        kept_test;
    }

    location /named {
        proxy_pass http://$arg_host:%%PORT_8083%%/;
    }

    location /hold= {
        proxy_pass http://127.0.0.1:8082;
    }
}

server {
    listen 127.0.0.1:8081;
    profile_accounting off;

    location / {
        kept_test;
    }
}
EOF

run_names($t, 8053);
run_upstream($t, 8082);
$t->run();

my $logged = 0;


# the body of a stream, and the stream's connection

my $client = Protocol::HTTP2::Client->new(keepalive => 1);
my $answer;

$client->request(':scheme' => 'http', ':authority' => 'localhost',
                 ':path' => '/?body', ':method' => 'POST',
                 headers => [ 'content-length' => 4 ], data => 'data',
                 on_done => sub { $answer = $_[1] });

my $stream = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                   PeerPort => port(8088)) or die "$!\n";
my @data;

# frames of the type DATA are sent later

while (my $frame = $client->next_frame()) {

    if (ord(substr($frame, 3, 1)) == 0) {
        push @data, $frame;

    } else {
        syswrite($stream, $frame);
    }
}

wait_for(sub { call('post') eq 'ok' });
lost('post');

is(call('stream'), 'ok', 'the handler of the connection is called');
lost('stream');

syswrite($stream, $_) for @data;

while (!defined $answer && IO::Select->new($stream)->can_read(10)) {
    sysread($stream, my $buf, 65536) or last;
    $client->feed($buf);
}

is($answer, 'body', 'the stream is answered');


# the resolver

my $named = http_get('/named?host=silent.test', start => 1);

wait_for(sub { call('name') eq 'ok' });
is(call('resolver'), 'ok', 'the handler of the resolver is called');
lost('resolver');
close $named;


# an upstream of a captured request

my $held = http_get('/hold=a/?performance_bar=flamegraph', start => 1);
wait_for(sub { call('upstream') eq 'ok' });

is(call($_), 'error', "$_: the callback refuses a request without a capture")
    for qw/ header filter init pipe /;

is(call('finalize'), 'ok', 'nothing is finalized');

upstream_release($t, 'a');
like(http_end($held), qr/200 OK.*process header/s, 'its profile is complete');


# calls a kept pointer for a request that is not tracked
sub call {
    my ($name) = @_;
    return http_get("/?$name", port => 8081)->body();
}


sub lost {
    my ($name) = @_;

    is(() = $t->read_log() =~ /called for a request that is not tracked/g,
       ++$logged, "$name: the call is logged");

    # the next message of this kind is logged a second later
    sleep 1.1;
}
