
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A cache of names.  Code of one build has the same names in each profile, so
 * files are read for the first profile only.  Processes that share the memory
 * of the cache share the names.
 *
 * An object is identified by its build-id, or by a file that is proven to be
 * the loaded file.  Addresses are link-time addresses within an object.
 *
 * The memory is a ring of records and an index.  A new record overwrites the
 * oldest ones.  A record that is used in the older half of the ring is written
 * again, so names that are used stay.
 *
 * The cache has no lock.  A process may end in the middle of a write, and two
 * processes may write to the same place if one of them is slow.  So each record
 * has a checksum, of its place as well.  A reader copies the record and then
 * checks the copy.  A record that is not whole does not exist.  A reader trusts
 * no number in the memory: it checks each against the bounds of the ring.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_NAMES_H_INCLUDED_
#define _PROF_NAMES_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "names/prof_unit.h"
#include "profile/prof_profile.h"


/* bytes of all records */

#define PROF_NAMES_MAX     (8 * 1024 * 1024)

/* bytes of one record; what is larger is not cached */

#define PROF_NAMES_RECORD  (512 * 1024)

/* the places of the index: as many as there are records of usual names */

#define PROF_NAMES_WAYS     8
#define PROF_NAMES_BUCKETS  8192

/* changes with the meaning of the memory */

#define PROF_NAMES_LAYOUT   0x70726f666e6d0001ULL

/* incomplete names are looked up again after this time, ns */
#define PROF_NAMES_RETRY  60000000000


/*
 * The number of a system call, as the code of one function shows it.  This is
 * the number plus 1, or 0 if the number is unknown.  If the function gets the
 * number as an argument, this is the place of the argument.
 */

#define PROF_CALL_STACK   (UINT32_MAX - 1)  /* the first one on the stack */
#define PROF_CALL_SECOND  UINT32_MAX        /* the second one in a register */


typedef struct {
    uint32_t        number;     /* of the system call interrupted here */

    /* arguments of the function call that returns here */

    uint32_t        stack;
    uint32_t        second;
    uint64_t        target;     /* the function, an offset from the caller's
                                   start */
} prof_call_t;


/* the facts about an address; each function documents who owns the strings */

typedef struct {
    uint64_t        pc;         /* inside of the instruction */
    uint64_t        function;   /* start of the unwind entry, 0: unknown */
    prof_call_t     call;
    uint32_t        complete;   /* complete by debugging information */
    uint32_t        source;     /* prof_source_e */
    uint32_t        line;
    uint32_t        start_line;
    uint32_t        ninlines;
    char           *name;       /* NULL: the name is unknown */
    char           *file;       /* NULL: unknown */
    prof_inline_t  *inlines;
} prof_name_t;


/* what the helper has for an object beside the object's own symbol tables */

typedef enum {
    PROF_NAMES_UNKNOWN = 0,
    PROF_NAMES_NOTHING,         /* no debug file, no debugging information */
    PROF_NAMES_SOMETHING
} prof_names_more_e;


/* an object, and what the cache knows about it */

struct prof_names_object_s {
    uint64_t        key[2];     /* of its identity */
    uint64_t        retry;      /* an incomplete name is valid until this
                                   time */
    uint64_t        pause;      /* debugging information is not read before
                                   this time */
    uint64_t        stamp;      /* the state of the debug file, 0: there was
                                   no file */
    uint64_t        units_pause;    /* units are not asked for before this
                                       time */
    uint64_t        more;       /* prof_names_more_e, at the last question */
};


/* a name of the cache: the memory of its texts */

typedef struct {
    prof_name_t     name;
    prof_inline_t   inlines[PROF_MAX_INLINES];
    prof_buf_t      data;       /* the caller initializes and frees it */
} prof_names_found_t;


PROF_HIDDEN_BEGIN

/*
 * Makes memory that this process and processes that it forks from now on
 * share, in place of the memory that it had.  Memory with the same key stays.
 * Returns PROF_OK, or PROF_ERROR if memory is short; each process then uses
 * memory of its own.  Without this call a process makes memory of its own when
 * it needs the cache.  Context: no other thread uses names.
 */
int prof_names_share(uint64_t key);

/* gives back the memory of this process; context: as prof_names_share() */
void prof_names_clear(void);

/*
 * Finds the object with this identity.  Names also depend on the directory of
 * debug files.
 */
void prof_names_object(prof_names_object_t *o, const char *identity,
    const char *debug_root);

/* stores the members behind the key */
void prof_names_object_put(const prof_names_object_t *o);

/*
 * Returns found->name, the name of an address, or NULL if the cache does not
 * have the name.  The texts are valid until the next call with "found".
 */
const prof_name_t *prof_names_find(const prof_names_object_t *o, uint64_t pc,
    uint64_t function, prof_names_found_t *found);

/* copies all data; omits a name without a place */
void prof_names_put(const prof_names_object_t *o, const prof_name_t *name);

/*
 * The helper's answer to a question about units, which is identified by a hash
 * of the question.  prof_names_units() returns PROF_OK with the answer, or
 * PROF_ERROR if the cache does not have it.
 */
int prof_names_units(const prof_names_object_t *o, uint64_t question,
    prof_buf_t *answer);
void prof_names_units_put(const prof_names_object_t *o, uint64_t question,
    const prof_buf_t *answer);

/*
 * Returns 1 once for all processes that share the memory: the caller then looks
 * up the names that all profiles need.
 */
int prof_names_first(void);

/*
 * Copies a name to a frame.  The frame keeps the data that the name lacks.
 * Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_profile_name(prof_profile_t *p, prof_frame_t *f,
    const prof_name_t *name);

PROF_HIDDEN_END


#endif /* _PROF_NAMES_H_INCLUDED_ */
