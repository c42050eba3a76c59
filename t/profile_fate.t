#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store
# runs: beside
#
# What the console answers for a profile that the store does not have: not
# stored yet, never stored, gone, or unknown.  Each worker knows, also after a
# reload.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has('proxy')->allow(qr/exited on signal 9/);

$t->conf(<<'EOF', workers => 3);
profile_zone profiles:1m;

log_format id '$uri $profile_id';
access_log %%TESTDIR%%/id.log id;

server {
    listen 127.0.0.1:8080;
    profile_endpoint on;
    profile_keep $arg_keep rate=1000;

    location / { }
    location /hang/ { proxy_pass http://127.0.0.1:8081; }
    location /-/profile/ { profile_console; access_log off; }
    location /slow/ { limit_rate 100; alias %%TESTDIR%%/; }
    location = /slow/wait { limit_rate 20000; alias %%TESTDIR%%/large; }
}
EOF

$t->write_file('a', "a\n");
$t->write_file('large', 'x' x 100_000);

my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
                                   LocalPort => port(8081), Listen => 5,
                                   ReuseAddr => 1)
    or die "listen: $!\n";

$t->run();


# a request that runs

my $s = http_get('/slow/wait?performance_bar=record', start => 1);
my $head = '';
sysread($s, $head, 1, length $head) while $head !~ /X-Profile-Id: (\w+)\r\n/;
my ($id) = $head =~ /X-Profile-Id: (\w+)/;

my @answers = map { get($id) } 1 .. 12;

is(scalar(grep { $_->status() == 404 && ($_->header('Retry-After') // '') eq 1
                 && $_->body() =~ /is not stored yet/ } @answers), 12,
   'each worker says that a profile is not stored yet');
is(http_get("/-/profile/p/$id.json")->header('Retry-After'), 1,
   'the answer in JSON says when to ask again');

$t->reload();
like(get($id)->body(), qr/is not stored yet/,
     'workers of the next configuration know it, too');

http_end($s);
ok(wait_for(sub { get($id)->status() == 200 }), 'then the profile is stored');
is(http(join("\r\n", "DELETE /-/profile/p/$id HTTP/1.1", 'Host: localhost',
             'X-Profile-Console: 1', 'Connection: close', '', ''))->status(),
   204, 'the profile is deleted');
like(get($id)->body(), qr/is gone: .* deleted/, 'then it is gone');
is(get($id)->header('Retry-After'), undef, 'it does not come back');


# clients that leave

for my $what (qw/ flamegraph record /) {
    my $uri = $what eq 'record' ? '/slow/large' : '/hang/large';

    $s = http_get("$uri?performance_bar=$what", start => 1);

    # the response of the recorded request has begun, the other never begins

    if ($what eq 'record') {
        sysread($s, $head, 1);

    } else {
        my $asked = $silent->accept();
        scalar readline($asked);
    }

    close $s;

    ok(wait_for(sub {
           ($id) = $t->read_file('id.log') =~ m{^$uri (\w{32})$}m;
       }), "$what: the log has the id of a client that left");

    ok(wait_for(sub { get($id)->status() == 200 }),
       "$what: the profile is stored without the client");
}


# a worker that is killed

$s = http_get('/slow/large?performance_bar=record', start => 1);
$head = '';
sysread($s, $head, 1, length $head) while $head !~ /X-Profile-Id: (\w+)\r\n/;
($id) = $head =~ /X-Profile-Id: (\w+)/;

my ($listed) = http_get('/-/profile/status.json')->body()
               =~ /"captures":\[[^\]]*"worker": ?(\d+)\}\]/;
ok($listed, 'a worker captures') or $listed = ($t->worker_pids())[0];

kill 'KILL', $listed;
ok(wait_for(sub { !kill 0, $listed }), 'the worker is killed');
ok(wait_for(sub { get($id)->body() =~ /was never stored: .*worker left/ }),
   'the profile of a killed worker was never stored');
close $s;


# unknown ids, and a profile that the store had to remove

like(get('0' x 32)->body(), qr/^there is no profile "0{32}": .*never made$/m,
     'an unknown id is unknown');
like(get('x')->body(), qr/^there is no profile "x"/, 'a wrong id is unknown');

$id = http_get('/a?performance_bar=record')->header('X-Profile-Id');
ok(wait_for(sub { get($id)->status() == 200 }), 'a profile is stored');

ok(wait_for(sub {
       http_get('/a?performance_bar=record') for 1 .. 20;
       return get($id)->status() == 404;
   }, 60), 'newer profiles remove it');
like(get($id)->body(), qr/is gone|removed long ago/,
     'the console says that it is gone');


sub get {
    my ($id) = @_;
    return http_get("/-/profile/p/$id/folded");
}
