
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counters for captures that end after a number of requests of all workers.
 */


#include "core/ngx_http_profile_alive.h"
#include "workers/ngx_http_profile_inbox.h"


#define ngx_http_profile_ticket_index(ticket)       ((uint32_t) (ticket))
#define ngx_http_profile_ticket_generation(ticket)  ((ticket) >> 32)
#define ngx_http_profile_ticket_requests(left)      ((uint32_t) (left))


/* reserves a counter; a counter whose process has ended is free */

ngx_int_t
ngx_http_profile_ticket_get(ngx_uint_t n, uint64_t *ticket)
{
    ngx_uint_t                  i;
    ngx_atomic_uint_t           owner, generation;
    ngx_http_profile_ticket_t  *tickets, *t;

    tickets = ngx_http_profile_inbox_tickets();

    for (i = 0; tickets && i < NGX_HTTP_PROFILE_TICKETS; i++) {
        t = &tickets[i];
        owner = t->owner;

        if (ngx_http_profile_alive(owner)
            || !ngx_atomic_cmp_set(&t->owner, owner,
                                   ngx_http_profile_alive_self()))
        {
            continue;
        }

        generation = (uint32_t)
                     (ngx_http_profile_ticket_generation(t->left) + 1);

        /* shares of the generation before may still take requests from it */

        t->left = generation << 32 | n;
        *ticket = generation << 32 | i;

        return NGX_OK;
    }

    return NGX_BUSY;
}


void
ngx_http_profile_ticket_return(uint64_t ticket)
{
    ngx_http_profile_ticket_t  *tickets, *t;

    tickets = ngx_http_profile_inbox_tickets();

    if (tickets) {
        t = &tickets[ngx_http_profile_ticket_index(ticket)];

        t->left = ngx_http_profile_ticket_generation(ticket) << 32;
        t->owner = 0;
    }
}


ngx_uint_t
ngx_http_profile_ticket_take(uint64_t ticket)
{
    ngx_atomic_uint_t           n;
    ngx_http_profile_ticket_t  *tickets, *t;

    tickets = ngx_http_profile_inbox_tickets();

    if (tickets == NULL) {
        return 0;
    }

    t = &tickets[ngx_http_profile_ticket_index(ticket)];

    do {
        n = t->left;

        if (ngx_http_profile_ticket_generation(n)
            != ngx_http_profile_ticket_generation(ticket)
            || ngx_http_profile_ticket_requests(n) == 0)
        {
            return 0;
        }

    } while (!ngx_atomic_cmp_set(&t->left, n, n - 1));

    return 1;
}


ngx_uint_t
ngx_http_profile_ticket_left(uint64_t ticket)
{
    ngx_atomic_uint_t           n;
    ngx_http_profile_ticket_t  *tickets;

    tickets = ngx_http_profile_inbox_tickets();

    if (tickets == NULL) {
        return 0;
    }

    n = tickets[ngx_http_profile_ticket_index(ticket)].left;

    return ngx_http_profile_ticket_generation(n)
           == ngx_http_profile_ticket_generation(ticket)
           ? ngx_http_profile_ticket_requests(n) : 0;
}
