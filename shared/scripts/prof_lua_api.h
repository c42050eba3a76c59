
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * LuaJIT's own interface for stacks.  The module is not linked with LuaJIT, so
 * the functions are looked up.
 *
 * Context: the thread that runs the interpreter; not in a signal.
 */


#ifndef _PROF_LUA_API_H_INCLUDED_
#define _PROF_LUA_API_H_INCLUDED_


#include "base/prof_base.h"
#include "scripts/prof_scripts.h"


#define PROF_LUA_REGISTRY  (-10000)
#define PROF_LUA_YIELD     1
#define PROF_LUA_TABLE     5


/* lua_State */

typedef struct prof_lua_state_s  prof_lua_state_t;


/*
 * lua_Debug of Lua 5.1 (lua.h), whose last members depend on LUA_IDSIZE.  The
 * structure has space for them.
 */

typedef struct {
    int               event;
    const char       *name;
    const char       *namewhat;
    const char       *what;
    const char       *source;
    int               currentline;
    int               nups;
    int               linedefined;
    int               lastlinedefined;
    char              space[1024];
} prof_lua_debug_t;


/* functions of lua.h; lua_getexdata() and the next are OpenResty's */

typedef struct {
    int               (*getstack)(prof_lua_state_t *L, int level,
                                  prof_lua_debug_t *ar);
    int               (*getinfo)(prof_lua_state_t *L, const char *what,
                                 prof_lua_debug_t *ar);
    int               (*status)(prof_lua_state_t *L);
    int               (*type)(prof_lua_state_t *L, int index);
    int               (*gettop)(prof_lua_state_t *L);
    void              (*settop)(prof_lua_state_t *L, int index);
    void              (*pushlightuserdata)(prof_lua_state_t *L, void *p);
    void              (*rawget)(prof_lua_state_t *L, int index);
    void              (*rawgeti)(prof_lua_state_t *L, int index, int n);
    prof_lua_state_t *(*tothread)(prof_lua_state_t *L, int index);
    void             *(*getexdata)(prof_lua_state_t *L);
    void             *(*getexdata2)(prof_lua_state_t *L);
    int               (*resume)(prof_lua_state_t *L, int nargs);
} prof_lua_api_t;


PROF_HIDDEN_BEGIN

/*
 * Looks up the functions that an object of this process calls.  "address" is
 * any address in the object.  Returns NULL, or a static text that names the
 * missing part.
 */
const char *prof_lua_api_find(prof_lua_api_t *api, void *address);

/*
 * Lists the places on the stack of a coroutine that does not run, innermost
 * first, and returns their number.  Outer places beyond "max" are left out.
 * Neither the coroutine's stack nor any other memory of the interpreter
 * changes.  The texts belong to the interpreter, and are valid until it runs.
 */
uint32_t prof_lua_stack(const prof_lua_api_t *api, prof_lua_state_t *L,
    prof_script_t *places, uint32_t max);

PROF_HIDDEN_END


#endif /* _PROF_LUA_API_H_INCLUDED_ */
