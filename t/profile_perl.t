#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# Captured requests that Perl code in nginx serves: the stage has the name of
# the function of the location, and a sleep of the handler is a gap.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ perl /);

$t->write_file('Handlers.pm', <<'EOF');
package Handlers;

use nginx;

sub busy {
    my $r = shift;
    my $n = 0;

    $r->send_http_header('text/plain');
    return OK if $r->header_only();

    $n += $_ * $_ for 1 .. 600_000;
    $r->print("$n\n");

    return OK;
}

sub waits {
    my $r = shift;

    $r->sleep(50, \&awake);
    return OK;
}

sub awake {
    my $r = shift;

    $r->send_http_header('text/plain');
    $r->print("awake\n");

    return OK;
}

1;
EOF

$t->conf(<<'EOF');
perl_modules %%TESTDIR%%;
perl_require Handlers.pm;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /busy { perl Handlers::busy; }
    location /waits { perl Handlers::waits; }

    location /inline {
        perl 'sub {
            my $r = shift;
            my $n = 0;

            $r->send_http_header("text/plain");
            $n += $_ * $_ for 1 .. 600_000;
            $r->print("$n\n");

            return OK;
        }';
    }
}
EOF

$t->run();

# the first request of a worker loads what Perl needs

is(http_get('/busy')->body() =~ /^\d+\n\z/, 1, 'the response is that of Perl');
is(http_get('/waits')->body(), "awake\n",
   'the response after a sleep is that of Perl');

my $p = profile_get('/busy')->profile('wall');

cmp_ok($p->weight_below(qr/^perl Handlers::busy$/), '>',
       0.9 * $p->weight_below(qr/^phase content$/),
       'the content is a stage with the name of its function');
cmp_ok($p->weight_below(qr/^phase content$/), '>', 0.005,
       'the function takes time');

$p = profile_get('/waits')->profile('wall');

cmp_ok($p->weight_below(qr/^\[waiting\]$/), '>=', 0.045,
       'a sleep of the handler is a gap');
cmp_ok($p->count_frames(qr/^perl Handlers::waits$/), '>', 0,
       'the stage has the name of the function');

$p = profile_get('/inline')->profile('wall');

is($p->count_frames(qr/^perl Handlers/), 0,
   'code in the configuration has no name of another location');
cmp_ok($p->weight_below(qr/^phase content$/), '>', 0.005,
       'code in the configuration takes time');
