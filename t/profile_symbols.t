#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: names symbolizer
# runs: beside
#
# A stripped module and its separate debug file, as a package of debug symbols
# installs it: offsets without it; with it names, files, lines, and functions
# that were inlined, in what viewers and pprof read.  Nothing is restarted.
#
# All programs look for such files at this place, so the test needs root.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Module;
use ProfileTest::Pprof;

use constant NAME => 'ngx_http_inlined_test';

my $t = ProfileTest->new()->has_program(qw/ objcopy readelf strip /);
my $so = build_module($t, NAME . '_module', '-O2', '-Wl,--build-id');

my $debug = split_module($t, $so);

$t->conf(<<"EOF", main => "load_module $so;");
server {
    %%CONF inlined%%
}
EOF

$t->run();


# without the debug file

my $p = profile_get('/?work=100');

cmp_ok(wall($p, qr/^@{[ NAME ]}_module\.so\+0x[0-9a-f]+$/), '>', 0.05e9,
       'without a debug file, the profile has offsets');
is(wall($p, qr/^@{[ NAME ]}_(?:spin|step|handler)/), 0,
   'nobody has told the names');


# with the debug file, in the same worker

$t->run_command('mkdir', '-p', dirname($debug));
$t->run_command('cp', "$so.split", $debug);
chmod(0644, $debug);

$p = profile_get('/?work=100');

my $total = wall($p, qr/^@{[ NAME ]}_handler$/);

cmp_ok($total, '>', 0.05e9, 'the handler has its name');
cmp_ok(wall($p, qr/^@{[ NAME ]}_spin$/), '>', 0.9 * $total,
       'the function that it calls has its name');
is(wall($p, qr/_module\.so\+0x/), 0, 'no offset is left');

cmp_ok(wall($p, qr/^@{[ NAME ]}_step\b/), '>', 0.9 * $total,
       'the inlined function has its name');

my %line = lines();
my %frame = map { $_->{name} => $_ } @{$p->json()->{shared}{frames}};

for my $function (qw/ handler spin /) {
    my $frame = $frame{NAME . "_$function"};

    like($frame->{file}, qr{/t/fixtures/@{[ NAME ]}_module\.c$},
         "$function has its file");
    cmp_ok(abs($frame->{line} - $line{$function}), '<=', 2,
           "$function has its line, about $line{$function}");
}


# inlined functions

$p = ProfileTest::Pprof->new(http_get('/?work=100&performance_bar=flamegraph'
                                      . '&profile_format=pprof'));

my $type = 'wall/nanoseconds';
my $spin = $p->total($type, in('spin'));
my $step = $p->total($type, in('step'));

cmp_ok($spin, '>', 0.05e9, 'pprof: the called function has its time');
cmp_ok($step, '>', 0.9 * $spin, 'pprof: the inlined function has its time');

my ($sample) = grep { in('step')->($_) } $p->samples();
my ($at) = grep { $sample->{stack}[$_] eq NAME . '_step' }
                0 .. $#{$sample->{stack}};
is($sample->{stack}[$at + 1], NAME . '_spin',
   'pprof: the inlined function is in its caller');

my $html = http_get('/?work=100&performance_bar=flamegraph'
                    . '&profile_format=html')->content();
like($html, qr/@{[ NAME ]}_step[^<]*inlined/,
     'html: the inlined function is marked');


# a debug file without names: names of this build are known, until nginx is
# started again

$t->run_command('objcopy', '--strip-all', $debug, $debug);

my @old = $t->worker_pids();
$t->reload();
wait_for(sub { !grep { kill 0, $_ } @old });

$p = profile_get('/?work=50');
cmp_ok(wall($p, qr/^@{[ NAME ]}_(?:spin|step|handler)/), '>', 0,
       'names survive a reload');

$t->stop();
$t->run();

$p = profile_get('/?work=50');
is(wall($p, qr/^@{[ NAME ]}_(?:spin|step|handler)/), 0,
   'a file without names has none');


sub wall {
    my ($p, $match) = @_;
    return $p->profile('wall')->weight_below($match);
}


sub in {
    my ($function) = @_;
    return sub { grep { $_ eq NAME . "_$function" } @{$_[0]{stack}} };
}


# where functions begin in the source
sub lines {
    open my $f, '<', dirname(__FILE__) . '/fixtures/' . NAME . '_module.c'
        or die "open: $!\n";

    my %found;

    while (<$f>) {
        $found{$1} = $. if /^@{[ NAME ]}_(\w+)\([^;]*$/;
    }

    return %found;
}
