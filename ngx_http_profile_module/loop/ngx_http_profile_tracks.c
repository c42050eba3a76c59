
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Tracks of requests, and their memory.
 */


#include "core/ngx_http_profile_conf.h"
#include "loop/ngx_http_profile_brief.h"
#include "loop/ngx_http_profile_loop_private.h"


static ngx_http_profile_track_t *ngx_http_profile_create_track(
    ngx_http_request_t *r);
static ngx_http_profile_track_t *ngx_http_profile_new_track(void);
static void ngx_http_profile_track_cleanup(void *data);


ngx_http_profile_track_t         ngx_http_profile_untracked;

PROF_HOT_DATA ngx_http_profile_track_t  ngx_http_profile_brief;
PROF_HOT_DATA ngx_uint_t                ngx_http_profile_brief_asked;
PROF_HOT_DATA ngx_uint_t                ngx_http_profile_all;

/*
 * Unused tracks, which are kept while the worker is armed.  Tracks are not
 * allocated from the request's pool, because they would often make it grow.
 */

static ngx_http_profile_track_t  *ngx_http_profile_free_tracks;


PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_track(ngx_http_request_t *r)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);

    return tr ? ngx_http_profile_lasting(tr)
              : ngx_http_profile_create_track(r);
}


PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_lasting(ngx_http_profile_track_t *tr)
{
    ngx_http_request_t        *r;
    ngx_http_profile_run_t    *run;
    ngx_http_profile_track_t  *brief;

    brief = &ngx_http_profile_brief;

    if (tr != brief) {
        return tr;
    }

    if (!brief->begun) {
        ngx_http_profile_account_start(brief, brief->since);
    }

    r = brief->request;
    brief->request = NULL;

    tr = ngx_http_profile_create_track(r);

    for (run = ngx_http_profile_current; run; run = run->prev) {
        if (run->track == brief) {
            run->track = tr;
            run->tail = (tr == NULL);
        }
    }

    if (tr) {
        tr->accounted = 1;
        tr->begun = 1;
        tr->number = brief->number;
        tr->closed = brief->closed;
        tr->start = brief->start;
        tr->since = brief->since;
        tr->turn = brief->turn;
        tr->turn_cpu = brief->turn_cpu;
        tr->turn_no_processor = brief->turn_no_processor;
        tr->turn_blocked = brief->turn_blocked;
        tr->times = brief->times;
        tr->waited = brief->waited;

        if (tr->waited) {
            ngx_memcpy(tr->waits, brief->waits, sizeof(tr->waits));
        }

        if (ngx_http_profile_observers.notes_begin) {
            ngx_http_profile_observers.notes_begin(tr, tr->since);
        }
    }

    return tr;
}


PROF_HOT static ngx_http_profile_track_t *
ngx_http_profile_create_track(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_profile_track_t  *tr;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    tr = ngx_http_profile_new_track();
    if (tr == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_profile_track_cleanup;
    cln->data = tr;

    if (ngx_http_profile_arm() != NGX_OK) {
        return NULL;
    }

    tr->request = r;
    tr->main.request = r;
    tr->subrequests = &tr->main;

    ngx_queue_init(&tr->connections);
    ngx_queue_init(&tr->events);

    ngx_http_set_ctx(r, tr, ngx_http_profile_module);

    ngx_http_profile_own_client(tr);

    return tr;
}


PROF_HOT void
ngx_http_profile_untrack(ngx_http_profile_track_t *tr)
{
    if (tr->request == NULL) {
        return;
    }

    if (tr->notes) {
        ngx_http_profile_observers.notes_drop(tr);
    }

    ngx_http_profile_unwrap(tr);
    ngx_http_profile_disown_all(tr);
    ngx_http_profile_turn_forget(tr);

    tr->request = NULL;

    ngx_http_profile_disarm();
}


PROF_HOT static ngx_http_profile_track_t *
ngx_http_profile_new_track(void)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_free_tracks;

    if (tr) {
        ngx_http_profile_free_tracks = tr->next;

    } else {
        prof_heap_mute();
        tr = ngx_alloc(sizeof(ngx_http_profile_track_t), ngx_cycle->log);
        prof_heap_unmute();
    }

    if (tr) {
        ngx_memzero(tr, offsetof(ngx_http_profile_track_t, waits));
    }

    return tr;
}


PROF_HOT static void
ngx_http_profile_track_cleanup(void *data)
{
    ngx_http_profile_track_t  *tr = data;

    ngx_http_profile_untrack(tr);

    if (!ngx_http_profile_armed) {
        ngx_free(tr);
        return;
    }

    tr->next = ngx_http_profile_free_tracks;
    ngx_http_profile_free_tracks = tr;
}


void
ngx_http_profile_tracks_done(void)
{
    ngx_http_profile_track_t  *tr;

    while (ngx_http_profile_free_tracks) {
        tr = ngx_http_profile_free_tracks;
        ngx_http_profile_free_tracks = tr->next;

        ngx_free(tr);
    }
}


/*
 * A redirect clears nginx's pointers to the contexts of modules, but not the
 * cleanups of the pool.  So a track is also found by its cleanup.
 */

PROF_HOT ngx_http_profile_track_t *
ngx_http_profile_find_track(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_profile_track_t  *tr;

    r = r->main;

    if (r == ngx_http_profile_brief.request) {
        return &ngx_http_profile_brief;
    }

    tr = ngx_http_get_module_ctx(r, ngx_http_profile_module);

    if (tr) {
        return tr->request == r ? tr : NULL;
    }

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_profile_track_cleanup) {
            tr = cln->data;
            ngx_http_set_ctx(r, tr, ngx_http_profile_module);

            return tr->request ? tr : NULL;
        }
    }

    return NULL;
}


void
ngx_http_profile_ask_brief(void)
{
    ngx_http_profile_account_start(&ngx_http_profile_brief,
                                   ngx_http_profile_brief.since);
}
