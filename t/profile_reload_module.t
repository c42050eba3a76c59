#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: main
# runs: beside

# An upgrade by reload: nginx loads another file of the module while the first
# one is loaded, and requests with both are served.

use strict;
use warnings;

use File::Copy qw/ copy /;
use Test::More;

use ProfileTest;

my $t = ProfileTest->new();

$t->conf(<<'EOF');
profile_accounting on;
profile_keep 1 rate=1000;
profile_turn_log on;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location / { }

    location = /metrics {
        profile_metrics;
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

my $conf = $t->read_file('nginx.conf');
my ($module) = $conf =~ /load_module "?(\S*ngx_http_profile_module\.so)"?;/;

$t->skip_all('the module is part of nginx') unless $module;

$t->write_file('text', 'x' x 1000);
$t->run();

is(http_get('/text')->status(), 200, 'a request is served');

my $file = $module;

for my $name (qw/ second third second /) {
    my $next = $t->testdir() . "/$name.so";

    # as a package manager replaces a file: under its name is another one

    copy($module, "$next.new") or die "copy: $!\n";
    chmod 0755, "$next.new";
    rename "$next.new", $next or die "rename: $!\n";

    my %old = map { $_ => 1 } $t->worker_pids();
    my $pid;

    $t->write_file('nginx.conf', $conf =~ s/\Q$module\E/$next/r);
    $t->reload();

    wait_for(sub { ($pid) = grep { !$old{$_} } $t->worker_pids() });

    my %mapped = map { m{(/\S+\.so)$} ? ($1 => 1) : () }
                 split /\n/, maps($pid);

    ok($mapped{$next}, "$name: the worker runs the new file");
    ok(!$mapped{$file} || $file eq $next, "$name: nothing of the old one");

    my $r = http_get('/text?performance_bar=flamegraph'
                     . '&profile_format=folded');
    like($r->content(), qr/;|\d/, "$name: a request is profiled");

    for my $uri (qw{ /text /metrics /-/profile/status.json
                     /-/profile/turns.json /-/profile/profiles.json })
    {
        is(http_get($uri)->status(), 200, "$name: $uri is served");
    }

    $file = $next;
}


sub maps {
    my ($pid) = @_;

    open my $f, '<', "/proc/$pid/maps" or return '';
    local $/;

    return <$f>;
}
