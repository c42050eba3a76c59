
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the route of a request.  In a location with a plain prefix the route
 * begins after the prefix.  For other locations (regular expressions, named
 * locations, rewritten URIs) the tables of routes decide where the route
 * begins.
 */


#include "console/ngx_http_profile_routes.h"


static ngx_uint_t ngx_http_profile_route_is_plain(
    ngx_http_profile_call_t *call, ngx_http_core_loc_conf_t *clcf);
static ngx_int_t ngx_http_profile_route_plain(ngx_http_profile_call_t *call,
    ngx_str_t *name);
static void ngx_http_profile_route_any(ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_route_redirect(
    ngx_http_profile_call_t *call);
static ngx_uint_t ngx_http_profile_route_look(ngx_http_profile_call_t *call,
    size_t base);
static ngx_uint_t ngx_http_profile_route_find(ngx_http_profile_call_t *call,
    u_char *p, size_t len);
static ngx_uint_t ngx_http_profile_route_match(ngx_http_profile_call_t *call,
    const ngx_http_profile_route_t *route, u_char *p, size_t len);
static ngx_int_t ngx_http_profile_route_root(ngx_http_profile_call_t *call);


const ngx_http_profile_route_t  **ngx_http_profile_routes;

/* a location whose name ends with this path serves Go's URLs at its root */

static ngx_str_t  ngx_http_profile_pprof_path = ngx_string("/debug/pprof/");


ngx_int_t
ngx_http_profile_call_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                  rc;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(call->request, ngx_http_core_module);

    if (ngx_http_profile_route_is_plain(call, clcf)) {
        rc = ngx_http_profile_route_plain(call, &clcf->name);

        if (rc != NGX_DECLINED) {
            return rc;
        }

    } else {
        ngx_http_profile_route_any(call);
    }

    return ngx_http_profile_route_root(call);
}


/*
 * Returns whether the URI begins with the name of a plain prefix location.
 * After a rewrite, or inside of "if", a URI may have another beginning.
 */

static ngx_uint_t
ngx_http_profile_route_is_plain(ngx_http_profile_call_t *call,
    ngx_http_core_loc_conf_t *clcf)
{
    ngx_str_t  *uri;

    uri = &call->request->uri;

    return !clcf->exact_match
           && !clcf->named
#if (NGX_PCRE)
           && clcf->regex == NULL
#endif
           && clcf->name.len
           && uri->len >= clcf->name.len
           && ngx_strncmp(uri->data, clcf->name.data, clcf->name.len) == 0;
}


static ngx_int_t
ngx_http_profile_route_plain(ngx_http_profile_call_t *call, ngx_str_t *name)
{
    size_t      len;
    ngx_str_t  *uri;

    uri = &call->request->uri;
    len = name->len;

    if (name->data[len - 1] != '/') {

        if (uri->len == len) {
            return ngx_http_profile_route_redirect(call);
        }

        if (uri->data[len] != '/') {
            call->base = *uri;

            return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                  "there is nothing at \"%V\"", uri);
        }

        len++;
    }

    (void) ngx_http_profile_route_look(call, len);

    return NGX_DECLINED;
}


/* for any other location: finds the longest part of the URI that is a route */

static void
ngx_http_profile_route_any(ngx_http_profile_call_t *call)
{
    size_t      i;
    ngx_str_t  *uri;

    uri = &call->request->uri;

    for (i = 1; i <= uri->len; i++) {

        if (uri->data[i - 1] == '/'
            && ngx_http_profile_route_look(call, i))
        {
            return;
        }
    }

    call->base = *uri;
}


/* redirects to the URL with a slash: the relative links of pages need it */

static ngx_int_t
ngx_http_profile_route_redirect(ngx_http_profile_call_t *call)
{
    u_char              *p;
    size_t               len;
    ngx_table_elt_t     *h;
    ngx_http_request_t  *r;

    r = call->request;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                  "the URL of a console ends with a slash");
    }

    len = r->uri.len + sizeof("/?") - 1 + r->args.len
          + 2 * ngx_escape_uri(NULL, r->uri.data, r->uri.len, NGX_ESCAPE_URI);

    p = ngx_pnalloc(r->pool, len);
    h = ngx_list_push(&r->headers_out.headers);

    if (p == NULL || h == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    ngx_str_set(&h->key, "Location");
    h->value.data = p;

    p = (u_char *) ngx_escape_uri(p, r->uri.data, r->uri.len, NGX_ESCAPE_URI);
    *p++ = '/';

    if (r->args.len) {
        *p++ = '?';
        p = ngx_cpymem(p, r->args.data, r->args.len);
    }

    h->value.len = p - h->value.data;

    r->headers_out.location = h;

    return NGX_HTTP_MOVED_PERMANENTLY;
}


/*
 * Looks up the part of the URI after its first "base" bytes.  Returns 0 if
 * this part is not a route for any method.
 */

static ngx_uint_t
ngx_http_profile_route_look(ngx_http_profile_call_t *call, size_t base)
{
    u_char      *p;
    size_t       len, n;
    ngx_str_t   *uri, *pprof;

    uri = &call->request->uri;
    pprof = &ngx_http_profile_pprof_path;

    call->base.data = uri->data;
    call->base.len = base;

    p = uri->data + base;
    len = uri->len - base;

    /* a location may end with a part of the path "/debug/pprof/" of routes */

    for (n = pprof->len; n > 1; n--) {

        if (pprof->data[n - 1] != '/' || base < n
            || ngx_memcmp(p - n, pprof->data, n) != 0)
        {
            continue;
        }

        if (ngx_http_profile_route_find(call, p - n + 1, len + n - 1)) {
            return 1;
        }
    }

    return ngx_http_profile_route_find(call, p, len);
}


/*
 * Looks up a path in all tables.  A route for the method of the request is
 * preferred.  Returns 0 if the path is not a route for any method.
 */

static ngx_uint_t
ngx_http_profile_route_find(ngx_http_profile_call_t *call, u_char *p,
    size_t len)
{
    ngx_uint_t                       found, method;
    const ngx_http_profile_route_t  *route, **table;

    method = call->request->method;

    if (method == NGX_HTTP_HEAD) {
        method = NGX_HTTP_GET;
    }

    found = 0;

    for (table = ngx_http_profile_routes; *table; table++) {

        for (route = *table; route->handler; route++) {

            if (found && !(route->methods & method)) {
                continue;
            }

            if (!ngx_http_profile_route_match(call, route, p, len)) {
                continue;
            }

            if (route->methods & method) {
                return 1;
            }

            found = 1;
        }
    }

    return found;
}


static ngx_uint_t
ngx_http_profile_route_match(ngx_http_profile_call_t *call,
    const ngx_http_profile_route_t *route, u_char *p, size_t len)
{
    size_t  n, used;

    used = len;

    if (!(route->flags & NGX_HTTP_PROFILE_FILE)
        && len >= sizeof(".json") - 1
        && ngx_memcmp(p + len - (sizeof(".json") - 1), ".json",
                      sizeof(".json") - 1)
           == 0)
    {
        used -= sizeof(".json") - 1;
    }

    n = route->path.len;

    if (n && route->path.data[n - 1] == '*') {
        n--;

        if (used <= n) {
            return 0;
        }

    } else if (used != n) {
        return 0;
    }

    if (ngx_memcmp(p, route->path.data, n) != 0) {
        return 0;
    }

    call->route = route;
    call->pprof = (route->flags & NGX_HTTP_PROFILE_PPROF) ? 1 : 0;
    call->path.data = p;
    call->path.len = used;
    call->rest.data = p + n;
    call->rest.len = used - n;
    call->json = (used < len);

    return 1;
}


static ngx_int_t
ngx_http_profile_route_root(ngx_http_profile_call_t *call)
{
    u_char      *p, *last;
    ngx_str_t   *uri;
    ngx_uint_t   n;

    uri = &call->request->uri;
    last = uri->data + uri->len;
    n = 0;

    for (p = uri->data + call->base.len; p < last; p++) {
        n += (*p == '/');
    }

    p = ngx_pnalloc(call->request->pool, 3 * n + 1);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    call->root = (char *) p;

    while (n--) {
        p = ngx_cpymem(p, "../", 3);
    }

    *p = '\0';

    return NGX_DECLINED;
}
