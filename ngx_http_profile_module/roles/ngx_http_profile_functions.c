
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names of the functions of scripts that make the content of locations:
 * "js_content main.hello", "perl Hello::handler".  The modules of the
 * interpreters keep these names in structures of their own, so this file
 * watches their directives while a configuration is read.
 *
 * The directives are restored together with the hooks of modules, see
 * ngx_http_profile_module_names.c.
 */


#include "roles/ngx_http_profile_roles.h"


#define NGX_HTTP_PROFILE_FUNCTION_MAX  128


typedef struct {
    ngx_str_t       directive;
    ngx_command_t  *cmd;            /* NULL: not watched */
    char         *(*set)(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
} ngx_http_profile_function_hook_t;


typedef struct {
    ngx_http_core_loc_conf_t  *clcf;
    ngx_str_t                  name;
} ngx_http_profile_content_function_t;


static void ngx_http_profile_hook_directive(ngx_command_t *cmd);
static char *ngx_http_profile_function_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_note_function(ngx_conf_t *cf);
static size_t ngx_http_profile_function_len(ngx_str_t *value);


/* used only while a configuration is read */

static ngx_http_profile_function_hook_t  ngx_http_profile_function_hooks[] = {
    { ngx_string("js_content"), NULL, NULL },
    { ngx_string("perl"), NULL, NULL },
    { ngx_null_string, NULL, NULL }
};


ngx_int_t
ngx_http_profile_watch_functions(ngx_conf_t *cf)
{
    ngx_uint_t                      i;
    ngx_module_t                  **modules;
    ngx_command_t                  *cmd;
    ngx_http_profile_main_conf_t   *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (ngx_array_init(&pmcf->functions, cf->pool, 4,
                       sizeof(ngx_http_profile_content_function_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    modules = cf->cycle->modules;

    for (i = 0; modules[i]; i++) {

        if (modules[i]->type != NGX_HTTP_MODULE) {
            continue;
        }

        for (cmd = modules[i]->commands; cmd && cmd->name.len; cmd++) {
            ngx_http_profile_hook_directive(cmd);
        }
    }

    return NGX_OK;
}


static void
ngx_http_profile_hook_directive(ngx_command_t *cmd)
{
    ngx_http_profile_function_hook_t  *hook;

    for (hook = ngx_http_profile_function_hooks; hook->directive.len; hook++) {

        if (hook->cmd == NULL
            && hook->directive.len == cmd->name.len
            && ngx_strncmp(hook->directive.data, cmd->name.data, cmd->name.len)
               == 0)
        {
            hook->cmd = cmd;
            hook->set = cmd->set;
            cmd->set = ngx_http_profile_function_set;
        }
    }
}


void
ngx_http_profile_unwatch_functions(void)
{
    ngx_http_profile_function_hook_t  *hook;

    for (hook = ngx_http_profile_function_hooks; hook->directive.len; hook++) {

        if (hook->cmd && hook->cmd->set == ngx_http_profile_function_set) {
            hook->cmd->set = hook->set;
        }

        hook->cmd = NULL;
    }
}


static char *
ngx_http_profile_function_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                              *rc;
    ngx_http_profile_function_hook_t  *hook;

    for (hook = ngx_http_profile_function_hooks; hook->cmd != cmd; hook++) {
        /* void */
    }

    rc = hook->set(cf, cmd, conf);

    return (rc == NGX_CONF_OK) ? ngx_http_profile_note_function(cf) : rc;
}


static char *
ngx_http_profile_note_function(ngx_conf_t *cf)
{
    ngx_str_t                            *value;
    ngx_http_profile_main_conf_t         *pmcf;
    ngx_http_profile_content_function_t  *f;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    f = ngx_array_push(&pmcf->functions);
    if (f == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    f->clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    f->name.data = ngx_pnalloc(cf->pool,
                               value[0].len + 1
                               + NGX_HTTP_PROFILE_FUNCTION_MAX);
    if (f->name.data == NULL) {
        return NGX_CONF_ERROR;
    }

    f->name.len = ngx_sprintf(f->name.data, "%V %*s", &value[0],
                              ngx_http_profile_function_len(&value[1]),
                              value[1].data)
                  - f->name.data;

    return NGX_CONF_OK;
}


/* length of a name; code such as "sub {...}" has only its first word */

static size_t
ngx_http_profile_function_len(ngx_str_t *value)
{
    u_char  ch;
    size_t  i;

    for (i = 0; i < value->len && i < NGX_HTTP_PROFILE_FUNCTION_MAX; i++) {
        ch = value->data[i];

        if (ch <= ' ' || ch == '{' || ch == '(') {
            break;
        }
    }

    return i;
}


ngx_str_t *
ngx_http_profile_function(ngx_http_request_t *r)
{
    ngx_uint_t                            i;
    ngx_http_core_loc_conf_t             *clcf;
    ngx_http_profile_main_conf_t         *pmcf;
    ngx_http_profile_content_function_t  *f;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    f = pmcf->functions.elts;

    /* the last directive of a location applies */

    for (i = pmcf->functions.nelts; i > 0; i--) {
        if (f[i - 1].clcf == clcf) {
            return &f[i - 1].name;
        }
    }

    return NULL;
}
