
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The life of configurations: how they begin, what they inherit, and what
 * directives are when nobody wrote them.
 */


#include "store/ngx_http_profile_store.h"
#include "request/ngx_http_profile_request.h"
#include "console/ngx_http_profile_console.h"
#include "keep/ngx_http_profile_keep.h"


static ngx_int_t ngx_http_profile_merge_arg(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf);
static char *ngx_http_profile_add_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf);
static ngx_int_t ngx_http_profile_add_name(ngx_array_t *names,
    ngx_str_t *name);


void *
ngx_http_profile_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_main_conf_t));
    if (pmcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     pmcf->nlocations = 0;
     *     pmcf->nconsoles = 0;
     *     pmcf->local = NULL;
     *     pmcf->store = NULL;
     *     pmcf->accounting = 0;
     *     pmcf->nkeeps = 0;
     *     pmcf->watch_frequency = 0;
     *     pmcf->stall_zone = NULL;
     *     pmcf->nphases = 0;
     *     pmcf->precontent = 0;
     *     pmcf->checkers = NULL;
     *     pmcf->handlers = NULL;
     *     pmcf->phases = NULL;
     */

    if (ngx_array_init(&pmcf->headers, cf->pool, 1, sizeof(ngx_str_t))
        != NGX_OK
        || ngx_array_init(&pmcf->names, cf->pool, 32,
                          sizeof(ngx_http_profile_name_t))
           != NGX_OK)
    {
        return NULL;
    }

    pmcf->min_arg = NGX_MAX_SIZE_T_VALUE;
    pmcf->max_captures = NGX_CONF_UNSET_UINT;
    pmcf->stall = NGX_CONF_UNSET_MSEC;

    return pmcf;
}


char *
ngx_http_profile_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_profile_main_conf_t *pmcf = conf;

    ngx_conf_init_msec_value(pmcf->stall, 0);

    /* some samples in the shortest stall, up to the kernel's rate */

    if (pmcf->stall) {
        pmcf->watch_frequency = ngx_max(pmcf->watch_frequency,
                                        NGX_HTTP_PROFILE_KEEP_FREQUENCY);
        pmcf->watch_frequency = ngx_max(pmcf->watch_frequency,
                                        4000 / pmcf->stall + 1);
        pmcf->watch_frequency = ngx_min(pmcf->watch_frequency,
                                        NGX_HTTP_PROFILE_KEEP_MAX);
    }

    ngx_conf_init_uint_value(pmcf->max_captures,
                             NGX_HTTP_PROFILE_MAX_CAPTURES);

    return ngx_http_profile_store_init(cf, pmcf);
}


void *
ngx_http_profile_create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_profile_srv_conf_t  *pscf;

    pscf = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_srv_conf_t));
    if (pscf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     pscf->conditional = 0;
     *     pscf->console = { 0, NULL };
     *     pscf->viewer = NULL;
     *     pscf->page = NULL;
     */

    if (ngx_array_init(&pscf->locations, cf->pool, 4, sizeof(void *))
        != NGX_OK)
    {
        return NULL;
    }

    pscf->accounting = NGX_CONF_UNSET;
    pscf->keep = NGX_CONF_UNSET_PTR;

    return pscf;
}


char *
ngx_http_profile_merge_srv_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_profile_srv_conf_t *prev = parent;
    ngx_http_profile_srv_conf_t *conf = child;

    ngx_http_profile_main_conf_t  *pmcf;

    ngx_conf_merge_value(conf->accounting, prev->accounting, 0);
    ngx_conf_merge_ptr_value(conf->keep, prev->keep, NULL);

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (conf->accounting || conf->keep || pmcf->stall) {
        conf->track = 1;
        pmcf->accounting = 1;

    } else {
        pmcf->untracked = 1;
    }

    return NGX_CONF_OK;
}


void *
ngx_http_profile_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_profile_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     conf->format = NULL;
     *     conf->arg = { 0, NULL };
     *     conf->arg_shift = NULL;
     *     conf->header = { 0, NULL };
     *     conf->viewer = { 0, NULL };
     */

    conf->enable = NGX_CONF_UNSET;
    conf->allow = NGX_CONF_UNSET_PTR;
    conf->condition = NGX_CONF_UNSET_PTR;
    conf->mode = NGX_CONF_UNSET_UINT;
    conf->frequency = NGX_CONF_UNSET_UINT;
    conf->spans = NGX_CONF_UNSET;
    conf->timeout = NGX_CONF_UNSET_MSEC;
    conf->buffer = NGX_CONF_UNSET_SIZE;
    conf->object_interval = NGX_CONF_UNSET_SIZE;
    conf->object_grace = NGX_CONF_UNSET_MSEC;

    return conf;
}


char *
ngx_http_profile_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_profile_loc_conf_t *prev = parent;
    ngx_http_profile_loc_conf_t *conf = child;

    ngx_http_profile_main_conf_t  *pmcf;

    ngx_conf_merge_value(conf->enable, prev->enable, 0);
    ngx_conf_merge_ptr_value(conf->allow, prev->allow, NULL);
    ngx_conf_merge_ptr_value(conf->condition, prev->condition, NULL);
    ngx_conf_merge_uint_value(conf->mode, prev->mode, PROF_MODE_WALL);
    ngx_conf_merge_uint_value(conf->frequency, prev->frequency,
                              PROF_FREQUENCY_DEFAULT);
    ngx_conf_merge_str_value(conf->header, prev->header, "X-Profile");
    ngx_conf_merge_value(conf->spans, prev->spans, 1);
    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 60000);
    ngx_conf_merge_size_value(conf->buffer, prev->buffer,
                              PROF_MEMORY_DEFAULT);
    ngx_conf_merge_size_value(conf->object_interval, prev->object_interval,
                              PROF_INTERVAL_DEFAULT);
    ngx_conf_merge_msec_value(conf->object_grace, prev->object_grace, 0);

    if (conf->format == NULL) {
        conf->format = prev->format ? prev->format : prof_encoders[0];
    }

    if (ngx_http_profile_merge_arg(cf, prev, conf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (conf->viewer.data == NULL) {

        /* looked for once, through the parent */

        if (prev->viewer.data == NULL
            && ngx_http_profile_viewer_default(cf, &prev->viewer) != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }

        conf->viewer = prev->viewer;
    }

    if (conf->allow == NULL) {

        pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

        if (pmcf->local == NULL) {
            pmcf->local = ngx_http_profile_allow_default(cf);
            if (pmcf->local == NULL) {
                return NGX_CONF_ERROR;
            }
        }

        conf->allow = pmcf->local;
    }

    return conf->enable ? ngx_http_profile_add_location(cf, conf)
                        : NGX_CONF_OK;
}


static ngx_int_t
ngx_http_profile_merge_arg(ngx_conf_t *cf, ngx_http_profile_loc_conf_t *prev,
    ngx_http_profile_loc_conf_t *conf)
{
    ngx_conf_merge_str_value(conf->arg, prev->arg, "performance_bar");

    if (conf->arg.data == prev->arg.data) {
        conf->arg_shift = prev->arg_shift;
    }

    if (conf->arg.len == 0 || conf->arg_shift) {
        return NGX_OK;
    }

    conf->arg_shift = ngx_http_profile_arg_shift(cf->pool, &conf->arg);

    return conf->arg_shift ? NGX_OK : NGX_ERROR;
}


/* the server that is being merged has this location */

static char *
ngx_http_profile_add_location(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf)
{
    ngx_http_profile_srv_conf_t   *pscf;
    ngx_http_profile_loc_conf_t  **plcf;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);
    pscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_profile_module);

    plcf = ngx_array_push(&pscf->locations);
    if (plcf == NULL) {
        return NGX_CONF_ERROR;
    }

    *plcf = conf;
    pscf->conditional |= (conf->condition != NULL);
    pmcf->nlocations++;

    if (conf->arg.len) {
        pmcf->min_arg = ngx_min(pmcf->min_arg, conf->arg.len);
    }

    if (conf->header.len
        && ngx_http_profile_add_name(&pmcf->headers, &conf->header) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_profile_add_name(ngx_array_t *names, ngx_str_t *name)
{
    ngx_str_t   *known;
    ngx_uint_t   i;

    known = names->elts;

    for (i = 0; i < names->nelts; i++) {
        if (known[i].len == name->len
            && ngx_strncasecmp(known[i].data, name->data, name->len) == 0)
        {
            return NGX_OK;
        }
    }

    known = ngx_array_push(names);
    if (known == NULL) {
        return NGX_ERROR;
    }

    *known = *name;

    return NGX_OK;
}
