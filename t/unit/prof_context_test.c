
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: context
 * runs: beside
 *
 * The context of the process and of its thread, without nginx; also without
 * descriptors, and in a child.  t/profile_context.t reads it from another
 * process.
 */


#include "tap.h"

#include "context/prof_context.h"

#include <sys/resource.h>
#include <sys/wait.h>


static void test_life(void);
static void test_child(void);
static void test_resources(void);
static void test_write(void);
static int mappings(void);
static int run_child(int (*test)(void));
static int child_has_mapping(void);
static int child_without_descriptors(void);
static int child_without_memory(void);


static prof_context_record_t  record;


int
main(void)
{
    test_life();
    test_child();
    test_resources();
    test_write();

    return done_testing();
}


static void
test_life(void)
{
    prof_context_record_t  **attached;

    is_int(mappings(), 0, "a process begins without a mapping");

    prof_context_close();
    is_int(mappings(), 0, "what is not open can be closed");

    is_int(prof_context_open(), PROF_OK, "the context is opened");
    is_int(mappings(), 1, "the process has its mapping");

    attached = prof_context_attached;
    ok(attached && *attached == NULL, "no record is attached");

    prof_context_attach(&record);
    ok(*attached == &record, "a record is attached");

    prof_context_close();
    is_int(mappings(), 0, "closing removes the mapping");
    ok(*attached == NULL, "closing detaches the record");

    is_int(prof_context_open(), PROF_OK, "the context is opened again");
    is_int(mappings(), 1, "there is one mapping");
    ok(prof_context_attached == attached, "the thread has the same pointer");

    prof_context_close();
}


static void
test_child(void)
{
    is_int(prof_context_open(), PROF_OK, "open before fork()");
    is_int(run_child(child_has_mapping), 0, "a child has no mapping");
    is_int(mappings(), 1, "the parent has its mapping");

    prof_context_close();
}


static void
test_resources(void)
{
    is_int(run_child(child_without_descriptors), 0,
           "without a descriptor the mapping has no file");
    is_int(run_child(child_without_memory), 0,
           "without memory the context is not open");
}


static void
test_write(void)
{
    char    text[2 * PROF_CONTEXT_ROUTE];
    size_t  i;

    static const prof_trace_t  trace = {
        0x0102030405060708, 0x090a0b0c0d0e0f10, 0x1112131415161718
    };

    prof_context_write(&record, &trace, 0x03, "/a", 2);

    for (i = 0; i < 16 && record.trace[i] == i + 1; i++) { /* void */ }
    is_int(i, 16, "the bytes of the trace are in the order of its text");

    for (i = 0; i < 8 && record.span[i] == i + 0x11; i++) { /* void */ }
    is_int(i, 8, "the bytes of the span are in the order of its text");

    is_int(record.valid, 1, "the record is valid");
    is_int(record.flags, 3, "the record has its flags");
    is_int(record.size, 4, "the attributes have their size");
    ok(memcmp(record.attributes, "\0\2/a", 4) == 0,
       "the record has its attribute");

    prof_context_write(&record, NULL, 0x03, "", 0);

    for (i = 0; i < 16 && record.trace[i] == 0; i++) { /* void */ }
    is_int(i, 16, "without a trace its bytes are zero");
    is_int(record.flags, 0, "without a trace its flags are zero");
    is_int(record.size, 0, "without a route there is no attribute");

    memset(text, 'x', sizeof(text));
    prof_context_write(&record, NULL, 0, text, PROF_CONTEXT_ROUTE);
    is_int(record.size, 2 + PROF_CONTEXT_ROUTE, "the longest route fits");

    prof_context_write(&record, NULL, 0, text, sizeof(text));
    is_int(record.size, 2 + PROF_CONTEXT_ROUTE, "a longer route is cut off");

    memcpy(text + PROF_CONTEXT_ROUTE - 2, "\xe2\x82\xac", 3);
    prof_context_write(&record, NULL, 0, text, sizeof(text));
    is_int(record.size, PROF_CONTEXT_ROUTE, "a character is not cut");

    memset(text, 0x80, sizeof(text));
    prof_context_write(&record, NULL, 0, text, sizeof(text));
    is_int(record.size, 0, "bytes that are no text are left out");
}


/* returns the number of mappings that readers find by name */

static int
mappings(void)
{
    int    n;
    char   line[4096];
    FILE  *f;

    f = fopen("/proc/self/maps", "r");
    n = 0;

    while (f && fgets(line, sizeof(line), f)) {
        n += strstr(line, "/memfd:OTEL_CTX") != NULL;
    }

    if (f) {
        (void) fclose(f);
    }

    return n;
}


static int
run_child(int (*test)(void))
{
    int    status;
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        _exit(test());
    }

    if (pid == -1 || waitpid(pid, &status, 0) != pid) {
        return -1;
    }

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}


static int
child_has_mapping(void)
{
    return mappings();
}


static int
child_without_descriptors(void)
{
    int             rc;
    struct rlimit   old, none;

    (void) getrlimit(RLIMIT_NOFILE, &old);

    none = old;
    none.rlim_cur = 0;
    (void) setrlimit(RLIMIT_NOFILE, &none);

    rc = prof_context_open();

    (void) setrlimit(RLIMIT_NOFILE, &old);

    return rc != PROF_OK || mappings() != 0 || *prof_context_attached != NULL;
}


static int
child_without_memory(void)
{
    static const struct rlimit  none = { 0, 0 };

    (void) setrlimit(RLIMIT_AS, &none);

    return prof_context_open() != PROF_ERROR || prof_context_attached != NULL;
}
