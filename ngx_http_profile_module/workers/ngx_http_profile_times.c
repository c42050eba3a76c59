
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The times of the requests of an endpoint, and their distribution.
 *
 * Context: the thread that merges.
 */


#include "workers/ngx_http_profile_asker.h"


#define NGX_HTTP_PROFILE_TIMES_TEXT  256


static ngx_uint_t ngx_http_profile_asker_number(prof_profile_t *p,
    const char *name);
static const char *ngx_http_profile_asker_fact(prof_profile_t *p,
    const char *name);
static void ngx_http_profile_asker_drop_facts(prof_profile_t *p);
static int ngx_libc_cdecl ngx_http_profile_asker_cmp(const void *one,
    const void *two);


/*
 * Adds the facts of a worker's profile, see ngx_http_profile_sum_finish(), to
 * the sums of the capture, and removes all facts of the profile.
 */

void
ngx_http_profile_asker_take_times(ngx_http_profile_asker_t *s,
    prof_profile_t *p)
{
    char                       *end;
    uint32_t                   *times;
    const char                 *text;
    ngx_uint_t                  i, n;
    unsigned long               us;
    ngx_http_profile_merged_t  *m;

    m = &s->merged;

    m->requests += ngx_http_profile_asker_number(p, "requests");
    m->skipped += ngx_http_profile_asker_number(p, "skipped");
    m->unfinished += ngx_http_profile_asker_number(p, "unfinished");

    for (i = 0; i < p->nfacts; i++) {

        if (ngx_strcmp(p->facts[i].name, "seen") == 0) {
            n = strtoul(p->facts[i].value, &end, 10);

            if (n && *end == ' ') {
                ngx_http_profile_see(m->seen, end + 1, n);
            }
        }
    }

    text = ngx_http_profile_asker_fact(p, "times");

    if (text) {
        times = realloc(m->times, (m->ntimes + NGX_HTTP_PROFILE_TIMES_MAX)
                                  * sizeof(uint32_t));
        m->times = times ? times : m->times;
        n = 0;

        while (times && *text) {
            us = strtoul(text, &end, 10);

            if (end == text || n++ == NGX_HTTP_PROFILE_TIMES_MAX) {
                break;
            }

            times[m->ntimes++] = (uint32_t) us;
            text = (*end == ' ') ? end + 1 : end;
        }
    }

    ngx_http_profile_asker_drop_facts(p);
}


static ngx_uint_t
ngx_http_profile_asker_number(prof_profile_t *p, const char *name)
{
    const char  *text;

    text = ngx_http_profile_asker_fact(p, name);

    return text ? strtoul(text, NULL, 10) : 0;
}


static const char *
ngx_http_profile_asker_fact(prof_profile_t *p, const char *name)
{
    uint32_t  i;

    for (i = 0; i < p->nfacts; i++) {
        if (ngx_strcmp(p->facts[i].name, name) == 0) {
            return p->facts[i].value;
        }
    }

    return NULL;
}


static void
ngx_http_profile_asker_drop_facts(prof_profile_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->nfacts; i++) {
        free(p->facts[i].name);
        free(p->facts[i].value);
    }

    p->nfacts = 0;
}


void
ngx_http_profile_asker_spread(ngx_http_profile_asker_t *s,
    prof_profile_t *p)
{
    u_char                     *last;
    uint64_t                    sum;
    ngx_uint_t                  i, n;
    ngx_http_profile_merged_t  *m;
    u_char                      text[NGX_HTTP_PROFILE_TIMES_TEXT];

    m = &s->merged;
    n = m->ntimes;

    last = ngx_sprintf(text, "%ui", m->requests);
    (void) prof_profile_fact(p, "requests", (char *) text, last - text);

    if (m->skipped) {
        last = ngx_sprintf(text, "%ui", m->skipped);
        (void) prof_profile_fact(p, "skipped", (char *) text, last - text);
    }

    if (n == 0) {
        return;
    }

    ngx_qsort(m->times, n, sizeof(uint32_t), ngx_http_profile_asker_cmp);

    for (sum = 0, i = 0; i < n; i++) {
        sum += m->times[i];
    }

    last = ngx_slprintf(text, text + sizeof(text),
                        "from %uD \302\265s to %uD \302\265s, mean %uL "
                        "\302\265s, half of them up to %uD \302\265s, 90%% "
                        "up to %uD \302\265s, 99%% up to %uD \302\265s",
                        m->times[0], m->times[n - 1], sum / n,
                        m->times[(n - 1) / 2], m->times[(n - 1) * 9 / 10],
                        m->times[(n - 1) * 99 / 100]);

    (void) prof_profile_fact(p, "request_times", (char *) text, last - text);
}


static int ngx_libc_cdecl
ngx_http_profile_asker_cmp(const void *one, const void *two)
{
    uint32_t  a, b;

    a = *(const uint32_t *) one;
    b = *(const uint32_t *) two;

    return (a > b) - (a < b);
}
