
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The common part of the unwinder's tests: the functions of t/fixtures, a
 * library to load and unload, and whether valgrind runs the test.
 */


#ifndef _PROF_UNWIND_FIXTURE_H_INCLUDED_
#define _PROF_UNWIND_FIXTURE_H_INCLUDED_


#include "unwind/prof_unwind.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>


typedef void (*fixture_callback_pt)(void);
typedef void (*fixture_pt)(fixture_callback_pt fn);


extern void fixture_call(fixture_pt fixture, fixture_callback_pt fn);
extern void fixture_nofp(fixture_callback_pt fn);
extern void fixture_realign(fixture_callback_pt fn);
extern void fixture_deref(fixture_callback_pt fn);
extern void fixture_rbx(fixture_callback_pt fn);
extern void fixture_rax(fixture_callback_pt fn);
extern void fixture_r9(fixture_callback_pt fn);
extern void fixture_plt(fixture_callback_pt fn);
extern void fixture_nocfi(fixture_callback_pt fn);
extern void fixture_nocfi_nofp(fixture_callback_pt fn);
extern void fixture_end(fixture_callback_pt fn);
extern void fixture_far(fixture_callback_pt fn);
extern void fixture_noreturn(fixture_callback_pt fn);
extern void fixture_jump(fixture_callback_pt fn);
extern void fixture_null(fixture_callback_pt fn);
extern void fixture_last(fixture_callback_pt fn);

extern char  fixture_nofp_ret[], fixture_realign_ret[], fixture_deref_ret[],
             fixture_rbx_ret[], fixture_rax_ret[], fixture_leaf_trap[],
             fixture_r9_trap[], fixture_nocfi_ret[], fixture_nocfi_nofp_ret[],
             fixture_end_ret[], fixture_far_ret[], fixture_noreturn_ret[],
             fixture_jump_ret[], fixture_jump_code_ret[];

extern char  fixture_odd[], fixture_odd_big[], fixture_odd_max[],
             fixture_odd_unaligned[], fixture_odd_ra[],
             fixture_odd_ra_register[], fixture_odd_expression[],
             fixture_odd_good[], fixture_odd_rbp[], fixture_odd_restored[],
             fixture_odd_gap[];

/* the end of the stack, a variable of glibc */
extern void  *__libc_stack_end;


static inline void *fixture_load(void **function, const char **name);
static inline int fixture_valgrind(void);


/*
 * Loads one of the libraries that the project needs and that this program does
 * not use.  Returns an address in it.
 */

static inline void *
fixture_load(void **function, const char **name)
{
    void    *handle;
    size_t   i;

    static const char  *library[][2] = {
        { "libpcre2-8.so.0", "pcre2_compile_8" },
        { "libjansson.so.4", "json_loads" },
        { "libz.so.1", "compress2" }
    };

    for (i = 0; i < sizeof(library) / sizeof(library[0]); i++) {
        *name = library[i][0];

        if (dlopen(*name, RTLD_NOW|RTLD_NOLOAD)) {
            continue;
        }

        handle = dlopen(*name, RTLD_NOW);

        if (handle) {
            *function = dlsym(handle, library[i][1]);
            return handle;
        }
    }

    *function = NULL;

    return NULL;
}


static inline int
fixture_valgrind(void)
{
    const char  *preload;

    preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload");
}


#endif /* _PROF_UNWIND_FIXTURE_H_INCLUDED_ */
