
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Snapshots of the turn log.  The event loop begins a snapshot, which costs the
 * same for logs of all sizes.  A job copies the logs and finds the names of
 * handlers.  So a snapshot contains what was written until the job ran.
 *
 * A profile of a request contains the part of the log in which the request was
 * open.  Other snapshots are stored as profiles without stacks.
 */


#ifndef _NGX_HTTP_PROFILE_SNAPSHOT_H_INCLUDED_
#define _NGX_HTTP_PROFILE_SNAPSHOT_H_INCLUDED_


#include "turns/ngx_http_profile_turns.h"


/* bytes of a snapshot in the profile of a request */
#define NGX_HTTP_PROFILE_SNAPSHOT_PART   (100 * 1024)

/* ns before a stall or a death */
#define NGX_HTTP_PROFILE_SNAPSHOT_TIME   2000000000


typedef struct {
    const prof_turns_log_t               *log;
    const ngx_http_profile_turn_names_t  *names;    /* NULL: unknown */
    ngx_uint_t                            worker;
} ngx_http_profile_snapshot_log_t;


typedef struct {
    prof_turns_reason_e                   reason;
    uint64_t                              from;     /* ns */
    uint64_t                              to;       /* 0: until now */
    ngx_uint_t                            own;      /* index of this worker's
                                                       log */
    ngx_uint_t                            hidden;   /* flag: culprits in the
                                                       profile have no URI */
    uint32_t                              request;  /* what the snapshot is */
    uint64_t                              run;      /* about, in that log */
    prof_profile_t                       *draft;    /* for names */
    ngx_uint_t                            n;
    ngx_http_profile_snapshot_log_t       logs[];
} ngx_http_profile_snapshot_t;


PROF_HIDDEN_BEGIN

/*
 * Begins a snapshot of what ended after "from": of all workers, or of this
 * worker only.  Returns NULL if there is no log, or if memory is short.
 */
ngx_http_profile_snapshot_t *ngx_http_profile_snapshot_begin(
    prof_turns_reason_e reason, uint64_t from, ngx_uint_t only);

/*
 * Makes the snapshot.  Returns NULL if memory is short.  Context: the thread;
 * once.
 */
prof_turns_snapshot_t *ngx_http_profile_snapshot_make(
    ngx_http_profile_snapshot_t *s);

/* context: the thread, or the event loop */
void ngx_http_profile_snapshot_free(ngx_http_profile_snapshot_t *s);

/*
 * Makes the snapshot, of limited size, and lets it be a part of the profile,
 * which has a symbolized timeline.  Below the time in which the worker was busy
 * stand the culprits.  Context: the thread; once.
 */
void ngx_http_profile_snapshot_add(ngx_http_profile_snapshot_t *s,
    prof_profile_t *p);

/*
 * Makes the snapshot, and stores it in a profile without stacks.  Returns the
 * result of ngx_http_profile_store_add(), or NGX_ERROR.  Context: the thread;
 * once.
 */
ngx_int_t ngx_http_profile_snapshot_store(ngx_http_profile_snapshot_t *s,
    ngx_http_profile_store_t *store, u_char *id, const char *title,
    uint32_t pid);

/*
 * Stores a profile with this id and scope, and its title as URI.  pid is that
 * of its worker, or 0.  Returns the result of ngx_http_profile_store_add(), or
 * NGX_ERROR.  Context: the thread.
 */
ngx_int_t ngx_http_profile_snapshot_profile(ngx_http_profile_store_t *store,
    prof_profile_t *p, u_char *id, const char *scope, uint32_t pid);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_SNAPSHOT_H_INCLUDED_ */
