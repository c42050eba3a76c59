
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: scripts
 * runs: beside
 *
 * Stacks that engines take of their known scripts.
 */


#include "base/prof_base.h"

#include "tap.h"

#include "scripts/prof_engine.h"
#include "unwind/prof_walk.h"

#include <string.h>


static uint32_t test_interpreter(int (*frame)(prof_walk_t *w));
static int test_first(prof_walk_t *w);
static int test_second(prof_walk_t *w);
static int test_other(prof_walk_t *w);
static int test_third(prof_walk_t *w);


static prof_unwind_t      *test_unwind;
static prof_walk_cache_t   test_cache;
static uintptr_t           test_pcs[PROF_MAX_DEPTH];
static uint32_t            test_calls[3];

static int               (*test_frames[])(prof_walk_t *w) = {
    test_first, test_second, test_other, test_third
};


int
main(void)
{
    uint32_t            i, n;
    prof_engine_code_t  code;

    plan(5);

    test_unwind = prof_unwind_create();

    if (!ok(test_unwind != NULL, "snapshot")) {
        return done_testing();
    }

    n = test_interpreter(test_first);

    ok(test_calls[0] == 1 && n > 2, "the engine has its frame");

    (void) test_interpreter(test_second);

    is_int(test_calls[1], 1, "another function of the engine has its frame");
    is_int(test_calls[0], 1, "the first one has no frame of the second stack");

    /* all places for engines are free; the last engine has the interpreter */

    memset(&code, 0, sizeof(code));

    for (i = 1; i < PROF_ENGINES; i++) {
        code.frame = test_frames[i];
        prof_unwind_engine(test_unwind, &code);
    }

    (void) test_interpreter(NULL);

    is_int(test_calls[2], 1, "as many engines as before can be added");

    prof_unwind_release(test_unwind);

    return done_testing();
}


/* NULL: the stack is taken with the engines of the snapshot, and a last one */

static __attribute__((noinline)) uint32_t
test_interpreter(int (*frame)(prof_walk_t *w))
{
    size_t               len;
    uint32_t             n, end;
    uintptr_t            top;
    ucontext_t           uc;
    prof_stats_t         stats;
    prof_engine_code_t   code;

    /* the frame itself may have 5 kilobytes above this address */

    top = (uintptr_t) __builtin_frame_address(0) + 8192;

    code.start = prof_unwind_function(test_unwind,
                                      (uintptr_t) test_interpreter, &len);
    code.end = code.start + len;
    code.compiles = 0;
    code.frame = frame;

    if (frame) {
        return prof_engine_take(test_unwind, &code, &test_cache, top, test_pcs);
    }

    code.frame = test_third;
    prof_unwind_engine(test_unwind, &code);

    memset(&stats, 0, sizeof(stats));
    test_cache.snapshot = 0;

    prof_arch_here(&uc);

    n = prof_walk(test_unwind, &test_cache, &uc, top, test_pcs, PROF_MAX_DEPTH,
                  &stats, &end);

    return n;
}


static int
test_first(prof_walk_t *w)
{
    test_calls[0]++;

    return PROF_WALK_OTHER;
}


static int
test_second(prof_walk_t *w)
{
    test_calls[1]++;

    return PROF_WALK_OTHER;
}


static int
test_other(prof_walk_t *w)
{
    return PROF_WALK_OTHER;
}


static int
test_third(prof_walk_t *w)
{
    test_calls[2]++;

    return PROF_WALK_OTHER;
}
