package ProfileTest::HTTP;

# Copyright (C) The ngx_http_profile_module authors
#
# A small HTTP/1 client.  It does on the wire exactly what a test says, and
# knows where a response ends, so connections can be reused.

use strict;
use warnings;

use Exporter qw/ import /;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Time::HiRes qw/ time /;

use ProfileTest::Response;

our @EXPORT = qw/ http http_get http_head http_post http_end %PROTOCOLS /;

# how curl speaks to t/conf/protocols.conf: scheme, port, option
our %PROTOCOLS = (
    'HTTP/1.1' => [ 'http', 8080, '--http1.1' ],
    'HTTP/1.1 over TLS' => [ 'https', 8081, '--http1.1' ],
    'HTTP/2' => [ 'http', 8082, '--http2-prior-knowledge' ],
    'HTTP/2 over TLS' => [ 'https', 8083, '--http2' ],
);

# With TEST_NGINX_PROXY_PROTOCOL, connections to these ports begin with the
# header of the proxy protocol.  Requests of nginx itself go to other ports.
our @PROXY_PORTS = (8080, 8443);

my $TIMEOUT = 2 * ($ENV{TEST_NGINX_TIMEOUT} || 10);


# Sends the request, and reads the response unless told otherwise.
#
# port     of nginx, as in the test's configuration; 8080
# socket   an open connection to use
# unix     path of a unix socket to connect to
# SSL      speak TLS; a reference to a hash has options of IO::Socket::SSL
# start    return the socket at once; http_end() reads the response
# timeout  seconds
sub http {
    my ($request, %extra) = @_;

    my $s = $extra{socket} || connect_to($extra{unix} || $extra{port} || 8080,
                                         $extra{SSL});

    return ProfileTest::Response->new('', 'no connection') unless $s;

    my ($method) = $request =~ /^(\S+)/;
    ${*$s}{profile_test_method} = $method;

    my $sent = 0;

    while ($sent < length($request)) {
        my $n = syswrite($s, $request, 65536, $sent);
        last unless defined $n;
        $sent += $n;
    }

    return $s if $extra{start};
    return http_end($s, %extra);
}


# the response to what http(..., start => 1) has sent
sub http_end {
    my ($s, %extra) = @_;

    return ProfileTest::Response->new('', 'no connection')
        if ref $s eq 'ProfileTest::Response';

    my $method = ${*$s}{profile_test_method} || 'GET';
    my $end = time() + ($extra{timeout} || $TIMEOUT);
    my $select = IO::Select->new($s);
    my ($buf, $error) = (delete ${*$s}{profile_test_rest} // '', undef);

    while (1) {
        my $len = ProfileTest::Response::complete($buf, $method);

        if (defined $len) {
            ${*$s}{profile_test_rest} = substr($buf, $len, length($buf), '');
            last;
        }

        if (!($s->can('pending') && $s->pending())
            && !$select->can_read($end - time() > 0 ? $end - time() : 0))
        {
            # a signal ends the waiting, too
            next if time() < $end;

            $error = 'timed out';
            last;
        }

        my $n = sysread($s, $buf, 65536, length($buf));
        next if !defined $n && ($!{EAGAIN} || $!{EINTR});

        if (!$n) {
            $error = "read: $!" unless defined $n;
            last;
        }
    }

    return ProfileTest::Response->new($buf, $error, $method);
}


# headers   a list of "Name: value" lines
# version   of HTTP; 1.1.  The connection is closed unless keepalive is set
# body      of the request
sub request {
    my ($method, $uri, %extra) = @_;

    my $version = $extra{version} || '1.1';
    my @lines = @{$extra{headers} || []};

    unshift @lines, 'Host: localhost' unless grep { /^Host:/i } @lines;
    push @lines, 'Connection: close' unless $extra{keepalive}
                                            || grep { /^Connection:/i } @lines;
    push @lines, 'Content-Length: ' . length($extra{body})
        if defined $extra{body};

    return http(join("\r\n", "$method $uri HTTP/$version", @lines, '', '')
                . ($extra{body} // ''), %extra);
}


sub http_get {
    my ($uri, %extra) = @_;
    return request('GET', $uri, %extra);
}


sub http_head {
    my ($uri, %extra) = @_;
    return request('HEAD', $uri, %extra);
}


sub http_post {
    my ($uri, $body, %extra) = @_;
    return request('POST', $uri, %extra, body => $body);
}


sub connect_to {
    my ($where, $ssl) = @_;

    my $s;

    if ($where =~ m{^/}) {
        $s = IO::Socket::UNIX->new(Peer => $where);

    } else {
        $s = IO::Socket::INET->new(Proto => 'tcp', PeerAddr => '127.0.0.1',
                                   PeerPort => ProfileTest::port($where));
    }

    if ($s && $ENV{TEST_NGINX_PROXY_PROTOCOL}
        && grep { $_ eq $where } @PROXY_PORTS)
    {
        syswrite($s, "PROXY TCP4 127.0.0.1 127.0.0.1 1 $where\r\n");
    }

    return $s unless $s && $ssl;

    require IO::Socket::SSL;

    return IO::Socket::SSL->start_SSL($s, SSL_verify_mode => 0,
                                      ref $ssl ? %$ssl : ());
}


1;
