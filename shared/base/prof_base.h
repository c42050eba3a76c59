
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Limits, return codes and the few definitions that every layer of the
 * profiler core shares.  Nothing in shared/ knows nginx.
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
 * nginx loads modules with RTLD_GLOBAL: every symbol that is not hidden would
 * become part of the worker's global scope.
 */

#define PROF_HIDDEN_BEGIN  _Pragma("GCC visibility push(hidden)")
#define PROF_HIDDEN_END    _Pragma("GCC visibility pop")


#define PROF_OK        0
#define PROF_ERROR    -1
#define PROF_LIMIT    -2    /* a stated bound was reached */


/*
 * Frames kept of one stack.  Stacks are recorded from the innermost frame
 * outwards; a deeper one loses its outermost frames and says so.
 */

#define PROF_MAX_DEPTH  256


/*
 * Functions that stand between what is profiled and the profiler: sampled
 * stacks do not show them.
 */

#define PROF_GLUE  __attribute__((noinline, section("prof_glue")))


/* their parts */

#define PROF_GLUE_INLINE  static inline __attribute__((always_inline))


/*
 * Functions that run for every request.  Compiler and linker put them side by
 * side: what they cost is, above all, code that is in no cache.
 */

#define PROF_HOT  __attribute__((hot))


/* variables that these read: few lines of the cache */

#define PROF_HOT_DATA  __attribute__((section("prof_hot")))


/*
 * A frame is an address, or the name of something that is no code.  Names are
 * small integers: no code lives in the first page of the address space.
 * 0 .. PROF_FRAME_FIXED - 1 are the fixed names below, the rest up to
 * PROF_FRAME_NAMED are given out by a capture.
 */

#define PROF_FRAME_NONE        0
#define PROF_FRAME_TRUNCATED   1    /* "[truncated]": deeper than the limit */
#define PROF_FRAME_NO_UNWIND   2    /* "[no unwind info]" */
#define PROF_FRAME_BAD_STACK   3    /* "[bad stack]": a read out of bounds */
#define PROF_FRAME_TREE_FULL   4    /* "[call tree full]" */
#define PROF_FRAME_WAITING     5    /* "[waiting]" */
#define PROF_FRAME_TURN        6    /* "[turn]": before the first call in it */
#define PROF_FRAME_OTHER       7    /* "[other]": a name that had no room */
#define PROF_FRAME_FIXED       8
#define PROF_FRAME_NAMED       4096

#define prof_frame_is_name(pc)  ((pc) < PROF_FRAME_NAMED)


/*
 * Functions of interpreters have keys in a range where no address is: a marked
 * address does not have this load (PROF_LOAD_SCRIPT).  The first one is that of
 * a function that is not known.
 */

#define PROF_FRAME_SCRIPT         ((uintptr_t) 0xfffe << 48)

#define prof_frame_is_script(pc)  ((uintptr_t) (pc) >> 48 == 0xfffe)


PROF_HIDDEN_BEGIN

/*
 * The object that this is a part of remains mapped for the rest of the
 * process's life, even if it is closed: signals, hooks and threads may hold
 * addresses of its code.  A program that is linked with it remains anyway.
 * Context: not in a signal.
 */
void prof_pin(void);

PROF_HIDDEN_END


#endif /* _PROF_BASE_H_INCLUDED_ */
