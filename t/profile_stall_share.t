#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: keep loop

# $profile_stall_time while other clients keep the worker busy, compared with a
# measurement without the module: a library that is preloaded into nginx reads
# the clock when the worker reads data of the upstream, and the upstream writes
# into its responses when it has sent them.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ clock_gettime sleep time CLOCK_MONOTONIC /;

use ProfileTest;
use ProfileTest::Preload;

use constant {
    WAIT => 0.03,
    SECONDS => 3,
};

my $t = ProfileTest->new()->has(qw/ lua proxy ssl v2 /)
                          ->has_program(qw/ cc h2load openssl /);

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();
$t->write_certificate('localhost');

$t->conf(<<'EOF');
log_format stall '$uri $request_id $profile_stall_time $request_time '
                 '$upstream_connect_time';
access_log %%TESTDIR%%/stall.log stall;

profile_accounting on;
keepalive_requests 1000000;

upstream stamps {
    server 127.0.0.1:8081;
    keepalive 32;
}

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8443 ssl http2;
    server_name localhost;

    ssl_certificate localhost.crt;
    ssl_certificate_key localhost.key;

    location /late {
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header X-Id $request_id;
        proxy_pass http://stamps;
    }

    location /busy {
        content_by_lua_block {
            local till = os.clock() + 0.004
            while os.clock() < till do end
            ngx.say("was busy")
        }
    }
}
EOF

my $so = build_preload($t, 'prof_late');

$t->run_daemon(\&upstream);
$t->wait_for_socket(8081);

{
    local $ENV{PROF_LATE} = $t->testdir() . '/late.log';
    local $ENV{LD_PRELOAD} = $so;
    $t->run();
}

# connections to the upstream, which are then kept

http_end($_) for map { http_get('/late', start => 1) } 1 .. 24;

my @shares;

for my $others (0, 1, 3) {
    push @shares, measure("$others others", $others, \&clients);
}

for my $i (1 .. $#shares) {
    cmp_ok($shares[$i], '>', $shares[$i - 1] + 0.01,
           'more load, a greater share of stalls');
}

measure('TLS', 2, sub { h2load('--h1') });
measure('HTTP/2', 2, sub { h2load('-m', 1) });


# Returns the share of stalls in the time of the requests.
sub measure {
    my ($name, $others, $run) = @_;

    my $m = measured($name, $others, $run);

    cmp_ok($m->{requests}, '>', 50, "$name: requests were served");
    is($m->{connected}, 0, "$name: connections were kept");
    cmp_ok($m->{difference}, '<=', $m->{expected},
           "$name: stalls are those that were measured");
    cmp_ok($m->{random}, '<=', $m->{single}, "$name: one by one, too");

    return $m->{share};
}


sub measured {
    my ($name, $others, $run) = @_;

    my @before = map { length $t->read_file($_) } qw/ stall.log late.log /;

    my $load = $others && $t->load('/busy', clients => $others, rate => 71);
    $run->($name);
    is($load->stop()->{failed}, 0, "$name: all served") if $load;

    sleep 0.2;

    my ($stalls, $late) = map { substr $t->read_file($_), shift @before }
                              qw/ stall.log late.log /;

    my %late = map { my ($id, @ns) = split; $id => sum0(@ns) / 1e9 }
               split /\n/, $late;
    my @lines = grep { $_->[0] eq '/late' && $late{$_->[1]} }
                map { [ split ] } split /\n/, $stalls;

    # Data that arrives while the worker is busy may arrive at any moment of
    # this time.  The time of one request may be wrong by some milliseconds, so
    # the sum of many is wrong by the root of the sum of squares.  Reading the
    # data takes time as well.

    my $ours = sum0(map { $_->[2] } @lines);
    my $theirs = sum0(map { $late{$_->[1]} } @lines);
    my $random = sqrt(sum0(map { ($_->[2] - $late{$_->[1]}) ** 2 } @lines));
    my $share = $ours / sum0(map { $_->[3] } @lines);

    note(sprintf('%s: %d requests, %.3f s, measured %.3f s, random %.3f s, '
                 . 'share %.3f',
                 $name, scalar @lines, $ours, $theirs, $random, $share));

    return {
        requests => scalar @lines,
        connected => scalar(grep { $_->[4] ne '0.000' } @lines),
        difference => abs($ours - $theirs),
        expected => 0.05 * $theirs + 3 * $random + 0.00005 * @lines,
        random => $random,
        single => 0.02 + 0.1 * $theirs,
        share => $share
    };
}


sub clients {
    my ($name) = @_;

    my $load = $t->load('/late', clients => 4);
    sleep SECONDS;
    is($load->stop()->{failed}, 0, "$name: no request failed");
}


sub h2load {
    my @how = @_;

    my $url = 'https://127.0.0.1:' . port(8443) . '/late';
    my ($status, $out) = $t->command('h2load', '-c', 4, '-D', SECONDS, @how,
                                     $url);

    like($out, qr/ 0 failed, 0 errored/, "@how: no request failed");
}


# keeps connections, answers late, and says when it did
sub upstream {
    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64,
                                       LocalPort => port(8081), ReuseAddr => 1)
        or die "listen: $!\n";

    my $select = IO::Select->new($listen);
    my (%in, @due);

    while (1) {
        my $now = time();

        while (@due && $due[0][0] <= $now) {
            my (undef, $s, $id) = @{shift @due};
            next unless $s->opened();

            my $sent = sprintf '%.0f', clock_gettime(CLOCK_MONOTONIC) * 1e9;

            syswrite($s, "HTTP/1.1 200 OK\r\nX-Sent: $sent\r\nX-Id: $id\r\n"
                         . "Content-Length: 50\r\n\r\n" . 'x' x 50);
            $now = time();
        }

        for my $s ($select->can_read(@due ? $due[0][0] - $now : 1)) {

            if ($s == $listen) {
                $select->add(scalar $listen->accept());
                next;
            }

            if (!sysread($s, $in{$s}, 65536, length($in{$s} // ''))) {
                $select->remove($s);
                delete $in{$s};
                close $s;
                next;
            }

            if ($in{$s} =~ s/^GET .*?\r\n\r\n//s) {
                my ($id) = $& =~ /X-Id: (\w+)/;

                # random times, so that they are not in step with the busy
                # clients

                push @due, [ time() + WAIT * (0.5 + rand()), $s, $id ];
                @due = sort { $a->[0] <=> $b->[0] } @due;
            }
        }
    }
}
