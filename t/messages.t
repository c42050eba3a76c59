#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# docs/troubleshooting.md lists every message that the module logs or answers,
# and no other message.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

my $root = dirname(__FILE__) . '/..';

# the calls whose literals are messages
my $CALL = qr/\b(?:ngx_log_error|ngx_conf_log_error
                 |ngx_http_profile_answer_error)\s*\(/x;

# the messages of the code, with "..." in place of values, and their files
my %code;

# macros that are literals
my %macro;

for my $file (glob("$root/ngx_http_profile_module/*/*.h")) {
    my $text = read_file($file);

    $macro{$1} = $2
        while $text =~ /^#define\s+(\w+)(?:\s|\\\n)+("(?:[^"\\]|\\.)*")$/mg;
}

# all literals of the code, for messages that a call takes from elsewhere
my $literals = '';

for my $file (glob("$root/ngx_http_profile_module/*/*.c"),
              glob("$root/shared/*/*.c"))
{
    my $text = read_file($file);

    $literals .= join("\n", map { plain($_) } literals($text)) . "\n";

    next if $file =~ m{/shared/};

    while ($text =~ /$CALL/g) {
        my $message = plain(join('', format_of(call_at($text, pos $text))));

        # values only, as in "profile: %s"
        next if $message =~ /^(?:profile: )?(?:\.\.\.)?$/;

        $code{$message} //= $file =~ s{.*/}{}r;
    }
}

cmp_ok(scalar keys %code, '>', 80, 'the code has messages');

my $page = read_file("$root/docs/troubleshooting.md");
my @rows = $page =~ /^\| (?:`\w+`|\d{3}) \| `([^`]+)` \|/mg;

cmp_ok(scalar @rows, '>', 80, 'the page has messages');

for my $message (sort keys %code) {
    my ($row) = grep { matches($_, $message) } @rows;

    ok(defined $row, "$code{$message}: the page lists \"$message\"");
}

for my $row (@rows) {
    my $known = grep { matches($row, $_) } keys %code;

    $known ||= index($literals, $row =~ s/^profile: //r) >= 0;

    ok($known, "the code has the message of the page \"$row\"");
}

done_testing();

###############################################################################

# a row may replace more of a message by "..." than the code does
sub matches {
    my ($row, $message) = @_;

    my $match = join('.*', map { quotemeta } split(/\.\.\./, $row, -1));

    return $message =~ /^$match$/;
}


# the arguments of a call that begins at $pos, up to its last parenthesis
sub call_at {
    my ($text, $pos) = @_;
    my $depth = 1;

    pos($text) = $pos;

    while ($text =~ /\G(?:[^"()]+|"(?:[^"\\]|\\.)*"|([()]))/gs) {
        next unless $1;
        $depth += $1 eq '(' ? 1 : -1;
        last unless $depth;
    }

    return substr($text, $pos, pos($text) - $pos);
}


# the first literal of a call, with the literals that are concatenated with it
sub format_of {
    my ($call) = @_;

    # without the status, whose name may also be such a macro
    $call =~ s/^[^"]*?,//;
    $call =~ s/("(?:[^"\\]|\\.)*")|\b(\w+)\b/$1 \/\/ $macro{$2} \/\/ $2/ge;

    my ($format) = $call =~ /("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*)/s
        or return '';

    return literals($format);
}


sub literals {
    my ($text) = @_;
    return $text =~ /"((?:[^"\\\n]|\\.)*)"/g;
}


# returns the text without escapes, with "..." in place of values
sub plain {
    my ($format) = @_;

    $format =~ s/\\"/"/g;
    $format =~ s/%%/\0/g;
    $format =~ s/%(?:\*s|[0-9.]*(?:u[ziLAD]?|[VsdiPLzpcO])(?:[dx](?=\W|$))?)/.../g;
    $format =~ s/\0/%/g;

    # a macro with the name of a system call precedes it
    $format =~ s/^ /... /;
    $format =~ s/\\n$//;

    return $format;
}


sub read_file {
    my ($name) = @_;

    open my $f, '<', $name or die "cannot open $name: $!\n";
    local $/;
    return <$f>;
}

###############################################################################
