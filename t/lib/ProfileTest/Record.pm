package ProfileTest::Record;

# Copyright (C) The ngx_http_profile_module authors
#
# Responses as they are on the wire, with and without being recorded.

use strict;
use warnings;

use Exporter qw/ import /;
use Test::More import => [ qw/ diag ok / ];
use Time::HiRes qw/ time /;

use ProfileTest::HTTP;

our @EXPORT = qw/ canonical raw read_for same_recorded /;


# Asks for it without a trigger, with one in the query, and with one in a
# header, and compares.  Returns what the ids stand for: lists of name, id,
# method, URI, status.
sub same_recorded {
    my ($name, $line, $headers, @more) = @_;

    my ($method, $uri) = split(/ /, $line);
    my $with = $uri . ($uri =~ /\?/ ? '&' : '?') . 'performance_bar=record';
    my @ids;

    $headers ||= [];

    my $plain = raw($method, $uri, $headers, @more);

    my @both = ([ argument => raw($method, $with, $headers, @more) ],
                [ header => raw($method, $uri,
                                [ @$headers,
                                  'X-Profile: record; frequency=100' ],
                                @more) ]);

    for my $pair (@both) {
        my ($how, $response) = @$pair;

        my ($id) = $response =~ /^X-Profile-Id: (\w+)\r\n/m;

        # the headers of a 304 become those of a response in a cache

        if ($response =~ m{^HTTP/1.1 304}) {
            ok(canonical($response) eq canonical($plain),
               "the same bytes and headers: $name, by $how")
                or diag($plain, $response);
            next;
        }

        push @ids, [ "$name, by $how", $id // '', $method, $uri,
                     $response =~ m{^HTTP/1.1 (\d+)} ? $1 : 0 ];

        my $link = "Link: </-/profile/p/" . ($id // '')
                   . '>; rel="describedby"; title="profile"';

        # shared caches must not keep the response

        if ($plain !~ /^Cache-Control: .*(?:private|no-store)/mi) {
            $response =~ s/^Cache-Control: private\r\n//m
                or $response =~ s/^(Cache-Control: .*), private\r\n/$1\r\n/m
                or $response .= '.';
        }

        $response =~ s/^X-Profile-Id: [0-9a-f]{32}\r\n//m or $response .= '!';
        $response =~ s/^\Q$link\E\r\n//m or $response .= '?';

        ok(canonical($response) eq canonical($plain),
           "the same bytes: $name, by $how")
            or diag(map { substr(canonical($_), 0, 1500) . "\n--\n" }
                    $plain, $response);
    }

    return @ids;
}


sub raw {
    my ($method, $uri, $headers, $body, $version, $port) = @_;

    my @lines = ('Host: localhost', @$headers);

    push @lines, 'Connection: close' unless grep { /^Connection:/ } @lines;
    push @lines, 'Content-Length: ' . length($body) if defined $body;

    my $s = ProfileTest::HTTP::connect_to($port // 8080) or return '';

    print $s join("\r\n", "$method $uri HTTP/" . ($version || '1.1'), @lines, '', '')
             . ($body // '');

    if ($uri =~ /upgrade/) {
        my $r = read_for($s, 5, qr/\r\n\r\nready\n/);
        syswrite($s, "one\n");
        $r .= read_for($s, 5, qr/one\n/);
        syswrite($s, "quit\n");
        return $r . read_for($s, 5);
    }

    return read_for($s, 20);
}


# reads until the connection is closed, the pattern matches, or the time is over
sub read_for {
    my ($s, $seconds, $re) = @_;

    my $end = time() + $seconds;
    my $buf = '';

    while (time() < $end && !($re && $buf =~ $re)) {
        my $in = '';
        vec($in, fileno($s), 1) = 1;

        next if select($in, undef, undef, $end - time()) < 1;
        last unless sysread($s, $buf, 65536, length($buf));
    }

    return $buf;
}


# removes the parts in which any two responses differ
sub canonical {
    my ($response) = @_;

    $response =~ s/^Date: .*\r\n//m;
    $response =~ s/^(X-Time|X-Port): .*\r\n//mg;

    # events come one by one, or two at a time

    $response =~ s/\r\n(?:[0-9a-f]+\r\n(?=data:)|0\r\n\r\n)//g
        if $response =~ m{^Content-Type: text/event-stream\r}m;

    if ($response =~ /boundary=(\d+)/) {
        my $boundary = $1;
        $response =~ s/$boundary/BOUNDARY/g;
    }

    return $response;
}


1;
