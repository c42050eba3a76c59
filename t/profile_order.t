#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: loop
# runs: first

# The order in which a worker calls handlers is the same with the module and
# without: for each event method, with a mutex for accept and without, and for
# each directive that makes the module run the event loop.  With a capture alone
# the module runs the event loop until the captured request ends, in the middle
# of an iteration.
#
# ngx_http_order_test_module.c has the handlers.  They are ready at the same
# time, because the test stops the worker first.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;
use ProfileTest::Module;

my $t = ProfileTest->new();
my $so = build_module($t, 'ngx_http_order_test_module');

my $format = 'log_format times "$request_uri $profile_cpu_time $request_time"; '
             . 'access_log %%TESTDIR%%/times.log times;';

my %directives = (
    accounting => 'profile_accounting on;',
    'accounting, logged' => "profile_accounting on; $format",
    keep => 'profile_keep 0;',
    stalls => 'profile_stall_threshold 1ms;',
    capture => 'profile_endpoint on;',
);

for my $method (qw/ epoll poll select /) {
    next unless has_method($method);

    for my $mutex (qw/ off on /) {
        for my $multi (qw/ off on /) {
            my $events = "use $method; accept_mutex $mutex; "
                         . "multi_accept $multi;";
            my $plain = notes($events, 0, '');

            like($plain, qr/^timer: end$/m, "$events all have run");
            is(() = $plain =~ /^timer: from alone$/mg, 2,
               "$events a timer was set alone");

            is(notes($events, 1, $directives{$_}), $plain, "$events $_")
                for sort keys %directives;
        }
    }
}



# nginx is mostly built with epoll only
sub has_method {
    my ($method) = @_;

    my ($status) = $t->test_config("events { use $method; }\nhttp { }\n");

    return $status == 0;
}


# the notes of the handlers

sub notes {
    my ($events, $module, $directive) = @_;

    my $modules = "load_module $so;";
    $modules = "%%MODULES%%\n$modules" if $module;

    my $workers = $events =~ /accept_mutex on/ ? 2 : 1;

    $t->write_file_expand('nginx.conf', <<"EOC");
$modules
%%GLOBALS%%
worker_processes $workers;

events {
    $events
}

http {
    %%GLOBALS_HTTP%%
    $directive

    server {
        listen 127.0.0.1:8080;

        location /order {
            order_test;
        }
    }
}
EOC

    $t->run();

    my @stopped = $t->stop_other_worker('/order?keep');
    my $notes = http_get('/order?start')->body();

    kill 'CONT', @stopped;
    $t->stop();

    return $notes;
}
