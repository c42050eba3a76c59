package ProfileTest::Browser;

# Copyright (C) The ngx_http_profile_module authors
#
# Programs of t/browser/ that use pages in Chromium.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use Exporter qw/ import /;
use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More import => [ '!plan' ];

use ProfileTest ();

our @EXPORT = qw/ copy_viewer has_browser in_browser lacks_browser
                  share_browser /;

my $ROOT = abs_path(dirname(__FILE__) . '/../..');
my $VIEWER = "$ROOT/speedscope/node_modules/speedscope/dist/release";


# skips the file without a browser
sub has_browser {
    my ($t) = @_;

    $t->has_program('node');

    my $lacks = lacks_browser();
    $t->skip_all($lacks) if $lacks;

    return $t;
}


# why there is no browser
sub lacks_browser {
    my @path = split(/:/, $ENV{PATH});

    return "run \"npm ci\" in $ROOT/browser first"
        unless -d "$ROOT/browser/node_modules/axe-core";
    return 'no chromium'
        unless $ENV{CHROMIUM}
               || grep { -x "$_/chromium-headless-shell" || -x "$_/chromium" }
                       @path;
    return 'no node' unless grep { -x "$_/node" } @path;
    return '';
}


# All programs of the file use one browser, until the file ends.  Each of them
# has its own cookies and caches nevertheless.
sub share_browser {
    my ($t) = @_;

    $t->run_daemon('node', "$ROOT/browser/serve.mjs",
                   $t->testdir() . '/browser');
    ProfileTest::wait_for(sub { $t->read_file('browser') }, 60)
        or die 'no browser: ' . $t->read_file('daemon.log');

    $ENV{PROFILE_TEST_BROWSER} = $t->read_file('browser');

    return $t;
}


# Runs a program, and tests that it gets to its end.  Returns what it has seen,
# of which "failed" is true if it did not.
sub in_browser {
    my ($t, $name, $program, @args) = @_;

    my ($status, $out) = $t->command('node', "$ROOT/browser/$program.mjs",
                                     @args);

    is($status, 0, "$name in a browser") or diag($out);

    my ($json) = ($out // '') =~ /^(\{.*\})$/m;
    my $seen = $json ? decode_json($json) : { failed => 'no result' };

    is($seen->{failed}, undef, "$name to its end");

    return $seen;
}


# Copies speedscope, if it is there, to "viewer" in the directory of the test,
# because workers may not read the files where they are.
sub copy_viewer {
    my ($t) = @_;

    return unless -d $VIEWER;

    mkdir $t->testdir() . '/viewer';

    for my $path (glob("$VIEWER/*")) {
        next if $path =~ /wasm|perf-vertx/;

        open my $f, '<:raw', $path or die "$path: $!\n";
        local $/;
        $t->write_file('viewer/' . ($path =~ s{.*/}{}r), <$f>);
    }

    return 1;
}


1;
