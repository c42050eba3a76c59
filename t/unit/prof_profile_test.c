
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: profile
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "formats/prof_encode.h"
#include "prof.h"


static void test_create(void);
static void test_facts(void);
static void test_labels(void);
static void test_names_without_files(void);
static void test_addresses(void);


int
main(void)
{
    test_create();
    test_facts();
    test_labels();
    test_names_without_files();
    test_addresses();

    return done_testing();
}


static void
test_create(void)
{
    char             title[16];
    prof_profile_t  *p;

    strcpy(title, "a title");
    p = prof_profile_create(title);
    title[0] = 'X';

    is_str(p->title, "a title", "title is copied");
    ok(p->nframes == 0 && ntimes(p) == 0 && p->mode == PROF_MODE_WALL
       && p->wall == 0 && p->stats.samples == 0, "a new profile is empty");

    is_int(prof_profile_symbolize(p), PROF_OK,
           "a profile without frames can be symbolized");

    prof_profile_destroy(p);
    prof_profile_destroy(NULL);
}


static void
test_facts(void)
{
    char             name[16];
    uint32_t         i, wrong;
    prof_profile_t  *p;

    p = fixture_create("facts");

    is_int(prof_profile_fact(p, "request", "GET / HTTP/1.1", 5), PROF_OK,
           "a fact is added");
    is_str(p->facts[0].name, "request", "a fact has its name");
    is_str(p->facts[0].value, "GET /", "a value has the given length");

    for (i = 1; i < 100; i++) {
        (void) snprintf(name, sizeof(name), "%u", i);
        prof_profile_fact(p, name, name, strlen(name));
    }

    wrong = 0;

    for (i = 1; i < p->nfacts; i++) {
        wrong += strtoul(p->facts[i].name, NULL, 10) != i
                 || strtoul(p->facts[i].value, NULL, 10) != i;
    }

    is_int(p->nfacts, 100, "many facts are added");
    is_int(wrong, 0, "the facts keep their order");

    prof_profile_destroy(p);
}


static void
test_labels(void)
{
    char             name[16];
    uint32_t         a, ab, b, i, same, set, sets[100];
    prof_profile_t  *p;

    p = fixture_create("labels");

    a = prof_profile_labels(p, PROF_NONE, "worker", "17", NULL);
    b = prof_profile_labels(p, PROF_NONE, "thread", "pool", NULL);
    ab = prof_profile_labels(p, a, "thread", "pool", NULL);

    ok(a != PROF_NONE && b != PROF_NONE && ab != PROF_NONE,
       "labels make sets");
    ok(a != b && ab != a && ab != b, "different labels make different sets");

    is_int(prof_profile_labels(p, PROF_NONE, "worker", "17", NULL), a,
           "the same labels give the same set");
    is_int(prof_profile_labels(p, a, "thread", "pool", NULL), ab,
           "the same labels give the same longer set");
    is_int(prof_profile_labels(p, ab, "worker", "18", NULL), ab,
           "a label that is there remains");

    is_str(prof_profile_label_find(p, ab, "worker")->value, "17",
           "a label of a set is found");
    is_str(prof_profile_label_find(p, ab, "thread")->value, "pool",
           "the last label of a set is found");
    ok(prof_profile_label_find(p, b, "worker") == NULL,
       "a label is not found in another set");
    ok(prof_profile_label_find(p, PROF_NONE, "worker") == NULL,
       "a label is not found without a set");

    set = prof_profile_labels(p, a, "size", "4096", "bytes");
    ok(set != prof_profile_labels(p, a, "size", "4096", NULL),
       "a number is not a text");
    is_str(p->labels[set].unit, "bytes", "a label has its unit");

    for (i = 0; i < 100; i++) {
        (void) snprintf(name, sizeof(name), "%u", i);
        sets[i] = prof_profile_labels(p, a, "n", name, NULL);
    }

    same = 0;

    for (i = 0; i < 100; i++) {
        (void) snprintf(name, sizeof(name), "%u", i);
        same += prof_profile_labels(p, a, "n", name, NULL) == sets[i];
    }

    is_int(same, 100, "a hundred sets are found again");

    is_int(prof_profile_scope(p, "worker"), PROF_OK, "a profile gets a scope");
    is_int(prof_profile_scope(p, "all"), PROF_OK, "the scope can be replaced");
    is_str(p->scope, "all", "the profile has the last scope");

    prof_profile_destroy(p);
}


static void
test_names_without_files(void)
{
    uint32_t         exe, f[6], lib;
    prof_profile_t  *p;

    p = fixture_create("offsets");

    exe = fixture_object(p, "/nonexistent/dir/server", "00");
    lib = fixture_object(p, "lib.so.1", "");

    f[0] = fixture_frame(p, lib, 0x1234, NULL);
    f[1] = fixture_frame(p, exe, 0x51999, NULL);
    p->frames[f[1]].function = 0x51970;
    f[2] = fixture_frame(p, exe, 0x51fff, NULL);
    f[3] = fixture_frame(p, PROF_NONE, 0xdeadbeef, NULL);
    f[4] = fixture_name(p, PROF_TYPE_WAITING, "[waiting]");
    f[5] = fixture_frame(p, exe, 0x51970, "named already");

    is_int(prof_profile_symbolize(p), PROF_OK, "the profile is symbolized");

    is_str(p->frames[f[0]].name, "lib.so.1+0x1234",
           "an address without a function has its offset");
    is_str(p->frames[f[1]].name, "server+0x51970",
           "a function without a name has its offset");
    is_str(p->frames[f[2]].name, "server+0x51fff", "no function is known");
    is_str(p->frames[f[3]].name, "[anonymous code]", "no object is known");
    is_str(p->frames[f[4]].name, "[waiting]", "a name is left alone");
    is_str(p->frames[f[5]].name, "named already",
           "the name of a function remains");

    ok(!prof_frame_is_exact(&p->frames[f[0]])
       && !prof_frame_is_exact(&p->frames[f[1]])
       && !prof_frame_is_exact(&p->frames[f[3]]),
       "offsets are not exact names");

    prof_profile_destroy(p);
}


/* an address of the program, and one of the page [vsyscall] */

static void
test_addresses(void)
{
    uint32_t             nodes[2];
    uintptr_t            pcs[2];
    prof_profile_t      *p;
    const prof_frame_t  *f;

    pcs[0] = (uintptr_t) test_addresses;
    pcs[1] = (uintptr_t) 0xffffffffff600400;

    p = prof_process_addresses(pcs, 2, nodes);

    if (!ok(p && prof_profile_complete(p) == PROF_OK,
            "a profile of addresses"))
    {
        return;
    }

    f = &p->frames[p->nodes[nodes[0]].frame];
    ok(f->object != PROF_NONE && f->pc + p->objects[f->object].base == pcs[0],
       "an address belongs to an object");

    f = &p->frames[p->nodes[nodes[1]].frame];
    ok(f->object == PROF_NONE && f->pc == pcs[1],
       "the highest bit of another one is kept");

    prof_profile_destroy(p);
    prof_process_done();
}
