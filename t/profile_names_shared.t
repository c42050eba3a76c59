#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: names
# runs: quiet

# Names are looked up once for all workers, before a client needs them, and by a
# thread and a helper that do not have the lowest priority.
#
# A program between the worker and the helper writes down each question, with its
# nice value and the object that is asked for, and can hang.  So the test knows
# who asked for names, without a clock: the helper for clients has the priority
# of the worker, and the helper for which no client waits has the lowest one.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use POSIX ();
use Test::More;

use ProfileTest;

use constant {
    HELPER => 'ngx_http_profile_symbolizer',
    IDLE   => 19,
    LOOPS  => 12,
};

my $t = ProfileTest->new();
my $dir = $t->testdir();
my $helper = "$dir/" . HELPER;

$t->skip_all('no helper beside the module') if !-e $helper;
$t->skip_all('the test has the lowest priority') if getpriority(0, 0) >= IDLE;

rename($helper, "$helper.real") or die "rename: $!\n";

$t->conf(<<"EOF", workers => 4);
profile_zone p:8m;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    profile_frequency 1000;

    gzip on;
    gzip_types text/plain;
    gzip_comp_level 9;

    location / { }
    location /p/ { profile_console; }
}
EOF

$t->write_file('text.txt', join('', map { "line $_ " . rand() . "\n" }
                                    1 .. 20000));

# a program without debug files, and the zlib that compresses the response
my $known = qr{/(?:nginx|libz\.so\S*)$};

between('');
restart();


# the first worker names what all profiles need; no request has asked

ok(wait_for(sub { asked('idle', 'units') }, 30),
   'after the start, the source files of nginx are asked for');
ok(wait_for(sub { !jobs() }, 30), 'its thread ends its work');
is(asked('client'), 0, 'no client has waited for it');
is(asked('idle', 'names', $known), 2, 'one worker of four asks for all objects');

named('a flamegraph') for 1 .. 4;

my %old = map { $_ => 1 } $t->worker_pids();

$t->allow(qr/exited on signal 9/);
kill 'KILL', keys %old;

ok(wait_for(sub { my @now = $t->worker_pids();
                  @now == 4 && !grep { $old{$_} } @now }),
   'all workers are killed, and others take their places');

named('a flamegraph of new workers') for 1 .. 4;

$t->reload();
named('a flamegraph after a reload') for 1 .. 4;


# a busy machine: all names are there, also in a capture of all workers

my @loops = map { busy() } 1 .. LOOPS;

named('a flamegraph beside ' . LOOPS . ' loops');

my $load = $t->load('/text.txt', clients => 4);
my $r = http_get('/p/cpu?seconds=0.5', timeout => 60);
$load->stop();

kill 'KILL', @loops;
waitpid $_, 0 for @loops;

is($r->status(), 200, 'a capture of all workers beside the loops');
is(decode_json($r->content())->{profile_info}{lost_names} // 0, 0,
   'it has lost no names');

is(asked('client', 'units'), 0,
   'no profile has asked for the source files again');
is(asked('client', 'names', $known), 0,
   'nor for addresses of objects without debugging information');
unlike($t->read_log(), qr/helper for names/,
       'the log has no message about the helper');


# the helper that no client waits for hangs, and holds its thread

between('sleep 1000 if idle()');
restart();

ok(wait_for(sub { scalar hanging() }, 30), 'the helper of the thread hangs');
my ($hangs) = hanging();
named('a flamegraph beside a thread that waits for it');
cmp_ok(asked('client', 'names', $known), '>', 0,
       'a helper has run for the client');
ok(scalar(grep { $_ == $hangs } hanging()),
   'the thread has waited all the time');


# the helper for clients hangs: names come later

$t->write_file('wait', '');
between("if (idle()) { select undef, undef, undef, 0.1 while -e '$dir/wait' }"
        . ' else { sleep 1000 }');
restart();

my $p = flamegraph();
cmp_ok(lost($p), '>', 0,
       'a helper that hangs: the profile comes, and counts its lost names');

my ($id) = map { $_->{id} } @{stored()};
unlink("$dir/wait");

ok(wait_for(sub { !lost(flamegraph()) }, 60), 'a later profile has all names');
ok(wait_for(sub { !lost_of($id) }, 60),
   'so has the stored one, when it is opened');


sub named {
    my ($what) = @_;

    my $p = flamegraph();

    is(lost($p), 0, "$what has lost no names");
    is($p->profile('wall')->count_frames(qr/^nginx\+0x/), 0,
       "$what has names for all functions of nginx");
}


sub flamegraph {
    return profile_get('/text.txt', headers => [ 'Accept-Encoding: gzip' ]);
}


sub lost { return $_[0]->json()->{profile_info}{lost_names} // 0 }


sub lost_of {
    my ($id) = @_;

    my $r = http_get("/p/p/$id/speedscope");
    return decode_json($r->content())->{profile_info}{lost_names} // 0;
}


sub jobs {
    my $status = decode_json(http_get('/p/status.json')->content());

    return scalar grep { $_->{jobs} } @{$status->{workers}};
}


sub stored {
    return decode_json(
               http_get('/p/profiles',
                        headers => [ 'Accept: application/json' ])->content()
           )->{profiles};
}


# The program between the worker and the helper: the standard input is the
# worker's socket.  It first runs this code.
sub between {
    my ($code) = @_;

    open my $f, '>', "$helper.new" or die "open: $!\n";
    print $f <<"EOF" or die "write: $!\n";
#!$^X
use Socket;
sub idle { return getpriority(0, 0) == @{[ IDLE ]} }
sub whole {
    my (\$n, \$data) = (shift, '');
    sysread(STDIN, \$data, \$n - length \$data, length \$data) or exit
        while length \$data < \$n;
    return \$data;
}
socketpair(my \$a, my \$b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die;
$code;
if (!fork) { open STDIN, '<&', \$b; close \$a; exec '$helper.real' or die }
close \$b;
if (!fork) {
    open my \$out, '>&STDIN';
    my \$data;
    syswrite \$out, \$data while sysread \$a, \$data, 65536;
    exit;
}
\$SIG{PIPE} = 'IGNORE';
while (1) {
    my \$len = whole(4);
    my \$data = whole(unpack 'L', \$len);
    my (\$type, undef, undef, \$id, \$path) = unpack 'L Q Q L/a x L/a', \$data;
    open my \$log, '>>', '$dir/asked';
    syswrite \$log, join(' ', idle() ? 'idle' : 'client',
                        \$type == 1 ? 'names' : 'units', \$path) . "\\n";
    syswrite \$a, \$len . \$data;
}
EOF
    close $f or die "close: $!\n";

    chmod 0755, "$helper.new";
    rename("$helper.new", $helper) or die "rename: $!\n";
}


# the user of the workers writes the file of questions
sub restart {
    $t->stop() if $t->{pid};
    $t->write_file('asked', '');
    chmod 0666, "$dir/asked";
    $t->run();
}


# the number of questions: who waits for the answer, of which kind, which object
sub asked {
    my ($who, $kind, $object) = @_;

    $kind //= qr/\w+/;
    $object //= qr/./;

    return scalar grep { /^$who $kind (\S+)/ && $1 =~ $object }
                  split(/\n/, $t->read_file('asked'));
}


sub helper_pids { return grep { cmdline($_) =~ /\Q$helper\E/ } processes() }
sub hanging { return grep { nice_of($_) == IDLE } helper_pids() }
sub processes { return map { m{(\d+)$} } glob('/proc/[0-9]*') }


sub cmdline {
    open my $f, '<', "/proc/$_[0]/cmdline" or return '';
    local $/;
    return readline($f) // '';
}


sub nice_of { return getpriority(0, $_[0]) // -1 }


sub busy {
    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        my ($parent, $n) = (getppid(), 0);

        while (1) {
            POSIX::_exit(0) if ++$n % 1_000_000 == 0 && getppid() != $parent;
        }
    }

    return $pid;
}
