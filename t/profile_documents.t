#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: docs
# runs: beside
#
# The documents do what they say.  The complete configuration runs, and each
# command of the pages for readers who begin runs with it.  Their files for
# containers have the form of their formats.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempfile /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

my $ROOT = abs_path(dirname(__FILE__) . '/..');

my $t = ProfileTest->new()->has(qw/ gzip proxy /)->has_program(qw/ bash curl /);
my $dir = $t->testdir();

# the complete configuration, at the top of the README and of the reference

my ($complete) = blocks('ngx_http_profile_module.md', 'nginx');
my ($http) = $complete =~ /^http \{\n(.*)^\}\n/ms;

is((grep { /^http \{/m } blocks('../README.md', 'nginx'))[0], $complete,
   'the README and the reference have the same configuration');
like($complete, qr/^load_module modules\/ngx_http_profile_module\.so;/,
     'it loads the module');

for my $directive (qw/ continuous keep turn_log stall_threshold store endpoint
                       bar console metrics /)
{
    like($complete, qr/^ *profile_$directive\b[^#]*;/m,
         "it has profile_$directive");
}

# what operators may uncomment is correct too

my $open = $http =~ s/^( +)# ((?:profile|set_real_ip)_\w+ +.*;.*)$/$1$2/mgr;

isnt($open, $http, 'it has lines that admit operators');
my ($map) = grep { /^map/ } blocks('ngx_http_profile_module.md', 'nginx');
is(tested($map), 0, 'nginx accepts the secret in a cookie');
is(tested(($map =~ /^(map .*?^\})/ms)[0] . "\n$open"), 0,
   'nginx accepts the lines that admit operators');

# runs with a slow location, an application, and GitLab's part

my ($gitlab) = blocks('gitlab.md', 'nginx');

for ($gitlab) {
    s/listen 80;/listen 127.0.0.1:8082;/;
    s{http://unix:[^;]*}{http://127.0.0.1:8081};
}

is(scalar(() = $gitlab =~ /127\.0\.0\.1:808[12];/g), 2,
   'the configuration of GitLab has a port and an upstream');

$http = local_paths($http);
$http =~ s{^    server \{\n}{    server \{
        location /slow/ {
            alias $dir/;
            gzip on;
            gzip_types *;
            gzip_comp_level 9;
            default_type text/plain;
        }

}m;

$t->conf("$http\n$gitlab");

mkdir("$dir/html") or die "mkdir: $!\n";
$t->write_file('html/index.html', "<!DOCTYPE html><body><p>a page</body>\n");
$t->write_file('text', join('', map { $_ * 7919 % 100003 . ($_ % 9 ? ' ' : "\n") }
                                1 .. 500000));
run_upstream($t, 8081);
$t->run();

# metrics, slow requests and slices that the commands find

http_get('/slow/text', headers => [ 'Accept-Encoding: gzip' ]) for 1 .. 6;

my %commands = map { $_ => [ blocks("$_.md", 'sh') ] }
               qw/ find-a-slow-endpoint recipes faq openresty gitlab /;

for my $page (sort keys %commands) {
    my $n = 0;

    cmp_ok(scalar @{$commands{$page}}, '>', 0, "$page.md has commands");

    for my $command (@{$commands{$page}}) {
        my $port = port($page eq 'gitlab' ? 8082 : 8080);
        my $run = $command =~ s{http://localhost}{http://127.0.0.1:$port}gr
                           =~ s{/var/log/nginx}{$dir}gr;
        my ($out, $rc) = run($run);

        $n++;
        is($rc, 0, "$page.md, command $n succeeds") or diag("$command$out");

        ok($out =~ /\S/ || $command =~ / -o /, '... and has a result')
            or diag($command);

        for my $file ($command =~ / -o (\S+\.\w+)/g) {
            next if $file eq '/dev/null';
            ok(-s "$dir/out/$file", "... and makes $file");
        }

        check($page, $n, $out);
    }
}

# pages with configurations that are parts of a file

for my $page (qw/ gitlab find-a-slow-endpoint recipes faq /) {
    for my $part (blocks("$page.md", 'nginx')) {
        is(tested($part), 0, "$page.md: nginx accepts the configuration");
    }
}

# containers: each instruction exists, each command has the shell's syntax, and
# each package of Debian is one that the build needs

my %instructions = map { $_ => 1 } qw/ ARG FROM USER RUN COPY /;
my ($deps) = read_whole("$ROOT/tools/install-deps") =~ /^BUILD='(.*?)'/ms;
my @files = blocks('containers.md', 'dockerfile');

is(scalar @files, 2, 'there are two Dockerfiles');

for my $file (@files) {
    my @lines = grep { /\S/ } split(/\n/, $file =~ s/\\\n/ /gr);

    is(join(' ', grep { !$instructions{$_} } map { /^(\S+)/ } @lines), '',
       'a Dockerfile has known instructions');
    is(scalar(grep { /^FROM \$\{BASE\}/ } @lines), 2,
       '... two stages of the same image');

    for (grep { s/^RUN // } @lines) {
        my ($out, $rc) = run("sh -n -c '" . s/'/'\\''/gr . "'");
        is($rc, 0, '... a command with correct syntax') or diag($out);

        my ($names) = /apt-get install -y --no-install-recommends (.*)/ or next;

        is(join(' ', grep { $deps !~ /(?:^|[\s:])\Q$_\E(?:\s|\z)/
                            && !/^(?:curl|lib(?:jansson4|protobuf-c1|dw1))$/ }
                     split(' ', $names =~ s/&&.*//r)), '',
           '... packages that the build needs');
    }
}

for my $yaml (blocks('containers.md', 'yaml')) {
    my %snippets;

    while ($yaml =~ /^  (\w+)-snippets: \|\n((?:^    .*\n)+)/mg) {
        $snippets{$1} = $2;
    }

    my $server = "server { listen 127.0.0.1:1; $snippets{server} }";

    like($snippets{main}, qr/load_module/, 'the snippets load the module');
    is(tested($snippets{http} . $server), 0, 'nginx accepts the other snippets');
}

###############################################################################

# what the text beside a command says about its result
sub check {
    my ($page, $n, $out) = @_;

    if ($page eq 'find-a-slow-endpoint') {
        like($out, qr{\A[^\n]*location="/slow/"}, 'the slow location comes first')
            if $n == 1;
        like($out, qr/cpu_seconds_sum/, 'the sum of CPU time is there')
            if $n == 2;
        like($out, qr/\A[\d.]+ ms .*deflate/, 'the heaviest stack compresses')
            if $n == 3;
        like($out, qr{"uri":"/slow/text}, 'the list has the slow request')
            if $n == 4;
        like($out, qr/^X-Profile-Id: [0-9a-f]{32}/m, 'the profile is recorded')
            if $n == 5;
    }

    if ($page eq 'gitlab' && $n == 1) {
        my ($line) = grep { m{^GET /group/} } upstream_lines($t);

        is($line =~ s/ HTTP.*//sr, 'GET /group/project?performance_bar='
                                   . 'flamegraph&stackprof_mode=cpu',
           'GitLab gets its own arguments only');
    }

    like($out, qr{"uri":"/group/project}, 'nginx has recorded the same request')
        if $page eq 'gitlab' && $n == 2;

    like($out, qr/"Lua|"luajit|on|off|not/i, 'the status knows scripts')
        if $page eq 'recipes' && $out =~ /scripts/;
}


# the code blocks of a language
sub blocks {
    my ($page, $language) = @_;

    return read_whole("$ROOT/docs/$page") =~ /^```$language\n(.*?)^```/msg;
}


sub read_whole {
    my ($name) = @_;

    open my $f, '<', $name or die "$name: $!\n";
    local $/;

    return scalar <$f>;
}


sub local_paths {
    my ($text) = @_;

    $text =~ s/listen 80;/listen 127.0.0.1:8080;/;
    $text =~ s{/var/www/html}{$dir/html};
    $text =~ s{/var/cache/nginx}{$dir};

    return $text;
}


# the status of "nginx -t"
sub tested {
    my ($text) = @_;

    my ($status, $out) = $t->test_config(<<"END");
%%MODULES%%
events { }
http {
%%GLOBALS_HTTP%%
@{[ local_paths($text) ]}
}
END

    diag($out) if $status;

    return $status;
}


sub run {
    my ($command) = @_;

    mkdir("$dir/out");

    my ($f, $name) = tempfile(DIR => $dir);
    print $f "cd $dir/out\nPATH=$ROOT/tools:\$PATH\n$command";
    close $f;

    my $out = `timeout 60 bash -e -o pipefail $name 2>&1`;

    return ($out, $? >> 8);
}
