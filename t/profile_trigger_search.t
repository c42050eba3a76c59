#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core request
# runs: beside
#
# The name of the trigger is found wherever an argument has it, and nowhere
# else: names that repeat themselves, of one letter and of hundreds, in queries
# made of their pieces.  The queries are the same in each run.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my @names = ('performance_bar', 'a', 'aa', 'aaab', 'abab', 'baaa', 'abcabcab',
             'x-y_z', join('', map { chr(97 + $_ % 23) } 1 .. 300));

srand(1);

my $t = ProfileTest->new()->has(qw/ rewrite /);

# servers with different names are searched in another way than a single name

configure(@names);
$t->run();
search(@names);

for my $name (@names[0, 2, 6]) {
    my ($old) = $t->worker_pids();

    configure($name);
    $t->reload();
    ok(wait_for(sub { !kill 0, $old }), 'the old worker has ended');
    search($name);
}


sub configure {
    my (@names) = @_;

    my $servers = join('', map { <<"EOF2" } 0 .. $#names);
    server {
        listen 127.0.0.1:8080;
        server_name name$_;
        profile_endpoint on;
        profile_arg $names[$_];
        location / { return 200 "original\\n"; }
    }
EOF2

    $t->conf(<<"EOF");
keepalive_requests 100000;
large_client_header_buffers 4 32k;

$servers
EOF
}


sub search {
    my (@names) = @_;

    for my $i (0 .. $#names) {
        my ($wrong, $found) = queries("name$i", $names[$i]);
        my $what = (@names > 1 ? '' : 'one name, ') . substr($names[$i], 0, 20);

        is($wrong, '',
           "the argument is found in all queries that have it: $what");
        cmp_ok($found, '>', 30, 'many random queries have the argument');
        cmp_ok($found, '<', 270,
               'many random queries do not have the argument');
    }
}


# the queries with a wrong answer, and the number of those with the name
sub queries {
    my ($host, $name) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                       PeerPort => port(8080));
    my ($wrong, $found) = ('', 0);

    for (1 .. 300) {
        my $query = query($name);
        my $there = grep { /^\Q$name\E(?:=|\z)/ } split(/&/, $query);

        # no value is one that a trigger takes

        my $status = http_get("/?$query", socket => $socket, keepalive => 1,
                              headers => [ "Host: $host" ])->status();

        $wrong .= "$status: $query\n" if $status != ($there ? 400 : 200);
        $found++ if $there;
    }

    return ($wrong, $found);
}


# queries that resemble the name up to its last letter
sub query {
    my ($name) = @_;

    my $n = length($name);
    my @pieces = ($name, $name, '&', '&', '&', '=', '=1&', substr($name, 1),
                  substr($name, 0, $n - 1), substr($name, int($n / 2)),
                  substr($name, -1), substr($name, 0, 1), 'q', "x=$name");

    return join('', map { $pieces[rand(@pieces)] } 0 .. rand(8));
}
