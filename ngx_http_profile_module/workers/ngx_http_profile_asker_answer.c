
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The response of a capture of workers.
 */


#include "workers/ngx_http_profile_asker.h"


static ngx_int_t ngx_http_profile_asker_refuse(ngx_http_profile_asker_t *s);


ngx_int_t
ngx_http_profile_asker_answer(ngx_http_profile_asker_t *s)
{
    const prof_encoder_t       *format;
    ngx_http_profile_call_t    *call;
    ngx_http_profile_answer_t   answer;

    static ngx_str_t  none = ngx_null_string;
    static ngx_str_t  nginx = ngx_string("nginx");

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
    answer.gzipped = s->gzip.done;
    answer.compressible = s->gzip.compressible;

    if (format->download
        && ngx_http_profile_file_name(call->request->pool, &nginx, &none,
                                      s->wanted.conf.mode, ngx_time(),
                                      format->extension, &answer.file)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_profile_answer_buf(call, &answer, &s->out);
}


/* no worker took part */

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
            if (ngx_http_profile_add_text_header(call->request,
                                                 "Retry-After", "5")
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
