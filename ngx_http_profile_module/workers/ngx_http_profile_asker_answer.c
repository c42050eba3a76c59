
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The answer of a capture of workers: the profile, the id of the profile in the
 * store, or the console's page of the profile.
 */


#include "request/ngx_http_profile_request.h"
#include "workers/ngx_http_profile_asker.h"

#include <jansson.h>


/* a text of NGX_HTTP_PROFILE_SEEN names, and of workers that are left out */
#define NGX_HTTP_PROFILE_WHY_LEN  2048


static ngx_int_t ngx_http_profile_asker_refuse(ngx_http_profile_asker_t *s);
static ngx_int_t ngx_http_profile_asker_nothing(ngx_http_profile_asker_t *s);
static ngx_int_t ngx_http_profile_asker_keep_headers(
    ngx_http_profile_asker_t *s);
static ngx_int_t ngx_http_profile_asker_kept(ngx_http_profile_asker_t *s);
static ngx_int_t ngx_http_profile_asker_page(ngx_http_profile_asker_t *s);


ngx_int_t
ngx_http_profile_asker_answer(ngx_http_profile_asker_t *s)
{
    const prof_encoder_t       *format;
    ngx_http_profile_call_t    *call;
    ngx_http_profile_answer_t   answer;

    static ngx_str_t  none = ngx_null_string;
    static ngx_str_t  nginx = ngx_string("nginx");

    call = s->call;
    format = s->wanted.format;

    if (s->merged.failed) {
        return ngx_http_profile_answer_error(call,
                            NGX_HTTP_INTERNAL_SERVER_ERROR,
                            "there is no memory for the profile");
    }

    if (s->merged.nworkers == 0) {
        return ngx_http_profile_asker_refuse(s);
    }

    if (ngx_http_profile_asker_is_empty(s)) {
        return ngx_http_profile_asker_nothing(s);
    }

    if (ngx_http_profile_asker_is_kept(s)) {
        return ngx_http_profile_asker_kept(s);
    }

    if (ngx_http_profile_asker_keep_headers(s) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.type.data = (u_char *) format->content_type;
    answer.type.len = ngx_strlen(format->content_type);
    answer.csp = format->csp;
    answer.gzipped = s->gzip.done;
    answer.compressible = s->gzip.compressible;

    if (format->download
        && ngx_http_profile_file_name(call->request->pool, &nginx, &none,
                                      s->wanted.conf.mode, ngx_time(),
                                      format->extension, &answer.file)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer_buf(call, &answer, &s->out);
}


/* answers with an error, because no worker took part */

static ngx_int_t
ngx_http_profile_asker_refuse(ngx_http_profile_asker_t *s)
{
    ngx_uint_t                i;
    ngx_http_profile_call_t  *call;

    call = s->call;

    for (i = 0; i < s->nmembers; i++) {

        if (s->members[i].state == NGX_HTTP_PROFILE_MEMBER_DONE
            && s->members[i].report == NGX_HTTP_PROFILE_BUSY)
        {
            if (ngx_http_profile_add_text_header(call->request,
                                                 "Retry-After", "5")
                != NGX_OK)
            {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            return ngx_http_profile_answer_error(call,
                                NGX_HTTP_TOO_MANY_REQUESTS,
                                "%d captures are running already, which is "
                                "the limit", NGX_HTTP_PROFILE_SHARES);
        }
    }

    return ngx_http_profile_answer_error(call, NGX_HTTP_SERVICE_UNAVAILABLE,
                                         "no worker took part: %s",
                                         s->merged.left_out);
}


/* answers why the capture of an endpoint has no request */

static ngx_int_t
ngx_http_profile_asker_nothing(ngx_http_profile_asker_t *s)
{
    u_char                     *p, *last;
    ngx_uint_t                  i;
    const char                 *sep;
    ngx_http_profile_merged_t  *m;
    u_char                      why[NGX_HTTP_PROFILE_WHY_LEN];

    m = &s->merged;
    p = why;
    last = why + sizeof(why);
    sep = "; requests that ended in other locations: ";

    if (m->skipped) {
        p = ngx_slprintf(p, last, "; left out, since captures take at most a "
                                  "tenth of the time: %ui", m->skipped);
    }

    if (m->unfinished) {
        p = ngx_slprintf(p, last, "; still running: %ui", m->unfinished);
    }

    for (i = 0; i < NGX_HTTP_PROFILE_SEEN && m->seen[i].requests; i++) {
        p = ngx_slprintf(p, last, "%s%s: %ui", sep, m->seen[i].name,
                         m->seen[i].requests);
        sep = ", ";
    }

    if (p == why) {
        p = ngx_slprintf(p, last,
                         "; requests that ended in other locations: 0");
    }

    if (m->left_out[0]) {
        p = ngx_slprintf(p, last, "; workers without an answer: %s",
                         m->left_out);
    }

    if (ngx_http_profile_add_text_header(s->call->request,
                                         "X-Profile-Dropped",
                                         "no request was captured")
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer_error(s->call, NGX_HTTP_NOT_FOUND,
                   "no request of \"%s\" ended in %ui.%ui seconds%*s",
                   ngx_http_profile_asker_title(&s->wanted),
                   s->wanted.time / 1000, s->wanted.time % 1000 / 100,
                   (size_t) (p - why), why);
}


/* answers with the captures of endpoints that run, in all workers */

ngx_int_t
ngx_http_profile_asker_progress(ngx_http_profile_call_t *call)
{
    char                       *title;
    size_t                      len;
    json_t                     *list;
    uint64_t                    now;
    ngx_uint_t                  i;
    ngx_http_profile_ticket_t   t;

    list = json_array();
    now = prof_now();

    for (i = 0; i < NGX_HTTP_PROFILE_TICKETS; i++) {

        if (ngx_http_profile_ticket_read(i, &t) != NGX_OK) {
            continue;
        }

        len = ngx_strlen(t.title);
        title = prof_text_utf8(t.title, &len);

        json_array_append_new(list,
            json_pack("{s:s%, s:I, s:I, s:f}",
                      "title", title ? title : "", title ? len : 0,
                      "requests", (json_int_t) t.left,
                      "wanted", (json_int_t) t.wanted,
                      "seconds_left",
                      t.end > now ? (double) (t.end - now) / 1e9 : 0.0));
        free(title);
    }

    return ngx_http_profile_answer_json(call, NGX_HTTP_OK,
                                        json_pack("{s:o}", "captures", list));
}


ngx_int_t
ngx_http_profile_asker_keep_init(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted)
{
    wanted->store = ngx_http_profile_store(call->request);

    if (wanted->store == NULL) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                 "there is no store, see the "
                                 "\"profile_zone\" directive");
    }

    return ngx_http_profile_make_id(wanted->id,
                                    call->request->connection->log)
           == NGX_OK ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/* context: the thread that merges */

ngx_int_t
ngx_http_profile_asker_keep(ngx_http_profile_asker_t *s, prof_profile_t *p)
{
    ngx_int_t                  rc;
    prof_buf_t                 archive;
    ngx_http_profile_stored_t  st;

    prof_buf_init(&archive);

    if (prof_archive_write(p, &archive) != PROF_OK) {
        prof_buf_free(&archive);
        return NGX_ERROR;
    }

    ngx_memzero(&st, sizeof(ngx_http_profile_stored_t));

    ngx_memcpy(st.id, s->wanted.id, NGX_HTTP_PROFILE_ID_LEN);

    st.start = p->start_realtime / 1000000;
    st.waited = (p->wall > p->running && p->mode == PROF_MODE_WALL)
                ? p->wall - p->running : 0;
    st.archive = (u_char *) archive.data;
    st.size = archive.len;

    ngx_http_profile_store_measure(&st, p);

    st.uri.data = (u_char *) p->title;
    st.uri.len = ngx_strlen(p->title);

    if (s->wanted.filter.enabled) {
        ngx_str_set(&st.scope, "endpoint");

    } else if (s->wanted.worker == -1) {
        ngx_str_set(&st.scope, "all");

    } else {
        ngx_str_set(&st.scope, "worker");
        st.worker = s->members[0].pid;
    }

    rc = ngx_http_profile_store_add(s->wanted.store, &st, ngx_cycle->log);

    prof_buf_free(&archive);

    return rc;
}


ngx_uint_t
ngx_http_profile_asker_is_kept(ngx_http_profile_asker_t *s)
{
    return s->wanted.store && !s->wanted.sent
           && (s->merged.stored == NGX_OK || !s->wanted.page);
}


/* adds headers: the URL of the stored profile, or why it is not stored */

static ngx_int_t
ngx_http_profile_asker_keep_headers(ngx_http_profile_asker_t *s)
{
    u_char              *id;
    ngx_http_request_t  *r;

    r = s->call->request;
    id = s->wanted.id;

    if (s->wanted.store == NULL) {
        return NGX_OK;
    }

    if (ngx_http_profile_add_id(r, id) != NGX_OK) {
        return NGX_ERROR;
    }

    if (s->merged.stored == NGX_OK) {
        return ngx_http_profile_add_link(r, id);
    }

    return ngx_http_profile_add_text_header(s->call->request,
                                            "X-Profile-Dropped",
                                            s->merged.stored == NGX_DECLINED
                                            ? NGX_HTTP_PROFILE_STORE_FULL
                                            : NGX_HTTP_PROFILE_STORE_FAILED);
}


static ngx_int_t
ngx_http_profile_asker_kept(ngx_http_profile_asker_t *s)
{
    if (s->wanted.page) {
        return ngx_http_profile_asker_page(s);
    }

    if (s->merged.stored == NGX_DECLINED) {
        return ngx_http_profile_answer_error(s->call,
                                   NGX_HTTP_INSUFFICIENT_STORAGE,
                                   "the profile "
                                   NGX_HTTP_PROFILE_STORE_FULL);
    }

    if (s->merged.stored != NGX_OK) {
        return ngx_http_profile_answer_error(s->call,
                                   NGX_HTTP_INTERNAL_SERVER_ERROR,
                                   NGX_HTTP_PROFILE_STORE_FAILED);
    }

    return ngx_http_profile_answer_json(s->call, NGX_HTTP_CREATED,
                                   json_pack("{s:s%}", "id", s->wanted.id,
                                   (size_t) NGX_HTTP_PROFILE_ID_LEN));
}


/* answers with the console's page of the profile */

static ngx_int_t
ngx_http_profile_asker_page(ngx_http_profile_asker_t *s)
{
    prof_buf_t                    b;
    ngx_http_request_t           *r;
    ngx_http_profile_answer_t     answer;
    ngx_http_profile_srv_conf_t  *pscf;

    r = s->call->request;

    if (ngx_http_profile_asker_keep_headers(s) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    prof_buf_init(&b);
    pscf->page(r, s->wanted.id, &b);

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    ngx_str_set(&answer.type, "text/html; charset=utf-8");
    answer.csp = NGX_HTTP_PROFILE_CSP_PAGE;
    answer.compressible = 1;

    return ngx_http_profile_answer_buf(s->call, &answer, &b);
}
