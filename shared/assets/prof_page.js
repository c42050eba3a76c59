/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The page around the flamegraph: links to the other formats, sortable tables,
 * and names that the user can look up in the picture.
 */

(function () {
    'use strict';

    /* a page around this page has its own heading */

    if (window.parent !== window) {
        document.body.classList.add('framed');
    }

    formats();

    for (const table of document.querySelectorAll('.times')) {
        sortable(table);
    }

    for (const code of document.querySelectorAll('#functions th > code')) {
        lookup(code);
    }

    for (const input of document.querySelectorAll('input[name="mode"]')) {
        input.addEventListener('change', () => heaviestFirst(input.value));

        if (input.checked && !input.defaultChecked) {
            heaviestFirst(input.value);
        }
    }


    /* links to this URL in other formats; a saved page has no such URL */

    function formats() {
        const nav = document.querySelector('.formats');

        if (!nav || !/^https?:$/.test(location.protocol)) {
            return;
        }

        /*
         * the mode can change in several ways, so the links are updated before
         * use
         */

        for (const event of ['pointerover', 'focusin']) {
            nav.addEventListener(event, () => links(nav));
        }

        links(nav);
        nav.hidden = false;
    }


    function links(nav) {
        for (const a of nav.querySelectorAll('[data-format]')) {
            a.href = location.pathname + query(a.dataset.format);
        }
    }


    /* keeps the application's arguments as they are */

    function query(format) {
        const mode = document.querySelector('input[name="mode"]:checked');
        const args = location.search.slice(1).split('&');

        let kept = args.filter(
            arg => arg && !/^profile_format(=|$)/.test(arg));

        if (!mode.defaultChecked) {
            kept = kept.filter(
                arg => !/^(profile|stackprof)_mode(=|$)/.test(arg));
            kept.push('profile_mode=' + mode.dataset.mode);
        }

        if (/[#&]stages=off(&|$)/.test(location.hash)) {
            kept = kept.filter(arg => !/^profile_spans(=|$)/.test(arg));
            kept.push('profile_spans=off');
        }

        kept.push('profile_format=' + format);

        return '?' + kept.join('&');
    }


    function sortable(table) {
        const heads = Array.from(table.tHead.rows[0].cells);

        heads.forEach(function (th, column) {
            if (!th.classList.contains('num')) {
                return;
            }

            const button = document.createElement('button');

            button.type = 'button';
            button.className = 'sort';
            button.textContent = th.textContent;
            th.textContent = '';
            th.appendChild(button);

            button.addEventListener('click', () => sort(table, heads,
                                                        column));
        });
    }


    function heaviestFirst(mode) {
        for (const table of document.querySelectorAll('.times')) {
            const heads = Array.from(table.tHead.rows[0].cells);
            const column = heads.findIndex(
                th => th.classList.contains(mode));

            if (column !== -1) {
                sort(table, heads, column);
            }
        }
    }


    function sort(table, heads, column) {
        const body = table.tBodies[0];
        const value = row => Number(row.cells[column].dataset.value);
        const rows = Array.from(body.rows);

        for (const row of rows.sort((a, b) => value(b) - value(a))) {
            body.appendChild(row);
        }

        heads.forEach((th, i) => i === column
                      ? th.setAttribute('aria-sort', 'descending')
                      : th.removeAttribute('aria-sort'));
    }


    function lookup(code) {
        const name = code.textContent;
        const button = document.createElement('button');

        button.type = 'button';
        button.className = 'lookup';
        button.title = 'Find it in the flamegraph';
        code.replaceWith(button);
        button.appendChild(code);

        button.addEventListener('click', function () {
            const state = new URLSearchParams(location.hash.slice(1));

            state.set('find', '^' + name.replace(/[^\w\s]/g, '\\$&') + '$');
            location.hash = state.toString();
            document.querySelector('.graph').scrollIntoView();
        });
    }
})();
