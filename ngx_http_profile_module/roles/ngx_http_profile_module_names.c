
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the modules of phase handlers and filters.  nginx stores plain function
 * pointers, and most of the functions are static functions of a stripped
 * binary.  So this file watches the modules while they register: it wraps each
 * module's postconfiguration hook, and checks which handlers the hook has added
 * to the phases, and which filters are new at the top of their chains.
 *
 * The hooks are restored when the last one has run, or when the configuration
 * is invalid and its cycle is destroyed.
 */


#include "roles/ngx_http_profile_roles.h"


#define NGX_HTTP_PROFILE_MAX_HOOKS  256

/* chains: header filters, body filters, filters of request bodies */

#define NGX_HTTP_PROFILE_FILTERS    3


typedef struct {
    ngx_http_module_t     *ctx;
    char                  *name;
    ngx_int_t            (*postconfiguration)(ngx_conf_t *cf);
} ngx_http_profile_hook_t;


static ngx_int_t ngx_http_profile_hook(ngx_conf_t *cf);
static ngx_int_t ngx_http_profile_note(ngx_http_profile_main_conf_t *pmcf,
    ngx_http_core_main_conf_t *cmcf, ngx_uint_t *before, char *name);
static ngx_int_t ngx_http_profile_note_filters(
    ngx_http_profile_main_conf_t *pmcf, uintptr_t *before, char *name);
static void ngx_http_profile_filters(uintptr_t *top);
static ngx_int_t ngx_http_profile_note_one(ngx_http_profile_main_conf_t *pmcf,
    uintptr_t handler, ngx_uint_t role, char *name);
static void ngx_http_profile_unhook(void *data);


/* used only while a configuration is read */

static ngx_http_profile_hook_t  ngx_http_profile_hooks[
                                                 NGX_HTTP_PROFILE_MAX_HOOKS];
static ngx_uint_t               ngx_http_profile_nhooks;
static ngx_uint_t               ngx_http_profile_next_hook;


ngx_int_t
ngx_http_profile_watch_modules(ngx_conf_t *cf)
{
    ngx_uint_t                     i;
    ngx_module_t                  *module;
    ngx_http_module_t             *ctx;
    ngx_pool_cleanup_t            *cln;
    ngx_http_profile_hook_t       *hook;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (ngx_array_init(&pmcf->names, cf->pool, 32,
                       sizeof(ngx_http_profile_name_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->cycle->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_profile_unhook;

    ngx_http_profile_nhooks = 0;
    ngx_http_profile_next_hook = 0;

    for (i = 0; cf->cycle->modules[i]; i++) {

        module = cf->cycle->modules[i];

        if (module->type != NGX_HTTP_MODULE) {
            continue;
        }

        ctx = module->ctx;

        if (ctx->postconfiguration == NULL
            || ngx_http_profile_nhooks == NGX_HTTP_PROFILE_MAX_HOOKS)
        {
            continue;
        }

        hook = &ngx_http_profile_hooks[ngx_http_profile_nhooks++];

        hook->ctx = ctx;
        hook->name = module->name;
        hook->postconfiguration = ctx->postconfiguration;

        ctx->postconfiguration = ngx_http_profile_hook;
    }

    return ngx_http_profile_watch_functions(cf);
}


/* the name of the module that registered the handler, or NULL */

char *
ngx_http_profile_module_name(ngx_http_profile_main_conf_t *pmcf,
    ngx_http_handler_pt handler)
{
    ngx_uint_t                i;
    ngx_http_profile_name_t  *name;

    name = pmcf->names.elts;

    for (i = 0; i < pmcf->names.nelts; i++) {
        if (name[i].handler == (uintptr_t) handler) {
            return name[i].module;
        }
    }

    return NULL;
}


/* nginx calls the hooks in the order of the modules */

static ngx_int_t
ngx_http_profile_hook(ngx_conf_t *cf)
{
    ngx_int_t                      rc;
    ngx_uint_t                     i;
    ngx_http_profile_hook_t       *hook;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_profile_main_conf_t  *pmcf;
    ngx_uint_t                     before[NGX_HTTP_LOG_PHASE + 1];
    uintptr_t                      top[NGX_HTTP_PROFILE_FILTERS];

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    hook = &ngx_http_profile_hooks[ngx_http_profile_next_hook++];

    for (i = 0; i <= NGX_HTTP_LOG_PHASE; i++) {
        before[i] = cmcf->phases[i].handlers.nelts;
    }

    ngx_http_profile_filters(top);

    rc = hook->postconfiguration(cf);

    if (rc == NGX_OK) {
        rc = ngx_http_profile_note(pmcf, cmcf, before, hook->name);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_profile_note_filters(pmcf, top, hook->name);
    }

    if (ngx_http_profile_next_hook == ngx_http_profile_nhooks) {
        ngx_http_profile_unhook(NULL);
    }

    return rc;
}


static ngx_int_t
ngx_http_profile_note(ngx_http_profile_main_conf_t *pmcf,
    ngx_http_core_main_conf_t *cmcf, ngx_uint_t *before, char *name)
{
    ngx_uint_t            i, n;
    ngx_http_handler_pt  *h;

    for (i = 0; i <= NGX_HTTP_LOG_PHASE; i++) {

        h = cmcf->phases[i].handlers.elts;

        for (n = before[i]; n < cmcf->phases[i].handlers.nelts; n++) {

            if (ngx_http_profile_note_one(pmcf, (uintptr_t) h[n], i, name)
                != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_note_filters(ngx_http_profile_main_conf_t *pmcf,
    uintptr_t *before, char *name)
{
    ngx_uint_t  i;
    uintptr_t   top[NGX_HTTP_PROFILE_FILTERS];

    ngx_http_profile_filters(top);

    for (i = 0; i < NGX_HTTP_PROFILE_FILTERS; i++) {

        if (top[i] != before[i]
            && ngx_http_profile_note_one(pmcf, top[i],
                                     NGX_HTTP_PROFILE_ROLE_HEADER_FILTER + i,
                                     name)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_http_profile_filters(uintptr_t *top)
{
    top[0] = (uintptr_t) ngx_http_top_header_filter;
    top[1] = (uintptr_t) ngx_http_top_body_filter;
    top[2] = (uintptr_t) ngx_http_top_request_body_filter;
}


static ngx_int_t
ngx_http_profile_note_one(ngx_http_profile_main_conf_t *pmcf,
    uintptr_t handler, ngx_uint_t role, char *name)
{
    ngx_uint_t                i;
    ngx_http_profile_name_t  *entry;

    /* a module may move the handlers of others, as this module does */

    entry = pmcf->names.elts;

    for (i = 0; i < pmcf->names.nelts; i++) {
        if (entry[i].handler == handler && entry[i].role == role) {
            return NGX_OK;
        }
    }

    entry = ngx_array_push(&pmcf->names);
    if (entry == NULL) {
        return NGX_ERROR;
    }

    entry->handler = handler;
    entry->role = role;
    entry->module = name;

    return NGX_OK;
}


static void
ngx_http_profile_unhook(void *data)
{
    ngx_uint_t                i;
    ngx_http_profile_hook_t  *hook;

    for (i = 0; i < ngx_http_profile_nhooks; i++) {
        hook = &ngx_http_profile_hooks[i];

        if (hook->ctx->postconfiguration == ngx_http_profile_hook) {
            hook->ctx->postconfiguration = hook->postconfiguration;
        }
    }

    ngx_http_profile_nhooks = 0;

    ngx_http_profile_unwatch_functions();
}
