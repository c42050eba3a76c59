
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A cache of names.  Code of one build has the same names in each profile, so
 * files are read for the first profile only.
 *
 * An object is identified by its build-id, or by a file that is proven to be
 * the loaded file.  Addresses are link-time addresses within an object.
 *
 * The memory is bounded: names live in two generations of PROF_NAMES_MAX bytes
 * together.  A name that is used moves to the younger generation.  When the
 * younger generation is full, the older one is freed, and the younger one
 * becomes the older one.
 *
 * Context: any thread, one at a time (prof_symbolize.c has the lock); not in a
 * signal.
 */


#ifndef _PROF_NAMES_H_INCLUDED_
#define _PROF_NAMES_H_INCLUDED_


#include "base/prof_base.h"
#include "names/prof_unit.h"
#include "profile/prof_profile.h"


#define PROF_NAMES_MAX    (8 * 1024 * 1024)

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


typedef struct {
    uint32_t        index;
    char           *identity;
    uint64_t        retry;      /* an incomplete name is valid until this
                                   time */
    uint64_t        pause;      /* debugging information is not read before
                                   this time */
    uint64_t        stamp;      /* the state of the debug file, 0: there was
                                   no file */
    uint64_t        units_pause;    /* units are not asked for before this
                                       time */
    prof_unit_table_t  *units;  /* NULL: unknown */
} prof_names_object_t;


PROF_HIDDEN_BEGIN

/*
 * Returns the object with this identity, and creates it if needed.  Returns
 * NULL if memory is short.
 */
prof_names_object_t *prof_names_object(const char *identity);

/*
 * Returns the name of an address, or NULL if the cache does not have the name.
 * The result is valid until the next call of a function of this cache.
 */
const prof_name_t *prof_names_find(const prof_names_object_t *o, uint64_t pc,
    uint64_t function);

/* copies all data; omits a name if memory is short */
void prof_names_put(const prof_names_object_t *o, const prof_name_t *name);

/*
 * Copies a name to a frame.  The frame keeps the data that the name lacks.
 * Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_profile_name(prof_profile_t *p, prof_frame_t *f,
    const prof_name_t *name);

/* frees all names and objects */
void prof_names_clear(void);

/* returns the number of bytes in use */
size_t prof_names_size(void);

PROF_HIDDEN_END


#endif /* _PROF_NAMES_H_INCLUDED_ */
