
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_log_limit.h"

#include <sys/random.h>


/* the maximum length of a file name */
#define NGX_HTTP_PROFILE_FILE_LEN  230


/* a longer method has the name that nginx gives it */
#define NGX_HTTP_PROFILE_METHOD  64


static ngx_int_t ngx_http_profile_header_value(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
static size_t ngx_http_profile_join_headers(ngx_http_request_t *r,
    ngx_str_t *name, u_char *p);
static u_char *ngx_http_profile_safe_name(u_char *start, u_char *p,
    u_char *last, ngx_str_t *part);


ngx_str_t  ngx_http_profile_site_name = ngx_string("Sec-Fetch-Site");
ngx_str_t  ngx_http_profile_origin_name = ngx_string("Origin");


ngx_table_elt_t *
ngx_http_profile_find_header(ngx_http_request_t *r, ngx_str_t *name,
    ngx_uint_t *n)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h, *found;

    found = NULL;
    *n = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (!ngx_http_profile_is_header(&h[i], name)) {
                continue;
            }

            if (found == NULL) {
                found = &h[i];
            }

            (*n)++;
        }
    }

    return found;
}


ngx_int_t
ngx_http_profile_remove_header(ngx_http_request_t *r, ngx_table_elt_t *h)
{
    ngx_list_t       *list;
    ngx_uint_t        i, n;
    ngx_list_part_t  *part, *prev, *rest;
    ngx_table_elt_t  *first;

    list = &r->headers_in.headers;
    prev = NULL;

    for (part = &list->part; part; part = part->next) {
        first = part->elts;

        if (h >= first && h < first + part->nelts) {
            break;
        }

        prev = part;
    }

    if (part == NULL) {
        return NGX_OK;
    }

    i = h - (ngx_table_elt_t *) part->elts;
    n = part->nelts - i - 1;

    if (n == 0) {
        part->nelts = i;

        /* readers expect that only the first part may be empty */

        if (i == 0 && prev) {
            prev->next = part->next;
            part = prev;
        }

    } else if (i == 0) {
        part->elts = h + 1;
        part->nelts = n;

    } else {
        rest = ngx_palloc(r->pool, sizeof(ngx_list_part_t));
        if (rest == NULL) {
            return NGX_ERROR;
        }

        rest->elts = h + 1;
        rest->nelts = n;
        rest->next = part->next;

        part->nelts = i;
        part->next = rest;
        part = rest;
    }

    /* a part that does not begin where its memory begins must not grow */

    if (part->next == NULL) {
        list->last = part;
        list->nalloc = ngx_max(part->nelts, 1);
    }

    return NGX_OK;
}


const prof_encoder_t *
ngx_http_profile_accept_format(ngx_http_request_t *r,
    const prof_encoder_t *preset)
{
    ngx_str_t  value;

    static ngx_str_t  name = ngx_string("Accept");

    if (ngx_http_profile_header_value(r, &name, &value) != NGX_OK) {
        return preset;
    }

    return prof_accept_encoder((char *) value.data, value.len, preset);
}


ngx_uint_t
ngx_http_profile_accept_type(ngx_http_request_t *r, const char **types)
{
    ngx_str_t  value;

    static ngx_str_t  name = ngx_string("Accept");

    if (ngx_http_profile_header_value(r, &name, &value) != NGX_OK) {
        return 0;
    }

    return prof_accept_type((char *) value.data, value.len, types);
}


ngx_uint_t
ngx_http_profile_accept_gzip(ngx_http_request_t *r)
{
    ngx_str_t  value;

    static ngx_str_t  name = ngx_string("Accept-Encoding");

    if (ngx_http_profile_header_value(r, &name, &value) != NGX_OK) {
        return 0;
    }

    return prof_accept_gzip((char *) value.data, value.len);
}


void
ngx_http_profile_gzip(prof_buf_t *body, ngx_http_profile_gzip_t *gzip)
{
    prof_buf_t  out;

    if (prof_gzip_is(body->data, body->len)) {
        return;
    }

    gzip->compressible = 1;

    if (!gzip->accepted) {
        return;
    }

    prof_buf_init(&out);

    if (prof_gzip(body->data, body->len, &out) != PROF_OK) {
        prof_buf_free(&out);
        return;
    }

    prof_buf_free(body);

    *body = out;
    gzip->done = 1;
}


const char *
ngx_http_profile_vary(ngx_uint_t negotiated, ngx_uint_t compressible)
{
    if (negotiated) {
        return compressible ? "Accept, Accept-Encoding" : "Accept";
    }

    return compressible ? "Accept-Encoding" : NULL;
}


/*
 * Sets *value to the value of a header, or to the joined values of several
 * headers with this name, which means the same.  Returns NGX_OK, NGX_DECLINED
 * if the request has no such header, or NGX_ERROR if memory is short.
 */

static ngx_int_t
ngx_http_profile_header_value(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    h = ngx_http_profile_find_header(r, name, &n);

    if (h == NULL) {
        return NGX_DECLINED;
    }

    if (n == 1) {
        *value = h->value;
        return NGX_OK;
    }

    value->len = ngx_http_profile_join_headers(r, name, NULL);

    value->data = ngx_pnalloc(r->pool, value->len);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_http_profile_join_headers(r, name, value->data);

    return NGX_OK;
}


/* joins the values at p, unless p is NULL, and returns their length */

static size_t
ngx_http_profile_join_headers(ngx_http_request_t *r, ngx_str_t *name,
    u_char *p)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (!ngx_http_profile_is_header(&h[i], name)) {
                continue;
            }

            len += h[i].value.len + 1;

            if (p) {
                p = ngx_cpymem(p, h[i].value.data, h[i].value.len);
                *p++ = ',';
            }
        }
    }

    return len;
}


ngx_int_t
ngx_http_profile_add_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value = *value;

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_add_text_header(ngx_http_request_t *r, const char *key,
    const char *value)
{
    ngx_str_t  s;

    s.data = (u_char *) value;
    s.len = ngx_strlen(value);

    return ngx_http_profile_add_header(r, key, &s);
}


void
ngx_http_profile_sent(ngx_http_request_t *r, ngx_str_t *method,
    ngx_str_t *path)
{
    u_char  *p, *data;

    *method = r->method_name;

    /*
     * nginx sets the length to 0 when it frees the request, before the memory.
     * A line that it has accepted has a space behind the method.
     */

    data = r->request_line.data;

    if (data) {
        for (p = data; *p != ' ' && p - data < NGX_HTTP_PROFILE_METHOD; p++) {
            /* void */
        }

        if (*p == ' ') {
            method->data = data;
            method->len = p - data;
        }
    }

    *path = r->unparsed_uri;
    p = ngx_strlchr(path->data, path->data + path->len, '?');

    if (p) {
        path->len = p - path->data;
    }
}


ngx_uint_t
ngx_http_profile_is_shared(ngx_table_elt_t *h)
{
    static ngx_str_t  surrogate = ngx_string("Surrogate-Control");
    static ngx_str_t  nginx = ngx_string("X-Accel-Expires");
    static ngx_str_t  cdn = ngx_string("CDN-Cache-Control");

    /* some networks use this header with their name as a prefix */

    return ngx_http_profile_is_header(h, &surrogate)
           || ngx_http_profile_is_header(h, &nginx)
           || (h->key.len >= cdn.len
               && ngx_strncasecmp(h->key.data + h->key.len - cdn.len,
                                  cdn.data, cdn.len)
                  == 0);
}


/*
 * A cache in front of nginx would give the headers of one request to all
 * clients.  "private" is the one directive that forbids a shared cache to keep
 * the response, and means nothing to the client's own cache, so the client may
 * do with a recorded response what it may do with any other.  The headers for
 * shared caches only would override "private".
 *
 * A cache copies the headers of a 304 to the response that it has stored.  For
 * the client's own cache, "private" would replace the lifetime of that
 * response.  So a 304 gets neither.
 */

ngx_int_t
ngx_http_profile_private(ngx_http_request_t *r)
{
    u_char           *p, *last;
    ngx_str_t         value;
    ngx_uint_t        i, closed;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h, *control;

    static ngx_str_t  name = ngx_string("Cache-Control");

    if (r->headers_out.status == NGX_HTTP_NOT_MODIFIED) {
        return NGX_DECLINED;
    }

    closed = 0;
    control = NULL;

    for (part = &r->headers_out.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].hash == 0) {
                continue;
            }

            if (ngx_http_profile_is_shared(&h[i])) {
                h[i].hash = 0;

                continue;
            }

            if (!ngx_http_profile_is_header(&h[i], &name)) {
                continue;
            }

            control = &h[i];
            last = control->value.data + control->value.len;

            /* "private=..." speaks about some headers only */

            p = ngx_strlcasestrn(control->value.data, last,
                                 (u_char *) "private", 7 - 1);

            if ((p && (p + 7 == last || p[7] != '='))
                || ngx_strlcasestrn(control->value.data, last,
                                    (u_char *) "no-store", 8 - 1))
            {
                closed = 1;
            }
        }
    }

    if (closed) {
        return NGX_OK;
    }

    if (control == NULL || control->value.len == 0) {
        return ngx_http_profile_add_text_header(r, "Cache-Control", "private");
    }

    value.len = control->value.len + sizeof(", private") - 1;

    value.data = ngx_pnalloc(r->pool, value.len);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(value.data, control->value.data, control->value.len);
    ngx_memcpy(p, ", private", sizeof(", private") - 1);

    control->value = value;

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_add_file_header(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_str_t  value;

    value.len = sizeof("attachment; filename=\"\"") - 1 + name->len;

    value.data = ngx_pnalloc(r->pool, value.len);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(value.data, "attachment; filename=\"%V\"", name);

    return ngx_http_profile_add_header(r, "Content-Disposition", &value);
}


ngx_int_t
ngx_http_profile_file_name(ngx_pool_t *pool, ngx_str_t *host, ngx_str_t *path,
    ngx_uint_t mode, time_t time, const char *extension, ngx_str_t *name)
{
    u_char    *p, *last;
    ngx_tm_t   tm;

    p = ngx_pnalloc(pool, NGX_HTTP_PROFILE_FILE_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    name->data = p;
    last = p + NGX_HTTP_PROFILE_FILE_LEN;

    p = ngx_http_profile_safe_name(name->data, p, p + 64, host);
    p = ngx_http_profile_safe_name(name->data, p, last - 64, path);

    if (p != name->data && p[-1] != '-') {
        *p++ = '-';
    }

    ngx_gmtime(time, &tm);

    p = ngx_slprintf(p, last, "%s-%4d%02d%02dT%02d%02d%02dZ.%s",
                     prof_mode_name(mode), tm.ngx_tm_year, tm.ngx_tm_mon,
                     tm.ngx_tm_mday, tm.ngx_tm_hour, tm.ngx_tm_min,
                     tm.ngx_tm_sec, extension);

    name->len = p - name->data;

    return NGX_OK;
}


/*
 * Appends a part of a file's name.  Characters other than letters, digits and
 * periods become a hyphen, and several in a row become one.
 */

static u_char *
ngx_http_profile_safe_name(u_char *start, u_char *p, u_char *last,
    ngx_str_t *part)
{
    u_char  ch;
    size_t  i;

    for (i = 0; i < part->len && p < last; i++) {
        ch = part->data[i];

        if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
            || (ch >= '0' && ch <= '9') || ch == '.')
        {
            *p++ = ch;

        } else if (p != start && p[-1] != '-') {
            *p++ = '-';
        }
    }

    return p;
}


ngx_int_t
ngx_http_profile_trace(ngx_http_request_t *r, prof_trace_t *trace)
{
    uint8_t  flags;

    return ngx_http_profile_trace_flags(r, trace, &flags);
}


ngx_int_t
ngx_http_profile_trace_flags(ngx_http_request_t *r, prof_trace_t *trace,
    uint8_t *flags)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    static ngx_str_t  name = ngx_string("traceparent");

    h = ngx_http_profile_find_header(r, &name, &n);

    if (n != 1
        || prof_trace_parse(trace, (char *) h->value.data, h->value.len)
           != PROF_OK)
    {
        return NGX_DECLINED;
    }

    *flags = prof_trace_flags((char *) h->value.data);

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_make_id(u_char *id, ngx_log_t *log)
{
    u_char  bytes[NGX_HTTP_PROFILE_ID_LEN / 2];

    if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) != sizeof(bytes)) {
        ngx_http_profile_log(NGX_LOG_ERR, log, ngx_errno,
                             "profile: getrandom() failed");
        return NGX_ERROR;
    }

    ngx_hex_dump(id, bytes, sizeof(bytes));

    return NGX_OK;
}


ngx_uint_t
ngx_http_profile_site_says(ngx_http_request_t *r, const char *name,
    const char *value)
{
    ngx_str_t         s;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    s.data = (u_char *) name;
    s.len = ngx_strlen(name);

    h = ngx_http_profile_find_header(r, &s, &n);

    return n == 1 && h->value.len == ngx_strlen(value)
           && ngx_strncmp(h->value.data, value, h->value.len) == 0;
}


ngx_uint_t
ngx_http_profile_site_same(ngx_http_request_t *r, ngx_str_t *origin)
{
    u_char     *p;
    ngx_str_t   host;

    p = ngx_strlchr(origin->data, origin->data + origin->len, '/');

    if (p == NULL || r->headers_in.host == NULL
        || origin->data + origin->len - p < 2 || p[1] != '/')
    {
        return 0;
    }

    p += 2;

    host.data = p;
    host.len = origin->data + origin->len - p;

    return host.len == r->headers_in.host->value.len
           && ngx_strncasecmp(host.data, r->headers_in.host->value.data,
                              host.len)
              == 0;
}
