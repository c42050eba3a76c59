#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: console
# runs: first
#
# The console in a browser: from a page to its flamegraph, by the list and the
# page of a profile; deletion; two users at the same time; pages of other sites.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;

my $t = ProfileTest->new();

has_browser($t);
copy_viewer($t) or $t->skip_all('run "npm ci" in t/speedscope first');

$t->conf(<<'EOF', workers => 2);
types {
    text/html html;
}

# headers that forbid frames and foreign scripts

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
share_browser($t);

my $s = browser('walk', 8080);

is($s->{status}, 200, 'a flamegraph is answered with status 200');
like($s->{headers}{'content-security-policy'}, qr/^default-src 'none'; script/,
     'the page of a flamegraph has its own policy');
unlike($s->{headers}{'content-security-policy'}, qr/sandbox|,/,
       'the policy of the site is not in force there');
is($s->{headers}{'x-frame-options'}, undef,
   'the frame policy of the site is not in force there');
is($s->{headers}{'x-profiled-status'}, 200,
   'the answer has the original status');
like($s->{viewer}, qr/GET \/page/, 'the viewer shows the request');
like($s->{title}, qr{^GET /page.* - profile$}, 'the title names the request');
like($s->{heading}, qr{^GET /page}, 'the heading names the request');
like($s->{facts}, qr/Wall\s+[\d.]+ \S*s.*CPU.*Samples/s,
     'the page shows times and samples');
ok(!$s->{fallback}, 'the page does not show its fallback text');

like($s->{permanent}, qr{/-/profile/p/[0-9a-f]{32}$},
     'the permanent link names the profile');
is($s->{viewerAgain}, $s->{viewer},
   'the permanent link shows the same profile');
cmp_ok($s->{graph}, '>', 5, 'the tab of the flamegraph shows boxes');
is($s->{focus}, 'tab-graph', 'keys move between tabs');
like($s->{details}, qr{request\s+GET /page\?performance_bar=flamegraph HTTP},
     'the details show the request line');
is($s->{hash}, '#diff', 'the URL names the selected tab');
is($s->{selected}, 'true', 'a reload keeps the selected tab');
is(scalar @{$s->{formats}}, 5, 'the page offers five formats');
like($s->{download}, qr/^GET-page.*-wall-\d+T\d+Z\.speedscope\.json$/,
     'the name of a download has request, mode and date');

is(scalar @{$s->{rows}}, 1, 'the list has one profile');
like($s->{rows}[0][3], qr{^/page}, 'the list shows the URI');
is($s->{rows}[0][2], 'GET', 'the list shows the method');
is($s->{rows}[0][4], '200', 'the list shows the status');
like($s->{pinned}[0][3], qr/pinned/, 'the list marks a pinned profile');
is($s->{unpin}, 'Unpin', 'the button of a pinned profile unpins it');
like($s->{asked}, qr{^Delete the profile of GET /page},
     'the page asks before it deletes a profile');
is_deeply($s->{deleted}, [], 'the deleted profile leaves the list');
is(join(' ', grep { /^(?:Store|Unwind tables)$/ } @{$s->{cards}}),
   'Store Unwind tables',
    'the status page shows the store and the unwind tables');

my %columns;
$columns{$_}++ for @{$s->{columns}};

is(join(' ', grep { $columns{$_} > 1 } sort keys %columns), '',
   'each column of the workers has a name of its own');
ok($columns{'Jobs memory'}, 'the status names the memory of jobs');
is($s->{losses}, '0', 'the status counts what was dropped');
ok((grep { $_ eq 'profiles' } @{$s->{urls}}), 'the page of URLs lists them');
cmp_ok($s->{overflow}, '<=', 390, '... and fits a narrow window');
is_deeply([ @{$s->{kept} || []}[0, 1] ], [ 50, JSON::PP::true ],
          'a live status page in a narrow window keeps position and focus');
cmp_ok($s->{kept}[2] || 1000, '<', 60, '... and rows of usual height');
unharmed('walk', $s);


# the list

record($_) for '/a', '/b';
http_post('/c?performance_bar=record', 'x=y');

$s = browser('lists', 8080);

is(scalar @{$s->{all}}, 3, 'the list has all profiles');
is($s->{post}[0][2], 'POST', 'a filter selects matching profiles');
is($s->{count}, '1 of 3', 'a filtered list shows how many profiles match');
is($s->{hash}, '#filter=post', 'the URL has the filter');
ok($s->{nothing}, 'the list says that nothing matches');
is($s->{kept}, 'no such thing', 'a reload keeps the filter');
is("@{$s->{up}}", '/a /b /c', 'a click on a heading sorts the list');
is("@{$s->{down}}", '/c /b /a', 'a second click reverses the order');
is($s->{sorted}, 'descending', 'the order is announced to screen readers');
is("@{$s->{live}}", '/d /c /b /a', 'a live list shows a new profile');
is(join('', map { $_ ? 1 : 0 } @{$s->{checked}}), '0010',
   'a live list keeps the selection');
is($s->{focused}, 'Select GET /b', 'a live list keeps the focus');
is($s->{still}, 4, 'a list that is not live does not change');
is("@{$s->{few}}", '/e /d', 'a page of the list has two profiles');
is("@{$s->{older}}", '/e /d /c /b /a', 'the button loads older profiles');
ok(!$s->{more}, 'the button disappears after the oldest profile');
is("@{$s->{newer}}", '/f /e /d /c /b /a',
   'a new profile does not remove older ones');
like("@{$s->{fewer}}", qr{^/e /d /b /a *pinned$},
     'changes of older profiles are shown');
like($s->{memory}[9], qr/^[\d.]+ \wi?B in [\d,]+$/,
     'the list shows the size of an object profile');
isnt($s->{colors}[0], $s->{colors}[1], 'the dark theme has other colors');
cmp_ok($s->{overflow}, '<=', 400, 'the list fits a narrow window');
cmp_ok($s->{panel}[0], '>=', 0,
       'the left side of the form of captures is in a narrow window');
cmp_ok($s->{panel}[1], '<=', 400,
       'the right side of the form of captures is in a narrow window');
is($s->{begins}, 'Flamegraph',
   'the page of a profile begins with the flamegraph in a narrow window');
unharmed('list', $s);


# two users

$s = browser('users', 8080);

like($s->{viewers}[0], qr{GET /a}, 'the first user sees the first profile');
like($s->{viewers}[1], qr{GET /b}, 'the second user sees the second profile');
like($s->{titles}[0], qr{^GET /a}, 'the first user has the first title');
like($s->{titles}[1], qr{^GET /b}, 'the second user has the second title');
like($s->{note}, qr/^The profile "\w+" is gone/,
     'the page says that a profile was deleted');
is(join("\n", grep { !/404/ } @{$s->{console}}), '',
   'the browser logs nothing for two users');


# two profiles compared

$s = browser('compare', 8080);

ok($s->{alone} && $s->{one}, 'one selected profile cannot be compared');
cmp_ok($s->{plain}{boxes}, '>', 5, 'the comparison has a flamegraph');
is($s->{plain}{heading}, 'none', 'the picture repeats no heading');
like($s->{plain}{text}, qr/Functions that changed most/,
     'the comparison lists functions that changed');
like($s->{rows}, qr/Before\s+GET.*After\s+GET.*Change\s.*[\x{2212}+]/s,
     'the comparison shows times before and after');
like($s->{changed}, qr/profile_mode=cpu&shares=on/,
     'the URL has the settings of the comparison');
is($s->{measure}, 'cpu', 'the comparison shows the selected measure');

my ($first, $second) = $s->{url} =~ /a=(\w+)&b=(\w+)/;
like($s->{swapped}, qr/a=$second&b=$first/, 'a button swaps the two profiles');
like($s->{wrong}, qr/^There is no profile "x"/,
     'the page tells that a profile is missing');
is(join("\n", grep { !/404/ } @{$s->{console}}), '',
   'the browser logs nothing for a comparison');
is(join("\n", @{$s->{axe}{compare}}), '', 'the comparison is accessible');


# all workers

my $load = $t->load('/page');

$s = browser('workers', 8080);
$load->stop();

is($s->{workers}, 3, 'one worker or all workers can be selected');
like($s->{wrong}, qr/^"seconds" is "0", it must be a number from 0\.1/i,
     'the page shows the error of a wrong duration');
like($s->{viewer}, qr/all workers/, 'the viewer shows the capture of workers');
is($s->{heading}, 'all workers', 'the heading names the scope');
like($s->{facts}, qr/Scope\s+all\s.*Mode\s+cpu/s,
     'the page shows scope and mode');
unharmed('workers', $s);


# a profile that does not exist

$s = browser('gone', 8080);

is($s->{status}, 404, 'a missing profile is answered with status 404');
like($s->{text}, qr/Error 404\s+there is no profile "0{32}"/,
     'the page tells that the profile is missing');
is($s->{dialog}, undef, 'the viewer reports no error of its own');


# other sites

$s = browser('foreign', 8080, 'http://localhost:' . port(8083) . '/');

is("@{$s->{tried}}", 'refused refused refused refused refused',
   'requests of another site are refused');
like($s->{form}, qr/comes from another site/,
     'a form of another site is refused');
is($s->{framed}, 0, 'another site cannot frame a page');
unlike($s->{frame}, qr{/-/profile/},
       'the frame of another site has no content');
is_deeply($s->{profiles}[1], $s->{profiles}[0],
          'another site has changed nothing');
cmp_ok(scalar @{$s->{profiles}[0]}, '>', 3, 'there is something to change');


# the page without a viewer, and without a console

$s = browser('plain', 8081);

cmp_ok($s->{boxes}, '>', 5, 'without a viewer the flamegraph is shown');
ok(!$s->{viewer}, 'without a viewer its tab is missing');
unharmed('no viewer', $s);

$s = browser('refused', 8082);

is($s->{status}, 200, 'a closed console does not fail the flamegraph');
ok($s->{fallback}, 'the page tells that the console is closed');
cmp_ok($s->{boxes}, '>', 5, 'the page shows the flamegraph by itself');


sub browser {
    my ($scenario, $port, @more) = @_;

    return in_browser($t, $scenario, 'console', $scenario,
                      'http://127.0.0.1:' . port($port), @more);
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
