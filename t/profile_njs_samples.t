#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside
#
# Samples of requests that njs code serves have the functions of the script,
# with their lines, between the native frames that run them.  The script is
# known, so each stack is compared with the calls that are possible: a function
# has no caller but those of the script, and the line of a caller has the call.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ js /);

my $script = <<'END';
function leaf(n) {
    let x = 0;
    for (let i = 0; i < n; i++) {
        x += i % 7;
    }
    return x;
}

function one(i) { return i + 1; }
function two(i) { return one(i) + 1; }

function calls(n) {
    let s = 0;
    for (let i = 0; i < n; i++) {
        s += one(two(one(i)));
    }
    return s;
}

function fib(n) {
    if (n < 2) {
        return n;
    }
    return fib(n - 1)
           + fib(n - 2);
}

let object = {
    get value() { return leaf(3); },
    toString() { return 'v' + one(1); }
};

function getter(n) {
    let s = 0;
    for (let i = 0; i < n; i++) {
        s += object.value;
        s += `${object}`.length;
    }
    return s;
}

function compare(a, b) {
    return a
           - b;
}

function sorts(n) {
    let a = [];
    for (let i = 0; i < n; i++) {
        a.push(i * 7919 % 1009);
    }
    a.sort(compare);
    return a[0];
}

function inserted(m) {
    return m + m;
}

function replaces(n) {
    let s = 'abcabc'.repeat(10);
    for (let i = 0; i < n; i++) {
        s.replace(/b/g, inserted);
    }
}

function thrower(i) {
    throw new Error('e' + i);
}

function catches(n) {
    for (let i = 0; i < n; i++) {
        try {
            thrower(i);
        } catch (e) {
            leaf(2);
        }
    }
}

function makes(n) {
    let s = 0;
    for (let i = 0; i < n; i++) {
        let f = () => i + s;
        s = f();
    }
    return s;
}

async function later(n) {
    await 1;
    leaf(n);
    await 2;
    calls(n / 10);
}

async function all(r) {
    leaf(20000);
    calls(5000);
    fib(16);
    getter(3000);
    sorts(2000);
    replaces(100);
    catches(1000);
    makes(5000);
    await later(10000);
    r.return(200, 'done');
}

function short() { return leaf(30000); }
function long() { return leaf(300000); }

function times(r) {
    short();
    long();
    r.return(200, 'done');
}

function stack() {
    leaf(100000);
    try {
        throw new Error('here');
    } catch (e) {
        return e.stack;
    }
}

function middle() { return stack(); }

function own(r) {
    let text = middle();
    r.return(200, text);
}

function timer(r) {
    setTimeout(() => {
        leaf(100000);
        r.return(200, 'done');
    }, 10);
}

function header(r) {
    leaf(60000);
    r.headersOut['X-Leaf'] = 'set';
}

function body(r, data, flags) {
    leaf(60000);
    r.sendBuffer(data, flags);
}

function variable(r) {
    return leaf(60000);
}

function allocate(r) {
    let list = [];
    for (let i = 0; i < 20000; i++) {
        list.push({ value: i });
    }
    r.return(200, `${list.length}`);
}

export default { all, times, own, timer, header, body, variable, allocate };
END

$t->write_file('main.js', $script);

# a bundle: one sample does not look at all its functions

my $inner = 'function unused(n) { return n; }' x 100;

$t->write_file('many.js',
               join('', map { "function f$_() { $inner }\n" } 1 .. 60) . <<'END');
function last(n) {
    let x = 0;
    for (let i = 0; i < n; i++) {
        x += i % 7;
    }
    return x;
}

function content(r) {
    r.return(200, `${last(200000)}`);
}

export default { content };
END

$t->conf(<<'EOF');
js_path %%TESTDIR%%;
js_import main.js;
js_set $leaf main.variable;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /all { js_content main.all; }
    location /times { js_content main.times; }
    location /own { js_content main.own; }
    location /timer { js_content main.timer; }
    location /allocate { js_content main.allocate; }
    location /many {
        js_import many.js;
        js_content many.content;
    }

    location /filter {
        js_header_filter main.header;
        js_body_filter main.body;
        return 200 "body\n";
    }

    location /variable {
        return 200 "$leaf\n";
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

my ($state) = http_get('/-/profile/status.json')->body() =~ /"njs":"(.*?)"/;

# samples of an unknown version have the functions in C

if ($state =~ /^off: this version is not known/) {
    my @stacks = stacks('/times', 'wall');

    ok(scalar(grep { "@{$_->[0]}" =~ /ngx_http_js_module/ } @stacks),
       'njs of an unknown version: samples have its functions in C');
    ok(!grep({ "@{$_->[0]}" =~ /main\.js/ } @stacks),
       'njs of an unknown version: samples have no functions of the script');
    is(http_get('/all')->body(), 'done',
       'njs of an unknown version: the script runs');
    exit;
}

###############################################################################

my @text = (undef, split(/\n/, $script));
my @function = functions(@text);

# code that calls a function without its name

my %call = (
    anonymous => qr/f\(\)|object/,
    compare => qr/sort\(/,
    inserted => qr/replace\(/,
);

# the code of the file itself, which runs in each request

my $outermost = qr/^(?:all|later|module|main)$/;

my %samples = (script => 0, line => 0);
my %wrong;

http_get('/all');

for (1 .. 40) {
    count($_) for stacks('/all?profile_frequency=10000', 'wall');
}

diag("$wrong{$_}: $_") for keys %wrong;

is_deeply([ keys %wrong ], [], 'no stack has a wrong function or line');
cmp_ok($samples{line}, '>', 0.8 * $samples{script}, 'functions have lines');

# the lines and functions that njs itself tells

my $own = http_get('/own')->body();
my @own = $own =~ /^\s+at (\w+) \(\S*main\.js:(\d+)\)/mg;
my @expected = reverse map { "main.js:$own[2 * $_ + 1] $own[2 * $_]" } 1, 2;

is_deeply([ @own[0, 2, 4] ], [ qw/ stack middle own / ], 'njs tells its stack');

for my $mode (qw/ wall cpu /) {
    my @all = grep { $_->[0] =~ / leaf(?:;|$)/ } folded('/own', $mode);
    my $chain = join(';(?:[^;]*;)*?', map { quotemeta } @expected);

    my $sum = sum(@all);

    cmp_ok($sum, '>', 0, "$mode: samples have the function");
    cmp_ok(sum(grep { $_->[0] =~ /$chain/ } @all), '>', 0.95 * $sum,
           "$mode: its callers have the lines that njs tells");
}

my @times = folded('/times', 'cpu');
my @script = grep { $_->[0] =~ /js_content.*ngx_http_js_module/ } @times;

cmp_ok(sum(grep { $_->[0] =~ /main\.js:[1-6] leaf(?:;|$)/ } @script), '>',
       0.9 * sum(@script), 'samples in njs have the function that runs');

cmp_ok(sum(grep { $_->[0] =~ /main\.js:\d+ long;/ } @times), '>',
       3 * sum(grep { $_->[0] =~ /main\.js:\d+ short;/ } @times),
       'a loop of ten times the length has more of the time');

for my $case ([ '/timer', 'anonymous' ], [ '/filter', 'header' ],
              [ '/filter', 'body' ], [ '/variable', 'variable' ])
{
    my ($uri, $name) = @$case;

    cmp_ok(sum(grep { $_->[0] =~ /main\.js:\d+ $name;.*main\.js:\d+ leaf/ }
                    folded($uri, 'wall')),
           '>', 0, "$uri: samples have $name() and the function it calls");
}

my @many = grep { $_->[0] =~ /ngx_http_js_module/ } folded('/many', 'wall');

cmp_ok(sum(grep { $_->[0] =~ /many\.js:\d+ content;.*many\.js:\d+ last/ } @many),
       '>', 0.5 * sum(@many), 'functions of a script with 6,000 functions');

my @memory = folded('/allocate', 'object');

cmp_ok(sum(grep { $_->[0] =~ /main\.js:\d+ allocate/ } @memory), '>', 0,
       'allocations have the function of the script');

is($state, 'on', 'the status page tells the state of the engine of njs');

###############################################################################

# the function of each line; methods of an object have no name

sub functions {
    my @lines = @_;
    my ($name, @names);

    for my $n (1 .. $#lines) {
        $name = $1 if $lines[$n] =~ /^(?:async )?function (\w+)/;
        $names[$n] = $name // 'anonymous';
        $name = undef if $lines[$n] =~ /^\}|\}$/ && $lines[$n] !~ /^ /;
    }

    return @names;
}


sub count {
    my ($stack) = @_;
    my ($frames, $value) = @$stack;

    my @frames = map { /^main\.js(?::(\d+))? (.*)/ ? [ $2, $1 ] : () } @$frames;

    return unless @frames;

    $samples{script} += $value;
    $samples{line} += $value unless grep { !defined $_->[1] } @frames;

    my $why = wrong(@frames);
    return unless $why;

    $wrong{"$why in " . join(';', @$frames)} += $value;
}


# returns what is wrong in the frames, the outermost one first

sub wrong {
    my @frames = @_;

    return "$frames[0][0] is outermost" if $frames[0][0] !~ $outermost;

    for my $i (0 .. $#frames) {
        my ($name, $line) = @{$frames[$i]};

        return "line $line in $name"
            if defined $line && $name !~ /^(?:anonymous|module|main)$/
               && $function[$line] ne $name;

        next if $i == $#frames || !defined $line;

        my $callee = $frames[$i + 1][0];
        my $call = $call{$callee} // qr/\b$callee\(/;

        return "line $line of $name calls $callee" if $text[$line] !~ $call;
    }

    return;
}


sub stacks {
    my ($uri, $mode) = @_;

    return profile_get($uri)->profile($mode)->stacks();
}


sub folded {
    my ($uri, $mode) = @_;

    my $p = profile_get("$uri?profile_mode=$mode&profile_frequency=5000");

    return map { [ join(';', @{$_->[0]}), $_->[1] ] }
           $p->profile($mode eq 'object' ? 'alloc_space' : $mode)->stacks();
}


sub sum {
    my $sum = 0;

    $sum += $_->[1] for @_;

    return $sum;
}
