
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: profile
 * runs: beside
 *
 * Merged profiles: nothing is lost, and equal parts become one.
 */


#include "tap.h"

#include "prof_fixture.h"
#include "formats/prof_encode.h"
#include "profile/prof_merge.h"


#define INPUTS  20
#define LINES   20000


/* a line of folded stacks, and its weight so far */

typedef struct {
    char      *stack;
    uint64_t   weight;
} test_line_t;


static void test_one(void);
static void test_sums(void);
static void test_exact(void);
static prof_profile_t *test_random(uint32_t seed);
static uint32_t test_number(uint32_t *seed, uint32_t n);
static void test_fold(const prof_profile_t *p, test_line_t *lines,
    uint32_t *n);
static int test_cmp(const void *one, const void *two);
static void test_objects(void);
static void test_names(void);
static void test_types(void);
static void test_high(void);
static void test_symbolized(void);
static void test_labels(void);
static void test_timelines(void);
static void test_allocs(void);
static void test_facts(void);
static void test_limit(void);


int
main(void)
{
    test_one();
    test_sums();
    test_exact();
    test_objects();
    test_names();
    test_types();
    test_high();
    test_symbolized();
    test_labels();
    test_timelines();
    test_allocs();
    test_facts();
    test_limit();

    return done_testing();
}


/* a profile merged with nothing stays the same */

static void
test_one(void)
{
    size_t           i;
    prof_buf_t       got, want;
    prof_profile_t  *merged, *p;

    p = fixture_full();
    p->aggregated = 0;

    merged = prof_profile_merge((const prof_profile_t *const *) &p, NULL, 1,
                                p->title, PROF_MERGE_TIMELINES);

    ok(merged != NULL, "profiles are merged");
    is_int(merged->aggregated, 0, "the merged profile is a timeline");
    is_int(merged->duration, p->duration,
           "the merged profile has its duration");
    ok(prof_profile_scope(merged, p->scope) == PROF_OK, "scope is given");

    for (i = 0; prof_encoders[i]; i++) {
        prof_buf_init(&got);
        prof_buf_init(&want);

        prof_encoders[i]->encode(p, &want);
        prof_encoders[i]->encode(merged, &got);

        ok(got.len == want.len && memcmp(got.data, want.data, got.len) == 0,
           "%s encodes the merged profile as the original one",
           prof_encoders[i]->name);

        prof_buf_free(&got);
        prof_buf_free(&want);
    }

    prof_profile_destroy(merged);
    prof_profile_destroy(p);
}


static void
test_sums(void)
{
    prof_profile_t  *in[3], *p;

    in[0] = fixture_typical();
    in[1] = fixture_typical();
    in[2] = fixture_typical();

    in[0]->start_realtime = 5000000000;
    in[1]->start_realtime = 4000000000;
    in[1]->duration = 3000000000;
    in[2]->start_realtime = 6000000000;
    in[1]->frequency = 2000;
    in[2]->frequency_end = 10;
    in[1]->peak_space = 100;
    in[2]->peak_space = 10;

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 3,
                           "three", 0);

    is_str(p->title, "three", "the merged profile has its title");
    is_int(p->wall, 3 * in[0]->wall, "wall times are summed");
    is_int(p->running, 3 * in[0]->running, "running times are summed");
    is_int(p->cpu, 3 * in[0]->cpu, "CPU times are summed");
    is_int(p->stats.samples, 3 * in[0]->stats.samples, "samples are summed");
    is_int(p->stats.own_handler_ns, 3 * in[0]->stats.own_handler_ns,
           "other counters are summed");
    is_int(p->start_realtime, 4000000000,
           "the merged profile begins with the earliest one");
    is_int(p->duration, 3000000000,
           "the merged profile ends with the latest one");
    is_int(p->frequency, 2000,
           "the merged profile has the highest frequency");
    is_int(p->frequency_end, 10,
           "the merged profile has the lowest frequency at the end");
    is_int(p->peak_space, 110, "peaks are summed");

    is_int(p->nobjects, in[0]->nobjects, "objects are shared");
    is_int(p->nframes, in[0]->nframes, "frames are shared");
    is_int(p->nnodes, in[0]->nnodes, "stacks are shared");
    is_int(p->aggregated, 1, "entries have no order");
    is_int(ntimes(p), 4, "entries of one stack are merged");
    is_int(time_of(p, 0)->count, 6, "a merged entry has all samples");
    is_int(wall_of(p, 0), 6000000, "a merged entry has all wall time");
    is_int(cpu_of(p, 0), 5970000, "a merged entry has all CPU time");
    is_int(p->nfacts, 1, "common facts are kept");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
    prof_profile_destroy(in[2]);
}


/* random profiles: each stack has the sum of its weights in all of them */

static void
test_exact(void)
{
    uint32_t         i, mode, n, wrong;
    uint64_t         wall;
    prof_merge_t    *m;
    prof_profile_t  *in, *p;

    static test_line_t  got[LINES], want[LINES];

    for (mode = PROF_MODE_WALL; mode <= PROF_MODE_CPU; mode++) {

        m = prof_merge_create("random", 0);
        n = 0;
        wall = 0;

        for (i = 0; i < INPUTS; i++) {
            in = test_random(i);
            in->mode = mode;
            wall += in->wall;

            test_fold(in, want, &n);
            is_int(prof_merge_add(m, in, NULL, 0), PROF_OK,
                   "a profile is added");

            prof_profile_destroy(in);
        }

        p = prof_merge_finish(m);
        is_int(p->wall, wall, "the merged profile has the time of all");

        qsort(want, n, sizeof(test_line_t), test_cmp);

        /* equal stacks become one */

        for (i = 0, wrong = 0; i < n; i++) {
            if (wrong && strcmp(want[wrong - 1].stack, want[i].stack) == 0) {
                want[wrong - 1].weight += want[i].weight;
                free(want[i].stack);
                continue;
            }

            want[wrong++] = want[i];
        }

        n = wrong;
        i = 0;
        test_fold(p, got, &i);
        qsort(got, i, sizeof(test_line_t), test_cmp);

        is_int(i, n, "%" PRIu32 " stacks", n);

        wrong = 0;

        for (i = 0; i < n; i++) {
            wrong += strcmp(got[i].stack, want[i].stack) != 0
                     || got[i].weight != want[i].weight;
            free(got[i].stack);
            free(want[i].stack);
        }

        is_int(wrong, 0, "all have the sum of their weights");

        prof_profile_destroy(p);
    }
}


static prof_profile_t *
test_random(uint32_t seed)
{
    char             name[32];
    uint32_t         exe, frame[40], i, lib, node;
    uint64_t         wall;
    prof_profile_t  *p;

    seed = seed * 7919 + 1;

    p = fixture_create("random");

    /* objects and frames in a different order each time */

    if (seed % 2) {
        exe = fixture_object(p, "/usr/sbin/server", "0d7fd93d");
        lib = fixture_object(p, "/usr/lib/libc.so.6", "51657f81");

    } else {
        lib = fixture_object(p, "/usr/lib/libc.so.6", "51657f81");
        exe = fixture_object(p, "/usr/sbin/server", "0d7fd93d");
    }

    for (i = 0; i < 40; i++) {
        node = (i * 11 + seed) % 40;
        (void) snprintf(name, sizeof(name), "f%" PRIu32, node);
        frame[i] = fixture_frame(p, node % 3 == 0 ? lib : exe,
                                 0x1000 + 16 * node, name);
    }

    for (i = 0; i < 500; i++) {
        node = test_number(&seed, p->nnodes + 1);
        fixture_node(p, node < p->nnodes ? node : PROF_NONE,
                     frame[test_number(&seed, 40)]);

        wall = test_number(&seed, 1000000);
        fixture_entry(p, test_number(&seed, p->nnodes),
                      test_number(&seed, 2), wall, wall / 2);
    }

    return p;
}


static uint32_t
test_number(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1103515245 + 12345;

    return (*seed >> 8) % n;
}


static void
test_fold(const prof_profile_t *p, test_line_t *lines, uint32_t *n)
{
    char        *line, *next, *space;
    prof_buf_t   b;

    prof_buf_init(&b);
    prof_encode_folded.encode(p, &b);
    prof_buf_append(&b, "", 1);

    for (line = b.data; *line; line = next + 1) {
        next = strchr(line, '\n');
        *next = '\0';
        space = strrchr(line, ' ');
        *space = '\0';

        if (*n == LINES) {
            abort();
        }

        lines[*n].stack = fixture_copy(line);
        lines[*n].weight = strtoull(space + 1, NULL, 10);
        (*n)++;
    }

    prof_buf_free(&b);
}


static int
test_cmp(const void *one, const void *two)
{
    return strcmp(((const test_line_t *) one)->stack,
                  ((const test_line_t *) two)->stack);
}


static void
test_objects(void)
{
    prof_profile_t  *in[2], *p;

    in[0] = fixture_create("one");
    fixture_object(in[0], "/usr/sbin/server", "aa");
    fixture_object(in[0], "/usr/lib/plain.so", "");
    fixture_object(in[0], "/usr/lib/changed.so", "bb");
    fixture_object(in[0], "/usr/lib/other.so", "");
    in[0]->objects[0].base = 0x1000000;

    in[1] = fixture_create("two");
    fixture_object(in[1], "/usr/sbin/server (deleted)", "aa");
    fixture_object(in[1], "/usr/lib/plain.so", "");
    fixture_object(in[1], "/usr/lib/changed.so", "cc");
    fixture_object(in[1], "/usr/lib/other.so", "");
    in[1]->objects[0].base = 0x2000000;
    in[1]->objects[3].end = 0x7777;

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "objects", 0);

    is_int(p->nobjects, 6, "the merged profile has six objects");
    is_str(p->objects[0].path, "/usr/sbin/server",
           "objects with one build-id are one object");
    is_int(p->objects[0].base, 0x1000000, "the object keeps its first place");
    is_str(p->objects[4].build_id, "cc", "another build is another object");
    is_int(p->objects[5].end, 0x7777,
           "without a build-id another size is another object");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}


static void
test_names(void)
{
    uint32_t         f;
    prof_profile_t  *in[2], *p;

    in[0] = fixture_create("one");
    f = fixture_name(in[0], PROF_TYPE_STAGE, "access phase");
    fixture_entry(in[0], fixture_node(in[0], PROF_NONE, f), PROF_ENTRY_TURN,
                  1, 1);
    f = fixture_name(in[0], PROF_TYPE_WAITING, "[waiting]");
    fixture_entry(in[0], fixture_node(in[0], PROF_NONE, f), PROF_ENTRY_GAP,
                  10, 0);

    in[1] = fixture_create("two");
    f = fixture_name(in[1], PROF_TYPE_STAGE, "content phase");
    fixture_entry(in[1], fixture_node(in[1], PROF_NONE, f), PROF_ENTRY_TURN,
                  100, 100);
    f = fixture_name(in[1], PROF_TYPE_STAGE, "access phase");
    fixture_entry(in[1], fixture_node(in[1], PROF_NONE, f), PROF_ENTRY_TURN,
                  1000, 1000);
    f = fixture_name(in[1], PROF_TYPE_WAITING, "[waiting]");
    fixture_entry(in[1], fixture_node(in[1], PROF_NONE, f), PROF_ENTRY_GAP,
                  10000, 0);

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "names", 0);

    is_int(p->nframes, 3, "names with different texts are different frames");
    is_int(ntimes(p), 3, "names with different texts are in different stacks");
    is_int(wall_of(p, 0), 1001, "the entries of the access phase are summed");
    is_int(wall_of(p, 1), 10010, "the entries of waiting are summed");
    is_int(p->frames[p->nodes[time_of(p, 1)->node].frame].type,
           PROF_TYPE_WAITING, "the frame of waiting has its type");
    is_int(wall_of(p, 2), 100, "the entries of the content phase are summed");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}


/* without an object, addresses of two processes have nothing in common */

static void
test_types(void)
{
    uint32_t         f, i, k;
    prof_profile_t  *in[2], *p;

    static const struct {
        uint32_t     type;
        uint64_t     pc;
        const char  *name;
        const char  *file;
        uint32_t     line;
    } frames[2][5] = {
        { { PROF_TYPE_CODE, 0x7f0000001000, "[anonymous code]", NULL, 0 },
          { PROF_TYPE_SCRIPT, 0, "handler", "a.lua", 7 },
          { PROF_TYPE_SCRIPT, 0, "handler", "b.lua", 7 },
          { PROF_TYPE_SCRIPT, 0, "handler", "b.lua", 8 },
          { PROF_TYPE_STAGE, 0, "handler", NULL, 0 } },
        { { PROF_TYPE_CODE, 0x7f0000002000, "[anonymous code]", NULL, 0 },
          { PROF_TYPE_SCRIPT, 0, "handler", "b.lua", 8 },
          { PROF_TYPE_SCRIPT, 0, "handler", "a.lua", 7 },
          { PROF_TYPE_STAGE, 0, "handler", NULL, 0 },
          { PROF_TYPE_NOTE, 0, "handler", NULL, 0 } }
    };

    for (i = 0; i < 2; i++) {
        in[i] = fixture_create("a worker");

        for (k = 0; k < 5; k++) {
            f = fixture_name(in[i], frames[i][k].type, frames[i][k].name);
            in[i]->frames[f].pc = frames[i][k].pc;
            in[i]->frames[f].line = frames[i][k].line;
            in[i]->frames[f].file = frames[i][k].file
                                    ? fixture_copy(frames[i][k].file) : NULL;
            fixture_entry(in[i], fixture_node(in[i], PROF_NONE, f),
                          PROF_ENTRY_SAMPLE, 1 << k, 0);
        }
    }

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "types", 0);

    is_int(p->nframes, 6, "type, name, file and line tell frames apart");
    is_int(wall_of(p, 0), 2,
           "generated code of two processes is one frame");
    is_int(wall_of(p, 1), 2 + 4, "a line of a script is one frame");
    is_int(wall_of(p, 2), 4,
           "the same line of another script is another frame");
    is_int(wall_of(p, 3), 8 + 2, "another line of the script is another frame");
    is_int(wall_of(p, 4), 16 + 8, "stages of one name are one frame");
    is_int(p->frames[p->nodes[time_of(p, 5)->node].frame].type,
           PROF_TYPE_NOTE, "a note of the same name stays a note");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}


/* of an object, and of none: the page [vsyscall] */

static void
test_high(void)
{
    uint32_t         f, i, k;
    prof_profile_t  *in[2], *p;

    for (i = 0; i < 2; i++) {
        in[i] = fixture_create("a worker");
        fixture_object(in[i], "/usr/sbin/server", "aa");

        for (k = 0; k < 4; k++) {
            f = fixture_frame(in[i], k / 2 ? PROF_NONE : 0,
                              k % 2 ? 0xffffffffff600400 : 0x7fffffffff600400,
                              NULL);
            fixture_entry(in[i], fixture_node(in[i], PROF_NONE, f),
                          PROF_ENTRY_SAMPLE, 1, 0);
        }
    }

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "high", 0);

    is_int(p->nframes, 4, "the highest bit of an address counts");
    ok(p->frames[1].pc == 0xffffffffff600400
       && p->frames[2].pc == 0x7fffffffff600400,
       "the highest bit of an address is kept");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}


static void
test_symbolized(void)
{
    uint32_t         f, i;
    prof_profile_t  *in[3], *p;

    for (i = 0; i < 3; i++) {
        in[i] = fixture_create("a worker");
        fixture_object(in[i], "/usr/sbin/server", "aa");
        f = fixture_frame(in[i], 0, 0x1000, NULL);
        fixture_entry(in[i], fixture_node(in[i], PROF_NONE, f),
                      PROF_ENTRY_SAMPLE, 1, 1);
    }

    in[1]->frames[0].name = fixture_copy("server+0x1000");
    in[2]->frames[0].name = fixture_copy("main");
    in[2]->frames[0].file = fixture_copy("main.c");
    in[2]->frames[0].line = 7;
    in[2]->frames[0].source = PROF_SOURCE_SYMBOLS;
    in[2]->frames[0].ninlines = 1;
    in[2]->inlines = calloc(1, sizeof(prof_inline_t));
    in[2]->inlines[0].name = fixture_copy("put_in");
    in[2]->ninlines = 1;

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 3,
                           "names", 0);

    is_int(p->nframes, 1, "frames of one function are merged");
    is_str(p->frames[0].name, "main",
           "a merged frame has the best name of all");
    is_str(p->frames[0].file, "main.c",
           "a merged frame has the file of the best name");
    is_int(p->frames[0].line, 7,
           "a merged frame has the line of the best name");
    is_str(p->inlines[p->frames[0].inlines].name, "put_in",
           "a merged frame has the inlined functions");

    prof_profile_destroy(p);

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 1,
                           "names", 0);
    ok(p->frames[0].name == NULL, "a name may be missing");
    prof_profile_destroy(p);

    for (i = 0; i < 3; i++) {
        prof_profile_destroy(in[i]);
    }
}


static void
test_labels(void)
{
    uint32_t             set;
    uint64_t             main_wall, pool_wall;
    prof_profile_t      *in[2], *p;
    prof_merge_label_t   label[2];

    in[0] = fixture_typical();
    in[1] = fixture_typical();

    set = prof_profile_labels(in[1], PROF_NONE, "thread", "pool", NULL);
    time_of(in[1], 0)->labels = set;
    time_of(in[1], 1)->labels = prof_profile_labels(in[1], set, "worker",
                                                   "none", NULL);

    label[0].name = "worker";
    label[0].value = "100";
    label[0].unit = NULL;
    label[1] = label[0];
    label[1].value = "200";

    p = prof_profile_merge((const prof_profile_t *const *) in, label, 2,
                           "workers", 0);

    is_int(ntimes(p), 8, "entries of different labels remain apart");

    main_wall = 0;
    pool_wall = 0;

    for (set = 0; set < ntimes(p); set++) {
        if (strcmp(prof_profile_label_find(p, time_of(p, set)->labels,
                                           "worker")->value, "200")
            == 0)
        {
            if (prof_profile_label_find(p, time_of(p, set)->labels, "thread"))
            {
                pool_wall += wall_of(p, set);

            } else {
                main_wall += wall_of(p, set);
            }
        }
    }

    is_int(pool_wall, 2000000, "time of the thread, a label is replaced");
    is_int(main_wall, in[1]->wall - 2000000,
           "the other threads have the rest of the time");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}


static void
test_timelines(void)
{
    uint32_t         i, wrong;
    prof_profile_t  *in[2], *p;

    in[0] = fixture_typical();
    in[1] = fixture_typical();

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "timelines", PROF_MERGE_TIMELINES);

    is_int(ntimes(p), 2 * ntimes(in[0]), "the merged profile has all entries");
    is_int(p->aggregated, 0, "the merged profile has an order");

    wrong = 0;

    for (i = 0; i < ntimes(p); i++) {
        wrong += wall_of(p, i)
                 != wall_of(in[0], i % ntimes(in[0]));
    }

    is_int(wrong, 0, "the second timeline follows the first one");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}


static void
test_allocs(void)
{
    prof_profile_t  *in[2], *p;

    in[0] = fixture_full();
    in[1] = fixture_full();
    in[0]->mode = PROF_MODE_OBJECT;
    alloc_of(in[0], 0)->values[PROF_VALUE_INUSE_SPACE] = 1000;
    alloc_of(in[1], 0)->values[PROF_VALUE_INUSE_SPACE] = 24;

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "memory", 0);

    is_int(p->mode, PROF_MODE_OBJECT,
           "the merged profile has the mode of the first one");
    is_int(nallocs(p), 1, "equal stacks are one stack");
    is_int(alloc_of(p, 0)->values[PROF_VALUE_ALLOC_OBJECTS], 20,
           "allocated objects are summed");
    is_int(alloc_of(p, 0)->values[PROF_VALUE_ALLOC_SPACE], 81920,
           "allocated bytes are summed");
    is_int(alloc_of(p, 0)->values[PROF_VALUE_INUSE_OBJECTS], 2,
           "objects in use are summed");
    is_int(alloc_of(p, 0)->values[PROF_VALUE_INUSE_SPACE], 1024,
           "bytes in use are summed");
    is_str(prof_profile_label_find(p, alloc_of(p, 0)->labels, "size")->unit,
           "bytes", "the merged profile has the labels");
    is_int(p->alloc_interval, 524288, "the merged profile has the interval");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}


static void
test_facts(void)
{
    prof_profile_t  *in[2], *p;

    in[0] = fixture_create("one");
    prof_profile_fact(in[0], "pid", "1", 1);
    prof_profile_label(in[0], "server", "a", 1);
    prof_profile_fact(in[0], "version", "1.22", 4);

    in[1] = fixture_create("two");
    prof_profile_label(in[1], "server", "a", 1);
    prof_profile_fact(in[1], "pid", "2", 1);

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "facts", 0);

    is_int(p->nfacts, 1, "facts that differ are left out");
    is_str(p->facts[0].name, "server",
           "facts that are the same in all profiles are kept");
    is_int(p->facts[0].label, 1, "the fact is a label");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}


/* a tree that is larger than the limit */

static void
test_limit(void)
{
    uint32_t         f, i, node;
    uint64_t         sum;
    prof_profile_t  *in[2], *p;

    for (i = 0; i < 2; i++) {
        in[i] = fixture_create("large");
        fixture_object(in[i], "/usr/sbin/server", i ? "aa" : "bb");
        f = fixture_frame(in[i], 0, 0x1000, "recursive");

        node = PROF_NONE;

        while (in[i]->nnodes < PROF_MERGE_NODES - i - 1) {
            node = fixture_node(in[i], node, f);
        }

        fixture_entry(in[i], node, PROF_ENTRY_SAMPLE, 100, 100);

        /* a node that exists already */

        fixture_entry(in[i], 0, PROF_ENTRY_SAMPLE, 10, 10);
    }

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "limit", 0);

    ok(p != NULL && p->nnodes <= PROF_MERGE_NODES + 1, "nodes are limited");
    is_int(p->stats.lost_tree, 1, "a counter tells that a stack was cut");

    sum = 0;

    for (i = 0; i < ntimes(p); i++) {
        sum += wall_of(p, i);
    }

    is_int(sum, 220, "the time of the stack remains");

    prof_profile_destroy(p);

    /* a root that has no place */

    ntimes(in[1]) = 0;
    fixture_frame(in[1], 0, 0x2000, "other");
    node = fixture_node(in[1], PROF_NONE, in[1]->nframes - 1);
    fixture_entry(in[1], node, PROF_ENTRY_SAMPLE, 1, 1);

    p = prof_profile_merge((const prof_profile_t *const *) in, NULL, 2,
                           "limit", 0);

    node = time_of(p, ntimes(p) - 1)->node;
    is_str(p->frames[p->nodes[node].frame].name, "[call tree full]",
           "a stack that does not fit ends at the note of a full tree");
    is_int(p->stats.lost_tree, 1, "a stack that does not fit is counted");

    prof_profile_destroy(p);
    prof_profile_destroy(in[0]);
    prof_profile_destroy(in[1]);
}
