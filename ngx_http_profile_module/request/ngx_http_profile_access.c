
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Permission to profile: profile_allow and profile_if.  Requests that pages of
 * other sites cause are refused.
 *
 * The default list of profile_allow admits local addresses.  A proxy on the
 * same machine has a local address as well, but its clients are remote.  So the
 * default list does not admit a request with a header of a proxy, unless
 * ngx_http_realip_module has set the client's address.
 *
 * The default list also does not admit a host that is not configured.  A
 * page of another site can let the name of its own site resolve to 127.0.0.1
 * ("DNS rebinding").  For the browser, the console then belongs to that site,
 * and the page may read it.  Only the "Host" header tells this request from
 * one of the operator.  A name that no resolver of another site can change is
 * an address, "localhost", or a name of a server.
 */


#include "request/ngx_http_profile_request_private.h"


static char *ngx_http_profile_allow_one(ngx_conf_t *cf, ngx_array_t *allow,
    ngx_str_t *value);
static ngx_int_t ngx_http_profile_allow_unix(ngx_array_t *allow);
static const char *ngx_http_profile_foreign(ngx_http_request_t *r);
static const char *ngx_http_profile_refused_by(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf);
static void ngx_http_profile_log_refused(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, const char *directive);
static ngx_int_t ngx_http_profile_client(ngx_http_request_t *r,
    ngx_array_t *allow);
static const char *ngx_http_profile_client_proxy(ngx_http_request_t *r);
static ngx_uint_t ngx_http_profile_client_is_real(ngx_http_request_t *r);
static ngx_uint_t ngx_http_profile_client_same(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
static ngx_str_t *ngx_http_profile_client_host(ngx_http_request_t *r);
static ngx_uint_t ngx_http_profile_client_named(ngx_http_request_t *r,
    ngx_str_t *value);
static ngx_uint_t ngx_http_profile_client_ends(ngx_str_t *host,
    ngx_str_t *end);
static void ngx_http_profile_client_warn(ngx_http_request_t *r,
    const char *proxy, ngx_str_t *host);


static ngx_str_t  ngx_http_profile_defaults[] = {
    ngx_string("127.0.0.0/8"),
    ngx_string("::1"),
    ngx_string("unix:"),
    ngx_null_string
};


static ngx_str_t  ngx_http_profile_client_headers[] = {
    ngx_string("X-Forwarded-For"),
    ngx_string("Forwarded"),
    ngx_string("X-Real-IP"),
    ngx_string("Via"),
    ngx_null_string
};


char *
ngx_http_profile_allow(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    char        *rv;
    ngx_str_t   *value;
    ngx_uint_t   i;

    if (plcf->allow == NGX_CONF_UNSET_PTR) {

        plcf->allow = ngx_array_create(cf->pool, 4, sizeof(ngx_cidr_t));
        if (plcf->allow == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        rv = ngx_http_profile_allow_one(cf, plcf->allow, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


ngx_array_t *
ngx_http_profile_allow_default(ngx_conf_t *cf)
{
    ngx_str_t    *value;
    ngx_array_t  *allow;

    allow = ngx_array_create(cf->pool, 4, sizeof(ngx_cidr_t));
    if (allow == NULL) {
        return NULL;
    }

    for (value = ngx_http_profile_defaults; value->len; value++) {
        if (ngx_http_profile_allow_one(cf, allow, value) != NGX_CONF_OK) {
            return NULL;
        }
    }

    return allow;
}


static char *
ngx_http_profile_allow_one(ngx_conf_t *cf, ngx_array_t *allow,
    ngx_str_t *value)
{
    ngx_int_t    rc;
    ngx_str_t    all;
    ngx_cidr_t  *cidr;

    if (ngx_strcmp(value->data, "unix:") == 0) {
        return ngx_http_profile_allow_unix(allow) == NGX_OK ? NGX_CONF_OK
                                                            : NGX_CONF_ERROR;
    }

    if (ngx_strcmp(value->data, "all") == 0) {

        ngx_str_set(&all, "0.0.0.0/0");

        if (ngx_http_profile_allow_one(cf, allow, &all) != NGX_CONF_OK
            || ngx_http_profile_allow_unix(allow) != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }

#if (NGX_HAVE_INET6)
        ngx_str_set(&all, "::/0");

        return ngx_http_profile_allow_one(cf, allow, &all);
#else
        return NGX_CONF_OK;
#endif
    }

#if !(NGX_HAVE_INET6)
    if (ngx_strcmp(value->data, "::1") == 0) {
        return NGX_CONF_OK;
    }
#endif

    cidr = ngx_array_push(allow);
    if (cidr == NULL) {
        return NGX_CONF_ERROR;
    }

    rc = ngx_ptocidr(value, cidr);

    if (rc == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"profile_allow\" "
                           "directive, it must be an address, a CIDR block, "
                           "\"unix:\" or \"all\"", value);
        return NGX_CONF_ERROR;
    }

    if (rc == NGX_DONE) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "low address bits of \"%V\" in \"profile_allow\" "
                           "directive are meaningless", value);
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_profile_allow_unix(ngx_array_t *allow)
{
    ngx_cidr_t  *cidr;

    cidr = ngx_array_push(allow);
    if (cidr == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(cidr, sizeof(ngx_cidr_t));
    cidr->family = AF_UNIX;

    return NGX_OK;
}


/*
 * Collects the names of all servers that only the operator's own resolvers can
 * resolve.  nginx frees its own list when it has read the configuration.
 *
 * A name that fits names of other owners does not count: "_" and the empty
 * name, a wildcard at the end or with one label ("example.*", "*.com"), and
 * each regular expression, since what it fits cannot be known.
 */

ngx_int_t
ngx_http_profile_allow_hosts(ngx_conf_t *cf)
{
    ngx_str_t                      *host, s;
    ngx_uint_t                      i, n;
    ngx_http_server_name_t         *name;
    ngx_http_core_srv_conf_t      **cscfp;
    ngx_http_core_main_conf_t      *cmcf;
    ngx_http_profile_main_conf_t   *pmcf;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);
    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    if (ngx_array_init(&pmcf->hosts, cf->pool, 4, sizeof(ngx_str_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    cscfp = cmcf->servers.elts;

    for (i = 0; i < cmcf->servers.nelts; i++) {
        name = cscfp[i]->server_names.elts;

        for (n = 0; n < cscfp[i]->server_names.nelts; n++) {
            s = name[n].name;

#if (NGX_PCRE)
            if (name[n].regex) {
                continue;
            }
#endif

            if (s.len > 1 && s.data[0] == '*') {
                s.data++;
                s.len--;
            }

            if (s.len == 0
                || (s.len == 1 && s.data[0] == '_')
                || s.data[s.len - 1] == '*'
                || (s.data[0] == '.'
                    && ngx_strlchr(s.data + 1, s.data + s.len, '.') == NULL))
            {
                continue;
            }

            host = ngx_array_push(&pmcf->hosts);
            if (host == NULL) {
                return NGX_ERROR;
            }

            *host = s;
        }
    }

    return NGX_OK;
}


/*
 * Checks that a location of the server permits the client's address, and that
 * no page of another site has caused the request.  Most triggers without
 * permission are refused here, before any other work is done.
 */

ngx_int_t
ngx_http_profile_access_any(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t)
{
    ngx_uint_t                     i;
    const char                    *header;
    ngx_array_t                   *last;
    ngx_http_profile_srv_conf_t   *pscf;
    ngx_http_profile_loc_conf_t  **plcf;

    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    if (pscf->locations.nelts == 0) {
        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: trigger ignored, no location of the server "
                       "has \"profile_endpoint\"");
        return NGX_DECLINED;
    }

    plcf = pscf->locations.elts;
    last = NULL;

    for (i = 0; i < pscf->locations.nelts; i++) {

        /* most locations inherit the same list */

        if (plcf[i]->allow == last) {
            continue;
        }

        last = plcf[i]->allow;

        if (ngx_http_profile_client(r, last) == NGX_OK) {

            header = ngx_http_profile_foreign(r);

            if (header == NULL) {
                return NGX_OK;
            }

            ngx_http_profile_log_refused(r, t, header);

            return NGX_DECLINED;
        }
    }

    ngx_http_profile_log_refused(r, t, "profile_allow");

    return NGX_DECLINED;
}


/*
 * Returns the name of the header by which a page of another site has caused the
 * request, or NULL.  A link that opens in its own tab is permitted: users send
 * links with a trigger in chats and trackers.  Older browsers, and all browsers
 * over plain HTTP, send only the header "Origin".
 */

static const char *
ngx_http_profile_foreign(ngx_http_request_t *r)
{
    ngx_str_t         purpose;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    if (ngx_http_profile_find_header(r, &ngx_http_profile_site_name, &n)) {

        if (ngx_http_profile_site_says(r, "Sec-Fetch-Site", "none")
            || ngx_http_profile_site_says(r, "Sec-Fetch-Site", "same-origin")
            || ngx_http_profile_site_says(r, "Sec-Fetch-Site", "same-site"))
        {
            return NULL;
        }

        ngx_str_set(&purpose, "Sec-Purpose");

        if ((r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))
            && ngx_http_profile_site_says(r, "Sec-Fetch-Mode", "navigate")
            && ngx_http_profile_site_says(r, "Sec-Fetch-Dest", "document")
            && ngx_http_profile_find_header(r, &purpose, &n) == NULL)
        {
            return NULL;
        }

        return "Sec-Fetch-Site";
    }

    h = ngx_http_profile_find_header(r, &ngx_http_profile_origin_name, &n);

    return (h && (n > 1 || !ngx_http_profile_site_same(r, &h->value)))
           ? "Origin" : NULL;
}


/* checks what needs no variables: "profile_endpoint" and "profile_allow" */

ngx_int_t
ngx_http_profile_access_address(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf)
{
    if (!plcf->enable) {
        return NGX_DECLINED;
    }

    return ngx_http_profile_client(r, plcf->allow);
}


ngx_int_t
ngx_http_profile_access(ngx_http_request_t *r, ngx_http_profile_trigger_t *t,
    ngx_http_profile_loc_conf_t *plcf)
{
    const char  *directive;

    directive = ngx_http_profile_refused_by(r, plcf);

    if (directive == NULL) {
        return NGX_OK;
    }

    if (plcf->enable) {
        ngx_http_profile_log_refused(r, t, directive);
    }

    return NGX_DECLINED;
}


/*
 * Decides as ngx_http_profile_access() does, for requests without a trigger.
 * Most of these clients may not profile, so a refusal is not logged.
 */

ngx_int_t
ngx_http_profile_permits(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf)
{
    return ngx_http_profile_refused_by(r, plcf) ? NGX_DECLINED : NGX_OK;
}


static const char *
ngx_http_profile_refused_by(ngx_http_request_t *r,
    ngx_http_profile_loc_conf_t *plcf)
{
    if (ngx_http_profile_access_address(r, plcf) != NGX_OK) {
        return "profile_allow";
    }

    if (plcf->condition == NULL
        || ngx_http_profile_holds(r, plcf->condition))
    {
        return NULL;
    }

    return "profile_if";
}


/* logs at most one refusal a second, so that clients cannot fill the log */

static void
ngx_http_profile_log_refused(ngx_http_request_t *r,
    ngx_http_profile_trigger_t *t, const char *directive)
{
    ngx_uint_t  omitted;

    static ngx_str_t                     order =
        ngx_string("an order of the bar");
    static ngx_http_profile_log_limit_t  line;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "profile: trigger refused by \"%s\"", directive);

    if (ngx_http_profile_log_limit(&line, &omitted) != NGX_OK) {
        return;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "profile: trigger \"%V\" refused by \"%s\", "
                  "%ui more not logged",
                  t->arg.len ? &t->arg : t->header.len ? &t->header : &order,
                  directive, omitted);
}


ngx_int_t
ngx_http_profile_permits_client(ngx_http_request_t *r, const char *pages,
    ngx_http_profile_log_limit_t *line)
{
    ngx_int_t                     rc;
    ngx_uint_t                    omitted;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    rc = ngx_http_profile_client(r, plcf->allow);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    if (ngx_http_profile_log_limit(line, &omitted) == NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "profile: %s refused by \"profile_allow\", "
                      "%ui more not logged", pages, omitted);
    }

    return rc;
}


/*
 * Returns NGX_OK if a list of profile_allow contains the client's address, or
 * NGX_DECLINED.  The default list does not admit requests from proxies, and
 * returns NGX_ABORT for a host that is not configured.
 */

static ngx_int_t
ngx_http_profile_client(ngx_http_request_t *r, ngx_array_t *allow)
{
    ngx_str_t                     *host;
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

    if (proxy && !ngx_http_profile_client_is_real(r)) {
        ngx_http_profile_client_warn(r, proxy, NULL);
        return NGX_DECLINED;
    }

    host = ngx_http_profile_client_host(r);

    if (host) {
        ngx_http_profile_client_warn(r, NULL, host);
        return NGX_ABORT;
    }

    return NGX_OK;
}


/* returns what shows that a proxy sent the request, as a header; or NULL */

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


/*
 * Returns whether the variable has this value.  Without ngx_http_realip_module
 * the variable does not exist, and the function returns 1.
 */

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


/*
 * Returns the host of the request if it is not configured, or NULL.  A request
 * line may name another host than the header; both must be configured.  Only
 * requests of HTTP/1.0 have none, and browsers do not send these.
 */

static ngx_str_t *
ngx_http_profile_client_host(ngx_http_request_t *r)
{
    if (r->headers_in.host
        && !ngx_http_profile_client_named(r, &r->headers_in.host->value))
    {
        return &r->headers_in.host->value;
    }

    if (r->headers_in.server.len
        && !ngx_http_profile_client_named(r, &r->headers_in.server))
    {
        return &r->headers_in.server;
    }

    return NULL;
}


static ngx_uint_t
ngx_http_profile_client_named(ngx_http_request_t *r, ngx_str_t *value)
{
    u_char                        *p, *last;
    ngx_str_t                      host, *name;
    ngx_uint_t                     i;
    ngx_http_profile_main_conf_t  *pmcf;
#if (NGX_HAVE_INET6)
    u_char                         addr[16];
#endif

    static ngx_str_t  local = ngx_string(".localhost");

    host = *value;
    last = host.data + host.len;

    if (host.len && host.data[0] == '[') {
        p = ngx_strlchr(host.data, last, ']');

#if (NGX_HAVE_INET6)
        return p && ngx_inet6_addr(host.data + 1, p - host.data - 1, addr)
                    == NGX_OK;
#else
        return 0;
#endif
    }

    p = ngx_strlchr(host.data, last, ':');

    if (p) {
        host.len = p - host.data;
    }

    if (host.len && host.data[host.len - 1] == '.') {
        host.len--;
    }

    if (ngx_inet_addr(host.data, host.len) != INADDR_NONE
        || ngx_http_profile_client_ends(&host, &local))
    {
        return 1;
    }

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);
    name = pmcf->hosts.elts;

    for (i = 0; i < pmcf->hosts.nelts; i++) {

        if (name[i].data[0] == '.'
            ? ngx_http_profile_client_ends(&host, &name[i])
            : (host.len == name[i].len
               && ngx_strncasecmp(host.data, name[i].data, host.len) == 0))
        {
            return 1;
        }
    }

    return 0;
}


/* returns whether the host is "a.b" or ends with ".a.b"; the end is ".a.b" */

static ngx_uint_t
ngx_http_profile_client_ends(ngx_str_t *host, ngx_str_t *end)
{
    size_t  len;

    len = end->len;

    if (host->len < len) {
        len--;
    }

    return host->len >= len
           && ngx_strncasecmp(host->data + host->len - len,
                              end->data + end->len - len, len)
              == 0;
}


/*
 * Logs each reason once in each worker, because the configuration causes the
 * refusal.  One of the arguments is NULL.
 */

static void
ngx_http_profile_client_warn(ngx_http_request_t *r, const char *proxy,
    ngx_str_t *host)
{
    static ngx_uint_t  warned[2];

    if (warned[proxy != NULL]) {
        return;
    }

    warned[proxy != NULL] = 1;

    if (proxy) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "profile: a client with a local address is not admitted, "
                      "since its request has \"%s\" from a proxy; set "
                      "\"profile_allow\" or \"set_real_ip_from\"", proxy);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                  "profile: a client with a local address is not admitted, "
                  "since no \"server_name\" is \"%V\"; add this name, or set "
                  "\"profile_allow\"", host);
}
