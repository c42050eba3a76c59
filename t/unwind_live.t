#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: unwind
# runs: beside

# The unwinder against glibc's backtrace(), on live workers that compress,
# proxy, shake hands and serve files: 50,000 stacks, and each must be the
# same.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use ProfileTest::Process;
use ProfileTest;

use constant SAMPLES => 50_000;

# CPU time of the worker in which as many are taken
use constant ENOUGH => 10;

my $t = ProfileTest->new()->has(qw/ ssl /);

my $core = $ENV{TEST_NGINX_CORE} || 'build/libprof.a';
$t->skip_all("no $core") unless -f $core;
$t->skip_all('not with sanitizers') if ($t->{binary} =~ /asan/);

my $preload = $t->testdir() . '/prof_compare.so';
my ($rc, $out) = $t->command($ENV{CC} || 'cc', '-shared', '-fPIC', '-O2', '-g',
    '-I', 'shared', '-o', $preload, 't/preload/prof_compare.c', $core,
    '-ljansson', '-lelf', '-lpthread');
is($rc, 0, 'preloaded object') or diag($out);

$t->write_certificate('localhost');
$t->write_file('page.html', 'x' x 20000);
$t->write_file('text.txt', join('', map { "line $_ of some text\n" } 1 .. 30000));

$t->conf(<<'EOF', events => 'worker_connections 128;');
ssl_certificate localhost.crt;
ssl_certificate_key localhost.key;

gzip_types *;
gzip_comp_level 6;

upstream app {
    server 127.0.0.1:8081;
    keepalive 4;
}

server {
    listen 127.0.0.1:8080;
    listen 127.0.0.1:8443 ssl;
    server_name localhost;

    location / {
        ssi on;
    }

    location /gzip/ {
        gzip on;
        rewrite ^/gzip/(.*)$ /$1 break;
    }

    location /app/ {
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_pass http://app/;
    }
}

server {
    listen 127.0.0.1:8081;
    server_name localhost;
}
EOF

my $file = $t->testdir() . '/compared';

{
    local $ENV{LD_PRELOAD} = $preload;
    local $ENV{PROF_COMPARE} = $file;

    $t->run();
}

my @load = (
    $t->load('/page.html', clients => 1),
    $t->load('/gzip/text.txt', clients => 1,
             headers => [ 'Accept-Encoding: gzip' ]),
    $t->load('/app/page.html', clients => 1),
    $t->load('/page.html', clients => 1, port => 8443, SSL => 1,
             keepalive => 0),
);

# a busy machine runs the worker for a part of the time only

my ($worker) = $t->worker_pids();

for (1 .. 100) {
    sleep 1;
    last if process_cpu($worker) >= ENOUGH;
}

$_->stop() for @load;
$t->stop();

my %sum;
my $found = $t->read_file('compared');

for my $line (grep { /^samples / } split /\n/, $found) {
    my %counts = $line =~ /(\w+) (\d+)/g;
    $sum{$_} += $counts{$_} for keys %counts;
}

cmp_ok($sum{samples}, '>=', SAMPLES, 'enough samples were taken');
cmp_ok($sum{frames} / $sum{samples}, '>', 10,
       'stacks have more than ten frames on average');
is($sum{equal}, $sum{samples} - $sum{scanned},
   'stacks have the same frames as backtrace()')
    or diag($found);
cmp_ok($sum{scanned}, '<', $sum{samples} / 1000,
       'few stacks pass code without unwind information');
cmp_ok($sum{complete}, '>=', 0.9999 * $sum{samples},
       'nearly all stacks are complete');
diag(join(', ', map { "$_ $sum{$_}" } sort keys %sum));
