
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Who delayed whom.  The runs of a log are cut into pieces, so that each moment
 * belongs to the innermost run of that moment.  The time in which a run could
 * have begun is then the sum of the pieces in it, and of the time between
 * pieces, which the event loop used.
 */


#include "turns/prof_turns.h"

#include <stdlib.h>


/* damaged logs and forged snapshots may have any nesting */
#define PROF_TURNS_NESTING  32


/* a stretch in which one run was the innermost one */

typedef struct {
    uint64_t   start;
    uint64_t   end;
    size_t     run;
} prof_turns_piece_t;


struct prof_turns_cut_s {
    prof_turns_piece_t         *pieces;      /* ordered, without overlaps */
    size_t                      n;
    size_t                     *outer;       /* by run: the run around it, or
                                                PROF_TURNS_LOOP */
    const prof_turns_copy_t    *copy;
};


static void prof_turns_cut_runs(prof_turns_cut_t *cut);
static uint64_t prof_turns_add_piece(prof_turns_cut_t *cut, uint64_t start,
    uint64_t end, size_t run);
static void prof_turns_blame_inner(const prof_turns_cut_t *cut,
    const prof_turns_piece_t *piece, prof_turns_blame_pt fn, void *data);


int
prof_turns_blame(const prof_turns_copy_t *copy, prof_turns_blame_pt fn,
    void *data)
{
    size_t                   i;
    prof_turns_cut_t        *cut;
    const prof_turns_run_t  *run;

    cut = prof_turns_cut(copy);
    if (cut == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < copy->nruns; i++) {
        run = &copy->runs[i];

        if (run->request && run->stall) {
            prof_turns_span(cut, i, run->start - run->stall, run->start, fn,
                            data);
        }
    }

    for (i = 0; i < cut->n; i++) {
        prof_turns_blame_inner(cut, &cut->pieces[i], fn, data);
    }

    prof_turns_cut_free(cut);

    return PROF_OK;
}


prof_turns_cut_t *
prof_turns_cut(const prof_turns_copy_t *copy)
{
    prof_turns_cut_t  *cut;

    cut = calloc(1, sizeof(prof_turns_cut_t));
    if (cut == NULL) {
        return NULL;
    }

    cut->copy = copy;
    cut->pieces = malloc((2 * copy->nruns + 1) * sizeof(prof_turns_piece_t));
    cut->outer = malloc((copy->nruns + 1) * sizeof(size_t));

    if (cut->pieces == NULL || cut->outer == NULL) {
        prof_turns_cut_free(cut);
        return NULL;
    }

    prof_turns_cut_runs(cut);

    return cut;
}


void
prof_turns_cut_free(prof_turns_cut_t *cut)
{
    if (cut) {
        free(cut->pieces);
        free(cut->outer);
        free(cut);
    }
}


/* each run ends a piece of its outer run, and lets another one begin */

static void
prof_turns_cut_runs(prof_turns_cut_t *cut)
{
    size_t                   i, run, depth;
    uint64_t                 at, next;
    const prof_turns_run_t  *runs;

    runs = cut->copy->runs;
    run = PROF_TURNS_LOOP;
    depth = 0;
    at = 0;

    for (i = 0; i <= cut->copy->nruns; i++) {

        if (i < cut->copy->nruns && runs[i].kind != PROF_TURNS_RUN) {
            cut->outer[i] = PROF_TURNS_LOOP;
            continue;
        }

        next = (i < cut->copy->nruns) ? runs[i].start : UINT64_MAX;

        while (run != PROF_TURNS_LOOP && runs[run].end <= next) {
            at = prof_turns_add_piece(cut, at, runs[run].end, run);
            run = cut->outer[run];
            depth--;
        }

        if (i == cut->copy->nruns) {
            break;
        }

        if (depth == PROF_TURNS_NESTING) {
            cut->outer[i] = PROF_TURNS_LOOP;
            continue;
        }

        if (run != PROF_TURNS_LOOP) {
            (void) prof_turns_add_piece(cut, at, next, run);
        }

        at = next;
        cut->outer[i] = run;
        run = i;
        depth++;
    }
}


/* returns the end of the piece */

static uint64_t
prof_turns_add_piece(prof_turns_cut_t *cut, uint64_t start, uint64_t end,
    size_t run)
{
    prof_turns_piece_t  *piece;

    if (end <= start) {
        return start;
    }

    piece = &cut->pieces[cut->n++];

    piece->start = start;
    piece->end = end;
    piece->run = run;

    return end;
}


void
prof_turns_span(const prof_turns_cut_t *cut, size_t victim, uint64_t at,
    uint64_t to, prof_turns_blame_pt fn, void *data)
{
    size_t                     lo, hi, mid;
    uint64_t                   end;
    const prof_turns_piece_t  *piece;

    if (at < cut->copy->from) {
        end = cut->copy->from < to ? cut->copy->from : to;
        fn(data, victim, PROF_TURNS_OVERWRITTEN, end - at);
        at = end;
    }

    /* the first piece that ends later than the time began */

    lo = 0;
    hi = cut->n;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;

        if (cut->pieces[mid].end <= at) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    for ( /* void */ ; at < to; lo++) {

        piece = &cut->pieces[lo];

        if (lo == cut->n || piece->start >= to) {
            fn(data, victim, PROF_TURNS_LOOP, to - at);
            return;
        }

        if (piece->start > at) {
            fn(data, victim, PROF_TURNS_LOOP, piece->start - at);
            at = piece->start;
        }

        end = piece->end < to ? piece->end : to;

        if (end > at) {
            fn(data, victim, piece->run, end - at);
            at = end;
        }
    }
}


/*
 * The requests of all outer runs could run while an inner run was for another
 * request, or for none.  A request that has several outer runs waits once.
 */

static void
prof_turns_blame_inner(const prof_turns_cut_t *cut,
    const prof_turns_piece_t *piece, prof_turns_blame_pt fn, void *data)
{
    size_t                   victim, inner;
    const prof_turns_run_t  *runs;

    runs = cut->copy->runs;
    victim = cut->outer[piece->run];

    for ( /* void */ ; victim != PROF_TURNS_LOOP; victim = cut->outer[victim]) {

        for (inner = piece->run; inner != victim; inner = cut->outer[inner]) {
            if (runs[inner].request == runs[victim].request) {
                break;
            }
        }

        if (runs[victim].request && inner == victim) {
            fn(data, victim, piece->run, piece->end - piece->start);
        }
    }
}
