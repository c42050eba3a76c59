
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Captures of workers.
 *
 * A client asks one worker, the "asker".  The asker sends an order to each
 * worker that is to take part, and with it a file in memory that nobody else
 * knows.  A worker captures its own threads until the time that the order
 * says, writes the archive of its profile to the file, and reports.  The asker
 * merges what it got, in a thread, and answers.
 *
 * Orders and reports are datagrams: each worker has an inbox, a socket that
 * the master made before it started the workers.  So a worker is woken when
 * there is something to do and only then; nothing is shared that a worker
 * could leave locked or broken when it dies; and the kernel frees the files,
 * whoever is left.  Workers of one configuration have the inboxes of one
 * another; after a reload the old and the new ones do not meet.
 *
 * Context: the worker's event loop, unless said otherwise.
 */


#ifndef _NGX_HTTP_PROFILE_ASKER_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ASKER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "prof.h"
#include "reply/ngx_http_profile_reply.h"
#include "workers/ngx_http_profile_endpoint.h"
#include "core/ngx_http_profile_job.h"
#include "workers/ngx_http_profile_state.h"
#include "store/ngx_http_profile_store.h"


/* a worker that does not report so long after the end is left out, ms */
#define NGX_HTTP_PROFILE_GRACE       3000

/* nor one that is still writing its archive by then */
#define NGX_HTTP_PROFILE_GRACE_BUSY  5000

#define NGX_HTTP_PROFILE_SECONDS_MIN  100          /* ms */
#define NGX_HTTP_PROFILE_SECONDS_MAX  600000

/* a profile may be so large, compressed */
#define NGX_HTTP_PROFILE_SHARE_MAX    (64 * 1024 * 1024)

/* captures of so many requests, in all workers */
#define NGX_HTTP_PROFILE_TICKETS      64

/* traces that are told apart in a profile: collectors take 16000 samples */
#define NGX_HTTP_PROFILE_TRACES       4000

/* memory of one worker's share */
#define NGX_HTTP_PROFILE_SHARE_MEMORY  (16 * 1024 * 1024)


typedef enum {
    NGX_HTTP_PROFILE_ORDER = 0,      /* to workers */
    NGX_HTTP_PROFILE_CANCEL,
    NGX_HTTP_PROFILE_WRITING,        /* to the asker: captured, not written */
    NGX_HTTP_PROFILE_REPORT,         /* to the asker: that was all */
    NGX_HTTP_PROFILE_STATE           /* to workers: tell of yourself */
} ngx_http_profile_message_e;


typedef enum {
    NGX_HTTP_PROFILE_DONE = 0,       /* the file has the archive */
    NGX_HTTP_PROFILE_EARLY,          /* it has, but the worker exits */
    NGX_HTTP_PROFILE_BUSY,           /* too many captures at once */
    NGX_HTTP_PROFILE_LATE,           /* the order came after its end */
    NGX_HTTP_PROFILE_FAILED          /* no memory; it is in the log */
} ngx_http_profile_report_e;


/* what follows "end" is in orders only: a socket takes more of the others */

typedef struct {
    uint32_t                    size;        /* of the message */
    uint32_t                    type;        /* ngx_http_profile_message_e */
    uint32_t                    report;      /* ngx_http_profile_report_e */
    uint32_t                    worker;      /* the sender's number */
    ngx_pid_t                   pid;         /* the sender's */
    uint64_t                    id;          /* the asker's, for the capture */
    uint64_t                    end;         /* of prof_now() */
    uint64_t                    interval;    /* of sampled allocations */
    uint64_t                    traces;      /* to tell apart */
    prof_capture_conf_t         conf;
    ngx_http_profile_filter_t   filter;
} ngx_http_profile_message_t;

#define ngx_http_profile_message_size(type)                                   \
    ((type) == NGX_HTTP_PROFILE_ORDER                                         \
     ? sizeof(ngx_http_profile_message_t)                                     \
     : offsetof(ngx_http_profile_message_t, interval))


/* a counter that workers take from, and the process that it was made for */

typedef struct {
    ngx_atomic_t                owner;       /* process; 0: free */
    ngx_atomic_t                left;
} ngx_http_profile_ticket_t;


/* what is asked for */

typedef struct {
    prof_capture_conf_t         conf;
    ngx_http_profile_filter_t   filter;
    ngx_msec_t                  time;
    const prof_encoder_t       *format;
    ngx_int_t                   worker;      /* a number, or -1: all */
    uint64_t                    interval;    /* of sampled allocations */
    ngx_uint_t                  traces;      /* to tell apart */
    ngx_http_profile_store_t   *store;       /* where it goes; NULL: it is
                                                only sent */
    u_char                      id[NGX_HTTP_PROFILE_ID_LEN];
    unsigned                    page:1;      /* a browser's: it gets the page
                                                of what is stored */
    unsigned                    sent:1;      /* as well as stored */
    unsigned                    inuse:1;     /* what is in use comes first */
} ngx_http_profile_wanted_t;


typedef enum {
    NGX_HTTP_PROFILE_MEMBER_ASKED = 0,
    NGX_HTTP_PROFILE_MEMBER_WRITING,
    NGX_HTTP_PROFILE_MEMBER_DONE,    /* has reported */
    NGX_HTTP_PROFILE_MEMBER_SILENT,  /* has not, in time */
    NGX_HTTP_PROFILE_MEMBER_GONE,    /* there is no such process */
    NGX_HTTP_PROFILE_MEMBER_REFUSED  /* no order could be sent to it */
} ngx_http_profile_member_e;


/* a worker that takes part, as the asker sees it */

typedef struct {
    ngx_uint_t                  worker;      /* number */
    ngx_pid_t                   pid;
    int                         fd;          /* for its archive */
    ngx_http_profile_member_e   state;
    ngx_uint_t                  report;      /* once it is "done" */
    ngx_uint_t                  missed;      /* looks: it was not there */
} ngx_http_profile_member_t;


/* what the thread that merges makes */

typedef struct {
    ngx_uint_t                  nworkers;    /* that are in the profile */
    ngx_int_t                   stored;
    char                        took_part[256];
    char                        left_out[256];
    ngx_uint_t                  requests;    /* of an endpoint */
    ngx_uint_t                  skipped;
    uint32_t                   *times;       /* us, of malloc() */
    ngx_uint_t                  ntimes;
    unsigned                    failed:1;    /* no memory */
} ngx_http_profile_merged_t;


typedef struct {
    ngx_queue_t                 queue;
    uint64_t                    id;
    uint64_t                    end;         /* of prof_now() */
    ngx_http_profile_call_t    *call;        /* NULL: the client is gone */
    ngx_http_profile_wanted_t   wanted;
    ngx_uint_t                  pending;     /* members without a report */
    ngx_event_t                 timer;
    ngx_connection_t            connection;  /* for nginx's debug messages */
    ngx_http_profile_job_t      job;
    unsigned                    merging:1;   /* the rest is the thread's */
    ngx_http_profile_gzip_t     gzip;
    ngx_http_profile_merged_t   merged;
    prof_buf_t                  out;
    ngx_uint_t                  nmembers;
    ngx_http_profile_member_t   members[];
} ngx_http_profile_asker_t;


PROF_HIDDEN_BEGIN

/* ngx_http_profile_inbox.c */

/*
 * In the master, before workers are started.  What cannot be had is logged:
 * without memory there are no workers for ngx_http_profile_inbox_workers(),
 * without descriptors each worker reaches itself only.
 */
void ngx_http_profile_inbox_init(ngx_cycle_t *cycle);

/* the configuration has no use for them, or the process exits */
void ngx_http_profile_inbox_close(void);

/* in a worker, as it starts */
void ngx_http_profile_inbox_open(ngx_cycle_t *cycle);

/* the number of workers, and the process id of one; 0: there is none now */
ngx_uint_t ngx_http_profile_inbox_workers(void);
ngx_pid_t ngx_http_profile_inbox_pid(ngx_uint_t worker);

/* whether it has an inbox; a worker always reaches itself */
ngx_uint_t ngx_http_profile_inbox_reaches(ngx_uint_t worker);

/* what it tells of itself, see ngx_http_profile_state.h */
ngx_http_profile_state_t *ngx_http_profile_inbox_state(ngx_uint_t worker);

/* of all workers; NULL: there is no memory for them */
ngx_http_profile_ticket_t *ngx_http_profile_inbox_tickets(void);

/* ngx_http_profile_ticket.c */

/*
 * A counter that all workers take from: its number, or NGX_BUSY.  It is the
 * process's until it is returned.
 */
ngx_int_t ngx_http_profile_ticket_get(ngx_uint_t n);
void ngx_http_profile_ticket_return(ngx_uint_t ticket);

/* whether there was one left */
ngx_uint_t ngx_http_profile_ticket_take(ngx_uint_t ticket);
ngx_uint_t ngx_http_profile_ticket_left(ngx_uint_t ticket);

/*
 * Sends a message, with a descriptor unless fd is -1.  Does not wait.  What a
 * worker sends to itself is done when the call returns.
 * NGX_ERROR: the worker cannot take it now.
 */
ngx_int_t ngx_http_profile_inbox_send(ngx_uint_t worker,
    ngx_http_profile_message_t *m, int fd);


/* ngx_http_profile_share.c: a worker's part in a capture */

/* takes the descriptor over */
void ngx_http_profile_share_order(ngx_http_profile_message_t *m, int fd);
void ngx_http_profile_share_cancel(ngx_http_profile_message_t *m);

/* the worker exits: what it has goes to those who asked */
void ngx_http_profile_share_exit(void);


/* ngx_http_profile_scope.c: of which location, and trace, the time is */

/* captures that want to know */
extern ngx_uint_t  ngx_http_profile_nlocated;

ngx_int_t ngx_http_profile_scope_begin(ngx_uint_t traced);
void ngx_http_profile_scope_end(ngx_uint_t traced);


/* ngx_http_profile_asker.c: the asker's part */

/*
 * Begins a capture that answers the call.  NGX_DONE, as a handler of the
 * console does, or an answer.
 */
ngx_int_t ngx_http_profile_asker_begin(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);

void ngx_http_profile_asker_report(ngx_http_profile_message_t *m);


/* ngx_http_profile_merge.c: what is done in a thread */

void ngx_http_profile_asker_merge(void *data);
ngx_int_t ngx_http_profile_asker_write(prof_profile_t *p, int fd);


/* ngx_http_profile_asker_answer.c: as a handler of the console does */

ngx_int_t ngx_http_profile_asker_answer(ngx_http_profile_asker_t *s);


/* ngx_http_profile_stored.c: a capture that is stored */

ngx_int_t ngx_http_profile_asker_keep_init(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);
ngx_int_t ngx_http_profile_asker_keep(ngx_http_profile_asker_t *s,
    prof_profile_t *p);
ngx_uint_t ngx_http_profile_asker_is_kept(ngx_http_profile_asker_t *s);
ngx_int_t ngx_http_profile_asker_kept(ngx_http_profile_asker_t *s);

/* of an answer that is the profile, or its page: where it is, or why not */
ngx_int_t ngx_http_profile_asker_keep_headers(ngx_http_profile_asker_t *s);


/* ngx_http_profile_times.c: requests of an endpoint; in the thread */

void ngx_http_profile_asker_take_times(ngx_http_profile_asker_t *s,
    prof_profile_t *p);
void ngx_http_profile_asker_spread(ngx_http_profile_asker_t *s,
    prof_profile_t *p);


/* ngx_http_profile_wanted.c: what the arguments of a call ask for */

/*
 * Returns NGX_DECLINED, or the result of an answer that says what is wrong.
 * wanted is zero, but for the mode and the memory.
 */
ngx_int_t ngx_http_profile_wanted(ngx_http_profile_call_t *call,
    ngx_http_profile_wanted_t *wanted);


/* ngx_http_profile_asker_route.c */

/* the room's table of routes for the console */
extern const ngx_http_profile_route_t  ngx_http_profile_workers_routes[];

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ASKER_H_INCLUDED_ */
