
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The unwind row: how to get from one frame to its caller.  A row is valid
 * from its code address up to that of the next row.  Eight bytes, stored as
 * one integer:
 *
 *     bits  0..31   pc     address, relative to the object's first code byte
 *     bits 32..47   off    argument of "how"
 *     bits 48..55   fp     where the caller's frame pointer was saved, signed
 *     bits 56..63   how    how to find the CFA, the caller's stack pointer
 *
 * Values of "how" below PROF_ROW_ARCH are the same on all architectures.  The
 * architecture's header defines the others as equations.  A rule of zero is
 * PROF_ROW_NONE.
 *
 * One byte beside each row, "aux", is for a register that only very few frames
 * need.  It has the form of "fp".
 */


#ifndef _PROF_ROW_H_INCLUDED_
#define _PROF_ROW_H_INCLUDED_


#include "base/prof_base.h"


#define PROF_ROW_NONE         0    /* no unwind entry covers this code */
#define PROF_ROW_UNSUPPORTED  1    /* an unwind entry covers it, but a row
                                      cannot express the entry */
#define PROF_ROW_END          2    /* the outermost frame */
#define PROF_ROW_SIGFRAME     3    /* the frame that a signal handler returns
                                      to: a ucontext_t is at sp */
#define PROF_ROW_ENGINE       4    /* code of an interpreter, whose frames are
                                      shown to its engine */
#define PROF_ROW_ARCH         5


/*
 * A saved register ("fp", "aux"), counted in words:
 *
 *     0                    not saved: still has the caller's value
 *     v < 0, not LOST      *(CFA + 8 * v)
 *     v > 0                *(frame pointer - 8 * (v - 1))
 *     PROF_ROW_LOST        saved where a row cannot express it
 */

#define PROF_ROW_LOST  (-128)

#define PROF_ROW_OFF_MAX  0xffff

#define prof_row(how, off, fp)                                                \
    ((uint64_t) (uint8_t) (how) << 56 | (uint64_t) (uint8_t) (fp) << 48       \
     | (uint64_t) (uint16_t) (off) << 32)

#define prof_row_pc(row)    ((uint32_t) (row))
#define prof_row_rule(row)  ((row) & ~(uint64_t) UINT32_MAX)
#define prof_row_off(row)   ((uint32_t) ((row) >> 32) & PROF_ROW_OFF_MAX)
#define prof_row_fp(row)    ((int8_t) ((row) >> 48))
#define prof_row_how(row)   ((uint32_t) ((row) >> 56))

#define prof_row_known(row)  (prof_row_how(row) > PROF_ROW_UNSUPPORTED)


#endif /* _PROF_ROW_H_INCLUDED_ */
