/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads a trace as Chromium's DevTools do:
 *
 *     npm ci && node check.mjs FILE
 *
 * Prints a JSON object: the processes, and the events and flows that the engine
 * has read.
 */

import fs from 'node:fs';
import { TraceModel } from '@paulirish/trace_engine';


const { traceEvents } = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const model = TraceModel.Model.createWithAllHandlers();

await model.parse(traceEvents);

const { Flows, Renderer } = model.parsedTrace().data;

console.log(JSON.stringify({
    threads: [...Renderer.processes].flatMap(([pid, process]) =>
        [...process.threads].map(([tid, thread]) => ({
            pid, tid, name: thread.name,
            events: thread.entries.map(e => ({
                name: e.name, ts: e.ts, dur: e.dur, args: e.args
            }))
        }))),
    flows: Flows.flows.map(flow => flow.map(e => ({
        name: e.name, ts: e.ts, request: e.args.request
    })))
}));
