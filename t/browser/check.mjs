
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Opens pictures and pages in a browser, and uses them as a reader does:
 *
 *     npm ci && node check.mjs SCENARIO URL [SCREENSHOT]
 *
 * The scenario is "svg", "html", "glance" (either of them, only looked at), or
 * "viewer" (speedscope with a profile).
 * Prints a JSON object: what went wrong on the way (console messages,
 * violations of the policy, requests to elsewhere) and what was seen.  It
 * judges nothing, profile_browser.t does.
 */

import { finish, launch, watch } from './launch.mjs';


const SIZE = { width: 1000, height: 700 };
const ROWS = '.prof-zoom:not([display]) > svg';
const BOXES = ROWS + ' > svg';

const [scenario, url, screenshot] = process.argv.slice(2);
const scenarios = { svg, html, glance, viewer };

const out = { console: [], violations: [], requests: [], elsewhere: [] };

const browser = await launch();

await finish(browser, out, scenarios[scenario]);


async function open(options = {}, fragment = '') {
    const context = await browser.newContext({ viewport: SIZE, ...options });
    const page = await context.newPage();

    watch(page, out, url);

    page.on('request', request => {
        if (!/^(data|blob):/.test(request.url())) {
            out.requests.push(request.url());
        }
    });

    await page.exposeFunction('profViolation',
                              text => out.violations.push(text));
    await page.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', e =>
            window.profViolation(e.violatedDirective + ' ' + e.blockedURI));
    });

    const response = await page.goto(url + fragment);

    page.status = response && response.status();
    page.headers = response ? response.headers() : {};

    return page;
}


/* what of the picture is to be seen */

function look(page) {
    return page.evaluate(([ROWS, BOXES]) => {
        const plot = Array.from(document.querySelectorAll('.prof-plot'))
            .find(e => e.getBoundingClientRect().width > 0);
        const boxes = Array.from(plot.querySelectorAll(BOXES));
        const area = plot.querySelector('.prof-area')
                         .getBoundingClientRect();
        let clipped = 0, labels = 0;

        for (const box of boxes) {
            const text = box.querySelector('text');

            if (text && text.textContent) {
                const rect = box.querySelector('rect')
                                .getBoundingClientRect();
                const right = Math.min(rect.right, area.right);

                labels++;
                clipped += text.getBoundingClientRect().right > right + 1;
            }
        }

        const fill = {};

        for (const box of boxes) {
            fill[box.classList[0]] =
                getComputedStyle(box.querySelector('rect')).fill;
        }

        return {
            boxes: boxes.length, labels, clipped, fill,
            mode: plot.dataset.mode,
            width: area.width,
            background: getComputedStyle(document.body
                ? document.body : document.documentElement).backgroundColor,
            search: document.querySelectorAll('input[type=search]').length,
            hits: plot.querySelectorAll('.hit').length,
            rows: Array.from(plot.querySelectorAll(ROWS),
                             row => Number(row.getAttribute('y'))),
            zoom: plot.querySelector(ROWS).parentNode.getAttribute('width'),
            match: (document.querySelector('.match') || {}).textContent,
            status: (document.querySelector('.status') || {}).textContent,
            hash: location.hash
        };
    }, [ROWS, BOXES]);
}


/*
 * The widest box of a row, and its middle on the page.  Without a row, that
 * of the first one which has no box for all of the time.
 */

function widest(page, row) {
    return page.evaluate(([row, ROWS]) => {
        const plot = Array.from(document.querySelectorAll('.prof-plot'))
            .find(e => e.getBoundingClientRect().width > 0);
        const width = plot.querySelector('.prof-area')
                          .getBoundingClientRect().width;

        const rows = Array.from(plot.querySelectorAll(ROWS),
            (e, i) => Array.from(e.children, box => {
                const r = box.querySelector('rect').getBoundingClientRect();

                return {
                    row: i, width: r.width,
                    x: r.x + r.width / 2, y: r.y + r.height / 2,
                    name: box.querySelector('title').textContent
                             .split('\n')[0]
                };
            }).sort((a, b) => b.width - a.width)[0]);

        return rows[row] || rows.find(box => box.width < width * 0.95)
               || rows[rows.length - 1];
    }, [row, ROWS]);
}


/* each box: its class, its name, how wide it is, and who has called it */

function tree(page) {
    return page.evaluate(ROWS => {
        const plot = Array.from(document.querySelectorAll('.prof-plot'))
            .find(e => e.getBoundingClientRect().width > 0);
        let above = [];

        return Array.from(plot.querySelectorAll(ROWS)).flatMap(row => {
            const boxes = Array.from(row.children, el => {
                const x = parseFloat(el.getAttribute('x'));
                const width = parseFloat(el.getAttribute('width'));
                const told = el.querySelector('title').textContent
                               .split('\n');
                const caller = above.find(box =>
                    x + width / 2 >= box.x && x + width / 2 < box.x + box.width);

                return {
                    kind: el.classList[0], name: told[0], weight: told[1],
                    x, width, level: el.getAttribute('aria-level'),
                    path: (caller ? caller.path : '') + ';' + told[0],
                    fits: !caller || (x > caller.x - 0.001
                          && x + width < caller.x + caller.width + 0.001)
                };
            });

            above = boxes;

            return boxes;
        });
    }, ROWS);
}


/* the switch for stages, by the keyboard */

async function stages(page) {
    const toggle = 'label:has-text("stages") input';

    out.staged = await tree(page);

    await page.focus(toggle);
    await page.keyboard.press('Space');
    out.bare = { ...await look(page), tree: await tree(page),
                 checked: await page.isChecked(toggle) };

    /* as deep as it goes, and back to the same function with stages */

    await page.focus('.prof-zoom:not([display]) [tabindex="0"]');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    out.bareZoomed = await look(page);

    await page.reload();
    out.bareReloaded = await look(page);

    await page.click(toggle);
    out.stagedZoomed = await look(page);

    await page.click('button:has-text("Reset")');
    out.stagedReset = await look(page);
}


async function picture(page) {
    out.plain = await look(page);

    /* pointing at a box, zooming in and back */

    const box = await widest(page);

    await page.mouse.move(box.x, box.y);
    out.pointed = { ...await look(page), name: box.name };

    await page.mouse.click(box.x, box.y);
    await page.mouse.move(1, 1);
    out.zoomed = { ...await look(page), box: await widest(page, box.row) };

    await page.goBack();
    out.back = await look(page);

    await page.goForward();
    out.forward = await look(page);

    await page.reload();
    out.reloaded = await look(page);

    await page.click('.prof-ui .crumb');
    out.crumb = await look(page);

    /* search */

    await page.keyboard.press('/');
    await page.keyboard.type('ngx_http_');
    out.found = await look(page);

    await page.fill('input[type=search]', '([');
    out.nothing = await look(page);

    await page.click('button:has-text("Reset")');
    out.reset = await look(page);

    /* the order of rows */

    await page.click('button:has-text("Flame order")');
    out.flame = await look(page);
    await page.click('button:has-text("Icicle order")');

    /* the keyboard alone */

    await page.focus('.prof-plot [tabindex="0"]');

    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');

    out.focus = await page.evaluate(() => {
        const e = document.activeElement;

        return {
            role: e.getAttribute('role'),
            level: e.getAttribute('aria-level'),
            label: e.getAttribute('aria-label')
        };
    });

    await page.keyboard.press('Enter');
    out.entered = await look(page);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    out.escaped = await look(page);

    await stages(page);

    /* narrower */

    await page.setViewportSize({ width: 600, height: 700 });
    await page.evaluate(() => new Promise(done =>
        requestAnimationFrame(() => requestAnimationFrame(done))));
    out.narrow = await look(page);
    await page.setViewportSize(SIZE);
}


async function looks(scheme, options = {}) {
    const page = await open({ colorScheme: scheme, ...options });
    const seen = await look(page);

    if (screenshot) {
        await page.screenshot({ path: `${screenshot}-${scheme}.png` });
    }

    await page.context().close();

    return seen;
}


async function svg() {
    const page = await open();

    out.status = page.status;
    out.headers = page.headers;

    await picture(page);
    await page.context().close();

    out.light = await looks('light');
    out.dark = await looks('dark');
    out.scriptless = await looks('light', { javaScriptEnabled: false });
}


async function html() {
    const page = await open();

    out.status = page.status;
    out.headers = page.headers;

    await picture(page);

    /* what only the page has */

    await page.click('label:has-text("CPU time")');
    out.cpu = await look(page);
    out.cells = await page.evaluate(() =>
        Array.from(document.querySelectorAll('#functions tbody .num'))
             .filter(e => e.getBoundingClientRect().width)
             .map(e => e.className));
    await page.hover('.formats a[data-format="svg"]');
    out.cpuLink = await page.getAttribute('.formats a[data-format="svg"]',
                                          'href');
    await page.click('label:has-text("Wall time")');

    await page.uncheck('label:has-text("stages") input');
    await page.hover('.formats a[data-format="folded"]');
    out.bareLink = await page.getAttribute('.formats a[data-format="folded"]',
                                           'href');
    await page.check('label:has-text("stages") input');

    await page.click('#functions th.wall:has-text("Total") .sort');
    out.totals = await page.evaluate(() =>
        Array.from(document.querySelectorAll('#functions tbody tr'),
                   row => Number(row.cells[3].dataset.value)));

    const name = await page.textContent('#functions tbody tr code');
    await page.click('#functions tbody tr .lookup');
    await page.waitForFunction(() => location.hash.includes('find'));
    out.lookup = { ...await look(page), name };

    out.text = await page.evaluate(() => document.body.innerText);
    await page.hover('.formats a[data-format="svg"]');
    out.links = await page.evaluate(() =>
        Array.from(document.querySelectorAll('.formats a'), a => a.href));

    await page.click('.formats a[data-format="svg"]');
    await page.waitForSelector('svg.prof-doc');
    out.followed = page.url();

    await page.context().close();

    out.light = await looks('light');
    out.dark = await looks('dark');

    const scriptless = await open({ javaScriptEnabled: false });

    out.scriptless = await look(scriptless);
    await scriptless.click('label:has-text("CPU time")');
    out.scriptlessCpu = await look(scriptless);
    await scriptless.context().close();
}


async function glance() {
    const page = await open();

    out.status = page.status;
    out.plain = await look(page);

    const box = await widest(page, 1);

    await page.mouse.move(box.x, box.y);
    await page.mouse.click(box.x, box.y);
    out.title = await page.title();
}


async function viewer() {
    const page = await open();

    await page.waitForFunction(
        () => document.querySelectorAll('canvas').length > 1);

    out.title = await page.title();
    out.text = await page.evaluate(() => document.body.innerText);

    if (screenshot) {
        await page.screenshot({ path: `${screenshot}.png` });
    }
}
