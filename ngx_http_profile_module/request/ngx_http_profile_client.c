
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Checks a client against a list of profile_allow.  The default list admits
 * local addresses.  A proxy on the same machine has a local address as well,
 * but its clients are remote.  So the default list does not admit a request
 * with a header of a proxy, unless ngx_http_realip_module has set the client's
 * address.
 */


#include "request/ngx_http_profile_request.h"


static const char *ngx_http_profile_client_proxy(ngx_http_request_t *r);
static ngx_uint_t ngx_http_profile_client_is_real(ngx_http_request_t *r);
static ngx_uint_t ngx_http_profile_client_same(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
static void ngx_http_profile_client_warn(ngx_http_request_t *r,
    const char *proxy);


static ngx_str_t  ngx_http_profile_client_headers[] = {
    ngx_string("X-Forwarded-For"),
    ngx_string("Forwarded"),
    ngx_string("X-Real-IP"),
    ngx_string("Via"),
    ngx_null_string
};


ngx_int_t
ngx_http_profile_client(ngx_http_request_t *r, ngx_array_t *allow)
{
    const char                    *proxy;
    ngx_http_profile_main_conf_t  *pmcf;

    if (ngx_cidr_match(r->connection->sockaddr, allow) != NGX_OK) {
        return NGX_DECLINED;
    }

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    if (allow != pmcf->local) {
        return NGX_OK;
    }

    proxy = ngx_http_profile_client_proxy(r);

    if (proxy == NULL || ngx_http_profile_client_is_real(r)) {
        return NGX_OK;
    }

    ngx_http_profile_client_warn(r, proxy);

    return NGX_DECLINED;
}


/* returns the name of the sign that a proxy sent the request, or NULL */

static const char *
ngx_http_profile_client_proxy(ngx_http_request_t *r)
{
    ngx_str_t   *name;
    ngx_uint_t   n;

    if (r->connection->proxy_protocol) {
        return "PROXY protocol";
    }

    for (name = ngx_http_profile_client_headers; name->len; name++) {
        if (ngx_http_profile_find_header(r, name, &n)) {
            return (const char *) name->data;
        }
    }

    return NULL;
}


/*
 * Returns whether ngx_http_realip_module has replaced the address of the
 * connection.  Its variables contain the original address and port.  If the
 * address has the same text, the port differs or is missing.
 */

static ngx_uint_t
ngx_http_profile_client_is_real(ngx_http_request_t *r)
{
    in_port_t   port;
    ngx_str_t   value;
    u_char      text[NGX_INT_T_LEN];

    port = ngx_inet_get_port(r->connection->sockaddr);

    value.data = text;
    value.len = port ? ngx_sprintf(text, "%ui", (ngx_uint_t) port) - text : 0;

    return !ngx_http_profile_client_same(r, "realip_remote_addr",
                                         &r->connection->addr_text)
           || !ngx_http_profile_client_same(r, "realip_remote_port", &value);
}


/* without ngx_http_realip_module the values count as the same */

static ngx_uint_t
ngx_http_profile_client_same(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_str_t                   s;
    ngx_uint_t                  key;
    ngx_http_variable_value_t  *vv;

    s.data = (u_char *) name;
    s.len = ngx_strlen(name);
    key = ngx_hash_key(s.data, s.len);

    vv = ngx_http_get_variable(r, &s, key);

    return vv == NULL || vv->not_found
           || (vv->len == value->len
               && ngx_memcmp(vv->data, value->data, value->len) == 0);
}


/* logs once in each worker, because the configuration causes the refusal */

static void
ngx_http_profile_client_warn(ngx_http_request_t *r, const char *proxy)
{
    static ngx_uint_t  warned;

    if (warned) {
        return;
    }

    warned = 1;

    ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                  "profile: a client with a local address is not admitted, "
                  "since its request has \"%s\" from a proxy; set "
                  "\"profile_allow\" or \"set_real_ip_from\"", proxy);
}
