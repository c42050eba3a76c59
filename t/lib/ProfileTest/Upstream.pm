package ProfileTest::Upstream;

# Copyright (C) The ngx_http_profile_module authors
#
# An upstream server that answers with what it was sent, as it was sent.
# Segments of the path ask for more than that:
#
#     /status=404/   the status
#     /wait=300/     milliseconds until it answers
#     /hold=a/       it answers when upstream_release() is called with the name,
#                    and the file "answered.a" is there when it has
#     /accel=/x/     X-Accel-Redirect: the rest of the path, from the slash on
#     /cookie=a/     Set-Cookie, and some headers that caches look at
#
# For other servers, run_server() has what accepts connections.

use strict;
use warnings;

use Exporter qw/ import /;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw/ sleep /;

our @EXPORT = qw/ read_request run_server run_upstream upstream_requests
                  upstream_lines upstream_release /;

my $log = 'upstream.log';


# serves connections to the port that stands for the given one, each in a process
# of its own, until the test ends; with options of the socket
sub run_server {
    my ($t, $port, $serve, @options) = @_;

    my $s = IO::Socket::INET->new(Proto => 'tcp', LocalAddr => '127.0.0.1',
                                  LocalPort => ProfileTest::port($port),
                                  Listen => 64, ReuseAddr => 1,
                                  Sockopts => \@options)
        or die "cannot listen: $!\n";

    $t->run_daemon(sub {
        local $SIG{CHLD} = 'IGNORE';
        local $SIG{PIPE} = 'IGNORE';

        while (1) {
            my $c = $s->accept() or next;
            my $pid = fork();
            next if !defined $pid || $pid;

            close $s;
            alarm(60);
            eval { $serve->($c) };
            POSIX::_exit(0);
        }
    });

    close $s;
}


# header and body, or nothing
sub read_request {
    my ($c) = @_;

    my $request = '';

    while ($request !~ /\r\n\r\n/) {
        sysread($c, $request, 65536, length($request)) or return;
    }

    my ($head) = $request =~ /^(.*?\r\n\r\n)/s;
    my $len = $head =~ /^Content-Length: *(\d+)/mi ? $1 : 0;

    while (length($request) < length($head) + $len) {
        sysread($c, $request, 65536, length($request)) or return;
    }

    return $request;
}


sub run_upstream {
    my ($t, $port) = @_;

    $t->write_file($log, '');

    run_server($t, $port, sub { answer($t, @_) });
}


# all requests so far, as they came
sub upstream_requests {
    my ($t) = @_;
    my @requests = unpack('(N/a)*', $t->read_file($log));
    return @requests;
}


# their request lines
sub upstream_lines {
    my ($t) = @_;
    return map { /^(.*)\r\n/ } upstream_requests($t);
}


sub upstream_release {
    my ($t, $name) = @_;
    $t->write_file("release.$name", '');
}


sub answer {
    my ($t, $c) = @_;

    my $request = read_request($c) // return;

    my ($line) = $request =~ /^(.*)\r\n/;
    my ($path) = $line =~ m{^\S+ ([^\s?]*)};

    open my $f, '>>', $t->testdir() . "/$log" or die "cannot open: $!\n";
    syswrite($f, pack('N/a', $request));
    close $f;

    sleep($1 / 1000) if $path =~ m{/wait=(\d+)};

    if ($path =~ m{/hold=(\w+)}) {
        sleep(0.02) while !-e $t->testdir() . "/release.$1";
    }

    my $status = $path =~ m{/status=(\d{3})} ? $1 : 200;

    my @headers = ('Content-Type: text/plain', 'Connection: close',
                   'Content-Length: ' . length($request));

    push @headers, "X-Accel-Redirect: $1" if $path =~ m{/accel=(/.*)};
    push @headers, "Set-Cookie: $1=1", 'ETag: "an-etag"', 'Age: 10',
                   'Last-Modified: Mon, 28 Sep 1970 06:00:00 GMT',
                   'Cache-Control: public, max-age=600', 'X-Original: yes',
                   'Expires: Thu, 31 Dec 2037 23:55:55 GMT',
                   'Location: http://example.com/', 'Refresh: 10'
        if $path =~ m{/cookie=(\w+)};

    my $response = join("\r\n", "HTTP/1.1 $status Status", @headers, '', '')
                   . ($line =~ /^HEAD / ? '' : $request);

    my $sent = 0;

    while ($sent < length($response)) {
        $sent += syswrite($c, $response, 65536, $sent) || last;
    }

    $t->write_file("answered.$1", '') if $path =~ m{/hold=(\w+)};

    # data that the client still sends must not reset the connection
    shutdown($c, 1);
    1 while sysread($c, my $rest, 65536);
}


1;
