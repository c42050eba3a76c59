#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: beside
#
# Hosts that the default list of profile_allow admits: addresses, "localhost",
# and names of servers.  A page of another site, whose name resolves to this
# machine, sends the other hosts.  The console, metrics, triggers and the bar
# know each form of a host that a request may have.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ rewrite /);

$t->conf(<<'EOF');
server {
    listen 127.0.0.1:8080;
    listen unix:%%TESTDIR%%/unix.sock;

    server_name ops.example *.wild.example .dot.example _ "" ~^re\.(.+)$
                tail.example.* *.single .one $hostname;

    profile_endpoint on;
    profile_bar on;

    location / { }
    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }

    location /listed/ {
        profile_allow 127.0.0.1;
        alias %%TESTDIR%%/;
    }

    location /listed/-/ {
        profile_allow 127.0.0.1;
        profile_console;
    }

    location = /listed/metrics {
        profile_allow 127.0.0.1;
        profile_metrics;
    }
}

server {
    listen 127.0.0.1:8080;
    server_name second.example;
    return 200 second;
}

server {
    listen 127.0.0.1:8081;
    server_name only.example;
    profile_endpoint on;
    location /-/profile/ { profile_console; }
}
EOF

$t->write_file('a', "a\n");
$t->write_file('page.html', '<html><body>page</body></html>');
$t->run();

my ($own) = split /\n/, `uname -n`;

# hosts, and whether their requests are admitted

my @hosts = (
    [ 'localhost', 1 ],
    [ 'LocalHost', 1 ],
    [ 'localhost.', 1 ],
    [ 'localhost:8080', 1 ],
    [ 'localhost.:8080', 1 ],
    [ 'a.localhost', 1 ],
    [ 'a.b.localhost:1', 1 ],
    [ 'xlocalhost', 0 ],
    [ 'localhost.evil.test', 0 ],
    [ '127.0.0.1', 1 ],
    [ '127.0.0.1:80', 1 ],
    [ '192.0.2.1', 1 ],
    [ '127.0.0.1.', 1 ],
    [ '127.0.0.1.evil.test', 0 ],
    [ '127.0.0.1.evil.test:8080', 0 ],
    [ '127.1', 0 ],
    [ '2130706433', 0 ],
    [ '[::1]', 1 ],
    [ '[::1]:8080', 1 ],
    [ '[::ffff:127.0.0.1]', 1 ],
    [ '[evil.test]', 0 ],
    [ 'ops.example', 1 ],
    [ 'OPS.Example', 1 ],
    [ 'ops.example.', 1 ],
    [ 'ops.example:8080', 1 ],
    [ 'ops.example.:8080', 1 ],
    [ 'ops.example.evil.test', 0 ],
    [ 'xops.example', 0 ],
    [ 'a.wild.example', 1 ],
    [ 'A.B.Wild.example:81', 1 ],
    [ 'xwild.example', 0 ],
    [ 'dot.example', 1 ],
    [ 'a.dot.example', 1 ],
    [ 'xdot.example', 0 ],
    [ lc $own, 1 ],
    [ '_', 0 ],
    [ 're.evil.test', 0 ],
    [ 'tail.example.test', 0 ],
    [ 'evil.single', 0 ],
    [ 'evil.one', 0 ],
    [ 'evil.test', 0 ],
    [ 'evil', 0 ],
);

for my $case (@hosts) {
    my ($host, $admitted) = @$case;
    my $name = "the host \"$host\" is " . ($admitted ? 'admitted' : 'refused');

    is(seen([ "Host: $host" ]), $admitted ? 'all' : 'none', $name);
    is(seen([ "Host: $host", "Origin: http://$host",
              'Sec-Fetch-Site: same-origin' ]),
       $admitted ? 'all' : 'none', "$name, as its own origin");
    is(seen([ "Host: $host" ], '/listed'), 'all',
       "the host \"$host\" is admitted by an explicit list");
}

is(seen([ 'Host: evil.test' ], '', unix => $t->testdir() . '/unix.sock'),
   'none', 'the rule holds for unix sockets');
is(seen([ 'Host: localhost' ], '', unix => $t->testdir() . '/unix.sock'),
   'all', 'a client of a unix socket is admitted');


# names of other servers, and a server that is the only one of its port

is(http_get('/-/profile/status.json', port => 8081,
            headers => [ 'Host: second.example' ])->status(), 200,
   'the name of another server is admitted');
is(http_get('/-/profile/status.json', port => 8081,
            headers => [ 'Host: only.example' ])->status(), 200,
   'the name of the only server of a port is admitted');
is(http_get('/-/profile/status.json', port => 8081,
            headers => [ 'Host: evil.test' ])->status(), 403,
   'another host of the only server of a port is refused');


# requests without a host, and with two

is(raw('GET /-/profile/status.json HTTP/1.0'), 200,
   'a request of HTTP/1.0 needs no host');
is(raw('GET /-/profile/status.json HTTP/1.0', 'Host: evil.test'), 403,
   'the host of a request of HTTP/1.0 counts');
is(raw('GET http://ops.example/-/profile/status.json HTTP/1.1',
       'Host: ops.example'), 200,
   'a request line may have a host');
is(raw('GET http://evil.test/-/profile/status.json HTTP/1.1',
       'Host: ops.example'), 403,
   'the host of the request line counts');
is(raw('GET http://ops.example/-/profile/status.json HTTP/1.1',
       'Host: evil.test'), 403,
   'the header counts beside the host of the request line');
is(raw('GET http://evil.test/-/profile/status.json HTTP/1.0'), 403,
   'the host of the request line counts without a header');
is(raw('GET http://[::1]:80/-/profile/status.json HTTP/1.1', 'Host: [::1]'),
   200, 'a request line may have an address');


# what the refusal says

my $r = http_get('/-/profile/', headers => [ 'Host: evil.test',
                                             'Accept: text/html' ]);

like($r->body(), qr/^no "server_name" is "evil\.test": .*"profile_allow"$/m,
     'the refusal of the console names the directives');
like(http_get('/metrics', headers => [ 'Host: evil.test' ])->body(),
     qr/"server_name" is "evil\.test": .*"profile_allow"/,
     'the refusal of metrics names the directives');

my @warned = $t->read_log() =~ /\[warn\].*since no "server_name".*/g;

is(scalar @warned, 1, 'the log has one warning');
like($warned[0], qr/"\w*localhost.*"; add this name, or set "profile_allow"/,
     'the warning names the host and the directives');


# metrics refuse pages of other sites, as the console does

for my $headers ([ 'Sec-Fetch-Site: cross-site' ],
                 [ 'Sec-Fetch-Site: same-site' ],
                 [ 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate',
                   'Sec-Fetch-Dest: document' ],
                 [ 'Origin: http://evil.test' ],
                 [ 'Origin: null' ],
                 [ 'Sec-Fetch-Site: same-origin',
                   'Sec-Fetch-Site: cross-site' ])
{
    for my $uri ('/metrics', '/listed/metrics') {
        is(http_get($uri, headers => $headers)->status(), 403,
           "$uri refuses @$headers");
        is(http_head($uri, headers => $headers)->status(), 403,
           "$uri refuses HEAD with @$headers");
    }
}

for my $headers ([], [ 'Sec-Fetch-Site: none' ],
                 [ 'Sec-Fetch-Site: same-origin' ],
                 [ 'Origin: http://localhost' ])
{
    is(http_get('/metrics', headers => $headers)->status(), 200,
       "metrics are read with \"@$headers\"");
}

is(http_post('/metrics', '')->status(), 405, 'metrics cannot be posted');


# which doors are open: "all", "none", or their names

sub seen {
    my ($headers, $under, @options) = @_;

    $under //= '';
    my $console = $under ? "$under/-" : '/-/profile';
    my @post = (headers => [ @$headers, 'X-Profile-Console: 1' ], @options);
    my @get = (headers => $headers, @options);
    my %open;

    $open{$_} = http_get("$console/$_", @get)->status() != 403
        for 'status.json', 'profiles.json', 'debug/pprof/cmdline';
    $open{cpu} = http_post("$console/cpu?seconds=0.1", '', @post)->status()
                 != 403;
    $open{order} = http_post("$console/bar/order?method=GET&uri=/a&mode=wall",
                             '', @post)->status() != 403;
    $open{metrics} = http_get("$under/metrics", @get)->status() != 403;
    $open{argument} = !!http_get("$under/a?performance_bar=flamegraph", @get)
                        ->header('X-Profile-Id');
    $open{header} = !!http_get("$under/a",
                               headers => [ @$headers, 'X-Profile: record' ],
                               @options)->header('X-Profile-Id');
    $open{bar} = http_get("$under/page.html",
                          headers => [ @$headers, 'Accept: text/html' ],
                          @options) =~ /bar\.js/;

    my @open = grep { $open{$_} } sort keys %open;

    return @open == keys %open ? 'all' : join(' ', @open) || 'none';
}


sub raw {
    return http(join("\r\n", @_, 'Connection: close', '', ''))->status();
}
