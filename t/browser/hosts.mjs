/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A page that tries the doors of the server which its own host names:
 *
 *     node hosts.mjs PORT HOST ...
 *
 * All hosts resolve to 127.0.0.1, as the name of a site whose owner rebinds it.
 * The page's script reads and posts to its own origin.  Prints a JSON object:
 * for each host, what the script could read.  It judges nothing,
 * profile_hosts_browser.t does.
 */

import { finish, launch } from './launch.mjs';


const [port, ...hosts] = process.argv.slice(2);
const out = {};

const browser = await launch(
    '--host-resolver-rules=' + hosts.map(host => `MAP ${host} 127.0.0.1`)
                                    .join(','));

await finish(browser, out, async () => {
    for (const host of hosts) {
        const page = await browser.newPage();

        await page.goto(`http://${host}:${port}/page.html`);

        out[host] = await page.evaluate(async () => {
            const own = { 'X-Profile-Console': '1' };
            const doors = {
                list: ['/-/profile/profiles.json'],
                line: ['/-/profile/debug/pprof/cmdline'],
                page: ['/-/profile/'],
                capture: ['/-/profile/cpu?seconds=0.1',
                          { method: 'POST', headers: own }],
                order: ['/-/profile/bar/order?method=GET&uri=/a&mode=wall',
                        { method: 'POST', headers: own }],
                metrics: ['/metrics'],
                argument: ['/page.html?performance_bar=flamegraph'],
                header: ['/page.html', { headers: { 'X-Profile': 'record' } }]
            };
            const seen = { origin: location.origin, bar: !!document
                           .querySelector('script[src*="bar.js"]') };

            for (const [name, [url, options]] of Object.entries(doors)) {
                const response = await fetch(url, options);

                seen[name] = {
                    status: response.status,
                    id: response.headers.get('X-Profile-Id'),
                    text: (await response.text()).slice(0, 200)
                };
            }

            return seen;
        });

        await page.close();
    }
});
