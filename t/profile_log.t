#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: beside
#
# Requests do not fill the error log.  Each message from the level "warn" on
# that a request can cause goes through the limit of one message in a second,
# in the code and in a server in which resources are denied.

use strict;
use warnings;

use Fcntl qw/ SEEK_SET /;
use File::Basename qw/ dirname /;
use Test::More;
use Time::HiRes qw/ time /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Preload;

my $root = dirname(__FILE__) . '/..';

# no request causes these: their log is that of the configuration, or of a
# process that starts
my $START = qr/^(?:cf|cycle)->log$/;

# functions whose messages have another limit, or are not caused by requests

my %LIMITED = (
    ngx_http_profile_client_warn => 'once in the life of a worker',
    ngx_http_profile_slice_begin => 'once until it works again',
    ngx_http_profile_symbolizer_log => 'once a minute',
    ngx_http_profile_inbox_pairs => 'the process that starts workers',
    ngx_http_profile_ground_log => 'once for all workers',
    ngx_http_profile_job_finish_all => 'once, when the worker exits',
    ngx_http_profile_stall_done => 'the stall had asked the limit',
    ngx_http_profile_turns_report => 'once for each worker that died',
    ngx_http_profile_account_unequal => 'in builds for debugging only',
    ngx_http_profile_lua_unknown => 'once in the life of a worker',
    ngx_http_profile_load_dir => 'the cache manager, every ten seconds',
    ngx_http_profile_load_name => 'the cache manager; the file is removed',
);

my (@free, %used, $n);

for my $file (glob("$root/ngx_http_profile_module/*/*.c")) {
    open my $f, '<', $file or die "$file: $!\n";
    my $text = do { local $/; <$f> };

    while ($text =~ /\bngx_log_error\(NGX_LOG_(?:WARN|ERR|CRIT|ALERT|EMERG),
                     \s*([^,]+),/gx)
    {
        my ($log, $before) = ($1, substr($text, 0, $-[0]));

        # the function begins after the last line that is a brace

        my ($head, $body) = $before =~ /.*^(\w+)\([^;{}]*\)\n\{\n(.*)$/ms;

        $n++;
        next if $log =~ $START;
        next if $body =~ /\bngx_http_profile_log_limit\(/;

        if ($LIMITED{$head}) {
            $used{$head} = 1;
            next;
        }

        push @free, $file =~ s{.*/}{}r . ": $head()";
    }
}

cmp_ok($n, '>', 20, 'the code has messages');
is(join("\n", @free), '', 'each message of a request has a limit');
is(join(' ', grep { !$used{$_} } sort keys %LIMITED), '',
   'each exception is in the code');


# resources are denied

my $t = ProfileTest->new()->has(qw/ rewrite /)->allow(qr/profile: /);

$t->skip_all('the module is linked into nginx') if $t->{module} eq '';
$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();

my $so = eval { build_preload($t, 'prof_fault') };

$t->skip_all("the C library has no _dl_find_object(): $@") unless $so;

$t->conf(<<'EOF', main => "error_log %%TESTDIR%%/worker.log warn;");
profile_store %%TESTDIR%%/store;
profile_max_captures 100;

server {
    listen 127.0.0.1:8080;
    profile_keep $arg_keep rate=1000;
    profile_endpoint on;

    location / { return 200 "ordinary"; }
    location /refused { profile_if $arg_never; return 200 "ordinary"; }
    location /-/profile/ { profile_console; }
}
EOF

$t->write_file('fault', "\0" x 4096);
chmod 0666, $t->testdir() . '/fault';
open my $control, '+<', $t->testdir() . '/fault' or die "fault: $!\n";

{
    local $ENV{PROF_FAULT} = $t->testdir() . '/fault';
    local $ENV{LD_PRELOAD} = $so;

    $t->run();
}

my @uris = ('/?performance_bar=flamegraph', '/?performance_bar=record',
            '/?performance_bar=flamegraph&profile_mode=object', '/?keep=1',
            '/refused?performance_bar=flamegraph',
            '/-/profile/cpu?seconds=0.01', '/-/profile/object?seconds=0.01',
            '/-/profile/profiles.json');

my @calls = fault_calls();
my ($messages, %flood) = (0);

for my $call (1 .. $#calls) {

    # without memory, nginx's own answers fail as well

    next if $calls[$call] =~ /alloc/;

    my $from = length(worker_log());
    my $began = time;

    fault($call);

    for my $uri (@uris) {
        http_end($_) for map { http_get($uri, start => 1) } 1 .. 12;
    }

    fault(0);

    # the system's error and values differ between messages of one type

    my %lines;
    my $seconds = 2 + int(time - $began);

    for (grep { /\[(?:warn|error|crit|alert|emerg)\]/ }
         split /\n/, substr(worker_log(), $from))
    {
        s/^.*?\] \d+#\d+: (?:\*\d+ )?//;
        s/, \d+ more not logged//;
        s/, client: .*//s;
        s/\b[0-9a-f]{32}\b|\d+/N/g;

        $lines{$_}++;
        $messages++;
    }

    for (grep { $lines{$_} > $seconds } sort keys %lines) {
        $flood{"$calls[$call]: $lines{$_} times in $seconds s: $_"} = 1;
    }
}

cmp_ok($messages, '>', 4, 'denied resources are logged');
is(join("\n", sort keys %flood), '', 'none of the messages is a flood');

like(http_get('/?performance_bar=flamegraph'), qr/200 OK/,
     'a capture works afterwards');
like(worker_log(), qr/profile: .*, \d+ more not logged/,
     'omitted messages are counted');


# lets all calls of this number fail; 0: none
sub fault {
    my ($call) = @_;

    sysseek($control, 0, SEEK_SET);
    syswrite($control, pack('L*', $call, 1, $call ? 0xffffffff : 0));
}


sub worker_log { return $t->read_file('worker.log') }
