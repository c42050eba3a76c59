
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The comparison of two stored profiles.
 */


#include "store/ngx_http_profile_store.h"
#include "console/ngx_http_profile_routes.h"


/* maximum number of functions in JSON: those with the largest changes */

#define NGX_HTTP_PROFILE_DIFF_FUNCTIONS  1000


static ngx_int_t ngx_http_profile_diff_args(ngx_http_profile_call_t *call,
    ngx_http_profile_picture_t *asked);
static int ngx_http_profile_diff_encode(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static int ngx_http_profile_diff_json(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static json_t *ngx_http_profile_diff_functions(const prof_diff_t *d);
static int ngx_http_profile_diff_cmp(const void *one, const void *two);
static uint64_t ngx_http_profile_diff_distance(const prof_total_t *total);


/* handles "diff", which is a page or JSON, and "diff/FORMAT" */

ngx_int_t
ngx_http_profile_diff_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                    rc;
    ngx_http_profile_store_t    *store;
    ngx_http_profile_picture_t   asked;

    store = ngx_http_profile_store(call->request);

    if (store == NULL) {
        return ngx_http_profile_no_store(call);
    }

    ngx_memzero(&asked, sizeof(ngx_http_profile_picture_t));

    asked.n = 2;

    if (call->rest.len) {
        asked.make = ngx_http_profile_diff_encode;
        asked.diff = prof_diff_find((char *) call->rest.data,
                                    call->rest.len);

        if (asked.diff == NULL) {
            return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                      "there is no format \"%V\" for "
                                      "differences", &call->rest);
        }

    } else if (call->json) {
        asked.make = ngx_http_profile_diff_json;

    } else {
        return ngx_http_profile_answer_page(call, "diff.html");
    }

    rc = ngx_http_profile_diff_args(call, &asked);

    return (rc == NGX_DECLINED) ? ngx_http_profile_picture(call, store, &asked)
                                : rc;
}


/*
 * Reads the arguments.  Returns NGX_DECLINED if they are valid, or the result
 * of an answer with the error.
 */

static ngx_int_t
ngx_http_profile_diff_args(ngx_http_profile_call_t *call,
    ngx_http_profile_picture_t *asked)
{
    ngx_int_t   rc;
    ngx_str_t   value;
    ngx_uint_t  i;

    static const char  *names[] = { "a", "b" };

    for (i = 0; i < 2; i++) {
        rc = ngx_http_profile_call_arg(call, names[i], &asked->id[i]);

        if (rc == NGX_ERROR) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (rc == NGX_DECLINED) {
            return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                      "\"%s\" is missing, it must be the id of "
                                      "a profile", names[i]);
        }
    }

    rc = ngx_http_profile_call_arg(call, "shares", &value);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED || ngx_http_profile_str_eq(&value, "off", 3)) {
        return NGX_DECLINED;
    }

    if (ngx_http_profile_str_eq(&value, "on", 2)) {
        asked->flags = PROF_DIFF_NORMALIZED;
        return NGX_DECLINED;
    }

    return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                         "\"shares\" is \"%V\", it must be "
                                         "\"on\" or \"off\"", &value);
}


static int
ngx_http_profile_diff_encode(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    return pic->diff->encode(p[0], p[1], pic->flags, &pic->out);
}


static int
ngx_http_profile_diff_json(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    json_t       *functions;
    prof_diff_t   d;

    functions = NULL;

    if (prof_diff_init(&d, p[0], p[1], pic->flags) == PROF_OK) {
        functions = ngx_http_profile_diff_functions(&d);
    }

    prof_diff_free(&d);

    if (functions == NULL) {
        return PROF_ERROR;
    }

    return ngx_http_profile_picture_dump(pic,
               json_pack("{s:o, s:o, s:b, s:o}",
                         "before", ngx_http_profile_entry_json(pic->st[0]),
                         "after", ngx_http_profile_entry_json(pic->st[1]),
                         "shares", (int) (pic->flags == PROF_DIFF_NORMALIZED),
                         "functions", functions));
}


/* lists the functions whose time or memory changed */

static json_t *
ngx_http_profile_diff_functions(const prof_diff_t *d)
{
    char          *name;
    size_t         len;
    json_t        *list;
    uint32_t       i, n, *group;
    prof_total_t  *totals;

    n = d->view->nfunctions;

    group = malloc((n + 1) * sizeof(uint32_t));
    if (group == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        group[i] = i;
    }

    totals = prof_totals_create(d->view, group, n);

    free(group);

    if (totals == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        totals[i].self[PROF_DIFF_BEFORE] =
                prof_diff_scale(d, totals[i].self[PROF_DIFF_BEFORE]);
        totals[i].total[PROF_DIFF_BEFORE] =
                prof_diff_scale(d, totals[i].total[PROF_DIFF_BEFORE]);
    }

    qsort(totals, n, sizeof(prof_total_t), ngx_http_profile_diff_cmp);

    list = json_array();

    for (i = 0; i < n && i < NGX_HTTP_PROFILE_DIFF_FUNCTIONS; i++) {

        if (ngx_http_profile_diff_distance(&totals[i]) == 0) {
            break;
        }

        len = strlen(d->view->functions[totals[i].group].name);
        name = prof_text_utf8(d->view->functions[totals[i].group].name, &len);

        (void) json_array_append_new(list,
                   json_pack("{s:s*, s:b, s:[I, I], s:[I, I]}",
                       "name", name,
                       "waiting",
                       (int) d->view->functions[totals[i].group].waits,
                       "self",
                       (json_int_t) totals[i].self[PROF_DIFF_BEFORE],
                       (json_int_t) totals[i].self[PROF_DIFF_AFTER],
                       "total",
                       (json_int_t) totals[i].total[PROF_DIFF_BEFORE],
                       (json_int_t) totals[i].total[PROF_DIFF_AFTER]));

        free(name);
    }

    free(totals);

    return list;
}


static int
ngx_http_profile_diff_cmp(const void *one, const void *two)
{
    uint64_t  a, b;

    a = ngx_http_profile_diff_distance(one);
    b = ngx_http_profile_diff_distance(two);

    return (a < b) - (a > b);
}


/*
 * Returns how much a function changed.  The change of its own value counts
 * more than the change of the functions that it calls.
 */

static uint64_t
ngx_http_profile_diff_distance(const prof_total_t *total)
{
    uint64_t  before, after;

    before = total->self[PROF_DIFF_BEFORE];
    after = total->self[PROF_DIFF_AFTER];

    if (before == after) {
        before = total->total[PROF_DIFF_BEFORE];
        after = total->total[PROF_DIFF_AFTER];

        return (before != after);
    }

    return before > after ? before - after : after - before;
}
