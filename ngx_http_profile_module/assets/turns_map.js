/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The picture of a turn log: a lane for each worker, and a box for each run.
 * prof.turnMap(place, log, self) draws it, and shows the facts of the selected
 * run.  The page of the profile "self" has no link to itself.
 *
 * Runs that are narrower than a pixel share one: its color is that of the
 * longest run, and it is the stronger, the more of its time is used.  So a
 * picture takes as many boxes as the window has pixels, not as there are runs.
 */

prof.turnMap = function (place, log, self) {
    'use strict';

    const c = prof;

    const AXIS = 20;                /* heights */
    const NAME = 18;
    const ROW = log.lanes.length > 8 ? 12 : 20;
    const BELOW = 18;               /* for the time before a run */
    const LETTER = 6.7;             /* width */
    const NEAR = 3;                 /* pixels beside a small box */
    const STALL = 10e6;             /* runs this long are marked */
    const SHORTEST = 1e3;           /* the whole width */
    const COLORS = ['program', 'zlib', 'tls', 'script', 'module', 'library',
                    'kernel', 'unknown'];

    const colors = new Map(log.times.filter(([l]) => l >= 0)
        .slice(0, COLORS.length).map(([l], i) => [l, COLORS[i]]));

    const canvas = c.make('canvas', {
        tabindex: 0, role: 'application', 'aria-label': 'Runs of all workers',
        'aria-describedby': 'turns-keys'
    });
    const tip = c.make('div', { class: 'turns-tip', hidden: true });
    const told = c.make('p', { class: 'turns-told', role: 'status' });
    const facts = c.make('section', { class: 'turns-facts',
                                      'aria-label': 'Selected run' });
    const context = canvas.getContext('2d');

    const pointers = new Map();
    let moved = 0;                  /* pixels since a pointer went down */
    let view = { from: 0, to: log.end };
    let picked = null;              /* { l, i } */
    let hovered = null;
    let theme = {};
    let width = 0;
    let height = AXIS;
    let frame = 0;

    for (const l of log.lanes) {
        l.top = height;
        height += NAME + (l.deep + 1) * ROW + BELOW;
    }

    c.clear(place, legend(),
            c.make('div', { class: 'turns-lanes' }, canvas, tip), told,
            facts, c.make('p', { class: 'soft turns-keys', id: 'turns-keys' },
                          ...keysText()));

    canvas.addEventListener('wheel', wheel, { passive: false });
    canvas.addEventListener('pointerdown', press);
    canvas.addEventListener('pointermove', move);
    canvas.addEventListener('pointerup', release);
    canvas.addEventListener('pointercancel', release);
    canvas.addEventListener('pointerleave', () => hover(null));
    canvas.addEventListener('dblclick', () => picked && zoomTo(picked));
    canvas.addEventListener('keydown', key);

    new ResizeObserver(resize).observe(canvas.parentNode);
    matchMedia('(prefers-color-scheme: dark)')
        .addEventListener('change', resize);

    resize();
    pick(null);

    return { pick, pickRequest, draw: redraw };


    /* outside of the canvas */

    function legend() {
        const list = c.make('ul', { class: 'turns-legend' });

        for (const [location, ns] of log.times) {
            if (colors.has(location)) {
                list.append(entry(colors.get(location), log.place(location),
                                  ns));
            }
        }

        const rest = log.times.filter(([l]) => l >= 0 && !colors.has(l));

        if (rest.length) {
            list.append(entry('all', `${rest.length} other locations`,
                              rest.reduce((n, [, ns]) => n + ns, 0)));
        }

        for (const [, ns] of log.times.filter(([l]) => l < 0)) {
            list.append(entry('libc', 'no location', ns));
        }

        list.append(c.make('li', null, c.make('span', { class: 'long' }),
                           `${c.duration(STALL)} or longer`));

        return c.make('div', { class: 'turns-head' }, list,
                      c.make('div', { class: 'tools' },
                             button('\u2212', 'Zoom out', () => zoom(2)),
                             button('+', 'Zoom in', () => zoom(0.5)),
                             button('All', 'The whole time', whole)));
    }


    function entry(color, text, ns) {
        return c.make('li', null, c.make('span', { class: color }), text,
                      c.make('span', { class: 'soft' }, c.duration(ns)));
    }


    function button(text, label, action) {
        const e = c.make('button', { type: 'button', 'aria-label': label,
                                     title: label }, text);

        e.addEventListener('click', action);

        return e;
    }


    function keysText() {
        const keys = [
            ['\u2190 \u2192', 'run'], ['\u2191 \u2193', 'worker'],
            ['n p', 'turn of the request'], ['+ \u2212', 'zoom'],
            ['Shift \u2190 \u2192', 'move'], ['Enter', 'zoom to the run'],
            ['0', 'all'], ['Esc', 'none']
        ];

        return ['Drag moves, the wheel zooms. '].concat(keys.flatMap(
            ([key, text]) => [...key.split(' ').flatMap(
                k => [c.make('kbd', null, k), ' ']), `${text} \u00a0 `]));
    }


    function tell() {
        if (!picked) {
            told.textContent = log.end
                ? 'Select a run to see its request.'
                : 'Nothing ran in this time.';
            c.clear(facts);
            return;
        }

        const { l, i } = picked;
        const r = log.row(l, i);
        const turns = l.request[i] ? log.turns(l, l.request[i]) : [];
        const list = c.make('dl', { class: 'facts' });
        const fact = (name, value) => value && list.append(
            c.make('div', null, c.make('dt', null, name),
                   c.make('dd', null, value)));

        told.textContent = `${log.label(l, i)}: ${about(l, i).join(', ')}`;

        fact('Location', log.place(l.location[i]));
        fact('Handler', log.handler(l, i));
        fact('Turn', turns.length
                     && `${turns.indexOf(i) + 1} of ${turns.length}`);
        fact('Status', r && r.status);
        fact('Client', r && r.client);
        fact('Upstream', r && r.upstream);
        fact('Waited before', before(l, i));
        fact('Delayed others', l.delayed[i] && c.duration(l.delayed[i]));

        c.clear(facts, list, ...delayedBy(l, i), ...actions(l, i, r));
    }


    /* what is known of each run, as texts */

    function about(l, i) {
        return [
            c.duration(l.end[i] - l.start[i]),
            `worker ${l.worker}`,
            l.stall[i] && `could have run ${c.duration(l.stall[i])} earlier`
        ].filter(Boolean);
    }


    function before(l, i) {
        const last = previous(l, i);

        if (last === undefined) {
            return '';
        }

        const ns = Math.max(0, l.start[i] - l.stall[i] - l.end[last]);

        return `${c.duration(ns)} ${log.cause(l, i)}`;
    }


    function previous(l, i) {
        const turns = l.request[i] ? log.turns(l, l.request[i]) : [];

        return turns[turns.indexOf(i) - 1];
    }


    function delayedBy(l, i) {
        const list = l.stall[i] ? log.culprits(l, i) : [];

        return list.length ? [c.make('p', null, 'Delayed by ',
            ...list.slice(0, 5).flatMap(([by, ns], n) => [
                n ? ', ' : '',
                button(`${log.label(l, by)} ${c.duration(ns)}`,
                       `${log.label(l, by)} ${c.duration(ns)}`,
                       () => pick({ l, i: by }))]),
            list.length > 5 ? `, and ${list.length - 5} more` : '')] : [];
    }


    function actions(l, i, r) {
        const location = log.location(l, i);
        const said = c.make('span', { role: 'status', class: 'soft' });
        const line = c.make('p', { class: 'tools' });

        if (r && r.id && r.id !== self) {
            line.append(c.make('a', { class: 'button',
                                      href: `${c.root}p/${r.id}` },
                               'Profile of this request'));
        }

        if (location) {
            line.append(button('Capture the next 100',
                `Capture the next 100 requests of ${location.location}`,
                () => c.captureNext(new URLSearchParams({
                        requests: 100, seconds: 60,
                        location: location.location,
                        ...(location.server && { server: location.server })
                    }), text => said.textContent = text)), said);
        }

        return line.childElementCount ? [line] : [];
    }


    /* selection */

    function pick(run, into) {
        picked = run;

        if (run && into) {
            zoomTo(run);

        } else if (run) {
            reveal(run);
        }

        tell();
        redraw();
    }


    /* the turn that had to wait longest, or the first one */

    function pickRequest(worker, number) {
        const l = log.lanes.find(k => k.worker === worker
                                      && log.turns(k, number).length);
        const turns = l ? log.turns(l, number) : [];

        if (turns.length) {
            pick({ l, i: turns.reduce((a, b) => l.stall[b] > l.stall[a] ? b
                                                                        : a) },
                 true);
        }
    }


    function zoomTo({ l, i }) {
        const from = l.start[i] - l.stall[i];
        const span = Math.max(l.end[i] - from, SHORTEST);

        look(from - span / 2, l.end[i] + span / 2);
    }


    function reveal({ l, i }) {
        const span = view.to - view.from;

        if (l.end[i] < view.from || l.start[i] > view.to) {
            look(l.start[i] - span / 2, l.start[i] + span / 2);
        }
    }


    function step(direction) {
        const lanes = picked ? [picked.l] : log.lanes;

        for (const l of lanes) {
            for (let i = (picked ? picked.i : -1) + direction;
                 i >= 0 && i < l.n; i += direction)
            {
                if (log.isRun(l, i) && (!l.hit || l.hit[i])) {
                    pick({ l, i });
                    return;
                }
            }
        }
    }


    function turn(direction) {
        const turns = picked ? log.turns(picked.l,
                                         picked.l.request[picked.i]) : [];
        const i = turns[turns.indexOf(picked && picked.i) + direction];

        if (i !== undefined) {
            pick({ l: picked.l, i });
        }
    }


    function other(direction) {
        const at = picked ? picked.l.start[picked.i]
                          : (view.from + view.to) / 2;
        const k = picked ? picked.l.index + direction : 0;
        const l = log.lanes[k];
        let i = l ? log.next(l, at) : 0;

        while (l && i < l.n && !log.isRun(l, i)) {
            i++;
        }

        if (l && i < l.n) {
            pick({ l, i });
        }
    }


    /* the part of the time that is shown */

    function look(from, to) {
        const span = Math.min(Math.max(to - from, SHORTEST), log.end || 1);

        from = Math.min(Math.max(0, (from + to - span) / 2), log.end - span);
        view = { from, to: from + span };
        redraw();
    }


    function whole() {
        look(0, log.end);
    }


    function zoom(factor, at = middle()) {
        look(at - (at - view.from) * factor, at + (view.to - at) * factor);
    }


    function middle() {
        const at = picked ? picked.l.start[picked.i] : -1;

        return at >= view.from && at <= view.to ? at
                                                : (view.from + view.to) / 2;
    }


    function pan(part) {
        const by = (view.to - view.from) * part;
        const there = Math.max(-view.from, Math.min(by, log.end - view.to));

        look(view.from + there, view.to + there);
    }


    function timeAt(px) {
        return view.from + px * (view.to - view.from) / width;
    }


    /* input */

    function wheel(e) {
        e.preventDefault();

        const by = e.deltaX || (e.shiftKey ? e.deltaY : 0);
        const lines = e.deltaMode ? 16 : 1;

        if (by) {
            pan(by * lines / width);

        } else {
            zoom(Math.exp(e.deltaY * lines / 400), timeAt(e.offsetX));
        }
    }


    function press(e) {
        if (e.button === 0) {
            canvas.setPointerCapture(e.pointerId);
            pointers.set(e.pointerId, e.offsetX);
            moved = pointers.size > 1 ? Infinity : 0;
        }
    }


    function move(e) {
        const was = pointers.get(e.pointerId);

        if (was === undefined) {
            hover(runAt(e.offsetX, e.offsetY), e);
            return;
        }

        if (pointers.size === 2) {
            const [other] = [...pointers].filter(([id]) => id !== e.pointerId)
                                         .map(([, x]) => x);
            const before = Math.max(8, Math.abs(was - other));
            const now = Math.max(8, Math.abs(e.offsetX - other));

            zoom(before / now, timeAt(other));

        } else {
            pan((was - e.offsetX) / width);
        }

        moved += Math.abs(was - e.offsetX);
        pointers.set(e.pointerId, e.offsetX);
        hover(null);
    }


    function release(e) {
        if (pointers.delete(e.pointerId) && moved < 5
            && e.type === 'pointerup')
        {
            pick(runAt(e.offsetX, e.offsetY));
        }
    }


    function key(e) {
        const shift = e.shiftKey;
        const actions = {
            ArrowLeft: () => shift ? pan(-0.2) : step(-1),
            ArrowRight: () => shift ? pan(0.2) : step(1),
            ArrowUp: () => other(-1), ArrowDown: () => other(1),
            '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2),
            '0': whole, 'n': () => turn(1), 'p': () => turn(-1),
            Enter: () => picked && zoomTo(picked), Escape: () => pick(null)
        };

        if (actions[e.key] && !e.ctrlKey && !e.metaKey && !e.altKey) {
            e.preventDefault();
            actions[e.key]();
        }
    }


    /* the longest run near this place; wide boxes take their own place only */

    function runAt(px, py) {
        const l = log.lanes.find(k => py >= k.top
            && py < k.top + NAME + (k.deep + 1) * ROW + BELOW);

        if (!l) {
            return null;
        }

        const depth = Math.max(0, Math.min(l.deep,
            Math.floor((py - l.top - NAME) / ROW)));
        const at = timeAt(px);
        const [from, to] = [timeAt(px - NEAR), timeAt(px + NEAR)];
        let best = -1;

        for (let i = log.next(l, from); i < l.n && l.start[i] < to; i++) {
            const length = l.end[i] - l.start[i];

            if (!log.isRun(l, i) || l.depth[i] !== depth || l.end[i] < from) {
                continue;
            }

            if (l.start[i] <= at && l.end[i] >= at && length >= to - from) {
                return { l, i };
            }

            if (best < 0 || length > l.end[best] - l.start[best]) {
                best = i;
            }
        }

        return best < 0 ? null : { l, i: best };
    }


    function hover(run, e) {
        const same = run && hovered && run.l === hovered.l
                     && run.i === hovered.i;

        hovered = run;
        tip.hidden = !run;

        if (!same) {
            redraw();
        }

        if (!run) {
            return;
        }

        const { l, i } = run;
        const wait = before(l, i);
        const lines = [
            log.label(l, i), about(l, i).join(', '), log.place(l.location[i]),
            log.handler(l, i), wait && `waited ${wait} before`
        ].filter(Boolean);

        if (!same) {
            c.clear(tip, ...lines.map(text => c.make('div', null, text)));
        }

        tip.style.left = Math.max(0, Math.min(e.offsetX + 12,
                                       width - tip.offsetWidth - 4)) + 'px';
        tip.style.top = l.top + NAME + (l.deep + 1) * ROW + BELOW + 'px';
    }


    /* drawing */

    function resize() {
        const style = getComputedStyle(document.documentElement);
        const scale = window.devicePixelRatio || 1;

        for (const name of [...COLORS, 'all', 'libc', 'box-fg', 'fg', 'muted',
                            'line', 'panel', 'bg', 'warn', 'accent', 'mono'])
        {
            theme[name] = style.getPropertyValue('--prof-' + name).trim();
        }

        width = canvas.parentNode.clientWidth;
        canvas.width = width * scale;
        canvas.height = height * scale;
        canvas.style.height = height + 'px';
        context.setTransform(scale, 0, 0, scale, 0, 0);

        /* a canvas that was resized is empty until it is drawn */

        paint();
    }


    function redraw() {
        frame = frame || requestAnimationFrame(paint);
    }


    function paint() {
        cancelAnimationFrame(frame);
        frame = 0;

        context.clearRect(0, 0, width, height);
        context.font = `11px ${theme.mono}`;
        context.textBaseline = 'middle';

        axis();
        log.lanes.forEach(lane);

        if (hovered) {
            wait(hovered.l, hovered.i);
        }

        if (picked) {
            request(picked);
        }
    }


    function x(time) {
        return (time - view.from) * width / (view.to - view.from);
    }


    function rowOf(l, depth) {
        return l.top + NAME + depth * ROW;
    }


    /* a tick about every hundred pixels, at round times of the clock */

    function axis() {
        const least = (view.to - view.from) * 110 / width;
        const power = 10 ** Math.floor(Math.log10(least));
        const tick = power * [1, 2, 5, 10].find(n => n * power >= least);
        const digits = Math.max(0, Math.min(9, 9 - Math.floor(
                                                   Math.log10(tick))));
        const offset = (log.epoch * 1e6) % 60e9;

        context.fillStyle = theme.muted;

        for (let at = Math.ceil((view.from + offset) / tick) * tick;
             at <= view.to + offset; at += tick)
        {
            const px = x(at - offset);

            context.fillStyle = theme.line;
            context.fillRect(Math.round(px), 0, 1, height);
            context.fillStyle = theme.muted;
            context.fillText(clock(at - offset, digits), px + 4, AXIS / 2);
        }
    }


    function clock(time, digits) {
        const offset = (log.epoch * 1e6) % 60e9;
        const date = new Date(log.epoch + time / 1e6);
        const two = n => String(n).padStart(2, '0');
        const second = (Math.round(offset + time) % 60e9 / 1e9)
                           .toFixed(digits);

        return `${two(date.getHours())}:${two(date.getMinutes())}:`
               + second.padStart(digits ? digits + 3 : 2, '0');
    }


    function lane(l) {
        const rows = Array.from({ length: l.deep + 1 }, () => null);
        const scale = width / (view.to - view.from);
        const dim = i => l.hit && !l.hit[i];

        context.fillStyle = theme.panel;
        context.fillRect(0, l.top + NAME, width, (l.deep + 1) * ROW);

        context.fillStyle = theme.muted;
        context.fillText(`worker ${l.worker}, process ${l.pid}`
                         + (l.alive ? '' : ', ended'), 4, l.top + NAME / 2);

        for (let i = log.next(l, view.from);
             i < l.n && l.start[i] < view.to; i++)
        {
            if (!log.isRun(l, i)) {
                border(l, i);
                continue;
            }

            const depth = l.depth[i];
            const from = x(l.start[i]);
            const wide = (l.end[i] - l.start[i]) * scale;
            let shared = rows[depth];

            if (wide >= 1.5) {
                flush(l, depth, shared);
                rows[depth] = null;
                box(l, i, from, wide, dim(i));
                continue;
            }

            if (!shared || shared.px !== Math.floor(from)) {
                flush(l, depth, shared);
                shared = rows[depth] = { px: Math.floor(from), used: 0,
                                         longest: -1, wide: 0, dim: true };
            }

            shared.used += wide;

            if (shared.longest < 0 || (shared.dim && !dim(i))
                || (wide > shared.wide && shared.dim === !!dim(i)))
            {
                shared.longest = i;
                shared.wide = wide;
                shared.dim = !!dim(i);
            }
        }

        rows.forEach((shared, depth) => flush(l, depth, shared));
        context.globalAlpha = 1;
    }


    function color(l, i) {
        return theme[l.location[i] < 0 ? 'libc'
                     : colors.get(l.location[i]) || 'all'];
    }


    function flush(l, depth, shared) {
        if (shared) {
            context.globalAlpha = shared.dim ? 0.15
                                  : 0.4 + 0.6 * Math.min(1, shared.used);
            context.fillStyle = color(l, shared.longest);
            context.fillRect(shared.px, rowOf(l, depth) + 1, 1, ROW - 2);
        }
    }


    function box(l, i, from, wide, dim) {
        const left = Math.max(from, -1);
        const right = Math.min(from + wide, width + 1);
        const y = rowOf(l, l.depth[i]);

        context.globalAlpha = dim ? 0.15 : 1;
        context.fillStyle = color(l, i);
        context.fillRect(left, y + 1,
                         right - left - (wide > 4 ? 0.5 : 0), ROW - 2);

        if (right - left > 5 * LETTER && ROW > 12 && !dim) {
            const text = log.label(l, i);
            const fits = Math.floor((right - left - 8) / LETTER);

            context.fillStyle = theme['box-fg'];
            context.fillText(text.length > fits
                             ? text.slice(0, fits - 1) + '\u2026' : text,
                             Math.max(left, 0) + 4, y + ROW / 2);
        }

        if (l.end[i] - l.start[i] >= STALL && l.depth[i] === 0) {
            context.fillStyle = theme.warn;
            context.fillRect(left, l.top + NAME - 3,
                             Math.max(2, right - left), 3);
        }
    }


    /* a process began or ended */

    function border(l, i) {
        if (log.isBorder(l, i)) {
            context.fillStyle = theme.muted;
            context.fillRect(Math.round(x(l.start[i])), l.top, 1,
                             NAME + (l.deep + 1) * ROW);
        }
    }


    /* before a run: the time without events, then that without the worker */

    function wait(l, i) {
        const y = rowOf(l, l.deep + 1) + 7;
        const ready = l.start[i] - l.stall[i];
        const last = previous(l, i);

        if (last !== undefined && l.end[last] < ready) {
            line(l.end[last], ready, y, theme.accent, 1);
            text(l.end[last], ready, y,
                 `${log.cause(l, i)} ${c.duration(ready - l.end[last])}`);
        }

        if (l.stall[i]) {
            line(ready, l.start[i], y, theme.warn, 3);
            text(ready, l.start[i], y, `delayed ${c.duration(l.stall[i])}`);
        }
    }


    function line(from, to, y, color, high) {
        const left = Math.max(-1, x(from));
        const right = Math.min(width + 1, x(to));

        context.fillStyle = color;

        if (right >= left) {
            context.fillRect(left, y, Math.max(1, right - left), high);
        }

        for (const at of [from, to]) {
            context.fillRect(x(at), y - 3, 1, 6 + high);
        }
    }


    function text(from, to, y, what) {
        const left = Math.max(0, x(from));
        const space = Math.min(width, x(to)) - left;
        const wide = what.length * LETTER + 8;

        if (space > wide + 8) {
            context.fillStyle = theme.bg;
            context.fillRect(left + (space - wide) / 2, y - 6, wide, 14);
            context.fillStyle = theme.muted;
            context.fillText(what, left + (space - wide) / 2 + 4, y + 1);
        }
    }


    /* all turns of the selected request are connected */

    function request({ l, i }) {
        const turns = l.request[i] ? log.turns(l, l.request[i]) : [i];

        for (const k of turns) {
            if (l.end[k] >= view.from && l.start[k] <= view.to) {
                context.strokeStyle = theme.fg;
                context.lineWidth = k === i ? 2 : 1;
                context.strokeRect(x(l.start[k]), rowOf(l, l.depth[k]) + 1,
                                   Math.max(1, x(l.end[k]) - x(l.start[k])),
                                   ROW - 2);
            }

            if (l.start[k] >= view.from) {
                wait(l, k);
            }

            if (l.start[k] > view.to) {
                break;
            }
        }
    }
};
