#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# The trigger in a header: what it may say, and that it is taken out of the
# headers, and put back where it is not permitted, without a trace.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ proxy rewrite /);

my $lua = $t->has_module('lua');
my $lua_locations = !$lua ? '' : <<'EOF';
        location /lua-add-refused/ {
            profile_endpoint on;
            profile_if 0;
            rewrite_by_lua_block {
                ngx.req.set_header("X-Added", "yes")
            }
            proxy_pass http://127.0.0.1:8081/;
        }

        location /lua-remove-refused/ {
            profile_endpoint on;
            profile_if 0;
            rewrite_by_lua_block {
                ngx.req.clear_header("X-2")
            }
            proxy_pass http://127.0.0.1:8081/;
        }

        location /lua-see/ {
            profile_endpoint on;
            profile_if 0;
            rewrite_by_lua_block {
                ngx.req.set_header("X-Seen", ngx.var.http_x_profile or "no")
            }
            proxy_pass http://127.0.0.1:8081/;
        }
EOF

$t->conf(<<"EOF");
default_type text/plain;
log_format seen '\$uri "\$http_x_profile"';

server {
    listen 127.0.0.1:8080;
    server_name on;

    profile_endpoint on;
    access_log %%TESTDIR%%/seen.log seen;

    location / {
    }

    location /return/ {
        return 201 "returned\\n";
    }
}

server {
    listen 127.0.0.1:8080;
    server_name where;

    location = /on {
        profile_endpoint on;
        return 200 "a\\n";
    }

    location = /off-on/ {
        index /on;
    }

    location = /off-off-on/ {
        index /off-on/;
    }

    location = /off-on-off/ {
        index /on-off/;
    }

    location = /on-off/ {
        profile_endpoint on;
        index /off/;
    }

    location = /refused-on/ {
        profile_endpoint on;
        profile_if 0;
        index /on;
    }

    location = /on-refused/ {
        profile_endpoint on;
        index /refused/;
    }

    location /off/ {
        proxy_pass http://127.0.0.1:8081;
    }

    location /refused/ {
        profile_endpoint on;
        profile_if 0;
        proxy_pass http://127.0.0.1:8081;
    }

    location /address/ {
        profile_endpoint on;
        profile_allow 192.0.2.1;
        proxy_pass http://127.0.0.1:8081;
    }

    # the application shows the request in an error page: it is not
    # permitted there, but it was where the upstream was asked

    location /shown/ {
        profile_endpoint on;
        error_page 404 = \@shown;
        proxy_intercept_errors on;
        proxy_pass http://127.0.0.1:8081/status=404/first;
    }

    location \@shown {
        proxy_pass http://127.0.0.1:8081;
    }

    location /permitted/ {
        profile_endpoint on;
        proxy_pass http://127.0.0.1:8081;
    }

$lua_locations
}

server {
    listen 127.0.0.1:8080;
    server_name other;

    profile_header X-Flame;
    profile_endpoint on;

    location / {
        proxy_pass http://127.0.0.1:8081;
        profile_if 0;
    }
}

# no client is permitted, and no header is examined

server {
    listen 127.0.0.1:8080;
    server_name without;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }
}
EOF

$t->write_file('a', "a\n");

run_upstream($t, 8081);
$t->run();


# the parameters of a trigger

is(got('on', '/a', 'X-Profile: flamegraph'), 'wall speedscope 1000',
   'a header may be a trigger');
is(got('on', '/a', 'x-pRofIle: flamegraph'), 'wall speedscope 1000',
   'the case of the header\'s name does not matter');

for my $case ([ '; mode=cpu', 'cpu speedscope 1000' ],
              [ ';mode=cpu', 'cpu speedscope 1000' ],
              [ " ;\t mode=cpu \t", 'cpu speedscope 1000' ],
              [ '; mode=wall', 'wall speedscope 1000' ],
              [ '; frequency=99', 'wall speedscope 99' ],
              [ '; format=speedscope', 'wall speedscope 1000' ],
              [ '; format=folded', 'wall folded' ],
              [ '; mode=cpu; format=folded; frequency=1', 'cpu folded' ],
              [ ';mode=cpu;frequency=10;', 'cpu speedscope 10' ],
              [ ';;; ; mode=cpu;; ; ', 'cpu speedscope 1000' ],
              [ ';', 'wall speedscope 1000' ],
              [ '; frequency=7;mode=cpu', 'cpu speedscope 7' ])
{
    my ($params, $want) = @$case;
    is(got('on', '/a', "X-Profile: flamegraph$params"), $want,
       "a header may have parameters: $params");
}

is(got('on', '/return/', 'X-Profile: flamegraph'), 'wall speedscope 1000',
   'a response of the rewrite phase is profiled');

for my $method (qw/ HEAD POST X /) {
    my $r = http("$method /return/ HTTP/1.1\r\nHost: on\r\n"
                 . "Connection: close\r\nX-Profile: flamegraph\r\n\r\n");

    is($r->header('X-Profiled-Status'), 201,
       "a request with the method $method is profiled");
}

is(http("GET /a HTTP/1.0\r\nX-Profile: flamegraph\r\n\r\n")
   ->header('X-Profiled-Status'), 200, 'the trigger may be the only header');


# headers that are not a trigger

is(got('on', '/a'), 'none', 'a request without headers is not profiled');
is(got('on', '/a', 'X-Profiles: flamegraph'), 'none',
   'a header with a longer name is no trigger');
is(got('on', '/a', 'X-Flame: flamegraph'), 'none',
   'the header of another server is no trigger');
is(got('on', '/a', 'X_Profile: flamegraph'), 'none',
   'a header with an underscore is no trigger');
is(got('on', '/a', 'Cookie: X-Profile=flamegraph'), 'none',
   'a cookie with the name of the header is no trigger');
is(got('other', '/off', 'X-Profile: flamegraph'), 'none',
   'a server with another header ignores this one');


# both: the query counts, and neither gets to the application

my $arg = 'performance_bar=flamegraph';

is(got('on', "/a?$arg&profile_frequency=5",
       'X-Profile: flamegraph; frequency=6'), 'wall speedscope 5',
   'parameters of the query precede those of the header');
is(got('on', "/a?$arg", 'X-Profile: nonsense'), 'wall speedscope 1000',
   'a trigger in the query precedes a wrong header');
is(got('on', '/a?profile_frequency=5', 'X-Profile: flamegraph; frequency=6'),
   'wall speedscope 6', "a header ignores the parameters of the query");


# the location that decides

is(got('where', '/on', 'X-Profile: flamegraph'), 'wall speedscope 1000',
   'a location may permit the header');
is(got('where', '/off-on/', 'X-Profile: flamegraph'), 'wall speedscope 1000',
   'the second location may permit the header');
is(got('where', '/off-off-on/', 'X-Profile: flamegraph'),
   'wall speedscope 1000', 'the third location may permit the header');
is(got('where', '/refused-on/', 'X-Profile: flamegraph'),
   'wall speedscope 1000',
   'a location after a refused condition may permit the header');
is(got('where', '/on-off/', 'X-Profile: flamegraph'), 'none',
   'the second location may refuse the header');
is(got('where', '/off-on-off/', 'X-Profile: flamegraph'), 'none',
   'the third location may refuse the header');
is(got('where', '/on-refused/', 'X-Profile: flamegraph'), 'none',
   'a condition in the second location may refuse the header');


# Where it is not permitted, the upstream gets all headers, in their places.
# nginx keeps 20 of them in a piece: all borders are crossed.

my %ends = map { $_ => $_ } qw{ /off/ /refused/ /address/ };

$ends{$_} = '/off/' for qw{ /on-off/ /off-on-off/ };
$ends{'/on-refused/'} = '/refused/';

for my $n (0, 1, 2, 18, 19, 20, 21, 39, 40, 41) {
    for my $at (0, 1, $n / 2, $n - 1, $n) {
        next if $at < 0 || $at > $n || $at != int($at);

        my @headers = map { "X-$_: $_" } 1 .. $n;
        splice(@headers, $at, 0, 'X-Profile: flamegraph');

        for my $uri ($n == 2 ? sort keys %ends : '/refused/') {
            is(upstream('where', $uri, @headers),
               upstream('without', $ends{$uri}, @headers),
               "$uri gets header $at of $n back");
        }
    }
}


# where it is, the upstream gets the other headers

for my $n (0, 1, 2, 18, 19, 20, 21, 39, 40, 41) {
    for my $at (0, 1, $n / 2, $n - 1, $n) {
        next if $at < 0 || $at > $n || $at != int($at);

        my @headers = map { "X-$_: $_" } 1 .. $n;
        my $want = upstream('without', '/permitted/', @headers);

        splice(@headers, $at, 0, 'X-Profile: flamegraph; format=folded');

        is(permitted('/permitted/', @headers), $want,
           "header $at of $n is taken out");
    }
}

my @both = ("X-Profile: flamegraph", 'X-1: 1');

is(permitted("/permitted/?x=y&$arg", @both),
   upstream('without', '/permitted/?x=y', 'X-1: 1'),
   'query and header are taken out');


# a header of another server is the application's

is(upstream('other', '/x', 'X-1: 1', 'X-Profile: flamegraph', 'X-2: 2'),
   upstream('without', '/x', 'X-1: 1', 'X-Profile: flamegraph', 'X-2: 2'),
   "the header of another server remains");


# the header is removed for upstreams, and restored for the error page

like(get('where', '/shown/x', 'X-Profile: flamegraph', 'X-1: 1')->body(),
     qr/^X-Profile: flamegraph\r\nX-1: 1\r\n/m,
     'an error page elsewhere gets the header back');


# Lua changes the headers meanwhile

SKIP: {
    skip 'no lua', 4 unless $lua;

    my @headers = ('X-1: 1', 'X-Profile: flamegraph', 'X-2: 2');

    my $got = upstream('where', '/lua-add-refused/', @headers);

    is(join(' ', $got =~ /^(X-[\w-]+):/mg), 'X-1 X-2 X-Added X-Profile',
       'the header returns after another one was added');

    $got = upstream('where', '/lua-remove-refused/', @headers);

    is(join(' ', $got =~ /^(X-[\w-]+):/mg), 'X-1 X-Profile',
       'the header returns after another one was removed');

    $got = upstream('where', '/lua-add-refused/', 'X-Profile: flamegraph');

    is(join(' ', $got =~ /^(X-[\w-]+):/mg), 'X-Added X-Profile',
       'the header returns beside one that was added');

    like(upstream('where', '/lua-see/', @headers), qr/^X-Seen: no\r$/m,
         'a condition does not see the header');
}


$t->stop();

my $log = $t->read_file('seen.log');

like($log, qr{^/a "-"$}m, 'the variable of the header is empty');
unlike($log, qr{^/a "f}m, 'the variable of the header never has a value');


sub get {
    my ($host, $uri, @headers) = @_;
    return http_get($uri, headers => [ "Host: $host", @headers ]);
}


# the request as the upstream got it, by its answer
sub upstream {
    my $r = get(@_);

    return "a profile\n" if $r->header('X-Profile-Id');
    return $r->body();
}


# returns the request that the upstream received, if the response is replaced
sub permitted {
    my $r = get('where', @_);

    return "no profile: $r\n" unless $r->header('X-Profile-Id');
    return (upstream_requests($t))[-1];
}


# "none", the status, or "MODE FORMAT FREQUENCY"
sub got {
    my $r = get(@_);

    return $r->status() if $r->status() ne 200;
    return 'none' unless $r->header('X-Profile-Id');

    my ($mode, $format) = ($r->header('Content-Disposition') // '')
        =~ /-(wall|cpu)-\w+\.(speedscope|folded)\./
        or return "neither: $r";

    return "$mode $format" if $format ne 'speedscope';

    my $info = ProfileTest::Profile->new($r)->json()->{profile_info};

    return "$mode $format $info->{frequency_asked}";
}
