#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: quiet
#
# A wait may end in four ways: with what was awaited, with an error of the other
# side, by a time limit, or because the client leaves.  The cause of the wait is
# the same.  profile_causes.t has the first way of all causes, and
# profile_resolver.t all ways of names.  The time limits and the clocks of the
# clients and upstreams tell how long each wait is.

use strict;
use warnings;

use IO::Socket::INET;
use List::Util qw/ max min sum0 /;
use Socket qw/ SO_RCVBUF SOL_SOCKET /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

# seconds: of time limits, and until another end

use constant { LIMIT => 0.5, EARLIER => 0.3 };

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ auth_request cache limit_req lua proxy ssi
                                    ssl /)
                          ->allow(qr/ upstream (?:timed out|prematurely)/);
my $njs = $t->has_module('js');
my $h2 = $t->has_module('v2') && eval { require Protocol::HTTP2::Client };

$t->conf(<<'EOF');
log_format ids '$request_uri rt=$request_time id=$profile_id';
access_log %%TESTDIR%%/id.log ids;

profile_keep $arg_keep;
limit_req_zone $server_port zone=z:1m rate=1r/s;
proxy_cache_path %%TESTDIR%%/cache keys_zone=c:1m;
lua_socket_log_errors off;
client_body_timeout 500ms;
send_timeout 500ms;
lua_shared_dict dict 1m;

init_worker_by_lua_block {
    semaphore = require("ngx.semaphore").new()
}

server {
    listen 127.0.0.1:8080 sndbuf=32k;
    %%H2%%

    proxy_connect_timeout 500ms;
    proxy_read_timeout 500ms;
    proxy_send_timeout 500ms;
    proxy_next_upstream off;

    location = /file { alias %%TESTDIR%%/huge; }

    location /up/ { proxy_pass http://127.0.0.1:8081; }
    location /direct/ {
        proxy_pass http://127.0.0.1:8081;
        proxy_buffering off;
    }
    location = /connect { proxy_pass http://127.0.0.1:8083; }
    location = /refuses { proxy_pass http://127.0.0.1:8086; }
    location /tls/ { proxy_pass https://127.0.0.1:8081; }
    location = /send { proxy_pass http://127.0.0.1:8082; client_max_body_size 0; }
    location = /send_closes {
        proxy_pass http://127.0.0.1:8084;
        client_max_body_size 0;
    }

    location /cached/ {
        proxy_pass http://127.0.0.1:8081/up/first/2000/;
        proxy_read_timeout 3s;
        proxy_cache c;
        proxy_cache_key $uri;
        proxy_cache_valid 1h;
        proxy_cache_lock on;
        proxy_cache_lock_timeout 400ms;
    }

    location = /auth/silent {
        auth_request /up/first/silent;
        alias %%TESTDIR%%/small;
    }
    location = /auth/closes {
        auth_request /up/first/closes;
        alias %%TESTDIR%%/small;
    }

    location /ssi {
        ssi on;
        ssi_types *;
        default_type text/plain;
        alias %%TESTDIR%%/ssi/;
    }

    location = /limit_req { limit_req zone=z burst=5; alias %%TESTDIR%%/small; }
    location = /limit_rate { limit_rate 1; return 200 "0123456789"; }
    location = /rated {
        proxy_limit_rate 2000;
        proxy_pass http://127.0.0.1:8081/up/size/20000;
    }

    location /lua/ {
        lua_check_client_abort on;
        lua_socket_connect_timeout 500ms;
        lua_socket_read_timeout 500ms;

        location = /lua/sleep { content_by_lua_block { ngx.sleep(20) } }

        location = /lua/semaphore {
            content_by_lua_block {
                semaphore:wait(tonumber(ngx.var.arg_limit) or 20)
            }
        }

        location = /lua/connect {
            content_by_lua_block {
                ngx.say(ngx.socket.tcp():connect("127.0.0.1", %%PORT_8083%%))
            }
        }

        location /lua/read/ {
            content_by_lua_block {
                local s = ngx.socket.tcp()
                s:connect("127.0.0.1", %%PORT_8081%%)
                s:send("GET " .. ngx.var.uri .. " HTTP/1.0\r\n\r\n")
                ngx.say(s:receive("*a"))
            }
        }

        location /lua/capture/ {
            content_by_lua_block {
                ngx.print(ngx.location.capture("/up" .. ngx.var.uri).body)
            }
        }

        location = /lua/body {
            content_by_lua_block { ngx.req.read_body() ngx.say("done") }
        }

        location = /lua/raw {
            content_by_lua_block {
                local s = ngx.req.socket()
                ngx.say(s:receive(10))
            }
        }
    }

    %%JS%%

    location /-/profile/ { profile_console; }
}
EOF

my $conf = $t->read_file('nginx.conf');
my $js = $njs ? <<'EOF' : '';
        location = /js/sleep { js_content ends.sleep; }
        location = /js/connect { js_fetch_timeout 500ms; js_content ends.fetch; }
        location /js/read/ { js_fetch_timeout 500ms; js_content ends.fetch; }
EOF

$conf =~ s/%%JS%%/$js/;
$conf =~ s/%%H2%%/$h2 ? 'listen 127.0.0.1:8088 http2;' : ''/e;
$conf =~ s/^http \{/http {\n    js_import ends from ends.js;/m if $js;
$t->write_file_expand('nginx.conf', $conf);

$t->write_file_expand('ends.js', <<'EOF');
function sleep(r) {
    setTimeout(() => r.return(200), 500);
}

function fetch(r) {
    var port = r.uri == '/js/connect' ? %%PORT_8083%% : %%PORT_8081%%;

    ngx.fetch('http://127.0.0.1:' + port + r.uri)
    .then((reply) => reply.text())
    .then((body) => r.return(200, body))
    .catch((e) => r.return(502, e.message));
}

export default { sleep, fetch };
EOF

mkdir $t->testdir() . '/ssi';
$t->write_file("ssi/$_", "<!--# include virtual=\"/up/first/$_\" -->")
    for qw/ silent closes /;
$t->write_file($_, '.') for qw/ small silent /;
$t->write_file('huge', 'x' x 20_000_000);

run_server($t, 8081, \&answer);
run_server($t, 8082, sub { sleep 20 }, [ SOL_SOCKET, SO_RCVBUF, 16384 ]);
run_server($t, 8084, sub { sleep EARLIER }, [ SOL_SOCKET, SO_RCVBUF, 16384 ]);

# a full backlog of connections that are not accepted

my $full = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1,
                                 LocalPort => port(8083), ReuseAddr => 1);
my @filling = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                          PeerPort => port(8083),
                                          Blocking => 0) } 1 .. 4;
$t->run();

my $up = qr/127\.0\.0\.1:\d+/;

# name, URI, cause, how the client behaves (default: \&stays), seconds

my @cases = (
    [ 'connect: limit', '/connect', qr/upstream connect $up/ ],
    [ 'connect: client', '/connect', qr/upstream connect $up/, \&leaves ],
    [ 'connect: refused', '/refuses', qr/upstream connect $up/, \&stays, 0 ],
    [ 'TLS: limit', '/tls/silent', qr/upstream TLS handshake $up/ ],
    [ 'TLS: client', '/tls/silent', qr/upstream TLS handshake $up/, \&leaves ],
    [ 'sending: limit', '/send', qr/sending to upstream $up/, \&sends ],
    [ 'sending: upstream', '/send_closes', qr/sending to upstream $up/, \&sends,
        EARLIER ],
    [ 'sending: client', '/send', qr/sending to upstream $up/, \&sends_leaves,
        EARLIER ],

    (map {
        my $p = $_;
        map {
            my $u = qr/upstream $_->[1] $up/;

            [ "$p, $_->[0]: limit", "/$p/$_->[0]/silent", $u ],
            [ "$p, $_->[0]: upstream", "/$p/$_->[0]/closes", $u, \&stays,
                EARLIER ],
            [ "$p, $_->[0]: client", "/$p/$_->[0]/silent", $u, \&leaves ],

        } [ 'first', 'first byte' ], [ 'header', 'header' ], [ 'body', 'body' ]
    } qw/ up direct /),

    [ 'auth_request: limit', '/auth/silent',
        qr/subrequest \S+;upstream first byte $up/ ],
    [ 'auth_request: upstream', '/auth/closes',
        qr/subrequest \S+;upstream first byte $up/, \&stays, EARLIER ],
    [ 'auth_request: client', '/auth/silent',
        qr/subrequest \S+;upstream first byte $up/, \&leaves ],
    [ 'SSI: limit', '/ssi/silent',
        qr/subrequest \S+;upstream first byte $up/ ],
    [ 'SSI: upstream', '/ssi/closes',
        qr/subrequest \S+;upstream first byte $up/, \&stays, EARLIER ],
    [ 'SSI: client', '/ssi/silent',
        qr/subrequest \S+;upstream first byte $up/, \&leaves ],
    [ 'capture: limit', '/lua/capture/first/silent',
        qr/subrequest \S+;upstream first byte $up/ ],
    [ 'capture: upstream', '/lua/capture/first/closes',
        qr/subrequest \S+;upstream first byte $up/, \&stays, EARLIER ],
    [ 'capture: client', '/lua/capture/first/silent',
        qr/subrequest \S+;upstream first byte $up/, \&leaves ],

    [ 'cache lock: limit', '/cached/1', qr/cache lock/, \&second, 0.4 ],
    [ 'cache lock: client', '/cached/2', qr/cache lock/, \&second_leaves,
        EARLIER ],

    [ 'body: limit', '/up/first/0', qr/client sending the request body/,
        \&half_body ],
    [ 'body: client', '/up/first/0', qr/client sending the request body/,
        \&half_body_leaves, EARLIER ],
    [ 'Lua body: limit', '/lua/body', qr/client sending the request body/,
        \&half_body ],
    [ 'Lua body: client', '/lua/body', qr/client sending the request body/,
        \&half_body_leaves, EARLIER ],
    [ 'raw body: limit', '/lua/raw', qr/client sending the request body/,
        \&half_body ],
    [ 'raw body: client', '/lua/raw', qr/client sending the request body/,
        \&half_body_leaves, EARLIER ],
    [ 'not reading: limit', '/file', qr/client not reading/, \&reads_not ],
    [ 'not reading: client', '/file', qr/client not reading/,
        \&reads_not_leaves, EARLIER ],

    [ 'limit_req: client', '/limit_req', qr/limit_req/, \&twice, EARLIER ],
    [ 'limit_rate: client', '/limit_rate', qr/limit_rate/, \&leaves ],
    [ 'proxy_limit_rate: client', '/rated', qr/limit_rate of upstream $up/,
        \&leaves ],

    [ 'sleep: client', '/lua/sleep', qr/script timer/, \&leaves ],
    [ 'semaphore: limit', '/lua/semaphore?limit=0.5&', qr/script timer/ ],
    [ 'semaphore: client', '/lua/semaphore', qr/script (?:timer|event)/,
        \&leaves ],
    [ 'cosocket, connect: limit', '/lua/connect', qr/script socket connect/ ],
    [ 'cosocket, connect: client', '/lua/connect', qr/script socket connect/,
        \&leaves ],
    [ 'cosocket, read: limit', '/lua/read/first/silent',
        qr/script socket $up/ ],
    [ 'cosocket, read: upstream', '/lua/read/first/closes',
        qr/script socket $up/, \&stays, EARLIER ],
    [ 'cosocket, read: client', '/lua/read/first/silent',
        qr/script socket $up/, \&leaves ],
);

push @cases, (
    [ 'njs, timer', '/js/sleep', qr/script timer/ ],

    # njs does not see that the client leaves

    [ 'njs, timer: client', '/js/sleep', qr/script timer/, \&leaves, LIMIT ],
    [ 'njs, connect: limit', '/js/connect', qr/script socket connect/ ],
    [ 'njs, connect: client', '/js/connect', qr/script socket connect/,
        \&leaves ],
    [ 'njs, read: limit', '/js/read/first/silent', qr/script socket $up/ ],
    [ 'njs, read: other side', '/js/read/first/closes', qr/script socket $up/,
        \&stays, EARLIER ],
    [ 'njs, read: client', '/js/read/first/silent', qr/script socket $up/,
        \&leaves ],
) if $js;

push @cases, map {
    my $uri = $_->[0];
    my $cause = $_->[1];

    [ "HTTP/2, $uri: limit", "$uri/silent", $cause, \&h2_stays ],
    [ "HTTP/2, $uri: other side", "$uri/closes", $cause, \&h2_stays, EARLIER ],
    [ "HTTP/2, $uri: client", "$uri/silent", $cause, \&h2_leaves, EARLIER ],
    [ "HTTP/2, $uri: client resets", "$uri/silent", $cause, \&h2_resets,
        EARLIER ],

} [ '/up/first', qr/upstream first byte $up/ ],
  [ '/lua/read/first', qr/script socket $up/ ] if $h2;

my $number = 0;

is(join("\n", wrong($_)), '', $_->[0]) for @cases;

###############################################################################

# returns the errors in the profile of the case
sub wrong {
    my (undef, $uri, $cause, $client, $delay) = @{$_[0]};

    $client ||= \&stays;
    $delay //= $client == \&leaves ? EARLIER : LIMIT;

    $uri .= ($uri =~ /\?/ ? '' : '?') . 'keep=1&n=' . ++$number;

    $client->($uri);

    my ($line, @found);

    wait_for(sub { ($line) = grep { /^\Q$uri\E / }
                             split /\n/, $t->read_file('id.log') });

    my ($rt, $id) = ($line // '') =~ /rt=(\S+) id=(\S+)/;

    return 'the request does not end' unless defined $rt;

    my $p;
    wait_for(sub { $p = http_get("/-/profile/p/$id/folded");
                   $p->status() == 200 }) or return 'there is no profile';

    my %waits;

    for (split /\n/, $p->content()) {
        $waits{$1} += $2 / 1e9 if /^\[waiting\];(.*) (\d+)$/;
    }

    my $all = sum0(values %waits);
    my $busy = sum0(map { $waits{$_} } grep { /^worker busy/ } keys %waits);
    my $waited = sum0(map { $waits{$_} } grep { /^$cause(?:;|$)/ } keys %waits);
    my $sum = sum0(map { / (\d+)$/ ? $1 / 1e9 : 0 } split /\n/, $p->content());

    # on a busy machine the clients and the upstreams of the test are late

    my $late = sum0(map { $waits{$_} }
                    grep { !/^$cause/ && /upstream|client sending/ }
                    keys %waits);
    my $other = $all - $waited - $busy - $late;

    my @wrong;

    push @wrong, "takes $rt instead of $delay" if $rt < 0.8 * $delay;
    push @wrong, "the cause has $waited of $delay"
        if $waited + $busy + $late < 0.95 * min($delay, $all)
           || $waited < 0.3 * $delay;
    push @wrong, "other causes have $other" if $other > max(0.02, 0.05 * $rt);
    push @wrong, "sums to $sum of $rt"
        if abs($sum - $rt) > max(0.0011, 0.01 * $rt);

    return @wrong ? (@wrong, map { "$_ $waits{$_}" } sort keys %waits) : ();
}


sub stays { http_get($_[0], timeout => 10) }


# after the upstream has received the request, if it is silent
sub leaves {
    my ($uri) = @_;

    my $before = -s $t->testdir() . '/silent';
    my $s = http_get($uri, start => 1);

    wait_for(sub { -s $t->testdir() . '/silent' > $before })
        if $uri =~ /silent/;

    sleep EARLIER;
    close($s);
}


# the first request to a location is not delayed
sub twice {
    my ($uri) = @_;

    http_get('/limit_req');
    leaves($uri);
}


# a body that the upstream does not read
sub sends {
    my ($uri, $early) = @_;

    my $s = open_socket();
    print $s "POST $uri HTTP/1.0\r\nContent-Length: 8000000\r\n\r\n"
             . 'x' x 8_000_000;
    sleep EARLIER if $early;
    1 while !$early && sysread($s, my $buf, 65536);
    close($s);
}


sub sends_leaves { sends($_[0], 1) }


sub half_body {
    my ($uri, $early) = @_;

    my $s = open_socket();
    print $s "POST $uri HTTP/1.0\r\nContent-Length: 10\r\n\r\n12345";
    sleep EARLIER if $early;
    1 while !$early && sysread($s, my $buf, 65536);
    close($s);
}


sub half_body_leaves { half_body($_[0], 1) }


sub reads_not {
    my ($uri, $early) = @_;

    my $s = open_socket(Sockopts => [ [ SOL_SOCKET, SO_RCVBUF, 16384 ] ]);
    print $s "GET $uri HTTP/1.0\r\n\r\n";
    sleep($early ? EARLIER : LIMIT + 0.3);
    close($s);
}


sub reads_not_leaves { reads_not($_[0], 1) }


# for the cache's entry that another request fills
sub second {
    my ($uri, $early) = @_;

    (my $first = $uri) =~ s/\?.*//;
    my $other = http_get($first, start => 1);

    sleep 0.05;
    $early ? leaves($uri) : http_get($uri, timeout => 10);
    close($other);
}


sub second_leaves { second($_[0], 1) }


sub h2_stays { h2($_[0], '') }
sub h2_leaves { h2($_[0], 'leaves') }
sub h2_resets { h2($_[0], 'resets') }


sub h2 {
    my ($uri, $how) = @_;
    my $done = 0;

    my $client = Protocol::HTTP2::Client->new();

    $client->request(':scheme' => 'http', ':authority' => 'localhost',
                     ':path' => $uri, ':method' => 'GET', headers => [],
                     on_done => sub { $done = 1 },
                     on_error => sub { $done = 1 });

    my $before = -s $t->testdir() . '/silent';
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => port(8088)) or die "$!\n";

    while (my $frame = $client->next_frame()) {
        syswrite($s, $frame);
    }

    if ($how) {
        wait_for(sub { -s $t->testdir() . '/silent' > $before });
        sleep EARLIER;

        # RST_STREAM of the first stream, CANCEL

        syswrite($s, pack('H*', '00000403000000000100000008'))
            if $how eq 'resets';

        wait_for(sub { $t->read_file('id.log') =~ /^\Q$uri\E /m })
            if $how eq 'resets';

        close($s);
        return;
    }

    while (!$done) {
        sysread($s, my $buf, 65536) or last;
        $client->feed($buf);

        while (my $frame = $client->next_frame()) {
            syswrite($s, $frame);
        }
    }
}


sub open_socket {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                 PeerPort => port(8080), @_)
        // die "connect: $!\n";
}


# /PART/MS, /PART/silent, /PART/closes: what it does before this part
sub answer {
    my ($c) = @_;

    $c->autoflush(1);

    my $request = '';
    while ($request !~ /\r\n\r\n/) {
        sysread($c, $request, 65536, length $request) or return;

        # TLS
        silent() if $request =~ /^\x16/;
    }

    my ($part, $how) = $request =~ m{/(first|header|body)/(\w+)};
    my $size = $request =~ m{/size/(\d+)} ? $1 : 4;

    my $before = sub {
        return 1 if ($part // '') ne $_[0];

        silent() if $how eq 'silent';
        sleep($how eq 'closes' ? EARLIER : $how / 1000);
        return $how ne 'closes';
    };

    $before->('first') or return;
    print $c "HTTP/1.0 200 OK\r\n";
    $before->('header') or return;
    print $c "Content-Length: $size\r\n\r\nab";
    $before->('body') or return;
    print $c 'c' x ($size - 2);
}


sub silent {
    open my $f, '>>', $t->testdir() . '/silent' or die "cannot open: $!\n";
    syswrite($f, '.');
    sleep 20;
    exit 0;
}
