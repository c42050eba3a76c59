
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * pprof's profile.proto, compressed by gzip.
 */


#include "encode/prof_encode.h"
#include "encode/prof_encode_pprof.h"
#include "encode/prof_summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


#define PROF_PPROF_NSEC    1000000000

/* comments stand above all reports, and in the legend of pictures */

#define PROF_PPROF_LINE    76

#define PROF_PPROF_VALUES  3
#define PROF_PPROF_STATES  2


/* of the entries of one stack and state */

typedef struct {
    uint64_t  count;
    uint64_t  wall;
    uint64_t  cpu;
} prof_pprof_sum_t;


static int prof_encode_pprof_encode(const prof_profile_t *p, prof_buf_t *b);
static int prof_encode_pprof_init(prof_pprof_t *e, const prof_profile_t *p,
    prof_buf_t *b);
static int prof_encode_pprof_done(prof_pprof_t *e);
static void prof_encode_pprof_header(prof_pprof_t *e);
static void prof_encode_pprof_type(prof_pprof_t *e, Prof__ValueType *type,
    const char *name, const char *unit);
static void prof_encode_pprof_comments(prof_pprof_t *e);
static int prof_encode_pprof_item(void *data, const prof_summary_t *item);
static void prof_encode_pprof_comment(prof_pprof_t *e);
static void prof_encode_pprof_labels(prof_pprof_t *e);
static void prof_encode_pprof_samples(prof_pprof_t *e);
static int prof_encode_pprof_sample_cmp(const void *one, const void *two,
    void *data);
static void prof_encode_pprof_sample(prof_pprof_t *e, uint32_t node,
    const prof_pprof_sum_t *sum);
static size_t prof_encode_pprof_stack(prof_pprof_t *e, uint32_t node);
static void prof_encode_pprof_strings(prof_pprof_t *e);
static int64_t prof_encode_pprof_int(uint64_t n);
static void prof_encode_pprof_append(ProtobufCBuffer *sink, size_t len,
    const uint8_t *data);


const prof_encoder_t  prof_encode_pprof = {
    "pprof",
    "application/octet-stream",
    "pb.gz",
    prof_encode_pprof_encode,
    NULL,
    1
};


static int
prof_encode_pprof_encode(const prof_profile_t *p, prof_buf_t *b)
{
    prof_pprof_t  e;

    if (prof_encode_pprof_init(&e, p, b) == PROF_OK) {
        prof_encode_pprof_header(&e);
        prof_encode_pprof_comments(&e);
        prof_encode_pprof_frames(&e);
        prof_encode_pprof_labels(&e);
        prof_encode_pprof_samples(&e);
        prof_encode_pprof_strings(&e);

    } else {
        e.strings.failed = 1;
    }

    return prof_encode_pprof_done(&e);
}


static int
prof_encode_pprof_init(prof_pprof_t *e, const prof_profile_t *p,
    prof_buf_t *b)
{
    uint32_t  n;

    memset(e, 0, sizeof(prof_pprof_t));

    e->sink.append = prof_encode_pprof_append;
    e->profile = p;

    prof_strings_init(&e->strings);

    n = p->nframes > p->nentries ? p->nframes : p->nentries;

    e->frames = calloc((size_t) p->nframes + 1, sizeof(prof_pprof_frame_t));
    e->order = calloc((size_t) n + 1, sizeof(uint32_t));
    e->gz = prof_gzip_create(b);

    if (e->frames == NULL || e->order == NULL || e->gz == NULL) {
        return PROF_ERROR;
    }

    return PROF_OK;
}


static int
prof_encode_pprof_done(prof_pprof_t *e)
{
    int  failed;

    failed = e->strings.failed;

    if (e->gz && prof_gzip_finish(e->gz) != PROF_OK) {
        failed = 1;
    }

    prof_strings_free(&e->strings);
    prof_buf_free(&e->line);
    free(e->frames);
    free(e->order);
    free(e->stack);

    return failed ? PROF_ERROR : PROF_OK;
}


/*
 * The types of readers' own: Go, Pyroscope and Parca know "samples/count" and
 * "cpu/nanoseconds" of a CPU profile, and that it has no others.  The last
 * type is what readers show that ignore default_sample_type.
 */

static void
prof_encode_pprof_header(prof_pprof_t *e)
{
    const char            *mode;
    Prof__Profile          part;
    Prof__ValueType        types[PROF_PPROF_VALUES];
    Prof__ValueType       *type[PROF_PPROF_VALUES];
    const prof_profile_t  *p;

    p = e->profile;
    mode = prof_summary_mode(p->mode);

    type[0] = &types[0];
    type[1] = &types[1];
    type[2] = &types[2];

    prof_encode_pprof_type(e, type[0], "samples", "count");
    prof_encode_pprof_type(e, type[1], "cpu", "nanoseconds");
    prof_encode_pprof_type(e, type[2], mode, "nanoseconds");

    prof__profile__init(&part);

    part.n_sample_type = p->mode == PROF_MODE_CPU ? 2 : 3;
    part.sample_type = type;
    part.default_sample_type = prof_strings_add(&e->strings, mode);
    part.period_type = type[2];
    part.time_nanos = prof_encode_pprof_int(p->start_realtime);
    part.duration_nanos = prof_encode_pprof_int(p->wall);

    if (p->frequency) {
        part.period = PROF_PPROF_NSEC / p->frequency;
    }

    prof_encode_pprof_write(e, &part);
}


static void
prof_encode_pprof_type(prof_pprof_t *e, Prof__ValueType *type,
    const char *name, const char *unit)
{
    prof__value_type__init(type);

    type->type = prof_strings_add(&e->strings, name);
    type->unit = prof_strings_add(&e->strings, unit);
}


/* the line that sums it up, a line for each text, the numbers in few lines */

static void
prof_encode_pprof_comments(prof_pprof_t *e)
{
    prof_summary_line(e->profile, e->profile->mode, &e->line);
    prof_encode_pprof_comment(e);

    if (prof_summary(e->profile, prof_encode_pprof_item, e) != PROF_OK) {
        e->strings.failed = 1;
    }

    prof_encode_pprof_comment(e);
}


static int
prof_encode_pprof_item(void *data, const prof_summary_t *item)
{
    prof_pprof_t *e = data;

    if (item->unit == PROF_SUMMARY_TEXT) {
        prof_buf_printf(&e->line, "%s: %s", item->name, item->value);
        prof_encode_pprof_comment(e);

        return PROF_OK;
    }

    prof_buf_printf(&e->line, "%s%s=%" PRIu64, e->line.len ? " " : "",
                    item->name, item->number);

    if (e->line.len > PROF_PPROF_LINE) {
        prof_encode_pprof_comment(e);
    }

    return PROF_OK;
}


static void
prof_encode_pprof_comment(prof_pprof_t *e)
{
    int64_t        comment;
    Prof__Profile  part;

    if (e->line.len == 0) {
        return;
    }

    prof_buf_append(&e->line, "", 1);

    if (prof_buf_failed(&e->line)) {
        e->strings.failed = 1;
        return;
    }

    comment = prof_strings_add(&e->strings, e->line.data);

    e->line.len = 0;

    prof__profile__init(&part);
    part.n_comment = 1;
    part.comment = &comment;

    prof_encode_pprof_write(e, &part);
}


/*
 * Labels become series in databases: only what has few values is one.  The
 * place of the sample's own is the first.
 */

static void
prof_encode_pprof_labels(prof_pprof_t *e)
{
    uint32_t            i;
    Prof__Label        *label;
    const prof_fact_t  *fact;

    for (i = 0; i < e->profile->nfacts; i++) {
        fact = &e->profile->facts[i];

        if (!fact->label || fact->value[0] == '\0'
            || e->nlabels == PROF_PPROF_LABELS)
        {
            continue;
        }

        label = &e->labels[e->nlabels++];
        e->label[e->nlabels] = label;

        prof__label__init(label);
        label->key = prof_strings_add(&e->strings, fact->name);
        label->str = prof_strings_add(&e->strings, fact->value);
    }
}


/* one for each stack and state; the entries are sorted to find them */

static void
prof_encode_pprof_samples(prof_pprof_t *e)
{
    uint32_t               i;
    Prof__Label            state[PROF_PPROF_STATES];
    prof_pprof_sum_t       sum;
    const prof_entry_t    *entry;
    const prof_profile_t  *p;

    p = e->profile;

    prof__label__init(&state[0]);
    state[0].key = prof_strings_add(&e->strings, "state");
    state[0].str = prof_strings_add(&e->strings, "running");

    state[1] = state[0];
    state[1].str = prof_strings_add(&e->strings, "waiting");

    for (i = 0; i < p->nentries; i++) {
        e->order[i] = i;
    }

    qsort_r(e->order, p->nentries, sizeof(uint32_t),
            prof_encode_pprof_sample_cmp, e);

    memset(&sum, 0, sizeof(prof_pprof_sum_t));

    for (i = 0; i < p->nentries; i++) {
        entry = &p->entries[e->order[i]];

        sum.count += entry->count;
        sum.wall += entry->wall;
        sum.cpu += entry->cpu;

        if (i + 1 < p->nentries
            && prof_encode_pprof_sample_cmp(&e->order[i], &e->order[i + 1], e)
               == 0)
        {
            continue;
        }

        e->label[0] = &state[entry->kind == PROF_ENTRY_GAP];

        prof_encode_pprof_sample(e, entry->node, &sum);

        memset(&sum, 0, sizeof(prof_pprof_sum_t));
    }
}


static int
prof_encode_pprof_sample_cmp(const void *one, const void *two, void *data)
{
    prof_pprof_t *e = data;

    int                  gap1, gap2;
    const prof_entry_t  *e1, *e2;

    e1 = &e->profile->entries[*(const uint32_t *) one];
    e2 = &e->profile->entries[*(const uint32_t *) two];

    if (e1->node != e2->node) {
        return e1->node < e2->node ? -1 : 1;
    }

    gap1 = e1->kind == PROF_ENTRY_GAP;
    gap2 = e2->kind == PROF_ENTRY_GAP;

    return gap1 - gap2;
}


static void
prof_encode_pprof_sample(prof_pprof_t *e, uint32_t node,
    const prof_pprof_sum_t *sum)
{
    int64_t                values[PROF_PPROF_VALUES];
    Prof__Sample           s, *sample;
    Prof__Profile          part;
    const prof_profile_t  *p;

    p = e->profile;
    sample = &s;

    values[0] = prof_encode_pprof_int(sum->count);
    values[1] = prof_encode_pprof_int(sum->cpu);
    values[2] = prof_encode_pprof_int(sum->wall);

    if (values[0] == 0 && values[1] == 0
        && (p->mode == PROF_MODE_CPU || values[2] == 0))
    {
        return;
    }

    prof__sample__init(&s);

    s.n_location_id = prof_encode_pprof_stack(e, node);
    s.location_id = e->stack;
    s.n_value = p->mode == PROF_MODE_CPU ? 2 : 3;
    s.value = values;
    s.n_label = 1 + e->nlabels;
    s.label = e->label;

    prof__profile__init(&part);
    part.n_sample = 1;
    part.sample = &sample;

    prof_encode_pprof_write(e, &part);
}


static size_t
prof_encode_pprof_stack(prof_pprof_t *e, uint32_t node)
{
    size_t              n;
    uint32_t            i;
    uint64_t           *stack;
    const prof_node_t  *nodes;

    nodes = e->profile->nodes;
    n = 0;

    for (i = node; i != PROF_NONE; i = nodes[i].parent) {
        n++;
    }

    if (n > e->depth) {
        stack = realloc(e->stack, 2 * n * sizeof(uint64_t));
        if (stack == NULL) {
            e->strings.failed = 1;
            return 0;
        }

        e->stack = stack;
        e->depth = 2 * n;
    }

    n = 0;

    for (i = node; i != PROF_NONE; i = nodes[i].parent) {
        e->stack[n++] = (uint64_t) nodes[i].frame + 1;
    }

    return n;
}


static void
prof_encode_pprof_strings(prof_pprof_t *e)
{
    Prof__Profile  part;

    prof__profile__init(&part);
    part.n_string_table = e->strings.n;
    part.string_table = e->strings.data;

    prof_encode_pprof_write(e, &part);
}


static int64_t
prof_encode_pprof_int(uint64_t n)
{
    return n < INT64_MAX ? (int64_t) n : INT64_MAX;
}


void
prof_encode_pprof_write(prof_pprof_t *e, Prof__Profile *part)
{
    if (!e->strings.failed) {
        (void) protobuf_c_message_pack_to_buffer(&part->base, &e->sink);
    }
}


static void
prof_encode_pprof_append(ProtobufCBuffer *sink, size_t len,
    const uint8_t *data)
{
    prof_pprof_t  *e;

    e = (prof_pprof_t *) sink;

    prof_gzip_append(e->gz, data, len);
}
