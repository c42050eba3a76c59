
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The state of the profiler in all workers.  The worker that serves the
 * request asks the other workers for their state.  Busy workers have a short
 * time to respond.
 */


#include "continuous/ngx_http_profile_continuous.h"
#include "core/ngx_http_profile_alive.h"
#include "core/ngx_http_profile_ground.h"
#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_kernel.h"
#include "store/ngx_http_profile_store.h"
#include "console/ngx_http_profile_routes.h"
#include "workers/ngx_http_profile_workers.h"
#include "keep/ngx_http_profile_keep.h"
#include "stages/ngx_http_profile_stages.h"
#include "turns/ngx_http_profile_turns.h"

#include <signal.h>


/* ms: how often the states are read, and how long the worker waits for them */
#define NGX_HTTP_PROFILE_STATUS_LOOK  5
#define NGX_HTTP_PROFILE_STATUS_WAIT  250


/* allocated from the request's pool */

typedef struct {
    uint64_t                   asked;       /* in the time of prof_now() */
    ngx_http_profile_call_t   *call;
    ngx_event_t                timer;
    ngx_connection_t           connection;  /* for nginx's debug messages */
} ngx_http_profile_status_t;


static ngx_http_profile_status_t *ngx_http_profile_status_create(
    ngx_http_profile_call_t *call);
static ngx_uint_t ngx_http_profile_status_ready(uint64_t asked);
static void ngx_http_profile_status_timer(ngx_event_t *ev);
static void ngx_http_profile_status_abort(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_status_answer(ngx_http_profile_call_t *call,
    uint64_t asked);
static ngx_pid_t ngx_http_profile_status_pid(ngx_uint_t worker);
static json_t *ngx_http_profile_status_store(ngx_http_request_t *r);
static json_t *ngx_http_profile_status_continuous(ngx_http_request_t *r);
static json_t *ngx_http_profile_status_scripts(void);
static json_t *ngx_http_profile_status_unwind(void);
static json_t *ngx_http_profile_status_stalls(ngx_http_request_t *r);
static json_t *ngx_http_profile_status_turns(void);
static void ngx_http_profile_status_workers(uint64_t asked, json_t *workers,
    json_t *captures);
static json_t *ngx_http_profile_status_jobs(ngx_http_profile_state_t *state);
static void ngx_http_profile_status_captures(ngx_http_profile_state_t *state,
    ngx_pid_t pid, json_t *captures);


ngx_int_t
ngx_http_profile_status_route(ngx_http_profile_call_t *call)
{
    uint64_t                    now;
    ngx_uint_t                  i;
    ngx_http_profile_status_t  *status;

    if (!call->json) {
        return ngx_http_profile_answer_page(call, "status.html");
    }

    if (ngx_http_profile_inbox_workers() == 0) {
        return ngx_http_profile_answer_error(call,
                            NGX_HTTP_SERVICE_UNAVAILABLE,
                            "the state of the workers is not available until "
                            "nginx is reloaded, see the error log");
    }

    now = prof_now();

    ngx_http_profile_state_write();

    for (i = 0; i < ngx_http_profile_inbox_workers(); i++) {

        if (i != ngx_worker && ngx_http_profile_status_pid(i)) {
            ngx_http_profile_state_ask(i);
        }
    }

    if (ngx_http_profile_status_ready(now)) {
        return ngx_http_profile_status_answer(call, now);
    }

    status = ngx_http_profile_status_create(call);

    if (status == NULL
        || ngx_http_profile_call_hold(call, ngx_http_profile_status_abort,
                                      status)
           != NGX_DONE)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status->asked = now;

    ngx_add_timer(&status->timer, NGX_HTTP_PROFILE_STATUS_LOOK);

    return NGX_DONE;
}


static ngx_http_profile_status_t *
ngx_http_profile_status_create(ngx_http_profile_call_t *call)
{
    ngx_http_profile_status_t  *status;

    status = ngx_pcalloc(call->request->pool,
                         sizeof(ngx_http_profile_status_t));
    if (status == NULL) {
        return NULL;
    }

    status->call = call;

    status->connection.fd = (ngx_socket_t) -1;
    status->connection.data = status;

    status->timer.handler = ngx_http_profile_status_timer;
    status->timer.data = &status->connection;
    status->timer.log = ngx_cycle->log;

    return status;
}


/* returns whether all running workers have written their state */

static ngx_uint_t
ngx_http_profile_status_ready(uint64_t asked)
{
    ngx_uint_t                i;
    ngx_http_profile_state_t  state;

    for (i = 0; i < ngx_http_profile_inbox_workers(); i++) {

        if (ngx_http_profile_status_pid(i)
            && ngx_http_profile_state_read(i, asked, &state) != NGX_OK)
        {
            return 0;
        }
    }

    return 1;
}


static void
ngx_http_profile_status_timer(ngx_event_t *ev)
{
    ngx_int_t                   rc;
    ngx_connection_t           *c;
    ngx_http_profile_call_t    *call;
    ngx_http_profile_status_t  *status;

    ngx_http_profile_own_work();

    c = ev->data;
    status = c->data;
    call = status->call;

    if (!ngx_http_profile_status_ready(status->asked)
        && prof_now() - status->asked
           < NGX_HTTP_PROFILE_STATUS_WAIT * 1000000ULL)
    {
        ngx_add_timer(ev, NGX_HTTP_PROFILE_STATUS_LOOK);
        return;
    }

    rc = ngx_http_profile_status_answer(call, status->asked);

    ngx_http_profile_call_end(call, rc);
}


static void
ngx_http_profile_status_abort(ngx_http_profile_call_t *call)
{
    ngx_http_profile_status_t  *status;

    status = call->data;

    if (status->timer.timer_set) {
        ngx_del_timer(&status->timer);
    }
}


static ngx_int_t
ngx_http_profile_status_answer(ngx_http_profile_call_t *call, uint64_t asked)
{
    json_t  *json, *workers, *captures;

    workers = json_array();
    captures = json_array();

    ngx_http_profile_status_workers(asked, workers, captures);

    json = json_pack("{s:{s:I, s:s, s:s}, s:o, s:o, s:o*, s:o*, s:o*, s:o*,"
                     " s:{s:s}, s:o*, s:o*}",
                     "worker",
                         "pid", (json_int_t) ngx_pid,
                         "version", NGINX_VERSION,
                         "nginx", ngx_http_profile_ground_state(),
                     "workers", workers,
                     "captures", captures,
                     "store", ngx_http_profile_status_store(call->request),
                     "continuous",
                         ngx_http_profile_status_continuous(call->request),
                     "unwind", ngx_http_profile_status_unwind(),
                     "scripts", ngx_http_profile_status_scripts(),
                     "kernel",
                         "stacks", ngx_http_profile_kernel_state(),
                     "stalls", ngx_http_profile_status_stalls(call->request),
                     "turns", ngx_http_profile_status_turns());

    return ngx_http_profile_answer_json(call, NGX_HTTP_OK, json);
}


/*
 * Returns the process id of a worker, or 0 if the worker does not run.  The
 * shared memory still has the id of a killed process.
 */

static ngx_pid_t
ngx_http_profile_status_pid(ngx_uint_t worker)
{
    ngx_pid_t  pid;

    pid = ngx_http_profile_inbox_pid(worker);

    return (pid && kill(pid, 0) == -1 && ngx_errno == NGX_ESRCH) ? 0 : pid;
}


static json_t *
ngx_http_profile_status_store(ngx_http_request_t *r)
{
    json_t                         *json;
    ngx_http_profile_store_t       *store;
    ngx_http_profile_store_stat_t   st;

    store = ngx_http_profile_store(r);

    if (store == NULL) {
        return NULL;
    }

    ngx_http_profile_store_stat(store, &st);

    json = json_pack("{s:s%, s:I, s:I, s:I, s:I}",
                     "zone", (char *) st.zone.data, st.zone.len,
                     "memory_size", (json_int_t) st.memory_size,
                     "memory_used", (json_int_t) st.memory_used,
                     "profiles", (json_int_t) st.entries,
                     "pinned", (json_int_t) st.pinned);

    if (json && st.path.len) {
        (void) json_object_update_new(json,
                   json_pack("{s:s%, s:I, s:I, s:I}",
                             "path", (char *) st.path.data, st.path.len,
                             "disk_max", (json_int_t) st.disk_max,
                             "disk_used", (json_int_t) st.disk_used,
                             "inactive_s", (json_int_t) st.inactive));
    }

    (void) json_object_update_new(json,
                   json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                             "added", (json_int_t) st.added,
                             "evicted", (json_int_t) st.evicted,
                             "expired", (json_int_t) st.expired,
                             "deleted", (json_int_t) st.deleted,
                             "dropped", (json_int_t) st.dropped,
                             "failed", (json_int_t) st.failed,
                             "torn", (json_int_t) st.torn));

    return json;
}


/* "state" is the state of this worker; the other members are of all workers */

static json_t *
ngx_http_profile_status_continuous(ngx_http_request_t *r)
{
    ngx_http_profile_main_conf_t   *pmcf;
    ngx_http_profile_store_stat_t   st;
    ngx_http_profile_continuous_t  *conf;

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);
    conf = pmcf->continuous;

    if (conf == NULL) {
        return NULL;
    }

    ngx_http_profile_store_stat(conf->store, &st);

    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                     "state", ngx_http_profile_slice_state(),
                     "frequency", (json_int_t) conf->frequency,
                     "slice_ms", (json_int_t) conf->slice,
                     "keep_ms", (json_int_t) conf->keep,
                     "slices", (json_int_t) st.entries,
                     "memory_size", (json_int_t) st.memory_size,
                     "memory_used", (json_int_t) st.memory_used,
                     "stored", (json_int_t) conf->page->stored,
                     "dropped", (json_int_t) conf->page->dropped,
                     "lost", (json_int_t) conf->page->lost,
                     "evicted", (json_int_t) st.evicted);
}


/* lists the interpreters, with the reason if their stacks cannot be read */

static json_t *
ngx_http_profile_status_scripts(void)
{
    json_t      *scripts;
    uint32_t     i;
    const char  *name, *state;

    scripts = json_pack("{s:s}", "lua_in_gaps", ngx_http_profile_lua_state());

    for (i = 0; /* void */ ; i++) {

        state = prof_engines_state(i, &name);

        if (name == NULL) {
            return scripts;
        }

        (void) json_object_set_new(scripts, name,
                                   json_string(state ? state : "not loaded"));
    }
}


/*
 * Describes the unwind tables.  Workers share the tables of the master until
 * they make new tables.
 */

static json_t *
ngx_http_profile_status_unwind(void)
{
    prof_unwind_info_t    info;
    const prof_unwind_t  *u;

    u = prof_process_unwind();

    if (u == NULL) {
        return NULL;
    }

    prof_unwind_info(u, &info);

    return json_pack("{s:I, s:I, s:I, s:I, s:I}",
                     "objects", (json_int_t) info.objects,
                     "rows", (json_int_t) info.rows,
                     "unsupported", (json_int_t) info.unsupported,
                     "bytes", (json_int_t) info.bytes,
                     "build_ns", (json_int_t) info.build_ns);
}


static json_t *
ngx_http_profile_status_stalls(ngx_http_request_t *r)
{
    char                          *request;
    size_t                         len;
    json_t                        *list;
    ngx_uint_t                     i, n;
    ngx_http_profile_stall_t      *st;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    if (pmcf->stall_zone == NULL) {
        return NULL;
    }

    st = ngx_palloc(r->pool, NGX_HTTP_PROFILE_STALLS
                             * sizeof(ngx_http_profile_stall_t));
    if (st == NULL) {
        return NULL;
    }

    list = json_array();
    n = ngx_http_profile_stalls(pmcf->stall_zone, st);

    for (i = 0; i < n; i++) {

        len = ngx_strlen(st[i].request);
        request = prof_text_utf8((char *) st[i].request, &len);

        (void) json_array_append_new(list,
                   json_pack("{s:I, s:I, s:I, s:s*, s:s, s:s}",
                             "wall", (json_int_t) st[i].wall,
                             "time", (json_int_t) st[i].when,
                             "worker", (json_int_t) st[i].worker,
                             "request", request,
                             "handler", (char *) st[i].handler,
                             "stack", (char *) st[i].stack));

        free(request);
    }

    return list;
}


/* lists the turn logs, and how far they reach back */

static json_t *
ngx_http_profile_status_turns(void)
{
    json_t                              *list;
    uint64_t                             from, now;
    ngx_uint_t                           i, n;
    const prof_turns_log_t              *log;
    const ngx_http_profile_turn_ring_t  *rings;

    if (!ngx_http_profile_logs_turns()) {
        return NULL;
    }

    rings = ngx_http_profile_turns_rings(&n);
    list = json_array();
    now = prof_now();

    for (i = 0; i < n; i++) {
        log = rings[i].log;
        from = prof_turns_reach(log);

        (void) json_array_append_new(list,
                   json_pack("{s:I, s:I, s:b, s:I, s:I, s:I}",
                             "worker", (json_int_t) rings[i].worker,
                             "pid", (json_int_t)
                                    ngx_http_profile_alive_pid(log->owner),
                             "ended", (int) log->ended,
                             "runs", (json_int_t) log->written,
                             "log_bytes", (json_int_t)
                                 (log->nruns * sizeof(prof_turns_run_t)),
                             "reach_ns", (json_int_t)
                                 ((from && from < now) ? now - from : 0)));
    }

    return list;
}


/*
 * Lists the workers in which a capture of workers takes part, and their
 * captures.
 */

static void
ngx_http_profile_status_workers(uint64_t asked, json_t *workers,
    json_t *captures)
{
    json_t                    *json;
    ngx_pid_t                  pid;
    ngx_uint_t                 i, busy;
    ngx_http_profile_state_t   state;

    for (i = 0; i < ngx_http_profile_inbox_workers(); i++) {
        pid = ngx_http_profile_status_pid(i);

        if (pid == 0) {
            continue;
        }

        busy = ngx_http_profile_state_read(i, asked, &state) != NGX_OK;

        json = json_pack("{s:I, s:I, s:b, s:b}",
                         "worker", (json_int_t) i,
                         "pid", (json_int_t) pid,
                         "this", (int) (pid == ngx_pid),
                         "busy", (int) busy);

        if (!busy) {
            (void) json_object_update_new(json,
                       json_pack("{s:I, s:I, s:I, s:I, s:I}",
                                 "captures", (json_int_t) state.captures,
                                 "max_captures",
                                 (json_int_t) state.max_captures,
                                 "connections",
                                 (json_int_t) state.connections,
                                 "max_connections",
                                 (json_int_t) state.max_connections,
                                 "refused_signals",
                                 (json_int_t) state.refused));

            (void) json_object_update_new(json,
                       ngx_http_profile_status_jobs(&state));

            ngx_http_profile_status_captures(&state, pid, captures);
        }

        (void) json_array_append_new(workers, json);
    }
}


static json_t *
ngx_http_profile_status_jobs(ngx_http_profile_state_t *state)
{
    json_t      *dropped;
    ngx_uint_t   i;

    dropped = json_object();

    for (i = NGX_HTTP_PROFILE_LOSS_NONE + 1; i < NGX_HTTP_PROFILE_LOSSES; i++) {
        (void) json_object_set_new(dropped,
                       (char *) ngx_http_profile_loss_names[i].data,
                       json_integer((json_int_t) state->losses.lost[i]));
    }

    return json_pack("{s:I, s:I, s:I, s:I, s:o}",
                     "unequal_requests", (json_int_t) state->losses.unequal,
                     "jobs", (json_int_t) state->jobs,
                     "jobs_bytes", (json_int_t) state->jobs_size,
                     "kept", (json_int_t) state->losses.kept,
                     "dropped", dropped);
}


static void
ngx_http_profile_status_captures(ngx_http_profile_state_t *state,
    ngx_pid_t pid, json_t *captures)
{
    char                              *uri;
    size_t                             len;
    ngx_uint_t                         i;
    ngx_http_profile_state_capture_t  *live;

    for (i = 0; i < state->nlive; i++) {
        live = &state->live[i];

        len = live->uri_len;
        uri = prof_text_utf8((char *) live->uri, &len);

        (void) json_array_append_new(captures,
                   json_pack("{s:s%, s:s*, s:I, s:I, s:I, s:I, s:I}",
                             "id", live->id, (size_t) NGX_HTTP_PROFILE_ID_LEN,
                             "uri", uri,
                             "wall", (json_int_t) live->wall,
                             "running", (json_int_t) live->running,
                             "cpu", (json_int_t) live->cpu,
                             "samples", (json_int_t) live->samples,
                             "worker", (json_int_t) pid));

        free(uri);
    }
}
