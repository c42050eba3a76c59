/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * One profile: the viewer and the flamegraph, each in a frame, the facts, what
 * the event loop ran meanwhile, and other profiles for a comparison.
 *
 * The viewer gets the profile itself, and not its URL.  If the console answers
 * with an error, this page shows the error; the viewer would report an
 * unrecognized format.
 */

(function () {
    'use strict';

    const c = prof;
    const path = `p/${c.id}`;

    const panes = {
        viewer: { tab: 'tab-viewer', open: viewer },
        graph: { tab: 'tab-graph', open: graph },
        details: { tab: 'tab-facts', open: details },
        turns: { tab: 'tab-turns', open: around },
        diff: { tab: 'tab-diff', open: diff }
    };

    let profile;
    let title;

    start();


    async function start() {
        try {
            profile = await c.get(path + '.json');

        } catch (e) {
            c.note(e.message);
            c.show('tabs', false);
            return;
        }

        /* show the URI that the client sent; a redirect may have changed it */

        title = profile.scope === 'request' ? `${profile.method} ${profile.uri}`
                                            : profile.title;

        document.title = title + ' - profile';
        document.getElementById('title').textContent = title;
        document.getElementById('title').title = title;

        facts();
        formats();
        buttons();
        tabs();
    }


    function facts() {
        const p = profile;
        const list = document.getElementById('facts');

        fact('Status', p.status ? c.make('span',
            { class: p.status >= 400 ? 'tag bad' : 'tag' },
            String(p.status)) : null);
        fact('Captured', c.time(p.start));
        fact('Host', p.host);
        fact('Scope', p.scope === 'request' ? '' : p.scope);
        fact('Mode', p.scope === 'request' ? '' : p.mode);

        if (p.mode === 'object') {
            fact('Allocated', `${c.bytes(p.allocated)} in `
                              + c.number(p.allocations));
            fact('In use at the end', c.bytes(p.in_use));

        } else {
            fact('Wall', c.duration(p.wall));
            fact('CPU', c.duration(p.cpu) + share(p.cpu));
            part('No processor', p.no_processor);
            part('Blocked in a call', p.blocked);
            part('Not running, unknown why', p.wall - p.waited - p.cpu
                                             - p.no_processor - p.blocked);
            fact('Waiting', c.duration(p.waited) + share(p.waited));
        }

        fact('Samples', c.number(p.samples));
        fact('Worker', p.worker ? String(p.worker) : '');

        function fact(name, value) {
            if (value) {
                list.append(c.make('div', null, c.make('dt', null, name),
                                   c.make('dd', null, value)));
            }
        }

        /* parts of less than a two hundredth are left out */

        function part(name, ns) {
            if (p.wall && ns >= p.wall / 200) {
                fact(name, c.duration(ns) + share(ns));
            }
        }

        function share(ns) {
            return p.wall && ns ? ` (${c.percent(ns, p.wall)})` : '';
        }
    }


    function formats() {
        const list = document.getElementById('formats');
        const menu = document.getElementById('menu');

        for (const f of profile.formats) {
            list.append(c.make('li', null,
                c.make('a', {
                        href: `${c.root}${path}/${f.name}`,
                        download: f.download ? '' : `${c.id}.${f.extension}`
                    }, f.text,
                    c.make('span', { class: 'soft' }, '.' + f.extension))));
        }

        document.addEventListener('click', function (e) {
            if (!menu.contains(e.target) || e.target.closest('a')) {
                menu.open = false;
            }
        });

        menu.addEventListener('keydown', function (e) {
            if (e.key === 'Escape' && menu.open) {
                menu.open = false;
                menu.querySelector('summary').focus();
            }
        });
    }


    function buttons() {
        const pin = document.getElementById('pin');

        const link = document.getElementById('link');

        link.hidden = link.pathname === location.pathname;
        c.show('tools', true);
        label();

        pin.addEventListener('click', () => attempt(async function () {
            await c.change('POST',
                           `${path}/${profile.pinned ? 'unpin' : 'pin'}`);
            profile.pinned = !profile.pinned;
            label();
        }));

        names();

        document.getElementById('delete').addEventListener('click',
            () => attempt(async function () {
                if (confirm(`Delete the profile of ${title}?`)) {
                    await c.change('DELETE', path);
                    location.href = c.root + 'profiles';
                }
            }));

        function label() {
            pin.textContent = profile.pinned ? 'Unpin' : 'Pin';
            pin.title = profile.pinned
                ? 'Let newer profiles take its place'
                : 'Keep it when the store is full';
        }
    }


    /* all views contain names, so all are loaded again */

    function names() {
        const button = document.getElementById('names');

        button.hidden = counter('addresses_named') === counter('addresses');

        button.addEventListener('click', () => attempt(async function () {
            button.disabled = true;
            say('Looking up names ...');

            try {
                const r = await c.change('POST', `${path}/names`);
                const found = await r.json();

                if (found.renamed) {
                    profile = await c.get(path + '.json');
                    views();
                }

                say(result(found));

            } catch (e) {
                say('');
                throw e;

            } finally {
                button.disabled = false;
            }
        }));
    }


    function counter(name) {
        return profile.summary.find(item => item.name === name).value;
    }


    function result(found) {
        const left = found.addresses - found.named;

        return (found.renamed
                ? `${c.number(found.renamed)} of `
                  + `${c.number(found.addresses)} addresses have better `
                  + 'names now.'
                : 'No better name was found.')
            + (left ? ` ${c.number(left)} have no exact name.` : '')
            + (found.lost
               ? ` ${c.number(found.lost)} were not looked up in time, `
                 + 'another try may find them.'
               : '');
    }


    function say(text) {
        document.getElementById('said').textContent = text;
    }


    function views() {
        for (const name of Object.keys(panes)) {
            c.clear(document.getElementById(name));
        }

        named();
    }


    async function attempt(action) {
        try {
            await action();
            c.note('');

        } catch (e) {
            c.note(e.message);
        }
    }


    function tabs() {
        const list = Array.from(document.querySelectorAll('[role="tab"]'));

        c.show('tab-viewer', c.viewer);
        c.show('tab-turns', profile.turns);

        if (profile.turns && profile.scope !== 'request') {
            document.getElementById('tab-turns').textContent = 'Event loop';
        }

        for (const name of Object.keys(panes)) {
            const tab = document.getElementById(panes[name].tab);

            tab.addEventListener('click', function () {
                history.replaceState(null, '', '#' + name);
                select(name);
            });
        }

        document.getElementById('tabs').addEventListener('keydown',
            function (e) {
                const there = list.filter(tab => !tab.hidden);
                const i = there.indexOf(e.target);
                const next = { ArrowRight: i + 1, ArrowLeft: i - 1,
                               Home: 0, End: there.length - 1 }[e.key];

                if (i >= 0 && next !== undefined) {
                    const tab = there[(next + there.length) % there.length];

                    e.preventDefault();
                    tab.focus();
                    tab.click();
                }
            });

        window.addEventListener('hashchange', named);
        named();
    }


    /* the buttons of the viewer overlap on a narrow screen */

    function named() {
        const name = location.hash.slice(1);
        const wide = !window.matchMedia('(max-width: 760px)').matches;

        select(panes[name] && (name !== 'viewer' || c.viewer)
               && (name !== 'turns' || profile.turns) ? name
               : c.viewer && wide ? 'viewer' : 'graph');
    }


    function select(name) {
        for (const n of Object.keys(panes)) {
            const tab = document.getElementById(panes[n].tab);

            tab.setAttribute('aria-selected', String(n === name));
            tab.tabIndex = n === name ? 0 : -1;
            c.show(n, n === name);
        }

        const pane = document.getElementById(name);

        if (!pane.childElementCount) {
            panes[name].open(pane);
        }
    }


    async function viewer(pane) {
        const wait = c.make('p', { class: 'empty' }, 'Loading ...');

        pane.append(wait);

        try {
            const r = await c.fetch(`${path}/speedscope`);
            const file = await r.json();

            check(file);
            await c.fetch('viewer/index.html');

            const url = URL.createObjectURL(
                new Blob([JSON.stringify(file)],
                         { type: 'application/json' }));

            c.clear(pane, frame('Viewer', `${c.root}viewer/index.html`
                    + `#profileURL=${encodeURIComponent(url)}`
                    + `&title=${encodeURIComponent(short(title))}`
                    + '&view=' + (profile.scope === 'request'
                                  || !profile.scope ? 'time-ordered'
                                                    : 'left-heavy')));

        } catch (e) {
            c.clear(pane, c.make('p', { class: 'empty' }, e.message));
        }
    }


    /* the viewer draws its title over its buttons */

    function short(text) {
        return text.length > 60 ? text.slice(0, 59) + '\u2026' : text;
    }


    /* the viewer shows nothing for an empty profile */

    function check(file) {
        if (!file.profiles || !file.profiles.some(p => p.endValue > 0)) {
            throw new Error('There is nothing in this profile to view: '
                            + 'it has no samples.');
        }
    }


    function graph(pane) {
        pane.append(c.zoomed(frame('Flamegraph', `${c.root}${path}/html`)));
    }


    function frame(title, src) {
        return c.make('iframe', { title, src });
    }


    function details(pane) {
        const groups = [['Facts', i => i.unit === undefined],
                        ['Counters', i => i.unit !== undefined]];

        const grid = c.make('div', { class: 'cards' });

        for (const [title, test] of groups) {
            const items = profile.summary.filter(test);

            grid.append(c.make('section', { class: 'card' },
                c.make('h2', null, title),
                c.make('table', null, c.make('tbody', null,
                    ...items.map(i => c.make('tr', null,
                        c.make('th', { scope: 'row' }, i.text),
                        c.make('td', { class: i.unit ? 'num' : '' },
                               value(i))))))));
        }

        pane.append(grid);
    }


    function value(item) {
        switch (item.unit) {
        case 'ns':
            return c.duration(item.value);

        case 'hz':
            return c.number(item.value) + ' Hz';

        case 'bytes':
            return c.bytes(item.value);

        case 'count':
            return c.number(item.value);

        default:
            return String(item.value);
        }
    }


    /* the turn log of the worker in the time of the request or the stall */

    async function around(pane) {
        let data;

        try {
            data = await c.get(`turns/${c.id}?format=json`);

        } catch (e) {
            c.clear(pane, c.make('p', { class: 'empty' }, e.message));
            return;
        }

        const map = c.make('div');

        c.clear(pane, map, c.make('p', null, c.make('a',
            { href: `${c.root}turns/${c.id}` },
            'The longest runs, and who delayed whom')));

        const drawn = c.turnMap(map, c.turnLog(data), c.id);

        if (data.about && data.about.request) {
            drawn.pickRequest(data.about.worker, data.about.request);
        }
    }


    /* profiles with the same URI come first */

    async function diff(pane) {
        let list;

        try {
            list = (await c.get('profiles.json')).profiles;

        } catch (e) {
            c.clear(pane, c.make('p', { class: 'empty' }, e.message));
            return;
        }

        const others = list.filter(p => p.id !== c.id)
            .sort((a, b) => same(b) - same(a) || b.start - a.start)
            .slice(0, 50);

        if (!others.length) {
            pane.append(c.make('p', { class: 'empty' },
                               'There is no other profile.'));
            return;
        }

        pane.append(
            c.make('h2', null, 'Compare with'),
            c.make('div', { class: 'wide' }, c.make('table', null,
                c.make('thead', null, c.make('tr', null,
                    ...['Time', 'Request', 'Mode', 'Wall', 'CPU'].map(t =>
                        c.make('th', {
                            scope: 'col',
                            class: /Wall|CPU/.test(t) ? 'num' : ''
                        }, t)))),
                c.make('tbody', null, ...others.map(p => c.make('tr', null,
                    c.make('td', null, c.time(p.start)),
                    c.make('td', null, p.method + ' ', link(p)),
                    c.make('td', null, p.mode),
                    c.make('td', { class: 'num' }, c.duration(p.wall)),
                    c.make('td', { class: 'num' },
                           c.duration(p.cpu))))))));

        function same(p) {
            return (p.uri === profile.uri) + (p.method === profile.method)
                   + (p.scope === profile.scope);
        }

        function link(p) {
            const [a, b] = p.start < profile.start ? [p.id, c.id]
                                                   : [c.id, p.id];

            return c.make('a', { href: `${c.root}diff?a=${a}&b=${b}` },
                          p.uri || p.id);
        }
    }
})();
