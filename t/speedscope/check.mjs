
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Checks profiles with the viewer that will read them:
 *
 *     npm ci && node check.mjs FILE...
 *
 * A file of speedscope's own format must satisfy the published JSON schema,
 * and what the schema does not say: stacks and weights in equal numbers, frame
 * indices that exist, weights that sum to the profile's length.  Any file must
 * be read by speedscope's importer, and its names must survive the viewer's
 * demangler.
 *
 * Prints a JSON object for each file: what the viewer would show.  Exits with
 * 1 if a file failed, with its reasons on stderr.
 */

import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';


const SCHEMA = 'https://www.speedscope.app/file-format-schema.json';

const require = createRequire(import.meta.url);
const release = path.join(path.dirname(fileURLToPath(import.meta.url)),
                          'node_modules', 'speedscope', 'dist', 'release');


/*
 * The package has the viewer as one script for browsers.  Its importer is a
 * module inside of that script, which is made reachable here; the page that
 * the script would then draw needs a browser, so that error is expected.
 */

function loadImporter() {
    const file = fs.readdirSync(release)
                   .find(name => /^speedscope-\w+\.js$/.test(name));

    let code = fs.readFileSync(path.join(release, file), 'utf8');

    const names = /(\w+),\{[^{}]*\bimportProfilesFromArrayBuffer:/.exec(code);
    const load = names
                 && new RegExp(`\\(\\)=>\\(\\w+\\(\\),${names[1]}\\)`)
                    .exec(code);

    if (!load) {
        throw new Error(`no importer in ${file}`);
    }

    code = code.replace(load[0], () => `globalThis.importer=${load[0]}`);

    const element = () => ({ style: {}, getContext() {}, appendChild() {} });

    const context = vm.createContext({
        console: { log() {}, warn() {}, error() {} },
        document: {
            body: null, head: element(), addEventListener() {},
            createElement: element, createTextNode: element
        },
        location: { hash: '', href: 'http://localhost/', protocol: 'http:' },
        navigator: { userAgent: '', platform: '' },
        addEventListener() {}, matchMedia: () => ({ matches: false }),
        requestAnimationFrame() {}, setTimeout, clearTimeout, performance,
        TextDecoder, TextEncoder, WebAssembly, atob, btoa, fetch
    });

    context.window = context.self = context;

    try {
        vm.runInContext(code, context, { filename: file });

    } catch (e) {
        if (!context.importer) {
            throw e;
        }
    }

    return context.importer();
}


function checkFormat(data, reasons) {
    const Ajv = require('ajv').default;
    const ajv = new Ajv({ allErrors: true, strict: false });

    const schema = JSON.parse(fs.readFileSync(
                       path.join(release, 'file-format-schema.json'), 'utf8'));

    if (!ajv.validate(schema, data)) {
        for (const e of ajv.errors.slice(0, 10)) {
            reasons.push(`schema: ${e.instancePath || '/'} ${e.message}`);
        }

        return;
    }

    if (!(data.profiles[data.activeProfileIndex ?? 0])) {
        reasons.push('activeProfileIndex is of no profile');
    }

    for (const frame of data.shared.frames) {
        if (/^(__?Z|_R)/.test(frame.name)) {
            reasons.push(`mangled name "${frame.name}"`);
        }
    }

    data.profiles.forEach((profile, i) => {
        if (profile.type === 'sampled') {
            checkSampled(profile, i, data.shared.frames.length, reasons);
        }
    });
}


function checkSampled(profile, i, nframes, reasons) {
    const { samples, weights, startValue, endValue } = profile;

    if (samples.length !== weights.length) {
        reasons.push(`profile ${i}: ${samples.length} samples,`
                     + ` ${weights.length} weights`);
    }

    const valid = index => Number.isInteger(index) && index >= 0
                           && index < nframes;

    const wrong = samples.findIndex(stack => !stack.length
                                             || !stack.every(valid));

    if (wrong !== -1) {
        reasons.push(`profile ${i}: sample ${wrong} is empty`
                     + ` or has a frame that does not exist`);
    }

    const sum = weights.reduce((total, weight) => total + BigInt(weight), 0n);

    if (sum !== BigInt(endValue) - BigInt(startValue)) {
        reasons.push(`profile ${i}: weights sum to ${sum},`
                     + ` not to ${endValue - startValue}`);
    }
}


async function checkImport(importer, file, bytes, reasons) {
    const buffer = bytes.buffer.slice(bytes.byteOffset,
                                      bytes.byteOffset + bytes.byteLength);

    const group = await importer.importProfilesFromArrayBuffer(
                                              path.basename(file), buffer);

    if (!group) {
        reasons.push('the importer does not know the format');
        return null;
    }

    const profiles = [];

    for (const profile of group.profiles) {
        let frames = 0;

        await profile.demangle();
        profile.forEachFrame(() => frames++);

        profiles.push({
            name: profile.getName(),
            unit: profile.getWeightUnit(),
            total: profile.getTotalWeight(),
            formatted: profile.formatValue(profile.getTotalWeight()),
            frames
        });
    }

    return { name: group.name, active: group.indexToView, profiles };
}


async function check(importer, file) {
    const reasons = [];
    const bytes = fs.readFileSync(file);

    let data = null;
    let result = null;

    try {
        data = JSON.parse(new TextDecoder('utf-8', { fatal: true })
                          .decode(bytes));

    } catch (e) {
        if (/json$/.test(file)) {
            reasons.push(e.message);
        }
    }

    try {
        if (data && data.$schema === SCHEMA) {
            checkFormat(data, reasons);

        } else if (/speedscope\.json$/.test(file)) {
            reasons.push(`$schema is not ${SCHEMA}`);
        }

        if (!reasons.length) {
            result = await checkImport(importer, file, bytes, reasons);
        }

    } catch (e) {
        reasons.push(e.message);
    }

    for (const reason of reasons) {
        console.error(`${file}: ${reason}`);
    }

    if (reasons.length) {
        return false;
    }

    console.log(JSON.stringify({ file, ...result }));

    return true;
}


const files = process.argv.slice(2);

if (!files.length) {
    console.error('usage: node check.mjs FILE...');
    process.exit(2);
}

const importer = loadImporter();

let good = true;

for (const file of files) {
    good = await check(importer, file) && good;
}

process.exit(good ? 0 : 1);
