#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: formats call
# runs: beside
#
# Which format a client gets, in which encoding, and under which name.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use IO::Uncompress::Gunzip qw/ gunzip /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip rewrite /);

$t->conf(<<'EOF');
default_type text/plain;
gzip_comp_level 9;
gzip_types *;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;
    profile_allow 127.0.0.1;

    location /text {
        gzip on;
        gzip_vary on;
    }

    location /folded {
        profile_format folded;
    }

    location /empty {
        return 204;
    }
}
EOF

$t->write_file('text', join('', map { sprintf("line %d: %x\n", $_,
                                      $_ * 2654435761 % 4294967296) }
                                1 .. 20000));
$t->write_file('folded', 'x');
$t->run();

my $arg = 'performance_bar=flamegraph';

# "| [`name`](#name) | `type` | ..."; t/docs.t compares it with the encoders
open my $f, '<', dirname(__FILE__) . '/../docs/output-formats.md'
    or die "output-formats.md: $!";
my %TYPES = do { local $/; <$f> } =~ /^\| \[`(\w+)`\]\(#\w+\) \| `([^`]+)`/mg;

# the message about a wrong format names all formats
my %formats = map { $_ => 1 }
                  http_get("/text?$arg&profile_format=?")->body() =~ /"(\w+)"/g;

cmp_ok(scalar(keys %formats), '>=', 3, 'there are several formats');
is_deeply([ grep { !$TYPES{$_} } keys %formats ], [],
    'the test knows all formats');


# the trigger, then Accept, then the directive

is(type("/text?$arg"), $TYPES{speedscope},
    'without Accept, the format is speedscope');
is(type("/folded?$arg"), $TYPES{folded},
    'without Accept, profile_format chooses the format');
is(type("/text?$arg", '*/*'), $TYPES{speedscope},
    '"*/*" does not change the default format');
is(type("/folded?$arg", '*/*'), $TYPES{folded},
    '"*/*" does not change the format of profile_format');

for my $format (sort keys %formats) {
    my ($type) = $TYPES{$format} =~ /^([^;]+)/;

    is(type("/text?$arg", $type), $TYPES{$format}, "Accept chooses $format");
    is(type("/folded?$arg", "*/*;q=0.9, $type"), $TYPES{$format},
       "Accept prefers $format to profile_format");
    is(type("/folded?$arg&profile_format=$format", 'text/plain'),
       $TYPES{$format}, "an argument prefers $format to Accept");
}

is(type("/text?$arg", 'text/plain;q=0.2, application/json;q=0.1'),
   $TYPES{folded}, 'the highest quality wins');
is(type("/text?$arg", 'text/plain;q=0.1', 'application/octet-stream'),
   $TYPES{pprof}, 'two headers Accept are one list');
is(type("/text?$arg", 'application/vnd.google.protobuf'), $TYPES{pprof},
   'a type may have another name');
is(type("/folded?$arg", 'image/png'), $TYPES{folded},
   'an unknown type gets the default format');

my $browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,'
              . 'image/avif,image/webp,*/*;q=0.8';

is(type("/text?$arg", $browser),
   $formats{html} ? $TYPES{html} : $TYPES{speedscope},
    'a browser gets a page');


# caches

is(vary("/text?$arg"), 'Accept, Accept-Encoding',
    'a negotiated reply depends on Accept and Accept-Encoding');
is(vary("/text?$arg", 'application/octet-stream'), 'Accept',
   'a reply that is never compressed depends on Accept');
is(vary("/text?$arg&profile_format=folded"), 'Accept-Encoding',
   'a requested format depends on Accept-Encoding');
is(vary("/text?$arg&profile_format=pprof"), undef,
   'a requested format that is never compressed depends on nothing');
is(vary("/text?$arg&profile_mode=x"), 'Accept', 'an error depends on Accept');
is(http_get("/text?$arg")->header('Cache-Control'), 'private, no-store',
   'caches must not store the reply');


# compression

my $r = get("/text?$arg", 'Accept-Encoding: gzip');

is($r->header('Content-Encoding'), 'gzip', 'the reply is compressed');
is($r->header('Content-Length'), length($r->body()),
    'the length is that of the compressed reply');
is(scalar(() = $r->header('Vary')), 1,
    'the compressed reply has one header Vary');
like($r->content(), qr/^\{.*\}$/s, 'the compressed reply is JSON');

for my $case ([ 'gzip;q=0', undef ], [ 'br, *;q=0.5', 'gzip' ],
              [ 'identity, gzip;q=0.5', undef ], [ 'deflate', undef ],
              [ 'gzip;q=0.001', 'gzip' ])
{
    my ($accept, $want) = @$case;

    $r = get("/text?$arg", "Accept-Encoding: $accept");
    is($r->header('Content-Encoding'), $want,
        "Accept-Encoding \"$accept\" chooses the encoding");
}

is(get("/text?$arg", 'Accept-Encoding: br', 'Accept-Encoding: gzip')
   ->header('Content-Encoding'), 'gzip',
    'two headers Accept-Encoding are one list');

$r = get("/text?$arg&profile_format=pprof", 'Accept-Encoding: gzip');

is($r->header('Content-Encoding'), undef,
    'a compressed format gets no Content-Encoding');

my $body = $r->body();
my $raw;

ok(gunzip(\$body => \$raw) && $raw !~ /^\x1f\x8b/,
    'a compressed format is compressed once');

$r = http_head("/text?$arg", headers => [ 'Accept-Encoding: gzip' ]);

is($r->status() . $r->header('Content-Encoding'), '200gzip',
    'HEAD has the encoding of the reply');
is($r->body(), '', 'a compressed reply to HEAD has no body');

is(get("/empty?$arg", 'Accept: text/plain')->header('Content-Type'),
   $TYPES{folded}, 'a response without content gets a profile');


# names of downloads are safe anywhere

my $time = qr/\d{8}T\d{6}Z/;

is(name("/text?$arg"), 'localhost-text-wall-TIME.speedscope.json',
   'the file name has host, path, mode and time');
is(name("/text?$arg&profile_mode=cpu&profile_format=pprof"),
   'localhost-text-cpu-TIME.pb.gz',
    'the file name has another mode and format');

for my $uri ('/%22%0d%0aX-Injected:%20y', '/..%2f..%2fetc/%00passwd',
             '/%e2%80%ae%c3%a4%ff', '/a;b=c,d\'e<f>', '/' . '%22;' x 300)
{
    for my $host ('localhost', '[::1]', 'a' x 250, '*"\\;')  {

        my $s = http("GET $uri?$arg&profile_format=folded HTTP/1.0\r\n"
                     . "Host: $host\r\n\r\n");

        next if $s->status() == 400 && !$s->header('X-Profile-Id');

        my $name = $s->header('Content-Disposition') // '';
        like($name, qr/^attachment; [ ] filename="(?:[\w.-]{1,200}-)?wall-
                       $time\.folded\.txt"$/x,
             'name: ' . substr("$host$uri", 0, 60));
        is($s->header('X-Injected'), undef, 'a host cannot add a header');
    }
}


# header values in random order: the worker survives them, and each request has
# an answer

my @words = ('text/plain', 'application/json', '*/*', '*', 'text/*', 'q=', ';',
             ',', '=', '"', '\\', '0.5', '1', '1.0000001', ' ', "\t", '/',
             "\xff", 'gzip', 'identity', 'x' x 500);
my $seed = 1;
my $failed = 0;

for my $i (1 .. 200) {
    my ($accept, $encoding) = map { join('', map { $words[pick(@words)] }
                                                 1 .. pick(1 .. 30)) } 1, 2;

    $r = get("/folded?$arg", "Accept: $accept", "Accept-Encoding: $encoding");

    next if $r->status() == 200
            && grep { $_ eq $r->header('Content-Type') } values %TYPES;

    diag("Accept: $accept, Accept-Encoding: $encoding: $r") if !$failed++;
}

is($failed, 0, 'random headers always get a valid reply');


sub get {
    my ($uri, @headers) = @_;
    return http_get($uri, headers => \@headers);
}


sub type {
    my ($uri, @accept) = @_;
    return get($uri, map { "Accept: $_" } @accept)->header('Content-Type');
}


sub vary {
    my ($uri, @accept) = @_;
    return get($uri, map { "Accept: $_" } @accept)->header('Vary');
}


sub name {
    my ($uri) = @_;

    my ($name) = (get($uri)->header('Content-Disposition') // '')
                 =~ /^attachment; filename="([^"]*)"$/ or return undef;

    return $name =~ s/$time/TIME/r;
}


# a generator with the same numbers in each run

sub pick {
    $seed = ($seed * 1103515245 + 12345) % 2147483648;
    return ($seed >> 8) % scalar(@_);
}
