
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads profiles of pprof.
 */


#ifndef _PROF_PPROF_READER_H_INCLUDED_
#define _PROF_PPROF_READER_H_INCLUDED_


#include "base/prof_buf.h"
#include "formats/prof_encode.h"
#include "proto/prof_proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>


#define PPROF_UNUSED  __attribute__((unused))


PPROF_UNUSED static Prof__Profile *pprof_decode(prof_profile_t *p);
PPROF_UNUSED static const char *pprof_str(const Prof__Profile *pb, int64_t i);
PPROF_UNUSED static const char *pprof_type(const Prof__Profile *pb,
    const Prof__ValueType *t);
PPROF_UNUSED static const Prof__Location *pprof_location(
    const Prof__Profile *pb, uint64_t id);
PPROF_UNUSED static const char *pprof_frame(const Prof__Profile *pb,
    uint64_t id);
PPROF_UNUSED static const char *pprof_stack(const Prof__Profile *pb, size_t i);
PPROF_UNUSED static int64_t pprof_sum(const Prof__Profile *pb, size_t value);
PPROF_UNUSED static int pprof_has_comment(const Prof__Profile *pb,
    const char *text);
PPROF_UNUSED static int pprof_is_valid(const Prof__Profile *pb);


static Prof__Profile *
pprof_decode(prof_profile_t *p)
{
    int             rc;
    z_stream        z;
    prof_buf_t      b, out;
    Prof__Profile  *pb;
    char            chunk[4096];

    prof_buf_init(&b);
    prof_buf_init(&out);
    memset(&z, 0, sizeof(z_stream));

    if (prof_encode_pprof.encode(p, &b) != PROF_OK
        || inflateInit2(&z, 15 + 16) != Z_OK)
    {
        abort();
    }

    z.next_in = (unsigned char *) b.data;
    z.avail_in = b.len;

    do {
        z.next_out = (unsigned char *) chunk;
        z.avail_out = sizeof(chunk);

        rc = inflate(&z, Z_NO_FLUSH);

        prof_buf_append(&out, chunk, sizeof(chunk) - z.avail_out);

    } while (rc == Z_OK);

    inflateEnd(&z);

    pb = prof__profile__unpack(NULL, out.len, (uint8_t *) out.data);

    if (rc != Z_STREAM_END || z.avail_in || pb == NULL) {
        abort();
    }

    prof_buf_free(&b);
    prof_buf_free(&out);

    return pb;
}


static const char *
pprof_str(const Prof__Profile *pb, int64_t i)
{
    return i >= 0 && i < (int64_t) pb->n_string_table ? pb->string_table[i]
                                                      : "?";
}


static const char *
pprof_type(const Prof__Profile *pb, const Prof__ValueType *t)
{
    static char  text[64];

    (void) snprintf(text, sizeof(text), "%s/%s", pprof_str(pb, t->type),
                    pprof_str(pb, t->unit));

    return text;
}


static const Prof__Location *
pprof_location(const Prof__Profile *pb, uint64_t id)
{
    size_t  i;

    for (i = 0; i < pb->n_location; i++) {
        if (pb->location[i]->id == id) {
            return pb->location[i];
        }
    }

    abort();
}


static const char *
pprof_frame(const Prof__Profile *pb, uint64_t id)
{
    const Prof__Line  *line;

    line = pprof_location(pb, id)->line[0];

    return pprof_str(pb, pb->function[line->function_id - 1]->name);
}


static const char *
pprof_stack(const Prof__Profile *pb, size_t i)
{
    size_t               n;
    static char          text[1024];
    const Prof__Sample  *s;

    s = pb->sample[i];
    text[0] = '\0';

    for (n = 0; n < s->n_location_id; n++) {
        strncat(text, n ? "/" : "", sizeof(text) - strlen(text) - 1);
        strncat(text, pprof_frame(pb, s->location_id[n]),
                sizeof(text) - strlen(text) - 1);
    }

    return text;
}


static int64_t
pprof_sum(const Prof__Profile *pb, size_t value)
{
    size_t   i;
    int64_t  n;

    n = 0;

    for (i = 0; i < pb->n_sample; i++) {
        n += pb->sample[i]->value[value];
    }

    return n;
}


static int
pprof_has_comment(const Prof__Profile *pb, const char *text)
{
    size_t  i;

    for (i = 0; i < pb->n_comment; i++) {
        if (strstr(pprof_str(pb, pb->comment[i]), text)) {
            return 1;
        }
    }

    return 0;
}


/* readers check these fields; without them they look up names elsewhere */

static int
pprof_is_valid(const Prof__Profile *pb)
{
    size_t                 i, n;
    const Prof__Sample    *s;
    const Prof__Location  *l;

    for (i = 0; i < pb->n_mapping; i++) {
        if (pb->mapping[i]->id != i + 1 || !pb->mapping[i]->has_functions) {
            return 0;
        }
    }

    for (i = 0; i < pb->n_function; i++) {
        if (pb->function[i]->id != i + 1
            || pb->function[i]->name >= (int64_t) pb->n_string_table
            || pb->function[i]->filename >= (int64_t) pb->n_string_table)
        {
            return 0;
        }
    }

    for (i = 0; i < pb->n_location; i++) {
        l = pb->location[i];

        if (l->id != i + 1 || l->mapping_id > pb->n_mapping || l->n_line == 0
            || l->line[0]->function_id == 0
            || l->line[0]->function_id > pb->n_function)
        {
            return 0;
        }
    }

    for (i = 0; i < pb->n_sample; i++) {
        s = pb->sample[i];

        if (s->n_value != pb->n_sample_type || s->n_location_id == 0) {
            return 0;
        }

        for (n = 0; n < s->n_location_id; n++) {
            if (s->location_id[n] == 0 || s->location_id[n] > pb->n_location) {
                return 0;
            }
        }
    }

    for (i = 0; i < pb->n_comment; i++) {
        if (pb->comment[i] >= (int64_t) pb->n_string_table) {
            return 0;
        }
    }

    return 1;
}


#endif /* _PROF_PPROF_READER_H_INCLUDED_ */
