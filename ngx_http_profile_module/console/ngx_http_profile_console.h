
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
 * Answers are sent past the filters of the site: neither its headers, its
 * policies nor its compression are ours.  They are not to be cached, unless
 * they say so, and load nothing, unless they have a policy.
 *
 * All memory of a call is of the request's pool, and goes with it.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_
#define _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <jansson.h>

#include "core/ngx_http_profile_conf.h"


/*
 * Policies of answers.  What a page of the console loads is all its own; the
 * viewer makes styles and compiles WebAssembly.  Those of profiles are in the
 * table of formats.
 */

#define NGX_HTTP_PROFILE_CSP_NONE                                             \
    "default-src 'none'; base-uri 'none'; form-action 'none'; "               \
    "frame-ancestors 'none'"

#define NGX_HTTP_PROFILE_CSP_PAGE                                             \
    "default-src 'none'; script-src 'self'; style-src 'self'; "               \
    "connect-src 'self'; img-src 'self' data:; frame-src 'self'; "            \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "           \
    "require-trusted-types-for 'script'"

#define NGX_HTTP_PROFILE_CSP_VIEWER                                           \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "              \
    "style-src 'self' 'unsafe-inline'; connect-src 'self' blob:; "            \
    "font-src 'self'; img-src 'self' data:; "                                 \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"


typedef struct ngx_http_profile_call_s  ngx_http_profile_call_t;

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

typedef struct {
    ngx_str_t                   path;
    ngx_uint_t                  methods;      /* NGX_HTTP_GET|... */
    ngx_http_profile_route_pt   handler;
    const char                 *help;         /* for the list of routes */
    ngx_uint_t                  flags;
} ngx_http_profile_route_t;


struct ngx_http_profile_call_s {
    ngx_http_request_t              *request;
    const ngx_http_profile_route_t  *route;
    ngx_str_t                        base;    /* "/-/profile/", decoded */
    ngx_str_t                        path;    /* "p/0123", without ".json" */
    ngx_str_t                        rest;    /* "0123": what the asterisk
                                                 stands for */
    char                            *root;    /* "../", from here to base */
    void                           (*abort)(ngx_http_profile_call_t *call);
    void                            *data;    /* the holder's */
    unsigned                         json:1;  /* asked for, by suffix or by
                                                 Accept */
    unsigned                         negotiated:1;  /* by Accept */
    unsigned                         held:1;
};


typedef struct {
    ngx_uint_t                       status;  /* 0: 200 */
    ngx_str_t                        body;
    ngx_str_t                        type;    /* content type */
    ngx_str_t                        file;    /* a download of this name */
    const char                      *csp;     /* NULL: _CSP_NONE */
    unsigned                         immutable:1;  /* the URL has a hash */
    unsigned                         framed:1;     /* by the same origin */
    unsigned                         gzipped:1;    /* the body is, and the
                                                      client takes it */
    unsigned                         compressible:1;
} ngx_http_profile_answer_t;


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

/*
 * The URL of the server's console, escaped, with a slash at its end: of the
 * first location with a plain prefix that has one.  NULL if there is none.
 */
ngx_str_t *ngx_http_profile_console_url(ngx_http_request_t *r);

ngx_uint_t ngx_http_profile_is_console(ngx_http_core_loc_conf_t *clcf);

/* whether that console has a viewer */
ngx_uint_t ngx_http_profile_console_viewer(ngx_http_request_t *r);


/*
 * ngx_http_profile_route.c: sets base, path, rest, root, and the route.
 * Returns NGX_DECLINED, or the result of a call that is answered.
 */

ngx_int_t ngx_http_profile_call_route(ngx_http_profile_call_t *call);


/* ngx_http_profile_call.c */

/*
 * An argument of the query, decoded; its length is that of the text.
 * Returns NGX_OK, NGX_DECLINED if it is not given, or NGX_ERROR.
 */
ngx_int_t ngx_http_profile_call_arg(ngx_http_profile_call_t *call,
    const char *name, ngx_str_t *value);

/*
 * The handler answers later, and returns what this returns: NGX_DONE.  When
 * the client goes away first, abort(call) is called, once, and the call is no
 * more.  Otherwise ngx_http_profile_call_end() is given the result of the
 * function that answered; the call is no more afterwards.
 */
ngx_int_t ngx_http_profile_call_hold(ngx_http_profile_call_t *call,
    void (*abort)(ngx_http_profile_call_t *call), void *data);
void ngx_http_profile_call_end(ngx_http_profile_call_t *call, ngx_int_t rc);


/* ngx_http_profile_answer.c */

/* the body must live as long as the request */
ngx_int_t ngx_http_profile_answer(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer);

/* takes the reference; NULL is an error of memory */
ngx_int_t ngx_http_profile_answer_json(ngx_http_profile_call_t *call,
    ngx_uint_t status, json_t *json);

/* bytes of malloc(), which it takes over; failed or not */
ngx_int_t ngx_http_profile_answer_buf(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer, prof_buf_t *b);

/* 204 */
ngx_int_t ngx_http_profile_answer_nothing(ngx_http_profile_call_t *call);

/* a sentence without a period; as the client likes it */
ngx_int_t ngx_http_profile_answer_error(ngx_http_profile_call_t *call,
    ngx_uint_t status, const char *fmt, ...);

/* the result of ngx_http_profile_job_room() or _start(), which is counted */
ngx_int_t ngx_http_profile_answer_no_job(ngx_http_profile_call_t *call,
    ngx_int_t rc);

/* whether the client takes gzip */
ngx_uint_t ngx_http_profile_call_gzip(ngx_http_profile_call_t *call);

/* a header of the answer; key and value are not copied */
ngx_int_t ngx_http_profile_call_header(ngx_http_profile_call_t *call,
    const char *key, const char *value);


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

/* the same for responses of the site, appended to b */
void ngx_http_profile_page(const char *name, ngx_http_profile_page_t *page,
    prof_buf_t *b);


/* ngx_http_profile_status.c */

ngx_int_t ngx_http_profile_status_route(ngx_http_profile_call_t *call);

/* ngx_http_profile_viewer.c: files of the viewer, if it is installed */

char *ngx_http_profile_viewer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_profile_viewer_default(ngx_conf_t *cf, ngx_str_t *viewer);
ngx_int_t ngx_http_profile_viewer_route(ngx_http_profile_call_t *call);

/* ngx_http_profile_filter.c: a response past all filters but our own */

ngx_int_t ngx_http_profile_output(ngx_http_request_t *r, ngx_chain_t *out);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_CONSOLE_H_INCLUDED_ */
