#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside
#
# Captured requests whose files are read by the threads of a pool.  The
# completion of a read is an event of the whole worker, but the code that it
# resumes belongs to one request.  The profile has the work on the data that was
# read.  It has no work of the threads, and no work for other clients, which
# keep the worker busy.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ debug gzip map proxy rewrite ssi threads /)
                          ->plan(9 * 7 + 31);

$t->write_file_expand('nginx.conf', <<'EOF');
%%MODULES%%
%%GLOBALS%%
error_log %%TESTDIR%%/worker.log debug_http;
worker_processes 1;

thread_pool default threads=2;
thread_pool one threads=1;

events {
    worker_connections 256;
}

http {
    %%GLOBALS_HTTP%%
    %%SLOW_MAP%%
    %%CONF worker_log%%

    sendfile off;
    aio threads;
    aio_write on;
    output_buffers 2 16k;

    proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;

    server {
        listen 127.0.0.1:8080;

        profile_endpoint on;

        # Other requests use the same threads, and a regular expression that
        # fails after about a millisecond.

        location /loop {
            set $said $slow;
            rewrite ^ /small break;
        }

        location /text {
            gzip on;
        }

        location /plain {
            rewrite ^ /text break;
        }

        location /sendfile {
            sendfile on;
            rewrite ^ /text break;
        }

        location /direct {
            gzip on;
            directio 4k;
            rewrite ^ /text break;
        }

        location /one {
            gzip on;
            aio threads=one;
            rewrite ^ /text break;
        }

        location /ssi {
            ssi on;
            ssi_types text/plain;
            gzip on;
        }

        location /cached {
            gzip on;
            proxy_cache cache;
            proxy_cache_valid 1h;
            proxy_cache_key $uri;
            proxy_pass http://127.0.0.1:8082/text;
        }

        location /temp {
            gzip on;
            proxy_buffers 4 4k;
            proxy_buffer_size 4k;
            proxy_busy_buffers_size 8k;
            proxy_pass http://127.0.0.1:8082/text;
        }

        location /twice {
            gzip on;
            error_page 404 = /text;
            aio threads=one;
        }
    }

    server {
        listen 127.0.0.1:8082;
    }
}
EOF

my $text = join('', map { sprintf("line %d: %x\n", $_,
                                  $_ * 2654435761 % 4294967296) } 1 .. 40000);
$t->write_file('text', $text);
$t->write_file('small', substr($text, 0, 2000));
$t->write_file('ssi', join('', map { "<!--#include virtual=\"$_\" -->\n" }
                                   qw( /text /direct /small /text )));

$t->run();

my $busy = '/loopaaaaaaaaaaaaaa!';
my @gzip = (headers => [ 'Accept-Encoding: gzip' ], runs => 1);

http_get($_) for $busy, '/text', '/one';
is_clean($t);

my $load = $t->load($busy, clients => 3);

for my $uri (qw( /text /direct /one /ssi /cached /temp /twice )) {
    my $p = is_captured($t, $uri, $uri, @gzip);

    cmp_ok(share_of($p, 'zlib'), '>', 0.5, "$uri: work on what was read");
    cmp_ok(info($p)->{turns}, '>', 3, "$uri takes several turns");
}

is_captured($t, $_, $_) for qw( /plain /sendfile );


# many captures at the same time

my $args = 'performance_bar=flamegraph&profile_format=speedscope';
my @s = map {
    http("GET $_?$args HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
         . "Accept-Encoding: gzip\r\n\r\n", start => 1)
} qw( /text /one /plain /text /one /direct /cached );

for my $s (@s) {
    my $p = eval { ProfileTest::Profile->new(http_end($s)) };

    ok($p, 'at once') or diag($@) and next;
    is_attributed($p, 'map', 'at once');
}

is_clean($t, 'at once');


# the client leaves while a thread reads for it

for my $i (1 .. 20) {
    my $s = http("GET /text?$args HTTP/1.1\r\nHost: localhost\r\n"
                 . "Accept-Encoding: gzip\r\n\r\n", start => 1);
    select(undef, undef, undef, 0.002 * $i);
    close $s;
}

is_clean($t, 'left');
is($load->stop()->{failed}, 0, 'other requests are served');
