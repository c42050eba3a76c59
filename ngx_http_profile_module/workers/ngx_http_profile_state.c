
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "request/ngx_http_profile_request.h"
#include "core/ngx_http_profile_job.h"
#include "workers/ngx_http_profile_inbox.h"


static void ngx_http_profile_state_captures(ngx_http_profile_state_t *state);


void
ngx_http_profile_state_write(void)
{
    ngx_http_profile_state_t      *state;
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_profile_module);

    state = ngx_http_profile_inbox_state(ngx_worker);

    /* a worker that asks from here on sends another message */

    state->asked = 0;

    state->sequence++;
    ngx_memory_barrier();

    state->captures = ngx_http_profile_slots;
    state->max_captures = pmcf->max_captures;
    state->connections = ngx_cycle->connection_n
                         - ngx_cycle->free_connection_n;
    state->max_connections = ngx_cycle->connection_n;
    state->refused = prof_signal_refused();
    state->jobs = ngx_http_profile_jobs(&state->jobs_size);
    state->losses = ngx_http_profile_losses;

    ngx_http_profile_state_captures(state);

    state->when = prof_now();

    ngx_memory_barrier();
    state->sequence++;
}


static void
ngx_http_profile_state_captures(ngx_http_profile_state_t *state)
{
    ngx_str_t                          method, path;
    ngx_queue_t                       *q;
    prof_stats_t                       st;
    ngx_http_profile_ctx_t            *ctx;
    ngx_http_profile_state_capture_t  *live;

    state->nlive = 0;

    for (q = ngx_queue_head(&ngx_http_profile_live);
         q != ngx_queue_sentinel(&ngx_http_profile_live)
         && state->nlive < NGX_HTTP_PROFILE_STATE_CAPTURES;
         q = ngx_queue_next(q))
    {
        ctx = ngx_queue_data(q, ngx_http_profile_ctx_t, queue);

        if (ctx->track->capture == NULL
            || ctx->verdict == NGX_HTTP_PROFILE_REFUSED)
        {
            continue;
        }

        live = &state->live[state->nlive++];

        prof_capture_totals(ctx->track->capture, &st, &live->wall,
                            &live->running, &live->cpu);

        live->samples = st.samples;
        ngx_http_profile_sent(ctx->request, &method, &path);
        live->uri_len = ngx_min(path.len, NGX_HTTP_PROFILE_STATE_URI);

        ngx_memcpy(live->id, ctx->id, NGX_HTTP_PROFILE_ID_LEN);
        ngx_memcpy(live->uri, path.data, live->uri_len);
    }
}


void
ngx_http_profile_state_ask(ngx_uint_t worker)
{
    ngx_http_profile_state_t    *state;
    ngx_http_profile_message_t   m;

    state = ngx_http_profile_inbox_state(worker);

    if (!ngx_atomic_cmp_set(&state->asked, 0, 1)) {
        return;
    }

    ngx_memzero(&m, sizeof(ngx_http_profile_message_t));

    m.type = NGX_HTTP_PROFILE_STATE;

    if (ngx_http_profile_inbox_send(worker, &m, -1) != NGX_OK) {
        state->asked = 0;
    }
}


ngx_int_t
ngx_http_profile_state_read(ngx_uint_t worker, uint64_t since,
    ngx_http_profile_state_t *state)
{
    ngx_atomic_uint_t          sequence;
    ngx_http_profile_state_t  *shared;

    shared = ngx_http_profile_inbox_state(worker);

    sequence = shared->sequence;
    ngx_memory_barrier();

    *state = *shared;

    ngx_memory_barrier();

    if ((sequence & 1) || sequence != shared->sequence
        || state->when < since)
    {
        return NGX_AGAIN;
    }

    return NGX_OK;
}
