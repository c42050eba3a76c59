#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors

# How long the event loop is held while a capture of about 100,000 samples is
# ended, rendered and sent, and the delay of small requests in the same worker.
#
# A timer in the worker that expires each millisecond measures how long the loop
# did not run: by the worker's CPU clock ("held", which other processes do not
# change), and by the wall clock ("late", which they change).  Another client
# sends small requests, one after the other ("small").  All in milliseconds.
# "before" is the same worker without a capture, for as long.
#
# The capture runs until it has its samples, so a run takes half a minute for
# each format.  usage: bench/loop_latency.pl [FORMAT...]

use strict;
use warnings;

use File::Basename qw/ dirname /;
use IO::Select;
use IO::Uncompress::Gunzip qw/ gunzip /;
use POSIX ();
use Time::HiRes qw/ sleep time /;

use lib dirname(__FILE__);

use Bench;

use constant SAMPLES => $ENV{SAMPLES} || 100_000;
use constant FREQUENCY => 10_000;

my $modules = $ENV{MODULES_PATH} || '/usr/lib/nginx/modules';

my @formats = @ARGV ? @ARGV
              : `grep -o '^    x([a-z]*)' shared/formats/prof_encode.h`
                =~ /\((\w+)\)/g;

die "no lua module in $modules\n" unless -f "$modules/ngx_http_lua_module.so";

my $dir = dir();
my $port = free_port();

write_file("$dir/loop.lua", <<'EOF');
local ffi = require("ffi")

ffi.cdef [[
    typedef struct { long sec; long nsec; } loop_time_t;
    int clock_gettime(int id, loop_time_t *t);
]]

local t = ffi.new("loop_time_t")

local function clock(id)
    ffi.C.clock_gettime(id, t)
    return (tonumber(t.sec) * 1e9 + tonumber(t.nsec)) / 1e6
end

-- CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC
local cpu, wall = clock(3), clock(1)

loop = {}

function loop.reset()
    cpu, wall = clock(3), clock(1)
    loop.held, loop.late = 0, 0
    ngx.update_time()
    loop.ended = ngx.now()
end

function loop.cpu() return clock(3) end

loop.reset()

local function tick()
    local c, w = clock(3), clock(1)

    loop.held = math.max(loop.held, c - cpu)
    loop.late = math.max(loop.late, w - wall)
    cpu, wall = c, w
end

assert(ngx.timer.every(0.001, tick))
EOF

# many different stacks: calls of C functions from calls of C functions, in
# slices of half a millisecond
write_file("$dir/work.lua", <<'EOF');
local seconds = tonumber(ngx.var.arg_seconds)
local n, used = 0, 0

local function work(depth, path)
    if depth == 0 then
        local s = string.rep("x" .. path, 20)
        return #ngx.md5(s) + #ngx.encode_base64(s) + #(s:gsub("x", "yy"))
               + (ngx.re.find(s, "(x[0-9]+)+z") or 0)
    end

    local sum = 0

    local one = function() sum = sum + work(depth - 1, path * 2) end
    local two = function() return "a", work(depth - 1, path * 2 + 1) end

    if path % 2 == 0 then
        table.sort({ 1, 2 }, function(a, b)
            if sum == 0 then one() end
            return a < b
        end)
    else
        ("b"):gsub("b", function() return (two()) end)
    end

    return sum
end

jit.off(work, true)

while used < seconds * 1000 do
    local start = loop.cpu()

    repeat
        n = (n * 1103515245 + 12345) % 2147483648
        work(3 + n % 8, n % 65536)
    until loop.cpu() - start > 0.5

    used = used + loop.cpu() - start
    ngx.sleep(0)
end

loop.reset()
EOF

my @modules = map { "load_module $modules/$_.so;" }
                  qw/ ndk_http_module ngx_http_lua_module /;

my $server = start(port => $port, main => join("\n", @modules, module()),
                   connections => 64, http => <<"EOC");
    init_worker_by_lua_file $dir/loop.lua;

    server {
        listen 127.0.0.1:$port;
        profile_endpoint on;
        profile_frequency @{[ FREQUENCY ]};
        profile_buffer 256m;
        profile_timeout 10m;
        location /small { return 200 "small\\n"; }
        location /reset { content_by_lua_block { loop.reset() } }
        location /worst {
            content_by_lua_block {
                ngx.say(loop.held, " ", loop.late, " ", loop.ended)
            }
        }
        location /work { content_by_lua_file $dir/work.lua; }
    }
EOC

my $s = connect_to($port);

printf "%-12s %8s %8s %8s %8s %8s %8s %8s\n", '', 'samples', 'MB', 'ms',
       'held', 'late', 'small', 'p99';

for my $format (@formats) {
    my $seconds = SAMPLES / FREQUENCY * 1.05;
    my $reader = fetch("/work?seconds=$seconds&performance_bar=flamegraph"
                       . "&profile_format=$format");

    my $select = IO::Select->new($reader);
    my @all = small($s, sub { $select->can_read(0) });
    my ($held, $late, $ended) = split(' ', get($s, '/worst'));

    my ($end, $samples, $len) = split(' ', scalar <$reader>);
    my @during = grep { $_->[0] > $ended } @all;

    report($format, $samples, $len / 1e6, ($end - $ended) * 1e3, $held, $late,
           @during);

    get($s, '/reset');

    my $until = time() + $end - $ended;
    my @before = small($s, sub { time() > $until });
    ($held, $late) = split(' ', get($s, '/worst'));

    report('  before', '', 0, 0, $held, $late, @before);
}

stop($server);


# A process that fetches the reply, and then prints the time of its arrival, the
# number of samples in it, and its length.
sub fetch {
    my ($uri) = @_;

    my $pid = open(my $reader, '-|') // die "fork: $!\n";

    return $reader if $pid;

    my $s = connect_to($port);
    my $body = '';

    print $s "GET $uri HTTP/1.0\r\n\r\n";
    1 while sysread($s, $body, 1 << 20, length $body);

    my $end = time();
    my $len = length $body;

    if ($body =~ /\r\n\r\n(\x1f\x8b.*)/s) {
        my $gz = $1;
        gunzip(\$gz => \$body);
    }

    my ($samples) = $body =~ /(\d+) samples/;

    print join(' ', $end, $samples // '-', $len), "\n";
    close STDOUT;

    # not the temporary directory
    POSIX::_exit(0);
}


# sends small requests until the capture is done: [ time, latency ] of each
sub small {
    my ($s, $done) = @_;
    my @seen;

    until ($done->()) {
        my $start = time();

        get($s, '/small');
        push @seen, [ $start, (time() - $start) * 1e3 ];
        sleep 0.0005;
    }

    return @seen;
}


sub get {
    my ($s, $uri) = @_;

    syswrite($s, "GET $uri HTTP/1.1\r\nHost: a\r\n\r\n");

    my $body = '';

    while ($body !~ /\r\n\r\n.*\n\z/s || $body =~ /\r\n[0-9a-f]+\r\n.*(?<!0)\z/) {
        sysread($s, $body, 65536, length $body)
            or die "nginx closed the connection: see $dir/error.log\n";
        last if $body =~ /^Content-Length: \d+\r\n.*\r\n\r\n.+\z/ms
                || $body =~ /\r\n0\r\n\r\n\z/;
    }

    return $body =~ /^(\d[\d.]* [\d. ]+)$/m ? $1 : '';
}


sub report {
    my ($name, $samples, $mb, $ms, $held, $late, @small) = @_;

    my @sorted = sort { $a <=> $b } map { $_->[1] } @small;

    printf "%-12s %8s %8s %8s %8.2f %8.2f %8.2f %8.2f\n", $name, $samples,
           $mb ? sprintf('%.1f', $mb) : '', $ms ? sprintf('%.0f', $ms) : '',
           $held, $late, $sorted[$#sorted / 2] // 0,
           $sorted[$#sorted * 0.99] // 0;
}
