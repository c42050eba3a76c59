#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: beside
#
# Captured requests that FastCGI and uwsgi applications answer, while other
# clients keep the worker busy with regular expressions.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Attribution;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ debug fastcgi map rewrite /);

my $uwsgi = $t->has_module('uwsgi') && -x '/usr/bin/uwsgi-core'
            && -r '/usr/lib/uwsgi/plugins/python3_plugin.so';

$t->plan(6 * 7 + ($uwsgi ? 3 * 7 : 0) + 1);

my $pass = $uwsgi ? <<'EOF' : '';
        location /uwsgi {
            include %%TESTDIR%%/uwsgi_params;
            uwsgi_pass unix:%%TESTDIR%%/uwsgi.sock;
        }
EOF

$t->write_file_expand('nginx.conf', <<'EOF' =~ s/%%UWSGI%%/$pass/r);
%%MODULES%%
%%GLOBALS%%
error_log %%TESTDIR%%/worker.log debug_http;
worker_processes 1;

events {
    worker_connections 256;
}

http {
    %%GLOBALS_HTTP%%
    %%SLOW_MAP%%
    error_log %%TESTDIR%%/error.log info;

    upstream kept {
        server 127.0.0.1:8081;
        keepalive 2;
    }

    fastcgi_param REQUEST_METHOD $request_method;
    fastcgi_param CONTENT_LENGTH $content_length;
    fastcgi_param QUERY_STRING $query_string;

    server {
        listen 127.0.0.1:8080;

        profile_endpoint on;

        location /loop {
            return 200 "done$slow";
        }

        location /new {
            fastcgi_pass 127.0.0.1:8081;
        }

        location /kept {
            fastcgi_keep_conn on;
            fastcgi_pass kept;
        }

        location /unbuffered {
            fastcgi_buffering off;
            fastcgi_pass 127.0.0.1:8081;
        }

        location /refused {
            fastcgi_pass 127.0.0.1:8082;
        }

%%UWSGI%%
    }
}
EOF

$t->write_file('uwsgi_params', <<'EOF');
uwsgi_param REQUEST_METHOD $request_method;
uwsgi_param CONTENT_LENGTH $content_length;
uwsgi_param QUERY_STRING $query_string;
uwsgi_param REQUEST_URI $request_uri;
uwsgi_param PATH_INFO $document_uri;
uwsgi_param SERVER_PROTOCOL $server_protocol;
uwsgi_param SERVER_NAME $server_name;
uwsgi_param SERVER_PORT $server_port;
EOF

$t->write_file('app.py', <<'EOF');
import time


def application(env, start_response):
    size = len(env['wsgi.input'].read())
    time.sleep(0.2)
    start_response('200 OK', [('Content-Type', 'text/plain')])
    yield ('%d %s\n' % (size, env['QUERY_STRING'])).encode()
    time.sleep(0.1)
    yield b'slow and steady\n' * 1000
EOF

if ($uwsgi) {
    my $dir = $t->testdir();

    $t->run_daemon('/usr/bin/uwsgi-core', '--plugin', 'python3', '--master',
                   '--processes', 2, '--chmod-socket=666', '--die-on-term',
                   '--socket', "$dir/uwsgi.sock", '--wsgi-file',
                   "$dir/app.py");
    $t->wait_for_socket("$dir/uwsgi.sock") or die "no uwsgi\n";
}

run_server($t, 8081, sub { 1 while answer($_[0]) });
port(8082);

$t->run();

my $busy = '/loopaaaaaaaaaaaaaa!';

http_get($busy);
is_clean($t);

my $load = $t->load($busy, clients => 3);

is_captured($t, 'FastCGI', '/new?a=b', waits => 0.2);
is_captured($t, 'FastCGI, kept alive', '/kept', waits => 0.2) for 1 .. 2;
is_captured($t, 'FastCGI, body', '/kept?a=b', waits => 0.2, get => \&post);
is_captured($t, 'FastCGI, unbuffered', '/unbuffered', waits => 0.2);
is_captured($t, 'FastCGI, refused', '/refused', status => 502);

if ($uwsgi) {
    is_captured($t, 'uwsgi', '/uwsgi?a=b', waits => 0.3) for 1 .. 2;
    is_captured($t, 'uwsgi, body', '/uwsgi', waits => 0.3, get => \&post);
}

is($load->stop()->{failed}, 0, 'other requests are served');


sub post {
    my ($uri, %extra) = @_;
    return http_post($uri, 'x' x 300000, %extra);
}


# a FastCGI application; a process for each connection

# answers one request in two pieces; returns whether others may follow

sub answer {
    my ($s) = @_;

    my ($keep, $params, $size) = (0, '', 0);

    while (1) {
        my ($type, $content) = get_record($s) or return;

        $keep = ord(substr($content, 2, 1)) & 1 if $type == 1;
        $params .= $content if $type == 4;

        if ($type == 5) {
            last if $content eq '';
            $size += length($content);
        }
    }

    my ($query) = $params =~ /QUERY_STRING(a=b)?/;

    sleep(0.1);
    put_record($s, 6, "Content-Type: text/plain\r\n\r\n$size " . ($1 // '')
                      . "\n");
    sleep(0.1);
    put_record($s, 6, "slow and steady\n" x 1000);
    put_record($s, 6, '');
    put_record($s, 3, "\0" x 8);

    return $keep;
}


# (type, content)

sub get_record {
    my ($s) = @_;

    read($s, my $header, 8) == 8 or return;

    my (undef, $type, undef, $length, $padding) = unpack('CCnnC', $header);
    my $content = '';

    read($s, $content, $length + $padding) == $length + $padding
        or return if $length + $padding;

    return ($type, substr($content, 0, $length));
}


sub put_record {
    my ($s, $type, $content) = @_;

    syswrite($s, pack('CCnnCx', 1, $type, 1, length($content), 0) . $content);
}
