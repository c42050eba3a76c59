/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Uses the Performance Bar of a page as an operator does:
 *
 *     npm ci && node bar.mjs SCENARIO URL...
 *
 * The scenario is "click" (each button of pages, to its flamegraph), "use"
 * (mouse, keyboard, colors, what is remembered), "requests" (those of
 * scripts), "endpoint" (those of others), "replace" (a page that changes
 * itself), "links" (a page that must not ask for anything), or "none" (no
 * bar).
 *
 * Prints a JSON object: what went wrong on the way, and what was seen.  It
 * judges nothing, profile_bar_browser.t does.
 */

import { finish, launch, readAxe } from './launch.mjs';


const SIZE = { width: 1200, height: 700 };
const TAG = 'nginx-performance-bar';
const AXE = readAxe();

const [scenario, ...urls] = process.argv.slice(2);
const [url] = urls;
const scenarios = { click, use, requests, endpoint, replace, links,
                    none };

const out = { console: [], violations: [], elsewhere: [], axe: [] };

const browser = await launch();

await finish(browser, out, scenarios[scenario]);


async function open(options = {}, which = url) {
    const context = await browser.newContext({
        viewport: SIZE, ignoreHTTPSErrors: true, ...options
    });

    context.on('page', page => watch(page));

    const page = await context.newPage();

    page.setDefaultTimeout(15000);

    await page.goto(which);

    return page;
}


function watch(page) {
    page.on('console', message => {
        if (message.type() !== 'log') {
            out.console.push(message.text());
        }
    });

    page.on('pageerror', error => out.console.push(error.message));

    page.on('request', request => {
        const { protocol, origin } = new URL(request.url());

        if (/^(https?|wss?):$/.test(protocol)
            && !urls.some(which => new URL(which).origin === origin))
        {
            out.elsewhere.push(request.url());
        }
    });
}


/* the bar has what the console knows of the page's request */

async function known(page) {
    await page.waitForSelector(`${TAG} .strip li:has-text("sent")`,
                               { state: 'attached' });
}


function text(page, selector) {
    return page.evaluate(([tag, selector]) => Array.from(
        document.querySelector(tag).shadowRoot.querySelectorAll(selector),
        e => e.innerText.replace(/\s+/g, ' ').trim()), [TAG, selector]);
}


/*
 * The checker sees no colors of what is outside of the body, so the bar is in
 * it meanwhile.  What it leaves open of the bar counts as wrong.
 */

async function check(page, when) {
    await page.evaluate(AXE);

    const result = await page.evaluate(async tag => {
        const host = document.querySelector(tag);
        const parent = host.parentElement;

        document.body.append(host);

        const { violations, incomplete, passes } = await axe.run(document);

        parent.append(host);

        return {
            passes: passes.flatMap(
                rule => rule.nodes.filter(n => Array.isArray(n.target[0]))
                    .map(() => rule.id)),
            wrong: [
                ...violations,
                ...incomplete.map(rule => ({
                    ...rule, nodes: rule.nodes.filter(
                        node => Array.isArray(node.target[0]))
                })).filter(rule => rule.nodes.length)
            ].map(rule => `${rule.id}: `
                  + rule.nodes.map(n => n.html + ' '
                                        + n.failureSummary).join(' '))
        };
    }, TAG);

    out.axe.push(...result.wrong.map(text => `${when}: ${text}`));
    out.axePassed = (out.axePassed || 0) + result.passes.length;
    out.axeContrast = (out.axeContrast || 0)
        + result.passes.filter(id => id === 'color-contrast').length;
}


async function click() {
    out.pages = [];

    for (const [n, which] of urls.entries()) {
        const page = await open({}, which);

        out.pages.push(await clickButtons(page, n));
        await page.context().close();
    }
}


/* all buttons of the first page, and one of each other page */

async function clickButtons(page, n) {
    const seen = { flamegraphs: {} };

    await known(page);

    seen.strip = await text(page, '.strip li');
    seen.buttons = await text(page, '.strip [role=group] a');

    const { buttons } = seen;

    for (const name of n ? [buttons[n % buttons.length]] : buttons) {
        await page.click(`${TAG} .strip a:has-text("${name}")`);
        seen.flamegraphs[name] = await flamegraph(page);
        await page.goBack();
        await known(page);
    }

    await page.click(`${TAG} button:has-text("Details")`);
    seen.details = await text(page, '#details table');

    await page.click(`${TAG} a:has-text("Open the console")`);
    seen.consolePage = page.url();

    return seen;
}


/* of a page that is one, or has one in a frame */

async function flamegraph(page) {
    await page.waitForURL(/performance_bar=flamegraph|\/p\/[0-9a-f]{32}$/);

    const frame = await until(async () => {
        for (const frame of page.frames()) {
            if (await frame.locator('.prof-plot svg').count()) {
                return frame;
            }
        }
    });

    return {
        page: page.url(),
        pageTitle: await page.title(),
        ...await frame.evaluate(() => ({
            url: location.pathname + location.search,
            title: document.title,
            mode: (document.querySelector('input[name="mode"]:checked')
                   || {}).value,
            boxes: document.querySelectorAll('.prof-zoom > svg > svg').length,
            text: document.body.innerText
        }))
    };
}


async function until(condition) {
    const end = Date.now() + 15000;

    while (Date.now() < end) {
        const result = await condition();

        if (result) {
            return result;
        }

        await new Promise(done => setTimeout(done, 50));
    }

    throw new Error(`in vain: ${condition}`);
}


async function use() {
    const page = await open({ colorScheme: 'light' });

    await known(page);
    await check(page, 'light');

    const shown = () => page.evaluate(tag => {
        const root = document.querySelector(tag).shadowRoot;

        return {
            bar: root.querySelector('section').checkVisibility(),
            pill: root.querySelector('.pill').checkVisibility(),
            details: root.querySelector('#details').checkVisibility(),
            focus: root.activeElement && root.activeElement.innerText,
            background: getComputedStyle(root.querySelector('section'))
                .backgroundColor,
            font: getComputedStyle(root.querySelector('.name')).fontSize
        };
    }, TAG);

    out.first = await shown();
    out.host = await page.evaluate(tag => document.querySelector(tag)
                                          .parentElement.localName, TAG);

    /* order of the focus */

    out.order = [];

    for (let i = 0; i < 8; i++) {
        await page.keyboard.press('Tab');
        out.order.push((await shown()).focus);
    }

    /* panels */

    await page.click(`${TAG} button:has-text("Details")`);
    out.panel = await shown();
    await check(page, 'details');
    await page.reload();
    await known(page);
    out.panelAgain = await shown();

    /* collapsed, by keyboard */

    await page.focus(`${TAG} button:has-text("Hide")`);
    await page.keyboard.press('Enter');
    out.collapsed = await shown();
    await check(page, 'collapsed');
    await page.reload();
    await page.waitForSelector(`${TAG} .pill`);
    out.collapsedAgain = await shown();
    await page.keyboard.press('p');
    await page.keyboard.press('b');
    out.hidden = await shown();
    await page.keyboard.press('p');
    await page.keyboard.press('b');
    out.back = await shown();
    await page.click(`${TAG} .pill`);
    out.expanded = await shown();

    /* letters of a text are no shortcut */

    await page.focus('input');
    await page.keyboard.type('pb');
    out.typed = await shown();
    await page.evaluate(() => document.activeElement.blur());

    await page.emulateMedia({ media: 'print' });
    out.print = await shown();
    await page.emulateMedia({ media: 'screen', colorScheme: 'dark' });
    out.dark = await shown();
    await check(page, 'dark');

    /* what a shell makes of the text is up to the test */

    await page.context().grantPermissions(['clipboard-read',
                                           'clipboard-write']);
    await page.click(`${TAG} button:has-text("Copy as curl")`);
    await page.waitForSelector(`${TAG} .note:has-text("Copied")`);
    out.curl = await page.evaluate(() => navigator.clipboard.readText());
    await check(page, 'note');
}


async function requests() {
    const page = await open();

    await known(page);
    await page.waitForSelector(`${TAG} button:has-text("Requests 3")`);
    await page.click(`${TAG} button:has-text("Requests")`);
    await page.waitForFunction(tag => !document.querySelector(tag).shadowRoot
                               .querySelector('#requests').innerText
                               .includes('…'), TAG);

    out.rows = await text(page, '#requests tbody tr');
    await check(page, 'requests');

    await page.click(`${TAG} #requests tr:has-text("/api/get") a`);
    await page.waitForSelector(`${TAG} .note a`);
    await check(page, 'recorded');
    out.note = (await text(page, '.note')).join();

    const [popup] = await Promise.all([
        page.waitForEvent('popup'), page.click(`${TAG} .note a`)
    ]);

    out.flamegraph = await flamegraph(popup);

    /* what cannot be asked for once more */

    await page.click(`${TAG} button:has-text("Record the next one")`);
    await page.waitForSelector(`${TAG} .note:has-text("Waiting for")`);
    await check(page, 'waiting');
    out.waiting = (await text(page, '.note')).join();
    await page.waitForResponse(response =>
                               response.url().includes('requests?profile='));
    await page.evaluate(() => fetch('/api/post', { method: 'POST' }));
    await page.waitForSelector(`${TAG} .note:has-text("Recorded POST") a`);

    const [next] = await Promise.all([
        page.waitForEvent('popup'), page.click(`${TAG} .note a`)
    ]);

    out.next = await flamegraph(next);

    /* one that nobody waits for any more */

    await page.click(`${TAG} button:has-text("Record the next one")`);
    await page.waitForResponse(response =>
                               response.url().includes('requests?profile='));
    const [answer] = await Promise.all([
        page.waitForResponse(response => response.url().includes('cancel=')),
        page.click(`${TAG} .note button:has-text("Cancel")`)
    ]);

    out.canceled = answer.status();
}


/* what others do with the page's path */

async function endpoint() {
    const page = await open();

    await known(page);
    await page.click(`${TAG} button:has-text("Details")`);
    await page.click(`${TAG} button:has-text("This endpoint for")`);
    await page.waitForSelector(`${TAG} .note:has-text("Recording all")`);
    out.note = (await text(page, '.note')).join();

    for (let i = 0; i < 20; i++) {
        await page.evaluate(() => fetch(location.href,
                                        { cache: 'no-store' }));
    }

    /* captures are counted while they run */

    await page.waitForSelector(`${TAG} .note .num`
                               + ':text-matches(", [1-9][0-9]* requests")');

    await page.waitForSelector(`${TAG} .note:has-text("Recorded the") a`,
                               { timeout: 60000 });

    const [popup] = await Promise.all([
        page.waitForEvent('popup'), page.click(`${TAG} .note a`)
    ]);

    out.flamegraph = await flamegraph(popup);
}


/* as scripts do that fetch a page and put its body in place of the old one */

async function replace() {
    const page = await open();

    await known(page);

    out.before = await page.evaluate(tag => document.querySelectorAll(tag)
                                            .length, TAG);

    await page.evaluate(async () => {
        const answer = await fetch(location.href,
                                   { headers: { Accept: 'text/html' } });
        const text = await answer.text();

        /* this one was fetched: it has no bar, so the other one's is reused */

        const old = document.querySelector('script[data-id]');
        const script = document.createElement('script');

        script.src = old.src;

        for (const [name, value] of Object.entries(old.dataset)) {
            script.dataset[name] = value;
        }

        document.body.innerHTML = text;
        document.body.append(script);

        await new Promise(done => script.addEventListener('load', done));
    });

    await known(page);
    out.after = await page.evaluate(tag => document.querySelectorAll(tag)
                                           .length, TAG);
}


async function links() {
    const page = await open();

    await page.click(`${TAG} button:has-text("Details")`);
    await page.waitForSelector(`${TAG} #details:has-text("connect-src")`);
    out.text = (await text(page, '#details')).join();

    await page.click(`${TAG} .strip a:has-text("Wall")`);
    out.flamegraph = await flamegraph(page);
}


async function none() {
    const page = await open();

    await page.waitForLoadState('networkidle');
    out.bars = await page.locator(TAG).count();
}
