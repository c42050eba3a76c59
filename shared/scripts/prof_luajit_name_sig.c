
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The names of LuaJIT's functions.
 *
 * Context: signal handler.
 */


#include "scripts/prof_luajit.h"


#if (__x86_64__)


static int prof_luajit_file(prof_walk_t *w, uintptr_t name, prof_script_t *s);
static uint32_t prof_luajit_first(const char *text, uint32_t len);
static int prof_luajit_line(prof_walk_t *w, uintptr_t bc, uintptr_t pc,
    uint32_t *line);


uintptr_t
prof_luajit_key(prof_walk_t *w, uintptr_t bc, uintptr_t pc)
{
    prof_script_t  s;

    s.function = NULL;
    s.function_len = 0;
    s.start_line = prof_luajit_u32(bc + LJ_PT_FIRSTLINE);

    if (!prof_luajit_line(w, bc, pc, &s.line)
        || !prof_luajit_file(w, prof_arch_load(bc + LJ_PT_CHUNKNAME), &s))
    {
        w->st->lost_engine++;
        return PROF_FRAME_SCRIPT;
    }

    return prof_script_key(&s, w->st);
}


/* "@file", "=name", or the text itself: then its first line */

static int
prof_luajit_file(prof_walk_t *w, uintptr_t name, prof_script_t *s)
{
    uint32_t   len;
    uintptr_t  text;

    text = name + LJ_STR_DATA;

    if (!prof_luajit_pointer(name)
        || !prof_luajit_readable(w, name, LJ_STR_DATA + 1))
    {
        return 0;
    }

    len = prof_luajit_u32(name + prof_luajit.str_len);

    if (len && (prof_luajit_u8(text) == '@' || prof_luajit_u8(text) == '=')) {
        text++;
        len--;

        if (len > PROF_SCRIPT_TEXT_MAX) {
            text += len - PROF_SCRIPT_TEXT_MAX;
            len = PROF_SCRIPT_TEXT_MAX;
        }

        if (!prof_luajit_readable(w, text, len)) {
            return 0;
        }

    } else {

        if (len > PROF_SCRIPT_TEXT_MAX) {
            len = PROF_SCRIPT_TEXT_MAX;
        }

        if (!prof_luajit_readable(w, text, len)) {
            return 0;
        }

        len = prof_luajit_first((const char *) text, len);
    }

    s->file = (const char *) text;
    s->file_len = len;

    return 1;
}


static uint32_t
prof_luajit_first(const char *text, uint32_t len)
{
    uint32_t  i;

    for (i = 0; i < len && text[i] != '\n'; i++) {
        /* void */
    }

    return i;
}


/*
 * The line of the instruction before pc, found as in lj_debug_line().  While a
 * function begins or returns, its instruction is unknown, and the result is the
 * function's first line.
 */

static int
prof_luajit_line(prof_walk_t *w, uintptr_t bc, uintptr_t pc, uint32_t *line)
{
    uint32_t   i, num, size;
    uintptr_t  info;

    *line = prof_luajit_u32(bc + LJ_PT_FIRSTLINE);
    num = prof_luajit_u32(bc + LJ_PT_NUMLINE);
    info = prof_arch_load(bc + LJ_PT_LINEINFO);

    if (info == 0 || pc <= bc) {
        return 1;
    }

    i = (uint32_t) ((pc - bc) / 4) - 1;

    if (i >= prof_luajit_u32(bc + LJ_PT_SIZEBC) || i-- == 0) {
        return 1;
    }

    size = (num < 256) ? 1 : (num < 65536) ? 2 : 4;
    info += (uintptr_t) size * i;

    if (!prof_luajit_readable(w, info, size)) {
        return 0;
    }

    *line += (size == 1) ? prof_luajit_u8(info)
                         : (size == 2) ? prof_luajit_u16(info)
                                       : prof_luajit_u32(info);
    return 1;
}


#endif
