#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: main
# runs: first
#
# Upgrades under load, from earlier commits of this repository to this one, with
# one store and the same zones: by a new master (USR2), and back, and by a
# reload, where the master has both modules in its memory for a moment.  No
# request fails, no stored profile is lost, and none is misread.
#
# The earlier modules are built from the history of the repository, in about a
# minute each, so one commit is tested.  PROFILE_TEST_UPGRADES has others, or
# "all" for those in the list below.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use File::Copy qw/ copy /;
use File::Path qw/ make_path remove_tree /;
use File::Spec;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $ROOT = File::Spec->rel2abs(dirname(__FILE__) . '/..');

# the first two have another layout of the store
my @COMMITS = qw/ 41dba43 4923a27 c3a102a c844fad 6cb39b2 fc854c5 0d9910e
                  1207896 5e60d4b /;

my $wanted = $ENV{PROFILE_TEST_UPGRADES} // '1207896';
my @commits = $wanted eq 'all' ? @COMMITS : split(' ', $wanted);

my $t = ProfileTest->new()->has_program(qw/ git make /);

$t->skip_all('the module is linked into nginx') if $t->{module} eq '';
$t->skip_all('nginx has sanitizers') if $t->sanitizers();

for my $commit (@commits) {
    $t->skip_all("the history has no commit $commit")
        if system("git -C $ROOT cat-file -e $commit 2> /dev/null") != 0;
}

alarm(1800 * @commits);

my $new = $t->{module};
my $dir = $t->testdir();
my $current = "$dir/current.so";

$t->write_file('page.html', 'x' x 10_000);

for my $commit (@commits) {
    upgrade($commit);
    reload($commit);
}

###############################################################################

sub upgrade {
    my ($commit) = @_;

    my $old = "$dir/old-$commit.so";

    copy(built($commit), $old) or die "copy: $!\n";
    chmod 0644, $old;

    remove_tree("$dir/store");
    install($old);
    configure($current);
    start();

    my @ids = map { recorded() } 1 .. 3;
    my %files = map { $_ => $t->read_file("store/$_") } @ids;
    my ($magic) = $files{$ids[0]} =~ /^(ngxprof\d)/;

    # a new master, as a package does it

    my $load = $t->load('/page.html', clients => 3, rate => 200,
                        keepalive => 0, seconds => 120);
    install($new);
    replace_master();

    my @added = map { recorded() } 1 .. 3;

    is_deeply([ grep { !-e "$dir/store/$_" } @ids, @added ], [],
              "$commit, $magic: no profile is lost");
    is_deeply([ misread($magic, \%files) ], [],
              "$commit: no profile is misread");
    is_deeply([ grep { http_get("/-/profile/p/$_.json")->status() ne '200' }
                @added ], [],
              "$commit: profiles of the new module open");

    # and back, while the new files stay; an earlier module may remove them

    install($old);
    replace_master();
    push @ids, recorded();
    install($new);
    replace_master();

    my $result = $load->stop();
    cmp_ok($result->{requests}, '>', 0, "$commit: requests were sent");
    is($result->{failed}, 0, "$commit: no request failed")
        or diag($result->{error});

    is_deeply([ grep { !-e "$dir/store/$_" } @ids ], [],
              "$commit: profiles of the old module are there at the end");

    stop();
}


# A reload does not go back: an earlier module calls functions of the module
# that is in the memory already.

sub reload {
    my ($commit) = @_;

    remove_tree("$dir/store");
    install("$dir/old-$commit.so");
    configure($current);
    start();

    my @ids = map { recorded() } 1 .. 3;
    my %files = map { $_ => $t->read_file("store/$_") } @ids;
    my ($magic) = $files{$ids[0]} =~ /^(ngxprof\d)/;

    my $load = $t->load('/page.html', clients => 3, rate => 200,
                        keepalive => 0, seconds => 120);
    install($new);

    for my $name ('the new module', 'the same module again') {
        my %old = map { $_ => 1 } $t->worker_pids();

        kill 'HUP', $t->{pid};

        ok(wait_for(sub { my @now = $t->worker_pids();
                          @now == 2 && !grep { $old{$_} } @now }, 30),
           "$commit: a reload loads $name");

        push @ids, recorded();
        is(http_get("/-/profile/p/$ids[-1].json")->status(), '200',
           "$commit, $name: its profiles open");
        is(http_get('/-/profile/status.json')->status(), '200',
           "$commit, $name: the console answers");
    }

    my $result = $load->stop();
    cmp_ok($result->{requests}, '>', 0, "$commit: requests were sent");
    is($result->{failed}, 0, "$commit: no request failed at a reload")
        or diag($result->{error});

    is_deeply([ grep { !-e "$dir/store/$_" } @ids ], [],
              "$commit: no profile is lost at a reload");
    is_deeply([ misread($magic, \%files) ], [],
              "$commit: no profile is misread after a reload");

    stop();
}


# profiles whose files have changed, or that the console shows although the
# layout is another one, or does not show although it is the same

sub misread {
    my ($magic, $files) = @_;

    my $list = decode_json(http_get('/-/profile/profiles.json?limit=100')
                               ->body());
    my %listed = map { $_->{id} => $_ } @{$list->{profiles}};
    my ($now) = $t->read_file('store/' . (grep { !$files->{$_} }
                                          keys %listed)[0])
                =~ /^(ngxprof\d)/;
    my @wrong;

    for my $id (sort keys %$files) {
        push @wrong, "$id has changed"
            if $t->read_file("store/$id") ne $files->{$id};

        if ($magic ne $now) {
            push @wrong, "$id is listed" if $listed{$id};
            next;
        }

        push @wrong, "$id is not listed" unless $listed{$id};
        push @wrong, "$id has another URI"
            unless ($listed{$id}{uri} // '') =~ m{^/page\.html};

        # an archive of another version says so

        my $r = http_get("/-/profile/p/$id.json");
        push @wrong, "$id: " . $r->status() . $r->body()
            unless $r->status() eq '200'
                   && $r->body() =~ m{GET /page\.html}
                   || $r->body() =~ /of another version/;
    }

    return @wrong;
}


# the directives that this module knows

sub configure {
    my ($module) = @_;

    my $http = '';

    for my $line ('profile_endpoint on;', 'profile_zone store:2m;',
                  'profile_store %%TESTDIR%%/store;', 'profile_accounting on;',
                  'profile_keep $arg_keep;', 'profile_continuous on;',
                  'profile_stall_threshold 100ms;', 'profile_bar on;')
    {
        my $conf = conf($module, "$http    $line\n", '');
        my ($status, $out) = $t->test_config($conf);
        $http .= "    $line\n"
            unless $status && $out =~ /unknown directive|has no "|invalid/;
    }

    my $metrics = "location = /metrics { profile_metrics; }";
    my ($status, $out) = $t->test_config(conf($module, $http, $metrics));

    $t->write_file_expand('nginx.conf',
                          conf($module, $http, $status ? '' : $metrics));
}


sub conf {
    my ($module, $http, $locations) = @_;

    return "load_module $module;\n%%GLOBALS%%\ndaemon on;\n"
           =~ s/%%GLOBALS%%/$t->conf_globals() =~ s{daemon off;}{}r/er . "
worker_processes 2;
events { }
http {
    %%GLOBALS_HTTP%%
$http
    server {
        listen 127.0.0.1:8080;
        location / { }
        location /-/profile/ { profile_console; }
        $locations
    }
}
";
}


# nginx as a daemon, since a new master is a child of the old one

sub start {
    my ($status, $out) = $t->command($t->{binary}, '-p', "$dir/", '-c',
                                     "$dir/nginx.conf", '-e',
                                     "$dir/error.log");
    $status == 0 or die "nginx does not start: $out\n";

    $t->{pid} = wait_for(\&pid) or die "no pid\n";
    wait_for(sub { $t->worker_pids() == 2 }) or die "no workers\n";
}


sub stop {
    my $master = $t->{pid};

    kill 'QUIT', $master;
    ok(wait_for(sub { !kill 0, $master }, 30), 'nginx stops');
    $t->{pid} = undef;
}


sub replace_master {
    my $master = $t->{pid};

    kill 'USR2', $master;

    wait_for(sub { my $pid = pid();
                   $pid && $pid != $master
                   && (() = $t->child_processes($pid)) >= 2 }, 30)
        or die 'no new master: ' . $t->read_log() . "\n";

    $t->{pid} = pid();
    kill 'QUIT', $master;

    ok(wait_for(sub { !kill 0, $master }, 30), 'the old master ends');
}


sub pid {
    return $t->read_file('nginx.pid') =~ /^(\d+)\n/ ? $1 : undef;
}


# renames a new file over the module, as packages do

sub install {
    my ($from) = @_;

    copy($from, "$current.new") or die "copy: $!\n";
    chmod 0644, "$current.new";
    rename("$current.new", $current) or die "rename: $!\n";
}


sub recorded {
    my $r = http_get('/page.html?performance_bar=record');
    my $id = $r->header('X-Profile-Id') or die "nothing is recorded: $r\n";

    wait_for(sub { -e "$dir/store/$id" }) or die "no profile is stored\n";

    return $id;
}


# the module of a commit

sub built {
    my ($commit) = @_;

    my $to = "$ROOT/build/upgrade/$commit.so";
    my $src = "$ROOT/build/upgrade/$commit";

    return $to if -s $to;

    remove_tree($src);
    make_path($src);

    # Warnings of newer compilers are no errors of earlier commits.  The upgrade
    # needs the module, and not its program for names.

    system("cd $ROOT && git archive $commit | tar x -C $src"
           . " && { MAKEFLAGS= make -s DEPS=: CFLAGS=-O0 -j2 -C $src"
           . " -o $src/build/ngx_http_profile_symbolizer module"
           . " > $src.log 2>&1; cp $src/build/ngx_http_profile_module.so"
           . " $to.new && mv $to.new $to; }") == 0
        or die "$commit is not built: " . qx{tail -n 20 $src.log};

    remove_tree($src);

    return $to;
}
