#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers capture
# runs: beside
#
# Threads begin and end during a capture of workers.  The memory with which they
# were sampled is unmapped while the capture runs.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Module;

my $t = ProfileTest->new();
$t->skip_all('sanitizers map memory') if $t->sanitizers();

my $so = build_module($t, 'ngx_http_object_test_module');

$t->conf(<<"EOF", main => "load_module $so;");
server {
    listen 127.0.0.1:8080;

    location / {
        object_test;
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

my ($worker) = $t->worker_pids();
my $capture = http_get('/-/profile/wall?seconds=600', start => 1);

# the capture looks for threads in a thread of its own

ok(wait_for(sub { tasks() == 2 }), 'the capture has a thread');

# the first threads allocate what the C library keeps

threads() for 1 .. 2;
my $before = size();
threads() for 1 .. 4;

ok(wait_for(sub { size() <= $before }),
   'threads that end leave nothing mapped');

close($capture);


# a thread begins, is sampled, and ends
sub threads {
    my $n = tasks();

    http_get('/?alone=1500');
    wait_for(sub { tasks() > $n }) or die "no thread\n";
    wait_for(sub { tasks() == $n }) or die "the thread does not end\n";
}


# threads, but for that of jobs for which no client waits
sub tasks {
    return scalar grep { (comm($_) // 'profile idle') ne 'profile idle' }
                       glob("/proc/$worker/task/*/comm");
}


sub comm {
    my ($file) = @_;

    open my $f, '<', $file or return;
    chomp(my $name = <$f> // return);

    return $name;
}


# kilobytes of address space
sub size {
    open my $f, '<', "/proc/$worker/status" or die "status: $!\n";

    return (map { /^VmSize:\s+(\d+)/ } <$f>)[0];
}
