
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The Performance Bar: a script in the pages of clients that may profile.  The
 * script asks the console for facts about the page's requests.
 *
 * The bar is a module of its own, because its place among the filters differs
 * from the place of the filter that replaces responses: see "config".
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_BAR_H_INCLUDED_
#define _NGX_HTTP_PROFILE_BAR_H_INCLUDED_


#include "call/ngx_http_profile_call.h"
#include "request/ngx_http_profile_request.h"


typedef struct {
    ngx_uint_t                 ndirectives;   /* directives "profile_bar on" */
    ngx_uint_t                 nlocations;    /* locations with a bar */
    ngx_shm_zone_t            *zone;          /* the facts of requests */
    ngx_str_t                  script;        /* the script and its styles */
    ngx_str_t                  modes;         /* "wall cpu" */
    ngx_str_t                  path;          /* "bar.js?v=01234567" */
} ngx_http_profile_bar_main_conf_t;


typedef struct {
    ngx_flag_t                 enable;        /* profile_bar */
    ngx_http_complex_value_t  *nonce;
    ngx_str_t                 *console;       /* URL of the console; NULL if
                                                 the location has no bar */
} ngx_http_profile_bar_loc_conf_t;


/*
 * What the bar does for a request: nothing, insert its snippet in a page, or
 * note the facts of a request that a script of a page has sent.
 */

typedef enum {
    NGX_HTTP_PROFILE_BAR_NOTHING = 0,
    NGX_HTTP_PROFILE_BAR_PAGE,
    NGX_HTTP_PROFILE_BAR_DATA
} ngx_http_profile_bar_task_e;


/* a request whose facts are noted; allocated from the main request's pool */

typedef struct {
    u_char                     id[NGX_HTTP_PROFILE_ID_LEN];
    ngx_str_t                  snippet;       /* for the page, or empty */
    prof_html_t                html;
    u_char                     held[PROF_HTML_HELD];
    size_t                     nheld;
    ngx_chain_t               *free;
    ngx_chain_t               *busy;

    /* a page that came compressed */

    prof_inflate_t            *inflate;       /* NULL: it did not */
    ngx_chain_t               *in;            /* not decompressed yet */
    ngx_chain_t               *plain_free;
    ngx_chain_t               *plain_busy;
    ngx_uint_t                 nplain;
    unsigned                   inserted:1;
} ngx_http_profile_bar_ctx_t;


#define NGX_HTTP_PROFILE_BAR_UPSTREAMS  4


/* times are in ms, -1 if unknown; longer texts are cut */

typedef struct {
    ngx_int_t                  status;
    ngx_int_t                  connect;       /* since the attempt began */
    ngx_int_t                  header;
    ngx_int_t                  response;
    off_t                      received;
    u_char                     peer[64];
} ngx_http_profile_bar_upstream_t;


typedef struct {
    u_char                           id[NGX_HTTP_PROFILE_ID_LEN];
    uint64_t                         start;     /* ms since the Epoch */
    ngx_uint_t                       total;
    ngx_uint_t                       status;
    ngx_pid_t                        worker;
    off_t                            sent;
    off_t                            received;
    ngx_http_profile_times_t         times;     /* valid if accounted */
    ngx_uint_t                       accounted;
    ngx_uint_t                       connection;
    ngx_uint_t                       connection_requests;
    ngx_uint_t                       nupstreams;
    ngx_http_profile_bar_upstream_t  upstreams[NGX_HTTP_PROFILE_BAR_UPSTREAMS];
    u_char                           method[16];
    u_char                           uri[256];
    u_char                           protocol[16];
    u_char                           cache[16];
    u_char                           tls[16];
    u_char                           cipher[64];
    u_char                           tls_reused[4];
} ngx_http_profile_bar_facts_t;


/* the time for which an order is valid, s */
#define NGX_HTTP_PROFILE_ORDER_SECONDS  120


/* in shared memory, used without a mutex */

typedef struct {
    ngx_atomic_t                  until;     /* seconds of ngx_time(): orders
                                                have expired; 0: no orders */
    u_char                        key[NGX_HTTP_PROFILE_ID_LEN];  /* random hex
                                                digits; zeros: no orders */
} ngx_http_profile_orders_t;


typedef struct {
    ngx_str_t                     method;
    ngx_str_t                     path;      /* as browsers send it */
    ngx_uint_t                    mode;      /* prof_mode_e */
    u_char                        id[NGX_HTTP_PROFILE_ID_LEN];  /* of the
                                                profile to be */
} ngx_http_profile_order_t;


/* in shared memory, protected by the mutex of the zone's slab pool */

typedef struct {
    ngx_http_profile_orders_t     orders;
    ngx_uint_t                    next;
    ngx_uint_t                    n;
    ngx_http_profile_bar_facts_t  facts[1];
} ngx_http_profile_bar_ring_t;


extern ngx_module_t  ngx_http_profile_bar_filter_module;

PROF_HIDDEN_BEGIN

/* ngx_http_profile_bar_page.c: which responses get a bar */

/* returns the task for a request, by the headers of the request */
ngx_http_profile_bar_task_e ngx_http_profile_bar_task(ngx_http_request_t *r);

/*
 * Returns whether the response is a page that can contain the snippet.  Sets
 * *coding to its header "Content-Encoding" if the page is compressed.
 */
ngx_uint_t ngx_http_profile_bar_takes(ngx_http_request_t *r,
    ngx_table_elt_t **coding);

ngx_int_t ngx_http_profile_bar_snippet(ngx_http_request_t *r,
    ngx_http_profile_bar_loc_conf_t *conf, ngx_http_profile_bar_ctx_t *ctx);
ngx_int_t ngx_http_profile_bar_page_header(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx);

/* ngx_http_profile_bar_body.c: inserts the snippet in the body */

ngx_int_t ngx_http_profile_bar_body(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx, ngx_chain_t *in,
    ngx_http_output_body_filter_pt next);

/*
 * ngx_http_profile_bar_coding.c: pages that came compressed
 *
 * Lets requests ask for codings that the module reads.
 */
ngx_int_t ngx_http_profile_bar_coding_init(ngx_conf_t *cf);

/* returns whether the module reads this coding */
ngx_uint_t ngx_http_profile_bar_reads(ngx_str_t *coding);

/* the page is compressed; removes the header */
ngx_int_t ngx_http_profile_bar_coding_header(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx, ngx_table_elt_t *h);

/* as ngx_http_profile_bar_body(), for such a page */
ngx_int_t ngx_http_profile_bar_coding_body(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx, ngx_chain_t *in,
    ngx_http_output_body_filter_pt next);

/* ngx_http_profile_bar_script.c: the script that the page loads */

ngx_int_t ngx_http_profile_bar_script_init(ngx_conf_t *cf,
    ngx_http_profile_bar_main_conf_t *bmcf);
ngx_int_t ngx_http_profile_bar_script_route(ngx_http_profile_call_t *call);

/* ngx_http_profile_bar_facts.c: facts of the last requests of all workers */

ngx_int_t ngx_http_profile_bar_facts_init(ngx_conf_t *cf,
    ngx_http_profile_bar_main_conf_t *bmcf);

/* returns 0 if no request has this id; the id has its full length */
ngx_uint_t ngx_http_profile_bar_find(ngx_shm_zone_t *zone, u_char *id,
    ngx_http_profile_bar_facts_t *facts);

/* ngx_http_profile_bar_route.c: the room's table of routes for the console */

extern const ngx_http_profile_route_t  ngx_http_profile_bar_routes[];

/* ngx_http_profile_bar_cookie.c: orders, which are cookies */

/* this worker's orders; without a bar there is never an order */
extern ngx_http_profile_orders_t  *ngx_http_profile_orders;

/* sets this worker's orders; NULL: the configuration has no bar */
void ngx_http_profile_set_orders(ngx_http_profile_orders_t *orders);

/*
 * If an order is waiting, returns the request's header "Cookie", which may
 * contain the order; otherwise NULL.
 */
ngx_table_elt_t *ngx_http_profile_order_header(ngx_http_request_t *r);

/*
 * Adds a header to the response that makes the order in the browser, or
 * removes the order of the path.  Returns NGX_OK, or NGX_ERROR if memory is
 * short.
 */
ngx_int_t ngx_http_profile_order_make(ngx_http_request_t *r,
    ngx_http_profile_order_t *order);
ngx_int_t ngx_http_profile_order_remove(ngx_http_request_t *r,
    ngx_str_t *path);

/* ngx_http_profile_bar_order.c: the console's route for orders */

ngx_int_t ngx_http_profile_bar_order_init(ngx_cycle_t *cycle);

ngx_int_t ngx_http_profile_bar_order_route(ngx_http_profile_call_t *call);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_BAR_H_INCLUDED_ */
