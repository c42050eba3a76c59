
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The page of the continuous profile, and the list of slices that it draws.
 */


#include "console/ngx_http_profile_routes.h"
#include "continuous/ngx_http_profile_continuous.h"


static int ngx_http_profile_hour_make(ngx_http_profile_picture_t *pic,
    prof_profile_t **p);


ngx_int_t
ngx_http_profile_hour_route(ngx_http_profile_call_t *call)
{
    ngx_http_profile_picture_t     asked;
    ngx_http_profile_main_conf_t  *pmcf;

    if (!call->json) {
        return ngx_http_profile_answer_page(call, "hour.html");
    }

    pmcf = ngx_http_get_module_main_conf(call->request,
                                         ngx_http_profile_module);

    if (pmcf->continuous == NULL) {
        return ngx_http_profile_no_continuous(call);
    }

    ngx_memzero(&asked, sizeof(ngx_http_profile_picture_t));

    asked.make = ngx_http_profile_hour_make;
    asked.continuous = pmcf->continuous;

    return ngx_http_profile_picture(call, pmcf->continuous->store, &asked);
}


/*
 * Context: the thread, since a long list takes milliseconds.  A slice is
 * [start, length, worker, cpu, samples, merged]: times in milliseconds, the CPU
 * time in nanoseconds.
 */

static int
ngx_http_profile_hour_make(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    json_t                          *list;
    uint64_t                         now;
    ngx_int_t                        i, n;
    ngx_http_profile_continuous_t   *conf;
    ngx_http_profile_slice_facts_t  *slices;

    conf = pic->continuous;
    now = (uint64_t) ngx_time() * 1000;

    n = ngx_http_profile_slices_list(conf, now - conf->keep, now + conf->slice,
                                     0, &slices);
    if (n == NGX_ERROR) {
        return PROF_ERROR;
    }

    list = json_array();

    for (i = 0; i < n; i++) {
        (void) json_array_append_new(list,
                   json_pack("[I, I, I, I, I, i]",
                             (json_int_t) slices[i].start,
                             (json_int_t) slices[i].length,
                             (json_int_t) slices[i].worker,
                             (json_int_t) slices[i].cpu,
                             (json_int_t) slices[i].samples,
                             (int) slices[i].merged));
    }

    ngx_free(slices);

    return ngx_http_profile_picture_dump(pic,
               json_pack("{s:I, s:I, s:I, s:I, s:b, s:o}",
                         "now", (json_int_t) now,
                         "slice_ms", (json_int_t) conf->slice,
                         "keep_ms", (json_int_t) conf->keep,
                         "frequency", (json_int_t) conf->frequency,
                         "wall", (int) conf->wall,
                         "slices", list));
}
