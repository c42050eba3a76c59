
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Spans of the callbacks of an upstream.  The callbacks are in the upstream's
 * own memory, and are replaced while the request is captured. nginx's modules
 * set them when the upstream is created, and set some of them again later.  So
 * the module checks them at every opportunity, at the latest at the end of
 * each turn.
 *
 * While a callback runs, the upstream has the callbacks of its own module.
 */


#include "roles/ngx_http_profile_roles.h"
#include "stages/ngx_http_profile_stages.h"


typedef ngx_int_t (*ngx_http_profile_callback_pt)(ngx_http_request_t *r);

typedef struct ngx_http_profile_callbacks_s  ngx_http_profile_callbacks_t;


/* the callbacks of nginx's modules */

struct ngx_http_profile_callbacks_s {
    ngx_http_profile_callback_pt      create_key;
    ngx_http_profile_callback_pt      create_request;
    ngx_http_profile_callback_pt      reinit_request;
    ngx_http_profile_callback_pt      process_header;
    void                            (*finalize_request)(ngx_http_request_t *r,
                                                        ngx_int_t rc);
    ngx_int_t                       (*input_filter_init)(void *data);
    ngx_int_t                       (*input_filter)(void *data,
                                                    ssize_t bytes);
    ngx_event_pipe_input_filter_pt    pipe_filter;
};


#define ngx_http_profile_wrap_one(to, saved, member, wrapper)                 \
    if ((to) && (to) != wrapper) {                                            \
        (saved)->member = (to);                                               \
        (to) = wrapper;                                                       \
    }


#define ngx_http_profile_unwrap_one(to, saved, member, wrapper)               \
    if ((to) == wrapper) {                                                    \
        (to) = (saved)->member;                                               \
    }


#define ngx_http_profile_see_one(to, saved, member, wrapper)                  \
    ngx_http_profile_see_role((uintptr_t) ((to) == wrapper ? (saved)->member  \
                                                           : (to)),           \
                              &u->conf->module, #member);


/* x(place, saved callback, replacement) */

#if (NGX_HTTP_CACHE)
#define ngx_http_profile_cache_callbacks(x, u, saved)                         \
    x((u)->create_key, saved, create_key, ngx_http_profile_create_key)
#else
#define ngx_http_profile_cache_callbacks(x, u, saved)
#endif

#define ngx_http_profile_all_callbacks(x, u, saved)                           \
    ngx_http_profile_cache_callbacks(x, u, saved)                             \
    x((u)->create_request, saved, create_request,                             \
      ngx_http_profile_create_request)                                        \
    x((u)->reinit_request, saved, reinit_request,                             \
      ngx_http_profile_reinit_request)                                        \
    x((u)->process_header, saved, process_header,                             \
      ngx_http_profile_process_header)                                        \
    x((u)->finalize_request, saved, finalize_request,                         \
      ngx_http_profile_finalize_request)                                      \
    x((u)->input_filter_init, saved, input_filter_init,                       \
      ngx_http_profile_input_filter_init)                                     \
    x((u)->input_filter, saved, input_filter, ngx_http_profile_input_filter)  \
                                                                              \
    if ((u)->pipe) {                                                          \
        x((u)->pipe->input_filter, saved, pipe_filter,                        \
          ngx_http_profile_pipe_filter)                                       \
    }


static void ngx_http_profile_see_upstream(ngx_http_profile_subrequest_t *sr);
static void ngx_http_profile_see_handler(uintptr_t handler,
    const char *purpose);
static void ngx_http_profile_wrap_callbacks(ngx_http_profile_track_t *tr,
    ngx_http_profile_subrequest_t *sr);
static void ngx_http_profile_unwrap_callbacks(
    ngx_http_profile_subrequest_t *sr);

#if (NGX_HTTP_CACHE)
static ngx_int_t ngx_http_profile_create_key(ngx_http_request_t *r);
#endif
static ngx_int_t ngx_http_profile_create_request(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_reinit_request(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_process_header(ngx_http_request_t *r);
static void ngx_http_profile_finalize_request(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_profile_input_filter_init(void *data);
static ngx_int_t ngx_http_profile_input_filter(void *data, ssize_t bytes);
static ngx_int_t ngx_http_profile_pipe_filter(ngx_event_pipe_t *p,
    ngx_buf_t *buf);

static ngx_int_t ngx_http_profile_callback(ngx_http_request_t *r,
    size_t offset, ngx_str_t *name);
static ngx_http_profile_subrequest_t *ngx_http_profile_filter_subrequest(
    void *data, ngx_event_pipe_t *p);
static ngx_uint_t ngx_http_profile_begin_callback(
    ngx_http_profile_subrequest_t *sr, ngx_str_t *name);
static void ngx_http_profile_end_callback(ngx_http_profile_subrequest_t *sr,
    ngx_uint_t span);


void
ngx_http_profile_wrap_upstreams(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_subrequest_t  *sr;

    if (!tr->stages || !tr->spans) {
        return;
    }

    for (sr = tr->subrequests; sr; sr = sr->next) {

        if (sr->request->upstream) {
            ngx_http_profile_wrap_callbacks(tr, sr);
        }
    }
}


void
ngx_http_profile_see_roles(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    const char                     *purpose;
    ngx_http_request_t             *r;
    ngx_http_profile_subrequest_t  *sr;

    purpose = wake->timer ? "timer handler" : "event handler";

    if (wake->connection && wake->connection == tr->request->connection) {
        purpose = "client event handler";
    }

    for (sr = tr->subrequests; sr; sr = sr->next) {
        r = sr->request;

        ngx_http_profile_see_handler((uintptr_t) r->read_event_handler,
                                     "request read event handler");
        ngx_http_profile_see_handler((uintptr_t) r->write_event_handler,
                                     "request write event handler");

        if (r->upstream == NULL) {
            continue;
        }

        ngx_http_profile_see_upstream(sr);

        if (wake->connection
            && wake->connection == r->upstream->peer.connection)
        {
            purpose = "upstream event handler";
        }
    }

    if (wake->event) {
        ngx_http_profile_see_handler((uintptr_t) wake->event->handler,
                                     purpose);
    }
}


static void
ngx_http_profile_see_upstream(ngx_http_profile_subrequest_t *sr)
{
    ngx_http_upstream_t           *u;
    ngx_http_profile_callbacks_t   none;

    u = sr->request->upstream;

    ngx_http_profile_see_handler((uintptr_t) u->read_event_handler,
                                 "upstream read event handler");
    ngx_http_profile_see_handler((uintptr_t) u->write_event_handler,
                                 "upstream write event handler");

    if (u->conf == NULL) {
        return;
    }

    ngx_memzero(&none, sizeof(ngx_http_profile_callbacks_t));

    ngx_http_profile_all_callbacks(ngx_http_profile_see_one, u,
                                   (sr->callbacks ? sr->callbacks : &none));
}


static void
ngx_http_profile_see_handler(uintptr_t handler, const char *purpose)
{
    static ngx_str_t  none = ngx_null_string;

    ngx_http_profile_see_role(handler, &none, purpose);
}


void
ngx_http_profile_unwrap_upstreams(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_subrequest_t  *sr;

    for (sr = tr->subrequests; sr; sr = sr->next) {

        if (sr->request->upstream && sr->callbacks) {
            ngx_http_profile_unwrap_callbacks(sr);
        }
    }
}


static void
ngx_http_profile_wrap_callbacks(ngx_http_profile_track_t *tr,
    ngx_http_profile_subrequest_t *sr)
{
    ngx_http_upstream_t  *u;

    u = sr->request->upstream;

    if (sr->callbacks == NULL) {
        sr->callbacks = ngx_pcalloc(tr->request->pool,
                                      sizeof(ngx_http_profile_callbacks_t));

        if (sr->callbacks == NULL) {
            return;
        }
    }

    ngx_http_profile_all_callbacks(ngx_http_profile_wrap_one, u,
                                   sr->callbacks);
}


static void
ngx_http_profile_unwrap_callbacks(ngx_http_profile_subrequest_t *sr)
{
    ngx_http_upstream_t  *u;

    u = sr->request->upstream;

    ngx_http_profile_all_callbacks(ngx_http_profile_unwrap_one, u,
                                   sr->callbacks);
}


#if (NGX_HTTP_CACHE)

PROF_GLUE static ngx_int_t
ngx_http_profile_create_key(ngx_http_request_t *r)
{
    static ngx_str_t  name = ngx_string("upstream: create key");

    return ngx_http_profile_callback(r,
                          offsetof(ngx_http_profile_callbacks_t, create_key),
                          &name);
}

#endif


PROF_GLUE static ngx_int_t
ngx_http_profile_create_request(ngx_http_request_t *r)
{
    static ngx_str_t  name = ngx_string("upstream: create request");

    return ngx_http_profile_callback(r,
                      offsetof(ngx_http_profile_callbacks_t, create_request),
                      &name);
}


PROF_GLUE static ngx_int_t
ngx_http_profile_reinit_request(ngx_http_request_t *r)
{
    static ngx_str_t  name = ngx_string("upstream: reinit request");

    return ngx_http_profile_callback(r,
                      offsetof(ngx_http_profile_callbacks_t, reinit_request),
                      &name);
}


PROF_GLUE static ngx_int_t
ngx_http_profile_process_header(ngx_http_request_t *r)
{
    static ngx_str_t  name = ngx_string("upstream: process header");

    return ngx_http_profile_callback(r,
                      offsetof(ngx_http_profile_callbacks_t, process_header),
                      &name);
}


PROF_GLUE static ngx_int_t
ngx_http_profile_callback(ngx_http_request_t *r, size_t offset,
    ngx_str_t *name)
{
    ngx_int_t                       rc;
    ngx_uint_t                      span;
    ngx_http_profile_track_t       *tr;
    ngx_http_profile_callback_pt   *callback;
    ngx_http_profile_subrequest_t  *sr;

    tr = ngx_http_profile_find_track(r);
    sr = tr ? ngx_http_profile_add_subrequest(tr, r) : NULL;

    if (sr == NULL || sr->callbacks == NULL) {
        return NGX_ERROR;
    }

    callback = (ngx_http_profile_callback_pt *)
                   ((u_char *) sr->callbacks + offset);

    span = ngx_http_profile_begin_callback(sr, name);

    rc = (*callback)(r);

    ngx_http_profile_end_callback(sr, span);

    return rc;
}


/* the request may be freed when the callback returns */

PROF_GLUE static void
ngx_http_profile_finalize_request(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t                      span;
    prof_capture_t                 *c;
    ngx_http_profile_track_t       *tr;
    ngx_http_profile_subrequest_t  *sr;

    static ngx_str_t  name = ngx_string("upstream: finalize");

    tr = ngx_http_profile_find_track(r);
    sr = tr ? ngx_http_profile_add_subrequest(tr, r) : NULL;

    if (sr == NULL || sr->callbacks == NULL) {
        return;
    }

    c = tr->capture;
    span = ngx_http_profile_begin_callback(sr, &name);

    sr->callbacks->finalize_request(r, rc);

    if (span) {
        ngx_http_profile_end_span(tr, c);
    }
}


PROF_GLUE static ngx_int_t
ngx_http_profile_input_filter_init(void *data)
{
    ngx_int_t                       rc;
    ngx_uint_t                      span;
    ngx_http_profile_subrequest_t  *sr;

    static ngx_str_t  name = ngx_string("upstream: input filter init");

    sr = ngx_http_profile_filter_subrequest(data, NULL);

    if (sr == NULL) {
        return NGX_ERROR;
    }

    span = ngx_http_profile_begin_callback(sr, &name);

    rc = sr->callbacks->input_filter_init(data);

    ngx_http_profile_end_callback(sr, span);

    return rc;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_input_filter(void *data, ssize_t bytes)
{
    ngx_int_t                       rc;
    ngx_uint_t                      span;
    ngx_http_profile_subrequest_t  *sr;

    static ngx_str_t  name = ngx_string("upstream: input filter");

    sr = ngx_http_profile_filter_subrequest(data, NULL);

    if (sr == NULL) {
        return NGX_ERROR;
    }

    span = ngx_http_profile_begin_callback(sr, &name);

    rc = sr->callbacks->input_filter(data, bytes);

    ngx_http_profile_end_callback(sr, span);

    return rc;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_pipe_filter(ngx_event_pipe_t *p, ngx_buf_t *buf)
{
    ngx_int_t                       rc;
    ngx_uint_t                      span;
    ngx_http_profile_subrequest_t  *sr;

    static ngx_str_t  name = ngx_string("upstream: input filter");

    sr = ngx_http_profile_filter_subrequest(NULL, p);

    if (sr == NULL) {
        return NGX_ERROR;
    }

    span = ngx_http_profile_begin_callback(sr, &name);

    rc = sr->callbacks->pipe_filter(p, buf);

    ngx_http_profile_end_callback(sr, span);

    return rc;
}


/*
 * Returns the subrequest whose upstream has this pipe or filter context.  The
 * subrequest exists, since nginx passes the values of the upstream.
 */

static ngx_http_profile_subrequest_t *
ngx_http_profile_filter_subrequest(void *data, ngx_event_pipe_t *p)
{
    ngx_queue_t                    *q;
    ngx_http_upstream_t            *u;
    ngx_http_profile_track_t       *tr;
    ngx_http_profile_subrequest_t  *sr;

    for (q = ngx_queue_head(&ngx_http_profile_staged_tracks);
         q != ngx_queue_sentinel(&ngx_http_profile_staged_tracks);
         q = ngx_queue_next(q))
    {
        tr = ngx_queue_data(q, ngx_http_profile_track_t, staged);

        for (sr = tr->subrequests; sr; sr = sr->next) {
            u = sr->request->upstream;

            if (u == NULL || sr->callbacks == NULL) {
                continue;
            }

            if (p ? u->pipe == p
                  : (u->input_filter_ctx == data
                     || (u->pipe && u->pipe->input_ctx == data)))
            {
                return sr;
            }
        }
    }

    return NULL;
}


/* returns 1 if the span has to be ended */

static ngx_uint_t
ngx_http_profile_begin_callback(ngx_http_profile_subrequest_t *sr,
    ngx_str_t *name)
{
    ngx_http_profile_track_t  *tr;

    ngx_http_profile_unwrap_callbacks(sr);

    tr = ngx_http_profile_staged(sr->request);

    return tr ? ngx_http_profile_begin_span(tr, name) : 0;
}


/* the callback may have set other callbacks for the next steps */

static void
ngx_http_profile_end_callback(ngx_http_profile_subrequest_t *sr,
    ngx_uint_t span)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_staged(sr->request);

    if (tr == NULL) {
        return;
    }

    if (span) {
        ngx_http_profile_end_span(tr, tr->capture);
    }

    ngx_http_profile_wrap_callbacks(tr, sr);
}
