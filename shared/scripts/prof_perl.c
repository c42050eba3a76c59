
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds Perl among the loaded objects.  In a child process, the interpreter
 * runs a known script, which calls a function in C.  This function takes its
 * own stack as the signal handler would.  The engine is on only if each of
 * these stacks has the right statement: Perl may have other structures.
 *
 * The module is not linked with Perl.  It looks up Perl's exported functions.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_perl.h"
#include "scripts/prof_scripts.h"
#include "scripts/prof_trial.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>


#if (__x86_64__)


#define PROF_PERL_LIBRARY  "/libperl.so"

#define PROF_PERL_CALLS    5


typedef struct {

    /* Perl_newXS() and Perl_eval_pv(); Perl's macros add the first argument */

    void              *(*newxs)(uintptr_t perl, const char *name,
                                void (*function)(uintptr_t perl, void *cv),
                                const char *file);
    void              *(*eval)(uintptr_t perl, const char *text, int32_t croak);

    prof_unwind_t      *unwind;
    prof_walk_cache_t  *cache;
    uintptr_t           top;
    uint32_t            calls;
    uint32_t            wrong;
    uintptr_t           pcs[PROF_MAX_DEPTH];
} prof_perl_trial_t;


typedef struct {
    const char  *function;
    uint32_t     line;
} prof_perl_expected_t;


static int prof_perl_attach(prof_unwind_t *u, int trials,
    prof_engine_code_t *code, const char **state);
static const char *prof_perl_examine(prof_unwind_t *u,
    const prof_object_t *object);
static const char *prof_perl_find(prof_perl_trial_t *t, void *handle);
static const char *prof_perl_run(void *data);
static void prof_perl_call(uintptr_t perl, void *cv);


const prof_engine_t  prof_perl_engine = { "Perl", prof_perl_attach };


/*
 * The object that was examined; NULL: no object.  Each object is examined once:
 * a look-up of a function takes the loader's lock, and another thread may hold
 * this lock while it loads an object.
 */

static const prof_object_t  *prof_perl_seen;
static const char           *prof_perl_why;
static const pthread_key_t  *prof_perl_key;     /* of its interpreter */

static prof_perl_trial_t    *prof_perl_running;


/*
 * Statements in a function with a name of its own, in a loop, in a block that
 * has a stack of its own, in a function whose name is a symbol, in one without
 * a name, and outside of functions.
 */

static const char  prof_perl_script[] =
    "# line 1 \"profile trial\"\n"
    "package ngx_http_profile_trial;\n"
    "sub inner { for my $i (1) { for my $j (1) {\n"
    "  ngx_http_profile_call(); } } }\n"
    "sub outer { my @x = sort {\n"
    "    ngx_http_profile_call(); 0 } 2, 1; inner() }\n"
    "package main;\n"
    "sub ngx_http_profile_symbol { ngx_http_profile_trial::outer();\n"
    "  ngx_http_profile_trial::ngx_http_profile_call(); }\n"
    "ngx_http_profile_symbol();\n"
    "sub {\n"
    "  ngx_http_profile_trial::ngx_http_profile_call(); }->();\n"
    "ngx_http_profile_trial::ngx_http_profile_call();\n";

static const prof_perl_expected_t  prof_perl_expected[PROF_PERL_CALLS] = {
    { "outer", 5 },
    { "inner", 3 },
    { "ngx_http_profile_symbol", 8 },
    { "__ANON__", 11 },
    { "main program", 12 }
};


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

        if (!trials) {
            *state = prof_engine_late;
            return PROF_ERROR;
        }

        prof_perl_why = prof_perl_examine(u, object);
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

    code->start = prof_perl.start;
    code->end = prof_perl.end;
    code->compiles = 0;
    code->frame = prof_perl_frame;

    *state = "on";

    return PROF_OK;
}


/* returns NULL, or why the object cannot be used */

static const char *
prof_perl_examine(prof_unwind_t *u, const prof_object_t *object)
{
    void               *handle;
    const char         *why;
    prof_perl_trial_t  *t;

    t = calloc(1, sizeof(prof_perl_trial_t));
    if (t == NULL) {
        return "off: no memory";
    }

    why = "off: no memory";

    t->unwind = u;
    t->cache = calloc(1, sizeof(prof_walk_cache_t));

    if (t->cache) {
        handle = dlopen(object->path, RTLD_LAZY|RTLD_NOLOAD);
        why = handle ? prof_perl_find(t, handle)
                     : "off: the library cannot be opened";

        if (why == NULL) {
            why = prof_trial(prof_perl_run, t, &prof_perl, sizeof(prof_perl));
        }

        if (handle) {
            (void) dlclose(handle);
        }
    }

    free(t->cache);
    free(t);

    return why;
}


static const char *
prof_perl_find(prof_perl_trial_t *t, void *handle)
{
    size_t     len;
    uintptr_t  loop;

    *(void **) &t->newxs = dlsym(handle, "Perl_newXS");
    *(void **) &t->eval = dlsym(handle, "Perl_eval_pv");

    prof_perl_key = dlsym(handle, "PL_thr_key");

    prof_perl.nextstate = (uintptr_t) dlsym(handle, "Perl_pp_nextstate");
    prof_perl.dbstate = (uintptr_t) dlsym(handle, "Perl_pp_dbstate");
    loop = (uintptr_t) dlsym(handle, "Perl_runops_standard");

    /* without threads, Perl has no interpreter in a structure */

    if (prof_perl_key == NULL || prof_perl.nextstate == 0
        || prof_perl.dbstate == 0 || loop == 0
        || t->newxs == NULL || t->eval == NULL)
    {
        return "off: the layout of this build is not known";
    }

    prof_perl.start = prof_unwind_function(t->unwind,
                                           prof_engine_mark(t->unwind, loop),
                                           &len);

    if (prof_perl.start == 0) {
        return "off: its code has no unwind information";
    }

    prof_perl.end = prof_perl.start + len;
    prof_perl.interpreter = (uintptr_t) pthread_getspecific(*prof_perl_key);

    return prof_perl.interpreter ? NULL : "off: the worker has no interpreter";
}


/* the trial; its process ends, and what the script has changed with it */

static const char *
prof_perl_run(void *data)
{
    prof_perl_trial_t *t = data;

    t->top = (uintptr_t) __builtin_frame_address(0);
    prof_perl_running = t;

    (void) t->newxs(prof_perl.interpreter,
                    "ngx_http_profile_trial::ngx_http_profile_call",
                    prof_perl_call, "profile trial");
    (void) t->eval(prof_perl.interpreter, prof_perl_script, 0);

    if (t->calls != PROF_PERL_CALLS) {
        return "off: its test does not run";
    }

    return t->wrong ? "off: the stacks of this build cannot be read" : NULL;
}


/*
 * The function in C.  It does not take the mark of its arguments from Perl's
 * stack: nothing uses this mark after a call that is a statement.
 */

static void
prof_perl_call(uintptr_t perl, void *cv)
{
    uint32_t                     i, n, found;
    prof_script_t                s;
    prof_perl_trial_t           *t;
    prof_engine_code_t           code;
    const prof_perl_expected_t  *e;

    (void) perl;
    (void) cv;

    t = prof_perl_running;

    if (t->calls == PROF_PERL_CALLS) {
        t->wrong = 1;
        return;
    }

    e = &prof_perl_expected[t->calls++];

    memset(&code, 0, sizeof(prof_engine_code_t));
    code.start = prof_perl.start;
    code.end = prof_perl.end;
    code.frame = prof_perl_frame;

    n = prof_engine_take(t->unwind, &code, t->cache, t->top, t->pcs);
    found = 0;

    for (i = 0; i < n; i++) {

        if (prof_script_find(t->pcs[i], &s) != PROF_OK) {
            continue;
        }

        found++;

        t->wrong |= s.line != e->line
                    || s.function_len != strlen(e->function)
                    || memcmp(s.function, e->function, s.function_len) != 0
                    || s.file_len != sizeof("profile trial") - 1
                    || memcmp(s.file, "profile trial", s.file_len) != 0;
    }

    t->wrong |= (found != 1);
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
