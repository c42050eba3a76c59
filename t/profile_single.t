#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: main
# runs: beside

# Reloads with "master_process off".  The process gets another configuration
# in the middle of a capture.  nginx does not accept connections then, since it
# prepares no connections for the new configuration; requests on connections
# that are open go on with the configuration that these began with.  All of
# them are answered, whatever arguments, phases and accounting are new.

use strict;
use warnings;

use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua /)
                          ->allow(qr/worker_connections are not enough/);

my $text = <<'EOF2';

%%MODULES%%
%%GLOBALS%%

master_process off;

events {
}

http {
    %%GLOBALS_HTTP%%

    %%HTTP%%

    server {
        listen 127.0.0.1:8080;

        profile_format speedscope;
        %%SERVER%%

        location / { }

        location /sleeps {
            content_by_lua_block {
                for i = 1, 60 do ngx.sleep(0.01) end
                ngx.print("slept")
            }
        }

        location /stalls {
            content_by_lua_block {
                local x = os.clock()
                while os.clock() - x < 0.03 do end
                ngx.sleep(0.3)
                x = os.clock()
                while os.clock() - x < 0.03 do end
                ngx.print("stalled")
            }
        }

        location /lua {
            %%LUA%%
            content_by_lua_block { ngx.sleep(0.3) ngx.print("lua") }
        }
    }
}

EOF2

my $lua = 'access_by_lua_block { ngx.sleep(0.01) }';
my $long = 'profile_arg a_name_that_is_longer_than_the_default;';

# the directives of http, server and location

my @rounds = (
    [ 'no profiles, and no phase of Lua', '', '', '' ],
    [ 'a longer name of the argument', '', "profile_endpoint on; $long", '' ],
    [ 'a shorter name', '', 'profile_endpoint on; profile_arg p;', $lua ],
    [ 'accounting', 'profile_accounting on;', 'profile_endpoint on;', '' ],
    [ 'no accounting', '', 'profile_endpoint on;', $lua ],
);

# only the first configuration has this shared memory

my $http = 'profile_context on; profile_keep 1; profile_zone profiles:1m; '
           . 'profile_stall_threshold 10ms;';
my $server = 'profile_endpoint on; profile_bar on; '
             . 'location /-/profile/ { profile_console; }';

$t->write_file('page', "page\n");
$t->write_file('page.html', "<html><body>page</body></html>\n");
configure($http, $server, $lua);
$t->run();

my $s = http_get('/page', start => 1, keepalive => 1);
is(http_end($s)->body(), "page\n", 'a connection gets a page');

# nginx frees shared memory that a new configuration does not have, or has with
# another size; requests of the connection use what their configuration has

for my $round (
    [ 'another size of the store', $http =~ s/1m/2m/r, $server ],
    [ 'no shared memory', '', '' ],
    [ 'shared memory again', $http, $server ],
    [ 'and again none', '', '' ],
)
{
    my ($what, @conf) = @$round;

    http_get('/stalls', socket => $s, keepalive => 1, start => 1);
    select undef, undef, undef, 0.1;

    my $reloads = reloads();
    configure(@conf, '');
    kill 'HUP', $t->{pid};
    ok(wait_for(sub { reloads() > $reloads }), "$what: the reload is done");

    is(http_end($s)->body(), 'stalled', "$what: the request is answered");

    like(http_get('/page.html', socket => $s, keepalive => 1,
                  headers => [ 'Accept: text/html' ])->body(),
         qr/<body>page/, "$what: the connection gets a page");
    ok(wait_for(sub {
        http_get('/-/profile/profiles.json', socket => $s, keepalive => 1)
            ->body() =~ /"uri": *"\/stalls"/
    }), "$what: the request is stored");
    like(http_get('/-/profile/status.json', socket => $s, keepalive => 1)
             ->status(),
         qr/^(?:200|503)$/,
         "$what: the status is answered, or has no captures");
}

configure('profile_keep 1;', 'profile_endpoint on;', $lua);

# after some turns the notes of profile_keep become a capture

for my $keep ('', 'profile_keep 1;') {
    my $what = $keep ? 'notes again' : 'notes, but no watch';

    http_get('/sleeps', socket => $s, keepalive => 1, start => 1);
    select undef, undef, undef, 0.1;

    my $reloads = reloads();
    configure($keep, 'profile_endpoint on;', $lua);
    kill 'HUP', $t->{pid};
    ok(wait_for(sub { reloads() > $reloads }), "$what: the reload is done");

    is(http_end($s)->body(), 'slept', "$what: the request is answered");
}

for my $round (@rounds) {
    my ($what, @conf) = @$round;

    http_get('/lua?performance_bar=flamegraph', socket => $s, keepalive => 1,
             start => 1);
    select undef, undef, undef, 0.1;

    my $reloads = reloads();
    configure(@conf);
    kill 'HUP', $t->{pid};
    ok(wait_for(sub { reloads() > $reloads }), "$what: the reload is done");

    my $r = http_end($s);

    is($r->status(), 200, "$what: the request beside it is answered");
    like($r->body(), qr/^lua$|"profile_info"/,
         "$what: the answer is a profile or the usual response");
    is(http_get('/page', socket => $s, keepalive => 1)->body(), "page\n",
       "$what: the next request is answered");

    is(http_get('/page?performance_bar=x', socket => $s, keepalive => 1)
           ->status(),
       400, "$what: the name of its own configuration is found")
        if $conf[1] =~ /profile_endpoint/;
}

# a configuration without "http"

configure($http, $server, $lua);
my $before = reloads();
kill 'HUP', $t->{pid};
ok(wait_for(sub { reloads() > $before }),
   'a reload adds the whole configuration');

http_get('/stalls?performance_bar=flamegraph', socket => $s, keepalive => 1,
         start => 1);
select undef, undef, undef, 0.1;

$before = reloads();
$t->write_file_expand('nginx.conf', <<'EOF2');
%%MODULES%%
%%GLOBALS%%
master_process off;
events {
}
EOF2
kill 'HUP', $t->{pid};
ok(wait_for(sub { reloads() > $before }), 'a reload removes "http"');

like(http_end($s)->body(), qr/^stalled$|"profile_info"/,
     'no "http": the request is answered');
like(http_get('/-/profile/status.json', socket => $s, keepalive => 1)
         ->status(), qr/^(?:200|503)$/, 'no "http": the status is answered');
is(http_get('/lua?performance_bar=flamegraph', socket => $s, keepalive => 1)
       ->status(), 200, 'no "http": a request with a trigger is answered');
is(http_get('/page', socket => $s, keepalive => 1)->body(), "page\n",
   'no "http": the next request is answered');

ok(kill(0, $t->{pid}), 'the process lives');


sub configure {
    my ($http, $server, $location) = @_;

    $t->write_file_expand('nginx.conf', $text =~ s/%%HTTP%%/$http/r
                                              =~ s/%%SERVER%%/$server/r
                                              =~ s/%%LUA%%/$location/r);
}


# each ends with a line that names the method of the new configuration
sub reloads { return () = $t->read_log() =~ /using the "\w+" event method/g }
