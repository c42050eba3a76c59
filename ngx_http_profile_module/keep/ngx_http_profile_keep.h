
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * profile_keep: captures that go on for a share of all requests, and that are
 * kept if a condition is true when the request is logged.  They are cheap
 * because they have only what the watch (shared/prof.h) and the accounting
 * know, and because this is just noted: names, call tree and timeline are made
 * of the notes when the request is kept.
 *
 * Context: the event loop of a worker.
 */


#ifndef _NGX_HTTP_PROFILE_KEEP_H_INCLUDED_
#define _NGX_HTTP_PROFILE_KEEP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"
#include "loop/ngx_http_profile_account.h"


/* of a worker at a time; requests beyond these are not kept */
#define NGX_HTTP_PROFILE_MAX_LIGHT  1024

/* samples a second */
#define NGX_HTTP_PROFILE_KEEP_FREQUENCY  99
#define NGX_HTTP_PROFILE_KEEP_MAX        250

/* profiles a second, of a worker */
#define NGX_HTTP_PROFILE_KEEP_RATE       10
#define NGX_HTTP_PROFILE_KEEP_RATE_MAX   1000


struct ngx_http_profile_keep_conf_s {
    ngx_http_complex_value_t   condition;
    ngx_uint_t                 share;        /* of 10000 requests */
    ngx_uint_t                 rate;         /* profiles a second */
    uint64_t                   next;         /* of a worker: when one more
                                                is due at that rate */
};


PROF_HIDDEN_BEGIN

char *ngx_http_profile_keep(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* begins one, if the server has profile_keep and it is the request's turn */
void ngx_http_profile_keep_begin(ngx_http_profile_track_t *tr,
    uint64_t begin);
void ngx_http_profile_keep_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uint64_t ready);
void ngx_http_profile_keep_turn(ngx_http_profile_track_t *tr, uint64_t now,
    uint64_t cpu);

/* the watch is going to forget what is old */
void ngx_http_profile_keep_age(void);

/* the server has profile_keep */

#define ngx_http_profile_keep_asked(r)                                       \
    (ngx_http_profile_watch                                                   \
     && ((ngx_http_profile_srv_conf_t *)                                      \
         ngx_http_get_module_srv_conf(r, ngx_http_profile_module))->keep)

/* the request is logged: whether the server wants to have it */
ngx_uint_t ngx_http_profile_keep_wanted(ngx_http_request_t *r);

/*
 * One that is wanted: whether it can be kept.  NGX_DECLINED: it is not of the
 * share.  NGX_BUSY: it is counted as lost.
 */
ngx_int_t ngx_http_profile_keep_admit(ngx_http_profile_track_t *tr,
    uint64_t now);

/* it was admitted, and there is no memory for it */
void ngx_http_profile_keep_lose(ngx_http_profile_track_t *tr);

/* the profile goes to the store; frame: of its turn, if it runs */
void ngx_http_profile_keep_log(ngx_http_profile_track_t *tr,
    ngx_http_profile_frame_t *frame, uint64_t now);

/* it goes nowhere */
void ngx_http_profile_keep_drop(ngx_http_profile_track_t *tr);
void ngx_http_profile_keep_exit(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_KEEP_H_INCLUDED_ */
