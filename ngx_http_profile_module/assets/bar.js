/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The Performance Bar.  It is loaded by a page of anybody's, so it makes its
 * elements one by one, has styles that no policy forbids, leaves the page's
 * own functions as they are, and shows nothing when something is missing.
 *
 * What it knows of requests is from the console, which is asked by ids: the
 * page's own is an attribute of the script's element, those of its scripts'
 * requests are in a header that browsers hand to scripts (Server-Timing).
 */

(function () {
    'use strict';

    /* the module puts the styles of the bar in here */

    const STYLE = '{{style}}';

    const TAG = 'nginx-performance-bar';
    const STATE = 'nginx-performance-bar';
    const SHORTCUT_MS = 1000;
    const MAX_REQUESTS = 100;

    /* how long to wait for facts that are not there yet, in ms */

    const PATIENCE = [0, 100, 200, 400, 800, 1500, 3000, 6000, 12000, 24000];

    const AFTER_FAILURE = 5;

    /* how long an endpoint is recorded, in s */

    const ENDPOINT = 10;

    const MODES = {
        wall: ['Wall', 'all of its time, running and waiting'],
        cpu: ['CPU', 'the time it was running'],
        object: ['Object', 'what it allocated']
    };

    const PARTS = {
        cpu: 'on CPU',
        preempted: 'running, without the CPU',
        connect: 'waiting for upstream, connect',
        first: 'waiting for upstream, first byte',
        body: 'waiting for upstream, rest',
        stall: 'loop stall: the worker was busy',
        other: 'waiting for the client, or else'
    };

    const script = document.currentScript;

    /* one is enough for all frames of a page */

    if (!script || window.top !== window) {
        return;
    }

    /* scripts that replace a page's body, and not the page, bring another */

    const before = document.documentElement.querySelector(TAG);

    if (before) {
        before.dispatchEvent(new CustomEvent('page', {
            detail: { ...script.dataset }
        }));

        return;
    }

    let page = { ...script.dataset };
    let facts = null;
    let failure = '';
    let forbidden = false;
    let recording = null;
    let timer = 0;
    let attempt = 0;

    const requests = [];
    const wanted = new Set([page.id]);
    const state = restore();
    const ui = build();

    heed();
    observe();
    shortcut();
    show();
    render();
    ask();


    /* elements: nothing is ever made of text by the browser's parser */

    function el(name, properties, ...children) {
        const e = document.createElement(name);

        for (const [key, value] of Object.entries(properties || {})) {
            if (key === 'on') {
                for (const [event, handler] of Object.entries(value)) {
                    e.addEventListener(event, handler);
                }

            } else if (key === 'text') {
                e.textContent = value;

            } else if (value === true) {
                e.setAttribute(key, '');

            } else if (value !== false && value !== undefined
                       && value !== null)
            {
                e.setAttribute(key, value);
            }
        }

        e.append(...children.filter(child => child !== null));

        return e;
    }


    function button(text, handler, properties) {
        return el('button', {
            type: 'button', text, on: { click: handler }, ...properties
        });
    }


    function build() {
        const host = document.createElement(TAG);
        const root = host.attachShadow({ mode: 'open' });
        const sheet = new CSSStyleSheet();

        /* ":root" is not in a shadow tree */

        sheet.replaceSync(STYLE.replaceAll(':root', ':host'));
        root.adoptedStyleSheets = [sheet];

        host.style.cssText = 'all: initial !important;'
                             + 'position: fixed !important;'
                             + 'z-index: 2147483647 !important';

        const u = { host, root };

        u.summary = el('ul');
        u.parts = el('span', { class: 'parts', role: 'img' });
        u.buttons = el('span', {
            class: 'group', role: 'group', 'aria-label': 'Flamegraph',
            hidden: true
        });
        u.details = button('Details', () => toggle('details'), {
            'aria-expanded': 'false', 'aria-controls': 'details'
        });
        u.requests = button('Requests', () => toggle('requests'), {
            'aria-expanded': 'false', 'aria-controls': 'requests'
        });
        u.collapse = button('Hide', () => set({ open: false }), {
            title: 'Collapse the Performance Bar'
        });
        u.note = el('div', { class: 'note', hidden: true });
        u.live = el('div', { role: 'status' }, u.note);
        u.panels = {
            details: el('div', {
                class: 'panel', id: 'details', role: 'group', tabindex: '0',
                'aria-label': 'Details of this page', hidden: true
            }),
            requests: el('div', {
                class: 'panel', id: 'requests', role: 'group', tabindex: '0',
                'aria-label': 'Requests of scripts', hidden: true
            })
        };
        u.pill = button('', () => set({ open: true }), {
            class: 'pill', 'aria-expanded': 'false'
        });
        u.section = el('section', { 'aria-label': 'Performance Bar' },
            u.live, u.panels.details, u.panels.requests,
            el('div', { class: 'strip' },
                u.summary, u.parts, u.buttons, u.details, u.requests,
                u.collapse));

        root.append(el('div', { class: 'root' }, u.section, u.pill));

        host.addEventListener('page', event => turn(event.detail));

        document.documentElement.append(host);

        return u;
    }


    /* the page has become another one */

    function turn(dataset) {
        page = dataset;
        facts = null;
        attempt = 0;
        wanted.add(page.id);
        ui.host.isConnected || document.documentElement.append(ui.host);
        note();
        render();
        ask();
    }


    /* what is remembered; storage may be forbidden */

    function restore() {
        const defaults = { shown: true, open: true, panel: '' };

        try {
            return {
                ...defaults, ...JSON.parse(localStorage.getItem(STATE))
            };

        } catch {
            return defaults;
        }
    }


    function set(changes) {
        Object.assign(state, changes);

        try {
            localStorage.setItem(STATE, JSON.stringify(state));

        } catch {
            /* then it is for this page only */
        }

        const focused = ui.root.activeElement;

        show();

        if (focused && focused.closest('[hidden]')) {
            (state.open ? ui.collapse : ui.pill).focus();
        }
    }


    function show() {
        ui.section.hidden = !state.shown || !state.open;
        ui.pill.hidden = !state.shown || state.open;

        for (const [name, panel] of Object.entries(ui.panels)) {
            panel.hidden = state.panel !== name;
            ui[name].setAttribute('aria-expanded', !panel.hidden);
        }
    }


    function toggle(name) {
        set({ panel: state.panel === name ? '' : name });
    }


    /* the keys "p" and "b", one after the other, outside of texts */

    function shortcut() {
        let pressed = 0;

        document.addEventListener('keydown', function (event) {
            const target = event.composedPath()[0];

            if (event.ctrlKey || event.metaKey || event.altKey
                || event.isComposing
                || (target instanceof Element
                    && (target.matches('input, textarea, select')
                        || target.isContentEditable)))
            {
                pressed = 0;
                return;
            }

            if (event.key === 'p') {
                pressed = event.timeStamp;
                return;
            }

            if (event.key === 'b' && pressed
                && event.timeStamp - pressed < SHORTCUT_MS)
            {
                set({ shown: !state.shown });
            }

            pressed = 0;
        });
    }


    /* a page may permit the script, and not what it asks for */

    function heed() {
        document.addEventListener('securitypolicyviolation', function (event) {
            if (event.effectiveDirective === 'connect-src'
                && event.blockedURI.includes(page.console))
            {
                forbidden = true;
                failure = 'The policy of the page (connect-src) keeps the '
                          + 'bar from asking the console.';
                render();
            }
        });
    }


    /* requests of scripts, without a change to what makes them */

    function observe() {
        if (!window.PerformanceObserver) {
            return;
        }

        new PerformanceObserver(function (list) {
            const before = wanted.size;

            for (const entry of list.getEntries()) {
                const id = (entry.serverTiming || []).find(
                    metric => metric.name === 'profile');

                if (!id || !/^(fetch|xmlhttprequest)$/.test(
                        entry.initiatorType))
                {
                    continue;
                }

                requests.push({ id: id.description, entry, facts: null });
                wanted.add(id.description);

                if (requests.length > MAX_REQUESTS) {
                    wanted.delete(requests.shift().id);
                }
            }

            if (wanted.size > before) {
                attempt = 0;
                render();
                ask();
            }
        }).observe({ type: 'resource', buffered: true });
    }


    /*
     * Facts are there when the request has ended, which for the page's own may
     * be after this script has run.
     */

    function ask() {
        clearTimeout(timer);

        if (wanted.size === 0 || forbidden || attempt >= PATIENCE.length) {
            render();
            return;
        }

        timer = setTimeout(fetchFacts, PATIENCE[attempt++]);
    }


    async function fetchFacts() {
        try {
            const ids = Array.from(wanted).slice(-64).join(',');

            learn(await consoleAsks(`bar/requests?id=${ids}`));
            failure = '';

        } catch (error) {
            failure = failure
                      || `The bar knows nothing: ${error.message}`;

            attempt = Math.max(attempt, AFTER_FAILURE);
        }

        render();
        ask();
    }


    function learn(answer) {
        for (const one of answer.requests) {
            wanted.delete(one.id);

            if (one.id === page.id) {
                facts = one;
            }

            for (const request of requests) {
                if (request.id === one.id) {
                    request.facts = one;
                }
            }
        }
    }


    /* where the time of a request went, in ms: the parts are all of it */

    function partsOf(f) {
        const parts = {};
        const times = f.times;
        const upstream = { connect: 0, first: 0, body: 0 };

        for (const u of f.upstreams) {
            const connect = u.connect || 0;
            const header = Math.max(u.header || 0, connect);
            const response = Math.max(u.response || 0, header);

            upstream.connect += connect;
            upstream.first += header - connect;
            upstream.body += response - header;
        }

        let rest = f.total;

        function take(name, ms) {
            parts[name] = Math.max(0, Math.min(rest, ms));
            rest -= parts[name];
        }

        if (times) {
            rest = times.wall;
            take('cpu', times.cpu);
            take('preempted', times.running - times.cpu);
            take('stall', times.stall);
        }

        take('connect', upstream.connect);
        take('first', upstream.first);
        take('body', upstream.body);
        take('other', rest);

        return parts;
    }


    function render() {
        const focused = ui.root.activeElement;
        const key = focused && focused.dataset.key;

        renderSummary();
        renderButtons();
        renderDetails();
        renderRequests();

        /* what had the focus was made anew */

        if (key && !focused.isConnected) {
            const again = ui.root.querySelector(
                `[data-key="${CSS.escape(key)}"]`);

            if (again) {
                again.focus();
            }
        }
    }


    function total() {
        if (facts) {
            return ms(facts.times ? facts.times.wall : facts.total);
        }

        const [entry] = performance.getEntriesByType('navigation');

        return entry && entry.responseEnd
               ? ms(entry.responseEnd - entry.requestStart) : '…';
    }


    function renderSummary() {
        const items = [];

        function item(name, value, title) {
            items.push(el('li', { title },
                el('span', { class: 'name', text: name + ' ' }),
                el('b', { text: value })));
        }

        item('total', total(), 'from its first byte to the last one sent');

        if (facts) {
            if (facts.times) {
                item('on CPU', ms(facts.times.cpu));
                item('waiting', ms(facts.times.wall - facts.times.running));
            }

            if (facts.upstreams.length) {
                item('upstream', ms(facts.upstreams.reduce(
                    (sum, u) => sum + (u.response || 0), 0)));
            }

            if (facts.times && facts.times.stall >= 0.1) {
                item('stall', ms(facts.times.stall),
                     'it could have run, but the worker was busy');
            }

            item('sent', bytes(facts.sent));

            if (facts.cache) {
                item('cache', facts.cache);
            }

            if (facts.status >= 400) {
                item('status', facts.status);
            }
        }

        ui.summary.replaceChildren(...items);
        ui.pill.textContent = total();
        ui.pill.setAttribute('aria-label',
                             `Performance Bar: ${total()}, expand`);

        ui.parts.hidden = !facts;

        if (facts) {
            const parts = Object.entries(partsOf(facts));
            const sum = parts.reduce((n, [, t]) => n + t, 0);

            ui.parts.replaceChildren(...parts
                .filter(([, t]) => t > 0)
                .map(function ([name, t]) {
                    const span = el('span', { class: name });
                    span.style.width = `${100 * t / sum}%`;
                    return span;
                }));

            const text = parts.filter(([, t]) => t > 0)
                .map(([name, t]) => `${PARTS[name]} ${ms(t)}`).join(', ');

            ui.parts.setAttribute('aria-label', text || 'no time');
            ui.parts.title = text;
        }
    }


    /* without what an earlier profile has asked for */

    function plain(url) {
        const u = new URL(url, location.href);
        const own = new RegExp('^(' + [
            page.arg, 'stackprof_mode', 'profile_mode', 'profile_format'
        ].map(name => name.replace(/[^\w-]/g, '\\$&')).join('|') + ')(=|$)');
        const args = u.search.slice(1).split('&');

        if (page.arg && args.some(arg => arg.startsWith(page.arg + '='))) {
            u.search = args.filter(arg => !own.test(arg)).join('&');
        }

        u.hash = '';

        return u;
    }


    function profileURL(url, mode, action = 'flamegraph') {
        const u = plain(url);

        u.search += (u.search ? '&' : '?')
                    + `${page.arg}=${action}&stackprof_mode=${mode}`;

        return u.href;
    }


    function profileLinks(url, of, options) {
        return page.modes.split(' ').map(mode => el('a', {
            class: 'button',
            href: page.arg ? profileURL(url, mode) : '#',
            text: MODES[mode][0],
            title: `Flamegraph of ${of}: ${MODES[mode][1]}`,
            'aria-label': `${MODES[mode][0]} flamegraph of ${of}`,
            'data-key': `${options.key}-${mode}`,
            on: { click: event => options.click(event, mode) }
        }));
    }


    function renderButtons() {
        ui.buttons.hidden = page.method !== 'GET' || !page.modes
                            || !(page.arg || canRecord());

        if (ui.buttons.hidden) {
            return;
        }

        ui.buttons.replaceChildren(
            el('span', { text: 'Flamegraph' }),
            ...profileLinks(location.href, 'this page', {
                key: 'page',
                click: (event, mode) => clicked(event, () => record({
                    url: location.href, mode, what: 'this page',
                    accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
                    done: id => location.assign(profilePage(id))
                }))
            }));
    }


    /*
     * Links lead to the flamegraph in place of what is asked for.  Where
     * profiles can be stored, clicks record it instead, and then open the
     * page of the profile.
     */

    function canRecord() {
        return page.store !== undefined && !forbidden;
    }


    function clicked(event, act) {
        if (event.ctrlKey || event.metaKey || event.shiftKey
            || !canRecord())
        {
            return;
        }

        event.preventDefault();
        act();
    }


    function profilePage(id) {
        return `${page.console}p/${id}`;
    }


    /* asks once more, with a trigger, and drops what comes */

    function record({ url, mode, what, accept, done }) {
        return waiting(`Recording ${what} once more`, async signal => {
            const id = await recorded(url, mode, accept, signal);

            await stored(id, signal);
            note();
            done(id);

        }, null, page.arg ? [el('a', {
            href: profileURL(url, mode), text: 'Profile in place of it'
        })] : []);
    }


    /* one thing at a time, with the time it takes, and a way out */

    async function waiting(text, act, cancel, otherwise = []) {
        const abort = new AbortController();

        if (recording) {
            recording.abort();
        }

        recording = abort;

        if (cancel) {
            abort.signal.addEventListener('abort', cancel);
        }

        const start = performance.now();
        const elapsed = el('span', { class: 'num', 'aria-hidden': 'true' });
        const ticks = setInterval(() => {
            elapsed.textContent = ` ${seconds(performance.now() - start)}`;
        }, 100);

        note(text + '…', {
            progress: text,
            children: [elapsed, button('Cancel', () => {
                abort.abort();
                note();
            }, { 'data-key': 'cancel' })]
        });

        try {
            await act(abort.signal);

        } catch (error) {
            if (!abort.signal.aborted) {
                note(`Not recorded: ${error.message}`, {
                    warn: true, children: otherwise
                });
            }

        } finally {
            clearInterval(ticks);
        }
    }


    async function recorded(url, mode, accept, signal) {
        const headers = { Accept: accept };

        if (page.header) {
            headers[page.header] = `record; mode=${mode}`;
        }

        const answer = await fetch(page.header ? plain(url)
                                   : profileURL(url, mode, 'record'), {
            headers, signal, cache: 'no-store', credentials: 'same-origin'
        });

        const id = answer.headers.get('X-Profile-Id');

        if (!id) {
            throw new Error(answer.headers.get('X-Profile-Dropped')
                            || `the answer is ${answer.status}, `
                               + 'without a profile');
        }

        /* the request ends when all was read */

        for (const reader = answer.body && answer.body.getReader();
             reader && !(await reader.read()).done; )
        {
            /* void */
        }

        return id;
    }


    /* a profile is stored soon after its request has ended */

    async function stored(id, signal) {
        for (const pause of PATIENCE) {
            await new Promise(done => setTimeout(done, pause));

            const answer = await consoleAsks(`bar/requests?profile=${id}`,
                                             signal);

            if (answer.profiles.length) {
                return;
            }
        }

        throw new Error('the profile is not in the store');
    }


    function note(text, options = {}) {
        ui.note.hidden = !text;
        ui.note.classList.toggle('warn', Boolean(options.warn));

        ui.note.replaceChildren(...(text ? [
            el('span', { text }),
            options.progress
                ? el('progress', { 'aria-label': options.progress }) : null,
            ...(options.children || []),
            options.progress ? null
                : button('Close', () => note(), { 'data-key': 'close' })
        ].filter(Boolean) : []));
    }


    function row(name, value, swatch) {
        return el('tr', null,
            el('th', { scope: 'row' },
                swatch ? el('span', { class: `swatch ${swatch}` }) : null,
                document.createTextNode(name)),
            el('td', { class: swatch === undefined ? null : 'num',
                       text: value }));
    }


    function table(title, rows) {
        return rows.length
               ? el('table', null, el('caption', { text: title }),
                    el('tbody', null, ...rows))
               : null;
    }


    function renderDetails() {
        const columns = [];

        if (facts) {
            columns.push(timesTable(), requestTable(), ...upstreamTables());

        } else if (wanted.has(page.id) && attempt >= PATIENCE.length) {
            columns.push(el('p', {
                text: failure || 'The server knows nothing of this request'
                                 + ' any more; reload the page.'
            }));

        } else {
            columns.push(el('p', {
                text: failure || 'The request has not ended yet.'
            }));
        }

        ui.panels.details.replaceChildren(
            el('div', { class: 'columns' }, ...columns.filter(Boolean),
               el('div', { class: 'actions' }, ...actions(), ...hints())));
    }


    function timesTable() {
        const rows = Object.entries(partsOf(facts))
            .filter(([, t]) => t > 0)
            .map(([name, t]) => row(PARTS[name], ms(t), name));

        if (facts.times) {
            rows.push(row('turns of the worker', facts.times.turns, ''),
                      row('longest turn', ms(facts.times.longest), ''));
        }

        return table('Time', rows);
    }


    function hints() {
        return facts && !facts.times ? [el('p', {
            text: 'profile_accounting on; would tell the time on the CPU, '
                  + 'and how long the worker was busy with others.'
        })] : [];
    }


    function requestTable() {
        const [entry] = performance.getEntriesByType('navigation');
        const rows = [
            row('request', `${facts.method} ${facts.uri}`),
            row('status', facts.status),
            row('sent', bytes(facts.sent)),
            row('received', bytes(facts.received)),
            row('protocol', facts.protocol)
        ];

        if (facts.tls) {
            rows.push(row('TLS', `${facts.tls} ${facts.cipher || ''}`
                          + (facts.tls_reused ? ', resumed' : '')));
        }

        rows.push(row('connection', facts.connection_requests > 1
                      ? `reused: its request ${facts.connection_requests}`
                      : 'new'));

        if (facts.cache) {
            rows.push(row('cache', facts.cache));
        }

        if (entry && entry.domContentLoadedEventEnd) {
            rows.push(row('page ready',
                          ms(entry.domContentLoadedEventEnd)));
        }

        rows.push(row('worker', facts.worker));

        return table('Request', rows);
    }


    function upstreamTables() {
        return facts.upstreams.map(u => table(`Upstream ${u.peer || ''}`, [
            row('status', u.status || '-'),
            row('connect', time(u.connect)),
            row('first byte', time(u.header)),
            row('last byte', time(u.response)),
            row('received', bytes(u.received))
        ]));
    }


    function actions() {
        const list = [el('h2', { text: 'Do' })];

        if (page.profile) {
            list.push(el('p', null, el('a', {
                href: profilePage(page.profile),
                text: 'Open the profile of this page', 'data-key': 'profile'
            })));
        }

        list.push(el('p', null, el('a', {
            href: page.console, text: 'Open the console', 'data-key': 'console'
        })));

        if (canRecord()) {
            list.push(el('p', null,
                button(`This endpoint for ${ENDPOINT} s`, recordEndpoint, {
                    'data-key': 'endpoint',
                    title: 'All requests to this path, of everybody, '
                           + 'by all workers'
                })));
        }

        if (page.arg) {
            list.push(el('p', null,
                button('Copy as curl', copy, { 'data-key': 'curl' })));
        }

        if (page.arg && page.method !== 'GET') {
            list.push(el('p', {
                text: `This page is the answer to a ${page.method}: `
                      + 'it cannot be asked for once more.'
            }));
        }

        list.push(el('p', null, el('kbd', { text: 'p' }), ' ',
                     el('kbd', { text: 'b' }), ' hides and shows the bar'));

        return list;
    }


    /* quoted for a shell */

    function quoted(text) {
        return `'${text.replaceAll("'", "'\\''")}'`;
    }


    async function copy() {
        const url = quoted(profileURL(location.href, 'wall'));
        const command = page.method === 'GET'
            ? `curl -OJ ${url}` : `curl -OJ -X ${page.method} ${url}`;

        try {
            await navigator.clipboard.writeText(command);
            note('Copied.  Add what the site needs to know you, as in'
                 + " -b 'name=value'.");

        } catch {

            /* not permitted here: then by hand */

            const input = el('input', {
                type: 'text', readonly: true, 'aria-label': 'Command',
                'data-key': 'command'
            });

            input.value = command;
            note('Copy this:', { children: [input] });
            input.select();
        }
    }


    function renderRequests() {
        ui.requests.hidden = requests.length === 0;
        ui.requests.textContent = `Requests ${requests.length}`;

        if (requests.length === 0) {
            ui.panels.requests.replaceChildren(
                el('p', { text: 'No script has asked for anything yet.' }));
            return;
        }

        ui.panels.requests.replaceChildren(
            el('table', { class: 'requests' },
                el('caption', { text: 'Requests of scripts' }),
                el('thead', null, el('tr', null,
                    ...['method', 'URL', 'status', 'total', 'on CPU',
                        'upstream', 'size', 'flamegraph'].map(
                        (name, i) => el('th', {
                            scope: 'col', text: name,
                            class: i > 2 && i < 7 ? 'num' : null
                        })))),
                el('tbody', null, ...requests.slice().reverse()
                    .map(requestRow))));
    }


    function requestRow(request) {
        const f = request.facts;
        const url = new URL(request.entry.name);
        const path = url.pathname + url.search;
        const cached = request.entry.transferSize === 0
                       && request.entry.decodedBodySize > 0;

        return el('tr', null,
            el('td', { text: f ? f.method : '…' }),
            el('td', { text: path }),
            el('td', {
                text: cached ? 'browser cache' : f ? f.status : '…'
            }),
            el('td', {
                class: 'num',
                text: ms(f ? (f.times ? f.times.wall : f.total)
                           : request.entry.duration)
            }),
            el('td', {
                class: 'num', text: f && f.times ? ms(f.times.cpu) : '–'
            }),
            el('td', {
                class: 'num',
                text: f && f.upstreams.length
                      ? ms(f.upstreams.reduce(
                          (sum, u) => sum + (u.response || 0), 0)) : '–'
            }),
            el('td', { class: 'num', text: f ? bytes(f.sent) : '…' }),
            el('td', null, requestActions(request, path)));
    }


    function requestActions(request, path) {
        const group = el('span', { class: 'group' });

        const url = new URL(request.entry.name);

        if (request.facts && request.facts.method === 'GET' && page.modes
            && (page.arg || canRecord()))
        {
            group.append(...profileLinks(request.entry.name, path, {
                key: request.id,
                click: (event, mode) => clicked(event, () => record({
                    url: request.entry.name, mode, what: path, accept: '*/*',
                    done: id => note(`Recorded ${path}.`, {
                        children: [profileLink(id)]
                    })
                }))
            }));
        }

        if (request.facts && request.facts.method !== 'GET' && canRecord()) {
            group.append(button('Record the next one', () => recordNext(
                request.facts.method, url.pathname), {
                'data-key': `${request.id}-next`,
                'aria-label': `Record the next ${request.facts.method} ${path}`
            }));
        }

        return group;
    }


    /*
     * What a script has sent cannot be sent once more: the bar does not know
     * it, and it may do something.  So the next one is recorded.
     */

    async function recordNext(method, pathname) {
        const text = `Waiting for the next ${method} ${pathname}`;
        let id = '';

        await waiting(text, async signal => {
            const order = await consoleAsks('bar/order?' + new URLSearchParams({
                method, uri: decodeURI(pathname), mode: 'wall'
            }), signal, 'POST');

            id = order.id;

            for (;;) {
                await new Promise(done => setTimeout(done, 300));

                const answer = await consoleAsks(
                    `bar/requests?order=${id}`, signal);

                if (answer.order === undefined) {
                    throw new Error('it has not come');
                }

                if (answer.order) {
                    await stored(answer.order, signal);
                    note(`Recorded ${method} ${pathname}.`, {
                        children: [profileLink(answer.order)]
                    });
                    return;
                }
            }
        }, () => id && consoleAsks(`bar/order?cancel=${id}`, null, 'POST'));
    }


    /* what others ask of the page's path, in all workers */

    function recordEndpoint() {
        const { pathname } = location;
        const text = `Recording all requests to ${pathname} `
                     + `for ${ENDPOINT} s`;

        return waiting(text, async signal => {
            const { id } = await consoleAsks('wall?' + new URLSearchParams({
                uri: decodeURI(pathname), seconds: ENDPOINT
            }), signal, 'POST');

            await stored(id, signal);
            note(`Recorded the requests to ${pathname}.`, {
                children: [profileLink(id)]
            });
        });
    }


    async function consoleAsks(path, signal, method = 'GET') {
        const answer = await fetch(page.console + path, {
            method, signal, cache: 'no-store', credentials: 'same-origin',
            headers: {
                Accept: 'application/json',
                ...(method === 'GET' ? {} : { 'X-Profile-Console': '1' })
            }
        });

        if (!answer.ok) {
            const { error } = await answer.json().catch(() => ({}));

            throw new Error(error || `the console answers ${answer.status}`);
        }

        return answer.status === 204 ? null : answer.json();
    }


    function profileLink(id) {
        return el('a', {
            href: profilePage(id), text: 'Open the profile',
            target: '_blank', rel: 'noopener', 'data-key': 'profile'
        });
    }


    function seconds(value) {
        return `${(value / 1000).toFixed(1)} s`;
    }


    function time(value) {
        return value === null ? '-' : ms(value);
    }


    function ms(value) {
        if (value >= 10000) {
            return `${(value / 1000).toFixed(1)} s`;
        }

        if (value > 0 && value < 0.1) {
            return `${Math.round(value * 1000)} µs`;
        }

        return value >= 100 || Number.isInteger(value)
               ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`;
    }


    function bytes(value) {
        if (value < 10240) {
            return `${value} B`;
        }

        return value < 10485760 ? `${(value / 1024).toFixed(1)} KB`
                                : `${(value / 1048576).toFixed(1)} MB`;
    }
})();
