
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The names of LuaJIT's functions.
 *
 * Context: signal handler.
 */


#include "scripts/prof_luajit.h"


#if (__x86_64__)


static uint32_t prof_luajit_first(const char *text, uint32_t len);
static uint32_t prof_luajit_line(uintptr_t bc, uintptr_t pc);


uintptr_t
prof_luajit_key(uintptr_t bc, uintptr_t pc, prof_stats_t *st)
{
    uintptr_t      name;
    prof_script_t  s;

    name = prof_arch_load(bc + LJ_PT_CHUNKNAME);

    s.function = NULL;
    s.function_len = 0;
    s.file = (const char *) name + LJ_STR_DATA;
    s.file_len = prof_luajit_u32(name + prof_luajit.str_len);
    s.start_line = prof_luajit_u32(bc + LJ_PT_FIRSTLINE);
    s.line = prof_luajit_line(bc, pc);

    /* "@file", "=name", or the text itself: then its first line */

    if (s.file_len && (*s.file == '@' || *s.file == '=')) {
        s.file++;
        s.file_len--;

    } else {
        s.file_len = prof_luajit_first(s.file, s.file_len);
    }

    return prof_script_key(&s, st);
}


static uint32_t
prof_luajit_first(const char *text, uint32_t len)
{
    uint32_t  i;

    len = (len < PROF_SCRIPT_TEXT_MAX) ? len : PROF_SCRIPT_TEXT_MAX;

    for (i = 0; i < len && text[i] != '\n'; i++) {
        /* void */
    }

    return i;
}


/*
 * The line of the instruction before pc: as lj_debug_line().  While a function
 * begins or returns its instruction is not known: then it is the first line.
 */

static uint32_t
prof_luajit_line(uintptr_t bc, uintptr_t pc)
{
    uint32_t   i, first, size, num;
    uintptr_t  info;

    first = prof_luajit_u32(bc + LJ_PT_FIRSTLINE);
    num = prof_luajit_u32(bc + LJ_PT_NUMLINE);
    info = prof_arch_load(bc + LJ_PT_LINEINFO);

    if (info == 0 || pc <= bc) {
        return first;
    }

    i = (uint32_t) ((pc - bc) / 4) - 1;
    size = prof_luajit_u32(bc + LJ_PT_SIZEBC);

    if (i >= size || i-- == 0) {
        return first;
    }

    if (num < 256) {
        return first + prof_luajit_u8(info + i);
    }

    return (num < 65536) ? first + prof_luajit_u16(info + 2 * i)
                         : first + prof_luajit_u32(info + 4 * i);
}


#endif
