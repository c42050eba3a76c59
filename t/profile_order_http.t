#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: beside

# Requests get the answers that they get without the module, and nginx's own
# handlers run in the same order, after the worker was kept for longer than
# timeouts: answers of upstreams that came in time, clients that have left,
# requests on new connections and on those kept alive, HTTP/2, and scripts.
#
# While the worker waits for a named pipe, all this is made ready in a certain
# order.  nginx's debug log tells which handlers run.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest;
use ProfileTest::Module;

use constant TIMEOUT => 1;

my $t = ProfileTest->new()->has(qw/ debug proxy v2 /);
my $lua = $t->has_module('lua');
my $so = build_module($t, 'ngx_http_order_test_module');

POSIX::mkfifo($t->testdir() . '/gate', 0666) or die "mkfifo: $!\n";
chmod 0666, $t->testdir() . '/gate';

$t->write_file('text', "a text\n");

my $upstream = IO::Socket::INET->new(Proto => 'tcp', Listen => 16,
                                     ReuseAddr => 1,
                                     LocalAddr => '127.0.0.1',
                                     LocalPort => port(8081))
    or die "cannot listen: $!\n";

my %directives = (
    accounting => 'profile_accounting on;',
    keep => 'profile_keep 0;',
    stalls => 'profile_stall_threshold 1ms;',
);

for my $method (qw/ epoll poll select /) {
    my ($status) = $t->test_config("events { use $method; }\nhttp { }\n");
    next if $status;

    for my $mutex (qw/ off on /) {
        my $name = "$method, accept_mutex $mutex";
        my $events = "use $method; accept_mutex $mutex;";
        my ($plain, %answers) = order($events, 0, '');

        like($plain, qr/http upstream request/, "$name: there are handlers");

        if ($method eq 'epoll' && $mutex eq 'off') {
            like($answers{'in time'}, qr/ 200 /, "$name: in time");
        }

        for my $directive (sort keys %directives) {
            my ($got, %got) = order($events, 1, $directives{$directive});

            is_deeply(\%got, \%answers, "$name: $directive: answers");
            is($got, $plain, "$name: $directive: order");
        }
    }
}

close $upstream;


# returns the log lines of nginx's handlers for a kept worker, and the answers

sub order {
    my ($events, $module, $directive) = @_;

    configure($events, $module, $directive);

    $t->write_file('order.log', '');
    $t->run();

    my @stopped = $t->stop_other_worker('/text');
    my (%clients, %upstreams);

    for my $name ('in time', 'late', 'left') {
        $clients{$name} = http_get('/proxied', start => 1);
        $upstreams{$name} = $upstream->accept();
        sysread($upstreams{$name}, my $request, 65536);
    }

    for my $name ('kept alive', 'kept in time') {
        my $port = $name eq 'kept alive' ? 8080 : 8082;

        $clients{$name} = http_get('/text', start => 1, keepalive => 1,
                                   port => $port);
        http_end($clients{$name});
    }

    $clients{h2} = h2_connect();

    my $gate = http_get('/order?gate', start => 1);
    my $kept = time();

    # this returns when the worker waits at the other end

    open my $pipe, '>', $t->testdir() . '/gate' or die "open: $!\n";

    answer($upstreams{'in time'});
    close $clients{left};
    answer($upstreams{left});
    delete @clients{qw/ left /};

    http_get('/text?alive', socket => $clients{'kept alive'}, start => 1);
    http_get('/text?short', socket => $clients{'kept in time'}, start => 1);
    $clients{new} = http_get('/text?new', start => 1);
    h2_request($clients{h2}, '/text?h2');

    if ($lua) {
        $clients{scripted} = http_get('/scripted', start => 1);
        $clients{yields} = http_get('/yields', start => 1);
    }

    $clients{keep} = http_get('/order?keep', start => 1);

    # timeouts are not over before that

    my $left = TIMEOUT + 0.2 - (time() - $kept);
    sleep $left if $left > 0;
    close $pipe;

    my %answers = (gate => '' . http_end($gate));

    $answers{$_} = $_ eq 'h2' ? h2_answer($clients{$_})
                              : '' . http_end($clients{$_})
        for sort keys %clients;

    s/^Date: .*\n//m for values %answers;

    http_get('/end');

    kill 'CONT', @stopped;
    close $_ for values %upstreams, values %clients;
    $t->stop();

    return (handlers($t->read_log('order.log')), %answers);
}


sub configure {
    my ($events, $module, $directive) = @_;

    # %%MODULES%% has the module under test as its last line

    my $modules = $t->expand('%%MODULES%%');
    $modules =~ s/[^\n]*\z// unless $module;

    my $workers = $events =~ /mutex on/ ? 2 : 1;
    my $scripts = !$lua ? '' : <<'EOC';
        location /scripted {
            content_by_lua_block {
                local first

                ngx.thread.spawn(function()
                    local sock = ngx.socket.tcp()
                    sock:connect("127.0.0.1", %%PORT_8084%%)
                    first = first or "connect"
                end)

                -- both are there at the next poll

                local till = os.clock() + 0.01
                while os.clock() < till do end

                ngx.sleep(0.001)
                first = first or "sleep"
                ngx.say(first)
                ngx.exit(200)
            }
        }

        location /yields {
            content_by_lua_block {
                for i = 1, 5 do ngx.sleep(0) end
                ngx.say("awake")
            }
        }
EOC

    $t->write_file_expand('nginx.conf', <<"EOC");
$modules
load_module $so;
%%GLOBALS%%
error_log %%TESTDIR%%/order.log debug;
worker_processes $workers;

events {
    $events
}

http {
    %%GLOBALS_HTTP%%
    $directive
    keepalive_timeout 60s;

    server {
        listen 127.0.0.1:8080;
        listen 127.0.0.1:8083 http2;

        location / { }

        location /order {
            order_test;
        }

        location /proxied {
            proxy_read_timeout @{[ TIMEOUT ]}s;
            proxy_pass http://127.0.0.1:8081;
        }

$scripts
    }

    server {
        listen 127.0.0.1:8082;
        keepalive_timeout @{[ TIMEOUT ]}s;
    }
}
EOC
}


sub answer {
    my ($s) = @_;

    syswrite($s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                 . "Connection: close\r\n\r\nok");
    shutdown($s, 1);
}


# the lines that handlers begin with, and the ends of requests; connections are
# numbered from that of the gate on

sub handlers {
    my ($log) = @_;

    my ($gate) = $log =~ /\*(\d+) http request line: "GET \/order\?gate/;

    $log =~ s/.*?"GET \/order\?gate[^\n]*\n//s;
    $log =~ s/[^\n]*\/end.*//s;

    my @lines = grep { /^\*\d+\ (?:
            accept\ |http2?\ .*\bhandler|http\ wait\ request|
            http\ process\ request|http\ run\ request|http\ upstream\ request|
            http\ upstream\ check\ client|http\ upstream\ dummy|
            http\ finalize\ request|http\ keepalive|close\ http\ connection|
            lua\ .*handler|lua\ .*thread
        )/x } $log =~ /^\S+ \S+ \[debug\] \S+ (\*\d+ .*)/mg;

    s/^\*(\d+)/$1 - $gate/e for @lines;
    s/\b(?:0x)?[0-9A-F]{8,}\b/ADDRESS/gi, s/(connection): \d+/$1/ for @lines;

    return join("\n", @lines, '');
}


# HTTP/2 in a few bytes

sub h2_frame {
    my ($type, $flags, $stream, $payload) = @_;

    return substr(pack('N', length($payload)), 1)
           . pack('CCN', $type, $flags, $stream) . $payload;
}


sub h2_connect {
    my $s = IO::Socket::INET->new(Proto => 'tcp', PeerAddr => '127.0.0.1',
                                  PeerPort => port(8083))
        or die "connect: $!\n";

    syswrite($s, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . h2_frame(4, 0, 0, ''));

    # the server's settings, and that it has got ours

    my $got = '';
    1 while index($got, h2_frame(4, 1, 0, '')) < 0
            && sysread($s, $got, 65536, length($got));

    return $s;
}


sub h2_request {
    my ($s, $path) = @_;

    syswrite($s, h2_frame(1, 5, 1, "\x82\x86\x04" . pack('C/a', $path)
                                   . "\x01" . pack('C/a', 'localhost')));
}


sub h2_answer {
    my ($s) = @_;

    my ($got, $select, $end) = ('', IO::Select->new($s), time() + 10);

    while (index($got, "a text\n") < 0 && time() < $end) {
        $select->can_read(1) or next;
        sysread($s, $got, 65536, length($got)) or last;
    }

    return $got =~ /(a text\n)/ ? $1 : 'nothing';
}
