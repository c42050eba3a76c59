#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: scripts
# runs: beside
#
# The built-in modules of njs work as in an nginx without this module.  Each
# location calls the functions of one module, and describes the objects that it
# gets: type, constructor, chain of prototypes, properties.  The responses are
# those of an nginx that does not load this module, whichever directive makes
# this module look for interpreters, also after a reload.

use strict;
use warnings;

use Test::More;

use ProfileTest;

my $t = ProfileTest->new()->has(qw/ js /);

# directives and modules of newer versions are used if nginx accepts them

my $zones = "js_shared_dict_zone zone=texts:64k;\n"
            . "js_shared_dict_zone zone=numbers:64k type=number;\n";
my $shared = accepts($zones) ? $zones : '';

my @engines = grep { accepts("js_engine $_;") } qw/ njs qjs /;

@engines = ('') if !@engines;

my @modules = grep { accepts('js_import probe.js;', "import m from '$_';") }
                   qw/ fs crypto zlib xml querystring buffer /;

my $imports = join('', map { "import m_$_ from '$_';\n" } @modules)
              . 'let modules = { '
              . join(', ', map { "$_: m_$_" } @modules) . " };\n";

$t->write_file_expand('main.js', $imports . <<'END');
let out;
let dir = '%%TESTDIR%%/files';

function chain(value) {
    let names = [];

    for (let p = Object.getPrototypeOf(value);
         p !== null && names.length < 8;
         p = Object.getPrototypeOf(p))
    {
        names.push(Object.getOwnPropertyNames(p).sort().join(','));
    }

    return names.join(' < ');
}

function say(what, value) {
    let type = typeof value;

    if (value === null || (type !== 'object' && type !== 'function')) {
        out.push(`${what}: ${type} ${String(value)}`);
        return;
    }

    out.push(`${what}: ${type} ${Object.prototype.toString.call(value)} `
             + chain(value));
}

function attempt(what, f) {
    try {
        say(what, f());

    } catch (e) {
        out.push(`${what}: throws ${e.name} ${e.message}`);
    }
}

async function later(what, f) {
    try {
        let value = await f();
        say(what, value);
        return value;

    } catch (e) {
        out.push(`${what}: rejects ${e.name} ${e.message}`);
    }
}

function module(name) {
    return modules[name] || {};
}

async function use_fs() {
    let fs = module('fs');

    say('fs', fs);

    let file = `${dir}/one`;
    let stat;

    let files = [ 'one', 'two', 'three', 'link' ];

    for (let i = 0; i < files.length; i++) {
        let name = files[i];
        try { fs.unlinkSync(`${dir}/${name}`); } catch (e) { }
    }

    attempt('mkdir', () => fs.mkdirSync(`${dir}/sub`));
    attempt('write', () => fs.writeFileSync(file, 'content'));
    attempt('append', () => fs.appendFileSync(file, '!'));
    attempt('read', () => fs.readFileSync(file));
    attempt('read text', () => fs.readFileSync(file, 'utf8'));
    attempt('rename', () => fs.renameSync(file, `${dir}/two`));
    attempt('symlink', () => fs.symlinkSync(`${dir}/two`, `${dir}/link`));
    attempt('realpath', () => fs.realpathSync(`${dir}/link`));
    attempt('access', () => fs.accessSync(`${dir}/two`, fs.constants.R_OK));
    attempt('access none', () => fs.accessSync(`${dir}/none`));

    let stats = [ 'statSync', 'lstatSync' ];

    for (let i = 0; i < stats.length; i++) {
        let f = stats[i];
        attempt(f, () => stat = fs[f](`${dir}/link`));
        attempt('size', () => stat.size);
        attempt('isFile', () => stat.isFile());
        attempt('isSymbolicLink', () => stat.isSymbolicLink());
        attempt('mtime', () => stat.mtime);
        attempt('keys', () => Object.keys(stat));
    }

    attempt('names', () => fs.readdirSync(dir).sort().join());
    attempt('entries', () => fs.readdirSync(dir, { withFileTypes: true })
                               .map(e => `${e.name} ${e.isFile()} `
                                         + `${e.isDirectory()}`)
                               .sort().join());
    attempt('entry', () => fs.readdirSync(dir, { withFileTypes: true })[0]);

    let fd, buffer = Buffer.alloc(4);

    attempt('open', () => { fd = fs.openSync(`${dir}/two`, 'r+'); });
    attempt('fstat', () => stat = fs.fstatSync(fd));
    attempt('isFile', () => stat.isFile());
    attempt('readSync', () => fs.readSync(fd, buffer, 0, 4, 2));
    attempt('read', () => buffer.toString());
    attempt('writeSync', () => fs.writeSync(fd, 'new', 0));
    attempt('close', () => fs.closeSync(fd));

    let p = fs.promises, handle;

    handle = await later('open', () => p.open(`${dir}/two`, 'r+'));
    stat = await later('handle.stat', () => handle.stat());
    attempt('isFile', () => stat.isFile());
    await later('handle.read', async () => {
        let n = await handle.read(buffer, 0, 4, 0);
        return `${n.bytesRead} ${n.buffer}`;
    });
    await later('handle.read', () => handle.read(buffer, 0, 4, 0));
    await later('handle.write', async () => {
        let n = await handle.write('newer', 1);
        return n.bytesWritten;
    });
    await later('handle.write', () => handle.write('newer', 1));
    await later('handle.close', () => handle.close());
    await later('stat', async () => (await p.stat(`${dir}/two`)).isFile());
    await later('lstat', () => p.lstat(`${dir}/link`));
    await later('readFile', () => p.readFile(`${dir}/two`, 'utf8'));
    await later('writeFile', () => p.writeFile(`${dir}/three`, 'three'));
    await later('readdir', async () => (await p.readdir(dir)).sort().join());
    await later('none', () => p.readFile(`${dir}/none`));
    attempt('rmdir', () => fs.rmdirSync(`${dir}/sub`));
}

async function use_crypto() {
    let crypto = module('crypto');

    say('crypto', crypto);

    let hashes = [ 'md5', 'sha1', 'sha256', 'none' ];

    for (let i = 0; i < hashes.length; i++) {
        let name = hashes[i];
        let hash;

        attempt('createHash', () => hash = crypto.createHash(name));
        attempt('update', () => hash.update('a'));

        let formats = [ 'hex', 'base64', 'base64url' ];

        for (let j = 0; j < formats.length; j++) {
            let format = formats[j];
            attempt(name, () => crypto.createHash(name).update('a')
                                      .update('b').digest(format));
            attempt(`hmac ${name}`, () => crypto.createHmac(name, 'key')
                                                .update('a').digest(format));
        }

        attempt('digest', () => hash.digest());
        attempt('again', () => hash.digest());
        attempt('copy', () => crypto.createHash(name).update('a').copy()
                                    .update('b').digest('hex'));
        attempt('hmac', () => crypto.createHmac(name, 'key'));
    }
}

async function use_zlib() {
    let zlib = module('zlib');
    let text = 'text '.repeat(200);

    say('zlib', zlib);

    let levels = [ 1, 6, 9 ];

    for (let i = 0; i < levels.length; i++) {
        let level = levels[i];
        attempt('deflate', () => zlib.deflateSync(text, { level })
                                     .toString('hex'));
        attempt('inflate', () => zlib.inflateSync(
                                     zlib.deflateSync(text, { level }))
                                     .toString());
        attempt('raw', () => zlib.inflateRawSync(
                                 zlib.deflateRawSync(text, { level }))
                                 .toString());
    }

    attempt('dictionary', () => zlib.deflateRawSync(text,
                                { dictionary: Buffer.from('text ') })
                                .toString('base64'));
    attempt('damaged', () => zlib.inflateSync(Buffer.from('damaged')));
    attempt('buffer', () => zlib.deflateSync(text));
}

async function use_xml() {
    let xml = module('xml'), doc;

    say('xml', xml);

    attempt('parse', () => doc = xml.parse('<a x="1"><b>t</b><b/><c y="2"/>'
                                           + '</a>'));
    attempt('root', () => doc.$root);
    attempt('root', () => doc.a.$name);
    attempt('attribute', () => doc.a.$attr$x);
    attempt('attributes', () => doc.a.$attrs);
    attempt('text', () => doc.a.b.$text);
    attempt('tags', () => doc.a.$tags);
    attempt('tags', () => doc.a.$tags$b.length);
    attempt('parent', () => doc.a.b.$parent.$name);
    attempt('ns', () => doc.a.$ns);
    attempt('c14n', () => xml.c14n(doc));
    attempt('c14n', () => String(xml.c14n(doc)));
    attempt('exclusive', () => String(xml.exclusiveC14n(doc.a)));
    attempt('serialize', () => xml.serializeToString(doc));
    attempt('set', () => { doc.a.b.$text = 'new'; return doc.a.b.$text; });
    attempt('add', () => {
        doc.a.addChild(xml.parse('<d/>').d);
        return xml.serializeToString(doc);
    });
    attempt('remove', () => {
        doc.a.removeChildren('b');
        return xml.serializeToString(doc);
    });
    attempt('wrong', () => xml.parse('<a'));
}

async function use_query() {
    let qs = module('querystring'), o;

    say('querystring', qs);

    attempt('parse', () => o = qs.parse('a=1&b=%20x&a=2&c'));
    attempt('parsed', () => JSON.stringify(o));
    attempt('parse', () => JSON.stringify(qs.parse('a:1;b:2', ';', ':',
                                                   { maxKeys: 1 })));
    attempt('decode', () => JSON.stringify(qs.decode('x=%D0%B9')));
    attempt('stringify', () => qs.stringify({ a: [ 1, 'x y' ], b: true }));
    attempt('encode', () => qs.encode({ a: 'й' }, ';', ':'));
    attempt('escape', () => qs.escape('a b&c'));
    attempt('unescape', () => qs.unescape('a%20b%'));
    attempt('module', () => module('querystring') === qs);
}

async function use_buffer() {
    let buffer = module('buffer'), b;

    say('buffer', buffer);
    say('constants', JSON.stringify(buffer.constants));

    attempt('from', () => b = Buffer.from('text й'));
    attempt('json', () => JSON.stringify(b));

    let formats = [ 'utf8', 'hex', 'base64', 'base64url' ];

    for (let i = 0; i < formats.length; i++) {
        let format = formats[i];
        attempt(format, () => Buffer.from(b.toString(format), format)
                                    .equals(b));
        attempt(format, () => b.toString(format));
    }

    attempt('alloc', () => Buffer.alloc(4, 'ab').toString());
    attempt('concat', () => Buffer.concat([ b, Buffer.from('!') ]).toString());
    attempt('compare', () => Buffer.compare(b, Buffer.from('a')));
    attempt('slice', () => b.slice(1, 3).toString());
    attempt('subarray', () => b.subarray(1, 3));
    attempt('indexOf', () => b.indexOf('x'));
    attempt('includes', () => b.includes('ex'));
    attempt('write', () => { b.write('ab', 1); return b.toString(); });
    attempt('fill', () => Buffer.alloc(3).fill('xy').toString());
    attempt('swap', () => Buffer.from('abcd').swap16().toString());
    attempt('int', () => Buffer.from([ 1, 2, 3, 255 ]).readInt32BE(0));
    attempt('double', () => {
        let d = Buffer.alloc(8);
        d.writeDoubleLE(1.5, 0);
        return d.toString('hex');
    });
    attempt('copy', () => b.copy(Buffer.alloc(10), 2));
    attempt('isBuffer', () => Buffer.isBuffer(b));
    attempt('isEncoding', () => Buffer.isEncoding('hex'));
    attempt('byteLength', () => Buffer.byteLength('й'));
    attempt('TextDecoder', () => new TextDecoder().decode(b));
    attempt('TextDecoder', () => new TextDecoder());
    attempt('TextEncoder', () => new TextEncoder());
    attempt('TextEncoder', () => new TextEncoder().encode('й').join());
    attempt('atob', () => atob(btoa('ab')));
}

async function use_webcrypto() {
    let s = crypto.subtle, text = Buffer.from('text');
    let secret = Buffer.from('0123456789abcdef');
    let hex = data => Buffer.from(data).toString('hex');

    say('crypto', crypto);
    say('subtle', s);

    attempt('random', () => crypto.getRandomValues(new Uint8Array(8)).length);

    let hashes = [ 'SHA-1', 'SHA-256', 'SHA-384', 'SHA-512', 'none' ];

    for (let i = 0; i < hashes.length; i++) {
        let hash = hashes[i];
        await later(hash, async () => {
            let digest = await s.digest(hash, text);
            return hex(digest);
        });
        await later(`HMAC ${hash}`, async () => {
            let key = await s.importKey('raw', secret, { name: 'HMAC', hash },
                                        true, [ 'sign', 'verify' ]);
            let sign = await s.sign('HMAC', key, text);
            let good = await s.verify('HMAC', key, sign, text);
            let bad = await s.verify('HMAC', key, sign, secret);
            return `${hex(sign)} ${good} ${bad}`;
        });
    }

    let key = await later('key', () => s.importKey('raw', secret,
                          { name: 'HMAC', hash: 'SHA-1' }, false, [ 'sign' ]));

    attempt('key', () => `${key.type} ${key.extractable} ${key.usages} `
                         + JSON.stringify(key.algorithm));

    let aes = {
        'AES-GCM': { iv: Buffer.from('0123456789ab') },
        'AES-CBC': { iv: secret },
        'AES-CTR': { counter: secret, length: 64 }
    };

    let ciphers = Object.keys(aes);

    for (let i = 0; i < ciphers.length; i++) {
        let name = ciphers[i];
        await later(name, async () => {
            let how = Object.assign({ name }, aes[name]);
            let key = await s.importKey('raw', secret, { name }, true,
                                        [ 'encrypt', 'decrypt' ]);
            let secret_text = await s.encrypt(how, key, text);
            let plain = await s.decrypt(how, key, secret_text);
            return `${hex(secret_text)} ${Buffer.from(plain)}`;
        });
    }

    let derived = [ { name: 'PBKDF2', hash: 'SHA-256', salt: secret,
                        iterations: 10 },
                      { name: 'HKDF', hash: 'SHA-256', salt: secret,
                        info: text } ];

    for (let i = 0; i < derived.length; i++) {
        let how = derived[i];
        await later(how.name, async () => {
            let key = await s.importKey('raw', secret, how.name, false,
                                        [ 'deriveBits', 'deriveKey' ]);
            let bits = await s.deriveBits(how, key, 128);
            return hex(bits);
        });
    }

    await later('generate', async () => {
        let k = await s.generateKey({ name: 'AES-GCM', length: 128 }, true,
                                    [ 'encrypt' ]);
        let raw = await s.exportKey('raw', k);
        return raw.byteLength;
    });
    await later('pair', async () => {
        let k = await s.generateKey({ name: 'ECDSA', namedCurve: 'P-256' },
                                    true, [ 'sign', 'verify' ]);
        let sign = await s.sign({ name: 'ECDSA', hash: 'SHA-256' },
                                k.privateKey, text);
        let jwk = await s.exportKey('jwk', k.publicKey);
        say('publicKey', k.publicKey);
        return `${jwk.kty} ${jwk.crv} `
               + await s.verify({ name: 'ECDSA', hash: 'SHA-256' },
                                k.publicKey, sign, text);
    });
    await later('wrong', () => s.importKey('none', secret, 'HMAC', true, []));
}

async function use_shared() {
    let names = [ 'texts', 'numbers' ];

    say('ngx', typeof ngx);
    say('shared', ngx.shared);

    for (let i = 0; i < names.length; i++) {
        let name = names[i];
        let d = ngx.shared ? ngx.shared[name] : undefined;
        let one = name === 'texts' ? 'one' : 1;

        if (d === undefined) {
            out.push(`${name}: undefined`);
            continue;
        }

        say(name, d);
        attempt('clear', () => d.clear());
        attempt('set', () => d.set('a', one));
        attempt('add', () => d.add('a', one));
        attempt('add', () => d.add('b', one));
        attempt('get', () => d.get('a'));
        attempt('has', () => d.has('none'));
        attempt('incr', () => d.incr('c', 2, 5));
        attempt('replace', () => d.replace('a', one));
        attempt('pop', () => d.pop('a'));
        attempt('size', () => d.size());
        attempt('keys', () => d.keys().sort().join());
        attempt('items', () => JSON.stringify(d.items()));
        attempt('delete', () => d.delete('b'));
        attempt('capacity', () => d.capacity);
        attempt('name', () => d.name);
        attempt('type', () => d.type);
        attempt('wrong', () => d.set('a', {}));
        }
}

async function use_fetch(r) {
    let reply, url = 'http://127.0.0.1:%%PORT_8081%%/reply';

    attempt('Headers', () => {
        let h = new Headers({ a: '1', B: '2' });
        h.append('a', '3');
        say('headers', h);
        return `${h.get('A')} ${h.has('b')} ${h.getAll('a')}`;
    });
    attempt('Request', () => new Request(url, { method: 'POST' }));
    attempt('Request', () => {
        let q = new Request(url, { method: 'POST', headers: { x: 'y' } });
        return `${q.method} ${q.headers.get('x')} ${q.cache} ${q.mode}`;
    });
    attempt('Response', () => new Response('text', { status: 404 }));
    await later('text', () => new Response('text').text());

    reply = await later('fetch', () => ngx.fetch(url));
    attempt('reply', () => `${reply.status} ${reply.statusText} ${reply.ok} `
                           + `${reply.redirected} ${reply.type}`);
    attempt('headers', () => reply.headers);
    attempt('header', () => reply.headers.get('X-Reply'));
    await later('text', () => reply.text());
    await later('json', async () => {
        let fetched = await ngx.fetch(url);
        let o = await fetched.json();
        return JSON.stringify(o);
    });
    await later('buffer', async () => (await ngx.fetch(url)).arrayBuffer());
    await later('post', async () => {
        let q = new Request(url, { method: 'POST', body: 'sent',
                                   headers: { 'X-Sent': 'yes' } });
        return (await ngx.fetch(q)).text();
    });
    await later('refused', () => ngx.fetch('http://127.0.0.1:1/'));
    await later('subrequest', async () => {
        let s = await r.subrequest('/sub', { args: 'a=1' });
        say('subrequest', s);
        return `${s.status} ${s.responseText}`;
    });
}

async function use_language(r) {
    say('njs', njs);
    say('version', njs.version);
    say('number', njs.version_number);
    say('process', Object.keys(process).sort().join());
    say('r', r);
    say('uri', r.uri);
    say('args', JSON.stringify(r.args));
    say('headersIn', r.headersIn);
    say('headersOut', r.headersOut);
    say('variable', r.variables.arg_x);
    say('rawVariables', r.rawVariables);
    say('global', Object.getOwnPropertyNames(globalThis).sort().join());

    let globals = Object.getOwnPropertyNames(globalThis).sort();

    for (let i = 0; i < globals.length; i++) {
        let name = globals[i];
        let value = globalThis[name];

        say(name, value);

        if (typeof value === 'function' && value.prototype) {
            say(name, Object.getOwnPropertyNames(value.prototype).sort()
                            .join());
        }
    }

    attempt('dump', () => njs.dump({ a: [ 1, /x/g, null ] }));
    attempt('regexp', () => 'a1b22'.replace(/\d+/g, x => `<${x}>`));
    attempt('date', () => new Date(0).toISOString());
    attempt('symbol', () => Symbol.for('a'));
    attempt('error', () => { throw new RangeError('here'); });
    attempt('resolve', () => ngx.conf_prefix.length > 0);
    await later('timer', () => new Promise(f => setTimeout(f, 1, 'set')));
}

async function run(r, f) {
    out = [];

    await later('exception', () => f(r));
    r.return(200, out.join('\n') + '\n');
}

export default {
    fs: r => run(r, use_fs),
    crypto: r => run(r, use_crypto),
    zlib: r => run(r, use_zlib),
    xml: r => run(r, use_xml),
    querystring: r => run(r, use_query),
    buffer: r => run(r, use_buffer),
    webcrypto: r => run(r, use_webcrypto),
    shared: r => run(r, use_shared),
    fetch: r => run(r, use_fetch),
    language: r => run(r, use_language)
};
END

my @locations = qw/ fs crypto zlib xml querystring buffer webcrypto shared
                    fetch language /;

mkdir $t->testdir() . '/files' or die "mkdir: $!\n";
chmod 0777, $t->testdir() . '/files';

# what scripts get from a function of each module

my %works = (
    fs => 'read text: string content!',
    crypto => 'md5: string 187ef4436122d1cc2f40dc2b92f0eba0',
    zlib => 'inflate: string text text text',
    xml => 'text: string t',
    querystring => 'stringify: string a=1&a=x%20y&b=true',
    buffer => 'base64: string dGV4dCDQuQ==',
    webcrypto => 'SHA-1: string 372ea08cab33e71c02c651dbc83a474d32c676ea',
    shared => $shared && 'incr: number 7',
    fetch => 'reply: string 200 OK true false basic',
    language => 'timer: string set',
);

# The directives that make this module look for interpreters, each alone: the
# one in http { }, the one in server { }, and locations.

my @with = (
    [ 'endpoint', '', 'profile_endpoint on;', '' ],
    [ 'console', '', '', 'location /-/profile/ { profile_console; }' ],
    [ 'metrics', "profile_accounting on;\n", '',
      'location = /metrics { profile_metrics; }' ],
    [ 'keep', "map '' \$none { default ''; }\nprofile_accounting on;\n",
      'profile_keep $none;', '' ],
    [ 'stall', "profile_accounting on;\nprofile_stall_threshold 5s;\n", '',
      '' ],
    [ 'continuous', "profile_accounting on;\nprofile_continuous on;\n", '',
      'location /-/profile/ { profile_console; }' ],
    [ 'everything', "profile_accounting on;\nprofile_continuous on;\n",
      'profile_endpoint on;',
      'location /-/profile/ { profile_console; } '
      . 'location = /metrics { profile_metrics; }' ],
);

for my $engine (@engines) {
    my $name = $engine || 'njs';

    # without this module

    my $so = $t->{module};

    $t->{module} = '';
    configure($engine, '', '', '');
    $t->run();

    my %plain = responses();

    for my $location (@locations) {
        my $works = $works{$location} // 'exception: undefined';

        next if $location =~ /^(?:xml|zlib)$/
                && !grep { $_ eq $location } @modules;

        like($plain{$location}, qr/^\Q$works\E/m,
             "$name: $location works without this module");
    }

    $t->stop();
    $t->{module} = $so;

    for my $with (@with) {
        my ($what, @directives) = @$with;

        configure($engine, @directives);
        $t->run();
        compare("$name, $what", \%plain);

        $t->reload();
        compare("$name, $what, after a reload", \%plain);

        $t->stop();
    }

    # the last directives: a profile, a reload that adds them, no master

    my (undef, @all) = @{$with[-1]};

    configure($engine, '', '', '');
    $t->run();
    configure($engine, @all);
    $t->reload();
    wait_for(sub { 1 == grep { 1 } $t->child_processes($t->{pid}) });
    compare("$name, added by a reload", \%plain);

    like(http_get('/fs?profile=folded&profile_frequency=1000')->body(),
         qr/ \d+$/m, "$name: a request is profiled");
    compare("$name, after a profile", \%plain);

    $t->stop();

    configure($engine, @all, main => 'master_process off;');
    $t->run();
    compare("$name, without a master", \%plain);
    $t->stop();
}

###############################################################################

sub accepts {
    my ($directives, $script) = @_;

    $t->write_file('probe.js', ($script // '') . "\nexport default {};\n");

    my ($status) = $t->test_config(<<"EOC");
%%MODULES%%
events { }
http {
    js_path %%TESTDIR%%;
    $directives
    server { location / { } }
}
EOC

    return $status == 0;
}


sub configure {
    my ($engine, $http, $server, $locations, @more) = @_;

    my $scripts = join("\n    ", map { "location = /$_ { js_content main.$_; }" }
                                     @locations);

    $engine &&= "js_engine $engine;";

    $t->conf(<<"EOF", @more);
js_path %%TESTDIR%%;
js_import main.js;
$engine
$shared
$http

server {
    listen 127.0.0.1:8080;

    $server

    $scripts

    location = /sub { return 200 "\$args"; }

    $locations
}

server {
    listen 127.0.0.1:8081;

    location = /reply {
        add_header X-Reply yes;
        default_type application/json;
        return 200 '{"method":"\$request_method","sent":"\$http_x_sent"}';
    }
}
EOF
}


sub responses {
    return map { ($_ => http_get("/$_?x=1")->body()) } @locations;
}


# the first line that differs, if there is one

sub compare {
    my ($what, $plain) = @_;

    my %got = responses();

    for my $location (@locations) {
        my @got = split(/\n/, $got{$location});
        my @plain = split(/\n/, $plain->{$location});
        my ($first) = grep { ($got[$_] // '') ne ($plain[$_] // '') }
                           0 .. ($#got > $#plain ? $#got : $#plain);

        is(defined $first ? $got[$first] : undef,
           defined $first ? $plain[$first] : undef, "$what: $location");
    }
}
