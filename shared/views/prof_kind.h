
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Kinds of frames, which pictures tell apart by color: whose code it is, told
 * by the object that it is in.  A new kind is one line in the table, and a
 * color in shared/assets/prof_theme.css.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_KIND_H_INCLUDED_
#define _PROF_KIND_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


/* name: the class in pictures; text, for people */

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

/* PROF_KIND_MAX of them */
extern const prof_kind_t  prof_kinds[];

/* the kind of a symbolized frame; the same, but kernel entries are LIBC */
uint32_t prof_kind(const prof_profile_t *p, const prof_frame_t *f);
uint32_t prof_kind_object(const prof_profile_t *p, const prof_frame_t *f);

/*
 * The kinds of the functions of a view.  Names below one that is waiting tell
 * what it waits for.
 * Returns an array for free(), or NULL when memory is short.
 */
uint32_t *prof_kind_functions(const prof_profile_t *p, const prof_view_t *v);

/* the same of its nodes: one name may be both a stage and a cause */
uint32_t *prof_kind_nodes(const prof_profile_t *p, const prof_view_t *v);

/*
 * What the kind is called in this profile: the program has the name of its
 * file.  Not escaped.
 */
void prof_kind_text(const prof_profile_t *p, uint32_t kind, prof_buf_t *b);

/* the last part of a path */
const char *prof_kind_file(const char *path);

PROF_HIDDEN_END


#endif /* _PROF_KIND_H_INCLUDED_ */
