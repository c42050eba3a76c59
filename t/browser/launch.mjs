/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the programs of this directory have in common.
 *
 * The browser is the one that serve.mjs has started, whose address is in
 * PROFILE_TEST_BROWSER; or else CHROMIUM, or the first one in PATH.  Chromium's
 * headless shell needs a third of the CPU time of Chromium.
 */

import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';


/* a browser with arguments of its own is not shared */

export function launch(...args) {
    const shared = process.env.PROFILE_TEST_BROWSER;

    return shared && !args.length ? chromium.connect(shared)
                                  : chromium.launch(options(args));
}


export function options(args = []) {
    const names = ['chromium-headless-shell', 'chromium', 'chromium-browser'];
    const executablePath = process.env.CHROMIUM
        || execFileSync('sh', ['-c', names.map(name => `command -v ${name}`)
                                          .join(' || ')],
                        { encoding: 'utf8' }).trim();

    return {
        executablePath,
        args: process.getuid() ? args : ['--no-sandbox', ...args]
    };
}


/*
 * Takes the steps, closes the browser, and prints as JSON what the steps have
 * noted in "out".
 */

export async function finish(browser, out, steps) {
    try {
        await steps();

    } catch (e) {
        out.failed = e.stack;

    } finally {
        await browser.close();
    }

    console.log(JSON.stringify(out));
}


/*
 * Notes in "out" what the browser logs about a page, and the URLs that the page
 * asks for at hosts other than that of "url".
 */

export function watch(page, out, url) {
    page.on('console', message => {
        if (message.type() === 'error'
            || (message.type() === 'warning'
                && !/WebGL|GL Driver|willReadFrequently/.test(message.text())))
        {
            out.console.push(message.text());
        }
    });

    page.on('pageerror', error => out.console.push(error.message));

    page.on('request', request => {
        const target = request.url();

        if (out.elsewhere && !/^(data|blob):/.test(target)
            && new URL(target).origin !== new URL(url).origin)
        {
            out.elsewhere.push(target);
        }
    });
}


export function readAxe() {
    return readFileSync(createRequire(import.meta.url)
                        .resolve('axe-core/axe.min.js'), 'utf8');
}


/*
 * What axe finds wrong with how accessible a page is.  The policy of the page
 * does not stop what the browser itself runs.
 */

export async function accessible(page) {
    const cdp = await page.context().newCDPSession(page);

    await cdp.send('Page.setBypassCSP', { enabled: true });
    await cdp.send('Runtime.evaluate', { expression: readAxe() });

    const { result } = await cdp.send('Runtime.evaluate', {
        expression: 'axe.run(document, { iframes: false }).then(r => '
                    + 'r.violations.map(v => v.id + ": " + v.nodes.map('
                    + 'n => n.target.join(" ")).join(", ")))',
        awaitPromise: true, returnByValue: true
    });

    await cdp.detach();

    return result.value;
}


/* how much wider than its window a page is */

export function wider(page) {
    return page.evaluate(
        () => document.documentElement.scrollWidth - window.innerWidth);
}
