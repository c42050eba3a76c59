
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_hash.h"
#include "capture/prof_entries.h"

#include <stddef.h>


#define PROF_ENTRIES_BLOCK  4

/* less frequent samples save memory if they are one entry in so many */
#define PROF_ENTRIES_SHARE  4

#define PROF_GROUPS_TRIED   8


static prof_waiting_t *prof_entries_group(prof_entries_t *tl, uint64_t group);
static uint32_t prof_entries_compact(prof_entries_t *tl, prof_stats_t *st);
static void prof_entries_merge(prof_entries_t *tl, prof_interval_t *to,
    const prof_interval_t *from, prof_stats_t *st);


_Static_assert(offsetof(prof_interval_t, count)
               == offsetof(prof_entry_t, count)
               && offsetof(prof_interval_t, wall)
                  == offsetof(prof_entry_t, values[PROF_VALUE_WALL])
               && offsetof(prof_interval_t, cpu)
                  == offsetof(prof_entry_t, values[PROF_VALUE_CPU]),
               "an interval is laid out as an entry");


void
prof_entries_init(prof_entries_t *tl, void *mem, size_t size, uint64_t seed)
{
    tl->entries = mem;
    tl->n = 0;
    tl->max = size / sizeof(prof_interval_t);
    tl->random = seed | 1;
    memset(tl->waiting, 0, sizeof(tl->waiting));
}


int
prof_entries_add(prof_entries_t *tl, uint32_t node, uint32_t type,
    uint64_t wall, uint64_t cpu, prof_stats_t *st)
{
    int               rc;
    prof_interval_t  *e;

    if (tl->n) {
        e = &tl->entries[tl->n - 1];

        if (e->node == node && e->type == type) {
            e->count += type == PROF_ENTRY_SAMPLE;
            e->wall += wall;
            e->cpu += cpu;
            return PROF_OK;
        }
    }

    rc = PROF_OK;

    if (tl->n == tl->max
        && prof_entries_compact(tl, st) >= tl->max / PROF_ENTRIES_SHARE)
    {
        rc = PROF_LIMIT;
    }

    e = &tl->entries[tl->n++];

    e->node = node;
    e->type = type;
    e->labels = PROF_NONE;
    e->count = type == PROF_ENTRY_SAMPLE;
    e->wall = wall;
    e->cpu = cpu;

    return rc;
}


void
prof_entries_extend(prof_entries_t *tl, uint64_t wall, uint64_t cpu)
{
    if (tl->n) {
        tl->entries[tl->n - 1].wall += wall;
        tl->entries[tl->n - 1].cpu += cpu;
    }
}


void
prof_entries_wait(prof_entries_t *tl, uint64_t group)
{
    prof_waiting_t  *w;

    w = prof_entries_group(tl, group);

    if (w->group != group) {
        w->group = group;
        w->last = PROF_NONE;
    }

    if (w->last != tl->n - 1) {
        tl->entries[tl->n - 1].labels = w->last;
        w->last = tl->n - 1;
    }
}


void
prof_entries_claim(prof_entries_t *tl, uint64_t group, uint32_t node)
{
    prof_waiting_t   *w;
    prof_interval_t  *e;

    w = prof_entries_group(tl, group);

    if (w->group != group) {
        return;
    }

    while (w->last != PROF_NONE) {
        e = &tl->entries[w->last];
        w->last = e->labels;

        e->node = node;
        e->type = PROF_ENTRY_SAMPLE;
        e->labels = PROF_NONE;
    }
}


/* returns the place of the group, or the one that it may take */

static prof_waiting_t *
prof_entries_group(prof_entries_t *tl, uint64_t group)
{
    uint32_t         i, first;
    prof_waiting_t  *w;

    first = prof_hash(group) >> 32;

    for (i = first; i < first + PROF_GROUPS_TRIED; i++) {
        w = &tl->waiting[i % PROF_GROUPS];

        if (w->group == group || w->group == 0) {
            return w;
        }
    }

    return &tl->waiting[first % PROF_GROUPS];
}


uint64_t
prof_entries_random(prof_entries_t *tl)
{
    /* xorshift64: Marsaglia, "Xorshift RNGs", triple (13, 7, 17) */

    tl->random ^= tl->random << 13;
    tl->random ^= tl->random >> 7;
    tl->random ^= tl->random << 17;

    return tl->random;
}


/* returns the number of entries that were samples */

static uint32_t
prof_entries_compact(prof_entries_t *tl, prof_stats_t *st)
{
    uint32_t          i, j, n, samples;
    prof_interval_t  *ran, *waited, e;

    /* the lists end, since the entries move */

    memset(tl->waiting, 0, sizeof(tl->waiting));

    n = 0;
    samples = 0;

    for (i = 0; i < tl->n; i += PROF_ENTRIES_BLOCK) {

        ran = NULL;
        waited = NULL;

        for (j = i; j < tl->n && j < i + PROF_ENTRIES_BLOCK; j++) {

            e = tl->entries[j];
            e.labels = PROF_NONE;
            samples += (e.count != 0);

            if (e.type == PROF_ENTRY_GAP) {

                if (waited) {
                    prof_entries_merge(tl, waited, &e, st);
                    continue;
                }

                waited = &tl->entries[n];

            } else {

                if (ran) {
                    prof_entries_merge(tl, ran, &e, st);
                    continue;
                }

                ran = &tl->entries[n];
            }

            tl->entries[n++] = e;
        }
    }

    tl->n = n;

    return samples;
}


static void
prof_entries_merge(prof_entries_t *tl, prof_interval_t *to,
    const prof_interval_t *from, prof_stats_t *st)
{
    uint64_t  sum;

    sum = to->wall + from->wall;

    if (sum && prof_entries_random(tl) % sum < from->wall) {
        to->node = from->node;
        to->type = from->type;
    }

    to->count += from->count;
    to->wall = sum;
    to->cpu += from->cpu;

    if (from->count) {
        st->thinned++;
    }
}
