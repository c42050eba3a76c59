/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Takes a picture of the console's overview, for tools/screenshot:
 *
 *     node screenshot-overview.mjs URL DIRECTORY
 */

import path from 'node:path';
import { launch } from './launch.mjs';


const [url, directory] = process.argv.slice(2);

const browser = await launch();


try {
    const page = await browser.newPage({
        ignoreHTTPSErrors: true, viewport: { width: 1280, height: 620 }
    });

    await page.goto(`${url}/-/profile/`);
    await page.waitForSelector('table.overview tbody');
    await page.screenshot({
        path: path.join(directory, 'console-overview.png')
    });

} finally {
    await browser.close();
}
