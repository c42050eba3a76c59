
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A snapshot of the turn log in the trace event format of Chromium: a process
 * for each worker, an event for each run, and a flow through all turns of each
 * request.  Times are microseconds of the monotonic clock.
 *
 * Context: a thread.
 */


#include "console/ngx_http_profile_routes.h"


/* the turns of a request that were written, and that are still to come */

typedef struct {
    uint32_t  before;
    uint32_t  after;
} ngx_http_profile_trace_turns_t;


static void ngx_http_profile_trace_lane(const prof_turns_snapshot_t *s,
    const prof_turns_lane_t *lane, ngx_http_profile_trace_turns_t *turns,
    prof_buf_t *b);
static void ngx_http_profile_trace_name(const prof_turns_lane_t *lane,
    prof_buf_t *b);
static void ngx_http_profile_trace_run(const prof_turns_snapshot_t *s,
    const prof_turns_lane_t *lane, const prof_turns_run_t *run,
    prof_buf_t *b);
static void ngx_http_profile_trace_flow(const prof_turns_lane_t *lane,
    const prof_turns_run_t *run, const char *phase, prof_buf_t *b);
static void ngx_http_profile_trace_head(const prof_turns_lane_t *lane,
    const char *phase, prof_buf_t *b);
static void ngx_http_profile_trace_time(const char *name, uint64_t ns,
    prof_buf_t *b);
static void ngx_http_profile_trace_text(const char *name, const char *text,
    size_t len, prof_buf_t *b);


int
ngx_http_profile_turns_trace(prof_turns_snapshot_t *s, prof_buf_t *b)
{
    uint32_t                         i;
    ngx_http_profile_trace_turns_t  *turns;

    prof_buf_puts(b, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");

    for (i = 0; i < s->nlanes; i++) {

        turns = calloc(s->lanes[i].copy.nrequests + 1,
                       sizeof(ngx_http_profile_trace_turns_t));
        if (turns == NULL) {
            return PROF_ERROR;
        }

        prof_buf_puts(b, i ? ",\n" : "\n");
        ngx_http_profile_trace_name(&s->lanes[i], b);
        ngx_http_profile_trace_lane(s, &s->lanes[i], turns, b);

        free(turns);
    }

    prof_buf_puts(b, "\n]}\n");

    return PROF_OK;
}


static void
ngx_http_profile_trace_lane(const prof_turns_snapshot_t *s,
    const prof_turns_lane_t *lane, ngx_http_profile_trace_turns_t *turns,
    prof_buf_t *b)
{
    size_t                           i;
    const prof_turns_run_t          *run;
    const prof_turns_copy_t         *copy;
    const prof_turns_request_t      *row;
    ngx_http_profile_trace_turns_t  *t;

    copy = &lane->copy;

    for (i = 0; i < copy->nruns; i++) {
        row = prof_turns_find(copy, copy->runs[i].request);

        if (row) {
            turns[row - copy->requests].after++;
        }
    }

    for (i = 0; i < copy->nruns; i++) {
        run = &copy->runs[i];

        if (run->kind == PROF_TURNS_SLEEP) {
            continue;
        }

        ngx_http_profile_trace_run(s, lane, run, b);

        row = prof_turns_find(copy, run->request);

        if (row == NULL) {
            continue;
        }

        t = &turns[row - copy->requests];
        t->after--;

        if (t->before || t->after) {
            ngx_http_profile_trace_flow(lane, run,
                                        t->before == 0 ? "s"
                                        : t->after ? "t" : "f", b);
        }

        t->before++;
    }
}


static void
ngx_http_profile_trace_name(const prof_turns_lane_t *lane, prof_buf_t *b)
{
    ngx_http_profile_trace_head(lane, "M", b);
    prof_buf_printf(b, ",\"name\":\"process_name\","
                       "\"args\":{\"name\":\"nginx worker %u\"}},\n",
                    lane->worker);

    ngx_http_profile_trace_head(lane, "M", b);
    prof_buf_puts(b, ",\"name\":\"thread_name\","
                     "\"args\":{\"name\":\"event loop\"}}");
}


/* runs of a location have one name, so that readers can sum them up */

static void
ngx_http_profile_trace_run(const prof_turns_snapshot_t *s,
    const prof_turns_lane_t *lane, const prof_turns_run_t *run, prof_buf_t *b)
{
    const char                   *handler;
    const prof_turns_request_t   *row;
    const prof_turns_location_t  *location;

    row = prof_turns_find(&lane->copy, run->request);
    location = run->location ? &s->locations[run->location - 1] : NULL;
    handler = run->handler ? s->handlers[run->handler - 1] : NULL;

    prof_buf_puts(b, ",\n");

    if (run->kind != PROF_TURNS_RUN) {
        ngx_http_profile_trace_head(lane, "i", b);
        ngx_http_profile_trace_time("ts", run->start, b);
        prof_buf_printf(b, ",\"s\":\"p\",\"name\":\"%s\"}",
                        run->kind == PROF_TURNS_BEGIN ? "worker begins"
                                                      : "worker ends");
        return;
    }

    ngx_http_profile_trace_head(lane, "X", b);
    ngx_http_profile_trace_time("ts", run->start, b);
    ngx_http_profile_trace_time("dur", run->end - run->start, b);

    if (location) {
        ngx_http_profile_trace_text("name", location->name,
                                    strlen(location->name), b);

    } else {
        ngx_http_profile_trace_text("name", handler ? handler : "event",
                                    strlen(handler ? handler : "event"), b);
    }

    prof_buf_printf(b, ",\"cat\":\"%s\",\"args\":{\"stall_us\":%.3f",
                    run->request ? "request" : "event",
                    (double) run->stall / 1e3);

    if (row) {
        ngx_http_profile_trace_text("request", row->text, row->len, b);
        prof_buf_printf(b, ",\"number\":%u,\"status\":%u", row->number,
                        row->status);
    }

    if (location) {
        ngx_http_profile_trace_text("server", location->server,
                                    strlen(location->server), b);
    }

    if (handler) {
        ngx_http_profile_trace_text("handler", handler, strlen(handler), b);
    }

    prof_buf_puts(b, "}}");
}


/* the begin of a run is within the run, so the flow leads to its event */

static void
ngx_http_profile_trace_flow(const prof_turns_lane_t *lane,
    const prof_turns_run_t *run, const char *phase, prof_buf_t *b)
{
    prof_buf_puts(b, ",\n");
    ngx_http_profile_trace_head(lane, phase, b);
    ngx_http_profile_trace_time("ts", run->start, b);
    prof_buf_printf(b, ",\"id\":\"%u.%u\",\"cat\":\"request\","
                       "\"name\":\"request\",\"bp\":\"e\"}",
                    lane->worker, run->request);
}


/* a worker whose process is not known has the number after its own */

static void
ngx_http_profile_trace_head(const prof_turns_lane_t *lane, const char *phase,
    prof_buf_t *b)
{
    uint32_t  pid;

    pid = lane->pid ? lane->pid : lane->worker + 1;

    prof_buf_printf(b, "{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", phase, pid,
                    pid);
}


static void
ngx_http_profile_trace_time(const char *name, uint64_t ns, prof_buf_t *b)
{
    prof_buf_printf(b, ",\"%s\":%llu.%03u", name,
                    (unsigned long long) ns / 1000, (unsigned) (ns % 1000));
}


static void
ngx_http_profile_trace_text(const char *name, const char *text, size_t len,
    prof_buf_t *b)
{
    prof_buf_printf(b, ",\"%s\":", name);
    prof_text_json(b, text, len);
}
