
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Whose the time is in captures of all time: the location of the request that a
 * worker runs.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_server.h"


ngx_uint_t  ngx_http_profile_nlocated;


/* a turn of the request goes on, or, with NULL, of no request */

void
ngx_http_profile_scope(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t  *clcf;

    if (r == NULL) {
        prof_process_scope(NULL);
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    /* texts of configurations end with a null character */

    prof_process_scope(clcf->name.len ? (char *) clcf->name.data : NULL);
}


ngx_int_t
ngx_http_profile_scope_begin(void)
{
    if (ngx_http_profile_arm_sampler() != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_profile_nlocated++;
    ngx_http_profile_look_at_all(1);

    return NGX_OK;
}


void
ngx_http_profile_scope_end(void)
{
    ngx_http_profile_nlocated--;
    ngx_http_profile_look_at_all(ngx_http_profile_nlocated
                                 + ngx_http_profile_nendpoints);
    ngx_http_profile_release_sampler();
}
