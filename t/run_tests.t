#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools t
# runs: beside
#
# tools/run-tests: a file that fails twice fails the run, a file that passes
# when it is run again is named, a run with too many of these fails, and so does
# a run with a skip that is not allowed.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use Test::More;

my $run_tests = abs_path(dirname(__FILE__) . '/../tools/run-tests');

# Each run of a test file adds a line to FILE.runs.
my $head = 'open my $f, ">>", "$0.runs" or die; print $f "\n"; close $f; '
           . 'my $runs = (-s "$0.runs"); ';

my %body = (
    green    => 'print "ok 2\n";',
    red      => 'print "not ok 2\n";',
    unstable => 'print $runs > 1 ? "ok 2\n" : "not ok 2\n";',
    tells    => 'print STDERR "#   Failed test \'a name\'\n# got: $runs\n"; '
                . 'print $runs > 1 ? "ok 2\n" : "not ok 2\n";',
    third    => 'print $runs > 2 ? "ok 2\n" : "not ok 2\n";',
    dies     => 'die "on purpose\n" if $runs == 1; print "ok 2\n";',
    part     => 'print "ok 2 - a name # skip no Lua\n";',
    late     => 'print $runs > 1 ? "ok 2 # skip no Lua\n" : "not ok 2\n";',
    bail     => 'print "Bail out!  on purpose\n";',
    meets    => 'for (1 .. 100) { last if @{[ glob "*-meets.t.runs" ]} == 2; '
                . 'select undef, undef, undef, 0.1 } '
                . 'print @{[ glob "*-meets.t.runs" ]} == 2 ? "ok 2\n" '
                . ': "not ok 2\n";',
);

my ($status, $out, $runs);
my $skips = tempdir('run-tests-XXXXXXXXXX', TMPDIR => 1, CLEANUP => 1)
            . '/skips';

delete $ENV{SKIPS};

run(qw/ green green /);
is($status, 0, 'green: the run passes');
like($out, qr/^Files=2, Tests=4, .*\nResult: PASS\n\z/m,
     'green: the summary counts the tests');
is($runs, '1 1', 'green: each file is run once');

run(qw/ green skipped /);
is($status, 0, 'skipped: the run passes');
like($out, qr/^skipped: \S+1-skipped\.t: on purpose\nFiles=.*\n.*\n\z/m,
     'skipped: the summary names the file and the reason');

# with a list of allowed skips

my @allowed = ('# a comment', '', '1-skipped.t: on purpose',
               '2-part.t: no Lua');

allow(@allowed);
run(qw/ green skipped part /);
is($status, 0, 'allowed skips: status');
unlike($out, qr/unexpected/, 'allowed skips are not reported');

for my $case ([ skipped => 'on purpose' ], [ part => 'no Lua' ]) {
    my ($name, $reason) = @$case;

    allow(grep { !/$name/ } @allowed);
    run(qw/ green skipped part /);
    isnt($status, 0, "a skip that is not in the list, $name: status");
    like($out, qr/^unexpected\ skip:\ \d-$name\.t:\ \Q$reason\E\n
                  \S+\ does\ not\ allow\ these\ skips:\ .*\n
                  (?:skipped:.*\n)?Files=.*\nResult:\ FAIL\n\z/mx,
         "a skip that is not in the list, $name: message");
}

allow('1-skipped.t: another reason');
run(qw/ green skipped /);
isnt($status, 0, 'a skip with another reason than in the list');

allow('0-skipped.t: on purpose');
run(qw/ green skipped /);
isnt($status, 0, 'a skip of another file than in the list');

allow('# nothing');
run(qw/ green late /);
isnt($status, 0, 'a skip in the second run of a file');

run(qw/ green green /);
is($status, 0, 'no skip: the run passes');

allow();


run(qw/ green red /);
isnt($status, 0, 'red: the run fails');
like($out, qr/^failed twice: \S+1-red\.t\n/m, 'red: the file is named');
like($out, qr/^Files=2, Tests=4, .*\nResult: FAIL\n\z/m,
     'red: the summary says so');
unlike($out, qr/unstable/, 'red: the file is not called unstable');
is($runs, '1 2', 'red: the file is run twice');

run(qw/ tells green /);
is($status, 0, 'a test with a message: the run passes');
like($out, qr/^#   Failed test 'a name'\n# got: 1\nunstable, /m,
     'the summary has the message of the first run');

run(qw/ green third /);
isnt($status, 0, 'a file that needs a third run fails');
is($runs, '1 2', 'no file gets a third run');

run(qw/ unstable green dies /);
is($status, 0, 'two unstable: the run passes');
like($out, qr/^unstable,\ failed\ at\ first\ and\ passed\ then:
              \ \S+0-unstable\.t\ \S+2-dies\.t\n/mx,
     'two unstable: both are named');
like($out, qr/^Files=3, .*\nResult: PASS, but 2 unstable\n\z/m,
     'two unstable: the summary counts all files');
is($runs, '2 1 2', 'two unstable: only they are run again');

run(qw/ unstable unstable unstable green /);
isnt($status, 0, 'three unstable: the run fails');
like($out, qr/^3 files are unstable, at most 2 may be$/m,
     'three unstable: the reason is named');
like($out, qr/^Files=4, .*\nResult: FAIL\n\z/m,
     'three unstable: the summary says so');

run(qw/ unstable red /);
isnt($status, 0, 'unstable and red: the run fails');
like($out, qr/^failed\ twice:\ \S+1-red\.t\n
              unstable,\ [^:]+:\ \S+0-unstable\.t\n/mx,
     'unstable and red: each is named as what it is');

run(qw/ unstable bail /);
isnt($status, 0, 'a run that is stopped has failed');

run();
isnt($status, 0, 'a run of no file has failed');

# each waits until the other has begun

run(qw/ beside:meets first:meets green /);
is($status, 0, 'files beside others that wait for each other pass');
is($runs, '1 1 1', 'files beside others that wait for each other run once');
like($out, qr/^Files=3, Tests=6, .*\nResult: PASS\n\z/m,
     'the summary counts the files of both groups');

SKIP: {
    skip 'one processor', 1 if `nproc` < 2;

    run(qw/ quiet:meets quiet:meets beside:green /);
    is($runs, '1 1 1', 'quiet files that wait for each other run once');
}

run(qw/ green beside:red /);
isnt($status, 0, 'a red file beside others fails the run');
is($runs, '1 2', 'a red file beside others is run twice');

run(qw/ beside:green red /);
isnt($status, 0, 'a red file that runs alone fails the run');

done_testing();


# writes the list of allowed skips; without lines there is no list
sub allow {
    my (@lines) = @_;

    delete $ENV{SKIPS};
    return unless @lines;

    $ENV{SKIPS} = $skips;

    open my $f, '>', $skips or die "$skips: $!\n";
    print $f map { "$_\n" } @lines;
    close $f;
}


# makes these files, with the mark before the colon, and runs them
sub run {
    my (@names) = @_;

    my $dir = tempdir('run-tests-XXXXXXXXXX', TMPDIR => 1, CLEANUP => 1);
    my @files;

    for my $name (@names) {
        my $mark = $name =~ s/^(\w+):// ? $1 : '';

        push @files, sprintf('%s/%d-%s.t', $dir, scalar @files, $name);

        open my $f, '>', $files[-1] or die "$files[-1]: $!\n";
        print $f "# runs: $mark\n" if $mark;
        print $f $head, $name eq 'skipped' ? 'print "1..0 # SKIP on purpose\n";'
                               : "print qq{1..2\nok 1\n}; $body{$name}\n";
        close $f;
    }

    @files = "$dir/none.t" unless @files;

    $out = `cd $dir; $run_tests state prove -- @files 2> stderr`;
    $status = $?;
    $runs = join(' ', map { -s "$_.runs" || 0 } @files);

    diag($out) if $ENV{TEST_NGINX_VERBOSE};
}
