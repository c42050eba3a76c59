#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store
# runs: first

# Four workers store profiles while they are reloaded and killed, in memory and
# on a disk.  A profile that a response has announced remains, and is complete.
# PROFILE_TEST_CAPTURES says how many there are, in all rounds of both.

use strict;
use warnings;

use IO::Socket::INET;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest;
use ProfileTest::Store;

use constant ROUNDS => 20;
use constant CLIENTS => 4;

my $captures = $ENV{PROFILE_TEST_CAPTURES} || 2000;
my $each = int($captures / 2 / ROUNDS / CLIENTS);

my $t = ProfileTest->new();
my $dir = $t->testdir();

# the test kills workers, also one that has locked the zone

$t->allow(qr/exited on signal 9|was locked by/);

configure('');
$t->write_file('file', "file\n");
$t->run();

churn('memory', sub {
    my ($id) = @_;
    return fetch($id);
});

configure("profile_store $dir/store max=100m;");
$t->reload();
workers();

churn('disk', sub {
    my ($id) = @_;
    my $st = ProfileTest::Store::read_stored("$dir/store/$id");
    return $st && !$st->{error};
});


# unfinished files of killed workers are removed

ok(wait_for(sub { !glob("$dir/store/*.*") }), 'no file is left unfinished');

my $found = ProfileTest::Store::read_store("$dir/store");
is(scalar(grep { $_->{error} } values %$found), 0, 'all files are whole');

# a restart finds the same

my $before = scalar(keys %$found);

$t->stop();
$t->run();

is(scalar(keys %{ProfileTest::Store::read_store("$dir/store")}), $before,
   'a restart removes none');
like($t->read_log(), qr/profile: $before profiles found/,
     'nginx finds all profiles');

unlike($t->read_log(), qr/is damaged|damaged profile/,
       'no profile is damaged');


sub churn {
    my ($where, $whole) = @_;

    my (%acked, $lost);

    for my $round (1 .. ROUNDS) {
        my @readers;

        for my $client (1 .. CLIENTS) {
            pipe(my $reader, my $writer) or die "pipe: $!\n";
            push @readers, $reader;

            $t->start_child(sub {
                close $reader;
                client($client, $writer);
                POSIX::_exit(0);
            });
        }

        # in the middle of it

        sleep(0.02 + rand(0.05 * $each));

        my @pids = $t->worker_pids();
        kill 'KILL', $pids[rand @pids] if @pids;

        sleep(rand(0.2));
        kill 'HUP', $t->{pid};

        my @new;

        for my $reader (@readers) {
            push @new, map { /^([0-9a-f]{32})$/ } <$reader>;
        }

        workers();

        $lost += grep { !$whole->($_) } @new;
        $acked{$_} = 1 for @new;
    }

    my $n = keys %acked;

    cmp_ok($n, '>', 0.8 * $each * CLIENTS * ROUNDS,
           "$where: $n captures are stored");
    is($lost, 0, "$where: no profile is lost in its round");
    is(scalar(grep { !$whole->($_) } keys %acked), 0,
       "$where: no profile is lost in the end");
}


# Half of the clients send requests with a trigger, whose profiles are stored.
# The other half read the list.  A connection may end at any time.
sub client {
    my ($n, $writer) = @_;

    my $s;

    for my $i (1 .. $each) {
        my $what = $i % 2 ? 'record' : 'flamegraph; format=folded';

        my $r = ask(\$s, "GET /file HTTP/1.1\r\nHost: localhost\r\n"
                         . "X-Profile: $what\r\n\r\n") or next;

        my ($id) = $r =~ /^X-Profile-Id: ([0-9a-f]{32})\r/m or next;

        next if $i % 2 && !look(\$s, $id);
        next if $i % 2 == 0 && $r !~ /^Link: /m;

        syswrite($writer, "$id\n");
    }
}


sub look {
    my ($s, $id) = @_;

    my $end = time() + 3;

    while (time() < $end) {
        my $r = ask($s, "GET /-/profile/p/$id.json HTTP/1.1\r\n"
                        . "Host: localhost\r\n\r\n");
        return 1 if $r && $r =~ m{^HTTP/1.1 200 };
        sleep(0.01);
    }

    return 0;
}


sub ask {
    my ($s, $request) = @_;

    my $end = time() + 10;

    while (!$$s) {
        $$s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                    PeerPort => port(8080));
        return if time() > $end;
        sleep(0.02) unless $$s;
    }

    my $r = http($request, socket => $$s);

    if ($r->error() || "$r" !~ m{^HTTP/1.1 \d} || "$r" =~ /^Connection: close/m)
    {
        close $$s;
        $$s = undef;
    }

    return "$r" =~ m{^HTTP/1.1 200 .*\r\n\r\n.}s && !$r->error() ? "$r" : '';
}


# whether the console has it, whole
sub fetch {
    my ($id) = @_;

    my $r = http_get("/-/profile/p/$id.json");
    my $json = eval { decode_json($r->body()) } || {};

    return $r->status() == 200 && ($json->{id} // '') eq $id;
}


# waits until nginx has four workers
sub workers {
    wait_for(sub {
        my @pids = $t->worker_pids();
        my @all = grep { worker($_) } $t->child_processes($t->{pid});
        return @pids == 4 && @all == 4;
    });
}


sub worker {
    my ($pid) = @_;

    open my $f, '<', "/proc/$pid/cmdline" or return 0;
    local $/;
    return (<$f> // '') =~ /^nginx: worker/;
}


sub configure {
    my ($store) = @_;

    $t->conf(<<"EOF", workers => 4);
profile_zone store:32m;
$store

%%CONF console%%
EOF
}
