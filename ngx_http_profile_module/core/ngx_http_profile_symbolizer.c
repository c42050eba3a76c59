
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the program of the helper process.  It is beside the module, or beside
 * nginx if the module is linked into nginx.  So a module does not start the
 * helper of another version.
 */


#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_job.h"
#include "core/ngx_http_profile_redact.h"
#include "core/ngx_http_profile_room.h"
#include "core/ngx_http_profile_symbolizer.h"

#include <dlfcn.h>


#define NGX_HTTP_PROFILE_SYMBOLIZER  "ngx_http_profile_symbolizer"

/* ms between two messages of one worker about the helper */

#define NGX_HTTP_PROFILE_SYMBOLIZER_LOG  60000


/* ms between the start of a worker and the naming of what profiles need */

#define NGX_HTTP_PROFILE_SYMBOLIZER_START  1000

/* the maximum number of loaded objects that are looked at then */

#define NGX_HTTP_PROFILE_SYMBOLIZER_OBJECTS  256


typedef struct {
    ngx_http_profile_job_t    job;
    prof_profile_t           *profile;
} ngx_http_profile_first_t;


static ngx_int_t ngx_http_profile_core_create_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf);
static ngx_int_t ngx_http_profile_core_create(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf);
static char *ngx_http_profile_core_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf);
static char *ngx_http_profile_symbolizer(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_symbolizer_beside(ngx_cycle_t *cycle);
static void ngx_http_profile_symbolizer_share(ngx_cycle_t *cycle,
    const char *path);
static void ngx_http_profile_symbolizer_first(ngx_event_t *ev);
static prof_profile_t *ngx_http_profile_symbolizer_objects(void);
static void ngx_http_profile_symbolizer_work(void *data);
static void ngx_http_profile_symbolizer_done(void *data);


static ngx_command_t  ngx_http_profile_core_commands[] = {

    { ngx_string("profile_symbolizer"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_symbolizer,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_kernel"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_profile_main_conf_t, kernel),
      NULL },

    { ngx_string("profile_redact"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_profile_redact_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_core_room = {
    ngx_http_profile_core_commands,
    ngx_http_profile_core_create_main,
    NULL,                                  /* create server */
    ngx_http_profile_core_create,
    NULL,                                  /* init */
    NULL,                                  /* merge server */
    ngx_http_profile_core_merge,
    NULL                                   /* stop */
};


static ngx_int_t
ngx_http_profile_core_create_main(ngx_conf_t *cf,
    ngx_http_profile_main_conf_t *pmcf)
{
    pmcf->kernel = NGX_CONF_UNSET;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_core_create(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *conf)
{
    conf->redact = NGX_CONF_UNSET_PTR;

    return NGX_OK;
}


static char *
ngx_http_profile_core_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf)
{
    ngx_conf_merge_ptr_value(conf->redact, prev->redact,
                             &ngx_http_profile_redact_words);

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_symbolizer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_main_conf_t *pmcf = conf;

    ngx_str_t  *value;

    if (pmcf->symbolizer.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    pmcf->symbolizer = value[1];

    if (ngx_strcmp(value[1].data, "off") == 0) {
        pmcf->symbolizer.len = 0;
        return NGX_CONF_OK;
    }

    return ngx_conf_full_name(cf->cycle, &pmcf->symbolizer, 0) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


void
ngx_http_profile_symbolizer_init(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf)
{
    char  *path;

    path = NULL;

    if (pmcf->symbolizer.len) {
        path = (char *) pmcf->symbolizer.data;

    } else if (pmcf->symbolizer.data == NULL) {
        path = ngx_http_profile_symbolizer_beside(cycle);
    }

    if (path && access(path, X_OK) == -1) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                      "profile: \"%s\" cannot be executed, names are taken "
                      "from symbol tables only", path);
    }

    prof_profile_helper(path);

    if (!ngx_test_config) {
        ngx_http_profile_symbolizer_share(cycle, path);
    }
}


/*
 * The memory stays in all configurations whose workers have the same user and
 * the same helper.  A process without a master keeps it, since its threads may
 * use it.
 */

static void
ngx_http_profile_symbolizer_share(ngx_cycle_t *cycle, const char *path)
{
    uint64_t          key;
    ngx_core_conf_t  *ccf;

    key = 0;
    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (ccf->master) {
        key = (uint64_t) ccf->user << 32;
        key |= path ? ngx_crc32_long((u_char *) path, strlen(path)) : 0;
    }

    if (prof_profile_share(key) != PROF_OK) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                      "profile: no memory for names that all workers share, "
                      "each worker looks up its own");
    }
}


void
ngx_http_profile_symbolizer_start(ngx_cycle_t *cycle)
{
    static ngx_event_t       ev;
    static ngx_connection_t  dumb;

    if (ev.timer_set || prof_process_unwind() == NULL) {
        return;
    }

    dumb.fd = (ngx_socket_t) -1;

    ev.handler = ngx_http_profile_symbolizer_first;
    ev.data = &dumb;
    ev.log = cycle->log;
    ev.cancelable = 1;

    ngx_add_timer(&ev, NGX_HTTP_PROFILE_SYMBOLIZER_START);
}


/*
 * The thread for jobs of the lowest priority does the work, so it is done when
 * a processor is idle.
 */

static void
ngx_http_profile_symbolizer_first(ngx_event_t *ev)
{
    ngx_http_profile_first_t  *first;

    ngx_http_profile_own_work();

    if (ngx_exiting || !prof_profile_first()) {
        return;
    }

    first = ngx_calloc(sizeof(ngx_http_profile_first_t), ev->log);
    if (first == NULL) {
        return;
    }

    prof_heap_mute();
    first->profile = ngx_http_profile_symbolizer_objects();
    prof_heap_unmute();

    first->job.work = ngx_http_profile_symbolizer_work;
    first->job.done = ngx_http_profile_symbolizer_done;
    first->job.data = first;
    first->job.rank = NGX_HTTP_PROFILE_JOB_KEPT;

    if (first->profile == NULL
        || ngx_http_profile_job_start(&first->job) != NGX_OK)
    {
        ngx_http_profile_symbolizer_done(first);
    }
}


/*
 * Returns a profile with an address in each loaded object: its names tell the
 * cache of names which objects have debugging information, and the source files
 * of the functions of nginx.
 */

static prof_profile_t *
ngx_http_profile_symbolizer_objects(void)
{
    uint32_t              n;
    uint32_t              nodes[NGX_HTTP_PROFILE_SYMBOLIZER_OBJECTS];
    uintptr_t             pcs[NGX_HTTP_PROFILE_SYMBOLIZER_OBJECTS];
    const prof_object_t  *o;
    const prof_unwind_t  *u;

    u = prof_process_refresh();

    for (n = 0; u && n < NGX_HTTP_PROFILE_SYMBOLIZER_OBJECTS; n++) {

        o = prof_unwind_object_at(u, n);
        if (o == NULL) {
            break;
        }

        pcs[n] = o->start;
    }

    return n ? prof_process_addresses(pcs, n, nodes) : NULL;
}


static void
ngx_http_profile_symbolizer_work(void *data)
{
    ngx_http_profile_first_t *first = data;

    (void) prof_profile_symbolize(first->profile);
}


static void
ngx_http_profile_symbolizer_done(void *data)
{
    ngx_http_profile_first_t *first = data;

    prof_profile_destroy(first->profile);
    ngx_free(first);
}


static char *
ngx_http_profile_symbolizer_beside(ngx_cycle_t *cycle)
{
    char     *p, *slash;
    size_t    len;
    Dl_info   info;
    char      path[PATH_MAX];

    /* for the program itself, dladdr() returns the name in its command line */

    if (dladdr(&ngx_http_profile_module, &info) == 0
        || info.dli_fname == NULL)
    {
        return NULL;
    }

    len = strlen(info.dli_fname);

    p = realpath(len > 3 && strcmp(info.dli_fname + len - 3, ".so") == 0
                 ? info.dli_fname : "/proc/self/exe", path);

    slash = p ? strrchr(path, '/') : NULL;

    if (slash == NULL) {
        return NULL;
    }

    slash[1] = '\0';

    len = strlen(path);

    p = ngx_pnalloc(cycle->pool, len + sizeof(NGX_HTTP_PROFILE_SYMBOLIZER));

    if (p) {
        ngx_memcpy(p, path, len);
        ngx_memcpy(p + len, NGX_HTTP_PROFILE_SYMBOLIZER,
                   sizeof(NGX_HTTP_PROFILE_SYMBOLIZER));
    }

    return p;
}


void
ngx_http_profile_symbolizer_log(ngx_log_t *log)
{
    const char  *err;

    static ngx_msec_t  next;
    static ngx_uint_t  logged;

    err = prof_profile_helper_error();

    if (err == NULL
        || (logged && (ngx_msec_int_t) (ngx_current_msec - next) < 0))
    {
        return;
    }

    logged = 1;
    next = ngx_current_msec + NGX_HTTP_PROFILE_SYMBOLIZER_LOG;

    /* names are missing, and the server is well */

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "profile: the helper for names %s, names are missing", err);
}
