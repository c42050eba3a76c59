
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "ngx_fuzz.h"

#include <ftw.h>
#include <sanitizer/lsan_interface.h>


static int fuzz_unlink(const char *path, const struct stat *st, int type,
    struct FTW *at);
static void fuzz_headers(ngx_http_request_t *r, const uint8_t *p,
    const uint8_t *last);


static char              fuzz_dir[] = "/tmp/ngx_fuzz_XXXXXX";
static ngx_open_file_t   fuzz_log_file;
static ngx_log_t         fuzz_log;
static ngx_connection_t  fuzz_connection;


ngx_cycle_t *
fuzz_nginx(const char *text)
{
    FILE         *f;
    char          name[sizeof(fuzz_dir) + sizeof("/nginx.conf")];
    ngx_cycle_t  *init, *cycle;

    static char  *argv[] = { NULL };

    /* nginx does not free all that it makes once */

    __lsan_disable();

    fuzz_check(mkdtemp(fuzz_dir));
    fuzz_check(atexit(fuzz_remove) == 0);

    (void) snprintf(name, sizeof(name), "%s/nginx.conf", fuzz_dir);

    f = fopen(name, "w");
    fuzz_check(f);

    (void) fprintf(f, "error_log stderr emerg; pid %s/pid;\n"
                      "events { worker_connections 64; }\n"
                      "http { access_log off;\n", fuzz_dir);
    (void) fprintf(f, text, fuzz_dir);
    (void) fprintf(f, "}\n");

    fuzz_check(fclose(f) == 0);

    fuzz_log_file.fd = STDERR_FILENO;
    fuzz_log.file = &fuzz_log_file;
    fuzz_log.log_level = NGX_LOG_EMERG;

    ngx_process = NGX_PROCESS_SINGLE;
    ngx_max_sockets = -1;
    ngx_pid = getpid();

    fuzz_check(ngx_strerror_init() == NGX_OK);
    ngx_time_init();
#if (NGX_PCRE)
    ngx_regex_init();
#endif

    init = calloc(1, sizeof(ngx_cycle_t));
    fuzz_check(init);

    init->log = &fuzz_log;
    ngx_cycle = init;

    init->pool = ngx_create_pool(1024, &fuzz_log);
    fuzz_check(init->pool);

    init->prefix.len = strlen(fuzz_dir) + 1;
    init->prefix.data = ngx_pnalloc(init->pool, init->prefix.len);
    fuzz_check(init->prefix.data);

    ngx_memcpy(init->prefix.data, fuzz_dir, init->prefix.len - 1);
    init->prefix.data[init->prefix.len - 1] = '/';

    init->conf_prefix = init->prefix;
    ngx_str_set(&init->error_log, "stderr");

    init->conf_file.len = strlen(name);
    init->conf_file.data = fuzz_copy(init->pool, (uint8_t *) name,
                                     sizeof(name));

    /* nginx renames no process here */

    ngx_os_argv = argv;

    fuzz_check(ngx_os_init(&fuzz_log) == NGX_OK);
    fuzz_check(ngx_crc32_table_init() == NGX_OK);
    ngx_slab_sizes_init();
    fuzz_check(ngx_preinit_modules() == NGX_OK);

    cycle = ngx_init_cycle(init);
    fuzz_check(cycle);

    __lsan_enable();

    ngx_cycle = cycle;
    fuzz_connection.log = &fuzz_log;

    return cycle;
}


void
fuzz_remove(void)
{
    (void) nftw(fuzz_dir, fuzz_unlink, 8, FTW_DEPTH|FTW_PHYS);
}


static int
fuzz_unlink(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}


u_char *
fuzz_copy(ngx_pool_t *pool, const uint8_t *data, size_t size)
{
    u_char  *p;

    p = ngx_pnalloc(pool, size);
    fuzz_check(p);

    if (size) {
        ngx_memcpy(p, data, size);
    }

    return p;
}


ngx_http_request_t *
fuzz_request(ngx_cycle_t *cycle, const uint8_t *data, size_t size,
    ngx_uint_t part)
{
    ngx_pool_t                  *pool;
    const uint8_t               *last, *end, *p;
    ngx_http_request_t          *r;
    ngx_http_conf_ctx_t         *ctx;
    ngx_http_core_srv_conf_t   **servers;
    ngx_http_core_main_conf_t   *cmcf;

    pool = ngx_create_pool(256, &fuzz_log);
    fuzz_check(pool);

    r = ngx_pcalloc(pool, sizeof(ngx_http_request_t));
    fuzz_check(r);

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);
    servers = cmcf->servers.elts;
    ctx = servers[0]->ctx;

    r->pool = pool;
    r->main = r;
    r->connection = &fuzz_connection;
    r->main_conf = ctx->main_conf;
    r->srv_conf = ctx->srv_conf;
    r->loc_conf = ctx->loc_conf;

    r->ctx = ngx_pcalloc(pool, sizeof(void *) * ngx_http_max_module);
    fuzz_check(r->ctx);

    fuzz_check(ngx_list_init(&r->headers_in.headers, pool, part,
                             sizeof(ngx_table_elt_t))
               == NGX_OK);
    fuzz_check(ngx_list_init(&r->headers_out.headers, pool, 4,
                             sizeof(ngx_table_elt_t))
               == NGX_OK);

#if (nginx_version < 1023000)
    fuzz_check(ngx_array_init(&r->headers_in.cookies, pool, 2,
                              sizeof(ngx_table_elt_t *))
               == NGX_OK);
#endif

    last = data + size;
    end = size ? memchr(data, '\n', size) : NULL;
    end = end ? end : last;

    p = end > data ? memchr(data, ' ', end - data) : NULL;
    p = p ? p : data;

    r->method_name.data = fuzz_copy(pool, data, p - data);
    r->method_name.len = p - data;
    r->method = (r->method_name.len == 4) ? NGX_HTTP_POST
                : (r->method_name.len == 6) ? NGX_HTTP_DELETE : NGX_HTTP_GET;

    p += (p < end && *p == ' ');

    r->unparsed_uri.data = fuzz_copy(pool, p, end - p);
    r->unparsed_uri.len = end - p;

    r->uri = r->unparsed_uri;

    p = memchr(r->uri.data, '?', r->uri.len);

    if (p) {
        r->uri.len = p - r->uri.data;
        r->args.data = r->uri.data + r->uri.len + 1;
        r->args.len = r->unparsed_uri.len - r->uri.len - 1;
    }

    if (end < last) {
        fuzz_headers(r, end + 1, last);
    }

    return r;
}


static void
fuzz_headers(ngx_http_request_t *r, const uint8_t *p, const uint8_t *last)
{
    u_char            *line;
    const uint8_t     *end, *colon;
    ngx_table_elt_t   *h, **cookie;

#if (nginx_version >= 1023000)
    cookie = &r->headers_in.cookie;
#endif

    for ( /* void */ ; p < last; p = end + 1) {

        end = memchr(p, '\n', last - p);
        end = end ? end : last;

        colon = end > p ? memchr(p, ':', end - p) : NULL;

        if (colon == NULL) {
            continue;
        }

        h = ngx_list_push(&r->headers_in.headers);
        fuzz_check(h);
        ngx_memzero(h, sizeof(ngx_table_elt_t));

        /* nginx ends both with a null byte */

        line = fuzz_copy(r->pool, p, colon - p + 1);
        line[colon - p] = '\0';

        h->hash = 1;
        h->key.data = line;
        h->key.len = colon - p;

        colon++;
        colon += (colon < end && *colon == ' ');

        h->value.data = ngx_pnalloc(r->pool, end - colon + 1);
        fuzz_check(h->value.data);

        h->value.len = end - colon;
        *ngx_cpymem(h->value.data, colon, end - colon) = '\0';

        if (h->key.len == 4 && ngx_strncasecmp(line, (u_char *) "host", 4) == 0)
        {
            r->headers_in.host = h;
        }

        if (h->key.len != 6 || ngx_strncasecmp(line, (u_char *) "cookie", 6)) {
            continue;
        }

#if (nginx_version < 1023000)
        cookie = ngx_array_push(&r->headers_in.cookies);
        fuzz_check(cookie);
        *cookie = h;
#else
        *cookie = h;
        cookie = &h->next;
#endif
    }
}


void
fuzz_request_free(ngx_http_request_t *r)
{
    ngx_destroy_pool(r->pool);
}
