
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The mode "object".  Blocks of nginx's pools count as other blocks do, for
 * the stack that made a pool grow.  When the capture ends, the request's pool
 * still exists.  It is freed with the request, so its blocks count as freed.
 * The blocks of the connection's pool also count as freed if the connection
 * will be closed.
 *
 * The bytes taken from the blocks of a pool are the difference of the pool's
 * fill at the borders of spans.  They are exact, and need no hook.
 */


#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_log_limit.h"
#include "request/ngx_http_profile_request.h"
#include "request/ngx_http_profile_object.h"
#include "stages/ngx_http_profile_stages.h"
#include "core/ngx_http_profile_job.h"


struct ngx_http_profile_late_s {
    ngx_queue_t                  queue;
    ngx_event_t                  timer;
    ngx_connection_t             connection;   /* for nginx's messages */
    prof_capture_t              *capture;
    ngx_msec_t                   grace;
    prof_profile_t              *profile;
    ngx_http_profile_object_pt   fn;
    ngx_http_profile_object_pt   drop;
    void                        *data;
};


static void ngx_http_profile_object_late(ngx_event_t *ev);
static void ngx_http_profile_object_end_wait(ngx_http_profile_late_t *late);
static void ngx_http_profile_forget_pool(prof_heap_t *h, ngx_pool_t *pool);
static void ngx_http_profile_object_push(ngx_http_profile_track_t *tr,
    ngx_str_t *name);
static void ngx_http_profile_object_pop(ngx_http_profile_track_t *tr);
static ngx_uint_t ngx_http_profile_object_span(
    ngx_http_profile_object_t *object, ngx_str_t *name);
static void ngx_http_profile_object_border(ngx_http_profile_ctx_t *ctx);
static size_t ngx_http_profile_pool_fill(ngx_pool_t *pool);
static void ngx_http_profile_object_fact(ngx_http_profile_ctx_t *ctx,
    const char *name, ngx_uint_t connection);


/* the first row of each table: bytes that were taken outside of spans */

static ngx_str_t  ngx_http_profile_object_other = ngx_string("other");

/* the number of contexts that count allocations */

static ngx_uint_t  ngx_http_profile_nobjects;

static ngx_queue_t  ngx_http_profile_lates = {
    &ngx_http_profile_lates, &ngx_http_profile_lates
};


void
ngx_http_profile_object_begin(ngx_http_profile_ctx_t *ctx)
{
    ngx_connection_t             *c;
    prof_heap_conf_t              conf;
    ngx_http_request_t           *r;
    ngx_http_profile_object_t    *object;
    ngx_http_profile_loc_conf_t  *plcf;

    if (ctx->object) {
        return;
    }

    r = ctx->request;
    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    /* not in the pool, because the pool is measured */

    object = ngx_calloc(sizeof(ngx_http_profile_object_t), ngx_cycle->log);
    if (object == NULL) {
        return;
    }

    ngx_http_profile_object_span(object, &ngx_http_profile_object_other);
    object->request_pool = r->pool;

    /* all streams share the pool of their connection */

    c = r->connection;

    if (c >= ngx_cycle->connections
        && c < ngx_cycle->connections + ngx_cycle->connection_n)
    {
        object->connection_pool = c->pool;
    }

    object->request = ngx_http_profile_pool_fill(object->request_pool);
    object->connection = ngx_http_profile_pool_fill(object->connection_pool);

    ctx->object = object;

    ngx_http_profile_nobjects++;

    ngx_http_profile_stage_observers.span_begins =
                                                ngx_http_profile_object_push;
    ngx_http_profile_stage_observers.span_ends = ngx_http_profile_object_pop;

    /* an interval of 0: a request allocates little, so nothing is sampled */

    conf.memory = plcf->buffer;
    conf.interval = 0;
    conf.process = 0;

    if (prof_capture_heap(ctx->track->capture, ngx_http_profile_sampler(),
                          &conf, &object->error)
        != PROF_OK)
    {
        ngx_http_profile_log(NGX_LOG_ERR, r->connection->log, ngx_errno,
                             "profile: allocations cannot be counted: %s",
                             object->error);
    }
}


/*
 * Counts memory that will be freed with the request as freed, so that the
 * profile does not show it as in use.
 */

void
ngx_http_profile_object_end(ngx_http_profile_ctx_t *ctx)
{
    prof_heap_t  *h;

    if (ctx->object == NULL) {
        return;
    }

    ngx_http_profile_object_border(ctx);

    h = prof_capture_get_heap(ctx->track->capture);

    if (h == NULL) {
        return;
    }

    ngx_http_profile_forget_pool(h, ctx->object->request_pool);

    if (!ctx->request->keepalive && ctx->object->connection_pool) {
        ngx_http_profile_forget_pool(h, ctx->object->connection_pool);
    }
}


/*
 * The profile waits for the time of profile_object_grace.  A profile that a
 * capture of an endpoint takes does not wait.
 */

ngx_uint_t
ngx_http_profile_object_take(ngx_http_profile_ctx_t *ctx)
{
    u_char                       *p;
    prof_heap_t                  *h;
    prof_heap_totals_t            totals;
    ngx_http_profile_late_t      *late;
    ngx_http_profile_loc_conf_t  *plcf;
    u_char                        text[2 * NGX_INT64_LEN + 32];

    if (ctx->object == NULL || ctx->profile == NULL || ctx->take) {
        return 0;
    }

    plcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_profile_module);
    h = prof_capture_get_heap(ctx->track->capture);

    if (plcf->object_grace == 0 || h == NULL) {
        return 0;
    }

    late = ngx_calloc(sizeof(ngx_http_profile_late_t), ngx_cycle->log);
    if (late == NULL) {
        return 0;
    }

    prof_heap_totals(h, &totals);

    p = ngx_sprintf(text, "%uL bytes in %uL blocks", totals.inuse_space,
                    totals.inuse_objects);

    (void) prof_profile_fact(ctx->profile, "in_use_before_grace",
                             (char *) text, p - text);

    late->capture = ctx->track->capture;
    late->grace = plcf->object_grace;

    ctx->object->late = late;

    return 1;
}


ngx_int_t
ngx_http_profile_object_wait(ngx_http_profile_ctx_t *ctx,
    prof_profile_t *profile, ngx_http_profile_object_pt fn,
    ngx_http_profile_object_pt drop, void *data)
{
    ngx_http_profile_late_t  *late;

    if (ctx->object == NULL || ctx->object->late == NULL) {
        return NGX_DECLINED;
    }

    late = ctx->object->late;
    ctx->object->late = NULL;

    late->profile = profile;
    late->fn = fn;
    late->drop = drop;
    late->data = data;

    late->connection.fd = (ngx_socket_t) -1;
    late->connection.data = late;

    late->timer.handler = ngx_http_profile_object_late;
    late->timer.data = &late->connection;
    late->timer.log = ngx_cycle->log;

    ngx_add_timer(&late->timer, late->grace);
    ngx_queue_insert_tail(&ngx_http_profile_lates, &late->queue);

    return NGX_OK;
}


static void
ngx_http_profile_object_late(ngx_event_t *ev)
{
    ngx_connection_t         *c;
    ngx_http_profile_late_t  *late;

    ngx_http_profile_own_work();

    c = ev->data;
    late = c->data;

    ngx_queue_remove(&late->queue);

    prof_capture_settle(late->capture, late->profile);
    prof_capture_destroy(late->capture);

    late->fn(late->data);

    ngx_free(late);
}


ngx_int_t
ngx_http_profile_object_leave(void *data)
{
    ngx_queue_t              *q;
    ngx_http_profile_late_t  *late;

    for (q = ngx_queue_head(&ngx_http_profile_lates);
         q != ngx_queue_sentinel(&ngx_http_profile_lates);
         q = ngx_queue_next(q))
    {
        late = ngx_queue_data(q, ngx_http_profile_late_t, queue);

        if (late->data == data) {
            ngx_http_profile_object_end_wait(late);
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static void
ngx_http_profile_object_end_wait(ngx_http_profile_late_t *late)
{
    ngx_queue_remove(&late->queue);

    if (late->timer.timer_set) {
        ngx_del_timer(&late->timer);
    }

    ngx_http_profile_free_capture(late->capture);
    ngx_free(late);
}


/* the process ends, so profiles that wait are not made */

void
ngx_http_profile_object_exit(void)
{
    void                        *data;
    ngx_queue_t                 *q;
    ngx_http_profile_late_t     *late;
    ngx_http_profile_object_pt   drop;

    while (!ngx_queue_empty(&ngx_http_profile_lates)) {
        q = ngx_queue_head(&ngx_http_profile_lates);
        late = ngx_queue_data(q, ngx_http_profile_late_t, queue);

        drop = late->drop;
        data = late->data;

        ngx_http_profile_object_end_wait(late);

        drop(data);
    }
}


void
ngx_http_profile_object_drop(ngx_http_profile_ctx_t *ctx)
{
    if (ctx->object == NULL) {
        return;
    }

    if (ctx->object->late) {
        ngx_http_profile_free_capture(ctx->object->late->capture);
        ngx_free(ctx->object->late);
    }

    ngx_free(ctx->object);
    ctx->object = NULL;

    ngx_http_profile_nobjects--;

    if (ngx_http_profile_nobjects == 0) {
        ngx_http_profile_stage_observers.span_begins = NULL;
        ngx_http_profile_stage_observers.span_ends = NULL;
    }
}


static void
ngx_http_profile_forget_pool(prof_heap_t *h, ngx_pool_t *pool)
{
    ngx_pool_t        *p;
    ngx_pool_large_t  *l;

    for (l = pool->large; l; l = l->next) {
        if (l->alloc) {
            prof_heap_forget(h, l->alloc);
        }
    }

    for (p = pool; p; p = p->d.next) {
        prof_heap_forget(h, p);
    }
}


/* a span begins; bytes that were taken before it belong to the outer span */

static void
ngx_http_profile_object_push(ngx_http_profile_track_t *tr, ngx_str_t *name)
{
    ngx_uint_t                  i;
    ngx_http_profile_object_t  *object;

    object = tr->ctx->object;

    if (object == NULL) {
        return;
    }

    ngx_http_profile_object_border(tr->ctx);

    i = ngx_http_profile_object_span(object, name);

    if (object->depth < NGX_HTTP_PROFILE_POOL_NESTED) {
        object->nested[object->depth] = i;
    }

    object->depth++;
}


/* returns the span's number, or 0 (no span) if there are too many spans */

static ngx_uint_t
ngx_http_profile_object_span(ngx_http_profile_object_t *object,
    ngx_str_t *name)
{
    size_t                         len;
    ngx_uint_t                     i;
    ngx_http_profile_pool_span_t  *span;

    len = ngx_min(name->len, NGX_HTTP_PROFILE_POOL_NAME);

    for (i = 0; i < object->nspans; i++) {
        span = &object->spans[i];

        if (span->len == len && ngx_memcmp(span->name, name->data, len) == 0) {
            return i;
        }
    }

    if (i == NGX_HTTP_PROFILE_POOL_SPANS) {
        return 0;
    }

    span = &object->spans[object->nspans++];

    span->len = len;
    ngx_memcpy(span->name, name->data, len);

    return i;
}


static void
ngx_http_profile_object_pop(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_ctx_t  *ctx;

    ctx = tr->ctx;

    if (ctx->object == NULL || ctx->object->depth == 0) {
        return;
    }

    ngx_http_profile_object_border(ctx);

    ctx->object->depth--;
}


/* counts the bytes since the last border for the innermost span */

static void
ngx_http_profile_object_border(ngx_http_profile_ctx_t *ctx)
{
    size_t                         fill;
    ngx_uint_t                     depth;
    ngx_http_profile_object_t     *object;
    ngx_http_profile_pool_span_t  *span;

    object = ctx->object;

    depth = ngx_min(object->depth, NGX_HTTP_PROFILE_POOL_NESTED);
    span = &object->spans[depth ? object->nested[depth - 1] : 0];

    fill = ngx_http_profile_pool_fill(object->request_pool);
    span->request += fill - object->request;
    object->request = fill;

    fill = ngx_http_profile_pool_fill(object->connection_pool);
    span->connection += fill - object->connection;
    object->connection = fill;
}


/*
 * Returns the bytes that are in use in the blocks of a pool.  A pool does not
 * take back single pieces, so this number only grows.
 */

static size_t
ngx_http_profile_pool_fill(ngx_pool_t *pool)
{
    size_t       fill;
    ngx_pool_t  *p;

    fill = 0;

    for (p = pool; p; p = p->d.next) {
        fill += p->d.last - (u_char *) p;
    }

    return fill;
}


void
ngx_http_profile_object_facts(ngx_http_profile_ctx_t *ctx)
{
    ngx_http_profile_object_t  *object;

    object = ctx->object;

    if (object == NULL || ctx->profile == NULL) {
        return;
    }

    if (object->error) {
        (void) prof_profile_fact(ctx->profile, "allocations_not_counted",
                                 object->error, ngx_strlen(object->error));
    }

    ngx_http_profile_not_counted(ctx->profile);

    ngx_http_profile_object_fact(ctx, "request_pool", 0);
    ngx_http_profile_object_fact(ctx, "connection_pool", 1);
}


/* Lua takes its objects from a heap of its own, which grows in large pieces */

void
ngx_http_profile_not_counted(prof_profile_t *p)
{
    ngx_uint_t  i;

    static const char  text[] =
        "objects of Lua, whose heap is only counted where it grows (the "
        "difference of collectgarbage(\"count\") before and after a call "
        "shows what the call takes, in KB)";

    for (i = 0; ngx_cycle->modules[i]; i++) {

        if (ngx_strcmp(ngx_cycle->modules[i]->name, "ngx_http_lua_module")
            == 0)
        {
            (void) prof_profile_fact(p, PROF_FACT_NOT_COUNTED, text,
                                     sizeof(text) - 1);
            return;
        }
    }
}


static void
ngx_http_profile_object_fact(ngx_http_profile_ctx_t *ctx, const char *name,
    ngx_uint_t connection)
{
    u_char                        *p, *last;
    size_t                         bytes;
    ngx_uint_t                     i;
    ngx_http_profile_pool_span_t  *span;
    u_char                         text[NGX_MAX_ERROR_STR * 2];

    p = text;
    last = text + sizeof(text);

    for (i = 0; i < ctx->object->nspans; i++) {
        span = &ctx->object->spans[i];
        bytes = connection ? span->connection : span->request;

        if (bytes) {
            p = ngx_slprintf(p, last, "%s%*s %uz", p == text ? "" : ", ",
                             span->len, span->name, bytes);
        }
    }

    if (p != text) {
        (void) prof_profile_fact(ctx->profile, name, (char *) text, p - text);
    }
}
