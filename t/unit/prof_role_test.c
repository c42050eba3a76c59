
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: names
 * runs: beside
 *
 * Names by roles: only for the functions of the right object.
 */


#include "base/prof_base.h"

#include "tap.h"

#include "names/prof_role.h"
#include "names/prof_symbolize.h"

#include <stdlib.h>
#include <string.h>


#define ID  "\x01\xab"


static void test_found(void);
static void test_added(void);
static void test_replaced(void);
static const char *name_of(const char *path, const char *build_id,
    uint64_t function, uint32_t source);


static const prof_role_t  roles[] = {
    { "/sbin/one", (const uint8_t *) ID, 2, 0x100, "first", "unit" },
    { "/sbin/one", (const uint8_t *) ID, 2, 0x200, "second", "unit" },
    { "/sbin/one", (const uint8_t *) ID, 2, 0x300, "fourth", "other" },
    { "/sbin/one", (const uint8_t *) ID, 2, 0x400, "fifth", NULL },
    { "/sbin/one", (const uint8_t *) ID, 2, 0x500, "sixth", NULL },
    { "/lib/two.so", (const uint8_t *) "", 0, 0x100, "third", NULL }
};


int
main(void)
{
    test_found();
    test_added();
    test_replaced();

    return done_testing();
}


static void
test_found(void)
{
    is_str(name_of("/sbin/one", "01ab", 0x100, 0), "one+0x100",
           "without roles a function has an offset");

    ok(prof_profile_roles(roles, 6) == PROF_OK, "a table of roles is set");

    is_str(name_of("/sbin/one", "01ab", 0x100, PROF_SOURCE_ROLE),
           "first (one+0x100)", "a function has the name of its role");
    is_str(name_of("/sbin/one", "01ab", 0x200, PROF_SOURCE_ROLE),
           "second (one+0x200)", "another function has another role");
    is_str(name_of("/moved/one", "01ab", 0x200, PROF_SOURCE_ROLE),
           "second (one+0x200)", "the build-id identifies the object");
    is_str(name_of("/lib/two.so", "", 0x100, PROF_SOURCE_ROLE),
           "third (two.so+0x100)",
           "the path identifies an object without a build-id");

    is_str(name_of("/sbin/one", "01ab", 0x180, PROF_SOURCE_OFFSET),
           "one+0x180", "a function between two roles has no name");
    is_str(name_of("/sbin/one", "01ab", 0x80, PROF_SOURCE_OFFSET),
           "one+0x80", "a function before all roles has no name");
    is_str(name_of("/sbin/one", "01ab", 0x600, PROF_SOURCE_OFFSET),
           "one+0x600", "a function after all roles has no name");
    is_str(name_of("/sbin/one", "01ab", 0, PROF_SOURCE_OFFSET), "one+0x108",
           "an unknown function has no role");
    is_str(name_of("/sbin/one", "01ac", 0x100, PROF_SOURCE_OFFSET),
           "one+0x100", "another build of the object has no roles");
    is_str(name_of("/sbin/one", "", 0x100, PROF_SOURCE_OFFSET), "one+0x100",
           "the same file without a build-id has no roles");
}


static void
test_added(void)
{
    uint32_t     i;
    prof_role_t  role;

    role = roles[1];
    role.text = "added";
    prof_profile_add_role(&role);

    is_str(name_of("/sbin/one", "01ab", 0x200, PROF_SOURCE_ROLE),
           "second (one+0x200)", "an added role has no effect on others");

    for (i = 0; i < PROF_ROLE_ADDED + 1; i++) {
        role.function = 0x1000 + i;
        prof_profile_add_role(&role);
    }

    is_str(name_of("/sbin/one", "01ab", 0x1000, PROF_SOURCE_ROLE),
           "added (one+0x1000)", "a function has an added role");
    is_str(name_of("/sbin/one", "01ac", 0x1000, PROF_SOURCE_OFFSET),
           "one+0x1000", "another build of the object has no role");
    is_str(name_of("/sbin/one", "01ab", 0x1000 + PROF_ROLE_ADDED,
                   PROF_SOURCE_OFFSET),
           "one+0x1100", "a role that is one too many");

    role.function = 0x1000;
    role.text = "other";
    prof_profile_add_role(&role);

    is_str(name_of("/sbin/one", "01ab", 0x1000, PROF_SOURCE_ROLE),
           "other (one+0x1000)", "an added role can be replaced");
}


static void
test_replaced(void)
{
    ok(prof_profile_roles(roles + 1, 1) == PROF_OK,
       "another table replaces the first one");

    is_str(name_of("/sbin/one", "01ab", 0x100, PROF_SOURCE_OFFSET),
           "one+0x100", "an old role is gone");
    is_str(name_of("/sbin/one", "01ab", 0x200, PROF_SOURCE_ROLE),
           "second (one+0x200)", "a function has a role of the new table");
    is_str(name_of("/sbin/one", "01ab", 0x1000, PROF_SOURCE_OFFSET),
           "one+0x1000", "an added role is gone");

    ok(prof_profile_roles(NULL, 0) == PROF_OK, "an empty table is set");

    is_str(name_of("/sbin/one", "01ab", 0x200, PROF_SOURCE_OFFSET),
           "one+0x200", "no role is left");
}


/* the name of one frame, which has this source; 0: any */

static const char *
name_of(const char *path, const char *build_id, uint64_t function,
    uint32_t source)
{
    prof_frame_t    *f;
    prof_profile_t  *p;

    static char  name[128];

    p = prof_profile_create("test");

    p->objects = calloc(1, sizeof(prof_profile_object_t));
    p->frames = calloc(1, sizeof(prof_frame_t));
    p->nobjects = 1;
    p->nframes = 1;

    p->objects[0].path = strdup(path);
    p->objects[0].build_id = strdup(build_id);

    f = p->frames;
    f->object = 0;
    f->pc = (function ? function : 0x100) + 8;
    f->function = function;

    if (prof_profile_symbolize(p) != PROF_OK
        || (source && f->source != source))
    {
        strcpy(name, "no such name");

    } else {
        strncpy(name, f->name, sizeof(name) - 1);
    }

    prof_profile_destroy(p);

    return name;
}
