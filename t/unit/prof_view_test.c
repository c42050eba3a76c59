
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: views
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "views/prof_view.h"


static void test_empty(void);
static void test_merging(void);
static void test_identity(void);
static void test_inlines(void);
static void test_weights(void);
static void test_share(void);
static void test_names(void);
static void test_recursion(void);
static void test_links(void);
static char *first_letter(const char *name);


static const uint32_t  test_measures[] = {
    PROF_MEASURE_WALL, PROF_MEASURE_CPU
};


int
main(void)
{
    test_empty();
    test_merging();
    test_identity();
    test_inlines();
    test_weights();
    test_share();
    test_names();
    test_recursion();
    test_links();

    return done_testing();
}


static void
test_empty(void)
{
    prof_view_t     *v;
    prof_profile_t  *p;

    p = fixture_create("empty");
    v = prof_view_create(p, NULL, test_measures, 2);
    is_int(prof_view_order(v, 0), PROF_OK, "an empty view is ordered");

    ok(v && v->nnodes == 0 && v->nfunctions == 0 && v->depth == 0
       && v->root == PROF_NONE, "an empty profile has an empty view");
    is_int(v->whole[0], 0, "an empty view has no weight");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


/* two call sites in main() of the same function, each with a callee */

static void
test_merging(void)
{
    uint32_t                 exe, f[4], n[6];
    prof_view_t             *v;
    prof_profile_t          *p;
    const prof_view_node_t  *node;

    p = fixture_create("merging");
    exe = fixture_object(p, "/bin/x", "");

    f[0] = fixture_frame(p, exe, 0x1010, "main");
    f[1] = fixture_frame(p, exe, 0x1020, "main");
    f[2] = fixture_frame(p, exe, 0x2010, "f");
    f[3] = fixture_frame(p, exe, 0x2020, "f");

    n[0] = fixture_node(p, PROF_NONE, f[0]);
    n[1] = fixture_node(p, PROF_NONE, f[1]);
    n[2] = fixture_node(p, n[0], f[2]);
    n[3] = fixture_node(p, n[1], f[2]);
    n[4] = fixture_node(p, n[1], f[3]);

    fixture_entry(p, n[0], PROF_ENTRY_SAMPLE, 1, 1);
    fixture_entry(p, n[2], PROF_ENTRY_SAMPLE, 10, 5);
    fixture_entry(p, n[3], PROF_ENTRY_SAMPLE, 100, 50);
    fixture_entry(p, n[4], PROF_ENTRY_TURN, 1000, 0);

    v = prof_view_create(p, NULL, test_measures, 2);
    is_int(prof_view_order(v, 0), PROF_OK, "the view is ordered");

    is_int(v->nfunctions, 2, "the view has two functions");
    is_int(v->nnodes, 2, "the view has two nodes");
    is_int(v->depth, 2, "the view has two levels");

    is_int(v->map[n[0]], v->map[n[1]], "addresses of a function are a node");
    ok(v->map[n[2]] == v->map[n[3]] && v->map[n[3]] == v->map[n[4]],
       "addresses of a callee are a node");

    node = &v->nodes[v->map[n[0]]];
    is_str(v->functions[node->function].name, "main",
           "the root has its name");
    is_int(prof_view_self(v, v->map[n[0]], 0), 1,
           "the root has its own weight");
    is_int(prof_view_total(v, v->map[n[0]], 0), 1111,
           "the root has its total");
    is_int(prof_view_total(v, v->map[n[0]], 1), 56,
           "the root has its total CPU time");

    is_int(prof_view_self(v, v->map[n[2]], 0), 1110,
           "the callee has its own weight");
    is_int(prof_view_self(v, v->map[n[2]], 1), 55,
           "the callee has its own CPU time");

    is_int(v->whole[0], 1111, "the view has the whole weight");
    is_int(v->whole[1], 56, "the view has the whole CPU time");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static void
test_identity(void)
{
    uint32_t         a, b, i;
    prof_view_t     *v;
    prof_profile_t  *p;

    p = fixture_create("identity");
    a = fixture_object(p, "/lib/a.so", "");
    b = fixture_object(p, "/lib/b.so", "");

    (void) fixture_frame(p, a, 0x1000, "init");
    (void) fixture_frame(p, a, 0x1001, "init");
    (void) fixture_frame(p, b, 0x1000, "init");

    i = fixture_frame(p, a, 0x2000, "init");
    p->frames[i].function = 0x2000;

    i = fixture_frame(p, a, 0x1002, "init");
    p->frames[i].file = fixture_copy("a.c");

    i = fixture_frame(p, a, 0x1003, "init");
    p->frames[i].file = fixture_copy("b.c");

    i = fixture_frame(p, a, 0x1003, "init");
    p->frames[i].file = fixture_copy("b.c");
    p->frames[i].start_line = 7;
    p->frames[i].line = 8;

    i = fixture_frame(p, a, 0x1004, "init");
    p->frames[i].file = fixture_copy("b.c");
    p->frames[i].start_line = 7;
    p->frames[i].line = 9;

    v = prof_view_create(p, NULL, test_measures, 2);
    is_int(prof_view_order(v, 0), PROF_OK, "the view is ordered");
    is_int(v->nfunctions, 6, "object, function, file and line differ");
    is_int(v->functions[0].frame, 0, "the first frame stands for a function");
    prof_view_destroy(v);

    prof_profile_destroy(p);
}


/* an address with inlined functions has one node for each of them */

static void
test_inlines(void)
{
    uint32_t         f[3], n[3];
    prof_view_t     *v;
    prof_profile_t  *p;

    p = fixture_create("inlines");
    (void) fixture_object(p, "/bin/x", "");

    p->inlines = calloc(3, sizeof(prof_inline_t));
    p->ninlines = 3;
    p->inlines[0].name = fixture_copy("outer");
    p->inlines[1].name = fixture_copy("inner");
    p->inlines[1].file = fixture_copy("x.h");
    p->inlines[1].start_line = 5;
    p->inlines[2].name = fixture_copy("outer");

    f[0] = fixture_frame(p, 0, 0x1010, "main");
    f[1] = fixture_frame(p, 0, 0x1020, "main");
    f[2] = fixture_frame(p, 0, 0x2000, "outer");
    p->frames[f[0]].ninlines = 2;
    p->frames[f[1]].inlines = 2;
    p->frames[f[1]].ninlines = 1;

    n[0] = fixture_node(p, PROF_NONE, f[0]);
    n[1] = fixture_node(p, PROF_NONE, f[1]);
    n[2] = fixture_node(p, n[0], f[2]);

    fixture_entry(p, n[0], PROF_ENTRY_SAMPLE, 1, 1);
    fixture_entry(p, n[1], PROF_ENTRY_SAMPLE, 10, 10);
    fixture_entry(p, n[2], PROF_ENTRY_SAMPLE, 100, 100);

    v = prof_view_create(p, NULL, test_measures, 2);

    is_int(v->nnodes, 4, "inlines: the view has four nodes");
    is_int(v->nfunctions, 4,
           "inlines - a function that is called is another one");
    is_str(v->functions[v->nodes[v->map[n[0]]].function].name, "inner",
           "inlines: the innermost function has its node");
    is_int(v->functions[v->nodes[v->map[n[0]]].function].line, 5,
           "inlines - begins there");
    is_int(v->nodes[v->map[n[0]]].depth, 2,
           "inlines: the innermost function has its depth");
    is_int(v->nodes[v->map[n[0]]].parent, v->map[n[1]],
           "inlines: a function at two addresses is one node");
    is_int(prof_view_self(v, v->map[n[1]], 0), 10,
           "inlines: the outer function has its own weight");
    is_int(prof_view_total(v, v->map[n[1]], 0), 111,
           "inlines: the outer function has its total");
    is_int(v->nodes[v->map[n[2]]].parent, v->map[n[0]],
           "inlines: a callee is below the innermost function");
    is_int(v->depth, 4, "inlines: the view has four levels");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static void
test_weights(void)
{
    uint32_t         m, n, list[PROF_MEASURE_MAX];
    prof_view_t     *v;
    prof_profile_t  *p;

    p = fixture_full();

    n = prof_measure_list(p, list);
    is_int(n, 6, "weights: the profile has times and memory");

    v = prof_view_create(p, NULL, list, n);

    is_int(v->whole[prof_view_column(v, PROF_MEASURE_CPU)], p->cpu,
           "weights: the view has the CPU time");
    is_int(v->whole[prof_view_column(v, PROF_MEASURE_ALLOC_OBJECTS)], 10,
           "weights: the view has the objects");
    is_int(v->whole[prof_view_column(v, PROF_MEASURE_ALLOC_SPACE)], 40960,
           "weights: the view has the bytes");

    prof_view_destroy(v);

    m = PROF_MEASURE_INUSE_OBJECTS;
    v = prof_view_create(p, NULL, &m, 1);
    is_int(v->ncolumns, 1, "weights - a view of one measure has one column");
    is_int(v->whole[0], 1, "weights - the column has this measure");
    prof_view_destroy(v);

    nallocs(p) = 0;
    is_int(prof_measure_list(p, list), 2,
           "weights: a profile of time has two measures");
    is_int(list[0], PROF_MEASURE_WALL,
           "weights: wall time is the first measure");

    p->mode = PROF_MODE_OBJECT;
    ntimes(p) = 0;
    is_int(prof_measure_list(p, list), 4,
           "weights: a profile of memory has four measures");
    is_int(prof_measure_first(p), PROF_MEASURE_ALLOC_SPACE,
           "weights - allocated is shown first");
    p->first = PROF_MEASURE_INUSE_SPACE;
    is_int(prof_measure_first(p), PROF_MEASURE_INUSE_SPACE,
           "weights - or what is in use");

    prof_profile_destroy(p);
}


/* children of nodes that are too small to be shown are not sorted */

static void
test_share(void)
{
    uint32_t         large, n[2], small;
    prof_view_t     *v;
    prof_profile_t  *p;

    p = fixture_create("share");

    n[0] = fixture_stack(p, PROF_NONE, "main/large/leaf");
    n[1] = fixture_stack(p, PROF_NONE, "main/small/leaf");
    fixture_entry(p, n[0], PROF_ENTRY_SAMPLE, 990, 0);
    fixture_entry(p, n[1], PROF_ENTRY_SAMPLE, 8, 0);

    v = prof_view_create(p, NULL, test_measures, 1);
    is_int(prof_view_order(v, 100), PROF_OK,
           "share - the view is made with a threshold");

    large = v->nodes[v->root].child;
    small = v->nodes[large].next;

    ok(small != PROF_NONE, "share: a large node has children");
    is_int(v->nodes[large].child, v->map[n[0]],
           "share - the large child has children");
    is_int(v->nodes[small].child, PROF_NONE,
           "share: a small node has no children");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static void
test_names(void)
{
    uint32_t         exe, n[4];
    prof_view_t     *v;
    prof_profile_t  *p;

    p = fixture_create("names");
    exe = fixture_object(p, "/bin/x", "");

    n[0] = fixture_stack(p, exe, "main/alpha");
    n[1] = fixture_stack(p, exe, "main/apple");
    n[2] = fixture_stack(p, exe, "main/beta");
    n[3] = fixture_stack(p, exe, "more/beta");

    v = prof_view_create(p, first_letter, test_measures, 2);
    is_int(prof_view_order(v, 0), PROF_OK, "the view is ordered by names");

    is_int(v->nfunctions, 3, "a name function makes the functions");
    is_int(v->nnodes, 3, "these functions have three nodes");
    is_int(v->map[n[0]], v->map[n[1]], "functions of one name are one node");
    is_int(v->map[n[2]], v->map[n[3]], "callees of one name are one node");
    is_str(v->functions[v->nodes[v->map[n[1]]].function].name, "a",
           "the node has the common name");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static void
test_recursion(void)
{
    uint32_t         exe, f, i, node;
    prof_view_t     *v;
    prof_profile_t  *p;

    p = fixture_create("deep");
    exe = fixture_object(p, "/bin/x", "");
    f = fixture_frame(p, exe, 0x1000, "f");

    node = PROF_NONE;

    for (i = 0; i < 100000; i++) {
        node = fixture_node(p, node, f);
    }

    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 7, 3);

    v = prof_view_create(p, NULL, test_measures, 2);
    is_int(prof_view_order(v, 0), PROF_OK, "the view is ordered");

    is_int(v->nnodes, 100000, "recursion is kept");
    is_int(v->depth, 100000, "recursion of any depth is kept");
    is_int(prof_view_total(v, v->root, 0), 7,
           "the weight of recursion is counted once");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


/* "child" and "next" reach every node once, in the order of names */

static void
test_links(void)
{
    char                     path[32];
    uint32_t                 exe, i, met, n, node, wrong;
    prof_view_t             *v;
    prof_profile_t          *p;
    const prof_view_node_t  *c;

    p = fixture_create("links");
    exe = fixture_object(p, "/bin/x", "");

    for (i = 0; i < 200; i++) {
        (void) snprintf(path, sizeof(path), "%u/%u/%u", i % 3,
                        i * 7919 % 17, i * 104729 % 29);
        node = fixture_stack(p, exe, path);
        fixture_entry(p, node, PROF_ENTRY_SAMPLE, i, i);
    }

    v = prof_view_create(p, NULL, test_measures, 2);
    is_int(prof_view_order(v, 0), PROF_OK, "the view is ordered");

    met = 0;
    wrong = 0;

    for (i = v->nnodes + 1; i > 0; i--) {
        n = i > v->nnodes ? v->root : v->nodes[i - 1].child;

        for ( /* void */ ; n != PROF_NONE; n = c->next) {
            c = &v->nodes[n];
            met++;

            wrong += c->parent != (i > v->nnodes ? PROF_NONE : i - 1);
            wrong += i <= v->nnodes && n <= i - 1;
            wrong += c->next != PROF_NONE
                     && strcmp(v->functions[c->function].name,
                               v->functions[v->nodes[c->next].function].name)
                        >= 0;
        }
    }

    is_int(met, v->nnodes, "each node is linked once");
    is_int(wrong, 0, "nodes follow their parents, in the order of names");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static char *
first_letter(const char *name)
{
    return strndup(name, 1);
}
