#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# Stages beyond phases and filters: callbacks of an upstream, the log phase, and
# what a request was redirected to.

use strict;
use warnings;

use Test::More;

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ auth_request proxy rewrite /);

$t->write_file_expand('nginx.conf', <<'EOC');
%%MODULES%%
%%GLOBALS%%
worker_processes 1;

events {
}

http {
    %%GLOBALS_HTTP%%

    server {
        listen 127.0.0.1:8080;

        profile_endpoint on;

        location / {
            proxy_pass http://127.0.0.1:8081;
        }

        location /none {
            alias %%TESTDIR%%/none;
            error_page 404 /other;
        }

        location /auth {
            auth_request /check;
            proxy_pass http://127.0.0.1:8081;
        }

        location /plain {
            profile_endpoint on;
            proxy_pass http://127.0.0.1:8081;
        }

        location /-/profile/ {
            profile_console;
        }
    }

    server {
        listen 127.0.0.1:8082;

        profile_endpoint on;
        profile_spans off;

        location / {
            proxy_pass http://127.0.0.1:8081;
        }
    }
}
EOC

run_upstream($t, 8081);
$t->run();

my $p = profile_get('/wait=10/')->profile('wall');
cmp_ok($p->weight_below(qr/^upstream: process header$/), '>', 0,
       'processing the header');
cmp_ok($p->weight_below(qr/^upstream: finalize$/), '>', 0, 'finalizing');
is($p->weight_below(qr/^(?:redirect|subrequest) /), 0, 'what was asked for');

$p = profile_get('/none')->profile('wall');
cmp_ok($p->weight_below(qr/^redirect \/other$/), '>', 0, 'redirect');
is(count($p, qr/(?:^|;)redirect \/other;.*phase content/), 1,
   'phases are below it');

$p = profile_get('/auth')->profile('wall');
cmp_ok($p->weight_below(qr/^subrequest \/check$/), '>', 0, 'subrequest');

$p = profile_get('/wait=10/', port => 8082)->profile('wall');
is($p->weight_below(qr/^upstream: /), 0, 'no spans, no callbacks');


# of a recorded request, each log handler runs once

my $r = http_get('/plain?performance_bar=record');
is($r->status(), 200, 'recorded');

my $id = $r->header('X-Profile-Id');
wait_for(sub { $r = http_get("/-/profile/p/$id/folded");
               $r->status() == 200 });

like($r->content(), qr/phase log: ngx_http_log_module/, 'log phase');
is(scalar(grep { / "GET \/plain/ } split /\n/, $t->read_file('access.log')),
   1, 'logged once');
is(scalar(grep { / "GET \/auth/ } split /\n/, $t->read_file('access.log')),
   1, 'a replaced one too');


sub count {
    my ($p, $re) = @_;
    return (grep { join(';', @{$_->[0]}) =~ $re } $p->stacks()) ? 1 : 0;
}
