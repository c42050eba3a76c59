#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store archive
# runs: beside

# Files of the store with every kind of damage.  A damaged profile is reported
# as damaged and removed; the worker lives, and other profiles are as before.

use strict;
use warnings;

use Compress::Zlib qw/ compress crc32 /;
use JSON::PP qw/ decode_json /;
use Test::More;

use File::Basename qw/ dirname /;
use lib dirname(__FILE__) . '/lib';

use ProfileTest::Process;
use ProfileTest::Store;
use ProfileTest;

use constant HEAD => ProfileTest::Store::HEAD;
use constant HEAD_SIZE => ProfileTest::Store::HEAD_SIZE;
use constant TOO_LARGE => 2_500_000_000;

my $t = ProfileTest->new();
my $dir = $t->testdir();

$t->conf(<<'EOF');
profile_zone store:4m;
profile_store %%TESTDIR%%/store max=16g;

%%CONF console%%
EOF

$t->write_file('file', "file\n");
$t->run();

my $whole = http_get('/file?performance_bar=record')->header('X-Profile-Id');
ok(wait_for(sub { -e "$dir/store/$whole" }), 'a profile is stored');

my $content = $t->read_file("store/$whole");
my @owner = (stat "$dir/store/$whole")[4, 5];
my $texts = 0;
$texts += $_ for (unpack(HEAD, $content))[7 .. 10];

# each kind: what becomes of the bytes of a file

my %kinds = (
    'empty' => sub { '' },
    'cut in the head' => sub { substr($_[0], 0, 100) },
    'the head alone' => sub { substr($_[0], 0, HEAD_SIZE) },
    'cut in the texts' => sub { substr($_[0], 0, HEAD_SIZE + 3) },
    'without the archive' => sub { substr($_[0], 0, HEAD_SIZE + $texts) },
    'without the last byte' => sub { substr($_[0], 0, -1) },
    'with one more byte' => sub { "$_[0]x" },
    'with zeros as a tail' => sub {
        substr($_[0], 0, -200) . "\0" x 200;
    },
    'of zeros' => sub { "\0" x length $_[0] },
    'of random bytes' => sub { join '', map { chr rand 256 } 1 .. 5000 },
    'with a changed text' => sub { changed($_[0], HEAD_SIZE, 0xff) },
    'with a changed archive' => sub {
        changed($_[0], length($_[0]) - 50, 0x01);
    },
    'of another profile' => sub { $content },
    'with a size that wraps' => sub { sealed($_[0], size => 2 ** 64 - $texts) },
    'with a size of 2.5 GB' => sub { sealed($_[0], size => TOO_LARGE) },
    'with texts that are too long' => sub {
        sealed($_[0] . 'x' x (65535 - 8), texts => 65535);
    },
);

for my $i (0 .. HEAD_SIZE - 1) {
    $kinds{"with byte $i changed"} = sub { changed($_[0], $i, 0xff) };
}

# No checksum covers the word of the pin, because nginx changes it later.  The
# lowest bit tells whether the profile is pinned; a test below changes this bit.

use constant PIN_BIT => 8 * 8;

for my $i (0 .. 8 * HEAD_SIZE - 1) {
    next if $i == PIN_BIT;
    $kinds{"with bit $i changed"} = sub {
        changed($_[0], int($i / 8), 1 << $i % 8);
    };
}

# damaged archives with correct checksums

my %archives = (
    'an archive of random bytes' => 'x' x 1000,
    'no archive' => '',
    'the head of an archive' => substr($content, HEAD_SIZE + $texts, 24),
    'an archive that is no archive' => archive('nonsense'),
    'an archive whose content is too short' => archive("\5name\0\0\0"),
    'an archive of zeros' => archive("\0" x 10000),
    'an archive that expands to 128 MB' => archive(expanding()),
);

my @kinds = sort keys %kinds;
my @archives = sort keys %archives;
my %id;

$id{$kinds[$_]} = sprintf('%08x%024x', $_ * 2654435761 % 2 ** 32, $_)
    for 0 .. $#kinds;
$id{$archives[$_]} = sprintf('%08x%024x', $_, 2 ** 31 + $_) for 0 .. $#archives;


# damaged while nginx knows them

$t->stop();
store($id{$_}, sealed($content, id => $id{$_})) for @kinds;
store($id{$_}, sealed($content, id => $id{$_}, archive => $archives{$_}))
    for @archives;
$t->run();

my ($worker) = $t->worker_pids();

is(listed(), @kinds + @archives + 1, 'all profiles are listed');

is_deeply([ map { failed($_, opened($_, '.json'), 'an archive') } @archives ],
          [], 'damaged archives are reported');

damage();

my %urls = (
    json => sub { opened($_[0], '.json') },
    folded => sub { opened($_[0], '/folded') },
    pprof => sub { opened($_[0], '/pprof') },
    before => sub {
        http_get("/-/profile/diff/svg?a=$id{$_[0]}&b=$whole");
    },
    after => sub {
        http_get("/-/profile/diff.json?a=$whole&b=$id{$_[0]}");
    },
    twice => sub {
        http_get("/-/profile/diff/html?a=$id{$_[0]}&b=$id{$_[0]}");
    },
);

my @urls = sort keys %urls;
my $n = 0;
my @wrong;

for my $kind (@kinds) {
    my $url = $urls[$n++ % @urls];
    push @wrong, failed($kind, $urls{$url}->($kind), $url);
}

is_deeply(\@wrong, [], 'damaged profiles are reported as damaged');
is_deeply([ map { failed_again($_) } @kinds ], [],
          'a damaged profile is reported once, and then removed');

sub failed_again {
    my ($kind) = @_;
    my $r = opened($kind, '.json');
    return $r->status() eq '404' ? () : "$kind: " . $r->status();
}

is(listed(), @archives + 1, 'the list has the other profiles');
is(http_get("/-/profile/p/$whole.json")->status(), 200,
   'the other profiles are complete');
is(join(' ', $t->worker_pids()), $worker, 'the worker is the same');

my $status = decode_json(http_get('/-/profile/status.json')->body());
is($status->{store}{torn}, scalar @kinds,
   'the status page counts damaged profiles');
like($t->read_log(), qr/\[error\].*the stored profile [0-9a-f]{32} is damaged/,
     'the log names a damaged profile');
ok(wait_for(sub { !grep { -e "$dir/store/$id{$_}" } @kinds }, 20),
   'the files of damaged profiles are removed');


# a changed pin, while nginx runs and before it starts, is no damage

my $pin = 'b' x 32;

$t->stop();
store($pin, sealed($content, id => $pin));
$t->run();
($worker) = $t->worker_pids();

is(pinned($pin), 0, 'a profile is not pinned');
store($pin, changed($t->read_file("store/$pin"), PIN_BIT / 8, 1));
is(http_get("/-/profile/p/$pin.json")->status(), 200,
   'the profile opens after the bit of its pin has changed');
is(pinned($pin), 0, 'this nginx still shows it without a pin');

$t->stop();
$t->run();

is(pinned($pin), 1, 'the next nginx shows it with a pin');
is(http_get("/-/profile/p/$pin.json")->status(), 200,
   'the next nginx opens it');
is(http_post("/-/profile/p/$pin/unpin", '',
             headers => [ 'X-Profile-Console: 1' ])->status(), 204,
   'an operator can unpin it');
is(http_post("/-/profile/p/$pin/delete", '',
             headers => [ 'X-Profile-Console: 1' ])->status(), 204,
   'an operator can delete it');


# a file that is too large to be read

my $large = 'a' x 32;
$t->stop();
store($large, sealed($content, id => $large));
$t->run();

($worker) = $t->worker_pids();
truncate("$dir/store/$large", TOO_LARGE) or die "truncate: $!\n";

my $r = http_get("/-/profile/p/$large.json");
is($r->status(), 500, 'a file of 2.5 GB has the status 500');
like($r->body(), qr/is damaged/, 'this file is reported as damaged');

SKIP: {
    skip 'a sanitizer uses memory of its own', 1 if $t->sanitizers();
    cmp_ok(process_status($worker, 'VmHWM'), '<', 300_000,
           'this file is not read into memory');
}

is(join(' ', $t->worker_pids()), $worker,
   'the worker is the same after the large file');


# files of other kinds

$t->stop();
store($large, sealed($content, id => $large));
$t->run();
($worker) = $t->worker_pids();

unlink("$dir/store/$large");
symlink("$dir/store/$whole", "$dir/store/$large") or die "symlink: $!\n";

like(http_get("/-/profile/p/$large.json")->body(), qr/is damaged/,
     'a symbolic link is reported as damaged');
is(http_get("/-/profile/p/$whole.json")->status(), 200,
   'the target of the link is complete');
is(join(' ', $t->worker_pids()), $worker,
   'the worker is the same after the link');


# damaged when nginx starts

$t->stop();
store($id{$_}, sealed($content, id => $id{$_})) for @kinds;
damage();
store($large, sealed($content, id => $large));
truncate("$dir/store/$large", TOO_LARGE) or die "truncate: $!\n";
$t->run();

# the headers of these files are correct, the archives are not

my @late = grep { -e "$dir/store/$id{$_}" } @kinds;

# another digit at the end of the magic is another version of the module

my @versions = map { 'with bit ' . (8 * 7 + $_) . ' changed' } 0 .. 2;

is_deeply(\@late, [ sort 'with a changed archive', 'with zeros as a tail',
                    @versions ],
          'damaged files are removed at start, and no other ones');
is_deeply([ map { opened($_, '.json')->status() } @versions ],
          [ (404) x @versions ], 'files of other versions are not found');

@late = grep { my $kind = $_; !grep { $_ eq $kind } @versions } @late;
ok(!-e "$dir/store/$large", 'the file of 2.5 GB is removed at start');
is_deeply([ map { failed($_, opened($_, '.json'), 'late') } @late ], [],
          'damaged archives are reported when they are opened');
is(http_get("/-/profile/p/$whole.json")->status(), 200,
   'other profiles are complete after the start');


sub damage {
    store($id{$_}, $kinds{$_}->($t->read_file("store/$id{$_}"))) for @kinds;
}


# returns the errors in the answer for a damaged profile

sub failed {
    my ($kind, $r, $what) = @_;

    return if $r->status() eq '500' && $r->body() =~ /damaged|not an archive/;

    return "$what of one $kind: "
           . ($r->status() || 'no answer') . ' ' . substr($r->body(), 0, 80);
}


# whether the list shows the profile as pinned
sub pinned {
    my ($id) = @_;

    my $list = decode_json(http_get('/-/profile/profiles.json?limit=1000')
                               ->body());
    my ($entry) = grep { $_->{id} eq $id } @{$list->{profiles}};

    return $entry->{pinned} ? 1 : 0;
}


sub opened {
    my ($kind, $format) = @_;
    return http_get("/-/profile/p/$id{$kind}$format");
}


sub listed {
    my $list = decode_json(http_get('/-/profile/profiles.json?limit=1000')
                               ->body());
    my $n = @{$list->{profiles}};

    while ($list->{more}) {
        $list = decode_json(http_get('/-/profile/profiles.json?before='
                                     . $list->{next})->body());
        $n += @{$list->{profiles}};
    }

    return $n;
}


# written anew, not changed: the writer may have it open

sub store {
    my ($id, $bytes) = @_;

    $t->write_file("store/$id.new", $bytes);
    chown @owner, "$dir/store/$id.new";
    rename("$dir/store/$id.new", "$dir/store/$id") or die "rename: $!\n";
}


sub changed {
    my ($bytes, $pos, $mask) = @_;

    substr($bytes, $pos, 1) = chr(ord(substr($bytes, $pos, 1)) ^ $mask);

    return $bytes;
}


# a file with other facts and correct checksums

sub sealed {
    my ($bytes, %facts) = @_;

    my @head = unpack(HEAD, $bytes);
    my $rest = substr($bytes, HEAD_SIZE);
    my $archive = substr($rest, $texts);

    if (defined $facts{archive}) {
        $archive = $facts{archive};
        $rest = substr($rest, 0, $texts) . $archive;
        $facts{size} = length $archive;
    }

    $head[10] = $facts{texts} if $facts{texts};
    $head[20] = $facts{size} if defined $facts{size};
    $head[21] = $facts{id} if $facts{id};
    $head[3] = crc32($archive);
    $head[2] = crc32(substr(pack(HEAD, @head), 16) . substr($rest, 0, $texts));

    return pack(HEAD, @head) . $rest;
}


# an archive of that content

sub archive {
    my ($inside) = @_;

    my $body = pack('Q<', length $inside) . compress($inside);

    # returns a file of the version that this module writes
    my $version = unpack('x8 L<', substr($content, HEAD_SIZE + $texts));

    return "profarc\n" . pack('L<L<', $version, crc32($body)) . $body;
}


# a title and no more, then as many nodes as fit

sub expanding {
    return "\5name\0" . "\0" x (128 * 1024 * 1024 - 6);
}
