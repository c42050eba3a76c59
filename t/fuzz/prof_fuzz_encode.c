
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes all formats.  The first byte chooses the format, the rest is a
 * profile with hostile strings.  Parsers of the format read the output.
 */


#include "prof_fixture.h"
#include "formats/prof_encode.h"
#include "formats/prof_text.h"
#include "proto/prof_proto.h"
#include "profile/prof_measure.h"

#include <jansson.h>
#include <zlib.h>


#define FUZZ_TEXT  64


typedef struct {
    const uint8_t  *data;
    size_t          len;
} fuzz_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static prof_profile_t *fuzz_profile(fuzz_t *z);
static void fuzz_frames(fuzz_t *z, prof_profile_t *p);
static void fuzz_entries(fuzz_t *z, prof_profile_t *p);
static uint32_t fuzz_labels(fuzz_t *z, prof_profile_t *p);
static void fuzz_allocs(fuzz_t *z, prof_profile_t *p);
static uint64_t fuzz_number(fuzz_t *z, size_t size);
static const char *fuzz_text(fuzz_t *z);
static void fuzz_check(const prof_encoder_t *e, const prof_profile_t *p,
    const prof_buf_t *b);
static void fuzz_check_json(const prof_buf_t *b);
static void fuzz_check_folded(const prof_profile_t *p, const prof_buf_t *b);
static void fuzz_check_pprof(const prof_buf_t *b);
static void fuzz_check_text(const prof_buf_t *b);
static void fuzz_assert(int ok);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_t                 z;
    size_t                 n;
    prof_buf_t             b;
    prof_profile_t        *p;
    const prof_encoder_t  *e;

    for (n = 0; prof_encoders[n]; n++) { /* void */ }

    z.data = data;
    z.len = size;

    e = prof_encoders[fuzz_number(&z, 1) % n];
    p = fuzz_profile(&z);

    prof_buf_init(&b);

    fuzz_assert(e->encode(p, &b) == PROF_OK);
    fuzz_check(e, p, &b);

    prof_buf_free(&b);
    prof_profile_destroy(p);

    return 0;
}


static prof_profile_t *
fuzz_profile(fuzz_t *z)
{
    char            *name;
    uint64_t         i, n;
    const char      *value;
    prof_profile_t  *p;

    p = fixture_create(fuzz_text(z));

    p->mode = fuzz_number(z, 1) % 3;
    p->frequency = fuzz_number(z, 2);
    p->frequency_end = fuzz_number(z, 2);
    p->start_realtime = fuzz_number(z, 8);
    p->stats.samples = fuzz_number(z, 4);
    p->stats.truncated = fuzz_number(z, 1);
    p->stats.lost_ring = fuzz_number(z, 4);

    n = fuzz_number(z, 1) % 4;

    for (i = 0; i < n; i++) {
        fixture_object(p, fuzz_text(z), fuzz_text(z));
        p->objects[i].base = fuzz_number(z, 8);
    }

    n = fuzz_number(z, 1) % 8;

    for (i = 0; i < n; i++) {
        name = fixture_copy(fuzz_text(z));
        value = fuzz_text(z);

        if (fuzz_number(z, 1) % 2) {
            prof_profile_label(p, name, value, strlen(value));

        } else {
            prof_profile_fact(p, name, value, strlen(value));
        }

        free(name);
    }

    fuzz_frames(z, p);
    fuzz_entries(z, p);
    fuzz_allocs(z, p);

    return p;
}


static void
fuzz_frames(fuzz_t *z, prof_profile_t *p)
{
    uint32_t       object;
    uint64_t       i, n, pc;
    prof_frame_t  *f;

    n = 1 + fuzz_number(z, 1) % 32;

    for (i = 0; i < n; i++) {
        object = fuzz_number(z, 1) % (p->nobjects + 1);
        pc = fuzz_number(z, 8);

        (void) fixture_frame(p, object < p->nobjects ? object : PROF_NONE, pc,
                             fuzz_text(z));

        f = &p->frames[i];
        f->type = fuzz_number(z, 1) % PROF_TYPE_MAX;
        f->source = fuzz_number(z, 1) % PROF_SOURCE_MAX;
        f->function = fuzz_number(z, 2);

        if (fuzz_number(z, 1) % 2) {
            f->file = fixture_copy(fuzz_text(z));
            f->line = fuzz_number(z, 4);
            f->start_line = fuzz_number(z, 4);
        }

        if (fuzz_number(z, 1) % 4 == 3) {
            f->inlines = p->ninlines;
            f->ninlines = 1;

            p->inlines = fixture_grow(p->inlines, p->ninlines,
                                      sizeof(prof_inline_t));
            memset(&p->inlines[p->ninlines], 0, sizeof(prof_inline_t));
            p->inlines[p->ninlines++].name = fixture_copy(fuzz_text(z));
        }
    }
}


static void
fuzz_entries(fuzz_t *z, prof_profile_t *p)
{
    uint32_t  frame, type, node, parent;
    uint64_t  cpu, i, n, wall;

    n = 1 + fuzz_number(z, 1) % 64;

    for (i = 0; i < n; i++) {
        parent = fuzz_number(z, 1) % (p->nnodes + 1);
        frame = fuzz_number(z, 1) % p->nframes;

        fixture_node(p, parent < p->nnodes ? parent : PROF_NONE, frame);
    }

    n = fuzz_number(z, 1) % 64;

    for (i = 0; i < n; i++) {
        node = fuzz_number(z, 1) % p->nnodes;
        type = fuzz_number(z, 1) % 3;
        wall = fuzz_number(z, 6);
        cpu = type == PROF_ENTRY_GAP ? 0 : fuzz_number(z, 6);

        fixture_entry(p, node, type, wall, cpu);
        time_of(p, i)->labels = fuzz_labels(z, p);
    }
}


static uint32_t
fuzz_labels(fuzz_t *z, prof_profile_t *p)
{
    char      *name;
    uint32_t   set;

    switch (fuzz_number(z, 1) % 8) {

    case 7:
        name = fixture_copy(fuzz_text(z));
        set = p->nlabels ? fuzz_number(z, 1) % p->nlabels : PROF_NONE;
        set = prof_profile_labels(p, set, name, fuzz_text(z),
                                  fuzz_number(z, 1) % 2 ? "bytes" : NULL);
        free(name);
        return set;

    case 6:
        return p->nlabels ? p->nlabels - 1 : PROF_NONE;

    default:
        return PROF_NONE;
    }
}


static void
fuzz_allocs(fuzz_t *z, prof_profile_t *p)
{
    uint64_t       i, n;
    prof_entry_t  *e;

    n = fuzz_number(z, 1) % 8;

    for (i = 0; i < n; i++) {
        e = fixture_add(p, PROF_SERIES_MEMORY,
                        fuzz_number(z, 1) % p->nnodes);
        e->labels = fuzz_labels(z, p);
        e->values[PROF_VALUE_ALLOC_OBJECTS] = fuzz_number(z, 2);
        e->values[PROF_VALUE_ALLOC_SPACE] = fuzz_number(z, 6);
        e->values[PROF_VALUE_INUSE_OBJECTS] = fuzz_number(z, 2);
        e->values[PROF_VALUE_INUSE_SPACE] = fuzz_number(z, 6);
    }
}


/* zeros after the end of the input */

static uint64_t
fuzz_number(fuzz_t *z, size_t size)
{
    uint64_t  n;

    n = 0;

    for ( /* void */ ; size && z->len; size--) {
        n = (n << 8) | *z->data++;
        z->len--;
    }

    return n;
}


static const char *
fuzz_text(fuzz_t *z)
{
    size_t       len;
    static char  text[FUZZ_TEXT];

    len = fuzz_number(z, 1) % FUZZ_TEXT;

    if (len > z->len) {
        len = z->len;
    }

    memcpy(text, z->data, len);
    text[len] = '\0';

    z->data += len;
    z->len -= len;

    return text;
}


static void
fuzz_check(const prof_encoder_t *e, const prof_profile_t *p,
    const prof_buf_t *b)
{
    if (strcmp(e->name, "speedscope") == 0) {
        fuzz_check_json(b);

    } else if (strcmp(e->name, "pprof") == 0) {
        fuzz_check_pprof(b);

    } else if (strcmp(e->name, "folded") == 0) {
        fuzz_check_folded(p, b);
        fuzz_check_text(b);

    } else {
        fuzz_check_text(b);
    }
}


static void
fuzz_check_json(const prof_buf_t *b)
{
    json_t  *json;

    json = json_loadb(b->data, b->len, 0, NULL);

    fuzz_assert(json_is_object(json));
    fuzz_assert(json_array_size(json_object_get(json, "profiles")) >= 3);

    json_decref(json);
}


/* the sum of all lines is the time of the profile */

static void
fuzz_check_folded(const prof_profile_t *p, const prof_buf_t *b)
{
    char      *line, *last, *next, *space;
    uint64_t   sum;

    sum = 0;

    /* an empty output is a buffer without memory */

    line = b->len ? b->data : "";
    last = line + b->len;

    for ( /* void */ ; line < last; line = next + 1) {

        next = memchr(line, '\n', last - line);
        fuzz_assert(next != NULL);

        space = memrchr(line, ' ', next - line);
        fuzz_assert(space != NULL && space > line);

        sum += strtoull(space + 1, &space, 10);
        fuzz_assert(space == next);
    }

    fuzz_assert(sum == prof_measure_total(p, prof_measure_first(p)));
}


static void
fuzz_check_pprof(const prof_buf_t *b)
{
    size_t          i;
    z_stream        z;
    Prof__Profile  *pb;
    static char     out[1 << 20];

    memset(&z, 0, sizeof(z_stream));
    z.next_in = (unsigned char *) b->data;
    z.avail_in = b->len;
    z.next_out = (unsigned char *) out;
    z.avail_out = sizeof(out);

    fuzz_assert(inflateInit2(&z, 15 + 16) == Z_OK);
    fuzz_assert(inflate(&z, Z_FINISH) == Z_STREAM_END);
    inflateEnd(&z);

    pb = prof__profile__unpack(NULL, z.total_out, (uint8_t *) out);
    fuzz_assert(pb != NULL && pb->n_string_table > 0);

    for (i = 0; i < pb->n_sample; i++) {
        fuzz_assert(pb->sample[i]->n_value == pb->n_sample_type);
        fuzz_assert(pb->sample[i]->n_location_id > 0);
    }

    for (i = 0; i < pb->n_location; i++) {
        fuzz_assert(pb->location[i]->n_line == 1
                    || pb->location[i]->n_line == 2);
        fuzz_assert(pb->location[i]->line[0]->function_id > 0);
        fuzz_assert(pb->location[i]->line[0]->function_id <= pb->n_function);
        fuzz_assert(pb->location[i]->mapping_id <= pb->n_mapping);
    }

    for (i = 0; i < pb->n_function; i++) {
        fuzz_assert(pb->function[i]->name < (int64_t) pb->n_string_table);
    }

    prof__profile__free_unpacked(pb, NULL);
}


static void
fuzz_check_text(const prof_buf_t *b)
{
    size_t         i, n;
    unsigned char  c;

    for (i = 0; i < b->len; i += n) {
        n = prof_text_char(b->data + i, b->len - i);
        fuzz_assert(n > 0);

        c = (unsigned char) b->data[i];
        fuzz_assert(c >= 0x20 || c == '\n' || c == '\t' || c == '\r');
    }
}


static void
fuzz_assert(int ok)
{
    if (!ok) {
        abort();
    }
}
