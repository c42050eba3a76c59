#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside
#
# A process that serves requests never calls a function of another module or of
# an interpreter to learn about it.  A preloaded library notes each such call of
# the profiler, with its process, while requests wait and run in Lua, njs and
# Perl, and are captured in all modes.  Only the child processes that learn the
# layout of an interpreter call it.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;
use ProfileTest::Preload;

my $t = ProfileTest->new()->has(qw/ lua js perl /);

$t->skip_all('sanitizers and a preloaded library') if $t->sanitizers();
$t->skip_all('the stubs are for x86-64') if `uname -m` !~ /^x86_64$/;
$t->skip_all('the module is linked into nginx') if $t->{module} eq '';

# workers write as another user

my $calls = $t->testdir() . '/calls';

$t->write_file('calls', '');
chmod 0666, $calls;

my $so = build_preload($t, 'prof_calls');

$t->write_file('Waits.pm', <<'EOF');
package Waits;

use nginx;

sub handler { my $r = shift; $r->sleep(50, \&awake); return OK; }

sub awake {
    my $r = shift;
    my $n = 0;

    $n += $_ for 1 .. 200_000;
    $r->send_http_header('text/plain');
    $r->print("$n\n");

    return OK;
}

1;
EOF

$t->write_file('main.js', <<'EOF');
function handler(r) {
    let n = 0;
    for (let i = 0; i < 100000; i++) { n += i % 7; }
    setTimeout(function() { r.return(200, `${n}\n`); }, 50);
}

export default { handler };
EOF

$t->write_file('app.lua', <<'EOF');
local app = {}

function app.nap(seconds)
    ngx.sleep(seconds)
end

function app.work()
    local x = 0
    for i = 1, 3000000 do x = x + i % 7 end
    return x
end

function app.threads()
    local threads = {}
    for i = 1, 3 do
        threads[i] = ngx.thread.spawn(function() app.nap(0.02 * i) end)
    end
    for i = 1, 3 do ngx.thread.wait(threads[i]) end
    coroutine.wrap(function() app.nap(0.05) end)()
end

return app
EOF

$t->conf(<<'EOF', workers => 2);
lua_package_path "%%TESTDIR%%/?.lua;/usr/share/lua/5.1/?.lua;;";
init_by_lua_block { app = require "app" }

js_path %%TESTDIR%%;
js_import main from main.js;

perl_modules %%TESTDIR%%;
perl_require Waits.pm;

profile_accounting on;
profile_keep $arg_keep rate=1000;
profile_continuous on;
profile_stall_threshold 100ms;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;

    location = /lua {
        content_by_lua_block {
            app.work() app.nap(0.1) app.threads() ngx.say("lua")
        }
    }

    location = /js { js_content main.handler; }
    location = /perl { perl Waits::handler; }

    location /-/profile/ { profile_console; }
}
EOF

{
    local $ENV{PROF_CALLS} = $calls;
    local $ENV{LD_PRELOAD} = $so;

    $t->run();
}

###############################################################################

my @serving = ($t->{pid}, $t->worker_pids());

for my $uri (qw/ lua js perl /) {
    for my $mode (qw/ wall cpu object /) {
        like(http_get("/$uri?performance_bar=flamegraph&profile_mode=$mode"
                      . '&profile_format=folded')->status(), qr/^200$/,
             "$uri: a profile, $mode");
    }

    http_get("/$uri?performance_bar=record");
    http_get("/$uri?keep=1");
}

my $folded = http_get('/lua?performance_bar=flamegraph&profile_format=folded')
             ->body();

like($folded, qr/script timer;[^\n]*app\.lua:4 nap;sleep /,
     'a gap has the script that waits');

my @clients = map { http_get("/$_", start => 1) } qw/ lua js perl /;
like(http_get('/-/profile/wall?seconds=1&format=folded')->status(), qr/^200$/,
     'all workers are captured');
http_end($_) for @clients;

my $status = decode_json(http_get('/-/profile/status.json')->body());

is($status->{scripts}{lua_in_gaps}, 'shown', 'Lua is shown in gaps');
is($status->{scripts}{LuaJIT}, 'on', 'LuaJIT is on');
like($status->{scripts}{Perl}, qr/^on/, 'Perl is on');

$t->reload();
http_get("/$_?performance_bar=flamegraph") for qw/ lua js perl /;

push @serving, $t->worker_pids();

###############################################################################

my %calls;
$calls{$_->[0]}{$_->[1]}++
    for map { [ split ] } split(/\n/, $t->read_file('calls'));

is_deeply([ map { keys %{$calls{$_} || {}} } @serving ], [],
          'the master and the workers call no function of another module');

my %trials = map { $_ => 1 } map { keys %{$calls{$_}} } keys %calls;

ok($trials{lua_getinfo}, 'a child process calls LuaJIT');
ok((grep { /^njs_/ } keys %trials), 'a child process calls njs');

###############################################################################
