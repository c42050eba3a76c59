package ProfileTest::H3;

# Copyright (C) The ngx_http_profile_module authors
#
# Requests of one HTTP/3 connection, all at once, by curl if it can, or by
# ngtcp2's client (gtlsclient).  What both can: GET, or POST for all of them.

use strict;
use warnings;

use Exporter qw/ import /;
use POSIX ();
use Time::HiRes qw/ sleep /;

use ProfileTest;

our @EXPORT = qw/ h3_test h3 /;

my ($client, $runs) = ('', 0);


# A test of an nginx with HTTP/3: the one that "make test" built if the nginx
# under test is too old.  The names are those of has().
sub h3_test {
    my (@names) = @_;

    if (my $objs = $ENV{TEST_NGINX_HTTP3}) {
        $ENV{TEST_NGINX_BINARY} = "$objs/nginx";
        $ENV{TEST_NGINX_MODULE} = "$objs/ngx_http_profile_module.so";
    }

    my $t = ProfileTest->new()->has(qw/ ssl v3 /, @names);

    if (`curl -V 2>&1` =~ /^Features:.*\bHTTP3\b/m) {
        $client = 'curl';

    } else {
        $client = 'gtlsclient';
        $t->has_program($client);
    }

    return $t;
}


# The responses to the URIs, as if HTTP/1.1 had brought them.
#
# port    of the server; 8443
# body    of all requests, which are POST then
# leave   seconds after which the client goes without a word, and no responses
# quit    the client ends its requests and the connection, soon after the first
#         responses are there
sub h3 {
    my ($t, $uris, %extra) = @_;

    my $dir = $t->testdir() . '/h3.' . ++$runs;
    mkdir $dir or die "mkdir: $!\n";

    $t->write_file("h3.$runs/body", $extra{body}) if defined $extra{body};

    my @command = $client eq 'curl' ? curl($dir, $uris, %extra)
                                    : gtlsclient($dir, $uris, %extra);

    return left($dir, $extra{leave}, @command) if $extra{leave};

    my ($status, $out) = $t->command(@command);

    return $client eq 'curl' ? curl_responses($dir, $uris, $out)
                             : gtlsclient_responses($dir, $uris, $out);
}


# killed, it closes nothing
sub left {
    my ($dir, $seconds, @command) = @_;

    my $pid = fork() // die "fork: $!\n";

    if (!$pid) {
        open STDOUT, '>', "$dir/stdout";
        open STDERR, '>', "$dir/stderr";
        exec { $command[0] } @command or POSIX::_exit(127);
    }

    sleep($seconds);
    kill 'KILL', $pid;
    waitpid($pid, 0);

    return;
}


sub curl {
    my ($dir, $uris, %extra) = @_;

    my $port = port($extra{port} || 8443);
    my $n = 0;

    return (qw/ curl -s -k --http3-only --parallel --parallel-max 100 /,
            map { $n++;
                  ($n > 1 ? '--next' : (), '-s', '-k', '--http3-only',
                   '-D', "$dir/$n.head", '-o', "$dir/$n.body",
                   defined $extra{body} ? ('--data-binary', "\@$dir/body")
                                        : (),
                   $extra{quit} ? qw/ --max-time 1 / : (),
                   "https://127.0.0.1:$port$_") } @$uris);
}


sub curl_responses {
    my ($dir, $uris, $out) = @_;

    return map {
        my $head = content("$dir/$_.head");

        $head =~ s{^HTTP/3 (\d+)[^\r\n]*}{HTTP/1.1 $1 X};
        response($head =~ s/\r\n\r\n\z//r, content("$dir/$_.body"), $out);
    } 1 .. @$uris;
}


# the client names files by the last part of the URI, so each URI gets a name
sub gtlsclient {
    my ($dir, $uris, %extra) = @_;

    my $port = port($extra{port} || 8443);
    my $n = 0;

    return ('gtlsclient', '--no-quic-dump', '--no-http-dump',
            "--download=$dir", '--timeout=30s',
            $extra{quit} ? '--exit-on-first-stream-close'
                         : '--exit-on-all-streams-close',
            defined $extra{body} ? ('-m', 'POST', '-d', "$dir/body") : (),
            '127.0.0.1', $port,
            map { my $mark = /\?/ ? '&' : '?'; $n++;
                  "https://localhost:$port$_${mark}n=$n" } @$uris);
}


sub gtlsclient_responses {
    my ($dir, $uris, $out) = @_;

    my (%head, %status);

    while ($out =~ /^http: stream (0x[0-9a-f]+) \[([:\w-]+): (.*)\]$/mg) {
        if ($2 eq ':status') {
            $status{hex($1) / 4 + 1} = $3;
        } else {
            push @{$head{hex($1) / 4 + 1}}, "$2: $3";
        }
    }

    opendir my $d, $dir or die "opendir: $!\n";
    my %file = map { /[?&]n=(\d+)$/ ? ($1 => "$dir/$_") : () } readdir $d;

    return map {
        response($status{$_} ? join("\r\n", "HTTP/1.1 $status{$_} X",
                                    @{$head{$_} || []}) : '',
                 $file{$_} ? content($file{$_}) : '', $out);
    } 1 .. @$uris;
}


sub response {
    my ($head, $body, $out) = @_;

    return ProfileTest::Response->new('', "no response: $out")
        unless $head =~ m{^HTTP/1.1 \d};
    return ProfileTest::Response->new("$head\r\n\r\n$body");
}


sub content {
    my ($file) = @_;

    open my $f, '<', $file or return '';
    binmode $f;
    local $/;

    return scalar <$f> // '';
}


1;
