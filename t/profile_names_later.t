#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: names
# runs: quiet
#
# The debug file of a stripped module is installed after a profile was stored.
# POST "p/ID/names" gives the stored profile its names, in memory and in files,
# also in another worker than the one that captured it.
#
# All programs look for such files at this place, so the test needs root.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Browser;
use ProfileTest::Module;
use ProfileTest::Store;

use constant NAME => 'ngx_http_inlined_test';
use constant CHANGE => 'X-Profile-Console: 1';

my $t = ProfileTest->new()->has_program(qw/ objcopy readelf strip /);
my $so = build_module($t, NAME . '_module', '-O2', '-Wl,--build-id');
my $dir = $t->testdir();

my $debug = split_module($t, $so);

for my $store ('profile_zone p:8m;',
               "profile_zone p:1m; profile_store $dir/store max=8m;")
{
    test_store($store);
}


sub test_store {
    my ($store) = @_;

    my $label = $store =~ /profile_store/ ? 'files' : 'memory';

    unlink($debug);

    $t->conf(<<"EOF", main => "load_module $so;");
$store

server {
    %%CONF inlined%%

    location /p/ {
        profile_console;
    }
}
EOF

    $t->run();

    my @profiles = map {
        http_get('/?work=100&performance_bar=flamegraph'
                 . '&profile_format=speedscope')->header('X-Profile-Id')
    } 1 .. 2;
    my ($other, $profile) = @profiles;

    is(post("p/$profile/pin")->status(), 204, "$label: the profile is pinned");

    my %before = %{entry($profile)};

    cmp_ok(weight($profile, qr/_module\.so\+0x[0-9a-f]+$/), '>', 0.05e9,
           "$label: the first profile has offsets in the module");

    my $r = post("p/$profile/names");
    my $said = decode_json($r->content());

    is($r->status(), 200,
       "$label: a request for names that are not found succeeds");
    is($said->{renamed}, 0, "$label: the response counts no new name");
    is($said->{named}, $said->{named_before},
       "$label: the response counts as many names as before");
    is_deeply(entry($profile), \%before,
              "$label: the store entry is unchanged");


    # a debug file

    $t->run_command('mkdir', '-p', dirname($debug));
    $t->run_command('cp', "$so.split", $debug);
    chmod(0644, $debug);

    my @old = $t->worker_pids();
    $t->reload();
    wait_for(sub { !grep { kill 0, $_ } @old });

    cmp_ok(weight($profile, qr/_module\.so\+0x/), '>', 0.05e9,
           "$label: the stored profile has its offsets still");

    $r = post("p/$profile/names");
    $said = decode_json($r->content());

    is($r->status(), 200, "$label: the profile is named again");
    is($r->header('Content-Type'), 'application/json',
       "$label: the response is JSON");
    is($said->{id}, $profile, "$label: the response has the profile's id");
    cmp_ok($said->{renamed}, '>', 0,
           "$label: the response counts frames with new names");
    cmp_ok($said->{named}, '>', $said->{named_before},
           "$label: the response counts more names than before");
    is($said->{lost}, 0, "$label: no name was lost");

    my $handler = weight($profile, qr/^@{[ NAME ]}_handler$/);

    cmp_ok($handler, '>', 0.05e9, "$label: the profile names the handler");
    cmp_ok(weight($profile, qr/^@{[ NAME ]}_step$/), '>', 0.9 * $handler,
           "$label: the profile names functions that were inlined");
    is(weight($profile, qr/_module\.so\+0x/), 0,
       "$label: the profile has no offset in the module");
    cmp_ok(weight($other, qr/_module\.so\+0x/), '>', 0.05e9,
           "$label: the other profile is unchanged");

    my $after = entry($profile);

    isnt($after->{size}, $before{size}, "$label: the archive has another size");
    delete @$_{qw/ size /} for \%before, $after;
    is_deeply($after, \%before,
              "$label: the other facts of the store entry are unchanged");
    is_deeply([map { $_->{id} } @{get('profiles.json')->{profiles}}],
              [$profile, $other], "$label: the list has the same order");

    is(decode_json(post("p/$profile/names")->content())->{renamed}, 0,
       "$label: a second request finds no new name");

    test_page($other) if $label eq 'memory';


    # without the module and its debug file, the profile keeps its names

    unlink($debug);

    @old = $t->worker_pids();
    $t->reload();
    wait_for(sub { !grep { kill 0, $_ } @old });

    is(decode_json(post("p/$profile/names")->content())->{renamed}, 0,
       "$label: a request without the debug file finds no new name");
    cmp_ok(weight($profile, qr/^@{[ NAME ]}_handler$/), '>', 0.05e9,
           "$label: the profile keeps its names without the debug file");

    if ($label eq 'files') {
        my $found = ProfileTest::Store::read_store("$dir/store");

        is($found->{$profile}{pinned}, 1, "$label: the file is pinned");
        is_deeply([grep { $_->{error} } values %$found], [],
                  "$label: all files are complete");
        is_deeply([grep { !/^[0-9a-f]{32}$/ } map { m{([^/]+)$} }
                   glob("$dir/store/*")], [],
                   "$label: the store has no other file");

        $t->stop();
        $t->run();

        cmp_ok(weight($profile, qr/^@{[ NAME ]}_handler$/), '>', 0.05e9,
               "$label: the names are there after a restart");
        is_deeply([map { $_->{id} } @{get('profiles.json')->{profiles}}],
                  [$profile, $other],
                  "$label: the order of the list is the same after a restart");
    }


    # access, and errors

    is(post("p/$profile/names", 'X-Other: 1')->status(), 403,
       "$label: a request without the console's header is refused");
    is(post("p/$profile/names", CHANGE, 'Sec-Fetch-Site: cross-site')
       ->status(), 403, "$label: a request of another site is refused");
    is(http_get("/p/p/$profile/names")->status(), 404,
       "$label: a GET changes nothing");
    is(post('p/' . '0' x 32 . '/names')->status(), 404,
       "$label: an unknown id is answered with 404");
    is(post("p/${profile}0/names")->status(), 404,
       "$label: an id that is too long is answered with 404");

    $t->stop();
}


# the button of the page does the same
sub test_page {
    my ($profile) = @_;

    SKIP: {
        skip(lacks_browser(), 1) if lacks_browser();

        my $s = in_browser($t, 'page', 'console', 'names',
            'http://127.0.0.1:' . ProfileTest::port(8080), $profile);

        ok((grep { /_module\.so\+0x/ } @{$s->{before}}),
           'page: the flamegraph has offsets at first');
        like($s->{said}, qr/^\d+ of \d+ addresses have better names now\./,
             'page: the result is shown');
        ok(!(grep { /_module\.so\+0x/ } @{$s->{after}})
           && (grep { /^@{[ NAME ]}_handler\b/ } @{$s->{after}}),
           'page: the flamegraph has the names');
        like($s->{error}, qr/^The profile "\w+" is gone/,
             'page: an error is shown');
        is($s->{saidThen}, '', 'page: no result is shown beside an error');
        is_deeply($s->{axe}{names}, [], 'page: axe finds no violation');
        is_deeply([grep { !/404/ } @{$s->{console}}], [],
                  'page: the browser logs no message');
    }
}


sub post {
    my ($path, @headers) = @_;
    return ProfileTest::HTTP::request('POST', "/p/$path",
                        headers => [@headers ? @headers : CHANGE]);
}


sub get {
    my ($path) = @_;
    return decode_json(http_get("/p/$path")->content());
}


sub entry {
    my ($profile) = @_;
    my ($entry) = grep { $_->{id} eq $profile }
                  @{get('profiles.json')->{profiles}};
    return $entry;
}


sub weight {
    my ($profile, $match) = @_;

    return ProfileTest::Profile->new(
        http_get("/p/p/$profile/speedscope"))
        ->profile('wall')->weight_below($match);
}
