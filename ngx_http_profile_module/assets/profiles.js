/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The list of profiles.  The page requests the newest profiles again while it
 * is visible.  A button requests older ones.  The rows remain the same
 * elements, so the user keeps the selection and the focus.
 */

(function () {
    'use strict';

    const c = prof;
    const INTERVAL = 2000;

    /* the number of profiles in a request; the server has its own limit */

    const limit = new URLSearchParams(location.search).get('limit');

    const table = document.getElementById('list');
    const body = table.tBodies[0];
    const filter = document.getElementById('filter');
    const live = document.getElementById('live');
    const all = document.getElementById('all');

    const rows = new Map();
    const chosen = new Set();

    let newest = [];
    let older = [];
    let profiles = [];
    let next = null;
    const asked = new URLSearchParams(location.hash.slice(1));

    let key = 'start';
    let direction = -1;
    let timer = 0;

    filter.value = asked.get('filter') || '';

    if (/^(cpu|wall|waited)$/.test(asked.get('sort'))) {
        key = asked.get('sort');
    }

    c.sorter(table, key, direction, function (k, d) {
        key = k;
        direction = d;
        draw();
    });

    filter.addEventListener('input', function () {
        history.replaceState(null, '', filter.value
            ? '#filter=' + encodeURIComponent(filter.value)
            : location.pathname + location.search);
        draw();
    });

    document.getElementById('tools').addEventListener('submit',
        e => e.preventDefault());

    document.addEventListener('keydown', function (e) {
        if (e.key === '/' && !e.ctrlKey && !e.metaKey && !e.altKey
            && !/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName))
        {
            e.preventDefault();
            filter.focus();
        }
    });

    live.addEventListener('change', schedule);
    document.addEventListener('visibilitychange', schedule);

    all.addEventListener('change', function () {
        for (const p of profiles) {
            if (!rows.get(p.id).row.isConnected || !all.checked) {
                chosen.delete(p.id);

            } else {
                chosen.add(p.id);
            }
        }

        draw();
    });

    button('compare', function () {
        const [a, b] = profiles.filter(p => chosen.has(p.id))
                               .sort((x, y) => x.start - y.start);

        location.href = `${c.root}diff?a=${a.id}&b=${b.id}`;
    });

    button('pin', function (selected) {
        const action = selected.every(p => p.pinned) ? 'unpin' : 'pin';

        return each(selected, p => c.change('POST', `p/${p.id}/${action}`));
    });

    button('delete', function (selected) {
        if (confirm(selected.length === 1
                    ? `Delete the profile of ${selected[0].method} `
                      + `${selected[0].uri}?`
                    : `Delete ${selected.length} profiles?`))
        {
            return each(selected, p => c.change('DELETE', `p/${p.id}`));
        }
    });

    document.getElementById('older').addEventListener('click', loadOlder);

    load();


    function button(id, action) {
        document.getElementById(id).addEventListener('click',
            () => action(profiles.filter(p => chosen.has(p.id))));
    }


    async function each(selected, change) {
        try {
            for (const p of selected) {
                await change(p);
                chosen.delete(p.id);

                if (!newest.includes(p)) {
                    await renew(p);
                }
            }

        } catch (e) {
            c.note(e.message);
            return;
        }

        await load();
    }


    async function load() {
        clearTimeout(timer);

        try {
            take(await page({}));
            c.note('');

        } catch (e) {
            c.note(e.message);
        }

        draw();
        schedule();
    }


    function page(args) {
        const query = new URLSearchParams(limit ? { limit, ...args } : args);

        return c.get(`profiles.json?${query}`);
    }


    /* newer profiles have moved these profiles to the older ones */

    function take(list) {
        const known = new Set(list.profiles.map(p => p.id));
        const last = list.profiles[list.profiles.length - 1];

        if (!list.more) {
            older = [];
            next = null;

        } else if (!older.length) {
            next = list.next;

        } else {
            older = [...newest.filter(p => p.order < last.order), ...older]
                    .filter(p => !known.has(p.id));
        }

        newest = list.profiles;
        profiles = [...newest, ...older];
    }


    async function loadOlder() {
        try {
            const list = await page({ before: next });

            older.push(...list.profiles);
            next = list.more ? list.next : null;
            profiles = [...newest, ...older];
            draw();

        } catch (e) {
            c.note(e.message);
        }
    }


    /*
     * updates a profile that load() does not request: it changed, or was
     * deleted
     */

    async function renew(p) {
        const list = await page({ before: p.order + 1, limit: 1 });
        const [now] = list.profiles;

        older = older.flatMap(o => o !== p ? [o]
                                   : now && now.id === p.id ? [now] : []);
    }


    function schedule() {
        clearTimeout(timer);

        if (live.checked && document.visibilityState === 'visible') {
            timer = setTimeout(load, INTERVAL);
        }
    }


    /* returns whether the texts of the profile contain all words */

    function matches(p) {
        const text = [p.method, p.host + p.uri, p.status || '', p.mode,
                      p.scope, p.worker, p.id, p.pinned ? 'pinned' : '']
                     .join(' ').toLowerCase();

        return filter.value.toLowerCase().split(/\s+/)
                     .every(word => text.includes(word));
    }


    function draw() {
        const known = new Set(profiles.map(p => p.id));

        for (const id of rows.keys()) {
            if (!known.has(id)) {
                rows.delete(id);
                chosen.delete(id);
            }
        }

        const shown = profiles.filter(matches).sort(order);
        const wanted = shown.map(row);

        /* an element loses its focus when it is moved */

        if (wanted.length !== body.rows.length
            || wanted.some((r, i) => r !== body.rows[i]))
        {
            const focus = document.activeElement;

            c.clear(body, ...wanted);

            if (focus && body.contains(focus)) {
                focus.focus();
            }
        }

        table.classList.toggle('hosts',
            new Set(profiles.map(p => p.host)).size > 1);

        c.show('some', shown.length);
        c.show('none', !profiles.length
                       && document.getElementById('note').hidden);
        c.show('nothing', profiles.length && !shown.length);

        document.getElementById('count').textContent =
            (shown.length < profiles.length
             ? `${shown.length} of ${profiles.length}`
             : String(profiles.length))
            + (next ? ', the newest' : '');

        c.show('more', next !== null);

        choose();
    }


    function order(a, b) {
        const [x, y] = [a[key], b[key]];

        return (x < y ? -1 : x > y ? 1 : b.start - a.start) * direction;
    }


    function choose() {
        const selected = profiles.filter(p => chosen.has(p.id));
        const visible = profiles.filter(p => rows.has(p.id)
                                         && rows.get(p.id).row.isConnected);

        document.getElementById('compare').disabled = selected.length !== 2;
        document.getElementById('pin').disabled = !selected.length;
        document.getElementById('delete').disabled = !selected.length;
        document.getElementById('pin').textContent =
            selected.length && selected.every(p => p.pinned) ? 'Unpin'
                                                             : 'Pin';
        document.getElementById('compare').title =
            selected.length === 2 ? '' : 'Select two profiles';

        all.checked = visible.length && visible.every(p => chosen.has(p.id));
        all.indeterminate = !all.checked && selected.length > 0;

        for (const { row, box, id } of rows.values()) {
            box.checked = chosen.has(id);
            row.classList.toggle('chosen', chosen.has(id));
        }
    }


    /* only the pin of a row may change */

    function row(p) {
        let r = rows.get(p.id);

        if (!r) {
            r = build(p);
            rows.set(p.id, r);
        }

        r.pin.hidden = !p.pinned;

        return r.row;
    }


    function build(p) {
        const box = c.make('input', {
            'type': 'checkbox',
            'aria-label': `Select ${p.method} ${p.uri}`
        });
        const pin = c.make('span', { class: 'tag' }, 'pinned');
        const method = p.method === 'GET' ? null
            : c.make('span', { class: 'soft narrow' }, p.method + ' ');
        const link = c.make('a', { href: `${c.root}p/${p.id}` },
                            p.uri || p.id);
        const num = (...text) => c.make('td', { class: 'num' }, ...text);

        box.addEventListener('change', function () {
            if (box.checked) {
                chosen.add(p.id);

            } else {
                chosen.delete(p.id);
            }

            choose();
        });

        const row = c.make('tr', null,
            c.make('td', null, box),
            c.make('td', null, c.time(p.start)),
            c.make('td', null, p.method),
            c.make('td', { class: 'uri', title: p.uri }, method, link, ' ',
                   p.scope && p.scope !== 'request'
                   ? c.make('span', { class: 'tag' }, p.scope) : null,
                   ' ', pin,
                   p.host ? c.make('div', { class: 'soft host' }, p.host) : null),
            num(p.status ? c.make('span',
                    { class: p.status >= 400 ? 'tag bad' : '' },
                    String(p.status)) : ''),
            c.make('td', null, p.mode),
            num(p.wall ? c.duration(p.wall) : ''),
            num(p.wall ? c.duration(p.cpu) : ''),
            num(p.wall ? c.duration(p.waited) : ''),
            c.make('td', null, p.mode === 'object' ? memory(p) : split(p)),
            num(c.number(p.samples)),
            num(String(p.worker || '')));

        return { row, box, pin, id: p.id };
    }


    function memory(p) {
        return c.make('span', {
            class: 'memory',
            title: `${c.number(p.allocations)} allocations, `
                   + `${c.bytes(p.in_use)} in use at the end`
        }, `${c.bytes(p.allocated)} in ${c.number(p.allocations)}`);
    }


    /* the parts of a time; their sum is the whole */

    function split(p) {
        const parts = [
            ['cpu', 'CPU', p.cpu],
            ['queued', 'no processor', p.no_processor],
            ['blocked', 'blocked in a call', p.blocked],
            ['busy', 'not running, unknown why',
             p.wall - p.waited - p.cpu - p.no_processor - p.blocked],
            ['waited', 'waiting', p.waited]
        ].filter(([, , ns]) => p.wall && ns > 0);

        const sum = parts.reduce((n, [, , ns]) => n + ns, 0);
        let x = 0;

        const title = parts
            .filter(([, , ns]) => ns >= sum / 200)
            .map(([, name, ns]) => `${(100 * ns / sum).toFixed(0)}% ${name}`)
            .join(', ');

        return c.svg('svg', {
                'class': 'split', 'viewBox': '0 0 100 10',
                'preserveAspectRatio': 'none', 'role': 'img',
                'aria-label': title || 'no time'
            },
            c.svg('title', {}, title),
            ...parts.map(function ([name, , ns]) {
                const width = 100 * ns / sum;
                const box = c.svg('rect', { class: name, x, width,
                                            height: 10 });
                x += width;
                return box;
            }));
    }
})();
