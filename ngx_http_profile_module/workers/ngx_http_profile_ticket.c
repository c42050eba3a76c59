
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counters of the requests that captures of endpoints have taken in all
 * workers.  A capture may end after a number of requests.
 */


#include "core/ngx_http_profile_alive.h"
#include "workers/ngx_http_profile_inbox.h"


#define ngx_http_profile_ticket_index(ticket)       ((uint32_t) (ticket))
#define ngx_http_profile_ticket_generation(ticket)  ((ticket) >> 32)
#define ngx_http_profile_ticket_requests(left)      ((uint32_t) (left))

/* the first value of a counter */
#define ngx_http_profile_ticket_first(wanted)                                 \
    ((wanted) ? (uint32_t) (wanted) : NGX_MAX_UINT32_VALUE)


/* reserves a counter; a counter whose process has ended is free */

ngx_int_t
ngx_http_profile_ticket_get(ngx_uint_t requests, const char *title,
    uint64_t end, uint64_t *ticket)
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

        generation = ngx_http_profile_ticket_generation(t->left);

        /*
         * Shares of the generation before may still take requests from it.  An
         * odd generation is not complete; it may be that of a killed process.
         */

        generation = (uint32_t) ((generation + 1) | 1);
        t->left = generation << 32;
        ngx_memory_barrier();

        t->wanted = requests;
        t->end = end;
        (void) ngx_cpystrn((u_char *) t->title, (u_char *) title,
                           sizeof(t->title));

        ngx_memory_barrier();
        generation = (uint32_t) (generation + 1);
        t->left = generation << 32 | ngx_http_profile_ticket_first(requests);
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


ngx_int_t
ngx_http_profile_ticket_read(ngx_uint_t i, ngx_http_profile_ticket_t *ticket)
{
    ngx_atomic_uint_t           left;
    ngx_http_profile_ticket_t  *tickets, *t;

    tickets = ngx_http_profile_inbox_tickets();

    if (tickets == NULL || !ngx_http_profile_alive(tickets[i].owner)) {
        return NGX_DECLINED;
    }

    t = &tickets[i];
    left = t->left;
    ngx_memory_barrier();

    *ticket = *t;
    ngx_memory_barrier();

    if (ngx_http_profile_ticket_generation(left) & 1
        || ngx_http_profile_ticket_generation(left)
           != ngx_http_profile_ticket_generation(t->left))
    {
        return NGX_DECLINED;
    }

    ticket->left = ngx_http_profile_ticket_first(ticket->wanted)
                   - ngx_http_profile_ticket_requests(left);

    return NGX_OK;
}
