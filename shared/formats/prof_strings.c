
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_strings.h"
#include "base/prof_hash.h"
#include "formats/prof_text.h"

#include <stdlib.h>
#include <string.h>


#define PROF_STRINGS_MIN  256


static int prof_strings_grow(prof_strings_t *t);
static uint32_t prof_strings_bucket(const prof_strings_t *t, const char *s);
static char *prof_strings_text(const char *s);


void
prof_strings_init(prof_strings_t *t)
{
    memset(t, 0, sizeof(prof_strings_t));

    (void) prof_strings_add(t, "");
}


void
prof_strings_free(prof_strings_t *t)
{
    uint32_t  i;

    for (i = 0; i < t->n; i++) {
        free(t->data[i]);
    }

    free(t->data);
    free(t->buckets);
}


uint32_t
prof_strings_add(prof_strings_t *t, const char *s)
{
    char      *text;
    uint32_t   bucket;

    if (t->failed || (t->n == t->size && prof_strings_grow(t) != PROF_OK)) {
        t->failed = 1;
        return 0;
    }

    text = prof_strings_text(s);

    if (text == NULL) {
        t->failed = 1;
        return 0;
    }

    bucket = prof_strings_bucket(t, text);

    if (t->buckets[bucket]) {
        free(text);
        return t->buckets[bucket] - 1;
    }

    t->data[t->n++] = text;
    t->buckets[bucket] = t->n;

    return t->n - 1;
}


static int
prof_strings_grow(prof_strings_t *t)
{
    char      **data;
    uint32_t    i, size, *buckets;

    size = t->size ? 2 * t->size : PROF_STRINGS_MIN;

    if (size > UINT32_MAX / 4) {
        return PROF_ERROR;
    }

    data = realloc(t->data, size * sizeof(char *));
    if (data == NULL) {
        return PROF_ERROR;
    }

    t->data = data;

    buckets = calloc(2 * (size_t) size, sizeof(uint32_t));
    if (buckets == NULL) {
        return PROF_ERROR;
    }

    free(t->buckets);

    t->buckets = buckets;
    t->size = size;

    for (i = 0; i < t->n; i++) {
        buckets[prof_strings_bucket(t, data[i])] = i + 1;
    }

    return PROF_OK;
}


/* returns the place of the string, or the free place for it */

static uint32_t
prof_strings_bucket(const prof_strings_t *t, const char *s)
{
    uint32_t  mask, bucket;

    mask = 2 * t->size - 1;

    for (bucket = prof_hash_text(0, s) & mask;
         t->buckets[bucket];
         bucket = (bucket + 1) & mask)
    {
        if (strcmp(t->data[t->buckets[bucket] - 1], s) == 0) {
            break;
        }
    }

    return bucket;
}


static char *
prof_strings_text(const char *s)
{
    char    *text, *p;
    size_t   len;

    len = strlen(s);

    text = prof_text_utf8(s, &len);
    if (text == NULL) {
        return NULL;
    }

    for (p = text; *p; p++) {
        if ((unsigned char) *p < 0x20 || *p == 0x7f) {
            *p = '?';
        }
    }

    return text;
}
