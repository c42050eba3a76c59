/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A turn log for the pages: the runs of each worker in arrays, and what follows
 * from them.  All times are nanoseconds since the first record.
 *
 * A lane is the log of one worker.  A run is a lane and an index of its arrays.
 */

prof.turnLog = function (data) {
    'use strict';

    const WIDTH = data.columns.length;
    const column = name => data.columns.indexOf(name);
    const [START, LENGTH, STALL, REQUEST, LOCATION, HANDLER, CAUSE, KIND,
           FLAGS] = ['start', 'length', 'stall', 'request', 'location',
                     'handler', 'cause', 'kind', 'flags'].map(column);
    const RUN = data.kinds.indexOf('run');
    const DEEPEST = 7;

    const first = data.workers.filter(w => w.runs.length);
    const base = Math.min(...first.map(w => w.runs[START]));

    const servers = new Set(data.locations.map(l => l.server));
    const locations = data.locations.map(l => (l.location || 'no location')
                          + (servers.size > 1 && l.server ? ` (${l.server})`
                                                        : ''));

    const lanes = data.workers.map(lane);

    const log = {
        lanes, locations, handlers: data.handlers, blame: data.blame,
        end: Math.max(0, ...lanes.map(l => l.last)),
        epoch: first.length ? (first[0].epoch + base) / 1e6 : 0,
        times: times(), isRun, isBorder, next, label, place, location, handler,
        cause, row, turns, culprits, longest, find
    };

    return log;


    function lane(w, index) {
        const n = w.runs.length / WIDTH;
        const l = {
            index, n, worker: w.worker, pid: w.pid, alive: w.alive,
            start: new Float64Array(n), end: new Float64Array(n),
            stall: new Float64Array(n), delayed: new Float64Array(n),
            request: new Uint32Array(n), location: new Int32Array(n),
            handler: new Int32Array(n), cause: new Uint8Array(n),
            kind: new Uint8Array(n), flags: new Uint32Array(n),
            depth: new Uint8Array(n), deep: 0, last: 0,
            rows: new Map(w.requests.map(r => [r.number, r])), turns: null
        };
        const outer = [];

        for (let i = 0, k = 0; i < n; i++, k += WIDTH) {
            const start = w.runs[k + START] - base;
            const end = start + w.runs[k + LENGTH];

            l.start[i] = start;
            l.end[i] = end;
            l.stall[i] = w.runs[k + STALL];
            l.request[i] = w.runs[k + REQUEST];
            l.location[i] = w.runs[k + LOCATION];
            l.handler[i] = w.runs[k + HANDLER];
            l.cause[i] = w.runs[k + CAUSE];
            l.kind[i] = w.runs[k + KIND];
            l.flags[i] = w.runs[k + FLAGS];
            l.last = Math.max(l.last, end);

            while (outer.length && outer[outer.length - 1] <= start) {
                outer.pop();
            }

            l.depth[i] = Math.min(outer.length, DEEPEST);
            l.deep = Math.max(l.deep, l.depth[i]);

            if (l.kind[i] === RUN) {
                outer.push(end);
            }
        }

        delays(l);

        return l;
    }


    function isRun(l, i) {
        return l.kind[i] === RUN;
    }


    function isBorder(l, i) {
        return data.kinds[l.kind[i]] === 'begin'
               || data.kinds[l.kind[i]] === 'end';
    }


    /*
     * The time for which a run delayed others is the part of their stalls that
     * it filled.  A run within another one counts as a part of the outer run.
     * "whole" counts the stalls that a run filled from its begin to its end, as
     * differences between one run and the next.
     */

    function delays(l) {
        const whole = new Float64Array(l.n + 1);

        l.tops = [];

        for (let i = 0; i < l.n; i++) {
            if (isRun(l, i) && l.depth[i] === 0) {
                l.tops.push(i);
            }
        }

        for (let i = 0; i < l.n; i++) {
            const [k, end] = l.request[i] && l.stall[i] ? filling(l, i)
                                                        : [0, 0];
            if (k < end) {
                l.delayed[l.tops[k]] += filled(l, i, l.tops[k]);
            }

            if (k + 1 < end) {
                l.delayed[l.tops[end - 1]] += filled(l, i, l.tops[end - 1]);
                whole[k + 1]++;
                whole[end - 1]--;
            }
        }

        for (let k = 0, stalls = 0; k < l.tops.length; k++) {
            const top = l.tops[k];

            stalls += whole[k];
            l.delayed[top] += stalls * (l.end[top] - l.start[top]);
        }
    }


    /* the range of l.tops that reach into the stall of a run */

    function filling(l, i) {
        const { tops, start, end, stall } = l;

        return [search(tops.length,
                       k => end[tops[k]] > start[i] - stall[i]),
                search(tops.length, k => start[tops[k]] >= start[i])];
    }


    function filled(l, i, top) {
        return Math.min(l.end[top], l.start[i])
               - Math.max(l.start[top], l.start[i] - l.stall[i]);
    }


    function search(n, passed) {
        let lo = 0;

        while (lo < n) {
            const mid = (lo + n) >> 1;

            if (passed(mid)) {
                n = mid;

            } else {
                lo = mid + 1;
            }
        }

        return lo;
    }


    /* the first record that may reach into the time that begins then */

    function next(l, time) {
        let i = Math.max(0, search(l.n, k => l.start[k] > time) - 1);

        while (i > 0 && l.depth[i]) {
            i--;
        }

        return i;
    }


    /* [location, time] of all runs, most time first; -1 are runs of none */

    function times() {
        const sums = new Map();

        for (const l of lanes) {
            for (const i of l.tops) {
                sums.set(l.location[i], (sums.get(l.location[i]) || 0)
                                        + l.end[i] - l.start[i]);
            }
        }

        return [...sums].sort((a, b) => b[1] - a[1]);
    }


    function row(l, i) {
        return l.rows.get(l.request[i]);
    }


    function place(location) {
        return location < 0 ? '' : locations[location];
    }


    function location(l, i) {
        return data.locations[l.location[i]];
    }


    function handler(l, i) {
        return l.handler[i] < 0 ? '' : data.handlers[l.handler[i]];
    }


    function label(l, i) {
        const r = row(l, i);

        return (r && r.text) || place(l.location[i]) || handler(l, i)
               || 'an event of no request';
    }


    function cause(l, i) {
        return (data.causes || [])[l.cause[i]] || '';
    }


    /* the indices of the runs of a request */

    function turns(l, number) {
        if (!l.turns) {
            l.turns = new Map();

            for (let i = 0; i < l.n; i++) {
                if (l.request[i]) {
                    const list = l.turns.get(l.request[i]);

                    if (list) {
                        list.push(i);

                    } else {
                        l.turns.set(l.request[i], [i]);
                    }
                }
            }
        }

        return l.turns.get(number) || [];
    }


    /* [run, time] of those that ran while this one could, longest first */

    function culprits(l, i) {
        const [k, end] = filling(l, i);

        return l.tops.slice(k, end).map(top => [top, filled(l, i, top)])
            .sort((a, b) => b[1] - a[1]);
    }


    /* [lane, run] */

    function longest(n) {
        return lanes.flatMap(l => l.tops.map(i => [l, i])
                .sort(([, a], [, b]) => l.end[b] - l.start[b]
                                        - l.end[a] + l.start[a])
                .slice(0, n))
            .sort(([k, a], [l, b]) => l.end[b] - l.start[b]
                                      - k.end[a] + k.start[a])
            .slice(0, n);
    }


    /*
     * Sets l.hit: whether each run has all words.  Returns the number of runs,
     * or -1 if there are no words.
     */

    function find(words) {
        const has = (text, word) => text.toLowerCase().includes(word);
        let found = 0;

        for (const l of lanes) {
            l.hit = words.length ? new Uint8Array(l.n).fill(1) : null;

            for (const word of words) {
                const places = locations.map(text => has(text, word));
                const handlers = data.handlers.map(text => has(text, word));
                const rows = new Map([...l.rows].map(
                    ([number, r]) => [number, has(r.text, word)]));

                for (let i = 0; i < l.n; i++) {
                    l.hit[i] &= places[l.location[i]]
                                || handlers[l.handler[i]]
                                || rows.get(l.request[i]) ? 1 : 0;
                }
            }

            for (let i = 0; l.hit && i < l.n; i++) {
                found += l.hit[i];
            }
        }

        return words.length ? found : -1;
    }
};
