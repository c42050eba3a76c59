
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The cache of names: hits, replacements, and the bound.
 */


#include "base/prof_base.h"

#include "tap.h"

#include "names/prof_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static void test_found(void);
static void test_inlines(void);
static void test_replaced(void);
static void test_bound(void);
static void test_objects(void);
static void put(prof_names_object_t *o, uint64_t pc, const char *name);


int
main(void)
{
    test_found();
    test_inlines();
    test_replaced();
    test_bound();
    test_objects();

    return done_testing();
}


static void
test_found(void)
{
    const prof_name_t    *name;
    prof_names_object_t  *one, *two;

    one = prof_names_object("one");
    two = prof_names_object("two");

    ok(one && two && one != two, "two objects differ");
    ok(prof_names_object("one") == one, "an object is known by its identity");

    put(one, 0x10, "first");
    put(two, 0x10, NULL);

    name = prof_names_find(one, 0x10, 0x10);
    is_str(name ? name->name : "", "first", "an address has its name");

    name = prof_names_find(two, 0x10, 0x10);
    ok(name && name->name == NULL, "an address of which no name is known");

    ok(prof_names_find(one, 0x11, 0x10) == NULL, "another address has no name");
    ok(prof_names_find(one, 0x10, 0x8) == NULL, "another function has no name");

    prof_names_clear();
    is_int(prof_names_size(), 0, "all names are freed");

    one = prof_names_object("one");
    ok(prof_names_find(one, 0x10, 0x10) == NULL, "a freed name is not found");

    prof_names_clear();
}


static void
test_inlines(void)
{
    char                  text[32];
    prof_name_t           n;
    prof_inline_t         in[2];
    const prof_name_t    *name;
    prof_names_object_t  *o;

    o = prof_names_object("one");

    memset(&n, 0, sizeof(prof_name_t));
    memset(in, 0, sizeof(in));

    (void) snprintf(text, sizeof(text), "outer");

    in[0].name = text;
    in[0].file = text;
    in[0].line = 3;
    in[1].name = text;
    in[1].start_line = 4;

    n.pc = 0x20;
    n.name = text;
    n.file = text;
    n.complete = 1;
    n.line = 5;
    n.ninlines = 2;
    n.inlines = in;

    prof_names_put(o, &n);

    /* the cache does not refer to the caller's memory */

    memset(text, 'x', sizeof(text));
    memset(in, 0, sizeof(in));

    name = prof_names_find(o, 0x20, 0);

    if (ok(name && name->ninlines == 2, "inlines")) {
        is_str(name->name, "outer", "the name is a copy");
        is_str(name->file, "outer", "the file is a copy");
        is_int(name->line, 5, "the function has its line");
        is_str(name->inlines[0].name, "outer",
               "the first inlined function has its name");
        is_str(name->inlines[0].file, "outer",
               "the first inlined function has its file");
        is_int(name->inlines[0].line, 3,
               "the first inlined function has its line");
        ok(name->inlines[1].file == NULL,
           "an inlined function may have no file");
        is_int(name->inlines[1].start_line, 4,
               "an inlined function has its first line");
    }

    prof_names_clear();
}


static void
test_replaced(void)
{
    size_t                size;
    const prof_name_t    *name;
    prof_names_object_t  *o;

    o = prof_names_object("one");

    put(o, 0x10, NULL);
    put(o, 0x10, "first");

    size = prof_names_size();

    put(o, 0x10, "other");

    name = prof_names_find(o, 0x10, 0x10);
    is_str(name ? name->name : "", "other",
           "the last name of an address is kept");
    is_int(prof_names_size(), size, "the other one is freed");

    prof_names_clear();
}


static void
test_bound(void)
{
    char                  text[1001];
    size_t                max;
    uint64_t              pc;
    prof_names_object_t  *o;

    o = prof_names_object("one");

    memset(text, 'a', 1000);
    text[1000] = '\0';
    max = 0;

    for (pc = 0x1000; pc < 0x1000 + 40000; pc++) {
        put(o, pc, text);

        /* a name that is looked up again and again */

        if (pc % 100 == 0 && prof_names_find(o, 0x1000, 0x1000) == NULL) {
            break;
        }

        if (prof_names_size() > max) {
            max = prof_names_size();
        }
    }

    is_int(pc, 0x1000 + 40000, "a name that is in use stays");
    ok(max > PROF_NAMES_MAX / 2 && max <= PROF_NAMES_MAX,
       "40 MB of names take %zu bytes", max);
    ok(prof_names_find(o, pc - 1, pc - 1) != NULL, "the last one is there");
    ok(prof_names_find(o, 0x1001, 0x1001) == NULL, "the second one is not");

    prof_names_clear();
}


static void
test_objects(void)
{
    char      text[32];
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < 5000; i++) {
        (void) snprintf(text, sizeof(text), "object %u", i);
        put(prof_names_object(text), 0x10, text);
        n += prof_names_find(prof_names_object(text), 0x10, 0x10) != NULL;
    }

    is_int(n, 5000, "thousands of objects are known");

    prof_names_clear();
}


static void
put(prof_names_object_t *o, uint64_t pc, const char *name)
{
    prof_name_t  n;

    memset(&n, 0, sizeof(prof_name_t));

    n.pc = pc;
    n.function = pc;
    n.name = (char *) (uintptr_t) name;
    n.source = name ? PROF_SOURCE_SYMBOLS : PROF_SOURCE_NONE;

    prof_names_put(o, &n);
}
