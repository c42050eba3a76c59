#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: kernel
# runs: beside
#
# Stacks of the kernel, in profiles of requests and of workers; where they are
# not permitted, only the status tells.  What remains of them after captures,
# reloads, killed workers and the end.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use POSIX ();
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Load;
use ProfileTest::Profile;

# PR_SET_CHILD_SUBREAPER
my %prctl = (x86_64 => 157, aarch64 => 167);
my ($machine) = (POSIX::uname())[4];

syscall $prctl{$machine}, 36, 1, 0, 0, 0;

my $t = ProfileTest->new();

my $conf = <<'EOF';
profile_store %%TESTDIR%%/store;
profile_kernel on;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    sendfile on;

    location / { }
    location /-/profile/ { profile_console; }
}
EOF

$t->conf($conf, workers => 2);
$t->write_file('small', 'x' x 16384);
$t->write_file('large', 'x' x (32 * 1024 * 1024));
$t->allow(qr/exited on signal 9/);
$t->run();

my $often = 'profile_frequency=10000';
my $permitted = permitted();

###############################################################################

my $state = state();

if (!$permitted) {
    isnt($state, 'on', "the status says why there are no stacks: $state");
    isnt($state, 'off', 'the directive is not the reason');

    my $p = recorded('/large');
    cmp_ok($p->count_stacks(qr/^sys_sendfile$/), '>', 0, 'stacks end in calls');

    diag('stacks of the kernel are not permitted here, and not tested');
    exit;
}

is($state, 'on', 'the status is on');

# a single request

my $p = recorded('/large');
my ($call, $deep, $wrong) = (0, 0, 0);

for my $s ($p->stacks()) {
    my @names = @{$s->[0]};
    my ($i) = grep { $names[$_] =~ /^sys_/ } 0 .. $#names;

    next if !defined $i;

    $call += $s->[1];
    $deep += $s->[1] if $i < $#names;

    # in some libraries the function that makes the call has another name
    $wrong++ if $names[$i] eq 'sys_sendfile' && $names[$i - 1] !~ /sendfile/;
}

cmp_ok($deep, '>', $call / 2, 'most of the time in calls has a stack')
    or diag($p->folded(10));
is($wrong, 0, 'each is below the function of its call');
cmp_ok($p->count_stacks(qr/^tcp_sendmsg|^splice_/), '>', 0,
       'functions that send a file') or diag($p->folded(10));
is($p->count_stacks(qr/^(?:do_syscall_64|entry_SYSCALL\w*|el0_svc)$/), 0,
   'the way to them is left out');

my ($id) = stored();

for my $format (qw/ folded html svg speedscope pprof /) {
    my $body = http_get("/-/profile/p/$id/$format")->content();

    unlike($body, qr/ffffffff[0-9a-f]{8}|18446744[0-9]{12}/,
           "the format $format has no address of the kernel");
}

# workers

my $load = ProfileTest::Load->start($t, '/small', clients => 4);

for my $what ('wall 1000', 'cpu 1000') {
    my ($mode, $frequency) = split / /, $what;
    my $uri = "/-/profile/$mode?seconds=3&frequency=$frequency&format=folded";

    like(http_get($uri)->content(), qr/;sys_\w+;\w+/,
         "a capture of workers has functions, $what Hz");
}

$load->stop();

is(mapped(), 0, 'nothing remains mapped after captures');

# reloads, and workers that are killed in captures

my ($opener) = openers();

for my $round (1 .. 3) {
    my @captures = map { http_get("/large?performance_bar=record&$often",
                                  start => 1) } 1 .. 4;

    kill 'KILL', ($t->worker_pids())[0] if $round == 2;

    $t->reload();
}

ok(ProfileTest::wait_for(sub { openers() == 1 && (openers())[0] != $opener }),
   'one process for the new workers') or diag(join ' ', openers());
is(state(), 'on', 'the status after a reload');
cmp_ok(recorded('/large')->count_stacks(qr/^splice_/), '>', 0,
       'stacks after a reload');

# without the opener, stacks of a worker end at the system call

kill 'KILL', openers();
ok(ProfileTest::wait_for(sub { openers() == 0 }), 'the process is killed');

$p = recorded('/large');
cmp_ok($p->count_stacks(qr/^sys_sendfile$/), '>', 0, 'stacks end in calls');
is($p->count_stacks(qr/^splice_/), 0, 'no stack shows functions of the kernel');
ok(ProfileTest::wait_for(sub { recorded('/small');
                               state() =~ /opener has ended/ }),
   'the status says why');

# off

$conf =~ s/profile_kernel on/profile_kernel off/;
$t->conf($conf, workers => 2);
$t->reload();

ok(ProfileTest::wait_for(sub { state() eq 'off' }), 'the status is off');
ok(ProfileTest::wait_for(sub { openers() == 0 }),
   'without the directive no process runs');

$t->stop();

###############################################################################

sub state {
    my $json = http_get('/-/profile/status.json')->content();

    return decode_json($json)->{kernel}{stacks};
}


sub stored {
    my $list = decode_json(http_get('/-/profile/profiles.json')->content());

    return map { $_->{id} } @{$list->{profiles}};
}


sub recorded {
    my ($uri) = @_;

    my ($id) = http_get("$uri?performance_bar=record&$often")
                   =~ /^X-Profile-Id: (\w+)\r\n/m;

    my $r = ProfileTest::wait_for(sub {
        my $answer = http_get("/-/profile/p/$id/speedscope");
        return $answer->status() == 200 && $answer;
    });

    return ProfileTest::Profile->new($r)->profile('wall');
}


# returns whether the system permits what the module needs
sub permitted {
    my %call = (x86_64 => 298, aarch64 => 241);

    open my $f, '<', '/sys/kernel/tracing/events/signal/signal_generate/id'
        or return 0;

    my $id = <$f>;

    open $f, '<', '/proc/kallsyms' or return 0;
    return 0 if <$f> =~ /^0+ /;

    # struct perf_event_attr of the first version
    my $attr = pack 'LLQQQQQLLQ', 2, 64, $id, 1, 0, 0, 0, 0, 0, 0;
    my $fd = syscall $call{$machine}, $attr, $$, -1, -1, 0;

    return 0 if $fd == -1;

    POSIX::close($fd);

    return 1;
}


# processes that their parents left are given to this test
sub openers {
    return grep { process_cmdline($_) =~ /^nginx: profile kernel opener/ }
               $t->child_processes($$);
}


sub process_cmdline {
    open my $f, '<', "/proc/$_[0]/cmdline" or return '';
    return <$f> // '';
}


# rings of perf events in the memory of the workers
sub mapped {
    my $n = 0;

    for my $pid ($t->worker_pids()) {
        open my $f, '<', "/proc/$pid/maps" or next;
        $n += grep { /perf_event/ } <$f>;
    }

    return $n;
}
