#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside
#
# Captured requests that Perl code in nginx serves: the stage has the name of
# the function of the location, a sleep of the handler is a gap, and samples
# have the line of the statement that ran.

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

sub sum {
    my ($from, $to) = @_;
    my $n = 0;

# line 100 "sum.pl"
    $n += $_ * $_ for $from .. $to;

    return $n;
}

sub lines {
    my $r = shift;
    my $n = 0;

# line 10 "lines.pl"
    $n += $_ * $_ for 1 .. 1_000_000;
# line 20
    $n += $_ * $_ for 1 .. 100_000;
# line 30
    $n += sum(1, 300_000);
# line 40
    my @sorted = sort { my $x = $a * $a;
        my $y = $b * $b; $x <=> $y } map { $_ % 1009 } 1 .. 20_000;

    $r->send_http_header('text/plain');
    $r->print("$n $sorted[0]\n");

    return OK;
}

sub fails {
    my $r = shift;
    my $n = 0;

    for (1 .. 20_000) {
# line 50 "fails.pl"
        eval { $n += $_ * $_; die "error\n" };
# line 51
        $n += eval "1 + $_" || 0 if $_ % 10 == 0;
    }

    $r->send_http_header('text/plain');
    $r->print("$n\n");

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
    location /lines { perl Handlers::lines; }
    location /fails { perl Handlers::fails; }

    location /-/profile/ {
        profile_console;
    }

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

# lines of statements

my $loop = qr/^Perl_runops_standard/;

http_get('/lines');

for my $mode (qw/ wall cpu /) {
    $p = profile_get("/lines?profile_mode=$mode")->profile($mode);

    my $line = $p->weight_below(qr/^lines\.pl:10 lines$/);

    # the wall time contains the time in which the worker did not have the CPU

    cmp_ok($line, '>', ($mode eq 'cpu' ? 3 : 1)
                       * $p->weight_below(qr/^lines\.pl:20 /),
           "$mode: a loop of ten times the length has more of the time");
    cmp_ok($p->weight_below(qr/^sum\.pl:100 sum$/), '>', 0,
           "$mode: a statement has the file and the name of its function");
    cmp_ok($p->weight_below(qr/^lines\.pl:4[01] lines$/), '>', 0,
           "$mode: statements of a sort block are those of its function");
    cmp_ok($p->weight_below(qr/^lines\.pl:30 /), '<',
           $p->weight_below(qr/^sum\.pl:100 /),
           "$mode: the called function has the time of a call");

    my $all = $p->weight_below($loop);
    my $with = $p->weight_below(qr/^(?:lines|sum)\.pl:\d+ (?:lines|sum)$/);

    cmp_ok($with, '>', 0.98 * $all,
           "$mode: samples in Perl's loop have a line");

    my @stacks = grep { grep { /^lines\.pl/ } @{$_->[0]} } $p->stacks();

    my @other = grep { join("\n", @{$_->[0]})
                           !~ /^Perl_runops_standard[^\n]*\nlines\.pl:\d+ /m }
                @stacks;

    is(scalar @other, 0, "$mode: a line follows the loop that runs it")
        or diag(map { join(';', @{$_->[0]}) . "\n" } @other);
}

http_get('/fails');
$p = profile_get('/fails')->profile('wall');

# Perl computes constants in a statement of its own, which has no line

cmp_ok($p->weight_below(qr/^(?:fails\.pl:5[01]|\(eval \d+\):1) fails$/), '>',
       0.5 * $p->weight_below($loop),
       'code that dies and code in strings have lines');

$p = profile_get('/inline')->profile('wall');

cmp_ok($p->weight_below(qr/^\(eval \d+\):\d+ __ANON__$/), '>',
       0.9 * $p->weight_below($loop),
       'code in the configuration has lines');

like(http_get('/-/profile/status.json')->body(), qr/"Perl":"on"/,
     'the status page tells the state of the engine of Perl');
