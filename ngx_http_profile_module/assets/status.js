/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The state of the profiler: a card for each part of the answer.  Parts that
 * this script does not know are shown as lists of names and values.
 */

(function () {
    'use strict';

    const c = prof;
    const INTERVAL = 2000;

    const live = document.getElementById('live');
    const cards = document.getElementById('cards');

    const titles = {
        unwind: 'Unwind tables', scripts: 'Stacks of scripts',
        kernel: 'Kernel',
        store: 'Store', continuous: 'Continuous profile',
        captures: 'Live captures', workers: 'Workers',
        stalls: 'Longest stalls of the event loop', turns: 'Turn log'
    };

    /* names of values that do not explain themselves */

    const labels = {
        id: 'ID', pid: 'PID', uri: 'URI', njs: 'njs', build_ns: 'Built in',
        torn: 'Damaged files', refused_signals: 'Foreign signals',
        max_captures: 'Captures, at most',
        max_connections: 'Connections, at most', this: 'Answers', kept: 'Kept'
    };

    let timer = 0;

    live.addEventListener('change', schedule);
    document.addEventListener('visibilitychange', schedule);
    load();


    async function load() {
        clearTimeout(timer);

        try {
            draw(await c.get('status.json'));
            c.note('');

        } catch (e) {
            c.note(e.message);
        }

        schedule();
    }


    function schedule() {
        clearTimeout(timer);

        if (live.checked && document.visibilityState === 'visible') {
            timer = setTimeout(load, INTERVAL);
        }
    }


    function draw(status) {
        const { worker, ...parts } = status;

        document.getElementById('version').textContent =
            `nginx ${worker.version}, this is the answer of worker ${worker.pid}`;

        const before = wide();
        const left = before.map(e => e.scrollLeft);
        const focus = before.indexOf(document.activeElement);

        c.clear(cards, ...Object.entries(parts)
            .filter(([key, value]) => value !== null
                                      && typeof value === 'object')
            .map(([key, value]) => card(key, value)));

        wide().forEach((e, i) => e.scrollLeft = left[i] || 0);

        if (focus >= 0 && wide()[focus]) {
            wide()[focus].focus();
        }
    }


    /* the tables that scroll */

    function wide() {
        return Array.from(cards.querySelectorAll('.wide'));
    }


    function card(key, value) {
        const title = c.make('h2', null, titles[key] || label(key));

        if (!Array.isArray(value)) {
            return c.make('section', { class: 'card' }, title,
                          use(value), pairs(value));
        }

        return c.make('section', { class: 'card whole' }, title,
            value.length ? c.make('div', {
                                class: 'wide', tabindex: '0', role: 'region',
                                'aria-label': title.textContent
                            }, rows(value))
                         : c.make('p', { class: 'soft' }, 'None.'));
    }


    /* returns how full the store is */

    function use(value) {
        const max = value.disk_max || value.memory_size;
        const used = value.disk_max ? value.disk_used : value.memory_used;

        if (!max) {
            return null;
        }

        const share = Math.min(100, 100 * used / max);

        return c.svg('svg', {
                'class': 'use', 'viewBox': '0 0 100 8', 'role': 'img',
                'preserveAspectRatio': 'none',
                'aria-label': `${share.toFixed(0)}% used`
            },
            c.svg('rect', { width: share, height: 8 }));
    }


    function pairs(value) {
        return c.make('table', null, c.make('tbody', null,
            ...Object.entries(value).map(([key, v]) => c.make('tr', null,
                c.make('th', { scope: 'row' }, label(key)),
                c.make('td', { class: 'value' }, text(key, v))))));
    }


    function rows(list) {
        const keys = Object.keys(Object.assign({}, ...list));

        return c.make('table', null,
            c.make('thead', null, c.make('tr', null,
                ...keys.map(key => c.make('th', {
                    scope: 'col',
                    class: typeof list[0][key] === 'number' ? 'num' : ''
                }, label(key))))),
            c.make('tbody', null, ...list.map(item => c.make('tr', null,
                ...keys.map(key => c.make('td', {
                    class: { number: 'num', object: 'counters' }[
                        typeof item[key]] || ''
                }, text(key, item[key])))))));
    }


    /* the end of a name shows the unit: "build_ns" is a time */

    function label(key) {
        const t = key.replace(/_bytes$/, ' memory')
            .replace(/_(ns|ms|s)$/, '').replace(/_/g, ' ');

        return labels[key] || t.charAt(0).toUpperCase() + t.slice(1);
    }


    function text(key, value) {
        if (value === null || value === undefined) {
            return '';
        }

        if (typeof value === 'object') {
            return Array.isArray(value)
                ? value.map(v => text(key, v)).join(', ')
                : Object.entries(value).filter(([, v]) => v !== 0)
                    .map(([k, v]) => `${label(k)} ${text(k, v)}`).join(', ')
                  || '0';
        }

        if (typeof value !== 'number') {
            return value === true ? 'yes' : value === false ? 'no' : value;
        }

        if (key === 'time') {
            return c.time(value * 1000);
        }

        if (/(_ns|^wall|^cpu|^running|^waited)$/.test(key)) {
            return c.duration(value);
        }

        if (/_ms$/.test(key)) {
            return c.duration(value * 1e6);
        }

        if (/(bytes|_size|_used|disk_max)$/.test(key)) {
            return c.bytes(value);
        }

        if (/_s$/.test(key)) {
            return c.number(value) + ' s';
        }

        return /^p?id$|worker/.test(key) ? String(value) : c.number(value);
    }
})();
