
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "scripts/prof_lua.h"
#include "scripts/prof_luajit.h"

#include <string.h>


/* the registry has fewer entries; a table of numbers has most in its array */
#define PROF_LUA_NODES  4096

/*
 * The bits of an address by which the value of a variable's address is
 * recognized: LuaJIT may replace the upper ones by a number.
 */
#define PROF_LUA_LOW    (((uintptr_t) 1 << 39) - 1)

/* functions without a name are not stored */
#define PROF_LUA_DEPTH  128


static void prof_lua_prepare(prof_walk_t *w);
static uintptr_t prof_lua_thread(prof_walk_t *w, const prof_lua_state_t *co);
static uintptr_t prof_lua_nodes(prof_walk_t *w, uintptr_t table, uint32_t *n);
static uintptr_t prof_lua_tagged(uintptr_t value, uintptr_t tag);
static int prof_lua_number(uintptr_t value, int32_t *number);
static int prof_lua_has(const void *p, const void *last, int32_t number);


void *
prof_lua_exdata(const prof_lua_state_t *co)
{
    return (void *) prof_arch_load((uintptr_t) co + prof_luajit.exdata);
}


int
prof_lua_coroutine(const prof_lua_state_t *co, prof_lua_coroutine_t *c)
{
    uintptr_t    state;
    prof_walk_t  w;

    prof_lua_prepare(&w);

    state = prof_lua_thread(&w, co);

    if (state == 0) {
        return PROF_ERROR;
    }

    c->exdata = (void *) prof_arch_load(state + prof_luajit.exdata);
    c->exdata2 = (void *) prof_arch_load(state + prof_luajit.exdata2);
    c->yields = (prof_luajit_u8(state + LJ_L_STATUS) == LJ_YIELD);

    return PROF_OK;
}


void *
prof_lua_table(const prof_lua_state_t *L, const void *variable)
{
    uint32_t     i, n;
    uintptr_t    g, node, state, value;
    prof_walk_t  w;

    prof_lua_prepare(&w);

    state = prof_lua_thread(&w, L);

    if (state == 0) {
        return NULL;
    }

    g = prof_arch_load(state + LJ_L_GLREF);

    if (!prof_luajit_pointer(g)
        || !prof_memory_readable(&w, g + prof_luajit.registry, 8))
    {
        return NULL;
    }

    node = prof_lua_nodes(&w, prof_lua_tagged(prof_arch_load(g
                                                      + prof_luajit.registry),
                                              LJ_TAG_TAB), &n);

    for (i = 0; i < n; i++, node += LJ_NODE_SIZE) {
        value = prof_lua_tagged(prof_arch_load(node + LJ_NODE_KEY),
                                LJ_TAG_LIGHTUD);

        if (value && ((value ^ (uintptr_t) variable) & PROF_LUA_LOW) == 0) {
            return (void *) prof_lua_tagged(prof_arch_load(node), LJ_TAG_TAB);
        }
    }

    return NULL;
}


int
prof_lua_anchored(const void *table, const prof_lua_state_t *co,
    const void *p, const void *last)
{
    int32_t         ref;
    uint32_t        i, n, size;
    uintptr_t       array, node, value;
    prof_walk_t     w;
    const int32_t  *number;

    if (((uintptr_t) co & ~LJ_ADDRESS) || co == NULL) {
        return 0;
    }

    prof_lua_prepare(&w);

    value = (uintptr_t) LJ_TAG_THREAD << LJ_TAG_SHIFT | (uintptr_t) co;

    node = prof_lua_nodes(&w, (uintptr_t) table, &n);

    if (node == 0) {
        return 0;
    }

    array = prof_arch_load((uintptr_t) table + LJ_TAB_ARRAY);
    size = prof_luajit_u32((uintptr_t) table + LJ_TAB_ASIZE);

    for (number = p; number + 1 <= (const int32_t *) last; number++) {
        ref = *number;

        if (ref > 0 && (uint32_t) ref < size
            && prof_memory_readable(&w, array + 8 * (uintptr_t) ref, 8)
            && prof_arch_load(array + 8 * (uintptr_t) ref) == value)
        {
            return 1;
        }
    }

    for (i = 0; i < n; i++, node += LJ_NODE_SIZE) {

        if (prof_arch_load(node) == value
            && prof_lua_number(prof_arch_load(node + LJ_NODE_KEY), &ref)
            && prof_lua_has(p, last, ref))
        {
            return 1;
        }
    }

    return 0;
}


/* the base of a coroutine that waits is that of the function that yields */

uint32_t
prof_lua_stack(const prof_lua_state_t *co, uintptr_t *keys, uint32_t max,
    prof_stats_t *st)
{
    uint32_t              n;
    uintptr_t             pcs[PROF_LUA_DEPTH];
    prof_walk_t           w;
    prof_luajit_walk_t    lw;
    prof_luajit_place_t   p;

    prof_lua_prepare(&w);

    w.pcs = pcs;
    w.max = PROF_LUA_DEPTH;
    w.st = st;

    memset(&lw, 0, sizeof(lw));
    lw.w = &w;
    lw.state = prof_lua_thread(&w, co);

    if (lw.state == 0 || !prof_luajit_stack(&lw, 0)) {
        return 0;
    }

    /* only one entry from C, since C functions cannot wait for a coroutine */

    p.base = prof_arch_load(lw.state + LJ_L_BASE);
    p.pc = 0;
    p.again = 0;

    if (!prof_luajit_slot(&lw, p.base)
        || !prof_luajit_is_function(&w, prof_luajit_function(p.base)))
    {
        return 0;
    }

    (void) prof_luajit_functions(&lw, &p);

    prof_luajit_named(&lw, 0, 0);

    n = (w.n < max) ? w.n : max;
    memcpy(keys, pcs, n * sizeof(uintptr_t));

    return n;
}


static void
prof_lua_prepare(prof_walk_t *w)
{
    memset(w, 0, sizeof(prof_walk_t));

    w->looks = PROF_WALK_LOOKS;
    prof_memory_prepare(w);
}


/* returns the address of a coroutine, which can be read, or 0 */

static uintptr_t
prof_lua_thread(prof_walk_t *w, const prof_lua_state_t *co)
{
    uintptr_t  state;

    state = (uintptr_t) co;

    return (prof_luajit_pointer(state)
            && prof_memory_readable(w, state, prof_luajit.exdata2 + 8)
            && prof_luajit_u8(state + LJ_GCT) == LJ_GCT_THREAD)
           ? state : 0;
}


/* returns the nodes of a table, which can be read, or 0 */

static uintptr_t
prof_lua_nodes(prof_walk_t *w, uintptr_t table, uint32_t *n)
{
    uintptr_t  node;

    *n = 0;

    if (!prof_luajit_pointer(table)
        || !prof_memory_readable(w, table, LJ_TAB_HMASK + 4)
        || prof_luajit_u8(table + LJ_GCT) != LJ_GCT_TAB)
    {
        return 0;
    }

    node = prof_arch_load(table + LJ_TAB_NODE);
    *n = prof_luajit_u32(table + LJ_TAB_HMASK) + 1;

    if (!prof_luajit_pointer(node) || *n == 0 || *n > PROF_LUA_NODES
        || !prof_memory_readable(w, node, (size_t) *n * LJ_NODE_SIZE))
    {
        *n = 0;
        return 0;
    }

    return node;
}


/* returns the address in a value with this tag, or 0 */

static uintptr_t
prof_lua_tagged(uintptr_t value, uintptr_t tag)
{
    return (value >> LJ_TAG_SHIFT == tag) ? value & LJ_ADDRESS : 0;
}


/* numbers are doubles, or on some processors integers with a tag */

static int
prof_lua_number(uintptr_t value, int32_t *number)
{
    double  d;

    if (value >> LJ_TAG_SHIFT == LJ_TAG_INT) {
        *number = (int32_t) value;
        return 1;
    }

    memcpy(&d, &value, sizeof(d));

    if (!(d > 0 && d <= INT32_MAX)) {
        return 0;
    }

    *number = (int32_t) d;

    return 1;
}


static int
prof_lua_has(const void *p, const void *last, int32_t number)
{
    const int32_t  *word;

    for (word = p; word + 1 <= (const int32_t *) last; word++) {
        if (*word == number) {
            return 1;
        }
    }

    return 0;
}
