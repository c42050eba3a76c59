/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The continuous profile as a heatmap: a column is a slice, a row is a worker,
 * and the color is the part of the time in which the worker used a processor.
 * The URL contains the selected range.
 *
 * Columns are numbers of slices since the Epoch.  A selection has its first
 * and its last column; "anchor" is the one that stays when it is extended.
 */

(function () {
    'use strict';

    const c = prof;
    const MERGED = 6;               /* slices in a merged slice */
    const PAGE = 6;                 /* columns of a jump by Page Up */

    const map = document.getElementById('map');
    const measure = document.getElementById('measure');

    const query = new URLSearchParams(location.search);

    let data = null;
    let columns = { first: 0, last: 0 };
    let picked = null;              /* { first, last, anchor, moving } */
    let marked = null;
    let dragging = false;

    map.addEventListener('pointerdown', press);
    map.addEventListener('pointermove', drag);
    map.addEventListener('pointerup', release);
    map.addEventListener('keydown', key);
    measure.addEventListener('change', open);
    document.addEventListener('visibilitychange', load);

    on('mark', mark);
    on('compare', compare);
    load(true);


    function on(id, handler) {
        document.getElementById(id).addEventListener('click', handler);
    }


    async function load(first) {
        if (document.visibilityState !== 'visible' || dragging) {
            return;
        }

        try {
            data = await c.get('hour.json');
            c.note('');

        } catch (e) {
            c.note(e.message);
            return;
        }

        draw();

        if (first === true) {
            begin();
            setInterval(load, Math.max(data.slice_ms, 5000));
        }
    }


    /* the page begins with the range in its URL */

    function begin() {
        const from = Number(query.get('from')) * 1000;
        const to = Number(query.get('to')) * 1000;

        c.show('hour', true);
        c.show('tools', true);
        c.show('told', true);
        c.show('keys', true);
        legend();
        c.show('measure', data.wall);
        c.show('measure-label', data.wall);
        measure.value = data.wall && query.get('mode') === 'wall' ? 'wall'
                                                                  : 'cpu';
        if (from < to) {
            pick(Math.floor(from / data.slice_ms),
                 Math.ceil(to / data.slice_ms) - 1);
            open();

        } else {
            tell();
        }
    }


    function opacity(use) {
        return Math.min(1, 0.08 + 0.92 * Math.sqrt(use)).toFixed(3);
    }


    function legend() {
        document.getElementById('legend').append(
            ...[0.01, 0.1, 0.25, 0.5, 1].map(use => c.make('span', null,
                c.svg('svg', { 'aria-hidden': 'true' },
                      c.svg('rect', { 'width': '100%', 'height': '100%',
                                      'fill-opacity': opacity(use) })),
                c.percent(use, 1))),
            c.make('span', null, c.svg('svg', { 'aria-hidden': 'true' }),
                   'idle'));
        c.show('legend', true);
    }


    function draw() {
        const size = data.slice_ms;
        const slices = data.slices.map(s => ({
            column: Math.floor(s[0] / size),
            width: Math.max(1, Math.round(s[1] / size)),
            worker: s[2], use: s[3] / (s[1] * 1e6 || 1)
        }));
        const workers = [...new Set(slices.map(s => s.worker))]
            .sort((a, b) => a - b);
        const count = Math.max(1, workers.length);
        const height = Math.max(6, Math.min(24, Math.floor(240 / (count + 1))));

        columns = {
            first: Math.floor((data.now - data.keep_ms) / size),
            last: Math.floor(data.now / size)
        };

        const width = columns.last - columns.first + 1;
        const all = new Map();

        for (const s of slices) {
            for (let i = 0; i < s.width; i++) {
                all.set(s.column + i,
                        (all.get(s.column + i) || 0) + s.use / count);
            }
        }

        const cell = (column, n, row, use) => c.svg('rect', {
            'x': column - columns.first, 'y': row * height + 1, 'width': n,
            'height': height - 2, 'fill-opacity': opacity(use)
        });

        c.clear(map, c.svg('svg', {
                'viewBox': `0 0 ${width} ${(count + 1) * height}`,
                'preserveAspectRatio': 'none', 'aria-hidden': 'true'
            },
            ...[...all].map(([column, use]) => cell(column, 1, 0, use)),
            ...slices.map(s => cell(s.column, s.width,
                                    workers.indexOf(s.worker) + 1, s.use)),
            c.svg('rect', { id: 'marked', class: 'marked' }),
            c.svg('rect', { id: 'picked', class: 'picked' })));

        map.style.height = (count + 1) * height + 'px';

        const labels = height < 12 ? ['all'] : ['all', ...workers];

        c.clear(document.getElementById('rows'), ...labels.map(w => {
            const item = c.make('li', null, w === 'all' ? 'All' : String(w));

            item.style.height = height + 'px';

            return item;
        }));

        axis();
        outline();
    }


    function axis() {
        const steps = 4;
        const items = [];

        for (let i = 0; i <= steps; i++) {
            const column = columns.first
                           + (columns.last + 1 - columns.first) * i / steps;

            items.push(c.make('li', null,
                              clock(column * data.slice_ms).slice(0, 5)));
        }

        c.clear(document.getElementById('axis'), ...items);
    }


    function clock(ms) {
        return new Date(ms).toTimeString().slice(0, 8);
    }


    /* the outlines of the selection and of the mark */

    function outline() {
        for (const [id, range] of [['picked', picked], ['marked', marked]]) {
            const rect = document.getElementById(id);

            if (!rect) {
                continue;
            }

            rect.setAttribute('width',
                              range ? range.last - range.first + 1 : 0);

            if (range) {
                rect.setAttribute('x', range.first - columns.first);
                rect.setAttribute('height', '100%');
            }
        }
    }


    /*
     * Selects columns.  A range has the slices that begin in it, so a selection
     * has whole merged slices.
     */

    function pick(from, to) {
        const limit = n => Math.min(columns.last, Math.max(columns.first, n));
        let first = limit(Math.min(from, to));
        let last = limit(Math.max(from, to));

        for (const s of data.slices) {
            const column = Math.floor(s[0] / data.slice_ms);
            const group = Math.floor(column / MERGED) * MERGED;

            if (s[5] && group <= last && group + MERGED > first) {
                first = Math.min(first, group);
                last = Math.max(last, group + MERGED - 1);
            }
        }

        picked = { first, last, anchor: limit(from), moving: limit(to) };

        outline();
        tell();
    }


    function range(r) {
        return { from: r.first * data.slice_ms,
                 to: (r.last + 1) * data.slice_ms };
    }


    function slicesOf(r) {
        const { from, to } = range(r);

        return data.slices.filter(s => s[0] >= from && s[0] < to);
    }


    function tell() {
        const told = document.getElementById('told');

        document.getElementById('mark').disabled = !picked;
        document.getElementById('compare').disabled = !picked || !marked;

        if (!picked) {
            told.textContent = data.slices.length
                ? 'Select a range of time to see its flamegraph.'
                : 'There are no slices yet: workers that are idle have none.';
            map.setAttribute('aria-valuenow', columns.last);
            map.setAttribute('aria-valuetext', 'nothing is selected');
            return;
        }

        const { from, to } = range(picked);
        const inside = slicesOf(picked);
        const sum = i => inside.reduce((n, s) => n + s[i], 0);
        const text = `${clock(from)} to ${clock(to)}: CPU `
                     + `${c.duration(sum(3))} of all workers, `
                     + `${c.number(sum(4))} samples`;

        told.textContent = text;
        map.setAttribute('aria-valuemin', columns.first);
        map.setAttribute('aria-valuemax', columns.last);
        map.setAttribute('aria-valuenow', picked.moving);
        map.setAttribute('aria-valuetext', text);
    }


    function url(r) {
        const { from, to } = range(r);

        return `${measure.value}?from=${from / 1000}&to=${to / 1000}`;
    }


    function open() {
        if (!picked) {
            return;
        }

        const { from, to } = range(picked);
        const src = `${c.root}${url(picked)}&format=html`;
        const alone = document.getElementById('alone');

        history.replaceState(null, '', `?from=${from / 1000}&to=${to / 1000}`
                                       + `&mode=${measure.value}`);
        const some = slicesOf(picked).length > 0;

        alone.href = src;
        alone.hidden = !some;

        c.clear(document.getElementById('pane'), some
            ? c.zoomed(c.make('iframe',
                              { title: 'Flamegraph of the range', src }))
            : c.make('p', { class: 'empty' },
                     'There are no slices in this range: the workers were '
                     + 'idle, or this time is not kept.'));
    }


    function mark() {
        marked = picked && { ...picked };
        outline();
        tell();
    }


    /* stores both ranges, because the page of comparisons takes profiles */

    async function compare() {
        if (!picked || !marked) {
            return;
        }

        try {
            const a = await (await c.change('POST', url(marked))).json();
            const b = await (await c.change('POST', url(picked))).json();

            location.href = `${c.root}diff?a=${a.id}&b=${b.id}`;

        } catch (e) {
            c.note(e.message);
        }
    }


    function column(e) {
        const box = map.getBoundingClientRect();
        const share = (e.clientX - box.left) / box.width;

        return columns.first
               + Math.floor(share * (columns.last - columns.first + 1));
    }


    function press(e) {
        if (e.button === 0 && data) {
            dragging = true;
            map.setPointerCapture(e.pointerId);
            pick(e.shiftKey && picked ? picked.anchor : column(e), column(e));
        }
    }


    function drag(e) {
        if (dragging) {
            pick(picked.anchor, column(e));
        }
    }


    function release() {
        if (dragging) {
            dragging = false;
            open();
        }
    }


    function key(e) {
        const steps = { ArrowLeft: -1, ArrowRight: 1,
                        PageUp: -PAGE, PageDown: PAGE,
                        Home: -Infinity, End: Infinity };
        const step = steps[e.key];

        if (e.ctrlKey || e.metaKey || e.altKey || !data) {
            return;
        }

        if (step) {
            const at = picked ? (step < 0 ? Math.min(picked.moving,
                                                     e.shiftKey ? Infinity
                                                                : picked.first)
                                          : Math.max(picked.moving,
                                                     e.shiftKey ? -Infinity
                                                                : picked.last))
                              : columns.last - Math.sign(step);

            pick(e.shiftKey && picked ? picked.anchor : at + step, at + step);

        } else if (e.key === 'Enter') {
            open();

        } else if (e.key === 'm') {
            mark();

        } else if (e.key === 'c') {
            compare();

        } else {
            return;
        }

        e.preventDefault();
    }
})();
