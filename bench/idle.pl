#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# The cost of the module for a request without a profile: instructions in user
# space, counted by callgrind, of nginx without the module, with the module
# loaded, and with "profile_endpoint on".
#
# The count is the difference between a short and a long run over one
# connection, so the start of nginx does not count.  "named" is the sum of the
# module's functions, and of the additional instructions of the functions that
# they call and of the two functions that run phases.  "added" is the difference
# of the totals without malloc() and the clock.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ sum /;

use lib dirname(__FILE__);

use Bench;

use constant SHORT => 200;
use constant LONG => 1200;

my $dir = dir();
my $port = free_port();

write_file("$dir/html/small.html", "hello\n");

my @uris = (
    '/small.html',
    '/small.html?x=1&y=22&z=333',
    '/small.html?session=abcdef0123&page=22&sort=name',
);

printf "%-50s %9s %9s %9s %7s %7s\n", 'instructions per request', 'without',
       'loaded', 'on', 'added', 'named';

for my $uri (@uris) {
    my @runs = map { slope($uri, @$_) } (
        [ '', '' ],
        [ module(), '' ],
        [ module(), 'profile_endpoint on;' ],
    );

    printf "%-50s %9.0f %9.0f %9.0f %7.0f %7.0f\n", $uri,
           (map { $_->{total} } @runs), $runs[2]{total} - $runs[0]{total},
           $runs[2]{named} - $runs[0]{named};
}


sub slope {
    my ($uri, @conf) = @_;

    my ($short, $long) = map { run($uri, $_, @conf) } SHORT, LONG;

    return { map { $_ => ($long->{$_} - $short->{$_}) / (LONG - SHORT) }
             qw/ total named / };
}


sub run {
    my ($uri, $n, $load, $endpoint) = @_;

    my $server = start(port => $port, main => $load, connections => 64,
                       command => [ 'valgrind', '--tool=callgrind',
                                    "--callgrind-out-file=$dir/out" ],
                       http => <<"EOC");
    $endpoint
    server { listen 127.0.0.1:$port; root $dir/html; }
EOC

    my $s = connect_to($port);

    request($s, $uri, 'Accept: */*') for 1 .. $n;
    close $s;
    stop($server);

    my %count = callgrind("$dir/out");

    $count{named} = sum(@count{grep { /^ngx_http_(?:profile_
                                       |core_(?:run_phases|generic_phase)$)
                                       |^__memchr_/x } keys %count});

    return \%count;
}
