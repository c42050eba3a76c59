#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: names symbolizer
# runs: beside
#
# Debug files that are truncated, random, sparse or compressed bombs; helpers
# for names that are missing, hang, flood, or are killed.  The profile arrives
# in time with fewer names, the memory of the worker does not grow, no process
# and no descriptor is left, and the log has at most one line.
#
# The files go where all programs look for them, so this is for root.

use strict;
use warnings;

use Compress::Raw::Zlib;
use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest::Module;
use ProfileTest::Process;
use ProfileTest;

use constant {
    NAME   => 'ngx_http_inlined_test',
    HELPER => 'ngx_http_profile_symbolizer',
    LIMIT  => 5,            # seconds: three for names, and the rest
    GROWTH => 4 * 1024,     # kB, beyond that of a profile without a helper

    # compressions of sections: ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD
    ZLIB   => 1,
    ZSTD   => 2,
};

my $t = ProfileTest->new()->has_program(qw/ objcopy readelf strip /);
my $so = build_module($t, NAME . '_module', '-O2', '-Wl,--build-id');

my $debug = split_module($t, $so);
$t->run_command('mkdir', '-p', dirname($debug));

my $good = $t->read_file(basename_of("$so.split"));
my $helper = $t->testdir() . '/' . HELPER;

$t->skip_all('no helper beside the module') if !-e $helper;

rename($helper, "$helper.good") or die "rename: $!\n";

$t->conf(<<"EOF", main => "load_module $so;");
server {
    %%CONF inlined%%

    location = /plain {
        return 200 plain;
    }
}
EOF

replace_helper('exec sleep 0');
$t->run();

my $pid = ($t->worker_pids())[0];

# kB that the first profile of a worker takes
my $usual;


# programs that are not the helper

restart('sleep' => sub { replace_helper('exec sleep 1000') });
profile('a helper that hangs', 0);
is(helpers('sleep'), 0, 'a helper that hangs is ended');

restart('flood' => sub { replace_helper('exec yes >&0') });
profile('a helper that floods', 0);
is(helpers('yes'), 0, 'a helper that floods is ended');

restart('garbage' => sub {
    replace_helper('printf "\\\\004\\\\0\\\\0\\\\0abcd" >&0');
});
profile('a helper that answers nonsense', 0);

restart('text' => sub { $t->write_file(HELPER, 'no program') });
profile('a helper that cannot be executed', 0);

restart('nothing' => sub { unlink($helper) });
profile('no helper', 0);


# the real one

write_debug($good);
restart('real' => sub {
    link("$helper.good", $helper) or die "link: $!\n";
});
profile('the helper', 1);
like(slurp("/proc/$pid/maps"), qr/_profile_module\.so/,
     'the worker maps the module');
unlike(slurp("/proc/$pid/maps"), qr/lib(?:dw|elf|debuginfod|capstone)[-.]/,
       'the worker does not map elfutils and Capstone');

# another helper, of the lowest priority, looks up names that no client waits for

my ($child) = grep { (scheduling($_))[0] != 19 } helper_pids();
ok($child, 'the helper runs after its first answer');

like(slurp("/proc/$child/status"), qr/^NoNewPrivs:\s+1$/m,
     'the helper cannot get privileges');
like(slurp("/proc/$child/status"), qr/^Seccomp:\s+2$/m,
     'a filter restricts the system calls of the helper');
like(slurp("/proc/$child/limits"), qr/^Max address space +\d{1,9} /m,
     'the address space of the helper is limited')
    unless $t->sanitizers();

is(scalar(grep { readlink($_) !~ m{^(?:socket:|/dev/null$)} }
               glob("/proc/$child/fd/*")), 0,
   'the helper has only descriptors of sockets and of /dev/null');

is(join(' ', scheduling($child)), join(' ', scheduling($pid)),
   'the helper has the priority of the worker, and its session');

kill 'KILL', helper_pids();
ok(wait_for(sub { !helper_pids() }), 'the helper can be killed');
profile('names of a killed helper', 1);


# debug files

my %files = (
    'truncated' => substr($good, 0, length($good) / 2),
    'random' => substr($good, 0, 4096)
                . join('', map { chr(int(rand(256))) }
                               1 .. length($good) - 4096),
    'zlib bomb' => bomb(ZLIB, zeros_by_zlib(1024), 1024),
    'zlib bomb that fits' => bomb(ZLIB, zeros_by_zlib(300), 300),
    'zstd bomb' => bomb(ZSTD, zeros_by_zstd(1024), 1024),
    'zstd bomb that fits' => bomb(ZSTD, zeros_by_zstd(300), 300),
);

for my $name (sort keys %files) {
    write_debug($files{$name});
    restart($name => sub { });
    profile("$name debug file", undef);
}

write_debug($good);
truncate($debug, 1 << 40) or die "truncate: $!\n";
restart('sparse' => sub { });
profile('sparse debug file', undef);


# killed in the middle

write_debug($good);
restart('killed' => sub { });

my @killed;
my $reader = http_get('/?work=50&performance_bar=flamegraph', start => 1);

wait_for(sub { push @killed, grep { kill 'KILL', $_ } helper_pids();
               @killed });

like(http_end($reader), qr/ 200 /,
     'a request gets its profile although the helper is killed');
like(http_get('/plain'), qr/plain$/,
     'a request is served after the helper was killed');

ok(wait_for(sub { !helper_pids(1) }, 20), 'no helper runs in the end');


sub profile {
    my ($what, $named) = @_;

    my $memory = peak();
    my $fds = () = glob("/proc/$pid/fd/*");

    my $begun = time();
    my $p = profile_get('/?work=50');
    my $took = time() - $begun;

    cmp_ok($took, '<', $t->sanitizers() ? 5 * LIMIT : LIMIT,
           "$what: the profile is made in time");

    my $wall = $p->profile('wall');

    if (defined $named) {
        my $below = $wall->weight_below(qr/^@{[ NAME ]}_spin$/);
        ok($named ? $below : !$below, "$what: the profile has "
           . ($named ? '' : 'no ') . 'names of debug files');
    }

    cmp_ok($wall->weight_below(qr/^ngx_http_core_run_phases$/), '>', 0,
           "$what: the profile has names of symbol tables");
    my $growth = peak() - $memory;
    $usual //= $growth;

    cmp_ok($growth, '<', $usual + GROWTH,
           "$what: the worker needs about $usual kB more")
        unless $t->sanitizers();

    # the sockets of both helpers, and the helpers themselves

    ok(wait_for(sub { (() = glob("/proc/$pid/fd/*")) <= $fds + 4 }),
       "$what: the worker opens at most four descriptors");
    is(zombies(), 0, "$what: no process is a zombie");
    like(http_get('/plain'), qr/plain$/,
         "$what: a request without a trigger is served");

    my $lines = () = $t->read_log() =~ /the helper for names/g;
    cmp_ok($lines, '<=', 1,
           "$what: the log has at most one line about the helper");
    unlike($t->read_log(), qr/unknown process/,
           "$what: nginx reports no unknown child");
}


# starts a new worker without cached names, with its own log
sub restart {
    my ($what, $change) = @_;

    $t->stop();
    $change->();
    unlink($t->testdir() . '/error.log');
    $t->run();

    $pid = ($t->worker_pids())[0];
}


sub replace_helper {
    my ($script) = @_;

    unlink($helper);
    $t->write_file(HELPER, "#!/bin/sh\n$script\n");
    chmod 0755, $helper;
}


sub write_debug {
    my ($content) = @_;

    open my $f, '>:raw', $debug or die "$debug: $!\n";
    print {$f} $content;
    close $f or die "$debug: $!\n";
    chmod 0644, $debug;
}


# megabytes of zeros, compressed
sub zeros_by_zlib {
    my ($mb) = @_;

    my $deflate = Compress::Raw::Zlib::Deflate->new(-AppendOutput => 1);
    my $zero = "\0" x (1 << 20);
    my $data = '';

    $deflate->deflate($zero, $data) for 1 .. $mb;
    $deflate->flush($data);

    return $data;
}


# RFC 8878: one frame that tells its size, of blocks that repeat a byte
sub zeros_by_zstd {
    my ($mb) = @_;

    my $block = 128 << 10;
    my $n = ($mb << 20) / $block;
    my $data = pack('L C C Q', 0xfd2fb528, 0xc0, 7 << 3, $mb << 20);

    for my $i (1 .. $n) {
        my $head = $block << 3 | 1 << 1 | ($i == $n);
        $data .= substr(pack('L', $head), 0, 3) . "\0";
    }

    return $data;
}


# a debug file whose .debug_info expands to this many megabytes
sub bomb {
    my ($type, $compressed, $mb) = @_;

    my $data = pack('L L Q Q', $type, 0, $mb << 20, 1) . $compressed;

    $t->write_file('bomb.data', $data);

    my $file = $t->testdir() . '/bomb.debug';

    $t->run_command('objcopy', '--update-section',
        '.debug_info=' . $t->testdir() . '/bomb.data', "$so.split", $file);

    # the section says itself that it is compressed

    my $elf = slurp($file);
    my ($shoff) = unpack('Q', substr($elf, 40, 8));
    my ($n, $names) = unpack('S S', substr($elf, 60, 4));
    my ($strings) = unpack('Q', substr($elf, $shoff + $names * 64 + 24, 8));

    for my $i (0 .. $n - 1) {
        my $at = $shoff + $i * 64;
        my ($name) = unpack('L', substr($elf, $at, 4));

        if (substr($elf, $strings + $name, 12) eq ".debug_info\0") {
            my ($flags) = unpack('Q', substr($elf, $at + 8, 8));
            substr($elf, $at + 8, 8) = pack('Q', $flags | 0x800);
        }
    }

    return $elf;
}


# kB, the most that it ever had
sub peak {
    return process_status($pid, 'VmHWM');
}


sub helper_pids {
    return grep { (readlink("/proc/$_/exe") // '') =~ m{^\Q$helper\E} }
           map { m{(\d+)$} } glob('/proc/[0-9]*');
}


# programs that a script has become; no client waits for one of them, which is
# ended late
sub helpers {
    my ($program) = @_;

    my $left = 1;

    wait_for(sub {
        $left = grep { slurp("/proc/$_/cmdline") =~ /^\Q$program\E\0/
                       && group($_) == $_ && parent($_) == 1 }
                map { m{(\d+)$} } glob('/proc/[0-9]*');
        return !$left;
    }, 40);

    return $left;
}


sub group {
    return (split(' ', slurp("/proc/$_[0]/stat")))[4] // 0;
}


# nice value and session
sub scheduling {
    return (split(' ', slurp("/proc/$_[0]/stat")))[18, 5];
}


sub parent {
    return (split(' ', slurp("/proc/$_[0]/stat")))[3] // 0;
}


sub zombies {
    my ($master) = slurp("/proc/$pid/status") =~ /^PPid:\s+(\d+)/m;

    return grep { my @stat = split(' ', slurp("/proc/$_/stat"));
                  ($stat[2] // '') eq 'Z'
                  && ($stat[3] == $pid || $stat[3] == $master) }
           map { m{(\d+)$} } glob('/proc/[0-9]*');
}


sub slurp {
    my ($path) = @_;

    open my $f, '<:raw', $path or return '';
    local $/;
    return readline($f) // '';
}


sub basename_of {
    return $_[0] =~ s{.*/}{}r;
}
