
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Limits, return codes and the few definitions that all rooms of the profiler
 * core share.  Nothing in shared/ knows nginx.
 */


#ifndef _PROF_BASE_H_INCLUDED_
#define _PROF_BASE_H_INCLUDED_


#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stddef.h>
#include <stdint.h>


#define PROF_VERSION  "0.1.0"


/*
 * nginx loads modules with RTLD_GLOBAL, so each symbol that is not hidden
 * would become part of the worker's global scope.
 */

#define PROF_HIDDEN_BEGIN  _Pragma("GCC visibility push(hidden)")
#define PROF_HIDDEN_END    _Pragma("GCC visibility pop")


#define PROF_OK        0
#define PROF_ERROR    -1
#define PROF_LIMIT    -2    /* a stated bound was reached */


/*
 * The number of frames of one stack.  Stacks are stored from the innermost
 * frame outwards.  A deeper stack loses its outermost frames and contains a
 * note about them.
 */

#define PROF_MAX_DEPTH  256


/*
 * Functions between the profiled code and the profiler.  Sampled stacks do not
 * show them.
 */

#define PROF_GLUE  __attribute__((noinline, section("prof_glue")))


/* parts of functions that are PROF_GLUE */

#define PROF_GLUE_INLINE  static inline __attribute__((always_inline))


/*
 * Functions that run for every request.  Compiler and linker place them side
 * by side, because most of their cost is code that is not in a cache.
 */

#define PROF_HOT  __attribute__((hot))


/* variables of functions that are PROF_HOT, together on few cache lines */

#define PROF_HOT_DATA  __attribute__((section("prof_hot")))


/*
 * A frame is an address, or a name.  Names are small integers, because the
 * first page of the address space contains no code. 0 ..  PROF_FRAME_FIXED - 1
 * are the fixed names below.  A capture assigns the others, up to
 * PROF_FRAME_NAMED.
 */

#define PROF_FRAME_NONE        0
#define PROF_FRAME_TRUNCATED   1    /* "[truncated]": deeper than the limit */
#define PROF_FRAME_NO_UNWIND   2    /* "[no unwind info]" */
#define PROF_FRAME_BAD_STACK   3    /* "[bad stack]": a read out of bounds */
#define PROF_FRAME_TREE_FULL   4    /* "[call tree full]" */
#define PROF_FRAME_WAITING     5    /* "[waiting]" */
#define PROF_FRAME_TURN        6    /* "[turn]": before the first call in it */
#define PROF_FRAME_OTHER       7    /* "[other]": there were too many names */
#define PROF_FRAME_ELIDED      8    /* "[frames left out]": of the middle */
#define PROF_FRAME_BESIDE      9    /* "beside": a wait beside another one */
#define PROF_FRAME_FIXED       10
#define PROF_FRAME_NAMED       4096

#define prof_frame_is_name(pc)  ((pc) < PROF_FRAME_NAMED)


/*
 * Functions of interpreters have keys in a range without addresses, because no
 * marked address has their load (PROF_LOAD_SCRIPT).  The first key stands for
 * an unknown function.
 */

#define PROF_FRAME_SCRIPT         ((uintptr_t) 0xfffe << 48)

#define prof_frame_is_script(pc)  ((uintptr_t) (pc) >> 48 == 0xfffe)


/*
 * The kernel's code is in the last 256 TB of the address space.  No marked
 * address is there.
 */

#define prof_frame_is_kernel(pc)  ((uintptr_t) (pc) >> 48 == 0xffff)


PROF_HIDDEN_BEGIN

/*
 * Keeps the object that contains this function mapped until the process ends,
 * even if the object is closed: signals, hooks and threads may hold addresses
 * of its code.  Has no effect in a program that is linked with this code.
 * Context: not in a signal.
 */
void prof_pin(void);

PROF_HIDDEN_END


#endif /* _PROF_BASE_H_INCLUDED_ */
