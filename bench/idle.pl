#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# What the module costs a request that nobody profiles: instructions in user
# space, counted by callgrind, of nginx without the module, with the module
# loaded, and with "profile_endpoint on".
#
# The count is the slope between a short and a long run over one connection,
# so start-up does not matter.  "named" sums the functions that the module
# adds, with all that they call, and what the two that run phases do more.
# "added" is the difference of the totals: it also has what malloc() and
# nginx's hashes do with another layout of memory, and the clock.

use strict;
use warnings;

use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use Time::HiRes qw/ sleep /;

use constant SHORT => 200;
use constant LONG => 1200;

my $nginx = delete $ENV{NGINX} || '/usr/sbin/nginx';
my $module = $ENV{MODULE} || 'build/ngx_http_profile_module.so';
my $user = $> == 0 ? 'user root;' : '';

my $dir = tempdir(CLEANUP => 1);
mkdir "$dir/html" or die;
write_file("$dir/html/small.html", "hello\n");

my $port = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
           ->sockport();

$module = `realpath $module`;
chomp $module;

my @uris = (
    '/small.html',
    '/small.html?x=1&y=22&z=333',
    '/small.html?session=abcdef0123&page=22&sort=name',
);

printf "%-50s %9s %9s %9s %7s %7s\n", 'instructions per request', 'without',
       'loaded', 'on', 'added', 'named';

for my $uri (@uris) {
    my @runs = map { slope($uri, @$_) } (
        [ '', '' ],
        [ "load_module $module;", '' ],
        [ "load_module $module;", 'profile_endpoint on;' ],
    );

    printf "%-50s %9.0f %9.0f %9.0f %7.0f %7.0f\n", $uri,
           (map { $_->{total} } @runs), $runs[2]{total} - $runs[0]{total},
           $runs[2]{named} - $runs[0]{named};
}


sub slope {
    my ($uri, @conf) = @_;

    my ($short, $long) = map { run($uri, $_, @conf) } SHORT, LONG;

    return { map { $_ => ($long->{$_} - $short->{$_}) / (LONG - SHORT) }
             keys %$long };
}


sub run {
    my ($uri, $n, $load, $endpoint) = @_;

    write_file("$dir/nginx.conf", <<"EOF");
$load
$user
daemon off;
master_process off;
pid $dir/nginx.pid;
error_log $dir/error.log;
events { worker_connections 64; }
http {
    access_log off;
    keepalive_requests 100000;
    client_body_temp_path $dir/body;
    proxy_temp_path $dir/proxy;
    fastcgi_temp_path $dir/fastcgi;
    uwsgi_temp_path $dir/uwsgi;
    scgi_temp_path $dir/scgi;
    $endpoint
    server { listen 127.0.0.1:$port; root $dir/html; }
}
EOF

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDERR, '>', "$dir/valgrind.log" or die;
        exec 'valgrind', '--tool=callgrind', "--callgrind-out-file=$dir/out",
             $nginx, '-c', "$dir/nginx.conf", '-e', "$dir/error.log"
            or die "no valgrind: $!\n";
    }

    my $s;

    for (1 .. 300) {
        $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") and last;
        sleep 0.1;
    }

    die "nginx did not start\n" unless $s;

    get($s, $uri) for 1 .. $n;
    close $s;

    kill 'QUIT', $pid;
    waitpid $pid, 0;

    my %count = (total => 0, named => 0);

    # with all that it calls; of the filters only their own
    my %inclusive = annotated('--inclusive=yes');
    my %self = annotated('--inclusive=no');

    $count{total} = $self{'PROGRAM TOTALS'};

    $count{named} += $inclusive{ngx_http_profile_handler} || 0;
    $count{named} += $self{$_} || 0
        for qw/ ngx_http_profile_header_filter ngx_http_profile_body_filter
                ngx_http_core_run_phases ngx_http_core_generic_phase /;

    return \%count;
}


sub annotated {
    my ($option) = @_;
    my %ir;

    for (`callgrind_annotate --threshold=100 --auto=no $option $dir/out`) {
        my ($n, $fn) = /^\s*([\d,]+) \([^)]*\)\s+(.*)/ or next;

        $n =~ tr/,//d;
        $fn =~ s/^.*?:(?=\w+(?:\s|$))//;
        $fn =~ s/\s+\[.*//;

        # a function stands in several lines, one for each source file
        $ir{$fn} = $option =~ /yes/ && ($ir{$fn} || 0) > $n
                   ? $ir{$fn} : $n + ($option =~ /no/ && $ir{$fn} || 0);
    }

    return %ir;
}


sub get {
    my ($s, $uri) = @_;

    print $s "GET $uri HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";

    my $data = '';

    while ($data !~ /\r\n\r\n/) {
        sysread($s, $data, 4096, length $data) or die "connection closed\n";
    }

    my ($len) = $data =~ /Content-Length: (\d+)/ or die $data;
    my $end = index($data, "\r\n\r\n") + 4 + $len;

    while (length $data < $end) {
        sysread($s, $data, 4096, length $data) or die "connection closed\n";
    }
}


sub write_file {
    my ($name, $text) = @_;

    open my $f, '>', $name or die "$name: $!\n";
    print $f $text;
    close $f or die "$name: $!\n";
}
