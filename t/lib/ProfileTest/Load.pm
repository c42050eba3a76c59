package ProfileTest::Load;

# Copyright (C) The ngx_http_profile_module authors
#
# Requests in the background, from processes that end with the test, or by
# themselves after a time.

use strict;
use warnings;

use IO::Handle;
use Time::HiRes qw/ sleep time /;

use ProfileTest::HTTP;

use constant SECONDS => 60;


# clients   processes, each with one connection; 2
# rate      requests per second of each client; as many as possible
# seconds   when to end at the latest; 60
# status    that responses must have; 200
# others    are passed to http_get()
sub start {
    my ($class, $test, $uri, %extra) = @_;

    my $self = bless { test => $test, pids => [], pipes => [] }, $class;
    my $clients = delete $extra{clients} || 2;

    for (1 .. $clients) {
        pipe(my $r, my $w) or die "pipe: $!\n";

        push @{$self->{pids}}, $test->start_child(sub {
            close $r;
            client($w, $uri, %extra);
        });

        close $w;
        push @{$self->{pipes}}, $r;
    }

    # the load is on when every client has got a response
    for my $r (@{$self->{pipes}}) {
        defined(scalar <$r>) or die "no load: $uri\n";
    }

    return $self;
}


sub client {
    my ($w, $uri, %extra) = @_;

    my $rate = delete $extra{rate};
    my $want = delete $extra{status} || 200;
    my $end = time() + (delete $extra{seconds} || SECONDS);
    my ($stop, $good, $bad, $error, $s) = (0, 0, 0, '', undef);
    my $next = time();

    $SIG{TERM} = sub { $stop = 1 };
    $SIG{PIPE} = 'IGNORE';
    $w->autoflush(1);

    while (!$stop && time() < $end) {
        $s ||= ProfileTest::HTTP::connect_to($extra{port} || 8080,
                                             $extra{SSL});
        my $response = http_get($uri, keepalive => 1, %extra, socket => $s);

        if ($response->status() == $want) {
            print $w "started\n" unless $good++;

        } else {
            $bad++;
            $error = $response->error() || 'status ' . $response->status();
        }

        $s = undef if $response->status() == 0
                      || ($response->header('Connection') // '') eq 'close';

        if ($rate) {
            $next += 1 / $rate;
            sleep($next - time()) if $next > time();
        }
    }

    print $w "$good $bad $error\n";
    POSIX::_exit(0);
}


# { requests, failed, error }
sub stop {
    my ($self) = @_;

    my %sum = (requests => 0, failed => 0, error => '');

    kill 'TERM', @{$self->{pids}};

    for my $r (@{$self->{pipes}}) {
        while (my $line = <$r>) {
            $line =~ /^(\d+) (\d+) (.*)/ or next;

            $sum{requests} += $1;
            $sum{failed} += $2;
            $sum{error} ||= $3;
        }
    }

    for my $pid (@{$self->{pids}}) {
        waitpid($pid, 0);
        $self->{test}->forget_child($pid);
    }

    return \%sum;
}


1;
