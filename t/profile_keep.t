#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: keep
# runs: beside

# profile_keep: of all requests only those are kept for which the condition is
# true when they are logged, with their causes of waiting and their samples.

use strict;
use warnings;

use List::Util qw/ sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()->has(qw/ lua proxy rewrite /);

$t->conf(<<'EOF');
log_format keep '$request_uri id=$profile_id '
                 'samples=$profile_samples time=$request_time '
                 'dropped=$profile_dropped';
access_log %%TESTDIR%%/keep.log keep;

map $request_time $slow {
    "~^0\.[01]"  0;
    default      1;
}

map $status $failed {
    "~^5"    1;
    default  0;
}

server {
    listen 127.0.0.1:8080;
    profile_keep $slow$failed frequency=200 rate=1000;

    location / { }

    location /upstream {
        proxy_pass http://127.0.0.1:8081/wait=300/;
    }

    location /held {
        proxy_pass http://127.0.0.1:8081/hold=among/;
    }

    location /busy {
        content_by_lua_block {
            local till = os.clock() + (ngx.var.arg_for or 0.4)
            while os.clock() < till do end
            ngx.say("was busy")
        }
    }

    location /sleeps {
        content_by_lua_block {
            for i = 1, tonumber(ngx.var.arg_times) do
                ngx.sleep(ngx.var.arg_each)
            end

            ngx.say("slept")
        }
    }

    # stacks of the first are what the second one's must not push out

    location /first {
        content_by_lua_block {
            local data = string.rep("x", 100000)
            local till = os.clock() + 0.3
            while os.clock() < till do ngx.md5_bin(data) end
            ngx.say("was busy")
        }
    }

    location /deep {
        content_by_lua_block {
            local till = os.clock() + 2.5

            local function deep(n)
                if n == 0 then
                    while os.clock() < till do end
                    return
                end

                string.gsub("x", "x", function() deep(n - 1) end)
            end

            deep(150)
            ngx.say("was deep")
        }
    }

    location /failed {
        return 503;
    }

    location /-/profile/ {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8082;
    profile_keep 1 share=50% rate=1000;

    location / { }
}

server {
    listen 127.0.0.1:8084;
    profile_keep 1 rate=1000;

    location / { }

    location /-/profile/ {
        profile_console;
    }
}

server {
    listen 127.0.0.1:8083;
    profile_endpoint on;

    location / { }
}
EOF

# the maps have the values "0" and "1"; "00" means that nothing is kept

(my $conf = $t->read_file('nginx.conf')) =~ s/\$slow\$failed/\$keep/;
$conf =~ s/(map \$request_time)/map \$slow\$failed \$keep {
        "00"     0;
        default  1;
    }

    $1/;
$t->write_file('nginx.conf', $conf);

$t->write_file('text', 'x' x 1000);
run_upstream($t, 8081);
$t->run();

is(http_get('/text?fast')->status(), 200, 'a fast request is answered');
is(id_of('/text?fast'), '-', 'a fast request is not kept');

is(http_get('/upstream?slow')->status(), 200, 'a slow request is answered');
my $id = id_of('/upstream?slow');
like($id, qr/^[0-9a-f]{32}$/, 'a slow request is kept');

my $p = kept($id);
cmp_ok(below($p, qr/^\[waiting\];upstream first byte 127\.0\.0\.1:\d+$/), '>=',
       0.28e9, 'the profile shows the wait for the upstream');
cmp_ok(below($p, qr/^\[waiting\];unknown/), '<=', 0.003e9,
       'the profile shows no wait without a cause');
cmp_ok(below($p, qr/^event: client/), '>', 0,
       'the profile shows the first turn');
cmp_ok(below($p, qr/^event: upstream/), '>', 0,
       'the profile shows the turns of the upstream');
is(abs(below($p, qr/./) / 1e9 - 0.3) < 0.15, 1,
   'the profile contains the whole request');

is(http_get('/failed')->status(), 503, 'a failed request is answered');
like(id_of('/failed'), qr/^[0-9a-f]{32}$/, 'a failed request is kept');

is(http_get('/busy')->status(), 200, 'a busy request is answered');
$id = id_of('/busy');
$p = kept($id);
cmp_ok(below($p, qr/^event: client/), '>=', 0.38e9,
       'the profile shows the busy turn');
cmp_ok(below($p, qr/^event: client;.*;ngx_http_lua_run_thread;/), '>=', 0.2e9,
       'the busy turn has samples in Lua') or diag($p);
cmp_ok(line_of('/busy')->{samples}, '>=', 5,
       'the busy turn has several samples');


# beside other requests

my $waiting = http_get('/held', start => 1);
sleep 0.1;
my $busy = http_get('/busy?for=1&other', start => 1);
sleep 0.05;
upstream_release($t, 'among');
http_end($_) for $waiting, $busy;

$p = kept(id_of('/held'));
cmp_ok(below($p, qr/^\[waiting\];worker (?:busy|without)/), '>=',
       0.1e9, 'the time in which another request stalls is a gap');
cmp_ok(below($p, qr/^\[waiting\];worker (?:busy|without)[^;]*;.*lua/), '>=',
       0.08e9, 'the gap shows the code that stalled') or diag($p);
unlike($p, qr/busy\?other|\/busy/, 'the gap does not name the other request');


# more turns than are noted before a capture is made of them

for my $times (11, 22 .. 26, 47 .. 49) {
    my $uri = "/sleeps?times=$times&each=0.02";

    is(http_get($uri)->status(), 200,
       "a request with $times turns is answered");

    $p = kept(id_of($uri));

    my $slept = below($p, qr/^\[waiting\];script timer/);
    my $all = below($p, qr/./);

    cmp_ok($slept, '>=', $times * 0.019e9,
           "the profile of $times turns contains all gaps");
    cmp_ok(abs($all / 1e9 - line_of($uri)->{time}), '<=', 0.002,
           "the profile of $times turns contains the whole request");
}


# the stacks of a gap are kept in spite of later samples

$waiting = http_get('/sleeps?times=6&each=0.05', start => 1);
sleep 0.02;
http_end(http_get($_, start => 1)) for '/first', '/deep';
http_end($waiting);

$p = kept(id_of('/sleeps?times=6&each=0.05'));

cmp_ok(below($p, qr/^\[waiting\];worker (?:busy|without)[^;]*;.*md5/i), '>=', 0.15e9,
       'stacks of the first stall are not lost') or diag($p);
cmp_ok(below($p, qr/^\[waiting\];worker (?:busy|without)[^;]*(;[^;]+){100}/), '>=', 1e9,
       'stacks of the second stall are not lost') or diag($p);


# a share of all: chosen requests are dropped when too many wait for their jobs

my $n = 200;
http_get('/text?share', port => 8082) for 1 .. $n;
wait_for(sub { lines_of('/text?share') == $n });
my $chosen = grep { $_->{id} ne '-' || $_->{dropped} ne '-' }
                  lines_of('/text?share');
cmp_ok($chosen, '>=', $n * 0.3, 'share=50% keeps not fewer requests');
cmp_ok($chosen, '<=', $n * 0.7, 'share=50% keeps not more requests');

for my $uri (qw{ /-/profile/profiles.json /-/profile/status /-/profile/none }) {
    http_get($uri, port => 8084);
    is(id_of($uri), '-', "$uri: a request for the console is not kept");
    is(line_of($uri)->{dropped}, '-',
       "$uri: a request for the console is not dropped");
}

# jobs of the requests above may still wait

$n = 0;
ok(wait_for(sub {
       $n++;
       http_get("/text?all$n", port => 8084);
       id_of("/text?all$n") =~ /^[0-9a-f]{32}$/;
   }), 'a request of the site is kept');

is(http_get('/text?none', port => 8083)->status(), 200,
   'a request of a server without profile_keep is answered');
is(id_of('/text?none'), '-',
   'a request of a server without profile_keep is not kept');


sub kept {
    my ($id) = @_;
    my $r;

    wait_for(sub { $r = http_get("/-/profile/p/$id/folded");
                   $r->status() == 200 });

    return $r->content();
}


sub below {
    my ($folded, $re) = @_;

    return sum0(map { my ($stack, $weight) = /^(.*) (\d+)$/;
                      $stack =~ $re ? $weight : 0 }
                split /\n/, $folded);
}


sub id_of {
    my ($uri) = @_;
    return (line_of($uri) || {})->{id};
}


sub line_of {
    my ($uri) = @_;

    wait_for(sub { lines_of($uri) });

    return (lines_of($uri))[-1];
}


sub lines_of {
    my ($uri) = @_;

    return map { +{ /(\w+)=(\S+)/g } }
           grep { /^\Q$uri\E / } split /\n/, $t->read_file('keep.log');
}
