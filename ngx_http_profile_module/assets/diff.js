/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The comparison of two profiles.  The URL contains the whole state.
 */

(function () {
    'use strict';

    const c = prof;

    const query = new URLSearchParams(location.search);
    const measure = document.getElementById('measure');
    const shares = document.getElementById('shares');

    start();


    async function start() {
        let diff;

        if (!query.get('a') || !query.get('b')) {
            c.show('choose', true);
            return;
        }

        try {
            diff = await c.get('diff.json?' + query);

        } catch (e) {
            c.note(e.message);
            return;
        }

        const { before, after } = diff;

        document.title = `${name(before)} compared - profiles`;
        measure.value = query.get('profile_mode') || after.mode;
        shares.checked = diff.shares;

        c.clear(document.getElementById('rows'), row('Before', before),
                row('After', after), changes(before, after));
        c.show('both', true);
        c.show('tools', true);

        measure.addEventListener('change', show);
        shares.addEventListener('change', show);

        document.getElementById('tools').addEventListener('submit',
            e => e.preventDefault());

        show();
    }


    function show() {
        query.set('profile_mode', measure.value);
        query.set('shares', shares.checked ? 'on' : 'off');

        const swapped = new URLSearchParams(query);

        swapped.set('a', query.get('b'));
        swapped.set('b', query.get('a'));
        document.getElementById('swap').href = '?' + swapped;

        history.replaceState(null, '', '?' + query);

        c.clear(document.getElementById('pane'),
                c.make('iframe', { title: 'Differential flamegraph',
                                   src: `${c.root}diff/html?${query}` }));
    }


    function name(p) {
        return p.scope === 'request' ? `${p.method} ${p.uri}` : p.uri;
    }


    function row(label, p) {
        const num = text => c.make('td', { class: 'num' }, text);

        return c.make('tr', null,
            c.make('th', { scope: 'row' }, label),
            c.make('td', null, c.make('a', { href: `${c.root}p/${p.id}` },
                                      name(p))),
            c.make('td', null, c.time(p.start)),
            num(c.duration(p.wall)), num(c.duration(p.cpu)),
            num(c.duration(p.waited)), num(c.number(p.samples)));
    }


    function changes(a, b) {
        const num = text => c.make('td', { class: 'num' }, text);
        const change = key => num(signed(b[key] - a[key], c.duration)
                                  + share(a[key], b[key]));

        return c.make('tr', { class: 'change' },
            c.make('th', { scope: 'row' }, 'Change'),
            c.make('td'), c.make('td'),
            change('wall'), change('cpu'), change('waited'),
            num(signed(b.samples - a.samples, c.number)));
    }


    function signed(n, format) {
        return n === 0 ? '0' : (n < 0 ? '\u2212' : '+') + format(Math.abs(n));
    }


    function share(a, b) {
        return a && a !== b ? ` (${signed(Math.round(100 * (b - a) / a),
                                          String)}%)` : '';
    }
})();
