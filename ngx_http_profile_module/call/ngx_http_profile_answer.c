
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Answers to calls: their common headers and their bodies.
 */


#include "core/ngx_http_profile_log_limit.h"
#include "call/ngx_http_profile_call.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_loss.h"
#include "request/ngx_http_profile_request.h"

#include <jansson.h>


#define NGX_HTTP_PROFILE_GZIP_MIN  1024

/* a smaller body is freed faster than a job for it is queued */

#define NGX_HTTP_PROFILE_FREE_MIN  65536


typedef struct {
    ngx_http_profile_job_t   job;
    char                    *text;
    size_t                   len;
} ngx_http_profile_body_t;


static ngx_int_t ngx_http_profile_answer_headers(
    ngx_http_profile_call_t *call, ngx_http_profile_answer_t *answer);
static ngx_int_t ngx_http_profile_answer_gzip(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer);
static u_char *ngx_http_profile_answer_printable(u_char *p, u_char *last,
    u_char *to);
static ngx_int_t ngx_http_profile_answer_error_page(
    ngx_http_profile_call_t *call, ngx_http_profile_answer_t *answer,
    char *text, size_t len);
static ngx_int_t ngx_http_profile_answer_own(ngx_http_profile_call_t *call,
    char *text, size_t len);
static void ngx_http_profile_answer_free(void *data);
static void ngx_http_profile_answer_destroy(void *data);


ngx_int_t
ngx_http_profile_answer(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer)
{
    ngx_http_request_t  *r;

    r = call->request;

    if (answer->compressible
        && !answer->gzipped
        && answer->body.len >= NGX_HTTP_PROFILE_GZIP_MIN
        && ngx_http_profile_accept_gzip(call->request)
        && ngx_http_profile_answer_gzip(call, answer) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_profile_answer_headers(call, answer) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = answer->status ? answer->status : NGX_HTTP_OK;
    r->headers_out.content_type = answer->type;
    r->headers_out.content_type_len = answer->type.len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.content_length_n = answer->body.len;

    if (r->headers_out.status == NGX_HTTP_NO_CONTENT) {
        r->headers_out.content_length_n = -1;
        r->header_only = 1;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: console answer, status %ui, %uz bytes",
                   r->headers_out.status, answer->body.len);

    return ngx_http_profile_output(r, &answer->body);
}


static ngx_int_t
ngx_http_profile_answer_headers(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer)
{
    ngx_uint_t  i, n;

    struct {
        const char  *key;
        const char  *value;
    } headers[10];

    n = 0;

    headers[n].key = "Cache-Control";
    headers[n++].value = answer->immutable
                         ? "private, max-age=31536000, immutable"
                         : "no-store";

    headers[n].key = "X-Content-Type-Options";
    headers[n++].value = "nosniff";

    headers[n].key = "Content-Security-Policy";
    headers[n++].value = answer->csp ? answer->csp
                                     : NGX_HTTP_PROFILE_CSP_NONE;

    headers[n].key = "X-Frame-Options";
    headers[n++].value = answer->framed ? "SAMEORIGIN" : "DENY";

    headers[n].key = "Referrer-Policy";
    headers[n++].value = "same-origin";

    headers[n].key = "Cross-Origin-Resource-Policy";
    headers[n++].value = "same-origin";

    headers[n].key = "Vary";
    headers[n].value = ngx_http_profile_vary(call->negotiated,
                                             answer->compressible);
    n += (headers[n].value != NULL);

    if (answer->gzipped) {
        headers[n].key = "Content-Encoding";
        headers[n++].value = "gzip";
    }

    for (i = 0; i < n; i++) {
        if (ngx_http_profile_add_text_header(call->request, headers[i].key,
                                             headers[i].value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return answer->file.len
           ? ngx_http_profile_add_file_header(call->request, &answer->file)
           : NGX_OK;
}


ngx_int_t
ngx_http_profile_answer_no_job(ngx_http_profile_call_t *call, ngx_int_t rc)
{
    ngx_http_profile_lose(ngx_http_profile_loss_of(rc),
                          call->request->connection->log);

    if (rc != NGX_BUSY
        || ngx_http_profile_add_text_header(call->request, "Retry-After", "1")
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer_error(call, NGX_HTTP_TOO_MANY_REQUESTS,
                                         "too many profiles wait to be made "
                                         "in this worker");
}


static ngx_int_t
ngx_http_profile_answer_gzip(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer)
{
    prof_buf_t  b;

    prof_buf_init(&b);

    if (prof_gzip((char *) answer->body.data, answer->body.len, &b)
        != PROF_OK)
    {
        prof_buf_free(&b);
        return NGX_OK;
    }

    if (ngx_http_profile_answer_own(call, b.data, b.len) != NGX_OK) {
        return NGX_ERROR;
    }

    answer->body.data = (u_char *) b.data;
    answer->body.len = b.len;
    answer->gzipped = 1;

    return NGX_OK;
}


/* gives the text to the request, which frees it; on an error frees the text */

static ngx_int_t
ngx_http_profile_answer_own(ngx_http_profile_call_t *call, char *text,
    size_t len)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_profile_body_t  *body;

    cln = ngx_pool_cleanup_add(call->request->pool, 0);
    body = ngx_alloc(sizeof(ngx_http_profile_body_t),
                     call->request->connection->log);

    if (cln == NULL || body == NULL) {
        ngx_free(body);
        free(text);
        return NGX_ERROR;
    }

    body->job.data = body;
    body->text = text;
    body->len = len;

    cln->handler = ngx_http_profile_answer_free;
    cln->data = body;

    return NGX_OK;
}


static void
ngx_http_profile_answer_free(void *data)
{
    ngx_http_profile_body_t *body = data;

    if (body->len < NGX_HTTP_PROFILE_FREE_MIN) {
        ngx_http_profile_answer_destroy(body);
        return;
    }

    ngx_http_profile_job_free(&body->job, ngx_http_profile_answer_destroy);
}


/* context: the thread, or the event loop */

static void
ngx_http_profile_answer_destroy(void *data)
{
    ngx_http_profile_body_t *body = data;

    free(body->text);
    ngx_free(body);
}


ngx_int_t
ngx_http_profile_answer_json(ngx_http_profile_call_t *call,
    ngx_uint_t status, json_t *json)
{
    char                       *text;
    ngx_http_profile_answer_t   answer;

    text = json ? json_dumps(json, JSON_COMPACT|JSON_PRESERVE_ORDER) : NULL;

    json_decref(json);

    if (text == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.status = status;
    answer.body.data = (u_char *) text;
    answer.body.len = ngx_strlen(text);
    ngx_str_set(&answer.type, "application/json");
    answer.compressible = 1;

    if (ngx_http_profile_answer_own(call, text, answer.body.len) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer(call, &answer);
}


ngx_int_t
ngx_http_profile_answer_buf(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer, prof_buf_t *b)
{
    if (prof_buf_failed(b)) {
        prof_buf_free(b);

        ngx_http_profile_log(NGX_LOG_ERR, call->request->connection->log, 0,
                             "profile: no memory for an answer of the console");

        return ngx_http_profile_answer_error(call,
                            NGX_HTTP_INTERNAL_SERVER_ERROR,
                            "there is no memory for the answer");
    }

    answer->body.data = (u_char *) b->data;
    answer->body.len = b->len;

    prof_buf_init(b);

    if (ngx_http_profile_answer_own(call, (char *) answer->body.data,
                                    answer->body.len)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer(call, answer);
}


ngx_int_t
ngx_http_profile_answer_nothing(ngx_http_profile_call_t *call)
{
    ngx_http_profile_answer_t  answer;

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.status = NGX_HTTP_NO_CONTENT;

    return ngx_http_profile_answer(call, &answer);
}


ngx_int_t
ngx_http_profile_answer_error(ngx_http_profile_call_t *call,
    ngx_uint_t status, const char *fmt, ...)
{
    char                       *text;
    u_char                     *p;
    size_t                      len;
    json_t                     *json;
    va_list                     args;
    ngx_http_profile_answer_t   answer;
    u_char                      buf[NGX_MAX_ERROR_STR];
    u_char                      shown[3 * NGX_MAX_ERROR_STR];

    static const char  *types[] = { "text/plain", "text/html", NULL };

    va_start(args, fmt);
    p = ngx_vslprintf(buf, buf + sizeof(buf) - 1, fmt, args);
    va_end(args);

    len = ngx_http_profile_answer_printable(buf, p, shown) - shown;

    text = prof_text_utf8((char *) shown, &len);
    if (text == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (call->json && !call->pprof) {
        json = json_pack("{s:s%}", "error", text, len);
        free(text);

        return ngx_http_profile_answer_json(call, status, json);
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.status = status;

    if (call->page && !call->pprof) {
        call->negotiated = 1;

        if (ngx_http_profile_accept_type(call->request, types) == 1) {
            return ngx_http_profile_answer_error_page(call, &answer, text,
                                                      len);
        }
    }

    ngx_str_set(&answer.type, "text/plain; charset=utf-8");

    p = ngx_pnalloc(call->request->pool, len + 1);

    if (p) {
        answer.body.data = p;
        answer.body.len = len + 1;

        p = ngx_cpymem(p, text, len);
        *p = LF;
    }

    free(text);

    if (p == NULL
        || (call->pprof
            && ngx_http_profile_add_text_header(call->request, "X-Go-Pprof",
                                                "1")
               != NGX_OK))
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer(call, &answer);
}


/*
 * Copies a text from p to "to", with control characters in the form of a
 * query: "%00".  The copy has up to three times as many bytes.  Returns its
 * end.
 */

static u_char *
ngx_http_profile_answer_printable(u_char *p, u_char *last, u_char *to)
{
    for ( /* void */ ; p < last; p++) {

        if (ngx_http_profile_controls(p, 1)) {
            to = ngx_sprintf(to, "%%%02xd", *p);

        } else {
            *to++ = *p;
        }
    }

    return to;
}


/* answers with the error as a page, and frees the text */

static ngx_int_t
ngx_http_profile_answer_error_page(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer, char *text, size_t len)
{
    ngx_str_t   s;
    prof_buf_t  b;

    s.data = (u_char *) text;
    s.len = len;

    prof_buf_init(&b);

    call->page(call, answer->status, &s, &b);

    free(text);

    if (prof_buf_failed(&b)) {
        prof_buf_free(&b);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&answer->type, "text/html; charset=utf-8");
    answer->csp = NGX_HTTP_PROFILE_CSP_PAGE;
    answer->compressible = 1;

    return ngx_http_profile_answer_buf(call, answer, &b);
}
