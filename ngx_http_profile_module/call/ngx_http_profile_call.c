
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Arguments of calls, and answers that come later.
 */


#include "call/ngx_http_profile_call.h"
#include "request/ngx_http_profile_request.h"


static void ngx_http_profile_call_cleanup(void *data);


ngx_int_t
ngx_http_profile_call_permits(ngx_http_profile_call_t *call, const char *pages,
    ngx_http_profile_log_limit_t *line)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = call->request;

    rc = ngx_http_profile_permits_client(r, pages, line);

    if (rc == NGX_OK) {
        return NGX_DECLINED;
    }

    if (rc == NGX_ABORT) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_FORBIDDEN,
                             "no \"server_name\" is \"%V\": add this name, or "
                             "name the clients with \"profile_allow\"",
                             r->headers_in.host ? &r->headers_in.host->value
                                                : &r->headers_in.server);
    }

    return NGX_HTTP_FORBIDDEN;
}


ngx_int_t
ngx_http_profile_call_site(ngx_http_profile_call_t *call, ngx_uint_t none)
{
    ngx_uint_t           n;
    ngx_table_elt_t     *h;
    ngx_http_request_t  *r;

    r = call->request;

    h = ngx_http_profile_find_header(r, &ngx_http_profile_site_name, &n);

    if (h == NULL
        || ngx_http_profile_site_says(r, "Sec-Fetch-Site", "same-origin")
        || (none && ngx_http_profile_site_says(r, "Sec-Fetch-Site", "none")))
    {
        return ngx_http_profile_call_origin(call);
    }

    return ngx_http_profile_answer_error(call, NGX_HTTP_FORBIDDEN,
                             "the request comes from another site, as its "
                             "header \"Sec-Fetch-Site: %V\" says",
                             &h->value);
}


ngx_int_t
ngx_http_profile_call_origin(ngx_http_profile_call_t *call)
{
    ngx_uint_t           n;
    ngx_table_elt_t     *h;
    ngx_http_request_t  *r;

    r = call->request;

    h = ngx_http_profile_find_header(r, &ngx_http_profile_origin_name, &n);

    if (h == NULL || (n == 1 && ngx_http_profile_site_same(r, &h->value))) {
        return NGX_DECLINED;
    }

    return ngx_http_profile_answer_error(call, NGX_HTTP_FORBIDDEN,
                             "the request comes from another site, as its "
                             "header \"Origin: %V\" says", &h->value);
}


ngx_int_t
ngx_http_profile_call_arg(ngx_http_profile_call_t *call, const char *name,
    ngx_str_t *value)
{
    u_char              *src, *dst;
    ngx_http_request_t  *r;

    r = call->request;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), value) != NGX_OK) {
        return NGX_DECLINED;
    }

    src = value->data;

    dst = ngx_pnalloc(r->pool, value->len + 1);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    value->data = dst;

    ngx_unescape_uri(&dst, &src, value->len, 0);

    *dst = '\0';
    value->len = dst - value->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_profile_call_param(ngx_http_profile_call_t *call, const char *name,
    ngx_uint_t n, ngx_http_profile_params_t *params)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_profile_call_arg(call, name, &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    if (ngx_http_profile_param_set(params, n, &value) == NGX_OK) {
        return NGX_DECLINED;
    }

    return ngx_http_profile_call_wrong(call, name, &value,
                                       ngx_http_profile_param_takes(n));
}


ngx_int_t
ngx_http_profile_call_wrong(ngx_http_profile_call_t *call, const char *name,
    ngx_str_t *value, const char *takes)
{
    return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                "\"%s\" is \"%V\", it must be %s",
                                name, value, takes);
}


ngx_int_t
ngx_http_profile_call_own(ngx_http_profile_call_t *call, ngx_uint_t *own)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    *own = 0;

    rc = ngx_http_profile_call_arg(call, "profiler", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    if (ngx_http_profile_str_eq(&value, "on", 2)) {
        *own = 1;
        return NGX_DECLINED;
    }

    return ngx_http_profile_str_eq(&value, "off", 3)
           ? NGX_DECLINED
           : ngx_http_profile_call_wrong(call, "profiler", &value,
                                         "\"on\" or \"off\"");
}


ngx_int_t
ngx_http_profile_call_root(ngx_http_profile_call_t *call,
    ngx_http_profile_root_t *root)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_profile_call_arg(call, "root", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    if (prof_root_parse((char *) value.data, value.len, &root->hash)
        != PROF_OK)
    {
        return ngx_http_profile_call_wrong(call, "root", &value,
                                "the number of a box: up to 8 hexadecimal "
                                "digits, as \"zoom\" in the URL of a "
                                "flamegraph");
    }

    root->given = 1;

    return NGX_DECLINED;
}


int
ngx_http_profile_root_keep(ngx_http_profile_root_t *root, prof_profile_t *p)
{
    int  rc;

    if (!root->given) {
        return PROF_OK;
    }

    rc = prof_root_keep(p, root->hash);

    root->unknown = (rc == PROF_LIMIT);

    return rc == PROF_OK ? PROF_OK : PROF_ERROR;
}


ngx_int_t
ngx_http_profile_answer_no_root(ngx_http_profile_call_t *call,
    ngx_http_profile_root_t *root)
{
    return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                "the profile has no box with the \"root\" "
                                "%xD", root->hash);
}


ngx_int_t
ngx_http_profile_call_hold(ngx_http_profile_call_t *call,
    void (*abort)(ngx_http_profile_call_t *call), void *data)
{
    ngx_http_cleanup_t  *cln;
    ngx_http_request_t  *r;

    r = call->request;

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_profile_call_cleanup;
    cln->data = call;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: console answer comes later");

    call->abort = abort;
    call->data = data;
    call->held = 1;

    /* this handler notices when the client closes the connection */

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    r->main->count++;

    return NGX_DONE;
}


static void
ngx_http_profile_call_cleanup(void *data)
{
    ngx_http_profile_call_t *call = data;

    if (call->held) {
        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, call->request->connection->log, 0,
                       "profile: client of the console left");

        call->held = 0;
        call->abort(call);
    }
}


void
ngx_http_profile_call_end(ngx_http_profile_call_t *call, ngx_int_t rc)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = call->request;
    c = r->connection;

    call->held = 0;

    ngx_http_set_log_request(c->log, r);

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}
