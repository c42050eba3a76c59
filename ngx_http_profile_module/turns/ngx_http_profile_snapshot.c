
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Making and storing snapshots of the turn log.
 */


#include "core/ngx_http_profile_alive.h"
#include "store/ngx_http_profile_store.h"
#include "turns/ngx_http_profile_snapshot.h"


typedef struct {
    const prof_turns_snapshot_t  *snapshot;
    const prof_turns_copy_t      *copy;
    ngx_uint_t                    hidden;
} ngx_http_profile_snapshot_culprit_t;


static ngx_int_t ngx_http_profile_snapshot_log(ngx_http_profile_snapshot_t *s,
    prof_turns_snapshot_t *t, ngx_uint_t i, uint32_t *bases, uint64_t to);
static void ngx_http_profile_snapshot_names(prof_profile_t *draft,
    prof_turns_snapshot_t *t);
static void ngx_http_profile_snapshot_culprit(void *data, size_t run,
    char name[PROF_TURNS_NAME]);
static void ngx_http_profile_snapshot_attach(const prof_turns_snapshot_t *s,
    prof_profile_t *p);


ngx_http_profile_snapshot_t *
ngx_http_profile_snapshot_begin(prof_turns_reason_e reason, uint64_t from,
    ngx_uint_t only)
{
    ngx_uint_t                           i, n;
    ngx_http_profile_snapshot_t         *s;
    ngx_http_profile_snapshot_log_t     *log;
    const ngx_http_profile_turn_ring_t  *rings;

    if (!ngx_http_profile_logs_turns()) {
        return NULL;
    }

    rings = ngx_http_profile_turns_rings(&n);

    s = ngx_calloc(sizeof(ngx_http_profile_snapshot_t)
                   + n * sizeof(ngx_http_profile_snapshot_log_t),
                   ngx_cycle->log);
    if (s == NULL) {
        return NULL;
    }

    s->reason = reason;
    s->from = from;

    for (i = 0; i < n; i++) {

        if (rings[i].log == ngx_http_profile_turn_log.log) {
            s->own = s->n;

        } else if (only) {
            continue;
        }

        log = &s->logs[s->n++];
        log->log = rings[i].log;
        log->worker = rings[i].worker;
        log->names = ngx_http_profile_turns_names(log->log);
    }

    /* if memory is short, the snapshot has addresses in place of names */

    s->draft = prof_process_addresses(NULL, 0, NULL);

    return s;
}


prof_turns_snapshot_t *
ngx_http_profile_snapshot_make(ngx_http_profile_snapshot_t *s)
{
    uint32_t               *bases;
    uint64_t                now;
    ngx_uint_t              i;
    struct timeval          tv;
    prof_turns_snapshot_t  *t;

    t = prof_turns_snapshot_create();
    bases = ngx_calloc((s->n + 1) * sizeof(uint32_t), ngx_cycle->log);

    if (t == NULL || bases == NULL) {
        goto failed;
    }

    now = prof_now();

    ngx_gettimeofday(&tv);

    t->now = (uint64_t) tv.tv_sec * 1000 + tv.tv_usec / 1000;

    if (s->to) {
        t->now -= (now - ngx_min(s->to, now)) / 1000000;
        now = ngx_min(s->to, now);
    }

    t->length = now - ngx_min(s->from, now);
    t->reason = s->reason;
    t->worker = s->n ? s->logs[s->own].worker : 0;
    t->request = s->request;
    t->run = s->run;

    for (i = 0; i < s->n; i++) {
        if (ngx_http_profile_snapshot_log(s, t, i, bases, now) != NGX_OK) {
            goto failed;
        }
    }

    ngx_http_profile_snapshot_names(s->draft, t);
    s->draft = NULL;

    ngx_free(bases);

    return t;

failed:

    prof_turns_snapshot_destroy(t);

    if (bases) {
        ngx_free(bases);
    }

    return NULL;
}


static ngx_int_t
ngx_http_profile_snapshot_log(ngx_http_profile_snapshot_t *s,
    prof_turns_snapshot_t *t, ngx_uint_t i, uint32_t *bases, uint64_t to)
{
    ngx_uint_t                            k, n;
    prof_turns_copy_t                     copy;
    prof_turns_lane_t                    *lane;
    ngx_http_profile_snapshot_log_t      *log;
    const ngx_http_profile_location_t    *location;
    const ngx_http_profile_turn_names_t  *names;

    log = &s->logs[i];

    if (prof_turns_read(log->log, s->from, &copy) != PROF_OK) {
        return NGX_ERROR;
    }

    if (prof_turns_add_open(&copy, prof_now()) != PROF_OK) {
        prof_turns_free(&copy);
        return NGX_ERROR;
    }

    /* runs are ordered by their start */

    while (copy.nruns && copy.runs[copy.nruns - 1].start > to) {
        copy.nruns--;
    }

    prof_turns_forget(&copy);

    /* another worker may have taken the log since the names were found */

    names = (log->names && log->names->tag == copy.log.tag) ? log->names : NULL;

    bases[i] = t->nlocations;

    /* logs of one configuration share their names */

    for (k = 0; k < i; k++) {
        if (names && s->logs[k].names == names) {
            bases[i] = bases[k];
            break;
        }
    }

    for (n = 0; k == i && names && n < names->n; n++) {
        location = &names->locations[n];

        if (prof_turns_snapshot_location(t, (char *) location->server.data,
                                         location->server.len,
                                         (char *) location->name.data,
                                         location->name.len)
            != PROF_OK)
        {
            prof_turns_free(&copy);
            return NGX_ERROR;
        }
    }

    log->names = names;

    lane = prof_turns_snapshot_add(t, &copy, bases[i],
                                   names ? (uint32_t) names->n : 0);
    if (lane == NULL) {
        return NGX_ERROR;
    }

    lane->worker = (uint32_t) log->worker;
    lane->pid = ngx_http_profile_alive_pid(copy.log.owner);
    lane->alive = (uint32_t) ngx_http_profile_alive(copy.log.owner);

    return NGX_OK;
}


/* a handler whose name is not found has its address */

static void
ngx_http_profile_snapshot_names(prof_profile_t *draft,
    prof_turns_snapshot_t *t)
{
    char           name[NGX_PTR_SIZE * 2 + sizeof("0x")];
    uint32_t       i;
    uint32_t       nodes[PROF_TURNS_HANDLERS];
    prof_frame_t  *frame;

    if (draft) {
        prof_draft_addresses(draft, t->pcs, t->nhandlers, nodes);

        if (prof_profile_symbolize(draft) != PROF_OK) {
            prof_profile_destroy(draft);
            draft = NULL;
        }
    }

    for (i = 0; i < t->nhandlers; i++) {

        if (draft && nodes[i] != PROF_NONE) {
            frame = &draft->frames[draft->nodes[nodes[i]].frame];
            t->handlers[i] = strdup(frame->name);
            continue;
        }

        *ngx_sprintf((u_char *) name, "%p", (void *) t->pcs[i]) = '\0';
        t->handlers[i] = strdup(name);
    }

    prof_profile_destroy(draft);
}


void
ngx_http_profile_snapshot_free(ngx_http_profile_snapshot_t *s)
{
    if (s) {
        prof_profile_destroy(s->draft);
        ngx_free(s);
    }
}


void
ngx_http_profile_snapshot_add(ngx_http_profile_snapshot_t *s,
    prof_profile_t *p)
{
    prof_turns_snapshot_t               *t;
    ngx_http_profile_snapshot_culprit_t  names;

    t = ngx_http_profile_snapshot_make(s);
    if (t == NULL) {
        return;
    }

    if (s->reason == PROF_TURNS_PROFILED) {
        names.snapshot = t;
        names.copy = &t->lanes[s->own].copy;
        names.hidden = s->hidden;

        /* without memory, the profile has no culprits */

        (void) prof_turns_culprits(p, names.copy,
                                   ngx_http_profile_snapshot_culprit, &names);
    }

    prof_turns_snapshot_cut(t, NGX_HTTP_PROFILE_SNAPSHOT_PART);
    ngx_http_profile_snapshot_attach(t, p);
    prof_turns_snapshot_destroy(t);
}


/* "GET /a (location /)", or "location /" */

static void
ngx_http_profile_snapshot_culprit(void *data, size_t i,
    char name[PROF_TURNS_NAME])
{
    ngx_http_profile_snapshot_culprit_t *names = data;

    u_char                      *p, *last;
    ngx_uint_t                   uri;
    const char                  *handler;
    const prof_turns_run_t      *run;
    const prof_turns_request_t  *row;

    run = &names->copy->runs[i];
    row = prof_turns_find(names->copy, run->request);
    uri = row && row->len && !names->hidden;

    p = (u_char *) name;
    last = p + PROF_TURNS_NAME - 1;

    if (run->request == 0) {
        handler = run->handler ? names->snapshot->handlers[run->handler - 1]
                               : NULL;
        p = ngx_slprintf(p, last, "%s (no request)",
                         handler ? handler : "code");
        *p = '\0';
        return;
    }

    if (uri) {
        p = ngx_slprintf(p, last, "%*s%s", (size_t) row->len, row->text,
                         row->cut ? "..." : "");
    }

    if (run->location) {
        p = ngx_slprintf(p, last, "%slocation %s%s", uri ? " (" : "",
                       names->snapshot->locations[run->location - 1].name,
                       uri ? ")" : "");

    } else if (!uri) {
        p = ngx_slprintf(p, last, "a request");
    }

    *p = '\0';
}


static void
ngx_http_profile_snapshot_attach(const prof_turns_snapshot_t *s,
    prof_profile_t *p)
{
    prof_buf_t  b;

    prof_buf_init(&b);
    prof_turns_snapshot_write(s, &b);

    if (prof_buf_failed(&b)) {
        prof_buf_free(&b);
        return;
    }

    free(p->turns);

    p->turns = b.data;
    p->turns_len = b.len;
}


ngx_int_t
ngx_http_profile_snapshot_store(ngx_http_profile_snapshot_t *s,
    ngx_http_profile_store_t *store, u_char *id, const char *title,
    uint32_t pid)
{
    ngx_int_t               rc;
    prof_profile_t         *p;
    prof_turns_snapshot_t  *t;

    t = ngx_http_profile_snapshot_make(s);
    p = prof_profile_create(title);

    rc = NGX_ERROR;

    if (t && p) {
        p->start_realtime = t->now * 1000000 - t->length;
        p->duration = t->length;
        p->wall = t->length;

        ngx_http_profile_snapshot_attach(t, p);

        if (p->turns) {
            rc = ngx_http_profile_snapshot_profile(store, p, id, "turns", pid);
        }
    }

    prof_turns_snapshot_destroy(t);
    prof_profile_destroy(p);

    return rc;
}


ngx_int_t
ngx_http_profile_snapshot_profile(ngx_http_profile_store_t *store,
    prof_profile_t *p, u_char *id, const char *scope, uint32_t pid)
{
    ngx_int_t                  rc;
    prof_buf_t                 archive;
    ngx_http_profile_stored_t  st;

    rc = NGX_ERROR;
    prof_buf_init(&archive);

    if (prof_profile_scope(p, scope) == PROF_OK
        && prof_archive_write(p, &archive) == PROF_OK)
    {
        ngx_memzero(&st, sizeof(ngx_http_profile_stored_t));

        ngx_memcpy(st.id, id, NGX_HTTP_PROFILE_ID_LEN);

        st.scope.data = (u_char *) scope;
        st.scope.len = ngx_strlen(scope);
        st.uri.data = (u_char *) p->title;
        st.uri.len = ngx_strlen(p->title);
        st.start = p->start_realtime / 1000000;
        st.worker = pid;
        st.archive = (u_char *) archive.data;
        st.size = archive.len;

        ngx_http_profile_store_measure(&st, p);

        rc = ngx_http_profile_store_add(store, &st, ngx_cycle->log);
    }

    prof_buf_free(&archive);

    return rc;
}
