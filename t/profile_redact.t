#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: core
# runs: beside
#
# Values of arguments are hidden in profiles, in the store, in the console and in
# the log, if their names say that they are secret or are in profile_redact.
# Nothing else changes.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use JSON::PP qw/ decode_json /;
use Test::More;

use lib dirname(__FILE__) . '/lib';

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ lua rewrite /);

$t->conf(<<'EOF');
profile_redact person iban;
profile_stall_threshold 50ms;
profile_store %%TESTDIR%%/store;
access_log %%TESTDIR%%/access.log;

server {
    listen 127.0.0.1:8080;

    profile_endpoint on;

    location / {
        return 200 $args;
    }

    location /shown {
        profile_redact off;
        return 200 $args;
    }

    location /other {
        profile_redact other;
        return 200 $args;
    }

    location /busy {
        content_by_lua_block {
            ngx.update_time()
            local till = ngx.now() + 0.1
            while ngx.now() < till do ngx.update_time() end
            ngx.say("was busy")
        }
    }

    location /-/profile/ {
        profile_console;
    }
}
EOF

$t->run();

my $trigger = 'performance_bar=flamegraph';

###############################################################################

# the arguments of the request line in a profile

is(args('/?a=1&person=secret&b=2'), 'a=1&person=***&b=2',
    'the value of a named argument is hidden');
is(args('/?person=secret'), 'person=***', 'the first argument is hidden');
is(args('/?a=1&b=person'), 'a=1&b=person', 'values are not compared');
is(args('/?persons=1&myperson=2&perso=3'), 'persons=1&myperson=2&perso=3',
    'names of the directive are compared whole');
is(args('/?PERSON=secret&%70erso%6E=secret'), 'PERSON=***&%70erso%6E=***',
    'names are compared without case and decoded');
is(args('/?person=&iban=a=b=c'), 'person=***&iban=***',
    'an empty value and a value with equal signs are hidden');
is(args('/?person&&person=x&'), 'person&&person=***&',
    'arguments without a value stay');
is(args('/?a=%&%7=1&person%=2&person%zz=3'),
    'a=%&%7=1&person%=2&person%zz=3', 'escapes that are not valid stay');

my $many = join('&', map { 'iban=' } 1 .. 150);
is(args("/?$many"), join('&', map { 'iban=***' } 1 .. 150),
    'many short values are hidden');

is(args('/other?person=1&other=2'), 'person=1&other=***',
    'a location has its own names');
is(args('/shown?person=1&token=2'), 'person=1&token=2',
    '"off" shows all values');

# names that Rails and GitLab hide, and those of OAuth, of signed URLs and of
# sessions; the page of the reference has the words

for my $name (qw/
        password current_password passwd passwordConfirmation passphrase
        user[password] user%5Bpassword%5D PassWord p%61ssword
        secret client_secret sharedSecret token access_token authenticity_token
        X-Amz-Security-Token private_token key api_key apikey sshkey key_id
        keys_api_key[0] encrypted_key crypt salt password_salt certificate
        otp otp_attempt totp ssn cvv cvc email work_email authorization
        Authorization auth oauth session session_id PHPSESSID JSESSIONID
        jsessionid sid connect.sid code auth_code signature X-Amz-Signature sig
        X-Amz-Credential SAMLResponse jwt client_assertion csrf xsrf_id
        import_url sentry_dsn hook /)
{
    is(args("/other?a=1&$name=hidden&b=2"), "a=1&$name=***&b=2",
       "$name is hidden by default");
}

for my $name (qw/ page keyboard keyword author codec sort opinion compasses
                  sidebar hooked design stop id state q zip /)
{
    is(args("/other?$name=shown"), "$name=shown", "$name is shown");
}

is(args('/other?a=1;token=x;y&b=2'), 'a=1;token=***&b=2',
   'a semicolon separates arguments, but ends no hidden value');
is(args('/other?next=/a?token=x&b=2'), 'next=/a?token=***&b=2',
   'a question mark in an argument begins arguments');
is(args('/other?token'), 'token', 'a secret name without a value stays');

# the application and the access log get the values

like(http_get('/?token=secret')->body(), qr/token=secret/,
    'the application gets the value');
like($t->read_file('access.log'), qr/token=secret/,
    'the access log has the value');

# the store and the console

http_get('/record?token=hidden1&performance_bar=record');

ok(wait_for(sub { grep { $_->{uri} =~ /record/ } stored() }),
    'the profile is stored');

my ($p) = grep { $_->{uri} =~ /record/ } stored();
like($p->{uri}, qr/^\/record\?token=\*\*\*(?:&|$)/,
    'the list of the console does not show the value');

my $files = join('', map { $t->read_file('store/' . s{.*/}{}r) }
                         glob($t->testdir() . '/store/*'));
cmp_ok(length $files, '>', 100, 'the store has files');
unlike($files, qr/hidden1/, 'no file of the store has the value');

# a stall

http_get('/busy?token=hidden2');

ok(wait_for(sub { $t->read_file('error.log') =~ /held for/ }),
    'the stall is logged');
like($t->read_file('error.log'), qr/held for .*GET \/busy\?token=\*\*\*/,
    'the log does not show the value');
unlike(http_get('/-/profile/status', headers => [ 'Accept: application/json' ])
       ->body(), qr/hidden2/, 'the status does not show the value');

# configuration

is_wrong('profile_redact "a=b";', qr/invalid value "a=b" in "profile_redact"/);
is_wrong('profile_redact "";', qr/invalid value "" in "profile_redact"/);
is_wrong('profile_redact;', qr/invalid number of arguments/);
is_wrong('profile_redact a; profile_redact b;', qr/is duplicate/);

###############################################################################

sub args {
    my ($uri) = @_;

    my $body = http_get("$uri&$trigger")->body();
    my $info = decode_json($body)->{profile_info};
    my ($line) = $info->{request} =~ /^GET [^?]*\?(.*) HTTP\/1\.\d$/
        or return $info->{request};

    $line =~ s/&$trigger$//;
    return $line;
}


sub stored {
    my $list = http_get('/-/profile/profiles',
                        headers => [ 'Accept: application/json' ]);

    return @{decode_json($list->body())->{profiles}};
}


sub is_wrong {
    my ($directives, $match) = @_;

    my ($status, $out) = $t->test_config(<<"END");
%%MODULES%%
events { }
http { server { listen 127.0.0.1:8081; $directives } }
END

    isnt($status, 0, "$directives is rejected");
    like($out, $match, 'the message says why');
}

###############################################################################
