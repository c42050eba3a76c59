
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The console's routes for the bar's script.
 */


#include "bar/ngx_http_profile_bar.h"
#include "store/ngx_http_profile_store.h"

#include <jansson.h>


/* maximum number of ids: of the page and of the requests of its scripts */

#define NGX_HTTP_PROFILE_BAR_IDS  64


static ngx_int_t ngx_http_profile_bar_facts_route(
    ngx_http_profile_call_t *call);
static json_t *ngx_http_profile_bar_requests(ngx_shm_zone_t *zone,
    ngx_str_t *ids);
static json_t *ngx_http_profile_bar_profiles(ngx_http_profile_call_t *call,
    ngx_str_t *ids);
static ngx_uint_t ngx_http_profile_bar_next_id(ngx_str_t *rest,
    ngx_str_t *id);
static json_t *ngx_http_profile_bar_json(ngx_http_profile_bar_facts_t *facts);
static json_t *ngx_http_profile_bar_json_times(
    ngx_http_profile_bar_facts_t *facts);
static json_t *ngx_http_profile_bar_json_text(u_char *text);
static json_t *ngx_http_profile_bar_json_time(ngx_int_t ms);


const ngx_http_profile_route_t  ngx_http_profile_bar_routes[] = {

    { ngx_string("bar.js"), NGX_HTTP_GET, ngx_http_profile_bar_script_route,
      "the script of the Performance Bar", NGX_HTTP_PROFILE_FILE },

    { ngx_string("bar/order"), NGX_HTTP_POST,
      ngx_http_profile_bar_order_route,
      "record the browser's next request: method=, uri=, mode=",
      0 },

    { ngx_string("bar/requests"), NGX_HTTP_GET,
      ngx_http_profile_bar_facts_route,
      "facts of recent requests, by \"id\"", 0 },

    { ngx_null_string, 0, NULL, NULL, 0 }
};


static ngx_int_t
ngx_http_profile_bar_facts_route(ngx_http_profile_call_t *call)
{
    json_t                            *json;
    ngx_str_t                          ids, profiles;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    bmcf = ngx_http_get_module_main_conf(call->request,
                                         ngx_http_profile_bar_filter_module);

    if (bmcf->zone == NULL) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                             "there are no facts without \"profile_bar on\"");
    }

    ngx_str_null(&ids);
    ngx_str_null(&profiles);

    if (ngx_http_profile_call_arg(call, "id", &ids) == NGX_ERROR
        || ngx_http_profile_call_arg(call, "profile", &profiles) == NGX_ERROR)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    json = json_pack("{s:o, s:o}",
                     "profiles", ngx_http_profile_bar_profiles(call,
                                                               &profiles),
                     "requests", ngx_http_profile_bar_requests(bmcf->zone,
                                                               &ids));

    return ngx_http_profile_answer_json(call, NGX_HTTP_OK, json);
}


/* skips unknown ids and the ids of running requests */

static json_t *
ngx_http_profile_bar_requests(ngx_shm_zone_t *zone, ngx_str_t *ids)
{
    json_t                        *list;
    ngx_str_t                      rest, id;
    ngx_uint_t                     n;
    ngx_http_profile_bar_facts_t   facts;

    list = json_array();
    rest = *ids;

    for (n = 0; n < NGX_HTTP_PROFILE_BAR_IDS; n++) {

        if (!ngx_http_profile_bar_next_id(&rest, &id)) {
            break;
        }

        if (ngx_http_profile_bar_find(zone, id.data, &facts)) {
            json_array_append_new(list, ngx_http_profile_bar_json(&facts));
        }
    }

    return list;
}


/* returns those ids whose profiles are in the store */

static json_t *
ngx_http_profile_bar_profiles(ngx_http_profile_call_t *call, ngx_str_t *ids)
{
    json_t                    *list;
    ngx_str_t                  rest, id;
    ngx_uint_t                 n;
    ngx_http_profile_store_t  *store;

    list = json_array();
    rest = *ids;

    store = ngx_http_profile_store(call->request);

    if (store == NULL) {
        return list;
    }

    for (n = 0; n < NGX_HTTP_PROFILE_BAR_IDS; n++) {

        if (!ngx_http_profile_bar_next_id(&rest, &id)) {
            break;
        }

        if (ngx_http_profile_store_has(store, &id)) {
            json_array_append_new(list,
                                  json_stringn((char *) id.data, id.len));
        }
    }

    return list;
}


/* removes the first id of a list with commas; returns 0 after the last */

static ngx_uint_t
ngx_http_profile_bar_next_id(ngx_str_t *rest, ngx_str_t *id)
{
    u_char  *comma, *last;

    while (rest->len) {

        last = rest->data + rest->len;
        comma = ngx_strlchr(rest->data, last, ',');

        id->data = rest->data;
        id->len = (comma ? comma : last) - rest->data;

        rest->data = comma ? comma + 1 : last;
        rest->len = last - rest->data;

        if (id->len == NGX_HTTP_PROFILE_ID_LEN) {
            return 1;
        }
    }

    return 0;
}


static json_t *
ngx_http_profile_bar_json(ngx_http_profile_bar_facts_t *facts)
{
    json_t                           *list;
    ngx_uint_t                        i;
    ngx_http_profile_bar_upstream_t  *u;

    list = json_array();

    for (i = 0; i < facts->nupstreams; i++) {
        u = &facts->upstreams[i];

        json_array_append_new(list,
            json_pack("{s:o, s:I, s:o, s:o, s:o, s:I}",
                      "peer", ngx_http_profile_bar_json_text(u->peer),
                      "status", (json_int_t) u->status,
                      "connect", ngx_http_profile_bar_json_time(u->connect),
                      "header", ngx_http_profile_bar_json_time(u->header),
                      "response", ngx_http_profile_bar_json_time(u->response),
                      "received", (json_int_t) u->received));
    }

    return json_pack("{s:s#, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I,"
                     " s:I, s:o, s:o, s:o, s:o, s:b, s:o, s:o}",
                     "id", facts->id, (int) NGX_HTTP_PROFILE_ID_LEN,
                     "start", (json_int_t) facts->start,
                     "method", ngx_http_profile_bar_json_text(facts->method),
                     "uri", ngx_http_profile_bar_json_text(facts->uri),
                     "status", (json_int_t) facts->status,
                     "total", (json_int_t) facts->total,
                     "worker", (json_int_t) facts->worker,
                     "sent", (json_int_t) facts->sent,
                     "received", (json_int_t) facts->received,
                     "connection", (json_int_t) facts->connection,
                     "connection_requests",
                     (json_int_t) facts->connection_requests,
                     "protocol",
                     ngx_http_profile_bar_json_text(facts->protocol),
                     "cache", ngx_http_profile_bar_json_text(facts->cache),
                     "tls", ngx_http_profile_bar_json_text(facts->tls),
                     "cipher", ngx_http_profile_bar_json_text(facts->cipher),
                     "tls_reused", facts->tls_reused[0] == 'r',
                     "times", ngx_http_profile_bar_json_times(facts),
                     "upstreams", list);
}


static json_t *
ngx_http_profile_bar_json_times(ngx_http_profile_bar_facts_t *facts)
{
    double                     busy[NGX_HTTP_PROFILE_BUSY_KINDS], rest;
    ngx_uint_t                 i;
    ngx_http_profile_times_t  *times;

    times = &facts->times;

    if (!facts->accounted) {
        return json_null();
    }

    rest = times->stall / 1e6;

    for (i = NGX_HTTP_PROFILE_BUSY_TIMERS; i < NGX_HTTP_PROFILE_BUSY_KINDS; i++)
    {
        busy[i] = times->busy[i] / 1e6;
        rest -= busy[i];
    }

    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:{s:f, s:f, "
                     "s:f, s:f}, s:f, s:I}",
                     "wall", times->wall / 1e6,
                     "running", times->running / 1e6,
                     "cpu", times->cpu / 1e6,
                     "outside", times->outside / 1e6,
                     "no_processor", times->no_processor / 1e6,
                     "blocked", times->blocked / 1e6,
                     "wait", times->wait / 1e6,
                     "stall", times->stall / 1e6,
                     "busy",
                     ngx_http_profile_busy_texts[0].data, ngx_max(rest, 0),
                     ngx_http_profile_busy_texts[1].data, busy[1],
                     ngx_http_profile_busy_texts[2].data, busy[2],
                     ngx_http_profile_busy_texts[3].data, busy[3],
                     "longest", times->longest / 1e6,
                     "turns", (json_int_t) times->turns);
}


static json_t *
ngx_http_profile_bar_json_text(u_char *text)
{
    char    *copy;
    size_t   len;
    json_t  *json;

    if (text[0] == '\0') {
        return json_null();
    }

    len = ngx_strlen(text);
    copy = prof_text_utf8((char *) text, &len);

    json = copy ? json_stringn(copy, len) : json_null();
    free(copy);

    return json;
}


static json_t *
ngx_http_profile_bar_json_time(ngx_int_t ms)
{
    return ms < 0 ? json_null() : json_integer(ms);
}
