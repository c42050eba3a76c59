/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The page of a turn log: of the last seconds, or of a stored snapshot.  The
 * fragment of the URL selects a request: WORKER.NUMBER.
 */

(function () {
    'use strict';

    const c = prof;
    const LONGEST = 25;
    const CULPRITS = 7;             /* columns */

    const filter = document.getElementById('filter');
    const seconds = document.getElementById('seconds');
    const asked = new URLSearchParams(location.search).get('seconds');

    let log = null;
    let map = null;

    if (asked) {
        if (![...seconds.options].some(o => o.value === asked)) {
            seconds.append(c.make('option', { value: asked },
                                  `Last ${asked} s`));
        }

        seconds.value = asked;
    }

    seconds.addEventListener('change', function () {
        history.replaceState(null, '', `?seconds=${seconds.value}`);
        load();
    });

    document.getElementById('again').addEventListener('click', load);
    document.getElementById('tools').addEventListener('submit',
        e => e.preventDefault());
    filter.addEventListener('input', find);
    window.addEventListener('hashchange', named);

    document.addEventListener('keydown', function (e) {
        if (e.key === '/' && !e.ctrlKey && !e.metaKey && !e.altKey
            && !/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName))
        {
            e.preventDefault();
            filter.focus();
        }
    });

    c.show('tools', true);
    c.show('live', !c.id);
    load();


    async function load() {
        const url = c.id ? `turns/${c.id}?` : `turns?seconds=${seconds.value}&`;
        let data;

        document.getElementById('trace').href = `${c.root}${url}format=trace`;

        try {
            data = await c.get(url + 'format=json');
            c.note('');

        } catch (e) {
            c.note(e.message);
            return;
        }

        c.show('parts', true);

        log = c.turnLog(data);
        map = c.turnMap(document.getElementById('map'), log);

        span();
        longest();
        blame();
        find();
        named();
    }


    function named() {
        const [worker, number] = location.hash.slice(1).split('.').map(Number);

        if (number) {
            map.pickRequest(worker, number);
        }
    }


    function span() {
        const runs = log.lanes.reduce((n, l) => n + l.n, 0);

        c.clear(document.getElementById('span'), c.time(log.epoch),
                `, ${c.duration(log.end)}, ${c.number(runs)} records`);
    }


    function find() {
        const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
        const n = log ? log.find(words) : -1;

        document.getElementById('found').textContent =
            n < 0 ? '' : n === 1 ? '1 run' : `${c.number(n)} runs`;

        if (map) {
            map.draw();
        }
    }


    function button(text, title, action) {
        const e = c.make('button', { type: 'button', class: 'link', title },
                         text);

        e.addEventListener('click', function () {
            action();
            document.getElementById('map').scrollIntoView({
                block: 'nearest' });
        });

        return e;
    }


    function longest() {
        const rows = log.longest(LONGEST).map(([l, i]) => {
            const place = log.place(l.location[i]);

            return c.make('tr', null,
                c.make('td', { class: 'num' },
                       c.duration(l.end[i] - l.start[i])),
                c.make('td', { class: 'uri' },
                       button(log.label(l, i), 'Zoom to this run',
                              () => map.pick({ l, i }, true)),
                       c.make('span', { class: 'soft' },
                              ` ${place ? place + ', ' : ''}worker `
                              + l.worker)),
                c.make('td', { class: 'num' },
                       l.delayed[i] ? c.duration(l.delayed[i]) : ''));
        });

        c.clear(document.querySelector('#longest tbody'), ...rows);
    }


    /* the table of blame: [key, name] of victims and culprits, most first */

    function blame() {
        const culprit = b => b.what !== 'run' ? b.what
                             : b.culprit >= 0 ? `l${b.culprit}`
                                              : `h${b.handler}`;
        const names = { loop: 'event loop', overwritten: 'log overwritten' };
        const name = key => names[key]
            || (key[0] === 'l' ? log.place(Number(key.slice(1)))
                               : log.handlers[key.slice(1)] || 'no handler');

        const rows = ranked(log.blame, b => b.victim);
        const columns = ranked(log.blame, culprit);
        const shown = columns.slice(0, CULPRITS);
        const rest = columns.slice(CULPRITS);
        const table = document.getElementById('blame');

        c.show('blamed', rows.length > 0);
        c.show('none', !rows.length);

        if (rest.length) {
            shown.push(null);
        }

        c.clear(table.tHead, c.make('tr', null, c.make('td'),
            ...shown.map(key => c.make('th', { scope: 'col', class: 'num' },
                key === null ? `${rest.length} others` : name(key)))));

        c.clear(table.tBodies[0], ...rows.map(victim => c.make('tr', null,
            c.make('th', { scope: 'row' },
                   log.place(victim) || 'no location'),
            ...shown.map(key => cell(log.blame.filter(
                b => b.victim === victim
                     && (key === null ? rest.includes(culprit(b))
                                      : culprit(b) === key)))))));
    }


    function ranked(cells, key) {
        const sums = new Map();

        for (const b of cells) {
            sums.set(key(b), (sums.get(key(b)) || 0) + b.ns);
        }

        return [...sums].sort((a, b) => b[1] - a[1]).map(([k]) => k);
    }


    function cell(parts) {
        const ns = parts.reduce((n, b) => n + b.ns, 0);
        const times = parts.reduce((n, b) => n + b.times, 0);

        if (!ns) {
            return c.make('td', { class: 'num' });
        }

        const worst = parts.map(b => b.worst)
            .reduce((a, b) => a.ns >= b.ns ? a : b);
        const told = `worst ${c.duration(worst.ns)}`;

        return c.make('td', { class: 'num' }, c.duration(ns), ' ',
            c.make('span', { class: 'soft' },
                   `${c.number(times)}\u00d7`), c.make('br'),
            button(told, 'Zoom to this case',
                   () => map.pickRequest(worst.worker, worst.victim)));
    }
})();
