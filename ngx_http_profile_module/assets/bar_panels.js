/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The panels above the strip: details of the page's request, and the list of
 * requests of its scripts.
 */

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
                title: 'All requests to this path, of all clients, '
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
            text: f ? totalOf(f) : ms(request.entry.duration)
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
