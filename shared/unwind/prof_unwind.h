
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The unwinder: tables built from the .eh_frame of every loaded object, and a
 * stack walk that reads only these tables and the stack itself.
 *
 * A prof_unwind_t is an immutable snapshot of the objects that were loaded
 * when it was made.  It refers to nothing in these objects, so they may be
 * unloaded.  It may be built in a parent process and used in its children.
 * Any number of threads and signal handlers may read it at once.  One thread
 * makes and holds snapshots.
 *
 * The object of an address depends on the time when the address was sampled.
 * A *marked* address contains its object's *load* above the bits of the
 * address.  A load is a number that is used again only after 32,000 loads
 * while snapshots remember.  Addresses of objects that existed at the
 * beginning have the load 0, so marking does not change them.
 */


#ifndef _PROF_UNWIND_H_INCLUDED_
#define _PROF_UNWIND_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"

#include <ucontext.h>


#define PROF_BUILD_ID_MAX  32


/* a load is above these bits: processes have addresses of at most 48 bits */

#define PROF_LOAD_SHIFT  48

/* the load of addresses without an object, or in an unknown object */

#define PROF_LOAD_NONE   0x7ffd

/* the load of keys of script frames (PROF_FRAME_SCRIPT), not of addresses */

#define PROF_LOAD_SCRIPT  0x7ffe

/* the bits of a load; all of them are set in addresses of the kernel */

#define PROF_LOAD_MASK   0x7fff


/* the address without its mark, if it is in an object */

#define prof_unwind_address(pc)                                               \
    ((uintptr_t) (pc) & (((uintptr_t) 1 << PROF_LOAD_SHIFT) - 1))


typedef struct prof_unwind_s  prof_unwind_t;
typedef struct prof_walk_s    prof_walk_t;      /* prof_walk.h */


/* the number of interpreters */
#define PROF_ENGINES  3

/*
 * The engine of an interpreter.  The walk calls frame() for frames in the code
 * of the interpreter.  If the interpreter compiles scripts, the walk also calls
 * frame() for frames in code without unwind information.  frame() adds the
 * script functions that this frame runs.  Then frame() either adds the frame
 * itself, and goes to its caller, or returns PROF_WALK_OTHER, and the walk
 * unwinds the frame as any other.  Returns a prof_walk_e.  Context of frame():
 * signal handler.
 */

typedef struct {
    uintptr_t    start;         /* of the interpreter's code */
    uintptr_t    end;
    int          compiles;
    int        (*frame)(prof_walk_t *w);
} prof_engine_code_t;


/* one loaded ELF object; all addresses are those of this process */

typedef struct {
    uintptr_t    base;          /* load bias: address - link-time address */
    uintptr_t    start;         /* lowest executable address */
    uintptr_t    end;           /* one past the highest */
    uint64_t     offset;        /* file offset of "start" */
    const char  *path;          /* "/usr/sbin/nginx", "[vdso]"; never NULL */
    uint8_t      build_id[PROF_BUILD_ID_MAX];
    uint32_t     build_id_len;  /* 0: the object has no build-id */
} prof_object_t;


/* statistics of a snapshot, for status pages, tools and tests */

typedef struct {
    uint32_t    objects;        /* loaded objects */
    uint32_t    unloaded;       /* remembered objects */
    uint32_t    rows;           /* after merging */
    uint32_t    unsupported;    /* rows whose rule cannot be expressed */
    size_t      bytes;
    uint64_t    build_ns;
} prof_unwind_info_t;


/*
 * A cache of recent (pc -> row) look-ups for one sampled thread.  The caller
 * owns it, and sets its snapshot to 0 before the first use.  A walk clears the
 * cache when it contains rows of another snapshot.
 */

#define PROF_WALK_CACHE  1024

typedef struct {
    uint64_t        snapshot;   /* the snapshot of the rows */

    struct {
        uintptr_t   pc;
        uint64_t    row;
    } bucket[PROF_WALK_CACHE];
} prof_walk_cache_t;


PROF_HIDDEN_BEGIN

/*
 * Builds a snapshot of all objects that are loaded now.  Returns NULL if
 * memory is short.  Context: not in a signal.
 */
prof_unwind_t *prof_unwind_create(void);

/*
 * Builds a snapshot of all objects that are loaded now, and reuses the parts
 * of the old snapshot that have not changed.  With "remember" the new snapshot
 * also contains the unloaded objects of the old snapshot, up to a limit.
 * Returns NULL if memory is short.  Context: not in a signal.
 */
prof_unwind_t *prof_unwind_update(const prof_unwind_t *old, int remember);

/* adds an engine to a new snapshot that no walk has used yet */
void prof_unwind_engine(prof_unwind_t *u, const prof_engine_code_t *code);

/*
 * Adds and removes a holder.  A new snapshot has one holder, and is freed when
 * its last holder releases it.  Context: not in a signal; the thread that makes
 * snapshots, and for prof_unwind_release() any thread.
 */
void prof_unwind_hold(const prof_unwind_t *u);
void prof_unwind_release(const prof_unwind_t *u);

/*
 * Returns whether an object was loaded or unloaded since the snapshot was
 * made, in well under a microsecond.  Context: not in a signal.
 */
int prof_unwind_stale(const prof_unwind_t *u);

void prof_unwind_info(const prof_unwind_t *u, prof_unwind_info_t *info);


/*
 * Returns the loaded object number i, by address, or NULL if there are fewer.
 * Objects are valid as long as the snapshot, and the same in all snapshots.
 */
const prof_object_t *prof_unwind_object_at(const prof_unwind_t *u, uint32_t i);

/* returns the object whose code contains the marked address, or NULL */
const prof_object_t *prof_unwind_object(const prof_unwind_t *u,
    uintptr_t pc);

/*
 * Finds the unwind entry (FDE) that covers the marked address: a function, or
 * a part of a function.  Returns its start, not marked, and sets *len.
 * Returns 0 if no entry covers the address.
 */
uintptr_t prof_unwind_function(const prof_unwind_t *u, uintptr_t pc,
    size_t *len);

/*
 * Works as prof_unwind_object() and prof_unwind_function(), in one look-up:
 * returns the object or NULL, and sets *start and *len of the unwind entry, or
 * 0.
 */
const prof_object_t *prof_unwind_find(const prof_unwind_t *u, uintptr_t pc,
    uintptr_t *start, size_t *len);

/*
 * Marks an address that was sampled while these n snapshots were current.  A
 * "call" other than 0 means that the address is a return address, which is
 * behind the code.  Returns PROF_OK, or PROF_LIMIT if the snapshots have
 * different objects there; the load is then PROF_LOAD_NONE.
 */
int prof_unwind_mark(const prof_unwind_t *const *u, uint32_t n, uintptr_t *pc,
    uint32_t call);

/* returns the address without its mark, for addresses without an object */
uintptr_t prof_unwind_unmark(uintptr_t pc);

/* returns whether marking by this snapshot changes no address */
int prof_unwind_plain(const prof_unwind_t *u);

/*
 * Walks the stack of an interrupted thread.
 *
 * uc    the context that the kernel passed to the signal handler
 * top   frames whose CFA is above this address are not added: the walk is
 *       complete when it meets the first of them.  The stack is read only
 *       within [sp, top); the ABI's red zone lowers sp.  0: the bounds of the
 *       stack are unknown, so the walk has one address and a bad stack
 * pcs   receives the addresses, innermost first.  The first one is the
 *       interrupted instruction, the others are return addresses.  Addresses
 *       that would read as names (a call of a null pointer) are omitted
 * max   number of elements of pcs
 * st    the counters truncated, no_unwind, bad_stack and scanned are advanced
 *
 * *end is set to 0 when the walk reached top or the outermost frame.
 * Otherwise it is the fixed frame name (PROF_FRAME_TRUNCATED, _NO_UNWIND,
 * _BAD_STACK) of the reason.  Returns the number of addresses.
 *
 * In code without unwind information, the stack is scanned for a return
 * address (prof_scan_sig.c).  The scan makes system calls, which change
 * nothing.
 *
 * Context: signal handler.  No call, no lock, no allocation, no TLS; errno is
 * not changed.
 */
uint32_t prof_walk(const prof_unwind_t *u, prof_walk_cache_t *cache,
    const ucontext_t *uc, uintptr_t top, uintptr_t *pcs, uint32_t max,
    prof_stats_t *st, uint32_t *end);

PROF_HIDDEN_END


#endif /* _PROF_UNWIND_H_INCLUDED_ */
