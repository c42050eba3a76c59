
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "stacks/prof_marks.h"
#include "stacks/prof_tables.h"
#include "stacks/prof_tree.h"

#include <string.h>


void
prof_marks_begin(prof_marks_t *m, const prof_unwind_t **u)
{
    const prof_unwind_t  *current;

    current = prof_process_refresh();

    memset(m, 0, sizeof(prof_marks_t));

    prof_marks_add(m, *u);
    prof_marks_add(m, current);

    if (*u != current) {
        prof_unwind_hold(current);
        __atomic_store_n(u, current, __ATOMIC_SEQ_CST);
    }
}


void
prof_marks_end(prof_marks_t *m)
{
    if (m->n > 1) {
        prof_unwind_release(m->unwind[0]);
    }
}


void
prof_marks_add(prof_marks_t *m, const prof_unwind_t *u)
{
    if (u == NULL || (m->n && m->unwind[m->n - 1] == u)) {
        return;
    }

    m->unwind[m->n++] = u;
    m->plain = (m->n == 1 && prof_unwind_plain(u));
}


void
prof_marks_stack(const prof_marks_t *m, prof_sample_t *sample)
{
    uint32_t  i, interrupted;

    if (m->plain) {
        return;
    }

    interrupted = sample->nkernel
                  + prof_tree_interrupted(sample->pcs + sample->nkernel,
                                          sample->nframes - sample->nkernel);

    for (i = sample->nkernel; i < sample->nframes; i++) {

        if (prof_unwind_mark(m->unwind, m->n, &sample->pcs[i],
                             i > interrupted)
            != PROF_OK)
        {
            sample->nframes = i + 1;
            sample->end = PROF_FRAME_NO_UNWIND;
        }
    }
}
