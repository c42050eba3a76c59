/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Uses the heatmap of the continuous profile in a browser:
 *
 *     node hour.mjs URL FROM TO [DIRECTORY]
 *
 * FROM and TO are seconds since the Epoch: a range with load in it.  Prints a
 * JSON object of what was seen, and writes pictures to the directory.
 */

import path from 'node:path';
import { accessible, finish, launch, watch, wider } from './launch.mjs';


const [url, from, to, directory] = process.argv.slice(2);

const out = { console: [], elsewhere: [], axe: {}, width: {} };
const browser = await launch();

await finish(browser, out, async () => {
    const page = await open('light', 1280, '/-/profile/hour');

    out.cells = await page.evaluate(cells);
    out.calm = await page.textContent('#told');

    await drag(page, Number(from), Number(to));
    out.told = await page.textContent('#told');
    out.query = await page.evaluate(() => location.search);
    out.names = await names(page);

    await check(page, 'light');
    await shoot(page, 'hour-light');

    /* the URL has the range */

    await page.reload();
    await page.waitForSelector('#pane iframe');
    out.again = await page.textContent('#told');

    await keys(page);
    await compare(page);

    for (const [name, scheme, width] of [
        ['dark', 'dark', 1280], ['narrow', 'light', 390],
        ['narrow-dark', 'dark', 390]
    ]) {
        const other = await open(scheme, width,
                                 `/-/profile/hour?from=${from}&to=${to}`);

        await names(other);
        await check(other, name);
        await shoot(other, `hour-${name}`);
        await other.context().close();
    }
});


async function open(colorScheme, width, where) {
    const context = await browser.newContext({
        colorScheme, ignoreHTTPSErrors: true,
        viewport: { width, height: 800 }
    });
    const page = await context.newPage();

    page.setDefaultTimeout(20000);

    watch(page, out, url);

    await page.goto(url + where);
    await page.waitForSelector('#map rect[fill-opacity]');

    return page;
}


/* the cells of all workers: [seconds since the Epoch, opacity] */

async function cells() {
    const data = await prof.get('hour.json');
    const first = Math.floor((data.now - data.keep_ms) / data.slice_ms);

    return [...document.querySelectorAll('#map rect[y="1"]')].map(r => [
        (first + Number(r.getAttribute('x'))) * data.slice_ms / 1000,
        Number(r.getAttribute('fill-opacity'))
    ]);
}


async function place(page, time) {
    return page.evaluate(async time => {
        const data = await prof.get('hour.json');
        const box = document.getElementById('map').getBoundingClientRect();
        const first = Math.floor((data.now - data.keep_ms) / data.slice_ms);
        const n = Math.floor(data.now / data.slice_ms) - first + 1;

        return {
            x: box.left + box.width
                          * (time * 1000 / data.slice_ms - first) / n,
            y: box.top + box.height / 2
        };
    }, time);
}


async function drag(page, from, to) {
    const a = await place(page, from);
    const b = await place(page, to);

    await page.mouse.move(a.x, a.y);
    await page.mouse.down();
    await page.mouse.move((a.x + b.x) / 2, a.y);
    await page.mouse.move(b.x, b.y);
    await page.mouse.up();
}


/* the names in the flamegraph */

async function names(page) {
    const frame = await (await page.waitForSelector('#pane iframe'))
        .contentFrame();

    await frame.waitForSelector('.prof-plot', { state: 'attached' });

    return frame.evaluate(() => document.documentElement.textContent
        .match(/[\w.]*(?:deflate|libz|longest_match)[\w.+]*/g) || []);
}


async function keys(page) {
    const before = await page.evaluate(() => location.search);

    await page.focus('#map');
    await page.keyboard.press('Home');
    out.home = await page.textContent('#told');

    for (const key of ['Shift+PageDown', 'Shift+ArrowRight']) {
        await page.keyboard.press(key);
    }

    out.extended = await page.textContent('#told');
    await page.keyboard.press('Enter');
    out.entered = await page.evaluate(() => location.search);
    out.changed = before !== out.entered;
    out.valuetext = await page.getAttribute('#map', 'aria-valuetext');
}


/* the selected range compared with itself and the one before */

async function compare(page) {
    await drag(page, Number(from), Number(to));
    await page.click('#mark');
    await page.focus('#map');
    await page.keyboard.press('Shift+ArrowRight');
    await page.click('#compare');
    await page.waitForURL(/diff\?a=/);

    const frame = await (await page.waitForSelector('#pane iframe'))
        .contentFrame();

    await frame.waitForSelector('svg', { state: 'attached' });
    out.compared = await page.textContent('#rows');
}


async function check(page, name) {
    out.width[name] = await wider(page);
    out.axe[name] = await accessible(page);
}


async function shoot(page, name) {
    if (directory) {
        await page.mouse.move(1, 1);
        await page.screenshot({ path: path.join(directory, name + '.png') });
    }
}
