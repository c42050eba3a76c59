
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: heap
 * runs: beside
 *
 * Redirects of one object's calls: this program's own.
 */


#include "tap.h"

#include "heap/prof_redirect.h"

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>


static pid_t test_getppid(void);
static pid_t test_call(void);


static pid_t
test_getppid(void)
{
    return -7;
}


__attribute__((noinline)) static pid_t
test_call(void)
{
    return getppid();
}


int
main(void)
{
    void             *real;
    pid_t             parent;
    prof_redirect_t   rd, other;

    real = dlsym(RTLD_DEFAULT, "getppid");
    parent = test_call();

    is_int(prof_redirect_find(&rd, "getppid", (void *) test_call, real),
           PROF_OK, "the import of a function is found");
    is_int(prof_redirect_set(&rd, NULL), PROF_OK,
           "what is not set need not be taken back");
    is_int(test_call(), parent, "finding changes nothing");

    is_int(prof_redirect_set(&rd, (void *) test_getppid), PROF_OK,
           "the calls are redirected");
    is_int(test_call(), -7, "a call goes to the other function");

    is_int(prof_redirect_find(&other, "getppid", (void *) test_call, real),
           PROF_OK, "a function of the same object is like a stub");

    is_int(prof_redirect_set(&rd, NULL), PROF_OK, "the calls are put back");
    is_int(test_call(), parent, "a call goes to the function again");

    is_int(prof_redirect_find(&other, "no_such_function", (void *) test_call,
                              real),
           PROF_ERROR, "a function that the object does not call");
    is_int(prof_redirect_find(&other, "getppid", real, real), PROF_ERROR,
           "an object that does not call the function");

    /* other code has changed the import meanwhile */

    is_int(prof_redirect_set(&rd, (void *) test_getppid), PROF_OK,
           "the calls are redirected again");
    *rd.at = (uintptr_t) real;
    is_int(prof_redirect_set(&rd, NULL), PROF_ERROR,
           "an import that other code has changed is left alone");
    is_int(test_call(), parent, "and the call goes where that code wants");

    return done_testing();
}
