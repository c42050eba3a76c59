
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Measures what functions in Lua cost in a sample.  The same stack of LuaJIT is
 * walked with tables that know the interpreter and with tables that do not, in
 * alternation, inside one signal handler.  Prints for each stack medians over
 * the rounds:
 *
 *     lua      functions in Lua that the walk finds
 *     without  nanoseconds per stack without functions in Lua
 *     with     the same with functions in Lua
 *     A/A      "with" measured a second time / the first time: the noise of
 *              the ratio
 *     ratio    with / without
 *     more     with - without, in nanoseconds
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_scripts.h"
#include "stacks/prof_tables.h"
#include "unwind/prof_unwind.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


#define BENCH_ROUNDS  301
#define BENCH_LOOPS   100
#define BENCH_CALLS   250       /* the loop is compiled before */

#define LUA_GLOBALSINDEX  (-10002)
#define LUAJIT_MODE_ON    0x100


typedef struct lua_State  lua_State;


typedef struct {
    const char  *name;
    const char  *code;
    uint32_t     call;          /* the number of the call that is measured */
    int          jit;
} bench_case_t;


typedef struct {
    const prof_unwind_t  *unwind;
    prof_walk_cache_t     cache;
    uint32_t              n;
    uint32_t              end;
    uintptr_t             pcs[PROF_MAX_DEPTH];
} bench_walk_t;


static int bench_load(void);
static int bench_run(const bench_case_t *c);
static int bench_take(lua_State *L);
static void bench_call(void);
static void bench_handler(int signo, siginfo_t *si, void *ctx);
static double bench_time(bench_walk_t *b, const ucontext_t *uc);
static void bench_one(bench_walk_t *b, const ucontext_t *uc);
static uint32_t bench_scripts(const bench_walk_t *b);
static double bench_median(double *v);
static int bench_cmp(const void *one, const void *two);
static uint64_t bench_now(void);


/* take() is called from the interpreter, and call() from compiled code */

#define BENCH_FUNCTIONS(n, leaf)                                              \
    "local function deep(n) if n == 0 then " leaf " return 1 end\n"           \
    "  local x = deep(n - 1)\n"                                               \
    "  return x + 1 end\n"                                                    \
    "local x = deep(" n " - 2)\n"

static const bench_case_t  bench_cases[] = {

    { "one function", "take()\n", 1, 0 },

    { "5 functions", BENCH_FUNCTIONS("5", "take()"), 1, 0 },

    { "20 functions", BENCH_FUNCTIONS("20", "take()"), 1, 0 },

    { "5 places, protected calls, a coroutine",
      "local function leaf(...) take() return 1 end\n"
      "local function mid(x) local ok, r = pcall(leaf, x) return r end\n"
      "local co = coroutine.wrap(function(x) local r = mid(x) return r end)\n"
      "local t = setmetatable({}, { __index = function(t, k)\n"
      "  local r = co(k) return r end })\n"
      "local x = t.x\n", 1, 0 },

    { "compiled code",
      "local ffi = require('ffi')\n"
      "local call = ffi.cast('void (*)(void)', call)\n"
      "local function inner(x) call() return x + 1 end\n"
      "local function loop(n) local s = 0\n"
      "  for i = 1, n do s = inner(s) end return s end\n"
      "local s = loop(300)\n", BENCH_CALLS, 1 }
};


static lua_State *(*luaL_newstate)(void);
static void (*luaL_openlibs)(lua_State *L);
static int (*luaL_loadbuffer)(lua_State *L, const char *text, size_t len,
    const char *name);
static int (*lua_pcall)(lua_State *L, int nargs, int nresults, int handler);
static void (*lua_pushcclosure)(lua_State *L, int (*fn)(lua_State *L), int n);
static void (*lua_pushlightuserdata)(lua_State *L, void *p);
static void (*lua_setfield)(lua_State *L, int i, const char *key);
static void (*lua_close)(lua_State *L);
static int (*luaJIT_setmode)(lua_State *L, int i, int mode);

static bench_walk_t   bench_without;
static bench_walk_t   bench_with;
static prof_stats_t   bench_stats;
static uintptr_t      bench_top;
static uint32_t       bench_calls;
static uint32_t       bench_taken;
static uint32_t       bench_measured;
static double         bench_ns[3][BENCH_ROUNDS];


int
main(void)
{
    size_t             i;
    const char        *name, *state;
    prof_unwind_t     *u;
    struct sigaction   sa;

    if (!bench_load()) {
        fprintf(stderr, "LuaJIT is not installed\n");
        return 1;
    }

    u = prof_unwind_create();

    if (u == NULL || prof_process_init() != PROF_OK) {
        fprintf(stderr, "no memory\n");
        return 1;
    }

    state = prof_engines_state(0, &name);

    if (state == NULL || strcmp(state, "on") != 0) {
        fprintf(stderr, "%s: %s\n", name, state ? state : "not found");
        return 1;
    }

    bench_without.unwind = u;
    bench_with.unwind = prof_process_unwind();

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_sigaction = bench_handler;
    sa.sa_flags = SA_SIGINFO;

    if (sigaction(SIGUSR1, &sa, NULL) == -1) {
        perror("sigaction()");
        return 1;
    }

    bench_top = (uintptr_t) __builtin_frame_address(0);

    printf("%-40s %3s %8s %8s %6s %6s %6s\n", "", "lua", "without", "with",
           "A/A", "ratio", "more");

    for (i = 0; i < sizeof(bench_cases) / sizeof(bench_cases[0]); i++) {

        if (!bench_run(&bench_cases[i])) {
            fprintf(stderr, "%s: not measured\n", bench_cases[i].name);
            return 1;
        }
    }

    prof_unwind_release(u);

    return 0;
}


static int
bench_load(void)
{
    void  *library;

    library = dlopen("libluajit-5.1.so.2", RTLD_NOW);

    if (library == NULL) {
        return 0;
    }

#define BENCH_SYMBOL(name)  *(void **) &name = dlsym(library, #name)

    BENCH_SYMBOL(luaL_newstate);
    BENCH_SYMBOL(luaL_openlibs);
    BENCH_SYMBOL(luaL_loadbuffer);
    BENCH_SYMBOL(lua_pcall);
    BENCH_SYMBOL(lua_pushcclosure);
    BENCH_SYMBOL(lua_pushlightuserdata);
    BENCH_SYMBOL(lua_setfield);
    BENCH_SYMBOL(lua_close);
    BENCH_SYMBOL(luaJIT_setmode);

    return 1;
}


static int
bench_run(const bench_case_t *c)
{
    int         rc;
    double      again, with, without;
    lua_State  *L;

    bench_calls = 0;
    bench_taken = c->call;
    bench_measured = 0;

    L = luaL_newstate();

    if (L == NULL) {
        return 0;
    }

    luaL_openlibs(L);
    luaJIT_setmode(L, 0, c->jit ? LUAJIT_MODE_ON : 0);

    lua_pushcclosure(L, bench_take, 0);
    lua_setfield(L, LUA_GLOBALSINDEX, "take");
    lua_pushlightuserdata(L, (void *) (uintptr_t) bench_call);
    lua_setfield(L, LUA_GLOBALSINDEX, "call");

    rc = luaL_loadbuffer(L, c->code, strlen(c->code), "@bench.lua")
         || lua_pcall(L, 0, 0, 0);

    lua_close(L);

    if (rc || !bench_measured || bench_with.end || bench_without.end) {
        return 0;
    }

    without = bench_median(bench_ns[0]);
    with = bench_median(bench_ns[1]);
    again = bench_median(bench_ns[2]);

    printf("%-40s %3u %8.1f %8.1f %6.3f %6.2f %6.0f\n", c->name,
           bench_scripts(&bench_with), without, with, again / with,
           with / without, with - without);

    return 1;
}


static int
bench_take(lua_State *L)
{
    bench_call();

    return 0;
}


static void
bench_call(void)
{
    if (++bench_calls == bench_taken) {
        raise(SIGUSR1);
    }
}


static void
bench_handler(int signo, siginfo_t *si, void *ctx)
{
    int  i;

    for (i = 0; i < BENCH_ROUNDS; i++) {
        bench_ns[0][i] = bench_time(&bench_without, ctx);
        bench_ns[1][i] = bench_time(&bench_with, ctx);
        bench_ns[2][i] = bench_time(&bench_with, ctx);
    }

    bench_measured = 1;
}


static double
bench_time(bench_walk_t *b, const ucontext_t *uc)
{
    int       i;
    uint64_t  start;

    bench_one(b, uc);

    start = bench_now();

    for (i = 0; i < BENCH_LOOPS; i++) {
        bench_one(b, uc);
    }

    return (double) (bench_now() - start) / BENCH_LOOPS;
}


static void
bench_one(bench_walk_t *b, const ucontext_t *uc)
{
    b->n = prof_walk(b->unwind, &b->cache, uc, bench_top, b->pcs,
                     PROF_MAX_DEPTH, &bench_stats, &b->end);
}


static uint32_t
bench_scripts(const bench_walk_t *b)
{
    uint32_t       i, n;
    prof_script_t  s;

    n = 0;

    for (i = 0; i < b->n; i++) {
        n += (prof_script_find(b->pcs[i], &s) == PROF_OK);
    }

    return n;
}


static double
bench_median(double *v)
{
    qsort(v, BENCH_ROUNDS, sizeof(double), bench_cmp);

    return v[BENCH_ROUNDS / 2];
}


static int
bench_cmp(const void *one, const void *two)
{
    const double *a = one;
    const double *b = two;

    return (*a > *b) - (*a < *b);
}


static uint64_t
bench_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}
