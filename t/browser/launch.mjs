/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The browser: CHROMIUM, or the first one in PATH; and axe's script, which
 * checks how accessible a page is.
 */

import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';


export function launch(...args) {
    const executablePath = process.env.CHROMIUM
        || execFileSync('sh', ['-c', 'command -v chromium || '
                                     + 'command -v chromium-browser'],
                        { encoding: 'utf8' }).trim();

    return chromium.launch({
        executablePath,
        args: process.getuid() ? args : ['--no-sandbox', ...args]
    });
}


export function readAxe() {
    return readFileSync(createRequire(import.meta.url)
                        .resolve('axe-core/axe.min.js'), 'utf8');
}
