#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# Triggers with random parts: each request has an answer, which is a profile, an
# error that names the wrong part, or the response itself.  The application
# never sees a trigger.  The inputs are the same in each run.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ proxy rewrite /)->plan(8);

$t->conf(<<'EOF');
keepalive_requests 10000;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location / {
        return 200 "original\n";
    }

    location /proxy/ {
        proxy_pass http://127.0.0.1:8081;
    }
}

server {
    listen 127.0.0.1:8081;

    access_log %%TESTDIR%%/upstream.log;
    error_log %%TESTDIR%%/upstream-error.log;

    location / {
        return 200 "original\n";
    }
}
EOF

$t->run();

my @args = ('performance_bar', 'profile_mode', 'stackprof_mode',
            'profile_format', 'profile_frequency', 'a', '', 'performance_ba',
            'performance_barr', 'Performance_bar', 'profile_');
my @params = ('mode', 'format', 'frequency', 'x', '', 'profile_mode');
my @values = ('flamegraph', 'record', 'wall', 'cpu', 'speedscope', 'folded',
              'pprof', 'svg', '1', '1000', '10000', '0', '10001', '-1',
              '99999999999999999999', '', '%66lamegraph', '%', '%00', '%0d%0a',
              '"', '<b>', '\\', "\xff", 'x' x 300);

my ($seed, %answers) = (1);


# in the query

random_requests('query', 400, sub {
    my $path = pick('/', '/proxy/', '/%2e', '/proxy/x%3fy');
    my @list = map { pick(@args) . pick('=', '=', '=', '', '==')
                     . pick(@values) } 1 .. pick(1 .. 6);

    # most are to be triggers

    splice(@list, pick(0 .. $#list), 0, 'performance_bar=flamegraph')
        if pick(1 .. 3) > 1;

    return "GET $path?" . join(pick('&', '&', '&', '&&', ';', '?', '#'), @list)
           . " HTTP/1.1\r\n";
});


# in the header

random_requests('header', 400, sub {
    my @list = map { pick(pick(@params) . pick('=', '=', '=', '', ' = ')
                          . pick(@values), 'mode=cpu', 'format=folded',
                          'frequency=100', '') } 0 .. pick(0 .. 4);

    unshift @list, pick('flamegraph', 'flamegraph', @values);

    my $header = pick('X-Profile', 'X-Profile', 'x-profile', 'X-Profil') . ':'
                 . pick(' ', '', "\t  ")
                 . join(pick('; ', ';', ';;', ', ', ' ;'), @list);

    return "GET " . pick('/', '/proxy/') . " HTTP/1.1\r\n"
           . join('', map { "$header\r\n" } 1 .. pick(1, 1, 1, 2));
});


my @seen = grep { /^performance_bar(?:=|$)/ } map { split(/&/) }
               $t->read_file('upstream.log') =~ m{"GET [^? ]*\?([^# ]*)}g;

is("@seen", '', 'no trigger gets to the upstream');
is(http_get('/')->body(), "original\n", 'nginx is alive');


sub random_requests {
    my ($name, $n, $make) = @_;

    my $wrong = 0;
    %answers = ();

    for my $i (1 .. $n) {
        my $request = $make->() . "Host: localhost\r\nConnection: close\r\n\r\n";
        my $kind = answer(http($request));

        $answers{$kind}++;
        diag("$request\n$kind") if $kind =~ /^unknown/ && !$wrong++;
    }

    is($wrong, 0, "$name: each answer is known");
    cmp_ok($answers{profile} // 0, '>', 0,
           "$name: some requests get profiles");
    cmp_ok($answers{error} // 0, '>', 0, "$name: some requests get errors");
}


# returns the type of the answer

sub answer {
    my ($r) = @_;

    my $status = $r->status() // 0;

    return 'original' if $status == 200 && $r->body() eq "original\n";
    return 'profile' if $status == 200
                        && ($r->header('X-Profile-Id') // '') =~ /^\w{32}$/
                        && $r->header('X-Profiled-Status') == 200;

    # one line, whose only input of the client is the name of an argument

    return 'error' if $status == 400
        && $r->body() =~ /^(?:performance_bar|profile_[\w-]+|stackprof_mode|mode|
                             format|frequency|X-Profile)[ ][\w ",:-]+\n\z/x;

    # nginx's own, before the module is asked

    return 'nginx' if $status == 400 && $r->body() =~ /<html>/;
    return "unknown: $r";
}


# a generator with the same numbers in each run

sub pick {
    $seed = ($seed * 1103515245 + 12345) % 2147483648;
    return $_[($seed >> 8) % scalar(@_)];
}
