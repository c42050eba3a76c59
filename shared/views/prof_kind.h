
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The kind of a frame chooses its color in pictures.  It comes from the type of
 * the frame, and for code from the path of its object.  A new kind is one line
 * in the table, and a color in shared/assets/prof_theme.css.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_KIND_H_INCLUDED_
#define _PROF_KIND_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


/* columns: the class in pictures, the text for readers */

#define PROF_KINDS(x)                                                         \
    x(PROGRAM,  "p",  "program")                                              \
    x(MODULE,   "m",  "modules")                                              \
    x(SCRIPT,   "s",  "Lua, njs, Perl")                                       \
    x(LIBC,     "c",  "C library")                                            \
    x(KERNEL,   "k",  "kernel entry")                                         \
    x(TLS,      "t",  "TLS")                                                  \
    x(ZLIB,     "z",  "compression")                                          \
    x(LIBRARY,  "l",  "other libraries")                                      \
    x(UNKNOWN,  "u",  "generated code")                                       \
    x(WAITING,  "w",  "waiting")                                              \
    x(SPAN,     "h",  "stages")                                               \
    x(NOTE,     "n",  "notes")


typedef enum {
#define PROF_KIND_ENUM(name, class, text)  PROF_KIND_##name,
    PROF_KINDS(PROF_KIND_ENUM)
#undef PROF_KIND_ENUM
    PROF_KIND_MAX
} prof_kind_e;


typedef struct {
    const char  *name;
    const char  *text;
} prof_kind_t;


PROF_HIDDEN_BEGIN

/* PROF_KIND_MAX elements */
extern const prof_kind_t  prof_kinds[];

/*
 * Returns the kind of a symbolized frame. prof_kind_object() does not
 * distinguish system calls from other functions of the C library.
 */
uint32_t prof_kind(const prof_profile_t *p, const prof_frame_t *f);
uint32_t prof_kind_object(const prof_profile_t *p, const prof_frame_t *f);

/*
 * Returns the kinds of the functions of a view.  Whatever is below a waiting
 * frame has its kind: causes, the scripts that wait, and the code that the
 * worker ran meanwhile.  Returns an array for free(), or NULL if memory is
 * short.
 */
uint32_t *prof_kind_functions(const prof_profile_t *p, const prof_view_t *v);

/*
 * Appends the text of a kind, not escaped.  The text of PROF_KIND_PROGRAM is
 * the file name of the program.
 */
void prof_kind_text(const prof_profile_t *p, uint32_t kind, prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_KIND_H_INCLUDED_ */
