/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Captures of workers.  A capture takes the requested time.  It stops when the
 * user leaves this page.
 */

(function () {
    'use strict';

    const c = prof;

    const menu = document.getElementById('capture');
    const fields = document.getElementById('capture-fields');
    const start = document.getElementById('capture-start');
    const state = document.getElementById('capture-state');
    const field = name => document.getElementById('capture-' + name);

    let running = null;

    menu.addEventListener('toggle', workers, { once: true });

    menu.addEventListener('keydown', function (e) {
        if (e.key === 'Escape') {
            menu.open = false;
            menu.querySelector('summary').focus();
        }
    });

    field('mode').addEventListener('change', () => {
        field('frequency').disabled = field('mode').value === 'object';
    });

    start.addEventListener('click', () => running ? running.abort() : run());


    async function workers() {
        try {
            const status = await c.get('status.json');

            for (const w of status.workers) {
                field('workers').append(
                    c.make('option', { value: w.pid }, String(w.pid)));
            }

        } catch (e) {
            state.textContent = e.message;
        }
    }


    async function run() {
        const seconds = Number(field('seconds').value);

        const query = new URLSearchParams({
            seconds, workers: field('workers').value
        });

        if (!field('frequency').disabled) {
            query.set('frequency', field('frequency').value);
        }

        running = new AbortController();
        fields.disabled = true;
        start.textContent = 'Stop';

        const began = Date.now();
        const clock = setInterval(tick, 250);

        tick();

        try {
            const r = await c.change('POST',
                                     `${field('mode').value}?${query}`,
                                     running.signal);

            location.href = `${c.root}p/${(await r.json()).id}`;

        } catch (e) {
            state.textContent = running.signal.aborted ? 'Stopped.'
                                                       : e.message;
        }

        clearInterval(clock);
        fields.disabled = false;
        start.textContent = 'Start';
        running = null;


        function tick() {
            const left = Math.ceil(seconds - (Date.now() - began) / 1000);

            state.textContent = left > 0 ? `Capturing, ${left} s left`
                                         : 'Waiting for the workers';
        }
    }
})();
