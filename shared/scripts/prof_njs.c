
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds njs among the loaded objects.  In a child process, a VM runs a known
 * script, whose functions call a function in C.  This function learns the
 * layout of njs's structures from the VM, and takes its own stack as the signal
 * handler would.  The engine is on only if this stack is right.
 *
 * A VM in this process would break njs: since version 0.8.0 static variables
 * have the numbers of njs's prototypes, and each VM registers its prototypes
 * again.
 *
 * This module is not linked with njs.  It looks up the functions that the
 * module of njs calls.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_njs_trial.h"
#include "scripts/prof_trial.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>


#if (__x86_64__)


#define PROF_NJS_MODULE   "/ngx_http_js_module.so"

/* njs_vm_opt_t: larger than any version's, and the value of unset bytes */

#define PROF_NJS_OPTIONS  1024
#define PROF_NJS_UNSET    0xa5

/* its first flags: interactive, trailer, init, disassemble, backtrace */

#define PROF_NJS_INIT       2
#define PROF_NJS_BACKTRACE  4


/* njs_value_t */

typedef struct {
    uintptr_t  words[2];
} __attribute__((aligned(16))) prof_njs_value_t;

/* words of space for a value: other versions may have larger values */

#define PROF_NJS_VALUE_MAX  8


static int prof_njs_attach(prof_unwind_t *u, int trials,
    prof_engine_code_t *code, const char **state);
static const char *prof_njs_examine(prof_unwind_t *u);
static int prof_njs_api(prof_njs_api_t *api);
static const char *prof_njs_calibrate(void *data);
static const char *prof_njs_run(prof_njs_trial_t *t, void *vm);
static int prof_njs_is_known(const prof_njs_trial_t *t, void *vm);
static int prof_njs_options(const prof_njs_api_t *api, uint8_t *options);
static int prof_njs_bind(const prof_njs_trial_t *t, void *vm);


const prof_engine_t  prof_njs_engine = { "njs", prof_njs_attach };


/*
 * The known versions.  Others may have functions with the same names and other
 * arguments.
 */

static const char  *prof_njs_versions[] = { "0.7.9", "0.8.9", "1.0.2", NULL };


/*
 * Calls of all types: of a function in C that calls back, of a function while
 * the arguments of another call are not complete.
 */

static const char  prof_njs_script[] =
    "function inner() {\n"
    "    profile();\n"
    "}\n"
    "function middle(x) {\n"
    "    let y = [x];\n"
    "    return y.map(inner);\n"
    "}\n"
    "function outer(x) {\n"
    "    return middle(x);\n"
    "}\n"
    "function first(x) { return x; }\n"
    "\n"
    "first(outer(1));\n";


/*
 * The object that was examined; NULL: no object.  Each object is examined once:
 * a look-up of a function takes the loader's lock, and another thread may hold
 * this lock while it loads an object.  The master makes tables when it reads a
 * configuration, while the objects of the last configuration still exist.  So
 * the next tables may have another object at the same address.
 */

static const prof_object_t  *prof_njs_seen;
static const char           *prof_njs_why;


static int
prof_njs_attach(prof_unwind_t *u, int trials, prof_engine_code_t *code,
    const char **state)
{
    uint32_t              next;
    const prof_object_t  *object;

    next = 0;
    object = prof_engine_object(u, PROF_NJS_MODULE, &next);

    if (object == NULL) {
        prof_njs_seen = NULL;
        return PROF_LIMIT;
    }

    if (object != prof_njs_seen) {

        if (!trials) {
            *state = prof_engine_late;
            return PROF_ERROR;
        }

        prof_njs_why = prof_njs_examine(u);
        prof_njs_seen = object;
    }

    if (prof_njs_why) {
        *state = prof_njs_why;
        return PROF_ERROR;
    }

    code->start = prof_njs.start;
    code->end = prof_njs.end;
    code->compiles = 0;
    code->frame = prof_njs_frame;

    *state = "on";

    return PROF_OK;
}


/* returns NULL, or why njs cannot be used */

static const char *
prof_njs_examine(prof_unwind_t *u)
{
    const char        *why;
    prof_njs_trial_t  *t;

    t = calloc(1, sizeof(prof_njs_trial_t));
    if (t == NULL) {
        return "off: no memory";
    }

    why = "off: no memory";

    t->unwind = u;
    t->cache = calloc(1, sizeof(prof_walk_cache_t));

    if (t->cache) {
        why = prof_njs_api(&t->api) == PROF_OK
              ? prof_trial(prof_njs_calibrate, t, &prof_njs, sizeof(prof_njs))
              : "off: this version has another interface";
    }

    free(t->cache);
    free(t);

    return why;
}


/*
 * Finds the functions that the module of njs calls.  nginx makes the functions
 * of modules global, so these may be in a module that was loaded earlier, for
 * example in that of njs for "stream".  The program's handle finds the same
 * functions.  RTLD_DEFAULT would prevent the unloading of their module.
 */

static int
prof_njs_api(prof_njs_api_t *api)
{
    void      *program;
    uint32_t   missing;

    program = dlopen(NULL, RTLD_LAZY);

    if (program == NULL) {
        return PROF_ERROR;
    }

    missing = 0;

#define PROF_NJS_SYMBOL(type, name, args)                                     \
    *(void **) &api->name = dlsym(program, #name);                            \
    missing += (api->name == NULL);

    PROF_NJS_API(PROF_NJS_SYMBOL)
#undef PROF_NJS_SYMBOL

    (void) dlclose(program);

    return missing ? PROF_ERROR : PROF_OK;
}


/* the trial; its process ends, and takes the VM with it */

static const char *
prof_njs_calibrate(void *data)
{
    prof_njs_trial_t *t = data;

    void     *vm;
    uint8_t   options[PROF_NJS_OPTIONS];

    if (prof_njs_options(&t->api, options) != PROF_OK) {
        return "off: this version has another interface";
    }

    vm = t->api.njs_vm_create(options);

    if (vm == NULL) {
        return "off: its test does not run";
    }

    return prof_njs_run(t, vm);
}


/*
 * Sets flags in options that njs has initialized.  The flags follow the last
 * number that is not zero.
 */

static int
prof_njs_options(const prof_njs_api_t *api, uint8_t *options)
{
    uint32_t  i, size, flags;

    memset(options, PROF_NJS_UNSET, PROF_NJS_OPTIONS);

    api->njs_vm_opt_init(options);

    for (size = PROF_NJS_OPTIONS; size && options[size - 1] == PROF_NJS_UNSET;
         size--)
    {
        /* void */
    }

    flags = 0;

    for (i = 0; i < size; i++) {
        if (options[i]) {
            flags = (i & ~3u) + 4;
        }
    }

    if (size == PROF_NJS_OPTIONS || flags == 0
        || size - flags <= PROF_NJS_BACKTRACE)
    {
        return PROF_ERROR;
    }

    options[flags + PROF_NJS_INIT] = 1;
    options[flags + PROF_NJS_BACKTRACE] = 1;

    return PROF_OK;
}


static const char *
prof_njs_run(prof_njs_trial_t *t, void *vm)
{
    uint8_t           *start, script[sizeof(prof_njs_script)];
    prof_njs_value_t   retval;

    if (!prof_njs_is_known(t, vm)) {
        return "off: this version is not known";
    }

    /* the compiler of njs does not change the script */

    memcpy(script, prof_njs_script, sizeof(script));
    start = script;

    t->why = "off: its test does not run";

    if (prof_njs_bind(t, vm) == PROF_OK
        && t->api.njs_vm_compile(vm, &start, script + sizeof(script) - 1) == 0)
    {
        t->top = (uintptr_t) __builtin_frame_address(0);
        prof_njs_running = t;

        (void) t->api.njs_vm_start(vm, &retval);

        prof_njs_running = NULL;
    }

    return t->why;
}


/* returns whether the version, which scripts see as njs.version, is known */

static int
prof_njs_is_known(const prof_njs_trial_t *t, void *vm)
{
    uint32_t        i;
    uintptr_t       value[PROF_NJS_VALUE_MAX];
    prof_njs_str_t  name;

    static const char  version[] = "njs.version";

    name.length = sizeof(version) - 1;
    name.start = version;

    memset(value, 0, sizeof(value));

    if (t->api.njs_vm_value(vm, &name, value) != 0
        || t->api.njs_vm_value_string(vm, &name, value) != 0)
    {
        return 0;
    }

    for (i = 0; prof_njs_versions[i]; i++) {
        if (name.length == strlen(prof_njs_versions[i])
            && memcmp(name.start, prof_njs_versions[i], name.length) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* makes the function in C a property of the global object */

static int
prof_njs_bind(const prof_njs_trial_t *t, void *vm)
{
    void              *function;
    prof_njs_str_t     name;
    prof_njs_value_t   value;

    static const char  known[] = "isNaN";
    static const char  profile[] = "profile";

    function = t->api.njs_vm_function_alloc(vm, prof_njs_trial, 0, 0);

    name.length = sizeof(known) - 1;
    name.start = known;

    memset(&value, 0, sizeof(prof_njs_value_t));

    /* a value of this type has the address of its function */

    if (function == NULL
        || t->api.njs_vm_value(vm, &name, &value) != 0
        || !t->api.njs_value_is_function(&value)
        || (uintptr_t) t->api.njs_value_function(&value) != value.words[1])
    {
        return PROF_ERROR;
    }

    value.words[1] = (uintptr_t) function;

    name.length = sizeof(profile) - 1;
    name.start = profile;

    return t->api.njs_vm_bind(vm, &name, &value, 0) == 0 ? PROF_OK : PROF_ERROR;
}


#else


static int
prof_njs_attach(prof_unwind_t *u, int trials, prof_engine_code_t *code,
    const char **state)
{
    *state = "off: not for this processor";

    return PROF_ERROR;
}


const prof_engine_t  prof_njs_engine = { "njs", prof_njs_attach };


#endif
