
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Orders of the bar: "record my next POST to this URI".  An order is a cookie
 * of the browser that the console sets for the path of the URI:
 *
 *     KEY.ID.SUM.MODE.METHOD
 *
 * KEY is the secret of this server.  The console sends it only to pages of the
 * same origin, so another site cannot make an order.  ID is the id of the
 * future profile.  SUM is the CRC-32 of the URI's path, since browsers also
 * send a cookie to all paths below its own.
 *
 * A request that fits an order is recorded as if it had a trigger, if its
 * location permits this.  Its response removes the cookie from the browser.  A
 * cookie with the key never reaches the application, whether it fits or not.
 */


#include "bar/ngx_http_profile_bar.h"
#include "store/ngx_http_profile_store.h"


#define NGX_HTTP_PROFILE_ORDER_COOKIE  "profile_order"

/* offsets in the value of the cookie */

#define NGX_HTTP_PROFILE_ORDER_ID      (NGX_HTTP_PROFILE_ID_LEN + 1)
#define NGX_HTTP_PROFILE_ORDER_SUM                                            \
    (NGX_HTTP_PROFILE_ORDER_ID + NGX_HTTP_PROFILE_ID_LEN + 1)
#define NGX_HTTP_PROFILE_ORDER_MODE    (NGX_HTTP_PROFILE_ORDER_SUM + 8 + 1)


static void ngx_http_profile_find_order(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
static ngx_uint_t ngx_http_profile_cut_orders(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_table_elt_t *h);
static ngx_int_t ngx_http_profile_cut_cookie(ngx_http_request_t *r,
    ngx_table_elt_t *h, ngx_str_t *value);
static ngx_uint_t ngx_http_profile_order_fits(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *value);
static ngx_uint_t ngx_http_profile_order_taken(ngx_http_request_t *r,
    u_char *id);
static void ngx_http_profile_order_path(ngx_http_request_t *r,
    ngx_str_t *path);
static ngx_int_t ngx_http_profile_order_used(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_set_cookie(ngx_http_request_t *r,
    ngx_str_t *path, ngx_str_t *value, ngx_uint_t seconds);


PROF_HOT_DATA static ngx_http_profile_orders_t  ngx_http_profile_no_orders;

PROF_HOT_DATA ngx_http_profile_orders_t  *ngx_http_profile_orders =
    &ngx_http_profile_no_orders;


void
ngx_http_profile_set_orders(ngx_http_profile_orders_t *orders)
{
    ngx_http_profile_orders = orders ? orders : &ngx_http_profile_no_orders;

    ngx_http_profile_request_observers.find_order =
                                   orders ? ngx_http_profile_find_order : NULL;
    ngx_http_profile_request_observers.order_used = ngx_http_profile_order_used;
}


ngx_table_elt_t *
ngx_http_profile_order_header(ngx_http_request_t *r)
{
    ngx_uint_t         n;
    ngx_atomic_uint_t  until;

    static ngx_str_t  name = ngx_string("Cookie");

    until = ngx_http_profile_orders->until;

    if (until < (ngx_atomic_uint_t) ngx_time()) {
        (void) ngx_atomic_cmp_set(&ngx_http_profile_orders->until, until, 0);
        return NULL;
    }

    return ngx_http_profile_find_header(r, &name, &n);
}


/* a client may send several headers, and an order may be in any of them */

static void
ngx_http_profile_find_order(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
#if (nginx_version >= 1023000)
    ngx_table_elt_t  *h, **hp;
#else
    ngx_uint_t        i, n;
    ngx_table_elt_t  *h, **cookies;
#endif

    if (ngx_http_profile_order_header(r) == NULL) {
        return;
    }

#if (nginx_version >= 1023000)

    for (hp = &r->headers_in.cookie; *hp; /* void */ ) {
        h = *hp;

        if (ngx_http_profile_cut_orders(r, t, h)
            && ngx_http_profile_remove_header(r, h) == NGX_OK)
        {
            *hp = h->next;
            continue;
        }

        hp = &h->next;
    }

#else

    cookies = r->headers_in.cookies.elts;
    n = 0;

    for (i = 0; i < r->headers_in.cookies.nelts; i++) {
        h = cookies[i];

        if (ngx_http_profile_cut_orders(r, t, h)
            && ngx_http_profile_remove_header(r, h) == NGX_OK)
        {
            continue;
        }

        cookies[n++] = h;
    }

    r->headers_in.cookies.nelts = n;

#endif
}


/* removes orders from the header; returns whether the header is empty then */

static ngx_uint_t
ngx_http_profile_cut_orders(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_table_elt_t *h)
{
    ngx_str_t   value;
    ngx_uint_t  cut;

    cut = 0;

    while (ngx_http_profile_cut_cookie(r, h, &value) == NGX_OK) {
        cut = 1;

        if (t->arg.len == 0 && t->header.len == 0 && t->order.len == 0
            && ngx_http_profile_order_fits(r, t, &value))
        {
            ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                           "profile: order %*s accepted",
                           (size_t) NGX_HTTP_PROFILE_ID_LEN,
                           value.data + NGX_HTTP_PROFILE_ORDER_ID);

            t->order.data = value.data + NGX_HTTP_PROFILE_ORDER_ID;
            t->order.len = NGX_HTTP_PROFILE_ID_LEN;
        }
    }

    return cut && h->value.len == 0;
}


/* removes an order from the header, and copies its value */

static ngx_int_t
ngx_http_profile_cut_cookie(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_str_t *value)
{
    u_char  *p, *q, *end, *last, *key;

    static ngx_str_t  name = ngx_string(NGX_HTTP_PROFILE_ORDER_COOKIE "=");

    last = h->value.data + h->value.len;

    for (p = h->value.data; p < last; p = end) {

        end = ngx_strlchr(p, last, ';');
        end = end ? end + 1 : last;

        q = p;

        while (q < end && *q == ' ') {
            q++;
        }

        key = q + name.len;

        if ((size_t) (end - q) <= name.len + NGX_HTTP_PROFILE_ORDER_MODE
            || ngx_memcmp(q, name.data, name.len) != 0
            || ngx_memcmp(key, ngx_http_profile_orders->key,
                          NGX_HTTP_PROFILE_ID_LEN)
               != 0)
        {
            continue;
        }

        value->len = end - key - (end[-1] == ';');
        value->data = ngx_pnalloc(r->pool, value->len);

        q = ngx_pnalloc(r->pool, h->value.len);

        if (value->data == NULL || q == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(value->data, key, value->len);

        key = ngx_cpymem(q, h->value.data, p - h->value.data);
        key = ngx_cpymem(key, end, last - end);

        /* the separator before or after the cookie is removed as well */

        if (end == last && key > q) {
            key--;
        }

        while (key > q && *q == ' ') {
            q++;
        }

        *key = '\0';

        h->value.data = q;
        h->value.len = key - q;

        return NGX_OK;
    }

    return NGX_DECLINED;
}


/* sets the mode of *t if the order fits */

static ngx_uint_t
ngx_http_profile_order_fits(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *value)
{
    u_char     *p, *last;
    ngx_str_t   path, mode;
    u_char      sum[9];

    ngx_http_profile_order_path(r, &path);

    (void) ngx_sprintf(sum, "%08xD.",
                       ngx_crc32_short(path.data, path.len));

    last = value->data + value->len;

    mode.data = value->data + NGX_HTTP_PROFILE_ORDER_MODE;

    p = ngx_strlchr(mode.data, last, '.');

    if (p == NULL) {
        return 0;
    }

    mode.len = p++ - mode.data;

    return (size_t) (last - p) == r->method_name.len
           && ngx_memcmp(p, r->method_name.data, r->method_name.len) == 0
           && ngx_memcmp(value->data + NGX_HTTP_PROFILE_ORDER_SUM, sum,
                         sizeof(sum))
              == 0
           && !ngx_http_profile_order_taken(r, value->data
                                               + NGX_HTTP_PROFILE_ORDER_ID)
           && ngx_http_profile_param_set(&t->params,
                                         NGX_HTTP_PROFILE_PARAM_MODE, &mode)
              == NGX_OK;
}


/* an order is void if its profile is stored already, or its id is malformed */

static ngx_uint_t
ngx_http_profile_order_taken(ngx_http_request_t *r, u_char *data)
{
    size_t                     i;
    ngx_str_t                  id;
    ngx_http_profile_store_t  *store;

    for (i = 0; i < NGX_HTTP_PROFILE_ID_LEN; i++) {

        if (!((data[i] >= '0' && data[i] <= '9')
              || (data[i] >= 'a' && data[i] <= 'f')))
        {
            return 1;
        }
    }

    store = ngx_http_profile_store(r);
    if (store == NULL) {
        return 1;
    }

    id.data = data;
    id.len = NGX_HTTP_PROFILE_ID_LEN;

    return ngx_http_profile_store_has(store, &id);
}


/* browsers compare the path that they send with the path of a cookie */

static void
ngx_http_profile_order_path(ngx_http_request_t *r, ngx_str_t *path)
{
    u_char  *p;

    *path = r->unparsed_uri;

    p = ngx_strlchr(path->data, path->data + path->len, '?');

    if (p) {
        path->len = p - path->data;
    }
}


ngx_int_t
ngx_http_profile_order_make(ngx_http_request_t *r,
    ngx_http_profile_order_t *order)
{
    u_char     *p;
    ngx_str_t   value;

    if (ngx_http_profile_orders->key[0] == '\0') {
        return NGX_ERROR;
    }

    value.data = ngx_pnalloc(r->pool, NGX_HTTP_PROFILE_ORDER_MODE
                                      + sizeof("object.")
                                      + order->method.len);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(value.data, "%*s.%*s.%08xD.%s.%V",
                    (size_t) NGX_HTTP_PROFILE_ID_LEN,
                    ngx_http_profile_orders->key,
                    (size_t) NGX_HTTP_PROFILE_ID_LEN, order->id,
                    ngx_crc32_short(order->path.data, order->path.len),
                    prof_mode_name(order->mode), &order->method);

    value.len = p - value.data;

    /* workers look for orders in cookies until this time */

    ngx_http_profile_orders->until = ngx_time()
                                     + NGX_HTTP_PROFILE_ORDER_SECONDS;

    return ngx_http_profile_set_cookie(r, &order->path, &value,
                                       NGX_HTTP_PROFILE_ORDER_SECONDS);
}


ngx_int_t
ngx_http_profile_order_remove(ngx_http_request_t *r, ngx_str_t *path)
{
    ngx_str_t  value;

    ngx_str_null(&value);

    return ngx_http_profile_set_cookie(r, path, &value, 0);
}


static ngx_int_t
ngx_http_profile_order_used(ngx_http_request_t *r)
{
    ngx_str_t  path;

    ngx_http_profile_order_path(r, &path);

    return ngx_http_profile_order_remove(r, &path);
}


/* the path of a cookie cannot contain a semicolon */

static ngx_int_t
ngx_http_profile_set_cookie(ngx_http_request_t *r, ngx_str_t *path,
    ngx_str_t *value, ngx_uint_t seconds)
{
    u_char     *p;
    ngx_str_t   cookie, root;

    static const char  format[] = NGX_HTTP_PROFILE_ORDER_COOKIE
                                  "=%V; Path=%V; Max-Age=%ui; HttpOnly; "
                                  "SameSite=Strict";

    if (ngx_strlchr(path->data, path->data + path->len, ';')) {
        ngx_str_set(&root, "/");
        path = &root;
    }

    p = ngx_pnalloc(r->pool, sizeof(format) + value->len + path->len
                             + NGX_INT_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    cookie.data = p;
    cookie.len = ngx_sprintf(p, format, value, path, seconds) - p;

    return ngx_http_profile_add_header(r, "Set-Cookie", &cookie);
}
