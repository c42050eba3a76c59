
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * What the accounted requests of this worker wait for when a capture of the
 * worker ends, by location and cause.  A request has the weight of its wait
 * within the capture.
 */


#include "loop/ngx_http_profile_loop.h"
#include "stages/ngx_http_profile_stages.h"
#include "workers/ngx_http_profile_share.h"


/* different waits; further ones are added to the last */
#define NGX_HTTP_PROFILE_WAITING       32

#define NGX_HTTP_PROFILE_WAITING_TEXT  128


typedef struct {
    uint64_t      begin;     /* of the capture */
    uint64_t      now;
    ngx_uint_t    n;
    prof_wait_t   waits[NGX_HTTP_PROFILE_WAITING];
    char          causes[NGX_HTTP_PROFILE_WAITING]
                        [NGX_HTTP_PROFILE_WAITING_TEXT];
} ngx_http_profile_waiting_t;


static void ngx_http_profile_waiting_add(ngx_http_profile_track_t *tr,
    void *data);


void
ngx_http_profile_waiting(prof_capture_t *c, uint64_t begin)
{
    static ngx_http_profile_waiting_t  w;

    w.begin = begin;
    w.now = prof_now();
    w.n = 0;

    ngx_http_profile_each_track(ngx_http_profile_waiting_add, &w);

    prof_process_waits(c, w.waits, w.n);
}


static void
ngx_http_profile_waiting_add(ngx_http_profile_track_t *tr, void *data)
{
    ngx_http_profile_waiting_t *w = data;

    uint64_t                      weight;
    ngx_uint_t                    i;
    const char                   *location;
    ngx_http_core_loc_conf_t     *clcf;
    ngx_http_profile_cause_t      cause;
    ngx_http_profile_loc_conf_t  *plcf;
    char                          text[NGX_HTTP_PROFILE_WAITING_TEXT];

    plcf = ngx_http_get_module_loc_conf(tr->request, ngx_http_profile_module);

    /* pages of the module wait for this capture */

    if (!tr->accounted || tr->closed || !tr->begun
        || ngx_http_profile_is_running(tr) || ngx_http_profile_is_own(plcf))
    {
        return;
    }

    weight = w->now - ngx_max(tr->since, w->begin);

    ngx_http_profile_find_present_cause(tr, &cause);

    *ngx_slprintf((u_char *) text, (u_char *) text + sizeof(text) - 1,
                  "%s%*s", cause.text, cause.len, cause.name) = '\0';

    clcf = ngx_http_get_module_loc_conf(tr->request, ngx_http_core_module);
    location = clcf->name.len ? (char *) clcf->name.data : NULL;

    for (i = 0; i < w->n; i++) {
        if (w->waits[i].location == location
            && ngx_strcmp(w->causes[i], text) == 0)
        {
            break;
        }
    }

    if (i == w->n && i < NGX_HTTP_PROFILE_WAITING) {
        w->n++;
        w->waits[i].location = location;
        w->waits[i].cause = w->causes[i];
        w->waits[i].weight = 0;
        (void) ngx_cpystrn((u_char *) w->causes[i], (u_char *) text,
                           sizeof(text));
    }

    w->waits[ngx_min(i, NGX_HTTP_PROFILE_WAITING - 1)].weight += weight;
}
