/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Makes flamegraphs interactive, in a picture and in a page.  The document
 * already contains the boxes, with all of their texts in their titles.  This
 * script adds zoom, search, the order of rows, the keyboard, and switches that
 * omit some sorts of frames.  The state is in the fragment of the URL.
 *
 * A document has one "prof-host" element for the controls, and a "prof-plot"
 * for each mode, which is a measure.  One of the plots is visible.
 *
 * The URL identifies a box by a hash of the names from the outermost function
 * to it, so a link also finds the box in another mode, and in another profile.
 *
 * A picture has no origin, so it cannot send requests.  If a page of the
 * console contains the picture, this script asks that page for the boxes that
 * are hidden below the zoomed one.
 */

(function () {
    'use strict';

    const HTML = 'http://www.w3.org/1999/xhtml';
    const SVG = 'http://www.w3.org/2000/svg';
    const ROW = 18;
    const PAD = 4;
    const CRUMBS = 5;

    /* if more than this part of the zoomed box is hidden, it is requested */

    const DETAIL = 1000;

    const utf8 = new TextEncoder();
    const escapes = {
        '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\'': '&#39;'
    };

    /* the box to which the server has limited the picture, or '' */

    const limit = new URLSearchParams(location.search).get('root') || '';

    /* the sorts of frames that can be omitted, by the class of their boxes */

    const sorts = [
        { key: 'stages', mark: 'h', text: 'stages',
          title: 'Phases, filters and events above functions' },
        { key: 'scripts', mark: 'f', text: 'scripts',
          title: 'Functions of Lua, njs and Perl' },
        { key: 'kernel', mark: 'y', text: 'kernel',
          title: 'System calls and functions of the kernel' },
        { key: 'inferred', mark: 'i', text: 'inferred names',
          title: 'Functions without an exact name, which are known by their'
                 + ' role or source file' }
    ];

    const host = document.querySelector('.prof-host');
    const plots = Array.from(document.querySelectorAll('.prof-plot'), parse);
    const modes = Array.from(document.querySelectorAll('input[name="mode"]'));
    const ui = {};
    const initial = modes.length ? modes.find(m => m.checked).value
                                 : plots.length && plots[0].mode;

    const plain = {
        mode: initial, order: 'icicle', stages: 'on', scripts: 'on',
        kernel: 'on', inferred: 'on', find: '', zoom: ''
    };

    let state = plain;
    let charWidth = 7;

    if (host && plots.length) {
        start();
    }


    function parse(svg) {
        const plot = {
            svg: svg,
            area: svg.querySelector('.prof-area'),
            viewport: svg.querySelector('.prof-zoom'),
            mode: svg.dataset.mode,
            unit: svg.dataset.unit,
            total: Number(svg.dataset.total),
            partial: 'partial' in svg.dataset,
            rows: Array.from(svg.querySelector('.prof-zoom').children),
            boxes: [],
            byElement: new Map(),
            byHash: new Map(),
            bare: new Map() /* plots by omitted sorts */
        };

        let above = [];

        for (const row of plot.rows) {
            const boxes = [];
            let p = 0;

            for (const el of row.children) {
                const x = parseFloat(el.getAttribute('x')) / 100;
                const w = parseFloat(el.getAttribute('width')) / 100;

                while (p < above.length - 1
                       && above[p].x + above[p].w < x + w / 2)
                {
                    p++;
                }

                add(plot, el, x, w, above[p] || null, boxes);
            }

            above = boxes;
        }

        plot.root = plot.boxes[0];
        plot.zoom = plot.root;

        return plot;
    }


    function add(plot, el, x, w, parent, row) {
        const told = el.firstElementChild.textContent.split('\n');
        const label = el.lastElementChild;
        const [n, self] = (el.dataset.n || '').split(' ').map(Number);

        const box = {
            el: el, x: x, w: w, depth: parent ? parent.depth + 1 : 0,
            parent: parent, kids: [],
            name: told[0], weight: told[1], origin: told[2] || '',
            hash: parent ? hash(parent.hash, told[0]) : 0x811c9dc5,
            text: label.localName === 'text' ? label : null,
            n: n, self: self || 0,
            sorts: sorts.filter(sort => el.classList.contains(sort.mark))
                        .map(sort => sort.key),
            shown: null, hit: false,
            child: null,    /* the heaviest */
            index: row.length, row: row
        };

        if (parent) {
            parent.kids.push(box);

            if (!(parent.child && parent.child.w >= w)) {
                parent.child = box;
            }
        }

        row.push(box);
        plot.boxes.push(box);
        plot.byElement.set(el, box);
        plot.byHash.set(box.hash.toString(16), box);

        return box;
    }


    /*
     * Returns the plot without boxes of some sorts.  The callees of these
     * boxes and their own weight move to their callers.  Boxes of one function
     * are merged.
     */

    function strip(plot, off) {
        const bare = Object.assign({}, plot, {
            viewport: plot.viewport.cloneNode(false),
            rows: [], boxes: [], focus: null,
            byElement: new Map(), byHash: new Map(),
            twins: new Map()    /* box of the whole plot -> box */
        });

        let groups = [{
            boxes: [plot.root], parent: null, x: 0, w: 1, n: plot.total
        }];

        while (groups.length) {
            const el = plot.rows[bare.rows.length].cloneNode(false);
            const row = [];
            const below = [];

            for (const group of groups) {
                const found = called(plot, group, off);
                const box = add(bare, merged(plot, group), group.x, group.w,
                                group.parent, row);

                box.first = group.boxes[0];
                group.boxes.concat(group.folded)
                    .forEach(b => bare.twins.set(b, box));
                found.forEach(next => { next.parent = box; });

                el.appendChild(box.el);
                below.push(...found);
            }

            bare.rows.push(el);
            bare.viewport.appendChild(el);
            groups = below;
        }

        bare.root = bare.boxes[0];
        bare.zoom = bare.root;

        plot.svg.appendChild(bare.viewport);

        for (const el of bare.rows) {
            el.setAttribute('role', 'presentation');
        }

        roving(bare, bare.root);

        return bare;
    }


    /*
     * Returns the callees of a group of boxes: direct ones, and callees of
     * omitted boxes.  Omitted boxes become part of the group.
     */

    function called(plot, group, off) {
        const groups = new Map();
        const queue = group.boxes.flatMap(box => box.kids);

        group.folded = [];

        for (const box of queue) {

            if (box.sorts.some(key => off.includes(key))) {
                group.folded.push(box);
                queue.push(...box.kids);
                continue;
            }

            const key = box.name + '\n' + box.origin + '\n'
                        + box.el.classList[0];
            const next = groups.get(key) || { boxes: [], n: 0 };

            groups.set(key, next);
            next.boxes.push(box);
            next.n += box.n;
        }

        const list = Array.from(groups.values());
        let x = group.x;

        list.sort((a, b) => a.boxes[0].name < b.boxes[0].name ? -1 : 1);

        for (const next of list) {
            next.boxes.sort((a, b) => b.n - a.n);
            next.x = x;
            next.w = next.n / plot.total;
            x += next.w;
        }

        return list;
    }


    function merged(plot, group) {
        const first = group.boxes[0];
        const el = first.el.cloneNode(true);

        el.removeAttribute('tabindex');
        el.setAttribute('x', group.x * 100 + '%');
        el.setAttribute('width', group.w * 100 + '%');

        if (group.boxes.length + group.folded.length > 1) {
            const self = group.boxes.concat(group.folded)
                .reduce((sum, box) => sum + box.self, 0);

            el.dataset.n = group.n + (self ? ' ' + self : '');
            el.firstElementChild.textContent = first.name + '\n'
                + (group.parent ? amount(group.n, plot.unit) + ', '
                                  + percent(group.w)
                                : first.weight)
                + (self ? ', self ' + amount(self, plot.unit) : '')
                + (first.origin ? '\n' + first.origin : '');
        }

        return el;
    }


    /* the hash of prof_root.h, over the name in the markup */

    function hash(h, text) {
        const markup = text.replace(/[&<>"']/g, c => escapes[c]);

        for (const byte of utf8.encode(markup + ';')) {
            h = Math.imul(h ^ byte, 0x01000193);
        }

        return h >>> 0;
    }


    function start() {
        for (const el of document.querySelectorAll('.prof-hint')) {
            el.remove();
        }

        controls();

        for (const plot of plots) {
            listen(plot);
        }

        for (const input of modes) {
            input.addEventListener('change', () => go({ mode: input.value }));
        }

        window.addEventListener('resize', () => labels(current()));
        window.addEventListener('hashchange', () => apply(read()));
        window.addEventListener('popstate', () => apply(read()));
        document.addEventListener('keydown', shortcut);

        apply(read());

        if (limit && current().zoom.parent) {
            roving(current(), current().zoom);
            current().zoom.el.focus({ preventScroll: true });
        }
    }


    function element(name, attributes, parent, text) {
        const el = document.createElementNS(HTML, name);

        for (const key of Object.keys(attributes)) {
            el.setAttribute(key, attributes[key]);
        }

        if (text) {
            el.textContent = text;
        }

        if (parent) {
            parent.appendChild(el);
        }

        return el;
    }


    function controls() {
        const root = element('div', { 'class': 'prof-ui' }, host);
        const tools = element('div', { 'class': 'tools' }, root);

        ui.find = element('input', {
            type: 'search', placeholder: 'Search functions  ( / )',
            'aria-label': 'Search functions by text or regular expression',
            spellcheck: 'false', autocomplete: 'off'
        }, tools);

        ui.match = element('output', { 'class': 'match' }, tools);
        ui.shown = element('div', {
            'class': 'shown', role: 'group', 'aria-label': 'Frames to show'
        }, tools);
        ui.sorts = sorts.map(sort => choice(sort, ui.shown));
        ui.order = element('button', { type: 'button' }, tools);
        ui.reset = element('button', { type: 'button' }, tools, 'Reset');
        ui.status = element('div', { 'class': 'status', role: 'status' },
                            root);

        ui.reset.title = 'Show all again, and forget the search (Esc)';

        ui.find.addEventListener('input',
            () => go({ find: ui.find.value }));
        ui.order.addEventListener('click', () => go({
            order: state.order === 'icicle' ? 'flame' : 'icicle'
        }));
        ui.reset.addEventListener('click',
            () => go({ zoom: '', find: '' }, true));
    }


    function choice(sort, parent) {
        const label = element('label', { title: sort.title }, parent);
        const input = element('input', { type: 'checkbox' }, label);

        label.appendChild(document.createTextNode(sort.text));
        input.addEventListener('change', () => leave(sort.key));

        return { key: sort.key, label: label, input: input };
    }


    function listen(plot) {
        const svg = plot.svg;

        svg.classList.add('prof-live');
        svg.setAttribute('role', 'tree');
        svg.setAttribute('aria-label', 'Flamegraph, ' + plot.mode);

        for (const row of plot.rows) {
            row.setAttribute('role', 'presentation');
        }

        roving(plot, plot.root);

        for (const type of ['pointerover', 'focusin']) {
            svg.addEventListener(type, function (e) {
                const box = boxOf(current(), e.target);

                if (box) {
                    tell(current(), box);
                }
            });
        }

        for (const type of ['pointerleave', 'focusout']) {
            svg.addEventListener(type, () => crumbs(current()));
        }

        svg.addEventListener('click', function (e) {
            const box = boxOf(current(), e.target);

            if (box) {
                roving(current(), box);
                box.el.focus({ preventScroll: true });
                zoom(current(), box);
            }
        });

        svg.addEventListener('keydown', e => move(current(), e));
    }


    function boxOf(plot, el) {
        return plot.byElement.get(el) || plot.byElement.get(el.parentNode);
    }


    /* selects the box to which Tab leads, and its name for screen readers */

    function roving(plot, box) {
        if (plot.focus) {
            plot.focus.el.removeAttribute('tabindex');
        }

        plot.focus = box;

        box.el.setAttribute('tabindex', '0');
        box.el.setAttribute('role', 'treeitem');
        box.el.setAttribute('aria-level', box.depth + 1);
        box.el.setAttribute('aria-label', box.name + ', ' + box.weight);
    }


    /* state */

    function read() {
        const found = Object.assign({}, plain);

        for (const [key, value] of
             new URLSearchParams(location.hash.slice(1)))
        {
            if (key in found) {
                found[key] = value;
            }
        }

        return found;
    }


    function go(change, remember) {
        const next = Object.assign({}, state, change);
        const params = new URLSearchParams();

        for (const key of Object.keys(next)) {
            if (next[key] !== plain[key]) {
                params.set(key, next[key]);
            }
        }

        const fragment = '#' + params.toString();

        if (fragment !== (location.hash || '#')) {
            try {
                history[remember ? 'pushState' : 'replaceState'](
                    null, '', fragment);

            } catch (e) {
                location.replace(fragment);
            }
        }

        apply(next);
    }


    function apply(next) {
        state = next;

        for (const input of modes) {
            input.checked = input.value === state.mode;
        }

        const plot = current();

        for (const one of [whole(), ...whole().bare.values()]) {
            if (one !== plot) {
                one.viewport.setAttribute('display', 'none');
            }
        }

        plot.viewport.removeAttribute('display');

        plot.zoom = plot.byHash.get(state.zoom) || plot.root;

        const z = plot.zoom;

        plot.viewport.setAttribute('x', -z.x / z.w * 100 + '%');
        plot.viewport.setAttribute('width', 100 / z.w + '%');

        plot.rows.forEach(function (row, depth) {
            const y = state.order === 'flame' ? plot.rows.length - 1 - depth
                                              : depth;
            row.setAttribute('y', y * ROW);
            row.classList.toggle('prof-above', depth < z.depth);
        });

        if (ui.find.value !== state.find) {
            ui.find.value = state.find;
        }

        ui.order.textContent = state.order === 'flame' ? 'Icicle order'
                                                      : 'Flame order';
        ui.order.title = state.order === 'flame'
                         ? 'Callers above, callees below'
                         : 'Callers below, callees above';

        for (const { key, label, input } of ui.sorts) {
            label.hidden = !has(key);
            input.checked = state[key] !== 'off';
        }

        ui.shown.hidden = ui.sorts.every(one => one.label.hidden);
        ui.reset.disabled = !state.find && z === plot.root;

        search(plot);
        labels(plot);
        crumbs(plot);
        detail(plot);
    }


    /* asks for hidden boxes below the zoomed one, or for those above a limit */

    function detail(plot) {
        const box = plot.zoom.first || plot.zoom;
        const top = whole().byHash.get(limit);
        const above = top && box.depth < top.depth;

        if (window.parent === window
            || !(above || box.parent && hidden(box) > box.n / DETAIL))
        {
            return;
        }

        const root = box.parent ? box.hash.toString(16) : '';

        if (root !== limit) {
            window.parent.postMessage({
                prof: 'root', root: root, state: location.hash.slice(1)
            }, '*');
        }
    }


    function hidden(box) {
        return box.kids.reduce((sum, kid) => sum - kid.n + hidden(kid),
                               box.n - box.self);
    }


    function whole() {
        return plots.find(plot => plot.mode === state.mode) || plots[0];
    }


    function current() {
        return without(sorts.map(sort => sort.key)
                            .filter(key => state[key] === 'off'));
    }


    /* returns whether the plot of the mode has boxes of this sort */

    function has(key) {
        return whole().boxes.some(box => box.sorts.includes(key));
    }


    function without(keys) {
        const plot = whole();
        const off = keys.filter(has);
        const name = off.join();

        if (!off.length) {
            return plot;
        }

        if (!plot.bare.has(name)) {
            plot.bare.set(name, strip(plot, off));
        }

        return plot.bare.get(name);
    }


    /* keeps the zoomed box, or zooms to its nearest caller that is shown */

    function leave(key) {
        const value = state[key] === 'off' ? 'on' : 'off';
        const zoomed = current().zoom;
        const off = sorts.map(sort => sort.key).filter(
            k => (k === key ? value : state[k]) === 'off');

        const next = without(off);
        const from = zoomed.first || zoomed;
        const box = next.twins ? next.twins.get(from) : from;

        go({
            [key]: value,
            zoom: box.parent ? box.hash.toString(16) : ''
        });
    }


    function zoom(plot, box) {
        go({ zoom: box === plot.root ? '' : box.hash.toString(16) }, true);
    }


    /* search */

    function search(plot) {
        const z = plot.zoom;
        let test = null, count = 0, share = 0;

        if (state.find) {
            test = matcher(state.find);
        }

        plot.svg.classList.toggle('prof-searching', test !== null);

        for (const box of plot.boxes) {
            const hit = test !== null && box !== plot.root && test(box.name);
            const covered = box.parent
                            && (box.parent.hit || box.parent.covered);

            if (hit !== box.hit) {
                box.el.classList.toggle('hit', hit);
            }

            box.hit = hit;
            box.covered = covered;

            const part = Math.min(box.x + box.w, z.x + z.w)
                         - Math.max(box.x, z.x);

            if (hit && part > 0) {
                count++;
                share += covered ? 0 : part;
            }
        }

        ui.match.textContent = test === null ? ''
            : (plot.partial ? 'matched at least ' : 'matched ')
              + percent(share / z.w) + ', '
              + amount(share * plot.total, plot.unit) + ', ' + count
              + (count === 1 ? ' box' : ' boxes');
    }


    function matcher(text) {
        try {
            const re = new RegExp(text, 'i');
            return name => re.test(name);

        } catch (e) {
            const lower = text.toLowerCase();
            return name => name.toLowerCase().includes(lower);
        }
    }


    /* texts about a box */

    function tell(plot, box) {
        ui.status.textContent = '';
        element('b', {}, ui.status, box.name);

        let text = '  ' + box.weight;

        if (plot.zoom !== plot.root && box.depth >= plot.zoom.depth) {
            text += ', ' + percent(box.w / plot.zoom.w) + ' of the zoomed';
        }

        if (box.origin) {
            text += '  \u00b7  ' + box.origin;
        }

        ui.status.appendChild(document.createTextNode(text));
    }


    function crumbs(plot) {
        const path = [];

        ui.status.textContent = '';

        if (plot.zoom === plot.root) {
            ui.status.textContent = 'Click a box to zoom in, point at it for'
                + ' its numbers, Tab and arrow keys go from box to box.';
            return;
        }

        for (let box = plot.zoom; box; box = box.parent) {
            path.unshift(box);
        }

        path.forEach(function (box, i) {
            if (i > 0 && i < path.length - CRUMBS) {
                if (i === 1) {
                    ui.status.appendChild(
                        document.createTextNode(' \u203a \u2026'));
                }

                return;
            }

            if (i) {
                ui.status.appendChild(document.createTextNode(' \u203a '));
            }

            const crumb = element('button',
                                  { type: 'button', 'class': 'crumb' },
                                  ui.status, box.name);

            crumb.addEventListener('click', () => zoom(plot, box));
        });
    }


    /* cuts each label to the width of its box */

    function labels(plot) {
        const width = plot.area.getBoundingClientRect().width;
        const z = plot.zoom;
        const scale = width / z.w;

        if (!width) {
            return;
        }

        measure(plot);

        for (const box of plot.boxes) {
            const left = (box.x - z.x) * scale;
            const start = Math.max(left, 0);
            const room = Math.min(left + box.w * scale, width) - start
                         - 2 * PAD;
            const n = Math.floor(room / charWidth);
            let text = '';

            if (n >= 3) {
                text = box.name.length <= n ? box.name
                                            : box.name.slice(0, n - 1)
                                              + '\u2026';
            }

            label(box, text, start - left + PAD);
        }
    }


    function label(box, text, x) {
        if (!box.text) {

            if (!text) {
                return;
            }

            box.text = document.createElementNS(SVG, 'text');
            box.text.setAttribute('y', '12.5');
            box.el.appendChild(box.text);
        }

        if (box.shown !== text) {
            box.text.textContent = text;
            box.shown = text;
        }

        if (box.at !== x) {
            box.text.setAttribute('x', x);
            box.at = x;
        }
    }


    function measure(plot) {
        const text = plot.root.text;

        if (plot.root.shown === null && text.getComputedTextLength) {
            text.textContent = 'm'.repeat(100);
            charWidth = text.getComputedTextLength() / 100 || charWidth;
            text.textContent = '';
            plot.root.shown = '';
        }
    }


    function percent(share) {
        return (share * 100).toFixed(share < 0.1 ? 2 : 1) + '%';
    }


    function amount(n, unit) {
        switch (unit) {

        case 'ns':
            return n < 1e6 ? (n / 1e3).toFixed(1) + ' \u00b5s'
                           : n < 1e10 ? (n / 1e6).toFixed(1) + ' ms'
                                      : (n / 1e9).toFixed(1) + ' s';

        case 'bytes':
            return n < 1024 ? Math.round(n) + ' B'
                            : n < 1024 ** 2 ? (n / 1024).toFixed(1) + ' KB'
                                            : (n / 1024 ** 2).toFixed(1)
                                              + ' MB';

        default:
            return String(Math.round(n));
        }
    }


    /* keyboard */

    function shortcut(e) {
        if (e.ctrlKey || e.metaKey || e.altKey) {
            return;
        }

        if (e.key === '/' && e.target !== ui.find) {
            e.preventDefault();
            ui.find.focus();
            ui.find.select();

        } else if (e.key === 'Escape') {
            const plot = current();

            if (e.target === ui.find && state.find) {
                go({ find: '' });

            } else if (plot.zoom !== plot.root) {
                zoom(plot, plot.zoom.parent);

            } else {
                go({ find: '' });
            }
        }
    }


    function move(plot, e) {
        const box = boxOf(plot, e.target);
        const down = state.order === 'icicle' ? 'ArrowDown' : 'ArrowUp';
        const up = state.order === 'icicle' ? 'ArrowUp' : 'ArrowDown';
        let next;

        if (!box || e.ctrlKey || e.metaKey || e.altKey) {
            return;
        }

        switch (e.key) {

        case down:
            next = box.child;
            break;

        case up:
            next = box.parent;
            break;

        case 'ArrowLeft':
            next = box.row[box.index - 1];
            break;

        case 'ArrowRight':
            next = box.row[box.index + 1];
            break;

        case 'Home':
            next = plot.zoom;
            break;

        case 'Enter':
        case ' ':
            e.preventDefault();
            zoom(plot, box);
            tell(plot, box);
            return;

        default:
            return;
        }

        e.preventDefault();

        if (next) {
            roving(plot, next);
            next.el.focus();
        }
    }
})();
