
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Exemplars: a bucket of request times leads to the profile of a request in it.
 * profile_keep keeps a request if its bucket has no recent exemplar.
 */


#include "keep/ngx_http_profile_keep.h"
#include "loop/ngx_http_profile_brief.h"
#include "metrics/ngx_http_profile_metrics_private.h"


/* age up to which an exemplar is recent, ms */
#define NGX_HTTP_PROFILE_RECENT     60000

/* after this time a process that still writes an exemplar has died, ms */
#define NGX_HTTP_PROFILE_ABANDONED  10000

/*
 * Limits of a worker: the shortest time between two requests that are kept for
 * their buckets, and between two brief requests that are examined, ms.
 */
#define NGX_HTTP_PROFILE_PAUSE      500
#define NGX_HTTP_PROFILE_LOOK       5


static ngx_uint_t ngx_http_profile_exemplar_wanted(
    ngx_http_profile_track_t *tr);
static ngx_http_profile_exemplar_t *ngx_http_profile_exemplar_of(
    ngx_http_profile_track_t *tr, ngx_uint_t place);
static uint64_t ngx_http_profile_exemplar_now(void);
static uint64_t ngx_http_profile_exemplar_age(ngx_http_profile_exemplar_t *ex,
    uint64_t now);


static ngx_http_profile_exemplar_t  *ngx_http_profile_exemplars;

static ngx_msec_t  ngx_http_profile_exemplar_next;
static ngx_msec_t  ngx_http_profile_exemplar_looked;


void
ngx_http_profile_exemplars_in(ngx_http_profile_exemplar_t *exemplars)
{
    ngx_http_profile_exemplars = exemplars;
    ngx_http_profile_keep_exemplar = exemplars
                                     ? ngx_http_profile_exemplar_wanted : NULL;
}


/* returns whether to keep a request that profile_keep has not chosen */

static ngx_uint_t
ngx_http_profile_exemplar_wanted(ngx_http_profile_track_t *tr)
{
    ngx_msec_t                    now;
    ngx_http_profile_exemplar_t  *ex;
    ngx_http_profile_loc_conf_t  *plcf;

    now = ngx_current_msec;

    if (!tr->closed
        || (ngx_msec_int_t) (now - ngx_http_profile_exemplar_next) < 0
        || (tr == &ngx_http_profile_brief
            && now - ngx_http_profile_exemplar_looked
               < NGX_HTTP_PROFILE_LOOK))
    {
        return 0;
    }

    ngx_http_profile_exemplar_looked = now;

    plcf = ngx_http_get_module_loc_conf(tr->request, ngx_http_profile_module);

    if (plcf->metrics) {
        return 0;
    }

    ex = ngx_http_profile_exemplar_of(tr, plcf->place);

    if (ngx_http_profile_exemplar_age(ex, ngx_http_profile_exemplar_now())
        < NGX_HTTP_PROFILE_RECENT)
    {
        return 0;
    }

    ngx_http_profile_exemplar_next = now + NGX_HTTP_PROFILE_PAUSE;

    return 1;
}


static ngx_http_profile_exemplar_t *
ngx_http_profile_exemplar_of(ngx_http_profile_track_t *tr, ngx_uint_t place)
{
    return &ngx_http_profile_exemplars[place * NGX_HTTP_PROFILE_BUCKETS
                     + ngx_http_profile_bucket(&ngx_http_profile_wall_bounds,
                                               tr->times.wall)];
}


static uint64_t
ngx_http_profile_exemplar_now(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


/*
 * An exemplar may be from the future: another worker's time is newer, or the
 * clock was set back.
 */

static uint64_t
ngx_http_profile_exemplar_age(ngx_http_profile_exemplar_t *ex, uint64_t now)
{
    return now > ex->time ? now - ex->time : ex->time - now;
}


/* without a trace, the exemplar has only the id of the profile */

void
ngx_http_profile_exemplar_set(ngx_http_profile_track_t *tr)
{
    uint64_t                      now;
    prof_trace_t                  trace;
    ngx_atomic_uint_t             sequence, writing;
    ngx_http_profile_exemplar_t  *ex;
    char                          trace_id[PROF_TRACE_ID_LEN + 1];
    char                          span_id[PROF_SPAN_ID_LEN + 1];

    if (ngx_http_profile_exemplars == NULL
        || tr->id.len != NGX_HTTP_PROFILE_ID_LEN)
    {
        return;
    }

    ex = ngx_http_profile_exemplar_of(tr, tr->place);
    now = ngx_http_profile_exemplar_now();

    sequence = ex->sequence;
    writing = sequence | 1;

    if (sequence == writing) {

        if (ngx_http_profile_exemplar_age(ex, now)
            < NGX_HTTP_PROFILE_ABANDONED)
        {
            return;
        }

        writing += 2;
    }

    if (!ngx_atomic_cmp_set(&ex->sequence, sequence, writing)) {
        return;
    }

    ex->time = now;
    ex->wall = tr->times.wall;
    ngx_memcpy(ex->id, tr->id.data, NGX_HTTP_PROFILE_ID_LEN);
    ngx_memzero(ex->trace, PROF_TRACE_ID_LEN);

    if (ngx_http_profile_trace(tr->request, &trace) == NGX_OK) {
        prof_trace_text(&trace, trace_id, span_id);
        ngx_memcpy(ex->trace, trace_id, PROF_TRACE_ID_LEN);
    }

    ngx_memory_barrier();

    ex->sequence = writing + 1;
}


ngx_int_t
ngx_http_profile_exemplar_get(ngx_http_profile_directory_t *dir,
    ngx_uint_t place, ngx_uint_t bucket, ngx_http_profile_store_t *store,
    ngx_http_profile_exemplar_t *ex)
{
    ngx_int_t                     rc;
    ngx_str_t                     id;
    ngx_atomic_uint_t             sequence;
    ngx_http_profile_stored_t    *st;
    ngx_http_profile_exemplar_t  *shared;

    if (dir->exemplars == NULL || store == NULL) {
        return NGX_DECLINED;
    }

    shared = &dir->exemplars[place * NGX_HTTP_PROFILE_BUCKETS + bucket];

    sequence = shared->sequence;
    ngx_memory_barrier();

    *ex = *shared;

    ngx_memory_barrier();

    if (ex->time == 0 || (sequence & 1) || sequence != shared->sequence) {
        return NGX_DECLINED;
    }

    id.data = ex->id;
    id.len = NGX_HTTP_PROFILE_ID_LEN;

    rc = ngx_http_profile_store_find(store, &id, &st, ngx_cycle->log);

    if (rc != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_free(st);

    return NGX_OK;
}
