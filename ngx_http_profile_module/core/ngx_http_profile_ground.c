
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The checks read what can be seen without the structure that is checked:
 *
 *     code      functions of nginx allocate a structure with its size
 *     tables    nginx's variables contain the offsets of members
 *     arrays    nginx allocates an array of structures, or notes the size of
 *               its elements; the next object in a pool begins where a
 *               structure ends
 *     values    members whose values are known at this moment
 *
 * A fact that is not found decides nothing: nginx may be compiled in another
 * way.  The first request shows both ends of a request, so the module does not
 * depend on the other facts alone.
 */


#include "core/ngx_http_profile_built_for.h"
#include "core/ngx_http_profile_ground.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>


/* nginx may be built without these */

extern ngx_module_t   ngx_http_rewrite_module __attribute__((weak));
extern ngx_atomic_t  *ngx_stat_writing __attribute__((weak));


/* bytes of code in which a function allocates its structure */
#define NGX_HTTP_PROFILE_GROUND_CODE    1024

/* bytes from the constant with a size to the call that takes it */
#define NGX_HTTP_PROFILE_GROUND_NEAR    40

/* sizes of structures are within these bounds; other constants are no sizes */
#define NGX_HTTP_PROFILE_GROUND_SMALL   64
#define NGX_HTTP_PROFILE_GROUND_LARGE   16384

/* limits of numbers and texts that are read */
#define NGX_HTTP_PROFILE_GROUND_TEXT    1024
#define NGX_HTTP_PROFILE_GROUND_KEYS    4096
#define NGX_HTTP_PROFILE_GROUND_CONNS   (1 << 24)
#define NGX_HTTP_PROFILE_GROUND_FIRST   64

#define NGX_HTTP_PROFILE_GROUND_DAY     86400

/* enough for each configuration of the module and of the bar */
#define NGX_HTTP_PROFILE_GROUND_CONF    4096


/* shared by the master and its workers */

typedef struct {
    ngx_atomic_t   state;                  /* FITS or OFF, when it is decided */
    ngx_atomic_t   decided;
    ngx_atomic_t   logged;
    char           fault[128];
} ngx_http_profile_ground_page_t;


static ngx_uint_t ngx_http_profile_ground_is_known(void);
static const char *ngx_http_profile_ground_modules(void);
static const char *ngx_http_profile_ground_sizes(void);
static ngx_uint_t ngx_http_profile_ground_has_size(const char *name,
    size_t size, void *function);
static size_t ngx_http_profile_ground_allocated(void *function);
static const char *ngx_http_profile_ground_cycle(ngx_conf_t *conf);
static const char *ngx_http_profile_ground_main(ngx_conf_t *cf,
    ngx_module_t *module, void *main_conf);
static const char *ngx_http_profile_ground_variables(
    ngx_hash_keys_arrays_t *keys);
static const char *ngx_http_profile_ground_connections(ngx_cycle_t *cycle);
static ngx_uint_t ngx_http_profile_ground_cancels(ngx_cycle_t *cycle);
static const char *ngx_http_profile_ground_first(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static const char *ngx_http_profile_ground_client(ngx_http_request_t *request,
    ngx_connection_t *connection);
static void ngx_http_profile_ground_decide(const char *fault, ngx_uint_t state);
static ngx_int_t ngx_http_profile_ground_read(void *to, const void *from,
    size_t len);
static ngx_int_t ngx_http_profile_ground_text(ngx_str_t *s);
static char *ngx_http_profile_ground_skip(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_profile_ground_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


ngx_uint_t  ngx_http_profile_ground;


static ngx_http_profile_ground_page_t   ngx_http_profile_ground_own;
static ngx_http_profile_ground_page_t  *ngx_http_profile_ground_page =
                                                 &ngx_http_profile_ground_own;

/* nginx's configuration can be read: cf and the cycle fit */

static ngx_uint_t  ngx_http_profile_ground_reads;

/* the log of a configuration whose cycle does not fit */

static ngx_pool_t  *ngx_http_profile_ground_pool;

/* contexts of modules do not fit: nginx must not read those of this module */

static ngx_uint_t  ngx_http_profile_ground_hidden;

static char  ngx_http_profile_ground_fault[128];

static ngx_http_variable_t  *ngx_http_profile_ground_vars;


static ngx_str_t  ngx_http_profile_ground_reply =
    ngx_string("profiling is off: the module was built for another nginx, "
               "see the error log\n");


void
ngx_http_profile_ground_load(ngx_module_t **modules, ngx_http_variable_t *vars)
{
    void        *p;
    const char  *fault;

    ngx_http_profile_ground_vars = vars;

    if (ngx_http_profile_ground_is_known()) {
        return;
    }

    p = mmap(NULL, sizeof(ngx_http_profile_ground_page_t),
             PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (p != MAP_FAILED) {
        ngx_http_profile_ground_page = p;
    }

    ngx_http_profile_ground = NGX_HTTP_PROFILE_GROUND_OPEN;

    fault = ngx_http_profile_ground_modules();

    if (fault) {

        /*
         * nginx would call other functions of the module than it means.  It
         * reads only the directives of a module of this type.
         */

        ngx_http_profile_ground_decide(fault, NGX_HTTP_PROFILE_GROUND_OFF);
        ngx_http_profile_ground_hidden = 1;

        for ( /* void */ ; *modules; modules++) {
            (*modules)->type = NGX_CONF_MODULE;
            (*modules)->ctx_index = 0;
            (*modules)->init_process = NULL;
            (*modules)->exit_process = NULL;
            (*modules)->exit_master = NULL;
            ngx_http_profile_ground_ignore((*modules)->commands);
        }

        return;
    }

    fault = ngx_http_profile_ground_sizes();

    if (fault) {
        ngx_http_profile_ground_decide(fault, NGX_HTTP_PROFILE_GROUND_OFF);
    }
}


/* compares the build-id of the program that runs, which needs no file */

static ngx_uint_t
ngx_http_profile_ground_is_known(void)
{
    u_char             *p, *last, *desc, hex[2 * 64 + 1];
    uintptr_t           base;
    ngx_uint_t          i, n;
    Elf64_Nhdr         *note;
    const Elf64_Phdr   *ph;

    static const char  built_for[] = NGX_HTTP_PROFILE_BUILT_FOR;

#if (NGX_HTTP_PROFILE_BUILT_IN)
    return 1;
#endif

    ph = (const Elf64_Phdr *) getauxval(AT_PHDR);
    n = getauxval(AT_PHNUM);

    if (built_for[0] == '\0' || ph == NULL) {
        return 0;
    }

    base = 0;

    for (i = 0; i < n; i++) {
        if (ph[i].p_type == PT_PHDR) {
            base = (uintptr_t) ph - ph[i].p_vaddr;
        }
    }

    for (i = 0; i < n; i++) {

        if (ph[i].p_type != PT_NOTE) {
            continue;
        }

        p = (u_char *) base + ph[i].p_vaddr;
        last = p + ph[i].p_memsz;

        while (last - p > (ptrdiff_t) sizeof(Elf64_Nhdr)) {
            note = (Elf64_Nhdr *) p;
            p += sizeof(Elf64_Nhdr);
            desc = p + ngx_align(note->n_namesz, 4);

            if ((size_t) (last - p) < (size_t) ngx_align(note->n_namesz, 4)
                                      + note->n_descsz)
            {
                break;
            }

            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4
                && ngx_memcmp(p, "GNU", 4) == 0 && note->n_descsz <= 64)
            {
                *ngx_hex_dump(hex, desc, note->n_descsz) = '\0';

                return ngx_strcmp(hex, built_for) == 0;
            }

            p = desc + ngx_align(note->n_descsz, 4);
        }
    }

    return 0;
}


/* nginx's first module for http has all members of a module's context */

static const char *
ngx_http_profile_ground_modules(void)
{
    u_char          c;
    void           *words[sizeof(ngx_http_module_t) / sizeof(void *)];
    ngx_uint_t      i;
    ngx_module_t    module;
    ngx_command_t   commands[2];

    if (ngx_http_profile_ground_read(&module, &ngx_http_core_module,
                                     sizeof(ngx_module_t))
        != NGX_OK
        || module.version != nginx_version
        || module.type != NGX_HTTP_MODULE)
    {
        return "ngx_module_t";
    }

    if (ngx_http_profile_ground_read(words, module.ctx, sizeof(words))
        != NGX_OK)
    {
        return "ngx_http_module_t";
    }

    for (i = 0; i < sizeof(words) / sizeof(void *); i++) {
        if (ngx_http_profile_ground_read(&c, words[i], 1) != NGX_OK) {
            return "ngx_http_module_t";
        }
    }

    if (ngx_http_profile_ground_read(commands, module.commands,
                                     sizeof(commands))
        != NGX_OK
        || ngx_http_profile_ground_text(&commands[0].name) != NGX_OK
        || ngx_http_profile_ground_text(&commands[1].name) != NGX_OK)
    {
        return "ngx_command_t";
    }

    return NULL;
}


static const char *
ngx_http_profile_ground_sizes(void)
{
    ngx_http_module_t  *core;

#define ngx_http_profile_ground_size(type, function)                          \
    ngx_http_profile_ground_has_size(#type, sizeof(type), (void *) function)

    core = ngx_http_core_module.ctx;

    return ngx_http_profile_ground_size(ngx_cycle_t, ngx_init_cycle)
           && ngx_http_profile_ground_size(ngx_http_request_t,
                                           ngx_http_subrequest)
           && ngx_http_profile_ground_size(ngx_http_upstream_t,
                                           ngx_http_upstream_create)
           && ngx_http_profile_ground_size(ngx_http_core_main_conf_t,
                                           core->create_main_conf)
           && ngx_http_profile_ground_size(ngx_http_core_srv_conf_t,
                                           core->create_srv_conf)
           && ngx_http_profile_ground_size(ngx_http_core_loc_conf_t,
                                           core->create_loc_conf)
           ? NULL : ngx_http_profile_ground_fault;
}


static ngx_uint_t
ngx_http_profile_ground_has_size(const char *name, size_t size, void *function)
{
    size_t  allocated;

    allocated = ngx_http_profile_ground_allocated(function);

    if (allocated == 0 || allocated == size) {
        return 1;
    }

    (void) ngx_snprintf((u_char *) ngx_http_profile_ground_fault,
                        sizeof(ngx_http_profile_ground_fault),
                        "%s has %uz bytes in nginx, and %uz in the module%Z",
                        name, allocated, size);

    return 0;
}


/*
 * Returns the size in the first call of ngx_pcalloc() in a function of nginx,
 * or 0 if the code does not show it: a constant is loaded as the second
 * argument, and a call of ngx_pcalloc() follows.
 */

static size_t
ngx_http_profile_ground_allocated(void *function)
{
    u_char    *p, *last, code[NGX_HTTP_PROFILE_GROUND_CODE];
    int32_t    distance;
    uint32_t   n;

    if (ngx_http_profile_ground_read(code, function, sizeof(code)) != NGX_OK) {
        return 0;
    }

    p = code;
    last = code + sizeof(code);

#if (__x86_64__)

    /* e8: call; be: mov esi, constant */

    for ( /* void */ ; p < last - 5; p++) {

        if (*p != 0xe8) {
            continue;
        }

        ngx_memcpy(&distance, p + 1, 4);

        if ((u_char *) function + (p - code) + 5 + distance
            != (u_char *) ngx_pcalloc)
        {
            continue;
        }

        last = ngx_max(p - NGX_HTTP_PROFILE_GROUND_NEAR, code);

        for (p -= 5; p >= last; p--) {

            if (*p != 0xbe) {
                continue;
            }

            ngx_memcpy(&n, p + 1, 4);

            if (n > NGX_HTTP_PROFILE_GROUND_SMALL
                && n < NGX_HTTP_PROFILE_GROUND_LARGE)
            {
                return n;
            }
        }

        return 0;
    }

#else

    /* bl: call; movz: w1 or x1, constant */

    for ( /* void */ ; p < last; p += 4) {

        ngx_memcpy(&n, p, 4);

        if ((n & 0xfc000000) != 0x94000000) {
            continue;
        }

        distance = (int32_t) (n << 6) >> 4;

        if ((u_char *) function + (p - code) + distance
            != (u_char *) ngx_pcalloc)
        {
            continue;
        }

        last = ngx_max(p - NGX_HTTP_PROFILE_GROUND_NEAR, code);

        for (p -= 4; p >= last; p -= 4) {
            ngx_memcpy(&n, p, 4);

            if ((n & 0x7fe0001f) == 0x52800001) {
                n = (n >> 5) & 0xffff;

                return (n > NGX_HTTP_PROFILE_GROUND_SMALL
                        && n < NGX_HTTP_PROFILE_GROUND_LARGE) ? n : 0;
            }
        }

        return 0;
    }

#endif

    return 0;
}


void
ngx_http_profile_ground_conf(ngx_conf_t *cf)
{
    const char  *fault;
    ngx_conf_t   conf;

    if (ngx_http_profile_ground == NGX_HTTP_PROFILE_GROUND_FITS) {
        return;
    }

    if (ngx_http_profile_ground_page->decided) {

        /* a worker of the previous configuration has had a request */

        ngx_http_profile_ground = ngx_http_profile_ground_page->state;
    }

    ngx_http_profile_ground_reads = 0;
    ngx_http_profile_ground_pool = NULL;

    fault = "ngx_conf_t";

    if (ngx_http_profile_ground_read(&conf, cf, sizeof(ngx_conf_t)) == NGX_OK) {
        fault = ngx_http_profile_ground_cycle(&conf);
    }

    if (fault == NULL) {
        ngx_http_profile_ground_reads = 1;
        return;
    }

    if (ngx_http_profile_ground == NGX_HTTP_PROFILE_GROUND_OPEN) {
        ngx_http_profile_ground_decide(fault, NGX_HTTP_PROFILE_GROUND_OFF);
    }
}


static const char *
ngx_http_profile_ground_cycle(ngx_conf_t *conf)
{
    size_t           len;
    ngx_log_t        log;
    ngx_pool_t       pool;
    ngx_array_t      args;
    ngx_cycle_t      cycle;
    ngx_module_t    *module;
    ngx_conf_file_t  file;
    char             host[NGX_MAXHOSTNAMELEN], name[NGX_MAXHOSTNAMELEN];

    if (ngx_http_profile_ground_read(&pool, conf->pool, sizeof(ngx_pool_t))
        != NGX_OK
        || pool.d.last < (u_char *) conf->pool || pool.d.last > pool.d.end)
    {
        return "ngx_conf_t or ngx_pool_t";
    }

    if (ngx_http_profile_ground_read(&log, conf->log, sizeof(ngx_log_t))
        != NGX_OK
        || ngx_http_profile_ground_read(&args, conf->args, sizeof(ngx_array_t))
           != NGX_OK
        || args.size != sizeof(ngx_str_t) || args.nelts > args.nalloc
        || ngx_http_profile_ground_read(&file, conf->conf_file,
                                        sizeof(ngx_conf_file_t))
           != NGX_OK
        || ngx_http_profile_ground_text(&file.file.name) != NGX_OK
        || file.line == 0)
    {
        return "ngx_conf_t";
    }

    /* the module's first directive is checked: now cf is read directly */

    ngx_http_profile_ground_pool = conf->pool;

    if (ngx_http_profile_ground_read(&cycle, conf->cycle, sizeof(ngx_cycle_t))
        != NGX_OK
        || cycle.pool != conf->pool
        || cycle.old_cycle != (ngx_cycle_t *) ngx_cycle
        || ngx_http_profile_ground_read(&log, cycle.log, sizeof(ngx_log_t))
           != NGX_OK
        || ngx_http_profile_ground_read(&module, cycle.modules,
                                        sizeof(ngx_module_t *))
           != NGX_OK
        || module != &ngx_core_module
        || cycle.listening.size != sizeof(ngx_listening_t)
        || cycle.paths.size != sizeof(ngx_path_t *)
        || cycle.config_dump.size != sizeof(ngx_conf_dump_t)
        || cycle.open_files.size != sizeof(ngx_open_file_t)
        || cycle.shared_memory.size != sizeof(ngx_shm_zone_t)
        || ngx_http_profile_ground_text(&cycle.conf_file) != NGX_OK)
    {
        return "ngx_cycle_t";
    }

    /* nginx allocates the cycle first, and then the prefix */

    if ((u_char *) conf->cycle
        == (u_char *) conf->pool + ngx_align(sizeof(ngx_pool_t), NGX_ALIGNMENT)
        && cycle.conf_prefix.data
           != (u_char *) conf->cycle + sizeof(ngx_cycle_t))
    {
        return "ngx_cycle_t";
    }

    if (gethostname(host, sizeof(host)) == 0) {
        host[sizeof(host) - 1] = '\0';
        len = ngx_strlen(host);

        if (cycle.hostname.len != len
            || ngx_http_profile_ground_read(name, cycle.hostname.data, len)
               != NGX_OK
            || ngx_strncasecmp((u_char *) name, (u_char *) host, len) != 0)
        {
            return "ngx_cycle_t";
        }
    }

    return NULL;
}


void
ngx_http_profile_ground_http(ngx_conf_t *cf, ngx_module_t *module,
    void *main_conf)
{
    const char  *fault;

    if (ngx_http_profile_ground != NGX_HTTP_PROFILE_GROUND_OPEN) {
        return;
    }

    fault = ngx_http_profile_ground_main(cf, module, main_conf);

    if (fault) {
        ngx_http_profile_ground_decide(fault, NGX_HTTP_PROFILE_GROUND_OFF);
    }
}


static const char *
ngx_http_profile_ground_main(ngx_conf_t *cf, ngx_module_t *module,
    void *main_conf)
{
    void                        *conf;
    ngx_http_conf_ctx_t          ctx;
    ngx_hash_keys_arrays_t       keys;
    ngx_http_core_main_conf_t    core, *cmcf;

    if (ngx_http_profile_ground_read(&ctx, cf->ctx, sizeof(ctx)) != NGX_OK
        || ngx_http_profile_ground_read(&conf,
                                        &ctx.main_conf[module->ctx_index],
                                        sizeof(void *))
           != NGX_OK
        || conf != main_conf)
    {
        return "ngx_http_conf_ctx_t";
    }

    if (ngx_http_profile_ground_read(&cmcf,
                               &ctx.main_conf[ngx_http_core_module.ctx_index],
                               sizeof(void *))
        != NGX_OK
        || ngx_http_profile_ground_read(&core, cmcf, sizeof(core)) != NGX_OK
        || core.servers.size != sizeof(ngx_http_core_srv_conf_t *)
        || ngx_http_profile_ground_read(&keys, core.variables_keys,
                                        sizeof(ngx_hash_keys_arrays_t))
           != NGX_OK)
    {
        return "ngx_http_core_main_conf_t";
    }

    return ngx_http_profile_ground_variables(&keys);
}


/* the data of these variables are the offsets of members of the request */

static const char *
ngx_http_profile_ground_variables(ngx_hash_keys_arrays_t *keys)
{
    ngx_uint_t            i, n;
    ngx_hash_key_t        key;
    ngx_http_variable_t   v;
    u_char                name[32];

    static const struct {
        ngx_str_t   name;
        uintptr_t   offset;
    } members[] = {
        { ngx_string("http_host"),
          offsetof(ngx_http_request_t, headers_in.host) },
        { ngx_string("http_user_agent"),
          offsetof(ngx_http_request_t, headers_in.user_agent) },
        { ngx_string("http_referer"),
          offsetof(ngx_http_request_t, headers_in.referer) },
        { ngx_string("uri"), offsetof(ngx_http_request_t, uri) },
        { ngx_string("args"), offsetof(ngx_http_request_t, args) },
        { ngx_string("request_uri"),
          offsetof(ngx_http_request_t, unparsed_uri) },
        { ngx_string("server_protocol"),
          offsetof(ngx_http_request_t, http_protocol) },
        { ngx_string("limit_rate"), offsetof(ngx_http_request_t, limit_rate) },
        { ngx_null_string, 0 }
    };

    if (keys->keys.size != sizeof(ngx_hash_key_t)
        || keys->keys.nelts > NGX_HTTP_PROFILE_GROUND_KEYS)
    {
        return "ngx_hash_keys_arrays_t";
    }

    for (i = 0; i < keys->keys.nelts; i++) {

        if (ngx_http_profile_ground_read(&key,
                                 (ngx_hash_key_t *) keys->keys.elts + i,
                                 sizeof(ngx_hash_key_t))
            != NGX_OK
            || ngx_http_profile_ground_read(&v, key.value,
                                            sizeof(ngx_http_variable_t))
               != NGX_OK)
        {
            return "ngx_http_variable_t";
        }

        if (key.key.len >= sizeof(name)
            || ngx_http_profile_ground_read(name, key.key.data, key.key.len)
               != NGX_OK)
        {
            continue;
        }

        for (n = 0; members[n].name.len; n++) {

            if (key.key.len == members[n].name.len
                && ngx_strncmp(name, members[n].name.data, key.key.len) == 0
                && v.data && v.data != members[n].offset)
            {
                (void) ngx_snprintf((u_char *) ngx_http_profile_ground_fault,
                                    sizeof(ngx_http_profile_ground_fault),
                                    "the member of ngx_http_request_t for "
                                    "$%V is at %uL in nginx, and at %uL in "
                                    "the module%Z",
                                    &members[n].name, (uint64_t) v.data,
                                    (uint64_t) members[n].offset);

                return ngx_http_profile_ground_fault;
            }
        }
    }

    return NULL;
}


void
ngx_http_profile_ground_process(ngx_cycle_t *cycle)
{
    const char                      *fault;
    ngx_http_profile_ground_page_t  *page;

    if (ngx_http_profile_ground != NGX_HTTP_PROFILE_GROUND_OPEN) {
        return;
    }

    page = ngx_http_profile_ground_page;

    if (page->decided) {
        ngx_http_profile_ground = page->state;
        return;
    }

    fault = ngx_http_profile_ground_connections(cycle);

    if (fault) {
        ngx_http_profile_ground_decide(fault, NGX_HTTP_PROFILE_GROUND_OFF);
        ngx_http_profile_ground_log(cycle);
    }
}


/*
 * nginx has just made its connections: each one points to the events with its
 * index, so a wrong size of one of the three structures shows
 */

static const char *
ngx_http_profile_ground_connections(ngx_cycle_t *cycle)
{
    ngx_uint_t         i, k, n;
    ngx_event_t        rev, wev;
    ngx_connection_t   c;

    n = cycle->connection_n;

    if (n == 0 || n > NGX_HTTP_PROFILE_GROUND_CONNS) {
        return "ngx_cycle_t";
    }

    /* the last one, and those that listen, which are the first ones */

    for (k = 0; k <= ngx_min(n, NGX_HTTP_PROFILE_GROUND_FIRST); k++) {
        i = k ? k - 1 : n - 1;

        if (ngx_http_profile_ground_read(&c, &cycle->connections[i],
                                         sizeof(ngx_connection_t))
            != NGX_OK)
        {
            return "ngx_connection_t";
        }

        if (ngx_http_profile_ground_read(&rev, &cycle->read_events[i],
                                         sizeof(ngx_event_t))
            != NGX_OK
            || ngx_http_profile_ground_read(&wev, &cycle->write_events[i],
                                            sizeof(ngx_event_t))
               != NGX_OK)
        {
            return "ngx_event_t";
        }

        if (c.read != &cycle->read_events[i]
            || c.write != &cycle->write_events[i])
        {
            return "ngx_connection_t or ngx_event_t";
        }

        /* the other members of unused ones are not initialized */

        if (c.fd == (ngx_socket_t) -1) {

            if (!rev.closed || !rev.instance || !wev.closed) {
                return "the bits of ngx_event_t";
            }

            continue;
        }

        if (rev.accept
            && (rev.data != &cycle->connections[i] || c.listening == NULL
                || c.log != rev.log))
        {
            return "ngx_connection_t or ngx_event_t";
        }
    }

    return ngx_http_profile_ground_cancels(cycle) ? NULL
                                                  : "the bits of ngx_event_t";
}


/*
 * The last bit that the module sets: nginx ends although a timer with this bit
 * is left.  Another timer, which is there already, decides nothing.
 */

static ngx_uint_t
ngx_http_profile_ground_cancels(ngx_cycle_t *cycle)
{
    ngx_int_t     rc;
    ngx_event_t  *ev;
    u_char        space[2 * sizeof(ngx_event_t)] __attribute__((aligned(16)));

    if (ngx_event_no_timers_left() != NGX_OK) {
        return 1;
    }

    ngx_memzero(space, sizeof(space));

    ev = (ngx_event_t *) space;
    ev->cancelable = 1;
    ev->data = &cycle->connections[cycle->connection_n - 1];
    ev->log = cycle->log;

    ngx_event_add_timer(ev, NGX_HTTP_PROFILE_GROUND_DAY);
    rc = ngx_event_no_timers_left();
    ngx_event_del_timer(ev);

    return rc == NGX_OK;
}


void
ngx_http_profile_ground_request(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph)
{
    const char  *fault;

    fault = ngx_http_profile_ground_first(r, ph);

    ngx_http_profile_ground_decide(fault,
                                   fault ? NGX_HTTP_PROFILE_GROUND_OFF
                                         : NGX_HTTP_PROFILE_GROUND_FITS);
    if (fault) {
        ngx_http_profile_ground_log((ngx_cycle_t *) ngx_cycle);
    }
}


/* the first phase has just begun, so the values of many members are known */

static const char *
ngx_http_profile_ground_first(ngx_http_request_t *request,
    ngx_http_phase_handler_t *ph)
{
    time_t                      age;
    u_char                      c;
    ngx_pool_t                  pool;
    ngx_http_request_t          r;
    ngx_http_conf_ctx_t         ctx;
    ngx_http_connection_t       hc;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_core_module);

    if (ngx_http_profile_ground_read(&r, request, sizeof(ngx_http_request_t))
        != NGX_OK
        || r.signature != NGX_HTTP_MODULE
        || r.main != request || r.parent != NULL
        || r.phase_handler != ph - cmcf->phase_engine.handlers)
    {
        return "ngx_http_request_t";
    }

    /* nginx allocates the request first, and then the list of its headers */

    if (ngx_http_profile_ground_read(&pool, r.pool, sizeof(ngx_pool_t))
        != NGX_OK)
    {
        return "ngx_http_request_t";
    }

    if ((u_char *) request > (u_char *) r.pool
        && (u_char *) (request + 1) < pool.d.end
        && ((u_char *) r.pool
            + ngx_align(sizeof(ngx_pool_t), NGX_ALIGNMENT)
            != (u_char *) request
            || ((u_char *) r.headers_out.headers.part.elts > (u_char *) request
                && (u_char *) r.headers_out.headers.part.elts < pool.d.end
                && (u_char *) r.headers_out.headers.part.elts
                   != ngx_align_ptr(request + 1, NGX_ALIGNMENT))))
    {
        return "the size of ngx_http_request_t";
    }

    age = ngx_time() - r.start_sec;

    if (r.headers_out.headers.size != sizeof(ngx_table_elt_t)
        || r.headers_out.last_modified_time != -1
        || age < -NGX_HTTP_PROFILE_GROUND_DAY
        || age > NGX_HTTP_PROFILE_GROUND_DAY
        || ngx_http_profile_ground_read(&c, r.uri.data, 1) != NGX_OK
        || (c != '/' && c != '*')
        || ngx_http_profile_ground_read(&c, r.variables, 1) != NGX_OK
        || ngx_http_profile_ground_read(&c, r.ctx, 1) != NGX_OK
        || ngx_http_profile_ground_read(&hc, r.http_connection, sizeof(hc))
           != NGX_OK
        || ngx_http_profile_ground_read(&ctx, hc.conf_ctx, sizeof(ctx))
           != NGX_OK
        || ctx.main_conf != r.main_conf
        || r.log_handler == NULL)
    {
        return "ngx_http_request_t";
    }

    /* the bits, and the last member */

    if (r.count != 1
        || r.subrequests != NGX_HTTP_MAX_SUBREQUESTS + 1
        || r.uri_changes != NGX_HTTP_MAX_URI_CHANGES + 1
        || r.http_state != NGX_HTTP_PROCESS_REQUEST_STATE
        || r.blocked || r.aio || r.uri_changed || !r.valid_location
        || r.internal || r.error_page || r.header_sent || r.done || r.logged
        || r.buffered || r.request_complete || r.stat_reading
        || r.stat_writing != (&ngx_stat_writing != NULL)
        || (r.http_version > NGX_HTTP_VERSION_9
            && r.http_version < NGX_HTTP_VERSION_20
            && r.http_major * 1000u + r.http_minor != r.http_version))
    {
        return "the bits of ngx_http_request_t";
    }

    return ngx_http_profile_ground_client(request, r.connection);
}


static const char *
ngx_http_profile_ground_client(ngx_http_request_t *request,
    ngx_connection_t *connection)
{
    ngx_event_t         rev, wev;
    struct sockaddr     sa;
    ngx_connection_t    c;
    ngx_atomic_uint_t   n;

    n = *ngx_connection_counter;

    if (ngx_http_profile_ground_read(&c, connection, sizeof(ngx_connection_t))
        != NGX_OK
        || c.data != request || c.fd == (ngx_socket_t) -1
        || c.listening == NULL || c.pool == NULL || c.log == NULL
        || c.number == 0 || c.number > n
        || ngx_http_profile_ground_read(&sa, c.sockaddr, sizeof(sa_family_t))
           != NGX_OK
        || (sa.sa_family != AF_INET && sa.sa_family != AF_INET6
            && sa.sa_family != AF_UNIX)
        || c.socklen > sizeof(struct sockaddr_storage)
        || c.log_error != NGX_ERROR_INFO
        || c.buffered || c.timedout || c.error || c.destroyed || c.close)
    {
        return "ngx_connection_t";
    }

    if (ngx_http_profile_ground_read(&rev, c.read, sizeof(ngx_event_t))
        != NGX_OK
        || ngx_http_profile_ground_read(&wev, c.write, sizeof(ngx_event_t))
           != NGX_OK
        || rev.data != connection || wev.data != connection
        || rev.write || !wev.write || rev.accept || wev.accept
        || rev.closed || rev.channel || rev.resolver
        || rev.handler == NULL || wev.handler == NULL
        || rev.log != c.log)
    {
        return "ngx_event_t";
    }

    return NULL;
}


static void
ngx_http_profile_ground_decide(const char *fault, ngx_uint_t state)
{
    ngx_http_profile_ground_page_t  *page;

    ngx_http_profile_ground = state;

    page = ngx_http_profile_ground_page;

    if (page->decided) {
        return;
    }

    /* workers that decide at the same time see the same nginx */

    if (fault) {
        (void) ngx_cpystrn((u_char *) page->fault, (u_char *) fault,
                           sizeof(page->fault));
    }

    page->state = state;
    ngx_memory_barrier();
    page->decided = 1;
}


/*
 * Returns NGX_ERROR if the memory is not readable: the kernel copies it and
 * refuses, where an access of this process would end it.
 */

static ngx_int_t
ngx_http_profile_ground_read(void *to, const void *from, size_t len)
{
    int      fd[2];
    ssize_t  n;

    if (len == 0) {
        return NGX_OK;
    }

    if (pipe2(fd, O_CLOEXEC|O_NONBLOCK) == -1) {
        return NGX_ERROR;
    }

    n = write(fd[1], from, len);

    if (n == (ssize_t) len) {
        n = read(fd[0], to, len);
    }

    (void) close(fd[0]);
    (void) close(fd[1]);

    return n == (ssize_t) len ? NGX_OK : NGX_ERROR;
}


/* whether this is a text of nginx, which has a zero byte behind it */

static ngx_int_t
ngx_http_profile_ground_text(ngx_str_t *s)
{
    u_char  text[NGX_HTTP_PROFILE_GROUND_TEXT];

    if (s->len == 0 || s->len >= sizeof(text)
        || ngx_http_profile_ground_read(text, s->data, s->len + 1) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return strnlen((char *) text, s->len + 1) == s->len ? NGX_OK : NGX_ERROR;
}


void
ngx_http_profile_ground_log(ngx_cycle_t *cycle)
{
    ngx_log_t                       *log;
    ngx_pool_t                       pool;
    ngx_cycle_t                      copy;
    ngx_http_profile_ground_page_t  *page;

    page = ngx_http_profile_ground_page;

    if (ngx_http_profile_ground != NGX_HTTP_PROFILE_GROUND_OFF
        || !ngx_atomic_cmp_set(&page->logged, 0, 1))
    {
        return;
    }

    /* the log is in two places; a cycle that does not fit has it in one */

    log = NULL;

    if (ngx_http_profile_ground_read(&copy, cycle, sizeof(ngx_cycle_t))
        == NGX_OK
        && ngx_http_profile_ground_read(&pool, copy.pool, sizeof(ngx_pool_t))
           == NGX_OK
        && pool.log == copy.log)
    {
        log = pool.log;

    } else if (ngx_http_profile_ground_pool
               && ngx_http_profile_ground_read(&pool,
                                               ngx_http_profile_ground_pool,
                                               sizeof(ngx_pool_t))
                  == NGX_OK)
    {
        log = pool.log;
    }

    if (log == NULL) {
        ngx_log_stderr(0, "profile: the module is off, since it was built for "
                       "another nginx: %s; build it again for this nginx",
                       page->fault);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "profile: the module is off, since it was built for another "
                  "nginx: %s; build it again for this nginx", page->fault);
}


const char *
ngx_http_profile_ground_state(void)
{
    return ngx_http_profile_ground_page == &ngx_http_profile_ground_own
           ? "the one that the module was built for"
           : "another one, whose structures fit";
}


void
ngx_http_profile_ground_ignore(ngx_command_t *commands)
{
    for ( /* void */ ; commands->name.len; commands++) {
        commands->set = ngx_http_profile_ground_skip;
        commands->post = NULL;

        if (ngx_http_profile_ground_hidden) {
            commands->conf = 0;
        }
    }
}


static char *
ngx_http_profile_ground_skip(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                 *rv;
    ngx_array_t           args, *before;
    ngx_command_t        *command;
    ngx_http_conf_ctx_t  *ctx;
    ngx_str_t             value[3];

    if (ngx_http_profile_ground_hidden
        && ngx_http_profile_ground_add_variables(cf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (!ngx_http_profile_ground_reads || &ngx_http_rewrite_module == NULL
        || (ngx_strcmp(cmd->name.data, "profile_console") != 0
            && ngx_strcmp(cmd->name.data, "profile_metrics") != 0))
    {
        return NGX_CONF_OK;
    }

    /*
     * "return 503 TEXT" in place of the directive: nginx makes the response
     * without a function of this module that would have to know the request
     */

    command = ngx_http_rewrite_module.commands;

    while (command->name.len && ngx_strcmp(command->name.data, "return") != 0) {
        command++;
    }

    if (command->name.len == 0) {
        return NGX_CONF_OK;
    }

    ngx_str_set(&value[0], "return");
    ngx_str_set(&value[1], "503");
    value[2] = ngx_http_profile_ground_reply;

    ngx_memzero(&args, sizeof(ngx_array_t));

    args.elts = value;
    args.nelts = 3;
    args.size = sizeof(ngx_str_t);
    args.nalloc = 3;
    args.pool = cf->pool;

    ctx = cf->ctx;
    before = cf->args;
    cf->args = &args;

    rv = command->set(cf, command,
                      ctx->loc_conf[ngx_http_rewrite_module.ctx_index]);

    cf->args = before;

    return rv;
}


/* also called for variables that exist already */

ngx_int_t
ngx_http_profile_ground_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_profile_ground_vars; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name,
                                    NGX_HTTP_VAR_CHANGEABLE
                                    |NGX_HTTP_VAR_NOCACHEABLE);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = ngx_http_profile_ground_variable;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_ground_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    v->not_found = 1;

    return NGX_OK;
}


void *
ngx_http_profile_ground_nothing(void)
{
    static u_char  nothing[NGX_HTTP_PROFILE_GROUND_CONF];

    return nothing;
}


ngx_int_t
ngx_http_profile_ground_answer(ngx_http_request_t *r)
{
    ngx_http_complex_value_t  cv;

    static ngx_str_t  type = ngx_string("text/plain");

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));
    cv.value = ngx_http_profile_ground_reply;

    return ngx_http_send_response(r, NGX_HTTP_SERVICE_UNAVAILABLE, &type, &cv);
}
