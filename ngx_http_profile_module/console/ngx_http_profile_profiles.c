
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The list of stored profiles, and the URLs of one stored profile.
 */


#include "store/ngx_http_profile_store.h"
#include "console/ngx_http_profile_routes.h"


#define NGX_HTTP_PROFILE_LIST_MAX   1000
#define NGX_HTTP_PROFILE_LIST_POOL  65536


static int ngx_http_profile_list_make(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static int ngx_http_profile_one_encode(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static ngx_int_t ngx_http_profile_one_picture(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_http_profile_picture_t *asked);
static ngx_int_t ngx_http_profile_list_arg(ngx_http_profile_call_t *call,
    const char *name, ngx_int_t max, ngx_int_t *n);
static ngx_int_t ngx_http_profile_one_change(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_http_profile_picture_pt make,
    ngx_uint_t pin);
static int ngx_http_profile_one_pin(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);
static ngx_uint_t ngx_http_profile_entry_action(ngx_http_profile_call_t *call,
    const char *action);


ngx_int_t
ngx_http_profile_list_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                    rc, before, limit;
    ngx_http_profile_store_t    *store;
    ngx_http_profile_picture_t   asked;

    if (!call->json) {
        return ngx_http_profile_answer_page(call, "profiles.html");
    }

    store = ngx_http_profile_store(call->request);

    if (store == NULL) {
        return ngx_http_profile_no_store(call);
    }

    before = 0;
    limit = NGX_HTTP_PROFILE_LIST_MAX;

    rc = ngx_http_profile_list_arg(call, "before", NGX_MAX_INT_T_VALUE,
                                   &before);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_profile_list_arg(call, "limit",
                                       NGX_HTTP_PROFILE_LIST_MAX, &limit);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_memzero(&asked, sizeof(ngx_http_profile_picture_t));

    asked.make = ngx_http_profile_list_make;
    asked.before = before;
    asked.limit = limit;

    return ngx_http_profile_picture(call, store, &asked);
}


/*
 * Reads a number from the query.  Without the argument *n is unchanged.
 * Returns NGX_DECLINED, or the result of an answer with the error.
 */

static ngx_int_t
ngx_http_profile_list_arg(ngx_http_profile_call_t *call, const char *name,
    ngx_int_t max, ngx_int_t *n)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_profile_call_arg(call, name, &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc;
    }

    *n = ngx_atoi(value.data, value.len);

    if (*n >= 1 && *n <= max) {
        return NGX_DECLINED;
    }

    return ngx_http_profile_answer_error(call, NGX_HTTP_BAD_REQUEST,
                                "\"%s\" is \"%V\", it must be a number from "
                                "1 to %i", name, &value, max);
}


/* context: the thread, since a long list takes milliseconds */

static int
ngx_http_profile_list_make(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    json_t                     *list, *json;
    ngx_uint_t                  i, more;
    ngx_pool_t                 *pool;
    ngx_array_t                *entries;
    ngx_http_profile_stored_t  *st;

    pool = ngx_create_pool(NGX_HTTP_PROFILE_LIST_POOL, ngx_cycle->log);
    if (pool == NULL) {
        return PROF_ERROR;
    }

    more = 0;
    entries = ngx_http_profile_store_list(pic->store, pool, pic->before,
                                          pic->limit, &more);
    if (entries == NULL) {
        ngx_destroy_pool(pool);
        return PROF_ERROR;
    }

    list = json_array();
    st = entries->elts;

    for (i = 0; i < entries->nelts; i++) {
        json = ngx_http_profile_entry_json(&st[i]);

        (void) json_object_set_new(json, "order",
                                   json_integer((json_int_t) st[i].order));
        (void) json_array_append_new(list, json);
    }

    json = json_pack("{s:o, s:b}", "profiles", list,
                     "more", (int) (more != 0));

    if (more) {
        (void) json_object_set_new(json, "next",
                   json_integer((json_int_t) st[entries->nelts - 1].order));
    }

    ngx_destroy_pool(pool);

    return ngx_http_profile_picture_dump(pic, json);
}


/* handles "p/ID" and "p/ID/FORMAT" */

ngx_int_t
ngx_http_profile_one_route(ngx_http_profile_call_t *call)
{
    u_char                      *slash;
    ngx_int_t                    rc;
    ngx_str_t                    id, format;
    const prof_encoder_t        *encoder;
    ngx_http_profile_store_t    *store;
    ngx_http_profile_picture_t   asked;

    store = ngx_http_profile_store(call->request);

    if (store == NULL) {
        return ngx_http_profile_no_store(call);
    }

    id = call->rest;
    encoder = NULL;

    slash = ngx_strlchr(id.data, id.data + id.len, '/');

    if (slash) {
        id.len = slash - id.data;

        format.data = slash + 1;
        format.len = call->rest.len - id.len - 1;

        encoder = prof_encoder_find((char *) format.data, format.len);

        if (encoder == NULL) {
            return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                        "there is no format \"%V\"", &format);
        }
    }

    ngx_memzero(&asked, sizeof(ngx_http_profile_picture_t));

    asked.n = 1;
    asked.id[0] = id;
    asked.encoder = encoder;

    if (encoder) {
        rc = ngx_http_profile_call_root(call, &asked.root);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        asked.make = ngx_http_profile_one_encode;

    } else if (call->json) {
        asked.make = ngx_http_profile_picture_json;
    }

    return ngx_http_profile_one_picture(call, store, &asked);
}


/*
 * Answers with one profile in a format, or with the page of the profile.  The
 * answer for an unknown profile needs no job.
 */

static ngx_int_t
ngx_http_profile_one_picture(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_http_profile_picture_t *asked)
{
    ngx_int_t                   rc;
    ngx_http_profile_stored_t  *st;

    rc = ngx_http_profile_store_find(store, &asked->id[0], &st,
                                     call->request->connection->log);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_profile_answer_no_profile(call, &asked->id[0]);
    }

    ngx_free(st);

    if (asked->make == NULL) {
        return ngx_http_profile_answer_page(call, "profile.html");
    }

    return ngx_http_profile_picture(call, store, asked);
}


static int
ngx_http_profile_one_encode(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    if (ngx_http_profile_root_keep(&pic->root, p[0]) != PROF_OK) {
        return PROF_ERROR;
    }

    return pic->encoder->encode(p[0], &pic->out);
}


/* handles DELETE p/ID, and POST p/ID/pin, /unpin, /names and /delete */

ngx_int_t
ngx_http_profile_change_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                  rc;
    ngx_str_t                  id;
    ngx_http_profile_store_t  *store;

    store = ngx_http_profile_store(call->request);

    if (store == NULL) {
        return ngx_http_profile_no_store(call);
    }

    if (call->request->method == NGX_HTTP_DELETE
        || ngx_http_profile_entry_action(call, "/delete"))
    {
        id = call->rest;
        rc = ngx_http_profile_store_delete(store, &id);

    } else if (ngx_http_profile_entry_action(call, "/pin")) {
        return ngx_http_profile_one_change(call, store,
                                           ngx_http_profile_one_pin, 1);

    } else if (ngx_http_profile_entry_action(call, "/unpin")) {
        return ngx_http_profile_one_change(call, store,
                                           ngx_http_profile_one_pin, 0);

    } else if (ngx_http_profile_entry_action(call, "/names")) {
        return ngx_http_profile_one_change(call, store,
                                           ngx_http_profile_picture_rename, 0);

    } else {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                  "a profile takes \"pin\", \"unpin\", "
                                  "\"names\" and \"delete\", not \"%V\"",
                                  &call->rest);
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_profile_answer_no_profile(call, &id);
    }

    return (rc == NGX_OK) ? ngx_http_profile_answer_nothing(call)
                          : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/*
 * Lets the thread change a stored profile, since a file is written.  The client
 * gets the answer when the thread has finished, as for a profile in any format.
 */

static ngx_int_t
ngx_http_profile_one_change(ngx_http_profile_call_t *call,
    ngx_http_profile_store_t *store, ngx_http_profile_picture_pt make,
    ngx_uint_t pin)
{
    ngx_http_profile_picture_t  asked;

    ngx_memzero(&asked, sizeof(ngx_http_profile_picture_t));

    asked.n = 1;
    asked.id[0] = call->rest;
    asked.make = make;
    asked.unread = (make == ngx_http_profile_one_pin);
    asked.pin = pin;

    return ngx_http_profile_one_picture(call, store, &asked);
}


/* context: the thread */

static int
ngx_http_profile_one_pin(ngx_http_profile_picture_t *pic, prof_profile_t **p)
{
    pic->rc = ngx_http_profile_store_pin(pic->store, &pic->id[0], pic->pin,
                                         ngx_cycle->log);

    return (pic->rc == NGX_OK) ? PROF_OK : PROF_ERROR;
}


/* removes the action from the end of the path; returns whether it was there */

static ngx_uint_t
ngx_http_profile_entry_action(ngx_http_profile_call_t *call,
    const char *action)
{
    size_t      len;
    ngx_str_t  *rest;

    rest = &call->rest;
    len = ngx_strlen(action);

    if (rest->len <= len
        || ngx_strncmp(rest->data + rest->len - len, action, len) != 0)
    {
        return 0;
    }

    rest->len -= len;

    return 1;
}
