
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directives of the Performance Bar, and its filters.  The body that the
 * filters get is complete: it contains the responses of subrequests, and nginx
 * has not compressed it yet.  The filters are registered only if a location may
 * show a bar.
 */


#include "bar/ngx_http_profile_bar.h"
#include "core/ngx_http_profile_ground.h"

#include <sys/random.h>


static ngx_int_t ngx_http_profile_bar_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_bar_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_http_profile_bar_ctx_t *ngx_http_profile_bar_create(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_bar_data_header(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx);
static void *ngx_http_profile_bar_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_profile_bar_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_profile_bar_merge_loc_conf(ngx_conf_t *cf,
    void *parent, void *child);
static ngx_int_t ngx_http_profile_bar_init(ngx_conf_t *cf);


static ngx_command_t  ngx_http_profile_bar_commands[] = {

    { ngx_string("profile_bar"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_bar_loc_conf_t, enable),
      NULL },

    { ngx_string("profile_bar_nonce"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_bar_loc_conf_t, nonce),
      NULL },

      ngx_null_command
};


/* as the context of the other module, this one ends with zeroes */

static struct {
    ngx_http_module_t    known;
    void                *more[8];
} ngx_http_profile_bar_filter_module_ctx = { {
    NULL,                                  /* preconfiguration */
    ngx_http_profile_bar_init,             /* postconfiguration */

    ngx_http_profile_bar_create_main_conf, /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_profile_bar_create_loc_conf,  /* create location configuration */
    ngx_http_profile_bar_merge_loc_conf    /* merge location configuration */
}, { NULL } };


ngx_module_t  ngx_http_profile_bar_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_profile_bar_filter_module_ctx,  /* module context */
    ngx_http_profile_bar_commands,         /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_profile_bar_order_init,       /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


PROF_HOT_DATA static ngx_http_output_header_filter_pt
                                      ngx_http_next_header_filter;
PROF_HOT_DATA static ngx_http_output_body_filter_pt
                                      ngx_http_next_body_filter;


static ngx_int_t
ngx_http_profile_bar_header_filter(ngx_http_request_t *r)
{
    ngx_table_elt_t                  *coding;
    ngx_http_profile_ctx_t           *capture;
    ngx_http_profile_bar_ctx_t       *ctx;
    ngx_http_profile_bar_task_e       task;
    ngx_http_profile_loc_conf_t      *plcf;
    ngx_http_profile_bar_loc_conf_t  *conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_profile_bar_filter_module);

    if (!conf->enable || r != r->main
        || ngx_http_profile_ground != NGX_HTTP_PROFILE_GROUND_FITS)
    {
        return ngx_http_next_header_filter(r);
    }

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    /* the cheapest check that refuses most requests is first */

    if (ngx_http_profile_access_address(r, plcf) != NGX_OK) {
        return ngx_http_next_header_filter(r);
    }

    task = ngx_http_profile_bar_task(r);
    coding = NULL;

    if (task == NGX_HTTP_PROFILE_BAR_NOTHING
        || (task == NGX_HTTP_PROFILE_BAR_PAGE
            && !ngx_http_profile_bar_takes(r, &coding))
        || ngx_http_profile_permits(r, plcf) != NGX_OK)
    {
        return ngx_http_next_header_filter(r);
    }

    /*
     * A response that a profile replaces needs no bar.  The bar's cost would
     * also appear in that profile.  A request that the bar has recorded does
     * not count as a request of the page.
     */

    capture = ngx_http_profile_find(r);

    if (capture && (task == NGX_HTTP_PROFILE_BAR_DATA
                    || !capture->trigger.record))
    {
        return ngx_http_next_header_filter(r);
    }

    ctx = ngx_http_profile_bar_create(r);
    if (ctx == NULL) {
        return ngx_http_next_header_filter(r);
    }

    if (task == NGX_HTTP_PROFILE_BAR_PAGE) {

        /* without memory, the page goes on as it came */

        if (coding
            && ngx_http_profile_bar_coding_header(r, ctx, coding) != NGX_OK)
        {
            return ngx_http_next_header_filter(r);
        }

        if (ngx_http_profile_bar_snippet(r, conf, ctx) != NGX_OK
            || ngx_http_profile_bar_page_header(r, ctx) != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else if (ngx_http_profile_bar_data_header(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_set_ctx(r, ctx, ngx_http_profile_bar_filter_module);

    return ngx_http_next_header_filter(r);
}


static ngx_int_t
ngx_http_profile_bar_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_profile_bar_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_profile_bar_filter_module);

    if (ctx && ctx->inflate) {
        return ngx_http_profile_bar_coding_body(r, ctx, in,
                                                ngx_http_next_body_filter);
    }

    if (ctx == NULL || (ctx->inserted && ctx->busy == NULL)) {
        return ngx_http_next_body_filter(r, in);
    }

    return ngx_http_profile_bar_body(r, ctx, in, ngx_http_next_body_filter);
}


static ngx_http_profile_bar_ctx_t *
ngx_http_profile_bar_create(ngx_http_request_t *r)
{
    ngx_http_profile_bar_ctx_t  *ctx;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_profile_bar_ctx_t));

    if (ctx == NULL
        || ngx_http_profile_make_id(ctx->id, r->connection->log) != NGX_OK)
    {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     ctx->nheld = 0;
     *     ctx->free = NULL;
     *     ctx->busy = NULL;
     *     ctx->inflate = NULL;
     *     ctx->in = NULL;
     *     ctx->plain_free = NULL;
     *     ctx->plain_busy = NULL;
     *     ctx->nplain = 0;
     */

    ctx->inserted = 1;

    return ctx;
}


/* scripts also read this header for requests that a library has sent */

static ngx_int_t
ngx_http_profile_bar_data_header(ngx_http_request_t *r,
    ngx_http_profile_bar_ctx_t *ctx)
{
    u_char           *p;
    ngx_int_t         rc;
    ngx_table_elt_t  *h;

    rc = ngx_http_profile_private(r);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
    }

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    p = ngx_pnalloc(r->pool, sizeof("profile;desc=\"\"") - 1
                             + NGX_HTTP_PROFILE_ID_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&h->key, "Server-Timing");
    h->value.data = p;
    h->hash = 1;

    p = ngx_cpymem(p, "profile;desc=\"", sizeof("profile;desc=\"") - 1);
    p = ngx_cpymem(p, ctx->id, NGX_HTTP_PROFILE_ID_LEN);
    *p++ = '"';

    h->value.len = p - h->value.data;

    return NGX_OK;
}


static void *
ngx_http_profile_bar_create_main_conf(ngx_conf_t *cf)
{
    return ngx_http_profile_is_off()
           ? ngx_http_profile_ground_nothing()
           : ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_bar_main_conf_t));
}


static void *
ngx_http_profile_bar_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_profile_bar_loc_conf_t  *conf;

    if (ngx_http_profile_is_off()) {
        return ngx_http_profile_ground_nothing();
    }

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_bar_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     conf->console = NULL;
     */

    conf->enable = NGX_CONF_UNSET;
    conf->nonce = NGX_CONF_UNSET_PTR;

    return conf;
}


/* the configuration of captures has the access rules; it is merged already */

static char *
ngx_http_profile_bar_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_profile_bar_loc_conf_t *prev = parent;
    ngx_http_profile_bar_loc_conf_t *conf = child;

    ngx_http_core_srv_conf_t          *cscf;
    ngx_http_profile_loc_conf_t       *plcf;
    ngx_http_profile_srv_conf_t       *pscf;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    if (ngx_http_profile_is_off()) {
        return NGX_CONF_OK;
    }

    ngx_conf_merge_value(conf->enable, prev->enable, 0);
    ngx_conf_merge_ptr_value(conf->nonce, prev->nonce, NULL);

    if (!conf->enable) {
        return NGX_CONF_OK;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf,
                                         ngx_http_profile_bar_filter_module);
    bmcf->ndirectives++;

    plcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_profile_module);

    if (plcf->enable != 1) {
        return NGX_CONF_OK;
    }

    pscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_profile_module);

    if (pscf->console.len == 0) {
        cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);

        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"profile_bar on\" needs a console: add "
                      "\"location /-/profile/ { profile_console; }\" "
                      "to the server in %s:%ui",
                      cscf->file_name, cscf->line);

        return NGX_CONF_ERROR;
    }

    conf->console = &pscf->console;
    bmcf->nlocations++;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_profile_bar_init(ngx_conf_t *cf)
{
    ngx_http_profile_bar_main_conf_t  *bmcf;

    if (ngx_http_profile_is_off()) {
        return NGX_OK;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf,
                                         ngx_http_profile_bar_filter_module);

    if (bmcf->nlocations == 0) {

        if (bmcf->ndirectives) {
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "\"profile_bar on\" has no effect without "
                          "\"profile_endpoint on\"");
        }

        return NGX_OK;
    }

    if (ngx_http_profile_bar_script_init(cf, bmcf) != NGX_OK
        || ngx_http_profile_bar_facts_init(cf, bmcf) != NGX_OK
        || ngx_http_profile_bar_coding_init(cf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_profile_bar_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_profile_bar_body_filter;

    return NGX_OK;
}
