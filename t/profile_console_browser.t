#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# The console in a browser: from a page to its flamegraph, through list,
# detail and deletion; two users at once; what other sites can do.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $root = dirname(abs_path(__FILE__));
my $viewer = "$root/speedscope/node_modules/speedscope/dist/release";

my $t = ProfileTest->new()->has_program(qw/ node /);

$t->skip_all("run \"npm ci\" in $root/browser first")
    unless -d "$root/browser/node_modules/axe-core";
$t->skip_all("run \"npm ci\" in $root/speedscope first") unless -d $viewer;
$t->skip_all('no chromium')
    unless $ENV{CHROMIUM} || grep { -x "$_/chromium" } split(/:/, $ENV{PATH});

# the workers may not get at the files where they are

mkdir $t->testdir() . '/viewer';

for my $path (glob("$viewer/*")) {
    next if $path =~ /wasm|perf-vertx/;

    open my $f, '<:raw', $path or die "$path: $!\n";
    local $/;
    $t->write_file('viewer/' . ($path =~ s{.*/}{}r), <$f>);
}

$t->conf(<<'EOF', workers => 2);
types {
    text/html html;
}

# what sites have against being framed, or running scripts of others

add_header X-Frame-Options DENY always;
add_header Content-Security-Policy "default-src 'none'; sandbox" always;

profile_endpoint on;
profile_frequency 5000;
profile_viewer %%TESTDIR%%/viewer;

server {
    listen 127.0.0.1:8080;
    error_page 404 =200 /page.html;

    location /-/profile/ { profile_console; }
}

server {
    listen 127.0.0.1:8081;
    error_page 404 =200 /page.html;

    location /-/profile/ {
        profile_viewer off;
        profile_console;
    }
}

server {
    listen 127.0.0.1:8082;
    error_page 404 =200 /page.html;

    location /-/profile/ {
        deny all;
        profile_console;
    }
}

server {
    listen 127.0.0.1:8083;
    add_header X-Other yes;
}
EOF

$t->write_file('page.html', '<!DOCTYPE html><title>A page</title>'
                            . '<p>text</p>' x 100000);
$t->write_file('index.html', '<!DOCTYPE html><title>Another site</title>');
$t->run();

my $s = browser('walk', 8080);

is($s->{status}, 200, 'flamegraph');
like($s->{headers}{'content-security-policy'}, qr/^default-src 'none'; script/,
     'flamegraph, a policy of its own');
unlike($s->{headers}{'content-security-policy'}, qr/sandbox|,/,
       'flamegraph, not that of the site');
is($s->{headers}{'x-frame-options'}, undef,
   'flamegraph, nothing of the site about frames');
is($s->{headers}{'x-profiled-status'}, 200, 'flamegraph, original status');
like($s->{viewer}, qr/GET \/page/, 'flamegraph, in the viewer');
like($s->{title}, qr{^GET /page.* - profile$}, 'flamegraph, title');
like($s->{heading}, qr{^GET /page}, 'flamegraph, heading');
like($s->{facts}, qr/Wall\s+[\d.]+ \S*s.*CPU.*Samples/s, 'flamegraph, facts');
ok(!$s->{fallback}, 'flamegraph, no excuse');

like($s->{permanent}, qr{/-/profile/p/[0-9a-f]{32}$}, 'permanent link');
is($s->{viewerAgain}, $s->{viewer}, 'permanent link, the same profile');
cmp_ok($s->{graph}, '>', 5, 'tab, flamegraph');
is($s->{focus}, 'tab-graph', 'tab, by keyboard');
like($s->{details}, qr{request\s+GET /page\?performance_bar=flamegraph HTTP},
     'tab, facts');
is($s->{hash}, '#diff', 'tab, in the URL');
is($s->{selected}, 'true', 'tab, the same after a reload');
is(scalar @{$s->{formats}}, 5, 'downloads');
like($s->{download}, qr/^GET-page.*-wall-\d+T\d+Z\.speedscope\.json$/,
     'download, name');

is(scalar @{$s->{rows}}, 1, 'list');
like($s->{rows}[0][3], qr{^/page}, 'list, URI');
is($s->{rows}[0][2], 'GET', 'list, method');
is($s->{rows}[0][4], '200', 'list, status');
like($s->{pinned}[0][3], qr/pinned/, 'pinned');
is($s->{unpin}, 'Unpin', 'a pinned one');
like($s->{asked}, qr{^Delete the profile of GET /page}, 'asked to delete');
is_deeply($s->{deleted}, [], 'deleted');
is(join(' ', grep { /^(?:Store|Unwind tables)$/ } @{$s->{cards}}),
   'Store Unwind tables', 'status');

my %columns;
$columns{$_}++ for @{$s->{columns}};

is(join(' ', grep { $columns{$_} > 1 } sort keys %columns), '',
   'each column of the workers has a name of its own');
ok($columns{'Jobs memory'}, 'the status names the memory of jobs');
is($s->{losses}, 'Rate 0, Queue 0, Memory 0, Slots 0',
   'the status counts what was dropped');
unharmed('walk', $s);


# the list

record($_) for '/a', '/b';
http_post('/c?performance_bar=record', 'x=y');

$s = browser('lists', 8080);

is(scalar @{$s->{all}}, 3, 'list, all');
is($s->{post}[0][2], 'POST', 'list, filtered');
is($s->{count}, '1 of 3', 'list, filtered, count');
is($s->{hash}, '#filter=post', 'list, filter in the URL');
ok($s->{nothing}, 'list, nothing matches');
is($s->{kept}, 'no such thing', 'list, filter after a reload');
is("@{$s->{up}}", '/a /b /c', 'list, sorted');
is("@{$s->{down}}", '/c /b /a', 'list, sorted down');
is($s->{sorted}, 'descending', 'list, sorted, for screen readers');
is("@{$s->{live}}", '/d /c /b /a', 'list, live');
is(join('', map { $_ ? 1 : 0 } @{$s->{checked}}), '0010',
   'list, live, the selection stays');
is($s->{focused}, 'Select GET /b', 'list, live, the focus stays');
is($s->{still}, 4, 'list, not live');
is("@{$s->{few}}", '/e /d', 'list, two at a time');
is("@{$s->{older}}", '/e /d /c /b /a', 'list, older ones');
ok(!$s->{more}, 'list, no more of them');
is("@{$s->{newer}}", '/f /e /d /c /b /a', 'list, a newer one, older ones stay');
like("@{$s->{fewer}}", qr{^/e /d /b /a *pinned$},
     'list, changes of older ones');
like($s->{memory}[9], qr/^[\d.]+ \wi?B in [\d,]+$/, 'list, memory');
isnt($s->{colors}[0], $s->{colors}[1], 'list, dark');
cmp_ok($s->{overflow}, '<=', 400, 'list, narrow');
unharmed('list', $s);


# two users

$s = browser('users', 8080);

like($s->{viewers}[0], qr{GET /a}, 'user, viewer');
like($s->{viewers}[1], qr{GET /b}, 'another user, viewer');
like($s->{titles}[0], qr{^GET /a}, 'user, title');
like($s->{titles}[1], qr{^GET /b}, 'another user, title');
like($s->{note}, qr/^There is no profile/, 'user, the profile was deleted');
is(join("\n", grep { !/404/ } @{$s->{console}}), '', 'users, no messages');


# two profiles compared

$s = browser('compare', 8080);

ok($s->{alone} && $s->{one}, 'compare, takes two');
cmp_ok($s->{plain}{boxes}, '>', 5, 'compare, boxes');
is($s->{plain}{heading}, 'none', 'compare, one heading is enough');
like($s->{plain}{text}, qr/Functions that changed most/, 'compare, table');
like($s->{rows}, qr/Before\s+GET.*After\s+GET.*Change\s.*[\x{2212}+]/s,
     'compare, facts');
like($s->{changed}, qr/profile_mode=cpu&shares=on/, 'compare, in the URL');
is($s->{measure}, 'cpu', 'compare, measure');

my ($first, $second) = $s->{url} =~ /a=(\w+)&b=(\w+)/;
like($s->{swapped}, qr/a=$second&b=$first/, 'compare, swapped');
like($s->{wrong}, qr/^There is no profile "x"/, 'compare, wrong');
is(join("\n", grep { !/404/ } @{$s->{console}}), '', 'compare, no messages');
is(join("\n", @{$s->{axe}{compare}}), '', 'compare, accessible');


# all workers

my $load = $t->load('/page');

$s = browser('workers', 8080);
$load->stop();

is($s->{workers}, 3, 'workers, one or all of them');
like($s->{wrong}, qr/^"seconds" is "0", it must be a number from 0\.1/i,
     'workers, wrong');
like($s->{viewer}, qr/all workers/, 'workers, viewer');
is($s->{heading}, 'all workers', 'workers, heading');
like($s->{facts}, qr/Scope\s+all\s.*Mode\s+cpu/s, 'workers, facts');
unharmed('workers', $s);


# what is not there

$s = browser('gone', 8080);

is($s->{status}, 404, 'no profile');
like($s->{text}, qr/^there is no profile "0{32}"/, 'no profile, our own words');
is($s->{dialog}, undef, 'no profile, not those of the viewer');


# other sites

$s = browser('foreign', 8080, 'http://localhost:' . port(8083) . '/');

is("@{$s->{tried}}", 'refused refused refused refused refused',
   'another site, requests');
like($s->{form}, qr/comes from another site/, 'another site, form');
is($s->{framed}, 0, 'another site, frame');
unlike($s->{frame}, qr{/-/profile/}, 'another site, frame, refused');
is_deeply($s->{profiles}[1], $s->{profiles}[0],
          'another site has changed nothing');
cmp_ok(scalar @{$s->{profiles}[0]}, '>', 3, 'there is something to change');


# without a viewer, without a console

$s = browser('plain', 8081);

cmp_ok($s->{boxes}, '>', 5, 'no viewer, flamegraph');
ok(!$s->{viewer}, 'no viewer, no tab for it');
unharmed('no viewer', $s);

$s = browser('refused', 8082);

is($s->{status}, 200, 'closed console');
ok($s->{fallback}, 'closed console, the page says so');
cmp_ok($s->{boxes}, '>', 5, 'closed console, page without it');


sub browser {
    my ($scenario, $port, @more) = @_;

    my ($status, $out) = $t->command('node', "$root/browser/console.mjs",
                                     $scenario,
                                     'http://127.0.0.1:' . port($port), @more);

    is($status, 0, "$scenario in a browser") or diag($out);

    my ($json) = ($out // '') =~ /^(\{.*\})$/m;
    my $seen = $json ? decode_json($json) : {};

    is($seen->{failed}, undef, "$scenario to its end");

    return $seen;
}


sub record {
    my ($uri) = @_;

    like(http_get("$uri?performance_bar=record")->header('X-Profile-Id'),
         qr/^\w{32}$/, "$uri is recorded");
}


sub unharmed {
    my ($name, $s) = @_;

    is(join("\n", @{$s->{console}}), '', "$name, no messages");
    is(join("\n", @{$s->{elsewhere}}), '', "$name, nothing elsewhere");
    is(join("\n", @{$s->{axe}{$_}}), '', "$name, accessible: $_")
        for sort keys %{$s->{axe}};
}
