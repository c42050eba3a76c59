/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The Performance Bar.  Pages of any site load this script.  So the script
 * creates elements without parsing HTML, uses styles that no policy forbids,
 * does not change functions of the page, and shows nothing if a feature is
 * missing.
 *
 * The console knows the facts of requests by their ids.  The id of the page is
 * an attribute of the script's element.  The ids of requests of the page's
 * scripts are in the header Server-Timing, which browsers show to scripts.
 *
 * The module makes one function of this file and the files beside it, in this
 * order: bar_dom.js, bar_facts.js, bar_orders.js, bar_panels.js, bar.js.
 * STYLE precedes them.
 */

const TAG = 'nginx-performance-bar';
const STATE = 'nginx-performance-bar';
const SHORTCUT_MS = 1000;

let page;
let state;
let ui;

start(document.currentScript);


function start(script) {

    /* a page shows one bar for all of its frames */

    if (!script || window.top !== window) {
        return;
    }

    page = { ...script.dataset };

    /* scripts that replace the page's body insert another element */

    const before = document.documentElement.querySelector(TAG);

    if (before) {
        before.dispatchEvent(new CustomEvent('page', { detail: page }));
        return;
    }

    state = restore();
    ui = build();

    newPage();

    heed();
    observe();
    shortcut();
    show();
    render();
    ask();
}


function build() {
    const host = document.createElement(TAG);
    const root = host.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();

    /* ":root" does not match in a shadow tree */

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


/* called when a script has replaced the page by another page */

function turn(dataset) {
    page = dataset;
    newPage();
    ui.host.isConnected || document.documentElement.append(ui.host);
    note();
    render();
    ask();
}


/* reads the saved state; the page may forbid storage */

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
        /* without storage, the state is valid for this page only */
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


/* the keys "p" and "b" in sequence, outside of text fields */

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


function render() {
    const focused = ui.root.activeElement;
    const key = focused && focused.dataset.key;

    renderSummary();
    renderButtons();
    renderDetails();
    renderRequests();

    /* the focused element was created again */

    if (key && !focused.isConnected) {
        const again = ui.root.querySelector(
            `[data-key="${CSS.escape(key)}"]`);

        if (again) {
            again.focus();
        }
    }
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
            item('on CPU', ms(facts.times.cpu - facts.times.outside));
            item('waiting', ms(facts.times.wall - facts.times.running));
        }

        if (facts.upstreams.length) {
            item('upstream', ms(upstreamOf(facts)));
        }

        if (facts.times && facts.times.stall >= 0.1) {
            const busy = Object.entries(facts.times.busy)
                .filter(([, n]) => n >= 0.1)
                .map(([name, n]) => `${name}: ${ms(n)}`);

            item('stall', ms(facts.times.stall),
                 ['it could have run', ...busy].join(', '));
        }

        if (facts.times && facts.times.outside >= 0.1) {
            item('CPU outside of its turns', ms(facts.times.outside),
                 'its share of the event loop and of its connection, '
                 + 'not a part of the total');
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
