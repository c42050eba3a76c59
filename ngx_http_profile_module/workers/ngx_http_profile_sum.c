
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "workers/ngx_http_profile_sum.h"


static void ngx_http_profile_sum_work(void *data);
static int ngx_http_profile_sum_merge(ngx_http_profile_part_t *part,
    ngx_http_profile_sum_to_t *to);
static void ngx_http_profile_sum_added(void *data);
static void ngx_http_profile_sum_facts(ngx_http_profile_sum_t *sum,
    prof_profile_t *p);
static void ngx_http_profile_sum_number(prof_profile_t *p, const char *name,
    ngx_uint_t n);
static void ngx_http_profile_sum_end(void *data);
static void ngx_http_profile_sum_ended(void *data);


ngx_http_profile_sum_t *
ngx_http_profile_sum_create(prof_capture_conf_t *conf)
{
    ngx_time_t              *tp;
    ngx_http_profile_sum_t  *sum;

    sum = ngx_calloc(sizeof(ngx_http_profile_sum_t), ngx_cycle->log);
    if (sum == NULL) {
        return NULL;
    }

    sum->merge = prof_merge_create("endpoint", 0);

    if (sum->merge == NULL) {
        ngx_free(sum);
        return NULL;
    }

    sum->conf = *conf;

    tp = ngx_timeofday();
    sum->start_realtime = ((uint64_t) tp->sec * 1000 + tp->msec) * 1000000;

    return sum;
}


ngx_int_t
ngx_http_profile_sum_add(ngx_http_profile_part_t *part)
{
    part->job.work = ngx_http_profile_sum_work;
    part->job.done = ngx_http_profile_sum_added;
    part->job.data = part;
    part->job.rank = NGX_HTTP_PROFILE_JOB_NEEDED;
    part->job.size = prof_profile_size(part->profile);

    return ngx_http_profile_job_start(&part->job);
}


/* context: the thread */

static void
ngx_http_profile_sum_work(void *data)
{
    ngx_http_profile_part_t *part = data;

    int                         rc;
    uint64_t                    start;
    ngx_uint_t                  i;
    ngx_http_profile_sum_to_t  *to;

    start = prof_cpu_now();

    rc = prof_profile_complete(part->profile);

    for (i = 0; i < part->n; i++) {
        to = &part->to[i];

        if (rc != PROF_OK || to->sum->lost
            || ngx_http_profile_sum_merge(part, to) != PROF_OK)
        {
            to->sum->lost = 1;
        }

        (void) __atomic_add_fetch(&to->sum->cost, prof_cpu_now() - start,
                                  __ATOMIC_RELAXED);
    }

    prof_profile_destroy(part->profile);
}


static int
ngx_http_profile_sum_merge(ngx_http_profile_part_t *part,
    ngx_http_profile_sum_to_t *to)
{
    prof_merge_label_t  labels[2];

    if (!to->traced) {
        return prof_merge_add(to->sum->merge, part->profile, NULL, 0);
    }

    labels[0].name = "trace_id";
    labels[0].value = part->trace_id;
    labels[0].unit = NULL;

    labels[1].name = "span_id";
    labels[1].value = part->span_id;
    labels[1].unit = NULL;

    return prof_merge_add(to->sum->merge, part->profile, labels, 2);
}


static void
ngx_http_profile_sum_added(void *data)
{
    ngx_free(data);
}


uint64_t
ngx_http_profile_sum_cost(ngx_http_profile_sum_t *sum)
{
    return __atomic_load_n(&sum->cost, __ATOMIC_RELAXED);
}


prof_profile_t *
ngx_http_profile_sum_finish(ngx_http_profile_sum_t *sum)
{
    prof_profile_t  *p;

    p = prof_merge_finish(sum->merge);
    sum->merge = NULL;

    if (sum->lost) {
        prof_profile_destroy(p);
        return NULL;
    }

    p->mode = sum->conf.mode;
    p->stats.lost_traces = sum->lost_traces;

    if (p->start_realtime == 0) {
        p->start_realtime = sum->start_realtime;
        p->frequency = sum->conf.frequency;
        p->frequency_end = sum->conf.frequency;
    }

    ngx_http_profile_sum_facts(sum, p);

    return p;
}


/* adds facts; errors are ignored, since a profile without facts is useful */

static void
ngx_http_profile_sum_facts(ngx_http_profile_sum_t *sum, prof_profile_t *p)
{
    ngx_uint_t  i;
    prof_buf_t  b;

    ngx_http_profile_sum_number(p, "requests", sum->requests);
    ngx_http_profile_sum_number(p, "skipped", sum->skipped);
    ngx_http_profile_sum_number(p, "unfinished", sum->unfinished);

    prof_buf_init(&b);

    for (i = 0; i < NGX_HTTP_PROFILE_SEEN && sum->seen[i].requests; i++) {
        b.len = 0;
        prof_buf_number(&b, sum->seen[i].requests);
        prof_buf_puts(&b, " ");
        prof_buf_puts(&b, sum->seen[i].name);

        if (!prof_buf_failed(&b)) {
            (void) prof_profile_fact(p, "seen", b.data, b.len);
        }
    }

    b.len = 0;

    for (i = 0; i < sum->ntimes; i++) {
        prof_buf_number(&b, sum->times[i]);
        prof_buf_puts(&b, " ");
    }

    if (b.len && !prof_buf_failed(&b)) {
        (void) prof_profile_fact(p, "times", b.data, b.len);
    }

    prof_buf_free(&b);
}


static void
ngx_http_profile_sum_number(prof_profile_t *p, const char *name,
    ngx_uint_t n)
{
    u_char  buf[NGX_INT_T_LEN];

    (void) prof_profile_fact(p, name, (char *) buf,
                             ngx_sprintf(buf, "%ui", n) - buf);
}


void
ngx_http_profile_see(ngx_http_profile_seen_t *seen, const char *name,
    ngx_uint_t requests)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_PROFILE_SEEN; i++) {

        if (seen[i].requests == 0) {
            (void) ngx_cpystrn((u_char *) seen[i].name, (u_char *) name,
                               NGX_HTTP_PROFILE_SEEN_LEN);
        }

        if (ngx_strncmp(seen[i].name, name, NGX_HTTP_PROFILE_SEEN_LEN - 1)
            == 0)
        {
            seen[i].requests += requests;
            return;
        }
    }
}


void
ngx_http_profile_sum_free(ngx_http_profile_sum_t *sum)
{
    if (sum->merge == NULL) {
        ngx_http_profile_sum_ended(sum);
        return;
    }

    sum->job.work = ngx_http_profile_sum_end;
    sum->job.done = ngx_http_profile_sum_ended;
    sum->job.data = sum;
    sum->job.rank = NGX_HTTP_PROFILE_JOB_NEEDED;

    if (ngx_http_profile_job_start(&sum->job) != NGX_OK) {
        ngx_http_profile_sum_end(sum);
        ngx_http_profile_sum_ended(sum);
    }
}


/* context: the thread; the event loop if there is no thread */

static void
ngx_http_profile_sum_end(void *data)
{
    ngx_http_profile_sum_t *sum = data;

    prof_merge_destroy(sum->merge);
}


static void
ngx_http_profile_sum_ended(void *data)
{
    ngx_http_profile_sum_t *sum = data;

    ngx_free(sum->times);
    ngx_free(sum);
}
