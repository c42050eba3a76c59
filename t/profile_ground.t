#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: first
#
# The module in an nginx whose structures differ from those that the module was
# built with, though nginx's version and signature are the same: a member is
# inserted into a structure of nginx's sources.  The module is off, and nginx
# serves as without the module.  In an nginx of another build with the same
# structures the module works.
#
# It takes some seconds to compile an nginx, so only a selection is tested.
# PROFILE_TEST_LAYOUTS=all tests all structures and places, and
# PROFILE_TEST_LAYOUTS="ngx_event_t end,ngx_conf_t start" tests these.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use File::Copy qw/ copy /;
use File::Path qw/ make_path remove_tree /;
use File::Spec;
use Test::More;

use ProfileTest;

my $ROOT = File::Spec->rel2abs(dirname(__FILE__) . '/..');

# by structure: its file, the line with which it begins, which is the first such
# line behind the line "after"; and members before which a pointer (middle, tail)
# or a bit (bits, late_bits) is inserted
my %STRUCTS = (
    ngx_http_request_t => {
        file => 'http/ngx_http_request.h',
        begin => 'struct ngx_http_request_s {',
        middle => ' phase_handler;', tail => '*uri_start;',
        bits => ' aio:1;', late_bits => ' stat_reading:1;',
    },
    ngx_connection_t => {
        file => 'core/ngx_connection.h',
        begin => 'struct ngx_connection_s {',
        middle => '*pool;', bits => ' log_error:3;',
    },
    ngx_event_t => {
        file => 'event/ngx_event.h',
        begin => 'struct ngx_event_s {',
        middle => '*log;', bits => ' accept:1;', late_bits => ' cancelable:1;',
    },
    ngx_cycle_t => {
        file => 'core/ngx_cycle.h',
        begin => 'struct ngx_cycle_s {',
        middle => ' listening;',
    },
    ngx_http_module_t => {
        file => 'http/ngx_http_config.h',
        after => '} ngx_http_conf_ctx_t;', begin => 'typedef struct {',
        middle => '(*create_srv_conf)',
    },
    ngx_http_upstream_t => {
        file => 'http/ngx_http_upstream.h',
        begin => 'struct ngx_http_upstream_s {',
        middle => ' headers_in;',
    },
    ngx_http_core_loc_conf_t => {
        file => 'http/ngx_http_core_module.h',
        begin => 'struct ngx_http_core_loc_conf_s {',
        middle => ' handler;',
    },
    ngx_http_core_srv_conf_t => {
        file => 'http/ngx_http_core_module.h',
        after => '} ngx_http_core_main_conf_t;', begin => 'typedef struct {',
        middle => ' server_name;',
    },
    ngx_http_core_main_conf_t => {
        file => 'http/ngx_http_core_module.h',
        after => '} ngx_http_phase_t;', begin => 'typedef struct {',
        middle => ' variables;',
    },
    ngx_http_headers_in_t => {
        file => 'http/ngx_http_request.h',
        after => '} ngx_http_header_out_t;', begin => 'typedef struct {',
        middle => '*user_agent;',
    },
    ngx_conf_t => {
        file => 'core/ngx_conf_file.h',
        begin => 'struct ngx_conf_s {',
        middle => '*log;',
    },
    ngx_listening_t => {
        file => 'core/ngx_connection.h',
        begin => 'struct ngx_listening_s {',
        middle => ' handler;',
    },
);

my $layouts = $ENV{PROFILE_TEST_LAYOUTS}
              // 'ngx_http_request_t end,ngx_http_request_t late_bits,'
                 . 'ngx_connection_t middle,ngx_event_t bits,'
                 . 'ngx_event_t late_bits,ngx_cycle_t start,'
                 . 'ngx_http_module_t middle';

my @layouts = split(/,/, $layouts);

if ($layouts eq 'all') {
    @layouts = ();

    for my $struct (sort keys %STRUCTS) {
        push @layouts, map { "$struct $_" } qw/ start end /,
                       grep { $STRUCTS{$struct}{$_} }
                            qw/ middle tail bits late_bits /;
    }

    # the module reads only members before these

    @layouts = grep { !/^(?:ngx_conf_t|ngx_http_module_t) end$/ } @layouts;
}

my $t = ProfileTest->new();

alarm(4 * 3600) if $ENV{PROFILE_TEST_LAYOUTS};

$t->skip_all('the module is linked into nginx') if $t->{module} eq '';
$t->skip_all('nginx has sanitizers') if $t->sanitizers();

my $build = "$ROOT/build/ground";
my $source = "$build/plain";

make_path($build);
my ($status, $out) = $t->command("$ROOT/tools/build-nginx", 'plain', $source);

$t->skip_all("no sources of nginx: $out") if $status == 77;
die "no nginx: $out\n" if $status != 0;

my $unchanged = nginx();

use_nginx($unchanged);

($status, $out) = $t->test_config("%%MODULES%%\nevents { }\n");
$t->skip_all("the module is for another nginx: $out") if $status != 0;

###############################################################################

my $http = '
    types { text/html html; }

    %%EVERYTHING%%

    server {
        listen 127.0.0.1:8080;
        listen 127.0.0.1:8081;

        location / { }
        location /redirect { return 302 /page.html; }
        location /text { return 200 "text\n"; }
        location /old { rewrite ^ /page.html last; }
        location /proxy/ { proxy_pass http://127.0.0.1:8081/; }

        %%PAGES%%
    }
';

my $everything = '
    profile_endpoint on;
    profile_accounting on;
    profile_keep $arg_keep;
    profile_continuous on;
    profile_stall_threshold 100ms;
    profile_bar on;
    profile_zone profiles:2m;
    profile_context on;

    log_format with "$uri $status $profile_id $profile_cpu_time";
    access_log %%TESTDIR%%/with.log with;
';

my $pages = '
    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }
';

$t->write_file('page.html', '<!DOCTYPE html><html><head><title>p</title></head>'
                            . '<body>' . 'text ' x 500 . '</body></html>');

configure(1);
$t->run();

like(http_get('/page.html?performance_bar=flamegraph'), qr/speedscope/,
     'another build with the same structures: the first request is profiled');
like(http_get('/metrics'), qr/^nginx_profile_/m, 'it has metrics');
like(http_get('/-/profile/status.json'),
     qr/"nginx":"another one, whose structures fit"/, 'its state is shown');
like(http_get('/page.html', headers => [ 'Accept: text/html' ]),
     qr/bar\.js/, 'it has the bar');
unlike($t->read_log(), qr/the module is off/, 'it is not off');

$t->stop();

for my $layout (@layouts) {
    use_nginx(nginx(split(/ /, $layout)));

    configure(0);
    $t->run();
    my @without = responses();
    $t->stop();

    configure(1);

    my ($code, $text) =
        $t->command($t->{binary}, '-t', '-p', $t->testdir() . '/',
                    '-c', $t->testdir() . '/nginx.conf',
                    '-e', $t->testdir() . '/test.log');

    is($code, 0, "$layout: nginx -t passes") or diag($text);

    unlink map { $t->testdir() . "/$_" } qw/ error.log stderr.log /;

    $t->run();

    is_deeply([ responses() ], \@without,
              "$layout: the responses are those without the module");

    # a location of the module has the answer of a module that is off, unless
    # the module cannot read the configuration

    for my $uri (qw{ /metrics /-/profile/status }) {
        like(http_get($uri), qr/ 503 .*built for another nginx| 404 /s,
             "$layout: $uri is off");
    }

    $t->reload();
    is_deeply([ responses() ], \@without, "$layout: the same after a reload");
    $t->stop();

    # the log is standard error while nginx starts, and a file afterwards

    my $log = $t->read_log();
    my $errors = $t->read_log('stderr.log');

    my @lines = $log =~ /profile: .*/g;
    @lines = $errors =~ /profile: .*/g if @lines == 0;

    is(scalar(@lines), 1, "$layout: one line in the log")
        or diag($log, $errors);
    like($lines[0] // '', qr/built for another nginx: \S+.*build it again/,
         "$layout: the line says why");
    note(@lines);

    unlike($log, qr/\[(?:alert|crit|emerg)\]/, "$layout: no crash")
        or diag($log);
}

###############################################################################

sub configure {
    my ($with) = @_;

    my $module = $t->{module};
    $t->{module} = '' unless $with;

    my $conf = $http;
    $conf =~ s/%%EVERYTHING%%/$with ? $everything : ''/e;
    $conf =~ s/%%PAGES%%/$with ? $pages : ''/e;

    $t->conf($conf, workers => 2);

    $t->{module} = $module;
}


# responses, without what changes all the time; each worker gets some requests

sub responses {
    my @r;

    for (1 .. 3) {
        push @r, map { http_get($_) }
                     qw{ /page.html /page.html?performance_bar=flamegraph
                         /page.html?keep=1 /none /redirect /text /old
                         /proxy/page.html };
        push @r, http_get('/page.html', headers => [ 'Accept: text/html' ]);
    }

    push @r, http("@ bad\r\n\r\n"), http_post('/text', 'a' x 10000);

    return map { s/^(?:Date|Last-Modified|ETag):.*\r\n//mgr
                 =~ s/127\.0\.0\.1:\d+/HOST/gr } map { "$_" } @r;
}


sub use_nginx {
    my ($binary) = @_;

    $t->{binary} = $binary;
    $t->{version} = undef;
}


# an nginx with a member more; it is compiled once

sub nginx {
    my ($struct, $place) = @_;

    my $binary = join('-', "$build/nginx", grep { $_ } $struct, $place);
    my $s = $struct ? $STRUCTS{$struct} : {};
    my $sum = join("\n", %$s{sort keys %$s}, slurp("$source/nginx.args"));

    return $binary if -x $binary && slurp("$binary.sum") eq $sum;

    my $work = "$build/work";

    remove_tree($work);
    system('cp', '-R', $source, $work) == 0 or die "cp failed\n";

    insert("$work/src", $struct, $place) if $struct;

    system("make -s -j2 -C $work -f objs/Makefile binary > $work/log 2>&1") == 0
        or die "$binary: " . slurp("$work/log");

    copy("$work/objs/nginx", $binary) or die "copy: $!\n";
    chmod 0755, $binary;
    spew("$binary.sum", $sum);
    remove_tree($work);

    return $binary;
}


sub insert {
    my ($src, $struct, $place) = @_;

    my $s = $STRUCTS{$struct} or die "no structure $struct\n";
    my $file = "$src/$s->{file}";
    my $text = slurp($file);

    my $from = $s->{after} ? index($text, "\n$s->{after}") : 0;
    my $first = index($text, "\n$s->{begin}", $from) + 1 + length $s->{begin};
    my $last = index($text, "\n}", $first) + 1;

    die "$struct is not in $file\n" if $from < 0 || $last <= $first;

    my $at = $place eq 'start' ? $first + 1 : $last;

    if ($s->{$place}) {
        my $found = index($text, $s->{$place}, $first);
        die "$struct has no $place\n" if $found < 0 || $found > $last;

        $at = rindex($text, "\n", $found) + 1;
    }

    substr($text, $at, 0) = $place =~ /bits/ ? "    unsigned inserted:1;\n"
                                             : "    void *inserted;\n";
    spew($file, $text);

    # the contexts of modules are initialized in the order of the members

    return if $struct ne 'ngx_http_module_t' || $place eq 'end';

    my $n = $place eq 'start' ? 0 : 4;

    for my $c (glob("$src/http/*.c $src/http/*/*.c")) {
        my $code = slurp($c);

        $code =~ s{(ngx_http_module_t\s+\w+ = \{)(.*?)(?=\n\};)}{
            my ($begin, $members, $i) = ($1, $2, 0);

            $members =~ s/^(?= +\w+,? *\/\*)/$i++ == $n ? "    NULL,\n" : ''/gem;
            $begin . $members;
        }sge;

        spew($c, $code);
    }
}


sub slurp {
    my ($file) = @_;

    open my $f, '<', $file or return '';
    local $/;

    return scalar <$f>;
}


sub spew {
    my ($file, $content) = @_;

    open my $f, '>', $file or die "$file: $!\n";
    print $f $content;
    close $f;
}
