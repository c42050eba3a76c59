
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Counters for captures that end after a number of requests of all workers.
 */


#include "core/ngx_http_profile_alive.h"
#include "workers/ngx_http_profile_inbox.h"


/* reserves a counter; a counter whose process has ended is free */

ngx_int_t
ngx_http_profile_ticket_get(ngx_uint_t n)
{
    ngx_uint_t                  i;
    ngx_atomic_uint_t           owner;
    ngx_http_profile_ticket_t  *tickets, *ticket;

    tickets = ngx_http_profile_inbox_tickets();

    for (i = 0; tickets && i < NGX_HTTP_PROFILE_TICKETS; i++) {
        ticket = &tickets[i];
        owner = ticket->owner;

        if (ngx_http_profile_alive(owner)) {
            continue;
        }

        if (ngx_atomic_cmp_set(&ticket->owner, owner,
                               ngx_http_profile_alive_self()))
        {
            ticket->left = n;
            return i;
        }
    }

    return NGX_BUSY;
}


void
ngx_http_profile_ticket_return(ngx_uint_t ticket)
{
    ngx_http_profile_ticket_t  *tickets;

    tickets = ngx_http_profile_inbox_tickets();

    if (tickets) {
        tickets[ticket].left = 0;
        tickets[ticket].owner = 0;
    }
}


ngx_uint_t
ngx_http_profile_ticket_take(ngx_uint_t ticket)
{
    ngx_atomic_t               *left;
    ngx_atomic_uint_t           n;
    ngx_http_profile_ticket_t  *tickets;

    tickets = ngx_http_profile_inbox_tickets();

    if (tickets == NULL) {
        return 0;
    }

    left = &tickets[ticket].left;

    do {
        n = *left;

        if (n == 0) {
            return 0;
        }

    } while (!ngx_atomic_cmp_set(left, n, n - 1));

    return 1;
}


ngx_uint_t
ngx_http_profile_ticket_left(ngx_uint_t ticket)
{
    ngx_http_profile_ticket_t  *tickets;

    tickets = ngx_http_profile_inbox_tickets();

    return tickets ? tickets[ticket].left : 0;
}
