/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes pictures of the five steps of README.md in the console of the demo, for
 * tools/screenshot:
 *
 *     node screenshot-demo.mjs URL DIRECTORY
 */

import path from 'node:path';
import { launch } from './launch.mjs';


const [url, directory] = process.argv.slice(2);

const browser = await launch();


try {
    const page = await browser.newPage({ viewport: { width: 1280,
                                                     height: 620 } });

    await page.goto(`${url}/-/profile/`);
    await page.waitForSelector('table.overview tbody');
    await shoot('overview');

    await page.goto(`${url}/-/profile/profiles?q=%2Freport%2F`);
    await page.waitForSelector('.list tbody tr');
    await page.click('th:has-text("Wall") button, th:has-text("Wall")');
    await shoot('profiles');

    await page.click('.list tbody td.uri a');
    await page.waitForSelector('#tab-graph');
    await page.click('#tab-graph');
    await page.frameLocator('#graph iframe').locator('svg[role]').first().waitFor();
    await shoot('profile');

    await page.goto(`${url}/-/profile/turns?seconds=60`);
    await page.waitForSelector('.turns-lanes canvas');
    await shoot('turns');


    async function shoot(name) {
        await page.waitForTimeout(300);
        await page.screenshot({ path: path.join(directory,
                                                `demo-${name}.png`) });
    }

} finally {
    await browser.close();
}
