#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: turns

# The page of the turn log in a browser: load with known delays is where it was.
#
# PROFILE_TEST_PICTURES is a directory for pictures of the page.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use POSIX ();
use Test::More;
use Time::HiRes qw/ time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;

my $t = ProfileTest->new()->has(qw/ lua proxy rewrite /);

has_browser($t);

$t->plan(55)->conf(<<'EOC', workers => 1);
profile_turn_log on;
profile_endpoint on;

init_by_lua_block {
    function burn(s)
        ngx.update_time()
        local till = ngx.now() + s
        while ngx.now() < till do ngx.update_time() end
    end
}

server {
    listen 127.0.0.1:8080;
    server_name shop;

    location /fast { content_by_lua_block { ngx.print("fast") } }
    location /slow { content_by_lua_block { burn(0.08) ngx.print("slow") } }
    location /less { content_by_lua_block { burn(0.005) ngx.print("less") } }
    location /waits {
        content_by_lua_block {
            for i = 1, 3 do
                ngx.sleep(0.02)
                ngx.location.capture("/part")
            end
            ngx.print("waited")
        }
    }
    location /part { proxy_pass http://127.0.0.1:8080/fast; }
    location /-/profile/ { profile_console; }
}
EOC

$t->run();

# what the URL is for whom

my $html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

for ([ 'turns', '*/*', 'json' ], [ 'turns', $html, 'html' ],
     [ 'turns.json', $html, 'json' ], [ 'turns?format=json', $html, 'json' ],
     [ 'turns', 'application/json', 'json' ])
{
    my ($what, $accept, $type) = @$_;
    my $r = http_get("/-/profile/$what", headers => [ "Accept: $accept" ]);

    like($r->header('Content-Type'), qr/$type/, "$what is $type for $accept");
}

my $end = time() + 5;
my @pids = map { my $n = $_; $t->start_child(sub { load($n, $end) }) } 1 .. 6;
my $recorded = http_get('/waits?performance_bar=record');
waitpid $_, 0 for @pids;

my $profile = $recorded->header('X-Profile-Id') // '';
my $r = http_post('/-/profile/turns?seconds=60', '',
                     headers => [ 'X-Profile-Console: 1' ]);
is($r->status(), 201, 'the log is stored');
my $id = decode_json($r->body() || '{}')->{id} // '';

my $s = in_browser($t, 'the log', 'turns', 'http://127.0.0.1:' . port(8080),
                   $id, $profile, $ENV{PROFILE_TEST_PICTURES} // ());

is($s->{nav}, 'Event loop', 'the navigation knows the page');

# the longest runs

like($s->{longest}[1][1] // '', qr{^GET /slow}, 'the slow location is longest');
like($s->{longest}[1][0] // '', qr/^\d{2,3}\.\d ms$/, 'it has its time');
like($s->{picked}, qr{^GET /slow\S*: [\d.]+ ms, worker \d}, 'a click selects it');
like($s->{facts}, qr/Turn\s+1 of 1.*Status\s+200.*Client\s+127/s,
     'its request has its facts');
is($s->{middle}, $s->{color}, 'its box has the color of its location');

# keys, mouse, touch

isnt($s->{right}, $s->{picked}, 'a key selects the next run');
is($s->{left}, $s->{picked}, 'a key selects the run before');
like($s->{none}, qr/^Select a run/, 'a key selects none');
isnt($s->{zoomed}, $s->{all}, 'a key zooms');
isnt($s->{moved}, $s->{zoomed}, 'a key moves the picture');
like($s->{tip}, qr{^GET /slow}, 'the run below the mouse is named');
ok($s->{wheeled}, 'the wheel zooms');
ok($s->{dragged}, 'the mouse moves the picture');
like($s->{kept}, qr{^GET /slow}, 'the selection stays');
ok($s->{pinched}, 'two fingers zoom');

# search

like($s->{found}, qr/^[\d,]+ runs$/, 'the search finds runs');
like($s->{match}, qr{^GET /slow}, 'keys select the runs that were found');

# who delayed whom

my @head = @{$s->{blame}[0] || []};
my ($fast) = grep { $_->[0] eq '/fast' } @{$s->{blame} || []};
my %by;
@by{@head} = @{$fast || []};

like($by{'/slow'} // '', qr{^[\d.]+ m?s .*worst \d+\.\d ms}s,
     'the slow location delayed the fast one');
like($s->{victim}, qr{could have run \d+\.\d ms earlier},
     'the worst case had to wait');
like($s->{delayed}, qr{Delayed by\s+GET /slow}, 'it has its culprit');

like($s->{asked}, qr/^POST \?requests=100&.*location=%2Fslow/,
     'a run leads to a capture of the next requests of its location');

# a log of 100,000 records

like($s->{records}, qr/100,000 records/, 'the log is large');
cmp_ok($s->{opened} // 1e9, '<', 1000, 'it opens in less than a second');
cmp_ok($s->{frame} // 1e9, '<', 200, 'each frame is drawn at once');
diag("$s->{opened} $s->{frame}") if $ENV{PROFILE_TEST_PICTURES};

like($s->{empty}, qr/^Nothing ran/, 'a log may be empty');

# the tab of a request's profile

like($s->{around} // '', qr{^GET /waits\S*: .* could have run \d},
     'the tab shows the turn of its request that was delayed most');
is($s->{hash}, '#turns', 'the tab has a URL');
is($s->{self}, 0, 'the page of the profile has no link to itself');
is($s->{link}, 1, 'the page of the log has a link to the profile');
ok(decode_json(http_get("/-/profile/p/$profile.json")->body())->{turns},
   'the profile says that it has a part of the log');

for my $name (qw/ light dark narrow narrow-dark around-dark around-narrow
                  around-narrow-dark /)
{
    is_deeply($s->{axe}{$name}, [], "$name is accessible");
    cmp_ok($s->{width}{$name} // 1, '<=', 0, "$name fits in the window");
}

is(join("\n", @{$s->{console} || []}), '', 'the browser logs no messages');
is(join("\n", @{$s->{elsewhere} || []}), '',
   'the page loads nothing from elsewhere');


# clients that keep their connections, so that a worker reads several requests
# at once

sub load {
    my ($client, $end) = @_;
    my $s = ProfileTest::HTTP::connect_to(8080) or die "connect: $!\n";

    srand($client);

    for (my $i = 0; time() < $end; $i++) {
        my $what = int(rand 40);
        my $uri = $what == 0 ? '/slow' : $what < 4 ? '/less'
                  : $what < 8 ? '/waits' : '/fast';

        http_get("$uri?n=$client.$i", socket => $s, keepalive => 1);
    }

    POSIX::_exit(0);
}
