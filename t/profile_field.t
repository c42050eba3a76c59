#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: stages metrics
# runs: quiet

# Configurations in the style of those that people run, under load.  The
# upstreams, the name server, the scripts and the clients measure by themselves
# how long each of them let nginx wait.  The sums that the metrics show, and
# those of the profiles that profile_keep has kept, are compared with theirs.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use List::Util qw/ sum0 /;
use POSIX ();
use Test::More;
use Time::HiRes qw/ clock_gettime CLOCK_MONOTONIC sleep /;

use ProfileTest::Metrics;
use ProfileTest;

# each kind of request is sent this often, by so many clients at once
my ($ROUNDS, $CLIENTS) = (3, 6);

# the difference of both sums, as a part of the other side's
my $EXACT = 0.02;

my $t = ProfileTest->new()->has(qw/ auth_request cache fastcgi gzip lua proxy
                                    rewrite /);

$t->write_file_expand('nginx.conf', <<'EOC');
%%MODULES%%
%%GLOBALS%%
error_log %%TESTDIR%%/worker.log info;
worker_processes 2;

events {
    worker_connections 512;
}

http {
    %%GLOBALS_HTTP%%
    error_log %%TESTDIR%%/error.log info;

    log_format times '$host $uri $request_time id=$profile_id turns=$profile_turns '
                     'wait=$profile_wait_time stall=$profile_stall_time '
                     'cpu=$profile_cpu_time longest=$profile_longest_turn '
                     'page=$arg_page';
    access_log %%TESTDIR%%/times.log times;

    profile_accounting on;
    profile_keep 1 rate=1000;
    profile_continuous on;
    profile_zone profiles:64m;

    resolver 127.0.0.1:%%PORT_8953%% ipv6=off;
    proxy_cache_path %%TESTDIR%%/proxied keys_zone=proxied:1m;
    fastcgi_cache_path %%TESTDIR%%/pages keys_zone=pages:1m;
    lua_shared_dict truth 1m;

    init_by_lua_block {
        function slept(seconds)
            ngx.update_time()
            local begin = ngx.now()
            ngx.sleep(seconds)
            ngx.update_time()
            ngx.shared.truth:incr(ngx.var.server_name .. " script timer",
                                  ngx.now() - begin, 0)
        end
    }

    upstream backends {
        server 0.0.0.1;
        balancer_by_lua_block {
            require("ngx.balancer").set_current_peer("127.0.0.1",
                                                     %%PORT_8081%%)
        }
    }

    upstream kept {
        server 127.0.0.1:8081;
        keepalive 4;
    }

    fastcgi_param QUERY_STRING   $query_string;
    fastcgi_param SCRIPT_NAME    $fastcgi_script_name;
    fastcgi_param REQUEST_URI    $request_uri;
    fastcgi_param SERVER_NAME    $server_name;
    fastcgi_param CONTENT_LENGTH $content_length;
    fastcgi_param PATH_INFO      $fastcgi_path_info;

    # static files, compressed, with headers for caches

    server {
        listen 127.0.0.1:8080;
        server_name static;
        root %%TESTDIR%%/site;
        gzip on;
        gzip_types text/css;
        etag on;

        location ~* \.(?:css|js|svg)$ {
            expires 1y;
            add_header Cache-Control public;
            access_log %%TESTDIR%%/times.log times;
        }

        location / {
            try_files $uri $uri/ /index.html;
        }

        location /big/ {
            gzip off;
        }
    }

    # a front controller, pages in a cache unless there is a cookie

    server {
        listen 127.0.0.1:8080;
        server_name blog;
        root %%TESTDIR%%/site;
        index index.php;

        set $skip_cache 0;

        if ($http_cookie ~ "logged_in") {
            set $skip_cache 1;
        }

        location / {
            try_files $uri $uri/ /index.php?$args;
        }

        location ~ \.php$ {
            fastcgi_pass 127.0.0.1:8082;
            fastcgi_cache pages;
            fastcgi_cache_key $request_uri;
            fastcgi_cache_valid 200 1m;
            fastcgi_cache_bypass $skip_cache;
            fastcgi_no_cache $skip_cache;
            fastcgi_cache_lock on;
            fastcgi_cache_use_stale updating error timeout;
        }
    }

    # an application that sends clients on to another one

    server {
        listen 127.0.0.1:8080;
        server_name forum;
        root %%TESTDIR%%/site;

        location / {
            try_files $uri @app;
        }

        location @app {
            proxy_set_header Host $host;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass http://kept;
            error_page 502 504 /maintenance.html;
        }

        location /downloads/ {
            internal;
            proxy_set_header Host $host;
            proxy_pass http://127.0.0.1:8081/;
        }

        location /avatars/ {
            proxy_set_header Host $host;
            proxy_pass http://127.0.0.1:8081;
            proxy_cache proxied;
            proxy_cache_valid 200 1m;
        }
    }

    # scripts with a path behind their names, uploads

    server {
        listen 127.0.0.1:8080;
        server_name files;
        root %%TESTDIR%%/site;
        client_max_body_size 10m;

        rewrite ^/remote/(.*)$ /remote.php/$1 last;

        location ~ ^/remote\.php(?:$|/) {
            fastcgi_split_path_info ^(.+?\.php)(/.*)$;
            fastcgi_pass 127.0.0.1:8082;
        }

        location ~ ^/direct\.php(?:$|/) {
            fastcgi_request_buffering off;
            fastcgi_pass 127.0.0.1:8082;
        }
    }

    # a gateway in Lua: who the client is, how often it may ask, where it goes

    server {
        listen 127.0.0.1:8080;
        server_name gateway;

        location / {
            rewrite_by_lua_block { slept(0.1) }

            access_by_lua_block {
                local s = ngx.socket.tcp()
                s:settimeout(2000)
                assert(s:connect("127.0.0.1", %%PORT_8083%%))
                s:send("gateway 150\n")
                local answer = s:receive()
                s:setkeepalive(1000, 8)
                if answer ~= "welcome" then return ngx.exit(403) end
            }

            proxy_set_header Host $host;
            proxy_pass http://backends;
            body_filter_by_lua_block { ngx.arg[1] = ngx.arg[1] }
        }

        location /collect {
            content_by_lua_block {
                local a = ngx.location.capture("/inner/wait=150/")
                slept(0.1)
                local b = ngx.location.capture("/inner/wait=100/")
                ngx.say(#a.body + #b.body)
            }
        }

        location /inner/ {
            internal;
            proxy_set_header Host $host;
            proxy_pass http://127.0.0.1:8081/;
        }
    }

    # a proxy that asks another one who the client is

    server {
        listen 127.0.0.1:8080;
        server_name signed;

        location / {
            auth_request /oauth2/auth;
            auth_request_set $user $upstream_http_x_user;
            error_page 401 = /oauth2/sign_in;
            proxy_set_header Host $host;
            proxy_set_header X-User $user;
            proxy_pass http://127.0.0.1:8081;
        }

        location = /oauth2/auth {
            internal;
            proxy_set_header Host $host;
            proxy_set_header Content-Length "";
            proxy_pass_request_body off;
            proxy_pass http://127.0.0.1:8081/wait=120/;
        }

        location /oauth2/ {
            return 302 /login;
        }
    }

    # servers that are found by their names

    server {
        listen 127.0.0.1:8080;
        server_name named;

        location / {
            proxy_set_header Host $host;
            proxy_pass http://$arg_name.test:%%PORT_8081%%;
        }

        location /lua {
            content_by_lua_block {
                local s = ngx.socket.tcp()
                s:settimeout(2000)
                assert(s:connect(ngx.var.arg_name .. ".test", %%PORT_8083%%))
                s:send("named 100\n")
                ngx.say(s:receive())
                s:close()
            }
        }
    }

    server {
        listen 127.0.0.1:8084;
        access_log off;
        profile_keep off;
        profile_accounting off;

        location = /metrics {
            profile_metrics;
        }

        location = /truth {
            content_by_lua_block {
                for _, key in ipairs(ngx.shared.truth:get_keys(0)) do
                    ngx.say(key, " ", ngx.shared.truth:get(key))
                end
            }
        }

        location / {
            profile_console;
        }
    }
}
EOC

mkdir $t->testdir() . "/$_" for qw{ site site/big };
$t->write_file("site/$_", "body { }\n" x 4000) for qw/ index.html style.css /;
$t->write_file('site/maintenance.html', 'later');
$t->write_file("site/$_", '') for qw/ index.php remote.php direct.php /;
$t->write_file('site/big/file', 'x' x 12_000_000);
$t->write_file('truth.log', '');

serve(8081, \&serve_http);
serve(8082, \&serve_fastcgi);
serve(8083, \&serve_line);
serve_names(8953);

$t->run();

my %requests = (
    static => [ [ '/style.css' ], [ '/none/' ], [ '/late', late => 0.2 ],
                [ '/big/file', reads => 0.8 ] ],
    blog => [ [ '/hello?wait=200' ], [ '/?wait=150', cookie => 1 ],
              ],
    forum => [ [ '/t/wait=150/body=100/' ],
               [ '/u/wait=100/accel=/downloads/wait=200/' ],
               [ '/avatars/wait=200/' ] ],
    files => [ [ '/remote/dav?wait=150' ], [ '/remote/up?wait=100', late => 0.2,
                                             body => 1 ],
               [ '/direct.php/up?wait=150', late => 0.2, body => 1 ] ],
    gateway => [ [ '/api/wait=200/' ], [ '/collect' ] ],
    signed => [ [ '/app/wait=200/' ], [ '/app/wait=100/', body => 1 ] ],
    named => [ [ '/wait=100/?name=' ], [ '/lua?name=' ] ],
);

my @all = map { my $site = $_; map { [ $site, @$_ ] } @{$requests{$site}} }
          sort keys %requests;

# each client sends each kind of request, and begins with another one

my @clients = map { my $n = $_; $t->start_child(sub { client($n) }) }
              0 .. $CLIENTS - 1;

waitpid $_, 0 for @clients;

# clients of one page, which only the first one gets from the application

for my $round (1 .. $ROUNDS) {
    @clients = map { $t->start_child(sub {
                         ask('blog', "/page?wait=300&page=1&round=$round");
                         POSIX::_exit(0);
                     }) } 1 .. $CLIENTS;

    waitpid $_, 0 for @clients;
}

my @lines = lines();
my $sent = (@all * $ROUNDS + $ROUNDS) * $CLIENTS;

wait_for(sub { @lines = lines(); @lines == $sent });
is(scalar(@lines), $sent, 'all requests are logged');

my $m = metrics_of(http_get('/metrics', port => 8084)->body());
my %truth = truth();

# All clients waited for the pages, but the application made each for one.  The
# others waited until it was in the cache, as nginx logs it.

my $made = delete $truth{blog}{'made page'};

$truth{blog}{'cache lock'} = sum0(map { m{^blog /index\.php ([\d.]+) .*page=1}
                                        ? $1 : () } @lines) - $made;
$truth{blog}{'upstream first byte'} += $made;

my %kept = kept();

for my $site (sort keys %requests) {
    for my $cause (sort keys %{$truth{$site}}) {
        my $true = $truth{$site}{$cause};
        my $says = metric_sum($m, 'nginx_profile_request_wait_seconds_sum',
                              server => $site, cause => $cause);

        agrees($says, $true, "$site, metrics: $cause");
        agrees($kept{$site}{$cause} // 0, $true, "$site, kept: $cause")
            if !$ENV{PROFILE_TEST_METRICS_ONLY};
    }

    my %causes = map { $_ => 1 } map { /cause="([^"]*)"/ }
                 grep { /_wait_seconds_sum\{/ && /server="$site"/ } keys %$m;
    my @others = grep { !defined $truth{$site}{$_}
                        && metric_sum($m,
                               'nginx_profile_request_wait_seconds_sum',
                               server => $site, cause => $_)
                           > 0.003 * $ROUNDS * $CLIENTS }
                 sort keys %causes;

    is("@others", '', "$site: nothing else was waited for");
}

# all parts of each request are its whole

my @wrong = grep { !/^\S+ \S+ ([\d.]+) .*wait=([\d.]+) stall=([\d.]+)/
                   || $2 + $3 > $1 + 0.002 } @lines;
is(scalar(@wrong), 0, 'no request has parts larger than its time')
    or diag(join("\n", @wrong[0 .. ($#wrong < 5 ? $#wrong : 5)]));

@wrong = grep { !/^\S+ \S+ ([\d.]+) .*longest=([\d.]+)/ || $2 > $1 + 0.002 }
         @lines;
is(scalar(@wrong), 0, 'no turn is longer than its request')
    or diag(join("\n", @wrong[0 .. ($#wrong < 5 ? $#wrong : 5)]));


sub agrees {
    my ($says, $true, $name) = @_;

    my $rest = abs($says - $true);

    ok($rest <= $EXACT * $true, $name)
        or diag(sprintf('%.3f s, and truly %.3f s: %+.1f %%', $says, $true,
                        100 * ($says / $true - 1)));
}


sub lines {
    return grep { /^\w+ / } split /\n/, $t->read_file('times.log');
}


# { site => { cause => seconds } }, as the other sides measured it

sub truth {
    my %sums;

    for (split(/\n/, $t->read_file('truth.log')),
         split(/\n/, http_get('/truth', port => 8084)->content()))
    {
        my ($site, $cause, $seconds) = /^(\w+) (.*) ([\d.e-]+)$/ or next;
        $sums{$site}{$cause} += $seconds;
    }

    return %sums;
}


# the same, of all kept profiles

sub kept {
    my %sums;
    my @ids = map { /^(\w+) .* id=(\w+)/ ? [ $1, $2 ] : () } @lines;

    is(scalar(@ids), $sent, 'all requests are kept');

    for (@ids) {
        my ($site, $id) = @$_;
        my $r;

        wait_for(sub { $r = http_get("/p/$id/folded", port => 8084);
                       $r->status() == 200 });

        for (split /\n/, $r->content()) {
            my ($stack, $ns) = /^\[waiting\];(.*) (\d+)$/ or next;
            my ($cause) = $stack =~ /^(?:(?:subrequest|redirect) [^;]*;)*
                                     ([^;]*)/x;

            $cause =~ s/ (?:\(try \d+\) )?127\.0\.0\.1:\d+.*//;
            $cause =~ s/^resolver .*/resolver/;
            $sums{$site}{$cause} += $ns / 1e9;
        }
    }

    return %sums;
}


# Clients

sub client {
    my ($n) = @_;

    srand($n);

    for my $round (1 .. $ROUNDS) {
        for my $i (0 .. $#all) {
            my ($site, $uri, %how) = @{$all[($i + 3 * $n) % @all]};

            $uri .= ($uri =~ /\?/ ? '&' : '?') . "c=$n.$round";
            $uri =~ s/name=/name=slow$n-$round-$i/;

            ask($site, $uri, %how);
        }
    }

    POSIX::_exit(0);
}


# one request; what the client lets nginx wait for is measured here

sub ask {
    my ($site, $uri, %how) = @_;

    my $body = 'x' x 200;
    my $s = ProfileTest::HTTP::connect_to(8080) or die "connect: $!\n";
    my $head = ($how{body} ? 'POST' : 'GET') . " $uri HTTP/1.1\r\n"
               . "Host: $site\r\nConnection: close\r\n"
               . ($how{cookie} ? "Cookie: logged_in=1\r\n" : '');

    if ($how{body}) {
        syswrite($s, $head . "Content-Length: 400\r\n\r\n"
                     . ($how{late} ? $body : "$body$body"));

        if ($how{late}) {
            my $from = clock();
            sleep $how{late};
            syswrite($s, $body);
            measured($site, 'client sending the request body', $from);
        }

    } elsif ($how{late}) {
        syswrite($s, $head);
        my $from = clock();
        sleep $how{late};
        syswrite($s, "\r\n");
        measured($site, 'client sending the request header', $from);

    } else {
        syswrite($s, "$head\r\n");
    }

    my $from = clock();

    sleep $how{reads} if $how{reads};

    1 while sysread($s, my $buf, 1_000_000);

    measured($site, 'client not reading', $from) if $how{reads};
}


# The other sides.  Each is served by processes that are there before the first
# connection, so that no time passes before they measure.

sub serve {
    my ($port, $answer) = @_;

    my $s = IO::Socket::INET->new(Proto => 'tcp', LocalAddr => '127.0.0.1',
                                  LocalPort => port($port), Listen => 128,
                                  ReuseAddr => 1) or die "cannot listen: $!\n";

    for (1 .. 2 * $CLIENTS) {
        $t->run_daemon(sub {
            local $SIG{PIPE} = 'IGNORE';

            while (1) {
                my $c = $s->accept() or next;
                1 while $answer->($c);
                close $c;
            }
        });
    }

    close $s;
}


sub clock { return clock_gettime(CLOCK_MONOTONIC) }


sub measured {
    my ($site, $cause, $from) = @_;

    open my $f, '>>', $t->testdir() . '/truth.log' or die "cannot open: $!\n";
    syswrite($f, sprintf("%s %s %.6f\n", $site, $cause, clock() - $from));
}


sub serve_http {
    my ($c) = @_;

    my $request = '';

    while ($request !~ /\r\n\r\n/) {
        sysread($c, $request, 65536, length($request)) or return;
    }

    my $from = clock();
    my ($path) = $request =~ m{^\S+ (\S*)};
    my ($site) = $request =~ /^Host: (\w+)/m;
    my ($accel) = $path =~ s{/accel=(/.*?)(\?.*)?$}{} ? $1 : '';
    my ($wait) = $path =~ m{wait=(\d+)};
    my ($pause) = $path =~ m{body=(\d+)};
    my $answer = "HTTP/1.1 200 OK\r\nX-User: somebody\r\nContent-Length: 20\r\n"
                 . ($accel ? "X-Accel-Redirect: $accel\r\n" : '') . "\r\n";

    sleep(($wait // 0) / 1000);
    syswrite($c, $answer . ($pause ? 'x' x 10 : 'x' x 20));
    measured($site, 'upstream first byte', $from);

    if ($pause) {
        $from = clock();
        sleep($pause / 1000);
        syswrite($c, 'x' x 10);
        measured($site, 'upstream body', $from);
    }

    return $request !~ /^Connection: close/m;
}


sub serve_fastcgi {
    my ($c) = @_;

    my ($params, $from) = ('');

    while (1) {
        my ($type, $content) = fastcgi_record($c) or return;

        $params .= $content if $type == 4;
        last if $type == 5 && $content eq '';
    }

    $from = clock();

    my ($site) = $params =~ /SERVER_NAME(\w+?)(?=[^a-z])/;
    my ($wait) = $params =~ /wait=(\d+)/;

    sleep(($wait // 0) / 1000);

    my $text = "Content-Type: text/plain\r\n\r\nok\n";

    syswrite($c, pack('CCnnCC', 1, 6, 1, length($text), 0, 0) . $text
                 . pack('CCnnCC', 1, 6, 1, 0, 0, 0)
                 . pack('CCnnCC', 1, 3, 1, 8, 0, 0) . "\0" x 8);
    measured($site, $params =~ /round=/ ? 'made page' : 'upstream first byte',
             $from);

    return;
}


sub fastcgi_record {
    my ($c) = @_;

    my $head = exactly($c, 8) // return;
    my (undef, $type, undef, $len, $pad) = unpack('CCnnC', $head);
    my $content = $len + $pad ? exactly($c, $len + $pad) // return : '';

    return ($type, substr($content, 0, $len));
}


sub exactly {
    my ($c, $n) = @_;

    my $buf = '';

    while (length($buf) < $n) {
        sysread($c, $buf, $n - length($buf), length($buf)) or return;
    }

    return $buf;
}


# "SITE MS", answered after this time

sub serve_line {
    my ($c) = @_;

    my $line = '';

    while ($line !~ /\n/) {
        sysread($c, $line, 100, length($line)) or return;
    }

    my $from = clock();
    my ($site, $ms) = $line =~ /^(\w+) (\d+)/;

    sleep($ms / 1000);
    syswrite($c, "welcome\n");
    measured($site, 'script socket', $from);

    return 1;
}


# every name is 127.0.0.1, after 150 ms

sub serve_names {
    my ($port) = @_;

    my $s = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1',
                                  LocalPort => port($port))
        or die "cannot bind: $!\n";

    $t->run_daemon(sub {
        my (@due, %seen);

        while (1) {
            my $in = @due ? $due[0][0] - clock() : 10;

            if (IO::Select->new($s)->can_read($in > 0 ? $in : 0)) {
                my $from = recv($s, my $query, 512, 0) // next;
                my $end = index($query, "\0", 12) + 5;

                push @due, [ clock() + 0.15, clock(), $from,
                             substr($query, 0, 2)
                             . pack('n5', 0x8180, 1, 1, 0, 0)
                             . substr($query, 12, $end - 12)
                             . pack('n3 N n a4', 0xc00c, 1, 1, 3600, 4,
                                    "\x7f\0\0\1") ];
            }

            while (@due && $due[0][0] <= clock()) {
                my (undef, $from, $peer, $answer) = @{shift @due};

                send($s, $answer, 0, $peer);
                measured('named', 'resolver', $from);
            }
        }
    });

    close $s;
}
