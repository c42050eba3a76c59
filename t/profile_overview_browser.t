#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: console
# runs: beside

# The overview of the console in a browser.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;


my $t = ProfileTest->new()->has(qw/ lua rewrite /);

has_browser($t);

$t->plan(21)->conf(<<'EOF', workers => 2);
profile_endpoint on;

server {
    listen 127.0.0.1:8080;
    server_name shop;

    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
    location /fast { return 200 "fast\n"; }
    location /slow { content_by_lua_block { ngx.sleep(0.05) ngx.say("x") } }
    location /favicon.ico { return 204; }
}
EOF

$t->run();

like(http_get('/slow/1?performance_bar=record')->header('X-Profile-Id'),
     qr/^\w{32}$/, 'a request of the slow location is recorded');
http_get('/fast') for 1 .. 20;

my $load = $t->load('/slow', clients => 4);

ok(wait_for(sub {
    my $j = decode_json(http_get('/-/profile/?format=json')->body());
    my ($p) = grep { $_->{location} eq '/slow' } @{$j->{locations}};
    $p && $p->{minute}{requests} > 100;
}), 'the overview has requests');

my $s = in_browser($t, 'the overview', 'console', 'overview',
                   'http://127.0.0.1:' . port(8080));

$load->stop();

like($s->{groups}[0], qr/^All requests/, 'all requests are first');
like($s->{groups}[1], qr{^/slow shop}, 'the slow location is next');
is($s->{parts}[1], 'script timer', 'the cause is below its location');
is($s->{filter}, '/slow', 'the cause leads to the list of profiles');
is($s->{sorted}, 'descending', 'the list is sorted by waiting');
like($s->{listed}[0], qr{^/slow/1}, 'the list has the recorded request');
is($s->{focus}, 'next', 'the focus stays when the table is replaced');
like($s->{captured}, qr{/-/profile/p/\w{32}$},
     'the location leads to a profile of its next requests');
is($s->{cause}, 'script timer', 'a cause is a filter of the overview');
is($s->{waiting}[0], '/slow script',
   'the filter leaves the part of the cause of a location');
is(scalar(grep { /^\/fast/ } @{$s->{waiting}}), 0,
   'the filter leaves out a location that did not wait for the cause');
is($s->{unfiltered}, '', 'a link removes the filter');
is(join("\n", @{$s->{small} // ['?']}), '', 'all texts have at least 12 pixels');
cmp_ok($s->{bare} // 0, '>=', 3, 'the table needs no script');
is(join(' ', map { @$_ } values %{$s->{axe}}), '', 'the page is accessible');
is(join("\n", @{$s->{console}}), '', 'the browser has no complaints');
ok(!$s->{wider}, 'a narrow page does not scroll sideways');
