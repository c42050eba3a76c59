#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# tools/nginx-profile: files, formats, sockets, commands, and what it says when
# something is wrong.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Pprof;

my $t = ProfileTest->new()->has(qw/ rewrite /);

$t->conf(<<'EOF', workers => 2);
server {
    listen 127.0.0.1:8080;
    listen unix:%%TESTDIR%%/console;

    location /-/profile/ {
        profile_console;
    }

    location /other/ {
        if ($http_authorization != "secret") {
            return 403;
        }
        profile_console;
    }

    location / {
        return 404 "nothing\n";
    }
}
EOF

$t->run();

my $tool = dirname(__FILE__) . '/../tools/nginx-profile';
my $dir = $t->testdir();
my $http = 'http://127.0.0.1:' . port(8080);
my $unix = "http://unix:$dir/console:/-/profile/";

###############################################################################

my ($rc, $out) = tool('-u', $http, '-s', '0.2', '-o', "$dir/a.svg");

is($rc, 0, 'status');
like($out, qr/a\.svg: \d+ bytes/, 'the file is named');
like($t->read_file('a.svg'), qr/^<svg /, 'a picture');

($rc, $out) = tool('-u', $unix, '-s', '0.2', '-q', '-o', "$dir/a.json");

is("$rc $out", '0 ', 'by a unix socket, quietly');
ok(decode_json($t->read_file('a.json'))->{profiles}, 'speedscope');

($rc, $out) = tool('-u', "unix:$dir/console", '-s', '0.2', '-o',
                   "$dir/a.pb.gz", '-m', 'wall', '-F', '50', '-w', 'self');

my $p = ProfileTest::Pprof->new($t->read_file('a.pb.gz'));

is($p->default_type(), 'wall', 'wall time');
is($p->period(), 20000000, 'frequency');
like(join("\n", $p->comments()), qr/^workers: \d+$/m, 'one worker');

($rc, $out) = tool('-u', $unix, '-s', '0.2', '-f', 'html', '-o', '-', '-q');

like($out, qr/^<!DOCTYPE html>/i, 'a page, to the standard output');

($rc, $out) = tool('-u', $unix, '-s', '0.3', '--location', '/', '-n', '5',
                   '-o', "$dir/a.pb.gz", '-q');

$p = ProfileTest::Pprof->new($t->read_file('a.pb.gz'));
like(join("\n", $p->comments()), qr/^scope: endpoint$/m, 'requests');

($rc, $out) = tool('-u', $unix, '-s', '0.5', '-m', 'object', '-i', '0',
                   '-o', "$dir/a.pb.gz", '-q');

$p = ProfileTest::Pprof->new($t->read_file('a.pb.gz'));
is(join(' ', $p->types()), 'alloc_objects/count alloc_space/bytes '
   . 'inuse_objects/count inuse_space/bytes', 'what is allocated');

($rc, $out) = tool('-u', $unix, '-s', '0.2', '-l', 'trace', '-o',
                   "$dir/a.pb.gz", '-q');
is("$rc $out", '0 ', 'labels of traces');

# a command

($rc, $out) = tool('-u', $unix, '-s', '0.3', '-o', "$dir/b.html", '-d', '0.1',
                   '--', 'sh', '-c', 'echo loaded; exit 3');

is($rc, 3, 'the status is the command\'s');
like($out, qr/^loaded$/m, 'it ran');
like($t->read_file('b.html'), qr/^<!DOCTYPE html>/i, 'and was captured');

($rc, $out) = tool('-u', $unix, '-s', '0.2', '-o', "$dir/c.svg", '--',
                   'no-such-program');

is($rc, 127, 'a command that is not there');
like($out, qr/cannot run "no-such-program"/, 'and what of it');

# what may be wrong

is_wrong(qr/"\$?.*a\.xyz" has no suffix of a format/, '-o', "$dir/a.xyz");
is_wrong(qr/--mode is "heap", it must be "cpu", "wall" or "object"/,
         '-m', 'heap');
is_wrong(qr/--seconds is "x"/, '-s', 'x');
is_wrong(qr/nginx answers 400: "seconds" is "700", it must be .* to 600/,
         '-u', $unix, '-s', '700');
is_wrong(qr/nginx answers 400: "frequency" is "a"/, '-u', $unix, '-F', 'a');
is_wrong(qr/nginx answers 404: nothing/, '-u', "$http/nowhere");
is_wrong(qr/nginx answers 403$/m, '-u', "$http/other/");
is_wrong(qr/cannot connect to "$dir\/none"/, '-u', "unix:$dir/none");
is_wrong(qr/the URL "ftp:\/\/host" is not/, '-u', 'ftp://host');
is_wrong(qr/cannot write to "\/nowhere": No such file/, '-u', $unix, '-s', '60',
         '-o', '/nowhere/a.svg', '--', 'sleep', '60');
is_wrong(qr/cannot open "$dir"/, '-u', $unix, '-s', '0.1', '-f', 'svg', '-o', $dir);
is_wrong(qr/nginx answers 400: "interval" is "x"/, '-u', $unix, '-m', 'object',
         '-i', 'x');
is_wrong(qr/nginx answers 400: "labels" is "x"/, '-u', $unix, '-l', 'x');
is_wrong(qr/unexpected argument "word"/, 'word');

($rc, $out) = tool('-u', "$http/other", '-s', '0.1', '-o', "$dir/d.svg", '-H',
                   'Authorization: secret');
is($rc, 0, 'a header');

($rc, $out) = tool('--help');
like($out, qr/^usage: nginx-profile/, 'help');
is($rc, 0, 'status of help');

###############################################################################

sub tool {
    return $t->command($^X, $tool, @_);
}


sub is_wrong {
    my ($match, @args) = @_;
    my ($rc, $out) = tool('-o', "$dir/wrong.svg", @args);

    is($rc, 1, "@args: status");
    like($out, $match, 'and why');
}
