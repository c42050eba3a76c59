/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The facts of the bar: those of the page's own request, and those of requests
 * of its scripts.
 */

const MAX_REQUESTS = 100;

/* ms between attempts to get facts that the console does not have yet */

const PATIENCE = [0, 100, 200, 400, 800, 1500, 3000, 6000, 12000, 24000];

const AFTER_FAILURE = 5;

const PARTS = {
    cpu: 'on CPU',
    queued: 'no processor',
    blocked: 'blocked in a call',
    unknown: 'not running, unknown why',
    connect: 'waiting for upstream, connect',
    first: 'waiting for upstream, first byte',
    body: 'waiting for upstream, rest',
    stall: 'loop stall: the worker was busy',
    other: 'waiting for the client, or else'
};

const requests = [];
const wanted = new Set();

let facts = null;
let failure = '';
let forbidden = false;
let timer = 0;
let attempt = 0;


/* the page's policy may permit the script, but not its requests */

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


/* observes requests of scripts; the functions of the page are not changed */

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


/* called for the first page, and when a script replaced the page */

function newPage() {
    facts = null;
    attempt = 0;
    wanted.add(page.id);
}


/*
 * The facts of a request exist when the request has ended.  The request of the
 * page may end after this script has run.
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


/* returns the parts of a request's time in ms; their sum is its whole time */

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
        take('cpu', times.cpu - times.outside);
        take('queued', times.no_processor);
        take('blocked', times.blocked);
        take('unknown', times.running - times.cpu + times.outside
                        - times.no_processor - times.blocked);
        take('stall', times.stall);
    }

    take('connect', upstream.connect);
    take('first', upstream.first);
    take('body', upstream.body);
    take('other', rest);

    return parts;
}


function total() {
    if (facts) {
        return totalOf(facts);
    }

    const [entry] = performance.getEntriesByType('navigation');

    return entry && entry.responseEnd
           ? ms(entry.responseEnd - entry.requestStart) : '…';
}


/*
 * Returns the time of upstreams in ms.  nginx counts it in whole milliseconds,
 * so it may be longer than the request has waited.
 */

function upstreamOf(f) {
    const sum = f.upstreams.reduce((n, u) => n + (u.response || 0), 0);

    return f.times ? Math.min(sum, f.times.wall - f.times.running) : sum;
}


/* without accounting, the server only measures whole milliseconds */

function totalOf(f) {
    return f.times ? ms(f.times.wall) : f.total ? ms(f.total) : '< 1 ms';
}
