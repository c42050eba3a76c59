
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Looks up the names of a stored profile again, because debug files may have
 * been installed since its capture.
 *
 * Context: a thread.
 */


#include "console/ngx_http_profile_routes.h"


static void ngx_http_profile_names_count(prof_profile_t *p,
    ngx_uint_t *addresses, ngx_uint_t *named);


/* answers with the number of new names; stores the profile if there are any */

int
ngx_http_profile_picture_rename(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    uint32_t    renamed;
    ngx_uint_t  addresses, before, named;

    /* the arguments of the URL may have chosen another mode */

    p[0]->mode = pic->st[0]->mode;

    ngx_http_profile_names_count(p[0], &addresses, &before);

    if (prof_profile_rename(p[0], NULL, 1, &renamed) != PROF_OK
        || (renamed && ngx_http_profile_picture_keep(pic, 0, p[0]) != PROF_OK))
    {
        return PROF_ERROR;
    }

    ngx_http_profile_names_count(p[0], &addresses, &named);

    return ngx_http_profile_picture_dump(pic,
               json_pack("{s:s%, s:i, s:I, s:I, s:I, s:I}",
                         "id", pic->id[0].data, pic->id[0].len,
                         "renamed", (int) renamed,
                         "addresses", (json_int_t) addresses,
                         "named_before", (json_int_t) before,
                         "named", (json_int_t) named,
                         "lost", (json_int_t) p[0]->stats.lost_names));
}


int
ngx_http_profile_picture_keep(ngx_http_profile_picture_t *pic, ngx_uint_t i,
    prof_profile_t *p)
{
    int                        rc;
    prof_buf_t                 archive;
    ngx_http_profile_stored_t  st;

    prof_buf_init(&archive);

    rc = prof_archive_write(p, &archive);

    if (rc == PROF_OK) {
        st = *pic->st[i];
        st.archive = (u_char *) archive.data;
        st.size = archive.len;

        pic->rc = ngx_http_profile_store_replace(pic->store, &st,
                                                 ngx_cycle->log);
        pic->err = "the store failed, see the error log";

    } else if (rc == PROF_LIMIT) {
        pic->rc = NGX_BUSY;
    }

    prof_buf_free(&archive);

    return (rc == PROF_OK && pic->rc == NGX_OK) ? PROF_OK : PROF_ERROR;
}


static void
ngx_http_profile_names_count(prof_profile_t *p, ngx_uint_t *addresses,
    ngx_uint_t *named)
{
    uint32_t       i;
    prof_frame_t  *f;

    *addresses = 0;
    *named = 0;

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        if (prof_frame_is_code(f)) {
            (*addresses)++;
            *named += prof_frame_is_exact(f);
        }
    }
}
