
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * LuaJIT 2.1 with 64-bit references (LJ_GC64): its objects, and on x86-64 its
 * frames on the C stack.
 *
 * Offsets that have been the same in all such builds are constants.  The module
 * finds the other offsets when the library is loaded.  Then it verifies all
 * offsets with known code in a separate state.  The names of structures and
 * fields are those of LuaJIT's sources: lj_obj.h, lj_frame.h, lj_jit.h,
 * vm_x64.dasc.
 */


#ifndef _PROF_LUAJIT_H_INCLUDED_
#define _PROF_LUAJIT_H_INCLUDED_


#include "base/prof_base.h"
#include "scripts/prof_memory.h"
#include "scripts/prof_scripts.h"
#include "unwind/prof_walk.h"


/* lua_State */

#define LJ_L_STATUS      11
#define LJ_YIELD         1      /* its value while the coroutine waits */
#define LJ_L_GLREF       0x10
#define LJ_L_BASE        0x20
#define LJ_L_STACK       0x38
#define LJ_L_CFRAME      0x50
#define LJ_L_STACKSIZE   0x58

/* GCHeader */

#define LJ_GCT           9
#define LJ_GCT_STR       4
#define LJ_GCT_THREAD    6
#define LJ_GCT_PROTO     7
#define LJ_GCT_FUNC      8
#define LJ_GCT_TRACE     9
#define LJ_GCT_TAB       11

/* GCfunc; ffid is 0 for functions in Lua */

#define LJ_FUNC_FFID     10
#define LJ_FUNC_PC       0x20
#define LJ_FUNC_UVPTR    0x28

/* GCproto, relative to its bytecode */

#define LJ_PT_GCT        (-0x5f)
#define LJ_PT_SIZEBC     (-0x5c)
#define LJ_PT_K          (-0x48)
#define LJ_PT_SIZEKGC    (-0x38)
#define LJ_PT_SIZEUV     (-0x2c)
#define LJ_PT_CHUNKNAME  (-0x28)
#define LJ_PT_FIRSTLINE  (-0x20)
#define LJ_PT_NUMLINE    (-0x1c)
#define LJ_PT_LINEINFO   (-0x18)
#define LJ_PT_UVINFO     (-0x10)
#define LJ_PT_VARINFO    (-0x08)

/* GCstr */

#define LJ_STR_DATA      0x18

/* GCtab, and Node */

#define LJ_TAB_ARRAY     0x10
#define LJ_TAB_NODE      0x28
#define LJ_TAB_ASIZE     0x30
#define LJ_TAB_HMASK     0x34

#define LJ_NODE_KEY      0x08
#define LJ_NODE_SIZE     0x18

/* the frame of the VM on the C stack, relative to the stack pointer */

#define LJ_CFRAME_NRES    0x08
#define LJ_CFRAME_L       0x10
#define LJ_CFRAME_PC      0x18
#define LJ_CFRAME_PREV    0x20
#define LJ_CFRAME_RBP     0x40
#define LJ_CFRAME_RETURN  0x48
#define LJ_CFRAME_SIZE    0x50
#define LJ_CFRAME_MASK    (~(uintptr_t) 3)

/* types of frames on the Lua stack */

#define LJ_FRAME_MASK    7
#define LJ_FRAME_LUA     0      /* the value 4 is the same type, since only two
                                   bits count */
#define LJ_FRAME_C       1
#define LJ_FRAME_CONT    2
#define LJ_FRAME_VARG    3
#define LJ_FRAME_CP      5

#define LJ_CONT_FFI      1      /* the continuation of an FFI callback */

/* TValue: the tag is in the upper 17 bits */

#define LJ_TAG_SHIFT     47
#define LJ_TAG_LIGHTUD   0x1fffc
#define LJ_TAG_THREAD    0x1fff9
#define LJ_TAG_FUNC      0x1fff7
#define LJ_TAG_TAB       0x1fff4
#define LJ_TAG_INT       0x1fff2
#define LJ_ADDRESS       (((uintptr_t) 1 << LJ_TAG_SHIFT) - 1)

/* DWARF's number of the register that has the base */

#define LJ_DWARF_RDX     1

/*
 * The number of slots from the base of a caller to the base of its callee: two
 * more than operand A, a byte, of the call before pc.
 */

#define LJ_CALL_SLOTS(pc)  (2 + prof_luajit_u8((pc) - 3))

/* in bytes: LJ_STACK_MAX slots, and the slots for errors */

#define LJ_STACK_MAX     (8 * (65536 + 8192))


/* GCtrace */

#define LJ_T_NSNAP       10
#define LJ_T_IR          32
#define LJ_T_SNAP        48
#define LJ_T_SNAPMAP     56
#define LJ_T_STARTPT     64
#define LJ_T_SZMCODE     84
#define LJ_T_MCODE       88
#define LJ_T_TRACENO     104

/* sizeof(GCproto): its bytecode follows */

#define LJ_PROTO_SIZE    0x68

/* references below this value are constants */

#define LJ_REF_BIAS      0x8000


typedef struct {
    uintptr_t  start;           /* of the VM's code */
    uintptr_t  end;
    uint32_t   str_len;         /* GCstr.len */

    /* OpenResty's pointers of a coroutine, in lua_State; 0: not known */

    uint32_t   exdata;
    uint32_t   exdata2;

    /* relative to global_State */

    uint32_t   registry;
    uint32_t   vmstate;
    uint32_t   jit_base;
    uint32_t   trace;           /* jit_State.trace; 0: compiled code is not
                                   known */
    uint32_t   sizetrace;
} prof_luajit_t;


/* a walk on the stack of a coroutine */

typedef struct {
    prof_walk_t  *w;
    uintptr_t     state;        /* lua_State */
    uintptr_t     cframe;
    uintptr_t     low;          /* the Lua stack */
    uintptr_t     high;
    uintptr_t     floor;        /* functions below it belong to another entry;
                                   or 0 */
    uintptr_t     bc;           /* of the added function whose caller is
                                   not known yet, or 0 */
    uintptr_t     pc;
} prof_luajit_walk_t;


typedef struct {
    uintptr_t     base;
    uintptr_t     pc;           /* after the instruction that runs; 0: it is
                                   not known */
    uint32_t      again;        /* the function was added */
} prof_luajit_place_t;


/* a function that compiled code runs */

typedef struct {
    prof_walk_t  *w;
    uintptr_t     trace;        /* GCtrace */
    uint32_t      number;       /* of the snapshot */
    uintptr_t     map;          /* its entries */
    uint32_t      n;
    uint32_t      slot;         /* of the function's base; 2: it has a frame */
    uintptr_t     pc;           /* after the instruction that runs; 0: it is
                                   not known */
} prof_luajit_snap_t;


static inline uint32_t prof_luajit_u8(uintptr_t addr)
    __attribute__((no_sanitize_address));
static inline uint32_t prof_luajit_u16(uintptr_t addr)
    __attribute__((no_sanitize_address));

/* operands of instructions are not aligned */

static inline uint32_t prof_luajit_u32(uintptr_t addr)
    __attribute__((no_sanitize_address, no_sanitize("alignment")));


PROF_HIDDEN_BEGIN

/* written when the library is found, before any walk uses it */
extern prof_luajit_t  prof_luajit;

/* prof_engine_code_t.frame.  Context: signal handler */
int prof_luajit_frame(prof_walk_t *w);

/*
 * The stack of lw->state.  Context: signal handler.
 */

/*
 * Sets the borders of the stack.  floor: bytes from its beginning to the
 * functions of this entry; 0: to the border to C.  Returns 0 if there is no
 * stack.
 */
int prof_luajit_stack(prof_luajit_walk_t *lw, uintptr_t floor);

/* returns whether the slots of the frame with this base can be read */
int prof_luajit_slot(prof_luajit_walk_t *lw, uintptr_t base);

/* returns the function at a base whose slots can be read, or 0 */
uintptr_t prof_luajit_function(uintptr_t base);

/*
 * Returns whether the instruction before pc calls the function whose base is
 * "base".  If so, *p is the place of the call.
 */
int prof_luajit_called(prof_luajit_walk_t *lw, uintptr_t base, uintptr_t pc,
    prof_luajit_place_t *p);

/*
 * Adds the functions from *p to the border to C, and sets *p to the next
 * function.  A base of 0 means that there is no next function.
 */
prof_walk_e prof_luajit_functions(prof_luajit_walk_t *lw,
    prof_luajit_place_t *p);

/* adds a function; its name, and so its key, depends on the next caller */
void prof_luajit_add(prof_luajit_walk_t *lw, uintptr_t bc, uintptr_t pc);

/*
 * Set the key of the added function.  The first one takes the caller at *p, the
 * second one its verified bytecode; 0: the caller is not known.
 */
void prof_luajit_caller(prof_luajit_walk_t *lw, const prof_luajit_place_t *p);
void prof_luajit_named(prof_luajit_walk_t *lw, uintptr_t caller, uintptr_t pc);

/*
 * Verify an address.  If they return 1, the whole structure can be read.
 * Context: signal handler.
 */

/* returns whether the address is that of a function in any language */
int prof_luajit_is_function(prof_walk_t *w, uintptr_t fn);

/* returns whether the address is that of a function in Lua */
int prof_luajit_is_lua(prof_walk_t *w, uintptr_t fn);

/* returns whether this function in Lua contains the instruction before pc */
int prof_luajit_runs(prof_walk_t *w, uintptr_t fn, uintptr_t pc);

/* returns whether the address is that of the bytecode of a function */
int prof_luajit_is_bytecode(prof_walk_t *w, uintptr_t bc);

/*
 * Returns the key of a function in Lua, whose bytecode at bc is verified.  The
 * function runs the instruction before pc; 0: the instruction is unknown.  The
 * function's name comes from the instruction before caller_pc, which calls it,
 * in the function with the verified bytecode at "caller"; 0: the caller is
 * unknown, or not in Lua.  Context: signal handler.
 */
uintptr_t prof_luajit_key(prof_walk_t *w, uintptr_t bc, uintptr_t pc,
    uintptr_t caller, uintptr_t caller_pc);

/*
 * Returns the key of a function in C, or 0 if it has no name.  Such a function
 * only has the name by which its caller calls it.  Context: signal handler.
 */
uintptr_t prof_luajit_key_c(prof_walk_t *w, uintptr_t caller,
    uintptr_t caller_pc);

/*
 * Finds the snapshot of the compiled code at pc, which tells the function that
 * runs there.  g: global_State.  Returns 0 if there is no snapshot.  Context:
 * signal handler.
 */
int prof_luajit_snap(prof_walk_t *w, uintptr_t g, uintptr_t pc,
    prof_luajit_snap_t *s);

/*
 * Works as prof_luajit_snap() for the interrupted instruction, which may also
 * be in code that goes to another trace or leaves compiled code.  Context:
 * signal handler.
 */
int prof_luajit_snap_here(prof_walk_t *w, uintptr_t g, prof_luajit_snap_t *s);

/* goes to the next snapshot of the same trace.  Context: signal handler */
int prof_luajit_snap_next(prof_luajit_snap_t *s);

/*
 * Returns the bytecode of the function that the snapshot is in, or 0 if it is
 * not known.  Context: signal handler.
 */
uintptr_t prof_luajit_snap_function(const prof_luajit_snap_t *s);

/*
 * Goes to the caller of an inlined function.  *again: the caller is the same
 * function without its variable arguments.  Returns 0 if the caller is
 * unknown.  Context: signal handler.
 */
int prof_luajit_snap_caller(prof_luajit_snap_t *s, uint32_t *again);

/* returns whether the code of this GCtrace contains the address */
int prof_luajit_compiled(uintptr_t trace, uintptr_t pc);

PROF_HIDDEN_END


static inline uint32_t
prof_luajit_u8(uintptr_t addr)
{
    return *(const volatile uint8_t *) addr;
}


static inline uint32_t
prof_luajit_u16(uintptr_t addr)
{
    return *(const volatile uint16_t *) addr;
}


static inline uint32_t
prof_luajit_u32(uintptr_t addr)
{
    return *(const volatile uint32_t *) addr;
}


/* returns whether a value may be the address of an object */

static inline int
prof_luajit_pointer(uintptr_t value)
{
    return (value & 7) == 0 && value >= 4096 && value <= LJ_ADDRESS;
}


/* returns whether a value may be the address of an instruction */

static inline int
prof_luajit_pc(uintptr_t value)
{
    return (value & 3) == 0 && value >= 4096 && value <= LJ_ADDRESS;
}


/* returns whether the instruction before pc is in this verified bytecode */

static inline int
prof_luajit_inside(uintptr_t bc, uintptr_t pc)
{
    return pc > bc && (pc & 3) == 0
           && pc - bc <= 4 * (uintptr_t) prof_luajit_u32(bc + LJ_PT_SIZEBC);
}


#endif /* _PROF_LUAJIT_H_INCLUDED_ */
