#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: bar html
# runs: beside
#
# Pages that the application has compressed get the bar as well.  Requests of
# clients that may see the bar ask for what the module can read; other requests,
# responses and caches are as without the module.  Perl's zlib is the other side.

use strict;
use warnings;

use Compress::Raw::Zlib;
use File::Basename qw/ dirname /;
use IO::Select;
use Test::More;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Process;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ cache gzip map proxy rewrite /)->plan(112);

my $locations = <<'EOF';
        profile_bar on;
        location /-/profile/ { profile_console; }
        location / {
            proxy_pass http://127.0.0.1:8082;
        }
        location /stream/ {
            proxy_pass http://127.0.0.1:8082/;
            proxy_buffering off;
        }
        location /again/ {
            gzip on;
            gzip_min_length 0;
            gzip_proxied any;
            proxy_pass http://127.0.0.1:8082/;
        }
        location /cached/ {
            proxy_pass http://127.0.0.1:8082/;
            proxy_cache c;
            proxy_cache_valid 1m;
        }
        location /redirected {
            rewrite ^ /app/redirected last;
        }
        location /if/ {
            profile_if $wanted;
            access_log %%TESTDIR%%/if.log seen;
            proxy_pass http://127.0.0.1:8082/;
        }
EOF

my $v2 = $t->has_module('v2') ? <<'EOF' : '';
    server {
        listen 127.0.0.1:8085 http2;
        server_name localhost;
        profile_endpoint on;
%%LOCATIONS%%
    }
EOF

my $conf = <<'EOF';
%%MODULES%%
%%GLOBALS%%
worker_processes 1;
error_log %%TESTDIR%%/worker.log info;

events {
}

http {
    %%GLOBALS_HTTP%%
    error_log %%TESTDIR%%/error.log info;

    proxy_cache_path %%TESTDIR%%/cache keys_zone=c:1m;
    proxy_http_version 1.1;
    proxy_set_header Connection "";

    log_format seen '<$http_accept_encoding|$late>';
    access_log %%TESTDIR%%/access.log seen;

    map $cookie_bar $wanted {
        1 $maybe;
    }

    map $upstream_status $maybe {
        default 1;
    }

    map $upstream_status $late {
        volatile;
        default "status $upstream_status";
    }

    server {
        listen 127.0.0.1:8080;
        server_name localhost;
        profile_endpoint on;
%%LOCATIONS%%
    }

%%V2%%

    server {
        listen 127.0.0.1:8084;
        server_name localhost;
        profile_endpoint on;
        profile_allow 192.0.2.1;
%%LOCATIONS%%
    }
}
EOF

$conf =~ s/%%V2%%/$v2/;
$conf =~ s/%%LOCATIONS%%/$locations/g;
$t->write_file_expand('nginx.conf', $conf);

my $page = '<!DOCTYPE html><html><body>'
           . join('', map { "<p>line $_ " . ($_ * 7919 % 1000) } 1 .. 3000)
           . '</body></html>';
my $huge = '<html><body>' . 'twenty megabytes ' x (20 * 1024 * 1024 / 17);

run_server($t, 8082, sub { 1 while serve($_[0]) });

$t->run();

my $bar = qr{<script async src="[^>]*></script>};
my $browser = 'Accept-Encoding: gzip, deflate, br, zstd';

###############################################################################

# what the application is asked for

for my $case ([ 'gzip, deflate, br, zstd', 'gzip' ],
              [ 'br;q=1.0, gzip;q=0.8, *;q=0.1', 'gzip' ],
              [ 'br', 'identity' ],
              [ 'zstd, gzip;q=0', 'identity' ],
              [ 'gzip, dcb', 'gzip' ],
              [ 'gzip', 'gzip' ],
              [ 'gzip, deflate', 'gzip, deflate' ],
              [ 'deflate', 'deflate' ],
              [ '', 'none' ])
{
    my ($client, $application) = @$case;

    my $r = page('/app/asked', headers => [
        $client ? "Accept-Encoding: $client" : () ]);

    is($r->header('X-Asked'), $application,
       "\"$client\" asks the application for \"$application\"");
    is_bar($r, $page, "\"$client\"");
}

ok(wait_for(sub {
       $t->read_file('access.log')
       =~ /^<gzip, deflate, br, zstd\|status 200>$/m
   }), 'the log has the header of the client, and variables of the response');
is(page('/redirected', headers => [ $browser ])->header('X-Asked'), 'gzip',
   'a request that is redirected asks for it as well');

for my $case ([ 'a client that may not', 8084, 'Accept: text/html' ],
              [ 'a script', 8080, 'Sec-Fetch-Dest: empty' ],
              [ 'an image', 8080, 'Accept: image/png' ])
{
    my ($who, $port, $header) = @$case;
    my $r = http_get('/app/asked', port => $port,
                     headers => [ $browser, $header ]);

    is($r->header('X-Asked'), 'gzip, deflate, br, zstd',
       "$who asks for its own encodings");
    is($r->header('Content-Encoding'), 'br', "$who gets what it asks for");
    is($r->body(), 'not really brotli', "$who gets the bytes as they are");
}

# profile_if may depend on variables that the response sets

is(page('/if/app/asked', headers => [ $browser ])->header('X-Asked'),
   'gzip, deflate, br, zstd', 'without the cookie nothing is replaced');
is(page('/if/app/asked', headers => [ $browser, 'Cookie: bar=1' ])
       ->header('X-Asked'), 'gzip', 'with the cookie it is');
ok(wait_for(sub {
       $t->read_file('if.log') =~ /\|status 200>\n.*\|status 200>$/
   }), 'variables are not kept from an early evaluation');


# the encodings

for my $location ('', '/stream', '/again') {
    for my $kind (qw/ gzip x-gzip zlib raw members pieces chunked byte
                      trailing identity /)
    {
        my $r = page("$location/app/$kind", headers => [ $browser ]);
        is_bar($r, $page, "$location $kind");
        is($r->header('Content-Encoding'),
           $location eq '/again' ? 'gzip'
                                 : $kind eq 'identity' ? 'identity' : undef,
           "$location $kind: the encoding of the response") if
           $location ne '/again' || $kind ne 'identity';
    }
}

is_bar(page('/app/short', headers => [ $browser ]), 'x', 'a page of one byte');
is_bar(page('/app/nothing', headers => [ $browser ]), '',
       'a compressed page without text');

my $r = page('/app/brotli', headers => [ $browser ]);
is($r->body(), 'not really brotli', 'other encodings are passed on');
like($t->read_log(),
     qr/no bar in a page that came with "Content-Encoding: br"/,
     'and the log says so');


# broken pages

$r = page('/app/cut', headers => [ $browser ]);
like($r->body(), qr/^<!DOCTYPE html>.*line 1 .*$bar$/s,
     'a page that ends early has its beginning, and the bar');
like($t->read_log(), qr/the compressed page for the bar is not complete/,
     'the log says that it ended early');

$r = page('/app/damaged', headers => [ $browser ]);
unlike($r->body(), qr/line 3000/, 'a damaged page ends where it is damaged');
like($t->read_log(), qr/the page for the bar is not valid in its "Content-Enc/,
     'the log says that it is damaged');
is_bar(page('/app/gzip', headers => [ $browser ]), $page,
       'the next page is whole');


# nginx's cache keeps what the application sent, for each client its own

my @plain = ('Accept: text/html', $browser);

for my $round (1, 2) {
    is(http_get('/cached/app/asked', port => 8084, headers => [ @plain ])
           ->body(), 'not really brotli',
       "round $round: another client gets its own page from the cache");
    is_bar(page('/cached/app/asked', headers => [ $browser ]), $page,
           "round $round: cached");
}

my $packed = pack_page('gzip', $page);

for my $round (1, 2) {
    is_bar(page('/cached/app/gzip', headers => [ 'Accept-Encoding: gzip' ]),
           $page, "round $round: cached, gzip");
    is(http_get('/cached/app/gzip', port => 8084,
                headers => [ 'Accept: text/html', 'Accept-Encoding: gzip' ])
           ->body(), $packed,
       "round $round: another client gets the application's bytes");
}


SKIP: {
    skip 'no curl with HTTP/2', 1
        unless `sh -c "curl -V 2>&1"` =~ /HTTP2/ && $t->has_module('v2');

    my (undef, $body) = $t->command('curl', '-s', '--http2-prior-knowledge',
                                    '-H', 'Accept: text/html', '-H', $browser,
                                    'http://127.0.0.1:' . port(8085)
                                    . '/app/pieces');

    ok($body =~ s/$bar// && $body eq $page, 'HTTP/2: the page and the bar');
}


# a small response that becomes a page of 20 MB: a client that does not read
# costs no memory, and others are served meanwhile

my ($pid) = $t->worker_pids();
my $before = process_status($pid, 'VmRSS');
my $slow = page('/app/huge', headers => [ $browser ], start => 1);

sleep(1);
is(http_get('/app/short')->status(), 200, 'other requests are served');
cmp_ok(process_status($pid, 'VmRSS') =~ s/\D//gr, '<',
       ($before =~ s/\D//gr) + 4096, 'the page is not held in memory');

is_bar(http_end($slow, timeout => 60), $huge, 'the page of 20 MB');

# the page with a bar, wherever it is
sub is_bar {
    my ($r, $text, $name) = @_;

    my $got = ($r->header('Content-Encoding') // '') eq 'identity'
              ? $r->body() : $r->content() // '';
    my $found = ($got =~ s/$bar//);

    ok($found && $got eq $text, "$name: the page and the bar")
        or diag(length($got), ' ', substr($got, 0, 300));
}


sub page {
    my ($uri, %options) = @_;

    my @headers = ('Accept: text/html', @{delete $options{headers} || []});

    return http_get($uri, headers => \@headers, %options);
}


sub pack_page {
    my ($kind, $text) = @_;

    my ($z) = Compress::Raw::Zlib::Deflate->new(
        -AppendOutput => 1,
        -WindowBits => $kind eq 'zlib' ? 15 : $kind eq 'raw' ? -15
                                                   : 31);
    my $out = '';
    $z->deflate($text, $out);
    $z->flush($out);

    return $out;
}


# the application
sub serve {
    my ($s) = @_;

    my $request = read_request($s) // return;
    my ($kind) = $request =~ m{^\S+ /app/(\w[\w-]*)};
    my ($asked) = $request =~ /^Accept-Encoding: (.*?)\r$/mi;
    my ($coding, $body) = ('gzip');
    my @pieces;

    if ($kind =~ /^(?:asked|redirected)$/) {
        $coding = ($asked // '') =~ /\bbr\b/ ? 'br'
                  : ($asked // '') =~ /gzip(?!;q=0\b)/ ? 'gzip'
                  : ($asked // '') =~ /deflate/ ? 'deflate' : '';
        $body = $coding eq 'br' ? 'not really brotli'
                : $coding eq 'gzip' ? pack_page('gzip', $page)
                : $coding eq 'deflate' ? pack_page('zlib', $page) : $page;

    } elsif ($kind eq 'x-gzip') {
        ($coding, $body) = ('X-GZip', pack_page('gzip', $page));

    } elsif ($kind eq 'zlib' || $kind eq 'raw') {
        ($coding, $body) = ('deflate', pack_page($kind, $page));

    } elsif ($kind eq 'members') {
        $body = join('', map { pack_page('gzip', $_) }
                             $page =~ /(.{1,9000})/gs);

    } elsif ($kind eq 'identity') {
        ($coding, $body) = ('identity', $page);

    } elsif ($kind eq 'brotli') {
        ($coding, $body) = ('br', 'not really brotli');

    } elsif ($kind eq 'short' || $kind eq 'nothing') {
        $body = pack_page('gzip', $kind eq 'short' ? 'x' : '');

    } else {
        $body = pack_page('gzip', $kind eq 'huge' ? $huge : $page);
    }

    $body .= 'and more' if $kind eq 'trailing';
    substr($body, length($body) / 2) = '' if $kind eq 'cut';
    substr($body, length($body) / 2, 100) = "\xff" x 100
        if $kind eq 'damaged';

    @pieces = $kind eq 'pieces' ? $body =~ /(.{1,700})/gs
              : $kind eq 'chunked' ? $body =~ /(.{1,1500})/gs
              : $kind eq 'byte' ? ($body =~ /^(.)(.)(.)(.*)$/s) : ($body);

    my $chunked = $kind eq 'chunked';

    my $out = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
              . "Vary: Accept-Encoding\r\nX-Asked: " . ($asked // 'none')
              . "\r\n" . ($coding ? "Content-Encoding: $coding\r\n" : '')
              . ($chunked ? "Transfer-Encoding: chunked\r\n"
                          : 'Content-Length: ' . length($body) . "\r\n")
              . "\r\n";

    for my $piece (@pieces, $chunked ? '' : ()) {
        $out .= $chunked ? sprintf("%x\r\n%s\r\n", length($piece), $piece)
                         : $piece;

        while (length($out)) {
            my $n = syswrite($s, $out) or return;
            substr($out, 0, $n, '');
        }

        sleep(0.01) if $kind eq 'byte';
    }

    return 1;
}
