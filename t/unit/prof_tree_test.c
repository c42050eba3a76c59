
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: stacks
 * runs: beside
 *
 * The call tree, the entries of a timeline and the sample ring: their content,
 * and their behavior when their memory is full.
 */


#include "tap.h"

#include "capture/prof_entries.h"
#include "stacks/prof_ring.h"
#include "stacks/prof_tree.h"


static void test_tree(void);
static void test_tree_growth(void);
static void test_tree_full(void);
static void test_entries(void);
static void test_entries_full(void);
static void test_entries_unbiased(void);
static void test_ring(void);
static void test_ring_full(void);


static void
test_tree(void)
{
    uint32_t      a, b, c, d;
    uintptr_t     ab[] = { 0x1002000, 0x1001000 };
    uintptr_t     ac[] = { 0x1003000, 0x1001000 };
    uintptr_t     bb[] = { 0x1001000, 0x1001000 };
    uintptr_t     script[] = { PROF_FRAME_SCRIPT | 1, 0x1002000, 0x1001000 };
    prof_tree_t   t;
    prof_stats_t  st;
    static char   mem[65536] __attribute__((aligned(8)));

    memset(&st, 0, sizeof(st));
    prof_tree_init(&t, mem, sizeof(mem));

    a = prof_tree_stack(&t, PROF_NONE, ab, 2, &st);
    b = prof_tree_stack(&t, PROF_NONE, ac, 2, &st);
    c = prof_tree_stack(&t, PROF_NONE, ab, 2, &st);
    d = prof_tree_stack(&t, PROF_NONE, bb, 2, &st);

    is_int(c, a, "the same stack has the same node");
    ok(a != b, "another stack has another node");
    is_int(t.nodes[a].parent, t.nodes[b].parent,
           "both nodes have the same parent");
    is_int(t.nodes[d].parent, t.nodes[a].parent, "a recursion has two nodes");
    ok(t.nodes[d].key != t.nodes[t.nodes[d].parent].key,
       "an address and the same return address differ");

    is_int(prof_key_pc(t.nodes[a].key), 0x1002000,
           "the key of a node contains its address");
    is_int(prof_key_call(t.nodes[a].key), 0,
           "the innermost address is no return address");
    is_int(prof_key_call(t.nodes[t.nodes[a].parent].key), 1,
           "the address of the caller is a return address");

    d = prof_tree_stack(&t, PROF_NONE, script, 3, &st);
    is_int(t.nodes[d].parent, a,
           "an address that runs a script is no return address");

    ok(prof_key_pc(prof_key(0xffffffffff600400, 1)) == 0xffffffffff600400,
       "the highest bit of an address is kept");

    c = prof_tree_frame(&t, PROF_NONE, PROF_FRAME_TRUNCATED, &st);
    d = prof_tree_stack(&t, c, ab, 2, &st);
    is_int(t.nodes[t.nodes[d].parent].parent, c,
           "a stack may stand below another node");

    is_int(prof_tree_stack(&t, c, ab, 0, &st), c,
           "an empty stack adds no node");

    is_int(st.lost_tree, 0, "no stack is lost");
}


static void
test_tree_growth(void)
{
    uint32_t      i, found, few;
    uintptr_t     pcs[2];
    prof_tree_t   t;
    prof_stats_t  st;
    static char   mem[1024 * 1024] __attribute__((aligned(8)));

    memset(&st, 0, sizeof(st));
    memset(mem, 1, sizeof(mem));
    prof_tree_init(&t, mem, sizeof(mem));

    few = t.mask;
    ok((few + 1) * sizeof(uint32_t) <= 4096,
       "a new tree has at most one page of chains");

    pcs[1] = 0x200000;

    for (i = 0; i < 50000; i++) {
        pcs[0] = 0x100000 + i;

        if (prof_tree_stack(&t, PROF_NONE, pcs, 2, &st) != i + 2) {
            break;
        }
    }

    is_int(i, 50000, "each stack has its own node");

    for (i = 0, found = 0; i < 50000; i++) {
        pcs[0] = 0x100000 + i;
        found += prof_tree_stack(&t, PROF_NONE, pcs, 2, &st) == i + 2;
    }

    is_int(found, 50000,
           "each stack is found again when there are more chains");
    ok(t.nnodes == 50002 && st.lost_tree == 0, "no stack is lost");
    ok(t.mask > few && t.mask == t.max_mask,
       "a full tree has more chains than a new one");
}


static void
test_tree_full(void)
{
    uint32_t      i, node, last;
    uintptr_t     pcs[3];
    prof_tree_t   t;
    prof_stats_t  st;
    static char   mem[8192] __attribute__((aligned(8)));
    static char   guard[64];

    memset(&st, 0, sizeof(st));
    memset(guard, 0x5a, sizeof(guard));
    prof_tree_init(&t, mem, sizeof(mem) - sizeof(guard));
    memcpy(mem + sizeof(mem) - sizeof(guard), guard, sizeof(guard));

    last = 0;

    for (i = 0; i < 1000; i++) {
        pcs[0] = 0x100000 + i;
        pcs[1] = 0x200000;
        pcs[2] = 0x300000;

        node = prof_tree_stack(&t, PROF_NONE, pcs, 3, &st);

        if (node >= t.nnodes) {
            break;
        }

        last = node;
    }

    is_int(i, 1000, "every stack has a node");
    ok(st.lost_tree > 0 && st.lost_tree < 1000,
       "stacks that do not fit are counted: %d", (int) st.lost_tree);
    is_int(prof_key_pc(t.nodes[last].key), 0x200000,
           "a stack that does not fit ends at its deepest node");

    pcs[0] = 0x400000;
    node = prof_tree_stack(&t, PROF_NONE, pcs, 1, &st);
    is_int(prof_key_pc(t.nodes[node].key), PROF_FRAME_TREE_FULL,
           "a stack without such a node ends at the note of a full tree");

    is_int(t.nnodes, t.max, "a full tree uses all of its memory");
    ok((char *) (t.chains + t.max_mask + 1)
       <= mem + sizeof(mem) - sizeof(guard),
       "the parts of the tree fit into its memory");
    is_mem(mem + sizeof(mem) - sizeof(guard), guard, sizeof(guard),
           "nothing is written behind the memory of the tree");
}


static void
test_entries(void)
{
    prof_stats_t            st;
    prof_entries_t          e;
    static prof_interval_t  mem[8];

    memset(&st, 0, sizeof(st));
    prof_entries_init(&e, mem, sizeof(mem), 1);

    prof_entries_extend(&e, 5, 5);
    is_int(e.n, 0, "a timeline without entries is not extended");

    prof_entries_add(&e, 1, PROF_ENTRY_SAMPLE, 10, 9, &st);
    prof_entries_add(&e, 1, PROF_ENTRY_SAMPLE, 20, 18, &st);
    is_int(e.n, 1, "equal neighbors are one entry");
    is_int(mem[0].wall, 30, "the entry has the sum of their wall times");
    is_int(mem[0].cpu, 27, "the entry has the sum of their CPU times");
    is_int(mem[0].count, 2, "the entry has the sum of their samples");

    prof_entries_add(&e, 1, PROF_ENTRY_TURN, 1, 1, &st);
    is_int(e.n, 2, "entries of different types are not merged");
    is_int(mem[1].count, 0, "an entry of this type counts no sample");

    prof_entries_extend(&e, 100, 50);
    is_int(mem[1].wall, 101, "the last entry is extended");
}


static void
test_entries_full(void)
{
    int                     rc, limits;
    uint32_t                i;
    uint64_t                wall, cpu, gaps;
    prof_stats_t            st;
    prof_entries_t          e;
    static prof_interval_t  mem[101];

    memset(&st, 0, sizeof(st));
    prof_entries_init(&e, mem, 100 * sizeof(prof_interval_t), 12345);
    memset(&mem[100], 0x5a, sizeof(prof_interval_t));

    limits = 0;

    for (i = 0; i < 100000; i++) {
        rc = (i % 3 == 2)
             ? prof_entries_add(&e, 7, PROF_ENTRY_GAP, 1000, 0, &st)
             : prof_entries_add(&e, i % 5, PROF_ENTRY_SAMPLE, 10, 7, &st);

        limits += (rc == PROF_LIMIT);
    }

    ok(limits > 10, "memory was made %d times", limits);
    ok(e.n <= 100, "the timeline has at most its maximum of entries");
    is_int(mem[100].node, 0x5a5a5a5a, "nothing is written behind the timeline");

    wall = 0;
    cpu = 0;
    gaps = 0;

    for (i = 0; i < e.n; i++) {
        wall += mem[i].wall;
        cpu += mem[i].cpu;

        if (mem[i].type == PROF_ENTRY_GAP) {
            gaps += mem[i].wall;
        }
    }

    is_int(wall, 66667 * 10 + 33333 * 1000,
           "merged entries keep the sum of wall time");
    is_int(cpu, 66667 * 7, "merged entries keep the sum of CPU time");
    is_int(gaps, 33333 * 1000, "waiting is not merged with running");
    ok(st.thinned > 0, "merged entries are counted");
}


/*
 * On the average of many captures, a node with a tenth of the weight keeps
 * about a tenth, whatever was merged.
 */

static void
test_entries_unbiased(void)
{
    uint32_t                i, n;
    uint64_t                rare, all;
    prof_stats_t            st;
    prof_entries_t          e;
    static prof_interval_t  mem[64];

    memset(&st, 0, sizeof(st));
    rare = 0;
    all = 0;

    for (n = 0; n < 2000; n++) {
        prof_entries_init(&e, mem, sizeof(mem), 0x9e3779b97f4a7c15 * (n + 1));

        for (i = 0; i < 1000; i++) {
            prof_entries_add(&e, i % 10 ? 1 + i % 2 : 3, PROF_ENTRY_SAMPLE,
                             100, 100, &st);
        }

        for (i = 0; i < e.n; i++) {
            all += mem[i].wall;

            if (mem[i].node == 3) {
                rare += mem[i].wall;
            }
        }
    }

    is_int(all, 2000 * 1000 * 100, "all time is in the timeline");
    ok(rare > all * 9 / 100 && rare < all * 11 / 100,
       "a share of 10.00 %% stays one: %.2f %%", 100.0 * rare / all);
}


static void
test_ring(void)
{
    int             i, n, wrong;
    uint64_t        pushed, popped;
    prof_ring_t     ring;
    prof_sample_t  *sample;

    memset(&ring, 0, sizeof(ring));
    ring.data = aligned_alloc(8, PROF_RING_SIZE);

    ok(prof_ring_peek(&ring) == NULL, "a new ring is empty");

    pushed = 0;
    popped = 0;
    wrong = 0;

    for (i = 0; i < 20000; i++) {

        sample = prof_ring_reserve(&ring);

        if (sample) {
            sample->nframes = (pushed * 7) % (PROF_MAX_DEPTH + 1);
            sample->wall = pushed++;

            for (n = 0; n < (int) sample->nframes; n++) {
                sample->pcs[n] = sample->wall + n;
            }

            prof_ring_commit(&ring, sample);
        }

        if (sample && i % 3) {
            continue;
        }

        for (n = 0; n < 3; n++) {
            sample = prof_ring_peek(&ring);

            if (sample == NULL) {
                break;
            }

            wrong += sample->wall != popped
                     || sample->nframes != (popped * 7) % (PROF_MAX_DEPTH + 1)
                     || (sample->nframes
                         && sample->pcs[sample->nframes - 1]
                            != popped + sample->nframes - 1);
            popped++;
            prof_ring_pop(&ring, sample);
        }
    }

    while ((sample = prof_ring_peek(&ring)) != NULL) {
        wrong += sample->wall != popped++;
        prof_ring_pop(&ring, sample);
    }

    ok(pushed * sizeof(prof_sample_t) > PROF_RING_SIZE / 2,
       "enough samples are written for the ring to go round");
    is_int(popped, pushed, "all samples are read");
    is_int(wrong, 0, "samples are read as they were written, in order");
    is_int(prof_ring_used(&ring), 0,
           "the ring is empty after all samples are read");

    free(ring.data);
}


static void
test_ring_full(void)
{
    int             n;
    prof_ring_t     ring;
    prof_sample_t  *sample;

    memset(&ring, 0, sizeof(ring));
    ring.data = aligned_alloc(8, PROF_RING_SIZE);

    for (n = 0; (sample = prof_ring_reserve(&ring)) != NULL; n++) {
        sample->nframes = PROF_MAX_DEPTH;
        sample->wall = n;
        prof_ring_commit(&ring, sample);
    }

    ok(n > 400, "%d of the deepest samples fit", n);

    sample = prof_ring_peek(&ring);
    is_int(sample->wall, 0, "a full ring keeps its oldest sample");
    prof_ring_pop(&ring, sample);

    sample = prof_ring_peek(&ring);
    prof_ring_pop(&ring, sample);
    ok(prof_ring_reserve(&ring) != NULL,
       "a ring accepts a sample when one has been removed");

    free(ring.data);
}


int
main(void)
{
    test_tree();
    test_tree_growth();
    test_tree_full();
    test_entries();
    test_entries_full();
    test_entries_unbiased();
    test_ring();
    test_ring_full();

    return done_testing();
}
