
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The console's location and its routes: which URLs exist, and which clients
 * may use them.
 */


#include "core/ngx_http_profile_ground.h"
#include "core/ngx_http_profile_handlers.h"
#include "core/ngx_http_profile_room.h"
#include "request/ngx_http_profile_request.h"
#include "console/ngx_http_profile_routes.h"

#include <jansson.h>


static ngx_int_t ngx_http_profile_console_handler(ngx_http_request_t *r);
static void ngx_http_profile_console_accept(ngx_http_profile_call_t *call);
static ngx_uint_t ngx_http_profile_console_draws(
    ngx_http_profile_call_t *call);
static char *ngx_http_profile_console(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_profile_console_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf);
static ngx_int_t ngx_http_profile_console_allow(
    ngx_http_profile_call_t *call);
static ngx_uint_t ngx_http_profile_console_methods(
    const ngx_http_profile_route_t *route);
static ngx_int_t ngx_http_profile_help_route(ngx_http_profile_call_t *call);


const ngx_http_profile_route_t  ngx_http_profile_console_routes[] = {

    { ngx_string(""), NGX_HTTP_GET, ngx_http_profile_overview_route,
      "where the time of requests goes; without metrics, the profiles",
      NGX_HTTP_PROFILE_PAGE },

    { ngx_string("profiles"), NGX_HTTP_GET, ngx_http_profile_list_route,
      "stored profiles", NGX_HTTP_PROFILE_PAGE },

    { ngx_string("p/*"), NGX_HTTP_GET, ngx_http_profile_one_route,
      "p/ID: a profile, p/ID/FORMAT: in that format",
      NGX_HTTP_PROFILE_PAGE },

    { ngx_string("p/*"), NGX_HTTP_POST|NGX_HTTP_DELETE,
      ngx_http_profile_change_route,
      "p/ID/pin, p/ID/unpin, p/ID/names, p/ID/delete", 0 },

    { ngx_string("diff"), NGX_HTTP_GET, ngx_http_profile_diff_route,
      "the difference of two profiles: a=ID, b=ID, shares=on",
      NGX_HTTP_PROFILE_PAGE },

    { ngx_string("diff/*"), NGX_HTTP_GET, ngx_http_profile_diff_route,
      "diff/FORMAT: the same as a picture", 0 },

    { ngx_string("hour"), NGX_HTTP_GET, ngx_http_profile_hour_route,
      "the continuous profile as a heatmap", NGX_HTTP_PROFILE_PAGE },

    { ngx_string("help"), NGX_HTTP_GET, ngx_http_profile_help_route,
      "this list", NGX_HTTP_PROFILE_PAGE },

    { ngx_string("status"), NGX_HTTP_GET, ngx_http_profile_status_route,
      "the state of the profiler", NGX_HTTP_PROFILE_PAGE },

    { ngx_string("viewer/*"), NGX_HTTP_GET, ngx_http_profile_viewer_route,
      "the viewer of profiles", NGX_HTTP_PROFILE_FILE },

    { ngx_string("assets/*"), NGX_HTTP_GET, ngx_http_profile_asset_route,
      "styles and scripts of the pages", NGX_HTTP_PROFILE_FILE },

    { ngx_string("debug/pprof/"), NGX_HTTP_GET,
      ngx_http_profile_go_index_route,
      "index for Go's clients", NGX_HTTP_PROFILE_PPROF },

    { ngx_string("debug/pprof/cmdline"), NGX_HTTP_GET,
      ngx_http_profile_go_cmdline_route,
      "the command line", NGX_HTTP_PROFILE_PPROF },

    { ngx_string("debug/pprof/symbol"), NGX_HTTP_GET|NGX_HTTP_POST,
      ngx_http_profile_go_symbol_route, "names of functions",
      NGX_HTTP_PROFILE_PPROF|NGX_HTTP_PROFILE_HARMLESS
                            |NGX_HTTP_PROFILE_BODY },

    { ngx_null_string, 0, NULL, NULL, 0 }
};


static struct {
    ngx_uint_t   method;
    const char  *name;
} ngx_http_profile_methods[] = {
    { NGX_HTTP_GET, "GET, HEAD" },
    { NGX_HTTP_POST, "POST" },
    { NGX_HTTP_PUT, "PUT" },
    { NGX_HTTP_DELETE, "DELETE" },
    { 0, NULL }
};


static ngx_command_t  ngx_http_profile_console_commands[] = {

    { ngx_string("profile_console"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_profile_console,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("profile_viewer"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_profile_viewer,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


ngx_http_profile_room_t  ngx_http_profile_console_room = {
    ngx_http_profile_console_commands,
    NULL,                                  /* create */
    NULL,                                  /* create server */
    NULL,                                  /* create location */
    NULL,                                  /* init */
    NULL,                                  /* merge server */
    ngx_http_profile_console_merge,
    NULL                                   /* stop */
};


static char *
ngx_http_profile_console_merge(ngx_conf_t *cf,
    ngx_http_profile_loc_conf_t *prev, ngx_http_profile_loc_conf_t *conf)
{
    if (conf->viewer.data == NULL) {

        /* the default is searched once per server; locations inherit it */

        if (prev->viewer.data == NULL
            && ngx_http_profile_viewer_default(cf, &prev->viewer) != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }

        conf->viewer = prev->viewer;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_profile_console(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    u_char                        *p;
    size_t                         len;
    ngx_str_t                     *url;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_profile_srv_conf_t   *pscf;
    ngx_http_profile_main_conf_t  *pmcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler == ngx_http_profile_console_handler) {
        return "is duplicate";
    }

    clcf->handler = ngx_http_profile_console_handler;
    plcf->console = 1;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_profile_module);
    pmcf->nconsoles++;

    if (clcf->name.len == 0 || clcf->exact_match || clcf->named
#if (NGX_PCRE)
        || clcf->regex
#endif
        || clcf->noname)
    {
        return NGX_CONF_OK;
    }

    if (clcf->name.data[clcf->name.len - 1] == '/') {
        clcf->auto_redirect = 1;
    }

    pscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_profile_module);
    url = &pscf->console;

    if (url->len) {
        return NGX_CONF_OK;
    }

    pscf->viewer = &plcf->viewer;
    pscf->page = ngx_http_profile_console_page;

    len = clcf->name.len + 2 * ngx_escape_uri(NULL, clcf->name.data,
                                              clcf->name.len, NGX_ESCAPE_URI);

    url->data = ngx_pnalloc(cf->pool, len + 1);
    if (url->data == NULL) {
        return NGX_CONF_ERROR;
    }

    p = (u_char *) ngx_escape_uri(url->data, clcf->name.data, clcf->name.len,
                                  NGX_ESCAPE_URI);

    if (p[-1] != '/') {
        *p++ = '/';
    }

    url->len = p - url->data;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_profile_console_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_profile_call_t  *call;

    static ngx_http_profile_log_limit_t  line;

    ngx_http_profile_own_work();

    if (ngx_http_profile_is_off()) {
        return ngx_http_profile_ground_answer(r);
    }

    call = ngx_pcalloc(r->pool, sizeof(ngx_http_profile_call_t));
    if (call == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    call->request = r;
    call->root = "";

    /* the styles of a page would be refused as well */

    rc = ngx_http_profile_call_permits(call, "the console is", &line);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    call->page = ngx_http_profile_error_page;

    rc = ngx_http_profile_call_route(call);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_http_profile_console_accept(call);

    rc = ngx_http_profile_console_allow(call);

    if (rc != NGX_DECLINED) {
        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "profile: console refuses \"%V\" with status %ui",
                       &r->uri, r->headers_out.status);
        return rc;
    }

    if (!(call->route->flags & NGX_HTTP_PROFILE_BODY)) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if ((call->route->flags & NGX_HTTP_PROFILE_DRAWN) && !call->json) {
        return ngx_http_profile_answer_page(call, "turns.html");
    }

    return call->route->handler(call);
}


/*
 * Decides between JSON and a page.  A script asks for JSON by the suffix of
 * the URL or by "Accept".  Browsers that open a page do neither.
 */

static void
ngx_http_profile_console_accept(ngx_http_profile_call_t *call)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    static ngx_str_t  name = ngx_string("Accept");

    if (call->json
        || (call->route && (call->route->flags & NGX_HTTP_PROFILE_FILE)))
    {
        return;
    }

    if (call->route && (call->route->flags & NGX_HTTP_PROFILE_DRAWN)) {
        call->json = !ngx_http_profile_console_draws(call);
        return;
    }

    h = ngx_http_profile_find_header(call->request, &name, &n);

    call->negotiated = 1;
    call->json = h && ngx_strlcasestrn(h->value.data,
                                       h->value.data + h->value.len,
                                       (u_char *) "application/json",
                                       sizeof("application/json") - 2)
                 && ngx_strlcasestrn(h->value.data,
                                     h->value.data + h->value.len,
                                     (u_char *) "text/html",
                                     sizeof("text/html") - 2)
                    == NULL;
}


/* a client that asks for a format gets data, and so does any but a browser */

static ngx_uint_t
ngx_http_profile_console_draws(ngx_http_profile_call_t *call)
{
    ngx_str_t  format;

    static const char  *types[] = { "application/json", "text/html", NULL };

    if (ngx_http_profile_call_arg(call, "format", &format) != NGX_DECLINED) {
        return 0;
    }

    call->negotiated = 1;

    return ngx_http_profile_accept_type(call->request, types) == 1;
}


/*
 * Returns NGX_DECLINED if the method and the origin are permitted, or the
 * result of an answer with the error.
 */

static ngx_int_t
ngx_http_profile_console_allow(ngx_http_profile_call_t *call)
{
    u_char                          *p, *last;
    ngx_uint_t                       i, methods;
    ngx_http_request_t              *r;
    const ngx_http_profile_route_t  *route;
    u_char                           allow[64];

    r = call->request;
    route = call->route;

    if (route == NULL) {

        if (ngx_http_profile_go_is(&r->uri)) {
            call->pprof = 1;
        }

        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                    "the console has nothing at \"%V\"",
                                    &r->uri);
    }

    if ((r->method == NGX_HTTP_HEAD ? NGX_HTTP_GET : r->method)
        & route->methods)
    {
        return ngx_http_profile_origin_check(call);
    }

    methods = ngx_http_profile_console_methods(route);

    p = allow;
    last = allow + sizeof(allow) - 1;

    for (i = 0; ngx_http_profile_methods[i].name; i++) {
        if (methods & ngx_http_profile_methods[i].method) {
            p = ngx_slprintf(p, last, "%s%s", p > allow ? ", " : "",
                             ngx_http_profile_methods[i].name);
        }
    }

    *p = '\0';

    p = ngx_pnalloc(r->pool, sizeof(allow));
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(p, allow, sizeof(allow));

    if (ngx_http_profile_add_text_header(r, "Allow", (char *) p) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_ALLOWED,
                                    "the method is %V, it must be one of %s",
                                    &r->method_name, p);
}


/* returns the methods of all routes with the same path */

static ngx_uint_t
ngx_http_profile_console_methods(const ngx_http_profile_route_t *route)
{
    ngx_uint_t                       methods;
    const ngx_http_profile_route_t  *other, **table;

    methods = 0;

    for (table = ngx_http_profile_routes; *table; table++) {

        for (other = *table; other->handler; other++) {

            if (other->path.len == route->path.len
                && ngx_strncmp(other->path.data, route->path.data,
                               route->path.len)
                   == 0)
            {
                methods |= other->methods;
            }
        }
    }

    return methods;
}


static ngx_int_t
ngx_http_profile_help_route(ngx_http_profile_call_t *call)
{
    json_t                          *list;
    const ngx_http_profile_route_t  *route, **table;

    if (!call->json) {
        return ngx_http_profile_answer_page(call, "help.html");
    }

    list = json_array();

    for (table = ngx_http_profile_routes; *table; table++) {

        for (route = *table; route->handler; route++) {
            json_array_append_new(list,
                                  json_pack("{ssss}",
                                            "path", (char *) route->path.data,
                                            "help", route->help));
        }
    }

    return ngx_http_profile_answer_json(call, NGX_HTTP_OK, list);
}
