#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: main
# runs: beside
#
# Reloads with more workers than before, while the master has few descriptors
# left: the master continues to serve, and nginx gets the descriptors first.
# After reloads that remove the module and add it again, no descriptor remains.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Process;
use ProfileTest;

# the sanitizer's search for leaks never ends in a process without descriptors

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ rewrite /)->has_program('prlimit')
                          ->allow(qr/Too many open files|truncated data/)
                          # nginx has no descriptor for epoll_create()
                          ->allow(qr/exited with fatal code 2/);

my $conf = <<'EOC';
%%MODULES%%
%%GLOBALS%%
worker_processes 2;

events {
    worker_connections 64;
}

http {
    %%GLOBALS_HTTP%%

    server {
        listen 127.0.0.1:8080;

        profile_endpoint on;

        location / {
            return 200 "ordinary";
        }

        location /-/profile/ {
            profile_console;
        }
    }
}
EOC

my $more = $conf =~ s/worker_processes 2/worker_processes 8/r;
my $plain = $conf =~ s/^.*(?:%%MODULES%%|profile).*\n(?:\s+\}\n)?//mgr;

$t->write_file_expand('nginx.conf', $conf);
$t->run();

my $master = $t->{pid};
my $used = settled();

# Without the module there is a worker for each two descriptors.  A worker that
# was there already, and did not go yet, has two as well.

for my $spare (2 .. 10, 14, 20, 40) {
    $t->write_file_expand('nginx.conf', $more);
    limit($used + $spare);
    renew();

    process_lives($master)
        or die("$spare spare descriptors: the master is gone\n");
    pass("$spare spare descriptors: the master lives");
    is(http_get('/')->body(), 'ordinary', 'the master serves requests');

    my $r = http_get('/?performance_bar=flamegraph');
    is($r->status(), 200, 'a request is captured');

    $r = http_get('/-/profile/cpu?seconds=0.1&format=speedscope&workers=self');
    like($r->status() . $r->body(), qr/^200|^503no worker took part/,
        'a worker captures itself, or says that it cannot');

    limit(1024);
    $t->write_file_expand('nginx.conf', $conf);
    renew();
    settled();
}

like($t->read_log(), qr/profile: socketpair\(\) failed.*asked for themselves/,
    'the log says what is missing');

my $r = http_get('/-/profile/cpu?seconds=1&format=speedscope');
is($r->status(), 200, 'with descriptors all workers are captured');
unlike($r->body(), qr/"left_out": ?"/, 'no worker is left out');

# all workers take part when descriptors suffice

$t->write_file_expand('nginx.conf', $more);
renew();
ok(wait_for(sub { $t->worker_pids() == 8 }), 'nginx runs more workers');
$r = http_get('/-/profile/cpu?seconds=1&format=speedscope');
my ($workers) = $r->body() =~ /"workers":\s*"([^"]+)"/;
is(scalar(() = ($workers // '') =~ /\d+/g), 8, 'all of them are captured')
    or diag($r->body());

# without the module, and with it again

SKIP: {
    skip('the module is linked into nginx', 2) if $t->{module} eq '';

    my $before;

    for my $round (1 .. 5) {
        $t->write_file_expand('nginx.conf', $plain);
        renew();
        is(http_get('/')->body(), 'ordinary', 'without the module')
            if $round == 1;

        $t->write_file_expand('nginx.conf', $conf);
        renew();

        my $n = settled();
        $before //= $n;
        is($n, $before, "removed and added, $round: no descriptor is lost");
    }
}

###############################################################################

sub limit { $t->command('prlimit', '--pid', $master, "--nofile=$_[0]:4096") }


sub renew {
    my %old = map { $_ => 1 } $t->worker_pids();

    kill 'HUP', $master;

    wait_for(sub { grep { !$old{$_} } $t->worker_pids() });
    wait_for(sub { !grep { $old{$_} } $t->child_processes($master) });
}


# descriptors of the master when the old workers are gone
sub settled {
    wait_for(sub { $t->worker_pids() == 2
                   && 2 == (() = $t->child_processes($master)) });

    return scalar(() = process_files($master));
}
