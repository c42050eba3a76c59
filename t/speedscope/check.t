#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: formats
# runs: beside
#
# The recorded speedscope file is what the viewer expects, and check.mjs, which
# says so, notices when it is not.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use JSON::PP qw/ decode_json encode_json /;
use Test::More;

my $dir = dirname(abs_path(__FILE__));
my $golden = "$dir/../fixtures/golden/typical.speedscope.json";

plan(skip_all => 'no node') if system('node --version > /dev/null 2>&1');
plan(skip_all => "run \"npm ci\" in $dir first") unless -d "$dir/node_modules";

my $temp = tempdir(CLEANUP => 1);


my ($status, $out, $err) = check($golden);

is($status, 0, 'recorded file');
is($err, '', 'recorded file - no complaint');

my $seen = decode_json($out);

is($seen->{name}, 'GET /index.html', 'name');
is($seen->{active}, 0, 'shown first');
is($seen->{profiles}[0]{total}, 252940000, 'wall');
is($seen->{profiles}[0]{formatted}, '252.94ms', 'wall - unit');
is($seen->{profiles}[1]{total}, 2529000, 'cpu');
like($seen->{profiles}[1]{name}, qr/^cpu: /, 'cpu - name');


fails('schema', qr/schema: .*unit/,
    sub { $_[0]{profiles}[0]{unit} = 'ns' });
fails('another $schema', qr/\$schema is not/,
    sub { $_[0]{'$schema'} = 'https://example.com/' });
fails('a weight too many', qr/profile 1: 3 samples, 4 weights/,
    sub { push(@{$_[0]{profiles}[1]{weights}}, 0) });
fails('a sum', qr/weights sum to 252940001/,
    sub { $_[0]{profiles}[0]{weights}[0]++ });
fails('a frame that does not exist', qr/sample 2 is empty or has a frame/,
    sub { $_[0]{profiles}[0]{samples}[2] =
              [ scalar @{$_[0]{shared}{frames}} ] });
fails('a mangled name', qr/mangled name "_Z3foov"/,
    sub { $_[0]{shared}{frames}[0]{name} = '_Z3foov' });
fails('the profile shown first', qr/activeProfileIndex/,
    sub { $_[0]{activeProfileIndex} = @{$_[0]{profiles}} });

spew("$temp/x.speedscope.json", '{');
($status, $out, $err) = check("$temp/x.speedscope.json");
is($status, 1, 'not JSON');

spew("$temp/x.txt", "main;run 1\nmain;wait 2\n");
($status, $out, $err) = check("$temp/x.txt");
is(decode_json($out)->{profiles}[0]{total}, 3, 'other formats are imported');

spew("$temp/x.txt", 'nothing of the kind');
($status, $out, $err) = check("$temp/x.txt");
like($err, qr/does not know the format/, 'no format at all');

done_testing();


sub fails {
    my ($name, $reason, $change) = @_;

    my $data = decode_json(slurp($golden));

    $change->($data);

    spew("$temp/x.speedscope.json", encode_json($data));

    my ($status, $out, $err) = check("$temp/x.speedscope.json");

    is($status, 1, "$name - fails");
    like($err, $reason, "$name - reason");
}


sub check {
    my ($file) = @_;

    my $status = system("node '$dir/check.mjs' '$file'"
                        . " > '$temp/out' 2> '$temp/err'");

    return ($status >> 8, slurp("$temp/out"), slurp("$temp/err"));
}


sub slurp {
    my ($file) = @_;

    open(my $fh, '<:raw', $file) or die "$file: $!\n";
    local $/;
    my $text = <$fh>;

    return $text // '';
}


sub spew {
    my ($file, $text) = @_;

    open(my $fh, '>:raw', $file) or die "$file: $!\n";
    print $fh $text;
    close($fh) or die "$file: $!\n";
}
