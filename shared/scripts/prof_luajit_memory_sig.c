
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Memory of LuaJIT that may be gone: a walk that begins at a wrong place may
 * meet functions that were collected, or any other values.
 *
 * Context: signal handler.
 */


#include "scripts/prof_luajit.h"


int
prof_luajit_is_function(prof_walk_t *w, uintptr_t fn)
{
    return prof_luajit_pointer(fn)
           && prof_memory_readable(w, fn, LJ_FUNC_UVPTR)
           && prof_luajit_u8(fn + LJ_GCT) == LJ_GCT_FUNC;
}


int
prof_luajit_is_lua(prof_walk_t *w, uintptr_t fn)
{
    return prof_luajit_is_function(w, fn)
           && prof_luajit_u8(fn + LJ_FUNC_FFID) == 0
           && prof_luajit_is_bytecode(w, prof_arch_load(fn + LJ_FUNC_PC));
}


int
prof_luajit_runs(prof_walk_t *w, uintptr_t fn, uintptr_t pc)
{
    return prof_luajit_is_lua(w, fn)
           && prof_luajit_inside(prof_arch_load(fn + LJ_FUNC_PC), pc);
}


int
prof_luajit_is_bytecode(prof_walk_t *w, uintptr_t bc)
{
    return prof_luajit_pointer(bc)
           && prof_memory_readable(w, bc - LJ_PROTO_SIZE, LJ_PROTO_SIZE)
           && prof_luajit_u8(bc + LJ_PT_GCT) == LJ_GCT_PROTO;
}
