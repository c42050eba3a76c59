package ProfileTest;

# Copyright (C) The ngx_http_profile_module authors
#
# Runs nginx with the module for one test file: own directory, own ports, own
# processes.  Core Perl only.  t/README.md is its manual.
#
# When the test ends, three more tests are made here: that nginx logged no
# alert, that no sanitizer reported anything, and that nginx stopped when it
# was asked to.  $t->plan() counts them in.

use strict;
use warnings;

use Exporter qw/ import /;
use Fcntl qw/ SEEK_SET /;
use File::Basename qw/ basename dirname /;
use File::Copy qw/ copy /;
use File::Spec;
use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use POSIX qw/ :sys_wait_h /;
use Test::More import => [ '!plan' ];
use Time::HiRes qw/ sleep time /;

use ProfileTest::HTTP;
use ProfileTest::Load;
use ProfileTest::Profile;

our @EXPORT = (@ProfileTest::HTTP::EXPORT,
               qw/ port profile_get wait_for /);

my $ROOT = File::Spec->rel2abs(dirname(__FILE__) . '/../..');

use constant TEARDOWN_TESTS => 3;

# How long anything may take that should take no time.  Sanitizers and
# valgrind ask for more.
my $PATIENCE = $ENV{TEST_NGINX_TIMEOUT} || 10;

# directives for the events block of each nginx.conf
my $EVENTS = $ENV{TEST_NGINX_GLOBALS_EVENTS};

# the ports that expect the header of the proxy protocol
my @PROXY_PORTS = $ENV{TEST_NGINX_PROXY_PROTOCOL}
                      ? @ProfileTest::HTTP::PROXY_PORTS : ();

# A test file that hangs is killed.
use constant WATCHDOG => 600;

# modules that are not ours, by the name has() knows them, in load order
my @DYNAMIC = (
    [ ndk => 'ndk_http_module.so' ],
    [ echo => 'ngx_http_echo_module.so' ],
    [ js => 'ngx_http_js_module.so' ],
    [ lua => 'ngx_http_lua_module.so', 'ndk' ],
    [ set_misc => 'ngx_http_set_misc_module.so', 'ndk' ],
    [ nchan => 'ngx_nchan_module.so' ],
    map { [ $_ => "ngx_http_${_}_module.so" ] }
        qw/ auth_pam brotli_filter brotli_static cache_purge dav_ext
            fancyindex geoip2 headers_more_filter image_filter memc modsecurity
            perl srcache_filter subs_filter uploadprogress upstream_fair
            xslt_filter /
);

# nginx's own modules that have to be asked for; all others are there unless
# nginx was configured without them
my %OPTIONAL = map { $_ => 1 } qw/ addition auth_request dav degradation flv
    gunzip gzip_static mp4 random_index realip secure_link slice ssl
    stub_status sub v2 v3 /;

my ($test, $lock_socket, $port_base, %ports);


sub new {
    my ($class) = @_;

    die "one nginx in a test file\n" if $test;

    my $self = bless {
        binary   => $ENV{TEST_NGINX_BINARY} || find_binary(),
        module   => $ENV{TEST_NGINX_MODULE}
                    // "$ROOT/build/ngx_http_profile_module.so",
        modules  => $ENV{TEST_NGINX_MODULES_PATH} || '/usr/lib/nginx/modules',
        dynamic  => {},
        allowed  => [],
        children => [],
        planned  => 0,
        pid      => undef,
        parent   => $$,
    }, $class;

    for my $file ($self->{binary}, $self->{module}) {
        BAIL_OUT("no $file: run \"make\"") if $file ne '' && !-r $file;
    }

    $self->{testdir} = tempdir('profile-test-XXXXXXXXXX', TMPDIR => 1,
                               CLEANUP => !$ENV{TEST_NGINX_LEAVE});
    diag("leaving $self->{testdir}") if $ENV{TEST_NGINX_LEAVE};

    if ($> == 0) {

        # As in production: the master is root and the workers are not, which
        # also takes from them what the kernel keeps from processes that
        # changed their user.  They must be able to read the module, whose
        # symbols they print, wherever the working copy may be.

        $self->{user} = (grep { getpwnam($_) } qw/ www-data nobody /)[0];

        chmod 01777, $self->{testdir} or die "chmod: $!\n";

        if ($self->{module} ne '') {
            my $from = dirname($self->{module});
            my $helper = 'ngx_http_profile_symbolizer';
            my $to = "$self->{testdir}/" . basename($self->{module});

            copy($self->{module}, $to) or die "copy to $to: $!\n";
            chmod 0644, $to;
            $self->{module} = $to;

            if (-e "$from/$helper") {
                $to = "$self->{testdir}/$helper";
                copy("$from/$helper", $to) or die "copy to $to: $!\n";
                chmod 0755, $to;
            }
        }
    }

    $SIG{$_} = sub { exit 1 } for qw/ INT TERM HUP /;
    $SIG{PIPE} = 'IGNORE';
    $SIG{ALRM} = sub { die "the test took more than " . WATCHDOG . " s\n" };
    alarm(WATCHDOG);

    return $test = $self;
}


sub find_binary {
    for my $dir (split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/local/sbin') {
        return "$dir/nginx" if -x "$dir/nginx";
    }

    BAIL_OUT('no nginx: set TEST_NGINX_BINARY');
}


# What a test needs, or it is skipped

# nginx's modules without prefix and suffix ("gunzip", "ssl", "v2"), dynamic
# modules of the table above, and: debug, mail, stream, threads
sub has {
    my ($self, @names) = @_;

    for my $name (@names) {
        $self->skip_all("nginx has no $name")
            unless $self->has_module($name);
    }

    return $self;
}


sub has_module {
    my ($self, $name) = @_;

    if (grep { $_->[0] eq $name } @DYNAMIC) {
        return $self->has_dynamic($name);
    }

    my $args = $self->configure_arguments();

    # nginx runs no tasks in threads with these event methods

    return 0 if $name eq 'threads' && ($EVENTS // '') =~ /use (?:poll|select);/;

    return $args =~ /--with-\Q$name\E(?![\w=-])/
        if $name =~ /^(?:debug|mail|stream|threads)$/;
    return $args =~ /--with-http_\Q$name\E_module(?!=dynamic)/
        if $OPTIONAL{$name};
    return $args !~ /--without-http[_-]\Q$name\E(_module)?\b/;
}


# a module of another build may be there and yet not load
sub has_dynamic {
    my ($self, $name) = @_;

    my ($entry) = grep { $_->[0] eq $name } @DYNAMIC;
    my (undef, $file, @needs) = @$entry;

    for my $need (@needs) {
        return 0 unless $self->has_dynamic($need);
    }

    return 1 if $self->{dynamic}{$name};
    return 0 if exists $self->{dynamic}{$name};
    return 0 unless -r "$self->{modules}/$file";

    my $last = $self->{dynamic}{$name} = "$self->{modules}/$file";
    my ($status, $out) = $self->test_config("%%MODULES%%\nevents { }\n");

    if ($status != 0) {
        $self->{dynamic}{$name} = undef;
        diag("$last does not load: $out") if $ENV{TEST_NGINX_VERBOSE};
        return 0;
    }

    return 1;
}


sub has_program {
    my ($self, @names) = @_;

    for my $name (@names) {
        next if grep { -x "$_/$name" }
                     split(/:/, "$ENV{PATH}:/usr/sbin:/usr/local/sbin");
        $self->lacks("program $name");
    }

    return $self;
}


sub has_perl {
    my ($self, @names) = @_;

    for my $name (@names) {
        $self->lacks("Perl module $name") unless eval "require $name; 1";
    }

    return $self;
}


# fails if a package is missing that "make test" should have installed
sub lacks {
    my ($self, $what) = @_;

    die "no $what\n" if $ENV{TEST_NGINX_INSTALLED};
    $self->skip_all("no $what");
}


# "1.22.1" as a number that can be compared: 1022001
sub version {
    my ($self) = @_;

    my ($major, $minor, $patch) =
        $self->nginx_v() =~ m{nginx/(\d+)\.(\d+)\.(\d+)};

    return $major * 1000000 + $minor * 1000 + $patch;
}


# whether nginx was built with sanitizers
sub sanitizers {
    my ($self) = @_;
    return $self->configure_arguments() =~ /-fsanitize=/;
}


sub configure_arguments {
    my ($self) = @_;

    return $self->nginx_v() =~ /configure arguments: (.*)/ ? $1 : '';
}


sub nginx_v {
    my ($self) = @_;

    return $self->{version} //= do {
        local %ENV = (%ENV, $self->sanitizer_env('detect_leaks=0'));
        `$self->{binary} -V 2>&1`;
    };
}


sub skip_all {
    my ($self, $reason) = @_;

    $self->{skipped} = 1;
    Test::More::plan(skip_all => $reason);
}


# without a plan, tests are counted at the end
sub plan {
    my ($self, $tests) = @_;

    Test::More::plan(tests => $tests + TEARDOWN_TESTS);
    $self->{planned} = 1;

    return $self;
}


# Files

sub testdir {
    my ($self) = @_;
    return $self->{testdir};
}


# for lines of error.log that a test provokes
sub allow {
    my ($self, @res) = @_;

    push @{$self->{allowed}}, @res;
    return $self;
}


sub write_file {
    my ($self, $name, $content) = @_;

    open my $f, '>', "$self->{testdir}/$name"
        or die "cannot create $name: $!\n";
    binmode $f;
    print $f $content;
    close $f;

    return $self;
}


# replaces %%CONF name%% by the file t/conf/name.conf, and %%TESTDIR%%,
# %%MODULES%%, %%GLOBALS%%, %%GLOBALS_HTTP%%, %%SLOW_MAP%%, %%PORT_8080%%, and
# 127.0.0.1:8080 to 127.0.0.1:8999 by their free ports
sub write_file_expand {
    my ($self, $name, $content) = @_;

    return $self->write_file($name, $self->expand($content));
}


# nginx.conf, given what is in its http block; workers => N, main and events are
# for the number of workers and for directives outside of that block
sub conf {
    my ($self, $http, %extra) = @_;

    $extra{$_} //= '' for qw/ main events /;
    $extra{workers} //= 1;

    return $self->write_file_expand('nginx.conf', <<"EOF");
%%MODULES%%
%%GLOBALS%%
$extra{main}
worker_processes $extra{workers};

events {
$extra{events}
}

http {
%%GLOBALS_HTTP%%

$http
}
EOF
}


sub expand {
    my ($self, $s) = @_;

    $s =~ s/%%CONF (\w+)%%/conf_part($1)/ge;
    $s =~ s/%%MODULES%%/$self->conf_modules()/ge;
    $s =~ s/%%GLOBALS%%/$self->conf_globals()/ge;
    $s =~ s/%%GLOBALS_HTTP%%/$self->conf_globals_http()/ge;
    $s =~ s/%%SLOW_MAP%%/conf_slow_map()/ge;
    $s =~ s/^(\s*events\s*\{)([^}]*)/$1 . add_events($2)/mge if $EVENTS;
    $s =~ s/(\blisten\s+127\.0\.0\.1:$_\b[^;]*);/$1 proxy_protocol;/g
        for @PROXY_PORTS;
    $s =~ s/%%TESTDIR%%/$self->{testdir}/g;
    $s =~ s/%%PORT_(8\d\d\d)%%/port($1)/ge;
    $s =~ s/\b127\.0\.0\.1:(8\d\d\d)\b/'127.0.0.1:' . port($1)/ge;

    return $s;
}


sub conf_part {
    my ($name) = @_;

    open my $f, '<', "$ROOT/t/conf/$name.conf" or die "$name.conf: $!\n";
    local $/;

    return scalar <$f>;
}


sub conf_modules {
    my ($self) = @_;

    my @files = grep { defined } map { $self->{dynamic}{$_->[0]} } @DYNAMIC;

    push @files, $self->{module} if $self->{module} ne '';

    return join("\n", map { "load_module $_;" } @files);
}


sub conf_globals {
    my ($self) = @_;

    my $level = $ENV{TEST_NGINX_VERBOSE} ? 'debug' : 'info';

    my $s = "daemon off;\n"
        . "pid %%TESTDIR%%/nginx.pid;\n"
        . "error_log %%TESTDIR%%/error.log $level;\n";

    $s .= "user $self->{user};\n" if $self->{user};

    # a new binary is started with these only
    $s .= "env $_;\n" for qw/ ASAN_OPTIONS UBSAN_OPTIONS /;

    return $s . ($ENV{TEST_NGINX_GLOBALS} // '');
}


# $slow: for /loopaaaaaaaaaaaaaa! a regular expression finds in about a
# millisecond that it does not match.  What is captured may match expressions of
# its own, but has no map.
sub conf_slow_map {
    return 'map $uri $slow { "~(a+)+$" 1; default ""; }';
}


# a test that has the directive already keeps its value
sub add_events {
    my ($block) = @_;

    my ($name) = $EVENTS =~ /(\w+)/;

    return $block =~ /\b$name\b/ ? $block : " $EVENTS$block";
}


sub conf_globals_http {
    my ($self) = @_;

    my $s = "root %%TESTDIR%%;\n"
        . "access_log %%TESTDIR%%/access.log;\n"
        . "client_body_temp_path %%TESTDIR%%/client_body_temp;\n";

    for my $name (qw/ proxy fastcgi uwsgi scgi /) {
        $s .= "${name}_temp_path %%TESTDIR%%/${name}_temp;\n"
            if $self->has_module($name);
    }

    return $s . ($ENV{TEST_NGINX_GLOBALS_HTTP} // '');
}


sub read_file {
    my ($self, $name) = @_;

    open my $f, '<', "$self->{testdir}/$name" or return '';
    binmode $f;
    local $/;

    return scalar <$f>;
}


sub read_log {
    my ($self, $name) = @_;
    return $self->read_file($name // 'error.log');
}


# a self-signed certificate, as NAME.crt and NAME.key
sub write_certificate {
    my ($self, $name) = @_;

    my ($status, $out) = $self->command(qw/ openssl req -x509 -newkey rsa:2048
        -nodes -days 2 -subj /, "/CN=$name",
        '-out', "$self->{testdir}/$name.crt",
        '-keyout', "$self->{testdir}/$name.key");

    die "openssl: $out\n" if $status != 0;

    return $self;
}


# Ports

# The free port that stands for the given one.  The ports of a test file are
# a block that it holds through a socket on the block's last port; blocks lie
# below the range which the kernel takes ports of outgoing connections from.
sub port {
    my ($n) = @_;

    return $ports{$n} if $ports{$n};

    if (!$lock_socket) {
        my $first = $$ % 180;

        for my $i (0 .. 179) {
            $port_base = 12000 + 100 * (($first + $i) % 180);
            $lock_socket = listen_on($port_base + 99) and last;
        }

        die "no free ports\n" unless $lock_socket;
    }

    my %taken = reverse %ports;

    for my $p ($port_base .. $port_base + 98) {
        next if $taken{$p} || !listen_on($p);
        return $ports{$n} = $p;
    }

    die "no free ports\n";
}


sub listen_on {
    my ($port) = @_;

    return IO::Socket::INET->new(Proto => 'tcp', LocalAddr => '127.0.0.1',
                                 LocalPort => $port, Listen => 1,
                                 ReuseAddr => 1);
}


# nginx

sub run {
    my ($self) = @_;

    $self->{pid} = $self->start_child(sub { $self->exec_nginx() });

    my $ready = wait_for(sub {
        return -1 if waitpid($self->{pid}, WNOHANG) == $self->{pid};
        return $self->read_file('nginx.pid') =~ /^\d+\n/;
    });

    if (!$ready || $ready == -1) {
        $self->{pid} = undef if $ready;
        diag($self->read_log('stderr.log'), $self->read_log());
        die "nginx does not start\n";
    }

    # connections are accepted already, but a test may ask for the workers

    my $conf = $self->read_file('nginx.conf');

    if ($conf !~ /^\s*master_process\s+off;/m) {
        my ($workers) = $conf =~ /^\s*worker_processes\s+(\d+);/m;

        wait_for(sub { $self->worker_pids() >= ($workers || 1) })
            or die "no workers\n";
    }

    return $self;
}


sub exec_nginx {
    my ($self) = @_;

    my $dir = $self->{testdir};

    open STDIN, '<', '/dev/null';
    open STDOUT, '>', "$dir/stdout.log";
    open STDERR, '>', "$dir/stderr.log";

    %ENV = (%ENV, $self->sanitizer_env());

    exec($self->{binary}, '-p', "$dir/", '-c', "$dir/nginx.conf",
         '-e', "$dir/error.log")
        or POSIX::_exit(127);
}


sub sanitizer_env {
    my ($self, @options) = @_;

    my $to = "log_path=$self->{testdir}/sanitizer";

    # nginx and each of its modules have tables of the same names

    # PCRE2 leaves memory behind when nginx 1.22 compiles an expression; the
    # library is named, because a stripped nginx has no names of functions

    $self->write_file('lsan.supp', "leak:libpcre2\n");

    return (LSAN_OPTIONS => join(':', $ENV{LSAN_OPTIONS} || (),
                                 "suppressions=$self->{testdir}/lsan.supp",
                                 'print_suppressions=0'),
            ASAN_OPTIONS => join(':', $ENV{ASAN_OPTIONS} || (), $to,
                                 'detect_odr_violation=0', @options),
            UBSAN_OPTIONS => join(':', $ENV{UBSAN_OPTIONS} || (), $to,
                                  'print_stacktrace=1'));
}


# (exit status, output) of "nginx -t"; %%GLOBALS%% and %%GLOBALS_HTTP%% are
# added, without which nginx opens files that are not the test's, but no line
sub test_config {
    my ($self, $content) = @_;

    my $http = $self->conf_globals_http() =~ tr/\n/ /r;

    $content .= "\n%%GLOBALS%%\n" unless $content =~ /%%GLOBALS%%/;
    $content =~ s/^(\s*http\s*\{)/$1 $http/m
        unless $content =~ /%%GLOBALS_HTTP%%/;

    $self->write_file_expand('test.conf', $content);

    return $self->command($self->{binary}, '-t', '-p', "$self->{testdir}/",
                          '-c', "$self->{testdir}/test.conf",
                          '-e', "$self->{testdir}/test_config.log");
}


# runs a program, which has to succeed
sub run_command {
    my ($self, @argv) = @_;

    my ($status, $out) = $self->command(@argv);
    die "@argv: $out" if $status;
}


# (exit status, stdout and stderr) of a program
sub command {
    my ($self, @argv) = @_;

    my $out = File::Temp->new(DIR => $self->{testdir});

    my $pid = $self->start_child(sub {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>&', $out;
        open STDERR, '>&', $out;

        # "nginx -t" leaves what it read to the kernel

        %ENV = (%ENV, $self->sanitizer_env('detect_leaks=0'));
        exec { $argv[0] } @argv or POSIX::_exit(127);
    });

    my $done = wait_for(sub { waitpid($pid, WNOHANG) == $pid },
                        6 * $PATIENCE);
    my $status = $done ? $? : -1;

    if (!$done) {
        kill 'KILL', $pid;
        waitpid($pid, 0);
    }

    $self->forget_child($pid);

    seek($out, 0, SEEK_SET);
    local $/;

    return ($status > 0 && $status < 256 ? 128 + $status : $status >> 8,
            scalar(<$out>) // '')
        if $status != -1;
    return (-1, "timed out: @argv");
}


# Tells nginx to quit and waits for it, so that leaked connections and timers
# are noticed.  TERM is for tests that leave requests behind.
sub stop {
    my ($self, $signal) = @_;

    my $pid = $self->{pid} or return $self;

    kill $signal || 'QUIT', $pid;

    if (!wait_for(sub { waitpid($pid, WNOHANG) == $pid })) {
        $self->{hung} = 1;
        diag('nginx does not quit: ', join(' ', $self->worker_pids()));

        kill 'KILL', $self->child_processes($pid), $pid;
        waitpid($pid, 0);

    } elsif ($? != 0) {
        $self->{hung} = 1;
        diag("nginx ended with status $?");
    }

    $self->forget_child($pid);
    $self->{pid} = undef;

    return $self;
}


# returns when the new workers are there; the old ones may still be busy
sub reload {
    my ($self) = @_;

    my %old = map { $_ => 1 } $self->worker_pids();

    kill 'HUP', $self->{pid};

    ok(wait_for(sub { grep { !$old{$_} } $self->worker_pids() }), 'reload');

    return $self;
}


# Workers that are not shutting down, oldest first.  The title of a worker that
# an emulator runs is the emulator's command line.

sub worker_pids {
    my ($self) = @_;

    return () unless $self->{pid};

    return grep {
        my $f;
        local $/;
        my $s = open($f, '<', "/proc/$_/cmdline") ? <$f> : '';
        $s && $s =~ m{^(?:nginx: worker process[\0 ]*$|[^\0]*qemu-)};
    } $self->child_processes($self->{pid});
}


# With "accept_mutex on", only one of two workers takes connections.  Stops the
# other one, and returns it.
sub stop_other_worker {
    my ($self, $uri) = @_;
    my @pids = $self->worker_pids();

    return if @pids < 2;

    # again, since a busy machine may answer late

    for my $pid (@pids, @pids) {
        kill 'STOP', $pid;

        return $pid if http_get($uri, timeout => 2)->status();

        kill 'CONT', $pid;
    }

    die "no worker answers\n";
}


sub child_processes {
    my ($self, $parent) = @_;

    my @pids;

    for my $file (glob('/proc/[0-9]*/stat')) {
        open my $f, '<', $file or next;
        my ($pid, $ppid) = (<$f> // '') =~ /^(\d+) \(.*\) \S (\d+)/s or next;
        push @pids, $pid if $ppid == $parent;
    }

    return sort { $a <=> $b } @pids;
}


# Other processes

# runs code or a program until the test ends, with all processes that it starts
sub run_daemon {
    my ($self, @what) = @_;

    return $self->start_child(sub {
        setpgrp();

        $what[0]->(@what[1 .. $#what]) if ref $what[0];
        POSIX::_exit(0) if ref $what[0];

        open STDOUT, '>>', "$self->{testdir}/daemon.log";
        open STDERR, '>&', \*STDOUT;
        exec { $what[0] } @what or POSIX::_exit(127);
    });
}


sub start_child {
    my ($self, $code) = @_;

    my $pid = fork();
    die "fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        alarm(0);
        $SIG{$_} = 'DEFAULT' for qw/ INT TERM HUP ALRM PIPE /;

        eval { $code->() };
        warn $@ if $@;
        POSIX::_exit(1);
    }

    push @{$self->{children}}, $pid;

    return $pid;
}


sub forget_child {
    my ($self, $pid) = @_;
    @{$self->{children}} = grep { $_ != $pid } @{$self->{children}};
}


sub stop_daemons {
    my ($self) = @_;

    for my $pid (@{$self->{children}}) {
        kill 'TERM', $pid, -$pid;
    }

    for my $pid (@{$self->{children}}) {
        if (!wait_for(sub { waitpid($pid, WNOHANG) }, 5)) {
            kill 'KILL', $pid;
            waitpid($pid, 0);
        }
    }

    $self->{children} = [];

    return $self;
}


# waits for a TCP port (of port()) or a unix socket to accept connections
sub wait_for_socket {
    my ($self, $where) = @_;

    return wait_for(sub { ProfileTest::HTTP::connect_to($where) });
}


# requests in the background; see ProfileTest::Load
sub load {
    my ($self, $uri, %extra) = @_;
    return ProfileTest::Load->start($self, $uri, %extra);
}


# calls the function until it returns something true
sub wait_for {
    my ($code, $timeout) = @_;

    my $end = time() + ($timeout || $PATIENCE);

    while (1) {
        my $rc = $code->();
        return $rc if $rc;
        return '' if time() > $end;
        sleep(0.02);
    }
}


# Gets a flamegraph in the speedscope format.  Dies if the answer is not a
# profile.  The query arguments of a flamegraph are added to a URI without any.
sub profile_get {
    my ($uri, %extra) = @_;

    if ($uri !~ /performance_bar=/ && !delete $extra{plain}) {
        $uri .= $uri =~ /\?/ ? '&' : '?';
        $uri .= 'performance_bar=flamegraph&profile_format=speedscope';
    }

    return ProfileTest::Profile->new(http_get($uri, %extra));
}


# The end

sub teardown {
    my ($self) = @_;

    return if $self->{torn_down}++;

    alarm(0);

    $self->stop();
    $self->stop_daemons();

    return if $self->{skipped};

    my $log = $self->read_log();
    my @alerts = grep { /\[(?:alert|crit|emerg)\]/ } split(/\n/, $log);

    for my $re (@{$self->{allowed}}) {
        @alerts = grep { $_ !~ $re } @alerts;
    }

    is(join("\n", @alerts), '', 'no alerts');
    is($self->sanitizer_reports(), '', 'no sanitizer errors');
    ok(!$self->{hung}, 'nginx stopped');

    if ($ENV{TEST_NGINX_CATLOG}) {
        diag($log);
    }

    done_testing() unless $self->{planned};
}


sub sanitizer_reports {
    my ($self) = @_;

    my $s = '';

    for my $file (glob("$self->{testdir}/sanitizer.*")) {
        $s .= $self->read_file(basename($file));
    }

    for my $name (qw/ error.log stderr.log /) {
        my $log = $self->read_log($name);
        $s .= "$name: $1\n"
            while $log =~ /^(.*(?:Sanitizer:|: runtime error: ).*)$/mg;
    }

    # nginx shifts bits into the sign of integers

    $s =~ s{^.*\bsrc/\w+/ngx_\w+\.c:[\d:]+ \s runtime\ error:\ left\ shift
            \ .*\n}{}mgx;

    return $s;
}


END {
    if ($test && $test->{parent} == $$) {
        my $status = $?;

        local $SIG{INT} = local $SIG{TERM} = 'IGNORE';
        $test->teardown();

        $? = $status;
    }
}


1;
