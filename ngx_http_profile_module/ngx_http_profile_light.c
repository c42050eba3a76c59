
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * profile_keep.  A capture costs memory and page faults to make, so those that
 * were not kept serve again.
 */


#include "ngx_http_profile.h"
#include "ngx_http_profile_light.h"
#include "ngx_http_profile_store.h"


/* for call tree and timeline: a few hundred entries of each */
#define NGX_HTTP_PROFILE_LIGHT_MEMORY  32768


static char *ngx_http_profile_light_param(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_profile_light_t *keep, ngx_http_profile_main_conf_t *pmcf);
static ngx_uint_t ngx_http_profile_light_chosen(
    ngx_http_profile_light_t *keep);
static prof_capture_t *ngx_http_profile_light_get(void);


/* captures that nobody uses now */

static prof_capture_t  *ngx_http_profile_light_free[
                                                NGX_HTTP_PROFILE_MAX_LIGHT];
static ngx_uint_t       ngx_http_profile_light_nfree;
static ngx_uint_t       ngx_http_profile_light_used;


char *
ngx_http_profile_light_keep(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_srv_conf_t *pscf = conf;

    ngx_str_t                         *value;
    ngx_uint_t                         i;
    ngx_http_profile_light_t          *keep;
    ngx_http_profile_main_conf_t      *pmcf;
    ngx_http_compile_complex_value_t   ccv;

    if (pscf->keep != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        pscf->keep = NULL;
        return NGX_CONF_OK;
    }

    keep = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_light_t));
    if (keep == NULL) {
        return NGX_CONF_ERROR;
    }

    keep->share = 10000;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);
    pmcf->nkeeps++;

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_profile_light_param(cf, &value[i], keep, pmcf)
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    pmcf->watch_frequency = ngx_max(pmcf->watch_frequency,
                                    NGX_HTTP_PROFILE_LIGHT_FREQUENCY);

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &keep->condition;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    pscf->keep = keep;

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_light_param(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_profile_light_t *keep, ngx_http_profile_main_conf_t *pmcf)
{
    ngx_int_t  n;

    if (ngx_strncmp(value->data, "share=", 6) == 0
        && value->data[value->len - 1] == '%')
    {
        n = ngx_atofp(value->data + 6, value->len - 7, 2);

        if (n > 0 && n <= 10000) {
            keep->share = n;
            return NGX_CONF_OK;
        }
    }

    if (ngx_strncmp(value->data, "frequency=", 10) == 0) {

        n = ngx_atoi(value->data + 10, value->len - 10);

        if (n > 0 && n <= NGX_HTTP_PROFILE_LIGHT_MAX) {
            pmcf->watch_frequency = ngx_max(pmcf->watch_frequency,
                                            (ngx_uint_t) n);
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" in \"profile_keep\" "
                       "directive, it must be \"share=\" with a percentage "
                       "from 0.01%% to 100%%, or \"frequency=\" with a number "
                       "of samples a second from 1 to %d",
                       value, NGX_HTTP_PROFILE_LIGHT_MAX);

    return NGX_CONF_ERROR;
}


PROF_HOT void
ngx_http_profile_light_begin(ngx_http_profile_track_t *tr, uint64_t begin)
{
    ngx_http_profile_srv_conf_t  *pscf;

    static char  client[] = "event: client";

    if (ngx_http_profile_watch == NULL) {
        return;
    }

    pscf = ngx_http_get_module_srv_conf(tr->request, ngx_http_profile_module);

    if (pscf->keep == NULL || !ngx_http_profile_light_chosen(pscf->keep)) {
        return;
    }

    /* what the profiler allocates is nobody's */

    prof_heap_mute();
    tr->light = ngx_http_profile_light_get();
    prof_heap_unmute();

    if (tr->light) {
        ngx_http_profile_first_gap(tr, tr->light, begin);
        tr->what = prof_capture_name(tr->light, client, sizeof(client) - 1);
    }
}


static ngx_uint_t
ngx_http_profile_light_chosen(ngx_http_profile_light_t *keep)
{
    return keep->share == 10000
           || (ngx_uint_t) ngx_random() % 10000 < keep->share;
}


static prof_capture_t *
ngx_http_profile_light_get(void)
{
    prof_capture_t                *c;
    prof_capture_conf_t            conf;
    ngx_http_profile_main_conf_t  *pmcf;

    if (ngx_http_profile_light_used == NGX_HTTP_PROFILE_MAX_LIGHT) {
        return NULL;
    }

    if (ngx_http_profile_light_nfree) {
        c = ngx_http_profile_light_free[--ngx_http_profile_light_nfree];
        prof_capture_reuse(c);

    } else {
        pmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                   ngx_http_profile_module);

        ngx_memzero(&conf, sizeof(prof_capture_conf_t));

        conf.frequency = pmcf->watch_frequency;
        conf.mode = PROF_MODE_WALL;
        conf.memory = NGX_HTTP_PROFILE_LIGHT_MEMORY;

        c = prof_capture_create(&conf);
    }

    if (c) {
        ngx_http_profile_light_used++;
    }

    return c;
}


void
ngx_http_profile_light_gap(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake)
{
    ngx_http_profile_gap(tr, tr->light, wake);
    tr->what = ngx_http_profile_wake_name(tr, tr->light, wake);
}


void
ngx_http_profile_light_turn(ngx_http_profile_track_t *tr, uint64_t now,
    uint64_t cpu)
{
    prof_watch_turn(ngx_http_profile_watch, tr->light, tr->what, now, cpu);
}


PROF_HOT ngx_uint_t
ngx_http_profile_light_wanted(ngx_http_request_t *r)
{
    ngx_str_t                     value;
    ngx_http_profile_srv_conf_t  *pscf;

    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    return pscf->keep
           && ngx_http_complex_value(r, &pscf->keep->condition, &value)
              == NGX_OK
           && value.len && (value.len > 1 || value.data[0] != '0');
}


void
ngx_http_profile_light_log(ngx_http_profile_track_t *tr)
{
    u_char                  *p;
    ngx_http_request_t      *r;
    ngx_http_profile_ctx_t  *ctx;
    u_char                   title[NGX_MAX_ERROR_STR];

    r = tr->request;

    if (!ngx_http_profile_light_wanted(r)) {
        return;
    }

    ctx = ngx_http_profile_create(r);
    if (ctx == NULL) {
        return;
    }

    p = ngx_slprintf(title, title + sizeof(title) - 1, "%V %V",
                     &r->method_name, &r->uri);
    *p = '\0';

    ctx->conf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);
    ctx->verdict = NGX_HTTP_PROFILE_ADMITTED;
    ctx->status = r->err_status ? r->err_status : r->headers_out.status;
    ctx->profile = prof_capture_finish(tr->light, (char *) title);

    if (ctx->profile) {
        tr->samples = ctx->profile->stats.samples;
    }

    /* its memory is the profile's now */

    prof_capture_destroy(tr->light);
    tr->light = NULL;
    ngx_http_profile_light_used--;

    ngx_http_profile_keep(ctx);
    ngx_http_profile_drop(ctx);
}


void
ngx_http_profile_light_drop(ngx_http_profile_track_t *tr)
{
    ngx_http_profile_light_free[ngx_http_profile_light_nfree++] = tr->light;
    ngx_http_profile_light_used--;
    tr->light = NULL;
}


/* a worker ends */

void
ngx_http_profile_light_exit(void)
{
    while (ngx_http_profile_light_nfree) {
        prof_capture_destroy(
                  ngx_http_profile_light_free[--ngx_http_profile_light_nfree]);
    }
}
