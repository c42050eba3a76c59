
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "capture/prof_entries.h"

#include <stddef.h>


#define PROF_ENTRIES_BLOCK  4


static void prof_entries_compact(prof_entries_t *tl, prof_stats_t *st);
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

    if (tl->n == tl->max) {
        prof_entries_compact(tl, st);
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


uint64_t
prof_entries_random(prof_entries_t *tl)
{
    /* xorshift64: Marsaglia, "Xorshift RNGs", triple (13, 7, 17) */

    tl->random ^= tl->random << 13;
    tl->random ^= tl->random >> 7;
    tl->random ^= tl->random << 17;

    return tl->random;
}


static void
prof_entries_compact(prof_entries_t *tl, prof_stats_t *st)
{
    uint32_t          i, j, n;
    prof_interval_t  *ran, *waited, e;

    n = 0;

    for (i = 0; i < tl->n; i += PROF_ENTRIES_BLOCK) {

        ran = NULL;
        waited = NULL;

        for (j = i; j < tl->n && j < i + PROF_ENTRIES_BLOCK; j++) {

            e = tl->entries[j];

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

    if (from->type == PROF_ENTRY_SAMPLE) {
        st->thinned++;
    }
}
