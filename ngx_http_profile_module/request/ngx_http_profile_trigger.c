
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Triggers: the places of a request that may ask for a profile.  The names of
 * the argument and of the header are set per server, so they are known before
 * the location.
 */


#include "request/ngx_http_profile_trigger.h"


static void ngx_http_profile_header_done(void *data);


/* requests of this worker that came with a trigger header */

PROF_HOT_DATA ngx_uint_t  ngx_http_profile_nheaders;


ngx_int_t
ngx_http_profile_header(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_uint_t offset)
{
    ngx_pool_cleanup_t  *cln;

    /* the header may be that of another server */

    if (ngx_http_get_module_ctx(r, ngx_http_profile_module)) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_profile_header_done;
    ngx_http_profile_nheaders++;

    ngx_http_set_ctx(r, &ngx_http_profile_untracked, ngx_http_profile_module);

    return NGX_OK;
}


static void
ngx_http_profile_header_done(void *data)
{
    ngx_http_profile_nheaders--;
}


ngx_int_t
ngx_http_profile_find_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    ngx_uint_t                    n;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_find_arg(&r->args, &plcf->arg, plcf->arg_rare)
        == NGX_OK)
    {
        t->arg = plcf->arg;
    }

    if (plcf->header.len
        && ngx_http_get_module_ctx(r, ngx_http_profile_module)
        && ngx_http_profile_find_header(r, &plcf->header, &n))
    {
        t->header = plcf->header;
    }

    /* an order is taken out of the cookies even if it is not used */

    if (ngx_http_profile_orders->until) {
        ngx_http_profile_find_order(r, t);
    }

    return (t->arg.len || t->header.len || t->order.len) ? NGX_OK
                                                         : NGX_DECLINED;
}


ngx_uint_t
ngx_http_profile_arg_rare(ngx_str_t *name)
{
    u_char      *p;
    ngx_uint_t   i, rare, rank, lowest;

    static u_char  bytes[] = "_-QZXJKVWBYGFPqzxjkvwbygfpUDCMHLNRSIOTAE"
                             "9876543210umhcdlnrsiotae";

    rare = 0;
    lowest = sizeof(bytes);

    for (i = 0; i < name->len; i++) {

        p = (u_char *) ngx_strchr(bytes, name->data[i]);
        rank = p ? (ngx_uint_t) (p - bytes) : sizeof(bytes) - 1;

        if (rank < lowest) {
            lowest = rank;
            rare = i;
        }
    }

    return rare;
}


PROF_HOT ngx_int_t
ngx_http_profile_find_arg_at(ngx_str_t *args, ngx_str_t *name,
    ngx_uint_t rare, u_char *p)
{
    u_char  *start, *end, *last;

    last = args->data + args->len;
    end = last - (name->len - 1 - rare);

    for ( /* void */ ; p; p = memchr(p, name->data[rare], end - p)) {

        start = p - rare;

        if ((start == args->data || start[-1] == '&')
            && ngx_memcmp(start, name->data, name->len) == 0
            && (start + name->len == last || start[name->len] == '='
                || start[name->len] == '&'))
        {
            return NGX_OK;
        }

        if (++p == end) {
            break;
        }
    }

    return NGX_DECLINED;
}
