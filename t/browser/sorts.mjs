/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Leaves out frames of each sort, and of all sorts together, in a picture or a
 * page:
 *
 *     node sorts.mjs URL [SCREENSHOT]
 *
 * Prints a JSON object: the boxes of each state.  It judges nothing,
 * profile_names_browser.t does.
 */

import { finish, launch, readAxe, watch } from './launch.mjs';


const BOXES = '.prof-zoom:not([display]) > svg > svg';

const [url, screenshot] = process.argv.slice(2);

const out = { console: [], states: {} };

const browser = await launch();

await finish(browser, out, use);


async function open(options = {}, fragment = '') {
    const context = await browser.newContext({
        viewport: { width: 1280, height: 800 }, ...options
    });
    const page = await context.newPage();

    page.setDefaultTimeout(20000);
    watch(page, out);

    await page.goto(url + fragment);
    await page.waitForSelector('.prof-ui .shown');

    return page;
}


/* what the visible picture says of each box */

function boxes(page) {
    return page.evaluate(BOXES => {
        const plot = Array.from(document.querySelectorAll('.prof-plot'))
            .find(e => e.getBoundingClientRect().width > 0);

        return Array.from(plot.querySelectorAll(BOXES), e => ({
            name: e.firstElementChild.textContent.split('\n')[0],
            told: e.firstElementChild.textContent.split('\n')[1],
            row: Number(e.parentNode.getAttribute('y')),
            x: parseFloat(e.getAttribute('x')),
            width: parseFloat(e.getAttribute('width')),
            n: e.dataset.n || '',
            mark: Array.from(e.classList).join(' '),
            dash: getComputedStyle(e.querySelector('rect')).strokeDasharray,
            slant: e.querySelector('text') && e.querySelector('text').textContent
                ? getComputedStyle(e.querySelector('text')).fontStyle : ''
        }));
    }, BOXES);
}


async function use() {
    const page = await open();

    out.sorts = await page.evaluate(() =>
        Array.from(document.querySelectorAll('.prof-ui .shown label'))
             .filter(e => !e.hidden).map(e => e.innerText.trim()));
    out.group = await page.getAttribute('.prof-ui .shown', 'aria-label');
    out.states.all = await boxes(page);
    out.legend = await page.evaluate(() =>
        document.querySelector('.prof-legend').textContent);

    for (const sort of out.sorts) {
        const box = page.locator(`.shown label:has-text("${sort}") input`);

        await box.focus();
        await page.keyboard.press('Space');
        out.states[sort] = await boxes(page);
        await page.keyboard.press('Space');
    }

    out.again = await boxes(page);
    out.hash = new URL(page.url()).hash;

    for (const sort of out.sorts) {
        await page.check(`.shown label:has-text("${sort}") input`);
        await page.uncheck(`.shown label:has-text("${sort}") input`);
    }

    out.states.none = await boxes(page);
    out.hashNone = new URL(page.url()).hash;

    await page.reload();
    await page.waitForSelector('.prof-ui .shown');
    out.reloaded = await boxes(page);
    out.checked = await page.evaluate(() => Array.from(
        document.querySelectorAll('.shown input'), e => e.checked));

    /* a zoomed box that is left out gives its zoom to its caller */

    const zoomed = await open();

    await zoomed.click(BOXES + ':has(title:text("app.lua:40 handler"))');
    out.zoomed = await zoomed.textContent('.status');
    await zoomed.uncheck('.shown label:has-text("scripts") input');
    out.zoomedCaller = await zoomed.textContent('.status');

    if (/html/.test(url)) {
        await zoomed.evaluate(readAxe());
        out.axe = await zoomed.evaluate(() => axe.run(document).then(r =>
            r.violations.map(v => v.id + ': '
                             + v.nodes.map(n => n.target).join(', '))));
    }

    for (const scheme of screenshot ? ['light', 'dark'] : []) {
        for (const width of [1280, 390]) {
            const shot = await open({ colorScheme: scheme,
                                      viewport: { width, height: 900 } });

            await shot.screenshot({
                path: `${screenshot}-${scheme}-${width}.png`
            });
        }
    }
}
