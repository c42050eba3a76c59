#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: docs
# runs: beside
#
# Compares the reference with the tables in the sources, both ways: directives
# with their contexts, variables, formats.  Checks that links between the pages
# have targets.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use Test::More;

chdir(dirname(abs_path(__FILE__)) . '/..') or die "chdir: $!\n";

my $glue = join('', map { slurp($_) } glob('ngx_http_profile_module/*/*.c'));
my $page = slurp('docs/ngx_http_profile_module.md');


# the checks themselves

my $sample = <<'EOF2';
static ngx_command_t  ngx_http_x_commands[] = {

    { ngx_string("x_on"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,

    { ngx_string("x_off"),
      NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,

      ngx_null_command
};

ngx_http_variable_t  ngx_http_x_vars[] = {

    { ngx_string("x_id"), NULL, f, 0, 0, 0 },

      ngx_http_null_variable
};
EOF2

is_deeply(directives_of($sample), { x_on => 'http, location',
                                    x_off => 'server' },
          'directives are found in the sources');
is_deeply([ variables_of($sample) ], [ 'x_id' ],
          'variables are found in the sources');
is_deeply(directives_in(<<'EOF2'), { x_on => 'http, location' },
### `x_on`

| | |
|---|---|
| Syntax:  | **`x_on`** `on` \| `off`; |
| Default: | `x_on off;` |
| Context: | `http`, `location` |

### `$x_id`
EOF2
          'directives are found in the page');


# directives and variables

my $directives = directives_of($glue);

cmp_ok(scalar keys %$directives, '>', 0, 'there are directives');
is_deeply(directives_in($page), $directives,
          'the page has all directives with their contexts');
is_deeply([ sort { $a cmp $b } $page =~ /^### +`?\$([a-z]\w*)`?$/mg ],
          [ sort { $a cmp $b } variables_of($glue) ],
          'the page has all variables');

for my $name (sort keys %$directives) {
    my ($section) = $page =~ /^### +`?\Q$name\E`?\n(.*?)(?=^##|\z)/ms;
    $section //= '';

    like($section, qr/^\| *Syntax: *\|.*\b\Q$name\E\b/m, "$name: syntax");
    like($section, qr/^\| *Default: *\| *(?:`\Q$name\E .*;`|\x{2014}|-) *\|$/m,
         "$name: default");
}


# the index, whose last column is a version of CHANGES

my @index = $page =~ /^\| \[(\$?\w+)\]\(#\w+\) \| (.*?) ?\| (\S+) \|$/mg;
my @versions = slurp('CHANGES') =~ /^Changes with \w+ (\S+)/mg;
my (@names, %contexts, @unknown);

while (my ($name, $contexts, $since) = splice(@index, 0, 3)) {
    push @names, $name;
    push @unknown, "$name: $since" unless grep { $_ eq $since } @versions;
    ($contexts{$name} = $contexts) =~ tr/`//d if $name !~ /^\$/;
}

is_deeply(\@names, [ (sort keys %$directives),
                     (map { "\$$_" } sort(variables_of($glue))) ],
          'the index has all directives and variables in order');
is_deeply(\%contexts, $directives,
          'the index has the contexts of all directives');
is("@unknown", '', 'the index has versions that were released');


# words of secret names

my ($secrets) = $glue =~ /^static \N+ ngx_http_profile_secrets\[(.*?)^\};/ms;
my ($names) = $page =~ /^(The name of an argument is secret.*?)  So `api_key`/ms;

is_deeply([ sort(($names // '') =~ /`(\w+)`/g) ],
          [ sort(map { tr{$}{}dr } ($secrets // '') =~ /"(.*?)"/g) ],
          'the page has the words of secret names');


# output formats

my ($table) = slurp('shared/formats/prof_encode.h')
    =~ /^#define PROF_ENCODERS\(x\)(.*?)\n\n/ms;
my @formats = ($table // '') =~ /\bx\((\w+)\)/g;

cmp_ok(scalar @formats, '>', 0, 'there are formats');
is_deeply([ sort { $a cmp $b } slurp('docs/output-formats.md')
                                =~ /^##+ +`([a-z]+)`$/mg ],
          [ sort @formats ], 'output-formats.md has all formats');

my ($manual) = slurp('tools/nginx-profile')
    =~ /^=item B<-f>, .*?\n\n(.*?)\.  /ms;

is_deeply([ sort(($manual // '') =~ /B<(\w+)>/g) ], [ sort @formats ],
          'the manual of nginx-profile has all formats');

($manual) = slurp('tools/nginx-profile') =~ /^my \@FORMATS = qw\/ (.*?) \/;/m;

is_deeply([ sort split(/ /, $manual // '') ], [ sort @formats ],
          'nginx-profile checks for all formats');


# links

for my $file (glob('*.md docs/*.md t/*.md')) {
    my $text = slurp($file);
    my @dead;

    $text =~ s/^```.*?^```//msg;

    while ($text =~ /\]\(([^()\s]+)\)/g) {
        my ($path, $anchor) = split(/#/, $1, 2);

        next if $path =~ /^[a-z]+:/;

        my $target = $path eq '' ? $file : dirname($file) . "/$path";

        if (!-e $target) {
            push @dead, $path;

        } elsif (defined $anchor && $target =~ /\.md$/) {
            push @dead, "$path#$anchor"
                unless grep { $_ eq $anchor } anchors(slurp($target));
        }
    }

    is(join(' ', @dead), '', "links of $file");
}

done_testing();


sub slurp {
    my ($name) = @_;

    open my $f, '<:utf8', $name or return '';
    local $/;

    return scalar <$f> // '';
}


# { name => contexts }
sub directives_of {
    my ($source) = @_;

    my %contexts = (MAIN => 'http', SRV => 'server', LOC => 'location',
                    LIF => 'if in location', SIF => 'if in server',
                    UPS => 'upstream');
    my %found;

    while ($source =~ /^static ngx_command_t +\w+\[\] = \{(.*?)^\};/msg) {
        my $table = $1;

        while ($table =~ /\{ ngx_string\("(\w+)"\),\s*([A-Z_0-9|\s]+?),/g) {
            my ($name, $type) = ($1, $2);

            $found{$name} = join(', ', map { $contexts{$_} }
                                 grep { $type =~ /NGX_HTTP_${_}_CONF/ }
                                 qw/ MAIN SRV SIF LOC LIF UPS /);
        }
    }

    return \%found;
}


sub variables_of {
    my ($source) = @_;

    my @found;

    while ($source =~ /^ngx_http_variable_t +\w+\[\] = \{(.*?)^\};/msg)
    {
        push @found, $1 =~ /\{ ngx_string\("(\w+)"\)/g;
    }

    return @found;
}


sub directives_in {
    my ($page) = @_;

    my %found;

    while ($page =~ /^### +`?([a-z]\w*)`?\n(.*?)(?=^##|\z)/msg) {
        my ($name, $section) = ($1, $2);

        my ($contexts) = $section =~ /^\| *Context: *\| *(.*?) *\|$/m;
        ($found{$name} = $contexts // '') =~ tr/`//d;
    }

    return \%found;
}


# returns the anchors of headings, as web sites that render Markdown name them
sub anchors {
    my ($text) = @_;

    $text =~ s/^```.*?^```//msg;

    return map { my $s = lc; $s =~ s/[^\w\- ]//g; $s =~ tr/ /-/; $s }
               $text =~ /^#+ +(.*?)\s*$/mg;
}
