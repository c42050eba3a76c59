#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: keep loop capture
#
# A slow request that also holds its worker is kept and reported as a stall:
# both profiles have its functions, whatever came first.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use ProfileTest;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua proxy rewrite /)->plan(24);

$t->conf(<<'EOF', workers => 1);
profile_keep slow=100ms rate=1000;
profile_stall_threshold 100ms;
profile_turn_log on;
profile_store %%TESTDIR%%/store;
lua_package_path "%%TESTDIR%%/?.lua;;";

server {
    listen 127.0.0.1:8080;

    # one turn; the watch takes its samples at the rate of the configuration

    location /once {
        content_by_lua_block { require("burn").burn(0.4) ngx.say("once") }
    }

    # the worker reads no other event meanwhile

    location /sub {
        content_by_lua_block {
            require("burn").burn(0.2)
            ngx.location.capture("/part")
            require("burn").burn(0.2)
            ngx.say("sub")
        }
    }

    location /part { return 200 part; }

    # the stall is in a later turn

    location /later {
        content_by_lua_block {
            ngx.sleep(0.05)
            require("burn").burn(0.4)
            ngx.say("later")
        }
    }


    location /proxy {
        header_filter_by_lua_block { require("burn").burn(0.4) }
        proxy_pass http://127.0.0.1:8080/part;
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->write_file('burn.lua', <<'EOF');
local M = {}

function M.burn(s)
    ngx.update_time()
    local till = ngx.now() + s
    while ngx.now() < till do ngx.update_time() end
end

return M
EOF

$t->run();

# the limit of stalls is one in a second, so each case waits for its own

for my $uri (qw{ /once /sub /later /proxy }) {
    my %found;

    for my $n (1 .. 20) {
        http_get("$uri?$n");
        last if wait_for(sub { %found = found("$uri?$n"); keys %found == 2 },
                         2);
    }

    for my $scope (qw/ request stall /) {
        my $p = $found{$scope};

        ok($p, "$uri: there is a profile of the $scope") or next;
        cmp_ok($p->{samples}, '>', 0, "$uri: the $scope has samples");

        my $folded = http_get("/-/profile/p/$p->{id}/folded")->body();
        my ($burnt, $all) = (0, 0);

        for (split(/\n/, $folded)) {
            my ($stack, $ns) = /^(.*) (\d+)$/ or next;
            $all += $ns if $stack !~ /\[waiting\]/;
            $burnt += $ns if $stack =~ /burn\.lua/;
        }

        cmp_ok($burnt, '>', 0.8 * $all,
               "$uri: the $scope has its function: $burnt of $all ns")
            or diag($folded);
    }
}


# profiles of this request, by their scope
sub found {
    my ($uri) = @_;

    my $list = decode_json(http_get('/-/profile/profiles.json')->body());

    return map { $_->{scope} => $_ }
           grep { $_->{uri} =~ /\Q$uri\E(?:\s|$)/ } @{$list->{profiles}};
}
