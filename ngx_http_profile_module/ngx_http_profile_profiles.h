
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the console shows of stored profiles.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_PROFILES_H_INCLUDED_
#define _NGX_HTTP_PROFILE_PROFILES_H_INCLUDED_


#include "ngx_http_profile_console.h"
#include "ngx_http_profile_store.h"


PROF_HIDDEN_BEGIN

/* ngx_http_profile_profiles.c */

ngx_int_t ngx_http_profile_list_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_one_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_change_route(ngx_http_profile_call_t *call);

/* facts as JSON, a new reference; NULL when memory is short */
json_t *ngx_http_profile_entry_json(ngx_http_profile_stored_t *st);

ngx_int_t ngx_http_profile_answer_no_profile(ngx_http_profile_call_t *call,
    ngx_str_t *id);

/* ngx_http_profile_picture.c */

/*
 * Answers with the profile of that id in a format; without one, with all that
 * is known about it, as JSON.
 */
ngx_int_t ngx_http_profile_picture(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_str_t *id,
    const prof_encoder_t *encoder);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_PROFILES_H_INCLUDED_ */
