#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools continuous
# runs: quiet
#
# "nginx-profile push": what a receiver of Pyroscope's and of OTLP's protocol
# gets is what the module holds, each slice once, whatever fails in between.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json encode_json /;
use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest::Pprof;
use ProfileTest::Push;
use ProfileTest::Upstream;
use ProfileTest;
use ProfileTest::Module;

my $t = ProfileTest->new()->has(qw/ gzip /)->has_program('protoc');
my $so = build_module($t, 'ngx_http_inlined_test_module', '-O2');

# on a busy machine, the debugging information may miss in one of two profiles

my $conf = <<'EOC';
profile_continuous on slice=1s wall=on;
profile_symbolizer off;

server {
    %%CONF gzip%%
    location /inlined { inlined_test; }
    location /closed/ { return 403; }
}
EOC

my @load = (workers => 2, main => "load_module $so;");
$t->conf($conf, @load);

$t->write_file('text', join('', map { "line $_ " . $_ ** 2 . "\n" } 1 .. 40_000));
$t->run();
run_receiver($t, 8081);

my $tool = dirname(__FILE__) . '/../tools/nginx-profile';
my $dir = $t->testdir();
my $url = 'http://127.0.0.1:' . port(8080) . '/-/profile/';
my $to = 'http://127.0.0.1:' . port(8081);

# some slices, which are complete when the load is over

my $load = $t->load('/text', clients => 1, rate => 20, seconds => 60,
                    headers => [ 'Accept-Encoding: gzip' ]);
my $begin = int(time()) + 1;

sleep(0.1) while time() < $begin + 6;
$load->stop();
sleep(0.1) while time() < $begin + 9;

my $end = $begin + 6;


# OTLP

my ($rc, $out) = start_at('otlp', $begin, otlp => $to);
is($rc, 0, 'a push to OTLP succeeds') or diag($out);
is($out, '', 'a successful push prints nothing');

my @pushed = pushed($t);
my @otlp = @pushed;

cmp_ok(scalar @pushed, '>=', 3, 'several slices were pushed');
is((grep { $_->{line} ne 'POST /v1development/profiles HTTP/1.0' } @pushed), 0,
   'all slices are sent to the path of profiles');
like($pushed[0]{headers}, qr{^Content-Type: application/x-protobuf\r$}m,
     'the messages have the type of protobuf');

my $attributes = otlp_attributes($pushed[0]{body}, 1);
is_deeply($attributes, { 'service.name' => 'web', 'host.name' => 'machine',
                         env => 'test' },
          'the resource has the service, the host and the label');

my %ids;

for my $p (@pushed) {
    my ($cpu) = grep { $_->{type} eq 'cpu/nanoseconds' }
                     otlp_profiles($p->{body}, 1);

    $ids{$cpu->{id}}++;
}

is(scalar keys %ids, scalar @pushed, 'each slice has an id of its own');

my $sum = sum0(map { total($_) } @pushed);
my $held = held($begin, $end)->total('cpu/nanoseconds');

cmp_ok($held, '>', 0, 'the module holds CPU time');
is($sum, $held, 'the sum of all slices is what the module holds');


# another run sends nothing twice

my $n = @pushed;

($rc, $out) = push_to('otlp', otlp => $to);
is($rc, 0, 'a second run succeeds') or diag($out);
is((grep { total($_) } (pushed($t))[$n .. $#{[ pushed($t) ]}]), 0,
   'a second run sends nothing again');


# Pyroscope

$n = pushed($t);
($rc, $out) = start_at('pyroscope', $begin, pyroscope => $to);
is($rc, 0, 'a push to Pyroscope succeeds') or diag($out);

@pushed = since($n);
like($pushed[0]{line}, qr{^POST\ /ingest\?name=web%7Benv%3Dtest%2Chost%3Dmachine
                          %7D&from=\d+&until=\d+&format=pprof
                          &spyName=nginx-profile\ }x,
     'the query has the name, the labels and the time');
is(sum0(map { pyroscope_profile($_)->total('cpu/nanoseconds') }
            grep { $_->{line} =~ /from=(\d+)/ && $1 < $end } @pushed), $held,
   'the sum of all slices is what the module holds');
is_deeply([ map { $_->{line} =~ /from=(\d+)/ } @pushed ],
          [ sort { $a <=> $b } map { $_->{line} =~ /from=(\d+)/ } @pushed ],
          'slices are sent in the order of time');

# the pushed bytes are those that nginx sends

my ($from, $until) = $pushed[0]{line} =~ /from=(\d+)&until=(\d+)/;

is_deeply([ map { sample($_) } pyroscope_profile($pushed[0])->samples() ],
          [ map { sample($_) } held($from, $until)->samples() ],
          'a slice has the samples that the module holds');

# both protocols carry the same samples

for my $i (0 .. $#pushed) {
    my $pprof = pyroscope_profile($pushed[$i]);
    my @types = $pprof->types();
    my @profiles = otlp_profiles($otlp[$i]{body}, 1);

    is_deeply([ map { $_->{type} } @profiles ], \@types,
              "slice $i has the same types");
    is_deeply([ map { @$_{qw/ time duration period period_type /} } @profiles ],
              [ map { ($pprof->time_nanos(), $pprof->duration(),
                       $pprof->period(), $pprof->period_type()) } @types ],
              "slice $i has the same times");

    for my $type (0 .. $#types) {
        is_deeply([ sort map { sample($_) } @{$profiles[$type]{samples}} ],
                  [ sort map { sample({ %$_,
                                        values => [ $_->{values}[$type] ] }) }
                             grep { $_->{values}[$type] } $pprof->samples() ],
                  "slice $i has the same samples: $types[$type]");
    }
}

$n = pushed($t);
($rc, $out) = start_at('wall', $begin, pyroscope => $to, '-m' => 'wall');
is($rc, 0, 'a push of wall time succeeds') or diag($out);
cmp_ok(sum0(map { pyroscope_profile($_)->total('wall/nanoseconds') }
                since($n)), '>', 0, 'has wall time');


# errors: the next run goes on, and each slice arrives once

for my $case (
    [ '500', 1, 'the answer is 500' ],
    [ '503 Retry-After: 1', 1, 'the answer is 503' ],
    [ '401', 3, 'the answer is 401' ],
) {
    my ($says, $status, $message) = @$case;

    receiver_says($t, $says);
    $n = pushed($t);

    ($rc, $out) = start_at("case$status$says", $begin, otlp => $to,
                           '--retries' => $status == 1 ? 1 : 0);
    is($rc, $status, "$says: the exit status") or diag($out);
    like($out, qr/^nginx-profile: .*$message/,
         "$says: the message names the answer");

    receiver_says($t, 200);

    ($rc, $out) = push_to("case$status$says", otlp => $to);
    is($rc, 0, "$says: the next run goes on") or diag($out);
    is(sum0(map { total($_) } grep { $_->{says} eq '200' } since($n)), $held,
       "$says: every slice has arrived once");
}

# a refused connection

($rc, $out) = start_at('down', $begin, otlp => 'http://127.0.0.1:'
                                               . port(8082), '--retries' => 0);
is($rc, 1, 'without a receiver: the exit status');
like($out, qr/^nginx-profile: .*cannot connect/,
     'without a receiver: the message names the error');
is(state('down')->{position}, $begin, 'the position stays');

# a slice that the receiver may have got is not sent again

for my $says (qw/ hang close cut /) {
    receiver_says($t, $says);
    $n = pushed($t);

    ($rc, $out) = start_at($says, $begin, otlp => $to, '--timeout' => 1);
    is($rc, 1, "$says: the exit status") or diag($out);
    like($out, qr/(?:timed\ out|no\ answer|cannot\ (?:read|send):[^;]*)
                  ;\ the\ slice\ from\ \S+\ is\ left\ out/x,
         "$says: the message names the slice");

    receiver_says($t, 200);
    ($rc, $out) = push_to($says, otlp => $to);
    is($rc, 0, "$says: the next run goes on") or diag($out);

    my @got = since($n);
    my %times;

    $times{(otlp_profiles($_->{body}, 1))[0]{time}}++ for @got;

    is((grep { $_ > 1 } values %times), 0, "$says: no slice was sent twice");
    is(sum0(map { total($_) } @got),
       $held - ($says eq 'cut' ? total($otlp[0]) : 0),
       "$says: the receiver has got all slices that it has read");
}

# a slice that the receiver does not want is left out, the others are sent

receiver_says($t, 400);
($rc, $out) = start_at('bad', $begin, otlp => $to);
is($rc, 5, 'refused slices: the exit status');
like($out, qr/the answer is 400: text; the slice from \S+ is left out/,
     'refused slices: the message names the slice');

receiver_says($t, 200);
$n = pushed($t);
($rc) = push_to('bad', otlp => $to);
is(sum0(map { total($_) } since($n)), 0, 'refused slices are not sent again');

# a run that was killed while it was sending

receiver_says($t, 'hang');
$n = pushed($t);
set_state('killed', { position => $begin, receiver => $to, mode => 'cpu' });

my $pid = fork() // die "fork: $!\n";

if ($pid == 0) {
    open STDERR, '>', "$dir/killed.err";
    exec(command('killed', otlp => $to));
}

ok(wait_for(sub { pushed($t) > $n }), 'a run is sending');
($rc, $out) = push_to('killed', otlp => $to);
is($rc, 4, 'a second run with the same file ends');
like($out, qr/another run uses/, 'the message names the reason');

kill 'KILL', $pid;
waitpid $pid, 0;

receiver_says($t, 200);
($rc, $out) = push_to('killed', otlp => $to);
is($rc, 5, 'the run after a killed one tells that a slice may be missing');
like($out, qr/may have been received when the last run ended/,
     'the message names the reason');
is(sum0(map { total($_) } since($n)), $held,
   'every slice has arrived once, the first one by the killed run');


# the file of the state

$n = pushed($t);
my $long = $to . '/x' x 500;    # the state is longer than the limit

($rc, $out) = start_at('full', $begin, otlp => $long, limit => 1);
is($rc, 4, 'a full disk: the exit status') or diag($out);
like($out, qr/cannot write ".*full"/,
     'a full disk: the message names the file');
is(pushed($t), $n, 'a full disk: nothing is sent');
is(state('full')->{position}, $begin, 'a full disk: the old state stays');

($rc, $out) = push_to('full', otlp => $long);
is($rc, 0, 'with space on the disk the next run succeeds');
is(sum0(map { total($_) } since($n)), $held, 'the next run sends every slice');

$t->write_file('broken', '{');
($rc, $out) = push_to('broken', otlp => $to);
is($rc, 4, 'a damaged state: the exit status');
like($out, qr/is damaged/, 'a damaged state: the message names the reason');

set_state('other', { position => $begin, receiver => 'http://x', mode => 'cpu' });
($rc, $out) = push_to('other', otlp => $to);
is($rc, 4, 'the state of another receiver: the exit status');
like($out, qr/belongs to another receiver/,
     'the state of another receiver: the message names the reason');


# time

my $fetched = fetched();

($rc, $out) = start_at('old', $begin - 100_000, otlp => $to);
is($rc, 5, 'slices that are too old: the exit status') or diag($out);
like($out, qr/are too old, they are left out/,
     'slices that are too old: the message names the reason');

cmp_ok(fetched() - $fetched, '<', 60 + 600 + 20, 'catching up is bounded');

($rc, $out) = push_to('new', otlp => $to);
is($rc, 0, 'a first run succeeds') or diag($out);
cmp_ok(time() - state('new')->{position}, '<=', 5, 'begins with new slices');


# nginx

($rc, $out) = start_at('closed', $begin, otlp => $to,
                       '-u' => $url =~ s{/-/profile/}{/closed/}r);
is($rc, 3, 'nginx refuses: the exit status');
like($out, qr/nginx answers 403/,
     'nginx refuses: the message names the status');

($rc, $out) = start_at('gone', $begin, otlp => $to, '--retries' => 0,
                       '-u' => 'http://127.0.0.1:' . port(8082) . '/x/');
is($rc, 1, 'nginx is away: the exit status');
is(state('gone')->{position}, $begin, 'the position stays');


# options

for my $case (
    [ [], 'one of --pyroscope and --otlp is needed' ],
    [ [ '--otlp', $to, '--pyroscope', $to ], 'one of --pyroscope and --otlp' ],
    [ [ '--otlp', $to ], '--state is needed' ],
    [ [ '--otlp', 'x', '--state', "$dir/x" ], 'the URL "x" is not http:' ],
    [ [ '--otlp', $to, '--state', "$dir/x", '-m', 'object' ], '--mode is' ],
    [ [ '--otlp', $to, '--state', "$dir/x", '--slice', 0 ], '--slice is' ],
    [ [ '--otlp', $to, '--state', "$dir/x", '--label', 'a' ], '--label is' ],
    [ [ '--otlp', $to, '--state', "$dir/x", '--interval', 0 ],
      '--interval is' ],
    [ [ '--otlp', $to, '--state', "$dir/x", 'y' ], 'unexpected argument' ],
) {
    ($rc, $out) = $t->command($tool, 'push', @{$case->[0]});
    is($rc, 2, "@{$case->[0]}: the exit status");
    like($out, qr/\Q$case->[1]\E/,
         "@{$case->[0]}: the message names the option");
}


# the units of systemd

SKIP: {
    skip('systemd-analyze is not installed', 2)
        if system('command -v systemd-analyze > /dev/null') != 0;

    for my $unit (qw/ service timer /) {
        open my $f, '<', dirname(__FILE__) . '/../packaging/systemd/'
                         . "nginx-profile-push.$unit" or die "cannot open: $!\n";
        my $text = join('', <$f>);

        $text =~ s{/usr/bin/nginx-profile}{/bin/true};
        $text =~ s{^EnvironmentFile=}{$&-}m;
        $t->write_file("nginx-profile-push.$unit", $text);
    }

    for my $unit (qw/ service timer /) {
        ($rc, $out) = $t->command('systemd-analyze', 'verify', '--man=no',
                                  "$dir/nginx-profile-push.$unit");
        is($out =~ s/^(?!.*nginx-profile).*\n//gmr, '', "the $unit is valid");
    }
}


# as a sidecar, the program survives an outage, and SIGTERM ends it

set_state('sidecar', { position => $begin, receiver => $to, mode => 'cpu' });
receiver_says($t, 500);
$n = pushed($t);

$pid = fork() // die "fork: $!\n";

if ($pid == 0) {
    open STDERR, '>', "$dir/sidecar.err";
    exec(command('sidecar', otlp => $to, '--interval' => 0.2,
                 '--retries' => 0));
}

ok(wait_for(sub { pushed($t) > $n }), 'the sidecar meets an outage');
receiver_says($t, 200);
ok(wait_for(sub { sum0(map { total($_) } grep { $_->{says} eq '200' }
                           since($n)) == $held }, 30),
   'afterwards it sends every slice once');

kill 'TERM', $pid;
waitpid $pid, 0;
is($?, 0, 'SIGTERM ends it without an error');


# inlined functions

$t->conf($conf =~ s/profile_symbolizer off;//r, @load);
$t->reload();

$begin = int(time()) + 1;
sleep(0.1) while time() < $begin;
http_get('/inlined?work=300');
sleep(0.1) while time() < $begin + 4;

# after an answer that was late, the debugging information is read again after
# a minute

my @inlined;

ok(wait_for(sub {
    @inlined = inlined(held($begin, $begin + 2)->samples());
    return @inlined > 0;
}, 150), 'the module holds samples with inlined functions');

$n = pushed($t);
($rc, $out) = start_at('inlined', $begin, otlp => $to);
is($rc, 0, 'inlined functions: the exit status') or diag($out);
is_deeply([ sort map { inlined(map { @{$_->{samples}} }
                               grep { $_->{type} eq 'samples/count' }
                                    otlp_profiles($_->{body}, 1)) }
                     since($n) ], [ sort @inlined ],
          'OTLP has the inlined functions of every sample');


# the stacks with inlined functions, one for each sample
sub inlined {
    return grep { /inlined_test_step\|.*inlined_test_spin/ }
           map { join('|', @{$_->{stack}}) } @_;
}


sub command {
    my ($state, %options) = @_;

    $options{'-u'} //= $url;

    my @options = map { my $name = /^-/ ? $_ : "--$_";
                        defined $options{$_} ? ($name, $options{$_}) : () }
                      sort grep { $_ ne 'limit' } keys %options;

    my @command = ($tool, 'push', '--state', "$dir/$state", '--slice', 1,
                   '--service', 'web', '--host', 'machine',
                   '--label', 'env=test', @options);

    return defined $options{limit}
           ? ('sh', '-c', "ulimit -f $options{limit}; exec \"\$@\"", 'sh',
              @command)
           : @command;
}


# (exit status, output)
sub push_to { return $t->command(command(@_)) }


sub start_at {
    my ($state, $position, %options) = @_;

    set_state($state, { position => $position, mode => $options{'-m'} || 'cpu',
                        receiver => $options{otlp} || $options{pyroscope} });

    return push_to($state, %options);
}


sub set_state {
    my ($name, $state) = @_;
    $t->write_file($name, encode_json($state));
}


sub state { return decode_json($t->read_file($_[0])) }


sub since {
    my ($n) = @_;
    my @pushed = pushed($t);

    return @pushed[$n .. $#pushed];
}


# returns the slices of the module, as pprof
sub held {
    my ($from, $to, $mode) = @_;

    return ProfileTest::Pprof->new(http_get('/-/profile/' . ($mode || 'cpu')
                                     . "?from=$from&to=$to&format=pprof"));
}


# requests for ranges
sub fetched {
    return scalar(() = $t->read_file('access.log') =~ /GET \S+cpu\?from=/g);
}


# CPU time of the pushed slice, if it began under the load: pushing is work for
# nginx, too.  The time in a profile may be a little before the whole second at
# which its slice begins.
sub total {
    my ($pushed) = @_;

    my ($cpu) = grep { $_->{type} eq 'cpu/nanoseconds'
                       && $_->{time} < ($end - 0.5) * 1e9 }
                     otlp_profiles($pushed->{body}, 1);

    return $cpu ? sum0(map { $_->{values}[0] } @{$cpu->{samples}}) : 0;
}


# a text that is the same for equal samples
sub sample {
    my ($s) = @_;

    return join('|', @{$s->{stack}}, '', @{$s->{values}},
                map { "$_=$s->{labels}{$_}" } sort keys %{$s->{labels}});
}
