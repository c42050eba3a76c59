
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


typedef struct {
    prof_turns_piece_t         *pieces;      /* ordered, without overlaps */
    size_t                      n;
    size_t                     *outer;       /* by run: the run around it, or
                                                PROF_TURNS_LOOP */
    const prof_turns_copy_t    *copy;
    prof_turns_blame_pt         fn;
    void                       *data;
} prof_turns_blame_t;


static int prof_turns_cut(prof_turns_blame_t *b);
static uint64_t prof_turns_add_piece(prof_turns_blame_t *b, uint64_t start,
    uint64_t end, size_t run);
static void prof_turns_blame_stall(prof_turns_blame_t *b, size_t victim);
static void prof_turns_blame_inner(prof_turns_blame_t *b,
    const prof_turns_piece_t *piece);


int
prof_turns_blame(const prof_turns_copy_t *copy, prof_turns_blame_pt fn,
    void *data)
{
    size_t              i;
    prof_turns_blame_t  b;

    b.copy = copy;
    b.fn = fn;
    b.data = data;

    if (prof_turns_cut(&b) != PROF_OK) {
        return PROF_ERROR;
    }

    for (i = 0; i < copy->nruns; i++) {
        if (copy->runs[i].request && copy->runs[i].stall) {
            prof_turns_blame_stall(&b, i);
        }
    }

    for (i = 0; i < b.n; i++) {
        prof_turns_blame_inner(&b, &b.pieces[i]);
    }

    free(b.pieces);
    free(b.outer);

    return PROF_OK;
}


/* each run ends a piece of its outer run, and lets another one begin */

static int
prof_turns_cut(prof_turns_blame_t *b)
{
    size_t                   i, run, depth;
    uint64_t                 at, next;
    const prof_turns_run_t  *runs;

    b->n = 0;
    b->pieces = malloc((2 * b->copy->nruns + 1) * sizeof(prof_turns_piece_t));
    b->outer = malloc((b->copy->nruns + 1) * sizeof(size_t));

    if (b->pieces == NULL || b->outer == NULL) {
        free(b->pieces);
        free(b->outer);
        return PROF_ERROR;
    }

    runs = b->copy->runs;
    run = PROF_TURNS_LOOP;
    depth = 0;
    at = 0;

    for (i = 0; i <= b->copy->nruns; i++) {

        if (i < b->copy->nruns && runs[i].kind != PROF_TURNS_RUN) {
            b->outer[i] = PROF_TURNS_LOOP;
            continue;
        }

        next = (i < b->copy->nruns) ? runs[i].start : UINT64_MAX;

        while (run != PROF_TURNS_LOOP && runs[run].end <= next) {
            at = prof_turns_add_piece(b, at, runs[run].end, run);
            run = b->outer[run];
            depth--;
        }

        if (i == b->copy->nruns) {
            break;
        }

        if (depth == PROF_TURNS_NESTING) {
            b->outer[i] = PROF_TURNS_LOOP;
            continue;
        }

        if (run != PROF_TURNS_LOOP) {
            (void) prof_turns_add_piece(b, at, next, run);
        }

        at = next;
        b->outer[i] = run;
        run = i;
        depth++;
    }

    return PROF_OK;
}


/* returns the end of the piece */

static uint64_t
prof_turns_add_piece(prof_turns_blame_t *b, uint64_t start, uint64_t end,
    size_t run)
{
    prof_turns_piece_t  *piece;

    if (end <= start) {
        return start;
    }

    piece = &b->pieces[b->n++];

    piece->start = start;
    piece->end = end;
    piece->run = run;

    return end;
}


static void
prof_turns_blame_stall(prof_turns_blame_t *b, size_t victim)
{
    size_t                     lo, hi, mid;
    uint64_t                   at, to, end;
    const prof_turns_run_t    *run;
    const prof_turns_piece_t  *piece;

    run = &b->copy->runs[victim];

    to = run->start;
    at = to - run->stall;

    if (at < b->copy->from) {
        end = b->copy->from < to ? b->copy->from : to;
        b->fn(b->data, victim, PROF_TURNS_OVERWRITTEN, end - at);
        at = end;
    }

    /* the first piece that ends later than the time began */

    lo = 0;
    hi = b->n;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;

        if (b->pieces[mid].end <= at) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    for ( /* void */ ; at < to; lo++) {

        piece = &b->pieces[lo];

        if (lo == b->n || piece->start >= to) {
            b->fn(b->data, victim, PROF_TURNS_LOOP, to - at);
            return;
        }

        if (piece->start > at) {
            b->fn(b->data, victim, PROF_TURNS_LOOP, piece->start - at);
            at = piece->start;
        }

        end = piece->end < to ? piece->end : to;

        if (end > at) {
            b->fn(b->data, victim, piece->run, end - at);
            at = end;
        }
    }
}


/*
 * The requests of all outer runs could run while an inner run was for another
 * request, or for none.  A request that has several outer runs waits once.
 */

static void
prof_turns_blame_inner(prof_turns_blame_t *b, const prof_turns_piece_t *piece)
{
    size_t                   victim, inner;
    const prof_turns_run_t  *runs;

    runs = b->copy->runs;
    victim = b->outer[piece->run];

    for ( /* void */ ; victim != PROF_TURNS_LOOP; victim = b->outer[victim]) {

        for (inner = piece->run; inner != victim; inner = b->outer[inner]) {
            if (runs[inner].request == runs[victim].request) {
                break;
            }
        }

        if (runs[victim].request && inner == victim) {
            b->fn(b->data, victim, piece->run, piece->end - piece->start);
        }
    }
}
