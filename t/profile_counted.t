#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages
# runs: quiet

# Each part of a request's time is counted once, and as what it is: waiting is
# not the work of the script that waits, and the profiler's work is not that of
# the site.

use strict;
use warnings;

use IO::Uncompress::Gunzip qw/ gunzip /;
use JSON::PP qw/ decode_json /;
use List::Util qw/ sum0 /;
use Test::More;

use lib 't/lib';
use ProfileTest::Metrics;
use ProfileTest;

use constant GRACE => 0.6;

my $t = ProfileTest->new()->has(qw/ lua /);

$t->conf(<<'CONF');
profile_endpoint on;
profile_zone one:16m;
profile_keep slow=500ms;

log_format times '$request_uri rt=$request_time own=$profile_own_time '
                 'wait=$profile_wait_time queue=$profile_no_processor_time '
                 'blocked=$profile_blocked_time';
access_log %%TESTDIR%%/times.log times;

server {
    listen 127.0.0.1:8080;

    location /-/profile/ { profile_console; }
    location = /metrics { profile_metrics; }

    location /other/ { profile_console; profile_keep slow=500ms; }

    # the profiler waits before it makes the profile

    location /object {
        profile_object_grace 600ms;
        content_by_lua_block {
            ngx.sleep(0.1)
            ngx.say("done")
        }
    }

    location / { }

    # Lua finds room on its heap

    location /garbage {
        content_by_lua_block {
            local t = {}
            for i = 1, 100 do t[i] = { i } end
            ngx.say(#t)
        }
    }

    location /burn {
        content_by_lua_block {
            local till = os.clock() + 0.2
            while os.clock() < till do end
            ngx.say("burnt")
        }
    }

    location /blocked {
        content_by_lua_block {
            os.execute("sleep 0.3")
            ngx.say("blocked")
        }
    }

    # most of its time is waiting, in the same line that runs

    location /sleep {
        content_by_lua_block {
            local till = os.clock() + 0.05
            local slept
            local function both()
                while os.clock() < till do end
                if not slept then slept = true ngx.sleep(0.3) end
            end
            both()
            ngx.say("slept")
        }
    }
}
CONF

$t->write_file('file.txt', 'text');
$t->run();


# the tables of the page

my $page = http_get('/sleep?performance_bar=flamegraph&profile_format=html')
               ->content();

my $kinds = rows($page, 'kinds');

my $wait = weight($kinds, 'self', qr/^waiting$/);

cmp_ok($wait, '>=', 0.299e9,
       'the time in which a script waits is waiting, by kind');
cmp_ok(weight($kinds, 'self', qr/^Lua/), '<=',
       weight($kinds, 'self', qr/./) - $wait,
       'the rest may be the work of Lua');
is(weight($kinds, 'total', qr/^waiting$/), $wait,
   'no part of waiting is the work of another kind');

is(weight(rows($page, 'objects'), 'self', qr/^waiting$/), $wait,
   'modules: waiting has the same value');

my $functions = rows($page, 'functions');

ok(grep(/^sleep waiting$/, keys %$functions),
   'functions: the function that yields waits');
cmp_ok(weight($functions, 'self', qr/ waiting$/), '>=', 0.299e9,
       'functions: the time of the wait belongs to functions that wait');
cmp_ok(weight($functions, 'total', qr/both$/), '<',
       weight($functions, 'total', qr/./) - $wait,
       'functions: the same function has a row for the time in which it runs');


# boxes of the picture

my ($below) = $page =~ /class="(\w+)[^"]*"><title>sleep\n/;

is($below, 'w', 'the box of the function that waits is hatched');

# a table of another program distinguishes frames

my $json = profile_get('/sleep')->json();
my @frames = grep { $_->{name} =~ /both$/ } @{ $json->{shared}{frames} };

cmp_ok(@frames, '>', 1,
       'speedscope: a function that runs and waits is two frames');

# the time in which the profiler works is not that of the site

http_get('/object');
http_get('/object?performance_bar=flamegraph&profile_mode=object');

my ($log) = wait_for(sub { $t->read_file('times.log')
                           =~ /^(\/object \S+ own=0\.[1-9].*)$/m && $1 });
my %log = $log =~ /(\w+)=(\S+)/g;

cmp_ok($log{rt}, '>=', GRACE, 'the client waits for its profile');
cmp_ok($log{own}, '>=', GRACE - 0.01, 'and this is the time of the profiler');
cmp_ok($log{wait}, '<', $log{rt} - GRACE + 0.01,
       'the request has not waited for the profiler');

http_get('/-/profile/cpu?seconds=1&format=folded');
http_get('/other/cpu?seconds=1&format=folded');
http_get('/metrics') for 1 .. 3;

my $m = metrics_of(http_get('/metrics')->body());

my %object = (location => '/object');

is(metric_sum($m, 'nginx_profile_request_duration_seconds_count', %object), 2,
   'metrics: a request with a profile counts once');
cmp_ok(metric_sum($m, 'nginx_profile_request_duration_seconds_sum', %object),
       '<', $log{rt}, 'metrics: without the time of the profiler');
cmp_ok(metric_sum($m, 'nginx_profile_request_wait_seconds_sum', %object,
                  cause => 'script timer'),
       '>=', 0.19, 'metrics: waits of the request count');
is(metric_sum($m, 'nginx_profile_request_wait_seconds_sum',
              cause => 'client not reading'),
   0, 'metrics: no client is said to have made a request wait');
is(grep(/location="(?:\/-\/profile\/|\/other\/|= \/metrics)"/, keys %$m), 0,
   'metrics: pages of the profiler are not among all requests');

$m = metrics_of(http_get('/metrics?profiler=on')->body());

my %console = (location => '/-/profile/');

cmp_ok(metric_sum($m, 'nginx_profile_request_wait_seconds_sum', %console,
                  cause => 'profiler'),
       '>=', 0.99, 'metrics: asked for, the console waits for the profiler');
is(metric_sum($m, 'nginx_profile_request_wait_seconds_sum', %console,
              cause => $_),
   0, "metrics: the console has not waited for: $_")
    for 'script timer', 'client not reading', 'unknown';
cmp_ok(metric_sum($m, 'nginx_profile_request_duration_seconds_count',
                  location => '= /metrics'),
       '>=', 4, 'metrics: asked for, scrapes are counted');
is(metric_sum($m, 'nginx_profile_request_wait_seconds_sum',
              location => '= /metrics', cause => 'script timer'),
   0, 'metrics: a scrape does not wait for a timer of a script');

my $overview = overview('');

is(join(' ', sort map { $_->{location} } @{ $overview->{locations} }),
   '/object /sleep', 'overview: only the locations of the site');
is_deeply([ grep { /profiler|client/ }
            map { $_->{cause} } @{ $overview->{all}{hour}{waits} } ],
          [], 'overview: all requests have waited for no client');

$overview = overview('&profiler=on');

is(join(' ', sort map { $_->{location} } @{ $overview->{locations} }),
   '/-/profile/ /object /other/ /sleep = /metrics',
   'overview: asked for, all locations');

like(http_get('/-/profile/?profiler=on')->body(), qr/>Leave them out</,
     'overview: the page says what is included');
like(http_get('/-/profile/')->body(),
     qr/href="[^"]*\?profiler=on">Include them</,
     'overview: the page says what is left out');
is(http_get('/metrics?profiler=yes')->status(), 400,
   'metrics: a wrong argument is an error');


# profile_keep, and captures of a prefix

my $kept = wait_for(sub {
    my $all = decode_json(http_get('/-/profile/profiles.json')->content())
                  ->{profiles};

    return (grep { $_->{uri} =~ /other/ } @$all) ? $all : undef;
});

is(grep({ $_->{uri} =~ m{/-/profile/|/metrics} } @$kept), 0,
   'profile_keep: requests for pages of the profiler are not kept');
is(grep({ $_->{uri} =~ m{/other/cpu} } @$kept), 1,
   'profile_keep: unless the directive is in their location');
is(grep({ $_->{uri} =~ m{/object} && $_->{wall} > 0.5e9 } @$kept), 0,
   'profile_keep: the time of the profiler does not make a request slow');

# the start of a capture is not a wait of its request

my $file = profile_get('/file.txt');
my $facts = $file->json()->{profile_info};
my $stacks = $file->profile('wall');

is($stacks->count_stacks(qr/start of the capture/), 0,
   'a profile does not contain the start of its capture');
is($stacks->weight_below(qr/^\[waiting\]/), 0, 'a file is not waited for');
is($facts->{waiting}, 0, 'the head of the profile says the same');
cmp_ok($facts->{own_start_ns}, '>', 0,
       'the start of the capture is the profiler\'s own time');
cmp_ok($facts->{wall}, '<=', $facts->{running},
       'the file\'s whole time is running time');


# an empty profile of memory says what it does not contain

http_get('/garbage') for 1 .. 3;

for my $format (qw/ folded speedscope svg html pprof /) {
    my $got = http_get('/garbage?performance_bar=flamegraph&profile_mode=object'
                       . "&profile_format=$format")->content();

    $got = gunzipped($got) if $format eq 'pprof';

    like($got, qr/collectgarbage/,
         "$format: objects of Lua are not counted, and what shows them");
}

my $workers = http_get('/-/profile/object?seconds=1&format=speedscope')
                  ->content();

like($workers, qr/"not_counted":"objects of Lua/,
     'so do captures of allocations in workers');


# time in which a running request does not run: the kernel's own clock of the
# run queue is the truth

my ($worker) = $t->worker_pids();
my @busy = map { $t->run_daemon(sub { 1 while getppid() > 1 }) } 1 .. 4;

my $queue = queue_of($worker);
my $burn = profile_get('/burn')->json()->{profile_info};
$queue = queue_of($worker) - $queue;

cmp_ok($queue, '>', 0.05e9, 'the worker has to wait for a processor');
cmp_ok($burn->{no_processor_ns}, '<=', $queue,
       'the time without a processor is a part of that of the worker');
cmp_ok($burn->{no_processor_ns}, '>=', 0.5 * $queue,
       'most of this time is the request\'s');
parts($burn, 'on a busy machine');

my $blocked = profile_get('/blocked')->json()->{profile_info};

cmp_ok($blocked->{blocked_ns}, '>=', 0.8 * 0.3e9,
       'a request that is blocked in a call, on a busy machine');
parts($blocked, 'blocked in a call');

like(http_get('/burn?performance_bar=flamegraph&profile_format=html')
         ->content(),
     qr/Of all time: [\d.]+% CPU, [\d.]+% no processor/,
     'the head of the page has the parts');

# the same without a capture

$queue = queue_of($worker);
http_get('/burn?plain');
$queue = queue_of($worker) - $queue;
http_get('/blocked?plain');

my %burn = logged('/burn?plain');
my %slept = logged('/blocked?plain');

cmp_ok(abs($burn{queue} - $queue / 1e9), '<=', 0.2 * $queue / 1e9 + 0.02,
       'without a capture: the time without a processor');
cmp_ok($burn{blocked}, '<=', 0.02, 'without a capture: a loop is not blocked');
cmp_ok($slept{blocked}, '>=', 0.8 * 0.3,
       'without a capture: blocked in a call');

kill 'KILL', grep { defined } @busy;

my ($place) = grep { $_->{location} eq '/burn' }
              @{ overview('')->{locations} };
my $hour = $place->{hour};

cmp_ok($hour->{no_processor}, '>=', 0.8 * $burn{queue} * 1e9,
       'the overview has the time without a processor');
cmp_ok($hour->{cpu} + $hour->{no_processor} + $hour->{blocked}
       + $hour->{stall} + sum0(map { $_->{time} } @{ $hour->{waits} }),
       '<=', 1.001 * $hour->{wall}, 'no part is larger than the whole');
like(http_get('/-/profile/')->body(), qr/No processor</,
     'the page names it');

$m = metrics_of(http_get('/metrics')->body());

cmp_ok(metric_sum($m, 'nginx_profile_request_no_processor_seconds_total',
                  location => '/burn'),
       '>=', 0.8 * $burn{queue}, 'and so do metrics');

# CPU time of short requests has a share of the event loop

http_get('/file.txt') for 1 .. 300;

($place) = grep { $_->{location} eq '/' } @{ overview('')->{locations} };
$hour = $place->{hour};

cmp_ok($hour->{cpu}, '<=', $hour->{wall},
       'the CPU time of short requests is not longer than they are');
cmp_ok($hour->{outside}, '>', 0, 'the share of the event loop is outside');


my $load = $t->load('/metrics', clients => 1, rate => 20);
my $prefix = http_get('/-/profile/wall?location=/metrics&requests=3&seconds=5'
                      . '&format=folded')->body();
my $all = http_get('/-/profile/wall?uri=/&requests=3&seconds=1'
                   . '&format=folded')->body();
$load->stop();

like($prefix, qr/^phase content/m,
     'a capture of a location that is named has its requests');
unlike($all, qr/profiler/, 'a capture of a prefix has no scrapes');


# ns for which the thread of the process has waited for a processor
sub queue_of {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/schedstat" or die "schedstat: $!";

    return (split ' ', <$fh>)[1];
}


sub gunzipped {
    my ($data) = @_;
    my $text;

    gunzip(\$data, \$text) or return '';

    return $text;
}


# the parts of a capture's time, whose sum is the whole
sub parts {
    my ($info, $name) = @_;

    my $running = $info->{cpu} + $info->{no_processor_ns}
                  + $info->{blocked_ns} + $info->{not_running};

    cmp_ok(abs($running - $info->{running}), '<=', 0.01 * $info->{running},
           "$name: the parts of the turns add up");
    cmp_ok($info->{not_running}, '<=', 0.01 * $info->{running},
           "$name: nothing is unknown");
    cmp_ok(abs($info->{running} + $info->{waiting} - $info->{wall}), '<=', 10,
           "$name: turns and waiting add up to the whole");
}


sub logged {
    my ($uri) = @_;

    my ($line) = wait_for(sub { $t->read_file('times.log')
                                =~ /^(\Q$uri\E .*)$/m && $1 });

    return $line =~ /(\w+)=([\d.]+)/g;
}


sub overview {
    my ($more) = @_;

    return decode_json(http_get("/-/profile/?format=json$more")->content());
}


# returns self and total weights of a table's rows by their text

sub rows {
    my ($html, $id) = @_;

    my ($table) = $html =~ /<table class="times" id="$id">(.*?)<\/table>/s
        or return {};

    my %rows;

    while ($table =~ /<tr><th scope="row">(.*?)<\/th>(.*?)<\/tr>/sg) {
        my ($name, $cells) = ($1, $2);

        $name =~ s/<[^>]*>//g;

        my @weights = $cells =~ /class="by wall num" data-value="(\d+)"/g;

        $rows{$name} = { self => $weights[0], total => $weights[1] };
    }

    return \%rows;
}


# returns the sum of the rows whose text matches

sub weight {
    my ($rows, $what, $name) = @_;

    return sum0(map { $rows->{$_}{$what} } grep { /$name/ } keys %$rows);
}
