#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# Each part of a request's time is counted once, and as what it is: waiting is
# not the work of the script that waits.

use strict;
use warnings;

use List::Util qw/ sum0 /;
use Test::More;

use lib 't/lib';
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua /);

$t->conf(<<'CONF');
profile_endpoint on;

server {
    listen 127.0.0.1:8080;

    # most of its time is waiting, in the same line that runs

    location /sleep {
        content_by_lua_block {
            local till = os.clock() + 0.05
            local slept
            local function both()
                while os.clock() < till do end
                if not slept then slept = true ngx.sleep(0.3) end
            end
            both()
            ngx.say("slept")
        }
    }
}
CONF

$t->run();


# the tables of the page

my $page = http_get('/sleep?performance_bar=flamegraph&profile_format=html')
               ->content();

my $kinds = rows($page, 'kinds');

my $wait = weight($kinds, 'self', qr/^waiting$/);

cmp_ok($wait, '>=', 0.299e9,
       'the time in which a script waits is waiting, by kind');
cmp_ok(weight($kinds, 'self', qr/^Lua/), '<=',
       weight($kinds, 'self', qr/./) - $wait,
       'the rest may be the work of Lua');
is(weight($kinds, 'total', qr/^waiting$/), $wait,
   'no part of waiting is the work of another kind');

is(weight(rows($page, 'objects'), 'self', qr/^waiting$/), $wait,
   'modules: waiting has the same value');

my $functions = rows($page, 'functions');

ok(grep(/^sleep waiting$/, keys %$functions),
   'functions: the function that yields waits');
cmp_ok(weight($functions, 'self', qr/ waiting$/), '>=', 0.299e9,
       'functions: the time of the wait belongs to functions that wait');
cmp_ok(weight($functions, 'total', qr/both$/), '<',
       weight($functions, 'total', qr/./) - $wait,
       'functions: the same function has a row for the time in which it runs');


# boxes of the picture

my ($below) = $page =~ /class="(\w+)[^"]*"><title>sleep\n/;

is($below, 'w', 'the box of the function that waits is hatched');

# a table of another program distinguishes frames

my $json = profile_get('/sleep')->json();
my @frames = grep { $_->{name} =~ /both$/ } @{ $json->{shared}{frames} };

cmp_ok(@frames, '>', 1,
       'speedscope: a function that runs and waits is two frames');

# returns self and total weights of a table's rows by their text

sub rows {
    my ($html, $id) = @_;

    my ($table) = $html =~ /<table class="times" id="$id">(.*?)<\/table>/s
        or return {};

    my %rows;

    while ($table =~ /<tr><th scope="row">(.*?)<\/th>(.*?)<\/tr>/sg) {
        my ($name, $cells) = ($1, $2);

        $name =~ s/<[^>]*>//g;

        my @weights = $cells =~ /class="by wall num" data-value="(\d+)"/g;

        $rows{$name} = { self => $weights[0], total => $weights[1] };
    }

    return \%rows;
}


# returns the sum of the rows whose text matches

sub weight {
    my ($rows, $what, $name) = @_;

    return sum0(map { $rows->{$_}{$what} } grep { /$name/ } keys %$rows);
}
