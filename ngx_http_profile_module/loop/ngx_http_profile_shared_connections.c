
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What a turn may touch but what serves other requests as well: connections
 * below the streams of HTTP/2 and HTTP/3, and those of a resolver.
 *
 * A stream of HTTP/3 has a connection in nginx's array, and its events are
 * posted, so it is found as any other.  What QUIC does below is not for one
 * stream: packets come to a listening socket, and go out by an event and
 * timers in memory of the connection's.
 */


#include "loop/ngx_http_profile_loop_private.h"


ngx_connection_t *
ngx_http_profile_below(ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    if (r->stream) {
        return r->stream->connection->connection;
    }
#endif

#if (NGX_HTTP_V3)
    if (r->connection->quic) {
        return r->connection->quic->parent;
    }
#endif

    return NULL;
}


PROF_HOT ngx_uint_t
ngx_http_profile_shared(ngx_http_request_t *r, ngx_connection_t *c)
{
    ngx_uint_t                  i;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_resolver_connection_t  *rec;

    if (c == ngx_http_profile_below(r)) {
        return 1;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->resolver == NULL) {
        return 0;
    }

    rec = clcf->resolver->connections.elts;

    for (i = 0; i < clcf->resolver->connections.nelts; i++) {
        if (rec[i].udp == c || rec[i].tcp == c) {
            return 1;
        }
    }

    return 0;
}


/* of a timer that is set, which may be read */

ngx_uint_t
ngx_http_profile_shared_event(ngx_http_request_t *r, ngx_event_t *ev)
{
    ngx_http_core_loc_conf_t  *clcf;

#if (NGX_HTTP_V3)
    if (r->connection->quic && ev->data == r->connection->quic->parent) {
        return 1;
    }
#endif

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return clcf->resolver && clcf->resolver->event == ev;
}
