
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Collects the roles of a configuration and makes one text of the roles of
 * each function.
 */


#include "roles/ngx_http_profile_roles.h"


/* columns: the text; the text for a function with several roles of the type */

typedef struct {
    const char  *one;
    const char  *several;
    const char  *detail;            /* before the detail */
} ngx_http_profile_words_t;


static ngx_int_t ngx_http_profile_collect(ngx_http_profile_roles_t *roles,
    ngx_cycle_t *cycle, const prof_unwind_t *u);
static int ngx_libc_cdecl ngx_http_profile_cmp_roles(const void *one,
    const void *two);
static void ngx_http_profile_functions(ngx_http_profile_roles_t *roles,
    const prof_unwind_t *u);
static ngx_int_t ngx_http_profile_publish(ngx_http_profile_roles_t *roles);
static void ngx_http_profile_role_text(ngx_http_profile_roles_t *roles,
    ngx_http_profile_function_t *f, u_char *text, size_t size);
static void ngx_http_profile_short_name(ngx_module_t *module,
    ngx_str_t *name);


static ngx_http_profile_words_t
    ngx_http_profile_words[NGX_HTTP_PROFILE_ROLE_MAX] =
{
    { "post-read handler", "handlers", "" },
    { "server rewrite handler", "handlers", "" },
    { "find config handler", "handlers", "" },
    { "rewrite handler", "handlers", "" },
    { "post-rewrite handler", "handlers", "" },
    { "preaccess handler", "handlers", "" },
    { "access handler", "handlers", "" },
    { "post-access handler", "handlers", "" },
    { "precontent handler", "handlers", "" },
    { "content handler", "handlers", "" },
    { "log handler", "handlers", "" },
    { "content handler", "content handlers", "" },
    { "header filter", "header filters", "" },
    { "body filter", "body filters", "" },
    { "request body filter", "request body filters", "" },
    { "init peer", "init peers", "" },
    { "variable", "variables", " $" },
    { "set variable", "set variables", " $" },
    { "request header", "request headers", " " },
    { "response header", "response headers", " " },
    { "copy response header", "copy response headers", " " },
    { "", "event actions", "" },
    { "", "load balancers", "" },
    { "directive", "directives", " " },
    { "", "configuration", "" },
    { "", "processes", "" }
};


void
ngx_http_profile_roles_init(ngx_cycle_t *cycle)
{
    const prof_unwind_t       *u;
    ngx_http_profile_roles_t   roles;

    ngx_memzero(&roles, sizeof(ngx_http_profile_roles_t));

    prof_profile_sources(ngx_http_profile_sources);
    ngx_http_profile_forget_roles();

    u = prof_process_unwind();

    if (u == NULL
        || ngx_http_profile_collect(&roles, cycle, u) != NGX_OK
        || ngx_http_profile_publish(&roles) != NGX_OK)
    {
        (void) prof_profile_roles(NULL, 0);

        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "profile: functions are not named by their roles");
    }

    ngx_free(roles.exports);
    ngx_free(roles.functions);
    ngx_free(roles.elts);
}


static ngx_int_t
ngx_http_profile_collect(ngx_http_profile_roles_t *roles, ngx_cycle_t *cycle,
    const prof_unwind_t *u)
{
    roles->elts = ngx_alloc(NGX_HTTP_PROFILE_MAX_ROLES
                            * sizeof(ngx_http_profile_role_t), cycle->log);
    if (roles->elts == NULL) {
        return NGX_ERROR;
    }

    ngx_http_profile_module_roles(roles, cycle);
    ngx_http_profile_conf_roles(roles, cycle);

    ngx_qsort(roles->elts, roles->n, sizeof(ngx_http_profile_role_t),
              ngx_http_profile_cmp_roles);

    roles->functions = ngx_calloc((roles->n + 1)
                                  * sizeof(ngx_http_profile_function_t),
                                  cycle->log);
    if (roles->functions == NULL) {
        return NGX_ERROR;
    }

    ngx_http_profile_functions(roles, u);

    if (ngx_http_profile_exports(roles) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_profile_own_roles(roles);

    return NGX_OK;
}


void
ngx_http_profile_add_role(ngx_http_profile_roles_t *roles, ngx_uint_t type,
    uintptr_t function, ngx_module_t *module, ngx_str_t *detail)
{
    ngx_http_profile_role_t  *role;

    if (function == 0 || roles->n == NGX_HTTP_PROFILE_MAX_ROLES) {
        return;
    }

    role = &roles->elts[roles->n++];

    role->function = function;
    role->type = type;
    role->module = module;

    if (detail) {
        role->detail = *detail;

    } else {
        ngx_str_null(&role->detail);
    }
}


static int ngx_libc_cdecl
ngx_http_profile_cmp_roles(const void *one, const void *two)
{
    const ngx_http_profile_role_t  *first, *second;

    first = one;
    second = two;

    if (first->function != second->function) {
        return first->function < second->function ? -1 : 1;
    }

    return (int) first->type - (int) second->type;
}


/* an address is a function only if an unwind entry begins there */

static void
ngx_http_profile_functions(ngx_http_profile_roles_t *roles,
    const prof_unwind_t *u)
{
    size_t                        len;
    ngx_uint_t                    i, n;
    ngx_http_profile_role_t      *role;
    ngx_http_profile_function_t  *f;

    role = roles->elts;

    for (i = 0; i < roles->n; i += n) {

        for (n = 1; i + n < roles->n; n++) {
            if (role[i + n].function != role[i].function) {
                break;
            }
        }

        if (prof_unwind_function(u, role[i].function, &len)
            != role[i].function)
        {
            continue;
        }

        f = &roles->functions[roles->nfunctions++];

        f->function = role[i].function;
        f->len = len;
        f->object = prof_unwind_object(u, f->function);
        f->first = i;
        f->n = n;
    }
}


static ngx_int_t
ngx_http_profile_publish(ngx_http_profile_roles_t *roles)
{
    int                           rc;
    u_char                       *text, *p;
    ngx_uint_t                    i;
    prof_role_t                  *list;
    ngx_http_profile_function_t  *f;

    list = ngx_alloc((roles->nfunctions + 1)
                     * (sizeof(prof_role_t) + NGX_HTTP_PROFILE_ROLE_TEXT),
                     ngx_cycle->log);
    if (list == NULL) {
        return NGX_ERROR;
    }

    text = (u_char *) &list[roles->nfunctions];

    for (i = 0; i < roles->nfunctions; i++) {
        f = &roles->functions[i];
        p = text + i * NGX_HTTP_PROFILE_ROLE_TEXT;

        ngx_http_profile_role_text(roles, f, p, NGX_HTTP_PROFILE_ROLE_TEXT);

        list[i].path = f->object->path;
        list[i].build_id = f->object->build_id;
        list[i].build_id_len = f->object->build_id_len;
        list[i].function = f->function - f->object->base;
        list[i].text = (char *) p;
        list[i].unit = f->claimed && f->module ? f->module->name : NULL;
    }

    rc = prof_profile_roles(list, roles->nfunctions);

    ngx_free(list);

    return rc == PROF_OK ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_profile_role_text(ngx_http_profile_roles_t *roles,
    ngx_http_profile_function_t *f, u_char *text, size_t size)
{
    u_char                    *p, *last;
    ngx_str_t                  module, *detail;
    ngx_uint_t                 i, several;
    ngx_http_profile_role_t   *role;
    ngx_http_profile_words_t  *words;

    role = &roles->elts[f->first];
    words = &ngx_http_profile_words[role->type];
    detail = &role->detail;

    several = 0;

    for (i = 1; i < f->n && role[i].type == role->type; i++) {

        if (role[i].detail.len != detail->len
            || ngx_strncmp(role[i].detail.data, detail->data, detail->len)
               != 0)
        {
            several = 1;
        }
    }

    ngx_str_null(&module);

    if (f->module) {
        ngx_http_profile_short_name(f->module, &module);
    }

    last = text + size - 1;

    p = ngx_slprintf(text, last, "%V%s%s", &module, module.len ? " " : "",
                     several ? words->several : words->one);

    if (!several) {
        p = ngx_slprintf(p, last, "%s%V", words->detail, detail);
    }

    *p = '\0';
}


/* "ngx_http_gzip_filter_module": "gzip" */

static void
ngx_http_profile_short_name(ngx_module_t *module, ngx_str_t *name)
{
    size_t       len;
    ngx_uint_t   i;

    static ngx_str_t  prefixes[] = {
        ngx_string("ngx_http_"), ngx_string("ngx_"), ngx_null_string
    };

    static ngx_str_t  suffixes[] = {
        ngx_string("_module"), ngx_string("_filter"), ngx_null_string
    };

    name->data = (u_char *) module->name;
    name->len = ngx_strlen(name->data);

    for (i = 0; suffixes[i].len; i++) {
        len = suffixes[i].len;

        if (name->len > len
            && ngx_strncmp(name->data + name->len - len, suffixes[i].data,
                           len)
               == 0)
        {
            name->len -= len;
        }
    }

    for (i = 0; prefixes[i].len; i++) {
        len = prefixes[i].len;

        if (name->len > len
            && ngx_strncmp(name->data, prefixes[i].data, len) == 0)
        {
            name->data += len;
            name->len -= len;
            break;
        }
    }
}
