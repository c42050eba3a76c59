
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Requests for metrics.  A job makes the text, since it may be long.
 */


#include "core/ngx_http_profile_ground.h"
#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_job.h"
#include "metrics/ngx_http_profile_metrics_private.h"
#include "call/ngx_http_profile_call.h"
#include "request/ngx_http_profile_request.h"


/* limit of answers that one worker makes at a time */
#define NGX_HTTP_PROFILE_SCRAPES  4


typedef struct {
    ngx_http_profile_job_t         job;
    ngx_http_profile_call_t       *call;      /* NULL: the client is gone */
    ngx_http_profile_directory_t  *dir;
    ngx_http_profile_store_t      *store;     /* of exemplars, or NULL */
    ngx_uint_t                     openmetrics;
    ngx_uint_t                     own;       /* with pages of the module */
    prof_buf_t                     out;
    ngx_http_profile_gzip_t        gzip;
} ngx_http_profile_scrape_t;


static ngx_int_t ngx_http_profile_metrics_start(
    ngx_http_profile_call_t *call, ngx_uint_t own);
static void ngx_http_profile_metrics_abort(ngx_http_profile_call_t *call);
static void ngx_http_profile_metrics_work(void *data);
static void ngx_http_profile_metrics_done(void *data);
static ngx_int_t ngx_http_profile_metrics_answer(
    ngx_http_profile_scrape_t *scrape);


static const char  *ngx_http_profile_metrics_types[] = {
    "text/plain; version=0.0.4; charset=utf-8",
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    NULL
};


static ngx_uint_t  ngx_http_profile_nscrapes;


ngx_int_t
ngx_http_profile_metrics_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_uint_t                own;
    ngx_http_profile_call_t  *call;

    static ngx_http_profile_log_limit_t  line;

    ngx_http_profile_own_work();

    if (ngx_http_profile_is_off()) {
        return ngx_http_profile_ground_answer(r);
    }

    call = ngx_pcalloc(r->pool, sizeof(ngx_http_profile_call_t));
    if (call == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    call->request = r;
    call->root = "";

    rc = ngx_http_profile_call_permits(call, "metrics are", &line);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_profile_call_site(call, 1);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    call->negotiated = 1;

    if (ngx_http_profile_directory == NULL) {
        return ngx_http_profile_answer_error(call,
                            NGX_HTTP_SERVICE_UNAVAILABLE,
                            "there are no metrics until nginx is reloaded, "
                            "see the error log");
    }

    rc = ngx_http_profile_call_own(call, &own);

    return rc == NGX_DECLINED ? ngx_http_profile_metrics_start(call, own) : rc;
}


static ngx_int_t
ngx_http_profile_metrics_start(ngx_http_profile_call_t *call, ngx_uint_t own)
{
    ngx_int_t                   rc;
    ngx_http_profile_scrape_t  *scrape;

    if (ngx_http_profile_nscrapes >= NGX_HTTP_PROFILE_SCRAPES) {
        return ngx_http_profile_answer_no_job(call, NGX_BUSY);
    }

    scrape = ngx_calloc(sizeof(ngx_http_profile_scrape_t),
                        call->request->connection->log);
    if (scrape == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    prof_buf_init(&scrape->out);

    scrape->store = ngx_http_profile_store(call->request);
    scrape->openmetrics =
        ngx_http_profile_accept_type(call->request,
                                     ngx_http_profile_metrics_types);
    scrape->gzip.accepted = ngx_http_profile_accept_gzip(call->request);

    scrape->dir = ngx_http_profile_directory;
    scrape->own = own;

    /* the thread may begin before ngx_http_profile_job_start() returns */

    scrape->job.work = ngx_http_profile_metrics_work;
    scrape->job.done = ngx_http_profile_metrics_done;
    scrape->job.data = scrape;
    scrape->job.rank = NGX_HTTP_PROFILE_JOB_ASKED;
    scrape->job.size = sizeof(ngx_http_profile_scrape_t);

    rc = ngx_http_profile_job_start(&scrape->job);

    if (rc != NGX_OK) {
        ngx_free(scrape);
        return ngx_http_profile_answer_no_job(call, rc);
    }

    scrape->dir->users++;
    ngx_http_profile_nscrapes++;

    rc = ngx_http_profile_call_hold(call, ngx_http_profile_metrics_abort,
                                    scrape);
    if (rc == NGX_DONE) {
        scrape->call = call;
    }

    return rc;
}


static void
ngx_http_profile_metrics_abort(ngx_http_profile_call_t *call)
{
    ngx_http_profile_scrape_t  *scrape;

    scrape = call->data;
    scrape->call = NULL;

    if (ngx_http_profile_job_cancel(&scrape->job) == NGX_OK) {
        ngx_http_profile_metrics_done(scrape);
    }
}


/* in the thread */

static void
ngx_http_profile_metrics_work(void *data)
{
    ngx_http_profile_scrape_t *scrape = data;

    ngx_http_profile_expose(scrape->dir, scrape->store, scrape->openmetrics,
                            scrape->own, &scrape->out);

    if (!prof_buf_failed(&scrape->out)) {
        ngx_http_profile_gzip(&scrape->out, &scrape->gzip);
    }
}


static void
ngx_http_profile_metrics_done(void *data)
{
    ngx_http_profile_scrape_t *scrape = data;

    ngx_http_profile_nscrapes--;

    if (scrape->call) {
        ngx_http_profile_call_end(scrape->call,
                                  ngx_http_profile_metrics_answer(scrape));
    }

    ngx_http_profile_directory_free(scrape->dir);
    prof_buf_free(&scrape->out);
    ngx_free(scrape);
}


static ngx_int_t
ngx_http_profile_metrics_answer(ngx_http_profile_scrape_t *scrape)
{
    ngx_http_profile_answer_t  answer;

    if (!scrape->job.worked) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.gzipped = scrape->gzip.done;
    answer.compressible = 1;
    answer.type.data =
              (u_char *) ngx_http_profile_metrics_types[scrape->openmetrics];
    answer.type.len = ngx_strlen(answer.type.data);

    return ngx_http_profile_answer_buf(scrape->call, &answer, &scrape->out);
}
