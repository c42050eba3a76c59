
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Pages that the application has compressed.  Requests of clients that may see
 * the bar ask the application for a coding that the module can read, and the
 * page is decompressed before the bar is inserted.  The filters below, nginx's
 * gzip filter for example, compress it again.
 */


#include "bar/ngx_http_profile_bar.h"
#include "core/ngx_http_profile_ground.h"


/* as nginx's bits of r->buffered; nginx itself uses 0x01 to 0x04 */

#define NGX_HTTP_PROFILE_BAR_BUFFERED  0x08

#define NGX_HTTP_PROFILE_BAR_SIZE      16384
#define NGX_HTTP_PROFILE_BAR_BUFS      8


/* the header "Accept-Encoding" of a request, while it has another value */

typedef struct {
    ngx_table_elt_t  *header;
    ngx_str_t         value;
} ngx_http_profile_bar_accept_t;


static ngx_int_t ngx_http_profile_bar_accept(ngx_http_request_t *r);
static ngx_uint_t ngx_http_profile_bar_permits_early(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf);
static void ngx_http_profile_bar_accept_done(void *data);
static void ngx_http_profile_bar_inflate_done(void *data);
static ngx_int_t ngx_http_profile_bar_inflate(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx, ngx_chain_t **out);
static ngx_chain_t *ngx_http_profile_bar_plain(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx);


static ngx_str_t  ngx_http_profile_bar_readable[] = {
    ngx_string("gzip"),
    ngx_string("x-gzip"),
    ngx_string("deflate"),
    ngx_string("identity"),
    ngx_null_string
};

static ngx_str_t  ngx_http_profile_bar_accept_name =
    ngx_string("Accept-Encoding");

static u_char  ngx_http_profile_bar_gzip[] = "gzip";
static u_char  ngx_http_profile_bar_identity[] = "identity";

/* the tag of buffers with a decompressed page */

static u_char  ngx_http_profile_bar_tag;


ngx_int_t
ngx_http_profile_bar_coding_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_profile_bar_accept;

    return NGX_OK;
}


/*
 * Before the content is made, replaces codings of the client that the module
 * cannot read.  Caches choose and store their variant of the page by this
 * header, until the end of the response.  Then the header gets its own value
 * again, so logs have what the client has sent.
 */

static ngx_int_t
ngx_http_profile_bar_accept(ngx_http_request_t *r)
{
    u_char                           *p, *last, *end;
    ngx_str_t                         coding;
    ngx_uint_t                        n, unread;
    ngx_table_elt_t                  *h;
    ngx_http_cleanup_t               *cln;
    ngx_http_profile_loc_conf_t      *plcf;
    ngx_http_profile_bar_accept_t    *accept;
    ngx_http_profile_bar_loc_conf_t  *conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_profile_bar_filter_module);

    if (!conf->enable || r != r->main
        || ngx_http_profile_ground != NGX_HTTP_PROFILE_GROUND_FITS)
    {
        return NGX_DECLINED;
    }

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_access_address(r, plcf) != NGX_OK
        || ngx_http_profile_bar_task(r) != NGX_HTTP_PROFILE_BAR_PAGE)
    {
        return NGX_DECLINED;
    }

    h = ngx_http_profile_find_header(r, &ngx_http_profile_bar_accept_name, &n);

    if (h == NULL || n > 1) {
        return NGX_DECLINED;
    }

    unread = 0;

    p = h->value.data;
    last = p + h->value.len;

    for ( /* void */ ; p < last; p = end + 1) {
        end = ngx_strlchr(p, last, ',');
        end = end ? end : last;

        while (p < end && (*p == ' ' || *p == '\t')) {
            p++;
        }

        coding.data = p;

        while (p < end && *p != ';' && *p != ' ' && *p != '\t') {
            p++;
        }

        coding.len = p - coding.data;

        unread |= (coding.len && !ngx_http_profile_bar_reads(&coding));
    }

    if (!unread || !ngx_http_profile_bar_permits_early(r, plcf)) {
        return NGX_DECLINED;
    }

    cln = ngx_http_cleanup_add(r, sizeof(ngx_http_profile_bar_accept_t));
    if (cln == NULL) {
        return NGX_DECLINED;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: \"Accept-Encoding: %V\" replaced for the bar",
                   &h->value);

    cln->handler = ngx_http_profile_bar_accept_done;

    accept = cln->data;
    accept->header = h;
    accept->value = h->value;

    if (ngx_http_profile_accept_gzip(r)) {
        h->value.data = ngx_http_profile_bar_gzip;
        h->value.len = sizeof(ngx_http_profile_bar_gzip) - 1;

    } else {
        h->value.data = ngx_http_profile_bar_identity;
        h->value.len = sizeof(ngx_http_profile_bar_identity) - 1;
    }

    return NGX_DECLINED;
}


/*
 * Evaluates profile_if earlier than it counts.  Variables of the response do
 * not have their values yet, so none of the values is kept.
 */

static ngx_uint_t
ngx_http_profile_bar_permits_early(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf)
{
    size_t                      size;
    ngx_uint_t                  permits;
    ngx_http_core_main_conf_t  *cmcf;
    ngx_http_variable_value_t  *variables;

    if (plcf->condition == NULL) {
        return 1;
    }

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    size = cmcf->variables.nelts * sizeof(ngx_http_variable_value_t);

    variables = ngx_pnalloc(r->pool, size);
    if (variables == NULL) {
        return 0;
    }

    ngx_memcpy(variables, r->variables, size);

    permits = (ngx_http_profile_permits(r, plcf) == NGX_OK);

    ngx_memcpy(r->variables, variables, size);

    return permits;
}


/* nginx logs the request after its cleanup handlers */

static void
ngx_http_profile_bar_accept_done(void *data)
{
    ngx_http_profile_bar_accept_t *accept = data;

    accept->header->value = accept->value;
}


ngx_uint_t
ngx_http_profile_bar_reads(ngx_str_t *coding)
{
    ngx_str_t  *name;

    for (name = ngx_http_profile_bar_readable; name->len; name++) {
        if (name->len == coding->len
            && ngx_strncasecmp(name->data, coding->data, name->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_http_profile_bar_coding_header(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx, ngx_table_elt_t *h)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    ctx->inflate = prof_inflate_create();
    if (ctx->inflate == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_profile_bar_inflate_done;
    cln->data = ctx->inflate;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: page with \"Content-Encoding: %V\" is read for "
                   "the bar", &h->value);

    h->hash = 0;
    r->headers_out.content_encoding = NULL;

    return NGX_OK;
}


static void
ngx_http_profile_bar_inflate_done(void *data)
{
    prof_inflate_destroy(data);
}


/*
 * Decompresses as much as the buffers hold.  The rest waits until the filters
 * below have sent some of them, so a small page that becomes a large one takes
 * no more memory than these buffers.
 */

ngx_int_t
ngx_http_profile_bar_coding_body(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx, ngx_chain_t *in,
    ngx_http_output_body_filter_pt next)
{
    ngx_int_t     rc;
    ngx_chain_t  *out;

    if (in && ngx_chain_add_copy(r->pool, &ctx->in, in) != NGX_OK) {
        return NGX_ERROR;
    }

    out = NULL;
    rc = NGX_OK;

    if (in == NULL || ctx->plain_busy) {
        rc = ngx_http_profile_bar_body(r, ctx, NULL, next);
        ngx_chain_update_chains(r->pool, &ctx->plain_free, &ctx->plain_busy,
                                &out,
                                (ngx_buf_tag_t) &ngx_http_profile_bar_tag);
    }

    while (rc != NGX_ERROR && ctx->in) {

        if (ngx_http_profile_bar_inflate(r, ctx, &out) != NGX_OK) {
            return NGX_ERROR;
        }

        if (out == NULL) {
            r->buffered |= NGX_HTTP_PROFILE_BAR_BUFFERED;
            return NGX_AGAIN;
        }

        rc = ngx_http_profile_bar_body(r, ctx, out, next);

        ngx_chain_update_chains(r->pool, &ctx->plain_free, &ctx->plain_busy,
                                &out,
                                (ngx_buf_tag_t) &ngx_http_profile_bar_tag);
    }

    r->buffered &= ~NGX_HTTP_PROFILE_BAR_BUFFERED;

    return rc;
}


/* appends what can be decompressed now; *out is NULL if no buffer is free */

static ngx_int_t
ngx_http_profile_bar_inflate(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx, ngx_chain_t **out)
{
    size_t                 len, space;
    ngx_buf_t             *b, *plain;
    ngx_chain_t           *cl, *link, **last;
    const unsigned char   *p;

    *out = NULL;
    last = out;
    cl = NULL;

    while (ctx->in) {
        b = ctx->in->buf;

        for ( ;; ) {

            if (cl == NULL) {

                if (ctx->plain_free == NULL
                    && ctx->nplain == NGX_HTTP_PROFILE_BAR_BUFS)
                {
                    return NGX_OK;
                }

                cl = ngx_http_profile_bar_plain(r, ctx);
                if (cl == NULL) {
                    return NGX_ERROR;
                }
            }

            plain = cl->buf;
            space = plain->end - plain->last;

            p = b->pos;
            len = ngx_buf_in_memory(b) ? b->last - b->pos : 0;

            if (prof_inflate(ctx->inflate, &p, &len, &plain->last, &space)
                != PROF_OK)
            {
                ngx_http_profile_log(NGX_LOG_ERR, r->connection->log, 0,
                                     "profile: the page for the bar is not "
                                     "valid in its \"Content-Encoding\"");
                return NGX_ERROR;
            }

            if (ngx_buf_in_memory(b)) {
                b->pos = (u_char *) p;
            }

            /* zlib may have more for the next buffer */

            if (space) {
                break;
            }

            *last = cl;
            last = &cl->next;
            cl = NULL;
        }

        if (b->last_buf && !prof_inflate_ended(ctx->inflate)) {
            ngx_http_profile_log(NGX_LOG_ERR, r->connection->log, 0,
                                 "profile: the compressed page for the bar is "
                                 "not complete");
        }

        if (b->flush || b->sync || b->last_buf || b->last_in_chain) {

            if (plain->last == plain->pos) {
                cl->next = ctx->plain_free;
                ctx->plain_free = cl;

                cl = ngx_alloc_chain_link(r->pool);
                plain = ngx_calloc_buf(r->pool);

                if (cl == NULL || plain == NULL) {
                    return NGX_ERROR;
                }

                plain->sync = 1;
                cl->buf = plain;
                cl->next = NULL;
            }

            plain->flush = b->flush;
            plain->last_buf = b->last_buf;
            plain->last_in_chain = b->last_in_chain;

            *last = cl;
            last = &cl->next;
            cl = NULL;
        }

        link = ctx->in;
        ctx->in = link->next;
        ngx_free_chain(r->pool, link);
    }

    if (cl == NULL) {
        return NGX_OK;
    }

    if (cl->buf->last == cl->buf->pos) {
        cl->next = ctx->plain_free;
        ctx->plain_free = cl;

    } else {
        *last = cl;
    }

    return NGX_OK;
}


/* returns a link with an empty buffer */

static ngx_chain_t *
ngx_http_profile_bar_plain(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    cl = ctx->plain_free;

    if (cl) {
        ctx->plain_free = cl->next;
        b = cl->buf;

        b->flush = 0;
        b->last_buf = 0;
        b->last_in_chain = 0;

    } else {
        cl = ngx_alloc_chain_link(r->pool);
        b = ngx_create_temp_buf(r->pool, NGX_HTTP_PROFILE_BAR_SIZE);

        if (cl == NULL || b == NULL) {
            return NULL;
        }

        b->tag = (ngx_buf_tag_t) &ngx_http_profile_bar_tag;
        cl->buf = b;

        ctx->nplain++;
    }

    cl->next = NULL;

    return cl;
}
