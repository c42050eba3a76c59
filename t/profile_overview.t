#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics console
# runs: beside

# The overview of the console: where the time of requests goes.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua rewrite /)->plan(51);

$t->conf(<<'EOF', workers => 2);
server {
    listen 127.0.0.1:8080;
    server_name a<b;

    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics locations=40; }

    location /fast { return 200 "fast\n"; }
    location /slow { content_by_lua_block { ngx.sleep(0.05) ngx.say("x") } }
    location ~ "\.<b>" { return 200 "regex\n"; }

    location /busy {
        content_by_lua_block {
            local t = os.clock()
            while os.clock() - t < 0.02 do end
            ngx.say("x")
        }
    }
}

server {
    listen 127.0.0.1:8081;
    server_name many;
    location / { return 200 "other\n"; }
    %%LOCATIONS%%
}
EOF

my $many = join "\n", map { "location = /many$_ { return 200 x; }" } 1 .. 25;
my $conf = $t->read_file('nginx.conf');
$conf =~ s/%%LOCATIONS%%/$many/;
$t->write_file('nginx.conf', $conf);
$t->run();

like(http_get('/-/profile/'), qr/No request has ended in the last hour/,
     'there is a page before the first request');

my $load = $t->load('/slow', clients => 4);
http_get('/fast') for 1 .. 20;
http_get('/busy') for 1 .. 3;
http_get('/a.<b>');
http_get("/many$_", port => 8081) for 1 .. 25;

ok(wait_for(sub { place('/slow')->{minute}{requests} >= 20 }),
   'requests are in the last minute');

my $requests = $load->stop()->{requests};

ok(wait_for(sub { place('/slow')->{hour}{requests} == $requests }),
   'all requests of the location are in the last hour');

my $j = overview();
my ($first) = @{$j->{locations}};
my $slow = $first->{minute};
my ($timer) = sort { $b->{time} <=> $a->{time} } @{$slow->{waits}};

is($first->{location}, '/slow', 'the slow location is the first one');
is($first->{server}, 'a<b', 'the location has the name of its server');
is($timer->{cause}, 'script timer',
   'the location has the wait for the timer of its script');
cmp_ok($timer->{time}, '>=', $requests * 0.05e9 * 0.95,
       'for as long as the script sleeps');
cmp_ok($slow->{cpu}, '<', 0.5 * $slow->{wall},
       'the location has little CPU time');

my $busy = place('/busy')->{minute};

is($busy->{requests}, 3, 'each request counts once');
cmp_ok($busy->{cpu}, '>=', 0.05e9, 'the location that computes has used CPU');
is(sum(@{$first->{minutes}{requests}}), $requests,
   'the minutes have the requests of the hour');

is(scalar @{$j->{locations}}, 20, 'the locations with most time are shown');
is(scalar @{$j->{locations}} + $j->{more_locations}, places(),
   'the other locations are counted');

cmp_ok($j->{all}{hour}{requests}, '>=', $requests + 20 + 3 + 25,
       'all requests include those of the other locations');

cmp_ok($j->{workers}{minute}{cpu}, '>=', $j->{all}{minute}{cpu},
       'the workers have used the CPU time of all requests');
my ($accept) = grep { $_->{handler} eq 'ngx_event_accept' } @{$j->{handlers}};

cmp_ok($accept->{calls}, '>=', 20 + 3, 'the handlers have their calls');
cmp_ok($accept->{time}, '>', 1000, 'and the time of all calls');

is($j->{workers}{hour}{cpu}, $j->{workers}{minute}{cpu},
   'the first minute is all of the hour');
cmp_ok(abs(sum(@{$j->{workers}{minutes}{cpu}}) - $j->{workers}{hour}{cpu}),
       '<', 60, 'the minutes have the CPU time of the hour');


# the page

my $page = http_get('/-/profile/', headers => [ 'Accept: text/html' ]);

is($page->status(), 200, 'the overview is a page');
like($page->header('Content-Security-Policy'), qr/^default-src 'none'/,
     'the page has the policy of pages');
like($page->body(), qr/All requests.*\/slow.*script timer/s,
     'the page has the location and its cause without a script');
like($page->body(), qr/a&lt;b/, 'names are escaped');
like($page->body(), qr{Processors of the workers:.*last hour \d+\.\d\d, \d+ % for},
     'the page has the share of requests in the CPU time of workers');
like($page->body(), qr{<h2>Event handlers.*ngx_event_accept}s,
     'the page has the event handlers');
unlike($page->body(), qr/a<b|\.<b>/, 'names are no markup');
like($page->body(), qr{href="wall\?[^"]*location=/slow"},
     'the page has a link that captures the next requests');
like($page->body(), qr{href="profiles#filter=/slow&amp;sort=waited"},
     'a cause leads to the profiles of its location');
like($page->body(), qr{\d+ other locations took less time},
     'the page tells that there are more locations');
is(http_get('/-/profile/?format=xml')->status(), 400,
   'another format is an error');
like(http_get('/-/profile/', headers => [ 'Accept: application/json' ])
         ->header('Content-Type'), qr/json/, 'Accept asks for JSON');


# one cause

$j = decode_json(http_get('/-/profile/?format=json&cause=script%20timer')
                     ->body());
is($j->{locations}[0]{location}, '/slow',
   'the location that waited most for a cause is the first one');
is(scalar(grep { !grep { $_->{cause} eq 'script timer' } @{$_->{hour}{waits}} }
              @{$j->{locations}}), 0,
   'a cause selects the locations that waited for it');
cmp_ok($j->{all}{hour}{requests}, '>=', $requests + 20 + 3 + 25,
       'with a cause, all requests are the same');

$page = http_get('/-/profile/?cause=script%20timer',
                 headers => [ 'Accept: text/html' ])->body();
is(($page =~ m{<span class="place">([^<]+)})[0], '/slow',
   'the page of a cause begins with the location that waited most');
unlike($page, qr{<span class="place">/fast},
       'the page of a cause has no location without it');
like($page, qr{cause=script%20timer" aria-current="true">script timer},
     'the page names the selected cause');
like($page, qr{<a href="\./">All time</a>}, 'the page leads to all time');
unlike($page, qr{<th scope="row">(?:<a[^>]*>)?CPU},
       'the page of a cause has no row of CPU time');

$page = http_get('/-/profile/?cause=cache%20lock',
                 headers => [ 'Accept: text/html' ])->body();
like($page, qr/No request has waited for this cause in the last hour/,
     'a cause of no request has a page');

my $r = http_get('/-/profile/?cause=script');
is($r->status(), 400, 'an unknown cause is an error');
like($r->body(), qr/^"cause" is "script", it must be a cause of waiting/,
     'the error names the parameter');

my $s = http("GET /-/profile/?cause=script HTTP/1.1\r\nHost: localhost\r\n"
             . "\r\n", start => 1);

http_end($s);
is(http("GET /fast HTTP/1.1\r\nHost: localhost\r\n\r\n", socket => $s,
        timeout => 3)->body(), "fast\n", 'the error is the only answer');


# life

my $all = overview()->{all}{hour}{requests};

$t->reload();
cmp_ok(overview()->{all}{hour}{requests}, '>=', $all,
       'the hour survives a reload');

my ($victim) = $t->worker_pids();
kill 'KILL', $victim;
ok(wait_for(sub { my @p = $t->worker_pids();
                  @p == 2 && !grep { $_ == $victim } @p }),
   'another worker starts');
$t->allow(qr/exited on signal 9/);
cmp_ok(overview()->{all}{hour}{requests}, '>=', $all,
       'the hour survives a killed worker');


# a configuration without metrics

$conf =~ s/location = \/metrics.*//;
$t->write_file('nginx.conf', $conf);
$t->reload();

# an old worker may accept until it knows of the reload

ok(wait_for(sub {
    $page = http_get('/-/profile/', headers => [ 'Accept: text/html' ])
            ->body();
    $page =~ m{<title>Profiles<};
}), 'without metrics the list is first');
like($page, qr{said">With <code>profile_metrics;</code>},
     'the page tells how to get the overview');
like($page, qr{<a href="./" hidden>Overview}, 'no link leads to it');


sub overview {
    return decode_json(http_get('/-/profile/?format=json')->body());
}


sub place {
    my ($name) = @_;
    my ($p) = grep { $_->{location} eq $name } @{overview()->{locations}};

    return $p || { minute => { requests => 0 }, hour => { requests => 0 } };
}


# locations that have counted requests, as the metrics name them
sub places {
    my $text = http_get('/metrics')->body();
    my %seen = map { $_ => 1 }
               $text =~ /^nginx_profile_request_turns_total(\{.*?\})/mg;

    return scalar keys %seen;
}


sub sum {
    my $sum = 0;
    $sum += $_ for @_;

    return $sum;
}
