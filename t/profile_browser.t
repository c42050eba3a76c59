#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: views formats
# runs: beside
#
# Pictures and pages of the module in a browser: they show what they should,
# violate no policy, and load nothing from other hosts.  The viewer speedscope
# shows the profiles that the module sends.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;


my $t = ProfileTest->new()->has(qw/ gzip /);

has_browser($t);

$t->conf(<<'EOF');
gzip on;
gzip_comp_level 9;
gzip_types *;

server {
    listen 127.0.0.1:8080;

    location / {
        profile_endpoint on;
    }

    location /viewer/ {
        alias %%TESTDIR%%/viewer/;
        types {
            text/html html;
            text/css css;
            text/javascript js;
        }
    }
}
EOF

$t->write_file('large.txt', join('', map { "line $_ of many\n" } 1 .. 300000));

my $viewer = copy_viewer($t);

$t->run();
share_browser($t);

my $base = 'http://127.0.0.1:' . port(8080);
my $args = 'q=%22%3Cb%3E&performance_bar=flamegraph&profile_frequency=5000';


# a picture

my $url = "$base/large.txt?$args&profile_format=svg";
my $s = browser('svg', $url);

is($s->{status}, 200, 'the picture is served');
is($s->{headers}{'content-type'}, 'image/svg+xml',
   'the picture has its content type');
is($s->{headers}{'content-disposition'}, undef,
   'the picture is not a download');
like($s->{headers}{'content-security-policy'},
     qr/^default-src 'none'; style-src 'sha256-/,
     'the picture has a content security policy');
picture('svg', $s);


# a page

$url = "$base/large.txt?$args&profile_format=html";
$s = browser('html', $url);

is($s->{status}, 200, 'the page is served');
like($s->{headers}{'content-type'}, qr{^text/html},
     'the page has its content type');
is($s->{headers}{'content-disposition'}, undef, 'the page is not a download');
picture('html', $s);

is($s->{cpu}{mode}, 'cpu', 'the page shows the other mode');
is(join(' ', grep { !/cpu/ } @{$s->{cells}}), '',
   'the tables show the other mode');
is($s->{cpuLink}, "/large.txt?$args&profile_mode=cpu&profile_format=svg",
   'a link leads to the other mode');
is($s->{bareLink}, "/large.txt?$args&profile_spans=off&profile_format=folded",
   'a link to another format omits the stages');
is("@{$s->{totals}}", join(' ', sort { $b <=> $a } @{$s->{totals}}),
   'a table can be sorted');
cmp_ok($s->{lookup}{hits}, '>', 0,
       "the picture has $s->{lookup}{name} of a table");
like($s->{text}, qr/request\s+GET \S+q=%22%3Cb%3E\S* HTTP/,
     'the page has the facts of the request');
like($s->{text}, qr/time from start to end wall\s+[\d.]+ m?s/,
     'the page has counters');

is($s->{followed}, $url =~ s/format=html/format=svg/r,
   'a link leads to the picture');
is(scalar @{$s->{links}}, scalar(grep { /^\Q$base\E\/large\.txt\?q=%22%3Cb%3E&
                                         performance_bar=flamegraph&
                                         profile_frequency=5000&
                                         profile_format=\w+$/x }
                                 @{$s->{links}}), 'all links keep the arguments')
    or diag(join("\n", @{$s->{links}}));
is($s->{scriptlessCpu}{mode}, 'cpu',
   'without a script, the page shows the other mode');


# clients choose the URI

my $evil = '/%22%3E%3C/title%3E%3Cscript%3Edocument.title=%27evil%27%3C/'
           . 'script%3E%3Cimg%20src=//example.com/x%20onerror=alert(1)%3E';

for my $format (qw/ svg html /) {
    $s = browser('glance', "$base$evil?performance_bar=flamegraph"
                           . "&profile_format=$format");

    is($s->{status}, 200, "$format with a hostile URI is served");
    unharmed("evil URI, $format", $s);
    like($s->{title}, qr{^GET /%22%3E%3C/title%3E%3Cscript%3E},
         "$format with a hostile URI shows it as text")
        if $format eq 'html';
    cmp_ok($s->{plain}{boxes}, '>', 1, "$format with a hostile URI has boxes");
}


# speedscope

SKIP: {
    skip('no speedscope', 4) unless $viewer;

    $s = browser('viewer', "$base/viewer/index.html#profileURL="
                           . "/large.txt%3Fperformance_bar%3Dflamegraph");

    like($s->{text}, qr{wall: GET /large\.txt, },
         'speedscope shows the profile');
    is(join("\n", grep { !/wasm|WebGL|GL Driver/i } @{$s->{console}}), '',
       'speedscope reports no errors');
    is(join("\n", @{$s->{elsewhere}}), '',
       'speedscope loads nothing from other hosts');
    is(scalar(grep { /performance_bar/ } @{$s->{requests}}), 1,
       'speedscope requests one profile');
}


sub browser {
    my ($scenario, $url) = @_;

    my $shot = $t->testdir() . "/$scenario";
    return in_browser($t, $scenario, 'check', $scenario, $url, $shot);
}


sub unharmed {
    my ($name, $s) = @_;

    is(join("\n", @{$s->{violations}}), '', "$name violates no policy");
    is(join("\n", @{$s->{console}}), '',
       "$name causes no message in the browser");
    is(join("\n", @{$s->{elsewhere}}), '',
       "$name loads nothing from other hosts");
    is(join("\n", grep { !/performance_bar=/ } @{$s->{requests}}), '',
       "$name loads only profiles");
}


sub picture {
    my ($name, $s) = @_;

    unharmed($name, $s);

    my $p = $s->{plain};

    cmp_ok($p->{boxes}, '>', 10, "$name has boxes");
    cmp_ok($p->{labels}, '>', 3, "$name has boxes with text");
    is($p->{clipped}, 0, "$name clips no text");
    cmp_ok(keys %{$p->{fill}}, '>', 2, "$name has colors of several kinds");
    is($p->{search}, 1, "$name has a search");

    like($s->{pointed}{status}, qr/^\Q$s->{pointed}{name}\E\s.*\d m?u?s, /,
         "$name describes the box under the pointer");

    cmp_ok(abs($s->{zoomed}{box}{width} - $p->{width}), '<', 1,
           "$name zooms a box to the whole width");
    is($s->{zoomed}{box}{name}, $s->{pointed}{name},
       "$name zooms the box under the pointer");
    is($s->{zoomed}{clipped}, 0, "$name clips no text of a zoomed box");
    like($s->{zoomed}{hash}, qr/zoom=[0-9a-f]+/,
         "$name has the zoomed box in its URL");
    like($s->{zoomed}{status}, qr/^all wall time \x{203a} /,
         "$name shows the path to the zoomed box");

    is($s->{back}{zoom}, '100%', "$name shows everything after going back");
    is($s->{forward}{zoom}, $s->{zoomed}{zoom},
       "$name zooms again after going forward");
    like($s->{reloaded}{status}, qr/\x{203a} \Q$s->{pointed}{name}\E$/,
         "$name zooms the same box of another profile");
    is($s->{crumb}{zoom}, '100%',
       "$name shows everything by a click on the path");

    cmp_ok($s->{found}{hits}, '>', 0, "$name finds functions");
    like($s->{found}{match}, qr/^matched (?:at least )?[\d.]+%, [\d.]+ m?u?s, \d+ box/,
         "$name shows the share of the found functions");
    like($s->{found}{hash}, qr/find=ngx_http_/,
         "$name has the search in its URL");
    is($s->{nothing}{hits}, 0,
       "$name does not take an invalid expression as one");
    is($s->{reset}{hits} . $s->{reset}{match}, '0',
       "$name can reset the search");

    is_deeply($s->{flame}{rows}, [ reverse @{$s->{reset}{rows}} ],
              "$name can reverse the order of the rows");

    is($s->{focus}{role}, 'treeitem', "$name can focus a box by keys");
    is($s->{focus}{level}, 3, "$name tells the level of the focused box");
    like($s->{focus}{label}, qr/^\S+.*, [\d.]+ m?u?s, [\d.]+%/,
         "$name tells the name of the focused box");
    like($s->{entered}{hash}, qr/zoom=/,
         "$name zooms the focused box by a key");
    is($s->{escaped}{zoom}, '100%', "$name shows everything by a key");
    is($s->{escaped}{hash}, '', "$name has no zoomed box in its URL then");

    without_stages($name, $s);

    cmp_ok($s->{narrow}{width}, '<', $p->{width} - 300,
           "$name adapts to a narrow window");
    is($s->{narrow}{clipped}, 0, "$name clips no text in a narrow window");

    isnt($s->{light}{background}, $s->{dark}{background},
         "$name has another background in the dark theme");
    isnt($s->{light}{fill}{p}, $s->{dark}{fill}{p},
         "$name has other boxes in the dark theme");

    is($s->{scriptless}{search}, 0, "$name has no search without a script");
    cmp_ok($s->{scriptless}{boxes}, '>', 10,
           "$name has boxes without a script");
    cmp_ok($s->{scriptless}{labels}, '>', 3,
           "$name has texts without a script");

    my $shot = $t->testdir() . "/$name";
    cmp_ok(-s "$shot-$_.png", '>', 5000, "$name is drawn in the $_ theme")
        for qw/ light dark /;
}


sub without_stages {
    my ($name, $s) = @_;

    my @with = @{$s->{staged}};
    my @bare = @{$s->{bare}{tree}};

    ok((grep { $_->{kind} eq 'h' } @with), "$name has stages");
    is(join(' ', map { $_->{name} } grep { $_->{kind} eq 'h' } @bare), '',
       "$name can omit stages");
    ok(!$s->{bare}{checked}, "$name shows that stages are omitted");
    like($s->{bare}{hash}, qr/stages=off/, "$name has the omission in its URL");

    my %paths;
    $paths{$_->{path}}++ for @bare;
    is(join(' ', grep { $paths{$_} > 1 } keys %paths), '',
       "$name has each box once without stages");
    is(join(' ', map { $_->{path} } grep { !$_->{fits} } @bare), '',
       "$name has boxes on their callers without stages");

    # each function has the width that it had below all stages

    my %widths;
    my %stage = map { $_->{name} => 1 } grep { $_->{kind} eq 'h' } @with;

    for my $box (grep { $_->{kind} ne 'h' } @with) {
        my $path = join ';', grep { !$stage{$_} } split /;/, $box->{path}, -1;
        $widths{$path} += $box->{width};
    }

    is(join("\n", sort keys %paths), join("\n", sort keys %widths),
       "$name has the same functions without stages");

    is(join(' ', map { $_->{path} }
            grep { abs($_->{width} - ($widths{$_->{path}} // 0)) > 0.01 } @bare),
       '', "$name has boxes of the same width without stages");

    like($s->{bareZoomed}{hash}, qr/stages=off.*zoom=/,
         "$name can zoom without stages");
    # a reload of the page makes another profile

    my ($function) = $s->{bareZoomed}{status} =~ /^(\S+)/;
    like($s->{bareReloaded}{status}, qr/\x{203a} \Q$function\E$/,
         "$name zooms the function of another profile");
    ok(!$s->{bareReloaded}{fill}{h},
       "$name omits the stages of another profile");
    like($s->{stagedZoomed}{status}, qr/\x{203a} \Q$function\E$/,
         "$name zooms the same function with stages");
    ok($s->{stagedReset}{fill}{h}, "$name can show the stages again");
    is($s->{stagedReset}{hash}, '', "$name has no omission in its URL then");
}
