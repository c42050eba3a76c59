package ProfileTest::Response;

# Copyright (C) The ngx_http_profile_module authors
#
# An HTTP/1 response.  As a string it is what came over the wire, so
# like($response, qr/200 OK/) does what it says.

use strict;
use warnings;

use overload '""' => sub { $_[0]{raw} }, 'bool' => sub { 1 },
             fallback => 1;


sub new {
    my ($class, $raw, $error, $method) = @_;

    my $self = bless { raw => $raw, error => $error // '', status => 0,
                       lines => [], body => '' }, $class;

    # interim responses
    $raw =~ s{^HTTP/1\.\d 1(?!01)\d\d .*?\r\n\r\n}{}s;

    my ($head, $body) = split(/\r\n\r\n/, $raw, 2);
    return $self unless defined $head && $head =~ m{^HTTP/1\.\d (\d\d\d)};

    $self->{status} = $1;
    (undef, @{$self->{lines}}) = split(/\r\n/, $head);

    $body //= '';
    ($body) = dechunk($body)
        if ($self->header('Transfer-Encoding') // '') =~ /chunked/i
           && ($method // '') ne 'HEAD';
    $self->{body} = $body;

    return $self;
}


# "timed out", ...; empty when a response was read
sub error { return $_[0]{error} }

sub status { return $_[0]{status} }

# the body without the transfer encoding
sub body { return $_[0]{body} }

sub raw { return $_[0]{raw} }


# the first header of that name, or all in list context
sub header {
    my ($self, $name) = @_;

    my @values = map { /^\Q$name\E:[ \t]*(.*?)[ \t]*$/i ? $1 : () }
                     @{$self->{lines}};

    return wantarray ? @values : $values[0];
}


# the body without the content encoding; undef if it cannot be decoded
sub content {
    my ($self) = @_;

    my $encoding = $self->header('Content-Encoding') // '';
    return $self->{body} if $encoding eq '';

    require IO::Uncompress::Gunzip;

    my $in = $self->{body};
    my $out;

    IO::Uncompress::Gunzip::gunzip(\$in => \$out, Transparent => 0)
        or return undef;

    return $out;
}


# The length of the first response in the string, or undef if it is not
# complete, or only the end of the connection will tell.
sub complete {
    my ($s, $method) = @_;

    my $at = 0;
    my ($head, $status);

    while (1) {
        my $end = index($s, "\r\n\r\n", $at);
        return undef if $end == -1;

        $head = substr($s, $at, $end - $at) . "\r\n";
        $at = $end + 4;

        ($status) = $head =~ m{^HTTP/1\.\d (\d\d\d)} or return undef;
        last if $status !~ /^1/ || $status == 101;
    }

    return $at if $method eq 'HEAD' || $status =~ /^(?:101|204|304)$/;

    if ($head =~ /^Transfer-Encoding:[ \t]*chunked/mi) {
        my (undef, $len) = dechunk(substr($s, $at));
        return defined $len ? $at + $len : undef;
    }

    if ($head =~ /^Content-Length:[ \t]*(\d+)/mi) {
        return length($s) >= $at + $1 ? $at + $1 : undef;
    }

    return undef;
}


# (data, length with the encoding); the length is undef when the end is missing
sub dechunk {
    my ($s) = @_;

    my ($data, $at) = ('', 0);

    while (1) {
        pos($s) = $at;
        $s =~ /\G([0-9a-fA-F]+)[^\r\n]*\r\n/g or return ($data, undef);

        my ($len, $start) = (hex($1), pos($s));

        if ($len == 0) {
            pos($s) = $start;
            return $s =~ /\G(?:[^\r\n]+\r\n)*\r\n/g ? ($data, pos($s))
                                                    : ($data, undef);
        }

        $data .= substr($s, $start, $len);
        $at = $start + $len + 2;
        return ($data, undef) if $at > length($s);
    }
}


1;
