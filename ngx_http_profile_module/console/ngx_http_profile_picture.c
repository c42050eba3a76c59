
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Stored profiles in any format.  A thread encodes them.
 */


#include "core/ngx_http_profile_fate.h"
#include "core/ngx_http_profile_param.h"
#include "store/ngx_http_profile_store.h"
#include "console/ngx_http_profile_routes.h"


/* maximum number of pictures that one worker makes at a time */

#define NGX_HTTP_PROFILE_PICTURES  8


static ngx_int_t ngx_http_profile_picture_args(
    ngx_http_profile_picture_t *pic, ngx_http_profile_call_t *call,
    ngx_int_t *answer);
static void ngx_http_profile_picture_abort(ngx_http_profile_call_t *call);
static void ngx_http_profile_picture_work(void *data);
static prof_profile_t *ngx_http_profile_picture_read(
    ngx_http_profile_picture_t *pic, ngx_uint_t i);
static void ngx_http_profile_picture_done(void *data);
static void ngx_http_profile_picture_destroy(void *data);
static void ngx_http_profile_picture_drop(ngx_http_profile_picture_t *pic);
static ngx_int_t ngx_http_profile_picture_answer(
    ngx_http_profile_picture_t *pic);


static ngx_uint_t  ngx_http_profile_npictures;


ngx_int_t
ngx_http_profile_picture(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_http_profile_picture_t *asked)
{
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_http_profile_picture_t  *pic;

    if (ngx_http_profile_npictures >= NGX_HTTP_PROFILE_PICTURES) {

        ngx_http_profile_picture_drop(asked);

        if (ngx_http_profile_add_text_header(call->request, "Retry-After",
                                             "1")
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_profile_answer_error(call, NGX_HTTP_TOO_MANY_REQUESTS,
                                 "%d profiles are being read already",
                                 NGX_HTTP_PROFILE_PICTURES);
    }

    pic = ngx_calloc(sizeof(ngx_http_profile_picture_t),
                     call->request->connection->log);
    if (pic == NULL) {
        ngx_http_profile_picture_drop(asked);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    *pic = *asked;

    prof_buf_init(&pic->out);

    pic->store = store;
    pic->gzip.accepted = ngx_http_profile_accept_gzip(call->request);

    for (i = 0; i < pic->n; i++) {
        pic->id[i].data = pic->id_data[i];
        pic->id[i].len = ngx_min(asked->id[i].len, NGX_HTTP_PROFILE_ID_LEN);
        ngx_memcpy(pic->id[i].data, asked->id[i].data, pic->id[i].len);
    }

    if (ngx_http_profile_picture_args(pic, call, &rc) != NGX_OK) {
        ngx_http_profile_picture_drop(pic);
        ngx_free(pic);
        return rc;
    }

    pic->job.work = ngx_http_profile_picture_work;
    pic->job.done = ngx_http_profile_picture_done;
    pic->job.data = pic;
    pic->job.rank = NGX_HTTP_PROFILE_JOB_ASKED;
    pic->job.size = sizeof(ngx_http_profile_picture_t);

    rc = ngx_http_profile_job_start(&pic->job);

    if (rc != NGX_OK) {
        ngx_http_profile_picture_drop(pic);
        ngx_free(pic);
        return ngx_http_profile_answer_no_job(call, rc);
    }

    ngx_http_profile_npictures++;

    rc = ngx_http_profile_call_hold(call, ngx_http_profile_picture_abort, pic);

    if (rc == NGX_DONE) {
        pic->call = call;
    }

    return rc;
}


/*
 * Reads the format and the mode from the query, which have the names of a
 * trigger's arguments.  Returns NGX_OK, or NGX_DECLINED with the result of the
 * route in *answer.
 */

static ngx_int_t
ngx_http_profile_picture_args(ngx_http_profile_picture_t *pic,
    ngx_http_profile_call_t *call, ngx_int_t *answer)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    *answer = NGX_HTTP_INTERNAL_SERVER_ERROR;

    rc = ngx_http_profile_call_param(call, "profile_mode",
                                     NGX_HTTP_PROFILE_PARAM_MODE,
                                     &pic->params);
    if (rc != NGX_DECLINED) {
        *answer = rc;
        return NGX_DECLINED;
    }

    rc = ngx_http_profile_call_arg(call, "profile_format", &value);

    if (rc == NGX_OK && pic->encoder) {
        pic->encoder = prof_encoder_find((char *) value.data, value.len);

        if (pic->encoder == NULL) {
            *answer = ngx_http_profile_answer_error(call,
                                  NGX_HTTP_BAD_REQUEST,
                                  "profile_format is \"%V\", it must be the "
                                  "name of a format", &value);
            return NGX_DECLINED;
        }
    }

    return (rc == NGX_ERROR) ? NGX_DECLINED : NGX_OK;
}


static void
ngx_http_profile_picture_abort(ngx_http_profile_call_t *call)
{
    ngx_http_profile_picture_t  *pic;

    pic = call->data;
    pic->call = NULL;

    if (ngx_http_profile_job_cancel(&pic->job) == NGX_OK) {
        ngx_http_profile_picture_done(pic);
    }
}


/* context: the thread */

static void
ngx_http_profile_picture_work(void *data)
{
    ngx_http_profile_picture_t *pic = data;

    ngx_uint_t       i;
    prof_profile_t  *p[2];

    if (pic->unread) {
        (void) pic->make(pic, NULL);
        return;
    }

    for (i = 0; i < pic->n; i++) {
        p[i] = ngx_http_profile_picture_read(pic, i);

        if (p[i] == NULL) {
            break;
        }
    }

    if (i == pic->n) {
        pic->rc = NGX_ERROR;
        pic->err = "no memory";

        if (pic->make(pic, p) == PROF_OK && !prof_buf_failed(&pic->out)) {
            ngx_http_profile_gzip(&pic->out, &pic->gzip);
            pic->rc = NGX_OK;
        }
    }

    while (i--) {
        prof_profile_destroy(p[i]);
    }
}


static prof_profile_t *
ngx_http_profile_picture_read(ngx_http_profile_picture_t *pic, ngx_uint_t i)
{
    uint32_t         lost, renamed;
    prof_profile_t  *p;

    pic->missing = i;

    pic->rc = ngx_http_profile_store_get(pic->store, &pic->id[i], &pic->st[i],
                                         ngx_cycle->log);
    if (pic->rc != NGX_OK) {
        return NULL;
    }

    pic->rc = NGX_ERROR;

    p = prof_archive_read(pic->st[i]->archive, pic->st[i]->size, &pic->err);
    if (p == NULL) {
        return NULL;
    }

    /* names that were not known in time may be known now, and are then kept */

    lost = p->stats.lost_names;
    renamed = 0;

    if (prof_profile_symbolize(p) != PROF_OK
        || (lost && prof_profile_rename(p, NULL, 0, &renamed) != PROF_OK))
    {
        prof_profile_destroy(p);
        pic->err = "no memory";
        return NULL;
    }

    if (renamed || p->stats.lost_names != lost) {
        (void) ngx_http_profile_picture_keep(pic, i, p);
        pic->err = NULL;
    }

    p->mode = ngx_http_profile_param(&pic->params, NGX_HTTP_PROFILE_PARAM_MODE,
                                     p->mode);

    return p;
}


static void
ngx_http_profile_picture_done(void *data)
{
    ngx_http_profile_picture_t *pic = data;

    ngx_http_profile_npictures--;

    if (pic->call) {
        ngx_http_profile_call_end(pic->call,
                                  ngx_http_profile_picture_answer(pic));
    }

    ngx_http_profile_picture_drop(pic);
    ngx_http_profile_job_free(&pic->job, ngx_http_profile_picture_destroy);
}


/* context: the thread, or the event loop */

static void
ngx_http_profile_picture_destroy(void *data)
{
    ngx_http_profile_picture_t *pic = data;

    prof_buf_free(&pic->out);
    ngx_free(pic->st[0]);
    ngx_free(pic->st[1]);
    ngx_free(pic);
}


static void
ngx_http_profile_picture_drop(ngx_http_profile_picture_t *pic)
{
    if (pic->free) {
        pic->free(pic->data);
    }
}


static ngx_int_t
ngx_http_profile_picture_answer(ngx_http_profile_picture_t *pic)
{
    ngx_http_profile_call_t    *call;
    ngx_http_profile_answer_t   answer;

    call = pic->call;

    if (pic->rc == NGX_DECLINED) {
        return ngx_http_profile_answer_no_profile(call,
                                                  &pic->id[pic->missing]);
    }

    if (pic->root.unknown) {
        return ngx_http_profile_answer_no_root(call, &pic->root);
    }

    if (pic->rc == NGX_ABORT) {
        return ngx_http_profile_answer_error(call,
                             NGX_HTTP_INTERNAL_SERVER_ERROR,
                             "the profile \"%V\" is damaged, and was removed",
                             &pic->id[pic->missing]);
    }

    if (pic->rc == NGX_HTTP_NOT_FOUND) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                             "the profile \"%V\" has %s",
                             &pic->id[pic->missing], pic->err);
    }

    if (pic->rc == NGX_BUSY) {
        return ngx_http_profile_answer_error(call,
                             NGX_HTTP_INSUFFICIENT_STORAGE,
                             "the profile has new names, and does not fit in "
                             "the store with them: it keeps the old names");
    }

    if (pic->unread && pic->rc != NGX_OK) {
        return ngx_http_profile_answer_error(call,
                             NGX_HTTP_INTERNAL_SERVER_ERROR,
                             "the pin was not written, see the error log");
    }

    if (pic->rc != NGX_OK || !pic->job.worked) {
        return ngx_http_profile_answer_error(call,
                             NGX_HTTP_INTERNAL_SERVER_ERROR,
                             "the profile cannot be read: %s",
                             pic->err ? pic->err : "see the error log");
    }

    if (pic->unread) {
        return ngx_http_profile_answer_nothing(call);
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.gzipped = pic->gzip.done;
    answer.compressible = 1;

    if (pic->diff) {
        answer.type.data = (u_char *) pic->diff->content_type;
        answer.csp = pic->diff->csp;
        answer.framed = 1;

    } else if (pic->encoder) {
        answer.type.data = (u_char *) pic->encoder->content_type;
        answer.csp = pic->encoder->csp;
        answer.framed = !pic->encoder->download;

        if (pic->encoder->download
            && ngx_http_profile_file_name(call->request->pool,
                                  &pic->st[0]->method, &pic->st[0]->uri,
                                  ngx_http_profile_param(&pic->params,
                                              NGX_HTTP_PROFILE_PARAM_MODE,
                                              pic->st[0]->mode),
                                  pic->st[0]->start / 1000,
                                  pic->encoder->extension, &answer.file)
               != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

    } else if (pic->html) {
        answer.type.data = (u_char *) "text/html; charset=utf-8";
        answer.csp = NGX_HTTP_PROFILE_CSP_PAGE;

    } else {
        answer.type.data = (u_char *) "application/json";
    }

    answer.type.len = ngx_strlen(answer.type.data);

    return ngx_http_profile_answer_buf(call, &answer, &pic->out);
}


ngx_int_t
ngx_http_profile_no_store(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                          "there is no store, see the \"profile_zone\" "
                          "directive");
}


ngx_int_t
ngx_http_profile_answer_no_profile(ngx_http_profile_call_t *call,
    ngx_str_t *id)
{
    switch (ngx_http_profile_fate(id)) {

    case NGX_HTTP_PROFILE_FATE_WAITS:

        if (ngx_http_profile_add_text_header(call->request, "Retry-After",
                                             "1")
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                          "the profile \"%V\" is not stored yet: its request "
                          "runs, or the profile is being made", id);

    case NGX_HTTP_PROFILE_FATE_NEVER:
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                          "the profile \"%V\" was never stored: its client or "
                          "its worker left, or a limit dropped it", id);

    case NGX_HTTP_PROFILE_FATE_STORED:
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                          "the profile \"%V\" is gone: the store was full and "
                          "it was the oldest, or it was deleted", id);

    default:
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                          "there is no profile \"%V\": it was removed long "
                          "ago, or it was never made", id);
    }
}
