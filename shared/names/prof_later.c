
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The frames wait as profiles that have nothing but frames and their objects.
 */


#include "names/prof_later.h"
#include "names/prof_symbolize.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>


/*
 * Profiles that wait.  A profile asks again for what is left out, so a small
 * number suffices.
 */

#define PROF_LATER_MAX  16


typedef struct {
    prof_profile_t   *profile;
    char             *debug_root;
} prof_later_t;


static int prof_later_copy(prof_profile_t *copy, const prof_profile_t *p,
    const uint32_t *frames, uint32_t n);
static void prof_later_free(prof_later_t *later);
static int prof_later_take(prof_later_t *later);


static prof_later_t     prof_later[PROF_LATER_MAX];
static uint32_t         prof_nlater;
static pthread_mutex_t  prof_later_lock = PTHREAD_MUTEX_INITIALIZER;


void
prof_later_add(const prof_profile_t *p, const uint32_t *frames, uint32_t n,
    const char *debug_root)
{
    int           added;
    prof_later_t  later;

    added = 0;

    later.profile = prof_profile_create("");
    later.debug_root = strdup(debug_root);

    if (later.profile && later.debug_root
        && prof_later_copy(later.profile, p, frames, n) == PROF_OK)
    {
        (void) pthread_mutex_lock(&prof_later_lock);

        if (prof_nlater < PROF_LATER_MAX) {
            prof_later[prof_nlater++] = later;
            added = 1;
        }

        (void) pthread_mutex_unlock(&prof_later_lock);
    }

    if (!added) {
        prof_later_free(&later);
    }
}


static int
prof_later_copy(prof_profile_t *copy, const prof_profile_t *p,
    const uint32_t *frames, uint32_t n)
{
    uint32_t                i, nobjects;
    prof_frame_t           *to;
    const prof_frame_t     *f;
    prof_profile_object_t  *o;

    nobjects = 0;

    for (i = 0; i < n; i++) {
        f = &p->frames[frames[i]];
        nobjects = f->object < nobjects ? nobjects : f->object + 1;
    }

    copy->frames = calloc(n, sizeof(prof_frame_t));
    copy->objects = calloc(nobjects, sizeof(prof_profile_object_t));

    if (copy->frames == NULL || copy->objects == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < nobjects; i++) {
        o = &copy->objects[i];
        *o = p->objects[i];

        copy->nobjects++;

        o->path = strdup(o->path);
        o->build_id = strdup(o->build_id);

        if (o->path == NULL || o->build_id == NULL) {
            return PROF_ERROR;
        }
    }

    for (i = 0; i < n; i++) {
        f = &p->frames[frames[i]];
        to = &copy->frames[copy->nframes++];

        to->type = f->type;
        to->object = f->object;
        to->pc = f->pc;
        to->function = f->function;
        to->function_len = f->function_len;
    }

    return PROF_OK;
}


static void
prof_later_free(prof_later_t *later)
{
    prof_profile_destroy(later->profile);
    free(later->debug_root);
}


int
prof_profile_later(void)
{
    int  waits;

    (void) pthread_mutex_lock(&prof_later_lock);

    waits = prof_nlater != 0;

    (void) pthread_mutex_unlock(&prof_later_lock);

    return waits;
}


static int
prof_later_take(prof_later_t *later)
{
    int  taken;

    (void) pthread_mutex_lock(&prof_later_lock);

    taken = prof_nlater != 0;

    if (taken) {
        *later = prof_later[--prof_nlater];
    }

    (void) pthread_mutex_unlock(&prof_later_lock);

    return taken;
}


void
prof_profile_look_later(void)
{
    prof_later_t  later;

    while (prof_later_take(&later)) {

        /* names that cannot be looked up stay as they are */

        (void) prof_symbolize_again(later.profile, later.debug_root);

        prof_later_free(&later);
    }
}


void
prof_later_forget(void)
{
    prof_later_t  later;

    while (prof_later_take(&later)) {
        prof_later_free(&later);
    }
}
