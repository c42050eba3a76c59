
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Ending a response that nobody receives.  A response that is replaced by its
 * profile may be endless; when its capture has ended by profile_timeout, the
 * rest of it tells nothing more.  What makes it is stopped as if the client had
 * gone, but the request stays, for the profile.
 */


#include "request/ngx_http_profile_trigger.h"


/* how often to look whether threads of the request are done */
#define NGX_HTTP_PROFILE_CUT_AGAIN  10


static void ngx_http_profile_cut_cleanups(ngx_http_request_t *r);


void
ngx_http_profile_cut(ngx_http_profile_ctx_t *ctx)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ctx->request;
    c = r->connection;

    /* they have addresses of buffers */

    if (r->blocked) {
        ngx_add_timer(&ctx->timer, NGX_HTTP_PROFILE_CUT_AGAIN);
        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, c->log, 0, "profile cuts the response");

    ngx_http_profile_unwrap(ctx->track);
    ngx_http_profile_cut_cleanups(r);

    r->count = r->discard_body ? 2 : 1;
    r->posted_requests = NULL;
    r->postponed = NULL;
    r->buffered = 0;

    c->data = r;
    c->buffered &= NGX_LOWLEVEL_BUFFERED;
    c->buffered |= NGX_HTTP_PROFILE_BUFFERED;
    c->write->delayed = 0;

    if (r->reading_body) {
        r->keepalive = 0;
        r->lingering_close = 1;
    }

    /* as ngx_http_finalize_request() does when something is left to send */

    r->http_state = NGX_HTTP_WRITING_REQUEST_STATE;
    r->read_event_handler = r->discard_body
                            ? ngx_http_discarded_request_body_handler
                            : ngx_http_test_reading;

    ngx_http_profile_check_complete(ctx);
}


/*
 * As ngx_http_terminate_request() does.  Handlers finalize requests: one more
 * reference keeps the main one.
 */

static void
ngx_http_profile_cut_cleanups(ngx_http_request_t *r)
{
    ngx_http_cleanup_t  *cln;

    r->count++;

    cln = r->cleanup;
    r->cleanup = NULL;

    for ( /* void */ ; cln; cln = cln->next) {
        if (cln->handler) {
            cln->handler(cln->data);
        }
    }
}
