
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: base
 * runs: beside
 *
 * Spare mappings: which are used again, and which are given back.
 */


#include "tap.h"

#include "base/prof_spare.h"

#include <sys/mman.h>


#define SIZE  (1024 * 1024)


static int used(const char *p, size_t size);
static int mapped(void *p);


int
main(void)
{
    int    i, again;
    char  *p, *q, *many[2 * PROF_SPARE_MAX];

    p = prof_spare_map(SIZE);
    ok(p != NULL && !used(p, SIZE), "a first mapping is empty");

    p[SIZE - 1] = 1;
    prof_spare_unmap(p, SIZE, PROF_SPARE_USED);

    q = prof_spare_map(2 * SIZE);
    ok(q != p, "another size has another mapping");
    prof_spare_unmap(q, 2 * SIZE, PROF_SPARE_USED + 1);

    q = prof_spare_map(SIZE);
    ok(q == p && q[SIZE - 1] == 1, "a mapping of little use is used again");

    p = prof_spare_map(SIZE);
    ok(p != q, "a mapping has one owner");
    prof_spare_unmap(p, SIZE, PROF_SPARE_USED + 1);
    prof_spare_unmap(q, SIZE, PROF_SPARE_USED + 1);

    p = prof_spare_map(SIZE);
    ok(!used(p, SIZE), "a mapping of much use is given back");
    prof_spare_unmap(p, SIZE, PROF_SPARE_USED + 1);

    p = prof_spare_map(SIZE);
    p[SIZE - 1] = 1;
    prof_spare_leave(p, SIZE, PROF_SPARE_USED);

    q = prof_spare_map(SIZE);
    ok(q == p && !prof_spare_has_left(),
       "a mapping of little use is not left");

    p = prof_spare_map(SIZE);
    prof_spare_leave(p, SIZE, PROF_SPARE_USED + 1);
    prof_spare_leave(q, SIZE, PROF_SPARE_USED + 1);

    ok(prof_spare_has_left(), "mappings of much use are left");
    ok(mapped(p) && mapped(q), "mappings that are left exist");

    prof_spare_trim();

    ok(!prof_spare_has_left() && !mapped(p) && !mapped(q),
       "mappings that were left are unmapped");

    for (i = 0; i < 2 * PROF_SPARE_MAX; i++) {
        many[i] = prof_spare_map(SIZE);
        many[i][0] = 1;
    }

    for (i = 0; i < 2 * PROF_SPARE_MAX; i++) {
        prof_spare_unmap(many[i], SIZE, 0);
    }

    again = 0;

    for (i = 0; i < 2 * PROF_SPARE_MAX; i++) {
        again += used(prof_spare_map(SIZE), SIZE);
    }

    is_int(again, PROF_SPARE_MAX, "the maximum number of mappings is kept");

    return done_testing();
}


static int
used(const char *p, size_t size)
{
    size_t  i;

    for (i = 0; i < size; i++) {
        if (p[i]) {
            return 1;
        }
    }

    return 0;
}


static int
mapped(void *p)
{
    unsigned char  pages[SIZE / 4096];

    return mincore(p, SIZE, pages) == 0;
}
