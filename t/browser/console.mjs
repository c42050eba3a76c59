/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Uses the console in a browser, as operators do:
 *
 *     node console.mjs SCENARIO URL [URL of another site, or id of a profile]
 *
 * Prints a JSON object: what was seen, and what went wrong on the way.  It
 * judges nothing, profile_console_browser.t does.
 */

import { accessible, finish, launch, watch } from './launch.mjs';


const [scenario, url, other] = process.argv.slice(2);
const scenarios = { walk, users, lists, gone, foreign, plain, refused,
                    workers, compare, names, overview };

const out = { console: [], elsewhere: [], axe: {} };

const browser = await launch();

await finish(browser, out, scenarios[scenario]);


async function open(path, options = {}) {
    const context = await browser.newContext({
        viewport: { width: 1200, height: 800 }, ...options
    });
    const page = await context.newPage();

    page.setDefaultTimeout(20000);

    watch(page, out, url);

    if (path !== null) {
        const response = await page.goto(url + path);

        page.status = response.status();
        page.headers = response.headers();
    }

    return page;
}


async function check(page, name) {
    out.axe[name] = await accessible(page);
}


function shown(page, selector) {
    return page.locator(selector).first().isVisible();
}


function rows(page) {
    return page.evaluate(() =>
        Array.from(document.querySelectorAll('#list tbody tr'),
                   row => Array.from(row.cells,
                                     cell => cell.innerText.split('\n')[0])));
}


async function list(page, n) {
    await page.waitForFunction(
        n => document.querySelectorAll('#list tbody tr').length === n, n);

    return rows(page);
}


/* speedscope has drawn something */

async function viewed(page) {
    const handle = await page.waitForSelector('#viewer iframe');
    const frame = await handle.contentFrame();

    await frame.waitForFunction(
        () => document.querySelectorAll('canvas').length > 1);

    return frame.evaluate(() => document.body.innerText);
}


/* from a page of the site to its flamegraph, and through the console */

async function walk() {
    const page = await open('/page?performance_bar=flamegraph');

    out.status = page.status;
    out.headers = page.headers;
    out.viewer = await viewed(page);
    out.title = await page.title();
    out.heading = await page.textContent('h1');
    out.facts = await page.innerText('#facts');
    out.fallback = await shown(page, '.fallback');
    await check(page, 'profile');

    await page.click('text=Permanent link');
    await page.waitForURL('**/p/*');
    out.permanent = page.url();
    out.viewerAgain = await viewed(page);

    /* tabs, by the keyboard */

    await page.focus('#tab-viewer');
    await page.keyboard.press('ArrowRight');

    const graph = await (await page.waitForSelector('#graph iframe'))
        .contentFrame();

    await graph.waitForSelector('.prof-plot');
    out.graph = await graph.evaluate(
        () => document.querySelectorAll('.prof-zoom svg svg').length);
    out.focus = await page.evaluate(() => document.activeElement.id);

    await page.keyboard.press('ArrowRight');
    out.details = await page.innerText('#details');
    await check(page, 'facts');

    await page.keyboard.press('End');
    await page.waitForSelector('#diff table, #diff .empty');
    out.hash = new URL(page.url()).hash;
    await page.reload();
    await page.waitForSelector('#tab-diff[aria-selected]');
    out.selected = await page.getAttribute('#tab-diff', 'aria-selected');

    /* downloads */

    await page.click('summary');
    out.formats = await page.evaluate(() =>
        Array.from(document.querySelectorAll('#formats a'),
                   a => a.getAttribute('href')));

    const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.click('#formats a[href$="/speedscope"]')
    ]);

    out.download = download.suggestedFilename();

    /* the list */

    await page.click('nav a:text("Profiles")');
    await page.waitForSelector('#list tbody tr');
    out.rows = await rows(page);
    await check(page, 'profiles');

    /* pin and delete */

    await page.check('#list tbody tr:first-child input');
    await page.click('#pin');
    await page.waitForSelector('#list tbody tr .tag:text("pinned")');
    out.pinned = await rows(page);

    await page.check('#list tbody tr:first-child input');
    out.unpin = await page.textContent('#pin');

    page.on('dialog', dialog => {
        out.asked = dialog.message();
        dialog.accept();
    });

    await page.click('#delete');
    await page.waitForSelector('#none', { state: 'visible' });
    out.deleted = await rows(page);
    await check(page, 'empty');

    /* status */

    await page.click('nav a:text("Status")');
    await page.waitForSelector('.card');
    out.cards = await page.evaluate(() =>
        Array.from(document.querySelectorAll('.card h2'),
                   e => e.textContent));
    out.columns = await page.evaluate(() =>
        Array.from(document.querySelector('.card').querySelectorAll('th'),
                   e => e.textContent));
    out.losses = await page.textContent('.card td.counters');
    await check(page, 'status');

    const help = await open('/-/profile/help',
                            { viewport: { width: 390, height: 800 } });

    await help.waitForSelector('#urls tr');
    out.urls = await help.$$eval('#urls code', all =>
        all.map(e => e.textContent));
    out.overflow = await help.evaluate(
        () => document.documentElement.scrollWidth);
    await check(help, 'help');

    /* a live page keeps the part of a table that a narrow window shows */

    const narrow = await open('/-/profile/status',
                              { viewport: { width: 390, height: 800 } });

    await narrow.waitForSelector('.card .wide');
    out.kept = await narrow.evaluate(async () => {
        const first = document.querySelector('.card .wide');

        first.focus();
        first.scrollLeft = 50;

        while (first.isConnected) {
            await new Promise(done => setTimeout(done, 50));
        }

        const now = document.querySelector('.card .wide');

        return [now.scrollLeft, document.activeElement === now,
                now.querySelector('tbody tr').offsetHeight];
    });
    await check(narrow, 'status, narrow');
}


/* filter, sort, live refresh; needs GET /a, GET /b and POST /c */

async function lists() {
    const page = await open('/-/profile/');

    out.all = await list(page, 3);

    await page.keyboard.press('/');
    await page.keyboard.type('post');
    out.post = await list(page, 1);
    out.count = await page.textContent('#count');
    out.hash = new URL(page.url()).hash;

    await page.fill('#filter', 'no such thing');
    await list(page, 0);
    out.nothing = await shown(page, '#nothing');

    await page.reload();
    out.kept = await page.inputValue('#filter');
    await page.fill('#filter', '');

    await list(page, 3);
    await page.click('.sort:text("URI")');
    out.up = (await rows(page)).map(r => r[3]);
    await page.click('.sort:text("URI")');
    out.down = (await rows(page)).map(r => r[3]);
    out.sorted = await page.getAttribute('th[data-sort="uri"]', 'aria-sort');

    /* another comes while nobody touches the page */

    await page.check('#list tbody tr:nth-child(2) input');
    await page.focus('#list tbody tr:nth-child(2) input');
    await fetch(url + '/d?performance_bar=record');
    out.live = (await list(page, 4)).map(r => r[3]);
    out.checked = await page.evaluate(() =>
        Array.from(document.querySelectorAll('#list tbody input'),
                   e => e.checked));
    out.focused = await page.evaluate(() =>
        document.activeElement.getAttribute('aria-label'));

    await page.uncheck('#live');
    await fetch(url + '/e?performance_bar=record');
    await page.waitForTimeout(2500);
    out.still = (await rows(page)).length;
    await page.check('#live');
    await list(page, 5);

    /* two at a time; what newer ones drive off the page stays */

    const few = await open('/-/profile/?limit=2');

    out.few = (await list(few, 2)).map(r => r[3]);
    await few.click('#older');
    await list(few, 4);
    await few.click('#older');
    out.older = (await list(few, 5)).map(r => r[3]);
    out.more = await shown(few, '#older');
    await fetch(url + '/f?performance_bar=record');
    out.newer = (await list(few, 6)).map(r => r[3]);

    await few.check('#list tbody tr:last-child input');
    await few.click('#pin');
    await few.waitForSelector('#list tbody tr:last-child .tag');
    await few.check('#list tbody tr:nth-child(1) input');
    await few.uncheck('#list tbody tr:last-child input');
    await few.check('#list tbody tr:nth-child(4) input');
    few.on('dialog', dialog => dialog.accept());
    await few.click('#delete');
    out.fewer = (await list(few, 4)).map(r => r[3]);
    await list(page, 4);

    /* memory */

    await fetch(url + '/o?performance_bar=record&profile_mode=object');
    out.memory = (await list(page, 5)).find(r => r[5] === 'object');

    /* colors of the night */

    const dark = await open('/-/profile/', { colorScheme: 'dark' });

    await list(dark, 5);

    const color = p => p.evaluate(
        () => getComputedStyle(document.body).backgroundColor);

    out.colors = [await color(page), await color(dark)];
    await check(dark, 'dark');

    const narrow = await open('/-/profile/',
                              { viewport: { width: 400, height: 700 } });

    await list(narrow, 5);
    out.overflow = await narrow.evaluate(
        () => document.documentElement.scrollWidth);
    await narrow.click('#capture summary');
    out.panel = await narrow.evaluate(() => {
        const box = document.querySelector('.panel').getBoundingClientRect();

        return [box.left, box.right];
    });

    await narrow.click('#capture summary');
    await narrow.click('#list tbody td.uri a');
    await narrow.waitForSelector('[role="tab"][aria-selected="true"]');
    out.begins = await narrow.textContent(
        '[role="tab"][aria-selected="true"]');
}


/* a debug file was installed after the profile was stored */

async function names() {
    const page = await open(`/p/p/${other}#graph`);
    const graph = async () => (await page.waitForSelector('#graph iframe'))
        .contentFrame();
    const seen = async function () {
        const frame = await graph();

        await frame.waitForSelector('.prof-plot');

        return frame.evaluate(() => Array.from(
            document.querySelectorAll('#functions th'), e => e.innerText));
    };

    await page.waitForSelector('#names', { state: 'visible' });
    out.before = await seen();
    await check(page, 'names');

    await page.focus('#names');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /names now/.test(
        document.getElementById('said').textContent));

    out.said = await page.textContent('#said');
    out.after = await seen();

    await page.click('#names');
    await page.waitForFunction(() => /No better/.test(
        document.getElementById('said').textContent));

    await fetch(`${url}/p/p/${other}`, {
        method: 'DELETE', headers: { 'X-Profile-Console': '1' }
    });

    await page.click('#names');
    await page.waitForSelector('#note', { state: 'visible' });
    out.error = await page.textContent('#note');
    out.saidThen = await page.textContent('#said');
}


/* two at once, each with a page of its own; one deletes the other's */

async function users() {
    const [a, b] = await Promise.all([
        open('/a?performance_bar=flamegraph'),
        open('/b?performance_bar=flamegraph')
    ]);

    out.viewers = await Promise.all([viewed(a), viewed(b)]);
    out.titles = [await a.title(), await b.title()];

    const id = await a.getAttribute('html', 'data-id');

    await b.goto(url + '/-/profile/');
    await b.waitForSelector(`#list a[href$="${id}"]`);
    await b.locator('tr', { has: b.locator(`a[href$="${id}"]`) })
           .locator('input').check();

    b.on('dialog', dialog => dialog.accept());
    await b.click('#delete');
    await b.waitForSelector(`#list a[href$="${id}"]`, { state: 'detached' });

    await a.click('#pin');
    await a.waitForSelector('#note', { state: 'visible' });
    out.note = await a.textContent('#note');
}


/* a profile that is not there */

async function gone() {
    const page = await open(null);

    page.on('dialog', dialog => {
        out.dialog = dialog.message();
        dialog.dismiss();
    });

    const response = await page.goto(url + '/-/profile/p/' + '0'.repeat(32));

    out.status = response.status();
    out.text = await page.innerText('body');
}


/* another site, in the same browser */

async function foreign() {
    const page = await open(null);

    const { profiles } =
        await (await fetch(url + '/-/profile/profiles.json')).json();
    const target = `${url}/-/profile/p/${profiles[0].id}`;

    await page.goto(other);

    out.tried = await page.evaluate(async target => {
        const tried = [];

        for (const [method, path, headers, mode] of [
            ['POST', '/delete', {}, 'no-cors'],
            ['POST', '/pin', {}, 'no-cors'],
            ['POST', '/delete', { 'X-Profile-Console': '1' }, 'cors'],
            ['DELETE', '', { 'X-Profile-Console': '1' }, 'cors'],
            ['GET', '/speedscope', {}, 'cors']
        ]) {
            try {
                const r = await fetch(target + path, {
                    method, headers, mode, credentials: 'include'
                });

                tried.push(r.type);

            } catch (e) {
                tried.push('refused');
            }
        }

        return tried;
    }, target);

    /* a form that sends itself */

    await page.evaluate(target => {
        const form = document.createElement('form');

        form.method = 'post';
        form.action = target + '/delete';
        document.body.append(form);
        form.submit();
    }, target);

    await page.waitForURL('**/delete');
    out.form = await page.innerText('body');

    /* in a frame */

    await page.goto(other);
    await page.evaluate(target => {
        const frame = document.createElement('iframe');

        frame.src = target;
        document.body.append(frame);
    }, target);

    await page.waitForFunction(() => frames.length === 1);
    await page.waitForTimeout(500);
    out.framed = await page.frames()[1].evaluate(
        () => document.querySelectorAll('#tabs').length).catch(() => 0);
    out.frame = page.frames()[1].url();

    const after = await (await fetch(url + '/-/profile/profiles.json'))
        .json();

    out.profiles = [profiles, after.profiles];
}


/* without a viewer */

async function plain() {
    const page = await open('/page?performance_bar=flamegraph');

    const frame = await (await page.waitForSelector('#graph iframe'))
        .contentFrame();

    await frame.waitForSelector('.prof-plot');
    out.boxes = await frame.evaluate(
        () => document.querySelectorAll('.prof-zoom svg svg').length);
    out.viewer = await shown(page, '#tab-viewer');
}


/* a console that is closed to those who may profile */

async function refused() {
    const page = await open('/page?performance_bar=flamegraph');

    out.status = page.status;
    out.fallback = await shown(page, '.fallback');
    out.text = await page.innerText('body');

    await page.goto(url + '/page?performance_bar=flamegraph'
                    + '&profile_format=html');
    out.boxes = await page.evaluate(
        () => document.querySelectorAll('.prof-zoom svg svg').length);
}


/* all workers, while they have something to do */

async function workers() {
    const page = await open('/-/profile/');

    await page.click('#capture summary');
    await check(page, 'capture');
    await page.fill('#capture-seconds', '600');
    await page.fill('#capture-frequency', '500');
    out.workers = await page.evaluate(() =>
        document.getElementById('capture-workers').options.length);

    await page.click('#capture-start');
    await page.waitForSelector('#capture-state:has-text("s left")');
    await page.click('#capture-start:has-text("Stop")');
    await page.waitForSelector('#capture-state:has-text("Stopped.")');

    await page.fill('#capture-seconds', '0');
    await page.click('#capture-start');
    await page.waitForSelector('#capture-state:has-text("must be")');
    out.wrong = await page.textContent('#capture-state');
    out.console = [];

    await page.fill('#capture-seconds', '1');
    await page.click('#capture-start');
    await page.waitForURL('**/p/*');
    out.viewer = await viewed(page);
    out.heading = await page.textContent('h1');
    out.facts = await page.innerText('#facts');
}


/* from the list to what has changed; needs two profiles */

async function compare() {
    const page = await open('/-/profile/');

    await page.waitForSelector('#list tbody tr');
    out.alone = await page.isDisabled('#compare');
    await page.check('#list tbody tr:nth-child(1) input');
    out.one = await page.isDisabled('#compare');
    await page.check('#list tbody tr:nth-child(2) input');
    await page.click('#compare');
    await page.waitForURL('**/diff?**');

    out.plain = await compared(page);
    out.rows = await page.innerText('#rows');
    out.url = page.url();
    await check(page, 'compare');

    await page.check('#shares');
    out.shares = await compared(page, 'shares of the whole are compared');

    await page.selectOption('#measure', 'cpu');
    out.cpu = await compared(page, 'all cpu time');
    out.changed = page.url();

    await page.click('#swap');
    await page.waitForURL('**/diff?**');
    await compared(page);
    out.swapped = page.url();
    out.measure = await page.inputValue('#measure');

    await page.goto(url + '/-/profile/diff?a=x&b=y');
    await page.waitForSelector('#note', { state: 'visible' });
    out.wrong = await page.textContent('#note');
}


async function compared(page, text = '') {
    for ( ;; ) {
        const handle = await page.waitForSelector('#pane iframe');
        const frame = await handle.contentFrame();

        if (frame) {
            const seen = await frame.waitForSelector('.prof-plot')
                .then(() => frame.evaluate(() => ({
                    boxes: document.querySelectorAll('.prof-zoom svg svg')
                                   .length,
                    text: document.body.textContent,
                    heading: getComputedStyle(
                        document.querySelector('header')).display
                }))).catch(() => null);

            if (seen && seen.text.includes(text)) {
                return seen;
            }
        }
    }
}


/* in the page: texts of less than 12 pixels */

function small() {
    const texts = document.createTreeWalker(document.body,
                                            NodeFilter.SHOW_TEXT);
    const found = [];

    while (texts.nextNode()) {
        const text = texts.currentNode.data.trim();
        const size = getComputedStyle(texts.currentNode.parentNode).fontSize;

        if (text && parseFloat(size) < 12) {
            found.push(`${text}: ${size}`);
        }
    }

    return found;
}


/* the overview by keyboard, with and without scripts, in all looks */

async function overview() {
    const page = await open('/-/profile/');

    out.groups = await page.$$eval('.overview .group', rows => rows.map(
        row => row.innerText.replace(/\s+/g, ' ')));
    out.parts = await page.$$eval('.overview tbody:nth-of-type(2) tr',
        rows => rows.map(row => row.cells[0].innerText));

    await check(page, 'overview');

    /* the first cause of the first location */

    await page.focus('.overview tbody:nth-of-type(2) tr:nth-child(2) a');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#list');
    out.filter = await page.inputValue('#filter');
    out.sorted = await page.getAttribute('th[data-sort="waited"]',
                                         'aria-sort');
    out.listed = (await list(page, 1)).map(r => r[3]);

    await page.goBack();

    /* the table is replaced below the focus */

    await page.focus('.overview tbody:nth-of-type(2) a.next');
    await page.evaluate(() => {
        document.getElementById('overview').dataset.old = 'yes';
    });
    await page.waitForFunction(
        () => !document.getElementById('overview').dataset.old);
    out.focus = await page.evaluate(() => document.activeElement.className);

    /* a capture of the next requests, which the test goes on sending */

    await page.keyboard.press('Enter');
    await page.waitForURL(/\/p\/[0-9a-f]{32}/);
    out.captured = new URL(page.url()).pathname;

    /* the links of causes, by keyboard; the table is replaced as well */

    const filtered = await open('/-/profile/');

    await filtered.focus('.causes a[href*="script%20timer"]');
    await filtered.keyboard.press('Enter');
    await filtered.waitForSelector('.causes [aria-current][href*="cause="]');
    await filtered.evaluate(() => {
        document.getElementById('overview').dataset.old = 'yes';
    });
    await filtered.waitForFunction(
        () => !document.getElementById('overview').dataset.old);

    out.cause = await filtered.$eval('.causes [aria-current]',
                                     a => a.firstChild.data.trim());
    out.waiting = await filtered.$$eval('.overview tbody:not(:first-of-type)',
        groups => groups.map(group => Array.from(group.rows,
                row => row.cells[0].innerText.split(/\s/)[0]).join(' ')));

    await check(filtered, 'overview of a cause');

    await filtered.click('.causes a:first-child');
    await filtered.waitForSelector('.causes a:first-child[aria-current]');
    out.unfiltered = new URL(filtered.url()).search;

    out.small = await filtered.evaluate(small);

    const bare = await open('/-/profile/', { javaScriptEnabled: false });

    out.bare = await bare.$$eval('.overview .group', rows => rows.length);

    const dark = await open('/-/profile/', { colorScheme: 'dark' });

    await check(dark, 'overview, dark');

    const narrow = await open('/-/profile/',
                              { viewport: { width: 390, height: 800 } });

    await check(narrow, 'overview, narrow');
    out.small.push(...await narrow.evaluate(small));
    out.wider = await narrow.evaluate(() =>
        document.documentElement.scrollWidth > window.innerWidth);
}
