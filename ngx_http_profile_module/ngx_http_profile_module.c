
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Directives and the life of the module.  Nothing here runs for a request
 * but the trigger test.
 */


#include "ngx_http_profile.h"


static void *ngx_http_profile_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_profile_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_profile_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_profile_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_profile_mode(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_frequency(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_format(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_name(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_buffer(ngx_conf_t *cf, void *post, void *data);
static char *ngx_http_profile_not_zero(ngx_conf_t *cf, void *post, void *data);
static char *ngx_http_profile_not_zero_msec(ngx_conf_t *cf, void *post,
    void *data);
static ngx_int_t ngx_http_profile_add_name(ngx_array_t *names,
    ngx_str_t *name);
static ngx_int_t ngx_http_profile_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_profile_init_headers(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static ngx_int_t ngx_http_profile_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_look(ngx_http_request_t *r);
static ngx_int_t ngx_http_profile_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_profile_init_process(ngx_cycle_t *cycle);
static void ngx_http_profile_exit_process(ngx_cycle_t *cycle);


/* the shortest name of an argument that may be a trigger */

static size_t  ngx_http_profile_min_arg;


static ngx_conf_post_t  ngx_http_profile_buffer_post =
    { ngx_http_profile_buffer };

static ngx_conf_post_t  ngx_http_profile_not_zero_post =
    { ngx_http_profile_not_zero };

static ngx_conf_post_t  ngx_http_profile_not_zero_msec_post =
    { ngx_http_profile_not_zero_msec };


static ngx_command_t  ngx_http_profile_commands[] = {

    { ngx_string("profile_endpoint"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, enable),
      NULL },

    { ngx_string("profile_allow"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_profile_allow,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, allow),
      NULL },

    { ngx_string("profile_if"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, condition),
      NULL },

    { ngx_string("profile_mode"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_mode,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_frequency"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_frequency,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_format"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_format,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_arg"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_name,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, arg),
      NULL },

    { ngx_string("profile_header"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_name,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, header),
      NULL },

    { ngx_string("profile_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, timeout),
      &ngx_http_profile_not_zero_msec_post },

    { ngx_string("profile_buffer"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_profile_loc_conf_t, buffer),
      &ngx_http_profile_buffer_post },

    { ngx_string("profile_max_captures"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_profile_main_conf_t, max_captures),
      &ngx_http_profile_not_zero_post },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_profile_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_profile_init,                 /* postconfiguration */

    ngx_http_profile_create_main_conf,     /* create main configuration */
    ngx_http_profile_init_main_conf,       /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_profile_create_loc_conf,      /* create location configuration */
    ngx_http_profile_merge_loc_conf        /* merge location configuration */
};


ngx_module_t  ngx_http_profile_module = {
    NGX_MODULE_V1,
    &ngx_http_profile_module_ctx,          /* module context */
    ngx_http_profile_commands,             /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_profile_init_module,          /* init module */
    ngx_http_profile_init_process,         /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_profile_exit_process,         /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* every request passes here: the common case is two comparisons */

static ngx_int_t
ngx_http_profile_handler(ngx_http_request_t *r)
{
    if (r->args.len < ngx_http_profile_min_arg
        && ngx_http_profile_nmarks == 0)
    {
        return NGX_DECLINED;
    }

    return ngx_http_profile_look(r);
}


__attribute__((noinline)) static ngx_int_t
ngx_http_profile_look(ngx_http_request_t *r)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    if (ngx_http_profile_find_arg(r, &pmcf->args) == NULL
        && ngx_http_get_module_ctx(r, ngx_http_profile_module) == NULL)
    {
        return NGX_DECLINED;
    }

    return ngx_http_profile_begin(r);
}


static void *
ngx_http_profile_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_profile_main_conf_t));
    if (pmcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&pmcf->args, cf->pool, 1, sizeof(ngx_str_t)) != NGX_OK
        || ngx_array_init(&pmcf->headers, cf->pool, 1, sizeof(ngx_str_t))
           != NGX_OK
        || ngx_array_init(&pmcf->locations, cf->pool, 4, sizeof(void *))
           != NGX_OK)
    {
        return NULL;
    }

    pmcf->max_captures = NGX_CONF_UNSET_UINT;

    return pmcf;
}


static char *
ngx_http_profile_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_profile_main_conf_t *pmcf = conf;

    ngx_conf_init_uint_value(pmcf->max_captures,
                             NGX_HTTP_PROFILE_MAX_CAPTURES);

    return NGX_CONF_OK;
}


static void *
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
     *     conf->header = { 0, NULL };
     */

    conf->enable = NGX_CONF_UNSET;
    conf->allow = NGX_CONF_UNSET_PTR;
    conf->condition = NGX_CONF_UNSET_PTR;
    conf->mode = NGX_CONF_UNSET_UINT;
    conf->frequency = NGX_CONF_UNSET_UINT;
    conf->timeout = NGX_CONF_UNSET_MSEC;
    conf->buffer = NGX_CONF_UNSET_SIZE;

    return conf;
}


static char *
ngx_http_profile_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_profile_loc_conf_t *prev = parent;
    ngx_http_profile_loc_conf_t *conf = child;

    ngx_http_profile_loc_conf_t   **plcf;
    ngx_http_profile_main_conf_t   *pmcf;

    ngx_conf_merge_value(conf->enable, prev->enable, 0);
    ngx_conf_merge_ptr_value(conf->allow, prev->allow, NULL);
    ngx_conf_merge_ptr_value(conf->condition, prev->condition, NULL);
    ngx_conf_merge_uint_value(conf->mode, prev->mode, PROF_MODE_WALL);
    ngx_conf_merge_uint_value(conf->frequency, prev->frequency,
                              PROF_FREQUENCY_DEFAULT);
    ngx_conf_merge_str_value(conf->arg, prev->arg, "performance_bar");
    ngx_conf_merge_str_value(conf->header, prev->header, "X-Profile");
    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 60000);
    ngx_conf_merge_size_value(conf->buffer, prev->buffer,
                              PROF_MEMORY_DEFAULT);

    if (conf->format == NULL) {
        conf->format = prev->format ? prev->format : prof_encoders[0];
    }

    if (conf->allow == NULL) {

        /* shared by all, through the parent */

        if (prev->allow == NGX_CONF_UNSET_PTR) {
            prev->allow = ngx_http_profile_allow_default(cf);
            if (prev->allow == NULL) {
                return NGX_CONF_ERROR;
            }
        }

        conf->allow = prev->allow;
    }

    if (!conf->enable) {
        return NGX_CONF_OK;
    }

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    plcf = ngx_array_push(&pmcf->locations);
    if (plcf == NULL) {
        return NGX_CONF_ERROR;
    }

    *plcf = conf;

    if (ngx_http_profile_add_name(&pmcf->args, &conf->arg) != NGX_OK
        || ngx_http_profile_add_name(&pmcf->headers, &conf->header) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_mode(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t  *value;

    if (plcf->mode != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_profile_parse_mode(&value[1], &plcf->mode) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be \"wall\" or \"cpu\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_frequency(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t  *value;

    if (plcf->frequency != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_profile_parse_frequency(&value[1], &plcf->frequency)
        != NGX_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be a number of samples a second "
                           "from %d to %d",
                           &value[1], &cmd->name,
                           PROF_FREQUENCY_MIN, PROF_FREQUENCY_MAX);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_format(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    u_char      *p, *last;
    ngx_str_t   *value;
    ngx_uint_t   i;
    u_char       names[NGX_MAX_CONF_ERRSTR];

    if (plcf->format) {
        return "is duplicate";
    }

    value = cf->args->elts;

    plcf->format = prof_encoder_find((char *) value[1].data, value[1].len);

    if (plcf->format) {
        return NGX_CONF_OK;
    }

    p = names;
    last = names + sizeof(names);

    for (i = 0; prof_encoders[i]; i++) {
        p = ngx_slprintf(p, last, "%s\"%s\"", i ? ", " : "",
                         prof_encoders[i]->name);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\" directive, "
                       "it must be one of %*s",
                       &value[1], &cmd->name, (size_t) (p - names), names);

    return NGX_CONF_ERROR;
}


/* a name of an argument or a header, or "off" */

static char *
ngx_http_profile_name(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char *p = conf;

    size_t      i;
    u_char      ch;
    ngx_str_t  *value, *name;

    name = (ngx_str_t *) (p + cmd->offset);

    if (name->data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 0; i < value[1].len; i++) {
        ch = value[1].data[i];

        if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
              || (ch >= '0' && ch <= '9') || ch == '_' || ch == '-'))
        {
            break;
        }
    }

    if (value[1].len == 0 || i < value[1].len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be a name of letters, digits, "
                           "\"_\" and \"-\", or \"off\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    *name = value[1];

    if (ngx_strcmp(name->data, "off") == 0) {
        name->len = 0;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_buffer(ngx_conf_t *cf, void *post, void *data)
{
    size_t *sp = data;

    if (*sp < PROF_MEMORY_MIN || *sp > PROF_MEMORY_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"profile_buffer\" must be from %dk to %dm",
                           PROF_MEMORY_MIN / 1024,
                           PROF_MEMORY_MAX / 1024 / 1024);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_not_zero(ngx_conf_t *cf, void *post, void *data)
{
    ngx_uint_t *np = data;

    return *np ? NGX_CONF_OK : "must not be zero";
}


static char *
ngx_http_profile_not_zero_msec(ngx_conf_t *cf, void *post, void *data)
{
    ngx_msec_t *msp = data;

    return *msp ? NGX_CONF_OK : "must not be zero";
}


static ngx_int_t
ngx_http_profile_add_name(ngx_array_t *names, ngx_str_t *name)
{
    ngx_str_t   *known;
    ngx_uint_t   i;

    if (name->len == 0) {
        return NGX_OK;
    }

    known = names->elts;

    for (i = 0; i < names->nelts; i++) {
        if (known[i].len == name->len
            && ngx_strncmp(known[i].data, name->data, name->len) == 0)
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


static ngx_int_t
ngx_http_profile_init(ngx_conf_t *cf)
{
    ngx_array_t                   *handlers;
    ngx_http_handler_pt           *h;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (pmcf->locations.nelts == 0) {
        return NGX_OK;
    }

    /*
     * Handlers of a phase run from the last to the first: as the first one,
     * this handler runs after realip's.
     */

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    handlers = &cmcf->phases[NGX_HTTP_POST_READ_PHASE].handlers;

    if (ngx_array_push(handlers) == NULL) {
        return NGX_ERROR;
    }

    h = handlers->elts;

    ngx_memmove(&h[1], &h[0],
                (handlers->nelts - 1) * sizeof(ngx_http_handler_pt));

    h[0] = ngx_http_profile_handler;

    if (ngx_http_profile_init_headers(cf, pmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_profile_filter_init(cf);
}


/*
 * Puts the trigger headers in nginx's own hash of request headers, so that
 * requests without them pay nothing.
 */

static ngx_int_t
ngx_http_profile_init_headers(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    u_char                     *lowcase;
    ngx_str_t                  *name;
    ngx_uint_t                  i;
    ngx_hash_t                 *hash;
    ngx_array_t                 keys;
    ngx_hash_elt_t             *elt;
    ngx_hash_key_t             *hk;
    ngx_hash_init_t             init;
    ngx_http_header_t          *header;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    hash = &cmcf->headers_in_hash;

    if (ngx_array_init(&keys, cf->temp_pool, 64, sizeof(ngx_hash_key_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* other modules may have added theirs: take what the hash holds */

    for (i = 0; i < hash->size; i++) {

        for (elt = hash->buckets[i]; elt && elt->value; /* void */ ) {

            hk = ngx_array_push(&keys);
            if (hk == NULL) {
                return NGX_ERROR;
            }

            hk->key.len = elt->len;
            hk->key.data = elt->name;
            hk->key_hash = ngx_hash_key(elt->name, elt->len);
            hk->value = elt->value;

            elt = (ngx_hash_elt_t *) ngx_align_ptr(&elt->name[0] + elt->len,
                                                   sizeof(void *));
        }
    }

    name = pmcf->headers.elts;

    for (i = 0; i < pmcf->headers.nelts; i++) {

        lowcase = ngx_pnalloc(cf->pool, name[i].len);
        header = ngx_pcalloc(cf->pool, sizeof(ngx_http_header_t));
        hk = ngx_array_push(&keys);

        if (lowcase == NULL || header == NULL || hk == NULL) {
            return NGX_ERROR;
        }

        hk->key_hash = ngx_hash_strlow(lowcase, name[i].data, name[i].len);
        hk->key.data = lowcase;
        hk->key.len = name[i].len;
        hk->value = header;

        if (ngx_hash_find(hash, hk->key_hash, lowcase, name[i].len)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value \"%V\" in \"profile_header\" "
                               "directive, the header has a meaning of "
                               "its own", &name[i]);
            return NGX_ERROR;
        }

        header->name = name[i];
        header->handler = ngx_http_profile_header;
    }

    init.hash = hash;
    init.key = ngx_hash_key_lc;
    init.max_size = 512;
    init.bucket_size = ngx_align(64, ngx_cacheline_size);
    init.name = "headers_in_hash";
    init.pool = cf->pool;
    init.temp_pool = NULL;

    return ngx_hash_init(&init, keys.elts, keys.nelts);
}


static ngx_int_t
ngx_http_profile_init_module(ngx_cycle_t *cycle)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    if (pmcf == NULL || pmcf->locations.nelts == 0) {
        return NGX_OK;
    }

    /* here, before the workers are forked, so that they share the tables */

    if (prof_process_init() != PROF_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "profile: cannot build the unwind tables");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_init_process(ngx_cycle_t *cycle)
{
    ngx_str_t                     *name;
    ngx_uint_t                     i, n;
    ngx_http_phase_handler_t      *ph;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_profile_main_conf_t  *pmcf;

    ngx_queue_init(&ngx_http_profile_live);

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    if (pmcf == NULL || pmcf->locations.nelts == 0) {
        return NGX_OK;
    }

    ngx_http_profile_min_arg = NGX_MAX_SIZE_T_VALUE;
    name = pmcf->args.elts;

    for (i = 0; i < pmcf->args.nelts; i++) {
        ngx_http_profile_min_arg = ngx_min(ngx_http_profile_min_arg,
                                           name[i].len);
    }

    /* the handlers of the precontent phase stand before those of content */

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);
    ph = cmcf->phase_engine.handlers;

    for (n = 0; ph[n].checker != ngx_http_core_content_phase; n++) {
        /* void */
    }

    pmcf->precontent = n
                       - cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers.nelts;

    return NGX_OK;
}


static void
ngx_http_profile_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_profile_disarm();
    ngx_http_profile_render_done();
    prof_process_done();
}
