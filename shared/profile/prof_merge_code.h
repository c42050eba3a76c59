
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The parts of prof_merge.c.
 *
 * Context: any thread, one at a time; not in a signal.
 */


#ifndef _PROF_MERGE_CODE_H_INCLUDED_
#define _PROF_MERGE_CODE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_map.h"
#include "profile/prof_merge.h"
#include "profile/prof_profile.h"


struct prof_merge_s {
    prof_profile_t  *profile;   /* the result */
    uint32_t         flags;     /* PROF_MERGE_* */
    uint32_t         n;         /* number of profiles added */
    uint32_t         full;      /* root of cut stacks, or PROF_NONE */
    uint64_t         end;       /* the latest of all */

    prof_map_t       frames;    /* type, object and address -> frame */
    prof_map_t       names;     /* object, hash of a name -> frame */
    prof_map_t       nodes;     /* parent and frame -> node */
    prof_map_t       entries[PROF_SERIES_MAX];  /* node, labels and type
                                                   -> entry */

    /* for the profile that is added: index there -> index in the result */

    uint32_t        *object;
    uint32_t        *frame;
    uint32_t        *node;
    uint32_t        *label;
};


PROF_HIDDEN_BEGIN

/* fill object[] and frame[]; PROF_OK, or PROF_ERROR when memory is short */
int prof_merge_objects(prof_merge_t *m, const prof_profile_t *p);
int prof_merge_frames(prof_merge_t *m, const prof_profile_t *p);

/*
 * Fill label[] and node[], and add the entries.  base is the set of labels for
 * all entries of the profile.  PROF_OK, or PROF_ERROR when memory is short.
 */
int prof_merge_labels(prof_merge_t *m, const prof_profile_t *p,
    uint32_t base);
int prof_merge_nodes(prof_merge_t *m, const prof_profile_t *p);
int prof_merge_entries(prof_merge_t *m, const prof_profile_t *p,
    uint32_t base);

/* index of the result's frame for f; PROF_NONE when memory is short */
uint32_t prof_merge_frame(prof_merge_t *m, const prof_profile_t *p,
    const prof_frame_t *f);

/*
 * Returns an array of at least n + 1 items.  Memory is allocated when n is a
 * power of two.  NULL when memory is short; the array is unchanged then.
 */
void *prof_merge_grow(void *array, uint32_t n, size_t size);

PROF_HIDDEN_END


#endif /* _PROF_MERGE_CODE_H_INCLUDED_ */
