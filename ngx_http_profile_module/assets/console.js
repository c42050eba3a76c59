/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The common part of the console's pages: requests to the console, numbers as
 * texts, and functions that create elements.  All texts of profiles are
 * inserted as texts, never as markup.
 */

const prof = (function () {
    'use strict';

    const data = document.documentElement.dataset;

    let capturing = null;

    return {
        root: data.root, id: data.id, viewer: data.viewer === 'on',
        get, change, fetch: request, captureNext, make, svg, show, note, clear,
        zoomed, duration, bytes, number, time, percent, sentence, sorter
    };


    /* returns a JSON answer, or throws an Error with the console's message */

    async function get(path) {
        const r = await request(path, { headers: {
            Accept: 'application/json'
        } });

        return r.json();
    }


    async function change(method, path, signal) {
        return request(path, { method, signal, headers: {
            'Accept': 'application/json', 'X-Profile-Console': '1'
        } });
    }


    async function request(path, options) {
        let r;

        try {
            r = await window.fetch(data.root + path,
                            { cache: 'no-store', ...options });

        } catch (e) {
            throw e.name === 'AbortError' ? e
                : new Error('The server does not answer.');
        }

        if (r.ok) {
            return r;
        }

        const text = await r.text();
        let said = '';

        try {
            said = JSON.parse(text).error;

        } catch (e) {
            if (/^text\/plain/.test(r.headers.get('Content-Type'))) {
                said = text;
            }
        }

        throw new Error(said ? sentence(said)
                             : `The server answers ${r.status} `
                               + `${r.statusText}.`);
    }


    /*
     * Captures the next requests of a location, as the query says, and opens
     * their profile.  Another capture ends this one.
     */

    async function captureNext(query, say) {
        const abort = new AbortController();

        if (capturing) {
            capturing.abort();
        }

        capturing = abort;

        say(`Capturing the next ${query.get('requests')} `
            + `requests of ${query.get('location')}, `
            + `at most ${query.get('seconds')} s.`);

        try {
            const r = await change('POST', `wall?${query}`, abort.signal);

            location.href = `${data.root}p/${(await r.json()).id}`;

        } catch (error) {
            if (!abort.signal.aborted) {
                say(error.message);
            }
        }
    }


    function sentence(text) {
        const t = text.trim().replace(/[.]$/, '');

        return t.charAt(0).toUpperCase() + t.slice(1) + '.';
    }


    /* make('td', { class: 'num' }, 'a text', element) */

    function make(name, attributes, ...content) {
        return fill(document.createElement(name), attributes, content);
    }


    function svg(name, attributes, ...content) {
        return fill(document.createElementNS('http://www.w3.org/2000/svg',
                                             name), attributes, content);
    }


    function fill(e, attributes, content) {
        for (const [key, value] of Object.entries(attributes || {})) {
            if (value === true) {
                e.setAttribute(key, '');

            } else if (value !== false && value !== undefined
                       && value !== null)
            {
                e.setAttribute(key, value);
            }
        }

        e.append(...content.filter(c => c !== undefined && c !== null));

        return e;
    }


    function show(id, visible) {
        document.getElementById(id).hidden = !visible;
    }


    function clear(e, ...content) {
        e.replaceChildren(...content);
    }


    /*
     * Loads the part of a flamegraph that its page asks for, see prof_flame.js,
     * and returns the frame.  The page has no origin of its own, so the console
     * would refuse a request of that page.
     */

    function zoomed(frame) {
        const whole = frame.src;

        window.addEventListener('message', function (e) {
            const asked = e.data || {};

            if (e.source !== frame.contentWindow || asked.prof !== 'root'
                || !/^[0-9a-f]{0,8}$/.test(asked.root))
            {
                return;
            }

            const url = new URL(whole);

            if (asked.root) {
                url.searchParams.set('root', asked.root);
            }

            url.hash = asked.state;
            frame.contentWindow.location.replace(url.href);
        });

        return frame;
    }


    /* shows an error; no other part of the page hides it */

    function note(text) {
        const e = document.getElementById('note');

        e.textContent = text || '';
        e.hidden = !text;
    }


    function duration(ns) {
        const units = [['s', 1e9], ['ms', 1e6], ['\u00b5s', 1e3]];

        for (const [unit, size] of units) {
            if (ns >= size) {
                return (ns / size).toFixed(ns >= 1e12 ? 0 : 1) + ' ' + unit;
            }
        }

        return ns ? ns + ' ns' : '0';
    }


    function bytes(n) {
        const units = ['GiB', 'MiB', 'KiB'];

        for (let i = 0; i < units.length; i++) {
            const size = 2 ** (10 * (units.length - i));

            if (n >= size) {
                return (n / size).toFixed(1) + ' ' + units[i];
            }
        }

        return n + ' B';
    }


    function number(n) {
        return n.toLocaleString('en-US');
    }


    function percent(part, whole) {
        return whole ? (100 * part / whole).toFixed(0) + '%' : '';
    }


    /* formats a time, with its date if this is not today */

    function time(ms) {
        const d = new Date(ms);
        const two = n => String(n).padStart(2, '0');
        const clock = two(d.getHours()) + ':' + two(d.getMinutes()) + ':'
                      + two(d.getSeconds());
        const date = d.getFullYear() + '-' + two(d.getMonth() + 1) + '-'
                     + two(d.getDate());
        const today = d.toDateString() === new Date().toDateString();

        return make('time', { datetime: d.toISOString(),
                              title: date + ' ' + clock },
                    today ? clock : date + ' ' + clock);
    }


    /*
     * Turns the headings with data-sort into buttons.  A click calls
     * changed(key, direction); the direction is 1 or -1.
     */

    function sorter(table, key, direction, changed) {
        for (const th of table.tHead.querySelectorAll('[data-sort]')) {
            const button = make('button', { type: 'button', class: 'sort' },
                                th.textContent);

            clear(th, button);

            button.addEventListener('click', function () {
                const first = th.dataset.first === 'up' ? 1 : -1;

                direction = key === th.dataset.sort ? -direction : first;
                key = th.dataset.sort;
                mark();
                changed(key, direction);
            });
        }

        mark();

        function mark() {
            for (const th of table.tHead.querySelectorAll('[data-sort]')) {
                if (th.dataset.sort === key) {
                    th.setAttribute('aria-sort', direction > 0
                                    ? 'ascending' : 'descending');

                } else {
                    th.removeAttribute('aria-sort');
                }
            }
        }
    }
})();
