package ProfileTest::Names;

# Copyright (C) The ngx_http_profile_module authors
#
# A name server that knows all names which begin with "fast" or "slow": they
# are 127.0.0.1, the slow ones after 0.3 seconds.  To names that begin with
# "silent" there is no answer, others do not exist: those that begin with "lost"
# after 0.3 seconds.

use strict;
use warnings;

use Exporter qw/ import /;
use IO::Socket::INET;
use POSIX qw/ WNOHANG /;
use Time::HiRes qw/ sleep /;

our @EXPORT = qw/ run_names /;


# on the port that stands for the given one; until the test ends
sub run_names {
    my ($t, $port) = @_;

    my $s = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1',
                                  LocalPort => ProfileTest::port($port))
        or die "cannot bind: $!\n";

    $t->run_daemon(\&answer, $s);
    close $s;
}


sub answer {
    my ($s) = @_;

    while (1) {
        my $from = recv($s, my $query, 512, 0) // next;

        my ($id, $flags, @counts) = unpack('n6', $query);
        my ($at, @labels) = (12);

        while (my $len = unpack("x$at C", $query)) {
            push @labels, substr($query, $at + 1, $len);
            $at += 1 + $len;
        }

        my $name = join('.', @labels);
        my $question = substr($query, 12, $at + 1 + 4 - 12);

        next if $name =~ /^silent/;

        my $found = $name =~ /^(?:fast|slow)/;

        if (fork() == 0) {
            sleep(0.3) if $name =~ /^(?:slow|lost)/;

            send($s, pack('n6', $id, $found ? 0x8180 : 0x8183, 1, $found, 0,
                          0) . $question
                     . ($found ? pack('n3 N n a4', 0xc00c, 1, 1, 3600, 4,
                                      "\x7f\0\0\1") : ''), 0, $from);
            POSIX::_exit(0);
        }

        1 while waitpid(-1, WNOHANG) > 0;
    }
}


1;
