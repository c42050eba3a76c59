
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Roles: what nginx uses functions for.  Most functions of nginx and of its
 * modules are static functions of stripped files, which have no symbols.  But
 * nginx calls many of them through pointers, and the place of a pointer tells
 * the purpose of its function: "gzip body filter", "variable $ssl_protocol".
 *
 * Roles are collected once for each configuration, and names of profiles are
 * made of them (prof_role.h).
 *
 * Context: the master process, or the event loop of a worker.
 */


#ifndef _NGX_HTTP_PROFILE_ROLES_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ROLES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/ngx_http_profile_conf.h"


/* limit of collected roles */

#define NGX_HTTP_PROFILE_MAX_ROLES  8192


/* longer texts of a role are cut */

#define NGX_HTTP_PROFILE_ROLE_TEXT  128


/*
 * Types of roles; the first ones are the phases of nginx.  A function with
 * roles of several types has the name of the first type.
 */

typedef enum {
    NGX_HTTP_PROFILE_ROLE_CONTENT = NGX_HTTP_LOG_PHASE + 1,

    /* the order of the chains in ngx_http_profile_module_names.c */

    NGX_HTTP_PROFILE_ROLE_HEADER_FILTER,
    NGX_HTTP_PROFILE_ROLE_BODY_FILTER,
    NGX_HTTP_PROFILE_ROLE_REQUEST_FILTER,

    NGX_HTTP_PROFILE_ROLE_PEER,
    NGX_HTTP_PROFILE_ROLE_VARIABLE,
    NGX_HTTP_PROFILE_ROLE_SETTER,
    NGX_HTTP_PROFILE_ROLE_REQUEST_HEADER,
    NGX_HTTP_PROFILE_ROLE_RESPONSE_HEADER,
    NGX_HTTP_PROFILE_ROLE_COPY_HEADER,
    NGX_HTTP_PROFILE_ROLE_EVENTS,
    NGX_HTTP_PROFILE_ROLE_UPSTREAM,
    NGX_HTTP_PROFILE_ROLE_DIRECTIVE,
    NGX_HTTP_PROFILE_ROLE_CONF,
    NGX_HTTP_PROFILE_ROLE_PROCESS,
    NGX_HTTP_PROFILE_ROLE_MAX
} ngx_http_profile_role_e;


typedef struct {
    uintptr_t       function;
    ngx_uint_t      type;           /* ngx_http_profile_role_e */
    ngx_module_t   *module;         /* NULL: unknown */
    ngx_str_t       detail;         /* "ssl_protocol"; not copied; or empty */
} ngx_http_profile_role_t;


/* a function that has roles */

typedef struct {
    uintptr_t             function;
    size_t                len;
    const prof_object_t  *object;
    ngx_module_t         *module;   /* module of its source; NULL: unknown */
    ngx_uint_t            first;    /* its roles */
    ngx_uint_t            n;
    unsigned              shared:1; /* visible to others, or used by several
                                       modules: its module may be another */
    unsigned              claimed:1;    /* a role tells the module */
    unsigned              scanned:1;
} ngx_http_profile_function_t;


typedef struct {
    ngx_http_profile_role_t      *elts;
    ngx_uint_t                    n;

    /* sorted by address */

    ngx_http_profile_function_t  *functions;
    ngx_uint_t                    nfunctions;

    /* symbols that the objects of these functions export, sorted */

    uintptr_t                    *exports;
    ngx_uint_t                    nexports;
} ngx_http_profile_roles_t;


PROF_HIDDEN_BEGIN

/*
 * ngx_http_profile_roles.c
 *
 * Replaces the roles of this process by those of the configuration.  If memory
 * is short, the roles are missing.
 */
void ngx_http_profile_roles_init(ngx_cycle_t *cycle);

/* adds a role; ignores a NULL function, and roles beyond the limit */
void ngx_http_profile_add_role(ngx_http_profile_roles_t *roles,
    ngx_uint_t type, uintptr_t function, ngx_module_t *module,
    ngx_str_t *detail);

/* ngx_http_profile_role_structs.c: roles by the structures of modules */
void ngx_http_profile_module_roles(ngx_http_profile_roles_t *roles,
    ngx_cycle_t *cycle);

/* ngx_http_profile_role_conf.c: roles by the configuration */
void ngx_http_profile_conf_roles(ngx_http_profile_roles_t *roles,
    ngx_cycle_t *cycle);

/* ngx_http_profile_sources.c: the source files of nginx */
extern const prof_source_file_t  ngx_http_profile_sources[];

/*
 * ngx_http_profile_exports.c: finds the exports.  Returns NGX_OK, or NGX_ERROR
 * if memory is short or an object has no table of symbols.
 * ngx_http_profile_exported() returns whether the function is exported.
 */
ngx_int_t ngx_http_profile_exports(ngx_http_profile_roles_t *roles);
ngx_uint_t ngx_http_profile_exported(ngx_http_profile_roles_t *roles,
    uintptr_t function);

/* ngx_http_profile_role_owner.c: finds the modules of all functions */
void ngx_http_profile_own_roles(ngx_http_profile_roles_t *roles);

/*
 * ngx_http_profile_seen_roles.c: roles that only requests show
 *
 * nginx calls the function for this purpose, "process header"; the module is
 * "proxy", or empty if it is unknown.
 */
void ngx_http_profile_see_role(uintptr_t function, ngx_str_t *module,
    const char *purpose);

/* forgets all roles that were seen */
void ngx_http_profile_forget_roles(void);

/* ngx_http_profile_module_names.c: the modules of phase handlers and filters */

/* begins to watch which module registers which handler */
ngx_int_t ngx_http_profile_watch_modules(ngx_conf_t *cf);

/* returns the name of the module that registered the handler, or NULL */
char *ngx_http_profile_module_name(ngx_http_profile_main_conf_t *pmcf,
    ngx_http_handler_pt handler);

/*
 * ngx_http_profile_functions.c: the function of a script that makes the
 * content of the request's location, "js_content main.hello", or NULL.  The
 * directives are watched while a configuration is read.
 */
ngx_str_t *ngx_http_profile_function(ngx_http_request_t *r);
ngx_int_t ngx_http_profile_watch_functions(ngx_conf_t *cf);
void ngx_http_profile_unwatch_functions(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ROLES_H_INCLUDED_ */
