
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Declarations that the files of this room share.
 */


#ifndef _NGX_HTTP_PROFILE_REQUEST_PRIVATE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_REQUEST_PRIVATE_H_INCLUDED_


#include "request/ngx_http_profile_request.h"


PROF_HIDDEN_BEGIN

/* ngx_http_profile_trigger.c */

/*
 * Notes the names of all triggers of the request, because none of them may
 * reach the application.  Returns NGX_OK, or NGX_DECLINED without a trigger.
 */
ngx_int_t ngx_http_profile_find_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);

/*
 * Parses the argument, or the header if there is no argument.  Returns
 * NGX_DECLINED with t->error set, or NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_profile_parse_trigger(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);

/*
 * ngx_http_profile_strip() and ngx_http_profile_unstrip() may be called any
 * number of times.  They do not change a value that other code has replaced
 * meanwhile.
 */

/* takes the trigger out; returns NGX_ERROR if memory is short */
ngx_int_t ngx_http_profile_strip(ngx_http_profile_ctx_t *ctx);

/* puts the trigger back */
void ngx_http_profile_unstrip(ngx_http_profile_ctx_t *ctx);

/* ngx_http_profile_access.c */

/*
 * Returns NGX_OK if a location of the server permits the client's address, or
 * NGX_DECLINED (logged).
 */
ngx_int_t ngx_http_profile_access_any(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t);

/*
 * Returns NGX_OK if the location permits the request, or NGX_DECLINED.  The
 * refusal is logged if the location has "profile_endpoint on".
 */
ngx_int_t ngx_http_profile_access(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, ngx_http_profile_loc_conf_t *plcf);

/* ngx_http_profile_reply.c */

/* removes all that the original response has set in the request */
void ngx_http_profile_reply_clean(ngx_http_request_t *r);

ngx_int_t ngx_http_profile_reply_header(ngx_http_profile_ctx_t *ctx);

/* ngx_http_profile_render.c */

/* adds facts of the request to its profile */
void ngx_http_profile_add_facts(ngx_http_profile_ctx_t *ctx);

ngx_int_t ngx_http_profile_render(ngx_http_profile_ctx_t *ctx,
    ngx_uint_t reply);
void ngx_http_profile_render_abandon(ngx_http_profile_ctx_t *ctx);

/* ngx_http_profile_request.c: the filters, and the filters below them */

extern ngx_http_output_header_filter_pt  ngx_http_profile_next_header_filter;
extern ngx_http_output_body_filter_pt    ngx_http_profile_next_body_filter;

ngx_int_t ngx_http_profile_header_filter(ngx_http_request_t *r);
ngx_int_t ngx_http_profile_filter_body(ngx_http_request_t *r,
    ngx_chain_t *in);

/*
 * Replaces ngx_http_writer() for what the filters above must not see: the reply
 * of a request, and the rest of a long body.
 */
void ngx_http_profile_writer(ngx_http_request_t *r);

/*
 * ngx_http_profile_send.c: sends a body to the filters below, in pieces.  Other
 * events run between two pieces.  Returns NGX_OK, NGX_ERROR, or NGX_AGAIN:
 * ngx_http_profile_writer() sends the rest with ngx_http_profile_send_rest().
 */
ngx_int_t ngx_http_profile_send(ngx_http_request_t *r, ngx_str_t *body);
ngx_int_t ngx_http_profile_send_rest(ngx_http_request_t *r);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_REQUEST_PRIVATE_H_INCLUDED_ */
