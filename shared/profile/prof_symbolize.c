
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names for all frames of a profile: collects the addresses of each object,
 * has them looked up together, and makes the rest of object and offset.
 */


#include "profile/prof_demangle.h"
#include "profile/prof_lines.h"
#include "profile/prof_profile.h"
#include "profile/prof_symbol.h"
#include "profile/prof_symbolize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static int prof_symbolize_object(prof_profile_t *p, const uint32_t *frames,
    uint32_t n, const char *debug_root);
static int prof_symbolize_offset(prof_profile_t *p, prof_frame_t *f);
static int prof_symbolize_cmp(const void *one, const void *two, void *data);
static uint64_t prof_symbolize_pc(const prof_frame_t *f);


int
prof_profile_symbolize(prof_profile_t *p)
{
    return prof_symbolize(p, PROF_SYMBOL_DEBUG_ROOT);
}


int
prof_symbolize(prof_profile_t *p, const char *debug_root)
{
    int        rc;
    uint32_t   i, n, next, *order;
    uint64_t   deadline;

    order = malloc((p->nframes + 1) * sizeof(uint32_t));
    if (order == NULL) {
        return PROF_ERROR;
    }

    n = 0;

    for (i = 0; i < p->nframes; i++) {
        if (p->frames[i].name == NULL) {
            order[n++] = i;
        }
    }

    qsort_r(order, n, sizeof(uint32_t), prof_symbolize_cmp, p->frames);

    rc = PROF_OK;
    deadline = prof_lines_now() + PROF_LINES_TIME;

    for (i = 0; i < n && rc == PROF_OK; i = next) {

        for (next = i + 1; next < n; next++) {
            if (p->frames[order[next]].object != p->frames[order[i]].object) {
                break;
            }
        }

        rc = prof_symbolize_object(p, order + i, next - i, debug_root);

        if (rc == PROF_OK && p->frames[order[i]].object != PROF_NONE) {
            rc = prof_lines(p, order + i, next - i, debug_root, deadline);
        }
    }

    free(order);

    return rc;
}


/* frames are the indices of those of one object, sorted by address */

static int
prof_symbolize_object(prof_profile_t *p, const uint32_t *frames, uint32_t n,
    const char *debug_root)
{
    int             rc;
    uint32_t        i;
    prof_frame_t   *f;
    prof_symbol_t  *syms;

    syms = calloc(n, sizeof(prof_symbol_t));
    if (syms == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < n; i++) {
        f = &p->frames[frames[i]];

        syms[i].pc = prof_symbolize_pc(f);
        syms[i].function = f->function;
    }

    rc = PROF_OK;
    f = &p->frames[frames[0]];

    if (f->object != PROF_NONE) {
        rc = prof_symbol_find(&p->objects[f->object], debug_root, syms, n);
    }

    for (i = 0; i < n && rc == PROF_OK; i++) {

        if (syms[i].name) {
            rc = prof_demangle(&syms[i].name);
        }

        if (rc != PROF_OK) {
            break;
        }

        f = &p->frames[frames[i]];

        if (syms[i].name) {
            f->name = syms[i].name;
            f->exact = 1;
            syms[i].name = NULL;

        } else {
            rc = prof_symbolize_offset(p, f);
        }
    }

    for (i = 0; i < n; i++) {
        free(syms[i].name);
    }

    free(syms);

    return rc;
}


static int
prof_symbolize_offset(prof_profile_t *p, prof_frame_t *f)
{
    char        *name;
    uint64_t     offset;
    const char  *base, *slash;

    f->exact = 0;

    /*
     * Made at run time.  An address would make each place in it a function of
     * its own, and says nothing in another process.
     */

    if (f->object == PROF_NONE) {
        f->name = strdup("[anonymous code]");
        return f->name ? PROF_OK : PROF_ERROR;
    }

    base = p->objects[f->object].path;

    slash = strrchr(base, '/');
    if (slash) {
        base = slash + 1;
    }

    offset = f->function ? f->function : f->pc;

    if (asprintf(&name, "%s+0x%" PRIx64, base, offset) == -1) {
        return PROF_ERROR;
    }

    f->name = name;

    return PROF_OK;
}


/* a return address may be the first one of the next function */

static uint64_t
prof_symbolize_pc(const prof_frame_t *f)
{
    return f->call && f->pc ? f->pc - 1 : f->pc;
}


static int
prof_symbolize_cmp(const void *one, const void *two, void *data)
{
    uint64_t             pc1, pc2;
    prof_frame_t        *frames;
    const prof_frame_t  *f1, *f2;

    frames = data;
    f1 = &frames[*(const uint32_t *) one];
    f2 = &frames[*(const uint32_t *) two];

    if (f1->object != f2->object) {
        return f1->object < f2->object ? -1 : 1;
    }

    pc1 = prof_symbolize_pc(f1);
    pc2 = prof_symbolize_pc(f2);

    return pc1 < pc2 ? -1 : pc1 > pc2;
}
