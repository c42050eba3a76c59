
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The parts of ngx_http_profile_poll.c that run for each request.  They are
 * inlined: functions around a system call cost more than others, because the
 * processor has lost its predictions of returns.
 */


#ifndef _NGX_HTTP_PROFILE_POLLING_H_INCLUDED_
#define _NGX_HTTP_PROFILE_POLLING_H_INCLUDED_


#include "loop/ngx_http_profile_loop_private.h"

#include <sys/epoll.h>


typedef struct {
    int                  fd;
    int                  size;
    struct epoll_event  *events;
    struct epoll_event  *at;        /* to be dispatched next */
    ngx_uint_t           writing;   /* the read event of "at" was dispatched,
                                       its write event follows */
} ngx_http_profile_polling_t;


#define ngx_http_profile_poll_advance(p)                                      \
    (p)->at++, (p)->writing = 0, ngx_http_profile_npolled--


PROF_HIDDEN_BEGIN

extern ngx_http_profile_polling_t  ngx_http_profile_polling;

/* ends a poll that has returned n, and no events */
ngx_int_t ngx_http_profile_poll_nothing(ngx_cycle_t *cycle, int n,
    ngx_msec_t timer, ngx_uint_t flags);

void ngx_http_profile_poll_stale(ngx_connection_t *c);

PROF_HIDDEN_END


/*
 * Works as ngx_epoll_process_events(), but runs no handlers.  The mask is the
 * signal mask of the poll; NULL: the thread's own mask.
 */

PROF_GLUE_INLINE ngx_int_t
ngx_http_profile_poll_events(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags, const sigset_t *mask)
{
    int                          n;
    ngx_http_profile_polling_t  *p;

    p = &ngx_http_profile_polling;

    ngx_log_debug1(NGX_LOG_DEBUG_EVENT, cycle->log, 0,
                   "profile epoll timer: %M", timer);

    n = mask ? epoll_pwait(p->fd, p->events, p->size, (int) timer, mask)
             : epoll_wait(p->fd, p->events, p->size, (int) timer);

    if (n <= 0) {
        return ngx_http_profile_poll_nothing(cycle, n, timer, flags);
    }

    p->at = p->events;
    p->writing = 0;

    ngx_http_profile_npolled = n;

    if ((flags & NGX_UPDATE_TIME) || ngx_event_timer_alarm) {
        ngx_time_update();
    }

    return NGX_OK;
}


/*
 * Returns the event that is handled next, with its flags set, or NULL.  Sets
 * *connection to the event's connection.  If tr is not NULL, only an event of
 * this request is returned.
 *
 * An event is skipped if an earlier handler has closed its connection, has
 * opened another one in its place, or has removed the event from the poll.
 */

PROF_GLUE_INLINE ngx_event_t *
ngx_http_profile_polled(ngx_http_profile_track_t *tr,
    ngx_connection_t **connection)
{
    uint32_t                     revents;
    uintptr_t                    data;
    ngx_event_t                 *ev;
    ngx_connection_t            *c;
    ngx_http_profile_polling_t  *p;

    p = &ngx_http_profile_polling;

    for ( /* void */ ;
         ngx_http_profile_npolled;
         ngx_http_profile_poll_advance(p))
    {

        data = (uintptr_t) p->at->data.ptr;
        c = (ngx_connection_t *) (data & ~(uintptr_t) 1);

        if (c->fd == (ngx_socket_t) -1 || c->read->instance != (data & 1)) {
            ngx_http_profile_poll_stale(c);
            continue;
        }

        *connection = c;
        revents = p->at->events;

        /* an error is handled by the active events of the connection */

        if (revents & (EPOLLERR|EPOLLHUP)) {
            revents |= EPOLLIN|EPOLLOUT;
        }

        ev = c->read;

        if (!p->writing && (revents & EPOLLIN) && ev->active) {

            if (tr && !ngx_http_profile_owns(tr,
                                            ngx_http_profile_connection(ev)))
            {
                return NULL;
            }

#if (NGX_HAVE_EPOLLRDHUP)
            if (revents & EPOLLRDHUP) {
                ev->pending_eof = 1;
            }
#endif

            ev->ready = 1;
            ev->available = -1;

            if (revents & EPOLLOUT) {
                p->writing = 1;

            } else {
                ngx_http_profile_poll_advance(p);
            }

            return ev;
        }

        ev = c->write;

        if ((revents & EPOLLOUT) && ev->active) {

            if (tr && !ngx_http_profile_owns(tr,
                                            ngx_http_profile_connection(ev)))
            {
                return NULL;
            }

            ev->ready = 1;
#if (NGX_THREADS)
            ev->complete = 1;
#endif

            ngx_http_profile_poll_advance(p);

            return ev;
        }
    }

    return NULL;
}


#endif /* _NGX_HTTP_PROFILE_POLLING_H_INCLUDED_ */
