
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds LuaJIT among the loaded objects, and the layout of its structures.  In
 * a child process, a state runs known code, from which a function in C takes
 * its own stack as the signal handler would.  The engine is on only if this
 * stack is right.  A coroutine runs other known code, and waits.  Coroutines
 * are read (prof_lua.h) only if this one has the stack that LuaJIT's own
 * functions return.
 *
 * The interpreter is called through the addresses of its API.  The module is
 * not linked with the interpreter, which may be unloaded later.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_lua.h"
#include "scripts/prof_luajit.h"
#include "scripts/prof_scripts.h"
#include "scripts/prof_trial.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>


/* lua.h */

#define LUA_REGISTRYINDEX  (-10000)
#define LUA_GLOBALSINDEX   (-10002)

/*
 * The length of a string that is made to find the offset of the length in the
 * header of LuaJIT's strings: the other words there are hashes, addresses and
 * small numbers.
 */

#define PROF_LUAJIT_LEN   1777

/* objects whose paths have "lua", but which do not contain LuaJIT */

#define PROF_LUAJIT_SEEN  16


/* the part of global_State that is searched, and of jit_State behind it */
#define PROF_LUAJIT_GLOBAL  0x400
#define PROF_LUAJIT_JIT     0x1400

#define PROF_LUAJIT_TRACES  8

/* OpenResty's pointers are behind the known members of lua_State */
#define PROF_LUAJIT_EXDATA  0x60
#define PROF_LUAJIT_STATE   0xc0

/* coroutines in a table: some in its array, one elsewhere */
#define PROF_LUAJIT_ANCHORS  40

#define PROF_LUAJIT_DEPTH    32


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


/* and those for coroutines, of which some are OpenResty's */

#define PROF_LUAJIT_CO_API(x)                                                 \
    x(lua_State *,  lua_newthread,    (lua_State *L))                         \
    x(lua_State *,  lua_tothread,     (lua_State *L, int i))                  \
    x(int,          lua_resume,       (lua_State *co, int nargs))             \
    x(int,          lua_yield,        (lua_State *L, int nresults))           \
    x(int,          lua_getstack,     (lua_State *L, int level,               \
                                       lua_Debug *ar))                        \
    x(int,          lua_getinfo,      (lua_State *L, const char *what,        \
                                       lua_Debug *ar))                        \
    x(const void *, lua_topointer,    (lua_State *L, int i))                  \
    x(void,         lua_createtable,  (lua_State *L, int narray, int nrec))   \
    x(void,         lua_rawget,       (lua_State *L, int i))                  \
    x(void,         lua_rawset,       (lua_State *L, int i))                  \
    x(void,         lua_rawgeti,      (lua_State *L, int i, int n))           \
    x(void,         lua_rawseti,      (lua_State *L, int i, int n))           \
    x(void,         lua_settop,       (lua_State *L, int i))                  \
    x(void,         lua_setexdata,    (lua_State *L, void *data))             \
    x(void,         lua_setexdata2,   (lua_State *L, void *data))


/* the last members depend on LUA_IDSIZE, and have space here */

typedef struct {
    int          event;
    const char  *name;
    const char  *namewhat;
    const char  *what;
    const char  *source;
    int          currentline;
    int          nups;
    int          linedefined;
    int          lastlinedefined;
    char         space[1024];
} lua_Debug;


typedef struct {
#define PROF_LUAJIT_FIELD(type, name, args)  type (*name) args;
    PROF_LUAJIT_API(PROF_LUAJIT_FIELD)
    PROF_LUAJIT_CO_API(PROF_LUAJIT_FIELD)
#undef PROF_LUAJIT_FIELD
    uint32_t     missing;       /* functions for coroutines */
} prof_luajit_api_t;


/* of a trial; texts: NULL if the part works, or why not */

typedef struct {
    prof_luajit_t   layout;
    const char     *samples;
    const char     *coroutines;
} prof_luajit_result_t;


/* the data of a trial, which the function in C reads and writes */

typedef struct {
    const prof_luajit_api_t  *api;
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
static int prof_luajit_string(const prof_luajit_api_t *api, lua_State *L);
static const char *prof_luajit_wait(const prof_luajit_api_t *api,
    lua_State *L);
static int prof_luajit_learn(const prof_luajit_api_t *api, lua_State *L);
static int prof_luajit_anchors(const prof_luajit_api_t *api, lua_State *L);
static int prof_luajit_yield(lua_State *L);
static int prof_luajit_same(const prof_luajit_api_t *api, lua_State *co);
#if (__x86_64__)
static const char *prof_luajit_try(prof_luajit_trial_t *t,
    const prof_luajit_api_t *api, lua_State *L);
static int prof_luajit_trial(lua_State *L);
static void prof_luajit_jit(prof_luajit_trial_t *t,
    const prof_luajit_api_t *api, lua_State *L);
static void prof_luajit_call(void);
static int prof_luajit_search(prof_luajit_trial_t *t, uintptr_t pc);
static int prof_luajit_globals(prof_luajit_trial_t *t, uint32_t number);
static void prof_luajit_take(prof_luajit_trial_t *t);
static int prof_luajit_expected(const prof_luajit_trial_t *t,
    const uint8_t *lines, uint32_t nlines);
#endif


const prof_engine_t  prof_luajit_engine = { "LuaJIT", prof_luajit_attach };


/* waits in functions that are called in different ways */

static const char  prof_luajit_waiting[] =
    "local t = {}\n"
    "function t.wait(...) profile() return 1 end\n"
    "function t:method(...) local x = self.wait(...) return x end\n"
    "local m = setmetatable({}, { __index = function(m, k)\n"
    "  local x = t:method(k) return x end })\n"
    "local function get() local x = m.x\n"
    "  return x end\n"
    "local function tail() return get() end\n"
    "local function each() for x in tail do return x end end\n"
    "local ok = pcall(function()\n"
    "  local x = each() return x end)\n"
    "return ok\n";


#if (__x86_64__)

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

#endif


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
static prof_luajit_result_t  prof_luajit_result;
static prof_luajit_result_t  prof_luajit_answer;     /* of the trial */


static int
prof_luajit_attach(prof_unwind_t *u, int trials, prof_engine_code_t *code,
    const char **state)
{
    void                  *handle;
    prof_luajit_api_t      api;
    prof_luajit_result_t  *result;

    result = &prof_luajit_result;

    if (prof_luajit_object == NULL
        || (trials && result->samples == prof_engine_late)
        || prof_luajit_in(u, prof_luajit_at) != prof_luajit_object)
    {
        prof_luajit_object = NULL;
        handle = prof_luajit_find(u, &api);

        if (handle == NULL) {
            return PROF_LIMIT;
        }

        prof_luajit_at = (uintptr_t) api.luaJIT_setmode;
        prof_luajit_object = prof_luajit_in(u, prof_luajit_at);

        result->samples = trials ? prof_luajit_examine(u, &api)
                                 : prof_engine_late;

        if (result->samples) {
            result->coroutines = result->samples;

        } else {
            *result = prof_luajit_answer;
            prof_luajit = result->layout;
        }

        (void) dlclose(handle);
    }

#if (__x86_64__)

    if (result->samples) {
        *state = result->samples;
        return PROF_ERROR;
    }

    code->start = prof_luajit.start;
    code->end = prof_luajit.end;
    code->compiles = 1;
    code->frame = prof_luajit_frame;

    *state = prof_luajit.trace ? "on"
                               : "on, but not for the code that it compiles";

    return PROF_OK;

#else

    *state = "off: not for this processor";

    return PROF_ERROR;

#endif
}


/*
 * The loader binds a call to the first definition in the global scope, and then
 * to one of the object's dependencies.  If both exist and differ, the process
 * has several interpreters, and the order of loading decides which of them the
 * object calls.
 */

const char *
prof_lua_find(void *address, prof_lua_resume_pt *resume)
{
    void        *object, *jit, *global;
    Dl_info      info;
    const char  *err;

    if (dladdr(address, &info) == 0) {
        return "its module is not found";
    }

    /* dlopen() does not find the program by its path */

    object = dlopen(info.dli_fname, RTLD_LAZY|RTLD_NOLOAD);
    if (object == NULL) {
        object = dlopen(NULL, RTLD_LAZY);
    }

    if (object == NULL) {
        return "its module is not found";
    }

    jit = dlsym(object, "luaJIT_setmode");
    *(void **) resume = dlsym(object, "lua_resume");
    global = dlsym(RTLD_DEFAULT, "lua_resume");

    if (jit == NULL || *resume == NULL) {
        err = "the interpreter is not LuaJIT";

    } else if (global && global != *(void **) resume) {
        err = "several interpreters are loaded";

    } else if (prof_luajit_object == NULL) {
        err = "off: LuaJIT is not found";

    } else if ((uintptr_t) jit != prof_luajit_at) {
        err = "several interpreters are loaded";

    } else {
        err = prof_luajit_result.coroutines;
    }

    (void) dlclose(object);

    return err;
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

    if (missing) {
        return PROF_ERROR;
    }

    api->missing = 0;

#define PROF_LUAJIT_CO_SYMBOL(type, name, args)                               \
    *(void **) &api->name = dlsym(handle, #name);                             \
    api->missing += (api->name == NULL);

    PROF_LUAJIT_CO_API(PROF_LUAJIT_CO_SYMBOL)
#undef PROF_LUAJIT_CO_SYMBOL

    return PROF_OK;
}


/* returns NULL, or why there is no answer of a trial */

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
        why = prof_trial(prof_luajit_calibrate, t, &prof_luajit_answer,
                         sizeof(prof_luajit_answer));
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

    prof_luajit_answer.layout = prof_luajit;

    return NULL;
}


/*
 * Runs the trial in a protected call.  Most functions of LuaJIT need memory.
 * Without memory, LuaJIT leaves the innermost protected call, and ends the
 * process if there is no such call.
 */

static int
prof_luajit_protected(lua_State *L)
{
    uintptr_t             state;
    prof_luajit_trial_t  *t;

    static const char     unknown[] =
                              "off: the layout of this build is not known";

    t = prof_luajit_running;
    state = (uintptr_t) L;

    prof_luajit_answer.samples = unknown;
    prof_luajit_answer.coroutines = unknown;

    /* other builds have a value at these offsets that is not an address */

    if (!prof_arch_readable(state)
        || !prof_arch_readable(state + LJ_L_STACKSIZE)
        || prof_luajit_u8(state + LJ_GCT) != LJ_GCT_THREAD
        || !prof_luajit_pointer(prof_arch_load(state + LJ_L_STACK))
        || prof_luajit_string(t->api, L) != PROF_OK)
    {
        return 0;
    }

    t->api->luaL_openlibs(L);

    prof_luajit_answer.coroutines = prof_luajit_wait(t->api, L);

#if (__x86_64__)
    prof_luajit_answer.samples = prof_luajit_try(t, t->api, L);
#endif

    return 0;
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


/* returns NULL, or why coroutines cannot be read */

static const char *
prof_luajit_wait(const prof_luajit_api_t *api, lua_State *L)
{
    lua_State  *co;

    if (api->missing) {
        return "LuaJIT is not OpenResty's, or is too old";
    }

    if (!prof_luajit_learn(api, L) || !prof_luajit_anchors(api, L)) {
        return "off: the layout of this build is not known";
    }

    api->lua_pushcclosure(L, prof_luajit_yield, 0);
    api->lua_setfield(L, LUA_GLOBALSINDEX, "profile");

    co = api->lua_newthread(L);

    if (api->luaL_loadbuffer(co, prof_luajit_waiting,
                             sizeof(prof_luajit_waiting) - 1, "@test")
        || api->lua_resume(co, 0) != LJ_YIELD)
    {
        return "off: its test does not run";
    }

    if (!prof_luajit_same(api, co)) {
        return "off: the stacks of this build cannot be read";
    }

    api->lua_settop(L, 0);

    return NULL;
}


static int
prof_luajit_learn(const prof_luajit_api_t *api, lua_State *L)
{
    uint32_t   at;
    lua_State  *other;
    uintptr_t  g, value;

    api->lua_setexdata(L, (void *) prof_luajit_waiting);
    api->lua_setexdata2(L, (void *) &prof_luajit_running);

    for (at = PROF_LUAJIT_EXDATA; at < PROF_LUAJIT_STATE; at += 8) {
        value = prof_arch_load((uintptr_t) L + at);

        if (value == (uintptr_t) prof_luajit_waiting) {
            prof_luajit.exdata = at;

        } else if (value == (uintptr_t) &prof_luajit_running) {
            prof_luajit.exdata2 = at;
        }
    }

    /* the registry of two machines */

    other = api->luaL_newstate();

    for (at = 0; other && at < PROF_LUAJIT_GLOBAL; at += 8) {
        g = prof_arch_load((uintptr_t) L + LJ_L_GLREF);
        value = prof_arch_load(g + at);

        if (value >> LJ_TAG_SHIFT != LJ_TAG_TAB
            || (value & LJ_ADDRESS)
               != (uintptr_t) api->lua_topointer(L, LUA_REGISTRYINDEX))
        {
            continue;
        }

        g = prof_arch_load((uintptr_t) other + LJ_L_GLREF);

        if ((prof_arch_load(g + at) & LJ_ADDRESS)
            == (uintptr_t) api->lua_topointer(other, LUA_REGISTRYINDEX))
        {
            prof_luajit.registry = at;
            break;
        }
    }

    return prof_luajit.exdata && prof_luajit.exdata2 && prof_luajit.registry;
}


/* reads a table of coroutines as ngx_lua has one in the registry */

static int
prof_luajit_anchors(const prof_luajit_api_t *api, lua_State *L)
{
    int32_t            i, number[2];
    const void        *table;
    prof_lua_state_t  *co;

    api->lua_pushlightuserdata(L, (void *) &prof_luajit_answer);
    api->lua_createtable(L, 0, PROF_LUAJIT_ANCHORS / 4);
    table = api->lua_topointer(L, -1);

    for (i = 1; i <= PROF_LUAJIT_ANCHORS; i++) {
        (void) api->lua_newthread(L);
        api->lua_rawseti(L, -2, (i == PROF_LUAJIT_ANCHORS) ? 1000 * i : i);
    }

    api->lua_rawset(L, LUA_REGISTRYINDEX);

    if (prof_lua_table((prof_lua_state_t *) L, &prof_luajit_answer) != table
        || prof_lua_table((prof_lua_state_t *) L, &prof_luajit_running))
    {
        return 0;
    }

    api->lua_pushlightuserdata(L, (void *) &prof_luajit_answer);
    api->lua_rawget(L, LUA_REGISTRYINDEX);

    for (i = 1; i <= PROF_LUAJIT_ANCHORS; i++) {
        number[0] = -1;
        number[1] = (i == PROF_LUAJIT_ANCHORS) ? 1000 * i : i;

        api->lua_rawgeti(L, -1, number[1]);
        co = (prof_lua_state_t *) api->lua_tothread(L, -1);
        api->lua_settop(L, -2);

        if (!prof_lua_anchored(table, co, number, number + 2)
            || prof_lua_anchored(table, co, number, number + 1))
        {
            return 0;
        }
    }

    return 1;
}


/* the function in C that waits */

static int
prof_luajit_yield(lua_State *L)
{
    return prof_luajit_running->api->lua_yield(L, 0);
}


/* returns whether the stack of a coroutine is the one that LuaJIT returns */

static int
prof_luajit_same(const prof_luajit_api_t *api, lua_State *co)
{
    int                   level;
    size_t                len;
    uint32_t              i, n;
    uintptr_t             keys[PROF_LUAJIT_DEPTH];
    lua_Debug             ar;
    prof_stats_t          stats;
    prof_script_t         s;
    prof_lua_coroutine_t  c;

    memset(&stats, 0, sizeof(stats));

    if (prof_lua_coroutine((prof_lua_state_t *) co, &c) != PROF_OK
        || !c.yields)
    {
        return 0;
    }

    n = prof_lua_stack((prof_lua_state_t *) co, keys, PROF_LUAJIT_DEPTH,
                       &stats);
    i = 0;

    for (level = 0; api->lua_getstack(co, level, &ar); level++) {

        if (api->lua_getinfo(co, "nSl", &ar) == 0) {
            return 0;
        }

        len = (ar.name && ar.namewhat[0]) ? strlen(ar.name) : 0;

        /* a function in C without a name is left out */

        if (ar.what[0] == 'C' && len == 0) {
            continue;
        }

        if (i == n || prof_script_find(keys[i++], &s) != PROF_OK) {
            return 0;
        }

        if (ar.what[0] != 'm'
            && (s.function_len != len
                || (len && memcmp(s.function, ar.name, len))))
        {
            return 0;
        }

        if (ar.what[0] != 'C'
            && (s.file_len != 4 || memcmp(s.file, "test", 4)
                || s.line != (uint32_t) ar.currentline
                || s.start_line != (uint32_t) ar.linedefined))
        {
            return 0;
        }
    }

    return i == n && n > 0;
}


#if (__x86_64__)


static const char *
prof_luajit_try(prof_luajit_trial_t *t, const prof_luajit_api_t *api,
    lua_State *L)
{
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


#endif
