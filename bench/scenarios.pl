#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# Flamegraphs of nginx under several loads: nginx-profile runs wrk for each
# scenario, and captures the worker meanwhile.  Leaves, for each,
# profile/SCENARIO/flamegraph.svg; prints requests per second and CPU time per
# request, including the capture's.  SECONDS=0 runs wrk alone, to compare.
#
# usage: bench/scenarios.pl [SCENARIO...]
#
# SECONDS=5  of each; FREQUENCY=499; MODE=cpu, or wall, object; FORMAT=svg;
# OUT=profile  the folder of the results; LIST=1  prints the scenarios

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use Time::HiRes qw/ sleep /;

my $here = dirname(abs_path($0));
my $tool = "$here/../tools/nginx-profile";

# nginx itself takes the variable for sockets that it inherits
my $nginx = delete $ENV{NGINX} || '/usr/sbin/nginx';
my $module = abs_path($ENV{MODULE} || 'build/ngx_http_profile_module.so');
my $modules = $ENV{MODULES_PATH} || '/usr/lib/nginx/modules';
my $seconds = $ENV{SECONDS} // 5;
my $frequency = $ENV{FREQUENCY} || 499;
my $mode = $ENV{MODE} || 'cpu';
my $out = $ENV{OUT} || 'profile';

# file names of the formats
my %FILES = (svg => 'flamegraph.svg', html => 'flamegraph.html',
             speedscope => 'profile.json', pprof => 'profile.pb.gz',
             folded => 'profile.folded');

my $file = $FILES{$ENV{FORMAT} || 'svg'}
    or die "FORMAT is \"$ENV{FORMAT}\", it must be one of "
           . join(', ', sort keys %FILES) . "\n";

my $lua = -r "$modules/ngx_http_lua_module.so"
          && -r "$modules/ndk_http_module.so";

# name, URI, further arguments of wrk, description
my @scenarios = (
    [ 'static', '/small.html', [], 'a file of 1 KB' ],
    [ 'large', '/large.bin', [], 'a file of 1 MB' ],
    [ 'gzip', '/text.txt', [ '-H', 'Accept-Encoding: gzip' ],
      'a text of 100 KB, compressed' ],
    [ 'proxied', '/proxied/small.html', [],
      'an upstream on kept connections' ],
    [ 'limited', '/limited/small.html?key=1', [],
      'variables, a map, a rewrite, a limit of requests' ],
    [ 'tls', 'https:/small.html', [ '-H', 'Connection: close' ],
      'a TLS handshake for each request' ],
    $lua ? [ 'lua', '/lua', [], 'a script that makes a page' ] : (),
);

if ($ENV{LIST}) {
    printf "%-10s %s\n", $_->[0], $_->[3] for @scenarios;
    exit;
}

for my $asked (@ARGV) {
    die "there is no scenario \"$asked\", but "
        . join(', ', map { $_->[0] } @scenarios) . "\n"
        unless grep { $_->[0] eq $asked } @scenarios;
}

if (@ARGV) {
    my %asked = map { $_ => 1 } @ARGV;
    @scenarios = grep { $asked{$_->[0]} } @scenarios;
}

die "wrk is not installed\n" if system('command -v wrk > /dev/null');
die "there is no $module: run \"make\"\n" unless $module && -r $module;

my $dir = tempdir(CLEANUP => 1);
my ($port, $tls, $behind) = ports(3);
my $server = start();

printf "%-10s %12s %14s  %s\n", 'scenario', 'requests/s', 'CPU/request', '';

for (@scenarios) {
    my ($name, $uri, $args) = @$_;

    my $url = $uri =~ s{^https:}{} ? "https://127.0.0.1:$tls$uri"
                                   : "http://127.0.0.1:$port$uri";
    my $to = "$out/$name/$file";

    my @wrk = ('wrk', '-t1', '-c8', '-d' . ($seconds || 5), @$args, $url);
    my @command = @wrk;

    if ($seconds) {
        make_path("$out/$name");

        # the capture begins after the load, and ends before it
        @command = ($^X, $tool, '-q', '-u', "unix:$dir/console:/-/profile/",
                    '-m', $mode, '-s', $seconds > 1 ? $seconds - 0.6
                                                    : $seconds * 0.6,
                    '-d', $seconds > 1 ? 0.3 : $seconds * 0.2,
                    $mode eq 'object' ? () : ('-F', $frequency),
                    '-o', $to, '--', @wrk);
    }

    my $before = used();
    my $text = output(@command);
    my $cpu = used() - $before;

    my ($requests) = $text =~ /(\d+) requests in/
        or die "$name: $text\n";
    my ($rate) = $text =~ m{^Requests/sec:\s+(\S+)}m;
    my ($errors) = $text =~ /(Non-2xx.*|Socket errors.*)/;

    printf "%-10s %12.0f %11.1f us  %s\n", $name, $rate,
           $requests ? $cpu / $requests / 1000 : 0, $seconds ? $to : '';
    print "           $errors\n" if $errors;
}

kill 'QUIT', $server->{master};


# a number of ports that are free
sub ports {
    my ($n) = @_;

    my @sockets = map { IO::Socket::INET->new(Listen => 1,
                                              LocalAddr => '127.0.0.1') }
                      1 .. $n;

    return map { $_->sockport() } @sockets;
}


sub write_file {
    my ($name, $content) = @_;

    open my $f, '>', "$dir/$name" or die "$name: $!\n";
    print $f $content;
    close $f or die "$name: $!\n";
}


sub output {
    my (@command) = @_;

    open my $f, '-|', @command or die "$command[0]: $!\n";
    local $/;
    my $text = <$f>;

    close $f or die "$command[0] failed\n";

    return $text;
}


sub start {
    mkdir "$dir/html";

    write_file('html/small.html', 'x' x 1000);
    write_file('html/large.bin', 'x' x 1_000_000);
    write_file('html/text.txt', join('', map { "line $_ " . rand() . "\n" }
                                             1 .. 4000));

    system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bench"
           . " -out $dir/crt -keyout $dir/key 2> /dev/null") == 0
        or die "openssl failed\n";

    my $user = $> == 0 ? 'user root;' : '';
    my $load = $lua ? "load_module $modules/ndk_http_module.so;\n"
                      . "load_module $modules/ngx_http_lua_module.so;" : '';
    my $script = $lua ? <<'END' : '';
        location = /lua {
            content_by_lua_block {
                local rows = {}

                for i = 1, 200 do
                    rows[i] = string.format("<li>%d: %s</li>", i,
                                            ngx.escape_uri("a b " .. i))
                end

                ngx.say("<ul>", table.concat(rows), "</ul>")
            }
        }
END

    write_file('nginx.conf', <<"END");
load_module $module;
$load
$user
worker_processes 1;
pid $dir/pid;
error_log $dir/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    default_type text/plain;
    gzip_types text/plain;
    gzip_comp_level 6;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    root $dir/html;

    map \$arg_key \$limited { default \$binary_remote_addr; 1 ""; }
    limit_req_zone \$limited zone=limited:1m rate=1r/s;

    upstream behind {
        server 127.0.0.1:$behind;
        keepalive 16;
        keepalive_requests 1000000;
    }

    server {
        listen 127.0.0.1:$port;
        listen 127.0.0.1:$tls ssl;
        ssl_certificate $dir/crt;
        ssl_certificate_key $dir/key;
        ssl_session_tickets off;

        location /text.txt {
            gzip on;
        }

        location /proxied/ {
            proxy_pass http://behind/;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }

        location /limited/ {
            limit_req zone=limited;
            set \$x "\$host/\$uri/\$arg_key/\$request_id";
            rewrite ^/limited/(.*)\$ /\$1 break;
            add_header X-What \$x;
        }
$script
    }

    server {
        listen 127.0.0.1:$behind;
    }

    server {
        listen unix:$dir/console;
        location /-/profile/ { profile_console; }
    }
}
END

    system("$nginx -p $dir/ -c $dir/nginx.conf -e $dir/error.log"
           . " > $dir/start.log 2>&1") == 0
        or die "nginx does not start: " . `cat $dir/start.log`;

    for (1 .. 200) {
        sleep(0.05);
        open my $f, '<', "$dir/pid" or next;
        my ($master) = (<$f> // '') =~ /(\d+)/ or next;
        chomp(my $worker = `pgrep -P $master`);

        return { master => $master, worker => $worker } if $worker =~ /^\d+$/;
    }

    die "nginx has no worker\n";
}


# CPU time of the worker, in ns
sub used {
    my $sum = 0;

    for my $task (glob("/proc/$server->{worker}/task/*/schedstat")) {
        open my $f, '<', $task or next;
        $sum += (split / /, <$f>)[0];
    }

    return $sum;
}
