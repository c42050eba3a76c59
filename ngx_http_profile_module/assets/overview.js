/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The overview.  The server makes its table.  This script requests the page
 * again while it is visible, and puts the new table in the place of the old
 * one.  It also waits for captures of locations, and opens their profiles.
 */

(function () {
    'use strict';

    const c = prof;
    const INTERVAL = 10000;

    const live = document.getElementById('live');
    const state = document.getElementById('state');

    let timer = 0;

    c.show('lively', true);

    live.addEventListener('change', schedule);
    document.addEventListener('visibilitychange', schedule);
    document.addEventListener('click', capture);

    schedule();


    function schedule() {
        clearTimeout(timer);

        if (live.checked && document.visibilityState === 'visible') {
            timer = setTimeout(load, INTERVAL);
        }
    }


    /* XMLHttpRequest parses the page without a string as markup */

    function load() {
        const r = new XMLHttpRequest();

        r.responseType = 'document';
        r.open('GET', c.root + location.search);

        r.addEventListener('loadend', function () {
            const now = r.status === 200 && r.response
                        && r.response.getElementById('overview');

            if (now) {
                replace(document.importNode(now, true));
                c.note('');

            } else {
                c.note('The server does not answer.');
            }

            schedule();
        });

        r.send();
    }


    /* the same link keeps the focus */

    function replace(now) {
        const old = document.getElementById('overview');
        const focus = old.contains(document.activeElement)
                      ? document.activeElement.getAttribute('href') : null;
        const left = wide(old) ? wide(old).scrollLeft : 0;

        old.replaceWith(now);

        if (wide(now)) {
            wide(now).scrollLeft = left;
        }

        if (focus) {
            const link = [...now.querySelectorAll('a')].find(
                             a => a.getAttribute('href') === focus);

            if (link) {
                link.focus();
            }
        }
    }


    /* the part that scrolls, or null before the first request */

    function wide(part) {
        return part.querySelector('.wide');
    }


    function capture(e) {
        const link = e.target.closest('a.next');

        if (!link || e.ctrlKey || e.metaKey || e.shiftKey) {
            return;
        }

        e.preventDefault();

        const query = new URL(link.href).searchParams;

        query.delete('format');
        c.captureNext(query, text => state.textContent = text);
    }
})();
