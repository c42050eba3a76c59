#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: views console
# runs: beside
#
# The part of a stored profile below one box of its flamegraph: "root" in the
# URL of a stored profile, and what a browser loads when a user zooms in.  The
# profile has far more boxes than its picture shows.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use List::Util qw/ sum0 /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;

my $t = ProfileTest->new()->has(qw/ lua /);

$t->conf(<<'EOF');
profile_endpoint on;
profile_frequency 5000;
profile_continuous on slice=1s;

server {
    listen 127.0.0.1:8080;

    # each call goes to one of 60 functions, so almost each stack is unique

    location = /many {
        content_by_lua_block {
            jit.off()

            local code = { "return {" }

            for i = 1, 60 do
                code[#code + 1] = "function(f, depth, n)"
                    .. " if depth == 0 then"
                    .. "   local x = 0 for i = 1, 300 do x = x + i end"
                    .. "   return x"
                    .. " end"
                    .. " n = n * 16807 % 2147483647"
                    .. " local x = f[n % 60 + 1](f, depth - 1, n)"
                    .. " return x"
                    .. " end,"
            end

            code[#code + 1] = "}"

            local f = loadstring(table.concat(code, "\n"), "=many")()
            local deadline = os.clock() + 1.5
            local n = 1

            while os.clock() < deadline do
                for i = 1, 100 do
                    n = n * 48271 % 2147483647
                    f[n % 60 + 1](f, 8, n)
                end
            end

            ngx.say("done")
        }
    }

    location /-/profile/ { profile_console; }
}
EOF

$t->run();

my $r = http_get('/many?performance_bar=record');
my $id = $r->header('X-Profile-Id');

like($id, qr/^[0-9a-f]{32}$/, 'the request is recorded');
ok(wait_for(sub { stored('html')->status() == 200 }, 10),
   'the profile is stored');

my $whole = stored('html')->content();

like($whole, qr/\d+ of \d+ boxes are shown, none of the others is wider than/,
     'the picture does not show all boxes');

# one of the 60 functions that the main chunk calls

my %all = folded('folded');
my %below;

for my $stack (keys %all) {
    my @path = split(/;/, $stack);
    my ($i) = grep { $path[$_] =~ /^many:/ } 0 .. $#path;

    $below{join(';', @path[0 .. $i])} += $all{$stack} if defined $i;
}

my ($path) = sort { $below{$b} <=> $below{$a} || $a cmp $b } keys %below;
my $hash = box($path);
my %part = folded("folded?root=$hash");

is_deeply(\%part, { map { $_ => $all{$_} }
                    grep { /^\Q$path\E(;|$)/ } keys %all },
          'only stacks through the box remain');

my $page = stored("html?root=$hash")->content();
my ($name) = $path =~ /([^;]+)$/;

like($page, qr/Only stacks through \Q$name\E are shown/,
     'the page tells which part of the profile it shows');

# functions that the box calls, deeper than the picture of the whole shows

my @deep = map { box($_) } grep { $part{$_} } keys %part;
my %shown = boxes($whole);
my %detail = boxes($page);

cmp_ok(scalar(grep { $detail{$_} } @deep), '>',
       2 * scalar(grep { $shown{$_} } @deep),
       'the part has boxes that the whole does not show');

for my $format (qw/ speedscope svg pprof /) {
    is(stored("$format?root=$hash")->status(), 200,
       "the part is answered as $format");
}

# errors

$r = stored('html?root=12g');

is($r->status(), 400, 'a number that is not hexadecimal is refused');
like($r->content(), qr/"root" is "12g", it must be the number of a box/,
     'the error names the parameter and what the parameter takes');
is(stored('html?root=')->status(), 400, 'an empty number is refused');
is(stored('html?root=123456789')->status(), 400, 'a long number is refused');
is(stored('html?root=1%002')->status(), 400, 'a null byte is refused');

$r = stored('html?root=1');

is($r->status(), 404, 'an unknown box is not found');
like($r->content(), qr/the profile has no box with the "root" 1$/m,
     'the error names the unknown box');

# a range of the continuous profile

ok(wait_for(sub { range('')->status() == 200 }, 10),
   'the continuous profile has slices');

my ($leading) = range('')->content() =~ /^(_start|\w+);/m;
$r = range('&root=' . box($leading));

is($r->status(), 200, 'a range takes the parameter');
is((grep { !/^\Q$leading\E(;| \d+$)/ } split(/\n/, $r->content()))[0], undef,
   'only stacks through the box remain in a range');
is(range('&root=x')->status(), 400, 'a range refuses another value');
is(range('&root=1')->status(), 404, 'a range without the box is not found');

SKIP: {
    skip lacks_browser(), 1 if lacks_browser();

    test_browser();
}

$t->stop();


sub stored {
    my ($what) = @_;

    return http_get("/-/profile/p/$id/$what");
}


sub range {
    my ($args) = @_;

    return http_get("/-/profile/cpu?from=-1m&format=folded$args");
}


sub folded {
    my ($what) = @_;
    my %stacks;

    for (split(/\n/, stored($what)->content())) {
        my ($stack, $n) = /^(.*) (\d+)$/ or next;
        $stacks{$stack} += $n;
    }

    return %stacks;
}


# the number of the box of a stack
sub box {
    my ($stack) = @_;
    my $hash = 0x811c9dc5;

    my %escapes = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;',
                   '"' => '&quot;', "'" => '&#39;');

    $stack =~ s/([&<>"'])/$escapes{$1}/g;

    for my $byte (unpack('C*', "$stack;")) {
        $hash = (($hash ^ $byte) * 0x01000193) & 0xffffffff;
    }

    return sprintf('%x', $hash);
}


# the numbers of the boxes of the first plot of a page
sub boxes {
    my ($html) = @_;

    my ($plot) = $html =~ m{<svg class="prof-plot"(.*?)</svg></svg>\n}s;
    my (%found, @above);

    for my $row (split(/^<svg y=/m, $plot)) {
        my @row;

        while ($row =~ m{<svg\ x="([\d.]+)%"\ width="([\d.]+)%"[^>]*>
                         <title>([^\n]*)\n}gx)
        {
            my ($x, $w, $name) = ($1, $2, $3);
            my ($above) = grep { $_->{x} <= $x + $w / 2
                                 && $_->{x} + $_->{w} >= $x + $w / 2 } @above;
            my $path = !$above ? ''
                       : $above->{path} eq '' ? $name : "$above->{path};$name";

            push @row, { x => $x, w => $w, path => $path };

            $name = $path;
            $name =~ s/&lt;/</g;
            $name =~ s/&gt;/>/g;
            $name =~ s/&quot;/"/g;
            $name =~ s/&#39;/'/g;
            $name =~ s/&amp;/&/g;
            $found{box($name)} = 1;
        }

        @above = @row if @row;
    }

    return %found;
}


sub test_browser {
    my $s = in_browser($t, 'the part', 'root',
        'http://127.0.0.1:' . port(8080) . "/-/profile/p/$id",
        $ENV{PROFILE_TEST_SHOTS} // ());

    return if $s->{failed};

    is($s->{whole}{root}, '', 'the page begins with the whole picture');
    isnt($s->{zoomed}{root}, '', 'zooming in requests a part');
    is($s->{zoomed}{zoom}, $s->{clicked}{name},
       'the part is zoomed to the box that was clicked');
    cmp_ok($s->{zoomed}{below}, '>', $s->{clicked}{below},
           'the part has more boxes below the box');
    is($s->{zoomed}{n}, $s->{clicked}{n}, 'the box has the same weight');
    like($s->{zoomed}{notes}, qr/Only stacks through/,
         'the page tells that it shows a part');
    ok($s->{zoomed}{focused}, 'the box has the keyboard focus');
    is($s->{reset}{root}, '', 'the button requests the whole picture');
    is($s->{reset}{boxes}, $s->{whole}{boxes}, 'the picture is whole again');
    isnt($s->{up}{root}, $s->{zoomed}{root},
         'a caller above the part requests another picture');
    is(join("\n", @{$s->{console}}), '', 'the browser logs no message');
}
