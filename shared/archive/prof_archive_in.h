
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reading the content of an archive, which is not believed.  The first error
 * is kept, and all numbers after it are 0, so that callers need to look at it
 * once for each item.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ARCHIVE_IN_H_INCLUDED_
#define _PROF_ARCHIVE_IN_H_INCLUDED_


#include "base/prof_base.h"


#define PROF_ARCHIVE_OTHER    "archive of a profile, of another version"
#define PROF_ARCHIVE_DAMAGED  "damaged archive of a profile"
#define PROF_ARCHIVE_MEMORY   "no memory for a profile"
#define PROF_ARCHIVE_LARGE    "profile that takes too much memory"


typedef struct {
    unsigned char        *content;      /* owned */
    const unsigned char  *pos;
    const unsigned char  *last;
    size_t                room;         /* what the profile may still take */
    const char           *err;          /* static; NULL: none so far */
} prof_archive_in_t;


PROF_HIDDEN_BEGIN

/* checks and decompresses; PROF_OK, or PROF_ERROR with err set */
int prof_archive_in_open(prof_archive_in_t *in, const unsigned char *data,
    size_t len);
void prof_archive_in_close(prof_archive_in_t *in);

uint64_t prof_archive_in_number(prof_archive_in_t *in);
uint64_t prof_archive_in_signed(prof_archive_in_t *in);

/* a number below the limit; anything else is an error */
uint32_t prof_archive_in_below(prof_archive_in_t *in, uint64_t limit);

/* the index of one of n items, or PROF_NONE */
uint32_t prof_archive_in_index(prof_archive_in_t *in, uint32_t n);

/* the index of an item before i, or PROF_NONE */
uint32_t prof_archive_in_back(prof_archive_in_t *in, uint32_t i);

/* malloc()ed, or NULL; "some" is never NULL but after an error */
char *prof_archive_in_text(prof_archive_in_t *in);
char *prof_archive_in_some(prof_archive_in_t *in);

/*
 * Room for as many items of that size as are told, zeroed; least is what an
 * item takes in the archive: an array that the content could not fill is not
 * made.
 */
void *prof_archive_in_array(prof_archive_in_t *in, uint32_t *n, size_t least,
    size_t size);

void prof_archive_in_fail(prof_archive_in_t *in, const char *err);

PROF_HIDDEN_END


#endif /* _PROF_ARCHIVE_IN_H_INCLUDED_ */
