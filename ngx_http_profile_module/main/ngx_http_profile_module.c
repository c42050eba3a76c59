
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The module, and its handler of the POST_READ phase.
 */


#include "context/ngx_http_profile_context.h"
#include "core/ngx_http_profile_ground.h"
#include "core/ngx_http_profile_symbolizer.h"
#include "roles/ngx_http_profile_roles.h"
#include "stages/ngx_http_profile_stages.h"
#include "store/ngx_http_profile_store.h"
#include "request/ngx_http_profile_request.h"
#include "bar/ngx_http_profile_bar.h"
#include "keep/ngx_http_profile_keep.h"
#include "loop/ngx_http_profile_brief.h"
#include "console/ngx_http_profile_console.h"
#include "main/ngx_http_profile_process.h"
#include "main/ngx_http_profile_rooms.h"
#include "turns/ngx_http_profile_turns.h"
#include "workers/ngx_http_profile_workers.h"


static ngx_int_t ngx_http_profile_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_profile_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_profile_first_handler(ngx_conf_t *cf,
    ngx_uint_t phase, ngx_http_handler_pt handler);
static ngx_int_t ngx_http_profile_first_request(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_profile_decline(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_post_read(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_profile_account(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_profile_search(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_profile_found(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph, u_char *p);
static ngx_int_t ngx_http_profile_look(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_profile_handler(ngx_http_request_t *r);


static const ngx_http_profile_route_t  *ngx_http_profile_all_routes[] = {
    ngx_http_profile_console_routes,
    ngx_http_profile_bar_routes,
    ngx_http_profile_workers_routes,
    ngx_http_profile_turns_routes,
    NULL
};


/*
 * If nginx's contexts of modules have more members than this module knows,
 * nginx finds zeroes there.
 */

static struct {
    ngx_http_module_t    known;
    void                *more[8];
} ngx_http_profile_module_ctx = { {
    ngx_http_profile_preconfiguration,     /* preconfiguration */
    ngx_http_profile_init,                 /* postconfiguration */

    ngx_http_profile_create_main_conf,     /* create main configuration */
    ngx_http_profile_init_main_conf,       /* init main configuration */

    ngx_http_profile_create_srv_conf,      /* create server configuration */
    ngx_http_profile_merge_srv_conf,       /* merge server configuration */

    ngx_http_profile_create_loc_conf,      /* create location configuration */
    ngx_http_profile_merge_loc_conf        /* merge location configuration */
}, { NULL } };


ngx_module_t  ngx_http_profile_module = {
    NGX_MODULE_V1,
    &ngx_http_profile_module_ctx,          /* module context */
    NULL,                                  /* set by the table of rooms */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_profile_init_module,          /* init module */
    ngx_http_profile_init_process,         /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_profile_exit_process,         /* exit process */
    ngx_http_profile_exit_master,          /* exit master */
    NGX_MODULE_V1_PADDING
};


/* an entry of the phase engine that nginx made for this handler */

#define ngx_http_profile_next_checker(r, ph)                                  \
    (r)->phase_handler++, (ph)[1].checker(r, &(ph)[1])


/*
 * While the first request has not shown that the structures of nginx fit, the
 * module has an entry for it, and nothing else that runs for a request.
 */

void
ngx_http_profile_init_checker(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i, fits;
    ngx_array_t                *log;
    ngx_http_handler_pt        *h;
    ngx_http_phase_handler_t   *ph;
    ngx_http_core_main_conf_t  *cmcf;

    static ngx_http_phase_handler_pt  checkers[] = {
        ngx_http_profile_post_read,        /* NGX_HTTP_PROFILE_GROUND_FITS */
        ngx_http_profile_first_request,    /* NGX_HTTP_PROFILE_GROUND_OPEN */
        ngx_http_core_generic_phase        /* NGX_HTTP_PROFILE_GROUND_OFF */
    };

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);

    if (cmcf == NULL) {
        return;
    }

    for (ph = cmcf->phase_engine.handlers; ph->checker; ph++) {

        if (ph->handler == ngx_http_profile_handler) {
            ph->checker = checkers[ngx_http_profile_ground];

            if (ngx_http_profile_is_off()) {
                ph->handler = ngx_http_profile_decline;
            }
        }
    }

    fits = (ngx_http_profile_ground == NGX_HTTP_PROFILE_GROUND_FITS);
    log = &cmcf->phases[NGX_HTTP_LOG_PHASE].handlers;
    h = log->elts;

    for (i = 0; i < log->nelts; i++) {

        if (fits && h[i] == ngx_http_profile_decline) {
            h[i] = ngx_http_profile_account_log;

        } else if (!fits && h[i] == ngx_http_profile_account_log) {
            h[i] = ngx_http_profile_decline;
        }
    }
}


/* the first request of a worker of an nginx that is not known */

static ngx_int_t
ngx_http_profile_first_request(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph)
{
    ngx_http_profile_ground_request(r, ph);
    ngx_http_profile_init_checker((ngx_cycle_t *) ngx_cycle);

    if (!ngx_http_profile_is_off()) {
        ngx_http_profile_begin_process((ngx_cycle_t *) ngx_cycle);
    }

    return ph->checker(r, ph);
}


static ngx_int_t
ngx_http_profile_decline(ngx_http_request_t *r)
{
    return NGX_DECLINED;
}


/*
 * Every request passes here.  A checker, which continues with the next entry,
 * costs a third of a handler that nginx's checker calls.  The common case is
 * four comparisons, and a search in a query that is long enough for a trigger.
 */

PROF_HOT static ngx_int_t
ngx_http_profile_post_read(ngx_http_request_t *r, ngx_http_phase_handler_t *ph)
{
    if (ngx_http_profile_all || ngx_http_profile_nheaders
        || ngx_http_profile_orders->until)
    {
        return ngx_http_profile_account(r, ph);
    }

    if (r->args.len > ngx_http_profile_query.more) {
        return ngx_http_profile_search(r, ph);
    }

    return ngx_http_profile_next_checker(r, ph);
}


/* the common case of a server that accounts its requests */

__attribute__((noinline, hot)) static ngx_int_t
ngx_http_profile_account(ngx_http_request_t *r, ngx_http_phase_handler_t *ph)
{
    if (ngx_http_profile_everywhere
        && (ngx_http_profile_nheaders | ngx_http_profile_nendpoints
            | ngx_http_profile_orders->until) == 0
        && r->args.len <= ngx_http_profile_query.more
        && ngx_http_profile_track_brief(r) == NGX_OK)
    {
        return ngx_http_profile_next_checker(r, ph);
    }

    return ngx_http_profile_look(r, ph);
}


__attribute__((noinline, hot)) static ngx_int_t
ngx_http_profile_search(ngx_http_request_t *r, ngx_http_phase_handler_t *ph)
{
    u_char  *p;

    if (ngx_http_profile_query.rare == -1) {
        return ngx_http_profile_look(r, ph);
    }

    /* the C library finds a byte much faster than this code finds a name */

    p = memchr(r->args.data + ngx_http_profile_query.before,
               ngx_http_profile_query.rare,
               r->args.len - ngx_http_profile_query.more);

    if (p) {
        return ngx_http_profile_found(r, ph, p);
    }

    return ngx_http_profile_next_checker(r, ph);
}


__attribute__((noinline)) static ngx_int_t
ngx_http_profile_found(ngx_http_request_t *r, ngx_http_phase_handler_t *ph,
    u_char *p)
{
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_find_arg(r, plcf, p) == NGX_OK) {
        return ngx_http_profile_look(r, ph);
    }

    return ngx_http_profile_next_checker(r, ph);
}


__attribute__((noinline, hot)) static ngx_int_t
ngx_http_profile_look(ngx_http_request_t *r, ngx_http_phase_handler_t *ph)
{
    if (ngx_http_profile_handler(r) == NGX_DONE) {
        return NGX_OK;
    }

    return ngx_http_profile_next_checker(r, ph);
}


/* returns NGX_DECLINED, or NGX_DONE if the phases of the request have run */

PROF_HOT static ngx_int_t
ngx_http_profile_handler(ngx_http_request_t *r)
{
    ngx_uint_t                    asked, track;
    ngx_http_profile_track_t     *tr;
    ngx_http_profile_srv_conf_t  *pscf;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    asked = ngx_http_profile_find_arg(r, plcf, r->args.data) == NGX_OK
            || ngx_http_get_module_ctx(r, ngx_http_profile_module)
            || (ngx_http_profile_orders->until
                && ngx_http_profile_order_header(r));

    if (!asked && !ngx_http_profile_all) {
        return NGX_DECLINED;
    }

    track = ngx_http_profile_everywhere;
    tr = NULL;

    if (!track) {
        pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);
        track = pscf->track;
    }

    if (track || ngx_http_profile_nlocated) {

        /* a request that is not captured may use the brief track */

        if (track && !asked && ngx_http_profile_nendpoints == 0
            && ngx_http_profile_track_brief(r) == NGX_OK)
        {
            return NGX_DECLINED;
        }

        tr = ngx_http_profile_track(r);

        if (tr) {
            tr->accounted = 1;
        }
    }

    if (asked && ngx_http_profile_begin(r) == NGX_DONE) {
        return NGX_DONE;
    }

    /* captures of endpoints include requests with an invalid trigger */

    if (ngx_http_profile_nendpoints
        && ngx_http_profile_endpoint_begin(r) == NGX_DONE)
    {
        return NGX_DONE;
    }

    return tr ? ngx_http_profile_account_begin(tr) : NGX_DECLINED;
}


static ngx_int_t
ngx_http_profile_preconfiguration(ngx_conf_t *cf)
{
    ngx_http_profile_check_ground(cf);

    if (ngx_http_profile_is_off()) {
        return ngx_http_profile_ground_add_variables(cf);
    }

    ngx_http_profile_routes = ngx_http_profile_all_routes;

    if (ngx_http_profile_add_variables(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_profile_watch_modules(cf);
}


static ngx_int_t
ngx_http_profile_init(ngx_conf_t *cf)
{
    ngx_uint_t                      i, first;
    ngx_http_core_srv_conf_t      **cscfp;
    ngx_http_core_main_conf_t      *cmcf;
    ngx_http_profile_srv_conf_t    *pscf;
    ngx_http_profile_main_conf_t   *pmcf;

    if (ngx_http_profile_is_off()) {
        return NGX_OK;
    }

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);
    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    /* a server tracks requests also because of one of its locations */

    cscfp = cmcf->servers.elts;

    for (i = 0; i < cmcf->servers.nelts; i++) {
        pscf = cscfp[i]->ctx->srv_conf[ngx_http_profile_module.ctx_index];

        if (pscf->track) {
            pmcf->accounting = 1;

        } else {
            pmcf->untracked = 1;
        }
    }

    if (pmcf->local && ngx_http_profile_allow_hosts(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    /* the continuous profile waits for the first request */

    first = pmcf->continuous
            && ngx_http_profile_ground == NGX_HTTP_PROFILE_GROUND_OPEN;

    /*
     * Handlers of the POST_READ phase run from the last to the first: as the
     * first one, this handler runs after realip's.
     */

    if (pmcf->nlocations + pmcf->accounting + pmcf->nconsoles + first
        && ngx_http_profile_first_handler(cf, NGX_HTTP_POST_READ_PHASE,
                                          ngx_http_profile_handler)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* handlers of the log phase run in order, so others see final times */

    if (pmcf->accounting
        && ngx_http_profile_first_handler(cf, NGX_HTTP_LOG_PHASE,
                                          ngx_http_profile_account_log)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (pmcf->turn_log
        && (ngx_http_profile_first_handler(cf, NGX_HTTP_REWRITE_PHASE,
                                           ngx_http_profile_log_located)
            != NGX_OK
            || ngx_http_profile_first_handler(cf, NGX_HTTP_LOG_PHASE,
                                              ngx_http_profile_log_logged)
               != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (pmcf->context && ngx_http_profile_context_init(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (pmcf->nlocations == 0) {
        return (pmcf->nconsoles + pmcf->nmetrics)
               ? ngx_http_profile_filter_init(cf) : NGX_OK;
    }

    if (ngx_http_profile_init_headers(cf, pmcf)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_profile_filter_init(cf);
}


static ngx_int_t
ngx_http_profile_first_handler(ngx_conf_t *cf, ngx_uint_t phase,
    ngx_http_handler_pt handler)
{
    ngx_array_t                *handlers;
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    handlers = &cmcf->phases[phase].handlers;

    if (ngx_array_push(handlers) == NULL) {
        return NGX_ERROR;
    }

    h = handlers->elts;

    ngx_memmove(&h[1], &h[0],
                (handlers->nelts - 1) * sizeof(ngx_http_handler_pt));

    h[0] = handler;

    return NGX_OK;
}
