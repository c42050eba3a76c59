#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: beside
#
# A site whose name its owner lets resolve to 127.0.0.1 ("DNS rebinding"), in a
# browser on the machine of nginx.  For the browser, nginx then belongs to that
# site, whose page tries to read and to post.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;


my $t = ProfileTest->new();

has_browser($t);

$t->conf(<<'EOF', workers => 2);
types {
    text/html html;
}

server {
    listen 127.0.0.1:8080;
    server_name ops.example;

    profile_endpoint on;
    profile_bar on;

    location / { }
    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}
EOF

$t->write_file('page.html', '<!DOCTYPE html><html><body>page</body></html>');
$t->run();

my $seen = in_browser($t, 'all hosts', 'hosts', port(8080), 'evil.example',
                      'localhost', '127.0.0.1', 'ops.example');

my @answers = qw/ list line page capture order metrics /;
my $evil = $seen->{'evil.example'};

is($evil->{origin}, 'http://evil.example:' . port(8080),
   'the page has the origin of the other site');

for my $door (@answers) {
    is($evil->{$door}{status}, 403, "the other site is refused: $door");
    like($evil->{$door}{text}, qr/^no "server_name" is "evil\.example:\d+": /,
         "the refusal names the host: $door");
}

for my $door (qw/ argument header /) {
    is($evil->{$door}{id}, undef, "the other site has no trigger: $door");
    like($evil->{$door}{text}, qr/page/,
         "the other site gets the page: $door");
}

ok(!$evil->{bar}, 'the page of the other site has no bar');

for my $host ('localhost', '127.0.0.1', 'ops.example') {
    my $own = $seen->{$host};

    is(join(' ', grep { ($own->{$_}{status} // 0) !~ /^2/ } @answers),
       '', "a page of $host may use the console and metrics");
    like($own->{$_}{id} // '', qr/^\w{32}$/,
         "a page of $host has a trigger: $_") for qw/ argument header /;
    ok($own->{bar}, "a page of $host has the bar");
}
