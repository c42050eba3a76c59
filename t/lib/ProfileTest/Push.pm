package ProfileTest::Push;

# Copyright (C) The ngx_http_profile_module authors
#
# A receiver of pushed profiles, for tests of "nginx-profile push": it stores
# what it receives, and answers as the file "receiver" says: a status, "hang"
# (it reads and does not answer), "close" (the same, and closes the connection)
# or "cut" (it closes the connection before it has read the body).
#
# Messages of OTLP are decoded by protoc and push/otlp.proto.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use Exporter qw/ import /;
use File::Basename qw/ dirname /;
use IO::Uncompress::Gunzip ();

use ProfileTest::Pprof;
use ProfileTest::Upstream;

our @EXPORT = qw/ run_receiver receiver_says pushed otlp_profiles
                  otlp_attributes pyroscope_profile /;

my $proto = abs_path(dirname(__FILE__)) . '/../../push/otlp.proto';


sub run_receiver {
    my ($t, $port) = @_;

    $t->write_file('pushed', '');
    receiver_says($t, 200);

    run_server($t, $port, sub {
        my ($c) = @_;
        my $says = $t->read_file('receiver');

        if ($says eq 'cut') {
            sysread($c, my $s, 100);
            return;
        }

        my $request = read_request($c) // return;

        open my $f, '>>', $t->testdir() . '/pushed' or die "cannot open: $!\n";
        syswrite($f, pack('N/a N/a', $says, $request));
        close $f;

        sleep(60) if $says eq 'hang';
        return if $says eq 'close';

        my ($status, $headers) = split(/ /, $says, 2);

        my $text = $status < 300 ? '' : 'text';

        syswrite($c, "HTTP/1.1 $status Status\r\n"
                     . ($headers ? "$headers\r\n" : '')
                     . 'Content-Length: ' . length($text) . "\r\n\r\n$text");
        shutdown($c, 1);
        1 while sysread($c, my $rest, 65536);
    });
}


sub receiver_says {
    my ($t, $what) = @_;

    $t->write_file('receiver.new', $what);
    rename($t->testdir() . '/receiver.new', $t->testdir() . '/receiver');
}


# returns the messages received so far: { says, line, headers, body }
sub pushed {
    my ($t) = @_;
    my @strings = unpack('(N/a)*', $t->read_file('pushed'));
    my @pushed;

    while (my ($says, $request) = splice(@strings, 0, 2)) {
        my ($head, $body) = split(/\r\n\r\n/, $request, 2);
        my ($line, $headers) = split(/\r\n/, $head, 2);

        push @pushed, { says => $says, line => $line, headers => $headers,
                        body => $body };
    }

    return @pushed;
}


# the file in a request for Pyroscope's /ingest
sub pyroscope_profile {
    my ($pushed) = @_;

    my ($boundary) = $pushed->{headers} =~ /boundary=(\S+)/;
    my ($file) = $pushed->{body}
                     =~ /^--\Q$boundary\E\r\n
                         Content-Disposition:\ form-data;\ name="profile";
                         .*?\r\n\r\n(.*)\r\n--\Q$boundary\E--\r\n\z/xs
        or die "no form\n";

    return ProfileTest::Pprof->new($file);
}


# the profiles of a request of OTLP, as the samples of ProfileTest::Pprof
sub otlp_profiles {
    my ($body, $compressed) = @_;

    my $m = otlp($body, $compressed);
    my $d = $m->{dictionary}[0];

    for my $table (qw/ mapping location function link attribute stack /) {
        die "the first element of $table is not empty\n"
            if !$d->{"${table}_table"} || !is_empty($d->{"${table}_table"}[0]);
    }

    die "the first string is not empty\n" if $d->{string_table}[0] ne '';

    my @names = map { my $l = $_;
                      [ map { $d->{string_table}[one(
                                  $d->{function_table}[one($_, 'function_index')],
                                  'name_strindex')] }
                            @{$l->{lines} || []} ] } @{$d->{location_table}};

    my @stacks = map { [ map { @{$names[$_]} } @{$_->{location_indices}} ] }
                     @{$d->{stack_table}};

    my $type = sub {
        return join('/', map { $d->{string_table}[one($_[0], $_)] }
                             qw/ type_strindex unit_strindex /);
    };

    return map { my $p = $_; {
        type        => $type->($p->{sample_type}[0]),
        period_type => $type->($p->{period_type}[0]),
        period      => one($p, 'period'),
        time        => one($p, 'time_unix_nano'),
        duration    => one($p, 'duration_nano'),
        id          => one($p, 'profile_id'),
        samples     => [ map { {
            stack  => $stacks[one($_, 'stack_index')],
            values => $_->{values},
            labels => { map { my $a = $d->{attribute_table}[$_];
                              $d->{string_table}[one($a, 'key_strindex')]
                                  => any($a->{value}[0]) }
                            @{$_->{attribute_indices} || []} },
        } } @{$p->{samples}} ],
    } } map { @{$_->{profiles}} } map { @{$_->{scope_profiles}} }
            @{$m->{resource_profiles}};
}


sub otlp_attributes {
    my ($body, $compressed) = @_;
    my $m = otlp($body, $compressed);

    return { map { $_->{key}[0] => any($_->{value}[0]) }
                 @{$m->{resource_profiles}[0]{resource}[0]{attributes}} };
}


# no field, or fields that are empty messages
sub is_empty {
    my ($message) = @_;

    return !grep { ref $_ ? !is_empty($_) : 1 } map { @$_ } values %$message;
}


sub any { return (map { $_->[0] } values %{$_[0]})[0] }


sub one {
    my ($message, $field) = @_;
    return $message->{$field} ? $message->{$field}[0] : 0;
}


sub otlp {
    my ($body, $compressed) = @_;
    my $raw = $body;

    if ($compressed) {
        IO::Uncompress::Gunzip::gunzip(\$body => \$raw, Transparent => 0)
            or die "not compressed\n";
    }

    my ($dir, $name) = (dirname($proto), $proto);
    my $file = "/tmp/profile-test-otlp.$$";

    open my $f, '>:raw', $file or die "cannot open: $!\n";
    print $f $raw;
    close $f;

    my $text = `protoc --proto_path=$dir --decode=otlp.ExportProfilesServiceRequest $name < $file 2>&1`;
    my $rc = $?;

    unlink $file;
    die "protoc: $text\n" if $rc;

    # a field that the definition does not have is a number

    die "unknown field: $1\n" if $text =~ /^ *(\d+[ :].*)/m;

    my @lines = split(/\n/, $text);
    return message(\@lines);
}


# the text of a message as { field => [ values ] }
sub message {
    my ($lines) = @_;
    my %m;

    while (defined(my $line = shift @$lines)) {
        return \%m if $line =~ /^\s*\}$/;

        if ($line =~ /^\s*(\w+) \{$/) {
            push @{$m{$1}}, message($lines);

        } elsif ($line =~ /^\s*(\w+): "(.*)"$/) {
            my ($field, $s) = ($1, $2);
            my %c = (n => "\n", r => "\r", t => "\t");

            $s =~ s/\\(?:([0-7]{3})|(.))/defined $1 ? chr(oct $1)
                                                   : $c{$2} || $2/ge;
            push @{$m{$field}}, $s;

        } elsif ($line =~ /^\s*(\w+): (\S+)$/) {
            push @{$m{$1}}, $2;

        } else {
            die "line: $line\n";
        }
    }

    return \%m;
}


1;
