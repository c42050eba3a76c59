package Bench;

# Copyright (C) The ngx_http_profile_module authors
#
# Functions of all benchmarks: nginx with one worker on its own CPU, requests
# over a kept connection, CPU times, and the summary of rounds.
#
# read_file() and write_file() are those of Machine.pm.
#
# NGINX and MODULE name the nginx and the module to measure.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use Exporter qw/ import /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use POSIX qw/ WNOHANG /;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__);

use Machine;

our @EXPORT = qw/ callgrind connect_to cpu_of dir free_port module quartiles read_file
                  request start stop write_file /;

# nginx itself takes the variable for sockets that it inherits
my $nginx = delete $ENV{NGINX} || '/usr/sbin/nginx';
my $module = $ENV{MODULE} || 'build/ngx_http_profile_module.so';
my $dir = tempdir(CLEANUP => 1);

my @running;


# of this run; its html/ has the files that are served
sub dir {
    mkdir "$dir/html";
    return $dir;
}


# the directive that loads the module
sub module { return 'load_module ' . abs_path($module) . ';' }


sub free_port {
    return IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
               ->sockport();
}


# Starts nginx and waits until the port accepts connections.  Returns { name,
# port, pid, worker }.  Options:
#
#     name         of its files in dir(); "nginx"
#     http         the directives in the http block
#     main         the directives outside of it; module()
#     log          access_log off;
#     connections  512
#     workers      1
#     cpu          the CPU that it runs on; any
#     command      a program that runs nginx, without a master process
#     env          environment variables
sub start {
    my (%o) = @_;

    my $name = $o{name} // 'nginx';
    my $port = $o{port};
    my $main = $o{main} // module();
    my $log = $o{log} // 'access_log off;';
    my $user = $> == 0 ? 'user root;' : '';
    my $process = $o{command} ? 'master_process off;'
                              : "worker_processes @{[ $o{workers} // 1 ]};";
    my $connections = $o{connections} // 512;
    my $temp = join("\n", map { "    ${_}_temp_path $dir/$name.$_;" }
                          qw/ client_body proxy fastcgi uwsgi scgi /);

    write_file("$dir/$name.conf", <<"EOC");
$main
$user
daemon off;
$process
pid $dir/$name.pid;
error_log $dir/$name.log;
events { worker_connections $connections; }
http {
    $log
    keepalive_requests 1000000000;
    default_type text/plain;
$temp
    $o{http}
}
EOC

    my @command = ($nginx, '-p', "$dir/", '-c', "$dir/$name.conf", '-e',
                   "$dir/$name.log");

    unshift @command, @{$o{command}} if $o{command};
    unshift @command, qw/ taskset -c /, $o{cpu} if defined $o{cpu};

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        %ENV = (%ENV, %{$o{env} // {}});
        open STDERR, '>', "$dir/$name.err" or die;
        exec @command or die "$command[0]: $!\n";
    }

    push @running, $pid;

    for (1 .. 300) {
        my ($worker) = $o{command} ? $pid : `pgrep -P $pid` =~ /(\d+)/;

        return { name => $name, port => $port, pid => $pid,
                 worker => $worker }
            if $worker && connect_to($port);

        last if waitpid($pid, WNOHANG) == $pid;
        sleep 0.1;
    }

    die "nginx does not start:\n", read_file("$dir/$name.err"),
        read_file("$dir/$name.log");
}


# a single process may miss a signal between its check and the poll
sub stop {
    for my $server (@_) {
        do {
            kill 'QUIT', $server->{pid};
            sleep 0.1;
        } until waitpid $server->{pid}, WNOHANG;

        @running = grep { $_ != $server->{pid} } @running;
    }
}


END { kill 'TERM', @running if @running }


sub connect_to {
    my ($port) = @_;
    return IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
}


# the response to GET, over a connection that is kept
sub request {
    my ($sock, $uri, @headers) = @_;

    print $sock join("\r\n", "GET $uri HTTP/1.1", 'Host: localhost', @headers,
                     '', '');

    my $data = '';

    while (1) {
        sysread($sock, $data, 65536, length $data)
            or die "the connection is closed\n";

        my $body = index($data, "\r\n\r\n");
        next if $body < 0;

        return $data if $data =~ /^Content-Length: (\d+)\r\n/m
                        && length $data == $body + 4 + $1;
        return $data if $data =~ /\r\n0\r\n\r\n\z/;
    }
}


# nanoseconds of CPU time of a process: of its first thread, and of the others
sub cpu_of {
    my ($pid) = @_;

    my @ns = (0, 0);

    for my $task (glob "/proc/$pid/task/*") {
        open my $f, '<', "$task/schedstat" or next;
        $ns[$task !~ m{/$pid$}] += (split / /, <$f>)[0];
    }

    return @ns;
}


# The instructions of a run of callgrind, which has written this file, by
# function.  "total" is their sum without malloc(), which depends on the layout
# of the memory, without the rotations of the tree of timers, which depend on its
# shape, without nginx's update of its time, which is due at each request since
# callgrind is slow, and without the clocks.
sub callgrind {
    my ($file) = @_;

    my %count = (total => 0);

    for (`callgrind_annotate --threshold=100 --auto=no $file`) {
        my ($n, $at) = /^\s*([\d,]+) \([^)]*\)\s+(.*)/ or next;
        my ($fn) = $at =~ /^(?:\S*:)?([\w ]+)/ or next;

        $n =~ tr/,//d;
        $fn =~ s/ +$//;

        if ($fn eq 'PROGRAM TOTALS') {
            $count{total} += $n;
            next;
        }

        $count{total} -= $n
            if $at =~ /malloc\.c:/
               || $fn =~ /^(?:ngx_time_update|__gettimeofday|clock_gettime
                              |gettimeofday|epoll_wait
                              |ngx_rbtree_(?:insert|delete)$)/x;
        $count{$fn} += $n;
    }

    die "no callgrind\n" if $count{total} <= 0;

    return %count;
}


# the median of the rounds, and their quartiles
sub quartiles {
    my @v = sort { $a <=> $b } @_;
    return sprintf '%.3f (%.3f .. %.3f)', @v[@v / 2, @v / 4, @v * 3 / 4];
}


1;
