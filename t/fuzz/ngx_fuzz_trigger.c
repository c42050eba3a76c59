
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes triggers: in the query, in headers and in cookies.  The first byte
 * chooses names of triggers and the size of the parts of the list of headers.
 * The rest is a request (ngx_fuzz.h).
 *
 * A simple search compares what is found.  A trigger that is taken out leaves
 * the other arguments and headers as they were, and returns completely.
 */


#include "ngx_fuzz.h"

#include "core/ngx_http_profile_param.h"
#include "request/ngx_http_profile_request_private.h"
#include "bar/ngx_http_profile_bar.h"


#define FUZZ_HEADERS  256


int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ngx_uint_t fuzz_has_arg(ngx_str_t *args, ngx_str_t *name);
static size_t fuzz_other_args(ngx_http_profile_trigger_t *t, ngx_str_t *args,
    u_char *dst);
static ngx_uint_t fuzz_is_ours(ngx_http_profile_trigger_t *t, u_char *p,
    size_t len);
static void fuzz_parsed(ngx_http_request_t *r, ngx_http_profile_ctx_t *ctx,
    ngx_int_t rc);
static void fuzz_strip(ngx_http_request_t *r, ngx_http_profile_ctx_t *ctx,
    ngx_uint_t change);
static ngx_uint_t fuzz_list(ngx_http_request_t *r, ngx_str_t *without,
    ngx_table_elt_t **all);
static void fuzz_negotiate(ngx_http_request_t *r);


static ngx_str_t  fuzz_args[] = {
    ngx_string("performance_bar"), ngx_string("p"), ngx_string("aab"),
    ngx_null_string
};

static ngx_str_t  fuzz_names[] = {
    ngx_string("X-Profile"), ngx_string("x"), ngx_string("Accept"),
    ngx_null_string
};

static ngx_cycle_t                *fuzz_cycle;
static ngx_http_profile_orders_t   fuzz_orders;


int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_cycle = fuzz_nginx("profile_zone fuzz:1m; profile_endpoint on;"
                            "server { listen unix:%s/socket; }\n");

    ngx_memset(fuzz_orders.key, 'a', NGX_HTTP_PROFILE_ID_LEN);
    ngx_http_profile_set_orders(&fuzz_orders);

    return 0;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ngx_uint_t                    n, found;
    ngx_table_elt_t              *h;
    ngx_http_request_t           *r;
    ngx_http_profile_ctx_t        ctx;
    ngx_http_profile_trigger_t   *t;
    ngx_http_profile_loc_conf_t  *plcf;

    if (size == 0) {
        return 0;
    }

    r = fuzz_request(fuzz_cycle, data + 1, size - 1, 1 + (data[0] >> 4 & 3));

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);
    plcf->arg = fuzz_args[data[0] & 3];
    plcf->arg_rare = ngx_http_profile_arg_rare(&plcf->arg);
    plcf->header = fuzz_names[data[0] >> 2 & 3];

    fuzz_orders.until = (data[0] & 0x40) ? ngx_time() + 1000 : 0;

    ngx_memzero(&ctx, sizeof(ngx_http_profile_ctx_t));
    ctx.request = r;
    ctx.conf = plcf;
    t = &ctx.trigger;

    /* nginx calls the module for a header by its name */

    h = ngx_http_profile_find_header(r, &plcf->header, &n);

    if (plcf->header.len && h) {
        fuzz_check(ngx_http_profile_header(r, h, 0) == NGX_OK);
    }

    fuzz_negotiate(r);

    found = (ngx_http_profile_find_trigger(r, t) == NGX_OK);

    fuzz_check((t->arg.len != 0) == fuzz_has_arg(&r->args, &plcf->arg));
    fuzz_check((t->header.len != 0) == (plcf->header.len && h));
    fuzz_check(found == (t->arg.len || t->header.len || t->order.len));

    if (found) {
        fuzz_parsed(r, &ctx, ngx_http_profile_parse_trigger(r, t));
        fuzz_strip(r, &ctx, data[0] >> 7);
    }

    fuzz_request_free(r);

    fuzz_check(ngx_http_profile_nheaders == 0);

    return 0;
}


static ngx_uint_t
fuzz_has_arg(ngx_str_t *args, ngx_str_t *name)
{
    size_t  i, n;

    if (name->len == 0) {
        return 0;
    }

    for (i = 0; i < args->len; i += n + 1) {

        for (n = 0; i + n < args->len && args->data[i + n] != '&'; n++) {
            /* void */
        }

        if (n >= name->len
            && ngx_memcmp(args->data + i, name->data, name->len) == 0
            && (n == name->len || args->data[i + name->len] == '='))
        {
            return 1;
        }
    }

    return 0;
}


/* copies the arguments that are not those of the trigger */

static size_t
fuzz_other_args(ngx_http_profile_trigger_t *t, ngx_str_t *args, u_char *dst)
{
    size_t  i, n, len;

    len = 0;

    for (i = 0; i < args->len; i += n + 1) {

        for (n = 0; i + n < args->len && args->data[i + n] != '&'; n++) {
            /* void */
        }

        if (fuzz_is_ours(t, args->data + i, n)) {
            continue;
        }

        if (len) {
            dst[len++] = '&';
        }

        ngx_memcpy(dst + len, args->data + i, n);
        len += n;
    }

    return len;
}


static ngx_uint_t
fuzz_is_ours(ngx_http_profile_trigger_t *t, u_char *p, size_t len)
{
    size_t      n;
    ngx_str_t   name;
    ngx_uint_t  i;

    static const char  *names[] = {
        "stackprof_mode", "profile_mode", "profile_format",
        "profile_frequency", "profile_spans", "profile_seconds",
        "profile_requests"
    };

    for (n = 0; n < len && p[n] != '='; n++) { /* void */ }

    name.data = p;
    name.len = n;

    if (n && n == t->arg.len && ngx_memcmp(p, t->arg.data, n) == 0) {
        return 1;
    }

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (n == strlen(names[i]) && ngx_memcmp(p, names[i], n) == 0) {
            return 1;
        }
    }

    return 0;
}


static void
fuzz_parsed(ngx_http_request_t *r, ngx_http_profile_ctx_t *ctx, ngx_int_t rc)
{
    size_t                       i;
    ngx_uint_t                   negotiated, n;
    const prof_encoder_t        *e;
    ngx_http_profile_trigger_t  *t;

    t = &ctx->trigger;

    fuzz_check(rc == NGX_OK || rc == NGX_DECLINED);
    fuzz_check((rc == NGX_OK) == (t->error.len == 0));

    /* an error has one line, and nothing that a client chose */

    for (i = 0; i < t->error.len; i++) {
        fuzz_check((t->error.data[i] == '\n') == (i == t->error.len - 1));
        fuzz_check(i == t->error.len - 1
                   || (t->error.data[i] >= ' ' && t->error.data[i] < 0x7f));
    }

    fuzz_check(ngx_http_profile_mode(ctx) < PROF_MODE_MAX);

    e = ngx_http_profile_format(ctx, &negotiated);

    for (n = 0; prof_encoders[n] != e; n++) {
        fuzz_check(prof_encoders[n]);
    }

    n = ngx_http_profile_param(&t->params, NGX_HTTP_PROFILE_PARAM_FREQUENCY,
                               PROF_FREQUENCY_MIN);
    fuzz_check(n >= PROF_FREQUENCY_MIN && n <= PROF_FREQUENCY_MAX);

    n = ngx_http_profile_param(&t->params, NGX_HTTP_PROFILE_PARAM_SECONDS,
                               100);
    fuzz_check(n >= 100 && n <= 600000);

    n = ngx_http_profile_param(&t->params, NGX_HTTP_PROFILE_PARAM_REQUESTS, 1);
    fuzz_check(n >= 1 && n <= 100000);
}


static void
fuzz_strip(ngx_http_request_t *r, ngx_http_profile_ctx_t *ctx,
    ngx_uint_t change)
{
    u_char                       *others;
    size_t                        len;
    ngx_str_t                     args, uri;
    ngx_uint_t                    i, n, nall, nrest;
    ngx_table_elt_t              *new;
    ngx_http_profile_trigger_t    again;
    ngx_table_elt_t              *all[FUZZ_HEADERS], *rest[FUZZ_HEADERS];
    ngx_table_elt_t              *now[FUZZ_HEADERS];

    args = r->args;
    uri = r->unparsed_uri;
    new = NULL;

    nall = fuzz_list(r, NULL, all);
    nrest = fuzz_list(r, &ctx->trigger.header, rest);

    others = ngx_pnalloc(r->pool, args.len + 1);
    fuzz_check(others);
    len = fuzz_other_args(&ctx->trigger, &args, others);

    for (i = 0; i < 2; i++) {
        fuzz_check(ngx_http_profile_strip(ctx) == NGX_OK);

        if (ctx->trigger.arg.len) {
            fuzz_check(r->args.len == len);
            fuzz_check(len == 0
                       || ngx_memcmp(r->args.data, others, len) == 0);
            fuzz_check(r->unparsed_uri.len < uri.len);
        }

        n = fuzz_list(r, NULL, now);
        fuzz_check(n == nrest);
        fuzz_check(ngx_memcmp(now, rest, n * sizeof(now[0])) == 0);
    }

    ngx_memzero(&again, sizeof(ngx_http_profile_trigger_t));

    fuzz_check(ngx_http_profile_find_trigger(r, &again) == NGX_DECLINED
               || again.order.len || again.arg.len == 0);

    /* other code adds a header */

    if (change) {
        new = ngx_list_push(&r->headers_in.headers);
        fuzz_check(new);
        ngx_memzero(new, sizeof(ngx_table_elt_t));
    }

    ngx_http_profile_unstrip(ctx);
    ngx_http_profile_unstrip(ctx);

    fuzz_check(r->args.data == args.data && r->args.len == args.len);
    fuzz_check(r->unparsed_uri.data == uri.data
               && r->unparsed_uri.len == uri.len);

    n = fuzz_list(r, NULL, now);

    if (new == NULL || nall == nrest) {
        fuzz_check(n == nall + change);
        fuzz_check(ngx_memcmp(now, all, nall * sizeof(now[0])) == 0);

    } else {

        /* the trigger's headers follow the new one */

        fuzz_check(n == nall + 1);
        fuzz_check(ngx_memcmp(now, rest, nrest * sizeof(now[0])) == 0);
        fuzz_check(now[nrest] == new);
    }
}


/* the headers of the list without one name; only the first part may be empty */

static ngx_uint_t
fuzz_list(ngx_http_request_t *r, ngx_str_t *without, ngx_table_elt_t **all)
{
    ngx_uint_t        i, n;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    n = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {

        fuzz_check(part->nelts || part == &r->headers_in.headers.part);
        fuzz_check(part->next || part == r->headers_in.headers.last);

        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (without && without->len
                && ngx_http_profile_is_header(&h[i], without))
            {
                continue;
            }

            fuzz_check(n < FUZZ_HEADERS);
            all[n++] = &h[i];
        }
    }

    return n;
}


static void
fuzz_negotiate(ngx_http_request_t *r)
{
    uint8_t                flags;
    ngx_uint_t             n;
    prof_trace_t           trace;
    const prof_encoder_t  *e;

    static const char  *types[] = {
        "text/html", "application/json", "text/plain; version=0.0.4", NULL
    };

    e = ngx_http_profile_accept_format(r, prof_encoders[1]);

    for (n = 0; prof_encoders[n] != e; n++) {
        fuzz_check(prof_encoders[n]);
    }

    fuzz_check(ngx_http_profile_accept_type(r, types) < 3);
    fuzz_check(ngx_http_profile_accept_gzip(r) < 2);

    (void) ngx_http_profile_trace_flags(r, &trace, &flags);
}
