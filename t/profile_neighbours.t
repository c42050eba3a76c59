#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: main
# runs: beside
#
# The modules that Debian packages for nginx, all in one worker: under load and
# with captures of every mode, each response equals the response of an nginx
# without the module under test, byte for byte.
#
# PROFILE_TEST_PAGE is the name of a file for a page with a table of the
# neighbours and their packages.

use strict;
use warnings;

use Compress::Zlib qw/ compress crc32 /;
use Digest::MD5 qw/ md5_hex /;
use List::Util qw/ shuffle /;
use Test::More;
use Time::HiRes qw/ sleep /;

use ProfileTest;

use constant { CLIENTS => 3, ROUNDS => 12, CAPTURES => 10 };

my $t = ProfileTest->new()->has(qw/ proxy rewrite gzip ssi /);

# name, the modules that it needs, directives of http, of server, and a sub that
# makes its requests and returns what was received; $key differs in each call

my @neighbours = (
    [ 'static file', [], '', '', sub { get('/large.txt') } ],
    [ 'gzip', [], '', 'location /gzip/ { alias %%TESTDIR%%/; gzip on;
                                         gzip_types text/plain; }',
      sub { get('/gzip/large.txt', 'Accept-Encoding: gzip') } ],
    [ 'SSI', [], '', 'location /ssi/ { alias %%TESTDIR%%/; ssi on; }',
      sub { get('/ssi/page.html') } ],
    [ 'proxy', [], '', 'location /proxied/ { proxy_pass
                            http://127.0.0.1:8081/; }',
      sub { get('/proxied/large.txt') } ],
    [ 'Lua', [ 'lua' ], '', <<'EOC', sub { get('/lua?a=b') } ],
    location /lua {
        access_by_lua_block { ngx.ctx.seen = ngx.var.uri }
        content_by_lua_block {
            local sock = ngx.socket.tcp()
            assert(sock:connect("127.0.0.1", %%PORT_8081%%))
            sock:send("GET /small.txt HTTP/1.0\r\n\r\n")
            local answer = sock:receive("*a")
            local threads = {}
            for i = 1, 3 do
                threads[i] = ngx.thread.spawn(function()
                    ngx.sleep(0.001 * i)
                    return i
                end)
            end
            for i = 1, 3 do ngx.say(select(2, ngx.thread.wait(threads[i]))) end
            ngx.say(ngx.ctx.seen, ngx.location.capture("/small.txt").body,
                    answer:match("\r\n\r\n(.*)"), ngx.var.arg_a)
        }
        header_filter_by_lua_block { ngx.header["X-Lua"] = "filter" }
        body_filter_by_lua_block { ngx.arg[1] = ngx.arg[1]:upper() }
    }
EOC
    [ 'njs', [ 'js' ], 'js_path %%TESTDIR%%; js_import main.js;',
      'location /js { js_content main.hello; }', sub { get('/js?a=1') } ],
    [ 'Perl', [ 'perl' ], '', <<'EOC', sub { get('/perl/x') } ],
    location /perl {
        perl 'sub {
            my $r = shift;
            $r->send_http_header("text/plain");
            return OK if $r->header_only();
            $r->print("uri: ", $r->uri(), "\n" x 3);
            return OK;
        }';
    }
EOC
    [ 'ModSecurity', [ 'modsecurity' ], '', <<'EOC',
    location /modsecurity/ {
        alias %%TESTDIR%%/;
        modsecurity on;
        modsecurity_rules '
            SecRuleEngine On
            SecRule ARGS "@contains attack" "id:1,phase:1,deny,status:403"
        ';
    }
EOC
      sub { get('/modsecurity/small.txt?a=attack')
            . get('/modsecurity/small.txt?a=b') } ],
    [ 'brotli', [ 'brotli_filter' ], '',
      'location /brotli/ { alias %%TESTDIR%%/; brotli on;
                           brotli_types text/plain; }',
      sub { get('/brotli/large.txt', 'Accept-Encoding: br') } ],
    [ 'brotli of files', [ 'brotli_static' ], '',
      'location /static/ { alias %%TESTDIR%%/; brotli_static on; }',
      sub { get('/static/small.txt', 'Accept-Encoding: br') } ],
    [ 'nchan', [ 'nchan' ], '', <<'EOC', \&nchan ],
    location ~ ^/publish/(\w+)$ { nchan_publisher; nchan_channel_id $1; }
    location ~ ^/subscribe/(\w+)$ {
        nchan_subscriber longpoll;
        nchan_channel_id $1;
        nchan_subscriber_first_message oldest;
    }
EOC
    [ 'echo', [ 'echo' ], '', <<'EOC', sub { get('/echo') } ],
    location /echo {
        default_type text/plain;
        echo before;
        echo_flush;
        echo_sleep 0.003;
        echo_location_async /small.txt;
        echo_location /large.txt;
        echo after;
    }
EOC
    [ 'headers-more', [ 'headers_more_filter' ], '', <<'EOC',
    location /headers/ {
        alias %%TESTDIR%%/;
        more_set_headers 'X-More: a';
        more_clear_headers Last-Modified;
    }
EOC
      sub { get('/headers/small.txt') } ],
    [ 'srcache and memc', [ qw/ srcache_filter memc set_misc / ], '', <<'EOC',
    location /memc {
        internal;
        memc_connect_timeout 5s;
        set $memc_key $query_string;
        set $memc_exptime 60;
        memc_pass 127.0.0.1:8083;
    }
    location /srcache/ {
        set $key $uri$arg_key;
        set_escape_uri $escaped $key;
        srcache_fetch GET /memc $escaped;
        srcache_store PUT /memc $escaped;
        proxy_pass http://127.0.0.1:8081/;
    }
EOC
      sub { my ($key) = @_;
            join '', map { get("/srcache/large.txt?key=$key") } 1 .. 2 } ],
    [ 'set-misc', [ 'set_misc' ], '',
      'location /misc { set_md5 $md5 $arg_a; return 200 $md5; }',
      sub { get('/misc?a=text') } ],
    [ 'image filter', [ 'image_filter' ], '', <<'EOC',
    location /image/ { alias %%TESTDIR%%/; image_filter resize 20 20; }
EOC
      sub { get('/image/image.png') } ],
    [ 'XSLT', [ 'xslt_filter' ], '', <<'EOC', sub { get('/xslt/page.xml') } ],
    location /xslt/ {
        alias %%TESTDIR%%/;
        xslt_stylesheet %%TESTDIR%%/style.xsl;
    }
EOC
    [ 'geoip2', [ 'geoip2' ],
      'geoip2 %%TESTDIR%%/places.mmdb { $place default=nowhere country iso_code; }
       geoip2_proxy 127.0.0.0/8;',
      'location /geoip2 { return 200 $place; }',
      sub { join '', map { get('/geoip2', "X-Forwarded-For: $_") }
                     qw/ 10.0.0.1 200.0.0.1 / } ],
    [ 'upstream-fair', [ 'upstream_fair' ],
      'upstream fairly { fair; server 127.0.0.1:8081; }',
      'location /fair/ { proxy_pass http://fairly/; }',
      sub { get('/fair/large.txt') } ],
    [ 'cache-purge', [ 'cache_purge' ],
      'proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;', <<'EOC',
    location /cached/ {
        proxy_cache cache;
        proxy_cache_key $uri$arg_key;
        proxy_cache_valid 1m;
        add_header X-Cache $upstream_cache_status;
        proxy_pass http://127.0.0.1:8081/;
    }
    location /purge/ { proxy_cache_purge cache /cached/small.txt$arg_key; }
EOC
      sub { my ($key) = @_;
            my ($miss, $hit, $purged, $again) =
                map { get("$_?key=$key") }
                    qw{ /cached/small.txt /cached/small.txt /purge/
                        /cached/small.txt };
            return "$miss$hit$again" . substr $purged, 0, 12 } ],
    [ 'dav-ext', [ 'dav_ext' ], '', <<'EOC',
    location /dav/ { alias %%TESTDIR%%/; dav_ext_methods PROPFIND OPTIONS; }
EOC
      sub { call('PROPFIND', '/dav/small.txt', '', 'Depth: 0') } ],
    [ 'fancyindex', [ 'fancyindex' ], '',
      'location /index/ { alias %%TESTDIR%%/listed/; fancyindex on; }',
      sub { get('/index/') } ],
    [ 'subs filter', [ 'subs_filter' ], '', <<'EOC',
    location /subs/ {
        alias %%TESTDIR%%/;
        subs_filter_types text/plain;
        subs_filter line LINE g;
    }
EOC
      sub { get('/subs/large.txt') } ],
    [ 'upload progress', [ 'uploadprogress' ], 'upload_progress uploads 1m;',
      <<'EOC',
    location /upload {
        proxy_pass http://127.0.0.1:8081/small.txt;
        proxy_method GET;
        track_uploads uploads 30s;
    }
    location /progress { report_uploads uploads; }
EOC
      sub { my ($key) = @_;
            call('POST', "/upload?X-Progress-ID=$key", 'x' x 70000)
            . get("/progress?X-Progress-ID=$key") } ],
    [ 'auth-pam', [ 'auth_pam' ], '', <<'EOC', sub { get('/pam/small.txt') } ],
    location /pam/ { alias %%TESTDIR%%/; auth_pam operators; }
EOC
);

my @present = grep { !grep { !$t->has_module($_) } @{$_->[1]} } @neighbours;
my %missing = map { $_ => 1 } grep { !$t->has_module($_) }
                                   map { @{$_->[1]} } @neighbours;

$t->has_program('memcached') if grep { $_->[0] =~ /memc/ } @present;

note('nginx has no ', join(', ', sort keys %missing)) if %missing;

write_files();

$t->run_daemon(sub {
    exec(qw/ memcached -l 127.0.0.1 -U 0 -u nobody -p /, port(8083))
        or exit 1;
}) if grep { $_->[0] =~ /memc/ } @present;

my %number;
my %plain = responses(0);
my %profiled = responses(1);

for my $neighbour (@present) {
    my $name = $neighbour->[0];

    is(scalar keys %{$plain{$name} // {}}, 1,
       "$name: all responses without the module are equal");
    is_deeply($profiled{$name}, $plain{$name},
              "$name: the module changes no response");
}

cmp_ok(ended(), '>=', CAPTURES, 'captures of all modes ended');

write_page($ENV{PROFILE_TEST_PAGE}) if defined $ENV{PROFILE_TEST_PAGE};


sub write_page {
    my ($file) = @_;

    my ($version) = `$t->{binary} -v 2>&1` =~ m{(\S+/\S+)};
    my @rows;

    for my $neighbour (@present) {
        my ($name, $modules) = @$neighbour;
        my %packages = map { package_of($_) => 1 } @$modules;

        push @rows, [ $name, join('<br>', sort keys %packages) || 'nginx',
                      map({ $_ // 0 } @{$number{$name}}[0, 1]),
                      join(' ', sort keys %{$profiled{$name}})
                      eq join(' ', sort keys %{$plain{$name}})
                      ? 'yes' : '**no**' ];
    }

    open my $out, '>', $file or die "$file: $!\n";

    print $out <<"EOF", map({ '| ' . join(' | ', @$_) . " |\n" } @rows);
# Neighbours

`make neighbours` writes this page.

One worker of $version loads all modules of this table.  Clients send
requests to all of them in a random order, first without the profiler, then with
the profiler: with accounting, a profile of each request and the watch for
stalls, while workers and requests are captured in all modes.  Each response is
compared byte for byte, without its date.

| neighbour | package | responses without the profiler | with the profiler | equal |
|---|---|---|---|---|
EOF
    close $out or die "$file: $!\n";
}


# the package of a module and its version

sub package_of {
    my ($name) = @_;

    my $module = $t->{dynamic}{$name};
    my ($package) = `dpkg -S '$module' 2>/dev/null` =~ /^([^:]+):/
        or return $module;

    return "$package " . `dpkg-query -W -f '\${Version}' $package`;
}


# name -> the different responses, as a sum and the first bytes

sub responses {
    my ($module) = @_;

    configure($module);
    $t->run();

    $t->start_child(\&captures) if $module;
    client($_, "run$module", $module) for 1 .. CLIENTS;

    my %seen;

    for my $i (1 .. CLIENTS) {
        ok(wait_for(sub { -s $t->testdir() . "/run$module.$i.done" }, 120),
           $module ? 'the load ends beside captures'
                   : 'the load ends without the module') or last;

        my $lines = $t->read_file("run$module.$i");

        while ($lines =~ /^(.*)\t(.*)$/mg) {
            $seen{$1}{$2} = 1;
            $number{$1}[$module]++;
        }
    }

    # nchan and upload progress have timers that outlast a graceful end

    $t->stop('TERM');
    $t->stop_daemons() if $module;

    return %seen;
}


# beside captures until enough of them have ended

sub client {
    my ($n, $file, $module) = @_;

    return $t->start_child(sub {
        my $dir = $t->testdir();

        srand $n;
        open my $out, '>', "$dir/$file.$n" or die "$file: $!\n";

        for (my $round = 1;
             $round <= ROUNDS || ($module && ended() < CAPTURES);
             $round++)
        {
            for my $neighbour (shuffle @present) {
                my ($name, $ask) = @$neighbour[0, 4];
                my $response = $ask->("${file}c${n}r$round");

                print $out "$name\t", md5_hex($response), ' ',
                      substr($response, 0, 60) =~ s/[^ -~]/./gr, "\n";
            }
        }

        close $out;
        $t->write_file("$file.$n.done", 'done');
    });
}


sub ended { return scalar(() = $t->read_file('captures') =~ /\n/g) }


# captures of workers and of the clients' requests, one after the other

sub captures {
    open my $out, '>', $t->testdir() . '/captures' or die "captures: $!\n";
    $out->autoflush();

    while (1) {
        for my $uri (qw{ wall?seconds=1&frequency=1000
                         wall?uri=/&requests=40&seconds=1
                         cpu?seconds=1&frequency=1000
                         object?seconds=1
                         object?uri=/&requests=40&seconds=1 })
        {
            my $r = http_get("/-/profile/$uri&format=folded");
            print $out "$uri\n" if ($r->status() // 0) == 200;
        }
    }
}


sub configure {
    my ($module) = @_;

    my ($http, $server) = map { my $i = $_; join "\n", map { $_->[$i] } @present }
                          2, 3;

    # %%MODULES%% has the module under test as its last line

    my $modules = $t->expand('%%MODULES%%');
    $modules =~ s/[^\n]*\z// unless $module;

    my ($on, $console) = !$module ? ('', '') : (<<'EOC', <<'EOC');
profile_accounting on;
profile_keep 1 rate=1000;
profile_stall_threshold 1ms;
EOC
    profile_endpoint on;
    location /-/profile/ { profile_console; access_log off; }
EOC

    $t->write_file_expand('nginx.conf', <<"EOC");
$modules
%%GLOBALS%%
worker_processes 1;
events { worker_connections 1024; }

http {
%%GLOBALS_HTTP%%
client_max_body_size 1m;
types { text/plain txt; text/html html; text/xml xml; image/png png; }
$on
$http

server {
    listen 127.0.0.1:8080;
$server
$console
}

server {
    listen 127.0.0.1:8081;
}
}
EOC
}


sub get {
    my ($uri, @headers) = @_;
    return call('GET', $uri, '', @headers);
}


sub call {
    my ($method, $uri, $body, @headers) = @_;

    push @headers, 'Content-Length: ' . length $body if length $body;

    my $r = http(join("\r\n", "$method $uri HTTP/1.1", 'Host: localhost',
                      'Connection: close', @headers, '', $body));

    return "$r" =~ s/^Date: .*\r\n//mr;
}


# One subscriber waits, the other one gets the message at once.  The id of the
# message is a time.

sub nchan {
    my ($key) = @_;

    my $waits = http("GET /subscribe/$key HTTP/1.1\r\nHost: localhost\r\n"
                     . "Connection: close\r\n\r\n", start => 1);
    my $published = call('POST', "/publish/$key", "message\n");

    return join '', map { /^(HTTP\S+ \d+).*\r\n\r\n(.*)\z/s ? "$1 $2" : $_ }
                    '' . http_end($waits), get("/subscribe/$key"),
                    $published =~ s/\r\n\r\n.*/\r\n\r\n/sr;
}


sub write_files {
    $t->write_file('small.txt', "a line\n");
    $t->write_file('small.txt.br', "not really compressed\n");
    $t->write_file('large.txt', join '', map { "line $_\n" } 1 .. 4000);
    $t->write_file('page.html',
                   'a <!--#include virtual="/small.txt" --> <!--#echo'
                   . ' var="uri" --> b');
    $t->write_file('page.xml', '<page><item>a</item><item>b</item></page>');
    $t->write_file('style.xsl', <<'EOF');
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:template match="/"><html><xsl:for-each select="page/item"><p>
<xsl:value-of select="."/></p></xsl:for-each></html></xsl:template>
</xsl:stylesheet>
EOF
    $t->write_file('main.js', <<'EOF');
async function hello(r) {
    let answer = await r.subrequest('/small.txt');
    r.return(200, JSON.stringify({ uri: r.uri, args: r.args,
                                   text: answer.responseText }));
}

export default { hello };
EOF

    $t->write_file('places.mmdb', places());

    mkdir $t->testdir() . '/listed';
    $t->write_file('listed/file.txt', 'x');

    my $rows = join '', map { "\0" . chr($_ * 4) x 120 } 0 .. 39;

    $t->write_file('image.png', "\x89PNG\r\n\x1a\n"
                   . chunk('IHDR', pack('NNC5', 40, 40, 8, 2, 0, 0, 0))
                   . chunk('IDAT', compress($rows)) . chunk('IEND', ''));
}


# A database of MaxMind's format with one node: addresses below 128.0.0.0 have a
# place, the other ones have none.  The first three bits of a value are its type,
# the other ones its size; types above 7 follow the size.

sub places {
    my $text = sub { chr(0x40 | length $_[0]) . $_[0] };
    my $map = sub { chr(0xe0 | @_ / 2) . join '', @_ };
    my $number = sub { "\xa2" . pack 'n', $_[0] };

    my $place = $map->($text->('country'),
                       $map->($text->('iso_code'), $text->('XA')));
    my $facts = $map->(
        $text->('binary_format_major_version'), $number->(2),
        $text->('binary_format_minor_version'), $number->(0),
        $text->('build_epoch'), "\x01\x02\x01",
        $text->('database_type'), $text->('Places'),
        $text->('description'), $map->($text->('en'), $text->('places')),
        $text->('ip_version'), $number->(4),
        $text->('languages'), "\x01\x04" . $text->('en'),
        $text->('node_count'), "\xc1\x01",
        $text->('record_size'), $number->(24),
    );

    # record 17 is the first value: one node, and 16 bytes between both parts

    return pack('CnCn', 0, 17, 0, 1) . "\0" x 16 . $place
           . "\xab\xcd\xefMaxMind.com" . $facts;
}


sub chunk {
    my ($type, $data) = @_;

    return pack('N', length $data) . $type . $data
           . pack('N', crc32($type . $data));
}
