#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: quiet

# Each cause of waiting is made to last for a known time, by an upstream, a
# client or nginx itself, while profile_keep takes notes of all requests.  The
# profile names the cause, gives it that time, and sums to $request_time.
# Then the same again, while other clients keep the worker busy.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use List::Util qw/ max min sum0 /;
use Socket qw/ SOL_SOCKET SO_RCVBUF /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib 't/lib';
use ProfileTest::Names;
use ProfileTest::Upstream;
use ProfileTest;

use constant DELAY => 0.4;

my $t = ProfileTest->new()->has(qw/ lua auth_request auth_basic limit_req ssi
                                    mirror proxy ssl v2 threads /)
                          ->has_program(qw/ cc openssl /)
                          ->has_perl(qw/ Protocol::HTTP2::Client
                                         IO::Socket::SSL /);

$t->write_certificate('localhost');

$t->conf(<<'EOF');
map $request_uri $keep {
    "~keep=1"  1;
    default    0;
}

profile_keep $keep frequency=250;

log_format id '$request_uri id=$profile_id rt=$request_time '
              'stall=$profile_stall_time longest=$profile_longest_turn';
access_log %%TESTDIR%%/id.log id;

limit_req_zone $server_name zone=slow:1m rate=150r/m;
proxy_cache_path %%TESTDIR%%/cache keys_zone=one:1m;
client_max_body_size 0;
proxy_http_version 1.1;
resolver 127.0.0.1:8053 ipv6=off;

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8443 ssl;
    listen 127.0.0.1:8088 http2;
    server_name localhost;

    ssl_certificate localhost.crt;
    ssl_certificate_key localhost.key;

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /direct/ {
        proxy_buffering off;
        proxy_pass http://127.0.0.1:8081;
    }

    location /streamed/ {
        proxy_request_buffering off;
        proxy_pass http://127.0.0.1:8081;
    }

    location /connect {
        proxy_connect_timeout 400ms;
        proxy_pass http://127.0.0.1:8083;
    }

    location /handshake {
        proxy_pass https://127.0.0.1:8084;
    }

    location /sending {
        proxy_pass http://127.0.0.1:8085/first/0;
    }

    location /tries {
        proxy_read_timeout 400ms;
        proxy_next_upstream timeout;
        proxy_pass http://two/first/0;
    }

    location /second {
        proxy_next_upstream error;
        proxy_pass http://refused/first/400;
    }

    location /named {
        proxy_pass http://$arg_host:%%PORT_8081%%/first/0;
    }

    location /limited {
        proxy_limit_rate 100k;
        proxy_buffers 4 4k;
        proxy_buffer_size 4k;
        proxy_busy_buffers_size 8k;
        proxy_pass http://127.0.0.1:8081/size/60000;
    }

    location /disk {
        aio threads;
        sendfile off;
        alias %%TESTDIR%%/big;
    }

    location /limit_req {
        limit_req zone=slow burst=5;
        proxy_pass http://127.0.0.1:8081/first/0;
    }

    location /limit_rate {
        limit_rate 100k;
        alias %%TESTDIR%%/forty;
    }

    location /reader {
        sendfile off;
        alias %%TESTDIR%%/huge;
    }

    location /cached {
        proxy_cache one;
        proxy_cache_lock on;
        proxy_cache_key $uri;
        proxy_cache_valid 1s;
        proxy_pass http://127.0.0.1:8081/first/400;
    }

    location /auth {
        auth_request /check;
        proxy_pass http://127.0.0.1:8081/first/0;
    }

    location = /check {
        internal;
        proxy_pass http://127.0.0.1:8081/first/400;
    }

    location /closed {
        auth_delay 400ms;
        auth_basic "closed";
        auth_basic_user_file %%TESTDIR%%/none;
    }

    location /include {
        ssi on;
        default_type text/html;
        alias %%TESTDIR%%/include;
    }

    location /mirrored {
        mirror /check;
        proxy_pass http://127.0.0.1:8081/first/0;
    }

    location /missing {
        alias %%TESTDIR%%/missing;
        error_page 404 /first/400;
    }

    location /named_missing {
        alias %%TESTDIR%%/missing;
        error_page 404 = @first;
    }

    location @first {
        rewrite ^ /first/400 break;
        proxy_pass http://127.0.0.1:8081;
    }

    location /chain {
        recursive_error_pages on;
        alias %%TESTDIR%%/missing;
        error_page 404 /closes;
    }

    location /closes {
        recursive_error_pages on;
        proxy_pass http://127.0.0.1:8087;
        error_page 502 = @first;
    }

    location /queue {
        content_by_lua_block {
            local s = ngx.socket.tcp()
            s:connect("127.0.0.1", %%PORT_8081%%,
                      { pool_size = 1, backlog = 10 })
            s:send("GET /first/400 HTTP/1.0\r\n\r\n")
            ngx.say(s:receive("*a"))
            s:close()
        }
    }

    location /accel {
        proxy_pass http://127.0.0.1:8081/accel;
    }

    location /capture {
        content_by_lua_block {
            ngx.print(ngx.location.capture("/first/400").body)
        }
    }

    location /sleep {
        content_by_lua_block {
            ngx.sleep(0.4)
            ngx.say("slept")
        }
    }

    location /socket {
        content_by_lua_block {
            local s = ngx.socket.tcp()
            s:connect("127.0.0.1", %%PORT_8081%%)
            s:send("GET /first/400 HTTP/1.0\r\n\r\n")
            ngx.say(s:receive("*a"))
        }
    }

    location /busy {
        content_by_lua_block {
            local ms = tonumber(ngx.var.arg_ms)
            ngx.update_time()
            local till = ngx.now() + ms / 1000
            while ngx.now() < till do ngx.update_time() end
            ngx.say("was busy")
        }
    }

    location /-/profile/ {
        profile_console;
    }
}

upstream two {
    server 127.0.0.1:8082 max_fails=0;
    server 127.0.0.1:8081 max_fails=0 backup;
}

upstream refused {
    server 127.0.0.1:8086 max_fails=0;
    server 127.0.0.1:8081 max_fails=0 backup;
}
EOF

$t->write_file('none', '');
$t->write_file('big', 'x' x 4321);
$t->write_file('forty', 'x' x 60000);
$t->write_file('huge', 'x' x 20_000_000);
$t->write_file('include', 'a <!--# include virtual="/first/400" --> b');

# threads are slow to read

$t->write_file('slow_read.c', <<'EOF');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static ssize_t
slow(const char *name, int fd, void *buf, size_t n, off_t at)
{
    ssize_t  (*next)(int, void *, size_t, off_t);

    struct stat  st;

    /* of the one file that has this size */

    if (syscall(SYS_gettid) != getpid() && fstat(fd, &st) == 0
        && st.st_size == 4321)
    {
        usleep(400000);
    }

    next = dlsym(RTLD_NEXT, name);

    return next(fd, buf, n, at);
}

ssize_t
pread(int fd, void *buf, size_t n, off_t at)
{
    return slow("pread", fd, buf, n, at);
}

ssize_t
pread64(int fd, void *buf, size_t n, off_t at)
{
    return slow("pread64", fd, buf, n, at);
}
EOF

my ($status, $out) = $t->command('cc', '-shared', '-fPIC', '-o',
                                 $t->testdir() . '/slow_read.so',
                                 $t->testdir() . '/slow_read.c', '-ldl');
die "cc: $out\n" if $status != 0;

my %upstreams = (8081 => '', 8082 => 'silent', 8084 => 'handshake',
                 8085 => 'late', 8087 => 'closes');

for my $port (sort keys %upstreams) {
    my $how = $upstreams{$port};

    run_server($t, $port, sub { answer(@_, $how) },
               $how eq 'late' ? [ SOL_SOCKET, SO_RCVBUF, 16384 ] : ());
}

run_names($t, 8053);

# a full backlog of connections that are not accepted

my $full = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1,
                                 LocalPort => port(8083), ReuseAddr => 1);
my @filling = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                          PeerPort => port(8083),
                                          Blocking => 0) } 1 .. 4;

{
    local $ENV{LD_PRELOAD} = $t->testdir() . '/slow_read.so'
        unless $t->sanitizers();
    $t->run();
}


my $upstream = qr/127\.0\.0\.1:\d+/;

# name, URI, cause, how the client behaves, seconds

my @cases = (
    [ 'request header', '/first/0',
      qr/^client sending the request header$/, \&slow_header ],
    [ 'request body', '/first/0',
      qr/^client sending the request body$/, \&slow_body ],
    [ 'streamed request body', '/streamed/first/0',
      qr/^client sending the request body$/, \&slow_body ],
    [ 'connect', '/connect', qr/^upstream connect $upstream$/ ],
    [ 'handshake', '/handshake', qr/^upstream TLS handshake $upstream$/ ],
    [ 'sending', '/sending', qr/^sending to upstream $upstream$/,
      \&large_body ],
    [ 'first byte', '/first/400', qr/^upstream first byte $upstream$/ ],
    [ 'header', '/header/400', qr/^upstream header $upstream$/ ],
    [ 'body', '/body/400', qr/^upstream body $upstream$/ ],
    [ 'unbuffered body', '/direct/body/400', qr/^upstream body $upstream$/ ],
    [ 'a try that failed', '/tries',
      qr/^upstream first byte 127\.0\.0\.1:@{[port(8082)]}$/ ],
    [ 'a second try', '/second',
      qr/^upstream first byte 127\.0\.0\.1:@{[port(8081)]} \(try 2\)$/ ],
    [ 'resolver', '/named?host=slow%d.test', qr/^resolver slow\d+\.test$/,
      undef, 0.3 ],
    [ 'proxy_limit_rate', '/limited', qr/^limit_rate of upstream $upstream$/ ],
    [ 'disk', '/disk', qr/^disk or thread pool$/ ],
    [ 'limit_req', '/limit_req', qr/^limit_req$/, \&twice, 0.25 ],
    [ 'limit_rate', '/limit_rate', qr/^limit_rate$/, undef, 0.3 ],
    [ 'slow reader', '/reader', qr/^client not reading$/, \&slow_reader ],
    [ 'cache lock', '/cached/%d', qr/^cache lock$/, \&after_another, 0.3 ],
    [ 'auth_request', '/auth',
      qr/^subrequest \/check;upstream first byte $upstream$/ ],
    [ 'auth_delay', '/closed', qr/^auth_delay$/ ],
    [ 'include', '/include',
      qr/^subrequest \/first\/400;upstream first byte $upstream$/ ],
    [ 'mirror', '/mirrored',
      qr/^subrequest \/check;upstream first byte $upstream$/, undef, 0.35 ],
    [ 'error_page', '/missing',
      qr/^redirect \/first\/400;upstream first byte $upstream$/ ],
    [ 'named location', '/named_missing',
      qr/^redirect \@first;upstream first byte $upstream$/ ],
    [ 'chain of error pages, first', '/chain',
      qr/^redirect \/closes;upstream first byte 127\.0\.0\.1:@{[port(8087)]}$/,
      undef, 0.2 ],
    [ 'chain of error pages, last', '/chain',
      qr/^redirect \@first;upstream first byte $upstream$/ ],
    [ 'X-Accel-Redirect', '/accel',
      qr/^redirect \/first\/400;upstream first byte $upstream$/ ],
    [ 'Lua subrequest', '/capture',
      qr/^subrequest \/first\/400;upstream first byte $upstream$/ ],
    [ 'sleep', '/sleep', qr/^script timer$/ ],
    [ 'socket', '/socket', qr/^script socket $upstream$/ ],
    [ 'queue of a pool of sockets', '/queue',
      qr/^script (?:event|socket $upstream)$/,
      \&queued, 0.7 ],
    [ 'TLS', '/first/400', qr/^upstream first byte $upstream$/,
      sub { http_get($_[0], SSL => 1, port => 8443) } ],
    [ 'HTTP/2', '/first/400', qr/^upstream first byte $upstream$/,
      sub { h2($_[0]) } ],
    [ 'HTTP/2 request body', '/first/0',
      qr/^client sending the request body$/, sub { h2($_[0], 1) } ],
);

my $number = 0;

# a preloaded library makes files slow; sanitizers do not accept it

check($_) for grep { $_->[0] ne 'disk' || !$t->sanitizers() } @cases;

# other requests take a part of the worker's time, then most of it

my %again = map { $_ => 1 } 'first byte', 'header', 'body', 'unbuffered body',
                            'sleep', 'TLS', 'HTTP/2';

for my $clients (1, 4) {
    my $load = $t->load('/busy?ms=3', clients => $clients);

    check($_, $clients) for grep { $again{$_->[0]} } @cases;
    is($load->stop()->{failed}, 0, "$clients clients are all served");
}


# a worker that is busy for a known time; the upstream reports when it answered,
# which is late if it had no CPU

my $asked = time();
my $waiting = http_get('/first/100?keep=1&stall', start => 1);
sleep 0.05;
my $busy = http_get('/busy?ms=450', start => 1);
http_end($_) for $waiting, $busy;

my ($line) = lines('/first/100?keep=1&stall');
my $p = stored($line->{id});
my $held = below($p, qr/^worker (?:busy|without)/);
my $late = $t->read_file('answered') - $asked - 0.1;
cmp_ok($held, '>=', 0.2 - $late, 'stall: the worker was busy')
    or diag("$late\n$p");
cmp_ok($held, '<=', (lines('/busy?ms=450'))[0]{longest},
       'stall: not longer than it was');
cmp_ok($held + below($p, qr/^upstream first byte/), '>=', 0.95 * 0.5,
       'stall: the rest is the upstream\'s');
cmp_ok(abs($line->{stall} - $held), '<=', 0.01,
       '$profile_stall_time is the time of the stall');


sub check {
    my ($case, $clients) = @_;
    my ($name) = @$case;

    is(join("\n", wrong($case, $clients)), '',
       $clients ? "$name, $clients clients" : $name);
}


# returns the errors in a profile of the case
sub wrong {
    my ($case, $clients) = @_;
    my (undef, $uri, $cause, $get, $delay) = @$case;

    $delay ||= DELAY;
    $number++;

    $uri = sprintf($uri, $number) if $uri =~ /%d/;
    $uri .= ($uri =~ /\?/ ? '&' : '?') . "keep=1&n=$number";

    ($get || \&http_get)->($uri);

    my ($line) = lines($uri);
    my $p = stored($line->{id});

    my $waited = below($p, $cause);
    my $busy = below($p, qr/^worker (?:busy|without)/);
    my $unknown = below($p, qr/^unknown/);
    my $sum = sum0(map { (/^.* (\d+)$/)[0] } split /\n/, $p) / 1e9;

    $waited += $busy if $clients;

    my @wrong;

    # on a busy machine nginx may read the first late data late

    push @wrong, "the request takes $line->{rt}" if $line->{rt} < 0.5 * $delay;
    push @wrong, "the cause has $waited of $delay"
        if $waited < 0.95 * min($delay, $line->{rt});
    push @wrong, "$unknown unknown"
        if $unknown > max(0.01 * below($p, qr/./), 0.0005);

    # $request_time is in milliseconds, of a clock that may be 0.1 ms behind

    push @wrong, "sums to $sum of $line->{rt}"
        if abs($sum - $line->{rt}) > max(0.0011, 0.01 * $line->{rt});

    return @wrong ? (@wrong, $p) : ();
}


# seconds of waiting
sub below {
    my ($folded, $cause) = @_;

    return sum0(map { my ($stack, $weight) = /^\[waiting\];(.*) (\d+)$/;
                      defined $stack && $stack =~ $cause ? $weight : 0 }
                split /\n/, $folded) / 1e9;
}


sub stored {
    my ($id) = @_;
    my $r;

    wait_for(sub { $r = http_get("/-/profile/p/$id/folded");
                   $r->status() == 200 });

    return $r->content();
}


sub lines {
    my ($uri) = @_;
    my @lines;

    wait_for(sub { @lines = grep { /^\Q$uri\E / }
                            split /\n/, $t->read_file('id.log') });

    return map { +{ /(\w+)=(\S+)/g } } map { s/^\S+ //r } @lines;
}


# Clients

sub slow_header {
    my ($uri) = @_;

    my $s = open_socket();
    print $s "GET $uri HTTP/1.0\r\n";
    sleep DELAY;
    print $s "\r\n";
    1 while sysread($s, my $buf, 65536);
}


sub slow_body {
    my ($uri) = @_;

    my $s = open_socket();
    print $s "POST $uri HTTP/1.0\r\nContent-Length: 10\r\n\r\n12345";
    sleep DELAY;
    print $s '67890';
    1 while sysread($s, my $buf, 65536);
}


sub large_body {
    my ($uri) = @_;
    http_post($uri, 'x' x 20_000_000);
}


sub slow_reader {
    my ($uri) = @_;

    my $s = open_socket(Sockopts => [ [ SOL_SOCKET, SO_RCVBUF, 16384 ] ]);
    print $s "GET $uri HTTP/1.0\r\n\r\n";
    sleep DELAY + 0.05;
    1 while sysread($s, my $buf, 1 << 20);
}


sub twice {
    my ($uri) = @_;

    http_get('/limit_req');
    http_get($uri);
}


# for the place of another one
sub queued {
    my ($uri) = @_;

    my $other = http_get('/queue', start => 1);
    sleep 0.05;
    http_get($uri);
    http_end($other);
}


# a request for the same entry of a cache
sub after_another {
    my ($uri) = @_;

    (my $first = $uri) =~ s/\?.*//;
    my $other = http_get($first, start => 1);
    sleep 0.02;
    http_get($uri);
    http_end($other);
}


sub open_socket {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                 PeerPort => port(8080), @_)
        // die "connect: $!\n";
}


sub h2 {
    my ($uri, $body) = @_;
    my $done = 0;

    my $client = Protocol::HTTP2::Client->new(keepalive => 1);

    $client->request(':scheme' => 'http', ':authority' => 'localhost',
                     ':path' => $uri, ':method' => $body ? 'POST' : 'GET',
                     headers => [], $body ? (data => '1234567890') : (),
                     on_done => sub { $done = 1 },
                     on_error => sub { $done = 1 });

    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => port(8088)) or die "$!\n";
    my $select = IO::Select->new($s);
    my $end = time() + 10;

    while (!$done && time() < $end) {

        while (my $frame = $client->next_frame()) {

            # DATA is late

            sleep DELAY if $body && ord(substr($frame, 3, 1)) == 0;
            syswrite($s, $frame);
        }

        next unless $select->can_read(0.005);
        sysread($s, my $buf, 65536) or last;
        $client->feed($buf);
    }
}


# /first/MS, /header/MS, /body/MS: waits before that part of the response
sub answer {
    my ($c, $how) = @_;

    $c->autoflush(1);

    sleep DELAY if $how =~ /handshake|late/;
    return if $how eq 'handshake';

    my $request = '';
    while ($request !~ /\r\n\r\n/) {
        sysread($c, $request, 65536, length $request) or return;
    }

    my $body = $request =~ /Content-Length: (\d+)/ ? $1 : 0;
    $body -= length $1 if $request =~ /\r\n\r\n(.*)/s;
    $body -= sysread($c, my $rest, 65536) || return while $body > 0;

    sleep 5 if $how eq 'silent';
    sleep 0.2 if $how eq 'closes';
    return if $how eq 'closes';

    my ($part, $ms) = $request =~ m{/(first|header|body)/(\d+)};
    my $size = $request =~ m{/size/(\d+)} ? $1 : 4;
    my $wait = sub { sleep(($ms // 0) / 1000) if ($part // '') eq $_[0] };

    $wait->('first');
    print $c "HTTP/1.0 200 OK\r\n";
    $wait->('header');
    print $c "X-Accel-Redirect: /first/400\r\n" if $request =~ m{ /accel};
    print $c "Content-Length: $size\r\n\r\nab";
    $wait->('body');

    # the last bytes follow later: a reader of the whole body has to wait

    $t->write_file('answered', time());
    print $c 'c' x ($size - 2);
}
