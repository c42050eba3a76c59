
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Where a request with a context is looked at on its way through the phases:
 * when its location is known, and before its content is made.  Handlers of
 * phases would cost every request, so the checkers of two entries of nginx's
 * phase engine are replaced while the worker is armed.
 */


#include "ngx_http_profile.h"


static ngx_int_t ngx_http_profile_location_checker(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_profile_content_checker(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);


/* of the cycle in which the worker was armed */

static ngx_http_phase_handler_t   *ngx_http_profile_phases;

/* nginx's own */

static ngx_http_phase_handler_pt   ngx_http_profile_rewrite;
static ngx_http_phase_handler_pt   ngx_http_profile_content;


void
ngx_http_profile_arm_phases(void)
{
    ngx_http_phase_handler_t      *ph;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_profile_main_conf_t  *pmcf;

    cmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_core_module);
    pmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_profile_module);

    ngx_http_profile_phases = cmcf->phase_engine.handlers;

    if (cmcf->phase_engine.location_rewrite_index != (ngx_uint_t) -1) {
        ph = &ngx_http_profile_phases[
                                  cmcf->phase_engine.location_rewrite_index];

        ngx_http_profile_rewrite = ph->checker;
        ph->checker = ngx_http_profile_location_checker;
    }

    ph = &ngx_http_profile_phases[pmcf->precontent];

    ngx_http_profile_content = ph->checker;
    ph->checker = ngx_http_profile_content_checker;
}


/*
 * The entries are searched for: ngx_lua moves its own ones to the end of their
 * phases when they run for the first time.
 */

void
ngx_http_profile_disarm_phases(void)
{
    ngx_http_phase_handler_t  *ph;

    for (ph = ngx_http_profile_phases; ph->checker; ph++) {

        if (ph->checker == ngx_http_profile_location_checker) {
            ph->checker = ngx_http_profile_rewrite;

        } else if (ph->checker == ngx_http_profile_content_checker) {
            ph->checker = ngx_http_profile_content;
        }
    }
}


/* stands before the first handler of the rewrite phase */

static ngx_int_t
ngx_http_profile_location_checker(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph)
{
    ngx_http_profile_ctx_t  *ctx;

    ctx = (r == r->main) ? ngx_http_profile_find(r) : NULL;

    if (ctx && ctx->tracked && !ctx->sink) {
        (void) ngx_http_profile_locate(ctx);
    }

    return ngx_http_profile_rewrite(r, ph);
}


/* stands before the first handler of the precontent or the content phase */

static ngx_int_t
ngx_http_profile_content_checker(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph)
{
    ngx_http_profile_ctx_t  *ctx;

    ctx = ngx_http_profile_find(r);

    if (ctx == NULL || !ctx->tracked) {
        return ngx_http_profile_content(r, ph);
    }

    if (r != r->main) {
        (void) ngx_http_profile_add_part(ctx, r);
        return ngx_http_profile_content(r, ph);
    }

    if (!ctx->sink
        && ngx_http_profile_admit(ctx) == NGX_OK
        && ctx->reply.status)
    {
        return ngx_http_profile_send_error(ctx);
    }

    return ngx_http_profile_content(r, ph);
}
