#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: beside

# The demo: each card of its page has a profile without a warning about lost
# samples, the console begins with the overview, the profile of the slow page
# shows the reason, and "stop" leaves no process and no file.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Copy qw/ copy /;
use HTTP::Tiny;
use JSON::PP qw/ decode_json /;
use List::Util qw/ sum0 /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $so = $ENV{TEST_NGINX_MODULE};
my $t = ProfileTest->new()->has_program(qw/ awk curl /);

$t->skip_all('the module is part of nginx') unless $so;
$t->skip_all('the demo has no options for sanitizers') if $t->sanitizers();

# the demo keeps its files beside the module

my $dir = $t->testdir();
my $demo = abs_path(dirname(__FILE__) . '/../tools/demo');

copy($so, "$dir/module.so") or die "copy: $!\n";
copy(dirname($so) . '/ngx_http_profile_symbolizer',
     "$dir/ngx_http_profile_symbolizer") or die "copy: $!\n";
chmod 0755, $dir, "$dir/ngx_http_profile_symbolizer";

local $ENV{MODULE} = "$dir/module.so";
local $ENV{DEBUGINFOD_URLS} = '';
local $ENV{NGINX} = $ENV{TEST_NGINX_BINARY} if $ENV{TEST_NGINX_BINARY};

my $out = `$demo 2>&1`;

is($?, 0, 'the demo starts') or diag($out);
like($out, qr/^ +[\d.]+ ms +[\d.]+%  \S/m,
     'the demo prints the heaviest functions');

# code without names counts as time of its nearest caller with a name

my @lines = $out =~ /^ +[\d.]+ ms +[\d.]+%  (\S[^\n]*)$/mg;
my ($unnamed) = $out =~ /(the unnamed code that they call)/;

is(scalar @lines, 5, 'the demo prints five functions');
ok($unnamed, '... and says whose time includes that of code without names');
is_deeply([ grep { /^[^ ]+\+0x|^\[|^(?:phase|event)[ :]|^[^ ]+\.c \(/ } @lines ],
          [], '... each with a name');

SKIP: {
    my %files = map { $_ => 1 } grep { $_ ne '[anonymous code]' }
                map { split /, / } $out =~ / ms without names in (.*)\]$/mg;

    skip('all functions have names', 1) unless %files;

    my $help = qr/(?:tools\/make-debug [^ \n]+|build-id [0-9a-f]+)/;

    is_deeply([ grep { $out !~ /^ +\Q$_\E: +$help$/m } sort keys %files ], [],
              'the demo prints what would name the others');
}

my ($url) = $out =~ m{^Pages to profile: +(http://[\d.:]+)/$}m;
my ($folded) = $out =~ m{^All stacks: +(\S+)$}m;
my ($speedscope) = $out =~ m{^For speedscope: +(\S+)$}m;

like($out, qr{^Metrics: +\Q$url\E/metrics$}m, 'the demo prints the URL of metrics');

like(slurp($folded), qr/^[^\n]+ \d+\n/, 'the demo leaves a folded profile');
is_deeply([ grep { abs($_->[1] - self_time($_->[0])) > 0.001 } functions($out) ], [],
          'the times are those of the folded profile');
is(decode_json(slurp($speedscope))->{'$schema'},
   'https://www.speedscope.app/file-format-schema.json',
   'the demo leaves a profile for speedscope');

my $http = HTTP::Tiny->new(timeout => 60);
my $page = $http->get("$url/")->{content};
my @cards = $page =~ m{<h2><a href="([^"]*)">}g;

cmp_ok(scalar @cards, '>=', 5, 'the page has cards');
like($page, qr{_bar|profile_bar|/-/profile/}, 'the page has the bar');

# the text is that of the source

my $lost = 'More than one in ten samples was lost';
my $root = dirname(__FILE__) . '/..';

like(slurp("$root/shared/views/prof_notes.c"), qr/"$lost"/,
     'profiles with many lost samples have a warning');

for my $uri (@cards) {
    my $r = $http->get("$url$uri");

    is($r->{status}, $uri eq '/none' ? 404 : 200, "$uri: the page is served");

    my $p = folded($uri);

    cmp_ok(sum0(map { /(\d+)$/ } @$p), '>', 0, "$uri: the page has a profile");

    for my $mode (qw/ wall cpu /) {
        my $html = $http->get("$url$uri?performance_bar=flamegraph"
                              . "&profile_format=html&profile_mode=$mode");

        like($html->{content}, qr/samples/,
             "$uri: the picture in mode $mode counts its samples");
        unlike($html->{content}, qr/$lost/,
               "$uri: the picture in mode $mode has no warning of lost samples");
    }
}

# the console begins with the overview, which knows the requests of the cards

my $console = $http->get("$url/-/profile/")->{content};
my $overview = $http->get("$url/-/profile/?format=json")->{content};
my %seen = map { $_->{location} => $_->{hour}{requests} }
           @{(eval { decode_json($overview) } || {})->{locations} || []};

like($console, qr{<title>[^<]*overview}i, 'the console begins with the overview');
cmp_ok($seen{'/gzip/'} || 0, '>', 0, 'the overview has the locations');
like($http->get("$url/metrics")->{content},
     qr/^nginx_profile_request_duration_seconds_count\{.*"\/gzip\/"/m,
     'the metrics have them too');

SKIP: {
    skip('no Lua', 2) unless grep { $_ eq '/report/' } @cards;

    my $p = folded('/report/');
    my $all = sum0(map { /(\d+)$/ } @$p);

    cmp_ok(sum0(map { /(\d+)$/ } grep { /;audit\.lua:\d+ / } @$p), '>',
           $all / 2, 'the slow page: most of its time is in audit.lua');
    unlike($http->get("$url/report/")->{content}, qr/audit/,
           'the slow page: ... which the page does not tell');
}

like(`$demo stop`, qr/^stopped$/m, 'the demo stops');
ok(!-e "$dir/demo", 'the demo leaves no file');
is($http->get("$url/")->{status}, 599, 'the demo leaves no server');


sub folded {
    my ($uri) = @_;

    my $r = $http->get("$url$uri?performance_bar=flamegraph"
                       . '&profile_format=folded');

    return [ $r->{status} == 200 ? split /\n/, $r->{content} : () ];
}


# the functions that the demo prints, with their times
sub functions {
    my ($text) = @_;
    my @found;

    while ($text =~ /^ +([\d.]+) ms +[\d.]+%  (\S.*?)(?:  \[.*)?$/mg) {
        push @found, [ $2, $1 ];
    }

    return @found;
}


# milliseconds of stacks that end with the function, and unnamed code below it
sub self_time {
    my ($name) = @_;
    my $code = qr/[^ ;]+\+0x[0-9a-f]+|[^ ;]+\.c \([^ ;]+\)|\[anonymous code\]/;

    return sum0(map { / (\d+)$/ } grep { /(?:^|;)\Q$name\E(?:;$code)* \d+$/ }
                split /\n/, slurp($folded)) / 1e6;
}


sub slurp {
    my ($name) = @_;

    open my $f, '<', $name or return '';
    local $/;

    return scalar <$f>;
}
