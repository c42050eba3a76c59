
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Declarations that the files of this room share: captures of workers.
 *
 * A client asks one worker, the asker.  The asker sends an order to each
 * worker that takes part, with the descriptor of a memory file that no other
 * process knows.  A worker captures its own threads until the time in the
 * order.  It writes the archive of its profile to the file, and reports.  This
 * part of the worker in the capture is its share.  The asker merges the
 * profiles in a thread, and answers.
 *
 * Context: the worker's event loop, unless stated otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_ASKER_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ASKER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "prof.h"
#include "call/ngx_http_profile_call.h"
#include "core/ngx_http_profile_job.h"
#include "store/ngx_http_profile_store.h"
#include "workers/ngx_http_profile_endpoint.h"
#include "workers/ngx_http_profile_share.h"


/* ms after the end of a capture; a worker without a report then is left out */
#define NGX_HTTP_PROFILE_GRACE       3000

/* the same for a worker that is still writing its archive, in ms */
#define NGX_HTTP_PROFILE_GRACE_BUSY  5000

#define NGX_HTTP_PROFILE_SECONDS_MIN  100          /* ms */
#define NGX_HTTP_PROFILE_SECONDS_MAX  600000

/* the maximum number of traces in a profile: collectors take 16000 samples */
#define NGX_HTTP_PROFILE_TRACES       4000


/* the parameters of a capture */

typedef struct {
    prof_capture_conf_t         conf;
    ngx_http_profile_filter_t   filter;
    ngx_msec_t                  time;
    const prof_encoder_t       *format;
    ngx_int_t                   worker;      /* a number, or -1: all */
    uint64_t                    interval;    /* for sampled allocations */
    ngx_uint_t                  traces;      /* maximum number of traces */
    ngx_http_profile_store_t   *store;       /* for the profile, or NULL */
    u_char                      id[NGX_HTTP_PROFILE_ID_LEN];
    char                        title[NGX_HTTP_PROFILE_FILTER_LEN];
                                             /* of the profile, or empty */
    unsigned                    page:1;      /* send the console's page */
    unsigned                    sent:1;      /* the client gets the profile */
    unsigned                    inuse:1;     /* show memory in use first */
} ngx_http_profile_wanted_t;


typedef enum {
    NGX_HTTP_PROFILE_MEMBER_ASKED = 0,
    NGX_HTTP_PROFILE_MEMBER_WRITING,
    NGX_HTTP_PROFILE_MEMBER_DONE,    /* has reported */
    NGX_HTTP_PROFILE_MEMBER_SILENT,  /* has not reported in time */
    NGX_HTTP_PROFILE_MEMBER_GONE,    /* the process does not exist */
    NGX_HTTP_PROFILE_MEMBER_REFUSED  /* the order could not be sent */
} ngx_http_profile_member_e;


/* the asker's view of a worker that takes part */

typedef struct {
    ngx_uint_t                  worker;      /* number */
    ngx_pid_t                   pid;
    int                         fd;          /* for its archive */
    ngx_http_profile_member_e   state;
    ngx_uint_t                  report;      /* valid in the state DONE */
    ngx_uint_t                  missed;      /* checks since it has exited */
    unsigned                    begun:1;     /* its share has begun */
    unsigned                    held:1;      /* it runs one event for long */
} ngx_http_profile_member_t;


/* the result of the thread that merges */

typedef struct {
    ngx_uint_t                  nworkers;    /* workers in the profile */
    ngx_int_t                   stored;
    char                        took_part[256];
    char                        left_out[256];
    ngx_uint_t                  requests;    /* of an endpoint */
    ngx_uint_t                  skipped;
    ngx_uint_t                  unfinished;  /* still running at the end */
    ngx_http_profile_seen_t     seen[NGX_HTTP_PROFILE_SEEN];
    uint32_t                   *times;       /* us, malloc()ed */
    ngx_uint_t                  ntimes;
    unsigned                    failed:1;    /* memory was short */
} ngx_http_profile_merged_t;


typedef struct {
    ngx_queue_t                 queue;
    uint64_t                    id;
    uint64_t                    end;         /* in the time of prof_now() */
    ngx_http_profile_call_t    *call;        /* NULL: client disconnected */
    ngx_http_profile_wanted_t   wanted;
    ngx_uint_t                  pending;     /* members without a report */
    ngx_event_t                 timer;
    ngx_connection_t            connection;  /* for nginx's debug messages */
    ngx_http_profile_job_t      job;
    unsigned                    rung:1;      /* bells of workers whose shares
                                                had not begun were rung */
    unsigned                    merging:1;   /* the job is started; its thread
                                                uses the members below */
    ngx_http_profile_gzip_t     gzip;
    ngx_http_profile_merged_t   merged;
    prof_buf_t                  out;
    ngx_uint_t                  nmembers;
    ngx_http_profile_member_t   members[];
} ngx_http_profile_asker_t;


PROF_HIDDEN_BEGIN

/* ngx_http_profile_asker.c: the asker's part */

/*
 * Starts a capture that answers the call when it ends.  Returns NGX_DONE, or
 * the result of an answer with an error, as handlers of routes do.
 */
ngx_int_t ngx_http_profile_asker_begin(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);


/* ngx_http_profile_merge.c: runs in a thread */

void ngx_http_profile_asker_merge(void *data);

/* returns the title of the profile; context: any thread */
const char *ngx_http_profile_asker_title(ngx_http_profile_wanted_t *wanted);


/* ngx_http_profile_asker_answer.c: returns the result of the answer */

ngx_int_t ngx_http_profile_asker_answer(ngx_http_profile_asker_t *s);

/* returns whether an endpoint had no request, so there is no profile */
#define ngx_http_profile_asker_is_empty(s)                                    \
    ((s)->wanted.filter.enabled && (s)->merged.requests == 0)

/* a route of the console: the captures of endpoints that run */
ngx_int_t ngx_http_profile_asker_progress(ngx_http_profile_call_t *call);


/*
 * Prepares a capture that is stored: finds the store, and makes the id.
 * Returns NGX_DECLINED, or the result of an answer with the error.
 */
ngx_int_t ngx_http_profile_asker_keep_init(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);

/* stores the merged profile; context: the thread that merges */
ngx_int_t ngx_http_profile_asker_keep(ngx_http_profile_asker_t *s,
    prof_profile_t *p);

/*
 * Returns 1 if the answer is the id or the console's page.  If the profile of a
 * page could not be stored, the client gets the profile itself.
 */
ngx_uint_t ngx_http_profile_asker_is_kept(ngx_http_profile_asker_t *s);


/* ngx_http_profile_times.c: requests of an endpoint; in the thread */

void ngx_http_profile_asker_take_times(ngx_http_profile_asker_t *s,
    prof_profile_t *p);
void ngx_http_profile_asker_spread(ngx_http_profile_asker_t *s,
    prof_profile_t *p);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ASKER_H_INCLUDED_ */
