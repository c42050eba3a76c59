
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Triggered requests.
 *
 * A request with a trigger gets a context.  The context is "live" from the
 * trigger until the reply is sent or the request is freed.  The context is
 * "tracked" while its capture may run.  If the location does not permit the
 * client, the context is dropped and the trigger is put back, so the client
 * sees no effect of its trigger.
 *
 * Memory: a context is in the request's pool.  The pool's cleanup drops it.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_REQUEST_H_INCLUDED_
#define _NGX_HTTP_PROFILE_REQUEST_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "prof.h"
#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_log_limit.h"
#include "core/ngx_http_profile_param.h"
#include "loop/ngx_http_profile_loop.h"
#include "request/ngx_http_profile_object.h"


/*
 * A bit of ngx_connection_t.buffered: "the profile is not sent yet".  nginx
 * does not free a request whose connection has this bit.  nginx's own modules
 * use the bits 0x01 to 0x20.
 */

#define NGX_HTTP_PROFILE_BUFFERED  0x80


/*
 * What a trigger requests.  Texts that do not apply are empty.  Only clients
 * that the location permits get the text of the error.
 */

typedef struct {
    ngx_str_t                  arg;          /* name of the argument */
    ngx_str_t                  header;       /* name of the header */
    ngx_str_t                  order;        /* the id of the profile, if
                                                an order is the trigger */
    ngx_str_t                  error;        /* what is wrong in the trigger */
    ngx_http_profile_params_t  params;
    unsigned                   record:1;     /* not "flamegraph" */
    unsigned                   help:1;       /* the error is the help */
} ngx_http_profile_trigger_t;


/* the reply: an error text, or the encoded profile */

typedef struct {
    ngx_uint_t                 status;
    ngx_str_t                  content_type;
    ngx_str_t                  file;         /* a download of this name */
    ngx_str_t                  csp;          /* content security policy */
    ngx_str_t                  vary;         /* value of the header "Vary" */
    ngx_str_t                  encoding;     /* "gzip", or empty */
    ngx_str_t                  dropped;      /* why no profile is stored */
    ngx_str_t                  body;
    unsigned                   stored:1;
    unsigned                   ready:1;
} ngx_http_profile_reply_t;


typedef enum {
    NGX_HTTP_PROFILE_UNDECIDED = 0,
    NGX_HTTP_PROFILE_REFUSED,
    NGX_HTTP_PROFILE_ADMITTED
} ngx_http_profile_verdict_e;


typedef struct ngx_http_profile_render_s  ngx_http_profile_render_t;


struct ngx_http_profile_ctx_s {
    ngx_queue_t                   queue;     /* among live contexts */
    ngx_http_request_t           *request;   /* main request */
    ngx_http_profile_trigger_t    trigger;
    ngx_http_profile_verdict_e    verdict;
    ngx_http_profile_loc_conf_t  *conf;      /* of the last verdict */
    u_char                        id[NGX_HTTP_PROFILE_ID_LEN];

    /* saved before the trigger was taken out; used to put it back */

    ngx_str_t                     request_line;
    ngx_str_t                     args;
    ngx_str_t                     unparsed_uri;
    ngx_str_t                     stripped_args;
    ngx_str_t                     stripped_uri;
    ngx_list_t                    headers;
    ngx_list_t                    stripped_list;
    ngx_list_part_t              *header_runs;    /* the new parts of the list,
                                                     and then a copy of them */
    ngx_uint_t                    nheader_runs;

    /* the capture and its profile */

    ngx_http_profile_track_t     *track;
    prof_profile_t               *profile;   /* of the capture */
    ngx_http_profile_object_t    *object;    /* of the mode "object" */
    ngx_event_t                   timer;
    ngx_uint_t                    frequency; /* as requested */

    ngx_uint_t                    endpoints; /* bits: captures of endpoints */
    void                        (*take)(ngx_http_profile_ctx_t *ctx);
                                             /* takes the profile when the
                                                request ends; NULL: the profile
                                                is stored */

    /* the state of the response */

    ngx_uint_t                    status;
    ngx_http_profile_reply_t      reply;
    ngx_http_profile_render_t    *render;

    unsigned                      tracked:1;
    unsigned                      slot:1;
    unsigned                      unfolded:1;
    unsigned                      fated:1;    /* its fate will be set */
    unsigned                      others:1;   /* asks for a capture of other
                                                 requests, in the location where
                                                 this request ends */
    unsigned                      decided:1;  /* sink and record are final */
    unsigned                      sink:1;     /* replaced by the profile */
    unsigned                      record:1;   /* recorded */
    unsigned                      crowded:1;  /* no slot for a recording */
    unsigned                      timedout:1;
    unsigned                      stripped_headers:1;
};


/*
 * What rooms above do for captured requests.  Each pointer belongs to one room,
 * which sets it before the first request.
 */

typedef struct {

    /*
     * A request that asks for a capture of other requests has ended in a
     * location that admits it, and nothing of its response was sent.  Drops
     * the context.  Returns the result of a content handler.
     */
    ngx_int_t  (*others)(ngx_http_profile_ctx_t *ctx);

    /*
     * Takes orders, which are triggers in cookies, out of the request.  If an
     * order fits, and there is no other trigger, sets t->order and the
     * parameters of the order.
     */
    void       (*find_order)(ngx_http_request_t *r,
                   ngx_http_profile_trigger_t *t);

    /*
     * The response of a request with an order is sent.  Returns NGX_OK, or
     * NGX_ERROR if memory is short.
     */
    ngx_int_t  (*order_used)(ngx_http_request_t *r);
} ngx_http_profile_request_observers_t;


PROF_HIDDEN_BEGIN

extern ngx_http_profile_request_observers_t  ngx_http_profile_request_observers;

/*
 * ngx_http_profile_request_conf.c
 *
 * Adds the names of all trigger headers to nginx's hash of request headers.
 * nginx calls ngx_http_profile_header() for each header line with such a name.
 */
ngx_int_t ngx_http_profile_init_headers(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);

/*
 * Adds the names of "other" to *query, so that a search finds queries with the
 * names of both.
 */
void ngx_http_profile_add_query(ngx_http_profile_query_t *query,
    ngx_http_profile_query_t *other);

/* ngx_http_profile_trigger.c: the trigger in a request */

/* number of requests of this worker with a trigger header */
extern ngx_uint_t  ngx_http_profile_nheaders;

/* nginx's handler of header lines that may be triggers */
ngx_int_t ngx_http_profile_header(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_uint_t offset);

/* returns the index of the byte of the name that is rarest in queries */
ngx_uint_t ngx_http_profile_arg_rare(ngx_str_t *name);

/*
 * Returns NGX_OK if the query has the argument that the configuration names,
 * or NGX_DECLINED.  The search for the rarest byte of the name begins at p;
 * the caller knows that no byte of the query before p has this value.
 */
ngx_int_t ngx_http_profile_find_arg(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf, u_char *p);

/* ngx_http_profile_trigger.c: parameters of an admitted trigger */

/* returns the prof_mode_e of the profile */
ngx_uint_t ngx_http_profile_mode(ngx_http_profile_ctx_t *ctx);

/*
 * Returns the format of the reply, and sets *negotiated to 1 if the client's
 * headers may choose it.
 */
const prof_encoder_t *ngx_http_profile_format(ngx_http_profile_ctx_t *ctx,
    ngx_uint_t *negotiated);

/* ngx_http_profile_access.c: which clients may profile */

/* the directive profile_allow, and its default list */
char *ngx_http_profile_allow(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_array_t *ngx_http_profile_allow_default(ngx_conf_t *cf);

/* collects the hosts that the default list admits, in postconfiguration */
ngx_int_t ngx_http_profile_allow_hosts(ngx_conf_t *cf);

/*
 * Returns NGX_OK if the location permits the client's address, or
 * NGX_DECLINED. profile_if is not evaluated.
 */
ngx_int_t ngx_http_profile_access_address(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf);

/*
 * Returns NGX_OK if the location permits the request, or NGX_DECLINED.  A
 * refusal is not logged.
 */
ngx_int_t ngx_http_profile_permits(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf);

/*
 * Checks requests for the console and for metrics, in addition to the
 * location's own access rules.  Returns NGX_OK if profile_allow contains the
 * client's address, or NGX_DECLINED.  Returns NGX_ABORT if only the default
 * list applies, and it does not admit the request's host.  A refusal is logged;
 * the message begins with "pages", which is "the console is" or "metrics are".
 */
ngx_int_t ngx_http_profile_permits_client(ngx_http_request_t *r,
    const char *pages, ngx_http_profile_log_limit_t *line);

/* ngx_http_profile_request.c: the life of a context */

extern ngx_queue_t  ngx_http_profile_live;
extern ngx_uint_t   ngx_http_profile_nlive;

/* observes the event loop; called when a process begins */
void ngx_http_profile_request_open(void);

/*
 * Begins a request that may have a trigger, in the post-read phase.  Returns
 * NGX_DECLINED if the request is not captured.  Returns NGX_DONE if all
 * possible phases have run; the request may be freed.
 */
ngx_int_t ngx_http_profile_begin(ngx_http_request_t *r);

/* returns a live context without a capture, or NULL (logged) */
ngx_http_profile_ctx_t *ngx_http_profile_create(ngx_http_request_t *r);

/* starts the capture; on NGX_ERROR the caller drops the context */
ngx_int_t ngx_http_profile_start(ngx_http_profile_ctx_t *ctx);

/* returns the context of the main request of r, or NULL */
ngx_http_profile_ctx_t *ngx_http_profile_find(ngx_http_request_t *r);

/* ends the capture, and makes ctx->profile unless the reply is an error */
void ngx_http_profile_end(ngx_http_profile_ctx_t *ctx);

/*
 * Ends the stages of the request.  The context can be found until it is
 * dropped.
 */
void ngx_http_profile_end_tracking(ngx_http_profile_ctx_t *ctx);

/*
 * Frees all that the context holds, except for memory of the request's pool.
 * A second call has no effect.
 */
void ngx_http_profile_drop(ngx_http_profile_ctx_t *ctx);

/* drops all contexts when the process ends */
void ngx_http_profile_request_exit(void);

/* captures of this worker that count for profile_max_captures */
extern ngx_uint_t  ngx_http_profile_slots;

/*
 * Decides for the current location of the request.  The decision may change in
 * another location.  Returns NGX_OK if the request is admitted; ctx->reply is
 * set if the answer is an error.  Returns NGX_DECLINED if the request is
 * refused.
 */
ngx_int_t ngx_http_profile_admit(ngx_http_profile_ctx_t *ctx);

/* sets an error as the reply; the text is not copied */
void ngx_http_profile_set_error(ngx_http_profile_ctx_t *ctx,
    ngx_uint_t status, ngx_str_t *text);

/* ngx_http_profile_reply.c: headers with the id of a profile, and its page */

ngx_int_t ngx_http_profile_add_id(ngx_http_request_t *r, u_char *id);
ngx_int_t ngx_http_profile_add_link(ngx_http_request_t *r, u_char *id);

/*
 * ngx_http_profile_request.c: starts a job that stores ctx->profile; a failure
 * is counted and logged
 */
ngx_int_t ngx_http_profile_record(ngx_http_profile_ctx_t *ctx);

/*
 * ngx_http_profile_send.c: sends a response past all other filters
 *
 * The body must live as long as the request.  Returns what a content handler
 * returns; NGX_DONE: the rest of a long body is sent later.
 */
ngx_int_t ngx_http_profile_output(ngx_http_request_t *r, ngx_str_t *body);

/* registers the filters */
ngx_int_t ngx_http_profile_filter_init(ngx_conf_t *cf);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_REQUEST_H_INCLUDED_ */
