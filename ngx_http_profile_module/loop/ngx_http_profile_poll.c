
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The poll of an armed worker that uses epoll.
 *
 * Without NGX_POST_EVENTS, nginx's poll runs the handlers of ready events one
 * after the other, and sets the flags of an event just before its handler.
 * With NGX_POST_EVENTS, timers come before events, and nginx sets all flags at
 * once, which other handlers notice.  So the module waits on nginx's epoll
 * descriptor, and dispatches events in the order and on the conditions of
 * ngx_epoll_process_events().
 *
 * The descriptor is a static variable of nginx.  It is found by deletion: nginx
 * adds a pipe, and an epoll_ctl() that removes the pipe succeeds only for
 * nginx's epoll descriptor, and changes nothing in any other file.
 *
 * The methods "poll" and "select" always post events, so nginx's functions are
 * called.
 */


#include "loop/ngx_http_profile_polling.h"


/* nginx opens its epoll descriptor as one of the first of a process */
#define NGX_HTTP_PROFILE_DESCRIPTORS  65536


static ngx_event_module_t *ngx_http_profile_event_module(ngx_cycle_t *cycle,
    ngx_uint_t *size);
static int ngx_http_profile_epoll_descriptor(ngx_event_module_t *module,
    ngx_log_t *log);


PROF_HOT_DATA ngx_http_profile_polling_t  ngx_http_profile_polling = {
    -1, 0, NULL, NULL, 0
};

PROF_HOT_DATA ngx_uint_t                  ngx_http_profile_polls;
PROF_HOT_DATA ngx_uint_t                  ngx_http_profile_npolled;


/* called once in a process: nginx opens no second epoll descriptor */

ngx_int_t
ngx_http_profile_poll_init(ngx_cycle_t *cycle)
{
    ngx_uint_t                   size;
    ngx_event_module_t          *module;
    ngx_http_profile_polling_t  *p;

    p = &ngx_http_profile_polling;

    if (p->events || !(ngx_event_flags & NGX_USE_EPOLL_EVENT)) {
        return NGX_OK;
    }

    module = ngx_http_profile_event_module(cycle, &size);

    if (module == NULL) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "profile: the event loop is not nginx's own, "
                      "requests cannot be profiled");
        return NGX_ERROR;
    }

    p->fd = ngx_http_profile_epoll_descriptor(module, cycle->log);

    if (p->fd == -1) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                      "profile: nginx's epoll descriptor is not found, "
                      "requests cannot be profiled");
        return NGX_ERROR;
    }

    p->events = ngx_alloc(size * sizeof(struct epoll_event), cycle->log);
    if (p->events == NULL) {
        return NGX_ERROR;
    }

    p->size = (int) size;

    ngx_http_profile_polls = 1;

    return NGX_OK;
}


/*
 * Returns the event method, and the number of events of one poll.  Returns
 * NULL if another module has replaced nginx's poll.
 */

static ngx_event_module_t *
ngx_http_profile_event_module(ngx_cycle_t *cycle, ngx_uint_t *size)
{
    void                *conf;
    ngx_uint_t           i;
    ngx_module_t        *module;
    ngx_command_t       *cmd;
    ngx_event_conf_t    *ecf;
    ngx_event_module_t  *em;

    ecf = ngx_event_get_conf(cycle->conf_ctx, ngx_event_core_module);

    for (i = 0; cycle->modules[i]; i++) {
        module = cycle->modules[i];

        if (module->type != NGX_EVENT_MODULE
            || module->ctx_index != ecf->use
            || module == &ngx_event_core_module)
        {
            continue;
        }

        em = module->ctx;

        if (em->actions.process_events != ngx_event_actions.process_events) {
            return NULL;
        }

        conf = ngx_event_get_conf(cycle->conf_ctx, (*module));

        for (cmd = module->commands; cmd->name.len; cmd++) {

            if (ngx_strcmp(cmd->name.data, "epoll_events") == 0) {
                *size = *(ngx_uint_t *) ((u_char *) conf + cmd->offset);
                return em;
            }
        }
    }

    return NULL;
}


static int
ngx_http_profile_epoll_descriptor(ngx_event_module_t *module, ngx_log_t *log)
{
    int                 fd, pair[2];
    ngx_event_t         rev, wev;
    ngx_connection_t    c;
    struct epoll_event  ee;

    if (pipe(pair) == -1) {
        return -1;
    }

    ngx_memzero(&c, sizeof(ngx_connection_t));
    ngx_memzero(&rev, sizeof(ngx_event_t));
    ngx_memzero(&wev, sizeof(ngx_event_t));

    c.fd = pair[0];
    c.read = &rev;
    c.write = &wev;
    c.log = log;

    rev.data = &c;
    rev.log = log;
    wev.data = &c;
    wev.log = log;
    wev.write = 1;

    fd = -1;

    if (module->actions.add(&rev, NGX_READ_EVENT, NGX_CLEAR_EVENT) == NGX_OK) {

        for (fd = 0; fd < NGX_HTTP_PROFILE_DESCRIPTORS; fd++) {
            if (epoll_ctl(fd, EPOLL_CTL_DEL, pair[0], &ee) == 0) {
                break;
            }
        }

        if (fd == NGX_HTTP_PROFILE_DESCRIPTORS) {
            fd = -1;
        }
    }

    (void) close(pair[0]);
    (void) close(pair[1]);

    return fd;
}


PROF_GLUE ngx_int_t
ngx_http_profile_poll(ngx_cycle_t *cycle, ngx_msec_t timer, ngx_uint_t flags,
    const sigset_t *mask)
{
    return ngx_http_profile_poll_events(cycle, timer, flags, mask);
}


ngx_int_t
ngx_http_profile_poll_nothing(ngx_cycle_t *cycle, int n, ngx_msec_t timer,
    ngx_uint_t flags)
{
    ngx_err_t   err;
    ngx_uint_t  level;

    err = (n == -1) ? ngx_errno : 0;

    ngx_http_profile_npolled = 0;

    if ((flags & NGX_UPDATE_TIME) || ngx_event_timer_alarm) {
        ngx_time_update();
    }

    if (n == 0 && timer != NGX_TIMER_INFINITE) {
        return NGX_OK;
    }

    if (err == NGX_EINTR && ngx_event_timer_alarm) {
        ngx_event_timer_alarm = 0;
        return NGX_OK;
    }

    level = (err == NGX_EINTR) ? NGX_LOG_INFO : NGX_LOG_ALERT;

    ngx_log_error(level, cycle->log, err,
                  err ? "epoll_wait() failed"
                      : "epoll_wait() returned no events without timeout");

    return NGX_ERROR;
}


void
ngx_http_profile_poll_stale(ngx_connection_t *c)
{
    ngx_log_debug1(NGX_LOG_DEBUG_EVENT, ngx_cycle->log, 0,
                   "profile epoll: stale event %p", c);
}


PROF_HOT ngx_event_t *
ngx_http_profile_polled_own(ngx_http_profile_track_t *tr)
{
    ngx_connection_t  *c;

    return ngx_http_profile_polled(tr, &c);
}
