
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A snapshot: the parts of several turn logs around a moment, with the names of
 * what they refer to.  A snapshot does not refer to its process.
 *
 * The bytes of a snapshot, which profiles and files contain, begin with a
 * version.  They are numbers (LEB128: 7 bits in a byte, the lowest first) and
 * texts (a length and bytes), in the order of prof_turns_snapshot_write().
 * They are not trusted: forged bytes give NULL, or a snapshot with valid
 * indices.
 *
 * Context: any thread; one at a time.
 */


#ifndef _PROF_TURNS_SNAPSHOT_H_INCLUDED_
#define _PROF_TURNS_SNAPSHOT_H_INCLUDED_


#include "base/prof_buf.h"
#include "turns/prof_turns.h"


/* handlers with a name; a server has some dozens */
#define PROF_TURNS_HANDLERS   512


/* why a snapshot was made */

typedef enum {
    PROF_TURNS_ASKED = 0,
    PROF_TURNS_PROFILED,     /* the time of a request that has a profile */
    PROF_TURNS_STALLED,      /* a run held its worker for long */
    PROF_TURNS_CRASHED,      /* a worker died */
    PROF_TURNS_REASONS
} prof_turns_reason_e;


typedef struct {
    char                   *server;      /* owned */
    char                   *name;        /* owned */
} prof_turns_location_t;


/* a log; the numbers of its locations and handlers are indices plus 1 */

typedef struct {
    uint32_t                worker;
    uint32_t                pid;
    uint32_t                alive;
    prof_turns_copy_t       copy;        /* owned */
} prof_turns_lane_t;


typedef struct {
    uint64_t                now;         /* ms since the Epoch */
    uint64_t                length;      /* ns before the end */
    uint32_t                reason;      /* prof_turns_reason_e */
    uint32_t                cut;         /* flag: the oldest runs are missing */
    uint32_t                worker;      /* of the request or run that the
                                            snapshot is about */
    uint32_t                request;     /* its number; 0: none */
    uint64_t                run;         /* begin of that run; 0: none */

    prof_turns_location_t  *locations;
    uint32_t                nlocations;
    char                  **handlers;    /* names, owned; NULL: unknown */
    uintptr_t              *pcs;         /* until the names are known */
    uint32_t                nhandlers;
    prof_turns_lane_t      *lanes;
    uint32_t                nlanes;
} prof_turns_snapshot_t;


PROF_HIDDEN_BEGIN

/* returns an empty snapshot, or NULL if memory is short */
prof_turns_snapshot_t *prof_turns_snapshot_create(void);
void prof_turns_snapshot_destroy(prof_turns_snapshot_t *s);

/* adds a location; copies the texts.  Returns PROF_OK or PROF_ERROR (memory) */
int prof_turns_snapshot_location(prof_turns_snapshot_t *s, const char *server,
    size_t server_len, const char *name, size_t name_len);

/*
 * Adds the log of a worker, and becomes the owner of the copy on any result.
 * Location N of the log is location base + N - 1 of the snapshot, if N is at
 * most n.  Returns the lane, or NULL if memory is short.
 */
prof_turns_lane_t *prof_turns_snapshot_add(prof_turns_snapshot_t *s,
    prof_turns_copy_t *copy, uint32_t base, uint32_t n);

/*
 * Leaves out the oldest runs, so that the bytes of the snapshot are about
 * this many.
 */
void prof_turns_snapshot_cut(prof_turns_snapshot_t *s, size_t bytes);

/* appends the bytes */
void prof_turns_snapshot_write(const prof_turns_snapshot_t *s, prof_buf_t *b);

/* returns the snapshot of the bytes, or NULL */
prof_turns_snapshot_t *prof_turns_snapshot_read(const void *data, size_t len);

PROF_HIDDEN_END


#endif /* _PROF_TURNS_SNAPSHOT_H_INCLUDED_ */
