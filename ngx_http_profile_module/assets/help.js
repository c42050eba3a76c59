/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The URLs of the console.
 */

(async function () {
    'use strict';

    const c = prof;

    try {
        const urls = await c.get('help.json');

        c.clear(document.getElementById('urls'), ...urls.map(url =>
            c.make('tr', null, c.make('th', { scope: 'row' },
                                      c.make('code', null, url.path || './')),
                   c.make('td', null, url.help))));

    } catch (e) {
        c.note(e.message);
    }
})();
