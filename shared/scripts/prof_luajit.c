
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds LuaJIT among the loaded objects, and the layout of its structures.  In
 * a child process, a state runs known code, from which a function in C takes
 * its own stack as the signal handler would.  The engine is on only if this
 * stack is right.
 *
 * The interpreter is called through the addresses of its API.  The module is
 * not linked with the interpreter, which may be unloaded later.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_luajit.h"
#include "scripts/prof_trial.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>


#if (__x86_64__)


/* lua.h */

#define LUA_GLOBALSINDEX  (-10002)

/* no other word of a string's header has this value by chance */

#define PROF_LUAJIT_LEN   1777

/* objects whose paths have "lua", but which do not contain LuaJIT */

#define PROF_LUAJIT_SEEN  16


/* the part of global_State that is searched, and of jit_State behind it */
#define PROF_LUAJIT_GLOBAL  0x400
#define PROF_LUAJIT_JIT     0x1400

#define PROF_LUAJIT_TRACES  8


typedef struct lua_State  lua_State;

typedef int (*lua_CFunction)(lua_State *L);


/* the functions of the API that this file calls: result, name, arguments */

#define PROF_LUAJIT_API(x)                                                    \
    x(lua_State *,  luaL_newstate,    (void))                                 \
    x(void,         luaL_openlibs,    (lua_State *L))                         \
    x(int,          lua_cpcall,       (lua_State *L, lua_CFunction fn,        \
                                       void *data))                           \
    x(int,          luaL_loadbuffer,  (lua_State *L, const char *text,        \
                                       size_t len, const char *name))         \
    x(void,         lua_pushcclosure, (lua_State *L, lua_CFunction fn, int n)) \
    x(void,         lua_pushlstring,  (lua_State *L, const char *text,        \
                                       size_t len))                           \
    x(const char *, lua_tolstring,    (lua_State *L, int i, size_t *len))     \
    x(void,         lua_pushlightuserdata, (lua_State *L, void *p))           \
    x(void,         lua_setfield,     (lua_State *L, int i, const char *key)) \
    x(int,          lua_pcall,        (lua_State *L, int nargs, int nresults, \
                                       int handler))                          \
    x(int,          luaJIT_setmode,   (lua_State *L, int i, int mode))


typedef struct {
#define PROF_LUAJIT_FIELD(type, name, args)  type (*name) args;
    PROF_LUAJIT_API(PROF_LUAJIT_FIELD)
#undef PROF_LUAJIT_FIELD
} prof_luajit_api_t;


/* the data of a trial, which the function in C reads and writes */

typedef struct {
    const prof_luajit_api_t  *api;
    const char               *why;      /* as prof_luajit_try() returns */
    prof_unwind_t            *unwind;
    prof_walk_cache_t        *cache;
    uintptr_t                 top;
    uint32_t                  calls;
    uintptr_t                 state;    /* lua_State */
    uintptr_t                 g;        /* global_State */
    uint32_t                  words[PROF_LUAJIT_GLOBAL / 4];
    uint32_t                  n;
    uintptr_t                 pcs[PROF_MAX_DEPTH];
} prof_luajit_trial_t;


static int prof_luajit_attach(prof_unwind_t *u, int trials,
    prof_engine_code_t *code, const char **state);
static const prof_object_t *prof_luajit_in(const prof_unwind_t *u,
    uintptr_t address);
static void *prof_luajit_find(const prof_unwind_t *u, prof_luajit_api_t *api);
static void *prof_luajit_open(const char *path, prof_luajit_api_t *api);
static int prof_luajit_api(void *handle, prof_luajit_api_t *api);
static const char *prof_luajit_examine(prof_unwind_t *u,
    const prof_luajit_api_t *api);
static const char *prof_luajit_calibrate(void *data);
static int prof_luajit_protected(lua_State *L);
static const char *prof_luajit_try(prof_luajit_trial_t *t,
    const prof_luajit_api_t *api, lua_State *L);
static int prof_luajit_string(const prof_luajit_api_t *api, lua_State *L);
static int prof_luajit_trial(lua_State *L);
static void prof_luajit_jit(prof_luajit_trial_t *t,
    const prof_luajit_api_t *api, lua_State *L);
static void prof_luajit_call(void);
static int prof_luajit_search(prof_luajit_trial_t *t, uintptr_t pc);
static int prof_luajit_globals(prof_luajit_trial_t *t, uint32_t number);
static void prof_luajit_take(prof_luajit_trial_t *t);
static int prof_luajit_expected(const prof_luajit_trial_t *t,
    const uint8_t *lines, uint32_t nlines);


const prof_engine_t  prof_luajit_engine = { "LuaJIT", prof_luajit_attach };


/*
 * Makes all types of frames: functions, a coroutine, a metamethod, a protected
 * call, and a variable number of arguments.
 */

static const char  prof_luajit_code[] =
    "local function inner(...) profile() return 1 end\n"
    "local function outer() local x = inner(1, 2) return x end\n"
    "local co = coroutine.wrap(function()\n"
    "  local x = outer() return x end)\n"
    "local index = function() local x = co() return x end\n"
    "local t = setmetatable({}, { __index = index })\n"
    "local ok = pcall(function()\n"
    "  local x = t.x return x end)\n"
    "return ok\n";

static const uint8_t  prof_luajit_lines[] = { 1, 2, 4, 5, 8, 7 };


/* compiled code that calls C */

static const char  prof_luajit_loop[] =
    "local ffi = require('ffi')\n"
    "local profile = ffi.cast('void (*)(void)', profile)\n"
    "local function loop(n) local s = 0 for i = 1, n do\n"
    "  s = s + i profile() end return s end\n"
    "local s = loop(300)\n"
    "return s\n";

static const uint8_t  prof_luajit_loop_lines[] = { 4, 5 };


static prof_luajit_trial_t  *prof_luajit_running;

/*
 * The object with LuaJIT, and the address of its luaJIT_setmode(); NULL: no
 * object is known.  A look-up of a function takes the loader's lock, and
 * another thread may hold this lock for as long as it loads an object.  So this
 * file only examines objects that may have LuaJIT, each of them once.  "seen"
 * has marked addresses of examined objects without LuaJIT.
 */

static const prof_object_t  *prof_luajit_object;
static uintptr_t             prof_luajit_at;
static uintptr_t             prof_luajit_seen[PROF_LUAJIT_SEEN];
static uint32_t              prof_luajit_nseen;
static int                   prof_luajit_program;    /* 1: examined */
static const char           *prof_luajit_why;


static int
prof_luajit_attach(prof_unwind_t *u, int trials, prof_engine_code_t *code,
    const char **state)
{
    void               *handle;
    prof_luajit_api_t   api;

    if (prof_luajit_object == NULL
        || (trials && prof_luajit_why == prof_engine_late)
        || prof_luajit_in(u, prof_luajit_at) != prof_luajit_object)
    {
        prof_luajit_object = NULL;
        handle = prof_luajit_find(u, &api);

        if (handle == NULL) {
            return PROF_LIMIT;
        }

        prof_luajit_at = (uintptr_t) api.luaJIT_setmode;
        prof_luajit_object = prof_luajit_in(u, prof_luajit_at);

        prof_luajit_why = trials ? prof_luajit_examine(u, &api)
                                 : prof_engine_late;

        (void) dlclose(handle);
    }

    if (prof_luajit_why) {
        *state = prof_luajit_why;
        return PROF_ERROR;
    }

    code->start = prof_luajit.start;
    code->end = prof_luajit.end;
    code->compiles = 1;
    code->frame = prof_luajit_frame;

    *state = prof_luajit.trace ? "on"
                               : "on, but not for the code that it compiles";

    return PROF_OK;
}


/* returns the loaded object that has the address, or NULL */

static const prof_object_t *
prof_luajit_in(const prof_unwind_t *u, uintptr_t address)
{
    return prof_unwind_object(u, prof_engine_mark(u, address));
}


/*
 * Returns a handle of an object with LuaJIT's API, or of an object that is
 * linked to it; NULL: there is no such object.
 */

static void *
prof_luajit_find(const prof_unwind_t *u, prof_luajit_api_t *api)
{
    void                 *handle;
    uint32_t              i, next;
    uintptr_t             at;
    const prof_object_t  *object;

    next = 0;

    while ((object = prof_engine_object(u, "lua", &next)) != NULL) {

        at = prof_engine_mark(u, object->start);

        for (i = 0; i < PROF_LUAJIT_SEEN && prof_luajit_seen[i] != at; i++) {
            /* void */
        }

        if (i < PROF_LUAJIT_SEEN) {
            continue;
        }

        handle = prof_luajit_open(object->path, api);
        if (handle) {
            return handle;
        }

        prof_luajit_seen[prof_luajit_nseen++ % PROF_LUAJIT_SEEN] = at;
    }

    if (prof_luajit_program) {
        return NULL;
    }

    prof_luajit_program = 1;

    return prof_luajit_open(NULL, api);
}


/* opens a loaded object by its path, or the program if path is NULL */

static void *
prof_luajit_open(const char *path, prof_luajit_api_t *api)
{
    void  *handle;

    handle = dlopen(path, path ? RTLD_LAZY|RTLD_NOLOAD : RTLD_LAZY);

    if (handle && prof_luajit_api(handle, api) != PROF_OK) {
        (void) dlclose(handle);
        handle = NULL;
    }

    return handle;
}


static int
prof_luajit_api(void *handle, prof_luajit_api_t *api)
{
    uint32_t  missing;

    missing = 0;

#define PROF_LUAJIT_SYMBOL(type, name, args)                                  \
    *(void **) &api->name = dlsym(handle, #name);                             \
    missing += (api->name == NULL);

    PROF_LUAJIT_API(PROF_LUAJIT_SYMBOL)
#undef PROF_LUAJIT_SYMBOL

    return missing ? PROF_ERROR : PROF_OK;
}


/* returns NULL, or why LuaJIT cannot be used */

static const char *
prof_luajit_examine(prof_unwind_t *u, const prof_luajit_api_t *api)
{
    const char           *why;
    prof_luajit_trial_t  *t;

    t = calloc(1, sizeof(prof_luajit_trial_t));
    if (t == NULL) {
        return "off: no memory";
    }

    why = "off: no memory";

    t->api = api;
    t->unwind = u;
    t->cache = calloc(1, sizeof(prof_walk_cache_t));

    if (t->cache) {
        why = prof_trial(prof_luajit_calibrate, t, &prof_luajit,
                         sizeof(prof_luajit));
    }

    free(t->cache);
    free(t);

    return why;
}


/* the trial; its process ends, and takes the state with it */

static const char *
prof_luajit_calibrate(void *data)
{
    prof_luajit_trial_t *t = data;

    lua_State  *L;

    memset(&prof_luajit, 0, sizeof(prof_luajit));
    prof_luajit_running = t;

    L = t->api->luaL_newstate();

    if (L == NULL || t->api->lua_cpcall(L, prof_luajit_protected, NULL) != 0) {
        return "off: no memory";
    }

    return t->why;
}


/*
 * Runs the trial in a protected call.  Most functions of LuaJIT need memory.
 * Without memory, LuaJIT leaves the innermost protected call, and ends the
 * process if there is no such call.
 */

static int
prof_luajit_protected(lua_State *L)
{
    prof_luajit_trial_t  *t;

    t = prof_luajit_running;
    t->why = prof_luajit_try(t, t->api, L);

    return 0;
}


static const char *
prof_luajit_try(prof_luajit_trial_t *t, const prof_luajit_api_t *api,
    lua_State *L)
{
    uintptr_t  state;

    state = (uintptr_t) L;

    /* other builds have a value at these offsets that is not an address */

    if (!prof_arch_readable(state)
        || !prof_arch_readable(state + LJ_L_STACKSIZE)
        || prof_luajit_u8(state + LJ_GCT) != LJ_GCT_THREAD
        || !prof_luajit_pointer(prof_arch_load(state + LJ_L_STACK))
        || prof_luajit_string(api, L) != PROF_OK)
    {
        return "off: the layout of this build is not known";
    }

    api->luaL_openlibs(L);
    api->lua_pushcclosure(L, prof_luajit_trial, 0);
    api->lua_setfield(L, LUA_GLOBALSINDEX, "profile");

    t->top = (uintptr_t) __builtin_frame_address(0);

    if (api->luaL_loadbuffer(L, prof_luajit_code, sizeof(prof_luajit_code) - 1,
                             "@test")
        || api->lua_pcall(L, 0, 0, 0))
    {
        return "off: its test does not run";
    }

    if (t->calls != 1
        || !prof_luajit_expected(t, prof_luajit_lines,
                                 sizeof(prof_luajit_lines)))
    {
        return "off: the stacks of this build cannot be read";
    }

    prof_luajit_jit(t, api, L);

    return NULL;
}


/*
 * Finds the layout of the compiler's structures.  If it is unknown, compiled
 * code has no script frames.
 */

static void
prof_luajit_jit(prof_luajit_trial_t *t, const prof_luajit_api_t *api,
    lua_State *L)
{
    t->calls = 0;
    t->n = 0;
    t->state = (uintptr_t) L;
    t->g = prof_arch_load(t->state + LJ_L_GLREF);

    api->lua_pushlightuserdata(L, (void *) (uintptr_t) prof_luajit_call);
    api->lua_setfield(L, LUA_GLOBALSINDEX, "profile");

    if (api->luaL_loadbuffer(L, prof_luajit_loop, sizeof(prof_luajit_loop) - 1,
                             "@test")
        || api->lua_pcall(L, 0, 0, 0)
        || !prof_luajit_expected(t, prof_luajit_loop_lines,
                                 sizeof(prof_luajit_loop_lines)))
    {
        prof_luajit.trace = 0;
    }
}


/*
 * The function in C that the loop calls, first from the interpreter.  If the
 * caller's code is not in a file, LuaJIT has compiled it.
 */

static void
prof_luajit_call(void)
{
    uint32_t              i;
    uintptr_t             pc;
    prof_luajit_trial_t  *t;

    t = prof_luajit_running;

    pc = (uintptr_t) __builtin_return_address(0);

    if (t->calls++ == 0) {

        for (i = 0; i < PROF_LUAJIT_GLOBAL / 4; i++) {
            t->words[i] = prof_luajit_u32(t->g + 4 * i);
        }
    }

    if (prof_unwind_object(t->unwind, pc) == NULL
        && (prof_luajit.trace || prof_luajit_search(t, pc)))
    {
        prof_luajit_take(t);
    }
}


/*
 * Finds the trace that contains the address, and the table that refers to the
 * trace.
 */

static int
prof_luajit_search(prof_luajit_trial_t *t, uintptr_t pc)
{
    uint32_t   at, i;
    uintptr_t  trace, traces;

    for (at = PROF_LUAJIT_GLOBAL; at < PROF_LUAJIT_JIT; at += 8) {

        if (!prof_arch_readable(t->g + at)) {
            return 0;
        }

        traces = prof_arch_load(t->g + at);

        if (!prof_luajit_pointer(traces)) {
            continue;
        }

        for (i = 1; i < PROF_LUAJIT_TRACES; i++) {

            if (!prof_arch_readable(traces + 8 * i)) {
                break;
            }

            trace = prof_arch_load(traces + 8 * i);

            if (prof_luajit_pointer(trace) && prof_arch_readable(trace)
                && prof_arch_readable(trace + LJ_T_TRACENO)
                && prof_luajit_u16(trace + LJ_T_TRACENO) == i
                && prof_luajit_compiled(trace, pc))
            {
                prof_luajit.trace = at;
                prof_luajit.sizetrace = at + 12;

                return prof_luajit_globals(t, i);
            }
        }
    }

    return 0;
}


/* finds where the number of the running trace is, and the base of its stack */

static int
prof_luajit_globals(prof_luajit_trial_t *t, uint32_t number)
{
    size_t     size;
    uint32_t   at, found;
    uintptr_t  base, low;

    found = 0;
    low = prof_arch_load(t->state + LJ_L_STACK);
    size = (size_t) prof_luajit_u32(t->state + LJ_L_STACKSIZE) * 8;

    for (at = 0; at < PROF_LUAJIT_GLOBAL; at += 4) {

        if (prof_luajit_u32(t->g + at) == number
            && (int32_t) t->words[at / 4] < 0
            && (int32_t) t->words[at / 4] > -8)
        {
            prof_luajit.vmstate = at;
            found++;
        }
    }

    /* cur_L, which is the state of the loop, precedes jit_base */

    for (at = 0; at < PROF_LUAJIT_GLOBAL; at += 8) {
        base = prof_arch_load(t->g + at + 8);

        if (prof_arch_load(t->g + at) == t->state && base - low < size) {
            prof_luajit.jit_base = at + 8;
            found += 2;
        }
    }

    if (found != 3
        || prof_luajit_u32(t->g + prof_luajit.sizetrace) <= number)
    {
        prof_luajit.trace = 0;
        return 0;
    }

    return 1;
}


static int
prof_luajit_string(const prof_luajit_api_t *api, lua_State *L)
{
    char        text[PROF_LUAJIT_LEN];
    size_t      len;
    uint32_t    at;
    uintptr_t   addr;

    memset(text, '-', sizeof(text));

    api->lua_pushlstring(L, text, sizeof(text));
    addr = (uintptr_t) api->lua_tolstring(L, -1, &len) - LJ_STR_DATA;

    for (at = LJ_GCT + 3; at < LJ_STR_DATA; at += 4) {
        if (prof_luajit_u32(addr + at) == PROF_LUAJIT_LEN) {
            prof_luajit.str_len = at;
            return PROF_OK;
        }
    }

    return PROF_ERROR;
}


/* the function in C, which takes its own stack as a signal handler would do */

static int
prof_luajit_trial(lua_State *L)
{
    size_t                len;
    uintptr_t             pc;
    prof_luajit_trial_t  *t;

    t = prof_luajit_running;

    pc = (uintptr_t) __builtin_return_address(0);

    prof_luajit.start = prof_unwind_function(t->unwind, pc, &len);
    prof_luajit.end = prof_luajit.start + len;

    prof_luajit_take(t);
    t->calls++;

    return 0;
}


static void
prof_luajit_take(prof_luajit_trial_t *t)
{
    prof_engine_code_t  code;

    code.start = prof_luajit.start;
    code.end = prof_luajit.end;
    code.compiles = 1;
    code.frame = prof_luajit_frame;

    t->n = prof_engine_take(t->unwind, &code, t->cache, t->top, t->pcs);
}


static int
prof_luajit_expected(const prof_luajit_trial_t *t, const uint8_t *lines,
    uint32_t nlines)
{
    uint32_t       i, n;
    prof_script_t  s;

    n = 0;

    for (i = 0; i < t->n; i++) {

        if (prof_script_find(t->pcs[i], &s) != PROF_OK || s.file_len == 0) {
            continue;
        }

        if (n == nlines || s.line != lines[n] || s.file_len != 4
            || memcmp(s.file, "test", 4))
        {
            return 0;
        }

        n++;
    }

    return n == nlines;
}


#else


static int
prof_luajit_attach(prof_unwind_t *u, int trials, prof_engine_code_t *code,
    const char **state)
{
    *state = "off: not for this processor";

    return PROF_ERROR;
}


const prof_engine_t  prof_luajit_engine = { "LuaJIT", prof_luajit_attach };


#endif
