
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The last seconds of the turn logs of all workers, as JSON.
 *
 * A thread copies the logs.  The event loop then makes a draft of a profile of
 * all handlers, whose names the thread finds before it writes the answer.
 */


#include "core/ngx_http_profile_alive.h"
#include "core/ngx_http_profile_job.h"
#include "turns/ngx_http_profile_turns.h"

#include <string.h>


#define NGX_HTTP_PROFILE_TURNS_SECONDS   2000     /* ms */
#define NGX_HTTP_PROFILE_TURNS_LONGEST   3600000

/* answers that one worker makes at a time */
#define NGX_HTTP_PROFILE_TURNS_ANSWERS   4

/* handlers with a name; a server has some dozens */
#define NGX_HTTP_PROFILE_TURNS_HANDLERS  512

#define NGX_HTTP_PROFILE_TURNS_NONE    ((int32_t) -1)


/* one victim and one culprit of the table of blame, by index */

typedef struct {
    int32_t       victim;       /* locations */
    int32_t       culprit;      /* location, or NONE */
    int32_t       handler;      /* of a culprit without a location */
    int32_t       what;         /* 0: a run, 1: the event loop, 2: the log was
                                   overwritten */
    uint64_t      ns;
    uint64_t      times;
    uint64_t      worst;        /* ns of one victim by one run */
    uint32_t      worst_log;
    uint32_t      worst_victim;    /* numbers of requests */
    uint32_t      worst_culprit;
} ngx_http_profile_blame_t;


typedef struct {
    const prof_turns_log_t               *log;
    const ngx_http_profile_turn_names_t  *names;
    ngx_uint_t                            worker;
    ngx_uint_t                            alive;
    uint32_t                              base;      /* of its locations in the
                                                        answer */
    prof_turns_copy_t                     copy;
} ngx_http_profile_turn_copy_t;


typedef struct {
    ngx_http_profile_job_t                job;
    ngx_http_profile_call_t              *call;      /* NULL: the client left */
    uint64_t                              ms;
    ngx_uint_t                            now;       /* ms since the Epoch */
    ngx_uint_t                            n;
    ngx_http_profile_turn_copy_t         *copies;
    uint32_t                              nhandlers;
    uintptr_t                             handlers[
                                             NGX_HTTP_PROFILE_TURNS_HANDLERS];
    uint32_t                              nodes[
                                             NGX_HTTP_PROFILE_TURNS_HANDLERS];
    prof_profile_t                       *profile;   /* of the handlers */
    ngx_http_profile_blame_t             *blame;
    uint32_t                              nblame;
    uint32_t                              blame_size;
    uint32_t                              at;        /* copy that is blamed */
    unsigned                              failed:1;
    prof_buf_t                            out;
    ngx_http_profile_gzip_t               gzip;
} ngx_http_profile_turns_answer_t;


static ngx_int_t ngx_http_profile_turns_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_turns_copies(
    ngx_http_profile_turns_answer_t *a);
static void ngx_http_profile_turns_abort(ngx_http_profile_call_t *call);
static void ngx_http_profile_turns_read(void *data);
static void ngx_http_profile_turns_was_read(void *data);
static void ngx_http_profile_turns_write(void *data);
static void ngx_http_profile_turns_done(void *data);
static void ngx_http_profile_turns_free(void *data);
static int32_t ngx_http_profile_turns_handler(
    ngx_http_profile_turns_answer_t *a, uintptr_t function);
static int32_t ngx_http_profile_turns_location(
    ngx_http_profile_turn_copy_t *c, uint32_t number);
static void ngx_http_profile_turns_blamed(void *data, size_t victim,
    size_t culprit, uint64_t ns);
static ngx_http_profile_blame_t *ngx_http_profile_turns_cell(
    ngx_http_profile_turns_answer_t *a, ngx_http_profile_blame_t *key);
static void ngx_http_profile_turns_names_json(
    ngx_http_profile_turns_answer_t *a);
static void ngx_http_profile_turns_log_json(
    ngx_http_profile_turns_answer_t *a, ngx_http_profile_turn_copy_t *c);
static void ngx_http_profile_turns_run_json(
    ngx_http_profile_turns_answer_t *a, ngx_http_profile_turn_copy_t *c,
    const prof_turns_run_t *run);
static void ngx_http_profile_turns_request_json(
    ngx_http_profile_turns_answer_t *a, ngx_http_profile_turn_copy_t *c,
    const prof_turns_request_t *row);
static void ngx_http_profile_turns_address_json(prof_buf_t *b,
    const char *name, const prof_turns_address_t *address);
static void ngx_http_profile_turns_blame_json(
    ngx_http_profile_turns_answer_t *a);


const ngx_http_profile_route_t  ngx_http_profile_turns_routes[] = {

    { ngx_string("turns"), NGX_HTTP_GET,
      ngx_http_profile_turns_route,
      "the last seconds of the turn log of all workers, and who delayed whom, "
      "as JSON: seconds=", 0 },

    { ngx_null_string, 0, NULL, NULL, 0 }
};


static ngx_uint_t  ngx_http_profile_turns_nanswers;


static ngx_int_t
ngx_http_profile_turns_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                         rc, ms;
    ngx_str_t                         value;
    ngx_time_t                       *tp;
    ngx_http_profile_turns_answer_t  *a;

    ms = NGX_HTTP_PROFILE_TURNS_SECONDS;

    rc = ngx_http_profile_call_arg(call, "seconds", &value);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_OK) {
        ms = ngx_atofp(value.data, value.len, 3);

        if (ms < 1 || ms > NGX_HTTP_PROFILE_TURNS_LONGEST) {
            return ngx_http_profile_call_wrong(call, "seconds", &value,
                                               "a number from 0.001 to 3600");
        }
    }

    if (!ngx_http_profile_logs_turns()) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                   "there is no turn log, \"profile_turn_log on\" in the "
                   "\"http\" block makes one");
    }

    if (ngx_http_profile_turns_nanswers >= NGX_HTTP_PROFILE_TURNS_ANSWERS) {
        return ngx_http_profile_answer_no_job(call, NGX_BUSY);
    }

    a = ngx_calloc(sizeof(ngx_http_profile_turns_answer_t),
                   call->request->connection->log);
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    prof_buf_init(&a->out);

    tp = ngx_timeofday();

    a->ms = (uint64_t) ms;
    a->now = (ngx_uint_t) tp->sec * 1000 + tp->msec;
    a->gzip.accepted = ngx_http_profile_accept_gzip(call->request);

    if (ngx_http_profile_turns_copies(a) != NGX_OK) {
        ngx_free(a);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->job.work = ngx_http_profile_turns_read;
    a->job.done = ngx_http_profile_turns_was_read;
    a->job.data = a;
    a->job.rank = NGX_HTTP_PROFILE_JOB_ASKED;
    a->job.size = sizeof(ngx_http_profile_turns_answer_t);

    rc = ngx_http_profile_job_start(&a->job);

    if (rc != NGX_OK) {
        ngx_http_profile_turns_free(a);
        return ngx_http_profile_answer_no_job(call, rc);
    }

    ngx_http_profile_turns_nanswers++;

    rc = ngx_http_profile_call_hold(call, ngx_http_profile_turns_abort, a);

    if (rc == NGX_DONE) {
        a->call = call;
    }

    return rc;
}


/* a place for each log, with the names of its locations */

static ngx_int_t
ngx_http_profile_turns_copies(ngx_http_profile_turns_answer_t *a)
{
    uint32_t                             base;
    ngx_uint_t                           i, k;
    ngx_http_profile_turn_copy_t        *c;
    const ngx_http_profile_turn_ring_t  *rings;

    rings = ngx_http_profile_turns_rings(&a->n);

    a->copies = ngx_calloc(a->n * sizeof(ngx_http_profile_turn_copy_t),
                           ngx_cycle->log);
    if (a->copies == NULL) {
        return NGX_ERROR;
    }

    base = 0;

    for (i = 0; i < a->n; i++) {
        c = &a->copies[i];

        c->worker = rings[i].worker;
        c->log = rings[i].log;
        c->names = ngx_http_profile_turns_names(c->log);
        c->base = base;

        /* logs of one configuration share their names */

        for (k = 0; k < i; k++) {
            if (a->copies[k].names == c->names) {
                c->base = a->copies[k].base;
                break;
            }
        }

        if (k == i && c->names) {
            base += (uint32_t) c->names->n;
        }
    }

    return NGX_OK;
}


static void
ngx_http_profile_turns_abort(ngx_http_profile_call_t *call)
{
    ngx_http_profile_turns_answer_t  *a;

    a = call->data;
    a->call = NULL;

    if (ngx_http_profile_job_cancel(&a->job) == NGX_OK) {
        ngx_http_profile_turns_done(a);
    }
}


/* in the thread: copies the logs, and collects the handlers */

static void
ngx_http_profile_turns_read(void *data)
{
    ngx_http_profile_turns_answer_t *a = data;

    size_t                         k;
    uint64_t                       from;
    ngx_uint_t                     i;
    ngx_http_profile_turn_copy_t  *c;

    from = prof_now();
    from -= ngx_min(from, a->ms * 1000000);

    for (i = 0; i < a->n; i++) {
        c = &a->copies[i];

        if (prof_turns_read(c->log, from, &c->copy) != PROF_OK) {
            a->failed = 1;
            return;
        }

        c->alive = ngx_http_profile_alive(c->copy.log.owner);

        /* another worker may have taken the log since the names were found */

        if (c->names && c->names->tag != c->copy.log.tag) {
            c->names = NULL;
        }

        for (k = 0; k < c->copy.nruns; k++) {
            (void) ngx_http_profile_turns_handler(a,
                                      (uintptr_t) c->copy.runs[k].handler);
        }
    }
}


/* returns the index of the handler, which is added, or -1 */

static int32_t
ngx_http_profile_turns_handler(ngx_http_profile_turns_answer_t *a,
    uintptr_t function)
{
    uint32_t  i;

    if (function == 0) {
        return NGX_HTTP_PROFILE_TURNS_NONE;
    }

    for (i = 0; i < a->nhandlers; i++) {
        if (a->handlers[i] == function) {
            return (int32_t) i;
        }
    }

    if (i == NGX_HTTP_PROFILE_TURNS_HANDLERS || a->profile) {
        return NGX_HTTP_PROFILE_TURNS_NONE;
    }

    a->handlers[a->nhandlers++] = function;

    return (int32_t) i;
}


/* the logs were read; addresses of functions are resolved in the event loop */

static void
ngx_http_profile_turns_was_read(void *data)
{
    ngx_http_profile_turns_answer_t *a = data;

    if (a->call == NULL || !a->job.worked || a->failed) {
        ngx_http_profile_turns_done(a);
        return;
    }

    a->profile = prof_process_addresses(a->handlers, a->nhandlers, a->nodes);

    a->job.work = ngx_http_profile_turns_write;
    a->job.done = ngx_http_profile_turns_done;

    if (ngx_http_profile_job_start(&a->job) != NGX_OK) {
        a->failed = 1;
        ngx_http_profile_turns_done(a);
    }
}


/* in the thread */

static void
ngx_http_profile_turns_write(void *data)
{
    ngx_http_profile_turns_answer_t *a = data;

    prof_buf_t  *b;
    ngx_uint_t   i;

    if (a->profile) {
        (void) prof_profile_symbolize(a->profile);
    }

    for (i = 0; i < a->n; i++) {
        a->at = (uint32_t) i;

        if (prof_turns_blame(&a->copies[i].copy,
                             ngx_http_profile_turns_blamed, a)
            != PROF_OK)
        {
            a->failed = 1;
            return;
        }
    }

    b = &a->out;

    prof_buf_printf(b, "{\"version\":%d,\"seconds\":%.3f,\"now\":%llu,",
                    PROF_TURNS_VERSION, (double) a->ms / 1000,
                    (unsigned long long) a->now);
    prof_buf_puts(b, "\"columns\":[\"start\",\"length\",\"stall\",\"request\","
                     "\"location\",\"handler\",\"cause\",\"kind\",\"flags\"],"
                     "\"kinds\":[\"run\",\"sleep\",\"begin\",\"end\"],"
                     "\"flags\":{");
    prof_buf_printf(b, "\"first\":%d,\"last\":%d,\"subrequest\":%d,"
                       "\"nested\":%d,\"accept\":%d,\"tls\":%d,\"timer\":%d},",
                    PROF_TURNS_FIRST, PROF_TURNS_LAST, PROF_TURNS_SUBREQUEST,
                    PROF_TURNS_NESTED, PROF_TURNS_ACCEPT, PROF_TURNS_TLS,
                    PROF_TURNS_TIMER);

    ngx_http_profile_turns_names_json(a);

    prof_buf_puts(b, ",\"workers\":[");

    for (i = 0; i < a->n; i++) {
        prof_buf_puts(b, i ? "," : "");
        ngx_http_profile_turns_log_json(a, &a->copies[i]);
    }

    prof_buf_puts(b, "],\"blame\":[");
    ngx_http_profile_turns_blame_json(a);
    prof_buf_puts(b, "]}\n");

    a->gzip.compressible = 1;

    if (!prof_buf_failed(b)) {
        ngx_http_profile_gzip(b, &a->gzip);
    }
}


/* returns the index of the location in the answer, or -1 */

static int32_t
ngx_http_profile_turns_location(ngx_http_profile_turn_copy_t *c,
    uint32_t number)
{
    if (c->names == NULL || number == 0 || number > c->names->n) {
        return NGX_HTTP_PROFILE_TURNS_NONE;
    }

    return (int32_t) (c->base + number - 1);
}


static void
ngx_http_profile_turns_blamed(void *data, size_t victim, size_t culprit,
    uint64_t ns)
{
    ngx_http_profile_turns_answer_t *a = data;

    const prof_turns_run_t        *v, *by;
    ngx_http_profile_blame_t       key, *cell;
    ngx_http_profile_turn_copy_t  *c;

    c = &a->copies[a->at];
    v = &c->copy.runs[victim];
    by = NULL;

    ngx_memzero(&key, sizeof(ngx_http_profile_blame_t));

    key.victim = ngx_http_profile_turns_location(c, v->location);
    key.culprit = NGX_HTTP_PROFILE_TURNS_NONE;
    key.handler = NGX_HTTP_PROFILE_TURNS_NONE;

    if (culprit == PROF_TURNS_LOOP) {
        key.what = 1;

    } else if (culprit == PROF_TURNS_OVERWRITTEN) {
        key.what = 2;

    } else {
        by = &c->copy.runs[culprit];
        key.culprit = ngx_http_profile_turns_location(c, by->location);

        if (key.culprit == NGX_HTTP_PROFILE_TURNS_NONE) {
            key.handler = ngx_http_profile_turns_handler(a,
                                                   (uintptr_t) by->handler);
        }
    }

    cell = ngx_http_profile_turns_cell(a, &key);

    if (cell == NULL) {
        a->failed = 1;
        return;
    }

    cell->ns += ns;
    cell->times++;

    if (ns > cell->worst) {
        cell->worst = ns;
        cell->worst_log = a->at;
        cell->worst_victim = v->request;
        cell->worst_culprit = by ? by->request : 0;
    }
}


/* the table is small: as many rows as pairs of locations that met */

static ngx_http_profile_blame_t *
ngx_http_profile_turns_cell(ngx_http_profile_turns_answer_t *a,
    ngx_http_profile_blame_t *key)
{
    uint32_t                   i, size;
    ngx_http_profile_blame_t  *cell, *blame;

    for (i = 0; i < a->nblame; i++) {
        cell = &a->blame[i];

        if (cell->victim == key->victim && cell->culprit == key->culprit
            && cell->handler == key->handler && cell->what == key->what)
        {
            return cell;
        }
    }

    if (a->nblame == a->blame_size) {
        size = a->blame_size ? 2 * a->blame_size : 64;
        blame = realloc(a->blame, size * sizeof(ngx_http_profile_blame_t));

        if (blame == NULL) {
            return NULL;
        }

        a->blame = blame;
        a->blame_size = size;
    }

    a->blame[a->nblame] = *key;

    return &a->blame[a->nblame++];
}


static void
ngx_http_profile_turns_names_json(ngx_http_profile_turns_answer_t *a)
{
    uint32_t                            i, base;
    ngx_uint_t                          k, n;
    prof_buf_t                         *b;
    ngx_http_profile_turn_copy_t       *c;
    const ngx_http_profile_location_t  *location;

    b = &a->out;
    base = 0;

    prof_buf_puts(b, "\"locations\":[");

    for (k = 0; k < a->n; k++) {
        c = &a->copies[k];

        if (c->names == NULL || c->base != base) {
            continue;
        }

        for (n = 0; n < c->names->n; n++) {
            location = &c->names->locations[n];

            prof_buf_puts(b, base ? ",{\"server\":" : "{\"server\":");
            prof_text_json(b, (char *) location->server.data,
                           location->server.len);
            prof_buf_puts(b, ",\"location\":");
            prof_text_json(b, (char *) location->name.data,
                           location->name.len);
            prof_buf_puts(b, "}");

            base++;
        }
    }

    prof_buf_puts(b, "],\"handlers\":[");

    for (i = 0; i < a->nhandlers; i++) {
        prof_buf_puts(b, i ? "," : "");

        if (a->profile && a->nodes[i] != PROF_NONE) {
            k = a->profile->nodes[a->nodes[i]].frame;
            prof_text_json(b, a->profile->frames[k].name,
                           strlen(a->profile->frames[k].name));

        } else {
            prof_buf_printf(b, "\"0x%llx\"",
                            (unsigned long long) a->handlers[i]);
        }
    }

    prof_buf_puts(b, "]");
}


static void
ngx_http_profile_turns_log_json(ngx_http_profile_turns_answer_t *a,
    ngx_http_profile_turn_copy_t *c)
{
    size_t       i;
    prof_buf_t  *b;

    b = &a->out;

    prof_buf_printf(b, "{\"worker\":%u,\"pid\":%u,\"alive\":%s,\"ended\":%s,"
                       "\"began\":%llu,\"epoch\":%llu,\"from\":%llu,"
                       "\"written\":%llu,\"runs\":[",
                    (unsigned) c->worker,
                    ngx_http_profile_alive_pid(c->copy.log.owner),
                    c->alive ? "true" : "false",
                    c->copy.log.ended ? "true" : "false",
                    (unsigned long long) c->copy.log.began,
                    (unsigned long long) c->copy.log.wall,
                    (unsigned long long) c->copy.from,
                    (unsigned long long) c->copy.log.written);

    for (i = 0; i < c->copy.nruns; i++) {
        prof_buf_puts(b, i ? "," : "");
        ngx_http_profile_turns_run_json(a, c, &c->copy.runs[i]);
    }

    prof_buf_puts(b, "],\"requests\":[");

    for (i = 0; i < c->copy.nrequests; i++) {
        prof_buf_puts(b, i ? "," : "");
        ngx_http_profile_turns_request_json(a, c, &c->copy.requests[i]);
    }

    prof_buf_puts(b, "]}");
}


static void
ngx_http_profile_turns_run_json(ngx_http_profile_turns_answer_t *a,
    ngx_http_profile_turn_copy_t *c, const prof_turns_run_t *run)
{
    prof_buf_t  *b;

    b = &a->out;

    prof_buf_number(b, run->start);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->end - run->start);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->stall);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->request);
    prof_buf_printf(b, ",%d,%d,",
                    ngx_http_profile_turns_location(c, run->location),
                    ngx_http_profile_turns_handler(a,
                                               (uintptr_t) run->handler));
    prof_buf_number(b, run->cause);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->kind);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->flags);
}


static void
ngx_http_profile_turns_request_json(ngx_http_profile_turns_answer_t *a,
    ngx_http_profile_turn_copy_t *c, const prof_turns_request_t *row)
{
    size_t       i;
    uint8_t      any;
    prof_buf_t  *b;

    b = &a->out;

    prof_buf_printf(b, "{\"number\":%u,\"start\":%llu,\"location\":%d,"
                       "\"text\":",
                    row->number, (unsigned long long) row->start,
                    ngx_http_profile_turns_location(c, row->location));
    prof_text_json(b, row->text, row->len);

    if (row->cut) {
        prof_buf_printf(b, ",\"cut\":%u", row->cut);
    }

    if (row->status) {
        prof_buf_printf(b, ",\"status\":%u,\"bytes\":%llu", row->status,
                        (unsigned long long) row->bytes);

        ngx_http_profile_turns_address_json(b, "client", &row->client);
        ngx_http_profile_turns_address_json(b, "upstream", &row->upstream);

        any = 0;

        for (i = 0; i < sizeof(row->id); i++) {
            any |= row->id[i];
        }

        if (any) {
            prof_buf_puts(b, ",\"id\":\"");

            for (i = 0; i < sizeof(row->id); i++) {
                prof_buf_printf(b, "%02x", row->id[i]);
            }

            prof_buf_puts(b, "\"");
        }
    }

    prof_buf_puts(b, "}");
}


static void
ngx_http_profile_turns_address_json(prof_buf_t *b, const char *name,
    const prof_turns_address_t *address)
{
    size_t                len;
    struct sockaddr_in    sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6   sin6;
#endif
    u_char                text[NGX_SOCKADDR_STRLEN];

    len = 0;

    if (address->family == AF_INET) {
        ngx_memzero(&sin, sizeof(struct sockaddr_in));

        sin.sin_family = AF_INET;
        sin.sin_port = address->port;
        ngx_memcpy(&sin.sin_addr, address->address, 4);

        len = ngx_sock_ntop((struct sockaddr *) &sin,
                            sizeof(struct sockaddr_in), text, sizeof(text), 1);
    }

#if (NGX_HAVE_INET6)
    if (address->family == AF_INET6) {
        ngx_memzero(&sin6, sizeof(struct sockaddr_in6));

        sin6.sin6_family = AF_INET6;
        sin6.sin6_port = address->port;
        ngx_memcpy(&sin6.sin6_addr, address->address, 16);

        len = ngx_sock_ntop((struct sockaddr *) &sin6,
                            sizeof(struct sockaddr_in6), text, sizeof(text),
                            1);
    }
#endif

    if (len) {
        prof_buf_printf(b, ",\"%s\":", name);
        prof_text_json(b, (char *) text, len);
    }
}


static void
ngx_http_profile_turns_blame_json(ngx_http_profile_turns_answer_t *a)
{
    uint32_t                   i;
    ngx_http_profile_blame_t  *cell;

    static const char  *what[] = { "run", "loop", "overwritten" };

    for (i = 0; i < a->nblame; i++) {
        cell = &a->blame[i];

        prof_buf_printf(&a->out,
                        "%s{\"victim\":%d,\"what\":\"%s\",\"culprit\":%d,"
                        "\"handler\":%d,\"ns\":%llu,\"times\":%llu,"
                        "\"worst\":{\"ns\":%llu,\"worker\":%u,\"victim\":%u,"
                        "\"culprit\":%u}}",
                        i ? "," : "", cell->victim, what[cell->what],
                        cell->culprit, cell->handler,
                        (unsigned long long) cell->ns,
                        (unsigned long long) cell->times,
                        (unsigned long long) cell->worst,
                        (unsigned) a->copies[cell->worst_log].worker,
                        cell->worst_victim, cell->worst_culprit);
    }
}


static void
ngx_http_profile_turns_done(void *data)
{
    ngx_http_profile_turns_answer_t *a = data;

    ngx_int_t                  rc;
    ngx_http_profile_answer_t  answer;

    ngx_http_profile_turns_nanswers--;

    if (a->call) {

        if (!a->job.worked) {
            rc = NGX_HTTP_SERVICE_UNAVAILABLE;

        } else if (a->failed) {
            rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

        } else {
            ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

            ngx_str_set(&answer.type, "application/json");
            answer.gzipped = a->gzip.done;
            answer.compressible = a->gzip.compressible;

            rc = ngx_http_profile_answer_buf(a->call, &answer, &a->out);
        }

        ngx_http_profile_call_end(a->call, rc);
    }

    /* copies of logs may be large */

    ngx_http_profile_job_free(&a->job, ngx_http_profile_turns_free);
}


static void
ngx_http_profile_turns_free(void *data)
{
    ngx_http_profile_turns_answer_t *a = data;

    ngx_uint_t  i;

    for (i = 0; i < a->n; i++) {
        prof_turns_free(&a->copies[i].copy);
    }

    if (a->profile) {
        prof_profile_destroy(a->profile);
    }

    prof_buf_free(&a->out);
    free(a->blame);
    ngx_free(a->copies);
    ngx_free(a);
}
