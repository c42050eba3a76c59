#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: roles
# runs: beside
#
# Names of static functions by their roles and source files: in a stripped nginx
# all functions are asked for, and each name is compared with the symbol that was
# stripped.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;
use ProfileTest::Functions;

my $t = functions_test(qw/ gzip proxy ssl /);

$t->conf(<<'EOF');
map $http_accept $mapped {
    default 1;
}

log_format mapped '$mapped $ssl_protocol';

upstream u {
    server 127.0.0.1:8081;
}

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location /-/profile/ {
        profile_console;
    }

    location / {
        gzip on;
        access_log %%TESTDIR%%/mapped.log mapped;
    }

    location /proxied {
        proxy_pass http://u/;
    }

    location /proxy {
        proxy_pass http://u;

        location ~ /gif$ {
            empty_gif;
        }
    }

    location @named {
        fastcgi_pass 127.0.0.1:8081;
    }
}

server {
    listen 127.0.0.1:8081;
}
EOF

$t->write_file('index.html', 'content');
$t->run();

# captures see functions that are set for a request
profile_get('/proxied');

my $functions = functions($t);
my $names = asked_names($t, sort { $a <=> $b } keys %$functions);

my ($with_role, $units, %roles, @wrong, @symbols, @offsets, %seen) = (0, 0);

for my $address (sort { $a <=> $b } keys %$names) {
    my ($name, $f) = ($names->{$address}, $functions->{$address});

    push @wrong, "$name: twice" if $seen{$name}++;

    if ($name =~ /^nginx\+0x/) {
        push @offsets, $name;
        next;
    }

    if ($name !~ /^(.*) \(nginx\+0x([0-9a-f]+)\)$/) {
        push @symbols, "$name: $f->{name}" if $name ne $f->{name};
        next;
    }

    my ($role, $offset) = ($1, $2);

    push @wrong, "$name: $f->{name}" if hex($offset) != $address;

    if ($role =~ /\.c$/) {
        $units++;
        push @wrong, "$name: $f->{name} in $f->{file}" if $role ne $f->{file};
        next;
    }

    $with_role++;
    $roles{$f->{name}} = $role;
    push @wrong, "$name: $f->{name} in $f->{file}" if !fits($role, $f);
}

is("@wrong", '',
   'each role and each file fits the function, and no name is there twice');
is("@symbols", '', 'other names are the symbols');
cmp_ok(scalar(keys %roles), '>', 300, 'many functions have roles');

SKIP: {
    skip('no Capstone', 1) if !-e '/usr/include/capstone/capstone.h';

    cmp_ok(scalar(@offsets), '<=', keys(%$functions) / 100,
           'at most one function in a hundred has only an offset');
}

diag(sprintf('%d functions: %d symbols, %d roles, %d units, %d offsets',
             scalar(keys %$functions),
             scalar(keys %$names) - $with_role - $units - @offsets,
             $with_role, $units, scalar(@offsets)));

my %expected = (
    ngx_http_gzip_body_filter         => 'gzip body filter',
    ngx_http_gzip_header_filter       => 'gzip header filter',
    ngx_http_header_filter            => 'header header filter',
    ngx_http_access_handler           => 'access access handler',
    ngx_http_static_handler           => 'static content handler',
    ngx_http_proxy_handler            => 'proxy content handler',
    ngx_http_fastcgi_handler          => 'fastcgi content handler',
    ngx_http_empty_gif_handler        => 'empty_gif content handler',
    ngx_http_realip_handler           => 'realip post-read handler',
    ngx_http_map_variable             => 'map variable $mapped',
    ngx_http_ssl_static_variable      => 'variables',
    ngx_http_variable_host            => 'variable $host',
    ngx_http_process_user_agent       => 'request header User-Agent',
    ngx_http_upstream_process_vary    => 'response header Vary',
    ngx_http_upstream_copy_content_type
        => 'copy response header Content-Type',
    ngx_epoll_process_events          => 'epoll process events',
    ngx_http_gzip_merge_conf          => 'gzip merge location configuration',
    ngx_http_proxy_pass               => 'proxy directive proxy_pass',
    ngx_http_proxy_create_request     => 'proxy create request',
    ngx_http_proxy_process_status_line => 'proxy process header',
    ngx_http_proxy_finalize_request   => 'proxy finalize request',
    ngx_http_upstream_handler         => 'upstream event handler',
    ngx_http_upstream_process_header  => 'upstream read event handler',
);

# the name of the module is known if its other functions stand around

for my $function (sort keys %expected) {
    like($roles{$function}, qr/^(?:upstream )?\Q$expected{$function}\E$/,
         $function)
        if grep { $_->{name} eq $function } values %$functions;
}


# a reload changes roles

$t->write_file('nginx.conf', $t->read_file('nginx.conf')
                             =~ s/\$mapped/\$other/gr
                             =~ s/empty_gif/stub_status/r);

my @old = $t->worker_pids();
$t->reload();
wait_for(sub { !grep { kill 0, $_ } @old });

my ($gif, $map) = map {
    my $function = $_;
    grep { $functions->{$_}{name} eq $function } keys %$functions;
} qw/ ngx_http_empty_gif_handler ngx_http_map_variable /;

$names = asked_names($t, $gif, $map);

unlike($names->{$gif} // '', qr/content handler/,
       'a handler without a location is not a content handler');
like($names->{$map}, qr/^map variable \$other \(/,
     'a variable of the new configuration names its function');


# whether the role may be one of the function: its module, and words of the
# function's name
sub fits {
    my ($role, $f) = @_;

    my %words = (
        'body filter'     => qr/filter$/,
        'header filter'   => qr/filter$/,
        'content handler' => qr/_handler$/,
        'access handler'  => qr/_handler$/,
        'log handler'     => qr/_log_handler$/,
        'request header'  => qr/_process_/,
        'response header' => qr/_(?:process|ignore|copy|rewrite)_/,
        'variables?'      => qr/_variable|_cache_status$/,
        'event handler'   => qr/_handler$|_connection$|_process_header$/,
        'directives?'     => qr/./,
    );

    for my $words (grep { $role =~ /\b$_\b/ } keys %words) {
        return 0 if $f->{name} !~ $words{$words};
    }

    my $module = module_of($f->{file});

    # roles without a module begin with their kind
    return $role =~ /^(?:\Q$module\E\ |(?:set\ )?variables?\b
                         |(?:copy\ )?(?:request|response)\ header
                         |(?:[\w-]+\ )*(?:content|access)\ handler
                         |(?:client\ |upstream\ |request\ )?
                          (?:(?:read|write)\ )?event\ handler$
                         |init\ (?:peer|upstream))/x
           || $role =~ ({
               # files that have another name than their module
               'nginx'               => qr/^core /,
               'conf_file'           => qr/^conf /,
               'event'               => qr/^event(?:s|_core) /,
               'event_openssl'       => qr/^openssl /,
               'event_quic_bpf'      => qr/^quic_bpf /,
               'log'                 => qr/^errlog /,
               'range'               => qr/^range_(?:header|body) /,

               # Debian's nginx 1.22
               'core'                => qr/^header_count /,
           }->{$module} // qr/^$/);
}


# "ngx_http_gzip_filter_module.c": "gzip"
sub module_of {
    my ($file) = @_;

    return $file =~ s/^ngx_(?:http_)?//r =~ s/\.c$//r =~ s/_module$//r
                 =~ s/_filter$//r;
}
