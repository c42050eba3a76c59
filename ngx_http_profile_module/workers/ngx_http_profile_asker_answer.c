
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The answer of a capture of workers.
 */


#include "core/ngx_http_profile_param.h"
#include "workers/ngx_http_profile_asker.h"


#define NGX_HTTP_PROFILE_FILE_LEN  64


static ngx_int_t ngx_http_profile_asker_refuse(ngx_http_profile_asker_t *s);


ngx_int_t
ngx_http_profile_asker_answer(ngx_http_profile_asker_t *s)
{
    u_char                     *p;
    ngx_tm_t                    tm;
    const prof_encoder_t       *format;
    ngx_http_profile_call_t    *call;
    ngx_http_profile_answer_t   answer;

    call = s->call;
    format = s->wanted.format;

    if (s->merged.failed) {
        return ngx_http_profile_answer_error(call,
                            NGX_HTTP_INTERNAL_SERVER_ERROR,
                            "there is no memory for the profile");
    }

    if (s->merged.nworkers == 0) {
        return ngx_http_profile_asker_refuse(s);
    }

    if (ngx_http_profile_asker_is_kept(s)) {
        return ngx_http_profile_asker_kept(s);
    }

    if (ngx_http_profile_asker_keep_headers(s) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.type.data = (u_char *) format->content_type;
    answer.type.len = ngx_strlen(format->content_type);
    answer.csp = format->csp;
    answer.gzipped = s->merged.gzipped;
    answer.compressible = s->merged.compressible;

    if (format->download) {
        p = ngx_pnalloc(call->request->pool, NGX_HTTP_PROFILE_FILE_LEN);
        if (p == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_gmtime(ngx_time(), &tm);

        answer.file.data = p;
        answer.file.len = ngx_snprintf(p, NGX_HTTP_PROFILE_FILE_LEN,
                              "nginx-%s-%04d%02d%02d-%02d%02d%02d.%s",
                              ngx_http_profile_mode_name(
                                  s->wanted.conf.mode)->data,
                              tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                              tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                              format->extension)
                          - p;
    }

    return ngx_http_profile_answer_buf(call, &answer, &s->out);
}


/* nobody took part */

static ngx_int_t
ngx_http_profile_asker_refuse(ngx_http_profile_asker_t *s)
{
    ngx_uint_t                i;
    ngx_http_profile_call_t  *call;

    call = s->call;

    for (i = 0; i < s->nmembers; i++) {

        if (s->members[i].state == NGX_HTTP_PROFILE_MEMBER_DONE
            && s->members[i].report == NGX_HTTP_PROFILE_BUSY)
        {
            if (ngx_http_profile_call_header(call, "Retry-After", "5")
                != NGX_OK)
            {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            return ngx_http_profile_answer_error(call,
                                NGX_HTTP_TOO_MANY_REQUESTS,
                                "%d captures are running already, which is "
                                "the limit", PROF_PROCESS_CAPTURES);
        }
    }

    return ngx_http_profile_answer_error(call, NGX_HTTP_SERVICE_UNAVAILABLE,
                                         "no worker took part: %s",
                                         s->merged.left_out);
}
