
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Inside of the console: handlers of its routes, and the thread's work for
 * stored profiles.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_ROUTES_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ROUTES_H_INCLUDED_


#include "console/ngx_http_profile_console.h"
#include "core/ngx_http_profile_job.h"
#include "store/ngx_http_profile_store.h"

#include <jansson.h>


/*
 * Something made of stored profiles by a thread, with memory of its own.
 */

typedef struct ngx_http_profile_picture_s  ngx_http_profile_picture_t;

/*
 * In the thread: appends to pic->out.  PROF_OK, or PROF_ERROR: no memory, or
 * what it has set in pic->rc.
 */
typedef int (*ngx_http_profile_picture_pt)(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);

struct ngx_http_profile_picture_s {

    /* what is asked for; these are set by who asks */

    ngx_uint_t                    n;           /* profiles, 0 to 2 */
    ngx_str_t                     id[2];
    ngx_http_profile_picture_pt   make;
    const prof_encoder_t         *encoder;     /* for make */
    const prof_diff_encoder_t    *diff;
    ngx_uint_t                    flags;       /* PROF_DIFF_... */
    uint64_t                      before;      /* of the list */
    ngx_uint_t                    limit;

    /* the thread's, until it is done */

    ngx_http_profile_job_t        job;
    ngx_http_profile_store_t     *store;
    u_char                        id_data[2][NGX_HTTP_PROFILE_ID_LEN];
    ngx_http_profile_params_t     params;      /* the mode */
    ngx_http_profile_stored_t    *st[2];
    prof_buf_t                    out;
    ngx_int_t                     rc;
    ngx_uint_t                    missing;     /* index of the one that is
                                                  not there */
    const char                   *err;

    ngx_http_profile_call_t      *call;        /* NULL: the client is gone */

    ngx_http_profile_gzip_t       gzip;
};


/* the viewer's policy: it makes styles and compiles WebAssembly */

#define NGX_HTTP_PROFILE_CSP_VIEWER                                           \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "              \
    "style-src 'self' 'unsafe-inline'; connect-src 'self' blob:; "            \
    "font-src 'self'; img-src 'self' data:; "                                 \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"


PROF_HIDDEN_BEGIN

/*
 * ngx_http_profile_route.c: sets base, path, rest, root, and the route.
 * Returns NGX_DECLINED, or the result of a call that is answered.
 */

ngx_int_t ngx_http_profile_call_route(ngx_http_profile_call_t *call);


/*
 * ngx_http_profile_origin.c: whether the request comes from the console's own
 * pages, or from no page.  Returns NGX_DECLINED if it does, or the result of
 * the refusal.
 */

ngx_int_t ngx_http_profile_origin_check(ngx_http_profile_call_t *call);


/* ngx_http_profile_assets.c */

/* "assets/HASH/NAME" */
ngx_int_t ngx_http_profile_asset_route(ngx_http_profile_call_t *call);

/* a page: an HTML file of the assets; the profile's id in it is call->rest */
ngx_int_t ngx_http_profile_answer_page(ngx_http_profile_call_t *call,
    const char *name);

/* the page of a profile for responses of the site, appended to b */
void ngx_http_profile_console_page(ngx_http_request_t *r, u_char *id,
    prof_buf_t *b);


/* ngx_http_profile_status.c */

ngx_int_t ngx_http_profile_status_route(ngx_http_profile_call_t *call);


/* ngx_http_profile_viewer.c: files of the viewer, if it is installed */

ngx_int_t ngx_http_profile_viewer_route(ngx_http_profile_call_t *call);


/* ngx_http_profile_pprof.c */

/* whether the URI is one of Go's, and for its clients */
ngx_uint_t ngx_http_profile_go_is(ngx_str_t *uri);
ngx_int_t ngx_http_profile_go_index_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_go_cmdline_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_go_symbol_route(ngx_http_profile_call_t *call);


/* ngx_http_profile_profiles.c */

ngx_int_t ngx_http_profile_list_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_one_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_change_route(ngx_http_profile_call_t *call);

/* ngx_http_profile_picture.c */

/*
 * Starts the thread for a copy of *asked, of which the first fields are set;
 * mode and format may be told by the query as well.  What a route returns.
 */
ngx_int_t ngx_http_profile_picture(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_http_profile_picture_t *asked);

/* there is no store, or no profile with this id */
ngx_int_t ngx_http_profile_no_store(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_answer_no_profile(ngx_http_profile_call_t *call,
    ngx_str_t *id);

/* ngx_http_profile_picture_json.c */

/* facts as JSON, a new reference; NULL when memory is short */
json_t *ngx_http_profile_entry_json(ngx_http_profile_stored_t *st);

/* what make may be, for one profile */

int ngx_http_profile_picture_json(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);

/* ngx_http_profile_names.c: looks up the names again, and stores them */

int ngx_http_profile_picture_rename(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);

/* ngx_http_profile_picture_json.c: appends and frees it; NULL: no memory */
int ngx_http_profile_picture_dump(ngx_http_profile_picture_t *pic,
    json_t *json);

/* ngx_http_profile_diff.c */

ngx_int_t ngx_http_profile_diff_route(ngx_http_profile_call_t *call);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ROUTES_H_INCLUDED_ */
