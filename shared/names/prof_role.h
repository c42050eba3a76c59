
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Roles: names of functions by what the program uses them for.  The program
 * registers its roles.  They name functions that have no symbol.
 *
 * The table of roles does not refer to objects, so objects may be unloaded.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ROLE_H_INCLUDED_
#define _PROF_ROLE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"


#define PROF_ROLE_ADDED  256


typedef struct {
    const char     *path;           /* of its object */
    const uint8_t  *build_id;
    uint32_t        build_id_len;   /* 0: the object has no build-id */
    uint64_t        function;       /* link-time address of its unwind entry */
    const char     *text;           /* "gzip body filter" */
    const char     *unit;           /* "ngx_http_gzip_filter_module": a symbol
                                       of its source file; NULL: unknown */
} prof_role_t;


PROF_HIDDEN_BEGIN

/*
 * Replaces all roles of the process, also those that were added.  The roles of
 * an object are consecutive, and sorted by function.  All data is copied.
 * Returns PROF_OK, or PROF_ERROR if memory is short: the old roles remain.
 */
int prof_profile_roles(const prof_role_t *roles, uint32_t n);

/*
 * Adds a role, or replaces the role that was added for this function before.
 * Roles of prof_profile_roles() are preferred to added roles.  If memory is
 * short, or if PROF_ROLE_ADDED roles were added, the role is left out.
 */
void prof_profile_add_role(const prof_role_t *role);

/*
 * Names the frame "gzip body filter (nginx+0x96890)" if its function has a
 * role.  Returns PROF_OK, also without a name, or PROF_ERROR if memory is
 * short.
 */
int prof_role_name(const prof_profile_t *p, prof_frame_t *f);

/* returns whether functions of the object have roles */
int prof_role_has(const prof_profile_object_t *o);

/*
 * Appends the functions of the object whose units are known, in the form of
 * prof_wire.h.
 */
void prof_role_members(prof_buf_t *b, const prof_profile_object_t *o);

PROF_HIDDEN_END


#endif /* _PROF_ROLE_H_INCLUDED_ */
