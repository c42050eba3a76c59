
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The turn log in the console: the last seconds of all workers, which can be
 * stored, and stored snapshots.
 */


#include "core/ngx_http_profile_job.h"
#include "turns/ngx_http_profile_snapshot.h"
#include "console/ngx_http_profile_routes.h"


#define NGX_HTTP_PROFILE_TURNS_SECONDS   2000     /* ms */
#define NGX_HTTP_PROFILE_TURNS_LONGEST   3600000

/* answers that one worker makes at a time */
#define NGX_HTTP_PROFILE_TURNS_ANSWERS   4


/* appends a snapshot in one of the formats */
typedef int (*ngx_http_profile_turns_pt)(prof_turns_snapshot_t *s,
    prof_buf_t *b);


typedef struct {
    ngx_http_profile_job_t        job;
    ngx_http_profile_call_t      *call;      /* NULL: the client left */
    ngx_http_profile_snapshot_t  *snapshot;
    ngx_http_profile_store_t     *store;     /* NULL: the answer is the log */
    ngx_http_profile_turns_pt     make;
    u_char                        id[NGX_HTTP_PROFILE_ID_LEN];
    ngx_int_t                     ms;
    ngx_int_t                     rc;
    prof_buf_t                    out;
    ngx_http_profile_gzip_t       gzip;
} ngx_http_profile_turns_answer_t;


static ngx_int_t ngx_http_profile_turns_route(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_turns_one_route(
    ngx_http_profile_call_t *call);
static int ngx_http_profile_turns_one(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static int ngx_http_profile_turns_one_trace(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static int ngx_http_profile_turns_make(ngx_http_profile_picture_t *pic,
    prof_profile_t *p, ngx_http_profile_turns_pt make);
static ngx_int_t ngx_http_profile_turns_format(ngx_http_profile_call_t *call,
    ngx_http_profile_turns_pt *make);
static void ngx_http_profile_turns_abort(ngx_http_profile_call_t *call);
static void ngx_http_profile_turns_work(void *data);
static void ngx_http_profile_turns_done(void *data);
static ngx_int_t ngx_http_profile_turns_answer(
    ngx_http_profile_turns_answer_t *a);
static void ngx_http_profile_turns_free(void *data);


const ngx_http_profile_route_t  ngx_http_profile_turns_routes[] = {

    { ngx_string("turns"), NGX_HTTP_GET,
      ngx_http_profile_turns_route,
      "the last seconds of the turn log of all workers, and who delayed whom: "
      "seconds=, format=json or trace",
      NGX_HTTP_PROFILE_PAGE|NGX_HTTP_PROFILE_DRAWN },

    { ngx_string("turns"), NGX_HTTP_POST,
      ngx_http_profile_turns_route,
      "stores the last seconds of the turn log: seconds=", 0 },

    { ngx_string("turns/*"), NGX_HTTP_GET,
      ngx_http_profile_turns_one_route,
      "turns/ID: the turn log in a profile: format=json or trace",
      NGX_HTTP_PROFILE_PAGE|NGX_HTTP_PROFILE_DRAWN },

    { ngx_null_string, 0, NULL, NULL, 0 }
};


static ngx_uint_t  ngx_http_profile_turns_nanswers;


static ngx_int_t
ngx_http_profile_turns_route(ngx_http_profile_call_t *call)
{
    uint64_t                          now;
    ngx_int_t                         rc, ms;
    ngx_str_t                         value;
    ngx_http_profile_store_t         *store;
    ngx_http_profile_turns_pt         make;
    ngx_http_profile_turns_answer_t  *a;

    ms = NGX_HTTP_PROFILE_TURNS_SECONDS;
    store = NULL;

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

    rc = ngx_http_profile_turns_format(call, &make);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (!ngx_http_profile_logs_turns()) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                   "there is no turn log, \"profile_turn_log on\" in the "
                   "\"http\" block makes one");
    }

    if (call->request->method == NGX_HTTP_POST) {
        store = ngx_http_profile_store(call->request);

        if (store == NULL) {
            return ngx_http_profile_no_store(call);
        }
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

    now = prof_now();

    a->ms = ms;
    a->store = store;
    a->make = make;
    a->gzip.accepted = ngx_http_profile_accept_gzip(call->request);
    a->snapshot = ngx_http_profile_snapshot_begin(PROF_TURNS_ASKED,
                                now - ngx_min(now, (uint64_t) ms * 1000000),
                                0);

    if (a->snapshot == NULL
        || (store && ngx_http_profile_make_id(a->id,
                                              call->request->connection->log)
                     != NGX_OK))
    {
        ngx_http_profile_turns_free(a);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->job.work = ngx_http_profile_turns_work;
    a->job.done = ngx_http_profile_turns_done;
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


static ngx_int_t
ngx_http_profile_turns_format(ngx_http_profile_call_t *call,
    ngx_http_profile_turns_pt *make)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    *make = ngx_http_profile_turns_json;

    rc = ngx_http_profile_call_arg(call, "format", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    if (ngx_http_profile_str_eq(&value, "json", 4)) {
        return NGX_DECLINED;
    }

    if (ngx_http_profile_str_eq(&value, "trace", 5)) {
        *make = ngx_http_profile_turns_trace;
        return NGX_DECLINED;
    }

    return ngx_http_profile_call_wrong(call, "format", &value,
                                       "\"json\" or \"trace\"");
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


static void
ngx_http_profile_turns_work(void *data)
{
    ngx_http_profile_turns_answer_t *a = data;

    u_char                  title[sizeof("turn log of 3600.000 s")];
    prof_turns_snapshot_t  *s;

    if (a->store) {
        *ngx_snprintf(title, sizeof(title) - 1, "turn log of %.3f s",
                      (double) a->ms / 1000) = '\0';

        a->rc = ngx_http_profile_snapshot_store(a->snapshot, a->store, a->id,
                                                (char *) title, 0);
        return;
    }

    a->rc = NGX_ERROR;

    s = ngx_http_profile_snapshot_make(a->snapshot);
    if (s == NULL) {
        return;
    }

    if (a->make(s, &a->out) == PROF_OK
        && !prof_buf_failed(&a->out))
    {
        ngx_http_profile_gzip(&a->out, &a->gzip);
        a->rc = NGX_OK;
    }

    prof_turns_snapshot_destroy(s);
}


static void
ngx_http_profile_turns_done(void *data)
{
    ngx_http_profile_turns_answer_t *a = data;

    ngx_http_profile_turns_nanswers--;

    if (a->call) {
        ngx_http_profile_call_end(a->call, ngx_http_profile_turns_answer(a));
    }

    /* copies of logs may be large */

    ngx_http_profile_job_free(&a->job, ngx_http_profile_turns_free);
}


static ngx_int_t
ngx_http_profile_turns_answer(ngx_http_profile_turns_answer_t *a)
{
    ngx_http_profile_answer_t  answer;

    if (!a->job.worked) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    if (a->rc == NGX_DECLINED) {
        return ngx_http_profile_answer_error(a->call,
                                   NGX_HTTP_INSUFFICIENT_STORAGE,
                                   "the turn log "
                                   NGX_HTTP_PROFILE_STORE_FULL);
    }

    if (a->rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (a->store) {
        return ngx_http_profile_answer_json(a->call, NGX_HTTP_CREATED,
                                   json_pack("{s:s%}", "id", a->id,
                                   (size_t) NGX_HTTP_PROFILE_ID_LEN));
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    ngx_str_set(&answer.type, "application/json");
    answer.gzipped = a->gzip.done;
    answer.compressible = a->gzip.compressible;

    return ngx_http_profile_answer_buf(a->call, &answer, &a->out);
}


/* context: the thread, or the event loop */

static void
ngx_http_profile_turns_free(void *data)
{
    ngx_http_profile_turns_answer_t *a = data;

    ngx_http_profile_snapshot_free(a->snapshot);
    prof_buf_free(&a->out);
    ngx_free(a);
}


static ngx_int_t
ngx_http_profile_turns_one_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                    rc;
    ngx_http_profile_store_t    *store;
    ngx_http_profile_turns_pt    make;
    ngx_http_profile_picture_t   asked;

    rc = ngx_http_profile_turns_format(call, &make);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    store = ngx_http_profile_store(call->request);

    if (store == NULL) {
        return ngx_http_profile_no_store(call);
    }

    if (!ngx_http_profile_store_has(store, &call->rest)) {
        return ngx_http_profile_answer_no_profile(call, &call->rest);
    }

    ngx_memzero(&asked, sizeof(ngx_http_profile_picture_t));

    asked.n = 1;
    asked.id[0] = call->rest;
    asked.make = make == ngx_http_profile_turns_trace
                 ? ngx_http_profile_turns_one_trace
                 : ngx_http_profile_turns_one;

    return ngx_http_profile_picture(call, store, &asked);
}


/* context: the thread */

static int
ngx_http_profile_turns_one(ngx_http_profile_picture_t *pic, prof_profile_t **p)
{
    return ngx_http_profile_turns_make(pic, p[0], ngx_http_profile_turns_json);
}


static int
ngx_http_profile_turns_one_trace(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    return ngx_http_profile_turns_make(pic, p[0], ngx_http_profile_turns_trace);
}


static int
ngx_http_profile_turns_make(ngx_http_profile_picture_t *pic, prof_profile_t *p,
    ngx_http_profile_turns_pt make)
{
    int                     rc;
    prof_turns_snapshot_t  *s;

    pic->missing = 0;

    if (p->turns == NULL) {
        pic->rc = NGX_HTTP_NOT_FOUND;
        pic->err = "no part of the turn log";
        return PROF_ERROR;
    }

    s = prof_turns_snapshot_read(p->turns, p->turns_len);

    if (s == NULL) {
        pic->rc = NGX_HTTP_NOT_FOUND;
        pic->err = "a turn log of another version";
        return PROF_ERROR;
    }

    rc = make(s, &pic->out);

    prof_turns_snapshot_destroy(s);

    return rc;
}
