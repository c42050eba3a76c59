
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The overview: where the time of requests goes, as a page or as JSON.  The
 * thread makes both, since there may be many locations.  Without metrics the
 * list of profiles replaces the overview.
 */


#include "console/ngx_http_profile_routes.h"


/* maximum number of locations on the page: those with the most time */
#define NGX_HTTP_PROFILE_OVERVIEW  20


/* the data from which the thread makes the answer */

typedef struct {
    ngx_http_profile_directory_t  *dir;
    prof_buf_t                     page;     /* the page without its table */
    size_t                         content;  /* where the table belongs */
    ngx_uint_t                     sum;      /* ngx_http_profile_sum_e: of the
                                                chosen cause, or of all time */
    ngx_uint_t                     own;      /* with pages of the module */
    u_char                         root[];   /* the URL of the console */
} ngx_http_profile_overview_job_t;


static ngx_int_t ngx_http_profile_overview_cause(
    ngx_http_profile_call_t *call, ngx_uint_t *sum);
static void ngx_http_profile_overview_free(void *data);
static int ngx_http_profile_overview_html(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static int ngx_http_profile_overview_json(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static json_t *ngx_http_profile_overview_workers(
    ngx_http_profile_usage_t *usage);
static json_t *ngx_http_profile_overview_item(ngx_http_profile_usage_t *usage);
static json_t *ngx_http_profile_overview_sums(float *sums);
static json_t *ngx_http_profile_overview_minutes(
    ngx_http_profile_usage_t *usage, ngx_uint_t sum);


ngx_int_t
ngx_http_profile_overview_route(ngx_http_profile_call_t *call)
{
    size_t                            len;
    ngx_int_t                         rc;
    ngx_str_t                         format;
    ngx_uint_t                        own, sum;
    ngx_http_profile_picture_t        asked;
    ngx_http_profile_overview_job_t  *job;

    if (!ngx_http_profile_metrics_on()) {
        return ngx_http_profile_list_route(call);
    }

    rc = ngx_http_profile_call_arg(call, "format", &format);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_OK) {

        if (!ngx_http_profile_str_eq(&format, "json", 4)) {
            return ngx_http_profile_call_wrong(call, "format", &format,
                                               "\"json\"");
        }

        call->json = 1;
    }

    rc = ngx_http_profile_overview_cause(call, &sum);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_profile_call_own(call, &own);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    len = ngx_strlen(call->root);

    job = ngx_calloc(sizeof(ngx_http_profile_overview_job_t) + len + 1,
                     call->request->connection->log);
    if (job == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(job->root, call->root, len);
    prof_buf_init(&job->page);
    job->sum = sum;
    job->own = own;

    if (!call->json) {
        job->content = ngx_http_profile_call_page(call, "overview.html",
                                                  &job->page);
    }

    job->dir = ngx_http_profile_directory_hold();

    ngx_memzero(&asked, sizeof(ngx_http_profile_picture_t));

    asked.html = !call->json;
    asked.make = call->json ? ngx_http_profile_overview_json
                            : ngx_http_profile_overview_html;
    asked.data = job;
    asked.free = ngx_http_profile_overview_free;

    return ngx_http_profile_picture(call,
                                    ngx_http_profile_store(call->request),
                                    &asked);
}


/*
 * Reads the argument "cause".  Returns NGX_DECLINED, or the result of an answer
 * with the error.
 */

static ngx_int_t
ngx_http_profile_overview_cause(ngx_http_profile_call_t *call, ngx_uint_t *sum)
{
    ngx_int_t   rc;
    ngx_str_t   text, value;
    ngx_uint_t  i;

    *sum = NGX_HTTP_PROFILE_SUM_WALL;

    rc = ngx_http_profile_call_arg(call, "cause", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    for (i = 0; i < NGX_HTTP_PROFILE_CAUSES; i++) {
        text = ngx_http_profile_cause_text(i);

        if (text.len == value.len
            && ngx_strncmp(text.data, value.data, text.len) == 0)
        {
            *sum = NGX_HTTP_PROFILE_SUM_WAITS + i;
            return NGX_DECLINED;
        }
    }

    return ngx_http_profile_call_wrong(call, "cause", &value,
                                       "a cause of waiting, for example "
                                       "\"script timer\"");
}


static void
ngx_http_profile_overview_free(void *data)
{
    ngx_http_profile_overview_job_t *job = data;

    ngx_http_profile_directory_free(job->dir);
    prof_buf_free(&job->page);
    ngx_free(job);
}


/* context: the thread */

static int
ngx_http_profile_overview_html(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    ngx_http_profile_overview_t      *ov;
    ngx_http_profile_overview_job_t  *job;

    job = pic->data;

    ov = ngx_http_profile_overview(job->dir, pic->store,
                                   NGX_HTTP_PROFILE_OVERVIEW, job->sum,
                                   job->own);

    if (ov == NULL || prof_buf_failed(&job->page)) {
        free(ov);
        return PROF_ERROR;
    }

    prof_buf_append(&pic->out, job->page.data, job->content);

    prof_buf_puts(&pic->out, "<div id=\"overview\">\n");

    ngx_http_profile_overview_table(ov, (char *) job->root, &pic->out);

    if (job->sum == NGX_HTTP_PROFILE_SUM_WALL) {
        ngx_http_profile_handlers_table(job->dir, &pic->out);
    }

    prof_buf_puts(&pic->out, "</div>\n");

    prof_buf_append(&pic->out, job->page.data + job->content,
                    job->page.len - job->content);
    free(ov);

    return PROF_OK;
}


static int
ngx_http_profile_overview_json(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    json_t                           *json, *list;
    ngx_uint_t                        i;
    ngx_http_profile_overview_t      *ov;
    ngx_http_profile_overview_job_t  *job;

    job = pic->data;

    ov = ngx_http_profile_overview(job->dir, pic->store,
                                   NGX_HTTP_PROFILE_OVERVIEW, job->sum,
                                   job->own);
    if (ov == NULL) {
        return PROF_ERROR;
    }

    list = json_array();

    for (i = 0; i < ov->n; i++) {
        (void) json_array_append_new(list,
                              ngx_http_profile_overview_item(&ov->places[i]));
    }

    json = json_pack("{s:f, s:f, s:I, s:o, s:o, s:o, s:o}",
                     "minute_seconds", ov->seconds[NGX_HTTP_PROFILE_MINUTE],
                     "hour_seconds", ov->seconds[NGX_HTTP_PROFILE_HOUR],
                     "more_locations", (json_int_t) ov->more,
                     "workers", ngx_http_profile_overview_workers(&ov->workers),
                     "all", ngx_http_profile_overview_item(&ov->all),
                     "locations", list,
                     "handlers", ngx_http_profile_handlers_json(job->dir));
    free(ov);

    return ngx_http_profile_picture_dump(pic, json);
}


static json_t *
ngx_http_profile_overview_workers(ngx_http_profile_usage_t *usage)
{
    float  *minute, *hour;

    minute = usage->sums[NGX_HTTP_PROFILE_MINUTE];
    hour = usage->sums[NGX_HTTP_PROFILE_HOUR];

    return json_pack("{s:{s:I}, s:{s:I}, s:{s:o}}",
        "minute", "cpu", (json_int_t) minute[NGX_HTTP_PROFILE_SUM_CPU],
        "hour", "cpu", (json_int_t) hour[NGX_HTTP_PROFILE_SUM_CPU],
        "minutes", "cpu", ngx_http_profile_overview_minutes(usage,
                                                 NGX_HTTP_PROFILE_SUM_CPU));
}


static json_t *
ngx_http_profile_overview_item(ngx_http_profile_usage_t *usage)
{
    float       *hour;
    json_t      *json, *minutes, *waits, *profiles;
    ngx_str_t    text;
    ngx_uint_t   i;

    hour = usage->sums[NGX_HTTP_PROFILE_HOUR];
    waits = json_array();
    profiles = json_array();

    for (i = 0; i < NGX_HTTP_PROFILE_CAUSES; i++) {

        if (hour[NGX_HTTP_PROFILE_SUM_WAITS + i] > 0) {
            text = ngx_http_profile_cause_text(i);

            (void) json_array_append_new(waits,
                       json_pack("{s:s%, s:o}", "cause", text.data, text.len,
                                 "minutes",
                                 ngx_http_profile_overview_minutes(usage,
                                          NGX_HTTP_PROFILE_SUM_WAITS + i)));
        }
    }

    for (i = 0; i < NGX_HTTP_PROFILE_BUCKETS; i++) {

        if (usage->exemplars[i][0]) {
            (void) json_array_append_new(profiles,
                       json_stringn((char *) usage->exemplars[i],
                                    NGX_HTTP_PROFILE_ID_LEN));
        }
    }

    minutes = json_pack("{s:o, s:o, s:o, s:o, s:o}",
        "requests", ngx_http_profile_overview_minutes(usage,
                                           NGX_HTTP_PROFILE_SUM_REQUESTS),
        "wall", ngx_http_profile_overview_minutes(usage,
                                           NGX_HTTP_PROFILE_SUM_WALL),
        "cpu", ngx_http_profile_overview_minutes(usage,
                                           NGX_HTTP_PROFILE_SUM_CPU),
        "stall", ngx_http_profile_overview_minutes(usage,
                                           NGX_HTTP_PROFILE_SUM_STALL),
        "waits", waits);

    json = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
        "server", ngx_http_profile_json_text(&usage->server),
        "location", ngx_http_profile_json_text(&usage->location),
        "minute", ngx_http_profile_overview_sums(
                                     usage->sums[NGX_HTTP_PROFILE_MINUTE]),
        "hour", ngx_http_profile_overview_sums(hour),
        "minutes", minutes,
        "profiles", profiles);

    return json;
}


static json_t *
ngx_http_profile_overview_sums(float *sums)
{
    json_t      *waits;
    ngx_str_t    text;
    ngx_uint_t   i;

    waits = json_array();

    for (i = 0; i < NGX_HTTP_PROFILE_CAUSES; i++) {

        if (sums[NGX_HTTP_PROFILE_SUM_WAITS + i] > 0) {
            text = ngx_http_profile_cause_text(i);

            (void) json_array_append_new(waits,
                       json_pack("{s:s%, s:I}", "cause", text.data, text.len,
                                 "time", (json_int_t)
                                     sums[NGX_HTTP_PROFILE_SUM_WAITS + i]));
        }
    }

    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
        "requests", (json_int_t) sums[NGX_HTTP_PROFILE_SUM_REQUESTS],
        "wall", (json_int_t) sums[NGX_HTTP_PROFILE_SUM_WALL],
        "cpu", (json_int_t) sums[NGX_HTTP_PROFILE_SUM_CPU],
        "outside", (json_int_t) sums[NGX_HTTP_PROFILE_SUM_OUTSIDE],
        "no_processor", (json_int_t) sums[NGX_HTTP_PROFILE_SUM_NO_PROCESSOR],
        "blocked", (json_int_t) sums[NGX_HTTP_PROFILE_SUM_BLOCKED],
        "stall", (json_int_t) sums[NGX_HTTP_PROFILE_SUM_STALL],
        "waits", waits);
}


static json_t *
ngx_http_profile_overview_minutes(ngx_http_profile_usage_t *usage,
    ngx_uint_t sum)
{
    json_t      *list;
    ngx_uint_t   i;

    list = json_array();

    for (i = 0; i < NGX_HTTP_PROFILE_MINUTES; i++) {
        (void) json_array_append_new(list,
                       json_integer((json_int_t) usage->minutes[i][sum]));
    }

    return list;
}
