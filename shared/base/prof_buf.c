
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define PROF_BUF_MIN  4096


static int prof_buf_reserve(prof_buf_t *b, size_t len);


void
prof_buf_init(prof_buf_t *b)
{
    memset(b, 0, sizeof(prof_buf_t));
}


void
prof_buf_free(prof_buf_t *b)
{
    free(b->data);
    prof_buf_init(b);
}


void
prof_buf_append(prof_buf_t *b, const void *data, size_t len)
{
    if (len == 0 || prof_buf_reserve(b, len) != PROF_OK) {
        return;
    }

    memcpy(b->data + b->len, data, len);
    b->len += len;
}


void
prof_buf_number(prof_buf_t *b, uint64_t n)
{
    char      *p;
    size_t     len;
    uint64_t   left;

    len = 1;

    for (left = n; left > 9; left /= 10) {
        len++;
    }

    if (prof_buf_reserve(b, len) != PROF_OK) {
        return;
    }

    b->len += len;
    p = b->data + b->len;

    do {
        *--p = (char) ('0' + n % 10);
        n /= 10;
    } while (n);
}


void
prof_buf_printf(prof_buf_t *b, const char *fmt, ...)
{
    int      n;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);

    if (n < 0) {
        b->failed = 1;
        return;
    }

    /* vsnprintf() writes a null byte, which is not part of the buffer */

    if (prof_buf_reserve(b, (size_t) n + 1) != PROF_OK) {
        return;
    }

    va_start(args, fmt);
    (void) vsnprintf(b->data + b->len, (size_t) n + 1, fmt, args);
    va_end(args);

    b->len += n;
}


static int
prof_buf_reserve(prof_buf_t *b, size_t len)
{
    char    *data;
    size_t   size;

    if (b->failed) {
        return PROF_ERROR;
    }

    if (len <= b->size - b->len) {
        return PROF_OK;
    }

    if (len > SIZE_MAX / 2 - b->len) {
        b->failed = 1;
        return PROF_ERROR;
    }

    size = b->size ? b->size : PROF_BUF_MIN;

    while (size - b->len < len) {
        size *= 2;
    }

    data = realloc(b->data, size);
    if (data == NULL) {
        b->failed = 1;
        return PROF_ERROR;
    }

    b->data = data;
    b->size = size;

    return PROF_OK;
}
