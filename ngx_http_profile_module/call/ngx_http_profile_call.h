
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Calls: requests that the module itself answers, at once by one of the
 * functions below, or later, after ngx_http_profile_call_hold().
 *
 * Answers pass only the filters below the module's own: filters of the site
 * cannot change their headers, policies or compression.  Caches do not store
 * answers, and answers load no other resources, unless
 * ngx_http_profile_answer_t permits it.
 *
 * Memory: a call and its answer are in the request's pool.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_CALL_H_INCLUDED_
#define _NGX_HTTP_PROFILE_CALL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "prof.h"
#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_log_limit.h"
#include "core/ngx_http_profile_param.h"


typedef struct ngx_http_profile_call_s   ngx_http_profile_call_t;
typedef struct ngx_http_profile_route_s  ngx_http_profile_route_t;

/* appends a page with an error's text to b */
typedef void (*ngx_http_profile_error_pt)(ngx_http_profile_call_t *call,
    ngx_uint_t status, ngx_str_t *text, prof_buf_t *b);

/*
 * Returns the result of a content handler.  This is NGX_DONE after
 * ngx_http_profile_call_hold().
 */
typedef ngx_int_t (*ngx_http_profile_route_pt)(ngx_http_profile_call_t *call);


/* POST changes nothing, so it needs no header of the console */
#define NGX_HTTP_PROFILE_HARMLESS  0x01

/* reads the request's body; without this flag the body is discarded */
#define NGX_HTTP_PROFILE_BODY      0x02

/* a suffix is a part of the path, also ".json" */
#define NGX_HTTP_PROFILE_FILE      0x04

/* errors have the form that Go's clients print */
#define NGX_HTTP_PROFILE_PPROF     0x08

/*
 * The path is a page if it has no suffix and if the text for the asterisk has
 * no slash.  Another site may open it in a tab, which that site cannot read.
 */
#define NGX_HTTP_PROFILE_PAGE      0x10

/* browsers get the page that draws a turn log */
#define NGX_HTTP_PROFILE_DRAWN     0x20


/*
 * A path that ends with an asterisk matches all paths that begin with the text
 * before the asterisk.  GET includes HEAD.  Requests with other methods must
 * come from a page of the console, or have its header (see docs/console.md).
 */

struct ngx_http_profile_route_s {
    ngx_str_t                   path;
    ngx_uint_t                  methods;      /* NGX_HTTP_GET|... */
    ngx_http_profile_route_pt   handler;
    const char                 *help;         /* for the list of routes */
    ngx_uint_t                  flags;
};


/* a call; the room with the route sets the members from route to root */

struct ngx_http_profile_call_s {
    ngx_http_request_t              *request;
    const ngx_http_profile_route_t  *route;   /* NULL: no route */
    ngx_str_t                        base;    /* "/-/profile/", decoded */
    ngx_str_t                        path;    /* "p/0123", without ".json" */
    ngx_str_t                        rest;    /* "0123": the asterisk */
    char                            *root;    /* "../": base, a relative URL */
    ngx_http_profile_error_pt        page;    /* of errors for browsers; NULL:
                                                 errors have no page */
    void                           (*abort)(ngx_http_profile_call_t *call);
    void                            *data;    /* data of the holder */
    unsigned                         json:1;  /* by suffix, or by Accept */
    unsigned                         negotiated:1;  /* by Accept */
    unsigned                         pprof:1; /* errors for Go's clients */
    unsigned                         held:1;
};


typedef struct {
    ngx_uint_t                       status;  /* 0: 200 */
    ngx_str_t                        body;
    ngx_str_t                        type;    /* content type */
    ngx_str_t                        file;    /* a download of this name */
    const char                      *csp;     /* NULL: _CSP_NONE */
    unsigned                         immutable:1;  /* the URL has a hash */
    unsigned                         framed:1;     /* pages of this origin */
    unsigned                         gzipped:1;    /* the client accepts it */
    unsigned                         compressible:1;
} ngx_http_profile_answer_t;


typedef struct {
    uint32_t                         hash;    /* of the box, see prof_root.h */
    unsigned                         given:1;
    unsigned                         unknown:1;
} ngx_http_profile_root_t;


struct json_t;

PROF_HIDDEN_BEGIN

/* ngx_http_profile_call.c */

/*
 * Checks that the client may make calls, with the arguments of
 * ngx_http_profile_permits_client().  Returns NGX_DECLINED if it may, or the
 * result of an answer.
 */
ngx_int_t ngx_http_profile_call_permits(ngx_http_profile_call_t *call,
    const char *pages, ngx_http_profile_log_limit_t *line);

/*
 * Checks that no page of another site has caused the call, by the headers
 * "Sec-Fetch-Site" and "Origin", or by "Origin" only.  Returns NGX_DECLINED, or
 * the result of an answer with the error.  "none" admits the value "none": the
 * user typed the address, or opened a bookmark.
 */
ngx_int_t ngx_http_profile_call_site(ngx_http_profile_call_t *call,
    ngx_uint_t none);
ngx_int_t ngx_http_profile_call_origin(ngx_http_profile_call_t *call);

/*
 * Returns a decoded argument of the query; its length is that of the text.
 * Returns NGX_OK, NGX_DECLINED if the argument is missing, or NGX_ERROR.
 */
ngx_int_t ngx_http_profile_call_arg(ngx_http_profile_call_t *call,
    const char *name, ngx_str_t *value);

/*
 * Sets parameter n in *params if the call has an argument of this name.
 * Returns NGX_DECLINED, or the result of an answer with the error.
 */
ngx_int_t ngx_http_profile_call_param(ngx_http_profile_call_t *call,
    const char *name, ngx_uint_t n, ngx_http_profile_params_t *params);

/* answers that an argument has an invalid value */
ngx_int_t ngx_http_profile_call_wrong(ngx_http_profile_call_t *call,
    const char *name, ngx_str_t *value, const char *takes);

/*
 * Sets *own if the argument "profiler" asks for requests for pages of the
 * module among all requests.  Returns NGX_DECLINED, or the result of an answer
 * with the error.
 */
ngx_int_t ngx_http_profile_call_own(ngx_http_profile_call_t *call,
    ngx_uint_t *own);

/*
 * The argument "root": the box of a flamegraph that the answer is about, see
 * prof_root.h.  ngx_http_profile_call_root() reads the argument, and returns
 * NGX_DECLINED or the result of an answer with the error.
 */
ngx_int_t ngx_http_profile_call_root(ngx_http_profile_call_t *call,
    ngx_http_profile_root_t *root);

/*
 * Removes all stacks that do not pass through the box.  Returns PROF_OK, or
 * PROF_ERROR; root->unknown is set if the profile has no such box.  Context:
 * a thread.
 */
int ngx_http_profile_root_keep(ngx_http_profile_root_t *root,
    prof_profile_t *p);

/* answers that the profile has no such box */
ngx_int_t ngx_http_profile_answer_no_root(ngx_http_profile_call_t *call,
    ngx_http_profile_root_t *root);

/*
 * Lets the handler answer later; the handler returns the result, NGX_DONE.  If
 * the client disconnects first, abort(call) is called once, and ends the call.
 * Otherwise ngx_http_profile_call_end() gets the result of the function that
 * answered, and ends the call.
 */
ngx_int_t ngx_http_profile_call_hold(ngx_http_profile_call_t *call,
    void (*abort)(ngx_http_profile_call_t *call), void *data);
void ngx_http_profile_call_end(ngx_http_profile_call_t *call, ngx_int_t rc);

/* ngx_http_profile_answer.c */

/* answers; the body must live as long as the request */
ngx_int_t ngx_http_profile_answer(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer);

/* answers with JSON, and takes over the reference; NULL: answers 500 */
ngx_int_t ngx_http_profile_answer_json(ngx_http_profile_call_t *call,
    ngx_uint_t status, struct json_t *json);

/* answers with the buffer and becomes its owner; the buffer may have failed */
ngx_int_t ngx_http_profile_answer_buf(ngx_http_profile_call_t *call,
    ngx_http_profile_answer_t *answer, prof_buf_t *b);

/* answers 204 */
ngx_int_t ngx_http_profile_answer_nothing(ngx_http_profile_call_t *call);

/*
 * Answers with an error: a sentence without a period.  A browser gets a page,
 * other clients get JSON or plain text.
 */
ngx_int_t ngx_http_profile_answer_error(ngx_http_profile_call_t *call,
    ngx_uint_t status, const char *fmt, ...);

/*
 * Counts a loss and answers with an error, for a result of
 * ngx_http_profile_job_room() or ngx_http_profile_job_start().
 */
ngx_int_t ngx_http_profile_answer_no_job(ngx_http_profile_call_t *call,
    ngx_int_t rc);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_CALL_H_INCLUDED_ */
