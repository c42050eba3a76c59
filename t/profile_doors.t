#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request bar
# runs: beside

# Closed doors, tried from outside: a client behind a local proxy, a page of
# another site, and a client that profile_if refuses.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Preload;

my $t = ProfileTest->new()->has(qw/ auth_request map proxy realip rewrite /);
$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

my $dir = $t->testdir();

my $so = build_preload($t, 'prof_doors');

$t->conf(<<'EOF', main => 'env PROF_DOORS;');
profile_zone store:1m;
profile_max_captures 1;

map $http_x_role $may {
    default 0;
    operator 1;
}

server {
    listen 127.0.0.1:8080;
    listen unix:%%TESTDIR%%/unix.sock;
    listen 127.0.0.1:8090 proxy_protocol;

    profile_endpoint on;
    profile_bar on;

    location / {
        root %%TESTDIR%%;
    }

    location /-/profile/ {
        profile_console;
    }

    location /named/ {
        profile_allow 127.0.0.1 unix:;
        alias %%TESTDIR%%/;
    }

    location /named/-/profile/ {
        profile_allow 127.0.0.1 unix:;
        profile_console;
    }

    location /elsewhere/-/profile/ {
        profile_allow 192.0.2.0/24;
        profile_console;
    }

    location /denied/-/profile/ {
        profile_allow all;
        profile_console;
        deny all;
    }
}

# the address of the client is known

server {
    listen 127.0.0.1:8081;

    set_real_ip_from 127.0.0.1;
    real_ip_header X-Forwarded-For;

    profile_endpoint on;
    profile_bar on;

    location / {
        root %%TESTDIR%%;
    }

    location /-/profile/ {
        profile_console;
    }

    location /named/-/profile/ {
        profile_allow 192.0.2.7;
        profile_console;
    }
}

# proxies on the same machine

server {
    listen 127.0.0.1:8082;
    listen 127.0.0.1:8083;
    listen 127.0.0.1:8084;
    listen 127.0.0.1:8085;
    listen 127.0.0.1:8086;
    listen 127.0.0.1:8087;

    location / {
        proxy_http_version 1.1;
        set $to %%PORT_8080%%;

        if ($server_port = %%PORT_8082%%) {
            set $for 192.0.2.7;
        }
        if ($server_port = %%PORT_8083%%) {
            set $forwarded "for=192.0.2.7";
        }
        if ($server_port = %%PORT_8084%%) {
            set $real 192.0.2.7;
        }
        if ($server_port = %%PORT_8085%%) {
            set $via "1.1 proxy";
        }
        if ($server_port = %%PORT_8086%%) {
            set $to %%PORT_8081%%;
            set $for 192.0.2.7;
        }
        if ($server_port = %%PORT_8087%%) {
            set $to %%PORT_8081%%;
            set $for 127.0.0.1;
        }

        proxy_set_header X-Forwarded-For $for;
        proxy_set_header Forwarded $forwarded;
        proxy_set_header X-Real-IP $real;
        proxy_set_header Via $via;
        proxy_set_header Host $http_host;
        proxy_pass http://127.0.0.1:$to;
    }
}

# conditions

server {
    listen 127.0.0.1:8088;

    profile_endpoint on;
    profile_frequency 100;

    location / {
        profile_if $may;
        root %%TESTDIR%%;
    }

    location /open/ {
        alias %%TESTDIR%%/;
    }

    location /slow/ {
        auth_request /auth;
        profile_if $may;
        alias %%TESTDIR%%/;
    }

    location = /auth {
        internal;
        proxy_pass http://127.0.0.1:8089;
    }
}
EOF

$t->write_file('file', "file\n");
$t->write_file('page.html', '<html><body>page</body></html>');
$t->write_file('doors', '');
chmod 0666, "$dir/doors";

{
    local $ENV{LD_PRELOAD} = $so;
    local $ENV{PROF_DOORS} = "$dir/doors";
    $t->run();
}

my $arg = 'performance_bar=flamegraph';
my $id = http_get('/file?performance_bar=record')->header('X-Profile-Id');
ok(wait_for(sub { http_get("/-/profile/p/$id")->status() == 200 }),
   'a client on the machine may record a profile');

my @urls = ('', 'profiles.json', "p/$id", "p/$id.json", "p/$id/folded",
            "diff/svg?a=$id&b=$id", 'status', 'status.json', 'help',
            'bar.js', 'bar/requests', 'cpu?seconds=0.1',
            'wall?seconds=0.1', 'object?seconds=0.1', 'debug/pprof/',
            'debug/pprof/profile?seconds=1', 'debug/pprof/cmdline',
            'debug/pprof/symbol?0x1000', 'debug/pprof/heap?seconds=1',
            'nothing');


# proxies on the same machine

my %proxies = (8082 => 'X-Forwarded-For', 8083 => 'Forwarded',
               8084 => 'X-Real-IP', 8085 => 'Via',
               8086 => 'an address that realip knows');

for my $port (sort keys %proxies) {
    my $name = $proxies{$port};

    is(http_get("/file?$arg", port => $port)->body(), "file\n",
       "$name: the trigger has no effect");
    is(http_get('/file', port => $port, headers => [ 'X-Profile: record' ])
           ->header('X-Profile-Id'), undef,
        "$name: the header records nothing");
    unlike(http_get('/page.html', port => $port,
                    headers => [ 'Accept: text/html' ]),
           qr/bar\.js/, "$name: the page has no bar");
    is(opened(port => $port), 'all 403',
        "$name: the console refuses all URLs");
    is(http_post('/-/profile/cpu?seconds=0.1', '', port => $port,
                 headers => [ 'X-Profile-Console: 1' ])->status(), 403,
       "$name: the console refuses a capture");
}

like(http_get('/page.html', headers => [ 'Accept: text/html' ]),
     qr/bar\.js/, 'a client on the machine gets the bar');

is(http_get("/file?$arg", headers => [ 'X-Forwarded-For: 127.0.0.1' ])
       ->body(), "file\n",
    'a proxy\'s header with a local address does not admit');
is(http_get("/file?$arg", headers => [ 'X-Forwarded-For:' ])->body(),
   "file\n", 'an empty header of a proxy does not admit');
is(http_get("/file?$arg", unix => "$dir/unix.sock",
            headers => [ 'X-Forwarded-For: 192.0.2.7' ])->body(), "file\n",
   'a client of a proxy behind a unix socket is not admitted');
ok(http_get("/file?$arg", unix => "$dir/unix.sock")->header('X-Profile-Id'),
   'a client of a unix socket without a proxy is admitted');

my $tcp = join("\r\n", 'PROXY TCP4 192.0.2.7 192.0.2.1 1000 80',
               "GET /file?$arg HTTP/1.1", 'Host: localhost',
               'Connection: close', '', '');
is(http($tcp, port => 8090)->body(), "file\n",
    'a client of the PROXY protocol is not admitted');

my @warned = $t->read_log() =~ /\[warn\].*local address is not admitted.*/g;
is(scalar @warned, 1, 'the log has one warning');
like($warned[0], qr/has "X-Forwarded-For" from a proxy.*"profile_allow"/,
     'the warning names the header and the directive');
like($t->read_log(), qr/\[error\].*the console is refused by "profile_allow"/,
     'the log names the directive that refused the console');

ok(http_get("/file?$arg", port => 8087)->header('X-Profile-Id'),
   'a local address set by realip is admitted');
is(http_get('/-/profile/status.json', port => 8087)->status(), 200,
   'a local address set by realip may use the console');
is(http_get('/named/-/profile/status.json', port => 8086)->status(), 200,
   'a listed address set by realip may use the console');
is(http_get('/named/-/profile/status.json', port => 8087)->status(), 403,
   'a local address that is not listed may not use the console');


# lists

ok(http_get("/named/file?$arg", port => 8082)->header('X-Profile-Id'),
   'a listed proxy may profile');
is(http_get('/named/-/profile/status.json', port => 8082)->status(), 200,
   'a listed proxy may use the console');
is(http_get('/elsewhere/-/profile/status.json')->status(), 403,
   'a client that is not listed may not use the console');
is(http_get('/denied/-/profile/status.json')->status(), 403,
   "the location's own rules apply to the console");


# other sites

my @cross = ([ 'Sec-Fetch-Site: cross-site' ],
             [ 'Sec-Fetch-Site: same-site' ],
             [ 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors',
               'Sec-Fetch-Dest: image' ],
             [ 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate',
               'Sec-Fetch-Dest: iframe' ],
             [ 'Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site' ],
             [ 'Origin: http://example.com' ],
             [ 'Origin: null' ]);

my $before = stored();

for my $headers (@cross) {
    is(opened(headers => $headers, except => 'nothing'), 'all 403',
       "a request with @$headers is refused");
    is(http_head('/-/profile/cpu?seconds=0.1', headers => $headers)
           ->status(), 403, "HEAD with @$headers is refused");
    is(http_post('/-/profile/debug/pprof/symbol', '0x1000',
                 headers => $headers)->status(), 403,
       "POST of addresses with @$headers is refused");
    is(http_post('/-/profile/cpu?seconds=0.1', '',
                 headers => [ @$headers, 'X-Profile-Console: 1' ])->status(),
       403, "POST with @$headers is refused");
}

is(stored(), $before, 'refused requests start no capture');

my @navigate = ('Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate',
                'Sec-Fetch-Dest: document');

my ($pid) = $t->worker_pids();

for my $url ('', 'profiles', "p/$id", 'status', 'help',
             "diff?a=$id&b=$id")
{
    my $r = http_get("/-/profile/$url", headers => \@navigate);

    is($r->status(), 200, "a link of another site opens the page \"$url\"");
    unlike($r->body(), qr{/file|nginx\.conf|$pid},
           'that page contains no data');
}

for my $url ('profiles.json', "p/$id.json", "p/$id/html", "p/$id/svg",
             'status.json', "diff/html?a=$id&b=$id", 'cpu?seconds=0.1',
             'help.json', 'debug/pprof/cmdline')
{
    is(http_get("/-/profile/$url", headers => \@navigate)->status(), 403,
       "a link of another site to \"$url\" is refused");
}

is(http_get('/-/profile/profiles', headers => [ @navigate,
            'Accept: application/json' ])->status(), 403,
   'a link of another site cannot ask for JSON');

for my $site ('same-origin', 'none') {
    is(opened(headers => [ "Sec-Fetch-Site: $site" ]), 'as before',
       "requests of $site are not refused");
}

is(opened(), 'as before', 'a client that is not a browser is not refused');


# returns the work before profile_if is evaluated

sub doors {
    my $from = shift;
    my $lines = substr($t->read_file('doors'), $from);

    my @timers = sort { $a <=> $b } $lines =~ /^timer (\d+)/mg;
    my $patches = () = $lines =~ /^patch/mg;

    return ($timers[0] // 0, $patches);
}

my $asked = "$arg&profile_frequency=10000&profile_mode";

my $from = -s "$dir/doors";
is(http_get("/file?$asked=object", port => 8088)->body(), "file\n",
   'profile_if refuses the request');
my ($interval, $patches) = doors($from);
cmp_ok($interval, '>=', 10_000_000,
    'a refused request is sampled at profile_frequency at most');
is($patches, 0, 'allocations of a refused request are not counted');

$from = -s "$dir/doors";
ok(http_get("/file?$asked=object", port => 8088,
            headers => [ 'X-Role: operator' ])->header('X-Profile-Id'),
   'profile_if admits the request');
($interval, $patches) = doors($from);
is($interval, 100_000, 'an admitted request is sampled at its own frequency');
cmp_ok($patches, '>', 0, 'allocations of an admitted request are counted');

$from = -s "$dir/doors";
ok(http_get("/open/file?$asked=object", port => 8088)
       ->header('X-Profile-Id'),
    'a request to a location without profile_if is admitted');
($interval, $patches) = doors($from);
is($interval, 100_000, 'that request is sampled at its own frequency');
cmp_ok($patches, '>', 0, 'allocations of that request are counted');

my $auth = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
                                 LocalPort => port(8089), Listen => 5,
                                 ReuseAddr => 1)
    or die "listen: $!\n";

$from = -s "$dir/doors";
my $s = http_get("/slow/file?$asked=object", port => 8088, start => 1);
my $asking = $auth->accept();
($interval, $patches) = doors($from);

cmp_ok($interval, '>=', 10_000_000,
    'before the decision, profile_frequency applies');
is($patches, 0, 'before the decision, allocations are not counted');
is(http_get("/file?$arg", port => 8088, headers => [ 'X-Role: operator' ])
       ->status(), 200, 'before the decision, the request takes no slot');

print $asking "HTTP/1.0 200 OK\r\n\r\n";
close $asking;
is(http_end($s)->body(), "file\n", 'the waiting request may be refused');

$s = http_get("/slow/file?$asked=object", port => 8088, start => 1,
              headers => [ 'X-Role: operator' ]);
$asking = $auth->accept();
print $asking "HTTP/1.0 200 OK\r\n\r\n";
close $asking;

my $r = http_end($s);
ok($r->header('X-Profile-Id'), 'the waiting request may be admitted');
like($r->content(), qr/ngx_/,
    'the profile of the admitted request has allocations');


# "all 403", "as before", or the differences

sub opened {
    my (%options) = @_;
    my %status;

    for my $url (@urls) {
        next if $url eq ($options{except} // '-');

        my $r = http_get("/-/profile/$url",
                         port => $options{port} || 8080,
                         headers => $options{headers} || []);
        my $want = $url eq 'nothing' ? 404 : 200;

        push @{$status{$r->status()}}, $url;
        $status{wrong} .= "$url: " . $r->status() . ' '
            if $r->status() != $want;
    }

    my $wrong = delete $status{wrong};

    return 'all 403' if join(' ', keys %status) eq '403';
    return $wrong || 'as before';
}


sub stored {
    my $list = decode_json(http_get('/-/profile/profiles.json')->body());
    return scalar @{$list->{profiles}};
}
