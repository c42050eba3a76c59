
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The bar's script: one function, made of several files.  The styles are a
 * string in the script.  The policy of a page may forbid inline styles and
 * style sheets, but not styles that a script adds to its own shadow tree.
 */


#include "bar/ngx_http_profile_bar.h"
#include "core/ngx_http_profile_param.h"
#include "console/ngx_http_profile_console.h"


static void ngx_http_profile_bar_put(prof_buf_t *b, const char *name);
static ngx_int_t ngx_http_profile_bar_modes(ngx_conf_t *cf,
    ngx_http_profile_bar_main_conf_t *bmcf);


/* in the order of the buttons */

static ngx_str_t  ngx_http_profile_bar_mode_names[] = {
    ngx_string("wall"),
    ngx_string("cpu"),
    ngx_string("object"),
    ngx_null_string
};

/* the parts of the script in their order; the last part starts the bar */

static const char  *ngx_http_profile_bar_files[] = {
    "bar_dom.js",
    "bar_facts.js",
    "bar_orders.js",
    "bar_panels.js",
    "bar.js",
    NULL
};

static const char  ngx_http_profile_bar_head[] =
    "(function () {\n'use strict';\n\nconst STYLE = `";


ngx_int_t
ngx_http_profile_bar_script_init(ngx_conf_t *cf,
    ngx_http_profile_bar_main_conf_t *bmcf)
{
    u_char       *p;
    uint32_t      crc;
    prof_buf_t    b;
    const char  **file;

    prof_buf_init(&b);

    prof_buf_puts(&b, ngx_http_profile_bar_head);
    ngx_http_profile_bar_put(&b, "prof_theme.css");
    ngx_http_profile_bar_put(&b, "bar.css");
    prof_buf_puts(&b, "`;\n");

    for (file = ngx_http_profile_bar_files; *file; file++) {
        prof_buf_puts(&b, "\n");
        ngx_http_profile_bar_put(&b, *file);
    }

    prof_buf_puts(&b, "})();\n");

    bmcf->script.len = b.len;
    bmcf->script.data = prof_buf_failed(&b) ? NULL
                                            : ngx_pnalloc(cf->pool, b.len);
    bmcf->path.data = ngx_pnalloc(cf->pool, sizeof("bar.js?v=01234567"));

    if (bmcf->script.data == NULL || bmcf->path.data == NULL) {
        prof_buf_free(&b);
        return NGX_ERROR;
    }

    ngx_memcpy(bmcf->script.data, b.data, b.len);
    prof_buf_free(&b);

    crc = ngx_crc32_long(bmcf->script.data, bmcf->script.len);

    p = ngx_sprintf(bmcf->path.data, "bar.js?v=%08xD", crc);

    bmcf->path.len = p - bmcf->path.data;

    return ngx_http_profile_bar_modes(cf, bmcf);
}


static void
ngx_http_profile_bar_put(prof_buf_t *b, const char *name)
{
    ngx_str_t  text;

    ngx_http_profile_asset(name, &text);
    prof_buf_append(b, text.data, text.len);
}


/* joins the names of the available modes with spaces */

static ngx_int_t
ngx_http_profile_bar_modes(ngx_conf_t *cf,
    ngx_http_profile_bar_main_conf_t *bmcf)
{
    u_char      *p;
    size_t       len;
    ngx_str_t   *name;

    len = 0;

    for (name = ngx_http_profile_bar_mode_names; name->len; name++) {
        len += name->len + 1;
    }

    p = ngx_pnalloc(cf->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    bmcf->modes.data = p;

    for (name = ngx_http_profile_bar_mode_names; name->len; name++) {

        if (ngx_http_profile_param_parse(NGX_HTTP_PROFILE_PARAM_MODE, name)
            == NGX_ERROR)
        {
            continue;
        }

        if (p > bmcf->modes.data) {
            *p++ = ' ';
        }

        p = ngx_cpymem(p, name->data, name->len);
    }

    bmcf->modes.len = p - bmcf->modes.data;

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_bar_script_route(ngx_http_profile_call_t *call)
{
    ngx_str_t                         *args, *path;
    ngx_http_profile_answer_t          answer;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    bmcf = ngx_http_get_module_main_conf(call->request,
                                         ngx_http_profile_bar_filter_module);

    if (bmcf->script.len == 0) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                             "there is no bar without \"profile_bar on\"");
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    /* a page from before an upgrade requests another version */

    args = &call->request->args;
    path = &bmcf->path;

    answer.immutable = args->len && args->len < path->len
                       && ngx_strncmp(path->data + path->len - args->len,
                                      args->data, args->len)
                          == 0;

    answer.body = bmcf->script;
    answer.compressible = 1;
    ngx_str_set(&answer.type, "text/javascript; charset=utf-8");

    return ngx_http_profile_answer(call, &answer);
}
