
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The unwinder: tables built from the .eh_frame of every loaded object, and a
 * stack walk that reads only these tables and the stack itself.
 *
 * A prof_unwind_t is an immutable snapshot of the objects loaded when it was
 * made, and refers to nothing of these objects: they may be unloaded.  It may
 * be built in a parent process and used in its children, and be read by any
 * number of threads and signal handlers at once.  Snapshots are made, held and
 * released by one thread.
 *
 * Which object an address is in depends on the time at which it was seen.  A
 * *marked* address tells that by itself: above the bits of addresses it has the
 * object's *load*, a number that is used again only after 32,000 loads while
 * snapshots remember.  Addresses of what was loaded at the beginning have the
 * load 0, and look like any other.
 */


#ifndef _PROF_UNWIND_H_INCLUDED_
#define _PROF_UNWIND_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_stats.h"

#include <ucontext.h>


#define PROF_BUILD_ID_MAX  32


/* a load is above these bits: processes have addresses of at most 48 bits */

#define PROF_LOAD_SHIFT  48

/* the load of what was in no object, or in one that nobody knows */

#define PROF_LOAD_NONE   0x7ffe

/* the bits of a load; all of them are set in addresses of the kernel */

#define PROF_LOAD_MASK   0x7fff


/* the address without its mark, if it is in an object */

#define prof_unwind_address(pc)                                               \
    ((uintptr_t) (pc) & (((uintptr_t) 1 << PROF_LOAD_SHIFT) - 1))


typedef struct prof_unwind_s  prof_unwind_t;


/* one loaded ELF object; all addresses are those of this process */

typedef struct {
    uintptr_t    base;          /* load bias: address - link-time address */
    uintptr_t    start;         /* lowest executable address */
    uintptr_t    end;           /* one past the highest */
    uint64_t     offset;        /* file offset of "start" */
    const char  *path;          /* "/usr/sbin/nginx", "[vdso]"; never NULL */
    uint8_t      build_id[PROF_BUILD_ID_MAX];
    uint32_t     build_id_len;  /* 0: the object has none */
} prof_object_t;


/* what a snapshot is made of, for status pages, tools and tests */

typedef struct {
    uint32_t    objects;        /* loaded */
    uint32_t    unloaded;       /* that are remembered */
    uint32_t    rows;           /* after merging */
    uint32_t    unsupported;    /* rows whose rule cannot be expressed */
    size_t      bytes;
    uint64_t    build_ns;
} prof_unwind_info_t;


/*
 * Caller-owned cache of recent (pc -> row) look-ups, one for each sampled
 * thread; its snapshot is 0 before its first use.  A walk empties it when it
 * has rows of another snapshot.
 */

#define PROF_WALK_CACHE  1024

typedef struct {
    uint64_t        snapshot;   /* the one that the rows are of */

    struct {
        uintptr_t   pc;
        uint64_t    row;
    } slot[PROF_WALK_CACHE];
} prof_walk_cache_t;


PROF_HIDDEN_BEGIN

/*
 * Builds a snapshot of all objects that are loaded now.
 * Returns NULL when memory is short.
 * Context: not in a signal.
 */
prof_unwind_t *prof_unwind_create(void);

/*
 * Builds a snapshot of all objects that are loaded now, with what the old one
 * knows of those that have not changed.  With "remember" it also knows what the
 * old one has and is unloaded since, up to a limit.
 * Returns NULL when memory is short.
 * Context: not in a signal.
 */
prof_unwind_t *prof_unwind_update(const prof_unwind_t *old, int remember);

/*
 * A snapshot is made with one holder, and goes with its last one.
 * Context: not in a signal; one thread.
 */
void prof_unwind_hold(const prof_unwind_t *u);
void prof_unwind_release(const prof_unwind_t *u);

/*
 * Tells in well under a microsecond whether an object was loaded or unloaded
 * since the snapshot was made.
 * Context: not in a signal.
 */
int prof_unwind_stale(const prof_unwind_t *u);

void prof_unwind_info(const prof_unwind_t *u, prof_unwind_info_t *info);

/*
 * The loaded object number i, by address, or NULL: there are not as many.
 * Objects are valid as long as the snapshot, and the same in all snapshots.
 */
const prof_object_t *prof_unwind_object_at(const prof_unwind_t *u, uint32_t i);

/* the object whose executable range holds the marked address, or NULL */
const prof_object_t *prof_unwind_object(const prof_unwind_t *u,
    uintptr_t pc);

/*
 * Start and length of the unwind entry (FDE) that covers the marked address,
 * that is of the function, or part of a function, that the code belongs to.
 * Returns the start, not marked, or 0 when no entry covers the address.
 */
uintptr_t prof_unwind_function(const prof_unwind_t *u, uintptr_t pc,
    size_t *len);

/*
 * Marks an address that was seen while these n snapshots were current.
 * call  not 0: the address is behind the code that is meant, as return
 *       addresses are
 * Returns PROF_OK, or PROF_LIMIT when the snapshots have different objects
 * there: the load is PROF_LOAD_NONE then.
 */
int prof_unwind_mark(const prof_unwind_t *const *u, uint32_t n, uintptr_t *pc,
    uint32_t call);

/* a marked address of no object, as it was before */
uintptr_t prof_unwind_unmark(uintptr_t pc);

/* whether marking by this snapshot changes no address */
int prof_unwind_plain(const prof_unwind_t *u);

/*
 * Walks the stack of an interrupted thread.
 *
 * uc    the context that the kernel gave to the signal handler
 * top   frames whose CFA is above this address are not recorded: the walk is
 *       complete when it meets the first of them.  The stack is read only
 *       within [sp, top), sp being lowered by the ABI's red zone.  0: nothing
 *       is known of the stack, which is bad then after its first address.
 * pcs   receives the addresses, innermost first.  The first is the
 *       interrupted instruction, the others are return addresses.  One that
 *       would read as a name (a call of a null pointer) is left out.
 * max   room in pcs
 * st    counters truncated, no_unwind, bad_stack and scanned are advanced
 *
 * *end is set to 0 when the walk reached top or the outermost frame, else to
 * the fixed frame name (PROF_FRAME_TRUNCATED, _NO_UNWIND, _BAD_STACK) that
 * tells why it ended.
 * Returns the number of addresses written.
 *
 * At code without unwind information the stack is scanned for a return address
 * (prof_scan_sig.c); that makes system calls, which change nothing.
 *
 * Context: signal handler.  No call, no lock, no allocation, no TLS; errno is
 * not touched.
 */
uint32_t prof_walk(const prof_unwind_t *u, prof_walk_cache_t *cache,
    const ucontext_t *uc, uintptr_t top, uintptr_t *pcs, uint32_t max,
    prof_stats_t *st, uint32_t *end);

PROF_HIDDEN_END


#endif /* _PROF_UNWIND_H_INCLUDED_ */
