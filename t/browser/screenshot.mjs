
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes the pictures of the documentation, for tools/screenshot:
 *
 *     node screenshot.mjs URL DIRECTORY
 *
 * Pictures of the documentation have no warnings.  If other programs of the
 * machine take samples away, the request is captured again.
 */

import path from 'node:path';
import { launch } from './launch.mjs';


const CAPTURES = 10;

const [url, directory] = process.argv.slice(2);

const browser = await launch();


try {
    await shoot('flamegraph-light', 'svg', 'light', { height: 640 });
    await shoot('flamegraph-search', 'svg', 'light', { height: 640 },
                page => page.fill('input[type=search]', 'filter'));
    await shoot('flamegraph-zoom', 'svg', 'dark', { height: 640 },
                page => zoom(page, 'deflate'));
    await shoot('page-light', 'html', 'light', { height: 900 });
    await shoot('page-dark', 'html', 'dark', { height: 900 });

} finally {
    await browser.close();
}


async function shoot(name, format, colorScheme, size, use) {
    const context = await browser.newContext({
        colorScheme, ignoreHTTPSErrors: true,
        viewport: { width: 1280, ...size }
    });

    const page = await context.newPage();

    for (let i = 0; i === 0 || await page.$('.warn'); i++) {
        if (i === CAPTURES) {
            console.error(`${name}: all captures have warnings`);
            break;
        }

        await page.goto(`${url}?performance_bar=flamegraph`
                        + `&profile_format=${format}`);
    }

    if (use) {
        await use(page);
    }

    await page.screenshot({ path: path.join(directory, name + '.png') });
    await context.close();
}


async function zoom(page, name) {
    const box = await page.evaluate(name => {
        const found = Array.from(
            document.querySelectorAll('.prof-zoom > svg > svg'))
            .find(e => e.firstElementChild.textContent
                        .split('\n')[0] === name);

        const r = (found || document.querySelector('.prof-zoom svg svg'))
            .querySelector('rect').getBoundingClientRect();

        return { x: r.x + r.width / 2, y: r.y + r.height / 2 };
    }, name);

    await page.mouse.click(box.x, box.y);
    await page.mouse.move(1, 1);
}
