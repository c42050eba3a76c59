#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: beside
#
# The trigger never gets to an upstream, a cache key, a subrequest or code of
# the application; what the client sent beside it gets there unchanged.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Upstream;

my $t = ProfileTest->new()
    ->has(qw/ auth_request mirror proxy rewrite scgi ssi /);

my ($lua, $js) = map { $t->has_module($_) } qw/ lua js /;

my $lua_locations = !$lua ? '' : <<'EOF';
        location /lua/ {
            set $in_set "$args";

            rewrite_by_lua_block { see("rewrite") }
            access_by_lua_block { see("access") }
            content_by_lua_block { see("content") ngx.say("done") }
            header_filter_by_lua_block { see("header") }
            body_filter_by_lua_block { if ngx.arg[2] then see("body") end }
            log_by_lua_block { see("log") }
        }

        location /lua-set/ {
            rewrite_by_lua_block {
                ngx.req.set_uri_args("from=lua&" .. (ngx.var.args or ""))
                ngx.req.set_header("X-From", "lua")
            }
            proxy_pass http://127.0.0.1:8081;
        }
EOF

my $lua_http = !$lua ? '' : <<'EOF';
    init_by_lua_block {
        function see(phase)
            local out = { phase, ngx.var.args or "", ngx.var.request_uri,
                          ngx.var.arg_performance_bar or "",
                          ngx.var.http_x_profile or "" }

            if phase ~= "body" then
                for k, v in pairs(ngx.req.get_uri_args()) do
                    table.insert(out, k)
                end

                for k, v in pairs(ngx.req.get_headers()) do
                    table.insert(out, k)
                end
            end

            ngx.log(ngx.NOTICE, "SEEN: " .. table.concat(out, " ") .. " .")
        end
    }
EOF

my $js_http = $js ? 'js_import see from see.js;' : '';
my $js_locations = !$js ? '' : <<'EOF';
        location /js/ {
            js_content see.content;
        }
EOF

$t->write_file('see.js', <<'EOF');
function content(r) {
    var names = r.rawHeadersIn.map(function(h) { return h[0] });

    r.error("SEEN: content " + [ r.variables.args, r.variables.request_uri,
                                 JSON.stringify(r.args), names.join(),
                                 r.headersIn['X-Profile'],
                                 r.variables.http_x_profile ].join(" ") + " .");
    r.return(200, "done");
}

export default { content };
EOF

$t->conf(<<"EOF");
default_type text/plain;
$lua_http
$js_http

log_format seen '\$uri|\$args|\$query_string|\$is_args|\$request_uri|'
                '\$arg_performance_bar|\$arg_profile_mode|\$arg_x|'
                '\$http_x_profile|\$in_server|\$in_location|'
                '\$upstream_cache_status|\$request|';
access_log %%TESTDIR%%/seen.log seen;

proxy_cache_path %%TESTDIR%%/cache keys_zone=one:1m;
proxy_cache_valid any 10m;

server {
    listen 127.0.0.1:8080;
    server_name on;

    profile_endpoint on;

    set \$in_server "\$args \$request_uri \$http_x_profile";
    set \$in_location "";

    location / {
        set \$in_location "\$args \$request_uri \$http_x_profile";
        return 200 "\$args";
    }

    location /with/ {
        proxy_pass http://127.0.0.1:8081/uri/;
    }

    location /without/ {
        proxy_pass http://127.0.0.1:8081;
    }

    location /variable/ {
        proxy_pass http://127.0.0.1:8081\$request_uri;
    }

    location /args/ {
        proxy_pass http://127.0.0.1:8081/uri\$is_args\$args;
    }

    location /rewrite/ {
        rewrite ^/rewrite(.*) /without\$1?r=1 last;
    }

    location /break/ {
        rewrite ^/break(.*) \$1 break;
        proxy_pass http://127.0.0.1:8081;
    }

    location /try/ {
        try_files /none /without/\$is_args\$args;
    }

    location /error/ {
        error_page 404 = \@error;
    }

    location \@error {
        proxy_pass http://127.0.0.1:8081;
    }

    location /scgi/ {
        scgi_pass 127.0.0.1:8082;
        scgi_param QUERY_STRING \$query_string;
        scgi_param REQUEST_URI \$request_uri;
        scgi_param CONTENT_LENGTH \$content_length;
    }

    location /auth/ {
        auth_request /auth-upstream;
        proxy_pass http://127.0.0.1:8081;
    }

    location = /auth-upstream {
        proxy_pass http://127.0.0.1:8081;
        proxy_pass_request_body off;
        proxy_set_header X-Original-URI \$request_uri;
    }

    location /mirror/ {
        mirror /mirrored;
        proxy_pass http://127.0.0.1:8081;
    }

    location = /mirrored {
        proxy_pass http://127.0.0.1:8081/mirrored\$request_uri;
    }

    location /ssi/ {
        ssi on;
        ssi_types text/plain;
        alias %%TESTDIR%%/;
    }

    location /cache/ {
        proxy_cache one;
        proxy_pass http://127.0.0.1:8081;
    }

    location /cache-uri/ {
        proxy_cache one;
        proxy_pass http://127.0.0.1:8081/cached/;
    }

    location /cache-request-uri/ {
        proxy_cache one;
        proxy_cache_key \$request_uri;
        proxy_pass http://127.0.0.1:8081;
    }

    location /cache-header/ {
        proxy_cache one;
        proxy_cache_key \$uri\$is_args\$args\$http_x_profile;
        proxy_pass http://127.0.0.1:8081;
    }

    location /request/ {
        proxy_set_header X-Request \$request;
        proxy_pass http://127.0.0.1:8081;
    }

$lua_locations
$js_locations
}

# the values of a server without the module

server {
    listen 127.0.0.1:8080;
    server_name without;

    set \$in_server "";
    set \$in_location "";

    location / {
        proxy_pass http://127.0.0.1:8081;
    }

    location /scgi/ {
        scgi_pass 127.0.0.1:8082;
        scgi_param QUERY_STRING \$query_string;
        scgi_param REQUEST_URI \$request_uri;
        scgi_param CONTENT_LENGTH \$content_length;
    }
}
EOF

$t->write_file('ssi.txt', '<!--#include virtual="/without/ssi?$args" -->'
                          . '<!--# echo var="args" -->');

run_upstream($t, 8081);
run_scgi($t, 8082);
$t->run();

my $T = 'performance_bar=flamegraph';


# arguments of the request, and those that the upstream receives

for my $case ([ $T, '' ],
              [ "$T&", '' ],
              [ "$T&a=1", '?a=1' ],
              [ "a=1&$T", '?a=1' ],
              [ "a=1&$T&b=2", '?a=1&b=2' ],
              [ "b=2&$T&a=1", '?b=2&a=1' ],
              [ "a&b=&=c&$T&&d", '?a&b=&=c&&d' ],
              [ "a=1&a=1&$T&a=2", '?a=1&a=1&a=2' ],
              [ "%61=%20+%2b&$T&%25%zz%", '?%61=%20+%2b&%25%zz%' ],
              [ "a=\xe4\xff&$T&\xc3\xa4=1", "?a=\xe4\xff&\xc3\xa4=1" ],
              [ "a=?&$T&b=/", '?a=?&b=/' ],
              [ "$T&profile_mode=cpu&profile_format=folded"
                . '&profile_frequency=100', '' ],
              [ "stackprof_mode=cpu&$T", '' ],
              [ "profile_frequency=9&a=1&$T&profile_mode=cpu&b=2",
                '?a=1&b=2' ],
              [ "mode=cpu&$T&format=x&frequency=y",
                '?mode=cpu&format=x&frequency=y' ],
              [ "profile=1&profile_=2&profile_id=3&profile_name=4&$T",
                '?profile=1&profile_=2&profile_id=3&profile_name=4' ],
              [ "Profile_Mode=x&$T&PERFORMANCE_BAR=y",
                '?Profile_Mode=x&PERFORMANCE_BAR=y' ],
              [ "performance%5fbar=1&$T", '?performance%5fbar=1' ],
              [ 'a=' . 'x' x 3000 . "&$T", '?a=' . 'x' x 3000 ])
{
    my ($sent, $left) = @$case;
    my $name = length($sent) > 100 ? 'long' : $sent;

    $name =~ s/([^ -~])/sprintf('\x%02x', ord($1))/ge;

    is(line_of("/without/?$sent"), "GET /without/$left",
       "the unparsed URI has no trigger: $name");
    is(line_of("/with/?$sent"), "GET /uri/$left",
       "the parsed URI has no trigger: $name");
}

is(line_of("/without/%2e/a%20b/..//%41?$T&a=1"),
   'GET /without/%2e/a%20b/..//%41?a=1',
   'the unparsed path stays as it was sent');
is(line_of("/with//a%20b/../%41/b?$T&a=1"), 'GET /uri/A/b?a=1',
   'the parsed path stays as nginx normalizes it');


# ways to an upstream

is(line_of("/variable/?a=1&$T"), 'GET /variable/?a=1',
   'a proxy_pass with variables has no trigger');
is(line_of("/args/?$T"), 'GET /uri',
   '$is_args is empty if no arguments remain');
is(line_of("/args/?$T&a=1"), 'GET /uri?a=1',
   '$is_args is set if arguments remain');
is(line_of("/rewrite/x?$T&a=1"), 'GET /without/x?r=1&a=1',
   'a rewrite has no trigger');
is(line_of("/break/x?$T&a=1"), 'GET /x?a=1',
   'a rewrite with "break" has no trigger');
is(line_of("/try/x?$T&a=1"), 'GET /without/?a=1', 'try_files has no trigger');
is(line_of("/error/x?$T&a=1"), 'GET /error/x?a=1',
   'error_page has no trigger');
is(line_of("/auth/x?$T&a=1", qr{GET /auth-}), 'GET /auth-upstream',
   'a request of auth_request has no trigger');
is(line_of("/mirror/x?$T&a=1", qr{GET /mirrored}), 'GET /mirrored/mirror/x?a=1',
   'a request of mirror has no trigger');

like(request_of("/auth/x?$T&a=1", qr{GET /auth-}),
     qr{^X-Original-URI: /auth/x\?a=1\r$}m,
     '$request_uri in auth_request has no trigger');
like(request_of("/ssi/ssi.txt?$T&a=1"), qr{^GET /without/ssi\?a=1 },
     'a request of SSI has no trigger');

for my $method (qw/ HEAD POST PUT /) {
    is(line_of("$method /without/?$T&a=1"), "$method /without/?a=1",
       "a request with the method $method has no trigger");
}

# $request is what the client sent

like(request_of("/request/?$T&a=1"),
     qr{^X-Request: GET /request/\?\Q$T\E&a=1 HTTP/1\.1\r$}m,
     '$request keeps the trigger');


# other protocols

is(scgi_of('on', "/scgi/?$T&a=1", 'X-Profile: nonsense', 'X-A: 1'),
   scgi_of('without', '/scgi/?a=1', 'X-A: 1'),
   'SCGI gets the same parameters as without a trigger');
is(scgi_of('on', "/scgi/?$T"), scgi_of('without', '/scgi/'),
   'SCGI gets no arguments if none remain');
is(scgi_of('on', '/scgi/?a=1', 'X-Profile: flamegraph'),
   scgi_of('without', '/scgi/?a=1'),
   'SCGI gets the same headers as without a trigger');


# caches: one entry for a request with and without the trigger

for my $cache (qw/ cache cache-uri cache-request-uri cache-header /) {
    for my $args ('', 'a=1') {
        my $both = "$T&profile_format=folded" . ($args ? "&$args" : '');
        my $plain = $args ? "?$args" : '';

        get("/$cache/1$plain");
        get("/$cache/1?$both");
        get("/$cache/1$plain", 'X-Profile: flamegraph; format=folded');
        get("/$cache/2?$both", 'X-Profile: flamegraph');
        get("/$cache/2$plain");
    }
}


# variables, by the access log

get("/seen?x=1&$T&profile_mode=cpu", 'X-Profile: flamegraph');
get("/seen-header?x=1&profile_mode=cpu", 'X-Profile: flamegraph');


# code of the application

SKIP: {
    skip 'no lua', 4 unless $lua;

    get("/lua/?a=1&$T&profile_mode=cpu", 'X-Profile: flamegraph', 'X-A: 1');

    my @seen;

    wait_for(sub {
        @seen = $t->read_log() =~ /SEEN: (.*?) \.(?:[, ]|$)/mg;
        return @seen == 6;
    });

    is(join(' ', sort map { /^(\w+)/ } @seen),
       'access body content header log rewrite', 'Lua runs in all phases');
    is(join("\n", grep { /performance|profile/i } @seen), '',
       'Lua does not see the trigger');
    is(scalar(grep { /^\w+ a=1 \/lua\/\?a=1 / } @seen), 6,
       'Lua sees the other arguments');

    like(request_of("/lua-set/?a=1&$T", undef, 'X-Profile: x'),
         qr{^GET /lua-set/\?from=lua&a=1 (?!.*performance|.*X-Profile)}s,
         'arguments that Lua sets reach the upstream');
}

SKIP: {
    skip 'no js', 2 unless $js;

    get("/js/?a=1&$T&profile_mode=cpu", 'X-Profile: flamegraph', 'X-A: 1');

    my ($seen) = $t->read_log() =~ /SEEN: (content .*"a".*) \.(?:[, ]|$)/m;

    like($seen, qr/^content a=1 \/js\/\?a=1 \{"a":"1"\} Host,.*X-A/,
         'njs sees the other arguments');
    unlike($seen, qr/performance|profile/i, 'njs does not see the trigger');
}

$t->stop();

my $log = $t->read_file('seen.log');
my ($seen) = $log =~ m{^(/seen\|.*)$}m;

is($seen, '/seen|x=1|x=1|?|/seen?x=1|-|-|1|-|x=1 /seen?x=1 |x=1 /seen?x=1 |-|'
          . "GET /seen?x=1&$T&profile_mode=cpu HTTP/1.1|",
   'variables do not contain the trigger');

($seen) = $log =~ m{^(/seen-header\|.*)$}m;

is($seen, '/seen-header|x=1&profile_mode=cpu|x=1&profile_mode=cpu|?|'
          . '/seen-header?x=1&profile_mode=cpu|-|cpu|1|-|'
          . 'x=1&profile_mode=cpu /seen-header?x=1&profile_mode=cpu |' x 2
          . '-|GET /seen-header?x=1&profile_mode=cpu HTTP/1.1|',
   'a trigger header does not change the arguments');

for my $cache (qw/ cache cache-uri cache-request-uri cache-header /) {
    for my $n (1, 2) {
        my @status = $log =~ m{^/$cache/$n\|.*\|([A-Z]+)\|GET}mg;

        is("@status", join(' ', ('MISS', ('HIT') x (3 - $n)) x 2),
           "/$cache/$n has one entry for requests with and without a trigger");
    }
}


sub get {
    my ($uri, @headers) = @_;
    return http_get($uri, headers => [ 'Host: on', @headers ]);
}


# Returns the request that the upstream received and that matches; other
# requests may end later.
sub request_of {
    my ($uri, $re, @headers) = @_;

    my ($method, $path) = $uri =~ /^(?:([A-Z]+) )?(.*)/s;
    my $n = upstream_requests($t);
    my $r = http(join("\r\n", ($method || 'GET') . " $path HTTP/1.1", 'Host: on',
                      'Connection: close', @headers, '', ''));

    return "no profile: $r" unless $r->header('X-Profile-Id');

    my $request;

    wait_for(sub {
        my @new = upstream_requests($t);
        ($request) = grep { !$re || /^$re/ } @new[$n .. $#new];
        return $request;
    });

    return $request // 'none';
}


# returns the method and the URI of the request
sub line_of {
    my ($uri, $re) = @_;

    my $request = request_of($uri, $re);
    return $request =~ /^(.*?) HTTP/ ? $1 : $request;
}


sub scgi_of {
    my ($host, $uri, @headers) = @_;

    unlink($t->testdir() . '/scgi.last');

    my $r = http_get($uri, headers => [ "Host: $host", @headers ]);

    return "no profile: $r" if $host eq 'on' && !$r->header('X-Profile-Id');

    my $params = $t->read_file('scgi.last');
    $params =~ s/\0HTTP_HOST\0[^\0]*//;

    return $params;
}


# an SCGI server that keeps what it was sent
sub run_scgi {
    my ($t, $port) = @_;

    run_server($t, $port, sub {
        my ($c) = @_;
        my $buf = '';

        while ($buf !~ /^(\d+):/ || length($buf) < length($1) + 2 + $1) {
            sysread($c, $buf, 65536, length($buf)) or last;
        }

        $t->write_file('scgi.last', $buf =~ /^\d+:(.*),/s ? $1 : $buf);
        syswrite($c, "Status: 200 OK\r\nContent-Type: text/plain\r\n"
                     . "\r\nscgi\n");
    });
}
