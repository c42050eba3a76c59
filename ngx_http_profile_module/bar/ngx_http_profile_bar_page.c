
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Which responses get a bar, and how their headers change: caches must not
 * keep a page with a bar, and no header may describe the page without it.
 */


#include "bar/ngx_http_profile_bar.h"
#include "store/ngx_http_profile_store.h"


static ngx_str_t *ngx_http_profile_bar_request_header(ngx_http_request_t *r,
    const char *name);
static ngx_uint_t ngx_http_profile_bar_has(ngx_str_t *value, const char *text);
static ngx_uint_t ngx_http_profile_bar_begins(ngx_str_t *value,
    const char *text);
static ngx_uint_t ngx_http_profile_bar_wide(ngx_http_request_t *r);
static ngx_table_elt_t *ngx_http_profile_bar_header_out(
    ngx_http_request_t *r, const char *name);
static ngx_int_t ngx_http_profile_bar_nonce(ngx_http_request_t *r,
    ngx_http_profile_bar_loc_conf_t *conf, ngx_str_t *nonce);
static ngx_uint_t ngx_http_profile_bar_policy_nonce(ngx_http_request_t *r,
    const char *name, ngx_str_t *nonce);
static ngx_uint_t ngx_http_profile_bar_scripts_nonce(u_char *p, u_char *last,
    ngx_str_t *nonce);
static u_char *ngx_http_profile_bar_word(u_char *p, u_char *last,
    u_char **word);
static u_char *ngx_http_profile_bar_attribute(u_char *p, const char *name,
    ngx_str_t *value);


/* headers that let caches keep the page, and checksums of the original page */

static ngx_str_t  ngx_http_profile_bar_unfit[] = {
    ngx_string("Cache-Control"),
    ngx_string("Expires"),
    ngx_string("Content-MD5"),
    ngx_string("Digest"),
    ngx_string("Content-Digest"),
    ngx_string("Repr-Digest"),
    ngx_null_string
};


/*
 * Browsers send the purpose of a request on secure and local connections.  On
 * other connections, a request of a script has a header that libraries add, or
 * its "Accept" does not prefer HTML as that of a page does.
 */

ngx_http_profile_bar_task_e
ngx_http_profile_bar_task(ngx_http_request_t *r)
{
    ngx_str_t  *dest, *accept;

    dest = ngx_http_profile_bar_request_header(r, "Sec-Fetch-Dest");

    if (dest) {

        if (dest->len == 8 && ngx_strncmp(dest->data, "document", 8) == 0) {
            return NGX_HTTP_PROFILE_BAR_PAGE;
        }

        if (dest->len == 5 && ngx_strncmp(dest->data, "empty", 5) == 0) {
            return NGX_HTTP_PROFILE_BAR_DATA;
        }

        return NGX_HTTP_PROFILE_BAR_NOTHING;
    }

    if (ngx_http_profile_bar_request_header(r, "X-Requested-With")) {
        return NGX_HTTP_PROFILE_BAR_DATA;
    }

    accept = ngx_http_profile_bar_request_header(r, "Accept");

    if (accept == NULL) {
        return NGX_HTTP_PROFILE_BAR_NOTHING;
    }

    if (ngx_http_profile_bar_has(accept, "text/html")) {
        return NGX_HTTP_PROFILE_BAR_PAGE;
    }

    if (ngx_http_profile_bar_begins(accept, "image/")
        || ngx_http_profile_bar_begins(accept, "text/css"))
    {
        return NGX_HTTP_PROFILE_BAR_NOTHING;
    }

    return NGX_HTTP_PROFILE_BAR_DATA;
}


/* returns whether the response is a readable page that a browser shows */

ngx_uint_t
ngx_http_profile_bar_takes(ngx_http_request_t *r, ngx_table_elt_t **coding)
{
    ngx_uint_t        status;
    ngx_table_elt_t  *h;

    status = r->headers_out.status;

    if (r->method == NGX_HTTP_HEAD || r->header_only
        || status < NGX_HTTP_OK || status == NGX_HTTP_NO_CONTENT
        || status == 205 || status == NGX_HTTP_PARTIAL_CONTENT
        || (status >= NGX_HTTP_SPECIAL_RESPONSE
            && status < NGX_HTTP_BAD_REQUEST)
        || r->headers_out.content_length_n == 0)
    {
        return 0;
    }

    if (r->headers_out.content_type_len != sizeof("text/html") - 1
        || ngx_strncasecmp(r->headers_out.content_type.data,
                           (u_char *) "text/html", sizeof("text/html") - 1)
           != 0
        || ngx_http_profile_bar_wide(r))
    {
        return 0;
    }

    h = ngx_http_profile_bar_header_out(r, "Content-Disposition");

    if (h && !ngx_http_profile_bar_begins(&h->value, "inline")) {
        return 0;
    }

    h = ngx_http_profile_bar_header_out(r, "Content-Encoding");

    if (h && !ngx_http_profile_bar_reads(&h->value)) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "profile: no bar in a page that came with "
                      "\"Content-Encoding: %V\"", &h->value);
        return 0;
    }

    if (h && h->value.len != sizeof("identity") - 1) {
        *coding = h;
    }

    return 1;
}


/* returns whether the page's encoding does not contain ASCII */

static ngx_uint_t
ngx_http_profile_bar_wide(ngx_http_request_t *r)
{
    return ngx_http_profile_bar_begins(&r->headers_out.charset, "utf-16")
           || ngx_http_profile_bar_begins(&r->headers_out.charset, "utf-32")
           || ngx_http_profile_bar_has(&r->headers_out.content_type, "utf-16")
           || ngx_http_profile_bar_has(&r->headers_out.content_type, "utf-32");
}


ngx_int_t
ngx_http_profile_bar_snippet(ngx_http_request_t *r,
    ngx_http_profile_bar_loc_conf_t *conf, ngx_http_profile_bar_ctx_t *ctx)
{
    u_char                            *p;
    size_t                             len;
    ngx_str_t                          id, src, nonce, profile, method, path;
    ngx_http_profile_ctx_t            *capture;
    ngx_http_profile_loc_conf_t       *plcf;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    if (ngx_http_profile_bar_nonce(r, conf, &nonce) != NGX_OK) {
        return NGX_ERROR;
    }

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    id.data = ctx->id;
    id.len = NGX_HTTP_PROFILE_ID_LEN;

    ngx_http_profile_sent(r, &method, &path);

    ngx_str_null(&profile);
    capture = ngx_http_profile_find(r);

    if (capture) {
        profile.data = capture->id;
        profile.len = NGX_HTTP_PROFILE_ID_LEN;
    }

    bmcf = ngx_http_get_module_main_conf(r,
                                         ngx_http_profile_bar_filter_module);

    src.len = conf->console->len + bmcf->path.len;
    src.data = ngx_pnalloc(r->pool, src.len);
    if (src.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(src.data, conf->console->data, conf->console->len);
    ngx_memcpy(p, bmcf->path.data, bmcf->path.len);

    /* an escape of one byte has at most six bytes */

    len = sizeof("<script async></script>") - 1
          + sizeof(" src=\"\" data-id=\"\" data-console=\"\" data-arg=\"\" "
                   "data-header=\"\" data-method=\"\" data-modes=\"\" "
                   "data-store data-profile=\"\" nonce=\"\"") - 1
          + bmcf->modes.len
          + 6 * (src.len + id.len + conf->console->len + plcf->arg.len
                 + plcf->header.len + method.len + profile.len
                 + nonce.len);

    ctx->snippet.data = ngx_pnalloc(r->pool, len);
    if (ctx->snippet.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(ctx->snippet.data, "<script async",
                   sizeof("<script async") - 1);

    p = ngx_http_profile_bar_attribute(p, "src", &src);
    p = ngx_http_profile_bar_attribute(p, "data-id", &id);
    p = ngx_http_profile_bar_attribute(p, "data-console", conf->console);
    p = ngx_http_profile_bar_attribute(p, "data-arg", &plcf->arg);
    p = ngx_http_profile_bar_attribute(p, "data-header", &plcf->header);
    p = ngx_http_profile_bar_attribute(p, "data-method", &method);
    p = ngx_http_profile_bar_attribute(p, "data-modes", &bmcf->modes);

    if (ngx_http_profile_store(r)) {
        p = ngx_cpymem(p, " data-store", sizeof(" data-store") - 1);
    }

    if (profile.len) {
        p = ngx_http_profile_bar_attribute(p, "data-profile", &profile);
    }

    if (nonce.len) {
        p = ngx_http_profile_bar_attribute(p, "nonce", &nonce);
    }

    p = ngx_cpymem(p, "></script>", sizeof("></script>") - 1);

    ctx->snippet.len = p - ctx->snippet.data;
    ctx->inserted = 0;

    prof_html_init(&ctx->html);

    return NGX_OK;
}


static u_char *
ngx_http_profile_bar_attribute(u_char *p, const char *name, ngx_str_t *value)
{
    p = ngx_sprintf(p, " %s=\"", name);
    p = (u_char *) ngx_escape_html(p, value->data, value->len);
    *p++ = '"';

    return p;
}


/* returns the nonce of the directive, or the one in the page's own policy */

static ngx_int_t
ngx_http_profile_bar_nonce(ngx_http_request_t *r,
    ngx_http_profile_bar_loc_conf_t *conf, ngx_str_t *nonce)
{
    nonce->len = 0;

    if (conf->nonce) {
        return ngx_http_complex_value(r, conf->nonce, nonce);
    }

    if (!ngx_http_profile_bar_policy_nonce(r, "Content-Security-Policy",
                                           nonce))
    {
        (void) ngx_http_profile_bar_policy_nonce(r,
                             "Content-Security-Policy-Report-Only", nonce);
    }

    return NGX_OK;
}


/*
 * Searches the headers with this name, each of which may have several policies
 * with commas between them.
 */

static ngx_uint_t
ngx_http_profile_bar_policy_nonce(ngx_http_request_t *r, const char *name,
    ngx_str_t *nonce)
{
    u_char           *p, *last, *end;
    ngx_str_t         key;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    key.data = (u_char *) name;
    key.len = ngx_strlen(name);

    for (part = &r->headers_out.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].hash == 0 || !ngx_http_profile_is_header(&h[i], &key)) {
                continue;
            }

            p = h[i].value.data;
            last = p + h[i].value.len;

            while (p < last) {
                end = ngx_strlchr(p, last, ',');
                end = end ? end : last;

                if (ngx_http_profile_bar_scripts_nonce(p, end, nonce)) {
                    return 1;
                }

                p = end + 1;
            }
        }
    }

    return 0;
}


/*
 * Finds the nonce that permits the element "script" in one policy.  The
 * directive "script-src-elem" decides, or else "script-src", or else
 * "default-src"; of several directives with one name, the first.  Nonces of
 * other directives, as of "style-src" or "script-src-attr", do not count.
 */

static ngx_uint_t
ngx_http_profile_bar_scripts_nonce(u_char *p, u_char *last, ngx_str_t *nonce)
{
    u_char      *end, *word;
    ngx_str_t    sources;
    ngx_uint_t   i, rank;

    static ngx_str_t  names[] = {
        ngx_string("default-src"),
        ngx_string("script-src"),
        ngx_string("script-src-elem")
    };

    rank = 0;
    ngx_str_null(&sources);

    for ( /* void */ ; p < last; p = end + 1) {
        end = ngx_strlchr(p, last, ';');
        end = end ? end : last;

        p = ngx_http_profile_bar_word(p, end, &word);

        for (i = rank; i < sizeof(names) / sizeof(names[0]); i++) {

            if (names[i].len == (size_t) (p - word)
                && ngx_strncasecmp(names[i].data, word, p - word) == 0)
            {
                rank = i + 1;
                sources.data = p;
                sources.len = end - p;
                break;
            }
        }
    }

    if (rank == 0) {
        return 0;
    }

    p = sources.data;
    last = p + sources.len;

    while (p < last) {
        p = ngx_http_profile_bar_word(p, last, &word);

        if (p - word > 8
            && ngx_strncasecmp(word, (u_char *) "'nonce-", 7) == 0
            && p[-1] == '\'')
        {
            nonce->data = word + 7;
            nonce->len = p - 1 - nonce->data;

            return 1;
        }
    }

    return 0;
}


/* returns the end of the next word */

static u_char *
ngx_http_profile_bar_word(u_char *p, u_char *last, u_char **word)
{
    while (p < last && (*p == ' ' || (*p >= '\t' && *p <= CR))) {
        p++;
    }

    *word = p;

    while (p < last && *p != ' ' && (*p < '\t' || *p > CR)) {
        p++;
    }

    return p;
}


ngx_int_t
ngx_http_profile_bar_page_header(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx)
{
    off_t             length;
    ngx_str_t        *name;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    for (part = &r->headers_out.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            for (name = ngx_http_profile_bar_unfit; name->len; name++) {
                if (ngx_http_profile_is_header(&h[i], name)) {
                    h[i].hash = 0;
                }
            }

            if (ngx_http_profile_is_shared(&h[i])) {
                h[i].hash = 0;
            }
        }
    }

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    ngx_str_set(&h->key, "Cache-Control");
    ngx_str_set(&h->value, "private, no-store");

    ngx_http_clear_etag(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_accept_ranges(r);

    length = r->headers_out.content_length_n;
    ngx_http_clear_content_length(r);

    if (length != -1 && ctx->inflate == NULL) {
        r->headers_out.content_length_n = length + ctx->snippet.len;
    }

    r->main_filter_need_in_memory = 1;

    return NGX_OK;
}


static ngx_str_t *
ngx_http_profile_bar_request_header(ngx_http_request_t *r, const char *name)
{
    ngx_str_t         key;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    key.data = (u_char *) name;
    key.len = ngx_strlen(name);

    h = ngx_http_profile_find_header(r, &key, &n);

    return h ? &h->value : NULL;
}


/* returns a header of the response */

static ngx_table_elt_t *
ngx_http_profile_bar_header_out(ngx_http_request_t *r, const char *name)
{
    ngx_str_t         key;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    key.data = (u_char *) name;
    key.len = ngx_strlen(name);

    for (part = &r->headers_out.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].hash && h[i].value.len
                && ngx_http_profile_is_header(&h[i], &key))
            {
                return &h[i];
            }
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_http_profile_bar_has(ngx_str_t *value, const char *text)
{
    return value->len
           && ngx_strlcasestrn(value->data, value->data + value->len,
                               (u_char *) text, ngx_strlen(text) - 1)
              != NULL;
}


static ngx_uint_t
ngx_http_profile_bar_begins(ngx_str_t *value, const char *text)
{
    return value->len >= ngx_strlen(text)
           && ngx_strncasecmp(value->data, (u_char *) text, ngx_strlen(text))
              == 0;
}
