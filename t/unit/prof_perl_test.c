
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: scripts
 * runs: beside
 *
 * The trial of Perl.  A Perl whose structures have a member more or less is the
 * same as an engine with another offset, so each offset is changed: the engine
 * is off, and this process continues.
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_perl.h"
#include "tap.h"

#include <dlfcn.h>
#include <sys/wait.h>


#if (__x86_64__)


#define TEST_OFFSETS  (sizeof(prof_perl_layout_t) / sizeof(uint32_t))

/* behind this number is that of the innermost function, which is as good */
#define TEST_CXIX     (offsetof(prof_perl_layout_t, si_cxix) / sizeof(uint32_t))

/* versions of Perl: 5.36 and so on */
#define TEST_FIRST    36
#define TEST_LAST     60


static void *test_perl(void);
static const char *test_attach(void);
static int test_is_off(uint32_t offset, int change);


static const char  test_on[] = "on";


int
main(void)
{
    size_t       i;
    uint32_t    *at;

    static char  *argv[] = { "perl", "-e", "0", NULL };

    void        *handle, *perl;
    void       *(*alloc)(void);
    void        (*construct)(void *perl);
    int         (*parse)(void *perl, void *init, int argc, char **args,
                         char **env);

    handle = test_perl();

    if (handle == NULL) {
        return skip_all("no libperl");
    }

    *(void **) &alloc = dlsym(handle, "perl_alloc");
    *(void **) &construct = dlsym(handle, "perl_construct");
    *(void **) &parse = dlsym(handle, "perl_parse");

    perl = alloc();
    construct(perl);

    ok(parse(perl, NULL, 3, argv, NULL) == 0, "an interpreter");

    at = (uint32_t *) &prof_perl_at;

    for (i = 0; i < TEST_OFFSETS; i++) {
        ok(i == TEST_CXIX || test_is_off(i, 8),
           "off with a member before that at %u", at[i]);
        ok(at[i] < 8 || test_is_off(i, -8), "off with one less before %u",
           at[i]);
    }

    is_str(test_attach(), test_on, "on with the structures of Perl");

    return done_testing();
}


static void *
test_perl(void)
{
    int    i;
    char   name[32];
    void  *handle;

    handle = NULL;

    for (i = TEST_FIRST; i <= TEST_LAST && handle == NULL; i += 2) {
        (void) snprintf(name, sizeof(name), "libperl.so.5.%d", i);
        handle = dlopen(name, RTLD_NOW|RTLD_GLOBAL);
    }

    return handle;
}


static const char *
test_attach(void)
{
    const char          *state;
    prof_unwind_t       *u;
    prof_engine_code_t   code;

    state = "off: not loaded";
    u = prof_unwind_create();

    if (u) {
        (void) prof_perl_engine.attach(u, 1, &code, &state);
        prof_unwind_release(u);
    }

    return state;
}


/* in a child process, since an object is examined once */

static int
test_is_off(uint32_t offset, int change)
{
    int    status;
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        ((uint32_t *) &prof_perl_at)[offset] += change;
        _exit(strncmp(test_attach(), "off: ", 5) == 0 ? 0 : 1);
    }

    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}


#else


int
main(void)
{
    return skip_all("for x86-64");
}


#endif
