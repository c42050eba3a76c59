/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Creates elements of the Performance Bar, and formats numbers.
 */

/* creates an element; the browser never parses a text as HTML */

function el(name, properties, ...children) {
    const e = document.createElement(name);

    for (const [key, value] of Object.entries(properties || {})) {
        if (key === 'on') {
            for (const [event, handler] of Object.entries(value)) {
                e.addEventListener(event, handler);
            }

        } else if (key === 'text') {
            e.textContent = value;

        } else if (value === true) {
            e.setAttribute(key, '');

        } else if (value !== false && value !== undefined
                   && value !== null)
        {
            e.setAttribute(key, value);
        }
    }

    e.append(...children.filter(child => child !== null));

    return e;
}


function button(text, handler, properties) {
    return el('button', {
        type: 'button', text, on: { click: handler }, ...properties
    });
}


function row(name, value, swatch) {
    return el('tr', null,
        el('th', { scope: 'row' },
            swatch ? el('span', { class: `swatch ${swatch}` }) : null,
            document.createTextNode(name)),
        el('td', { class: swatch === undefined ? null : 'num',
                   text: value }));
}


function table(title, rows) {
    return rows.length
           ? el('table', null, el('caption', { text: title }),
                el('tbody', null, ...rows))
           : null;
}


function seconds(value) {
    return `${(value / 1000).toFixed(1)} s`;
}


function time(value) {
    return value === null ? '-' : ms(value);
}


function ms(value) {
    if (value >= 10000) {
        return `${(value / 1000).toFixed(1)} s`;
    }

    if (value > 0 && value < 0.1) {
        return `${Math.round(value * 1000)} µs`;
    }

    return value >= 100 || Number.isInteger(value)
           ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`;
}


function bytes(value) {
    if (value < 10240) {
        return `${value} B`;
    }

    return value < 10485760 ? `${(value / 1024).toFixed(1)} KB`
                            : `${(value / 1048576).toFixed(1)} MB`;
}
