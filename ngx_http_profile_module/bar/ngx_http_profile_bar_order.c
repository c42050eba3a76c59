
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Orders: "record my next POST to this URI".  A request that fits is handled
 * as if it had come with a trigger; whether it may be profiled is decided as
 * for any other.
 */


#include "bar/ngx_http_profile_bar.h"
#include "core/ngx_http_profile_param.h"

#include <jansson.h>
#include <sys/random.h>


static ngx_int_t ngx_http_profile_bar_ordered(ngx_http_request_t *r,
    ngx_http_profile_params_t *params);
static ngx_int_t ngx_http_profile_bar_take(ngx_http_profile_ctx_t *ctx);
static ngx_http_profile_bar_order_t *ngx_http_profile_bar_fitting(
    ngx_http_profile_bar_ring_t *ring, ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_bar_order_args(
    ngx_http_profile_call_t *call, ngx_http_profile_bar_order_t *order);
static ngx_int_t ngx_http_profile_bar_order_arg(
    ngx_http_profile_call_t *call, const char *name, u_char *text,
    size_t size);
static ngx_int_t ngx_http_profile_bar_order_add(ngx_shm_zone_t *zone,
    ngx_http_profile_bar_order_t *order);
static void ngx_http_profile_bar_order_cancel(ngx_shm_zone_t *zone,
    u_char *id);
static void ngx_http_profile_bar_order_count(
    ngx_http_profile_bar_ring_t *ring);
static void ngx_http_profile_bar_client(ngx_http_request_t *r, u_char *text);


PROF_HOT_DATA static ngx_atomic_t  ngx_http_profile_bar_nobody;
static ngx_shm_zone_t  *ngx_http_profile_bar_zone;

PROF_HOT_DATA ngx_atomic_t  *ngx_http_profile_bar_waiting =
    &ngx_http_profile_bar_nobody;


/* in a worker, of the configuration that it runs */

ngx_int_t
ngx_http_profile_bar_order_init(ngx_cycle_t *cycle)
{
    ngx_http_profile_bar_ring_t       *ring;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    ngx_http_profile_bar_waiting = &ngx_http_profile_bar_nobody;

    bmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                         ngx_http_profile_bar_filter_module);

    if (bmcf && bmcf->zone) {
        ring = bmcf->zone->data;

        ngx_http_profile_bar_zone = bmcf->zone;
        ngx_http_profile_bar_waiting = &ring->waiting;

        ngx_http_profile_orders.find = ngx_http_profile_bar_ordered;
        ngx_http_profile_orders.take = ngx_http_profile_bar_take;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_bar_ordered(ngx_http_request_t *r,
    ngx_http_profile_params_t *params)
{
    ngx_slab_pool_t               *pool;
    ngx_http_profile_bar_ring_t   *ring;
    ngx_http_profile_bar_order_t  *order;

    if (*ngx_http_profile_bar_waiting == 0) {
        return NGX_DECLINED;
    }

    ring = ngx_http_profile_bar_zone->data;
    pool = (ngx_slab_pool_t *) ngx_http_profile_bar_zone->shm.addr;

    ngx_shmtx_lock(&pool->mutex);

    order = ngx_http_profile_bar_fitting(ring, r);

    if (order) {
        ngx_http_profile_param_put(params, NGX_HTTP_PROFILE_PARAM_MODE,
                                   order->mode);
    }

    ngx_shmtx_unlock(&pool->mutex);

    return order ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_bar_take(ngx_http_profile_ctx_t *ctx)
{
    ngx_uint_t                     i;
    ngx_slab_pool_t               *pool;
    ngx_http_profile_bar_ring_t   *ring;
    ngx_http_profile_bar_order_t  *order;

    ring = ngx_http_profile_bar_zone->data;
    pool = (ngx_slab_pool_t *) ngx_http_profile_bar_zone->shm.addr;

    ngx_shmtx_lock(&pool->mutex);

    for (i = 0; i < NGX_HTTP_PROFILE_BAR_ORDERS; i++) {
        order = &ring->orders[i];

        if (order->taken && ngx_memcmp(order->profile, ctx->id,
                                       NGX_HTTP_PROFILE_ID_LEN) == 0)
        {
            ngx_shmtx_unlock(&pool->mutex);
            return NGX_OK;
        }
    }

    order = ngx_http_profile_bar_fitting(ring, ctx->request);

    if (order) {
        order->taken = 1;
        ngx_memcpy(order->profile, ctx->id, NGX_HTTP_PROFILE_ID_LEN);

        ngx_http_profile_bar_order_count(ring);
    }

    ngx_shmtx_unlock(&pool->mutex);

    return order ? NGX_OK : NGX_DECLINED;
}


/* the mutex is held */

static ngx_http_profile_bar_order_t *
ngx_http_profile_bar_fitting(ngx_http_profile_bar_ring_t *ring,
    ngx_http_request_t *r)
{
    ngx_uint_t                     i, late;
    ngx_http_profile_bar_order_t  *order;
    u_char                         client[NGX_SOCKADDR_STRLEN + 1];

    ngx_http_profile_bar_client(r, client);
    late = 0;

    for (i = 0; i < NGX_HTTP_PROFILE_BAR_ORDERS; i++) {
        order = &ring->orders[i];

        if (order->end == 0 || order->taken) {
            continue;
        }

        if (order->end < ngx_time()) {
            order->end = 0;
            late = 1;
            continue;
        }

        if (ngx_strlen(order->method) == r->method_name.len
            && ngx_strncmp(order->method, r->method_name.data,
                           r->method_name.len) == 0
            && ngx_strlen(order->uri) == r->uri.len
            && ngx_strncmp(order->uri, r->uri.data, r->uri.len) == 0
            && ngx_strcmp(order->client, client) == 0)
        {
            return order;
        }
    }

    if (late) {
        ngx_http_profile_bar_order_count(ring);
    }

    return NULL;
}


static void
ngx_http_profile_bar_order_count(ngx_http_profile_bar_ring_t *ring)
{
    ngx_uint_t  i, n;

    n = 0;

    for (i = 0; i < NGX_HTTP_PROFILE_BAR_ORDERS; i++) {
        n += (ring->orders[i].end && !ring->orders[i].taken);
    }

    ring->waiting = n;
}


/* the address, without the port */

static void
ngx_http_profile_bar_client(ngx_http_request_t *r, u_char *text)
{
    size_t  n;

    n = ngx_sock_ntop(r->connection->sockaddr, r->connection->socklen, text,
                      NGX_SOCKADDR_STRLEN, 0);
    text[n] = '\0';
}


/* makes an order, or cancels the one of an id */

ngx_int_t
ngx_http_profile_bar_order_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                          rc;
    ngx_str_t                          id;
    ngx_http_profile_bar_order_t       order;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    bmcf = ngx_http_get_module_main_conf(call->request,
                                         ngx_http_profile_bar_filter_module);

    if (bmcf->zone == NULL) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                             "there are no orders without \"profile_bar on\"");
    }

    rc = ngx_http_profile_call_arg(call, "cancel", &id);

    if (rc == NGX_OK && id.len == NGX_HTTP_PROFILE_ID_LEN) {
        ngx_http_profile_bar_order_cancel(bmcf->zone, id.data);
        return ngx_http_profile_answer_nothing(call);
    }

    ngx_memzero(&order, sizeof(ngx_http_profile_bar_order_t));

    rc = ngx_http_profile_bar_order_args(call, &order);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_profile_bar_order_add(bmcf->zone, &order) != NGX_OK) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_TOO_MANY_REQUESTS,
                             "%d orders are waiting already",
                             NGX_HTTP_PROFILE_BAR_ORDERS);
    }

    return ngx_http_profile_answer_json(call, NGX_HTTP_OK,
                json_pack("{s:s%, s:i}",
                          "id", order.id, (size_t) NGX_HTTP_PROFILE_ID_LEN,
                          "seconds", NGX_HTTP_PROFILE_BAR_PATIENCE));
}


/* NGX_DECLINED: all is right */

static ngx_int_t
ngx_http_profile_bar_order_args(ngx_http_profile_call_t *call,
    ngx_http_profile_bar_order_t *order)
{
    ngx_int_t                  rc;
    ngx_http_profile_params_t  params;

    rc = ngx_http_profile_bar_order_arg(call, "method", order->method,
                                        sizeof(order->method));

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_bar_order_arg(call, "uri", order->uri,
                                            sizeof(order->uri));
    }

    if (rc == NGX_DECLINED) {
        params.given = 0;
        rc = ngx_http_profile_call_param(call, "mode",
                                         NGX_HTTP_PROFILE_PARAM_MODE, &params);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (!ngx_http_profile_param_given(&params, NGX_HTTP_PROFILE_PARAM_MODE)) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                             "\"mode\" is missing");
    }

    order->mode = params.values[NGX_HTTP_PROFILE_PARAM_MODE];

    if (ngx_http_profile_make_id(order->id, call->request->connection->log)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_profile_bar_client(call->request, order->client);
    order->end = ngx_time() + NGX_HTTP_PROFILE_BAR_PATIENCE;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_bar_order_arg(ngx_http_profile_call_t *call,
    const char *name, u_char *text, size_t size)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_profile_call_arg(call, name, &value);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED || value.len == 0 || value.len >= size) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                             "\"%s\" must have from 1 to %uz bytes",
                             name, size - 1);
    }

    (void) ngx_cpystrn(text, value.data, value.len + 1);

    return NGX_DECLINED;
}


/* in place of one that is void, or of the oldest that was taken */

static ngx_int_t
ngx_http_profile_bar_order_add(ngx_shm_zone_t *zone,
    ngx_http_profile_bar_order_t *order)
{
    ngx_uint_t                     i;
    ngx_slab_pool_t               *pool;
    ngx_http_profile_bar_ring_t   *ring;
    ngx_http_profile_bar_order_t  *place, *o;

    ring = zone->data;
    pool = (ngx_slab_pool_t *) zone->shm.addr;
    place = NULL;

    ngx_shmtx_lock(&pool->mutex);

    for (i = 0; i < NGX_HTTP_PROFILE_BAR_ORDERS; i++) {
        o = &ring->orders[i];

        if (o->end < ngx_time()) {
            place = o;
            break;
        }

        if (o->taken && (place == NULL || o->end < place->end)) {
            place = o;
        }
    }

    if (place) {
        *place = *order;
        ngx_http_profile_bar_order_count(ring);
    }

    ngx_shmtx_unlock(&pool->mutex);

    return place ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_profile_bar_order_cancel(ngx_shm_zone_t *zone, u_char *id)
{
    ngx_uint_t                    i;
    ngx_slab_pool_t              *pool;
    ngx_http_profile_bar_ring_t  *ring;

    ring = zone->data;
    pool = (ngx_slab_pool_t *) zone->shm.addr;

    ngx_shmtx_lock(&pool->mutex);

    for (i = 0; i < NGX_HTTP_PROFILE_BAR_ORDERS; i++) {
        if (ngx_memcmp(ring->orders[i].id, id, NGX_HTTP_PROFILE_ID_LEN) == 0) {
            ring->orders[i].end = 0;
        }
    }

    ngx_http_profile_bar_order_count(ring);

    ngx_shmtx_unlock(&pool->mutex);
}


ngx_int_t
ngx_http_profile_bar_order_state(ngx_shm_zone_t *zone, u_char *id,
    u_char *profile)
{
    ngx_int_t                      rc;
    ngx_uint_t                     i;
    ngx_slab_pool_t               *pool;
    ngx_http_profile_bar_ring_t   *ring;
    ngx_http_profile_bar_order_t  *order;

    ring = zone->data;
    pool = (ngx_slab_pool_t *) zone->shm.addr;
    rc = NGX_ERROR;

    ngx_shmtx_lock(&pool->mutex);

    for (i = 0; i < NGX_HTTP_PROFILE_BAR_ORDERS; i++) {
        order = &ring->orders[i];

        if (ngx_memcmp(order->id, id, NGX_HTTP_PROFILE_ID_LEN) != 0) {
            continue;
        }

        if (order->taken) {
            ngx_memcpy(profile, order->profile, NGX_HTTP_PROFILE_ID_LEN);
            rc = NGX_OK;

        } else if (order->end >= ngx_time()) {
            rc = NGX_DECLINED;
        }

        break;
    }

    ngx_shmtx_unlock(&pool->mutex);

    return rc;
}
