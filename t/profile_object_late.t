#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside

# Requests of the mode "object" whose profile waits for profile_object_grace,
# without a store: the client disconnects, or the worker ends.  No profile is
# made, and the capture is free for other requests at once.

use strict;
use warnings;

use IO::Select;
use Test::More;

use ProfileTest;

my $t = ProfileTest->new();

$t->conf(<<'EOF', workers => 1);
profile_max_captures 1;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location / { }

    location /grace {
        alias %%TESTDIR%%/file;
        profile_object_grace 60s;
    }
}
EOF

$t->write_file('file', "file\n");
$t->run();

my $flame = 'performance_bar=flamegraph';

my $s = waits();
close($s);

ok(wait_for(sub { http_get("/file?$flame")->status() == 200 }, 20),
   'a capture whose client has disconnected ends');

$s = waits();
$t->stop('TERM');
close($s);


# a client that waits for its profile
sub waits {
    my $s = http_get("/grace?$flame&stackprof_mode=object", start => 1);

    ok(wait_for(sub { http_get("/file?$flame")->status() == 429 }),
       'a request is captured');
    ok(!IO::Select->new($s)->can_read(1), 'it waits for the time of grace');

    return $s;
}
