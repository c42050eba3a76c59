/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Recordings that the bar starts: of the page, of requests of its scripts, of
 * the next requests, and of an endpoint.
 */

/* the duration of the recording of an endpoint, in s */

const ENDPOINT = 10;

const MODES = {
    wall: ['Wall', 'all of its time, running and waiting'],
    cpu: ['CPU', 'the time it was running'],
    object: ['Object', 'what it allocated']
};

let recording = null;


/*
 * If profiles cannot be stored, links lead to the flamegraph, which replaces
 * the response.  Otherwise a click records a request, and then opens the page
 * of its profile.
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


/* repeats the request with a trigger, and ignores the response */

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

    /* the request ends when the response was read */

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


/*
 * The bar cannot repeat a request that a script has sent: it does not know the
 * body, and the request may change something.  So the next request is
 * recorded.  The console sets a cookie for its path, which asks for the
 * recording.
 */

async function recordNext(method, pathname) {
    const text = `Waiting for the next ${method} ${pathname}`;
    const order = new URLSearchParams({ method, uri: pathname, mode: 'wall' });

    await waiting(text, async signal => {
        const { id, seconds } = await consoleAsks(`bar/order?${order}`,
                                                  signal, 'POST');
        const end = performance.now() + seconds * 1000;

        while (performance.now() < end) {
            await new Promise(done => setTimeout(done, 300));

            const answer = await consoleAsks(`bar/requests?profile=${id}`,
                                             signal);

            if (answer.profiles.length) {
                note(`Recorded ${method} ${pathname}.`, {
                    children: [profileLink(id)]
                });
                return;
            }
        }

        throw new Error('it has not come');

    }, () => consoleAsks(`bar/order?cancel=1&${order}`, null, 'POST'));
}


/* captures the requests of all clients for the page's path, in all workers */

function recordEndpoint() {
    const { pathname } = location;
    const text = `Recording all requests to ${pathname} `
                 + `for ${ENDPOINT} s`;

    return waiting(text, async (signal, tell) => {
        const uri = decodeURI(pathname);
        const polls = setInterval(() => count(uri, signal, tell), 1000);
        let id;

        try {
            ({ id } = await consoleAsks('wall?' + new URLSearchParams({
                uri, seconds: ENDPOINT
            }), signal, 'POST'));

            await stored(id, signal);

        } finally {
            clearInterval(polls);
        }

        note(`Recorded the requests to ${pathname}.`, {
            children: [profileLink(id)]
        });
    });
}


/* tells how many requests the endpoint has so far */

async function count(uri, signal, tell) {
    try {
        const { captures } = await consoleAsks('endpoints', signal);
        const mine = captures.find(one => one.title === uri && !one.wanted);

        tell(mine ? `, ${mine.requests} requests` : '');

    } catch {
        /* the recording itself tells about errors */
    }
}


/*
 * Shows one activity at a time, with its duration and a button to cancel it.
 * The activity may tell how far it is.
 */

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
    let far = '';
    const ticks = setInterval(() => {
        elapsed.textContent = ` ${seconds(performance.now() - start)}${far}`;
    }, 100);

    note(text + '…', {
        progress: text,
        children: [elapsed, button('Cancel', () => {
            abort.abort();
            note();
        }, { 'data-key': 'cancel' })]
    });

    try {
        await act(abort.signal, text => {
            far = text;
        });

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


/* removes the trigger of an earlier profile from the URL */

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


function profilePage(id) {
    return `${page.console}p/${id}`;
}


function profileLink(id) {
    return el('a', {
        href: profilePage(id), text: 'Open the profile',
        target: '_blank', rel: 'noopener', 'data-key': 'profile'
    });
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


async function copy() {
    const url = quoted(profileURL(location.href, 'wall'));
    const command = page.method === 'GET'
        ? `curl -OJ ${url}` : `curl -OJ -X ${page.method} ${url}`;

    try {
        await navigator.clipboard.writeText(command);
        note('Copied.  Add what the site needs to know you, as in'
             + " -b 'name=value'.");

    } catch {

        /* if the bar may not send the request, shows a command to copy */

        const input = el('input', {
            type: 'text', readonly: true, 'aria-label': 'Command',
            'data-key': 'command'
        });

        input.value = command;
        note('Copy this:', { children: [input] });
        input.select();
    }
}


/* quotes a text for a shell */

function quoted(text) {
    return `'${text.replaceAll("'", "'\\''")}'`;
}
