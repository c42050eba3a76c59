#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core request
# runs: beside
#
# Profiles are named by the method and the path that the client sent, and not by
# those to which nginx changes them: titles, names of files, the list of
# running captures, the bar.  Secrets in arguments are in none of them.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ proxy rewrite ssi v2 /)
                          ->has_program('curl');

$t->conf(<<'EOF');
profile_zone profiles:8m;

types {
    text/html html;
}

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8082 http2;

    profile_endpoint on;
    profile_bar on;
    profile_format speedscope;
    profile_keep $http_x_keep rate=1000;
    profile_redact token;

    location /-/profile/ { profile_console; }

    location / { try_files $uri /index.html?q=$uri; }
    location /named/ { try_files $uri @php; }
    location @php { rewrite ^ /index.html break; }
    location /rewrite/ { rewrite ^ /index.html last; }
    location /break/ { rewrite ^ /index.html break; }
    location /dir/ { alias %%TESTDIR%%/; index index.html; }
    location /error/ { error_page 403 /index.html; return 403; }
    location /error_named/ { error_page 403 = @php; return 403; }
    location /proxy/ { proxy_pass http://127.0.0.1:8081/accel; }
    location /ssi/ { ssi on; rewrite ^ /ssi.html break; }
    location /slow/ {
        limit_rate 100;
        rewrite ^ /large.html break;
    }
}

server {
    listen 127.0.0.1:8081;
    location / {
        add_header X-Accel-Redirect /index.html;
        return 200;
    }
}
EOF

$t->write_file('index.html', "<html><body>index</body></html>\n");
$t->write_file('ssi.html', '<html><body><!--#include virtual="/part" -->');
$t->write_file('large.html', 'x' x 100_000);
$t->run();

my $secret = 'token=hunter2';

for my $uri (qw{ /page/of/wordpress /named/a /rewrite/a /break/a /dir/ /error/a
                 /error_named/a /proxy/a /ssi/a /none//a/../b /caf%C3%A9 })
{
    my $title = "GET $uri";

    my $r = http_get("$uri?$secret&performance_bar=flamegraph");
    is(title($r->content()), $title, "$uri: the title of a flamegraph");

    my $name = $uri =~ s/%..//gr =~ s{^/|/$}{}gr =~ s{[/_]+}{-}gr;
    like($r->header('Content-Disposition'),
         qr/filename="localhost-\Q$name\E-wall-/,
         "$uri: the name of the file") if $uri !~ m{//};
    unlike($r->header('Content-Disposition') . $r->content(), qr/hunter2/,
           "$uri: no secret is in the profile");

    my ($status, $out) = $t->command('curl', '-sg', '--path-as-is',
                              '--http2-prior-knowledge', '--compressed',
                              'http://127.0.0.1:' . port(8082)
                              . "$uri?$secret&performance_bar=flamegraph");
    is(title($out), $title, "$uri: the title over HTTP/2");

    my $id = http_get("$uri?$secret&performance_bar=record")
             ->header('X-Profile-Id');
    my $url = "/-/profile/p/$id/speedscope";
    ok(wait_for(sub { http_get($url)->status() == 200 }),
       "$uri: a profile is recorded");
    is(title(http_get($url)->content()), $title,
       "$uri: the title of a recorded profile");

    http_get("$uri?$secret&keep=1", headers => [ 'X-Keep: 1' ]);
    $id = undef;
    wait_for(sub {
        ($id) = map { $_->{id} } grep { $_->{uri} =~ /keep=1/
                                        && $_->{uri} =~ /^\Q$uri?\E/ }
                listed();
    });
    is(title(http_get('/-/profile/p/' . ($id // '') . '/speedscope')
                 ->content()),
       $title, "$uri: the title of a kept profile");

    like(http_post("$uri?x", '', headers => [ 'Accept: text/html' ]),
         qr/data-method="POST"|^HTTP\S+ 40|^Content-Type: text\/plain/m,
         "$uri: the bar has the method that the client sent");
}

is(title(http_post("/error/b?performance_bar=flamegraph", '')->content()),
   'POST /error/b', 'the method is the one that the client sent');
is(title(http("GET http://localhost/page/b?performance_bar=flamegraph HTTP/1.0"
              . "\r\n\r\n")->content()),
   'GET /page/b', 'the title has no host of the request line');

my $s = http_get("/slow/a?$secret&performance_bar=record", start => 1);
ok(wait_for(sub {
       my $now = decode_json(http_get('/-/profile/status.json')->body());
       return grep { $_->{uri} eq '/slow/a' } @{$now->{captures}};
   }), 'running captures have the path that the client sent');
close $s;


sub title {
    my ($text) = @_;
    return eval { decode_json($text)->{name} } // $text;
}


sub listed {
    return @{decode_json(http_get('/-/profile/profiles.json')->body())
             ->{profiles}};
}
