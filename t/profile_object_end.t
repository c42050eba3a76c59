#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: heap request
# runs: beside
#
# The mode "object": memory in use at the end of a recorded request, and after a
# delay; requests with many turns and subrequests beside other requests;
# scripts.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use POSIX ();
use Test::More;
use Time::HiRes qw/ sleep /;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Module;
use ProfileTest::Object;
use ProfileTest::Pprof;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua js /);
my $so = build_module($t, 'ngx_http_object_test_module');

$t->conf(<<"EOF", main => "load_module $so;");
js_path %%TESTDIR%%;
js_import test.js;

profile_zone profiles:4m;

server {
    %%CONF object%%

    location /grace {
        object_test;
        profile_object_grace 700ms;
    }

    # many turns, with subrequests that allocate
    location /turns {
        content_by_lua_block {
            for i = 1, 10 do
                ngx.location.capture("/part?known=3")
                ngx.sleep(0.02)
            end
            ngx.print("done")
        }
    }

    location /lua {
        content_by_lua_block {
            local s = string.rep("x", tonumber(ngx.var.arg_n))
            ngx.print(#s)
        }
    }

    location /js {
        js_content test.content;
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->write_file('test.js', <<'EOF');
function content(r) {
    var a = new Uint8Array(Number(r.args.n));
    r.return(200, String(a.length) + "\n");
}
export default { content };
EOF

$t->run();

my $object = 'performance_bar=flamegraph&stackprof_mode=object';

# replaced, and recorded: the second sees what cleanups have done

my $p = profile("/?cleanup=5000&leak=100&$object");

is_deeply([ @{sums($p, 'cleanup')}[2, 3] ], [ 1, 5000 ],
          'in a replaced response, memory of a cleanup is in use');
is_deeply(sums($p, 'leak'), [ 1, 100, 1, 100 ],
          'in a replaced response, a leak is in use');

$p = recorded('/?cleanup=5000&leak=100&pool=3000');

is_deeply([ @{sums($p, 'cleanup')}[2, 3] ], [ 0, 0 ],
          'in a recorded response, memory of a cleanup is freed');
cmp_ok(sums($p, 'cleanup')->[1], '>=', 5000,
       'in a recorded response, memory of a cleanup was allocated');
is_deeply(sums($p, 'leak'), [ 1, 100, 1, 100 ],
          'in a recorded response, a leak is in use');
is(sums($p, 'pool')->[2], 0, 'in a recorded response, the pool is freed');

# some time later

$p = profile("/?later=7000&leak=100&$object");

is_deeply(sums($p, 'later'), [ 1, 7000, 1, 7000 ],
          'memory that is freed after the time is in use');

sleep(0.5);
$p = profile("/grace?later=7000&leak=100&$object");

is_deeply(sums($p, 'later'), [ 1, 7000, 0, 0 ],
          'memory that is freed within the time is not in use');
is_deeply(sums($p, 'leak'), [ 1, 100, 1, 100 ],
          'a leak is in use after the time');

my ($space, $blocks) = join("\n", $p->comments())
    =~ /^in_use_before_grace: (\d+) bytes in (\d+) blocks$/m;

cmp_ok($space, '>=', 7100, 'the profile has the bytes in use before the time');
cmp_ok($blocks, '>=', 2, 'the profile has the blocks in use before the time');

$p = recorded('/grace?later=7000&leak=100');

is_deeply(sums($p, 'later'), [ 1, 7000, 0, 0 ],
          'a recorded profile waits for memory to be freed');
is_deeply(sums($p, 'leak'), [ 1, 100, 1, 100 ],
          'a recorded profile has the leak');

# If a client disconnects before the delay ends, the profile is stored.  nginx
# has begun the request when it has answered two later ones.

my $s = http_get("/grace?gone=1&leak=100&$object", start => 1);

http_get('/?known=1') for 1 .. 2;
close($s);

my $gone;

ok(wait_for(sub {
    ($gone) = grep { $_->{uri} =~ /gone/ }
              @{decode_json(http_get('/-/profile/profiles.json')->body())
                ->{profiles}};
    return $gone;
}), 'the profile of a disconnected client is stored');

is_deeply(sums(stored($gone->{id}), 'leak'), [ 1, 100, 1, 100 ],
          'the profile of a disconnected client has its leak');
ok($t->read_file('access.log') =~ m{ "GET /grace\?gone=1\S+ [^"]*" 499 0 },
   'a disconnected client gets nothing');

# the turns of one request between those of other requests

my $load = $t->load('/?known=50', clients => 8);

for (1 .. 3) {
    $p = profile("/turns?$object");

    is_deeply(sums($p, 'known'), [ 30, 30_000, 0, 0 ],
              'a request with many turns has only its own allocations');
}

is($load->stop()->{failed}, 0, 'no request failed');

# the memory of scripts: Lua's is mapped, in pages, and has a header

my $page = POSIX::sysconf(POSIX::_SC_PAGESIZE());

for my $mb (2, 4, 8) {
    my $n = $mb * 1024 * 1024;

    is(largest("/lua?n=$n"), $n + $page,
       "Lua allocates $mb megabytes in one block");
    is(largest("/js?n=$n"), $n, "njs allocates $mb megabytes in one block");
}


# bytes of the largest block
sub largest {
    my ($uri) = @_;

    my @blocks = sort { $b <=> $a }
                 map { $_->{values}[1] / $_->{values}[0] }
                 profile("$uri&$object")->samples();

    return $blocks[0];
}


sub profile {
    my ($uri) = @_;

    return ProfileTest::Pprof->new(http_get($uri));
}


sub recorded {
    my ($uri) = @_;

    my $r = http_get($uri . ($uri =~ /\?/ ? '&' : '?')
                     . 'performance_bar=record&stackprof_mode=object');

    return stored($r->header('X-Profile-Id'));
}


sub stored {
    my ($id) = @_;
    my $stored;

    wait_for(sub {
        $stored = http_get("/-/profile/p/$id/pprof");
        return $stored->status() == 200;
    });

    return ProfileTest::Pprof->new($stored->body());
}
