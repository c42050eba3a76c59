
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds Perl among the loaded objects.  The engine is on for the versions whose
 * layout is known, if the current statement is where the layout has it.
 *
 * The module is not linked with Perl.  It looks up Perl's exported functions,
 * and calls none of them.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_perl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>


#if (__x86_64__)


#define PROF_PERL_LIBRARY      "/libperl.so"

#define PROF_PERL_VERSION_MIN  36
#define PROF_PERL_VERSION_MAX  42


static int prof_perl_attach(prof_unwind_t *u, int trials,
    prof_engine_code_t *code, const char **state);
static const char *prof_perl_open(const prof_unwind_t *u,
    const prof_object_t *object);
static const char *prof_perl_find(const prof_unwind_t *u, void *handle);
static int prof_perl_known(const char *path);


const prof_engine_t  prof_perl_engine = { "Perl", prof_perl_attach };


/*
 * The object that was examined; NULL: no object.  Each object is examined once:
 * a look-up of a function takes the loader's lock, and another thread may hold
 * this lock while it loads an object.
 */

static const prof_object_t  *prof_perl_seen;
static const char           *prof_perl_why;
static const pthread_key_t  *prof_perl_key;     /* of its interpreter */


static int
prof_perl_attach(prof_unwind_t *u, int trials, prof_engine_code_t *code,
    const char **state)
{
    uint32_t              next;
    const prof_object_t  *object;

    next = 0;
    object = prof_engine_object(u, PROF_PERL_LIBRARY, &next);

    if (object == NULL) {
        prof_perl_seen = NULL;
        return PROF_LIMIT;
    }

    if (object != prof_perl_seen) {
        prof_perl_why = prof_perl_open(u, object);
        prof_perl_seen = object;
    }

    if (prof_perl_why) {
        *state = prof_perl_why;
        return PROF_ERROR;
    }

    prof_perl.interpreter = (uintptr_t) pthread_getspecific(*prof_perl_key);

    if (prof_perl.interpreter == 0) {
        *state = "off: the worker has no interpreter";
        return PROF_ERROR;
    }

    if (!prof_arch_readable(prof_perl.interpreter + PERL_CURCOP)
        || !prof_perl_is_statement(prof_arch_load(prof_perl.interpreter
                                                  + PERL_CURCOP)))
    {
        *state = "off: the layout of this build is not known";
        return PROF_ERROR;
    }

    code->start = prof_perl.start;
    code->end = prof_perl.end;
    code->compiles = 0;
    code->frame = prof_perl_frame;

    *state = "on";

    return PROF_OK;
}


/* returns NULL, or why the object cannot be used */

static const char *
prof_perl_open(const prof_unwind_t *u, const prof_object_t *object)
{
    void        *handle;
    const char  *why;

    if (!prof_perl_known(object->path)) {
        return "off: the layout of this version is not known";
    }

    handle = dlopen(object->path, RTLD_LAZY|RTLD_NOLOAD);

    if (handle == NULL) {
        return "off: the library cannot be opened";
    }

    why = prof_perl_find(u, handle);

    (void) dlclose(handle);

    return why;
}


static int
prof_perl_known(const char *path)
{
    unsigned  version;

    return sscanf(strstr(path, PROF_PERL_LIBRARY),
                  PROF_PERL_LIBRARY ".5.%u", &version)
           == 1
           && version >= PROF_PERL_VERSION_MIN
           && version <= PROF_PERL_VERSION_MAX;
}


static const char *
prof_perl_find(const prof_unwind_t *u, void *handle)
{
    size_t     len;
    uintptr_t  loop;

    prof_perl_key = dlsym(handle, "PL_thr_key");

    prof_perl.nextstate = (uintptr_t) dlsym(handle, "Perl_pp_nextstate");
    prof_perl.dbstate = (uintptr_t) dlsym(handle, "Perl_pp_dbstate");
    loop = (uintptr_t) dlsym(handle, "Perl_runops_standard");

    /* without threads, Perl has no interpreter in a structure */

    if (prof_perl_key == NULL || prof_perl.nextstate == 0
        || prof_perl.dbstate == 0 || loop == 0)
    {
        return "off: the layout of this build is not known";
    }

    prof_perl.start = prof_unwind_function(u, prof_engine_mark(u, loop), &len);

    if (prof_perl.start == 0) {
        return "off: its code has no unwind information";
    }

    prof_perl.end = prof_perl.start + len;

    return NULL;
}


#else


static int
prof_perl_attach(prof_unwind_t *u, int trials, prof_engine_code_t *code,
    const char **state)
{
    *state = "off: not for this processor";

    return PROF_ERROR;
}


const prof_engine_t  prof_perl_engine = { "Perl", prof_perl_attach };


#endif
