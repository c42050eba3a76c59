#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: workers stages
# runs: quiet
#
# The wall time of idle workers shows what their requests wait for, by location
# and cause, if requests are accounted.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use IO::Socket::INET;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;

my $t = ProfileTest->new()->has(qw/ limit_req proxy /);

$t->conf(<<'EOF');
limit_req_zone $request_method zone=one:1m rate=10r/m;
profile_accounting on;

server {
    listen 127.0.0.1:8080;

    location /silent/ { proxy_pass http://127.0.0.1:8081/; }
    location /body/ { proxy_pass http://127.0.0.1:8081/; }

    location /delayed/ {
        limit_req zone=one burst=10;
        alias %%TESTDIR%%/;
    }

    location /-/profile/ { profile_console; }
}
EOF

$t->write_file('small', 'small');
$t->run();

# an upstream that accepts connections, and says nothing

my $silent = IO::Socket::INET->new(Listen => 64, ReuseAddr => 1,
                                   LocalAddr => '127.0.0.1:' . port(8081))
    or die "no socket: $!\n";

my $name = '127.0.0.1:' . port(8081);

###############################################################################

my $p = capture();

is_deeply([ waits($p) ], [], 'without requests, idle time has no cause');
is(named($p, 'requests_wait_for'), undef, 'requests are accounted');

# requests that wait during the whole capture; the worker is idle

my @waiting = map { http_get("/silent/$_", start => 1) } 1 .. 30;

push @waiting, map {
    http("POST /body/ HTTP/1.0\r\nHost: a\r\nContent-Length: 100\r\n\r\n",
         start => 1)
} 1 .. 10;

http_get('/delayed/small');
push @waiting, map { http_get('/delayed/small', start => 1) } 1 .. 5;

wait_for(sub { state() >= @waiting + 1 });

$p = capture();

my %waits = waits($p);
my $all = 0;
$all += $_ for values %waits;

is(join("\n", sort keys %waits), join("\n", sort
       '/body/ > client sending the request body',
       '/delayed/ > limit_req',
       "/silent/ > upstream first byte $name"),
    'idle time has the locations and causes of the requests');

my %expected = ("/silent/ > upstream first byte $name" => 30,
                '/body/ > client sending the request body' => 10,
                '/delayed/ > limit_req' => 5);

for (sort keys %expected) {
    cmp_ok(abs(($waits{$_} // 0) / $all - $expected{$_} / 45), '<', 0.02,
        "$_: the part is that of its requests");
}

cmp_ok(abs($p->total('wall/nanoseconds') / 1e9 - 1), '<', 0.5,
    'the sum is still the time of the worker');

close($_) for @waiting;

###############################################################################

sub capture {
    return ProfileTest::Pprof->new(
        http_get('/-/profile/wall?seconds=1&format=pprof', timeout => 20));
}


# returns what idle time is for, and how much of it
sub waits {
    my ($p) = @_;

    my %waits;

    for my $sample ($p->samples()) {
        my @stack = @{$sample->{stack}};
        @stack = reverse @stack if $stack[-1] eq '[idle]';

        next unless $stack[0] eq '[idle]' && @stack > 1;
        $waits{join(' > ', @stack[1 .. $#stack])} +=
            $p->value('wall/nanoseconds', $sample);
    }

    return %waits;
}


# connections of the worker
sub state {
    my ($n) = http_get('/-/profile/status.json')->body()
                  =~ /"connections":(?:\{"used":)?(\d+)/;
    return $n // 0;
}


sub named {
    my ($p, $name) = @_;
    return (map { /^$name: (.*)/s ? $1 : () } $p->comments())[0];
}
