#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: docs core
# runs: beside
#
# docs/troubleshooting.md lists every message that the module logs or answers,
# and no other message.  The page also lists the reasons that messages end with.
# The reference lists the errors of triggers.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

my $root = dirname(__FILE__) . '/..';

# the calls whose literals are messages
my $CALL = qr/\b(?:ngx_log_error|ngx_conf_log_error|ngx_http_profile_log
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

# reasons that the code appends to a message, or shows on the status page

my %reason;
my $string = qr/"(?:[^"\\]|\\.)*"/;
my $value = qr/(?:[^;{}"]|$string)*?$string(?:[^;{}"]|$string)*?/;

for my $file (glob("$root/shared/{archive,capture,heap,kernel,names,scripts}/*.c"),
              glob("$root/ngx_http_profile_module/continuous/*_slice.c"),
              glob("$root/ngx_http_profile_module/workers/*_merge.c"),
              glob("$root/ngx_http_profile_module/stages/*_lua.c"))
{
    my $text = read_file($file) =~ s{/\*.*?\*/}{}gsr;

    while ($text =~ /(?:\w*(?:err|why|state)\s*=|\breturn\b
                      |&prof_helper_error,)\s*($value)(?:;|,\s*__ATOMIC)/gsx)
    {
        for my $part (split /\s[?:]\s/, $1) {
            my $text = plain(join('', literals($part)));

            # a word alone is a state, as "on" and "off"; "all workers" is a
            # name of a profile
            $reason{$text} //= $file =~ s{.*/}{}r
                if $part =~ /^\s*"/ && $text =~ / / && $text !~ /^all /;
        }
    }
}

for my $file (glob("$root/shared/archive/*.h")) {
    $reason{$_} = $file =~ s{.*/}{}r
        for read_file($file) =~ /^#define PROF_ARCHIVE_[A-Z]+\s+"([^"]* [^"]*)"/mg;
}

cmp_ok(scalar keys %reason, '>', 40, 'the code has reasons');

my $reasons = $page . read_file("$root/docs/kernel.md");

for my $text (sort keys %reason) {
    ok(index($reasons, "`$text`") >= 0,
       "$reason{$text}: the page lists the reason \"$text\"");
}

my ($section) = $page =~ /^## Reasons\n(.*)/ms;

for my $column ($section =~ /^\|[^|]*\|([^|]*)\|[^|]*\|$/mg) {
    for my $text ($column =~ /`([^`]+)`/g) {
        ok($reason{$text} || index($literals, $text) >= 0,
           "the code has the reason of the page \"$text\"");
    }
}

# errors of triggers, with their names in place of "profile_mode"

my $reference = read_file("$root/docs/ngx_http_profile_module.md");
my ($errors) = $reference =~ /^## Errors\n(.*?)^## /ms;
my %error;

for my $file (glob("$root/ngx_http_profile_module/{request,reply}/*.c")) {
    my $text = read_file($file);

    $error{$_} = $file =~ s{.*/}{}r
        for $text =~ /"((?:too many|no memory|the profile)[^"]*)\\n"/g;

    if ($text =~ /\bngx_http_profile_error\(/) {
        my @calls = $text =~ /ngx_http_profile_error\(r, t,([^;]*);/g;

        $error{$_} = $file =~ s{.*/}{}r
            for map { join '', literals($_) } grep { !/takes"/ } @calls;
    }
}

cmp_ok(scalar keys %error, '>', 5, 'triggers have errors');

for my $text (sort keys %error) {
    ok(index($errors, $text) >= 0,
       "$error{$text}: the reference has the error \"$text\"");
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
