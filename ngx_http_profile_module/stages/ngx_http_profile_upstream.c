
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Spans of the callbacks of an upstream.  The callbacks are in the upstream's
 * own memory, and are replaced while the request is captured.  nginx's modules
 * set them when the upstream is created, and set some of them again later.  So
 * they are checked at every opportunity, at the latest at the end of each
 * turn.
 *
 * While one of them runs, the upstream has the callbacks of its own module.
 */


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


static void ngx_http_profile_wrap_callbacks(ngx_http_profile_track_t *tr,
    ngx_http_profile_part_t *part);
static void ngx_http_profile_unwrap_callbacks(ngx_http_profile_part_t *part);

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
static ngx_http_profile_part_t *ngx_http_profile_filter_part(void *data,
    ngx_event_pipe_t *p);
static ngx_uint_t ngx_http_profile_begin_callback(
    ngx_http_profile_part_t *part, ngx_str_t *name);
static void ngx_http_profile_end_callback(ngx_http_profile_part_t *part,
    ngx_uint_t span);


void
ngx_http_profile_wrap_upstreams(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_part_t  *part;

    if (!tr->stages || !tr->spans) {
        return;
    }

    for (part = tr->parts; part; part = part->next) {

        if (part->request->upstream) {
            ngx_http_profile_wrap_callbacks(tr, part);
        }
    }
}


void
ngx_http_profile_unwrap_upstreams(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_part_t  *part;

    for (part = tr->parts; part; part = part->next) {

        if (part->request->upstream && part->callbacks) {
            ngx_http_profile_unwrap_callbacks(part);
        }
    }
}


static void
ngx_http_profile_wrap_callbacks(ngx_http_profile_track_t *tr,
    ngx_http_profile_part_t *part)
{
    ngx_http_upstream_t  *u;

    u = part->request->upstream;

    if (part->callbacks == NULL) {
        part->callbacks = ngx_pcalloc(tr->request->pool,
                                      sizeof(ngx_http_profile_callbacks_t));

        if (part->callbacks == NULL) {
            return;
        }
    }

    ngx_http_profile_all_callbacks(ngx_http_profile_wrap_one, u,
                                   part->callbacks);
}


static void
ngx_http_profile_unwrap_callbacks(ngx_http_profile_part_t *part)
{
    ngx_http_upstream_t  *u;

    u = part->request->upstream;

    ngx_http_profile_all_callbacks(ngx_http_profile_unwrap_one, u,
                                   part->callbacks);
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
    ngx_int_t                      rc;
    ngx_uint_t                     span;
    ngx_http_profile_part_t       *part;
    ngx_http_profile_track_t      *tr;
    ngx_http_profile_callback_pt  *callback;

    tr = ngx_http_profile_find_track(r);
    part = tr ? ngx_http_profile_add_part(tr, r) : NULL;

    if (part == NULL || part->callbacks == NULL) {
        return NGX_ERROR;
    }

    callback = (ngx_http_profile_callback_pt *)
                   ((u_char *) part->callbacks + offset);

    span = ngx_http_profile_begin_callback(part, name);

    rc = (*callback)(r);

    ngx_http_profile_end_callback(part, span);

    return rc;
}


/* the request may be freed when it returns */

PROF_GLUE static void
ngx_http_profile_finalize_request(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t                 span;
    prof_capture_t            *c;
    ngx_http_profile_part_t   *part;
    ngx_http_profile_track_t  *tr;

    static ngx_str_t  name = ngx_string("upstream: finalize");

    tr = ngx_http_profile_find_track(r);
    part = tr ? ngx_http_profile_add_part(tr, r) : NULL;

    if (part == NULL || part->callbacks == NULL) {
        return;
    }

    c = tr->capture;
    span = ngx_http_profile_begin_callback(part, &name);

    part->callbacks->finalize_request(r, rc);

    if (span) {
        ngx_http_profile_end_span(tr, c);
    }
}


PROF_GLUE static ngx_int_t
ngx_http_profile_input_filter_init(void *data)
{
    ngx_int_t                 rc;
    ngx_uint_t                span;
    ngx_http_profile_part_t  *part;

    static ngx_str_t  name = ngx_string("upstream: input filter init");

    part = ngx_http_profile_filter_part(data, NULL);

    if (part == NULL) {
        return NGX_ERROR;
    }

    span = ngx_http_profile_begin_callback(part, &name);

    rc = part->callbacks->input_filter_init(data);

    ngx_http_profile_end_callback(part, span);

    return rc;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_input_filter(void *data, ssize_t bytes)
{
    ngx_int_t                 rc;
    ngx_uint_t                span;
    ngx_http_profile_part_t  *part;

    static ngx_str_t  name = ngx_string("upstream: input filter");

    part = ngx_http_profile_filter_part(data, NULL);

    if (part == NULL) {
        return NGX_ERROR;
    }

    span = ngx_http_profile_begin_callback(part, &name);

    rc = part->callbacks->input_filter(data, bytes);

    ngx_http_profile_end_callback(part, span);

    return rc;
}


PROF_GLUE static ngx_int_t
ngx_http_profile_pipe_filter(ngx_event_pipe_t *p, ngx_buf_t *buf)
{
    ngx_int_t                 rc;
    ngx_uint_t                span;
    ngx_http_profile_part_t  *part;

    static ngx_str_t  name = ngx_string("upstream: input filter");

    part = ngx_http_profile_filter_part(NULL, p);

    if (part == NULL) {
        return NGX_ERROR;
    }

    span = ngx_http_profile_begin_callback(part, &name);

    rc = part->callbacks->pipe_filter(p, buf);

    ngx_http_profile_end_callback(part, span);

    return rc;
}


/*
 * Returns the part whose upstream has this pipe or this filter context.  It
 * always exists, since nginx passes the values of the upstream.
 */

static ngx_http_profile_part_t *
ngx_http_profile_filter_part(void *data, ngx_event_pipe_t *p)
{
    ngx_queue_t               *q;
    ngx_http_upstream_t       *u;
    ngx_http_profile_part_t   *part;
    ngx_http_profile_track_t  *tr;

    for (q = ngx_queue_head(&ngx_http_profile_staged_tracks);
         q != ngx_queue_sentinel(&ngx_http_profile_staged_tracks);
         q = ngx_queue_next(q))
    {
        tr = ngx_queue_data(q, ngx_http_profile_track_t, staged);

        for (part = tr->parts; part; part = part->next) {
            u = part->request->upstream;

            if (u == NULL || part->callbacks == NULL) {
                continue;
            }

            if (p ? u->pipe == p
                  : (u->input_filter_ctx == data
                     || (u->pipe && u->pipe->input_ctx == data)))
            {
                return part;
            }
        }
    }

    return NULL;
}


/* returns 1 if the span has to be ended */

static ngx_uint_t
ngx_http_profile_begin_callback(ngx_http_profile_part_t *part,
    ngx_str_t *name)
{
    ngx_http_profile_track_t  *tr;

    ngx_http_profile_unwrap_callbacks(part);

    tr = ngx_http_profile_staged(part->request);

    return tr ? ngx_http_profile_begin_span(tr, name) : 0;
}


/* the callback may have set others for the next steps */

static void
ngx_http_profile_end_callback(ngx_http_profile_part_t *part, ngx_uint_t span)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_staged(part->request);

    if (tr == NULL) {
        return;
    }

    if (span) {
        ngx_http_profile_end_span(tr, tr->capture);
    }

    ngx_http_profile_wrap_callbacks(tr, part);
}
