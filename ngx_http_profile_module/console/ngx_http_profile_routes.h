
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Declarations that the files of this room share: the handlers of routes, and
 * the thread's work for stored profiles.
 *
 * Context: the worker's event loop.
 */


#ifndef _NGX_HTTP_PROFILE_ROUTES_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ROUTES_H_INCLUDED_


#include "console/ngx_http_profile_console.h"
#include "core/ngx_http_profile_job.h"
#include "metrics/ngx_http_profile_metrics.h"
#include "store/ngx_http_profile_store.h"

#include <jansson.h>


/* a job of the thread that makes an answer from stored profiles */

typedef struct ngx_http_profile_picture_s  ngx_http_profile_picture_t;

/*
 * Appends the answer to pic->out, in the thread.  Returns PROF_OK, or
 * PROF_ERROR: memory is short, or pic->rc and pic->err have the reason.
 */
typedef int (*ngx_http_profile_picture_pt)(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);

struct ngx_http_profile_picture_s {

    /* what to make: the handler of the route sets these members */

    ngx_uint_t                    n;           /* number of profiles, 0 to 2 */
    ngx_str_t                     id[2];
    ngx_http_profile_picture_pt   make;
    const prof_encoder_t         *encoder;     /* the format, for make */
    const prof_diff_encoder_t    *diff;
    ngx_uint_t                    flags;       /* PROF_DIFF_... */
    ngx_http_profile_continuous_t
                                 *continuous;  /* for the list of slices */
    ngx_http_profile_root_t       root;        /* of one profile */
    uint64_t                      before;      /* for the list of profiles */
    ngx_uint_t                    limit;
    ngx_uint_t                    html;        /* the answer is a page */
    ngx_uint_t                    pin;         /* for a pin or its end: 1, 0 */
    ngx_uint_t                    unread;      /* make gets no profile, and the
                                                  answer has no body */
    void                         *data;        /* for make */
    void                        (*free)(void *data);   /* or NULL */

    /* the members below belong to the thread until the job is done */

    ngx_http_profile_job_t        job;
    ngx_http_profile_store_t     *store;
    u_char                        id_data[2][NGX_HTTP_PROFILE_ID_LEN];
    ngx_http_profile_params_t     params;      /* the mode */
    ngx_http_profile_stored_t    *st[2];
    prof_buf_t                    out;
    ngx_int_t                     rc;
    ngx_uint_t                    missing;     /* index of an unknown id */
    const char                   *err;

    ngx_http_profile_call_t      *call;        /* NULL: client disconnected */

    ngx_http_profile_gzip_t       gzip;
};


/* the policy of the viewer, which creates styles and compiles WebAssembly */

#define NGX_HTTP_PROFILE_CSP_VIEWER                                           \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "              \
    "style-src 'self' 'unsafe-inline'; connect-src 'self' blob:; "            \
    "font-src 'self'; img-src 'self' data:; "                                 \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"


PROF_HIDDEN_BEGIN

/*
 * ngx_http_profile_route.c: finds the route and sets base, path, rest, root
 * and route of the call.  Returns NGX_DECLINED, or the result of an answer.
 */

ngx_int_t ngx_http_profile_call_route(ngx_http_profile_call_t *call);


/*
 * ngx_http_profile_origin.c: checks whether the request comes from the
 * console's own pages, or from no page.  Returns NGX_DECLINED if it does.
 * Otherwise refuses the request, and returns the result of this answer.
 */

ngx_int_t ngx_http_profile_origin_check(ngx_http_profile_call_t *call);


/* ngx_http_profile_assets.c */

/* handles "assets/HASH/NAME" */
ngx_int_t ngx_http_profile_asset_route(ngx_http_profile_call_t *call);

/* answers with an HTML file of the assets; call->rest is the profile's id */
ngx_int_t ngx_http_profile_answer_page(ngx_http_profile_call_t *call,
    const char *name);

/*
 * Appends an HTML file of the assets to b.  Returns where its content belongs:
 * the number of bytes before it.
 */
size_t ngx_http_profile_call_page(ngx_http_profile_call_t *call,
    const char *name, prof_buf_t *b);

/* appends the page of an error to b */
void ngx_http_profile_error_page(ngx_http_profile_call_t *call,
    ngx_uint_t status, ngx_str_t *text, prof_buf_t *b);

/*
 * Appends the console's page of a profile to b, for requests that are not
 * calls of the console.
 */
void ngx_http_profile_console_page(ngx_http_request_t *r, u_char *id,
    prof_buf_t *b);


/* ngx_http_profile_status.c */

ngx_int_t ngx_http_profile_status_route(ngx_http_profile_call_t *call);


/* ngx_http_profile_viewer.c: answers with files of the viewer, if installed */

ngx_int_t ngx_http_profile_viewer_route(ngx_http_profile_call_t *call);


/* ngx_http_profile_pprof.c */

/* returns whether the URI is one of Go's URLs, which only Go's clients use */
ngx_uint_t ngx_http_profile_go_is(ngx_str_t *uri);
ngx_int_t ngx_http_profile_go_index_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_go_cmdline_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_go_symbol_route(ngx_http_profile_call_t *call);


/* ngx_http_profile_overview.c: where the time of requests goes */

ngx_int_t ngx_http_profile_overview_route(ngx_http_profile_call_t *call);

/*
 * ngx_http_profile_overview_page.c: appends the table of the page, whose URLs
 * begin with root.  Context: a thread.
 */
void ngx_http_profile_overview_table(ngx_http_profile_overview_t *ov,
    const char *root, prof_buf_t *b);

/* appends a time in ns with its unit */
void ngx_http_profile_table_time(prof_buf_t *b, double ns);


/*
 * ngx_http_profile_handlers_page.c: the event handlers, as a table, which is
 * appended, and as JSON.  Context: a thread.
 */

void ngx_http_profile_handlers_table(ngx_http_profile_directory_t *dir,
    prof_buf_t *b);
json_t *ngx_http_profile_handlers_json(ngx_http_profile_directory_t *dir);

/* ngx_http_profile_profiles.c */

ngx_int_t ngx_http_profile_list_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_one_route(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_change_route(ngx_http_profile_call_t *call);

/* ngx_http_profile_picture.c */

/*
 * Starts a job for a copy of *asked; the caller has set the members that the
 * route sets.  The query may choose another mode and format.  Returns the
 * result of the route.
 */
ngx_int_t ngx_http_profile_picture(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_http_profile_picture_t *asked);

/* answer with an error: there is no store, or no profile with this id */
ngx_int_t ngx_http_profile_no_store(ngx_http_profile_call_t *call);
ngx_int_t ngx_http_profile_answer_no_profile(ngx_http_profile_call_t *call,
    ngx_str_t *id);

/* ngx_http_profile_picture_json.c */

/* returns the facts of a profile; a new reference, NULL if memory is short */
json_t *ngx_http_profile_entry_json(ngx_http_profile_stored_t *st);

/* returns a text of any bytes; a new reference, NULL if memory is short */
json_t *ngx_http_profile_json_text(ngx_str_t *s);

/* a function for pic->make: one profile as JSON */

int ngx_http_profile_picture_json(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);

/*
 * ngx_http_profile_names.c: a function for pic->make: looks up the names of a
 * profile again, and stores the profile
 */

int ngx_http_profile_picture_rename(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);

/*
 * Stores profile number i again, with its new names.  Returns PROF_ERROR after
 * an error, and sets pic->rc and pic->err.
 */
int ngx_http_profile_picture_keep(ngx_http_profile_picture_t *pic,
    ngx_uint_t i, prof_profile_t *p);

/*
 * ngx_http_profile_picture_json.c: appends the text of the JSON to pic->out,
 * and releases the reference.  A NULL reference means that memory is short.
 */
int ngx_http_profile_picture_dump(ngx_http_profile_picture_t *pic,
    json_t *json);

/* ngx_http_profile_hour.c */

ngx_int_t ngx_http_profile_hour_route(ngx_http_profile_call_t *call);

/*
 * ngx_http_profile_turns_json.c, ngx_http_profile_turns_trace.c: append a
 * snapshot of the turn log as JSON, or as a trace of Chromium.  Return
 * PROF_ERROR if memory is short.  Context: a thread.
 */
int ngx_http_profile_turns_json(prof_turns_snapshot_t *s, prof_buf_t *b);
int ngx_http_profile_turns_trace(prof_turns_snapshot_t *s, prof_buf_t *b);

/* ngx_http_profile_diff.c */

ngx_int_t ngx_http_profile_diff_route(ngx_http_profile_call_t *call);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ROUTES_H_INCLUDED_ */
