#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# Self time by source of the name.  Each load runs wrk and captures the worker
# in the mode cpu.  Prints for each load and each kind of code the part of the
# CPU time, and of this part the percent in functions whose names have a source;
# with LIST=1 also the functions that have only an offset.  "module" is an offset
# in a dynamic module: the module is known, but not the source file.
#
# usage: bench/names.pl [LOAD...]
#
# SECONDS=5  of each; FREQUENCY=999; LIST=1
#
# The table is about stripped packages, so debug files must not be installed.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use Time::HiRes qw/ sleep /;

use lib dirname(abs_path($0)), dirname(abs_path($0)) . '/../t/lib';

use Bench;
use ProfileTest::Pprof;

my $seconds = $ENV{SECONDS} || 5;
my $frequency = $ENV{FREQUENCY} || 999;
my $modules = $ENV{MODULES_PATH} || '/usr/lib/nginx/modules';

# name, path, arguments of wrk
my @loads = (
    [ 'static', '/small.html', [] ],
    [ 'gzip', '/text.txt', [ '-H', 'Accept-Encoding: gzip' ] ],
    [ 'TLS', 'https:/small.html', [ '-H', 'Connection: close' ] ],
    [ 'proxied', '/proxied/small.html', [] ],
    [ 'Lua, interpreted', '/lua/interpreted', [] ],
    [ 'Lua, compiled', '/lua/compiled', [] ],
    [ 'njs', '/njs', [] ],
);

my @KINDS = ('nginx, modules', 'scripts', 'libraries', 'kernel');
my @SOURCES = qw/ symbols debug script role unit call module offset /;

die "wrk is not installed\n" if system('command -v wrk > /dev/null');

if (@ARGV) {
    my %asked = map { $_ => 1 } @ARGV;
    @loads = grep { $asked{$_->[0]} } @loads;
}

my $port = free_port();
my $tls = free_port();
my $behind = free_port();

write_files();

my $server = start(port => $port, main => main_conf(), http => http_conf());

printf "%-18s %-15s %7s" . (' %8s' x @SOURCES) . "\n", 'load', 'code', '% CPU',
       @SOURCES;

for (@loads) {
    my ($name, $path, $wrk) = @$_;

    my $url = $path =~ s{^https:}{} ? "https://127.0.0.1:$tls$path"
                                    : "http://127.0.0.1:$port$path";

    report($name, captured($url, @$wrk));
}

stop($server);


sub captured {
    my ($url, @wrk) = @_;

    my $load = fork() // die "fork: $!\n";

    if ($load == 0) {
        open(STDOUT, '>', '/dev/null');
        exec('wrk', '-t1', '-c8', '-d' . ($seconds + 2), @wrk, $url);
        die "wrk: $!\n";
    }

    sleep(0.5);

    # connections of the load are not needed to capture the worker
    my ($head, $body) = split(/\r\n\r\n/, get("/-/profile/cpu?seconds=$seconds"
                              . "&frequency=$frequency&format=pprof"), 2);

    $head =~ m{^HTTP/1.1 200 } or die "$url: $head\n$body\n";

    kill('TERM', $load);
    waitpid($load, 0);

    return ProfileTest::Pprof->new($body);
}


# uses its own connection
sub get {
    my ($path) = @_;

    my $s = connect_to($port) or die "connect: $!\n";

    print $s "GET $path HTTP/1.1\r\nHost: localhost\r\n"
             . "Connection: close\r\n\r\n";
    local $/;

    return <$s>;
}


# by the innermost function of each sample
sub report {
    my ($name, $p) = @_;

    my %leaves = leaves($p);
    my @types = $p->types();
    my ($i) = grep { $types[$_] eq 'cpu/nanoseconds' } 0 .. $#types;
    my (%time, %offsets, $total);

    for my $s ($p->list(2)) {
        my $leaf = $leaves{$s->{1}[0] // next} or die "no location\n";
        my $ns = $s->{2}[$i];
        my ($kind, $source, $function) = @$leaf;

        # the part of a capture in which the worker was idle
        next if $function eq '[idle]';

        $time{$kind}{$source} += $ns;
        $total += $ns;

        $offsets{$function} += $ns
            if $source eq 'offset' || $source eq 'module';
    }

    for my $kind (@KINDS) {
        my $sum = 0;
        $sum += $_ for values %{$time{$kind} || {}};
        next if $sum == 0;

        printf "%-18s %-15s %7.1f", $name, $kind, 100 * $sum / $total;

        for my $source (@SOURCES) {
            my $ns = $time{$kind}{$source};
            print defined $ns ? sprintf(' %8.1f', 100 * $ns / $sum)
                              : sprintf(' %8s', '-');
        }

        print "\n";
        $name = '';
    }

    return unless $ENV{LIST};

    my @names = sort { $offsets{$b} <=> $offsets{$a} } keys %offsets;
    splice(@names, 10) if @names > 10;

    printf "    %5.2f %% %s\n", 100 * $offsets{$_} / $total, $_ for @names;
}


# { location => [ kind, source, function ] }
sub leaves {
    my ($p) = @_;

    my %objects = map { $p->field($_, 1) => $p->string($p->field($_, 5)) }
                      $p->list(3);
    my %functions = map { $p->field($_, 1) => $_ } $p->list(5);
    my %leaves;

    for my $l ($p->list(4)) {
        my ($line) = @{$l->{4} || []} or die "a location without a line\n";
        my $function = $functions{$p->field($line, 1)};
        my $name = $p->string($p->field($function, 2));
        my ($object) = ($objects{$p->field($l, 2)} // '') =~ m{([^/]*)$};

        my $source = source($name, $object, $p->field($line, 2));

        $leaves{$p->field($l, 1)} = [ kind($object, $source, $name), $source,
                                      $name ];
    }

    return %leaves;
}


sub source {
    my ($name, $object, $line) = @_;

    return 'call' if $name =~ /^sys_/ && $object eq '';
    return 'module' if $name =~ /^\S+_module\.so\+0x[0-9a-f]+$/;
    return 'offset' if $name =~ /^\S+\+0x[0-9a-f]+$/
                       || $name eq '[anonymous code]';
    return 'unit' if $name =~ /^\S+\.c \(\S+\+0x[0-9a-f]+\)$/;
    return 'role' if $name =~ /\(\S+\+0x[0-9a-f]+\)$/;
    return 'script' if $name =~ /\.(?:lua|js|pm|pl):\d+/ || $object eq '';

    return $line ? 'debug' : 'symbols';
}


sub kind {
    my ($object, $source, $name) = @_;

    return 'kernel' if $source eq 'call' || $object =~ /vdso/;
    return 'scripts' if $source eq 'script' || $object eq ''
                        || $object =~ /^libluajit/;
    return 'nginx, modules' if $object eq 'nginx' || $object =~ /_module\.so$/;

    return 'libraries';
}


###############################################################################

sub write_files {
    my $html = dir() . '/html';

    write_file("$html/small.html", 'x' x 1000);
    write_file("$html/text.txt", join('', map { "line $_ " . rand() . "\n" }
                                              1 .. 4000));

    write_file(dir() . '/page.lua', <<'EOF');
local page = {}

local function row(i)
    local hash = i

    for k = 1, 100 do
        hash = (hash * 31 + k) % 65521
    end

    return "<li>" .. i .. ": " .. hash .. "</li>"
end

function page.make()
    local rows = {}

    for i = 1, 200 do
        rows[i] = row(i)
    end

    ngx.say("<ul>", table.concat(rows), "</ul>")
end

return page
EOF

    write_file(dir() . '/page.js', <<'EOF');
function row(i) {
    return "<li>" + i + ": " + encodeURIComponent("a b " + i) + "</li>";
}

function make(r) {
    var rows = [];

    for (var i = 0; i < 200; i++) {
        rows.push(row(i));
    }

    r.return(200, "<ul>" + rows.join("") + "</ul>");
}

export default { make };
EOF

    my $dir = dir();

    system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bench"
           . " -out $dir/crt -keyout $dir/key 2> /dev/null") == 0
        or die "openssl failed\n";
}


sub main_conf {
    return join("\n", module(), map { "load_module $modules/$_.so;" }
                      qw/ ndk_http_module ngx_http_lua_module
                          ngx_http_js_module /);
}


sub http_conf {
    my $dir = dir();

    return <<"EOF";
    root $dir/html;
    sendfile on;
    gzip_types text/plain;
    gzip_comp_level 6;

    lua_package_path "$dir/?.lua;;";
    js_path $dir;
    js_import page from page.js;

    upstream behind {
        server 127.0.0.1:$behind;
        keepalive 16;
        keepalive_requests 1000000000;
    }

    server {
        listen 127.0.0.1:$port;
        listen 127.0.0.1:$tls ssl;
        ssl_certificate $dir/crt;
        ssl_certificate_key $dir/key;
        ssl_session_tickets off;

        location / { }

        location /text.txt { gzip on; }

        location /proxied/ {
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass http://behind/;
        }

        location /lua/interpreted {
            content_by_lua_block {
                jit.off()
                require("page").make()
            }
        }

        location /lua/compiled {
            content_by_lua_block {
                jit.on()
                require("page").make()
            }
        }

        location /njs { js_content page.make; }

        location /-/profile/ { profile_console; }
    }

    server {
        listen 127.0.0.1:$behind;
    }
EOF
}
