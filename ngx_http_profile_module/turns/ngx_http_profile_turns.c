
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directive profile_turn_log, the memory of the logs, and what a worker ran
 * when it died.
 */


#include "core/ngx_http_profile_alive.h"
#include "core/ngx_http_profile_http.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_room.h"
#include "turns/ngx_http_profile_snapshot.h"

#include <dlfcn.h>
#include <sys/mman.h>


/* snapshots of deaths of one worker follow each other after this many ns */
#define NGX_HTTP_PROFILE_DEATH_INTERVAL  1000000000


typedef struct {
    ngx_http_profile_job_t         job;
    ngx_http_profile_snapshot_t   *snapshot;
    ngx_http_profile_store_t      *store;
    uint32_t                       pid;
    uint32_t                       request;
    uint64_t                       run;
    u_char                         id[NGX_HTTP_PROFILE_ID_LEN];
    u_char                         title[256];
} ngx_http_profile_death_t;


static char *ngx_http_profile_turns_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_profile_turns_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static char *ngx_http_profile_turns_init_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static char *ngx_http_profile_turns_merge_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf);
static void ngx_http_profile_turns_stop(void);

static ngx_int_t ngx_http_profile_turns_map(ngx_uint_t worker);
static prof_turns_log_t *ngx_http_profile_turns_of(ngx_uint_t worker);
static ngx_int_t ngx_http_profile_turns_name(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf);
static ngx_http_profile_death_t *ngx_http_profile_turns_death(
    prof_turns_log_t *log, ngx_http_profile_main_conf_t *pmcf,
    ngx_cycle_t *cycle);
static void ngx_http_profile_turns_report(const prof_turns_log_t *log,
    ngx_http_profile_death_t *death, ngx_log_t *err);
static void ngx_http_profile_turns_keep(ngx_http_profile_death_t *death);
static void ngx_http_profile_turns_keep_work(void *data);
static void ngx_http_profile_turns_keep_done(void *data);
static u_char *ngx_http_profile_turns_function(u_char *p, u_char *last,
    uintptr_t function);


static ngx_command_t  ngx_http_profile_turns_commands[] = {

    { ngx_string("profile_turn_log"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_profile_turns_set,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_turns_room = {
    ngx_http_profile_turns_commands,
    ngx_http_profile_turns_create,
    NULL,                                  /* create server */
    NULL,                                  /* create location */
    ngx_http_profile_turns_init_main,
    ngx_http_profile_turns_merge_server,
    NULL,                                  /* merge location */
    ngx_http_profile_turns_stop
};


/* the logs of this process and of its children, at the same addresses */

static size_t                          ngx_http_profile_turns_size;
static ngx_uint_t                      ngx_http_profile_turns_n;
static ngx_http_profile_turn_ring_t   *ngx_http_profile_turn_rings;

/* the names of this configuration, then of earlier ones */

static ngx_http_profile_turn_names_t  *ngx_http_profile_turn_names;


static ngx_int_t
ngx_http_profile_turns_create(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    pmcf->turn_log = NGX_CONF_UNSET_SIZE;

    return NGX_OK;
}


static char *
ngx_http_profile_turns_init_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    ngx_conf_init_size_value(pmcf->turn_log, 0);

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_turns_merge_server(ngx_conf_t *cf,
    ngx_http_profile_srv_conf_t *prev, ngx_http_profile_srv_conf_t *conf)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);

    if (pmcf->turn_log) {
        conf->track = 1;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_turns_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_main_conf_t *pmcf = conf;

    ssize_t     size;
    ngx_str_t  *value, s;

    if (pmcf->turn_log != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0 && cf->args->nelts == 2) {
        pmcf->turn_log = 0;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value[1].data, "on") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be \"on\" or \"off\"; only \"on\" takes "
                           "a parameter",
                           ngx_strcmp(value[1].data, "off") == 0
                           ? &value[2] : &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    if (cf->args->nelts == 2) {
        pmcf->turn_log = NGX_HTTP_PROFILE_TURNS_SIZE;
        return NGX_CONF_OK;
    }

    size = NGX_ERROR;

    if (ngx_strncmp(value[2].data, "size=", 5) == 0) {
        s.data = value[2].data + 5;
        s.len = value[2].len - 5;

        size = ngx_parse_size(&s);
    }

    if (size < NGX_HTTP_PROFILE_TURNS_SIZE_MIN
        || size > NGX_HTTP_PROFILE_TURNS_SIZE_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" in \"%V\" directive, it "
                           "must be \"size=\" with a size from 64k to 1024m",
                           &value[2], &cmd->name);
        return NGX_CONF_ERROR;
    }

    pmcf->turn_log = (size_t) size;

    return NGX_CONF_OK;
}


void
ngx_http_profile_turns_init(ngx_cycle_t *cycle)
{
    ngx_uint_t                     i, workers;
    ngx_core_conf_t               *ccf;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);

    /* logs of another size end; a process that still writes one keeps it */

    if (pmcf == NULL || pmcf->turn_log != ngx_http_profile_turns_size) {
        ngx_http_profile_turns_close();
    }

    if (pmcf == NULL || pmcf->turn_log == 0) {
        return;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    workers = ccf->master ? (ngx_uint_t) ccf->worker_processes : 1;

    ngx_http_profile_turns_size = pmcf->turn_log;

    for (i = 0; i < workers; i++) {

        if (ngx_http_profile_turns_of(i) == NULL
            && ngx_http_profile_turns_map(i) != NGX_OK)
        {
            goto failed;
        }
    }

    if (ngx_http_profile_turns_name(cycle, pmcf) == NGX_OK) {
        return;
    }

failed:

    ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                  "profile: no memory for the turn log, until the next reload "
                  "some workers have none");
}


/* adds a log; other processes may read the array, so it is replaced */

static ngx_int_t
ngx_http_profile_turns_map(ngx_uint_t worker)
{
    void                          *p;
    ngx_uint_t                     n;
    ngx_http_profile_turn_ring_t  *rings;

    n = ngx_http_profile_turns_n;

    p = mmap(NULL, prof_turns_size(ngx_http_profile_turns_size),
             PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        return NGX_ERROR;
    }

    rings = ngx_alloc((n + 1) * sizeof(ngx_http_profile_turn_ring_t),
                      ngx_cycle->log);
    if (rings == NULL) {
        (void) munmap(p, prof_turns_size(ngx_http_profile_turns_size));
        return NGX_ERROR;
    }

    prof_turns_init(p, ngx_http_profile_turns_size);

    if (n) {
        ngx_memcpy(rings, ngx_http_profile_turn_rings,
                   n * sizeof(ngx_http_profile_turn_ring_t));
        ngx_free(ngx_http_profile_turn_rings);
    }

    rings[n].worker = worker;
    rings[n].log = p;

    ngx_http_profile_turn_rings = rings;
    ngx_http_profile_turns_n = n + 1;

    return NGX_OK;
}


/* returns a log of the worker that this process writes or may take, or NULL */

static prof_turns_log_t *
ngx_http_profile_turns_of(ngx_uint_t worker)
{
    uint64_t           owner;
    ngx_uint_t         i;
    prof_turns_log_t  *log;

    for (i = 0; i < ngx_http_profile_turns_n; i++) {
        log = ngx_http_profile_turn_rings[i].log;
        owner = __atomic_load_n(&log->owner, __ATOMIC_ACQUIRE);

        if (ngx_http_profile_turn_rings[i].worker == worker
            && (owner == 0 || log->ended
                || owner == ngx_http_profile_alive_self()
                || !ngx_http_profile_alive(owner)))
        {
            return log;
        }
    }

    return NULL;
}


/*
 * Copies the names of locations: a log may be read when the configuration of
 * its writer is gone.  Names are kept as long as a log may use them.
 */

static ngx_int_t
ngx_http_profile_turns_name(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf)
{
    size_t                           size;
    u_char                          *p;
    ngx_uint_t                       i, k, used;
    ngx_http_profile_location_t     *from, *to;
    ngx_http_profile_turn_names_t   *names, **old;

    from = pmcf->locations.elts;
    size = sizeof(ngx_http_profile_turn_names_t);

    for (i = 0; i < pmcf->locations.nelts; i++) {
        size += sizeof(ngx_http_profile_location_t) + from[i].server.len
                + from[i].name.len;
    }

    names = ngx_alloc(size, cycle->log);
    if (names == NULL) {
        return NGX_ERROR;
    }

    names->tag = ngx_http_profile_turn_names
                 ? ngx_http_profile_turn_names->tag + 1 : 1;
    names->n = pmcf->locations.nelts;

    p = (u_char *) &names->locations[names->n];

    for (i = 0; i < names->n; i++) {
        to = &names->locations[i];

        to->conf = NULL;
        to->server.len = from[i].server.len;
        to->server.data = p;
        p = ngx_cpymem(p, from[i].server.data, from[i].server.len);

        to->name.len = from[i].name.len;
        to->name.data = p;
        p = ngx_cpymem(p, from[i].name.data, from[i].name.len);
    }

    names->next = ngx_http_profile_turn_names;
    ngx_http_profile_turn_names = names;

    /* a process without a master may have jobs that read names */

    for (old = &names->next; ngx_process == NGX_PROCESS_MASTER && *old; ) {

        used = 0;

        for (k = 0; k < ngx_http_profile_turns_n; k++) {
            used |= ngx_http_profile_turn_rings[k].log->tag == (*old)->tag;
        }

        if (used) {
            old = &(*old)->next;
            continue;
        }

        to = (void *) *old;
        *old = (*old)->next;
        ngx_free(to);
    }

    return NGX_OK;
}


void
ngx_http_profile_turns_open(ngx_cycle_t *cycle)
{
    prof_turns_log_t              *log;
    ngx_http_profile_death_t      *death;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_profile_module);
    death = NULL;

    log = (pmcf && pmcf->turn_log && ngx_http_profile_turn_names)
          ? ngx_http_profile_turns_of(ngx_worker) : NULL;

    if (ngx_http_profile_logs_turns()
        && ngx_http_profile_turn_log.log != log)
    {
        ngx_http_profile_turns_stop();
    }

    if (log && !ngx_http_profile_logs_turns()) {

        if (log->owner && !log->ended) {
            death = ngx_http_profile_turns_death(log, pmcf, cycle);
            ngx_http_profile_turns_report(log, death, cycle->log);
        }

        prof_turns_begin(&ngx_http_profile_turn_log, log,
                         ngx_http_profile_alive_self());
    }

    if (death) {
        ngx_http_profile_turns_keep(death);
    }

    if (log) {
        log->tag = ngx_http_profile_turn_names->tag;
    }
}


/*
 * Returns what is needed to store the log, or NULL.  A worker that dies again
 * and again does not fill the store.
 */

static ngx_http_profile_death_t *
ngx_http_profile_turns_death(prof_turns_log_t *log,
    ngx_http_profile_main_conf_t *pmcf, ngx_cycle_t *cycle)
{
    uint64_t                   now;
    ngx_http_profile_death_t  *death;

    now = prof_now();

    if (pmcf->store == NULL
        || now - log->stored < NGX_HTTP_PROFILE_DEATH_INTERVAL)
    {
        return NULL;
    }

    death = ngx_calloc(sizeof(ngx_http_profile_death_t), cycle->log);
    if (death == NULL) {
        return NULL;
    }

    if (ngx_http_profile_make_id(death->id, cycle->log) != NGX_OK) {
        ngx_free(death);
        return NULL;
    }

    log->stored = now;

    death->store = pmcf->store;
    death->pid = ngx_http_profile_alive_pid(log->owner);

    return death;
}


static void
ngx_http_profile_turns_stop(void)
{
    if (ngx_http_profile_logs_turns()) {
        prof_turns_end(&ngx_http_profile_turn_log);
    }
}


void
ngx_http_profile_turns_close(void)
{
    ngx_uint_t                      i;
    ngx_http_profile_turn_names_t  *names;

    ngx_http_profile_turns_stop();

    /* in a process without a master a job may still read the logs */

    for (i = 0;
         i < ngx_http_profile_turns_n && ngx_process == NGX_PROCESS_MASTER;
         i++)
    {
        (void) munmap(ngx_http_profile_turn_rings[i].log,
                      prof_turns_size(ngx_http_profile_turns_size));
    }

    if (ngx_http_profile_turn_rings) {
        ngx_free(ngx_http_profile_turn_rings);
    }

    while (ngx_http_profile_turn_names && ngx_process == NGX_PROCESS_MASTER) {
        names = ngx_http_profile_turn_names;
        ngx_http_profile_turn_names = names->next;
        ngx_free(names);
    }

    ngx_http_profile_turn_rings = NULL;
    ngx_http_profile_turns_n = 0;
    ngx_http_profile_turns_size = 0;
}


const ngx_http_profile_turn_ring_t *
ngx_http_profile_turns_rings(ngx_uint_t *n)
{
    *n = ngx_http_profile_turns_n;

    return ngx_http_profile_turn_rings;
}


const ngx_http_profile_turn_names_t *
ngx_http_profile_turns_names(const prof_turns_log_t *log)
{
    const ngx_http_profile_turn_names_t  *names;

    for (names = ngx_http_profile_turn_names; names; names = names->next) {
        if (names->tag == log->tag) {
            return names;
        }
    }

    return NULL;
}


/* stores the log of the dead worker and those of the others */

static void
ngx_http_profile_turns_keep(ngx_http_profile_death_t *death)
{
    uint64_t                      now;
    ngx_http_profile_snapshot_t  *s;

    now = prof_now();

    s = ngx_http_profile_snapshot_begin(PROF_TURNS_CRASHED,
                                        now - ngx_min(now,
                                            NGX_HTTP_PROFILE_SNAPSHOT_TIME),
                                        0);

    death->snapshot = s;

    if (s) {
        s->to = now;
        s->request = death->request;
        s->run = death->run;

        death->job.work = ngx_http_profile_turns_keep_work;
        death->job.done = ngx_http_profile_turns_keep_done;
        death->job.data = death;
        death->job.rank = NGX_HTTP_PROFILE_JOB_RECORDED;
        death->job.size = sizeof(ngx_http_profile_death_t);

        if (ngx_http_profile_job_start(&death->job) == NGX_OK) {
            return;
        }
    }

    ngx_http_profile_turns_keep_done(death);
}


static void
ngx_http_profile_turns_keep_work(void *data)
{
    ngx_http_profile_death_t *death = data;

    (void) ngx_http_profile_snapshot_store(death->snapshot, death->store,
                                           death->id, (char *) death->title,
                                           death->pid);
}


static void
ngx_http_profile_turns_keep_done(void *data)
{
    ngx_http_profile_death_t *death = data;

    ngx_http_profile_snapshot_free(death->snapshot);
    ngx_free(death);
}


/*
 * Logs what a dead worker was running.  nginx starts the next worker at once,
 * so the age of the run is about what it was.  Nothing that the memory contains
 * is trusted: a failing process may have written anything.
 */

static void
ngx_http_profile_turns_report(const prof_turns_log_t *log,
    ngx_http_profile_death_t *death, ngx_log_t *err)
{
    size_t                                i;
    u_char                               *p, *last;
    prof_turns_run_t                     *run;
    prof_turns_copy_t                     copy;
    const prof_turns_request_t           *row;
    const ngx_http_profile_location_t    *location;
    const ngx_http_profile_turn_names_t  *names;
    u_char                                text[NGX_MAX_ERROR_STR];

    /* nothing but what had not ended, and its requests */

    if (prof_turns_read(log, UINT64_MAX, &copy) != PROF_OK) {
        return;
    }

    if (copy.nopen == 0) {
        ngx_log_error(NGX_LOG_ALERT, err, 0,
                      "profile: worker %P died while it waited for events",
                      (ngx_pid_t) ngx_http_profile_alive_pid(log->owner));

        if (death) {
            ngx_sprintf(death->title, "worker %uD died while it waited%Z",
                        death->pid);
        }

        prof_turns_free(&copy);
        return;
    }

    /* the innermost run of a request; or the innermost one */

    for (i = copy.nopen - 1; i && copy.open[i].request == 0; i--) {
        /* void */
    }

    run = &copy.open[copy.open[i].request ? i : copy.nopen - 1];

    last = text + sizeof(text);
    p = text;

    row = prof_turns_find(&copy, run->request);

    if (row) {
        p = ngx_slprintf(p, last, "%*s%s", (size_t) row->len, row->text,
                         row->cut ? "..." : "");

        names = ngx_http_profile_turns_names(log);

        if (names && row->location && row->location <= names->n) {
            location = &names->locations[row->location - 1];

            p = ngx_slprintf(p, last, " (server \"%V\", location \"%V\", ",
                             &location->server, &location->name);

        } else {
            p = ngx_slprintf(p, last, " (");
        }

    } else {
        p = ngx_slprintf(p, last, "code of %s (",
                         run->request ? "a request" : "no request");
    }

    if (death) {
        death->request = run->request;
        death->run = run->start;

        ngx_snprintf(death->title, sizeof(death->title) - 1,
                     "worker %uD died: %*s", death->pid,
                     row ? (size_t) row->len : sizeof("no request") - 1,
                     row ? row->text : "no request");
    }

    p = ngx_slprintf(p, last, "handler ");
    p = ngx_http_profile_turns_function(p, last, (uintptr_t) run->handler);

    ngx_log_error(NGX_LOG_ALERT, err, 0,
                  "profile: worker %P died while it ran %*s), %uL ms into the "
                  "turn",
                  (ngx_pid_t) ngx_http_profile_alive_pid(log->owner),
                  (size_t) (p - text), text,
                  (prof_now() - ngx_min(run->start, prof_now())) / 1000000);

    prof_turns_free(&copy);
}


/*
 * The name of a function that its object exports, or the object with an
 * offset.  The next worker may die as well, so no job looks for a better name.
 */

static u_char *
ngx_http_profile_turns_function(u_char *p, u_char *last, uintptr_t function)
{
    char                 *slash;
    Dl_info               info;
    const prof_object_t  *object;
    const prof_unwind_t  *u;

    if (dladdr((void *) function, &info) && info.dli_sname
        && (uintptr_t) info.dli_saddr == function)
    {
        return ngx_slprintf(p, last, "%s", info.dli_sname);
    }

    u = prof_process_unwind();
    object = u ? prof_unwind_object(u, function) : NULL;

    if (object == NULL) {
        return ngx_slprintf(p, last, "%p", (void *) function);
    }

    slash = strrchr(object->path, '/');

    return ngx_slprintf(p, last, "%s+0x%xL", slash ? slash + 1 : object->path,
                        (uint64_t) (function - object->base));
}
