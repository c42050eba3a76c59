/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes pictures of the console's overview, light and dark, for
 * tools/screenshot:
 *
 *     node screenshot-overview.mjs URL DIRECTORY
 */

import path from 'node:path';
import { launch } from './launch.mjs';


const [url, directory] = process.argv.slice(2);

const browser = await launch();


const pictures = { light: 'console-overview.png',
                   dark: 'console-overview-dark.png' };


try {
    for (const [colorScheme, name] of Object.entries(pictures)) {
        const page = await browser.newPage({
            ignoreHTTPSErrors: true, colorScheme,
            viewport: { width: 1280, height: 620 }
        });

        await page.goto(`${url}/-/profile/`);
        await page.waitForSelector('table.overview tbody');
        await page.screenshot({ path: path.join(directory, name) });
        await page.close();
    }

} finally {
    await browser.close();
}
