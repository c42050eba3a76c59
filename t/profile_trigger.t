#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# The trigger in the query: which arguments are a trigger, what they may
# contain, and which location decides.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Attribution ();
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ proxy rewrite ssi /);

$t->conf(<<'EOF');
default_type text/plain;
log_format arguments '$uri $args';

server {
    listen 127.0.0.1:8080;
    server_name on;

    profile_endpoint on;
    access_log %%TESTDIR%%/arguments.log arguments;

    location / {
    }

    location /ssi {
        ssi on;
        ssi_types text/plain;
    }

    location /return/ {
        return 201 "returned\n";
    }

    location /slashes/ {
        proxy_pass http://127.0.0.1:8081;
    }
}

# from one location to another: where it begins and where it ends

server {
    listen 127.0.0.1:8080;
    server_name where;

    access_log %%TESTDIR%%/arguments.log arguments;

    proxy_intercept_errors on;

    location /on/ {
        profile_endpoint on;
        alias %%TESTDIR%%/;
    }

    location /off/ {
        alias %%TESTDIR%%/;
    }

    location = /on-rewrite-off {
        profile_endpoint on;
        rewrite ^ /off/a last;
    }

    location = /off-rewrite-on {
        rewrite ^ /on/a last;
    }

    location = /off-rewrite-args-on {
        rewrite ^ /on/a?x=y last;
    }

    location = /on-rewrite-args-off {
        profile_endpoint on;
        rewrite ^ /off/a?x=y last;
    }

    location = /on-index-off/ {
        profile_endpoint on;
        index /off/a;
    }

    location = /off-index-on/ {
        index /on/a;
    }

    location = /on-try-off {
        profile_endpoint on;
        try_files /none /off/a?$args;
    }

    location = /off-try-on {
        try_files /none /on/a?$args;
    }

    location = /on-named-off {
        profile_endpoint on;
        try_files /none @off;
    }

    location = /off-named-on {
        try_files /none @on;
    }

    location @off {
        root %%TESTDIR%%;
        rewrite ^ /a break;
    }

    location @on {
        profile_endpoint on;
        root %%TESTDIR%%;
        rewrite ^ /a break;
    }

    location = /on-error-off {
        profile_endpoint on;
        error_page 404 =200 /off/a;
    }

    location = /off-error-on {
        error_page 404 =200 /on/a;
    }

    location = /on-error-named-off {
        profile_endpoint on;
        error_page 404 =200 @off;
    }

    location = /off-error-named-on {
        error_page 404 =200 @on;
    }

    location = /on-upstream-error-off {
        profile_endpoint on;
        error_page 502 =200 /off/a;
        proxy_pass http://127.0.0.1:8081/status=502/;
    }

    location = /off-upstream-error-on {
        error_page 502 =200 /on/a;
        proxy_pass http://127.0.0.1:8081/status=502/;
    }

    location = /on-accel-off {
        profile_endpoint on;
        proxy_pass http://127.0.0.1:8081/accel=/off/a;
    }

    location = /off-accel-on {
        proxy_pass http://127.0.0.1:8081/accel=/on/a;
    }

    location = /on-accel-named-off {
        profile_endpoint on;
        proxy_pass http://127.0.0.1:8081/wait=20/accel=/@off;
    }

    location = /off-off-off {
        try_files /none /off-error-off;
    }

    location = /off-error-off {
        error_page 404 =200 /off/a;
    }

    location = /off-on-off {
        try_files /none /on-error-off;
    }

    location = /on-off-on {
        profile_endpoint on;
        try_files /none /off-error-on;
    }

    # answers of the rewrite phase

    location = /on-return {
        profile_endpoint on;
        return 200 "a\n";
    }

    location = /off-return {
        return 200 "$args $request_uri\n";
    }

    location = /off-redirect {
        return 301 /other?$args;
    }

    location = /on-deny {
        profile_endpoint on;
        deny all;
    }

    location = /off-deny {
        deny all;
    }

    location = /on-deny-error-off {
        profile_endpoint on;
        deny all;
        error_page 403 =200 /off/a;
    }

    location = /off-deny-error-on {
        deny all;
        error_page 403 =200 /on/a;
    }

    location = /on-if {
        profile_endpoint on;
        root %%TESTDIR%%;

        if ($arg_not) {
            return 404;
        }

        if ($request_method = GET) {
            rewrite ^ /a break;
        }
    }

    location = /off-if {
        root %%TESTDIR%%;

        if ($request_method = GET) {
            rewrite ^ /a break;
        }
    }
}
EOF

$t->write_file('a', "a\n");
$t->write_file('ssi', '<!--#include virtual="/a?performance_bar=flamegraph" -->'
                      . "ssi\n");
mkdir($t->testdir() . '/slashes') or die "mkdir: $!\n";

run_upstream($t, 8081);
$t->run();

my $arg = 'performance_bar=flamegraph';
my $worker = ($t->worker_pids())[0];
my $before = ProfileTest::Attribution::state_of($worker);


# queries with a trigger

for my $args ($arg, "$arg&x=y", "x=y&$arg", "x=y&$arg&z=1", "&$arg", "$arg&",
              "&&$arg&&", "x&$arg", "x=&$arg", "=&$arg", "x=$arg&$arg",
              "$arg#fragment", "x=y&$arg#fragment?x", "xperformance_bar=1&$arg",
              "performance_bar_=1&$arg", "performance_ba=1&$arg", "?&$arg",
              "%&$arg", "%00&$arg", "\xff\xfe=\x80&$arg")
{
    is(got('on', "/a?$args"), 'a profile', "args: " . printable($args));
}

for my $args ("x$arg", "x=$arg", "x=y;$arg", "Performance_Bar=flamegraph",
              "performance%5Fbar=flamegraph", "performance_bar%3Dflamegraph",
              "?$arg", "%26$arg", "performance_bar+=flamegraph",
              "performance_bar[]=flamegraph", "#$arg",
              "profile_mode=cpu", "stackprof_mode=cpu&profile_format=folded")
{
    is(got('on', "/a?$args"), 'a', "\"$args\" is no trigger");
}

is(got('on', "/a"), 'a', 'a request without arguments is not profiled');
is(got('on', "/a?"), 'a', 'a request with empty arguments is not profiled');
is(got('on', "/$arg"), 404, 'a trigger in the path has no effect');
is(got('on', "/a%3F$arg"), 404,
    'a trigger after an escaped question mark has no effect');

is(http_post('/return/', $arg, headers => [ 'Host: on',
             'Content-Type: application/x-www-form-urlencoded' ])->status(),
   201, 'a trigger in a form has no effect');


# the parameters of a trigger

for my $word (qw/ wall cpu /) {
    for my $name (qw/ profile_mode stackprof_mode /) {
        is(info('on', "/a?$arg&$name=$word")->{mode}, $word,
            "$name=$word chooses the mode");
    }

    is(info('on', "/a?profile_mode=$word&$arg")->{mode}, $word,
       "profile_mode=$word may precede the trigger");
}

for my $hz (1, 99, 10000, '007') {
    is(info('on', "/a?$arg&profile_frequency=$hz")->{frequency_asked}, $hz + 0,
       "profile_frequency=$hz chooses the frequency");
}

like(get('on', "/a?$arg&profile_format=folded")->header('Content-Disposition'),
     qr/-wall-.*\.folded\.txt"/, 'profile_format chooses the format');
like(get('on', "/a?x=1&profile_mode=cpu&y=2&profile_format=folded&z=3"
               . "&profile_frequency=50&$arg&mode=other&format=xml&frequency=x")
     ->header('Content-Disposition'), qr/-cpu-.*\.folded\.txt"/,
    'arguments of the application may stand between parameters');


# how it is asked for

is(got('on', "http://on/a?$arg"), 'a profile',
    'a URI in absolute form may have a trigger');
is(got('on', "//a?$arg"), 'a profile',
    'a path with merged slashes may have a trigger');
is(got('on', "/x/../a?$arg"), 'a profile',
    'a normalized path may have a trigger');
is(got('on', "/%61?$arg"), 'a profile', 'an escaped path may have a trigger');
is(got('on', "/a?" . 'x' x 6000 . "&$arg"), 'a profile',
    'a trigger may follow a long argument');
is(got('on', '/a?' . 'x=y&' x 1500 . $arg), 'a profile',
    'a trigger may follow many arguments');
is(got('on', '/a?' . 'performance_bar_=1&' x 300 . $arg), 'a profile',
   'a trigger may follow many arguments with similar names');
is(http("GET /a?$arg HTTP/1.0\r\nHost: on\r\n\r\n")
   ->header('X-Profiled-Status'), 200,
    'a request of HTTP/1.0 may have a trigger');
is(http("GET /a?$arg HTTP/1.0\r\n\r\n")->header('X-Profiled-Status'), 200,
   'a request without headers may have a trigger');

for my $method (qw/ HEAD POST PUT DELETE OPTIONS PROPFIND X /) {
    my $r = http("$method /return/?$arg HTTP/1.1\r\nHost: on\r\n"
                 . "Connection: close\r\n\r\n");

    is($r->header('X-Profiled-Status'), 201,
        "a request with the method $method may have a trigger");
}

# HTTP/0.9 has neither a status nor headers

like(http("GET /a?$arg&profile_format=folded\r\n"), qr/^(?:\S.* \d+\n)+\z/,
     'a request of HTTP/0.9 may have a trigger');
is(http("GET /a?x=y\r\n") . '', "a\n",
    'a request of HTTP/0.9 without a trigger gets its body');


# subrequests have no trigger of their own

my $r = get('on', '/ssi');

is($r->status(), 200, 'a request whose subrequest has the trigger succeeds');
is($r->body(), "a\nssi\n",
    'a trigger of a subrequest does not change the body');
is($r->header('X-Profile-Id'), undef,
    'a trigger of a subrequest causes no profile');
is(got('on', "/ssi?$arg"), 'a profile',
    'a main request with a subrequest is profiled');


# the location that decides

for my $how (qw/ rewrite rewrite-args index try named error error-named
                 upstream-error accel deny-error /)
{
    my $slash = $how eq 'index' ? '/' : '';

    is(got('where', "/off-$how-on$slash?$arg"), 'a profile',
       "the location after $how permits the trigger");
    is(got('where', "/on-$how-off$slash?$arg"), 'a',
       "the location after $how refuses the trigger");
}

is(got('where', "/on-accel-named-off?$arg"), 404,
   'an X-Accel-Redirect to an unknown location refuses the trigger');
is(got('where', "/on/a?$arg"), 'a profile', 'a location may permit triggers');
is(got('where', "/off/a?$arg"), 'a', 'a location may refuse triggers');
is(got('where', "/off-off-off?$arg"), 'a',
    'three locations refuse the trigger');
is(got('where', "/off-on-off?$arg"), 'a',
    'the last of three locations refuses the trigger');
is(got('where', "/on-off-on?$arg"), 'a profile',
    'the last of three locations permits the trigger');
is(got('where', "/on-return?$arg"), 'a profile',
    'the response of "return" is profiled');
is(get('where', "/off-return?$arg")->body(), "$arg /off-return?$arg\n",
   'without permission, the application gets its argument in "return"');
like(get('where', "/off-redirect?$arg")->header('Location'),
     qr/\/other\?\Q$arg\E$/,
    'without permission, a redirect keeps the argument');
is(got('where', "/on-deny?$arg"), 'a profile', 'a denied request is profiled');
is(got('where', "/off-deny?$arg"), 403,
    'a denied request without permission gets 403');
is(got('where', "/on-if?$arg"), 'a profile', 'a request in "if" is profiled');
is(got('where', "/on-if?$arg&not=1"), 'a profile',
    'a request in another "if" is profiled');
is(got('where', "/off-if?$arg"), 'a',
    'a request in "if" without permission is not profiled');

# the status is the one that the client would have got

is(get('where', "/off-error-on?$arg")->header('X-Profiled-Status'), 200,
   'the status of an error page is that of error_page');
is(get('where', "/on-deny?$arg")->header('X-Profiled-Status'), 403,
   'the original status of a denied request is 403');
is(get('where', "/on-if?$arg&not=1")->header('X-Profiled-Status'), 404,
   'the original status of a request in "if" is 404');


# an error in the trigger is told where it counts

is(got('where', "/on/a?$arg&profile_mode=x"), 400,
    'a wrong parameter has the status 400');
is(got('where', "/off/a?$arg&profile_mode=x"), 'a',
    'a wrong parameter without permission has no effect');
is(got('where', "/off-try-on?$arg&profile_mode=x"), 400,
   'a wrong parameter counts in the last location');
is(got('where', "/on-return?$arg&profile_mode=x"), 400,
    'a wrong parameter replaces the response of "return"');
is(got('where', "/on-deny?$arg&profile_mode=x"), 400,
    'a wrong parameter replaces the response of "deny"');
is(scalar(grep { /profile_mode=x/ } upstream_lines($t)), 0,
   'no upstream gets a request with a wrong parameter');

is(got('where', "/on-accel-off?$arg&profile_mode=x"), 400,
   'a wrong parameter prevents a redirect of the application');


# captures that were not wanted in the end leave no trace

got('where', "/off-$_?$arg") for qw/ off-off on-off redirect deny if return /;

ok(wait_for(sub { ProfileTest::Attribution::state_of($worker) eq $before }),
   'the worker has the timers, signals and threads of the start')
    or diag("$before\n", ProfileTest::Attribution::state_of($worker));


# the log has what is left, and what is put back

$t->stop();

my $log = $t->read_file('arguments.log');

like($log, qr{^/a x=y&z=1$}m, 'the log of a permitted request has no trigger');
like($log, qr{^/off/a \Q$arg\E$}m,
    'the log of a refused request has the trigger');


sub get {
    my ($host, $uri) = @_;
    return http_get($uri, headers => [ "Host: $host" ]);
}


sub info {
    my ($host, $uri) = @_;
    return ProfileTest::Profile->new(get($host, $uri))->json()->{profile_info};
}


# "a profile", "a" (the contents of the file), or the status
sub got {
    my $r = get(@_);

    return $r->status() if $r->status() ne 200;

    if (defined $r->header('X-Profile-Id')) {
        ProfileTest::Profile->new($r);
        return 'a profile';
    }

    return $r->body() eq "a\n" ? 'a' : "neither: $r";
}


sub printable {
    my ($s) = @_;

    $s =~ s/([^ -~])/sprintf('\x%02x', ord($1))/ge;
    return $s;
}
