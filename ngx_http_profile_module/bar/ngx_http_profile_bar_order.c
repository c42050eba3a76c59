
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The console's route for orders: "record my next POST to this URI".
 */


#include "bar/ngx_http_profile_bar.h"
#include "core/ngx_http_profile_ground.h"
#include "core/ngx_http_profile_param.h"

#include <jansson.h>


#define NGX_HTTP_PROFILE_BAR_METHOD  15
#define NGX_HTTP_PROFILE_BAR_PATH    255


static ngx_int_t ngx_http_profile_bar_order_args(
    ngx_http_profile_call_t *call, ngx_http_profile_order_t *order);
static ngx_int_t ngx_http_profile_bar_order_arg(
    ngx_http_profile_call_t *call, const char *name, ngx_str_t *value,
    size_t max);


/* called in a worker; sets the orders of the worker's configuration */

ngx_int_t
ngx_http_profile_bar_order_init(ngx_cycle_t *cycle)
{
    ngx_http_profile_bar_ring_t       *ring;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    if (ngx_http_profile_is_off()) {
        return NGX_OK;
    }

    bmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                         ngx_http_profile_bar_filter_module);

    ring = (bmcf && bmcf->zone) ? bmcf->zone->data : NULL;

    ngx_http_profile_set_orders(ring ? &ring->orders : NULL);

    return NGX_OK;
}


/* makes an order; with the argument "cancel" removes the order of the path */

ngx_int_t
ngx_http_profile_bar_order_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                          rc;
    ngx_str_t                          value;
    ngx_http_profile_order_t           order;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    bmcf = ngx_http_get_module_main_conf(call->request,
                                         ngx_http_profile_bar_filter_module);

    if (bmcf->zone == NULL) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                             "there are no orders without \"profile_bar on\"");
    }

    rc = ngx_http_profile_bar_order_args(call, &order);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_arg(call->request, (u_char *) "cancel", 6, &value) == NGX_OK)
    {
        if (ngx_http_profile_order_remove(call->request, &order.path)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_profile_answer_nothing(call);
    }

    if (ngx_http_profile_make_id(order.id, call->request->connection->log)
        != NGX_OK
        || ngx_http_profile_order_make(call->request, &order) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer_json(call, NGX_HTTP_OK,
                json_pack("{s:s%, s:i}",
                          "id", order.id, (size_t) NGX_HTTP_PROFILE_ID_LEN,
                          "seconds", NGX_HTTP_PROFILE_ORDER_SECONDS));
}


/* returns NGX_DECLINED if all arguments are valid */

static ngx_int_t
ngx_http_profile_bar_order_args(ngx_http_profile_call_t *call,
    ngx_http_profile_order_t *order)
{
    ngx_int_t                  rc;
    ngx_http_profile_params_t  params;

    rc = ngx_http_profile_bar_order_arg(call, "method", &order->method,
                                        NGX_HTTP_PROFILE_BAR_METHOD);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_bar_order_arg(call, "uri", &order->path,
                                            NGX_HTTP_PROFILE_BAR_PATH);
    }

    if (rc == NGX_DECLINED) {
        params.given = 0;
        rc = ngx_http_profile_call_param(call, "mode",
                                         NGX_HTTP_PROFILE_PARAM_MODE, &params);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_strlchr(order->method.data,
                    order->method.data + order->method.len, ';'))
    {
        return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                             "\"method\" is \"%V\", which "
                                             "is no method", &order->method);
    }

    if (!ngx_http_profile_param_given(&params, NGX_HTTP_PROFILE_PARAM_MODE)) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                             "\"mode\" is missing");
    }

    order->mode = params.values[NGX_HTTP_PROFILE_PARAM_MODE];

    return NGX_DECLINED;
}


/* accepts printable characters without spaces, as a cookie does */

static ngx_int_t
ngx_http_profile_bar_order_arg(ngx_http_profile_call_t *call,
    const char *name, ngx_str_t *value, size_t max)
{
    size_t     i;
    ngx_int_t  rc;

    rc = ngx_http_profile_call_arg(call, name, value);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    i = 0;

    if (rc == NGX_OK && value->len <= max) {

        while (i < value->len
               && value->data[i] > ' ' && value->data[i] < 0x7f)
        {
            i++;
        }
    }

    if (i == 0 || i < value->len) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                             "\"%s\" must have from 1 to %uz printable bytes",
                             name, max);
    }

    return NGX_DECLINED;
}
