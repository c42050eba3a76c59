
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the files of the module share.
 *
 * A request that carries a trigger gets a context.  The context is "live" from
 * the trigger until the reply is sent or the request is freed, and "tracked"
 * while the worker's events are watched for it.  While at least one context is
 * tracked the worker is "armed": a handful of function pointers are replaced
 * (ngx_http_profile_arm.c).  When the last one ends, all are put back.
 */


#ifndef _NGX_HTTP_PROFILE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "prof.h"
#include "loop/ngx_http_profile_account.h"
#include "core/ngx_http_profile_conf.h"
#include "request/ngx_http_profile_object.h"


/*
 * A bit of ngx_connection_t.buffered that says "the profile is not sent yet":
 * nginx keeps a request that has it set.  Its own modules use 0x01 to 0x20.
 */

#define NGX_HTTP_PROFILE_BUFFERED      0x80

#define NGX_HTTP_PROFILE_ID_LEN        32


/*
 * What a trigger asks for.  A value that was not given is empty; error is
 * set if one is wrong, and is shown to permitted clients only.
 */

typedef struct {
    ngx_str_t                  arg;          /* name found in the query */
    ngx_str_t                  header;       /* name found in the headers */
    ngx_str_t                  order;        /* of the bar, which fits */
    ngx_str_t                  error;
    ngx_uint_t                 mode;
    ngx_uint_t                 frequency;
    ngx_msec_t                 msec;         /* of an endpoint's capture, or */
    ngx_uint_t                 requests;     /* so many; 0: not given */
    const prof_encoder_t      *format;
    unsigned                   record:1;     /* not "flamegraph" */
    unsigned                   mode_given:1;
    unsigned                   frequency_given:1;
    unsigned                   spans:1;
    unsigned                   spans_given:1;
} ngx_http_profile_trigger_t;


/* the reply: an error text, or the encoded profile */

typedef struct {
    ngx_uint_t                 status;
    ngx_str_t                  content_type;
    ngx_str_t                  extension;    /* empty: not a download */
    ngx_str_t                  csp;          /* its policy, or empty */
    ngx_str_t                  vary;         /* what it was chosen by */
    ngx_str_t                  encoding;     /* "gzip", or empty */
    ngx_str_t                  dropped;      /* why it is not in the store */
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
    ngx_queue_t                   queue;     /* in the list of live ones */
    ngx_http_request_t           *request;   /* the main one */
    ngx_http_profile_trigger_t    trigger;
    ngx_http_profile_verdict_e    verdict;
    ngx_http_profile_loc_conf_t  *conf;      /* that the verdict is from */
    u_char                        id[NGX_HTTP_PROFILE_ID_LEN];

    /* what the trigger was taken out of, to be put back on refusal */

    ngx_str_t                     request_line;
    ngx_str_t                     args;
    ngx_str_t                     unparsed_uri;
    ngx_str_t                     stripped_args;
    ngx_str_t                     stripped_uri;
    ngx_list_t                    headers;
    ngx_list_t                    stripped_list;
    ngx_list_part_t              *header_runs;    /* twice: as it was made */
    ngx_uint_t                    nheader_runs;

    /* tracking */

    ngx_http_profile_track_t     *track;     /* while tracked is set */
    prof_capture_t               *capture;
    prof_profile_t               *profile;   /* the capture's, once ended */
    ngx_http_profile_object_t    *object;    /* of the mode "object" */
    ngx_event_t                   timer;
    ngx_uint_t                    frequency; /* asked; in force once it is
                                                unfolded */

    ngx_uint_t                    endpoints; /* bits: those that it is for */

    /* replacing the response */

    ngx_uint_t                    status;
    ngx_http_profile_reply_t      reply;
    ngx_http_profile_render_t    *render;

    unsigned                      tracked:1;
    unsigned                      slot:1;
    unsigned                      unfolded:1;
    unsigned                      decided:1;  /* by the response's header:
                                                 one of the next two */
    unsigned                      sink:1;     /* it is replaced */
    unsigned                      record:1;   /* it is recorded */
    unsigned                      crowded:1;  /* it would have been */
    unsigned                      endpoint:1; /* was for endpoints only */
    unsigned                      timedout:1;
    unsigned                      spans:1;
    unsigned                      stripped_headers:1;
};


/* an empty name is no name */

#define ngx_http_profile_str_eq(s, p, n)                                      \
    ((n) && (s)->len == (size_t) (n) && ngx_memcmp((s)->data, p, n) == 0)

#define ngx_http_profile_is_header(h, name)                                   \
    ((h)->key.len == (name)->len                                              \
     && ngx_strncasecmp((h)->key.data, (name)->data, (name)->len) == 0)


/* ngx_http_profile_module.c */

extern ngx_module_t  ngx_http_profile_module;

PROF_HIDDEN_BEGIN

/* ngx_http_profile_process.c: requests without a trigger too, or not */

void ngx_http_profile_look_at_all(ngx_uint_t on);

/* ngx_http_profile_phase.c: where requests are looked at while armed */

ngx_int_t ngx_http_profile_init_phases(void);
void ngx_http_profile_arm_phases(void);
void ngx_http_profile_disarm_phases(void);

ngx_uint_t ngx_http_profile_begin_span(ngx_http_profile_ctx_t *ctx,
    ngx_str_t *name);
void ngx_http_profile_end_span(ngx_http_profile_ctx_t *ctx,
    prof_capture_t *c);

/*
 * ngx_http_profile_spans.c: spans of what is neither a phase handler nor a
 * filter.  Log handlers are replaced while armed.
 */

void ngx_http_profile_arm_log(void);
void ngx_http_profile_disarm_log(void);
ngx_uint_t ngx_http_profile_begin_part(ngx_http_profile_ctx_t *ctx,
    ngx_http_request_t *r);

/*
 * ngx_http_profile_upstream.c: callbacks of upstreams, which are replaced while
 * their request is captured
 */

void ngx_http_profile_wrap_upstreams(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_unwrap_upstreams(ngx_http_profile_ctx_t *ctx);

/* ngx_http_profile_module_names.c: whose a phase handler is */

ngx_int_t ngx_http_profile_watch_modules(ngx_conf_t *cf);
char *ngx_http_profile_module_name(ngx_http_profile_main_conf_t *pmcf,
    ngx_http_handler_pt handler);

/* ngx_http_profile_trigger.c */

extern ngx_uint_t  ngx_http_profile_nmarks;

ngx_int_t ngx_http_profile_header(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_uint_t offset);
ngx_int_t ngx_http_profile_find_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
ngx_int_t ngx_http_profile_parse_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
u_char *ngx_http_profile_arg_shift(ngx_pool_t *pool, ngx_str_t *name);
ngx_int_t ngx_http_profile_find_arg(ngx_str_t *args, ngx_str_t *name,
    u_char *shift);
ngx_table_elt_t *ngx_http_profile_find_header(ngx_http_request_t *r,
    ngx_str_t *name, ngx_uint_t *n);

/* ngx_http_profile_param.c */

ngx_int_t ngx_http_profile_set_arg(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value,
    ngx_uint_t *seen);
ngx_int_t ngx_http_profile_set_short(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, ngx_str_t *value,
    ngx_uint_t *seen);
ngx_int_t ngx_http_profile_is_parameter(ngx_http_profile_trigger_t *t,
    u_char *p, u_char *last);
ngx_int_t ngx_http_profile_error(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_str_t *name, const char *text,
    ngx_str_t *takes);
ngx_int_t ngx_http_profile_parse_mode(ngx_str_t *value, ngx_uint_t *mode);
ngx_str_t *ngx_http_profile_mode_name(ngx_uint_t mode);
ngx_int_t ngx_http_profile_parse_frequency(ngx_str_t *value,
    ngx_uint_t *frequency);

/* ngx_http_profile_strip.c */

ngx_int_t ngx_http_profile_strip(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_unstrip(ngx_http_profile_ctx_t *ctx);

/* ngx_http_profile_access.c */

char *ngx_http_profile_allow(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_array_t *ngx_http_profile_allow_default(ngx_conf_t *cf);
ngx_int_t ngx_http_profile_access_any(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);
ngx_int_t ngx_http_profile_access_address(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf);
ngx_int_t ngx_http_profile_access(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_http_profile_loc_conf_t *plcf);
ngx_int_t ngx_http_profile_permits(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf);

/* ngx_http_profile_client.c: whether a list of profile_allow admits it */

ngx_int_t ngx_http_profile_client(ngx_http_request_t *r, ngx_array_t *allow);

/* ngx_http_profile_admit.c */

extern ngx_uint_t  ngx_http_profile_slots;

ngx_int_t ngx_http_profile_locate(ngx_http_profile_ctx_t *ctx);
ngx_int_t ngx_http_profile_admit(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_set_error(ngx_http_profile_ctx_t *ctx,
    ngx_uint_t status, ngx_str_t *text);

/* ngx_http_profile_capture.c */

ngx_int_t ngx_http_profile_begin(ngx_http_request_t *r);
ngx_int_t ngx_http_profile_start(ngx_http_profile_ctx_t *ctx);
ngx_http_profile_ctx_t *ngx_http_profile_create(ngx_http_request_t *r);
void ngx_http_profile_unfold(ngx_http_profile_ctx_t *ctx);
ngx_http_profile_ctx_t *ngx_http_profile_find(ngx_http_request_t *r);
void ngx_http_profile_check_complete(ngx_http_profile_ctx_t *ctx);
ngx_uint_t ngx_http_profile_check_all(void);
void ngx_http_profile_end(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_drop(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_capture_exit(void);

extern ngx_queue_t  ngx_http_profile_live;
extern ngx_uint_t   ngx_http_profile_nlive;

/* ngx_http_profile_cut.c */

void ngx_http_profile_cut(ngx_http_profile_ctx_t *ctx);

/* ngx_http_profile_facts.c */

void ngx_http_profile_add_facts(ngx_http_profile_ctx_t *ctx);

/* ngx_http_profile_negotiate.c */

const prof_encoder_t *ngx_http_profile_negotiate_format(
    ngx_http_profile_ctx_t *ctx);
ngx_uint_t ngx_http_profile_negotiate_gzip(ngx_http_profile_ctx_t *ctx);

/* ngx_http_profile_filter.c, ngx_http_profile_reply.c */

ngx_int_t ngx_http_profile_filter_init(ngx_conf_t *cf);
ngx_int_t ngx_http_profile_send_error(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_writer(ngx_http_request_t *r);
ngx_int_t ngx_http_profile_reply_header(ngx_http_profile_ctx_t *ctx);
ngx_int_t ngx_http_profile_add_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value);
ngx_int_t ngx_http_profile_add_id(ngx_http_request_t *r, u_char *id);
ngx_int_t ngx_http_profile_add_link(ngx_http_request_t *r, u_char *id);

/* ngx_http_profile_recorded.c: a profile that is queued to be made */

ngx_int_t ngx_http_profile_record_header(ngx_http_profile_ctx_t *ctx);
ngx_int_t ngx_http_profile_record(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_record_room(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_record_capture(ngx_http_profile_ctx_t *ctx);
void ngx_http_profile_record_cleanup(ngx_http_profile_ctx_t *ctx);
u_char *ngx_http_profile_safe_name(u_char *p, u_char *last, ngx_str_t *part);

/* ngx_http_profile_render.c */

ngx_int_t ngx_http_profile_render(ngx_http_profile_ctx_t *ctx,
    ngx_uint_t reply);
void ngx_http_profile_render_abandon(ngx_http_profile_ctx_t *ctx);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_H_INCLUDED_ */
