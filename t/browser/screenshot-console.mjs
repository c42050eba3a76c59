/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes pictures of the console, for tools/screenshot:
 *
 *     node screenshot-console.mjs URL DIRECTORY
 *
 * Requests of the site are recorded first, so that there is something to see.
 */

import path from 'node:path';
import { launch } from './launch.mjs';


const [url, directory] = process.argv.slice(2);

const browser = await launch();

const context = await browser.newContext({ ignoreHTTPSErrors: true });

try {
    for (const request of [
        '/shop', '/api/items?page=2', '/none', 'POST /api/reviews',
        '/api/items?page=3', '/shop', '/api/items?page=4', '/shop'
    ]) {
        const [uri, method] = request.split(' ').reverse();

        await context.request.fetch(url + uri, {
            method: method || 'GET', headers: { 'X-Profile': 'record' }
        });
    }

    const shop = await stored('/shop', 3);

    await shoot('console-list', 'profiles', 'light', 470, async page => {
        await page.check('#list tbody tr:nth-child(3) input');
        await page.check('#list tbody tr:nth-child(8) input');
        await page.uncheck('#live');
    });

    await shoot('console-viewer', 'p/' + shop[0], 'light', 760, viewed);
    await shoot('console-dark', 'p/' + shop[0] + '#graph', 'dark', 760,
                page => framed(page, '#graph'));
    await shoot('console-diff', `diff?a=${shop[2]}&b=${shop[0]}`, 'light', 760,
                page => framed(page, '#pane'));

} finally {
    await browser.close();
}


async function stored(uri, n) {
    for ( ;; ) {
        const r = await context.request.get(
            url + '/-/profile/profiles.json');
        const { profiles } = await r.json();
        const found = profiles.filter(p => p.uri === uri);

        if (found.length >= n) {
            return found.map(p => p.id);
        }
    }
}


async function shoot(name, where, colorScheme, height, use) {
    const page = await (await browser.newContext({
        colorScheme, ignoreHTTPSErrors: true,
        viewport: { width: 1280, height }
    })).newPage();

    await page.goto(`${url}/-/profile/${where}`);
    await page.waitForSelector('#tools:not([hidden]) #pin, #swap');

    if (use) {
        await use(page);
    }

    await page.mouse.move(1, 1);
    await page.screenshot({ path: path.join(directory, name + '.png') });
    await page.context().close();
}


async function framed(page, pane) {
    const frame = await (await page.waitForSelector(`${pane} iframe`))
        .contentFrame();

    await frame.waitForSelector('.prof-plot');
}


/* two frames after there is something to draw */

async function viewed(page) {
    const frame = await (await page.waitForSelector('#viewer iframe'))
        .contentFrame();

    await frame.waitForFunction(
        () => document.querySelectorAll('canvas').length > 1);
    await frame.evaluate(() => new Promise(done =>
        setTimeout(() => requestAnimationFrame(done), 500)));
}
