#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# Who may: profile_allow and profile_if, with what other modules know of the
# client.

use strict;
use warnings;

use Digest::MD5 qw/ md5_base64 /;
use File::Basename qw/ dirname /;
use IO::Socket::IP;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()
    ->has(qw/ access auth_request geo map realip rewrite secure_link /);

my $v6 = IO::Socket::IP->new(LocalHost => '::1', LocalPort => port(8082),
                             Listen => 1, ReuseAddr => 1);
my $listen_v6 = $v6 ? 'listen [::1]:%%PORT_8082%%;' : '';
undef $v6;

$t->conf(<<"EOF");
default_type text/plain;

map \$http_x_map \$mapped {
    default 0;
    yes 1;
    no '';
}

# nginx must not evaluate a variable of auth_request before the access phase

map \$role \$role_may {
    default 0;
    admin 1;
}

geo \$realip_remote_addr \$from_proxy {
    default 0;
    127.0.0.0/8 1;
}

server {
    listen 127.0.0.1:8080;
    listen unix:%%TESTDIR%%/unix.sock;
    $listen_v6

    server_name default;

    set_real_ip_from 127.0.0.1;
    set_real_ip_from unix:;
    real_ip_header X-Real-IP;

    profile_endpoint on;

    location / {
    }

    location /v4/ {
        profile_allow 192.0.2.0/25 198.51.100.7 10.1.2.3;
        alias %%TESTDIR%%/;
    }

    location /v6/ {
        profile_allow 2001:db8::/33;
        alias %%TESTDIR%%/;
    }

    location /unix/ {
        profile_allow unix:;
        alias %%TESTDIR%%/;
    }

    location /all/ {
        profile_allow all;
        alias %%TESTDIR%%/;
    }

    location /nobody/ {
        profile_allow 0.0.0.0/32;
        alias %%TESTDIR%%/;
    }

    location /proxied/ {
        profile_allow all;
        profile_if \$from_proxy;
        alias %%TESTDIR%%/;
    }
}

# conditions

server {
    listen 127.0.0.1:8080;
    server_name condition;

    profile_endpoint on;

    location /0/ {
        profile_if 0;
        alias %%TESTDIR%%/;
    }

    location /empty/ {
        profile_if "";
        alias %%TESTDIR%%/;
    }

    location /1/ {
        profile_if 1;
        alias %%TESTDIR%%/;
    }

    location /cookie/ {
        profile_if \$cookie_profile;
        alias %%TESTDIR%%/;
    }

    location /two/ {
        profile_if \$arg_a\$arg_b;
        alias %%TESTDIR%%/;
    }

    location /map/ {
        profile_if \$mapped;
        alias %%TESTDIR%%/;
    }

    location /set/ {
        set \$may 0;

        if (\$http_x_set = yes) {
            set \$may 1;
        }

        profile_if \$may;
        alias %%TESTDIR%%/;
    }

    location /secure/ {
        secure_link \$arg_md5,\$arg_expires;
        secure_link_md5 "secret \$uri \$arg_expires";
        profile_if \$secure_link;
        alias %%TESTDIR%%/;
    }

    location /args/ {
        profile_if \$arg_performance_bar\$http_x_profile;
        alias %%TESTDIR%%/;
    }

    location /role/ {
        auth_request /auth;
        auth_request_set \$role \$upstream_http_x_role;
        profile_if \$role_may;
        alias %%TESTDIR%%/;
    }

    location = /auth {
        internal;
        proxy_pass http://127.0.0.1:8081;
    }

    location /denied/ {
        deny all;
    }

    location /denied-if/ {
        profile_if 0;
        deny all;
    }

    location /internal/ {
        internal;
    }

    # the address becomes known later than in a server

    location /late/ {
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Real-IP;
        alias %%TESTDIR%%/;
    }
}

server {
    listen 127.0.0.1:8080;
    server_name without;

    location / {
    }
}

server {
    listen 127.0.0.1:8081;

    location / {
        if (\$http_x_user = '') {
            return 401;
        }

        add_header X-Role \$http_x_user;
        return 204;
    }
}
EOF

$t->write_file('a', "a\n");
$t->run();

my $arg = 'performance_bar=flamegraph';


# addresses

is(got('default', '/a'), 'a profile', 'by default, 127.0.0.1 may profile');
is(got('default', '/a', 'X-Real-IP: 127.5.6.7'), 'a profile',
   'by default, 127.0.0.0/8 may profile');
is(got('default', '/a', 'X-Real-IP: ::1'), 'a profile',
    'by default, ::1 may profile');

for my $ip (qw/ 192.0.2.1 10.0.0.1 128.0.0.1 126.255.255.255 0.0.0.0
                255.255.255.254 ::2 fe80::1 2001:db8::1 ::ffff:10.0.0.1 /)
{
    is(got('default', '/a', "X-Real-IP: $ip"), 'a',
        "by default, $ip may not profile");
}

is(got('default', '/a', 'X-Real-IP: ::ffff:127.0.0.1'), 'a profile',
   'by default, ::ffff:127.0.0.1 may profile');

for my $case ([ v4 => '192.0.2.0', 1 ], [ v4 => '192.0.2.127', 1 ],
              [ v4 => '192.0.2.128', 0 ], [ v4 => '198.51.100.7', 1 ],
              [ v4 => '198.51.100.8', 0 ], [ v4 => '127.0.0.1', 0 ],
              [ v4 => '::ffff:10.1.2.3', 1 ], [ v4 => '::1', 0 ],
              [ v6 => '2001:db8::1', 1 ],
              [ v6 => '2001:db8:7fff:ffff::1', 1 ],
              [ v6 => '2001:db8:8000::', 0 ], [ v6 => '192.0.2.1', 0 ],
              [ v6 => '::1', 0 ], [ unix => '127.0.0.1', 0 ],
              [ all => '192.0.2.1', 1 ], [ all => '2001:db8::1', 1 ],
              [ nobody => '127.0.0.1', 0 ], [ nobody => '192.0.2.1', 0 ])
{
    my ($list, $ip, $want) = @$case;

    is(got('default', "/$list/a", "X-Real-IP: $ip"),
       $want ? 'a profile' : 'a', "profile_allow $list decides about $ip");
}

is(got('default', '/proxied/a', 'X-Real-IP: 192.0.2.1'), 'a profile',
   'profile_if may test the address of the proxy');

my @unix = (unix => $t->testdir() . '/unix.sock');

is(got_from(\@unix, 'default', '/a'), 'a profile',
    'by default, clients of a unix socket may profile');
is(got_from(\@unix, 'default', '/unix/a'), 'a profile',
    '"unix:" admits clients of a unix socket');
is(got_from(\@unix, 'default', '/all/a'), 'a profile',
    '"all" admits clients of a unix socket');
is(got_from(\@unix, 'default', '/v4/a'), 'a',
    'a list without unix: refuses clients of a unix socket');
is(got_from(\@unix, 'default', '/a', 'X-Real-IP: 192.0.2.1'), 'a',
   'by default, a remote client behind a unix socket may not profile');
is(got_from(\@unix, 'default', '/v4/a', 'X-Real-IP: 192.0.2.1'), 'a profile',
   'a listed address behind a unix socket may profile');

SKIP: {
    skip 'no IPv6', 2 unless $listen_v6;

    my $s = IO::Socket::IP->new(PeerHost => '::1', PeerPort => port(8082));
    is(got_from([ socket => $s ], 'default', '/a'), 'a profile',
       'by default, a connection from ::1 may profile');

    $s = IO::Socket::IP->new(PeerHost => '::1', PeerPort => port(8082));
    is(got_from([ socket => $s ], 'default', '/v4/a'), 'a',
       'a list without ::1 refuses a connection from ::1');
}

# realip of a location runs before the content: what it says counts

is(got('condition', '/late/a'), 'a profile',
    'realip of a location applies to profile_allow');
is(got('condition', '/late/a', 'X-Real-IP: 192.0.2.1'), 'a',
   'an address that realip of a location sets may be refused');


# conditions

is(got('condition', '/0/a'), 'a', 'profile_if refuses the value 0');
is(got('condition', '/empty/a'), 'a', 'profile_if refuses an empty value');
is(got('condition', '/1/a'), 'a profile', 'profile_if admits the value 1');
is(got('condition', '/two/a?a=0&b=0'), 'a profile',
    'profile_if admits the value 00, which is not 0');
is(got('condition', '/two/a?a=off'), 'a profile',
    'profile_if admits any other text of a variable');

is(got('condition', '/cookie/a'), 'a',
    'a condition on a cookie refuses a request without it');
is(got('condition', '/cookie/a', 'Cookie: profile=1'), 'a profile',
    'a condition on a cookie admits a request with it');
is(got('condition', '/cookie/a', 'Cookie: profile=0'), 'a',
    'a cookie with the value 0 is refused');
is(got('condition', '/cookie/a', 'Cookie: profile='), 'a',
    'an empty cookie is refused');

is(got('condition', '/two/a'), 'a',
    'a condition on two empty arguments refuses');
is(got('condition', '/two/a?b=0'), 'a',
    'a condition on two arguments, of which one is 0, refuses');
is(got('condition', '/two/a?a=0&b=0'), 'a profile',
   'a condition on two arguments with the value 00 admits');

is(got('condition', '/map/a'), 'a', 'the default of a map may refuse');
is(got('condition', '/map/a', 'X-Map: yes'), 'a profile',
    'a value of a map may admit');
is(got('condition', '/map/a', 'X-Map: no'), 'a',
    'a value of a map may refuse');
is(got('condition', '/set/a'), 'a', 'a variable of "set" may refuse');
is(got('condition', '/set/a', 'X-Set: yes'), 'a profile',
    'a variable that "if" sets may admit');

is(got('condition', '/args/a'), 'a',
    'a condition on $args does not see the trigger');


# links that are signed, and that expire

my $expires = int(time()) + 1000;
my $past = int(time()) - 10;
my $good = link_md5("secret /secure/a $expires");

is(got('condition', '/secure/a'), 'a',
    'a request without a secure link is refused');
is(got('condition', "/secure/a?md5=$good&expires=$expires"), 'a profile',
   'a secure link is admitted');
is(got('condition', "/secure/a?md5=$good&expires=" . ($expires + 1)), 'a',
   'a wrong secure link is refused');
is(got('condition', '/secure/a?md5=' . link_md5("secret /secure/a $past")
                    . "&expires=$past"), 'a',
    'an expired secure link is refused');
is(http_get("/secure/a?$arg&md5=$good&expires=$expires",
            headers => [ 'Host: condition' ])->header('X-Profiled-Status'),
   200, 'a secure link may follow the trigger');


# roles

is(got('condition', '/role/a', 'X-User: admin'), 'a profile',
    'a user of the required role is admitted');
is(got('condition', '/role/a', 'X-User: guest'), 'a',
    'a user of another role is refused');
is(got('condition', '/role/a'), 401, 'a user without a role gets 401');


# requests that are denied are requests

is(got('condition', '/denied/a'), 'a profile',
    'a request that "deny" refuses is profiled');
is(http_get("/denied/a?$arg", headers => [ 'Host: condition' ])
   ->header('X-Profiled-Status'), 403,
    'the profile of a denied request has its status');
is(got('condition', '/denied-if/a'), 403,
    'a denied request does not fulfil a condition');
is(http_get("/internal/a?$arg", headers => [ 'Host: condition' ])
   ->header('X-Profiled-Status'), 404,
    'the profile of an internal location has the status 404');


# Who was refused, and by what, is in the log: one line for each second at
# most.  The first request of the next second tells how many were left out.

$t->write_file('error.log.before', $t->read_log());

my $begin = time();
my $refused = 0;

while ($refused < 20 || time() - $begin < 1.2) {
    got('default', '/a', 'X-Real-IP: 192.0.2.77');
    $refused++;
    sleep(0.01);
}

my $seconds = int(time() - $begin) + 2;
my $log = substr($t->read_log(), length($t->read_file('error.log.before')));
my @lines = grep { /profile: / && !/\[debug\]/ } split(/\n/, $log);
my ($omitted) = (grep { /192\.0\.2\.77/ } @lines)[-1]
    =~ /refused by "profile_allow", (\d+) more not logged/;

cmp_ok(scalar @lines, '>=', 1, 'refused requests are logged');
cmp_ok(scalar @lines, '<=', $seconds,
    'at most one refusal in a second is logged');
cmp_ok($omitted, '>', 0, 'the log has the number of omitted messages');
like($lines[-1], qr/\[info\] .*trigger "performance_bar".*client: 192\.0\.2\.77/,
     'the message has the level info, the trigger and the client');

refused_once('condition', '/0/a', qr/trigger "performance_bar" refused by/
             . ' "profile_if"', 'condition');
refused_once('condition', '/0/a', qr/trigger "X-Profile" refused by/
             . ' "profile_if"', 'header', 'X-Profile: flamegraph');

$t->write_file('error.log.before', $t->read_log());
is(got('without', '/a'), 'a',
    'a location with profile_endpoint off ignores the trigger');
unlike(substr($t->read_log(), length($t->read_file('error.log.before'))),
       qr/\[(?!debug)\w+\] .*profile: /, 'a location with profile_endpoint off logs no refusal');


sub refused_once {
    my ($host, $uri, $re, $name, @headers) = @_;

    # the second in which a line was written has to pass

    ok(wait_for(sub {
        @headers ? http_get($uri, headers => [ "Host: $host", @headers ])
                 : got($host, $uri);
        return $t->read_log() =~ /$re/;
    }), "the log names the reason: $name");
}


sub link_md5 {
    my ($s) = @_;

    my $md5 = md5_base64($s);
    $md5 =~ tr{+/}{-_};

    return $md5;
}


sub got { return got_from([], @_) }


# "a profile", "a" (the contents of the file), or the status
sub got_from {
    my ($extra, $host, $uri, @headers) = @_;

    $uri .= ($uri =~ /\?/ ? '&' : '?') . $arg
        unless grep { /^X-Profile/ } @headers;

    my $r = http_get($uri, headers => [ "Host: $host", @headers ], @$extra);

    return $r->status() if $r->status() ne 200;
    return 'a profile' if $r->header('X-Profile-Id');
    return $r->body() eq "a\n" ? 'a' : "neither: $r";
}
