
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Roles of functions that nginx's modules set for single requests: callbacks
 * of upstreams and handlers of events.  Captures of requests see them.  Each
 * function is looked up only once in a process.
 */


#include "roles/ngx_http_profile_roles.h"


/* size of the table, a power of 2, and the places to try for a function */

#define NGX_HTTP_PROFILE_SEEN    256
#define NGX_HTTP_PROFILE_TRIES   8


typedef struct {
    uintptr_t     function;
    const char   *purpose;
    u_char       *module;           /* text of the first module seen */
    unsigned      several:1;        /* several modules use the function */
} ngx_http_profile_seen_t;


static ngx_http_profile_seen_t *ngx_http_profile_find_seen(
    uintptr_t function);
static void ngx_http_profile_publish_seen(ngx_http_profile_seen_t *seen,
    ngx_str_t *module);


static ngx_http_profile_seen_t  ngx_http_profile_seen[NGX_HTTP_PROFILE_SEEN];


void
ngx_http_profile_see_role(uintptr_t function, ngx_str_t *module,
    const char *purpose)
{
    ngx_http_profile_seen_t  *seen;

    static ngx_str_t  upstream = ngx_string("upstream");

    seen = function ? ngx_http_profile_find_seen(function) : NULL;

    if (seen == NULL) {
        return;
    }

    if (seen->function == 0) {
        seen->function = function;
        seen->purpose = purpose;
        seen->module = module->data;

    } else if (!seen->several && seen->module && module->data
               && seen->module != module->data)
    {
        seen->several = 1;
        module = &upstream;

    } else {
        return;
    }

    ngx_http_profile_publish_seen(seen, module);
}


/* the place of the function, or an unused one; NULL: no place is left */

static ngx_http_profile_seen_t *
ngx_http_profile_find_seen(uintptr_t function)
{
    ngx_uint_t                i, n;
    ngx_http_profile_seen_t  *seen;

    /* functions are aligned to 16 bytes */

    n = (function >> 4) ^ (function >> 12);

    for (i = 0; i < NGX_HTTP_PROFILE_TRIES; i++) {
        seen = &ngx_http_profile_seen[(n + i) & (NGX_HTTP_PROFILE_SEEN - 1)];

        if (seen->function == function || seen->function == 0) {
            return seen;
        }
    }

    return NULL;
}


static void
ngx_http_profile_publish_seen(ngx_http_profile_seen_t *seen, ngx_str_t *module)
{
    size_t                len;
    u_char               *p, *last, text[NGX_HTTP_PROFILE_ROLE_TEXT];
    prof_role_t           role;
    const prof_object_t  *object;
    const prof_unwind_t  *u;

    u = prof_process_unwind();

    if (u == NULL
        || prof_unwind_function(u, seen->function, &len) != seen->function)
    {
        return;
    }

    object = prof_unwind_object(u, seen->function);

    last = text + sizeof(text) - 1;

    p = ngx_slprintf(text, last, "%V%s%s", module, module->len ? " " : "",
                     seen->purpose);
    *p = '\0';

    for (p = text; *p; p++) {
        if (*p == '_') {
            *p = ' ';
        }
    }

    role.path = object->path;
    role.build_id = object->build_id;
    role.build_id_len = object->build_id_len;
    role.function = seen->function - object->base;
    role.text = (char *) text;
    role.unit = NULL;

    prof_profile_add_role(&role);
}


void
ngx_http_profile_forget_roles(void)
{
    ngx_memzero(ngx_http_profile_seen, sizeof(ngx_http_profile_seen));
}
