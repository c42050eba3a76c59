package ProfileTest::Store;

# Copyright (C) The ngx_http_profile_module authors
#
# The files of a profile_store, read and checked.

use strict;
use warnings;

use Compress::Zlib qw/ crc32 /;

use constant HEAD => 'a8 L6 S4 Q10 a32';
use constant HEAD_SIZE => 8 + 6 * 4 + 4 * 2 + 10 * 8 + 32;


# { id => { facts } } of a directory; damaged ones have nothing but "error"
sub read_store {
    my ($dir) = @_;

    my %found;

    for my $file (glob("$dir/*")) {
        my ($id) = $file =~ m{/([0-9a-f]{32})$} or next;
        $found{$id} = read_stored($file) or delete $found{$id};
    }

    return \%found;
}


# undef: it is gone
sub read_stored {
    my ($file) = @_;

    open my $f, '<', $file or return;
    binmode $f;
    local $/;
    my $content = <$f>;

    return { error => 'too short' } if length($content) < HEAD_SIZE;

    my %st;
    my @texts;

    (@st{qw/ magic pinned crc archive_crc status mode worker /},
     @texts[0 .. 3],
     @st{qw/ stored start wall cpu waited samples allocated allocations
            in_use size id /}) =
        unpack(HEAD, $content);

    my $texts = 0;
    my $pos = HEAD_SIZE;

    for my $name (qw/ scope method host uri /) {
        my $len = shift @texts;
        $st{$name} = substr($content, $pos, $len);
        $pos += $len;
    }

    $st{length} = length($content);

    return { error => 'magic' } if $st{magic} ne 'ngxprof2';
    return { error => 'length' } if length($content) != $pos + $st{size};
    return { error => 'crc' } if crc32(substr($content, 16, $pos - 16))
                                 != $st{crc};
    return { error => 'archive' } if crc32(substr($content, $pos))
                                     != $st{archive_crc};
    return { error => 'id' } if $file !~ m{/\Q$st{id}\E$};

    return \%st;
}


# bytes of all files, and their number
sub store_size {
    my ($dir) = @_;

    my ($bytes, $n) = (0, 0);

    for my $file (glob("$dir/*")) {
        my $size = -s $file;
        next unless defined $size;
        $bytes += $size;
        $n++;
    }

    return wantarray ? ($bytes, $n) : $bytes;
}


1;
