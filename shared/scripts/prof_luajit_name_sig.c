
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The names of LuaJIT's functions.
 *
 * Context: signal handler.
 */


#include "scripts/prof_luajit.h"

#include <string.h>


/* lj_bc.h: operations, which are the lowest byte of an instruction */

#define LJ_BC_ISGE       1
#define LJ_BC_ISGT       3
#define LJ_BC_ISNEP      11
#define LJ_BC_MOV        18
#define LJ_BC_UNM        20
#define LJ_BC_LEN        21
#define LJ_BC_ADDVN      22
#define LJ_BC_MODVV      36
#define LJ_BC_POW        37
#define LJ_BC_CAT        38
#define LJ_BC_KNIL       44
#define LJ_BC_UGET       45
#define LJ_BC_GGET       54
#define LJ_BC_GSET       55
#define LJ_BC_TGETV      56
#define LJ_BC_TGETS      57
#define LJ_BC_TGETR      59
#define LJ_BC_TSETR      64
#define LJ_BC_CALLM      65
#define LJ_BC_CALLT      68
#define LJ_BC_ITERC      69

/* operations that write the slot of operand A, and those that also write it
   and all slots above */

#define LJ_BC_BIT(op)         ((uint64_t) 1 << ((op) & 63))
#define LJ_BC_BITS(from, to)  (LJ_BC_BIT(to) * 2 - LJ_BC_BIT(from))

#define LJ_BC_DST(op)                                                         \
    ((op) < 64                                                                \
     && ((LJ_BC_BITS(12, 13) | LJ_BC_BITS(18, 43) | LJ_BC_BIT(45)             \
          | LJ_BC_BITS(51, 54) | LJ_BC_BITS(56, 59)) & LJ_BC_BIT(op)))

#define LJ_BC_BASE(op)                                                        \
    ((op) == LJ_BC_KNIL || (op) == 63 || ((op) >= 65 && (op) <= 73)           \
     || ((op) >= 77 && (op) <= 84))

/* names of variables below are numbers of the compiler's own variables */

#define LJ_VARNAME_END      0
#define LJ_VARNAME_FOR_GEN  4
#define LJ_VARNAME_MAX      7


/* bytes that are read one after the other */

typedef struct {
    prof_walk_t  *w;
    uintptr_t     p;
    uint32_t      failed;
} prof_luajit_bytes_t;


static void prof_luajit_function_name(prof_walk_t *w, uintptr_t bc,
    uintptr_t ip, prof_script_t *s);
static const char *prof_luajit_metamethod(uint32_t op);
static void prof_luajit_slot_name(prof_walk_t *w, uintptr_t bc, uintptr_t ip,
    uint32_t slot, prof_script_t *s);
static int prof_luajit_variable(prof_walk_t *w, uintptr_t bc, uint32_t pc,
    uint32_t slot, prof_script_t *s);
static void prof_luajit_upvalue(prof_walk_t *w, uintptr_t bc, uint32_t i,
    prof_script_t *s);
static void prof_luajit_constant_name(prof_walk_t *w, uintptr_t bc, uint32_t i,
    prof_script_t *s);
static uint32_t prof_luajit_byte(prof_luajit_bytes_t *b);
static uint32_t prof_luajit_uleb(prof_luajit_bytes_t *b);
static int prof_luajit_file(prof_walk_t *w, uintptr_t name, prof_script_t *s);
static uint32_t prof_luajit_first(const char *text, uint32_t len);
static int prof_luajit_line(prof_walk_t *w, uintptr_t bc, uintptr_t pc,
    uint32_t *line);


uintptr_t
prof_luajit_key(prof_walk_t *w, uintptr_t bc, uintptr_t pc, uintptr_t caller,
    uintptr_t caller_pc)
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

    /* the main function of a file, which begins in line 0, needs no name */

    if (caller && s.start_line) {
        prof_luajit_function_name(w, caller, caller_pc - 4, &s);
    }

    return prof_script_key(&s, w->st);
}


uintptr_t
prof_luajit_key_c(prof_walk_t *w, uintptr_t caller, uintptr_t caller_pc)
{
    prof_script_t  s;

    if (caller == 0) {
        return 0;
    }

    memset(&s, 0, sizeof(prof_script_t));

    prof_luajit_function_name(w, caller, caller_pc - 4, &s);

    return s.function_len ? prof_script_key(&s, w->st) : 0;
}


/*
 * Finds the name by which the instruction at ip of a verified bytecode calls a
 * function, as lj_debug_funcname() does.  A function that took the place of
 * its caller (a tail call) gets the name of the caller.
 */

static void
prof_luajit_function_name(prof_walk_t *w, uintptr_t bc, uintptr_t ip,
    prof_script_t *s)
{
    uint32_t     a, op;
    const char  *name;

    if (!prof_memory_readable(w, ip, 4)) {
        return;
    }

    op = prof_luajit_u8(ip);
    a = prof_luajit_u8(ip + 1);

    if (op >= LJ_BC_CALLM && op <= LJ_BC_CALLT) {
        prof_luajit_slot_name(w, bc, ip, a, s);
        return;
    }

    if (op == LJ_BC_ITERC && a >= 3) {
        prof_luajit_slot_name(w, bc, ip, a - 3, s);
        return;
    }

    name = prof_luajit_metamethod(op);

    if (name) {
        s->function = name;
        s->function_len = (uint32_t) strlen(name);
    }
}


static const char *
prof_luajit_metamethod(uint32_t op)
{
    static const char  *const arith[] = {
        "__add", "__sub", "__mul", "__div", "__mod"
    };

    if (op <= LJ_BC_ISNEP) {
        return (op <= LJ_BC_ISGE) ? "__lt"
                                  : (op <= LJ_BC_ISGT) ? "__le" : "__eq";
    }

    if (op >= LJ_BC_ADDVN && op <= LJ_BC_MODVV) {
        return arith[(op - LJ_BC_ADDVN) % 5];
    }

    switch (op) {

    case LJ_BC_UNM:
        return "__unm";

    case LJ_BC_LEN:
        return "__len";

    case LJ_BC_POW:
        return "__pow";

    case LJ_BC_CAT:
        return "__concat";

    case LJ_BC_GGET:
        return "__index";

    case LJ_BC_GSET:
        return "__newindex";

    default:
        return (op >= LJ_BC_TGETV && op <= LJ_BC_TGETR) ? "__index"
               : (op > LJ_BC_TGETR && op <= LJ_BC_TSETR) ? "__newindex" : NULL;
    }
}


/*
 * Finds the name of the value that a slot has before the instruction at ip:
 * the name of the variable in the slot, or of the value that the last
 * instruction that wrote the slot has read.
 */

static void
prof_luajit_slot_name(prof_walk_t *w, uintptr_t bc, uintptr_t ip,
    uint32_t slot, prof_script_t *s)
{
    uint32_t  a, d, ins, op;

    if (prof_luajit_variable(w, bc, (uint32_t) (ip - bc) / 4, slot, s)) {
        return;
    }

    while ((ip -= 4) > bc && w->names && prof_memory_readable(w, ip, 4)) {

        w->names--;

        ins = prof_luajit_u32(ip);
        op = ins & 0xff;
        a = (ins >> 8) & 0xff;
        d = ins >> 16;

        if (LJ_BC_BASE(op)) {

            if (slot >= a && (op != LJ_BC_KNIL || slot <= d)) {
                return;
            }

            continue;
        }

        if (!LJ_BC_DST(op) || a != slot) {
            continue;
        }

        switch (op) {

        case LJ_BC_MOV:
            slot = d;

            if (prof_luajit_variable(w, bc, (uint32_t) (ip - bc) / 4, slot, s))
            {
                return;
            }

            break;

        case LJ_BC_GGET:
            prof_luajit_constant_name(w, bc, d, s);
            return;

        case LJ_BC_TGETS:
            prof_luajit_constant_name(w, bc, d & 0xff, s);
            return;

        case LJ_BC_UGET:
            prof_luajit_upvalue(w, bc, d, s);
            return;

        default:
            return;
        }
    }
}


/*
 * Returns whether a local variable lives in the slot at an instruction, and
 * finds its name, as debug_varname() does.  The data of a variable are its
 * name, the distance of its start from the start of the previous variable, and
 * its length.
 */

static int
prof_luajit_variable(prof_walk_t *w, uintptr_t bc, uint32_t pc, uint32_t slot,
    prof_script_t *s)
{
    uint32_t             c, end, start;
    uintptr_t            name, name_end;
    prof_luajit_bytes_t  b;

    static const char    generator[] = "(for generator)";

    b.w = w;
    b.p = prof_arch_load(bc + LJ_PT_VARINFO);
    b.failed = (b.p == 0);

    start = 0;

    while (!b.failed) {
        name = b.p;
        c = prof_luajit_byte(&b);

        if (c == LJ_VARNAME_END) {
            return 0;
        }

        if (c >= LJ_VARNAME_MAX) {
            while (prof_luajit_byte(&b)) { /* void */ }
        }

        name_end = b.p - 1;
        start += prof_luajit_uleb(&b);

        if (b.failed || start > pc) {
            return 0;
        }

        end = start + prof_luajit_uleb(&b);

        if (b.failed || pc >= end || slot--) {
            continue;
        }

        if (c >= LJ_VARNAME_MAX) {
            s->function = (const char *) name;
            s->function_len = (uint32_t) (name_end - name);

        } else if (c == LJ_VARNAME_FOR_GEN) {
            s->function = generator;
            s->function_len = sizeof(generator) - 1;
        }

        return 1;
    }

    return 0;
}


/* finds the name of upvalue i in the list of null-terminated names */

static void
prof_luajit_upvalue(prof_walk_t *w, uintptr_t bc, uint32_t i, prof_script_t *s)
{
    uintptr_t            name;
    prof_luajit_bytes_t  b;

    b.w = w;
    b.p = prof_arch_load(bc + LJ_PT_UVINFO);
    b.failed = (b.p == 0 || i >= prof_luajit_u8(bc + LJ_PT_SIZEUV));

    do {
        name = b.p;
        while (prof_luajit_byte(&b)) { /* void */ }
    } while (!b.failed && i--);

    if (!b.failed) {
        s->function = (const char *) name;
        s->function_len = (uint32_t) (b.p - 1 - name);
    }
}


/*
 * Finds the text of constant i.  Constants that are objects are below the
 * other constants, in reverse order.
 */

static void
prof_luajit_constant_name(prof_walk_t *w, uintptr_t bc, uint32_t i,
    prof_script_t *s)
{
    uint32_t   len;
    uintptr_t  at, str;

    at = prof_arch_load(bc + LJ_PT_K) - 8 * ((uintptr_t) i + 1);

    if (i >= prof_luajit_u32(bc + LJ_PT_SIZEKGC) || !prof_luajit_pointer(at)
        || !prof_memory_readable(w, at, 8))
    {
        return;
    }

    str = prof_arch_load(at);

    if (!prof_luajit_pointer(str)
        || !prof_memory_readable(w, str, LJ_STR_DATA + 1)
        || prof_luajit_u8(str + LJ_GCT) != LJ_GCT_STR)
    {
        return;
    }

    len = prof_luajit_u32(str + prof_luajit.str_len);

    if (len > PROF_SCRIPT_TEXT_MAX) {
        len = PROF_SCRIPT_TEXT_MAX;
    }

    if (prof_memory_readable(w, str + LJ_STR_DATA, len)) {
        s->function = (const char *) str + LJ_STR_DATA;
        s->function_len = len;
    }
}


/* returns 0 after an error, which ends texts and lists */

static uint32_t
prof_luajit_byte(prof_luajit_bytes_t *b)
{
    if (b->failed || b->w->names == 0
        || !prof_memory_readable(b->w, b->p, 1))
    {
        b->failed = 1;
        return 0;
    }

    b->w->names--;

    return prof_luajit_u8(b->p++);
}


static uint32_t
prof_luajit_uleb(prof_luajit_bytes_t *b)
{
    uint32_t  c, n, shift;

    n = 0;
    shift = 0;

    do {
        c = prof_luajit_byte(b);
        n |= (c & 0x7f) << shift;
        shift += 7;
    } while (c >= 0x80 && shift < 32);

    return n;
}


/* sets the file: "@file", "=name", or the first line of the script's text */

static int
prof_luajit_file(prof_walk_t *w, uintptr_t name, prof_script_t *s)
{
    uint32_t   len;
    uintptr_t  text;

    text = name + LJ_STR_DATA;

    if (!prof_luajit_pointer(name)
        || !prof_memory_readable(w, name, LJ_STR_DATA + 1))
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

        if (!prof_memory_readable(w, text, len)) {
            return 0;
        }

    } else {

        if (len > PROF_SCRIPT_TEXT_MAX) {
            len = PROF_SCRIPT_TEXT_MAX;
        }

        if (!prof_memory_readable(w, text, len)) {
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
 * Finds the line of the instruction before pc, as lj_debug_line() does.  While
 * a function begins or returns, its instruction is unknown, and the result is
 * the function's first line.
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

    if (!prof_memory_readable(w, info, size)) {
        return 0;
    }

    *line += (size == 1) ? prof_luajit_u8(info)
                         : (size == 2) ? prof_luajit_u16(info)
                                       : prof_luajit_u32(info);
    return 1;
}
