#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: metrics
# runs: beside

# Metrics: the number of series, the labels, and the memory do not depend on
# what clients send: 100,000 different URIs and hosts, and hostile headers.

use strict;
use warnings;

use IO::Socket::INET;
use JSON::PP qw/ decode_json /;
use List::Util qw/ sum0 uniq /;
use Test::More;

use ProfileTest::Metrics;
use ProfileTest::Process;
use ProfileTest;

use constant REQUESTS => 100_000;
use constant BATCH => 200;

# in everything that the clients send, and nowhere in the configuration
use constant MARK => 'zq7x';

use constant STORE => 2 * 1024 * 1024;

my $t = ProfileTest->new()->has(qw/ rewrite /)->plan(14);

$t->conf(<<'EOF');
profile_zone store:2m;
profile_keep 0;
keepalive_requests 1000000;

server {
    listen 127.0.0.1:8080;
    server_name one;
    large_client_header_buffers 4 32k;

    location / { return 204; }
    location ~ ^/user/(?<user>[^/]+)$ { return 204; }
    location /redirect/ { rewrite ^/redirect(/.*)$ $1 last; }
    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}

server {
    listen 127.0.0.1:8080;
    server_name "~^(?<tenant>.+)\.regex\.example$";
    location / { return 204; }
}

server {
    listen 127.0.0.1:8080;
    server_name *.wild.example;
    location / { return 204; }
}
EOF

$t->run();

my %locations = (
    'one' => [ '/', '= /metrics', '~ ^/user/(?<user>[^/]+)$' ],
    '~^(?<tenant>.+)\.regex\.example$' => [ '/' ],
    '*.wild.example' => [ '/' ],
);

my ($worker) = $t->worker_pids();

send_many(1, REQUESTS / 2);
http_get('/metrics');

my $memory = memory();
my $series = () = keys %{scrape()};

send_many(REQUESTS / 2 + 1, REQUESTS);

my $m = scrape();
my $more = memory() - $memory;

is(sum0(map { metric_sum($m, 'nginx_profile_request_duration_seconds_count',
                         server => escaped($_)) } keys %locations)
   - metric_sum($m, 'nginx_profile_request_duration_seconds_count',
                location => '= /metrics'),
   REQUESTS, 'all requests were counted');
is(scalar keys %$m, $series, 'new URIs and hosts make no series');
cmp_ok($more, '<', 2048, 'new URIs and hosts take no memory')
    or diag("$more kB more");


# hosts and headers that no client should send; nginx rejects some of them

hostile("GET /$_ HTTP/1.1\r\nHost: one\r\n") for grep { !/[ \t]/ } hostile_texts();
hostile("GET / HTTP/1.1\r\nHost: $_\r\n") for hostile_texts();
hostile("GET / HTTP/1.1\r\nHost: $_.regex.example\r\n") for hostile_texts();
hostile("GET http://$_/ HTTP/1.1\r\nHost: one\r\n") for hostile_texts();
hostile("GET / HTTP/1.1\r\nHost: one\r\ntraceparent: $_\r\n"
        . "X-Forwarded-For: $_\r\nX-Request-Id: $_\r\n") for hostile_texts();
hostile("$_ / HTTP/1.1\r\nHost: one\r\n") for hostile_texts();

$m = scrape();

my @labels = uniq(map { /\{(server=.*?),location="/ ? $1 : () } keys %$m);
my @names = uniq(map { /,location="((?:[^"\\]|\\.)*)"/ ? $1 : () } keys %$m);

is_deeply([ sort @labels ],
          [ sort map { 'server="' . escaped($_) . '"' } keys %locations ],
          'the labels of servers are those of the configuration');
is_deeply([ grep { $_ ne '' } sort @names ],
          [ sort(uniq(grep { !m{^(?:= /metrics|/-/profile/)$} }
                      map { map { escaped($_) } @$_ } values %locations)) ],
          'the labels of locations are those of the configuration');

for my $accept (qw{ text/plain application/openmetrics-text }) {
    my $text = http_get('/metrics', headers => [ "Accept: $accept" ])->body();

    cmp_ok(length $text, '>', 1000, "$accept: there are metrics");
    is(scalar(grep { index($_, MARK) >= 0 } split /\n/, $text), 0,
       "$accept: no label has what a client has sent");
}

my $overview = decode_json(http_get('/-/profile/?format=json')->content());

is(scalar(grep { index("$_->{server} $_->{location}", MARK) >= 0 }
          @{$overview->{locations}}), 0,
   'the overview has no place that a client has named');
cmp_ok(scalar @{$overview->{locations}}, '<=', 6,
       'the overview has the places of the configuration');

my $store = decode_json(http_get('/-/profile/status.json')->content())
            ->{store};

cmp_ok($store->{profiles}, '>', 0, 'profiles were kept for exemplars');
cmp_ok($store->{memory_used}, '<=', STORE, 'the store has its limit');
is_deeply([ $t->worker_pids() ], [ $worker ], 'the worker still runs');


# many requests on one connection, with a URI and a host of their own each
sub send_many {
    my ($from, $to) = @_;

    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => port(8080))
        or die "no nginx: $!\n";
    my $next = $from;

    while ($next <= $to) {
        my $last = $next + BATCH - 1;
        my ($data, $responses) = ('', 0);

        $last = $to if $last > $to;
        syswrite($s, join '', map { request_of($_) } $next .. $last);

        # a response of the status 204 has no body

        while ($responses < $last - $next + 1) {
            sysread($s, $data, 65536, length $data)
                or die "nginx closed the connection\n";
            $responses = () = $data =~ /\r\n\r\n/g;
        }

        $next = $last + 1;
    }
}


sub request_of {
    my ($n) = @_;

    my $id = MARK . $n;
    my $host = ('one', "$id.other.example", "$id.regex.example",
                "$id.wild.example")[$n % 4];
    my $uri = ("/$id?$id=$id", "/user/$id", "/redirect/$id", "/a/b/c/$id")
              [int($n / 4) % 4];

    return "GET $uri HTTP/1.1\r\nHost: $host\r\nUser-Agent: $id\r\n\r\n";
}


# texts that have the mark
sub hostile_texts {
    return map { MARK . $_ }
           '"', '\\', '\\n', "\xff\xfe", "\xc3\xa9", "\xe2\x80\xae", '{x="1"}',
           '"} 1', '",location="x', '$host', '${env:X}', '%0a%0d', '%00',
           '<script>', "' or 1=1", '..', '.', ':80:80', '[::1]', '~regex',
           '*', '*.wild.example', "\t", "\x01", "\x7f", 'A' x 250, 'a' x 20_000,
           '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
}


# the response is not important: nginx may reject the request
sub hostile {
    my ($request) = @_;

    http("${request}Connection: close\r\n\r\n");
}


sub scrape {
    return metrics_of(http_get('/metrics')->body());
}


sub escaped {
    return $_[0] =~ s/([\\"])/\\$1/gr;
}


# private memory of the worker, in kilobytes
sub memory {
    return process_status($worker, 'RssAnon');
}
