
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * URLs of Go's net/http/pprof that do not return profiles: the index, the
 * command line, and names of functions.  The clients are those of Go's
 * profiler.
 *
 * A client asks for the names of addresses in a worker's memory, in the query
 * or in the body: "0x1234+0x5678".  The answer has a line for each address
 * whose function has a symbol.  Profiles of the module contain their names, so
 * clients use this URL only for addresses from other tools.
 */


#include "console/ngx_http_profile_routes.h"


#define NGX_HTTP_PROFILE_ADDRESSES      4096

/* the maximum length of the text with the addresses */
#define NGX_HTTP_PROFILE_ADDRESSES_LEN  (NGX_HTTP_PROFILE_ADDRESSES * 19)


typedef struct {
    ngx_http_profile_call_t  *call;      /* NULL: client disconnected */
    ngx_http_profile_job_t    job;
    prof_profile_t           *profile;
    prof_buf_t                out;
    ngx_uint_t                n;
    uint32_t                  nodes[NGX_HTTP_PROFILE_ADDRESSES];
    uintptr_t                 pcs[NGX_HTTP_PROFILE_ADDRESSES];
} ngx_http_profile_symbols_t;


static void ngx_http_profile_symbol_body(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_symbol_read(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_int_t ngx_http_profile_symbol_begin(ngx_http_profile_call_t *call,
    ngx_str_t *text);
static ngx_int_t ngx_http_profile_symbol_parse(ngx_http_profile_symbols_t *s,
    ngx_str_t *text);
static uintptr_t ngx_http_profile_symbol_number(u_char *p, u_char *last);
static void ngx_http_profile_symbol_work(void *data);
static void ngx_http_profile_symbol_done(void *data);
static void ngx_http_profile_symbol_abort(ngx_http_profile_call_t *call);
static void ngx_http_profile_symbol_free(ngx_http_profile_symbols_t *s);


/* returns whether the URI is one of Go's URLs, which only Go's clients use */

ngx_uint_t
ngx_http_profile_go_is(ngx_str_t *uri)
{
    size_t  i;

    static ngx_str_t  path = ngx_string("debug/pprof/");

    for (i = 1; i + path.len <= uri->len; i++) {

        if (uri->data[i - 1] == '/'
            && ngx_memcmp(uri->data + i, path.data, path.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * The index of Go's URLs.  A location whose name ends with the path of these
 * URLs has the index at its root, instead of the console's list.
 */

ngx_int_t
ngx_http_profile_go_index_route(ngx_http_profile_call_t *call)
{
    if (call->json) {
        return ngx_http_profile_list_route(call);
    }

    return ngx_http_profile_answer_page(call, "pprof.html");
}


/* answers as Go does: the arguments with null characters between them */

ngx_int_t
ngx_http_profile_go_cmdline_route(ngx_http_profile_call_t *call)
{
    int                         i;
    u_char                     *p;
    ngx_str_t                   text;
    ngx_http_profile_answer_t   answer;

    text.len = 0;

    for (i = 0; i < ngx_argc; i++) {
        text.len += ngx_strlen(ngx_argv[i]) + 1;
    }

    text.data = ngx_pnalloc(call->request->pool, text.len);
    if (text.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = text.data;

    for (i = 0; i < ngx_argc; i++) {
        p = ngx_cpymem(p, ngx_argv[i], ngx_strlen(ngx_argv[i]) + 1);
    }

    text.len--;

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.body = text;
    ngx_str_set(&answer.type, "text/plain; charset=utf-8");

    return ngx_http_profile_answer(call, &answer);
}


ngx_int_t
ngx_http_profile_go_symbol_route(ngx_http_profile_call_t *call)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = call->request;

    if (r->method != NGX_HTTP_POST) {
        rc = ngx_http_discard_request_body(r);

        return rc == NGX_OK ? ngx_http_profile_symbol_begin(call, &r->args)
                            : rc;
    }

    if (r->headers_in.content_length_n > NGX_HTTP_PROFILE_ADDRESSES_LEN) {
        rc = ngx_http_discard_request_body(r);

        return rc == NGX_OK
               ? ngx_http_profile_answer_error(call,
                                    NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                    "the body has more than %d bytes",
                                    NGX_HTTP_PROFILE_ADDRESSES_LEN)
               : rc;
    }

    rc = ngx_http_read_client_request_body(r, ngx_http_profile_symbol_body);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


static void
ngx_http_profile_symbol_body(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_str_t                 text;
    ngx_http_profile_call_t  *call;

    call = ngx_pcalloc(r->pool, sizeof(ngx_http_profile_call_t));

    if (call == NULL || ngx_http_profile_symbol_read(r, &text) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    /* this handler gets only the request, so the call is made again */

    call->request = r;
    call->root = "";

    rc = ngx_http_profile_call_route(call);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_symbol_begin(call, &text);
    }

    ngx_http_finalize_request(r, rc);
}


/*
 * Reads the body.  A long text is cut, because it has more addresses than the
 * answer may have.
 */

static ngx_int_t
ngx_http_profile_symbol_read(ngx_http_request_t *r, ngx_str_t *text)
{
    size_t        n;
    u_char       *p, *last;
    ssize_t       len;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    n = NGX_HTTP_PROFILE_ADDRESSES_LEN + 1;

    p = ngx_pnalloc(r->pool, n);
    if (p == NULL) {
        return NGX_ERROR;
    }

    text->data = p;
    last = p + n;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;

        /* the last buffer may have neither memory nor a file */

        if (ngx_buf_special(b)) {
            continue;
        }

        n = ngx_min(ngx_buf_size(b), last - p);

        if (ngx_buf_in_memory(b)) {
            p = ngx_cpymem(p, b->pos, n);
            continue;
        }

        len = ngx_read_file(b->file, p, n, b->file_pos);
        if (len == NGX_ERROR) {
            return NGX_ERROR;
        }

        p += len;
    }

    text->len = p - text->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_symbol_begin(ngx_http_profile_call_t *call, ngx_str_t *text)
{
    ngx_int_t                    rc;
    ngx_http_profile_symbols_t  *s;

    rc = ngx_http_profile_job_room(NGX_HTTP_PROFILE_JOB_ASKED);

    if (rc != NGX_OK) {
        return ngx_http_profile_answer_no_job(call, rc);
    }

    s = ngx_alloc(sizeof(ngx_http_profile_symbols_t),
                  call->request->connection->log);
    if (s == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s->call = NULL;
    s->n = 0;
    s->profile = NULL;

    prof_buf_init(&s->out);

    if (ngx_http_profile_symbol_parse(s, text) != NGX_OK) {
        ngx_http_profile_symbol_free(s);

        return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                    "there are more than %d addresses",
                                    NGX_HTTP_PROFILE_ADDRESSES);
    }

    s->profile = prof_process_addresses(s->pcs, s->n, s->nodes);

    s->job.work = ngx_http_profile_symbol_work;
    s->job.done = ngx_http_profile_symbol_done;
    s->job.data = s;
    s->job.rank = NGX_HTTP_PROFILE_JOB_ASKED;

    if (s->profile == NULL) {
        ngx_http_profile_symbol_free(s);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s->job.size = sizeof(ngx_http_profile_symbols_t)
                  + prof_profile_size(s->profile);

    rc = ngx_http_profile_job_start(&s->job);

    if (rc != NGX_OK) {
        ngx_http_profile_symbol_free(s);
        return ngx_http_profile_answer_no_job(call, rc);
    }

    rc = ngx_http_profile_call_hold(call, ngx_http_profile_symbol_abort, s);

    if (rc == NGX_DONE) {
        s->call = call;
    }

    return rc;
}


/* parses the addresses as Go does: skips words that are not numbers */

static ngx_int_t
ngx_http_profile_symbol_parse(ngx_http_profile_symbols_t *s, ngx_str_t *text)
{
    u_char     *p, *end, *last;
    uintptr_t   pc;

    last = text->data + text->len;

    for (p = text->data; p < last; p = end + 1) {
        end = ngx_strlchr(p, last, '+');
        end = end ? end : last;

        pc = ngx_http_profile_symbol_number(p, end);

        if (pc == 0) {
            continue;
        }

        if (s->n == NGX_HTTP_PROFILE_ADDRESSES) {
            return NGX_ERROR;
        }

        s->pcs[s->n++] = pc;
    }

    return NGX_OK;
}


/* returns 0 if the text is not a number, or if the number is too large */

static uintptr_t
ngx_http_profile_symbol_number(u_char *p, u_char *last)
{
    ngx_int_t  n;

    if (last - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        n = ngx_hextoi(p + 2, last - p - 2);

    } else {
        n = ngx_atoi(p, last - p);
    }

    return n == NGX_ERROR ? 0 : n;
}


/* context: a thread */

static void
ngx_http_profile_symbol_work(void *data)
{
    ngx_http_profile_symbols_t *s = data;

    ngx_uint_t           i;
    const prof_frame_t  *f;

    /* clients only check whether this number is positive */

    prof_buf_puts(&s->out, "num_symbols: 1\n");

    if (prof_profile_symbolize(s->profile) != PROF_OK) {
        s->out.failed = 1;
        return;
    }

    for (i = 0; i < s->n; i++) {

        if (s->nodes[i] == PROF_NONE) {
            continue;
        }

        f = &s->profile->frames[s->profile->nodes[s->nodes[i]].frame];

        if (f->source > PROF_SOURCE_OFFSET) {
            prof_buf_printf(&s->out, "%#lx %s\n", (unsigned long) s->pcs[i],
                            f->name);
        }
    }
}


static void
ngx_http_profile_symbol_done(void *data)
{
    ngx_http_profile_symbols_t *s = data;

    ngx_int_t                   rc;
    ngx_http_profile_call_t    *call;
    ngx_http_profile_answer_t   answer;

    call = s->call;

    if (call) {
        s->out.failed |= !s->job.worked;

        ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));
        ngx_str_set(&answer.type, "text/plain; charset=utf-8");

        rc = ngx_http_profile_answer_buf(call, &answer, &s->out);

        ngx_http_profile_call_end(call, rc);
    }

    ngx_http_profile_symbol_free(s);
}


static void
ngx_http_profile_symbol_abort(ngx_http_profile_call_t *call)
{
    ngx_http_profile_symbols_t  *s;

    s = call->data;
    s->call = NULL;

    if (ngx_http_profile_job_cancel(&s->job) == NGX_OK) {
        ngx_http_profile_symbol_free(s);
    }
}


static void
ngx_http_profile_symbol_free(ngx_http_profile_symbols_t *s)
{
    ngx_http_profile_free_profile(s->profile);

    prof_buf_free(&s->out);
    ngx_free(s);
}
