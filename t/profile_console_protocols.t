#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: console
# runs: beside
#
# The console over TLS and over HTTP/2, with and without TLS: pages, data,
# changes, long captures, several requests of one connection at a time, and
# clients that disconnect.  The responses are those of HTTP/1.1 without TLS.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ ssl v2 /)
                          ->has_program(qw/ curl openssl /);

$t->conf(<<'EOF', workers => 2);
profile_zone profiles:4m;

server {
    %%CONF protocols%%

    location / { }
    location /-/profile/ { profile_console; }
}
EOF

$t->write_certificate('localhost');
$t->write_file('index.html', 'a' x 10000);
$t->run();

my @changes = ('-H', 'X-Profile-Console: 1');
my %page;

for my $protocol (sort keys %PROTOCOLS) {
    my $version = $protocol =~ m{^HTTP/2} ? 2 : 1.1;
    my $r = curl($protocol, 'status.json');

    is($r->{status}, 200, "$protocol: the status is answered");
    is($r->{version}, $version,
       "$protocol: the response has the version of the protocol");
    is(scalar @{decode_json($r->{body})->{workers}}, 2,
       "$protocol: the status has all workers");
    is($r->{headers}{'x-content-type-options'}, 'nosniff',
       "$protocol: the answer forbids guesses of its type");


    # pages, the same in all of them, and what belongs to them

    $r = curl($protocol, 'profiles', '-H', 'Accept: text/html');
    $page{$r->{body}}++;
    like($r->{headers}{'content-security-policy'}, qr/^default-src 'none'/,
         "$protocol: a page has its policy");

    my ($script) = $r->{body} =~ m{src="./(assets/\w+/profiles\.js)"};

    $r = curl($protocol, $script, '--compressed');
    is($r->{headers}{'content-encoding'}, 'gzip',
       "$protocol: the script is compressed");
    like($r->{body}, qr/The list of profiles/,
         "$protocol: the script has its text");
    like($r->{headers}{'cache-control'}, qr/immutable/,
         "$protocol: clients may cache the script");

    $r = curl($protocol, 'status.json', '-I');
    is("$r->{status} $r->{body}", '200 ',
       "$protocol: a response to HEAD has no body");
    is(curl($protocol, 'none')->{status}, 404,
       "$protocol: an unknown URL has the status 404");


    # a profile, and changes of it

    is(curl($protocol, 'cpu?seconds=0.1', '-X', 'POST')->{status}, 403,
       "$protocol: a change without the header is refused");
    is(curl($protocol, 'cpu?seconds=0.1', '-X', 'POST', @changes,
            '-H', 'Origin: https://elsewhere.example')->{status},
       403, "$protocol: a change by another site is refused");

    $r = curl($protocol, 'cpu?seconds=0.1', '-X', 'POST', @changes,
              '-H', 'Origin: ' . site($protocol));
    is($r->{status}, 201, "$protocol: a capture, stored")
        or diag($r->{body});

    my $id = decode_json($r->{body})->{id};

    is(curl($protocol, "p/$id/folded")->{status}, 200,
       "$protocol: the profile is stored");
    is(curl($protocol, "p/$id", '-X', 'DELETE', @changes)->{status}, 204,
       "$protocol: the profile can be deleted");
    is(curl($protocol, "p/$id")->{status}, 404,
       "$protocol: a deleted profile has the status 404");
    is(curl($protocol, 'debug/pprof/profile?seconds=x')
           ->{headers}{'x-go-pprof'}, 1,
           "$protocol: an error for Go has its header");


    # one after the other, these captures would take six seconds

    several($protocol);


    # a client that leaves ends its capture

    for (1 .. 9) {
        $t->command('curl', '-sk', '-m', '0.2', '-o', '/dev/null',
                    $PROTOCOLS{$protocol}[2], url($protocol, 'wall?seconds=60'));
    }

    ok(wait_for(sub {
        curl($protocol, 'wall?seconds=0.1&format=folded')->{status} == 200
    }), "$protocol: captures of clients that have left are over");
}

is(scalar keys %page, 1, 'the page is the same over all protocols');


# curl itself fails to put several on a connection that begins with HTTP/2
sub several {
    my ($protocol) = @_;

    return if $protocol eq 'HTTP/2';

    my @files = map { "$protocol.$_.svg" =~ tr{/ }{--}r } 1 .. 4;
    my $begin = time();

    my ($status, $out) = $t->command('curl', '-sSk', '-Z', '-m', 20, '--fail',
        $PROTOCOLS{$protocol}[2], map { ('-o', $t->testdir() . "/$_",
                                   url($protocol, 'cpu?seconds=1.5&format=svg'))
                                } @files);

    is($status, 0, "$protocol: four captures succeed") or diag($out);
    cmp_ok(time() - $begin, '<', 5,
           "$protocol: the captures run at the same time");
    is(scalar(grep { $t->read_file($_) =~ m{<svg.*</svg>}s } @files), 4,
       "$protocol: all are whole");
}


sub url {
    my ($protocol, $path) = @_;

    return site($protocol) . "/-/profile/$path";
}


sub site {
    my ($scheme, $port) = @{$PROTOCOLS{$_[0]}};

    return "$scheme://127.0.0.1:" . port($port);
}


sub curl {
    my ($protocol, $path, @more) = @_;

    my ($status, $out) = $t->command('curl', '-sSki', '-m', 20,
                                     $PROTOCOLS{$protocol}[2], @more,
                                     url($protocol, $path));

    my ($head, $body) = split(/\r\n\r\n/, $out, 2);
    my ($version, $code) = ($head // '') =~ m{^HTTP/(\S+) (\d+)};
    my %headers = map { /^([^:]+): (.*)$/ ? (lc($1) => $2) : () }
                  split(/\r\n/, $head // '');

    return { version => $version, status => $code // "none: $out",
             headers => \%headers, body => $body // '' };
}
