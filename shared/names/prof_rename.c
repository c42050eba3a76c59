
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Looks up new names for a profile that has names.  The frames are copied
 * without their names to a second profile, which is symbolized.  So frames
 * keep their names if a lookup fails.
 */


#include "names/prof_symbol.h"
#include "names/prof_symbolize.h"
#include "profile/prof_profile.h"

#include <stdlib.h>
#include <string.h>


static void prof_rename_frames(prof_profile_t *copy, uint32_t *frames,
    const prof_profile_t *p);
static int prof_rename_wanted(const prof_profile_t *p, const prof_frame_t *f);
static int prof_rename_better(const prof_frame_t *f, const prof_frame_t *now);
static int prof_rename_take(prof_profile_t *p, prof_frame_t *f,
    prof_profile_t *copy, prof_frame_t *now);


int
prof_profile_rename(prof_profile_t *p, const char *debug_root, int again,
    uint32_t *renamed)
{
    int              rc;
    uint32_t         i, *frames;
    prof_profile_t  *copy;

    *renamed = 0;

    frames = malloc(((size_t) p->nframes + 1) * sizeof(uint32_t));
    copy = prof_profile_create("");

    if (copy) {
        copy->frames = calloc((size_t) p->nframes + 1, sizeof(prof_frame_t));
    }

    rc = PROF_ERROR;

    if (frames && copy && copy->frames) {
        copy->objects = p->objects;

        prof_rename_frames(copy, frames, p);

        debug_root = debug_root ? debug_root : PROF_SYMBOL_DEBUG_ROOT;

        rc = again ? prof_symbolize_again(copy, debug_root)
                   : prof_symbolize(copy, debug_root);

        copy->objects = NULL;
    }

    for (i = 0; rc == PROF_OK && i < copy->nframes; i++) {

        if (prof_rename_better(&p->frames[frames[i]], &copy->frames[i])) {
            rc = prof_rename_take(p, &p->frames[frames[i]], copy,
                                  &copy->frames[i]);
            (*renamed)++;
        }
    }

    if (rc == PROF_OK) {
        p->stats.lost_names = copy->stats.lost_names;
    }

    prof_profile_destroy(copy);
    free(frames);

    return rc;
}


static void
prof_rename_frames(prof_profile_t *copy, uint32_t *frames,
    const prof_profile_t *p)
{
    uint32_t             i;
    prof_frame_t        *to;
    const prof_frame_t  *f;

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        if (!prof_rename_wanted(p, f)) {
            continue;
        }

        to = &copy->frames[copy->nframes];

        to->type = f->type;
        to->object = f->object;
        to->pc = f->pc;
        to->function = f->function;
        to->function_len = f->function_len;

        frames[copy->nframes++] = i;
    }
}


/* returns whether debug files may have a better name, or a line */

static int
prof_rename_wanted(const prof_profile_t *p, const prof_frame_t *f)
{
    return (f->type == PROF_TYPE_CODE || f->type == PROF_TYPE_RETURN)
           && f->object != PROF_NONE
           && p->objects[f->object].build_id[0]
           && (f->source < PROF_SOURCE_DEBUG || f->file == NULL);
}


static int
prof_rename_better(const prof_frame_t *f, const prof_frame_t *now)
{
    return now->source > f->source
           || (now->source == f->source && now->file && f->file == NULL);
}


/* gives the new name of the copy to the frame; the copy gets the old name */

static int
prof_rename_take(prof_profile_t *p, prof_frame_t *f, prof_profile_t *copy,
    prof_frame_t *now)
{
    size_t          n;
    prof_frame_t    before;
    prof_inline_t  *inlines;

    before = *f;

    f->source = now->source;
    f->name = now->name;
    f->file = now->file;
    f->line = now->line;
    f->start_line = now->start_line;

    now->name = before.name;
    now->file = before.file;

    f->ninlines = 0;

    if (now->ninlines == 0) {
        return PROF_OK;
    }

    n = (size_t) p->ninlines + now->ninlines;

    inlines = realloc(p->inlines, n * sizeof(prof_inline_t));
    if (inlines == NULL) {
        return PROF_ERROR;
    }

    memcpy(inlines + p->ninlines, copy->inlines + now->inlines,
           now->ninlines * sizeof(prof_inline_t));
    memset(copy->inlines + now->inlines, 0,
           now->ninlines * sizeof(prof_inline_t));

    f->inlines = p->ninlines;
    f->ninlines = now->ninlines;

    p->inlines = inlines;
    p->ninlines = (uint32_t) n;

    return PROF_OK;
}
