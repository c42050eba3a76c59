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

        /* a URL may have a line for each of its methods */

        const texts = new Map();

        for (const { path, help } of urls) {
            texts.set(path, [...texts.get(path) || [], help]);
        }

        c.clear(document.getElementById('urls'),
                ...Array.from(texts, ([path, help]) => c.make('tr', null,
            c.make('th', { scope: 'row' }, c.make('code', null, path || './')),
            c.make('td', null, help.join('; ')))));

    } catch (e) {
        c.note(e.message);
    }
})();
