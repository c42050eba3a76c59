#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: request
# runs: quiet

# Responses that do not end: profile_timeout ends the capture, the client gets
# the reply, and the code that makes the response is stopped.

use strict;
use warnings;

use JSON::PP qw/ decode_json /;
use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest::Upstream;
use ProfileTest;

my $t = ProfileTest->new()->has(qw/ gzip proxy ssi /);
my %has = map { $_ => $t->has_module($_) } qw/ js lua /;

$t->conf(<<'EOF');
profile_max_captures 1;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;
    profile_timeout 300ms;

    location /buffered/ {
        proxy_pass http://127.0.0.1:8081/;
    }

    location /streamed/ {
        proxy_buffering off;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /gzip/ {
        gzip on;
        gzip_types *;
        proxy_pass http://127.0.0.1:8081/;
    }

    location /ssi/ {
        ssi on;
        alias %%TESTDIR%%/;
    }

    location /file/ {
        alias %%TESTDIR%%/;
    }

    %%SCRIPTS%%
}
EOF

my $lua = <<'EOF2';
        location /lua/ {
            content_by_lua_block {
                while ngx.say(string.rep("x", 1000)) and ngx.flush(true) do
                    ngx.sleep(0.02)
                end
            }
        }

        # a response that waits for timers only

        location /lua/unflushed/ {
            content_by_lua_block {
                while true do
                    ngx.print("x")
                    ngx.sleep(0.001)
                end
            }
        }

        location /lua/body/ {
            proxy_pass http://127.0.0.1:8081/;
            body_filter_by_lua_block { ngx.arg[1] = ngx.arg[1] .. "lua" }
        }
EOF2

my $js = <<'EOF2';
        location /njs/ {
            js_content endless.begin;
        }
EOF2

my $conf = $t->read_file('nginx.conf');
$conf =~ s/%%SCRIPTS%%/($has{lua} ? $lua : '') . ($has{js} ? $js : '')/e;
$conf =~ s/^http \{/http {\n    js_import endless from endless.js;/m if $has{js};
$t->write_file_expand('nginx.conf', $conf);

$t->write_file('endless.js', <<'EOF2');
function begin(r) {
    r.status = 200;
    r.sendHeader();
    more(r);
}

function more(r) {
    r.send('x'.repeat(1000));
    setTimeout(more, 20, r);
}

export default { begin };
EOF2

$t->write_file('page.html', '<!--#include virtual="/streamed/part" -->'
                            . '<!--#include virtual="/buffered/part" -->');
$t->write_file('file', "file\n");
$t->write_file('closed', '');

run_server($t, 8081, \&endless);
$t->run();

my ($worker) = $t->worker_pids();
my $arg = 'performance_bar=flamegraph&profile_format=speedscope';
my $closed = closed();

for my $uri ('/buffered/', '/streamed/', '/gzip/', '/ssi/page.html',
             '/streamed/late')
{
    my $r = http_get("$uri?$arg", timeout => 8,
                     headers => [ 'Accept-Encoding: gzip' ]);

    is($r->status(), 200, "an endless response of $uri gets a profile");
    is($r->header('X-Profiled-Status'), 200,
        'the profile has the status of the response');

    my $json = eval { decode_json($r->content()) } || {};
    is($json->{profile_info}{ended_by}, 'profile_timeout',
        'the profile names profile_timeout as its end');

    ok(wait_for(sub { closed() > $closed }),
        'nginx closes the connection to the upstream');
    wait_for(sub { closed() == opened() });
    $closed = closed();

    is(http_get("/file/file?$arg")->status(), 200,
        'the capture has left its slot');
}

# scripts: the request is logged when it is freed, and its script with it

my @scripts = ($has{lua} ? qw{ /lua/ /lua/unflushed/ /lua/body/ } : (),
               $has{js} ? '/njs/' : ());

for my $uri (@scripts) {
    my $r = http_get("$uri?$arg", timeout => 8);

    is($r->status(), 200,
        "an endless response of $uri gets a profile without an upstream");

    my $json = eval { decode_json($r->content()) } || {};
    is($json->{profile_info}{ended_by}, 'profile_timeout',
        'the profile names profile_timeout as its end');

    ok(wait_for(sub { $t->read_file('access.log') =~ /GET \Q$uri\E\S* HTTP/ }),
       'the request ends');
    is(http_get("/file/file?$arg")->status(), 200,
        'the capture has left its slot');
}

# the connection is kept alive

my $s = http_get("/streamed/?$arg", start => 1, keepalive => 1);
is(http_end($s)->status(), 200, 'a stream of events gets a profile');
is(http_get('/file/file', socket => $s)->body(), "file\n",
   'the connection serves another request');

# the client disconnects while the response is captured

$s = http_get("/streamed/?$arg", start => 1);
wait_for(sub { opened() > closed() });
close $s;
ok(wait_for(sub { opened() == closed() }),
    'a client that disconnects ends the request');
is(http_get("/file/file?$arg")->status(), 200,
    'the capture has left its slot');

is(join(' ', $t->worker_pids()), $worker, 'the worker is the same');


sub opened { return () = $t->read_file('closed') =~ /opened/g }

sub closed { return () = $t->read_file('closed') =~ /closed/g }


# sends until the connection is closed
sub endless {
    my ($c) = @_;

    my $line = <$c> // return;

    note_line('opened');
    select undef, undef, undef, 0.6 if $line =~ /late/;

    print $c "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n";

    while (print $c 'x' x 1000) {
        select undef, undef, undef, 0.02;
    }

    note_line('closed');
}


sub note_line {
    my ($line) = @_;

    open my $f, '>>', $t->testdir() . '/closed' or die "closed: $!\n";
    print $f "$line\n";
    close $f;
}
