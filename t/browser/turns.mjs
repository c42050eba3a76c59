/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Uses the page of the turn log in a browser:
 *
 *     node turns.mjs URL ID PROFILE [DIRECTORY]
 *
 * ID is that of a stored snapshot, PROFILE that of a request.
 *
 * Prints a JSON object of what was seen, and writes pictures to the directory.
 */

import path from 'node:path';
import { accessible, finish, launch, watch, wider } from './launch.mjs';


const RECORDS = 100_000;

const [url, id, profile, directory] = process.argv.slice(2);

const out = { console: [], elsewhere: [], axe: {}, width: {} };
const browser = await launch();

await finish(browser, out, async () => {
    const page = await open('light', 1280);

    out.nav = await page.textContent('nav [aria-current]');
    out.longest = await cells(page, '#longest');
    out.blame = await cells(page, '#blame');

    await longest(page);
    await keys(page);
    await mouse(page);
    await touch(page);
    await search(page);
    await blame(page);
    await check(page, 'light');
    await shoot(page, 'turns-light');

    await capture(page);

    for (const [name, scheme, width] of [
        ['dark', 'dark', 1280], ['narrow', 'light', 390],
        ['narrow-dark', 'dark', 390]
    ]) {
        const other = await open(scheme, width);

        await other.click('#longest tbody button');
        await check(other, name);
        await shoot(other, `turns-${name}`);

        await around(other);
        await check(other, `around-${name}`);
        await shoot(other, `around-${name}`);
        await whole(other);
        await other.context().close();
    }

    await large();
    await empty();
});


async function open(colorScheme, width, answer) {
    const context = await browser.newContext({
        colorScheme, hasTouch: true, viewport: { width, height: 900 }
    });
    const page = await context.newPage();

    page.setDefaultTimeout(60000);

    watch(page, out, url);

    if (answer) {
        await page.route('**/turns/*format=json', r => r.fulfill({
            contentType: 'application/json', body: answer
        }));
    }

    await page.goto(`${url}/-/profile/turns/${id}`);
    await page.waitForSelector('.turns-lanes canvas');

    return page;
}


/* the tab of a request's profile has its turns, and what ran between them */

async function around(page) {
    await page.goto(`${url}/-/profile/p/${profile}`);
    await page.click('#tab-turns');
    await page.waitForSelector('#turns .turns-lanes canvas');
    out.around = await told(page);
    out.hash = new URL(page.url()).hash;
    out.self = await links(page);
}


/* the page of the same log has a link to the request's profile */

async function whole(page) {
    const log = `${url}/-/profile/turns/${profile}`;
    const data = await (await page.request.get(`${log}?format=json`)).json();

    await page.goto(`${log}#${data.about.worker}.${data.about.request}`);
    await page.waitForSelector('.turns-facts dt');
    out.link = await links(page);
}


function links(page) {
    return page.$$eval(`.turns-facts a[href$="/p/${profile}"]`,
                       list => list.length);
}


function cells(page, table) {
    return page.$$eval(`${table} tr`, rows => rows.map(
        row => [...row.cells].map(cell => cell.innerText)));
}


function told(page) {
    return page.textContent('.turns-told');
}


/* the color of the picture's middle, in the first row of the lane */

function middle(page) {
    return page.evaluate(async () => {
        await new Promise(requestAnimationFrame);

        const canvas = document.querySelector('canvas');
        const [r, g, b] = canvas.getContext('2d').getImageData(
            canvas.width / 2, 20 + 18 + 3, 1, 1).data;

        return '#' + [r, g, b].map(n => n.toString(16).padStart(2, '0'))
                              .join('');
    });
}


/* the longest run: its box has the color of its location in the legend */

async function longest(page) {
    await page.click('#longest tbody button');
    out.picked = await told(page);
    out.facts = await page.innerText('.turns-facts');
    out.middle = await middle(page);
    out.color = await page.evaluate(() => getComputedStyle(
        document.documentElement).getPropertyValue('--prof-'
            + document.querySelector('.turns-legend li span').className)
        .trim());
    await shoot(page, 'turns-picked');
}


async function keys(page) {
    await page.focus('canvas');
    await page.keyboard.press('ArrowRight');
    out.right = await told(page);
    await page.keyboard.press('ArrowLeft');
    out.left = await told(page);
    await page.keyboard.press('Escape');
    out.none = await told(page);
    await page.keyboard.press('0');
    out.all = await page.evaluate(axisOf);
    await page.keyboard.press('+');
    await page.keyboard.press('+');
    out.zoomed = await page.evaluate(axisOf);
    await page.keyboard.press('Shift+ArrowRight');
    out.moved = await page.evaluate(axisOf);
}


/* a copy of the picture: it differs if another part is shown */

async function axisOf() {
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);

    return document.querySelector('canvas').toDataURL().length + ' '
           + document.querySelector('canvas').toDataURL().slice(-4000);
}


async function mouse(page) {
    const box = await (await page.$('canvas')).boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + 45];

    await page.click('#longest tbody button');
    await page.mouse.move(x, y);
    out.tip = await page.innerText('.turns-tip');
    await shoot(page, 'turns-tip', true);

    const before = await page.evaluate(axisOf);

    await page.mouse.wheel(0, 400);
    out.wheeled = before !== await page.evaluate(axisOf);

    const wheeled = await page.evaluate(axisOf);

    /* at an end of the log it moves in one direction only */

    for (const to of [x - 120, x + 120]) {
        await page.mouse.move(x, y);
        await page.mouse.down();
        await page.mouse.move(to, y, { steps: 4 });
        await page.mouse.up();
        out.dragged ||= wheeled !== await page.evaluate(axisOf);
    }

    out.kept = await told(page);
    await page.mouse.move(1, 1);
}


/* two fingers that move apart */

async function touch(page) {
    const box = await (await page.$('canvas')).boundingBox();
    const cdp = await page.context().newCDPSession(page);
    const points = gap => [-1, 1].map((side, id) => ({
        x: box.x + box.width / 2 + side * gap, y: box.y + 45, id
    }));
    const before = await page.evaluate(axisOf);

    await cdp.send('Input.dispatchTouchEvent',
                   { type: 'touchStart', touchPoints: points(40) });
    await cdp.send('Input.dispatchTouchEvent',
                   { type: 'touchMove', touchPoints: points(160) });
    await cdp.send('Input.dispatchTouchEvent',
                   { type: 'touchEnd', touchPoints: [] });

    out.pinched = before !== await page.evaluate(axisOf);
    await cdp.detach();
}


async function search(page) {
    await page.focus('canvas');
    await page.keyboard.press('0');
    await page.keyboard.press('/');
    await page.keyboard.type('/slow');
    out.found = await page.textContent('#found');
    await page.focus('canvas');
    await page.keyboard.press('Escape');
    await page.keyboard.press('ArrowRight');
    out.match = await told(page);
    await shoot(page, 'turns-search');
    await page.fill('#filter', '');
}


async function blame(page) {
    await page.click('#blame button');
    out.victim = await told(page);
    out.delayed = await page.innerText('.turns-facts');
}


/* a click leads to a capture of the next requests, whose answer is forged */

async function capture(page) {
    await page.route('**/wall?*', r => {
        out.asked = r.request().method() + ' '
                    + new URL(r.request().url()).search;
        r.fulfill({ status: 201, contentType: 'application/json',
                    body: JSON.stringify({ id }) });
    });

    await page.click('#longest tbody button');
    await page.click('.turns-facts button:has-text("Capture")');
    await page.waitForURL(/p\/\w{32}/);
}


/* a log of many runs: milliseconds until it is drawn, and for a frame */

async function large() {
    const data = {
        locations: Array.from({ length: 20 }, (_, i) => (
            { server: 'a', location: `/l${i}` })),
        handlers: ['ngx_http_handler'],
        columns: ['start', 'length', 'stall', 'request', 'location', 'handler',
                  'cause', 'kind', 'flags'],
        kinds: ['run', 'sleep', 'begin', 'end'], blame: [],
        workers: [0, 1].map(worker => ({
            worker, pid: worker + 1, alive: true, epoch: 0, from: 0,
            runs: Array.from({ length: RECORDS / 2 }, (_, i) => [
                1e15 + i * 40000, 10000 + (i * 7919) % 25000,
                (i * 104729) % 90000, i + 1, i % 20, 0, 0, 0, 0
            ]).flat(),
            requests: Array.from({ length: RECORDS / 2 }, (_, i) => ({
                number: i + 1, start: 1e15 + i * 40000, location: i % 20,
                text: `GET /l${i % 20}/${i}`, status: 200
            }))
        }))
    };

    const page = await open('light', 1280, JSON.stringify(data));

    Object.assign(out, await page.evaluate(async () => {
        const text = await (await fetch(location.pathname + '?format=json')).text();
        const opened = [];

        for (let i = 0; i < 3; i++) {
            const begin = performance.now();
            const log = prof.turnLog(JSON.parse(text));

            prof.turnMap(document.getElementById('map'), log);
            opened.push(performance.now() - begin);
        }

        const canvas = document.querySelector('canvas');
        const frames = [];

        for (let i = 0; i < 30; i++) {
            canvas.dispatchEvent(new WheelEvent('wheel',
                { deltaY: i < 15 ? -40 : 40, cancelable: true }));

            const begin = performance.now();

            await new Promise(done => requestAnimationFrame(() => {

                /* the picture is drawn before this, in the same frame */

                canvas.getContext('2d').getImageData(0, 0, 1, 1);
                frames.push(performance.now() - begin);
                done();
            }));
        }

        return { opened: Math.min(...opened),
                 frame: frames.sort((a, b) => a - b)[frames.length >> 1],
                 records: document.getElementById('span').textContent };
    }));

    await shoot(page, 'turns-large');
    await page.context().close();
}


async function empty() {
    const page = await open('light', 1280, JSON.stringify({
        locations: [], handlers: [], columns: ['start'], kinds: ['run'],
        blame: [], workers: []
    }));

    out.empty = await told(page);
    await page.context().close();
}


async function check(page, name) {
    out.width[name] = await wider(page);
    out.axe[name] = await accessible(page);
}


async function shoot(page, name, stay) {
    if (directory) {
        if (!stay) {
            await page.mouse.move(1, 1);
        }

        await page.screenshot({ path: path.join(directory, name + '.png'),
                                fullPage: !stay });
    }
}
