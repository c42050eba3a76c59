
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The console: pages and data below one location.
 *
 * A request to it is a "call".  Its path, relative to the console's URL, is
 * looked up in the only table of routes (ngx_http_profile_console.c), and the
 * handler of the route answers: at once, by one of the functions below, or
 * later (ngx_http_profile_call_hold()).
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <jansson.h>

#include "reply/ngx_http_profile_reply.h"


/* the viewer's policy: it makes styles and compiles WebAssembly */

#define NGX_HTTP_PROFILE_CSP_VIEWER                                           \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "              \
    "style-src 'self' 'unsafe-inline'; connect-src 'self' blob:; "            \
    "font-src 'self'; img-src 'self' data:; "                                 \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"


/* as a content handler's: a status, NGX_OK, NGX_DONE after a hold */
typedef ngx_int_t (*ngx_http_profile_route_pt)(ngx_http_profile_call_t *call);


/* POST changes nothing: it needs no header of the console */
#define NGX_HTTP_PROFILE_HARMLESS  0x01

/* reads the request's body; without it the body is discarded */
#define NGX_HTTP_PROFILE_BODY      0x02

/* the path's suffix is a part of it, ".json" as well */
#define NGX_HTTP_PROFILE_FILE      0x04

/* for Go's clients: errors as they print them */
#define NGX_HTTP_PROFILE_PPROF     0x08

/* the path, without a suffix and without a slash in what an asterisk stands
   for, is a page, which has nothing in it before its scripts have run */
#define NGX_HTTP_PROFILE_PAGE      0x10


/*
 * A path that ends with an asterisk stands for all that begin so.  HEAD is
 * implied by GET.  Requests with other methods than these two must come from
 * a page of the console, or have its header (see docs/console.md).
 */

typedef struct ngx_http_profile_route_s {
    ngx_str_t                   path;
    ngx_uint_t                  methods;      /* NGX_HTTP_GET|... */
    ngx_http_profile_route_pt   handler;
    const char                 *help;         /* for the list of routes */
    ngx_uint_t                  flags;
} ngx_http_profile_route_t;


/* what a page is filled with; all is escaped */

typedef struct {
    ngx_str_t                        root;    /* URL of the console */
    ngx_str_t                        id;      /* of a profile, or empty */
    ngx_uint_t                       viewer;
    const char                      *name;    /* set by .._profile_page() */
} ngx_http_profile_page_t;


PROF_HIDDEN_BEGIN

/* ngx_http_profile_console.c */

char *ngx_http_profile_console(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* all routes, the last one has no handler */
extern ngx_http_profile_route_t  ngx_http_profile_routes[];

/* returns 1 if the console of the server has a viewer */
ngx_uint_t ngx_http_profile_console_viewer(ngx_http_request_t *r);

ngx_uint_t ngx_http_profile_is_console(ngx_http_core_loc_conf_t *clcf);


/*
 * ngx_http_profile_route.c: sets base, path, rest, root, and the route.
 * Returns NGX_DECLINED, or the result of a call that is answered.
 */

ngx_int_t ngx_http_profile_call_route(ngx_http_profile_call_t *call);


/*
 * ngx_http_profile_origin.c: whether the request comes from our own pages, or
 * from no page.  Returns NGX_DECLINED if so, or the result of the refusal.
 */

ngx_int_t ngx_http_profile_origin_check(ngx_http_profile_call_t *call);


/* ngx_http_profile_assets.c: files that are compiled in */

ngx_int_t ngx_http_profile_asset_route(ngx_http_profile_call_t *call);

/*
 * The path of an asset below the console's URL, "assets/0123/console.js",
 * null-terminated; NULL if there is none of that name.
 */
char *ngx_http_profile_asset_path(const char *name);

/* a page: an HTML file of the assets; its id is what call->rest is */
ngx_int_t ngx_http_profile_answer_page(ngx_http_profile_call_t *call,
    const char *name);

/* the page of a profile for responses of the site, appended to b */
void ngx_http_profile_console_page(ngx_http_request_t *r, u_char *id,
    prof_buf_t *b);


/* ngx_http_profile_status.c */

ngx_int_t ngx_http_profile_status_route(ngx_http_profile_call_t *call);

/* ngx_http_profile_viewer.c: files of the viewer, if it is installed */

char *ngx_http_profile_viewer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_profile_viewer_default(ngx_conf_t *cf, ngx_str_t *viewer);
ngx_int_t ngx_http_profile_viewer_route(ngx_http_profile_call_t *call);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_ */
