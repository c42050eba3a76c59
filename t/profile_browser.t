#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# Pictures and pages in a browser, as the module sends them: they are what
# their readers need, nothing violates their policy, and nothing is asked for
# elsewhere.  The viewer of speedscope shows what is sent to it.

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

my $t = ProfileTest->new()->has(qw/ gzip /)->has_program(qw/ node /);

$t->skip_all("run \"npm ci\" in $root/browser first")
    unless -d "$root/browser/node_modules";
$t->skip_all('no chromium')
    unless $ENV{CHROMIUM} || grep { -x "$_/chromium" } split(/:/, $ENV{PATH});

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

mkdir $t->testdir() . '/viewer';

for my $path (glob("$viewer/*")) {
    next if $path =~ /wasm|perf-vertx/;

    open my $f, '<:raw', $path or die "$path: $!\n";
    local $/;
    $t->write_file('viewer/' . ($path =~ s{.*/}{}r), <$f>);
}

$t->run();

my $base = 'http://127.0.0.1:' . port(8080);
my $args = 'q=%22%3Cb%3E&performance_bar=flamegraph&profile_frequency=5000';


# a picture

my $url = "$base/large.txt?$args&profile_format=svg";
my $s = browser('svg', $url);

is($s->{status}, 200, 'svg');
is($s->{headers}{'content-type'}, 'image/svg+xml', 'svg, content type');
is($s->{headers}{'content-disposition'}, undef, 'svg, not a download');
like($s->{headers}{'content-security-policy'},
     qr/^default-src 'none'; style-src 'sha256-/, 'svg, policy');
picture('svg', $s);


# a page

$url = "$base/large.txt?$args&profile_format=html";
$s = browser('html', $url);

is($s->{status}, 200, 'html');
like($s->{headers}{'content-type'}, qr{^text/html}, 'html, content type');
is($s->{headers}{'content-disposition'}, undef, 'html, not a download');
picture('html', $s);

is($s->{cpu}{mode}, 'cpu', 'html, the other mode');
is(join(' ', grep { !/cpu/ } @{$s->{cells}}), '',
   'html, tables of the other mode');
is($s->{cpuLink}, "/large.txt?$args&profile_mode=cpu&profile_format=svg",
   'html, a link to the other mode');
is($s->{bareLink}, "/large.txt?$args&profile_spans=off&profile_format=folded",
   'html, a link to another format without stages');
is("@{$s->{totals}}", join(' ', sort { $b <=> $a } @{$s->{totals}}),
   'html, a sorted table');
cmp_ok($s->{lookup}{hits}, '>', 0, "html, $s->{lookup}{name} in the picture");
like($s->{text}, qr/request\s+GET \S+q=%22%3Cb%3E\S* HTTP/, 'html, facts');
like($s->{text}, qr/time from start to end wall\s+[\d.]+ m?s/,
     'html, counters');

is($s->{followed}, $url =~ s/format=html/format=svg/r, 'html, a link');
is(scalar @{$s->{links}}, scalar(grep { /^\Q$base\E\/large\.txt\?q=%22%3Cb%3E&
                                         performance_bar=flamegraph&
                                         profile_frequency=5000&
                                         profile_format=\w+$/x }
                                 @{$s->{links}}), 'html, links')
    or diag(join("\n", @{$s->{links}}));
is($s->{scriptlessCpu}{mode}, 'cpu', 'html, the other mode without a script');


# any client can write this in a URL

my $evil = '/%22%3E%3C/title%3E%3Cscript%3Edocument.title=%27evil%27%3C/'
           . 'script%3E%3Cimg%20src=//example.com/x%20onerror=alert(1)%3E';

for my $format (qw/ svg html /) {
    $s = browser('glance', "$base$evil?performance_bar=flamegraph"
                           . "&profile_format=$format");

    is($s->{status}, 200, "evil URI, $format");
    unharmed("evil URI, $format", $s);
    like($s->{title}, qr{^GET /"></title><script>}, "evil URI, $format, title")
        if $format eq 'html';
    cmp_ok($s->{plain}{boxes}, '>', 1, "evil URI, $format, boxes");
}


# speedscope

SKIP: {
    skip('no speedscope', 4) unless -d $viewer;

    $s = browser('viewer', "$base/viewer/index.html#profileURL="
                           . "/large.txt%3Fperformance_bar%3Dflamegraph");

    like($s->{text}, qr{wall: GET /large\.txt, }, 'speedscope');
    is(join("\n", grep { !/wasm|WebGL|GL Driver/i } @{$s->{console}}), '',
       'speedscope, messages');
    is(join("\n", @{$s->{elsewhere}}), '', 'speedscope, nothing elsewhere');
    is(scalar(grep { /performance_bar/ } @{$s->{requests}}), 1,
       'speedscope, one profile');
}


sub browser {
    my ($scenario, $url) = @_;

    my $shot = $t->testdir() . "/$scenario";
    my ($status, $out) = $t->command('node', "$root/browser/check.mjs",
                                     $scenario, $url, $shot);

    is($status, 0, "$scenario in a browser") or diag($out);

    my ($json) = ($out // '') =~ /^(\{.*\})$/m;

    return $json ? decode_json($json) : {};
}


sub unharmed {
    my ($name, $s) = @_;

    is(join("\n", @{$s->{violations}}), '', "$name, no violations");
    is(join("\n", @{$s->{console}}), '', "$name, no messages");
    is(join("\n", @{$s->{elsewhere}}), '', "$name, nothing elsewhere");
    is(join("\n", grep { !/performance_bar=/ } @{$s->{requests}}), '',
       "$name, nothing else");
}


sub picture {
    my ($name, $s) = @_;

    unharmed($name, $s);

    my $p = $s->{plain};

    cmp_ok($p->{boxes}, '>', 10, "$name, boxes");
    cmp_ok($p->{labels}, '>', 3, "$name, texts");
    is($p->{clipped}, 0, "$name, no text is clipped");
    cmp_ok(keys %{$p->{fill}}, '>', 2, "$name, kinds");
    is($p->{search}, 1, "$name, search");

    like($s->{pointed}{status}, qr/^\Q$s->{pointed}{name}\E\s.*\d m?u?s, /,
         "$name, pointed at");

    cmp_ok(abs($s->{zoomed}{box}{width} - $p->{width}), '<', 1,
           "$name, zoomed box is as wide as the picture");
    is($s->{zoomed}{box}{name}, $s->{pointed}{name}, "$name, the same box");
    is($s->{zoomed}{clipped}, 0, "$name, zoomed, no text is clipped");
    like($s->{zoomed}{hash}, qr/zoom=[0-9a-f]+/, "$name, zoom in the URL");
    like($s->{zoomed}{status}, qr/^all wall time \x{203a} /, "$name, path");

    is($s->{back}{zoom}, '100%', "$name, back");
    is($s->{forward}{zoom}, $s->{zoomed}{zoom}, "$name, forward");
    like($s->{reloaded}{status}, qr/\x{203a} \Q$s->{pointed}{name}\E$/,
         "$name, another profile, the same box");
    is($s->{crumb}{zoom}, '100%', "$name, out by the path");

    cmp_ok($s->{found}{hits}, '>', 0, "$name, found");
    like($s->{found}{match}, qr/^matched (?:at least )?[\d.]+%, [\d.]+ m?u?s, \d+ box/,
         "$name, matched share");
    like($s->{found}{hash}, qr/find=ngx_http_/, "$name, search in the URL");
    is($s->{nothing}{hits}, 0, "$name, no expression, but a text");
    is($s->{reset}{hits} . $s->{reset}{match}, '0', "$name, reset");

    is_deeply($s->{flame}{rows}, [ reverse @{$s->{reset}{rows}} ],
              "$name, other order");

    is($s->{focus}{role}, 'treeitem', "$name, keyboard");
    is($s->{focus}{level}, 3, "$name, keyboard, level");
    like($s->{focus}{label}, qr/^\S+.*, [\d.]+ m?u?s, [\d.]+%/,
         "$name, keyboard, name");
    like($s->{entered}{hash}, qr/zoom=/, "$name, keyboard, zoomed");
    is($s->{escaped}{zoom}, '100%', "$name, keyboard, out");
    is($s->{escaped}{hash}, '', "$name, keyboard, nothing in the URL");

    without_stages($name, $s);

    cmp_ok($s->{narrow}{width}, '<', $p->{width} - 300, "$name, narrower");
    is($s->{narrow}{clipped}, 0, "$name, narrower, no text is clipped");

    isnt($s->{light}{background}, $s->{dark}{background}, "$name, dark");
    isnt($s->{light}{fill}{p}, $s->{dark}{fill}{p}, "$name, dark boxes");

    is($s->{scriptless}{search}, 0, "$name, without a script, no search");
    cmp_ok($s->{scriptless}{boxes}, '>', 10,
           "$name, without a script, boxes");
    cmp_ok($s->{scriptless}{labels}, '>', 3,
           "$name, without a script, texts");

    my $shot = $t->testdir() . "/$name";
    cmp_ok(-s "$shot-$_.png", '>', 5000, "$name, $_ screenshot")
        for qw/ light dark /;
}


sub without_stages {
    my ($name, $s) = @_;

    my @with = @{$s->{staged}};
    my @bare = @{$s->{bare}{tree}};

    ok((grep { $_->{kind} eq 'h' } @with), "$name, stages");
    is(join(' ', map { $_->{name} } grep { $_->{kind} eq 'h' } @bare), '',
       "$name, left out");
    ok(!$s->{bare}{checked}, "$name, the switch is off");
    like($s->{bare}{hash}, qr/stages=off/, "$name, no stages in the URL");

    my %paths;
    $paths{$_->{path}}++ for @bare;
    is(join(' ', grep { $paths{$_} > 1 } keys %paths), '',
       "$name, no box twice without stages");
    is(join(' ', map { $_->{path} } grep { !$_->{fits} } @bare), '',
       "$name, boxes are on their callers without stages");

    # each function has the width that it had below all stages

    my %widths;
    my %stage = map { $_->{name} => 1 } grep { $_->{kind} eq 'h' } @with;

    for my $box (grep { $_->{kind} ne 'h' } @with) {
        my $path = join ';', grep { !$stage{$_} } split /;/, $box->{path}, -1;
        $widths{$path} += $box->{width};
    }

    is(join("\n", sort keys %paths), join("\n", sort keys %widths),
       "$name, the same functions without stages");

    is(join(' ', map { $_->{path} }
            grep { abs($_->{width} - ($widths{$_->{path}} // 0)) > 0.01 } @bare),
       '', "$name, of the same width without stages");

    like($s->{bareZoomed}{hash}, qr/stages=off.*zoom=/,
         "$name, zoomed without stages");
    # it is another profile when it is loaded again

    my ($function) = $s->{bareZoomed}{status} =~ /^(\S+)/;
    like($s->{bareReloaded}{status}, qr/\x{203a} \Q$function\E$/,
         "$name, another profile, the same function without stages");
    ok(!$s->{bareReloaded}{fill}{h}, "$name, another profile, no stages");
    like($s->{stagedZoomed}{status}, qr/\x{203a} \Q$function\E$/,
         "$name, the same function with stages");
    ok($s->{stagedReset}{fill}{h}, "$name, stages again");
    is($s->{stagedReset}{hash}, '', "$name, stages, nothing in the URL");
}
