
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_alive.h"
#include "core/ngx_http_profile_fate.h"
#include "core/ngx_http_profile_http.h"

#include <sys/mman.h>


/* ids in the ring: the captures of some minutes, in 56 kB */
#define NGX_HTTP_PROFILE_FATES  1024


/* an id whose entry is being replaced has no fate */

typedef struct {
    ngx_atomic_t  owner;                /* the process that has to set it */
    ngx_atomic_t  fate;                 /* ngx_http_profile_fate_e */
    u_char        id[NGX_HTTP_PROFILE_ID_LEN];
} ngx_http_profile_fated_t;


typedef struct {
    ngx_atomic_t              next;
    ngx_http_profile_fated_t  ids[NGX_HTTP_PROFILE_FATES];
} ngx_http_profile_fates_t;


static ngx_http_profile_fated_t *ngx_http_profile_fate_find(u_char *id);


static ngx_http_profile_fates_t  *ngx_http_profile_fates;


void
ngx_http_profile_fate_init(void)
{
    void  *p;

    if (ngx_http_profile_fates) {
        return;
    }

    p = mmap(NULL, sizeof(ngx_http_profile_fates_t), PROT_READ|PROT_WRITE,
             MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (p != MAP_FAILED) {
        ngx_http_profile_fates = p;
    }
}


void
ngx_http_profile_fate_close(void)
{
    if (ngx_http_profile_fates) {
        (void) munmap(ngx_http_profile_fates, sizeof(ngx_http_profile_fates_t));
        ngx_http_profile_fates = NULL;
    }
}


void
ngx_http_profile_fate_add(u_char *id)
{
    ngx_uint_t                 n;
    ngx_http_profile_fated_t  *fated;

    if (ngx_http_profile_fates == NULL) {
        return;
    }

    n = ngx_atomic_fetch_add(&ngx_http_profile_fates->next, 1);
    fated = &ngx_http_profile_fates->ids[n % NGX_HTTP_PROFILE_FATES];

    fated->fate = NGX_HTTP_PROFILE_FATE_UNKNOWN;
    ngx_memory_barrier();

    ngx_memcpy(fated->id, id, NGX_HTTP_PROFILE_ID_LEN);
    fated->owner = ngx_http_profile_alive_self();

    ngx_memory_barrier();
    fated->fate = NGX_HTTP_PROFILE_FATE_WAITS;
}


void
ngx_http_profile_fate_set(u_char *id, ngx_http_profile_fate_e fate)
{
    ngx_http_profile_fated_t  *fated;

    fated = ngx_http_profile_fate_find(id);

    if (fated) {
        fated->fate = fate;
    }
}


ngx_http_profile_fate_e
ngx_http_profile_fate(ngx_str_t *id)
{
    ngx_atomic_uint_t          fate;
    ngx_http_profile_fated_t  *fated;

    fated = (id->len == NGX_HTTP_PROFILE_ID_LEN)
            ? ngx_http_profile_fate_find(id->data) : NULL;

    if (fated == NULL) {
        return NGX_HTTP_PROFILE_FATE_UNKNOWN;
    }

    fate = fated->fate;

    if (fate == NGX_HTTP_PROFILE_FATE_WAITS
        && !ngx_http_profile_alive(fated->owner))
    {
        return NGX_HTTP_PROFILE_FATE_NEVER;
    }

    return (ngx_http_profile_fate_e) fate;
}


/* the newest ids are the most wanted */

static ngx_http_profile_fated_t *
ngx_http_profile_fate_find(u_char *id)
{
    ngx_uint_t                 i, next;
    ngx_http_profile_fated_t  *fated;

    if (ngx_http_profile_fates == NULL) {
        return NULL;
    }

    next = ngx_http_profile_fates->next;

    for (i = 1; i <= NGX_HTTP_PROFILE_FATES; i++) {
        fated = &ngx_http_profile_fates->ids[(next - i)
                                             % NGX_HTTP_PROFILE_FATES];

        if (ngx_memcmp(fated->id, id, NGX_HTTP_PROFILE_ID_LEN) == 0) {
            return fated;
        }
    }

    return NULL;
}
