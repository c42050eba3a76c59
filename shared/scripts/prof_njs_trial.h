
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A VM that runs a known script.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#ifndef _PROF_NJS_TRIAL_H_INCLUDED_
#define _PROF_NJS_TRIAL_H_INCLUDED_


#include "base/prof_base.h"
#include "scripts/prof_njs.h"


/* pages that are remembered; a power of two */
#define PROF_NJS_PAGES  64


/* njs_str_t */

typedef struct {
    size_t       length;
    const char  *start;
} prof_njs_str_t;


typedef intptr_t (*prof_njs_function_pt)(void *vm, void *args, unsigned nargs,
    uintptr_t magic, void *retval);


/*
 * The functions of njs.h that are called: result, name, arguments.  Versions
 * differ in the number of arguments: njs_vm_start() and njs_vm_function_alloc()
 * of older versions have fewer, and ignore the others.
 */

#define PROF_NJS_API(x)                                                       \
    x(void,   njs_vm_opt_init,       (void *options))                         \
    x(void *, njs_vm_create,         (void *options))                         \
    x(int,    njs_vm_compile,        (void *vm, uint8_t **start,              \
                                      uint8_t *end))                          \
    x(int,    njs_vm_start,          (void *vm, void *retval))                \
    x(void *, njs_vm_function_alloc, (void *vm, prof_njs_function_pt fn,      \
                                      unsigned shared, unsigned ctor))        \
    x(int,    njs_vm_value,          (void *vm, const prof_njs_str_t *path,   \
                                      void *retval))                          \
    x(int,    njs_vm_value_string,   (void *vm, prof_njs_str_t *string,       \
                                      const void *value))                     \
    x(int,    njs_value_is_function, (const void *value))                     \
    x(void *, njs_value_function,    (const void *value))                     \
    x(int,    njs_vm_bind,           (void *vm, const prof_njs_str_t *name,   \
                                      const void *value, unsigned shared))


typedef struct {
#define PROF_NJS_FIELD(type, name, args)  type (*name) args;
    PROF_NJS_API(PROF_NJS_FIELD)
#undef PROF_NJS_FIELD
} prof_njs_api_t;


typedef struct {
    prof_njs_api_t       api;
    const char          *why;       /* NULL: the stack is right */
    prof_unwind_t       *unwind;
    prof_walk_cache_t   *cache;
    uintptr_t            top;
    uintptr_t            vm;
    uint32_t             frames;    /* of the interpreter, in the last walk */
    uint32_t             fp;        /* frames with the VM in a register */
    uint32_t             aux;
    uint32_t             other;
    uintptr_t            pages[PROF_NJS_PAGES];     /* that can be read */
    uint32_t             n;
    uintptr_t            pcs[PROF_MAX_DEPTH];
} prof_njs_trial_t;


PROF_HIDDEN_BEGIN

extern prof_njs_trial_t  *prof_njs_running;

/* the function in C that the script calls as profile() */
intptr_t prof_njs_trial(void *vm, void *args, unsigned nargs, uintptr_t magic,
    void *retval);

PROF_HIDDEN_END


#endif /* _PROF_NJS_TRIAL_H_INCLUDED_ */
