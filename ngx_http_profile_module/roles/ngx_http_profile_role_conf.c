
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Roles by the configuration: handlers of phases and locations, filters,
 * variables, headers, load balancers.
 */


#include "roles/ngx_http_profile_roles.h"


typedef void (*ngx_http_profile_hash_pt)(ngx_http_profile_roles_t *roles,
    void *data);


static void ngx_http_profile_registered_roles(ngx_http_profile_roles_t *roles,
    ngx_cycle_t *cycle);
static void ngx_http_profile_server_roles(ngx_http_profile_roles_t *roles,
    ngx_http_core_srv_conf_t *cscf);
static void ngx_http_profile_location_roles(ngx_http_profile_roles_t *roles,
    ngx_http_core_loc_conf_t *clcf);
static void ngx_http_profile_tree_roles(ngx_http_profile_roles_t *roles,
    ngx_http_location_tree_node_t *node);
static void ngx_http_profile_variable_roles(ngx_http_profile_roles_t *roles,
    ngx_http_core_main_conf_t *cmcf);
static void ngx_http_profile_variable_role(ngx_http_profile_roles_t *roles,
    void *data);
static void ngx_http_profile_upstream_roles(ngx_http_profile_roles_t *roles,
    ngx_http_upstream_main_conf_t *umcf);
static void ngx_http_profile_request_header_role(
    ngx_http_profile_roles_t *roles, void *data);
static void ngx_http_profile_response_header_role(
    ngx_http_profile_roles_t *roles, void *data);
static void ngx_http_profile_hash_roles(ngx_http_profile_roles_t *roles,
    ngx_hash_t *hash, ngx_http_profile_hash_pt add);


void
ngx_http_profile_conf_roles(ngx_http_profile_roles_t *roles,
    ngx_cycle_t *cycle)
{
    ngx_uint_t                       i;
    ngx_http_core_srv_conf_t       **cscf;
    ngx_http_core_main_conf_t       *cmcf;
    ngx_http_upstream_main_conf_t   *umcf;

    ngx_http_profile_registered_roles(roles, cycle);

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);

    if (cmcf == NULL) {
        return;
    }

    cscf = cmcf->servers.elts;

    for (i = 0; i < cmcf->servers.nelts; i++) {
        ngx_http_profile_server_roles(roles, cscf[i]);
    }

    ngx_http_profile_variable_roles(roles, cmcf);

    ngx_http_profile_hash_roles(roles, &cmcf->headers_in_hash,
                                ngx_http_profile_request_header_role);

    umcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_upstream_module);
    if (umcf) {
        ngx_http_profile_upstream_roles(roles, umcf);
    }
}


/* handlers and filters whose registration was watched */

static void
ngx_http_profile_registered_roles(ngx_http_profile_roles_t *roles,
    ngx_cycle_t *cycle)
{
    ngx_uint_t                     i, n;
    ngx_module_t                  *module;
    ngx_http_profile_name_t       *name;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    if (pmcf == NULL) {
        return;
    }

    name = pmcf->names.elts;

    for (i = 0; i < pmcf->names.nelts; i++) {

        for (n = 0; cycle->modules[n]; n++) {
            module = cycle->modules[n];

            if (module->name == name[i].module) {
                ngx_http_profile_add_role(roles, name[i].role,
                                          name[i].handler, module, NULL);
                break;
            }
        }
    }
}


static void
ngx_http_profile_server_roles(ngx_http_profile_roles_t *roles,
    ngx_http_core_srv_conf_t *cscf)
{
    ngx_http_core_loc_conf_t  *clcf, **named;

    clcf = cscf->ctx->loc_conf[ngx_http_core_module.ctx_index];

    ngx_http_profile_location_roles(roles, clcf);

    for (named = cscf->named_locations; named && *named; named++) {
        ngx_http_profile_location_roles(roles, *named);
    }
}


static void
ngx_http_profile_location_roles(ngx_http_profile_roles_t *roles,
    ngx_http_core_loc_conf_t *clcf)
{
    uintptr_t                   handler;
    ngx_uint_t                  i;
#if (NGX_PCRE)
    ngx_http_core_loc_conf_t  **regex;
#endif

    handler = (uintptr_t) clcf->handler;

    /* thousands of locations have the same few handlers */

    for (i = roles->n; i; i--) {
        if (roles->elts[i - 1].type != NGX_HTTP_PROFILE_ROLE_CONTENT) {
            i = 0;
            break;
        }

        if (roles->elts[i - 1].function == handler) {
            break;
        }
    }

    if (i == 0) {
        ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_CONTENT,
                                  handler, NULL, NULL);
    }

    ngx_http_profile_tree_roles(roles, clcf->static_locations);

#if (NGX_PCRE)

    for (regex = clcf->regex_locations; regex && *regex; regex++) {
        ngx_http_profile_location_roles(roles, *regex);
    }

#endif
}


static void
ngx_http_profile_tree_roles(ngx_http_profile_roles_t *roles,
    ngx_http_location_tree_node_t *node)
{
    for ( /* void */ ; node; node = node->right) {

        if (node->exact) {
            ngx_http_profile_location_roles(roles, node->exact);
        }

        if (node->inclusive) {
            ngx_http_profile_location_roles(roles, node->inclusive);
        }

        ngx_http_profile_tree_roles(roles, node->left);
        ngx_http_profile_tree_roles(roles, node->tree);
    }
}


static void
ngx_http_profile_variable_roles(ngx_http_profile_roles_t *roles,
    ngx_http_core_main_conf_t *cmcf)
{
    ngx_uint_t            i;
    ngx_http_variable_t  *v;

    ngx_http_profile_hash_roles(roles, &cmcf->variables_hash,
                                ngx_http_profile_variable_role);

    /* the hash does not contain all variables of the configuration */

    v = cmcf->variables.elts;

    for (i = 0; i < cmcf->variables.nelts; i++) {
        ngx_http_profile_variable_role(roles, &v[i]);
    }

    v = cmcf->prefix_variables.elts;

    for (i = 0; i < cmcf->prefix_variables.nelts; i++) {
        ngx_http_profile_variable_role(roles, &v[i]);
    }
}


static void
ngx_http_profile_variable_role(ngx_http_profile_roles_t *roles, void *data)
{
    ngx_http_variable_t *v = data;

    ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_VARIABLE,
                              (uintptr_t) v->get_handler, NULL, &v->name);
    ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_SETTER,
                              (uintptr_t) v->set_handler, NULL, &v->name);
}


static void
ngx_http_profile_upstream_roles(ngx_http_profile_roles_t *roles,
    ngx_http_upstream_main_conf_t *umcf)
{
    ngx_uint_t                      i;
    ngx_http_upstream_srv_conf_t  **uscf;

    static ngx_str_t  init = ngx_string("init upstream");

    ngx_http_profile_hash_roles(roles, &umcf->headers_in_hash,
                                ngx_http_profile_response_header_role);

    uscf = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {
        ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_UPSTREAM,
                                  (uintptr_t) uscf[i]->peer.init_upstream,
                                  NULL, &init);
        ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_PEER,
                                  (uintptr_t) uscf[i]->peer.init, NULL, NULL);
    }
}


static void
ngx_http_profile_request_header_role(ngx_http_profile_roles_t *roles,
    void *data)
{
    ngx_http_header_t *h = data;

    ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_REQUEST_HEADER,
                              (uintptr_t) h->handler, NULL, &h->name);
}


static void
ngx_http_profile_response_header_role(ngx_http_profile_roles_t *roles,
    void *data)
{
    ngx_http_upstream_header_t *h = data;

    ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_RESPONSE_HEADER,
                              (uintptr_t) h->handler, NULL, &h->name);
    ngx_http_profile_add_role(roles, NGX_HTTP_PROFILE_ROLE_COPY_HEADER,
                              (uintptr_t) h->copy_handler, NULL, &h->name);
}


/* the layout is that of ngx_hash_find() */

static void
ngx_http_profile_hash_roles(ngx_http_profile_roles_t *roles, ngx_hash_t *hash,
    ngx_http_profile_hash_pt add)
{
    ngx_uint_t       i;
    ngx_hash_elt_t  *elt;

    for (i = 0; i < hash->size; i++) {

        elt = hash->buckets[i];

        while (elt && elt->value) {
            add(roles, elt->value);

            elt = (ngx_hash_elt_t *) ngx_align_ptr(&elt->name[0] + elt->len,
                                                   sizeof(void *));
        }
    }
}
