
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The console: pages and data below one location.
 *
 * A request to the console is a call (call/ngx_http_profile_call.h).  Its
 * path, relative to the console's URL, is looked up in tables of routes, and
 * the handler of the route answers the call.  Each room has a table of its
 * own; main/ sets the list of all tables before any request is served.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_


#include "call/ngx_http_profile_call.h"


PROF_HIDDEN_BEGIN

/*
 * ngx_http_profile_route.c: all tables of routes, in the order of the list
 * "help"; the last pointer is NULL
 */
extern const ngx_http_profile_route_t  **ngx_http_profile_routes;

/* ngx_http_profile_console.c: the console's own table */
extern const ngx_http_profile_route_t  ngx_http_profile_console_routes[];

/* ngx_http_profile_turns_page.c */
extern const ngx_http_profile_route_t  ngx_http_profile_turns_routes[];

/* ngx_http_profile_viewer.c */

/* handler of the directive profile_viewer */
char *ngx_http_profile_viewer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* returns 1 if the console of the server has a viewer */
ngx_uint_t ngx_http_profile_console_viewer(ngx_http_request_t *r);

/*
 * Sets the default of profile_viewer: the directory into which "make install"
 * puts the viewer, or an empty string if this directory does not exist.
 */
ngx_int_t ngx_http_profile_viewer_default(ngx_conf_t *cf, ngx_str_t *viewer);


/* ngx_http_profile_assets.c */

/* returns the text of an asset; the name must be in the table of that file */
void ngx_http_profile_asset(const char *name, ngx_str_t *text);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_ */
