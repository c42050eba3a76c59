
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Stalls.  Finding the names of functions reads files, so a job does this.  At
 * most one stall in a second is logged, and the others are counted.
 */


#include "core/ngx_http_profile_lock.h"
#include "core/ngx_http_profile_conf.h"
#include "core/ngx_http_profile_http.h"
#include "loop/ngx_http_profile_loop.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_log_limit.h"
#include "core/ngx_http_profile_redact.h"
#include "keep/ngx_http_profile_keep.h"
#include "turns/ngx_http_profile_snapshot.h"


/* memory of a capture with one stack */
#define NGX_HTTP_PROFILE_STALL_MEMORY  32768


typedef struct {
    ngx_uint_t                 n;
    ngx_http_profile_stall_t   stalls[NGX_HTTP_PROFILE_STALLS];
} ngx_http_profile_stall_list_t;


typedef struct {
    ngx_http_profile_job_t     job;
    prof_profile_t            *profile;   /* entries: handler, stack */
    int                        rc;
    ngx_http_profile_snapshot_t
                              *snapshot;  /* of the turn log; NULL: none */
    ngx_http_profile_store_t  *store;
    prof_profile_t            *run;       /* with all samples of the run */
    ngx_int_t                  stored;
    u_char                     id[NGX_HTTP_PROFILE_ID_LEN];
    ngx_uint_t                 omitted;   /* stalls since the last line */
    ngx_http_profile_stall_t   stall;
} ngx_http_profile_stall_job_t;


static ngx_int_t ngx_http_profile_stall_init(ngx_shm_zone_t *zone,
    void *data);
static void ngx_http_profile_stall(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uint64_t wall);
static prof_profile_t *ngx_http_profile_stall_profile(uintptr_t handler);
static void ngx_http_profile_stall_turns(ngx_http_profile_stall_job_t *job,
    ngx_http_profile_run_t *run, ngx_http_profile_track_t *tr);
static prof_profile_t *ngx_http_profile_stall_run(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uint64_t end, const char *title);
static void ngx_http_profile_stall_work(void *data);
static void ngx_http_profile_stall_done(void *data);
static void ngx_http_profile_stall_names(prof_profile_t *p, uint32_t node,
    u_char *text, u_char *last);
static void ngx_http_profile_stall_add(ngx_http_profile_stall_t *stall);


char *
ngx_http_profile_stall_threshold(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_profile_main_conf_t *pmcf = conf;

    ngx_str_t  *value, name;
    ngx_msec_t  ms;

    if (pmcf->stall != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        pmcf->stall = 0;
        return NGX_CONF_OK;
    }

    ms = ngx_parse_time(&value[1], 0);

    if (ms == (ngx_msec_t) NGX_ERROR || ms == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be a time of at least 1ms, or \"off\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    pmcf->stall = ms;

    ngx_str_set(&name, "ngx_http_profile_stalls");

    pmcf->stall_zone = ngx_http_profile_shared_memory(cf, &name,
                                                 16 * ngx_pagesize,
                                                 ngx_http_profile_stall_init);

    return pmcf->stall_zone ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_profile_stall_init(ngx_shm_zone_t *zone, void *data)
{
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (data) {
        zone->data = data;
        return NGX_OK;
    }

    if (zone->shm.exists) {
        zone->data = shpool->data;
        return NGX_OK;
    }

    zone->data = ngx_slab_calloc(shpool,
                                 sizeof(ngx_http_profile_stall_list_t));
    shpool->data = zone->data;

    return zone->data ? NGX_OK : NGX_ERROR;
}


void
ngx_http_profile_stall_observe(uint64_t ns)
{
    ngx_http_profile_observers.slow = ngx_http_profile_stall;
    ngx_http_profile_observers.slow_ns = ns;
}


static void
ngx_http_profile_stall(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uint64_t wall)
{
    u_char                        *copy;
    ngx_str_t                      uri, method;
    ngx_uint_t                     omitted;
    ngx_http_request_t            *r;
    ngx_http_profile_stall_job_t  *job;

    static ngx_http_profile_log_limit_t  line;

    if (ngx_http_profile_log_limit(&line, &omitted) != NGX_OK) {
        return;
    }

    job = ngx_calloc(sizeof(ngx_http_profile_stall_job_t), ngx_cycle->log);
    if (job == NULL) {
        return;
    }

    job->stall.wall = wall;
    job->stall.when = ngx_time();
    job->omitted = omitted;
    job->stall.worker = ngx_pid;

    if (tr) {
        r = tr->request;

        ngx_http_profile_sent(r, &method, &uri);

        uri = r->unparsed_uri;
        copy = ngx_http_profile_redact(r, &uri);

        ngx_slprintf(job->stall.request,
                     job->stall.request + sizeof(job->stall.request) - 1,
                     "%V %V%s%V", &method, &uri,
                     r->headers_in.server.len ? " " : "",
                     &r->headers_in.server);
        ngx_free(copy);
    }

    job->profile = ngx_http_profile_stall_profile(run->handler);

    ngx_http_profile_stall_turns(job, run, tr);

    job->job.work = ngx_http_profile_stall_work;
    job->job.done = ngx_http_profile_stall_done;
    job->job.data = job;
    job->job.rank = NGX_HTTP_PROFILE_JOB_RECORDED;
    job->job.size = sizeof(ngx_http_profile_stall_job_t);

    if (ngx_http_profile_job_start(&job->job) != NGX_OK) {
        ngx_http_profile_stall_done(job);
    }
}


static prof_profile_t *
ngx_http_profile_stall_profile(uintptr_t handler)
{
    prof_capture_t      *c;
    prof_profile_t      *p;
    prof_capture_conf_t  conf;

    ngx_memzero(&conf, sizeof(prof_capture_conf_t));

    conf.frequency = PROF_FREQUENCY_DEFAULT;
    conf.mode = PROF_MODE_CPU;
    conf.memory = NGX_HTTP_PROFILE_STALL_MEMORY;

    c = prof_capture_create(&conf);
    if (c == NULL) {
        return NULL;
    }

    prof_capture_begin(c, 1);
    prof_capture_ran(c, handler, 2, 0);

    if (ngx_http_profile_watch) {
        (void) prof_watch_stack(ngx_http_profile_watch, c, 1);
    }

    p = prof_capture_finish(c, "stall");
    prof_capture_destroy(c);

    return p;
}


/* with a turn log, the stall is stored: what the worker ran, and the log */

static void
ngx_http_profile_stall_turns(ngx_http_profile_stall_job_t *job,
    ngx_http_profile_run_t *run, ngx_http_profile_track_t *tr)
{
    uint64_t                       now, from;
    u_char                         title[sizeof("stall: ")
                                         + sizeof(job->stall.request)];
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_profile_module);

    if (pmcf == NULL || pmcf->store == NULL
        || ngx_http_profile_make_id(job->id, ngx_cycle->log) != NGX_OK)
    {
        return;
    }

    now = run->start + job->stall.wall;
    from = run->start - ngx_min(run->start, NGX_HTTP_PROFILE_SNAPSHOT_TIME);

    job->snapshot = ngx_http_profile_snapshot_begin(PROF_TURNS_STALLED, from,
                                                    0);
    if (job->snapshot == NULL) {
        return;
    }

    *ngx_sprintf(title, "stall: %s", job->stall.request[0]
                 ? job->stall.request : (u_char *) "no request") = '\0';

    job->store = pmcf->store;
    job->snapshot->to = now;
    job->snapshot->run = run->start;
    job->snapshot->request = tr ? tr->number : 0;
    job->run = ngx_http_profile_stall_run(run, tr, now, (char *) title);
}


/* without a watch, the profile has the handler only */

static prof_profile_t *
ngx_http_profile_stall_run(ngx_http_profile_run_t *run,
    ngx_http_profile_track_t *tr, uint64_t end, const char *title)
{
    uint64_t              cpu;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    ngx_memzero(&conf, sizeof(prof_capture_conf_t));

    conf.frequency = PROF_FREQUENCY_DEFAULT;
    conf.mode = PROF_MODE_WALL;
    conf.memory = NGX_HTTP_PROFILE_STALL_MEMORY;

    c = prof_capture_create(&conf);
    if (c == NULL) {
        return NULL;
    }

    cpu = tr ? tr->turn_cpu : end - run->start;

    prof_capture_begin(c, run->start);

    if (ngx_http_profile_watch) {

        if (ngx_http_profile_spot.fresh) {
            ngx_http_profile_watch_pass(run);
        }

        prof_watch_turn(ngx_http_profile_watch, c, PROF_WATCH_ALL,
                        run->handler, end, cpu);

    } else {
        prof_capture_ran(c, run->handler, end, cpu);
    }

    p = prof_capture_finish(c, title);
    prof_capture_destroy(c);

    return p;
}


static void
ngx_http_profile_stall_work(void *data)
{
    ngx_http_profile_stall_job_t *job = data;

    job->rc = job->profile ? prof_profile_symbolize(job->profile)
                           : PROF_ERROR;

    job->stored = NGX_ERROR;

    if (job->run && prof_profile_symbolize(job->run) == PROF_OK) {
        ngx_http_profile_snapshot_add(job->snapshot, job->run);

        job->stored = ngx_http_profile_snapshot_profile(job->store, job->run,
                                                 job->id, "stall",
                                                 (uint32_t) job->stall.worker);
    }
}


/* the job ended, or could not be started: names may be missing */

static void
ngx_http_profile_stall_done(void *data)
{
    ngx_http_profile_stall_job_t *job = data;

    ngx_uint_t                 stored;
    prof_series_t             *s;
    prof_profile_t            *p;
    ngx_http_profile_stall_t  *st;

    p = job->profile;
    st = &job->stall;
    stored = job->run && job->job.worked && job->stored == NGX_OK;

    if (p && job->rc == PROF_OK && job->job.worked) {

        s = &p->series[PROF_SERIES_TIME];

        if (s->n > 0) {
            ngx_http_profile_stall_names(p, prof_series_entry(s, 0)->node,
                                         st->handler,
                                         st->handler + sizeof(st->handler));
        }

        if (s->n > 1) {
            ngx_http_profile_stall_names(p, prof_series_entry(s, 1)->node,
                                         st->stack,
                                         st->stack + sizeof(st->stack));
        }
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "profile: the worker was held for %uL ms by %s%s%s, "
                  "handler: %s, running: %s, %ui more not logged%s%*s",
                  st->wall / 1000000, st->request[0] ? "\"" : "",
                  st->request[0] ? st->request : (u_char *) "no request",
                  st->request[0] ? "\"" : "",
                  st->handler[0] ? st->handler : (u_char *) "unknown",
                  st->stack[0] ? st->stack : (u_char *) "not sampled",
                  job->omitted, stored ? ", profile " : "",
                  stored ? (size_t) NGX_HTTP_PROFILE_ID_LEN : 0, job->id);

    ngx_http_profile_stall_add(st);

    ngx_http_profile_free_profile(p);
    ngx_http_profile_free_profile(job->run);
    ngx_http_profile_snapshot_free(job->snapshot);

    ngx_free(job);
}


/* writes the names of the innermost functions, as many as fit */

static void
ngx_http_profile_stall_names(prof_profile_t *p, uint32_t node, u_char *text,
    u_char *last)
{
    u_char      *at;
    const char  *name;

    for (at = text; node != PROF_NONE; node = p->nodes[node].parent) {

        name = p->frames[p->nodes[node].frame].name;

        if ((size_t) (last - at) < ngx_strlen(name) + sizeof(" < ...")) {

            if ((size_t) (last - at) > sizeof(" < ...")) {
                at = ngx_cpymem(at, " < ...", sizeof(" < ...") - 1);
            }

            break;
        }

        at = ngx_sprintf(at, "%s%s", at == text ? "" : " < ", name);
    }

    *at = '\0';
}


static void
ngx_http_profile_stall_add(ngx_http_profile_stall_t *stall)
{
    ngx_uint_t                      i;
    ngx_shm_zone_t                 *zone;
    ngx_slab_pool_t                *shpool;
    ngx_http_profile_main_conf_t   *pmcf;
    ngx_http_profile_stall_list_t  *list;

    pmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_profile_module);

    /* a reload of a single process may have removed all of "http" */

    zone = pmcf ? pmcf->stall_zone : NULL;

    if (zone == NULL) {
        return;
    }

    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    list = zone->data;

    ngx_http_profile_lock(&shpool->mutex);

    if (list->n < NGX_HTTP_PROFILE_STALLS) {
        list->n++;

    } else if (list->stalls[list->n - 1].wall >= stall->wall) {
        ngx_shmtx_unlock(&shpool->mutex);
        return;
    }

    for (i = list->n - 1; i > 0 && list->stalls[i - 1].wall < stall->wall;
         i--)
    {
        list->stalls[i] = list->stalls[i - 1];
    }

    list->stalls[i] = *stall;

    ngx_shmtx_unlock(&shpool->mutex);
}


ngx_uint_t
ngx_http_profile_stalls(ngx_shm_zone_t *zone,
    ngx_http_profile_stall_t *stalls)
{
    ngx_uint_t                      n;
    ngx_slab_pool_t                *shpool;
    ngx_http_profile_stall_list_t  *list;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    list = zone->data;

    ngx_http_profile_lock(&shpool->mutex);

    n = list->n;
    ngx_memcpy(stalls, list->stalls, n * sizeof(ngx_http_profile_stall_t));

    ngx_shmtx_unlock(&shpool->mutex);

    return n;
}
