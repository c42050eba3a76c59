/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Zooms into a box of a flamegraph in the console's page of a profile, below
 * which the picture hides boxes:
 *
 *     node root.mjs URL [DIRECTORY for screenshots]
 *
 * Prints a JSON object: the picture before and after, and after "Reset".  It
 * judges nothing, profile_root.t does.
 */

import { finish, launch, watch } from './launch.mjs';


const [url, directory] = process.argv.slice(2);

const out = { console: [] };

const browser = await launch();

await finish(browser, out, use);


async function use() {
    const page = await browser.newPage({
        viewport: { width: 1280, height: 900 }
    });

    page.setDefaultTimeout(20000);
    watch(page, out);

    await page.goto(url + '#graph');

    const view = await (await page.waitForSelector('#graph iframe'))
        .contentFrame();

    out.whole = await picture(page, view, root => root === '');

    /* the heaviest function that the main chunk calls */

    out.clicked = await view.evaluate(function () {
        const boxes = Array.from(document.querySelectorAll(
            '.by.wall .prof-zoom > svg > svg'));
        const named = boxes.filter(
            e => e.firstElementChild.textContent.startsWith('many:'));
        const box = named.filter(e => e.parentNode === named[0].parentNode)
            .reduce((one, two) => weight(one) >= weight(two) ? one : two);

        box.dataset.test = 'clicked';

        return {
            name: box.firstElementChild.textContent.split('\n')[0],
            n: weight(box), below: below(box)
        };

        function weight(e) {
            return Number(e.dataset.n.split(' ')[0]);
        }

        function below(e) {
            const x = parseFloat(e.getAttribute('x'));
            const w = parseFloat(e.getAttribute('width'));
            let n = 0;

            for (let row = e.parentNode.nextElementSibling; row;
                 row = row.nextElementSibling)
            {
                n += Array.from(row.children).filter(function (k) {
                    const left = parseFloat(k.getAttribute('x'));
                    return left >= x - 1e-6 && left < x + w - 1e-6;
                }).length;
            }

            return n;
        }
    });

    if (directory) {
        await page.screenshot({ path: directory + '/root-whole.png' });
    }

    await view.click('[data-test=clicked]');
    out.zoomed = await picture(page, view, root => root !== '');

    if (directory) {
        await page.screenshot({ path: directory + '/root-part.png' });
    }

    await view.click('.status .crumb:nth-last-child(2)');
    out.up = await picture(page, view, root => root !== out.zoomed.root);

    await view.click('button:text("Reset")');
    out.reset = await picture(page, view, root => root === '');
}


/* waits for the picture with the expected root, and tells about it */

async function picture(page, view, expected) {
    let root = null;

    for (let i = 0; i < 400; i++) {
        root = new URLSearchParams(view.url().split(/[?#]/)[1]).get('root')
            || '';

        if (expected(root)) {
            break;
        }

        await new Promise(done => setTimeout(done, 50));
    }

    await view.waitForSelector('.prof-ui .status');

    await page.mouse.move(1, 1);

    const found = await view.evaluate(function () {
        const boxes = Array.from(document.querySelectorAll(
            '.by.wall .prof-zoom > svg > svg'));
        const state = new URLSearchParams(location.hash.slice(1));
        const focus = document.activeElement;

        /* the status is about the box with the focus, if there is one */

        focus.blur();

        const crumbs = document.querySelectorAll('.status .crumb');
        const zoom = crumbs.length ? crumbs[crumbs.length - 1].textContent
                                   : '';
        const box = focus.closest('svg[role=treeitem]');
        const row = box && box.parentNode;
        const rows = row ? Array.from(row.parentNode.children) : [];

        return {
            boxes: boxes.length, zoom, state: state.get('zoom'),
            focused: box !== null
                     && box.firstElementChild.textContent.split('\n')[0]
                        === zoom,
            n: box && box.dataset.n && Number(box.dataset.n.split(' ')[0]),
            below: rows.slice(rows.indexOf(row) + 1)
                .reduce((n, r) => n + r.children.length, 0),
            notes: document.querySelector('.notes').textContent
        };
    });

    return { root, ...found };
}
