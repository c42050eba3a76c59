
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Stored profiles in any format, made by a thread.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_job.h"
#include "ngx_http_profile_profiles.h"


/* of the console in one worker at a time */

#define NGX_HTTP_PROFILE_PICTURES  8


typedef struct {
    ngx_http_profile_job_t      job;
    ngx_http_profile_call_t    *call;       /* NULL: the client is gone */

    /* the thread's, until it is done */

    ngx_http_profile_store_t   *store;
    ngx_str_t                   id;
    const prof_encoder_t       *encoder;    /* NULL: JSON */
    ngx_uint_t                  mode;
    u_char                      id_data[NGX_HTTP_PROFILE_ID_LEN];
    ngx_http_profile_stored_t  *st;
    prof_buf_t                  out;
    ngx_int_t                   rc;
    const char                 *err;

    unsigned                    mode_given:1;
    unsigned                    gzip:1;
    unsigned                    gzipped:1;
} ngx_http_profile_picture_t;


static ngx_int_t ngx_http_profile_picture_args(
    ngx_http_profile_picture_t *pic, ngx_http_profile_call_t *call,
    ngx_int_t *answer);
static void ngx_http_profile_picture_abort(ngx_http_profile_call_t *call);
static void ngx_http_profile_picture_work(void *data);
static int ngx_http_profile_picture_make(ngx_http_profile_picture_t *pic,
    prof_profile_t *p);
static int ngx_http_profile_picture_json(ngx_http_profile_picture_t *pic,
    prof_profile_t *p);
static int ngx_http_profile_picture_item(void *data,
    const prof_summary_t *item);
static json_t *ngx_http_profile_picture_formats(void);
static void ngx_http_profile_picture_gzip(ngx_http_profile_picture_t *pic);
static void ngx_http_profile_picture_done(void *data);
static ngx_int_t ngx_http_profile_picture_answer(
    ngx_http_profile_picture_t *pic);
static ngx_int_t ngx_http_profile_picture_file(
    ngx_http_profile_picture_t *pic, ngx_str_t *name);


static ngx_uint_t  ngx_http_profile_npictures;


ngx_int_t
ngx_http_profile_picture(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_str_t *id,
    const prof_encoder_t *encoder)
{
    ngx_int_t                    rc;
    ngx_http_profile_picture_t  *pic;

    if (ngx_http_profile_npictures >= NGX_HTTP_PROFILE_PICTURES) {

        if (ngx_http_profile_call_header(call, "Retry-After", "1")
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
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    prof_buf_init(&pic->out);

    pic->store = store;
    pic->encoder = encoder;
    pic->gzip = ngx_http_profile_call_gzip(call);
    pic->id.data = pic->id_data;
    pic->id.len = ngx_min(id->len, NGX_HTTP_PROFILE_ID_LEN);
    ngx_memcpy(pic->id.data, id->data, pic->id.len);

    if (ngx_http_profile_picture_args(pic, call, &rc) != NGX_OK) {
        ngx_free(pic);
        return rc;
    }

    pic->job.work = ngx_http_profile_picture_work;
    pic->job.done = ngx_http_profile_picture_done;
    pic->job.data = pic;

    if (ngx_http_profile_job_start(&pic->job) != NGX_OK) {
        ngx_free(pic);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_profile_npictures++;

    rc = ngx_http_profile_call_hold(call, ngx_http_profile_picture_abort, pic);

    if (rc == NGX_DONE) {
        pic->call = call;
    }

    return rc;
}


/*
 * Links of pages tell the format and the mode as a trigger does.  On
 * NGX_DECLINED *answer is what the route returns.
 */

static ngx_int_t
ngx_http_profile_picture_args(ngx_http_profile_picture_t *pic,
    ngx_http_profile_call_t *call, ngx_int_t *answer)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    *answer = NGX_HTTP_INTERNAL_SERVER_ERROR;

    rc = ngx_http_profile_call_arg(call, "profile_mode", &value);

    if (rc == NGX_OK) {

        if (ngx_http_profile_parse_mode(&value, &pic->mode) != NGX_OK) {
            *answer = ngx_http_profile_answer_error(call,
                                  NGX_HTTP_BAD_REQUEST,
                                  "profile_mode is \"%V\", it takes "
                                  "\"wall\", \"cpu\" or \"object\"",
                                  &value);
            return NGX_DECLINED;
        }

        pic->mode_given = 1;

    } else if (rc == NGX_ERROR) {
        return NGX_DECLINED;
    }

    rc = ngx_http_profile_call_arg(call, "profile_format", &value);

    if (rc == NGX_OK && pic->encoder) {
        pic->encoder = prof_encoder_find((char *) value.data, value.len);

        if (pic->encoder == NULL) {
            *answer = ngx_http_profile_answer_error(call,
                                  NGX_HTTP_BAD_REQUEST,
                                  "profile_format is \"%V\", which is no "
                                  "format", &value);
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
}


/* in the thread */

static void
ngx_http_profile_picture_work(void *data)
{
    ngx_http_profile_picture_t *pic = data;

    prof_profile_t  *p;

    pic->rc = ngx_http_profile_store_get(pic->store, &pic->id, &pic->st,
                                         ngx_cycle->log);
    if (pic->rc != NGX_OK) {
        return;
    }

    pic->rc = NGX_ERROR;

    p = prof_archive_read(pic->st->archive, pic->st->size, &pic->err);
    if (p == NULL) {
        return;
    }

    if (pic->mode_given) {
        p->mode = pic->mode;
    }

    if (prof_profile_symbolize(p) == PROF_OK
        && ngx_http_profile_picture_make(pic, p) == PROF_OK)
    {
        ngx_http_profile_picture_gzip(pic);
        pic->rc = NGX_OK;
    }

    prof_profile_destroy(p);
}


static int
ngx_http_profile_picture_make(ngx_http_profile_picture_t *pic,
    prof_profile_t *p)
{
    int  rc;

    pic->err = "no memory";

    rc = pic->encoder ? pic->encoder->encode(p, &pic->out)
                      : ngx_http_profile_picture_json(pic, p);

    return prof_buf_failed(&pic->out) ? PROF_ERROR : rc;
}


/* the facts of the store, and what the profile says about itself */

static int
ngx_http_profile_picture_json(ngx_http_profile_picture_t *pic,
    prof_profile_t *p)
{
    int      rc;
    char    *text;
    json_t  *json, *summary;

    json = ngx_http_profile_entry_json(pic->st);
    summary = json_array();

    rc = prof_summary(p, ngx_http_profile_picture_item, summary);

    if (json_object_set_new(json, "title", json_string(p->title)) != 0) {
        (void) json_object_set_new(json, "title", json_string("?"));
    }

    if (json_object_set_new(json, "summary", summary) != 0
        || json_object_set_new(json, "formats",
                               ngx_http_profile_picture_formats())
           != 0)
    {
        rc = PROF_ERROR;
    }

    text = (rc == PROF_OK) ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);

    if (text == NULL) {
        return PROF_ERROR;
    }

    prof_buf_puts(&pic->out, text);
    free(text);

    return PROF_OK;
}


static int
ngx_http_profile_picture_item(void *data, const prof_summary_t *item)
{
    json_t *summary = data;

    char    *text;
    size_t   len;
    json_t  *json;

    static const char  *units[] = {
        "", "count", "hz", "ns", "bytes"
    };

    json = json_pack("{s:s, s:s}", "name", item->name,
                     "text", item->text ? item->text : item->name);

    if (item->unit != PROF_SUMMARY_TEXT) {
        (void) json_object_set_new(json, "value",
                                   json_integer((json_int_t) item->number));
        (void) json_object_set_new(json, "unit",
                                   json_string(units[item->unit]));

    } else {
        len = strlen(item->value);
        text = prof_text_utf8(item->value, &len);

        (void) json_object_set_new(json, "value",
                                   json_string(text ? text : ""));
        free(text);
    }

    return json_array_append_new(summary, json) == 0 ? PROF_OK : PROF_ERROR;
}


static json_t *
ngx_http_profile_picture_formats(void)
{
    json_t      *list;
    ngx_uint_t   i;

    list = json_array();

    for (i = 0; prof_encoders[i]; i++) {
        (void) json_array_append_new(list, json_pack("{s:s, s:s, s:b}",
                         "name", prof_encoders[i]->name,
                         "extension", prof_encoders[i]->extension,
                         "download", (int) prof_encoders[i]->download));
    }

    return list;
}


/* without memory for it, it is sent as it is */

static void
ngx_http_profile_picture_gzip(ngx_http_profile_picture_t *pic)
{
    prof_buf_t  out;

    if (!pic->gzip || prof_gzip_is(pic->out.data, pic->out.len)) {
        return;
    }

    prof_buf_init(&out);

    if (prof_gzip(pic->out.data, pic->out.len, &out) != PROF_OK) {
        prof_buf_free(&out);
        return;
    }

    prof_buf_free(&pic->out);

    pic->out = out;
    pic->gzipped = 1;
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

    prof_buf_free(&pic->out);
    ngx_free(pic->st);
    ngx_free(pic);
}


static ngx_int_t
ngx_http_profile_picture_answer(ngx_http_profile_picture_t *pic)
{
    ngx_http_profile_call_t    *call;
    ngx_http_profile_answer_t   answer;

    call = pic->call;

    if (pic->rc == NGX_DECLINED) {
        return ngx_http_profile_answer_no_profile(call, &pic->id);
    }

    if (pic->rc != NGX_OK) {
        return ngx_http_profile_answer_error(call,
                             NGX_HTTP_INTERNAL_SERVER_ERROR,
                             "the profile cannot be shown: %s",
                             pic->err ? pic->err : "see the error log");
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.gzipped = pic->gzipped;
    answer.compressible = 1;

    if (pic->encoder == NULL) {
        ngx_str_set(&answer.type, "application/json");
        return ngx_http_profile_answer_buf(call, &answer, &pic->out);
    }

    answer.type.data = (u_char *) pic->encoder->content_type;
    answer.type.len = ngx_strlen(pic->encoder->content_type);
    answer.csp = pic->encoder->csp;
    answer.framed = !pic->encoder->download;

    if (pic->encoder->download
        && ngx_http_profile_picture_file(pic, &answer.file) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer_buf(call, &answer, &pic->out);
}


/* "GET-index.html-wall-20261121T150000Z.speedscope.json" */

static ngx_int_t
ngx_http_profile_picture_file(ngx_http_profile_picture_t *pic,
    ngx_str_t *name)
{
    u_char                     *p;
    ngx_tm_t                    tm;
    ngx_http_profile_stored_t  *st;
    u_char                      buf[256];

    st = pic->st;

    buf[0] = '"';

    p = ngx_http_profile_safe_name(buf + 1, buf + 17, &st->method);
    p = ngx_http_profile_safe_name(p, buf + 160, &st->uri);

    if (p[-1] != '"' && p[-1] != '-') {
        *p++ = '-';
    }

    ngx_gmtime(st->start / 1000, &tm);

    p = ngx_slprintf(p, buf + sizeof(buf), "%s-%4d%02d%02dT%02d%02d%02dZ.%s",
                     prof_summary_mode(pic->mode_given ? pic->mode : st->mode),
                     tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                     tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                     pic->encoder->extension);

    name->len = p - buf - 1;
    name->data = ngx_pnalloc(pic->call->request->pool, name->len);
    if (name->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(name->data, buf + 1, name->len);

    return NGX_OK;
}
