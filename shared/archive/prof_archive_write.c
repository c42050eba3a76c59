
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Neighbors in a timeline are near to each other in the tree, and have similar
 * times.  So their differences are small numbers, which zlib compresses well.
 */


#include "archive/prof_archive.h"
#include "archive/prof_archive_in.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>


/* level 1 takes half of the time of level 6, for a sixth more bytes */

#define PROF_ARCHIVE_LEVEL  1

/*
 * Most profiles of brief requests are so small that the Huffman codes of zlib
 * save less than a sixth of their bytes, for 140,000 instructions.  A content
 * of at most this size is not compressed.
 */

#define PROF_ARCHIVE_SMALL  1024

/* zlib has no window of less than 512 bytes (deflateInit2()) */

#define PROF_ARCHIVE_MIN_WBITS  9


static void prof_archive_facts(prof_buf_t *b, const prof_profile_t *p);
static void prof_archive_code(prof_buf_t *b, const prof_profile_t *p);
static void prof_archive_tree(prof_buf_t *b, const prof_profile_t *p);
static void prof_archive_series(prof_buf_t *b, const prof_profile_t *p,
    uint32_t series);
static void prof_archive_entries(prof_buf_t *b, const prof_series_t *s);
static void prof_archive_number(prof_buf_t *b, uint64_t n);
static void prof_archive_signed(prof_buf_t *b, uint64_t n);
static void prof_archive_index(prof_buf_t *b, uint32_t n);
static void prof_archive_text(prof_buf_t *b, const char *s);
static int prof_archive_pack(prof_buf_t *b, const prof_buf_t *content);
static int prof_archive_compress(char *to, uLong *len,
    const prof_buf_t *content, int strategy);
static void prof_archive_fixed(char *p, uint64_t n, size_t len);


int
prof_archive_write(const prof_profile_t *p, prof_buf_t *b)
{
    int         rc;
    uint32_t    i;
    prof_buf_t  content;

    prof_buf_init(&content);

    prof_archive_facts(&content, p);
    prof_archive_code(&content, p);
    prof_archive_tree(&content, p);

    for (i = 0; i < PROF_SERIES_MAX; i++) {
        prof_archive_series(&content, p, i);
    }

    prof_archive_text(&content, NULL);

    if (p->turns) {
        prof_archive_number(&content, p->turns_len);
        prof_buf_append(&content, p->turns, p->turns_len);
    }

    if (prof_buf_failed(&content)) {
        rc = PROF_ERROR;

    } else if (content.len > PROF_ARCHIVE_MAX) {
        rc = PROF_LIMIT;

    } else {
        rc = prof_archive_pack(b, &content);
    }

    prof_buf_free(&content);

    return rc;
}


static void
prof_archive_facts(prof_buf_t *b, const prof_profile_t *p)
{
    uint32_t                  i;
    const prof_fact_t        *fact;
    const prof_stats_desc_t  *d;

    prof_archive_text(b, p->title);
    prof_archive_text(b, p->scope);
    prof_archive_number(b, p->mode);
    prof_archive_number(b, p->start_realtime);
    prof_archive_number(b, p->frequency);
    prof_archive_number(b, p->frequency_end);
    prof_archive_number(b, p->duration);
    prof_archive_number(b, p->wall);
    prof_archive_number(b, p->running);
    prof_archive_number(b, p->cpu);
    prof_archive_number(b, p->alloc_interval);
    prof_archive_number(b, p->peak_objects);
    prof_archive_number(b, p->peak_space);
    prof_archive_text(b, p->first == PROF_NONE ? NULL
                                               : prof_measures[p->first].name);
    prof_archive_number(b, p->aggregated != 0);

    /* a reader of another version may know other counters */

    for (d = prof_stats_desc; d->name; d++) {
        if (prof_stats_get(&p->stats, d)) {
            prof_archive_text(b, d->name);
            prof_archive_number(b, prof_stats_get(&p->stats, d));
        }
    }

    prof_archive_text(b, NULL);

    prof_archive_number(b, p->nfacts);

    for (i = 0; i < p->nfacts; i++) {
        fact = &p->facts[i];

        prof_archive_text(b, fact->name);
        prof_archive_text(b, fact->value);
        prof_archive_number(b, fact->label != 0);
    }
}


static void
prof_archive_code(prof_buf_t *b, const prof_profile_t *p)
{
    uint32_t                      i;
    const prof_frame_t           *f;
    const prof_inline_t          *in;
    const prof_profile_object_t  *o;

    prof_archive_number(b, p->nobjects);

    for (i = 0; i < p->nobjects; i++) {
        o = &p->objects[i];

        prof_archive_text(b, o->path);
        prof_archive_text(b, o->build_id);
        prof_archive_number(b, o->start);
        prof_archive_number(b, o->end);
        prof_archive_number(b, o->offset);
        prof_archive_number(b, o->base);
    }

    prof_archive_number(b, p->ninlines);

    for (i = 0; i < p->ninlines; i++) {
        in = &p->inlines[i];

        prof_archive_text(b, in->name);
        prof_archive_text(b, in->file);
        prof_archive_number(b, in->line);
        prof_archive_number(b, in->start_line);
    }

    prof_archive_number(b, p->nframes);

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        prof_archive_number(b, f->type);
        prof_archive_number(b, f->source);
        prof_archive_index(b, f->object);
        prof_archive_number(b, f->pc);
        prof_archive_number(b, f->function);
        prof_archive_number(b, f->function_len);
        prof_archive_text(b, f->name);
        prof_archive_text(b, f->file);
        prof_archive_number(b, f->line);
        prof_archive_number(b, f->start_line);
        prof_archive_number(b, f->inlines);
        prof_archive_number(b, f->ninlines);
    }
}


static void
prof_archive_tree(prof_buf_t *b, const prof_profile_t *p)
{
    uint32_t             i;
    const prof_node_t   *node;
    const prof_label_t  *label;

    prof_archive_number(b, p->nnodes);

    for (i = 0; i < p->nnodes; i++) {
        node = &p->nodes[i];

        prof_archive_number(b, node->parent == PROF_NONE
                               ? 0 : i - node->parent);
        prof_archive_number(b, node->frame);
    }

    prof_archive_number(b, p->nlabels);

    for (i = 0; i < p->nlabels; i++) {
        label = &p->labels[i];

        prof_archive_number(b, label->rest == PROF_NONE ? 0 : i - label->rest);
        prof_archive_text(b, label->name);
        prof_archive_text(b, label->value);
        prof_archive_text(b, label->unit);
    }
}


/* a reader that does not know a measure's name skips its values */

static void
prof_archive_series(prof_buf_t *b, const prof_profile_t *p, uint32_t series)
{
    uint32_t  m;

    if (p->series[series].n == 0) {
        return;
    }

    prof_archive_text(b, prof_series_desc[series].name);

    for (m = 0; m < PROF_MEASURE_MAX; m++) {
        if (prof_measures[m].series == series) {
            prof_archive_text(b, prof_measures[m].name);
        }
    }

    prof_archive_text(b, NULL);
    prof_archive_entries(b, &p->series[series]);
}


static void
prof_archive_entries(prof_buf_t *b, const prof_series_t *s)
{
    uint32_t             i, k, node;
    uint64_t             last;
    const prof_entry_t  *e;

    prof_archive_number(b, s->n);

    node = 0;

    for (i = 0; i < s->n; i++) {
        e = prof_series_entry(s, i);

        prof_archive_signed(b, (uint64_t) e->node - node);
        prof_archive_number(b, e->type);
        prof_archive_index(b, e->labels);
        prof_archive_number(b, e->count);

        last = 0;

        for (k = 0; k < s->nvalues; k++) {
            prof_archive_signed(b, e->values[k] - last);
            last = e->values[k];
        }

        node = e->node;
    }
}


static void
prof_archive_number(prof_buf_t *b, uint64_t n)
{
    size_t         len;
    unsigned char  bytes[10];

    len = 0;

    while (n >= 0x80) {
        bytes[len++] = (unsigned char) (n | 0x80);
        n >>= 7;
    }

    bytes[len++] = (unsigned char) n;

    prof_buf_append(b, bytes, len);
}


static void
prof_archive_signed(prof_buf_t *b, uint64_t n)
{
    prof_archive_number(b, n >> 63 ? ~(n << 1) : n << 1);
}


static void
prof_archive_index(prof_buf_t *b, uint32_t n)
{
    prof_archive_number(b, n == PROF_NONE ? 0 : (uint64_t) n + 1);
}


static void
prof_archive_text(prof_buf_t *b, const char *s)
{
    size_t  len;

    if (s == NULL) {
        prof_archive_number(b, 0);
        return;
    }

    len = strlen(s);

    prof_archive_number(b, (uint64_t) len + 1);
    prof_buf_append(b, s, len);
}


static int
prof_archive_pack(prof_buf_t *b, const prof_buf_t *content)
{
    int     rc;
    char    head[PROF_ARCHIVE_HEAD], *body;
    uLong   crc, len, size;

    size = compressBound(content->len) + content->len / 8;

    body = malloc(size);
    if (body == NULL) {
        return PROF_ERROR;
    }

    len = size;
    rc = prof_archive_compress(body, &len, content, Z_DEFAULT_STRATEGY);

    /* Huffman codes alone shorten a content at most to an eighth */

    if (rc == PROF_OK
        && content->len > len * PROF_ARCHIVE_RATIO + PROF_ARCHIVE_SLACK)
    {
        len = size;
        rc = prof_archive_compress(body, &len, content, Z_HUFFMAN_ONLY);
    }

    if (rc != PROF_OK) {
        free(body);
        return PROF_ERROR;
    }

    memcpy(head, PROF_ARCHIVE_MAGIC, sizeof(PROF_ARCHIVE_MAGIC) - 1);
    prof_archive_fixed(head + PROF_ARCHIVE_AT_VERSION, PROF_ARCHIVE_VERSION,
                       4);
    prof_archive_fixed(head + PROF_ARCHIVE_AT_SIZE, content->len, 8);

    crc = crc32(0, (Bytef *) head + PROF_ARCHIVE_AT_SIZE,
                PROF_ARCHIVE_HEAD - PROF_ARCHIVE_AT_SIZE);
    crc = crc32(crc, (Bytef *) body, len);

    prof_archive_fixed(head + PROF_ARCHIVE_AT_CRC, crc, 4);

    prof_buf_append(b, head, sizeof(head));
    prof_buf_append(b, body, len);

    rc = prof_buf_failed(b) ? PROF_ERROR : PROF_OK;

    free(body);

    return rc;
}


/*
 * zlib clears tables in proportion to the window, so a small archive gets a
 * window that is just as large as its content.
 */

static int
prof_archive_compress(char *to, uLong *len, const prof_buf_t *content,
    int strategy)
{
    int       rc, bits, level;
    z_stream  z;

    level = (content->len > PROF_ARCHIVE_SMALL) ? PROF_ARCHIVE_LEVEL
                                                : Z_NO_COMPRESSION;

    memset(&z, 0, sizeof(z_stream));

    for (bits = PROF_ARCHIVE_MIN_WBITS;
         bits < MAX_WBITS && content->len > (size_t) 1 << bits;
         bits++)
    {
        /* void */
    }

    if (deflateInit2(&z, level, Z_DEFLATED, bits, bits - 7, strategy) != Z_OK) {
        return PROF_ERROR;
    }

    z.next_in = (Bytef *) content->data;
    z.avail_in = (uInt) content->len;
    z.next_out = (Bytef *) to;
    z.avail_out = (uInt) *len;

    rc = deflate(&z, Z_FINISH);
    *len = z.total_out;

    (void) deflateEnd(&z);

    return rc == Z_STREAM_END ? PROF_OK : PROF_ERROR;
}


static void
prof_archive_fixed(char *p, uint64_t n, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        p[i] = (char) (n >> (8 * i));
    }
}
