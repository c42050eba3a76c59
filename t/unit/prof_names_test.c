
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: names
 * runs: beside
 *
 * The cache of names: hits, replacements, and the bound.  In shared memory:
 * names of one process in another one, a process that is killed while it
 * writes, and memory with any content.
 */


#include "base/prof_base.h"

#include "tap.h"

/* the test damages the memory, whose form only this file knows */

#include "names/prof_names.c"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define KEYS  20000


static void test_found(void);
static void test_inlines(void);
static void test_long(void);
static void test_replaced(void);
static void test_bound(void);
static void test_objects(void);
static void test_units(void);
static void test_shared(void);
static void test_killed(void);
static void test_damaged(void);
static void test_layout(void);
static void test_no_memory(void);
static const prof_name_t *find(const prof_names_object_t *o, uint64_t pc);
static const char *name_of(const char *object, uint64_t pc);
static void put(const char *object, uint64_t pc, const char *name);
static void writer(uint32_t n);
static uint32_t wrong(void);


static prof_names_found_t  found;


int
main(void)
{
    prof_buf_init(&found.data);

    test_found();
    test_inlines();
    test_long();
    test_replaced();
    test_bound();
    test_objects();
    test_units();
    test_shared();
    test_killed();
    test_damaged();
    test_layout();
    test_no_memory();

    prof_buf_free(&found.data);

    return done_testing();
}


static void
test_found(void)
{
    const prof_name_t    *name;
    prof_names_object_t   one, two, again;

    prof_names_object(&one, "one", "/root");
    prof_names_object(&two, "two", "/root");
    prof_names_object(&again, "one", "/root");

    ok(one.key[0] != two.key[0] && one.key[1] != two.key[1],
       "two objects differ");
    ok(memcmp(&one, &again, sizeof(one)) == 0,
       "an object is known by its identity");

    prof_names_object(&again, "one", "/other");
    ok(one.key[0] != again.key[0] && one.key[1] != again.key[1],
       "names depend on the directory of debug files");

    put("one", 0x10, "first");
    put("two", 0x10, NULL);

    is_str(name_of("one", 0x10), "first", "an address has its name");

    name = find(&two, 0x10);
    ok(name && name->name == NULL, "an address of which no name is known");

    ok(prof_names_find(&one, 0x11, 0x10, &found) == NULL,
       "another address has no name");
    ok(prof_names_find(&one, 0x10, 0x8, &found) == NULL,
       "another function has no name");

    two.retry = 3;
    two.more = PROF_NAMES_NOTHING;
    prof_names_object_put(&two);

    prof_names_object(&again, "two", "/root");
    ok(again.retry == 3 && again.more == PROF_NAMES_NOTHING,
       "what is known about an object is kept");

    ok(prof_names_first() && !prof_names_first(), "one caller is the first");

    prof_names_clear();

    prof_names_object(&again, "two", "/root");
    ok(again.retry == 0 && name_of("one", 0x10) == NULL,
       "nothing is found in new memory");

    prof_names_clear();
}


static void
test_inlines(void)
{
    char                  text[32];
    prof_name_t           n;
    prof_inline_t         in[2];
    const prof_name_t    *name;
    prof_names_object_t   o;

    prof_names_object(&o, "one", "/root");

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
    n.call.number = 6;
    n.call.target = 7;
    n.source = PROF_SOURCE_DEBUG;
    n.ninlines = 2;
    n.inlines = in;

    prof_names_put(&o, &n);

    /* the cache does not refer to the caller's memory */

    memset(text, 'x', sizeof(text));
    memset(in, 0, sizeof(in));

    name = prof_names_find(&o, 0x20, 0, &found);

    if (ok(name && name->ninlines == 2, "inlines")) {
        is_str(name->name, "outer", "the name is a copy");
        is_str(name->file, "outer", "the file is a copy");
        is_int(name->line, 5, "the function has its line");
        is_int(name->complete, 1, "the name is complete");
        is_int(name->source, PROF_SOURCE_DEBUG, "the name has its source");
        ok(name->call.number == 6 && name->call.target == 7,
           "the address has its system call");
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


/* a name that is too long for the cache is not one without a name */

static void
test_long(void)
{
    static char  text[PROF_WIRE_TEXT + 2];

    memset(text, 'a', PROF_WIRE_TEXT);
    put("one", 0x10, text);
    is_str(name_of("one", 0x10), text, "a long name");

    memset(text, 'a', PROF_WIRE_TEXT + 1);
    put("one", 0x20, text);
    ok(name_of("one", 0x20) == NULL, "a name that is too long is not cached");

    prof_names_clear();
}


static void
test_replaced(void)
{
    put("one", 0x10, NULL);
    put("one", 0x10, "first");
    put("one", 0x10, "other");

    is_str(name_of("one", 0x10), "other",
           "the last name of an address is kept");

    prof_names_clear();
}


static void
test_bound(void)
{
    char      text[1001];
    uint64_t  pc;

    memset(text, 'a', 1000);
    text[1000] = '\0';

    for (pc = 0x1000; pc < 0x1000 + 40000; pc++) {
        put("one", pc, text);

        /* a name that is looked up again and again */

        if (pc % 100 == 0 && name_of("one", 0x1000) == NULL) {
            break;
        }
    }

    is_int(pc, 0x1000 + 40000, "a name that is in use stays");
    ok(prof_names_own->end > 4 * PROF_NAMES_MAX, "40 MB of names were written");
    ok(name_of("one", pc - 1) != NULL, "the last one is there");
    ok(name_of("one", 0x1001) == NULL, "the second one is not");

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
        put(text, 0x10, text);
        n += name_of(text, 0x10) != NULL;
    }

    is_int(n, 5000, "thousands of objects are known");

    prof_names_clear();
}


static void
test_units(void)
{
    prof_buf_t           answer;
    prof_names_object_t  o;

    static char  data[PROF_NAMES_RECORD + 1];

    prof_names_object(&o, "one", "/root");
    prof_buf_init(&answer);

    memset(data, 'u', sizeof(data));

    answer.data = data;
    answer.len = PROF_NAMES_RECORD;

    prof_names_units_put(&o, 1, &answer);
    answer.len++;
    prof_names_units_put(&o, 2, &answer);

    prof_buf_init(&answer);

    ok(prof_names_units(&o, 1, &answer) == PROF_OK
       && answer.len == PROF_NAMES_RECORD
       && memcmp(answer.data, data, answer.len) == 0,
       "the largest answer is kept");
    ok(prof_names_units(&o, 2, &answer) != PROF_OK,
       "a larger one is not kept");
    ok(prof_names_units(&o, 3, &answer) != PROF_OK,
       "another question has no answer");

    prof_buf_free(&answer);
    prof_names_clear();
}


static void
test_shared(void)
{
    int    status;
    pid_t  pid;

    is_int(prof_names_share(7), PROF_OK, "memory is shared");

    put("one", 0x10, "of the parent");

    pid = fork();

    if (pid == 0) {
        put("one", 0x20, "of the child");

        _exit(!name_of("one", 0x10)
              || strcmp(name_of("one", 0x10), "of the parent") != 0
              || !prof_names_first());
    }

    (void) waitpid(pid, &status, 0);

    is_int(status, 0, "a process that is forked has the names");
    is_str(name_of("one", 0x20), "of the child", "and gives names");
    ok(!prof_names_first(), "one process of all is the first");

    (void) prof_names_share(7);
    is_str(name_of("one", 0x20), "of the child",
           "memory with the same key stays");

    (void) prof_names_share(8);
    ok(name_of("one", 0x20) == NULL, "memory with another key is new");
    ok(prof_names_own == NULL, "a process with shared memory has no other");

    prof_names_clear();
}


/*
 * Processes that write names all the time are killed.  The others find the
 * right names or no names, and go on.
 */

static void
test_killed(void)
{
    int              status;
    pid_t            pids[2];
    uint32_t         bad, i, j, n;
    struct timespec  time;

    is_int(prof_names_share(9), PROF_OK, "memory is shared");

    bad = 0;
    n = 0;
    time.tv_sec = 0;
    srandom(1);

    for (i = 0; i < 100; i++) {

        for (j = 0; j < 2; j++) {
            pids[j] = fork();

            if (pids[j] == 0) {
                writer(i * 7919);
                _exit(0);
            }
        }

        time.tv_nsec = random() % 1000000;
        (void) nanosleep(&time, NULL);

        for (j = 0; j < 2; j++) {
            (void) kill(pids[j], SIGKILL);
            (void) waitpid(pids[j], &status, 0);
        }

        bad += wrong();

        put("after", i, "right");
        n += name_of("after", i) != NULL;
    }

    is_int(bad, 0, "killed writers leave no wrong name");
    is_int(n, 100, "afterwards names are written and found");
    ok(prof_names_shared->end > PROF_NAMES_MAX,
       "the writers wrote to all memory");

    prof_names_clear();
}


/* any content yields no name, or a right one, and harms nothing */

static void
test_damaged(void)
{
    char      *p;
    size_t     at;
    uint32_t   bad, i, n;

    (void) prof_names_share(10);

    p = (char *) prof_names_shared;
    bad = 0;
    srandom(2);

    for (i = 0; i < 40; i++) {
        writer(i * 100);

        for (n = 0; n < 2000; n++) {
            at = 8 + (size_t) random() % (sizeof(prof_names_memory_t) - 8);

            /* half of it where all records are found */

            if (n % 2) {
                at = at % (offsetof(prof_names_memory_t, ring) - 8) + 8;
            }

            p[at] = random();
        }

        if (i % 10 == 9) {
            for (at = 8; at < sizeof(prof_names_memory_t); at++) {
                p[at] = random();
            }
        }

        bad += wrong();
    }

    is_int(bad, 0, "damaged memory has no wrong name");

    prof_names_shared->end = UINT64_MAX - 3;
    put("one", 0x10, "wraps");
    prof_names_shared->end = UINT64_MAX - PROF_NAMES_MAX;
    put("one", 0x20, "wraps");
    is_int(wrong(), 0, "the largest numbers are no places");

    prof_names_clear();
}


static void
test_layout(void)
{
    (void) prof_names_share(11);

    put("one", 0x10, "first");
    prof_names_shared->layout++;

    ok(name_of("one", 0x10) == NULL, "another layout is not read");

    put("one", 0x20, "own");
    is_str(name_of("one", 0x20), "own",
           "with another layout the process has memory of its own");

    prof_names_shared->layout--;
    ok(name_of("one", 0x20) == NULL, "another layout is not written");

    prof_names_clear();
}


/* the last test: the limit is that of the process */

static void
test_no_memory(void)
{
    int            status;
    pid_t          pid;
    struct rlimit  rl;

    pid = fork();

    if (pid == 0) {
        rl.rlim_cur = 1024 * 1024;
        rl.rlim_max = 1024 * 1024;

        (void) setrlimit(RLIMIT_AS, &rl);

        if (prof_names_share(12) != PROF_ERROR) {
            _exit(1);
        }

        put("one", 0x10, "first");

        _exit(name_of("one", 0x10) != NULL || prof_names_first());
    }

    (void) waitpid(pid, &status, 0);
    is_int(status, 0, "without memory there are no names, and no crash");
}


static const prof_name_t *
find(const prof_names_object_t *o, uint64_t pc)
{
    return prof_names_find(o, pc, pc, &found);
}


static const char *
name_of(const char *object, uint64_t pc)
{
    const prof_name_t    *name;
    prof_names_object_t   o;

    prof_names_object(&o, object, "/root");

    name = find(&o, pc);

    return name ? name->name : NULL;
}


static void
put(const char *object, uint64_t pc, const char *name)
{
    prof_name_t          n;
    prof_names_object_t  o;

    prof_names_object(&o, object, "/root");

    memset(&n, 0, sizeof(prof_name_t));

    n.pc = pc;
    n.function = pc;
    n.name = (char *) (uintptr_t) name;
    n.source = name ? PROF_SOURCE_SYMBOLS : PROF_SOURCE_NONE;

    prof_names_put(&o, &n);
}


/* names of different lengths, which tell their addresses */

static void
writer(uint32_t n)
{
    char      text[600];
    uint32_t  i, len;

    for (i = n; i < n + KEYS; i++) {
        len = snprintf(text, sizeof(text), "%u ", i % KEYS);

        memset(text + len, 'a' + i % 26, 400);
        text[len + i % 400] = '\0';

        put("killed", i % KEYS, text);
    }
}


static uint32_t
wrong(void)
{
    char         text[16];
    size_t       len;
    uint32_t     i, n;
    const char  *name;

    n = 0;

    for (i = 0; i < KEYS; i += 7) {
        name = name_of("killed", i);

        if (name == NULL) {
            continue;
        }

        len = snprintf(text, sizeof(text), "%u ", i);

        n += strncmp(name, text, len) != 0
             || strspn(name + len, (char[]) { name[len], '\0' })
                != strlen(name + len);
    }

    return n;
}
