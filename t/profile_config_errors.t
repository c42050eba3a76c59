#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core main
# runs: beside
#
# Errors in the configuration name the directive, the value, and the line.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use POSIX ();
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new();


# values: what the directive is told, what it says it takes

my $name = 'a name of letters, digits, "_" and "-", or "off"';
my $addr = 'an address, a CIDR block, "unix:" or "all"';
my $hz = 'a number of samples a second from 1 to 10000';
my $flag = '"on" or "off"';
my $size = 'a size from 128k to 1024m';
my $time = 'a time of at least 1ms';
my $count = 'a number greater than zero';
my $zone = 'a name and a size of at least 32k';
my $limits = '"max=" and a size, or "inactive=" and a time, greater than zero';

my @values = (
    profile_endpoint => $flag, [ qw/ yes true 1 ON! /, '""' ],
    profile_spans => $flag, [ qw/ yes 1 /, '""' ],
    profile_allow => $addr,
        [ qw{ localhost 127.0.0 10.0.0.0/33 ::1/129 unix unix:/tmp/s none
              10.0.0.1-10.0.0.9 300.1.1.1 }, '""', "x\xff" ],
    profile_mode => '"wall", "cpu" or "object"',
        [ qw/ objects Wall wal wallx /, '""', '$mode' ],
    profile_frequency => $hz,
        [ qw/ 0 10001 -1 1k 99Hz 1e3 99999999999999999999 /, '""' ],
    profile_format => '"speedscope"', [ qw/ xml Folded speedscop /, '""' ],
    profile_arg => $name, [ 'a=b', 'a&b', 'a b', "\xc3\xa4", '""', '$arg' ],
    profile_header => $name, [ 'X:Y', 'X Y', "X\xff", '""', '$header' ],
    profile_timeout => $time, [ qw/ 0 0s -1s 1x soon 999999999999999999y /,
                                '""' ],
    profile_buffer => $size, [ qw/ 0 127k 131071 1025m 2048m 1g -1k big
                                   99999999999999999999m /, '""' ],
    profile_object_interval => 'a size from 0 to 1024m',
        [ qw/ 1025m -1 2g all 99999999999999999999m /, '""' ],
    profile_object_grace => 'a time from 0 to 60s',
        [ qw/ 61s 60001ms -1s 1x soon /, '""' ],
    profile_max_captures => $count, [ qw/ 0 -1 many 1k 99999999999999999999 /,
                                      '""' ],
    profile_zone => $zone, [ qw/ a a: :1m a:0 a:1 a:31k a:x a:-1m 1m
                                 a:99999999999999999999 /, '""' ],
);

while (my ($directive, $takes, $values) = splice(@values, 0, 3)) {
    for my $value (@$values) {
        my $in = $value eq '""' || $value !~ /[\s;]/ ? $value : "\"$value\"";
        my $told = $value eq '""' ? '' : $value;

        config_fails("$directive $value", "$directive $in;",
                     qr/"\Q$told\E".*"\Q$directive\E".*\Q$takes\E/);
    }
}

for my $value (qw/ max=0 max= max=x max=-1 inactive=0 inactive= inactive=x
                   inactive=-1s size=1m on MAX=1m /, '""')
{
    my $told = $value eq '""' ? '' : $value;

    config_fails("profile_store $value", "profile_store store $value;",
                 qr/"\Q$told\E" in "profile_store".*\Q$limits\E/);
}

# parameters of profile_keep

my $keep = '"slow=" with a time greater than zero, "share=" with a percentage '
           . 'from 0.01% to 100%, "frequency=" with a number of samples a '
           . 'second from 1 to 250, or "rate=" with a number of profiles a '
           . 'second from 1 to 1000';

for my $value (qw/ rate=0 rate= rate=-1 rate=1001 rate=1r\/s rate=x RATE=1 rate
                   rate=99999999999999999999 10 frequency=0 frequency=251
                   frequency=x share=0% share=101% share=10 share=% share=
                   share=0.001% slow= slow=0 slow=x slow=-1s SLOW=1s /, '""')
{
    my $told = $value eq '""' ? '' : $value;

    config_fails("profile_keep 1 $value", "profile_keep 1 $value;",
                 qr/"\Q$told\E" in "profile_keep" directive.*\Q$keep\E/);
}

config_fails('a second parameter of profile_keep', 'profile_keep 1 rate=1 x;',
             qr/"x" in "profile_keep" directive/);
config_fails('profile_keep off with a parameter', 'profile_keep off rate=1;',
             qr/"rate=1" in "profile_keep" directive, "off" takes no parameters/);
config_fails('profile_keep twice', 'profile_keep 1 rate=1; profile_keep off;',
             qr/"profile_keep" directive is duplicate/);
config_fails('profile_keep without a value', 'profile_keep;',
             qr/invalid number of arguments in "profile_keep" directive/);
config_fails('profile_keep slow= with another parameter',
             'profile_keep slow=1s x;',
             qr/"x" in "profile_keep" directive.*\Q$keep\E/);

# a constant that looks like a switch or a parameter would be a true condition

for my $value (qw/ on no true 00 2 10s rate=5 share=10% frequency=99 /) {
    config_fails("profile_keep $value", "profile_keep $value;",
                 qr/condition "\Q$value\E" in "profile_keep" directive, it must/);
}

for my $value (qw/ on off 00 2 /) {
    config_fails("profile_if $value", "profile_if $value;",
                 qr/condition "$value" in "profile_if" directive, it must/);
}

# profile_turn_log

for my $value (qw/ yes 1 ON /, '""') {
    my $told = $value eq '""' ? '' : $value;

    config_fails("profile_turn_log $value", "profile_turn_log $value;",
                 qr/"$told" in "profile_turn_log".*"on" or "off"/);
}

config_fails('profile_turn_log off with a parameter',
             'profile_turn_log off size=1m;',
             qr/"size=1m" in "profile_turn_log".*only "on" takes/);

for my $value (qw/ size= size=0 size=63k size=1025m size=x 1m SIZE=1m /) {
    config_fails("profile_turn_log on $value", "profile_turn_log on $value;",
                 qr/"$value" in "profile_turn_log".*from 64k to 1024m/);
}

config_fails('profile_turn_log twice',
             'profile_turn_log on; profile_turn_log off;',
             qr/"profile_turn_log" directive is duplicate/);

# parameters of profile_continuous

for my $value (qw/ frequency=0 frequency=101 frequency=x frequency= slice=999ms
                   slice=61s slice= slice=x merge=0 merge=8d keep=0 keep=8d
                   keep=x size=31k size=x size= wall=yes wall= FREQUENCY=1 10 /,
               '""')
{
    my $told = $value eq '""' ? '' : $value;

    config_fails("profile_continuous on $value",
                 "profile_continuous on $value;",
                 qr/"\Q$told\E" in "profile_continuous" directive.*"slice="/);
}

config_fails('profile_continuous off with a parameter',
             'profile_continuous off slice=1s;',
             qr/"off" in "profile_continuous" directive, it must be "on"/);
config_fails('profile_continuous twice',
             'profile_continuous on; profile_continuous off;',
             qr/"profile_continuous" directive is duplicate/);

for my $value (qw/ locations=0 locations= locations=-1 locations=10001
                   locations=x LOCATIONS=1 10 /, '""')
{
    my $told = $value eq '""' ? '' : $value;

    config_fails("profile_metrics $value",
                 "location / { profile_metrics $value; }",
                 qr/"\Q$told\E" in "profile_metrics".*"locations=" with a number/);
}

config_fails('profile_metrics twice',
             'location / { profile_metrics; profile_metrics; }',
             qr/"profile_metrics" directive is duplicate/);
config_fails('profile_metrics in a server', 'profile_metrics;',
             qr/"profile_metrics" directive is not allowed here/);

# the size of the zone of stalls

my $stalls = 16 * POSIX::sysconf(POSIX::_SC_PAGESIZE());

config_fails('a path that is too long', 'profile_store ' . 'a' x 4090 . ';',
             qr/the path in "profile_store" directive is longer than \d+ bytes/);
config_fails('the path of something else',
             'proxy_cache_path store keys_zone=z:1m; profile_store store;',
             qr/the same path name ".*store" used in/);
config_fails('the zone of something else',
             'limit_req_zone $uri zone=z:1m rate=1r/s; profile_zone z:1m;',
             qr/zone "z" is already declared for a different use/, 1);
config_fails('the zone of the continuous profile',
             'profile_zone ngx_http_profile_slices:8m; profile_continuous on;',
             qr/the zone "ngx_http_profile_slices" is already used by another/,
             1);
config_fails('the zone of stalls',
             "profile_zone ngx_http_profile_stalls:$stalls; "
             . 'profile_stall_threshold 1s;',
             qr/the zone "ngx_http_profile_stalls" is already used by another/,
             1);

config_fails('a header that nginx reads', 'profile_header host;',
             qr/"host" in "profile_header" directive, nginx itself uses/);
config_fails('a header that nginx reads', 'profile_header User-Agent;',
             qr/"User-Agent" in "profile_header" directive/);


# twice; profile_allow makes a list

for my $line ('profile_endpoint on', 'profile_if 1', 'profile_mode cpu',
              'profile_frequency 10', 'profile_format folded',
              'profile_arg a', 'profile_arg off', 'profile_header b',
              'profile_header off', 'profile_spans on',
              'profile_timeout 1s', 'profile_buffer 1m',
              'profile_object_interval 0', 'profile_object_grace 1s',
              'profile_max_captures 5', 'profile_zone a:1m',
              'profile_store store')
{
    my ($directive) = split(/ /, $line);

    config_fails("$line, twice", "$line; $line;",
                 qr/"\Q$directive\E" directive is duplicate/);
}


# number of arguments

for my $directive (qw/ profile_endpoint profile_if profile_mode
                       profile_frequency profile_format profile_arg
                       profile_header profile_spans profile_timeout
                       profile_buffer profile_object_interval
                       profile_object_grace profile_max_captures
                       profile_zone /)
{
    my $re = qr/invalid number of arguments in "\Q$directive\E" directive/;

    config_fails("$directive without a value", "$directive;", $re);
    config_fails("$directive with two values", "$directive 1 2;", $re);
}

config_fails('profile_allow without a value', 'profile_allow;',
             qr/invalid number of arguments in "profile_allow" directive/);


# variables

config_fails('an unknown variable', 'profile_if $no_such_variable;',
             qr/unknown "no_such_variable" variable/, 1);
config_fails('half a variable', 'profile_if "${a";', qr/"a" variable/);


# contexts

for my $directive (qw/ profile_frequency profile_arg profile_header
                       profile_spans profile_buffer profile_max_captures
                       profile_zone profile_store /)
{
    config_fails("$directive in a location",
                 "location / {\n\n $directive 1; }",
                 qr/"\Q$directive\E" directive is not allowed here/, 0, 2);
}

config_fails('profile_max_captures in a server', 'profile_max_captures 1;',
             qr/"profile_max_captures" directive is not allowed here/);
config_fails('profile_endpoint in an if', 'if ($args) { profile_endpoint on; }',
             qr/"profile_endpoint" directive is not allowed here/);
config_fails('profile_endpoint in an if in a location',
             'location / { if ($args) { profile_endpoint on; } }',
             qr/"profile_endpoint" directive is not allowed here/);
config_fails('profile_endpoint in limit_except',
             'location / { limit_except GET { profile_endpoint on; } }',
             qr/"profile_endpoint" directive is not allowed here/);

my ($status, $out) = $t->test_config(<<'EOF');
%%MODULES%%
profile_endpoint on;
events { }
EOF

isnt($status, 0, 'profile_endpoint outside of http fails');
like($out, qr/emerg.*"profile_endpoint" directive is not allowed here in .*:/,
     'the error names profile_endpoint outside of http');


sub config_fails {
    my ($name, $lines, $re, $no_line, $more) = @_;

    my $context = $lines =~ /^(?:profile_(?:max_captures|zone|store|continuous
                                           |turn_log)
                               |proxy_cac
                               |limit_req_zone)/x
                  && $re !~ /not allowed/ ? 'http' : 'server';

    my $config = <<'EOF';
%%MODULES%%
events { }
http {
    profile_endpoint on;
EOF

    $config .= $context eq 'http' ? "$lines\nserver { }\n}\n"
                                  : "server {\n$lines\n}\n}\n";

    my ($status, $out) = $t->test_config($config);
    my ($before) = $t->expand($config) =~ /^(.*?)\Q$lines\E/s;
    my $line = 1 + ($before =~ tr/\n//) + ($more // 0);

    isnt($status, 0, "$name fails") or return;
    like($out, qr/\[emerg\] .*$re/, "$name: the error is logged");
    like($out, qr/test\.conf:$line$/m, "$name, line") unless $no_line;
}
