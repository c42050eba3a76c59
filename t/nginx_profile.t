#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: beside
#
# tools/nginx-profile: files, formats, sockets, https, commands, progress, and
# the messages and exit codes of errors.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use IO::Socket::IP;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;

my $t = ProfileTest->new()->has(qw/ rewrite ssl /)->has_program('openssl');

my $v6 = IO::Socket::IP->new(LocalHost => '::1', Listen => 1);
my $listen_v6 = $v6 ? 'listen [::1]:%%PORT_8080%%;' : '';

$t->conf(<<"EOF", workers => 2);
server {
    listen 127.0.0.1:8080;
    $listen_v6
    listen 127.0.0.1:8081 ssl;
    listen unix:%%TESTDIR%%/console;

    ssl_certificate localhost.crt;
    ssl_certificate_key localhost.key;

    location /-/profile/ {
        profile_console;
    }

    location /other/ {
        if (\$http_authorization != "secret") {
            return 403;
        }
        profile_console;
    }

    location / {
        return 404 "nothing\\n";
    }
}
EOF

$t->write_certificate('localhost');
$t->run();

my $tool = dirname(__FILE__) . '/../tools/nginx-profile';
my $dir = $t->testdir();
my $http = 'http://127.0.0.1:' . port(8080);
my $unix = "http://unix:$dir/console:/-/profile/";

###############################################################################

my ($rc, $out) = tool('-u', $http, '-s', '0.2', '-o', "$dir/a.svg");

is($rc, 0, 'a written profile is a success');
like($out, qr/a\.svg: \d+ bytes/, 'the program names the file');
like($t->read_file('a.svg'), qr/^<svg /, 'the file has the format of its suffix');

($rc, $out) = tool('-u', $unix, '-s', '0.2', '-q', '-o', "$dir/a.json");

is("$rc $out", '0 ', 'the tool uses a unix socket, and prints nothing with -q');
ok(decode_json($t->read_file('a.json'))->{profiles},
   'the file has the format speedscope');

($rc, $out) = tool('-u', "unix:$dir/console", '-s', '0.2', '-o',
                   "$dir/a.pb.gz", '-m', 'wall', '-F', '50', '-w', 'self');

my $p = ProfileTest::Pprof->new($t->read_file('a.pb.gz'));

is($p->default_type(), 'wall', 'the profile shows wall time');
is($p->period(), 20000000, 'the profile has the frequency of the option');
like(join("\n", $p->comments()), qr/^workers: \d+$/m,
     'the profile is that of one worker');

($rc, $out) = tool('-u', $unix, '-s', '0.2', '-f', 'html', '-o', '-', '-q');

like($out, qr/^<!DOCTYPE html>/i,
     'the tool writes a page to the standard output');

my $load = $t->load('/', clients => 1, status => 404);
($rc, $out) = tool('-u', $unix, '-s', '20', '--location', '/', '-n', '5',
                   '-o', "$dir/a.pb.gz", '-q');
$load->stop();

$p = ProfileTest::Pprof->new($t->read_file('a.pb.gz'));
like(join("\n", $p->comments()), qr/^scope: endpoint$/m,
     'the tool captures requests');

($rc, $out) = tool('-u', $unix, '-s', '0.5', '-m', 'object', '-i', '0',
                   '-o', "$dir/a.pb.gz", '-q');

$p = ProfileTest::Pprof->new($t->read_file('a.pb.gz'));
is(join(' ', $p->types()), 'alloc_objects/count alloc_space/bytes '
   . 'inuse_objects/count inuse_space/bytes', 'the profile shows allocations');

($rc, $out) = tool('-u', $unix, '-s', '0.2', '-l', 'trace', '-o',
                   "$dir/a.pb.gz", '-q');
is("$rc $out", '0 ', 'the tool requests labels of traces');

# IPv6 and https

SKIP: {
    skip 'no IPv6', 1 unless $v6;

    ($rc, $out) = tool('-u', 'http://[::1]:' . port(8080), '-s', '0.1', '-q',
                       '-o', "$dir/6.svg");
    is("$rc $out", '0 ', 'the console can have an IPv6 address');
}

my $https = 'https://localhost:' . port(8081) . '/-/profile/';

SKIP: {
    skip 'no IO::Socket::SSL', 4 unless eval { require IO::Socket::SSL };

    ($rc, $out) = tool('-u', $https, '--cacert', "$dir/localhost.crt",
                       '-s', '0.1', '-q', '-o', "$dir/s.svg");
    is("$rc $out", '0 ',
       'the tool trusts the certificate that it is given');
    like($t->read_file('s.svg'), qr/^<svg .*<\/svg>\s*$/s,
        'https transfers the whole profile');

    is_wrong(1, qr/cannot connect to "localhost:\d+": .*certificate/,
             '-u', $https);

    ($rc, $out) = tool('-u', $https, '-k', '-s', '0.1', '-q', '-o',
                       "$dir/s.svg");
    is("$rc $out", '0 ', 'https with --insecure accepts any certificate');
}

# progress, on a terminal only

($rc, $out) = tool('-u', $unix, '-s', '1.5', '-o', "$dir/a.svg");
unlike($out, qr/capturing/, 'a file as standard error gets no progress');

($rc, $out) = $t->command('script', '-qec',
                          "$^X $tool -u $unix -s 1.5 -o $dir/a.svg",
                          '/dev/null');
like($out, qr/capturing: 1 of 1\.5 s.*a\.svg: \d+ bytes/s,
    'a terminal shows the elapsed seconds');

# a command

($rc, $out) = tool('-u', $unix, '-s', '0.3', '-o', "$dir/b.html", '-d', '0.1',
                   '--', 'sh', '-c', 'echo loaded; exit 3');

is($rc, 3, 'the exit code is that of the command');
like($out, qr/^loaded$/m, 'the command ran');
like($t->read_file('b.html'), qr/^<!DOCTYPE html>/i, 'the capture ran meanwhile');

($rc, $out) = tool('-u', $unix, '-s', '0.2', '-o', "$dir/c.svg", '--',
                   'no-such-program');

is($rc, 127, 'a command that does not exist has the exit code 127');
like($out, qr/cannot run "no-such-program"/, 'the message names the command');

# errors

is_wrong(2, qr/^nginx-profile: --format is "gif", it must be "speedscope", .* or/,
         '-f', 'gif', '-o', "$dir/a.gif");
is_wrong(2, qr/"\$?.*a\.xyz" has no suffix of a format/, '-o', "$dir/a.xyz");
is_wrong(2, qr/--mode is "heap", it must be "cpu", "wall" or "object"/,
         '-m', 'heap');
is_wrong(2, qr/--seconds is "x"/, '-s', 'x');
is_wrong(1, qr/nginx answers 400: "seconds" is "700", it must be .* to 600/,
         '-u', $unix, '-s', '700');
is_wrong(1, qr/nginx answers 400: "frequency" is "a"/, '-u', $unix, '-F', 'a');
is_wrong(1, qr/nginx answers 404: nothing/, '-u', "$http/nowhere");
is_wrong(1, qr/nginx answers 403$/m, '-u', "$http/other/");
is_wrong(1, qr/cannot connect to "$dir\/none"/, '-u', "unix:$dir/none");
is_wrong(2, qr/the URL "ftp:\/\/host" is not/, '-u', 'ftp://host');
is_wrong(2, qr/cannot write to "\/nowhere": No such file/, '-u', $unix, '-s', '60',
         '-o', '/nowhere/a.svg', '--', 'sleep', '60');
is_wrong(1, qr/cannot open "$dir"/, '-u', $unix, '-s', '0.1', '-f', 'svg', '-o', $dir);
is_wrong(1, qr/nginx answers 400: "interval" is "x"/, '-u', $unix, '-m', 'object',
         '-i', 'x');
is_wrong(1, qr/nginx answers 400: "labels" is "x"/, '-u', $unix, '-l', 'x');
is_wrong(2, qr/unexpected argument "word"/, 'word');

($rc, $out) = tool('-u', "$http/other", '-s', '0.1', '-o', "$dir/d.svg", '-H',
                   'Authorization: secret');
is($rc, 0, 'nginx receives the header');

($rc, $out) = tool('--help');
like($out, qr/^Usage:\n +nginx-profile .*--url.*Exit status:/is,
    'help lists options and exit codes');
is($rc, 0, 'help is a success');

###############################################################################

sub tool {
    return $t->command($^X, $tool, @_);
}


sub is_wrong {
    my ($code, $match, @args) = @_;
    my ($rc, $out) = tool('-o', "$dir/wrong.svg", @args);

    is($rc, $code, "@args: the exit code is $code");
    like($out, $match, 'the message says why');
}
