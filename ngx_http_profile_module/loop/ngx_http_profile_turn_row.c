
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The row of a request in the turn log, when the request is logged or kept.
 */


#include "loop/ngx_http_profile_brief.h"
#include "loop/ngx_http_profile_loop_private.h"


PROF_GLUE_INLINE void ngx_http_profile_log_address(
    prof_turns_address_t *address, struct sockaddr *sa);


PROF_HOT ngx_int_t
ngx_http_profile_log_logged(ngx_http_request_t *r)
{
    prof_turns_request_t      *row;
    ngx_http_profile_track_t  *tr;

    if (!ngx_http_profile_logs_turns() || r != r->main) {
        return NGX_OK;
    }

    row = ngx_http_profile_turn_log.row;

    if (r != ngx_http_profile_brief.request || row == NULL
        || row->number != ngx_http_profile_brief.number)
    {
        tr = ngx_http_profile_find_track(r);
        row = tr ? prof_turns_row(ngx_http_profile_turn_log.log, tr->number)
                 : NULL;
    }

    if (row == NULL) {
        return NGX_OK;
    }

    row->bytes = (uint64_t) r->connection->sent;
    row->client.family = 0;
    row->upstream.family = 0;

    ngx_memzero(row->id, sizeof(row->id));
    ngx_http_profile_log_address(&row->client, r->connection->sockaddr);

    if (r->upstream && r->upstream->peer.sockaddr) {
        ngx_http_profile_log_address(&row->upstream,
                                     r->upstream->peer.sockaddr);
    }

    row->status = (uint16_t) (r->err_status ? r->err_status
                                            : r->headers_out.status);

    return NGX_OK;
}


PROF_GLUE_INLINE void
ngx_http_profile_log_address(prof_turns_address_t *address,
    struct sockaddr *sa)
{
    /* the port follows the family, and the address of IPv4 follows the port */

    if (sa->sa_family == AF_INET) {
        ngx_memcpy(address, sa, 8);
        return;
    }

#if (NGX_HAVE_INET6)
    if (sa->sa_family == AF_INET6) {
        ngx_memcpy(address, sa, 4);
        ngx_memcpy(address->address, &((struct sockaddr_in6 *) sa)->sin6_addr,
                   16);
    }
#endif
}


void
ngx_http_profile_log_id(ngx_http_profile_track_t *tr)
{
    ngx_uint_t             i;
    prof_turns_request_t  *row;

    row = ngx_http_profile_logs_turns()
          ? prof_turns_row(ngx_http_profile_turn_log.log, tr->number) : NULL;

    if (row == NULL || tr->id.len != 2 * sizeof(row->id)) {
        return;
    }

    for (i = 0; i < sizeof(row->id); i++) {
        row->id[i] = (uint8_t) ngx_hextoi(tr->id.data + 2 * i, 2);
    }
}
