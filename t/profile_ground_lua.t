#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside
#
# The module beside an ngx_lua whose structures have more members than the one
# of the package.  Where the structures are recognized, gaps have the stack of
# the Lua code that waits; otherwise a line in the log and the status page say
# that they are not.  Responses never change.
#
# PROFILE_TEST_LUA is a directory with one such module in each file:
# fits-NAME.so, whose structures are recognized, and off-NAME.so.  They are made
# by "tools/build-nginx lua DIR", which takes some minutes.

use strict;
use warnings;

use File::Basename qw/ basename /;
use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua /);

my $dir = $ENV{PROFILE_TEST_LUA} // '';
my @modules = glob("$dir/{fits,off}-*.so");

$t->skip_all('no other builds of ngx_lua in PROFILE_TEST_LUA')
    if $dir eq '' || @modules == 0;

my $conf = <<'EOF';
lua_package_path "%%TESTDIR%%/?.lua;/usr/share/lua/5.1/?.lua;;";

init_by_lua_block {
    function nap(seconds) ngx.sleep(seconds) end
}

%%HTTP%%

server {
    listen 127.0.0.1:8080;

    location = /sleep { content_by_lua_block { nap(0.01) ngx.say("awake") } }

    location = /threads {
        content_by_lua_block {
            local a = ngx.thread.spawn(nap, 0.01)
            local b = ngx.thread.spawn(nap, 0.02)
            ngx.thread.wait(a)
            ngx.thread.wait(b)
            coroutine.wrap(function() nap(0.01) end)()
            ngx.say("joined")
        }
    }

    location = /capture {
        content_by_lua_block {
            ngx.say(ngx.location.capture("/sleep").body)
        }
    }

    %%SERVER%%
}
EOF

my @uris = qw{ /sleep /threads /capture };

for my $module (@modules) {
    my ($fits, $name) = basename($module) =~ /^(fits|off)-(.*)\.so$/;

    run($module, 0);
    my @without = map { body($_) } @uris;
    $t->stop();

    run($module, 1);

    my @with = map { body($_) } @uris;
    my $stacks = '';

    for (1 .. 12) {
        http_get("$_?performance_bar=record") for @uris;
        $stacks = http_get('/sleep?performance_bar=flamegraph'
                           . '&profile_format=folded')->body();
    }

    is_deeply([ @with, map { body($_) } @uris ], [ @without, @without ],
              "$name: the responses are those without the module");

    my $state = decode_json(http_get('/-/profile/status.json')->body())
                ->{scripts}{lua_in_gaps};
    my @lines = $t->read_log() =~ /(Lua code that waits is not shown.*)/g;

    if ($fits eq 'fits') {
        is($state, 'shown', "$name: the status page says that stacks are shown");
        like($stacks,
             qr/script timer;[^;\n]+:1 main chunk;[^;\n]+:2 nap;sleep /,
             "$name: a gap has the stack") or diag($stacks);
        is(scalar(@lines), 0, "$name: no line in the log");

    } else {
        like($state, qr/^off: the structures of ngx_http_lua_module/,
             "$name: the status page says that stacks are off");
        like($stacks, qr/script timer /, "$name: a gap has its cause")
            or diag($stacks);
        is(scalar(@lines), 1, "$name: one line in the log");
    }

    $t->stop();
    unlike($t->read_log(), qr/\[(?:alert|crit|emerg)\]/, "$name: no crash");
}

###############################################################################

sub run {
    my ($module, $with) = @_;

    my $text = $conf;
    my ($http, $server) = $with ? ('profile_endpoint on; profile_max_captures 100;',
        'location /-/profile/ { profile_console; }') : ('', '');

    $text =~ s/%%HTTP%%/$http/;
    $text =~ s/%%SERVER%%/$server/;

    $t->{dynamic}{lua} = $module;
    $t->conf($text);
    $t->run();
}


sub body {
    my ($uri) = @_;

    return http_get($uri)->body();
}
