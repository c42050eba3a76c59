
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "capture/prof_beside.h"
#include "heap/prof_heap_state.h"

#include <stdlib.h>
#include <string.h>


#define PROF_BESIDE_FIRST   16

/* waits that are kept; then the older half is forgotten */
#define PROF_BESIDE_WAITS   2048

/* waits that are shown beside one wait at a time, the longest ones */
#define PROF_BESIDE_SHOWN   8

/* frames of a wait below "[waiting]" */
#define PROF_BESIDE_FRAMES  80

/* ns; a gap is not divided for less */
#define PROF_BESIDE_NS      50000

#define prof_beside_length(wait)  ((wait)->time.ready - (wait)->time.since)


/* a wait's frames below "[waiting]", outermost first */

typedef struct {
    uintptr_t             frames[PROF_BESIDE_FRAMES];
    uint32_t              n;
    uint32_t              scripts;     /* index of the first script's place */
} prof_beside_stack_t;


/* the waits at the moment that the walk over the timeline has reached */

typedef struct {
    prof_beside_t        *beside;
    prof_tree_t          *tree;
    prof_stats_t         *stats;
    uint32_t             *active;      /* indexes of waits */
    uint32_t              nactive;
    uint32_t              next;        /* the waits before end earlier */
} prof_beside_walk_t;


static int prof_beside_overlap(const prof_beside_t *b);
static void prof_beside_critical(prof_beside_t *b);
static uint32_t prof_beside_split(prof_entries_t *tl, uint32_t i,
    uint64_t first);
static uint32_t prof_beside_node(prof_beside_walk_t *w,
    const prof_beside_wait_t *critical, uint64_t from, uint64_t to);
static void prof_beside_activate(prof_beside_walk_t *w, uint64_t from,
    uint64_t to);
static int prof_beside_shows(const prof_beside_wait_t *wait);
static int prof_beside_covers(const prof_beside_wait_t *wait, uint64_t from,
    uint64_t to);
static void prof_beside_stack(const prof_tree_t *tree, uint32_t node,
    prof_beside_stack_t *stack);


void
prof_beside_add(prof_beside_t *b, const prof_await_t *time, uint64_t counted,
    uint32_t node)
{
    uint32_t             max;
    prof_beside_wait_t  *wait;

    if (b->n == b->max) {

        max = b->max ? 2 * b->max : PROF_BESIDE_FIRST;

        if (max <= PROF_BESIDE_WAITS) {

            prof_heap_mute();
            wait = realloc(b->waits, max * sizeof(prof_beside_wait_t));
            prof_heap_unmute();

            if (wait == NULL) {
                return;
            }

            b->waits = wait;
            b->max = max;

        } else {
            b->n = b->max / 2;
            memmove(b->waits, b->waits + b->n,
                    b->n * sizeof(prof_beside_wait_t));
        }
    }

    wait = &b->waits[b->n++];

    memset(wait, 0, sizeof(prof_beside_wait_t));

    wait->time = *time;
    wait->node = node;
    wait->known = (time->since != 0);

    if (time->since == 0 || time->since > counted) {
        wait->time.since = counted;
    }

    /* the turn may have begun before the sampled end of the turn before it */

    if (time->end < counted) {
        wait->time.end = counted;
    }
}


void
prof_beside_divide(prof_beside_t *b, prof_tree_t *tree,
    prof_entries_t *timeline, uint64_t end, prof_stats_t *st)
{
    uint32_t                   i, k;
    uint64_t                   from, middle;
    prof_interval_t           *e;
    prof_beside_walk_t         walk;
    const prof_beside_wait_t  *critical;

    walk.active = prof_beside_overlap(b) ? malloc(b->n * sizeof(uint32_t))
                                         : NULL;

    if (walk.active == NULL) {
        free(b->waits);
        return;
    }

    walk.beside = b;
    walk.tree = tree;
    walk.stats = st;
    walk.nactive = 0;
    walk.next = b->n;

    prof_beside_critical(b);

    k = b->n;

    for (i = timeline->n; i-- && k; end = from) {

        e = &timeline->entries[i];
        from = end - e->wall;

        if (e->type != PROF_ENTRY_GAP || e->wall == 0) {
            continue;
        }

        middle = from + e->wall / 2;

        while (k && (!b->waits[k - 1].critical
                     || b->waits[k - 1].time.since > middle))
        {
            k--;
        }

        if (k == 0) {
            break;
        }

        critical = &b->waits[k - 1];

        if (critical->time.ready > from + PROF_BESIDE_NS
            && critical->time.ready + PROF_BESIDE_NS < end)
        {
            /* the awaited event occurred: the rest is another cause */

            i = prof_beside_split(timeline, i, critical->time.ready - from);
            e = &timeline->entries[i];
            end = from + e->wall;
            middle = from + e->wall / 2;
        }

        if (critical->time.ready > middle) {
            e->node = prof_beside_node(&walk, critical, from, end);
        }
    }

    for (i = 0; i < b->n; i++) {
        st->waits_left_out += (prof_beside_shows(&b->waits[i])
                               && !b->waits[i].shown);
    }

    free(walk.active);
    free(b->waits);
}


static int
prof_beside_overlap(const prof_beside_t *b)
{
    uint32_t  i;

    for (i = 1; i < b->n; i++) {
        if (b->waits[i].time.since < b->waits[i - 1].time.end) {
            return 1;
        }
    }

    return 0;
}


/* the event of a wait is the begin of a turn, in which other waits begin */

static void
prof_beside_critical(prof_beside_t *b)
{
    uint32_t  i;
    uint64_t  begin;

    begin = UINT64_MAX;

    for (i = b->n; i--; /* void */ ) {
        if (b->waits[i].time.end <= begin) {
            b->waits[i].critical = 1;
            begin = b->waits[i].time.since;
        }
    }
}


/* splits an entry; returns the index of its first part */

static uint32_t
prof_beside_split(prof_entries_t *tl, uint32_t i, uint64_t first)
{
    prof_interval_t  *e;

    if (tl->n == tl->max) {
        return i;
    }

    e = &tl->entries[i];

    memmove(e + 1, e, (tl->n++ - i) * sizeof(prof_interval_t));

    e[0].wall = first;
    e[1].wall -= first;

    return i;
}


/* returns the node of a gap: the critical wait, with the waits beside it */

static uint32_t
prof_beside_node(prof_beside_walk_t *w, const prof_beside_wait_t *critical,
    uint64_t from, uint64_t to)
{
    uint32_t              i, k, n, node;
    prof_beside_wait_t   *wait, *shown[PROF_BESIDE_SHOWN];
    prof_beside_stack_t   own, stack;

    prof_beside_activate(w, from, to);

    /* the longest waits, in the order of their lengths */

    n = 0;

    for (i = 0; i < w->nactive; i++) {
        wait = &w->beside->waits[w->active[i]];

        if (!prof_beside_covers(wait, from, to)) {
            continue;
        }

        for (k = n;
             k && prof_beside_length(shown[k - 1]) < prof_beside_length(wait);
             k--)
        {
            if (k < PROF_BESIDE_SHOWN) {
                shown[k] = shown[k - 1];
            }
        }

        if (k < PROF_BESIDE_SHOWN) {
            shown[k] = wait;
            n += (n < PROF_BESIDE_SHOWN);
        }
    }

    node = critical->node;

    if (n) {
        prof_beside_stack(w->tree, node, &own);
    }

    for (i = 0; i < n; i++) {

        shown[i]->shown = 1;

        prof_beside_stack(w->tree, shown[i]->node, &stack);

        /* the place of a script that waits for all of them is there already */

        if (stack.n - stack.scripts == own.n - own.scripts
            && memcmp(stack.frames + stack.scripts, own.frames + own.scripts,
                      (own.n - own.scripts) * sizeof(uintptr_t)) == 0)
        {
            stack.n = stack.scripts;
        }

        node = prof_tree_frame(w->tree, node, PROF_FRAME_BESIDE, w->stats);

        for (k = 0; k < stack.n; k++) {
            node = prof_tree_frame(w->tree, node, stack.frames[k], w->stats);
        }
    }

    return node;
}


/* adds the waits that ended after "from", and drops those that began later */

static void
prof_beside_activate(prof_beside_walk_t *w, uint64_t from, uint64_t to)
{
    uint32_t                   i, n;
    const prof_beside_wait_t  *wait, *waits;

    waits = w->beside->waits;

    while (w->next && waits[w->next - 1].time.end > from) {

        wait = &waits[--w->next];

        if (prof_beside_shows(wait)) {
            w->active[w->nactive++] = w->next;
        }
    }

    for (i = 0, n = 0; i < w->nactive; i++) {
        if (waits[w->active[i]].time.since < to) {
            w->active[n++] = w->active[i];
        }
    }

    w->nactive = n;
}


static int
prof_beside_shows(const prof_beside_wait_t *wait)
{
    return wait->known && !wait->critical
           && wait->time.ready > wait->time.since + PROF_BESIDE_NS;
}


/* returns whether the wait lasted for at least a half of this time */

static int
prof_beside_covers(const prof_beside_wait_t *wait, uint64_t from, uint64_t to)
{
    uint64_t  begin, end;

    begin = wait->time.since > from ? wait->time.since : from;
    end = wait->time.ready < to ? wait->time.ready : to;

    return end > begin && end - begin >= (to - from) / 2;
}


static void
prof_beside_stack(const prof_tree_t *tree, uint32_t node,
    prof_beside_stack_t *stack)
{
    uint32_t   i;
    uintptr_t  frame;

    stack->n = 0;

    while (node != PROF_NONE && tree->nodes[node].parent != PROF_NONE
           && stack->n < PROF_BESIDE_FRAMES)
    {
        stack->frames[stack->n++] = prof_key_pc(tree->nodes[node].key);
        node = tree->nodes[node].parent;
    }

    for (i = 0; i < stack->n / 2; i++) {
        frame = stack->frames[i];
        stack->frames[i] = stack->frames[stack->n - 1 - i];
        stack->frames[stack->n - 1 - i] = frame;
    }

    for (i = 0; i < stack->n && !prof_frame_is_script(stack->frames[i]); i++) {
        /* void */
    }

    stack->scripts = i;
}
