#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
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

# what a variable of auth_request becomes must not be looked at before

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

    location /00/ {
        profile_if 00;
        alias %%TESTDIR%%/;
    }

    location /off/ {
        profile_if off;
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

is(got('default', '/a'), 'a profile', 'default, 127.0.0.1');
is(got('default', '/a', 'X-Real-IP: 127.5.6.7'), 'a profile',
   'default, 127.0.0.0/8');
is(got('default', '/a', 'X-Real-IP: ::1'), 'a profile', 'default, ::1');

for my $ip (qw/ 192.0.2.1 10.0.0.1 128.0.0.1 126.255.255.255 0.0.0.0
                255.255.255.254 ::2 fe80::1 2001:db8::1 ::ffff:10.0.0.1 /)
{
    is(got('default', '/a', "X-Real-IP: $ip"), 'a', "default, not $ip");
}

is(got('default', '/a', 'X-Real-IP: ::ffff:127.0.0.1'), 'a profile',
   'default, ::ffff:127.0.0.1');

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
       $want ? 'a profile' : 'a', "profile_allow: $list, $ip");
}

is(got('default', '/proxied/a', 'X-Real-IP: 192.0.2.1'), 'a profile',
   'the address of the proxy can be a condition');

my @unix = (unix => $t->testdir() . '/unix.sock');

is(got_from(\@unix, 'default', '/a'), 'a profile', 'default, unix socket');
is(got_from(\@unix, 'default', '/unix/a'), 'a profile', 'unix:, unix socket');
is(got_from(\@unix, 'default', '/all/a'), 'a profile', 'all, unix socket');
is(got_from(\@unix, 'default', '/v4/a'), 'a', 'not listed, unix socket');
is(got_from(\@unix, 'default', '/a', 'X-Real-IP: 192.0.2.1'), 'a',
   'default, unix socket with another address behind it');
is(got_from(\@unix, 'default', '/v4/a', 'X-Real-IP: 192.0.2.1'), 'a profile',
   'address behind a unix socket');

SKIP: {
    skip 'no IPv6', 2 unless $listen_v6;

    my $s = IO::Socket::IP->new(PeerHost => '::1', PeerPort => port(8082));
    is(got_from([ socket => $s ], 'default', '/a'), 'a profile',
       'default, ::1 itself');

    $s = IO::Socket::IP->new(PeerHost => '::1', PeerPort => port(8082));
    is(got_from([ socket => $s ], 'default', '/v4/a'), 'a',
       'not listed, ::1 itself');
}

# realip of a location runs before the content: what it says counts

is(got('condition', '/late/a'), 'a profile', 'realip of a location');
is(got('condition', '/late/a', 'X-Real-IP: 192.0.2.1'), 'a',
   'realip of a location, another address');


# conditions

is(got('condition', '/0/a'), 'a', 'condition: 0');
is(got('condition', '/empty/a'), 'a', 'condition: empty');
is(got('condition', '/1/a'), 'a profile', 'condition: 1');
is(got('condition', '/00/a'), 'a profile', 'condition: 00 is not 0');
is(got('condition', '/off/a'), 'a profile', 'condition: any other text');

is(got('condition', '/cookie/a'), 'a', 'no cookie');
is(got('condition', '/cookie/a', 'Cookie: profile=1'), 'a profile', 'cookie');
is(got('condition', '/cookie/a', 'Cookie: profile=0'), 'a', 'cookie is 0');
is(got('condition', '/cookie/a', 'Cookie: profile='), 'a', 'cookie is empty');

is(got('condition', '/two/a'), 'a', 'two arguments, none');
is(got('condition', '/two/a?b=0'), 'a', 'two arguments, one is 0');
is(got('condition', '/two/a?a=0&b=0'), 'a profile',
   'two arguments: 00');

is(got('condition', '/map/a'), 'a', 'map, default');
is(got('condition', '/map/a', 'X-Map: yes'), 'a profile', 'map, yes');
is(got('condition', '/map/a', 'X-Map: no'), 'a', 'map, no');
is(got('condition', '/set/a'), 'a', 'set');
is(got('condition', '/set/a', 'X-Set: yes'), 'a profile', 'set by an if');

is(got('condition', '/args/a'), 'a', 'the trigger itself is not seen');


# links that are signed, and that expire

my $expires = int(time()) + 1000;
my $past = int(time()) - 10;
my $good = link_md5("secret /secure/a $expires");

is(got('condition', '/secure/a'), 'a', 'secure link, none');
is(got('condition', "/secure/a?md5=$good&expires=$expires"), 'a profile',
   'secure link');
is(got('condition', "/secure/a?md5=$good&expires=" . ($expires + 1)), 'a',
   'secure link, wrong');
is(got('condition', '/secure/a?md5=' . link_md5("secret /secure/a $past")
                    . "&expires=$past"), 'a', 'secure link, expired');
is(http_get("/secure/a?$arg&md5=$good&expires=$expires",
            headers => [ 'Host: condition' ])->header('X-Profiled-Status'),
   200, 'secure link, behind the trigger');


# roles

is(got('condition', '/role/a', 'X-User: admin'), 'a profile', 'role');
is(got('condition', '/role/a', 'X-User: guest'), 'a', 'another role');
is(got('condition', '/role/a'), 401, 'no role at all');


# requests that are denied are requests

is(got('condition', '/denied/a'), 'a profile', 'deny');
is(http_get("/denied/a?$arg", headers => [ 'Host: condition' ])
   ->header('X-Profiled-Status'), 403, 'deny, status');
is(got('condition', '/denied-if/a'), 403, 'deny, and a condition');
is(http_get("/internal/a?$arg", headers => [ 'Host: condition' ])
   ->header('X-Profiled-Status'), 404, 'internal');


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
my @lines = grep { /profile: / } split(/\n/, $log);
my ($omitted) = (grep { /192\.0\.2\.77/ } @lines)[-1]
    =~ /refused by "profile_allow", (\d+) more not logged/;

cmp_ok(scalar @lines, '>=', 1, 'refused requests are logged');
cmp_ok(scalar @lines, '<=', $seconds, 'one line for a second');
cmp_ok($omitted, '>', 0, 'how many are left out');
like($lines[-1], qr/\[info\] .*trigger "performance_bar".*client: 192\.0\.2\.77/,
     'level, trigger and client');

refused_once('condition', '/0/a', qr/trigger "performance_bar" refused by/
             . ' "profile_if"', 'condition');
refused_once('condition', '/0/a', qr/trigger "X-Profile" refused by/
             . ' "profile_if"', 'header', 'X-Profile: flamegraph');

$t->write_file('error.log.before', $t->read_log());
is(got('without', '/a'), 'a', 'profile_endpoint is off');
unlike(substr($t->read_log(), length($t->read_file('error.log.before'))),
       qr/profile: /, 'no line where profile_endpoint is off');


sub refused_once {
    my ($host, $uri, $re, $name, @headers) = @_;

    # the second in which a line was written has to pass

    ok(wait_for(sub {
        @headers ? http_get($uri, headers => [ "Host: $host", @headers ])
                 : got($host, $uri);
        return $t->read_log() =~ /$re/;
    }), "log, $name");
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
