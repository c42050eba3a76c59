
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "tap.h"

#include "prof_fixture.h"
#include "encode/prof_view.h"


static void test_empty(void);
static void test_merging(void);
static void test_identity(void);
static void test_names(void);
static void test_recursion(void);
static void test_links(void);
static char *first_letter(const prof_frame_t *f);


int
main(void)
{
    test_empty();
    test_merging();
    test_identity();
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
    v = prof_view_create(p, NULL);

    ok(v && v->nnodes == 0 && v->nfunctions == 0 && v->depth == 0
       && v->root == PROF_NONE, "empty");
    is_int(v->total[PROF_MODE_WALL], 0, "empty - total");

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

    v = prof_view_create(p, NULL);

    is_int(v->nfunctions, 2, "functions");
    is_int(v->nnodes, 2, "nodes");
    is_int(v->depth, 2, "depth");

    is_int(v->map[n[0]], v->map[n[1]], "addresses of a function are a node");
    ok(v->map[n[2]] == v->map[n[3]] && v->map[n[3]] == v->map[n[4]],
       "so are those of a callee");

    node = &v->nodes[v->map[n[0]]];
    is_str(v->functions[node->function].name, "main", "root - name");
    is_int(node->self[PROF_MODE_WALL], 1, "root - self");
    is_int(node->total[PROF_MODE_WALL], 1111, "root - total");
    is_int(node->total[PROF_MODE_CPU], 56, "root - CPU total");
    is_int(node->samples, 1, "root - samples");

    node = &v->nodes[v->map[n[2]]];
    is_int(node->self[PROF_MODE_WALL], 1110, "callee - self");
    is_int(node->self[PROF_MODE_CPU], 55, "callee - CPU self");
    is_int(node->samples, 2, "callee - samples, not turns");

    is_int(v->total[PROF_MODE_WALL], 1111, "total");
    is_int(v->total[PROF_MODE_CPU], 56, "CPU total");

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
    p->frames[i].line = 7;

    v = prof_view_create(p, NULL);
    is_int(v->nfunctions, 6, "object, function, file and line differ");
    is_int(v->functions[0].frame, 0, "the first frame stands for a function");
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

    v = prof_view_create(p, first_letter);

    is_int(v->nfunctions, 3, "functions by the name made of them");
    is_int(v->nnodes, 3, "nodes of these functions");
    is_int(v->map[n[0]], v->map[n[1]], "merged");
    is_int(v->map[n[2]], v->map[n[3]], "merged below merged");
    is_str(v->functions[v->nodes[v->map[n[1]]].function].name, "a", "name");

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

    v = prof_view_create(p, NULL);

    is_int(v->nnodes, 100000, "recursion is kept");
    is_int(v->depth, 100000, "however deep");
    is_int(v->nodes[v->root].total[PROF_MODE_WALL], 7, "and adds up");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


/* every node is met once by "child" and "next", in the order of names */

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

    v = prof_view_create(p, NULL);

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
    is_int(wrong, 0, "to its parent, after it, in order of names");

    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static char *
first_letter(const prof_frame_t *f)
{
    return strndup(f->name, 1);
}
