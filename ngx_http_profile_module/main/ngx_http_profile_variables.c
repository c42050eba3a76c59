
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Variables, which are computed at each use.  Until the request is logged, they
 * have the values of the moment.  Requests that are not tracked do not have
 * these variables.
 */


#include "request/ngx_http_profile_request.h"
#include "core/ngx_http_profile_loss.h"
#include "main/ngx_http_profile_process.h"


static ngx_int_t ngx_http_profile_variable_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static uint64_t ngx_http_profile_us(ngx_http_profile_times_t *times,
    uintptr_t offset);
static ngx_int_t ngx_http_profile_variable_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_profile_variable_own(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_profile_variable_turns(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_profile_variable_samples(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_profile_variable_dropped(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_profile_variable_timing(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static u_char *ngx_http_profile_digits(u_char *last, uint64_t n,
    ngx_uint_t point);
static ngx_int_t ngx_http_profile_set_value(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, u_char *text, u_char *last);
static ngx_msec_t ngx_http_profile_upstream_time(ngx_http_request_t *r);


ngx_http_variable_t  ngx_http_profile_vars[] = {

    { ngx_string("profile_id"), NULL, ngx_http_profile_variable_id,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_cpu_time"), NULL, ngx_http_profile_variable_time,
      offsetof(ngx_http_profile_times_t, cpu), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_wait_time"), NULL, ngx_http_profile_variable_time,
      offsetof(ngx_http_profile_times_t, wait), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_stall_time"), NULL, ngx_http_profile_variable_time,
      offsetof(ngx_http_profile_times_t, stall), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_no_processor_time"), NULL,
      ngx_http_profile_variable_time,
      offsetof(ngx_http_profile_times_t, no_processor),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_blocked_time"), NULL,
      ngx_http_profile_variable_time,
      offsetof(ngx_http_profile_times_t, blocked),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_own_time"), NULL, ngx_http_profile_variable_own,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_turns"), NULL, ngx_http_profile_variable_turns,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_longest_turn"), NULL, ngx_http_profile_variable_time,
      offsetof(ngx_http_profile_times_t, longest), NGX_HTTP_VAR_NOCACHEABLE,
      0 },

    { ngx_string("profile_samples"), NULL, ngx_http_profile_variable_samples,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_dropped"), NULL, ngx_http_profile_variable_dropped,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("profile_server_timing"), NULL,
      ngx_http_profile_variable_timing, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_profile_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_profile_vars; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* the configuration does not show the variables that scripts use */

ngx_uint_t
ngx_http_profile_asks_times(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);

    v = cmcf->variables.elts;

    for (i = 0; i < cmcf->variables.nelts; i++) {

        if (v[i].get_handler == ngx_http_profile_variable_time
            || v[i].get_handler == ngx_http_profile_variable_turns
            || v[i].get_handler == ngx_http_profile_variable_timing)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_profile_variable_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL || tr->id.len == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_profile_set_value(r, v, tr->id.data,
                                      tr->id.data + tr->id.len);
}


/* returns a member of the times in us, rounded so that sums stay exact */

static uint64_t
ngx_http_profile_us(ngx_http_profile_times_t *times, uintptr_t offset)
{
    return (*(uint64_t *) ((u_char *) times + offset) + 500) / 1000;
}


/* seconds, to the microsecond */

static ngx_int_t
ngx_http_profile_variable_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *last;
    ngx_http_profile_times_t   times;
    ngx_http_profile_track_t  *tr;
    u_char                     text[NGX_INT64_LEN + sizeof(".000000")];

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    ngx_http_profile_account_times(tr, &times);

    last = text + sizeof(text);

    return ngx_http_profile_set_value(r, v,
               ngx_http_profile_digits(last, ngx_http_profile_us(&times, data),
                                       6),
               last);
}


static ngx_int_t
ngx_http_profile_variable_own(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *last;
    ngx_http_profile_track_t  *tr;
    u_char                     text[NGX_INT64_LEN + sizeof(".000000")];

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    last = text + sizeof(text);

    return ngx_http_profile_set_value(r, v,
               ngx_http_profile_digits(last,
                          (ngx_http_profile_account_rest(tr) + 500) / 1000, 6),
               last);
}


static ngx_int_t
ngx_http_profile_variable_turns(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *last;
    ngx_http_profile_times_t   times;
    ngx_http_profile_track_t  *tr;
    u_char                     text[NGX_INT64_LEN];

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    ngx_http_profile_account_times(tr, &times);

    last = text + sizeof(text);

    return ngx_http_profile_set_value(r, v,
               ngx_http_profile_digits(last, times.turns, 0), last);
}


static ngx_int_t
ngx_http_profile_variable_samples(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *p;
    prof_stats_t               stats;
    ngx_http_profile_track_t  *tr;
    u_char                     text[NGX_INT64_LEN];

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    stats.samples = tr->samples;

    if (tr->capture) {
        prof_capture_totals(tr->capture, &stats, NULL, NULL, NULL);
    }

    p = ngx_sprintf(text, "%uL", stats.samples);

    return ngx_http_profile_set_value(r, v, text, p);
}


static ngx_int_t
ngx_http_profile_variable_dropped(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 *name;
    ngx_http_profile_track_t  *tr;

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL || tr->lost == NGX_HTTP_PROFILE_LOSS_NONE) {
        v->not_found = 1;
        return NGX_OK;
    }

    name = &ngx_http_profile_loss_names[tr->lost];

    return ngx_http_profile_set_value(r, v, name->data,
                                      name->data + name->len);
}


/*
 * The value of a Server-Timing header (W3C Server Timing): names are tokens,
 * durations are milliseconds.
 */

static ngx_int_t
ngx_http_profile_variable_timing(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *p, *last;
    uint64_t                   us;
    ngx_msec_t                 upstream;
    ngx_uint_t                 i;
    ngx_http_profile_times_t   times;
    ngx_http_profile_track_t  *tr;
    u_char                     text[256];

    static const struct {
        const char  *name;
        size_t       offset;
    } metrics[] = {
        { "nginx-total", offsetof(ngx_http_profile_times_t, wall) },
        { "nginx-cpu", offsetof(ngx_http_profile_times_t, cpu) },
        { "nginx-wait", offsetof(ngx_http_profile_times_t, wait) },
        { "nginx-stall", offsetof(ngx_http_profile_times_t, stall) }
    };

    tr = ngx_http_profile_find_track(r);

    if (tr == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    ngx_http_profile_account_times(tr, &times);

    p = text;
    last = text + sizeof(text);

    for (i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {

        us = ngx_http_profile_us(&times, metrics[i].offset);

        p = ngx_slprintf(p, last, "%s%s;dur=%uL.%03uL", i ? ", " : "",
                         metrics[i].name, us / 1000, us % 1000);
    }

    upstream = ngx_http_profile_upstream_time(r);

    if (upstream != (ngx_msec_t) -1) {
        p = ngx_slprintf(p, last, ", nginx-upstream;dur=%M", upstream);
    }

    return ngx_http_profile_set_value(r, v, text, p);
}


/*
 * Returns the sum of the response times of the request's upstream servers.  The
 * time of the current server counts until now.  Returns -1 without a server.
 */

static ngx_msec_t
ngx_http_profile_upstream_time(ngx_http_request_t *r)
{
    ngx_msec_t                  sum, ms;
    ngx_uint_t                  i;
    ngx_http_upstream_state_t  *state;

    sum = (ngx_msec_t) -1;

    if (r->upstream_states == NULL) {
        return sum;
    }

    state = r->upstream_states->elts;

    for (i = 0; i < r->upstream_states->nelts; i++) {

        if (state[i].peer == NULL) {
            continue;
        }

        ms = state[i].response_time;

        if (ms == (ngx_msec_t) -1) {
            ms = r->upstream ? ngx_current_msec - r->upstream->start_time : 0;
        }

        sum = (sum == (ngx_msec_t) -1) ? ms : sum + ms;
    }

    return sum;
}


/*
 * Writes n in front of last, with "point" digits behind a decimal point.  Each
 * line of a log has such numbers, and ngx_sprintf() would take some percent of
 * a small request for four of them.
 */

static u_char *
ngx_http_profile_digits(u_char *last, uint64_t n, ngx_uint_t point)
{
    u_char      *p;
    ngx_uint_t   i;

    p = last;
    i = 0;

    do {
        *--p = '0' + n % 10;
        n /= 10;

        if (++i == point) {
            *--p = '.';
        }

    } while (n || i <= point);

    return p;
}


static ngx_int_t
ngx_http_profile_set_value(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, u_char *text, u_char *last)
{
    v->len = last - text;
    v->data = ngx_pnalloc(r->pool, v->len);

    if (v->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(v->data, text, v->len);

    v->valid = 1;
    v->no_cacheable = 1;
    v->not_found = 0;

    return NGX_OK;
}
