
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Coroutines of LuaJIT that do not run.  This process reads their memory and
 * calls no function of LuaJIT.  The layout of the memory is that of the engine,
 * which a child process has compared with what LuaJIT's own functions return.
 *
 * Any address may be passed: memory that cannot be read, or that is not what
 * it is taken for, leads to an error.
 *
 * Context: the thread that runs the interpreter; not in a signal.
 */


#ifndef _PROF_LUA_H_INCLUDED_
#define _PROF_LUA_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"


/* lua_State */

typedef struct prof_lua_state_s  prof_lua_state_t;

typedef int (*prof_lua_resume_pt)(prof_lua_state_t *co, int nargs);


typedef struct {
    void     *exdata;           /* lua_getexdata() of OpenResty's LuaJIT */
    void     *exdata2;
    uint32_t  yields;           /* the coroutine waits */
} prof_lua_coroutine_t;


PROF_HIDDEN_BEGIN

/*
 * prof_luajit.c: finds the interpreter that an object of this process calls,
 * and its lua_resume().  "address" is any address in the object.  Returns NULL,
 * or a static text why coroutines of this interpreter cannot be read.
 */
const char *prof_lua_find(void *address, prof_lua_resume_pt *resume);

/* returns lua_getexdata() of a coroutine that is alive */
void *prof_lua_exdata(const prof_lua_state_t *co);

/* returns PROF_ERROR if this is no coroutine */
int prof_lua_coroutine(const prof_lua_state_t *co, prof_lua_coroutine_t *c);

/*
 * Returns the table that the registry of an interpreter has under the address
 * of a variable, or NULL.
 */
void *prof_lua_table(const prof_lua_state_t *L, const void *variable);

/*
 * Returns whether the table has the coroutine, under a number that stands in
 * the memory from p to "last".
 */
int prof_lua_anchored(const void *table, const prof_lua_state_t *co,
    const void *p, const void *last);

/*
 * Stores the functions of a coroutine that waits, innermost first, as keys of
 * places (prof_scripts.h), and returns their number.  Outer functions beyond
 * "max" are left out.
 */
uint32_t prof_lua_stack(const prof_lua_state_t *co, uintptr_t *keys,
    uint32_t max, prof_stats_t *st);

PROF_HIDDEN_END


#endif /* _PROF_LUA_H_INCLUDED_ */
