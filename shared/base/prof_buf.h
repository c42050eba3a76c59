
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A growable output buffer, into which all encoders write.  The buffer
 * remembers an allocation failure: later appends do nothing, and
 * prof_buf_failed() returns 1.  So encoders check for a failure once, at their
 * end.
 *
 * Context: any thread, one at a time; not in a signal.
 */


#ifndef _PROF_BUF_H_INCLUDED_
#define _PROF_BUF_H_INCLUDED_


#include "base/prof_base.h"

#include <string.h>


typedef struct {
    char      *data;    /* owned, malloc()ed; not null-terminated */
    size_t     len;
    size_t     size;
    unsigned   failed:1;
} prof_buf_t;


PROF_HIDDEN_BEGIN

void prof_buf_init(prof_buf_t *b);

/* frees the data; the buffer is then empty and can be used again */
void prof_buf_free(prof_buf_t *b);

void prof_buf_append(prof_buf_t *b, const void *data, size_t len);

/* appends a decimal number; much faster than prof_buf_printf() */
void prof_buf_number(prof_buf_t *b, uint64_t n);

void prof_buf_printf(prof_buf_t *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

PROF_HIDDEN_END


#define prof_buf_failed(b)  ((b)->failed)


/* inline, so that the compiler knows the lengths of constants */

static inline void
prof_buf_puts(prof_buf_t *b, const char *s)
{
    prof_buf_append(b, s, strlen(s));
}


#endif /* _PROF_BUF_H_INCLUDED_ */
