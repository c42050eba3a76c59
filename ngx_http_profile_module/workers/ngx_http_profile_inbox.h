
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Declarations that the files of this room share: messages between workers,
 * and the counters that all workers use.
 *
 * A worker that runs one event for long does not read its inbox.  A thread of
 * the worker, the attendant, waits for messages to a second socket, the bell.
 * The asker rings the bell of a worker that has not begun its share.
 *
 * Orders and reports are datagrams.  Each worker has an inbox, a socket that
 * the master made before it started the workers.  A message wakes the worker,
 * so no timer has to look for messages.  A worker that dies leaves no lock and
 * no damaged structure, and the kernel frees its files.  A worker only reaches
 * workers of the same configuration.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_INBOX_H_INCLUDED_
#define _NGX_HTTP_PROFILE_INBOX_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "prof.h"
#include "workers/ngx_http_profile_workers.h"


/* the maximum number of captures of endpoints, in all workers */
#define NGX_HTTP_PROFILE_TICKETS      64

#define NGX_HTTP_PROFILE_FILTER_LEN  256


/*
 * Which requests a capture takes.  Texts are empty or null-terminated.  Numbers
 * are those of ngx_http_profile_loc_conf_t, or 0: names do not identify a
 * server or a location, since several may have the same name or none.
 */

typedef struct {
    char              uri[NGX_HTTP_PROFILE_FILTER_LEN];       /* prefix */
    char              server[NGX_HTTP_PROFILE_FILTER_LEN];    /* name */
    char              location[NGX_HTTP_PROFILE_FILTER_LEN];  /* name */
    ngx_uint_t        server_number;
    ngx_uint_t        location_number;
    uint64_t          ticket;        /* of ngx_http_profile_ticket_get() */
    uint32_t          requests;      /* 0: no limit */
    uint32_t          enabled;       /* 1: the capture is of an endpoint */
    uint32_t          spans_given;   /* 1: "spans" replaces the directive
                                        profile_spans */
    uint32_t          spans;
} ngx_http_profile_filter_t;


typedef enum {
    NGX_HTTP_PROFILE_ORDER = 0,      /* to workers: take part */
    NGX_HTTP_PROFILE_CANCEL,
    NGX_HTTP_PROFILE_WRITING,        /* to the asker: captured, not written */
    NGX_HTTP_PROFILE_REPORT,         /* to the asker: the share has ended */
    NGX_HTTP_PROFILE_STATE,          /* to workers: write your state */
    NGX_HTTP_PROFILE_BEGUN,          /* to the asker: the share has begun */
    NGX_HTTP_PROFILE_HELD            /* to the asker: the share needs the event
                                        loop, which runs one event */
} ngx_http_profile_message_e;


typedef enum {
    NGX_HTTP_PROFILE_DONE = 0,       /* the file has the archive */
    NGX_HTTP_PROFILE_EARLY,          /* the file has the archive of a shorter
                                        time, because the worker exits */
    NGX_HTTP_PROFILE_BUSY,           /* too many captures at once */
    NGX_HTTP_PROFILE_STUCK,          /* the file has the archive of the main
                                        thread, which ran one event when the
                                        capture began */
    NGX_HTTP_PROFILE_LATE,           /* the order came after its end */
    NGX_HTTP_PROFILE_FAILED          /* no memory; logged */
} ngx_http_profile_report_e;


/*
 * Only orders contain the members after "end".  Other messages are shorter, so
 * that a socket holds more of them.
 */

typedef struct {
    uint32_t                    size;        /* length of the message */
    uint32_t                    type;        /* ngx_http_profile_message_e */
    uint32_t                    report;      /* ngx_http_profile_report_e */
    uint32_t                    worker;      /* the sender's number */
    ngx_pid_t                   pid;         /* the sender's process id */
    uint64_t                    id;          /* chosen by the asker */
    uint64_t                    end;         /* in the time of prof_now() */
    uint64_t                    interval;    /* for sampled allocations */
    uint64_t                    traces;      /* maximum number of traces */
    prof_capture_conf_t         conf;
    ngx_http_profile_filter_t   filter;
} ngx_http_profile_message_t;

#define ngx_http_profile_message_size(type)                                   \
    ((type) == NGX_HTTP_PROFILE_ORDER                                         \
     ? sizeof(ngx_http_profile_message_t)                                     \
     : offsetof(ngx_http_profile_message_t, interval))


/*
 * A counter of requests for all workers, and the process that owns it.  If the
 * owner is killed, another process may own the counter while workers still have
 * shares of the killed one.  So the counter has a generation, which each owner
 * changes, and a share uses only the counter of its own generation.
 */

typedef struct {
    ngx_atomic_t                owner;       /* process; 0: free */
    ngx_atomic_t                left;        /* generation << 32 | requests */
    ngx_atomic_t                wanted;      /* requests; 0: no limit */
    uint64_t                    end;         /* in the time of prof_now() */
    char                        title[NGX_HTTP_PROFILE_FILTER_LEN];
} ngx_http_profile_ticket_t;


/* the functions that get the messages; order() takes over the descriptor */

typedef struct {
    void                      (*order)(ngx_http_profile_message_t *m, int fd);
    void                      (*cancel)(ngx_http_profile_message_t *m);
    void                      (*report)(ngx_http_profile_message_t *m);
    void                      (*state)(void);
} ngx_http_profile_receivers_t;


PROF_HIDDEN_BEGIN

/* ngx_http_profile_inbox.c; more of its functions are in workers.h */

/* registers the functions that get the messages */
void ngx_http_profile_inbox_receive(ngx_http_profile_receivers_t *receivers);

/* returns 1 if the worker has an inbox; a worker always reaches itself */
ngx_uint_t ngx_http_profile_inbox_reaches(ngx_uint_t worker);

/* returns a worker's state, which is in shared memory */
ngx_http_profile_state_t *ngx_http_profile_inbox_state(ngx_uint_t worker);

/* returns the counters of all workers, or NULL without shared memory */
ngx_http_profile_ticket_t *ngx_http_profile_inbox_tickets(void);

/*
 * Sends a message, with a descriptor unless fd is -1.  Does not wait.  A
 * message of a worker to itself is processed before the call returns.  Returns
 * NGX_ERROR if the worker cannot receive a message now.
 */
ngx_int_t ngx_http_profile_inbox_send(ngx_uint_t worker,
    ngx_http_profile_message_t *m, int fd);

/*
 * The same for the bell of the worker; does not log.  Returns NGX_ERROR if the
 * worker has no bell.
 */
ngx_int_t ngx_http_profile_inbox_ring(ngx_uint_t worker,
    ngx_http_profile_message_t *m, int fd);

/* returns the descriptor at which this worker hears its bell, or -1 */
int ngx_http_profile_inbox_bell(void);

/*
 * Reads a message.  Sets *fd to its descriptor, or to -1.  Returns NGX_DECLINED
 * if there is no message.  Context: any thread.
 */
ngx_int_t ngx_http_profile_inbox_read(int in, ngx_http_profile_message_t *m,
    int *fd);

/* ngx_http_profile_attendant.c */

/*
 * Returns 1 if the caller is the first to call with this order of the asker.
 * So either the event loop or the attendant captures.  Context: any thread.
 */
ngx_uint_t ngx_http_profile_attendant_claim(ngx_uint_t asker, uint64_t id);

/* ngx_http_profile_share.c */

/* writes the archive to the file; context: any thread */
ngx_int_t ngx_http_profile_share_archive(prof_profile_t *p, int fd);

/* ngx_http_profile_ticket.c */

/*
 * Sets *ticket to a counter that all workers share, of the requests that a
 * capture still takes; 0: no limit.  The process owns the counter until it is
 * returned.  Returns NGX_OK or NGX_BUSY.
 */
ngx_int_t ngx_http_profile_ticket_get(ngx_uint_t requests, const char *title,
    uint64_t end, uint64_t *ticket);
void ngx_http_profile_ticket_return(uint64_t ticket);

/* takes one request from the counter; returns 1 if one was left */
ngx_uint_t ngx_http_profile_ticket_take(uint64_t ticket);

/* returns 0 as well if the counter has another owner now */
ngx_uint_t ngx_http_profile_ticket_left(uint64_t ticket);

/*
 * Copies counter i, if it is in use; in the copy, "left" is the number of
 * requests that were taken.  Returns NGX_OK or NGX_DECLINED.
 */
ngx_int_t ngx_http_profile_ticket_read(ngx_uint_t i,
    ngx_http_profile_ticket_t *ticket);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_INBOX_H_INCLUDED_ */
