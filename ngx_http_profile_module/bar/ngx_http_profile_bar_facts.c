
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Facts of the last requests with an id, for the bar: facts that a page cannot
 * know, and facts that exist only after the request ended.  The facts are in a
 * ring in shared memory, because another worker may get the next request.
 */


#include "bar/ngx_http_profile_bar.h"
#include "core/ngx_http_profile_lock.h"
#include "core/ngx_http_profile_redact.h"


#define NGX_HTTP_PROFILE_BAR_ZONE  (512 * 1024)


static ngx_int_t ngx_http_profile_bar_zone_init(ngx_shm_zone_t *zone,
    void *data);
static ngx_int_t ngx_http_profile_bar_log(ngx_http_request_t *r);
static void ngx_http_profile_bar_fill(ngx_http_request_t *r,
    ngx_http_profile_bar_facts_t *facts);
static void ngx_http_profile_bar_upstreams(ngx_http_request_t *r,
    ngx_http_profile_bar_facts_t *facts);
static ngx_uint_t ngx_http_profile_bar_variable(ngx_http_request_t *r,
    const char *name, u_char *text, size_t size);
static void ngx_http_profile_bar_copy(u_char *text, size_t size,
    ngx_str_t *value);


static ngx_str_t  ngx_http_profile_bar_zone_name =
    ngx_string("ngx_http_profile_bar");


ngx_int_t
ngx_http_profile_bar_facts_init(ngx_conf_t *cf,
    ngx_http_profile_bar_main_conf_t *bmcf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    bmcf->zone = ngx_shared_memory_add(cf, &ngx_http_profile_bar_zone_name,
                                       NGX_HTTP_PROFILE_BAR_ZONE,
                                       &ngx_http_profile_bar_filter_module);
    if (bmcf->zone == NULL) {
        return NGX_ERROR;
    }

    bmcf->zone->init = ngx_http_profile_bar_zone_init;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_LOG_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_profile_bar_log;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_bar_zone_init(ngx_shm_zone_t *zone, void *data)
{
    size_t                        size;
    ngx_slab_pool_t              *pool;
    ngx_http_profile_bar_ring_t  *ring;

    pool = (ngx_slab_pool_t *) zone->shm.addr;

    if (data) {
        zone->data = data;
        return NGX_OK;
    }

    if (zone->shm.exists) {
        zone->data = pool->data;
        return NGX_OK;
    }

    /* the slab pool itself needs some of the memory */

    size = NGX_HTTP_PROFILE_BAR_ZONE * 3 / 4;

    ring = ngx_slab_calloc(pool, size);
    if (ring == NULL) {
        return NGX_ERROR;
    }

    ring->n = (size - offsetof(ngx_http_profile_bar_ring_t, facts))
              / sizeof(ngx_http_profile_bar_facts_t);

    /* without random numbers the key is zero, and the bar accepts no orders */

    (void) ngx_http_profile_make_id(ring->orders.key, zone->shm.log);

    pool->data = ring;
    zone->data = ring;

    return NGX_OK;
}


static ngx_int_t
ngx_http_profile_bar_log(ngx_http_request_t *r)
{
    ngx_slab_pool_t                   *pool;
    ngx_http_profile_bar_ctx_t        *ctx;
    ngx_http_profile_bar_ring_t       *ring;
    ngx_http_profile_bar_facts_t       facts;
    ngx_http_profile_bar_main_conf_t  *bmcf;

    ctx = ngx_http_get_module_ctx(r->main, ngx_http_profile_bar_filter_module);

    if (ctx == NULL || r != r->main) {
        return NGX_OK;
    }

    bmcf = ngx_http_get_module_main_conf(r,
                                         ngx_http_profile_bar_filter_module);

    ngx_memzero(&facts, sizeof(ngx_http_profile_bar_facts_t));
    ngx_memcpy(facts.id, ctx->id, NGX_HTTP_PROFILE_ID_LEN);

    ngx_http_profile_bar_fill(r, &facts);

    pool = (ngx_slab_pool_t *) bmcf->zone->shm.addr;
    ring = bmcf->zone->data;

    ngx_http_profile_lock(&pool->mutex);

    ring->facts[ring->next] = facts;
    ring->next = (ring->next + 1) % ring->n;

    ngx_shmtx_unlock(&pool->mutex);

    return NGX_OK;
}


static void
ngx_http_profile_bar_fill(ngx_http_request_t *r,
    ngx_http_profile_bar_facts_t *facts)
{
    u_char                    *copy;
    ngx_str_t                  uri, method;
    ngx_time_t                *tp;
    ngx_msec_int_t             ms;
    ngx_http_profile_track_t  *tr;

    tp = ngx_timeofday();

    ms = (ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                           + (tp->msec - r->start_msec));

    facts->start = (uint64_t) r->start_sec * 1000 + r->start_msec;
    facts->total = ngx_max(ms, 0);
    facts->status = r->err_status ? r->err_status : r->headers_out.status;
    facts->worker = ngx_pid;
    facts->sent = r->connection->sent;
    facts->received = r->request_length;
    tr = ngx_http_profile_find_track(r);

    if (tr && tr->accounted) {
        ngx_http_profile_account_times(tr, &facts->times);
        facts->accounted = 1;
    }

    facts->connection = r->connection->number;
    facts->connection_requests = r->connection->requests;

    ngx_http_profile_sent(r, &method, &uri);
    ngx_http_profile_bar_copy(facts->method, sizeof(facts->method), &method);

    uri = r->unparsed_uri;
    copy = ngx_http_profile_redact(r, &uri);
    ngx_http_profile_bar_copy(facts->uri, sizeof(facts->uri), &uri);
    ngx_free(copy);

    (void) ngx_http_profile_bar_variable(r, "server_protocol",
                                  facts->protocol, sizeof(facts->protocol));
    (void) ngx_http_profile_bar_variable(r, "upstream_cache_status",
                                  facts->cache, sizeof(facts->cache));

    if (ngx_http_profile_bar_variable(r, "ssl_protocol", facts->tls,
                                      sizeof(facts->tls)))
    {
        (void) ngx_http_profile_bar_variable(r, "ssl_cipher", facts->cipher,
                                      sizeof(facts->cipher));
        (void) ngx_http_profile_bar_variable(r, "ssl_session_reused",
                                      facts->tls_reused,
                                      sizeof(facts->tls_reused));
    }

    ngx_http_profile_bar_upstreams(r, facts);
}


/* copies the last attempts, including those before an internal redirect */

static void
ngx_http_profile_bar_upstreams(ngx_http_request_t *r,
    ngx_http_profile_bar_facts_t *facts)
{
    ngx_uint_t                        i, skip;
    ngx_http_upstream_state_t        *state;
    ngx_http_profile_bar_upstream_t  *u;

    if (r->upstream_states == NULL) {
        return;
    }

    state = r->upstream_states->elts;
    skip = 0;

    if (r->upstream_states->nelts > NGX_HTTP_PROFILE_BAR_UPSTREAMS) {
        skip = r->upstream_states->nelts - NGX_HTTP_PROFILE_BAR_UPSTREAMS;
    }

    for (i = skip; i < r->upstream_states->nelts; i++) {

        /* an empty state separates two groups of servers */

        if (state[i].peer == NULL) {
            continue;
        }

        u = &facts->upstreams[facts->nupstreams++];

        u->status = state[i].status;
        u->connect = (ngx_int_t) state[i].connect_time;
        u->header = (ngx_int_t) state[i].header_time;
        u->response = (ngx_int_t) state[i].response_time;
        u->received = state[i].bytes_received;

        ngx_http_profile_bar_copy(u->peer, sizeof(u->peer), state[i].peer);
    }
}


/*
 * Copies the value of a variable.  The value is empty if nginx was built
 * without the variable.
 */

static ngx_uint_t
ngx_http_profile_bar_variable(ngx_http_request_t *r, const char *name,
    u_char *text, size_t size)
{
    size_t                      len;
    ngx_str_t                   key, value;
    ngx_uint_t                  hash;
    ngx_http_variable_value_t  *vv;
    u_char                      lowcase[32];

    len = ngx_strlen(name);

    hash = ngx_hash_strlow(lowcase, (u_char *) name, len);

    key.data = lowcase;
    key.len = len;

    vv = ngx_http_get_variable(r, &key, hash);

    if (vv == NULL || vv->not_found || !vv->valid || vv->len == 0) {
        return 0;
    }

    value.data = vv->data;
    value.len = vv->len;

    ngx_http_profile_bar_copy(text, size, &value);

    return 1;
}


static void
ngx_http_profile_bar_copy(u_char *text, size_t size, ngx_str_t *value)
{
    (void) ngx_cpystrn(text, value->data, ngx_min(size, value->len + 1));
}


ngx_uint_t
ngx_http_profile_bar_find(ngx_shm_zone_t *zone, u_char *id,
    ngx_http_profile_bar_facts_t *facts)
{
    ngx_uint_t                    i, found;
    ngx_slab_pool_t              *pool;
    ngx_http_profile_bar_ring_t  *ring;

    pool = (ngx_slab_pool_t *) zone->shm.addr;
    ring = zone->data;
    found = 0;

    ngx_http_profile_lock(&pool->mutex);

    for (i = 0; i < ring->n; i++) {
        if (ngx_memcmp(ring->facts[i].id, id, NGX_HTTP_PROFILE_ID_LEN) == 0) {
            *facts = ring->facts[i];
            found = 1;
            break;
        }
    }

    ngx_shmtx_unlock(&pool->mutex);

    return found;
}
