
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Roles by the structures that each module exports: its hooks, directives,
 * and the functions of its context, which depend on the type of the module.
 */


#include "roles/ngx_http_profile_roles.h"


#define ngx_http_profile_struct_role(type, text, s, member)                   \
    {                                                                         \
        static ngx_str_t  detail = ngx_string(text);                          \
                                                                              \
        ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_##type,        \
                                  (uintptr_t) (s)->member, module, &detail);  \
    }


static void ngx_http_profile_hook_roles(ngx_http_profile_roles_t *roles,
    ngx_module_t *module);
static void ngx_http_profile_http_roles(ngx_http_profile_roles_t *roles,
    ngx_module_t *module);
static void ngx_http_profile_event_roles(ngx_http_profile_roles_t *roles,
    ngx_module_t *module);


void
ngx_http_profile_module_roles(ngx_http_profile_roles_t *roles,
    ngx_cycle_t *cycle)
{
    ngx_uint_t          i;
    ngx_module_t       *module;
    ngx_command_t      *cmd;
    ngx_core_module_t  *ctx;

    for (i = 0; cycle->modules[i]; i++) {
        module = cycle->modules[i];

        ngx_http_profile_hook_roles(roles, module);

        for (cmd = module->commands; cmd && cmd->name.len; cmd++) {
            ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_DIRECTIVE,
                                      (uintptr_t) cmd->set, module,
                                      &cmd->name);
        }

        if (module->ctx == NULL) {
            continue;
        }

        switch (module->type) {

        case NGX_HTTP_MODULE:
            ngx_http_profile_http_roles(roles, module);
            break;

        case NGX_EVENT_MODULE:
            ngx_http_profile_event_roles(roles, module);
            break;

        case NGX_CORE_MODULE:
            ctx = module->ctx;

            ngx_http_profile_struct_role(CONF, "create configuration", ctx,
                                         create_conf);
            ngx_http_profile_struct_role(CONF, "init configuration", ctx,
                                         init_conf);
            break;
        }
    }
}


static void
ngx_http_profile_hook_roles(ngx_http_profile_roles_t *roles,
    ngx_module_t *module)
{
    ngx_http_profile_struct_role(PROCESS, "init master", module, init_master);
    ngx_http_profile_struct_role(PROCESS, "init module", module, init_module);
    ngx_http_profile_struct_role(PROCESS, "init process", module,
                                 init_process);
    ngx_http_profile_struct_role(PROCESS, "init thread", module, init_thread);
    ngx_http_profile_struct_role(PROCESS, "exit thread", module, exit_thread);
    ngx_http_profile_struct_role(PROCESS, "exit process", module,
                                 exit_process);
    ngx_http_profile_struct_role(PROCESS, "exit master", module, exit_master);
}


static void
ngx_http_profile_http_roles(ngx_http_profile_roles_t *roles,
    ngx_module_t *module)
{
    ngx_http_module_t  *ctx;

    ctx = module->ctx;

    ngx_http_profile_struct_role(CONF, "preconfiguration", ctx,
                                 preconfiguration);
    ngx_http_profile_struct_role(CONF, "postconfiguration", ctx,
                                 postconfiguration);
    ngx_http_profile_struct_role(CONF, "create main configuration", ctx,
                                 create_main_conf);
    ngx_http_profile_struct_role(CONF, "init main configuration", ctx,
                                 init_main_conf);
    ngx_http_profile_struct_role(CONF, "create server configuration", ctx,
                                 create_srv_conf);
    ngx_http_profile_struct_role(CONF, "merge server configuration", ctx,
                                 merge_srv_conf);
    ngx_http_profile_struct_role(CONF, "create location configuration", ctx,
                                 create_loc_conf);
    ngx_http_profile_struct_role(CONF, "merge location configuration", ctx,
                                 merge_loc_conf);
}


static void
ngx_http_profile_event_roles(ngx_http_profile_roles_t *roles,
    ngx_module_t *module)
{
    ngx_event_module_t   *ctx;
    ngx_event_actions_t  *actions;

    ctx = module->ctx;
    actions = &ctx->actions;

    ngx_http_profile_struct_role(CONF, "create configuration", ctx,
                                 create_conf);
    ngx_http_profile_struct_role(CONF, "init configuration", ctx, init_conf);

    ngx_http_profile_struct_role(EVENTS, "add event", actions, add);
    ngx_http_profile_struct_role(EVENTS, "delete event", actions, del);

    /* most modules have the same functions here */

    if (actions->enable != actions->add) {
        ngx_http_profile_struct_role(EVENTS, "enable event", actions, enable);
    }

    if (actions->disable != actions->del) {
        ngx_http_profile_struct_role(EVENTS, "disable event", actions,
                                     disable);
    }

    ngx_http_profile_struct_role(EVENTS, "add connection", actions, add_conn);
    ngx_http_profile_struct_role(EVENTS, "delete connection", actions,
                                 del_conn);
    ngx_http_profile_struct_role(EVENTS, "notify", actions, notify);
    ngx_http_profile_struct_role(EVENTS, "process events", actions,
                                 process_events);
    ngx_http_profile_struct_role(EVENTS, "init", actions, init);
    ngx_http_profile_struct_role(EVENTS, "done", actions, done);
}
