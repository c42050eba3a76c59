
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: scripts
 * runs: first
 *
 * Stacks of LuaJIT, with the library that is installed.  Each function of the
 * scripts below is on a line of its own, and is called from one line only, so
 * a stack is known from its innermost line.  The stack is taken after each
 * instruction that the processor executes (the trap flag), and by a timer.
 * Then stacks are taken of which words have been replaced.
 */


#include "base/prof_base.h"

#include "tap.h"

#include "scripts/prof_engine.h"
#include "scripts/prof_luajit.h"
#include "scripts/prof_scripts.h"
#include "stacks/prof_tables.h"
#include "unwind/prof_unwind.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>


#if (__x86_64__)

#define LINES_MAX  64
#define TRAP       0x100

#define PAGE       4096
#define FORGED     20000
#define SLOTS_MAX  64


typedef struct lua_State  lua_State;

static lua_State *(*luaL_newstate)(void);
static void (*luaL_openlibs)(lua_State *L);
static int (*luaL_loadbuffer)(lua_State *L, const char *text, size_t len,
    const char *name);
static int (*lua_pcall)(lua_State *L, int nargs, int nresults, int handler);
static void (*lua_pushcclosure)(lua_State *L, int (*fn)(lua_State *L), int n);
static void (*lua_setfield)(lua_State *L, int i, const char *key);
static const char *(*lua_tolstring)(lua_State *L, int i, size_t *len);
static void (*lua_close)(lua_State *L);
static int (*luaJIT_setmode)(lua_State *L, int i, int mode);
static void *(*lua_getallocf)(lua_State *L, void **ud);
static void (*lua_setallocf)(lua_State *L, void *(*fn)(void *, void *, size_t,
    size_t), void *ud);


/* a function in C that a function in Lua calls by a name */

typedef struct {
    uint32_t     script;        /* its number in scripts[] */
    uint32_t     line;          /* of its caller */
    const char  *name;
} test_c_t;


typedef struct {
    const char  *name;
    const char  *code;

    /* the line of the caller of the function in each line; 0: outermost; 0xff:
       the function calls itself; 0xfe: the line is also part of a function
       that the next line calls */
    uint8_t      callers[LINES_MAX];

    /* the name by which it is called; NULL: C calls it; "?": both occur */
    const char  *names[LINES_MAX];
} test_script_t;


typedef struct {
    uint32_t     stacks;
    uint32_t     scripts;       /* with at least one function in Lua */
    uint32_t     wrong;
    uint32_t     none;          /* without any */
    uint32_t     open;          /* that did not reach the test's function */
    uint32_t     compiled;      /* of the bad ones: in compiled code */
    uint32_t     named;         /* functions with the right name */
    uint32_t     unnamed;       /* without their name */
    uint32_t     misnamed;      /* with another name */
} test_count_t;


typedef void *(*test_dlsym_pt)(void *handle, const char *name);
typedef void *(*test_alloc_pt)(void *ud, void *ptr, size_t osize,
    size_t nsize);


static int test_load(void);
#if !(TAP_SANITIZED)
static void test_no_memory(void);
static lua_State *test_newstate(void);
static void *test_alloc(void *ud, void *ptr, size_t osize, size_t nsize);
#endif
static void test_script(const test_script_t *script, int jit, int traps);
static void test_total(const char *when);
static void test_handler(int signo, siginfo_t *si, void *uc);
static void test_name(const prof_script_t *s);
static void test_name_c(const prof_script_t *s, uintptr_t next);
static int test_right(const uint32_t *lines, uint32_t n);
static void test_forged(void);
static int test_forge(lua_State *L);
static void test_objects(void);
static uintptr_t test_value(void);
static uint32_t test_random(void);
static int test_start(lua_State *L);
static int test_stop(lua_State *L);


static const test_script_t  scripts[] = {

    { "functions",
      "local function leaf(x) local y = x * 2 return y + 1 end\n"
      "local function mid(x) local s = 0 for i = 1, 5 do s = s + leaf(i) end "
          "return s end\n"
      "local function top(x) local r = mid(x) .. '' return r end\n"
      "start() for i = 1, rounds do local r = top(i) end stop()\n",
      { 0, 2, 3, 4, 0 },
      { NULL, "leaf", "mid", "top" } },

    { "arguments of a variable number, and protected calls",
      "local function leaf(...) local a, b = ... return a + b end\n"
      "local function fail(x) error({}) end\n"
      "local function mid(...) local x = leaf(...) "
          "local ok = pcall(fail, x) return x end\n"
      "local function top(x) local ok, r = pcall(mid, x, 1) return r end\n"
      "start() for i = 1, rounds do local r = top(i) end stop()\n",
      { 0, 3, 3, 4, 5, 0 },
      { NULL, "leaf", NULL, NULL, "top" } },

    { "coroutines",
      "local function leaf(x) local y = coroutine.yield(x) return y end\n"
      "local function body(x) for i = 1, 3 do x = leaf(x) end return x end\n"
      "local function top(x) local co = coroutine.wrap(body) "
          "for i = 1, 4 do x = co(x) end return x end\n"
      "local function resume(x) local co = coroutine.create(top) "
          "local ok, r = coroutine.resume(co, x) return r end\n"
      "start() for i = 1, rounds do local r = resume(i) end stop()\n",
      { 0, 2, 3, 4, 5, 0 },
      { NULL, "leaf", NULL, NULL, "resume" } },

    { "metamethods",
      "local function index(t, k) local r = k .. 'x' return r end\n"
      "local function add(a, b) local r = a.n + 1 return r end\n"
      "local function lt(a, b) local r = a.n < b.n return r end\n"
      "local function concat(a, b) local r = 'c' return r end\n"
      "local function call(self, x) local r = x + 1 return r end\n"
      "local mt = { __index = index, __add = add, __lt = lt, "
          "__concat = concat, __call = call }\n"
      "local function top(a, b) local r = a.k local s = a + b "
          "local l = a < b local c = a .. b local d = a(1) return r end\n"
      "local a, b = setmetatable({ n = 1 }, mt), setmetatable({ n = 2 }, mt)\n"
      "start() for i = 1, rounds do local r = top(a, b) end stop()\n",
      { 0, 7, 7, 7, 7, 7, 0, 9, 0, 0 },
      { NULL, "__index", "__add", "__lt", "__concat", "a", NULL, "top" } },

    { "functions in C that call Lua",
      "local function less(a, b) local r = a > b return r end\n"
      "local function change(s) local r = s:upper() return r end\n"
      "local function top(x) local t = { 3, 1, 2, x } table.sort(t, less) "
          "local s = string.gsub('abc', '%w', change) "
          "local f = string.format('%s %d %5.2f', s, x, x) return s end\n"
      "start() for i = 1, rounds do local r = top(i) end stop()\n",
      { 0, 3, 3, 4, 0 },
      { NULL, NULL, NULL, "top" } },

    { "calls of C that store nothing",
      "local function leaf(x) local r = math.log(x) + math.pow(x, 1.5) "
          "+ x ^ 2.5 + math.sin(x) local t = {} for i = 1, 9 do t[i] = i end "
          "t[1.5] = #t t.k = t[1.5] for k in pairs(t) do r = r + 1 end "
          "return tostring(r) end\n"
      "local function top(x) local r = leaf(x) local s = leaf(x + 1) "
          "return s end\n"
      "start() for i = 1, rounds do local r = top(i) end stop()\n",
      { 0, 2, 3, 0 },
      { NULL, "leaf", "top" } },

    { "garbage, and stacks that grow",
      "local function deep(n) if n > 0 then local r = deep(n - 1) return r "
          "end local t = {} for i = 1, 20 do t[i] = { i, 'x' .. i } end "
          "return #t end\n"
      "local function top(x) local co = coroutine.wrap(deep) "
          "local r = co(30) return r end\n"
      "start() for i = 1, rounds do local r = top(i) end stop()\n",
      { 0, 0xff, 3, 0 },
      { NULL, "?", "top" } },

    { "names of all kinds",
      "local m = {} function m.field(x) local r = x + 1 return r end\n"
      "function m:method(x) local r = m.field(x) return r end\n"
      "function global(x) local r = m:method(x) return r end\n"
      "local function each(s, c) if c < 2 then return c + 1 end end\n"
      "local function top(f, x) local r = f(x) for i in each, x, 0 do r = i "
          "end return r end\n"
      "start() for i = 1, rounds do local r = top(global, i) end stop()\n",
      { 0, 2, 3, 5, 5, 6, 0 },
      { NULL, "field", "method", "f", "(for generator)", "top" } },

    { "a global function, and one of a variable number of arguments",
      "function leaf(...) local a = ... return a end\n"
      "function top(x) local r = leaf(x, 1) return r end\n"
      "start() for i = 1, rounds do local r = top(i) end stop()\n",
      { 0, 2, 3, 0 },
      { NULL, "leaf", "top" } },

    { "side traces, and a loop that cannot be compiled",
      "local function leaf(x)\n"
      "if x % 3 == 0 then return x * 2 end\n"
      "if x % 5 == 0 then return x + 1 end return x end\n"
      "local function mid(n) local s = 0 for i = 1, 9 do\n"
      "s = s + leaf(i + n) end return s end\n"
      "local function closures(n) local s = 0 for i = 1, 9 do\n"
      "local f = function() return n end\n"
      "s = s + f() end return s end\n"
      "local function top(n) local r = mid(n) + closures(n) return r end\n"
      "start() for i = 1, rounds do local r = top(i) end stop()\n",
      { 0, 5, 5, 5, 9, 9, 9, 0xfe, 9, 10, 0 },
      { NULL, "leaf", "leaf", "leaf", "mid", "mid", "closures", "?",
        "closures", "top" } },
};


static const test_c_t  c_functions[] = {

    { 1, 2, "error" }, { 1, 3, "pcall" }, { 1, 4, "pcall" },

    { 2, 1, "yield" }, { 2, 3, "wrap" }, { 2, 3, "co" }, { 2, 4, "create" },
    { 2, 4, "resume" },

    { 4, 2, "upper" }, { 4, 3, "sort" }, { 4, 3, "gsub" }, { 4, 3, "format" },

    { 5, 1, "log" }, { 5, 1, "pow" }, { 5, 1, "sin" }, { 5, 1, "pairs" },

    /* leaf() ends with a call of tostring(), which takes its place */

    { 5, 2, "leaf" },

    { 6, 2, "wrap" }, { 6, 2, "co" }
};

#define C_FUNCTIONS  (sizeof(c_functions) / sizeof(c_functions[0]))


static void                 *test_library;
static const test_script_t  *test_now;
static test_count_t          test_count;
static prof_walk_cache_t     test_cache;
static prof_stats_t          test_stats;
static uintptr_t             test_top;
static uintptr_t             test_state;
static uint32_t              test_traps;
static uint32_t              test_shown;
static uint32_t              test_stacks;
static uint32_t              test_bad;
static uint32_t              test_compiled;
static uint32_t              test_named;
static uint32_t              test_unnamed;
static uint32_t              test_misnamed;
static uint32_t              test_c_seen;
static uint32_t              test_seed = 1;

#if !(TAP_SANITIZED)

/* the number of the allocation that fails; 0: none */

static uint32_t              test_fails;
static uint32_t             *test_allocs;    /* shared with children */
static uint32_t              test_states;    /* that this process has made */
static test_alloc_pt         test_next;

#endif

/* a page, after which nothing is mapped */

static uint8_t              *test_page;


int
main(void)
{
    size_t       i;
    const char  *name, *state;

    if (!test_load()) {
        return skip_all("LuaJIT is not installed");
    }

    plan(18 + 3 * !TAP_SANITIZED + 3 * sizeof(scripts) / sizeof(scripts[0]));

#if !(TAP_SANITIZED)
    test_no_memory();
#endif

    if (prof_process_init() != PROF_OK) {
        abort();
    }

    state = prof_engines_state(0, &name);

    is_str(state, "on", "%s: its layout is known", name);

#if !(TAP_SANITIZED)
    is_int(test_states, 0, "a child process has learned it");
#endif

    for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        test_script(&scripts[i], 0, 1);
    }

    is_int(test_c_seen, (1u << C_FUNCTIONS) - 1,
           "each function in C is seen, with its caller");

    test_total("after each instruction");

    for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        test_script(&scripts[i], 0, 0);
    }

    test_total("at random times");

    test_script(&scripts[0], 1, 1);
    test_script(&scripts[7], 1, 1);
    test_script(&scripts[9], 1, 1);
    is_int(test_compiled, 0, "no stack is wrong in compiled code, and where it "
           "goes to other compiled code or to an exit");
    test_total("with the compiler, after each instruction");

    test_forged();

    return done_testing();
}


static int
test_load(void)
{
    test_library = dlopen("libluajit-5.1.so.2", RTLD_NOW);

    if (test_library == NULL) {
        return 0;
    }

#define TEST_SYMBOL(name)  *(void **) &name = dlsym(test_library, #name)

    TEST_SYMBOL(luaL_newstate);
    TEST_SYMBOL(luaL_openlibs);
    TEST_SYMBOL(luaL_loadbuffer);
    TEST_SYMBOL(lua_pcall);
    TEST_SYMBOL(lua_pushcclosure);
    TEST_SYMBOL(lua_setfield);
    TEST_SYMBOL(lua_tolstring);
    TEST_SYMBOL(lua_close);
    TEST_SYMBOL(luaJIT_setmode);
    TEST_SYMBOL(lua_getallocf);
    TEST_SYMBOL(lua_setallocf);

    return 1;
}


#if !(TAP_SANITIZED)

/*
 * LuaJIT's allocator takes much memory at a time, so it seldom fails.  Here
 * each allocation may fail, as in a LuaJIT that uses the allocator of the C
 * library.  An error outside of a protected call ends the process.
 */

static void
test_no_memory(void)
{
    int       status;
    pid_t     pid;
    uint32_t  n, ended, failed;

    ended = 0;
    failed = 0;
    status = 0;

    test_allocs = mmap(NULL, sizeof(uint32_t), PROT_READ|PROT_WRITE,
                       MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (test_allocs == MAP_FAILED) {
        abort();
    }

    for (n = 1; n < 100000; n += 1 + n / 20) {

        *test_allocs = 0;

        pid = fork();

        if (pid == 0) {
            test_fails = n;

            if (prof_process_init() != PROF_OK) {
                _exit(2);
            }

            _exit(*test_allocs >= n ? 0 : 3);
        }

        if (pid == -1 || waitpid(pid, &status, 0) != pid) {
            abort();
        }

        /* there are fewer allocations */

        if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
            break;
        }

        failed++;
        ended += (status != 0);
    }

    ok(failed > 20, "%u allocations have failed", failed);
    ok(ended == 0, "the process survives each of them (%u did not)", ended);
}


/*
 * Of the C library; LuaJIT's function for new states is replaced.  The
 * sanitizer calls this function before it can run.
 */

void *
dlsym(void *handle, const char *name)
{
    void                 *p;
    static test_dlsym_pt  next;

    if (next == NULL) {
        p = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        p = p ? p : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        next = (test_dlsym_pt) p;
    }

    p = next(handle, name);

    if (luaL_newstate && strcmp(name, "luaL_newstate") == 0) {
        return (void *) test_newstate;
    }

    return p;
}


static lua_State *
test_newstate(void)
{
    void       *ud;
    lua_State  *L;

    test_states++;

    L = luaL_newstate();

    test_next = (test_alloc_pt) lua_getallocf(L, &ud);
    lua_setallocf(L, test_alloc, ud);

    return L;
}


static void *
test_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    if (nsize > osize && ++*test_allocs == test_fails) {
        return NULL;
    }

    return test_next(ud, ptr, osize, nsize);
}

#endif


static void
test_script(const test_script_t *script, int jit, int traps)
{
    int               rc;
    uint32_t          bad;
    char              code[2048];
    lua_State        *L;
    struct sigaction  sa;
    struct itimerval  it;

    memset(&test_count, 0, sizeof(test_count));
    memset(&test_stats, 0, sizeof(test_stats));

    test_now = script;
    test_top = (uintptr_t) __builtin_frame_address(0);
    test_traps = traps;
    test_shown = 0;

    L = luaL_newstate();
    test_state = (uintptr_t) L;

    luaL_openlibs(L);
    luaJIT_setmode(L, 0, jit ? 0x100 : 0);
    lua_pushcclosure(L, test_start, 0);
    lua_setfield(L, -10002, "start");
    lua_pushcclosure(L, test_stop, 0);
    lua_setfield(L, -10002, "stop");

    /* the stack has grown before, except for that of coroutines */

    snprintf(code, sizeof(code), "local rounds = %d local function grow(n) "
             "if n > 0 then local r = grow(n - 1) return r end end grow(90) %s",
             traps ? (jit ? 40 : 10) : 100000, script->code);

    memset(&sa, 0, sizeof(sa));
    sa.sa_sigaction = test_handler;
    sa.sa_flags = SA_SIGINFO|SA_RESTART;
    sigaction(SIGTRAP, &sa, NULL);
    sigaction(SIGALRM, &sa, NULL);

    memset(&it, 0, sizeof(it));

    if (!traps) {
        it.it_value.tv_usec = 300;
        it.it_interval.tv_usec = 300;
    }

    setitimer(ITIMER_REAL, &it, NULL);

    rc = luaL_loadbuffer(L, code, strlen(code), "@test")
         || lua_pcall(L, 0, 0, 0);

    memset(&it, 0, sizeof(it));
    setitimer(ITIMER_REAL, &it, NULL);

    if (rc) {
        diag("%s", lua_tolstring(L, -1, NULL));
    }

    lua_close(L);

    diag("%s: %u stacks, %u of Lua, %u without, %u wrong, %u open, lost %u",
         script->name, test_count.stacks, test_count.scripts, test_count.none,
         test_count.wrong, test_count.open, (unsigned) test_stats.lost_engine);

    ok(rc == 0 && test_count.stacks > 2, "%s%s: stacks were taken %s",
       script->name, jit ? ", with the compiler" : "",
       traps ? "after each instruction" : "at random times");

    bad = test_count.wrong + test_count.none + test_count.open;

    if (traps && !jit) {
        ok((uint64_t) bad * 1000 <= test_count.stacks,
           "%s: 99.9 %% of the stacks are complete and right (%u are not)",
           script->name, bad);
    }

    test_stacks += test_count.stacks;
    test_bad += bad;
    test_compiled += test_count.compiled;
    test_named += test_count.named;
    test_unnamed += test_count.unnamed;
    test_misnamed += test_count.misnamed;
}


static void
test_total(const char *when)
{
    ok(test_stacks > 200 && (uint64_t) test_bad * 200 <= test_stacks,
       "%s 99.5 %% of all stacks are complete and right (%u of %u are not)",
       when, test_bad, test_stacks);

    ok(test_named > 100 && (uint64_t) test_unnamed * 200 <= test_named,
       "%s 99.5 %% of all functions have their names (%u of %u have none)",
       when, test_unnamed, test_named + test_unnamed);
    is_int(test_misnamed, 0, "%s no function has a wrong name", when);

    test_stacks = 0;
    test_bad = 0;
    test_named = 0;
    test_unnamed = 0;
    test_misnamed = 0;
}


/*
 * Words of the stack become links and functions that lead anywhere: to objects
 * whose fields are just as wrong, and to memory that is not mapped.
 */

static void
test_forged(void)
{
    lua_State          *L;
    static const char   code[] =
        "local function leaf(x) local r = forge(x) return r end\n"
        "local function mid(x) local ok, r = pcall(leaf, x) return r end\n"
        "local function top(...) local r = mid(...) return r end\n"
        "local r = top(1)\n";

    test_page = mmap(NULL, 2 * PAGE, PROT_READ|PROT_WRITE,
                     MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    if (test_page == MAP_FAILED || munmap(test_page + PAGE, PAGE) == -1) {
        abort();
    }

    memset(&test_stats, 0, sizeof(test_stats));
    memset(&test_count, 0, sizeof(test_count));

    test_top = (uintptr_t) __builtin_frame_address(0);

    L = luaL_newstate();

    luaL_openlibs(L);
    luaJIT_setmode(L, 0, 0);
    lua_pushcclosure(L, test_forge, 0);
    lua_setfield(L, -10002, "forge");

    ok(luaL_loadbuffer(L, code, sizeof(code) - 1, "@test") == 0
       && lua_pcall(L, 0, 0, 0) == 0 && test_count.stacks == FORGED,
       "stacks with forged words are taken");

    lua_close(L);

    diag("forged: %u stacks, %u of Lua, %u open, lost %u", test_count.stacks,
         test_count.scripts, test_count.open,
         (unsigned) test_stats.lost_engine);

    ok(test_count.open == 0, "forged words do not end the native stack");
    ok(test_count.scripts > FORGED / 2 && test_stats.lost_engine > FORGED / 10,
       "what is right above forged words is read, and what is lost is counted");
}


/* the words below the base: the functions, and their links */

static int
test_forge(lua_State *L)
{
    uint32_t        end, i, n, nslots;
    uintptr_t      *slots, base, low, pcs[PROF_MAX_DEPTH];
    uintptr_t       saved[SLOTS_MAX];
    ucontext_t      uc;
    prof_script_t   s;

    low = prof_arch_load((uintptr_t) L + LJ_L_STACK);
    base = prof_arch_load((uintptr_t) L + LJ_L_BASE);

    nslots = (uint32_t) ((base - low) / 8);
    nslots = (nslots < SLOTS_MAX) ? nslots : SLOTS_MAX;
    slots = (uintptr_t *) base - nslots;

    memcpy(saved, slots, nslots * 8);
    test_seed = 1;

    for (i = 0; i < FORGED; i++) {

        test_objects();

        for (n = 1 + test_random() % 3; n; n--) {
            slots[test_random() % nslots] = test_value();
        }

        prof_arch_here(&uc);

        n = prof_walk(prof_process_unwind(), &test_cache, &uc, test_top, pcs,
                      PROF_MAX_DEPTH, &test_stats, &end);

        memcpy(slots, saved, nslots * 8);

        test_count.stacks++;
        test_count.open += (end != 0);

        while (n) {
            if (prof_script_find(pcs[--n], &s) == PROF_OK) {
                test_count.scripts++;
                break;
            }
        }
    }

    return 0;
}


/* a function, and its bytecode, which may extend beyond the page */

static void
test_objects(void)
{
    uint32_t    at;
    uintptr_t  *word;

    for (at = 0; at < PAGE; at += 8) {
        word = (uintptr_t *) (test_page + at);
        *word = (test_random() & 1) ? test_value() : 0;
    }

    for (at = 0; at < PAGE; at += 16) {
        test_page[at + LJ_GCT] = LJ_GCT_FUNC + at / 16 % 2 - 1;
        test_page[at + LJ_FUNC_FFID] = 0;
    }
}


static uintptr_t
test_value(void)
{
    uint32_t   r;
    uintptr_t  addr;

    r = test_random();

    addr = (uintptr_t) test_page + r % (PAGE + PAGE / 2) / 8 * 8;

    switch (r >> 16 & 7) {

    case 0:
        return r % 512;

    case 1:
        return (uintptr_t) LJ_TAG_FUNC << LJ_TAG_SHIFT | (r & 0xfff8);

    case 2:
        return addr | 4;

    case 3:
        return addr;

    case 4:
        return (uintptr_t) r << 32 | test_random();

    default:
        return (uintptr_t) LJ_TAG_FUNC << LJ_TAG_SHIFT | addr;
    }
}


static uint32_t
test_random(void)
{
    test_seed = test_seed * 1103515245 + 12345;

    return test_seed >> 4 ^ test_seed << 20;
}


static volatile int  test_running;


static int
test_start(lua_State *L)
{
    test_running = 1;

    if (test_traps) {
        __asm__ volatile ("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "cc",
                          "memory");
    }

    return 0;
}


static int
test_stop(lua_State *L)
{
    if (test_traps) {
        __asm__ volatile ("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "cc",
                          "memory");
    }

    test_running = 0;

    return 0;
}


static void
test_handler(int signo, siginfo_t *si, void *data)
{
    uint32_t           i, n, nlines, end, lines[PROF_MAX_DEPTH];
    uintptr_t          g, pc, pcs[PROF_MAX_DEPTH];
    prof_script_t      s;
    const ucontext_t  *uc = data;

    if (!test_running) {
        return;
    }

    n = prof_walk(prof_process_unwind(), &test_cache, uc, test_top, pcs,
                  PROF_MAX_DEPTH, &test_stats, &end);

    nlines = 0;

    for (i = 0; i < n; i++) {
        if (prof_script_find(pcs[i], &s) == PROF_OK && s.file_len) {
            lines[nlines++] = s.line;
        }
    }

    test_count.stacks++;

    if (end) {
        test_count.open++;
    }

    if (nlines == 0) {
        test_count.none++;

    } else {
        test_count.scripts++;
    }

    if (nlines && test_right(lines, nlines)) {

        for (i = 0; i < n; i++) {
            if (prof_script_find(pcs[i], &s) != PROF_OK) {
                continue;
            }

            if (s.file_len) {
                test_name(&s);

            } else {
                test_name_c(&s, pcs[i + 1]);
            }
        }

        return;
    }

    if (nlines) {
        test_count.wrong++;
    }

    g = prof_arch_load(test_state + LJ_L_GLREF);
    pc = uc->uc_mcontext.gregs[REG_RIP];

    test_count.compiled += prof_arch_load(g + prof_luajit.jit_base) != 0
                           && (pc < prof_luajit.start || pc >= prof_luajit.end);

    if (test_shown++ < 3) {
        fprintf(stderr, "# pc %lx:",
                (unsigned long) uc->uc_mcontext.gregs[REG_RIP]);

        for (i = 0; i < n && i < 20; i++) {
            if (prof_script_find(pcs[i], &s) == PROF_OK) {
                fprintf(stderr, " test:%u", s.line);

            } else {
                fprintf(stderr, " %lx", (unsigned long) pcs[i]);
            }
        }

        fprintf(stderr, "\n");
    }
}


static void
test_name(const prof_script_t *s)
{
    const char  *name;

    name = test_now->names[s->line];

    if (name && name[0] == '?') {
        return;
    }

    if (name == NULL) {
        test_count.misnamed += s->function_len != 0;

    } else if (s->function_len == 0) {
        test_count.unnamed++;

    } else if (s->function_len == strlen(name)
               && memcmp(s->function, name, s->function_len) == 0)
    {
        test_count.named++;

    } else {
        test_count.misnamed++;
        fprintf(stderr, "# test:%u: %.*s\n", s->line, (int) s->function_len,
                s->function);
    }
}


/* the next frame of a function in C is that of its caller in Lua */

static void
test_name_c(const prof_script_t *s, uintptr_t next)
{
    uint32_t         i;
    prof_script_t    caller;
    const test_c_t  *c;

    if (prof_script_find(next, &caller) != PROF_OK) {
        memset(&caller, 0, sizeof(caller));
    }

    for (i = 0; i < C_FUNCTIONS; i++) {
        c = &c_functions[i];

        if (&scripts[c->script] == test_now && caller.line == c->line
            && s->function_len == strlen(c->name)
            && memcmp(s->function, c->name, s->function_len) == 0)
        {
            test_c_seen |= 1u << i;
            return;
        }
    }

    /* the outermost code calls start() and stop() */

    if (caller.start_line == 0 && s->function_len
        && memcmp(s->function, "st", 2) == 0)
    {
        return;
    }

    test_count.misnamed++;
    fprintf(stderr, "# %.*s, called in line %u\n", (int) s->function_len,
            s->function, caller.line);
}


static int
test_right(const uint32_t *lines, uint32_t n)
{
    uint32_t  i, caller;

    for (i = 0; i < n; i++) {

        if (lines[i] == 0 || lines[i] >= LINES_MAX) {
            return 0;
        }

        caller = test_now->callers[lines[i]];

        /* a function that calls itself thirty times */

        if (caller == 0xff) {
            for ( /* void */ ; i + 1 < n && lines[i + 1] == lines[i]; i++) {
                /* void */
            }

            caller = lines[i] + 1;
        }

        if (caller == 0xfe) {
            caller = (i + 1 < n && lines[i + 1] == lines[i] + 1)
                     ? lines[i] + 1 : 9;
        }

        if (caller == 0) {
            return i == n - 1;
        }

        if (i == n - 1 || lines[i + 1] != caller) {
            return 0;
        }
    }

    return 0;
}

#else


int
main(void)
{
    return skip_all("LuaJIT's frames are read on x86-64 only");
}


#endif
