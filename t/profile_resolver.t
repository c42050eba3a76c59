#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: quiet

# Waits for the address of a name: of an upstream, of a script's sockets, of
# ngx.fetch().  The name server answers late, or that there is no such name, or
# not at all until the time limit, or until the client has left.  The client's
# clock knows how long that takes.  Flamegraphs, kept profiles and metrics must
# have the same cause.

use strict;
use warnings;

use List::Util qw/ max sum0 /;
use Test::More;
use Time::HiRes qw/ sleep time /;

use ProfileTest::Metrics;
use ProfileTest::Names;
use ProfileTest;

# at the end nginx unloads LuaJIT, and LeakSanitizer looks for its thread-local
# storage where that was

$ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (), 'detect_leaks=0');

my $t = ProfileTest->new()->has(qw/ lua js proxy ssi /);

$t->conf(<<'EOF');
js_import main from main.js;
lua_socket_log_errors off;

map $arg_keep $keep { 1 1; default 0; }

log_format times '$request_uri rt=$request_time wait=$profile_wait_time '
                 'stall=$profile_stall_time id=$profile_id';
access_log %%TESTDIR%%/times.log times;

resolver 127.0.0.1:8053 ipv6=off valid=1s;
resolver_timeout 500ms;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    profile_accounting on;
    profile_keep $keep;

    location = /upstream { proxy_pass http://$arg_name:%%PORT_8081%%; }

    location = /part {
        ssi on;
        default_type text/html;
        alias %%TESTDIR%%/part.html;
    }

    location = /tcp {
        lua_check_client_abort on;
        content_by_lua_block {
            local s = ngx.socket.tcp()
            s:settimeout(2000)
            s:connect(ngx.var.arg_name, %%PORT_8081%%)
            ngx.say("done")
        }
    }

    location = /udp {
        lua_check_client_abort on;
        content_by_lua_block {
            local s = ngx.socket.udp()
            s:setpeername(ngx.var.arg_name, %%PORT_8081%%)
            ngx.say("done")
        }
    }

    location = /fetch { js_content main.fetch; }

    location /profile/ { profile_console; }
    location = /metrics { profile_metrics; }
}

server {
    listen 127.0.0.1:8081;
    access_log off;
    location / { return 200 "answer"; }
}
EOF

$t->write_file('part.html',
               '<!--# include virtual="/upstream?name=$arg_name" -->');

$t->write_file_expand('main.js', <<'EOF');
async function fetch(r) {
    try {
        let reply = await ngx.fetch(`http://${r.args.name}:%%PORT_8081%%/`);
        await reply.text();
    } catch (e) {
    }

    r.return(200, 'done');
}

export default { fetch };
EOF

run_names($t, 8053);
$t->run();

my %ends = (slow => 0.3, lost => 0.3, silent => 0.5, left => 0.2);
my (%sums, $n);

for my $who (qw/ upstream part tcp udp fetch /) {
    for my $end (qw/ slow lost silent left /) {

        # nginx does not notice here that the client has left

        next if $end eq 'left' && $who eq 'fetch';

        for my $way (qw/ flamegraph keep /) {
            next if $end eq 'left' && $way eq 'flamegraph';

            check($who, $end, $way);
        }
    }
}

# no other request has waited for a name

my $m = metrics_of(http_get('/metrics')->body());

for my $who (sort keys %sums) {
    near(metric_sum($m, 'nginx_profile_request_wait_seconds_sum',
                    location => "= /$who", cause => 'resolver'),
         $sums{$who}, "$who: metrics have the cause", 0.15);
}


# what follows a query is not its wait

my $after = profile_get('/tcp?name=fast.test')->profile('wall');
cmp_ok($after->weight_below(qr/^resolver/) / 1e9, '<', 0.1,
       'a name that is answered at once is not waited for');


sub check {
    my ($who, $end, $way) = @_;

    my $name = ($end eq 'left' ? 'silent' : $end) . ++$n . '.test';
    my $uri = "/$who?name=$name";
    my $about = "$who, $end, $way";
    my $start = time();
    my $folded;

    if ($way eq 'flamegraph') {
        my $r = http_get("$uri&performance_bar=flamegraph"
                         . '&profile_format=folded');
        $folded = $r->content();

    } else {
        my $s = http_get("$uri&keep=1", start => 1);

        if ($end eq 'left') {
            sleep $ends{left};
            $s->close();

        } else {
            http_end($s);
        }
    }

    my $l = line($uri);

    $folded //= stored($l->{id});

    my $waited = below($folded, qr/\bresolver \Q$name\E/);

    near($waited, $ends{$end}, "$about: the wait has its cause");
    cmp_ok(below($folded, qr/script timer|unknown/), '<', 0.02,
           "$about: no other cause");
    near($l->{wait} + $l->{stall}, $l->{rt}, "$about: the wait is accounted")
        if $way eq 'keep';

    $sums{$who} += $waited;
}


sub near {
    my ($value, $truth, $name, $by) = @_;

    cmp_ok(abs($value - $truth), '<=', $by // 0.06, $name)
        or diag("$value instead of $truth");
}


# seconds of waiting
sub below {
    my ($folded, $re) = @_;

    return sum0(map { /^\[waiting\];(.*) (\d+)$/ && $1 =~ $re ? /(\d+)$/ : 0 }
                split /\n/, $folded) / 1e9;
}


sub stored {
    my ($id) = @_;
    my $r;

    wait_for(sub { $r = http_get("/profile/p/$id/folded");
                   $r->status() == 200 });

    return $r->content();
}


sub line {
    my ($uri) = @_;
    my @found;

    wait_for(sub { @found = grep { /^\Q$uri\E[& ]/ }
                            split /\n/, $t->read_file('times.log') });

    return { ($found[-1] // '') =~ /(\w+)=(\S+)/g };
}
