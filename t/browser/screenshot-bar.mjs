/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes pictures of the Performance Bar, for tools/screenshot:
 *
 *     node screenshot-bar.mjs URL DIRECTORY
 *
 * The page of the URL makes three requests.
 */

import path from 'node:path';
import { launch } from './launch.mjs';


const BAR = 'nginx-performance-bar';

const [url, directory] = process.argv.slice(2);

const browser = await launch();


try {
    await shoot('bar-light', 'light', 'Details');
    await shoot('bar-requests', 'light', 'Requests');

} finally {
    await browser.close();
}


async function shoot(name, colorScheme, button) {
    const context = await browser.newContext({
        colorScheme, ignoreHTTPSErrors: true,
        viewport: { width: 1280, height: 560 }
    });

    const page = await context.newPage();

    await page.goto(url);
    await page.waitForSelector(`${BAR} .strip li:has-text("sent")`);
    await page.waitForSelector(`${BAR} button:has-text("Requests 3")`);
    await page.click(`${BAR} button:has-text("${button}")`);

    await page.waitForFunction(bar => !document.querySelector(bar).shadowRoot
        .querySelector('#requests').textContent.includes('…'), BAR);

    await page.mouse.move(1, 1);
    await page.screenshot({ path: path.join(directory, name + '.png') });
    await context.close();
}
