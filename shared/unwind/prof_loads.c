
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Detects which objects stayed at their place since the last snapshot.
 *
 * Context: not in a signal.
 */


#include "unwind/prof_snapshot.h"


/* an object in this number of consecutive snapshots is assumed to stay */
#define PROF_SNAPSHOT_STAYS  16


static int prof_snapshot_live(const prof_snapshot_t *s,
    const prof_range_t *range);
static int prof_snapshot_stays(const prof_snapshot_t *s,
    const prof_range_t *range);


/*
 * Decides which objects are still those of the old snapshot.  The loader
 * counts loads, and appends loaded objects to its list.  So new objects are at
 * the end of the list.
 *
 * Some loads have no new object: an object was loaded and unloaded, or
 * unloaded and loaded again.  One such load cannot have changed the
 * place of an object that exists before and after it.  With two such loads,
 * another object may have used the place of an object for a while.
 *
 * If there are more loads than objects, the order of the list gives no
 * information.  Then an object is assumed to stay if the first snapshot or
 * many consecutive snapshots contain it, and if no other object was seen at
 * its place.
 */

void
prof_snapshot_account(prof_snapshot_t *s)
{
    uint32_t       i, n;
    uint64_t       adds;
    prof_found_t  *found;

    adds = s->list.adds - s->old->adds;
    n = 0;

    for (i = 0; i < s->n; i++) {
        n += !prof_snapshot_live(s, s->found[i].from);
    }

    s->unseen = (adds > n) ? (uint32_t) (adds - n) : 0;

    for (i = 0; i < s->n; i++) {
        found = &s->found[i];

        found->same = prof_snapshot_live(s, found->from)
                      ? s->unseen < 2 || found->place + adds <= s->list.n
                        || prof_snapshot_stays(s, found->from)
                      : found->from && s->unseen == 0;
    }
}


static int
prof_snapshot_live(const prof_snapshot_t *s, const prof_range_t *range)
{
    return range >= s->old->ranges
           && range < s->old->ranges + s->old->info.objects;
}


static int
prof_snapshot_stays(const prof_snapshot_t *s, const prof_range_t *range)
{
    uint32_t             i;
    const prof_range_t  *other;

    if (range->age < PROF_SNAPSHOT_STAYS) {
        return 0;
    }

    for (i = 0; i < s->old->info.unloaded; i++) {
        other = &s->old->gone[i];

        if (other->start < range->end && other->end > range->start) {
            return 0;
        }
    }

    return 1;
}


uint32_t
prof_snapshot_age(const prof_snapshot_t *s, const prof_found_t *found)
{
    uint32_t  age;

    if (s->old == NULL) {
        return PROF_SNAPSHOT_STAYS;
    }

    if (!prof_snapshot_live(s, found->from)
        || (s->remember && !found->same))
    {
        return 0;
    }

    age = found->from->age;

    return (age < PROF_SNAPSHOT_STAYS) ? age + 1 : age;
}
