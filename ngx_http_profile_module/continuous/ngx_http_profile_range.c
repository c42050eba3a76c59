
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A range of the continuous profile as one profile: the slices that begin in
 * the range, of all workers.  A job reads, merges and encodes them.  The memory
 * of the job is limited by the size of the store of slices and by the limits of
 * prof_merge.h.
 *
 * Context: the event loop, unless stated otherwise.
 */


#include "continuous/ngx_http_profile_continuous.h"
#include "core/ngx_http_profile_job.h"


/* the maximum number of ranges that one worker makes at a time */
#define NGX_HTTP_PROFILE_RANGES  4

/* bytes of the list of workers that run one event for long */
#define NGX_HTTP_PROFILE_LATE_LEN  256


typedef struct {
    ngx_http_profile_continuous_t  *conf;
    ngx_http_profile_call_t        *call;     /* NULL: client disconnected */
    ngx_http_profile_job_t          job;
    ngx_atomic_t                    cancelled;

    /* the arguments of the call */

    uint64_t                        from;
    uint64_t                        to;
    ngx_int_t                       worker;   /* number, or -1: all */
    ngx_uint_t                      mode;
    const prof_encoder_t           *format;
    ngx_http_profile_root_t         root;
    ngx_http_profile_store_t       *store;    /* POST: where to store it */
    u_char                          id[NGX_HTTP_PROFILE_ID_LEN];

    /* the result, which belongs to the thread until the job is done */

    ngx_uint_t                      slices;   /* the number in the profile */
    ngx_int_t                       stored;
    ngx_uint_t                      failed;
    prof_buf_t                      out;
    ngx_http_profile_gzip_t         gzip;
} ngx_http_profile_range_t;


static ngx_int_t ngx_http_profile_range_args(ngx_http_profile_call_t *call,
    ngx_http_profile_range_t *range);
static ngx_int_t ngx_http_profile_range_excluded(
    ngx_http_profile_call_t *call);
static ngx_int_t ngx_http_profile_range_moment(ngx_http_profile_call_t *call,
    const char *name, uint64_t now, uint64_t *moment);
static ngx_int_t ngx_http_profile_range_worker(ngx_http_profile_call_t *call,
    ngx_int_t *worker);
static ngx_int_t ngx_http_profile_range_keep(ngx_http_profile_call_t *call,
    ngx_http_profile_range_t *range);
static ngx_int_t ngx_http_profile_range_begin(ngx_http_profile_call_t *call,
    ngx_http_profile_range_t *asked);
static void ngx_http_profile_range_abort(ngx_http_profile_call_t *call);
static void ngx_http_profile_range_work(void *data);
static prof_profile_t *ngx_http_profile_range_sum(
    ngx_http_profile_range_t *range);
static ngx_int_t ngx_http_profile_range_add(ngx_http_profile_range_t *range,
    prof_merge_t *merge, ngx_http_profile_slice_facts_t *slice);
static void ngx_http_profile_range_facts(ngx_http_profile_range_t *range,
    prof_profile_t *p);
static ngx_int_t ngx_http_profile_range_store(
    ngx_http_profile_range_t *range, prof_profile_t *p);
static void ngx_http_profile_range_done(void *data);
static void ngx_http_profile_range_destroy(void *data);
static ngx_int_t ngx_http_profile_range_answer(
    ngx_http_profile_range_t *range);
static ngx_int_t ngx_http_profile_range_empty(
    ngx_http_profile_range_t *range);
static ngx_int_t ngx_http_profile_range_stored(
    ngx_http_profile_range_t *range);


static ngx_uint_t  ngx_http_profile_nranges;


ngx_int_t
ngx_http_profile_range(ngx_http_profile_call_t *call, ngx_uint_t mode)
{
    ngx_int_t                      rc;
    ngx_http_profile_range_t       range;
    ngx_http_profile_main_conf_t  *pmcf;

    ngx_memzero(&range, sizeof(ngx_http_profile_range_t));

    range.mode = mode;

    rc = ngx_http_profile_range_args(call, &range);

    if (rc != NGX_DECLINED || range.from == 0) {
        return rc;
    }

    pmcf = ngx_http_get_module_main_conf(call->request,
                                         ngx_http_profile_module);

    if (pmcf->continuous == NULL) {
        return ngx_http_profile_no_continuous(call);
    }

    if (mode == PROF_MODE_WALL && !pmcf->continuous->wall) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                          "the continuous profile has CPU time only, see "
                          "\"wall=\" of \"profile_continuous\"");
    }

    range.conf = pmcf->continuous;

    if (call->request->method == NGX_HTTP_POST) {
        rc = ngx_http_profile_range_keep(call, &range);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_profile_range_begin(call, &range);
}


ngx_int_t
ngx_http_profile_no_continuous(ngx_http_profile_call_t *call)
{
    return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                          "there is no continuous profile, see the "
                          "\"profile_continuous\" directive");
}


/*
 * Reads the arguments.  Returns NGX_DECLINED, or the result of an answer with
 * the error.  A call that asks for no range leaves range->from zero.
 */

static ngx_int_t
ngx_http_profile_range_args(ngx_http_profile_call_t *call,
    ngx_http_profile_range_t *range)
{
    uint64_t                   now;
    ngx_int_t                  rc;
    ngx_str_t                  value;
    ngx_time_t                *tp;
    ngx_http_profile_params_t  params;

    tp = ngx_timeofday();
    now = (uint64_t) tp->sec * 1000 + tp->msec;

    rc = ngx_http_profile_range_moment(call, "from", now, &range->from);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_range_moment(call, "to", now, &range->to);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (range->from == 0) {
        return range->to == 0 ? NGX_DECLINED
               : ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                             "\"from\" is missing, it must be "
                             NGX_HTTP_PROFILE_MOMENT);
    }

    if (range->to == 0) {
        range->to = now;
    }

    if (range->from >= range->to) {
        ngx_str_set(&value, "");
        (void) ngx_http_profile_call_arg(call, "from", &value);

        return ngx_http_profile_call_wrong(call, "from", &value,
                                           "before \"to\"");
    }

    rc = ngx_http_profile_range_excluded(call);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_range_worker(call, &range->worker);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_profile_call_root(call, &range->root);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    params.given = 0;

    rc = ngx_http_profile_call_param(call, "format",
                                     NGX_HTTP_PROFILE_PARAM_FORMAT, &params);
    if (rc != NGX_DECLINED) {
        return rc;
    }

    range->format = ngx_http_profile_param_given(&params,
                                              NGX_HTTP_PROFILE_PARAM_FORMAT)
                    ? prof_encoders[
                              params.values[NGX_HTTP_PROFILE_PARAM_FORMAT]]
                    : call->pprof
                    ? &prof_encode_pprof
                    : ngx_http_profile_accept_format(call->request,
                                                     prof_encoders[0]);
    return NGX_DECLINED;
}


/*
 * Refuses arguments of captures, which would have no effect on a range.  This
 * function and the next ones return NGX_DECLINED, or the result of an answer.
 */

static ngx_int_t
ngx_http_profile_range_excluded(ngx_http_profile_call_t *call)
{
    ngx_int_t   rc;
    ngx_str_t   value;
    ngx_uint_t  i;

    static const char  *names[] = {
        "seconds", "requests", "frequency", "workers", "labels", "uri",
        "server", "location"
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rc = ngx_http_profile_call_arg(call, names[i], &value);

        if (rc == NGX_ERROR) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (rc == NGX_OK) {
            return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                              "\"%s\" is \"%V\", it must be left out with "
                              "\"from\"", names[i], &value);
        }
    }

    return NGX_DECLINED;
}


/* reads an argument that is a time; *moment is unchanged if it is missing */

static ngx_int_t
ngx_http_profile_range_moment(ngx_http_profile_call_t *call,
    const char *name, uint64_t now, uint64_t *moment)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_profile_call_arg(call, name, &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    *moment = ngx_http_profile_moment(&value, now);

    return *moment ? NGX_DECLINED
                   : ngx_http_profile_call_wrong(call, name, &value,
                                                 NGX_HTTP_PROFILE_MOMENT);
}


static ngx_int_t
ngx_http_profile_range_worker(ngx_http_profile_call_t *call,
    ngx_int_t *worker)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    *worker = -1;

    rc = ngx_http_profile_call_arg(call, "worker", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    *worker = ngx_atoi(value.data, value.len);

    return *worker >= 0 ? NGX_DECLINED
                        : ngx_http_profile_call_wrong(call, "worker", &value,
                                          "the number of a worker, from 0");
}


static ngx_int_t
ngx_http_profile_range_keep(ngx_http_profile_call_t *call,
    ngx_http_profile_range_t *range)
{
    range->store = ngx_http_profile_store(call->request);

    if (range->store == NULL) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                 "there is no store, see the "
                                 "\"profile_zone\" directive");
    }

    return ngx_http_profile_make_id(range->id, call->request->connection->log)
           == NGX_OK ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_profile_range_begin(ngx_http_profile_call_t *call,
    ngx_http_profile_range_t *asked)
{
    ngx_int_t                  rc;
    ngx_http_profile_range_t  *range;

    if (call->request->method == NGX_HTTP_HEAD) {
        return ngx_http_profile_answer_nothing(call);
    }

    if (ngx_http_profile_nranges >= NGX_HTTP_PROFILE_RANGES) {

        if (ngx_http_profile_add_text_header(call->request, "Retry-After",
                                             "1")
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_profile_answer_error(call, NGX_HTTP_TOO_MANY_REQUESTS,
                                 "%d ranges are being merged already",
                                 NGX_HTTP_PROFILE_RANGES);
    }

    range = ngx_alloc(sizeof(ngx_http_profile_range_t),
                      call->request->connection->log);
    if (range == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    *range = *asked;

    prof_buf_init(&range->out);
    range->gzip.accepted = ngx_http_profile_accept_gzip(call->request);

    range->job.work = ngx_http_profile_range_work;
    range->job.done = ngx_http_profile_range_done;
    range->job.data = range;
    range->job.rank = NGX_HTTP_PROFILE_JOB_ASKED;
    range->job.size = sizeof(ngx_http_profile_range_t);

    rc = ngx_http_profile_job_start(&range->job);

    if (rc != NGX_OK) {
        ngx_free(range);
        return ngx_http_profile_answer_no_job(call, rc);
    }

    ngx_http_profile_nranges++;

    rc = ngx_http_profile_call_hold(call, ngx_http_profile_range_abort, range);

    if (rc == NGX_DONE) {
        range->call = call;

    } else {
        range->cancelled = 1;
    }

    return rc;
}


static void
ngx_http_profile_range_abort(ngx_http_profile_call_t *call)
{
    ngx_http_profile_range_t  *range;

    range = call->data;
    range->call = NULL;
    range->cancelled = 1;

    if (ngx_http_profile_job_cancel(&range->job) == NGX_OK) {
        ngx_http_profile_range_done(range);
    }
}


/*
 * Context: the thread, also for the functions from here up to, but without,
 * ngx_http_profile_range_done().
 */

static void
ngx_http_profile_range_work(void *data)
{
    ngx_http_profile_range_t *range = data;

    prof_profile_t  *p;

    p = ngx_http_profile_range_sum(range);

    if (p == NULL) {
        range->failed = 1;
        return;
    }

    if (range->slices && !range->cancelled) {
        ngx_http_profile_range_facts(range, p);
        (void) prof_profile_spread(p);

        if (prof_profile_symbolize(p) != PROF_OK
            || ngx_http_profile_root_keep(&range->root, p) != PROF_OK)
        {
            range->failed = 1;

        } else if (range->store) {
            range->stored = ngx_http_profile_range_store(range, p);

        } else if (range->format->encode(p, &range->out) != PROF_OK
                   || prof_buf_failed(&range->out))
        {
            range->failed = 1;

        } else {
            ngx_http_profile_gzip(&range->out, &range->gzip);
        }
    }

    prof_profile_destroy(p);
}


static prof_profile_t *
ngx_http_profile_range_sum(ngx_http_profile_range_t *range)
{
    ngx_int_t                        i, n;
    prof_merge_t                    *merge;
    ngx_http_profile_slice_facts_t  *list;

    n = ngx_http_profile_slices_list(range->conf, range->from, range->to, 0,
                                     &list);
    if (n == NGX_ERROR) {
        return NULL;
    }

    merge = prof_merge_create(range->worker == -1 ? "all workers" : "worker",
                              0);

    for (i = 0; merge && i < n && !range->cancelled; i++) {

        if ((range->worker != -1
             && (uint32_t) range->worker != list[i].worker)
            || (range->mode == PROF_MODE_WALL
                && list[i].mode != PROF_MODE_WALL))
        {
            continue;
        }

        if (ngx_http_profile_range_add(range, merge, &list[i]) == NGX_ERROR) {
            prof_merge_destroy(merge);
            merge = NULL;
        }
    }

    ngx_free(list);

    return merge ? prof_merge_finish(merge) : NULL;
}


/*
 * Adds a slice to the merge.  Returns NGX_DECLINED if the slice cannot be
 * read: it may have been replaced or deleted since it was listed.
 */

static ngx_int_t
ngx_http_profile_range_add(ngx_http_profile_range_t *range,
    prof_merge_t *merge, ngx_http_profile_slice_facts_t *slice)
{
    int                  rc;
    char                 number[NGX_INT_T_LEN + 1];
    prof_profile_t      *p;
    prof_merge_label_t   label;

    p = ngx_http_profile_slices_read(range->conf, slice->id);

    if (p == NULL) {
        return NGX_DECLINED;
    }

    *ngx_sprintf((u_char *) number, "%uD", slice->worker) = '\0';

    label.name = "worker";
    label.value = number;
    label.unit = NULL;

    rc = prof_merge_add(merge, p, &label, 1);

    prof_profile_destroy(p);

    if (rc != PROF_OK) {
        return NGX_ERROR;
    }

    range->slices++;

    return NGX_OK;
}


/* adds facts; errors are ignored, since a profile without facts is useful */

static void
ngx_http_profile_range_facts(ngx_http_profile_range_t *range,
    prof_profile_t *p)
{
    u_char      *last;
    u_char       text[NGX_INT_T_LEN + sizeof("2026-11-23T06:44:20.000Z")];
    u_char       late[NGX_HTTP_PROFILE_LATE_LEN];
    ngx_uint_t   kept;

    p->mode = range->mode;

    (void) prof_profile_scope(p, range->worker == -1 ? "all" : "worker");

    last = ngx_http_profile_moment_text(text, p->start_realtime / 1000000);
    (void) prof_profile_fact(p, "from", (char *) text, last - text);

    last = ngx_http_profile_moment_text(text,
                               (p->start_realtime + p->duration) / 1000000);
    (void) prof_profile_fact(p, "to", (char *) text, last - text);

    last = ngx_sprintf(text, "%ui", range->slices);
    (void) prof_profile_fact(p, "slices", (char *) text, last - text);

    for (kept = 0; kept < 2; kept++) {
        last = ngx_http_profile_slice_late(range->conf, kept, range->to, late,
                                           late + sizeof(late));

        if (last != late) {
            (void) prof_profile_fact(p, kept ? "busy" : "left_out",
                                     (char *) late, last - late);
        }
    }

    (void) prof_profile_fact(p, "software", NGINX_VER, sizeof(NGINX_VER) - 1);
}


static ngx_int_t
ngx_http_profile_range_store(ngx_http_profile_range_t *range,
    prof_profile_t *p)
{
    ngx_int_t                  rc;
    prof_buf_t                 archive;
    ngx_http_profile_stored_t  st;

    prof_buf_init(&archive);

    if (prof_archive_write(p, &archive) != PROF_OK
        || prof_buf_failed(&archive))
    {
        prof_buf_free(&archive);
        return NGX_ERROR;
    }

    ngx_memzero(&st, sizeof(ngx_http_profile_stored_t));

    ngx_memcpy(st.id, range->id, NGX_HTTP_PROFILE_ID_LEN);

    ngx_http_profile_store_measure(&st, p);

    st.start = p->start_realtime / 1000000;
    st.waited = (p->mode == PROF_MODE_WALL && p->wall > p->running)
                ? p->wall - p->running : 0;
    st.scope.data = (u_char *) p->scope;
    st.scope.len = ngx_strlen(p->scope);
    st.uri.data = (u_char *) p->title;
    st.uri.len = ngx_strlen(p->title);
    st.archive = (u_char *) archive.data;
    st.size = archive.len;

    rc = ngx_http_profile_store_add(range->store, &st, ngx_cycle->log);

    prof_buf_free(&archive);

    return rc;
}


static void
ngx_http_profile_range_done(void *data)
{
    ngx_http_profile_range_t *range = data;

    ngx_http_profile_nranges--;

    if (range->call) {
        ngx_http_profile_call_end(range->call,
                                  ngx_http_profile_range_answer(range));
    }

    ngx_http_profile_job_free(&range->job, ngx_http_profile_range_destroy);
}


/* context: the thread, or the event loop */

static void
ngx_http_profile_range_destroy(void *data)
{
    ngx_http_profile_range_t *range = data;

    prof_buf_free(&range->out);
    ngx_free(range);
}


static ngx_int_t
ngx_http_profile_range_answer(ngx_http_profile_range_t *range)
{
    ngx_str_t                   path, none;
    ngx_http_profile_call_t    *call;
    ngx_http_profile_answer_t   answer;

    call = range->call;

    if (range->root.unknown) {
        return ngx_http_profile_answer_no_root(call, &range->root);
    }

    if (range->failed || !range->job.worked) {
        return ngx_http_profile_answer_error(call,
                                     NGX_HTTP_INTERNAL_SERVER_ERROR,
                                     "no memory to merge the slices");
    }

    if (range->slices == 0) {
        return ngx_http_profile_range_empty(range);
    }

    if (range->store) {
        return ngx_http_profile_range_stored(range);
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.type.data = (u_char *) range->format->content_type;
    answer.type.len = ngx_strlen(answer.type.data);
    answer.csp = range->format->csp;
    answer.framed = !range->format->download;
    answer.gzipped = range->gzip.done;
    answer.compressible = range->gzip.compressible;

    ngx_str_set(&path, "nginx");
    ngx_str_null(&none);

    if (range->format->download
        && ngx_http_profile_file_name(call->request->pool, &path, &none,
                                      range->mode, range->from / 1000,
                                      range->format->extension, &answer.file)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer_buf(call, &answer, &range->out);
}


static ngx_int_t
ngx_http_profile_range_empty(ngx_http_profile_range_t *range)
{
    u_char  from[sizeof("2026-11-23T06:44:20.000Z")];
    u_char  to[sizeof("2026-11-23T06:44:20.000Z")];
    u_char  late[NGX_HTTP_PROFILE_LATE_LEN + 1];

    *ngx_http_profile_moment_text(from, range->from) = '\0';
    *ngx_http_profile_moment_text(to, range->to) = '\0';
    *ngx_http_profile_slice_late(range->conf, 0, range->to, late,
                                 late + NGX_HTTP_PROFILE_LATE_LEN) = '\0';

    if (late[0]) {
        return ngx_http_profile_answer_error(range->call, NGX_HTTP_NOT_FOUND,
                             "the continuous profile has no slice that began "
                             "from %s to %s: workers have not ended theirs: "
                             "%s; a capture of the workers shows what they do",
                             from, to, late);
    }

    return ngx_http_profile_answer_error(range->call, NGX_HTTP_NOT_FOUND,
                             "the continuous profile has no slice that began "
                             "from %s to %s: the workers were idle, or this "
                             "time is not kept", from, to);
}


static ngx_int_t
ngx_http_profile_range_stored(ngx_http_profile_range_t *range)
{
    ngx_http_profile_call_t    *call;
    ngx_http_profile_answer_t   answer;

    call = range->call;

    if (range->stored == NGX_DECLINED) {
        return ngx_http_profile_answer_error(call,
                                   NGX_HTTP_INSUFFICIENT_STORAGE,
                                   "the profile "
                                   NGX_HTTP_PROFILE_STORE_FULL);
    }

    if (range->stored != NGX_OK) {
        return ngx_http_profile_answer_error(call,
                                   NGX_HTTP_INTERNAL_SERVER_ERROR,
                                   NGX_HTTP_PROFILE_STORE_FAILED);
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.status = NGX_HTTP_CREATED;
    ngx_str_set(&answer.type, "application/json");

    answer.body.data = ngx_pnalloc(call->request->pool,
                                   sizeof("{\"id\": \"\"}\n")
                                   + NGX_HTTP_PROFILE_ID_LEN);
    if (answer.body.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    answer.body.len = ngx_sprintf(answer.body.data, "{\"id\": \"%*s\"}\n",
                                  (size_t) NGX_HTTP_PROFILE_ID_LEN, range->id)
                      - answer.body.data;

    return ngx_http_profile_answer(call, &answer);
}
