
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * pprof's profile.proto, compressed by gzip.
 *
 * The concatenation of two messages is their union.  So the profile is written
 * to the compressor as a sequence of messages with one item each, and only the
 * strings are held in memory.
 *
 * Identifiers: a location has the index of its frame plus one; a mapping has
 * the index of its object plus one; functions are numbered.
 *
 * A sample is the sum of the entries with one stack, state and set of labels.
 * Entries are sorted to find them.  Databases make a series of each set of
 * labels, so only facts with few values are labels.
 */


#include "formats/prof_encode.h"
#include "formats/prof_gzip.h"
#include "formats/prof_strings.h"
#include "proto/prof_proto.h"
#include "views/prof_summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


#define PROF_PPROF_NSEC    1000000000

/* readers show comments above all reports, and in the legend of pictures */

#define PROF_PPROF_LINE    76

#define PROF_PPROF_STATES  2

#define PROF_PPROF_LABELS  16   /* of a profile */
#define PROF_PPROF_VALUES  (1 + PROF_MEASURE_MAX)   /* maximum of a sample */


typedef struct {
    uint32_t               name;        /* strings */
    uint32_t               file;
    uint32_t               function;    /* identifier */
} prof_pprof_frame_t;


typedef struct {
    ProtobufCBuffer        sink;        /* must be the first member */
    prof_gzip_t           *gz;
    const prof_profile_t  *profile;
    prof_strings_t         strings;
    prof_pprof_frame_t    *frames;
    prof_pprof_frame_t    *inlines;
    uint32_t              *order;       /* sorted frames or entries */
    uint64_t              *stack;
    size_t                 depth;       /* number of elements */
    prof_buf_t             line;        /* the comment in work */
    Prof__Label            labels[PROF_PPROF_LABELS];
    uint32_t               nlabels;
} prof_pprof_t;


/* the common data of all samples of a profile */

typedef struct {
    prof_pprof_t  *e;
    Prof__Label    state[PROF_PPROF_STATES];

    /* of a sample: its own labels, and the labels of the profile */

    Prof__Label    own[PROF_MAX_LABELS];
    Prof__Label   *label[1 + PROF_MAX_LABELS + PROF_PPROF_LABELS];
} prof_pprof_ctx_t;


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
static void prof_encode_pprof_frames(prof_pprof_t *e);
static void prof_encode_pprof_mappings(prof_pprof_t *e);
static void prof_encode_pprof_functions(prof_pprof_t *e);
static void prof_encode_pprof_inlines(prof_pprof_t *e, uint32_t id);
static void prof_encode_pprof_function(prof_pprof_t *e,
    const prof_pprof_frame_t *frame, uint32_t line);
static int prof_encode_pprof_cmp(const void *one, const void *two, void *data);
static int prof_encode_pprof_inline_cmp(const void *one, const void *two);
static void prof_encode_pprof_locations(prof_pprof_t *e);
static size_t prof_encode_pprof_lines(prof_pprof_t *e, uint32_t frame,
    Prof__Line *lines);
static void prof_encode_pprof_samples(prof_pprof_t *e);
static void prof_pprof_facts(prof_pprof_ctx_t *ctx);
static void prof_pprof_entries(prof_pprof_ctx_t *ctx);
static int prof_pprof_entry_cmp(const void *one, const void *two, void *data);
static uint32_t prof_pprof_add(const prof_mode_t *mode,
    const prof_entry_t *entry, uint64_t *sum);
static void prof_pprof_sample(prof_pprof_ctx_t *ctx, uint32_t node,
    uint32_t labels, Prof__Label *state, const uint64_t *sums, uint32_t n);
static size_t prof_pprof_labels(prof_pprof_ctx_t *ctx, uint32_t labels,
    Prof__Label *state);
static int prof_pprof_has_label(prof_pprof_ctx_t *ctx, int64_t key,
    uint32_t n);
static size_t prof_pprof_stack(prof_pprof_t *e, uint32_t node);
static void prof_encode_pprof_strings(prof_pprof_t *e);
static int64_t prof_encode_pprof_int(uint64_t n);
static void prof_encode_pprof_write(prof_pprof_t *e, Prof__Profile *part);
static void prof_encode_pprof_append(ProtobufCBuffer *sink, size_t len,
    const uint8_t *data);


/* units, as pprof spells them */

static const char  *prof_pprof_units[] = { "nanoseconds", "bytes", "count" };


const prof_encoder_t  prof_encode_pprof = {
    "pprof",
    "pprof, for go tool pprof",
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

    n = p->series[prof_modes[p->mode].series].n;
    n = n > p->nframes ? n : p->nframes;

    e->frames = calloc((size_t) p->nframes + 1, sizeof(prof_pprof_frame_t));
    e->inlines = calloc((size_t) p->ninlines + 1, sizeof(prof_pprof_frame_t));
    e->order = calloc((size_t) n + 1, sizeof(uint32_t));
    e->gz = prof_gzip_create(b);

    if (e->frames == NULL || e->inlines == NULL || e->order == NULL
        || e->gz == NULL)
    {
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
    free(e->inlines);
    free(e->order);
    free(e->stack);

    return failed ? PROF_ERROR : PROF_OK;
}


/*
 * Go, Pyroscope and Parca know the types "samples/count" and "cpu/nanoseconds"
 * of a CPU profile, and expect no other types in it.
 */

static void
prof_encode_pprof_header(prof_pprof_t *e)
{
    uint32_t                i, n;
    Prof__Profile           part;
    Prof__ValueType         period, types[PROF_PPROF_VALUES];
    Prof__ValueType        *type[PROF_PPROF_VALUES];
    const prof_mode_t      *mode;
    const prof_measure_t   *m;
    const prof_profile_t   *p;

    p = e->profile;
    mode = &prof_modes[p->mode];
    n = 0;

    if (prof_series_desc[mode->series].counted) {
        prof_encode_pprof_type(e, &types[n++], "samples", "count");
    }

    for (i = 0; mode->measures[i] != PROF_NONE; i++) {
        m = &prof_measures[mode->measures[i]];
        prof_encode_pprof_type(e, &types[n++], m->name,
                               prof_pprof_units[m->unit]);
    }

    for (i = 0; i < n; i++) {
        type[i] = &types[i];
    }

    prof__profile__init(&part);

    part.n_sample_type = n;
    part.sample_type = type;

    prof_encode_pprof_type(e, &period, mode->period,
                           prof_pprof_units[mode->unit]);

    part.period_type = &period;
    part.default_sample_type = prof_strings_add(&e->strings,
                                   prof_measures[prof_measure_first(p)].name);
    part.time_nanos = prof_encode_pprof_int(p->start_realtime);
    part.duration_nanos = prof_encode_pprof_int(p->duration ? p->duration
                                                            : p->wall);

    if (mode->unit != PROF_UNIT_NS) {
        part.period = prof_encode_pprof_int(p->alloc_interval
                                            ? p->alloc_interval : 1);

    } else if (p->frequency) {
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


/* writes the summary, a line for each text, and the numbers in few lines */

static void
prof_encode_pprof_comments(prof_pprof_t *e)
{
    prof_summary_line(e->profile, prof_measure_first(e->profile), &e->line);
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


static void
prof_encode_pprof_frames(prof_pprof_t *e)
{
    prof_encode_pprof_mappings(e);
    prof_encode_pprof_functions(e);
    prof_encode_pprof_locations(e);
}


static void
prof_encode_pprof_mappings(prof_pprof_t *e)
{
    uint32_t                      i, object;
    Prof__Mapping                 m, *mapping;
    Prof__Profile                 part;
    const prof_frame_t           *f;
    const prof_profile_t         *p;
    const prof_profile_object_t  *o;

    p = e->profile;
    mapping = &m;

    for (object = 0; object < p->nobjects; object++) {
        o = &p->objects[object];

        prof__mapping__init(&m);

        m.id = object + 1;
        m.memory_start = o->start + o->base;
        m.memory_limit = o->end + o->base;
        m.file_offset = o->offset;
        m.filename = prof_strings_add(&e->strings, o->path);
        m.build_id = prof_strings_add(&e->strings, o->build_id);

        /* without this flag, readers ask the server for names, and fail */

        m.has_functions = 1;

        for (i = 0; i < p->nframes; i++) {
            f = &p->frames[i];

            if (f->object == object) {
                m.has_filenames |= f->file != NULL;
                m.has_line_numbers |= f->file && f->line;
                m.has_inline_frames |= f->ninlines != 0;
            }
        }

        prof__profile__init(&part);
        part.n_mapping = 1;
        part.mapping = &mapping;

        prof_encode_pprof_write(e, &part);
    }
}


/*
 * Functions are numbered in the order of their names: first those of frames,
 * then those that were inlined.
 */

static void
prof_encode_pprof_functions(prof_pprof_t *e)
{
    uint32_t               i, id;
    prof_pprof_frame_t    *frame;
    const prof_profile_t  *p;

    p = e->profile;

    for (i = 0; i < p->nframes; i++) {
        frame = &e->frames[i];

        frame->name = prof_strings_add(&e->strings, p->frames[i].name);

        if (p->frames[i].file) {
            frame->file = prof_strings_add(&e->strings, p->frames[i].file);
        }

        e->order[i] = i;
    }

    qsort_r(e->order, p->nframes, sizeof(uint32_t), prof_encode_pprof_cmp, e);

    id = 0;

    for (i = 0; i < p->nframes; i++) {
        frame = &e->frames[e->order[i]];

        if (i && prof_encode_pprof_cmp(&e->order[i - 1], &e->order[i], e) == 0)
        {
            frame->function = id;
            continue;
        }

        frame->function = ++id;

        prof_encode_pprof_function(e, frame,
                                   p->frames[e->order[i]].start_line);
    }

    prof_encode_pprof_inlines(e, id);
}


static void
prof_encode_pprof_inlines(prof_pprof_t *e, uint32_t id)
{
    uint32_t               i, k;
    prof_pprof_frame_t    *frame, **order;
    const prof_profile_t  *p;

    p = e->profile;

    order = malloc(((size_t) p->ninlines + 1) * sizeof(prof_pprof_frame_t *));
    if (order == NULL) {
        e->strings.failed = 1;
        return;
    }

    for (i = 0; i < p->ninlines; i++) {
        frame = &e->inlines[i];
        order[i] = frame;

        frame->name = prof_strings_add(&e->strings, p->inlines[i].name);

        if (p->inlines[i].file) {
            frame->file = prof_strings_add(&e->strings, p->inlines[i].file);
        }
    }

    qsort(order, p->ninlines, sizeof(prof_pprof_frame_t *),
          prof_encode_pprof_inline_cmp);

    for (i = 0; i < p->ninlines; i++) {
        frame = order[i];

        if (i && prof_encode_pprof_inline_cmp(&order[i - 1], &order[i]) == 0)
        {
            frame->function = id;
            continue;
        }

        frame->function = ++id;
        k = (uint32_t) (frame - e->inlines);

        prof_encode_pprof_function(e, frame, p->inlines[k].start_line);
    }

    free(order);
}


static void
prof_encode_pprof_function(prof_pprof_t *e, const prof_pprof_frame_t *frame,
    uint32_t line)
{
    Prof__Profile   part;
    Prof__Function  f, *function;

    function = &f;

    prof__function__init(&f);

    f.id = frame->function;
    f.name = frame->name;
    f.system_name = frame->name;
    f.filename = frame->file;
    f.start_line = line;

    prof__profile__init(&part);
    part.n_function = 1;
    part.function = &function;

    prof_encode_pprof_write(e, &part);
}


/*
 * Sorts frames by function.  Functions with the same name are different if
 * they begin at different places.
 */

static int
prof_encode_pprof_cmp(const void *one, const void *two, void *data)
{
    prof_pprof_t *e = data;

    int                        rc;
    uint32_t                   i, j;
    const prof_frame_t        *f1, *f2;
    const prof_pprof_frame_t  *p1, *p2;

    i = *(const uint32_t *) one;
    j = *(const uint32_t *) two;

    f1 = &e->profile->frames[i];
    f2 = &e->profile->frames[j];
    p1 = &e->frames[i];
    p2 = &e->frames[j];

    rc = prof_encode_pprof_inline_cmp(&p1, &p2);

    if (rc) {
        return rc;
    }

    if (f1->object != f2->object) {
        return f1->object < f2->object ? -1 : 1;
    }

    return f1->function < f2->function ? -1 : f1->function > f2->function;
}


static int
prof_encode_pprof_inline_cmp(const void *one, const void *two)
{
    const prof_pprof_frame_t  *p1, *p2;

    p1 = *(const prof_pprof_frame_t *const *) one;
    p2 = *(const prof_pprof_frame_t *const *) two;

    if (p1->name != p2->name) {
        return p1->name < p2->name ? -1 : 1;
    }

    return p1->file < p2->file ? -1 : p1->file > p2->file;
}


static void
prof_encode_pprof_locations(prof_pprof_t *e)
{
    uint32_t               i;
    Prof__Line             lines[1 + PROF_MAX_INLINES];
    Prof__Line            *line[1 + PROF_MAX_INLINES];
    Prof__Profile          part;
    Prof__Location         l, *location;
    const prof_frame_t    *f;
    const prof_profile_t  *p;

    p = e->profile;
    location = &l;

    for (i = 0; i <= PROF_MAX_INLINES; i++) {
        line[i] = &lines[i];
    }

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        prof__location__init(&l);
        l.id = (uint64_t) i + 1;
        l.n_line = prof_encode_pprof_lines(e, i, lines);
        l.line = line;

        if (f->object != PROF_NONE) {
            l.mapping_id = (uint64_t) f->object + 1;
            l.address = f->pc + p->objects[f->object].base;

        } else {
            l.address = f->pc;
        }

        if (f->type == PROF_TYPE_RETURN && l.address) {
            l.address--;
        }

        prof__profile__init(&part);
        part.n_location = 1;
        part.location = &location;

        prof_encode_pprof_write(e, &part);
    }
}


/* writes the innermost function first */

static size_t
prof_encode_pprof_lines(prof_pprof_t *e, uint32_t frame, Prof__Line *lines)
{
    size_t               n;
    uint32_t             k;
    const prof_frame_t  *f;

    f = &e->profile->frames[frame];
    n = 0;

    for (k = f->ninlines; k > 0 && n < PROF_MAX_INLINES; k--) {
        prof__line__init(&lines[n]);
        lines[n].function_id = e->inlines[f->inlines + k - 1].function;
        lines[n++].line = e->profile->inlines[f->inlines + k - 1].line;
    }

    prof__line__init(&lines[n]);
    lines[n].function_id = e->frames[frame].function;
    lines[n++].line = f->line;

    return n;
}


static void
prof_encode_pprof_samples(prof_pprof_t *e)
{
    prof_pprof_ctx_t  ctx;

    ctx.e = e;

    prof_pprof_facts(&ctx);
    prof_pprof_entries(&ctx);
}


static void
prof_pprof_facts(prof_pprof_ctx_t *ctx)
{
    uint32_t            i;
    Prof__Label        *label;
    prof_pprof_t       *e;
    const prof_fact_t  *fact;

    e = ctx->e;

    for (i = 0; i < e->profile->nfacts; i++) {
        fact = &e->profile->facts[i];

        if (!fact->label || fact->value[0] == '\0'
            || e->nlabels == PROF_PPROF_LABELS)
        {
            continue;
        }

        label = &e->labels[e->nlabels++];

        prof__label__init(label);
        label->key = prof_strings_add(&e->strings, fact->name);
        label->str = prof_strings_add(&e->strings, fact->value);
    }
}


static void
prof_pprof_entries(prof_pprof_ctx_t *ctx)
{
    uint32_t              i, n, *order;
    uint64_t              sum[PROF_PPROF_VALUES];
    Prof__Label          *state;
    prof_pprof_t         *e;
    const prof_mode_t    *mode;
    const prof_entry_t   *entry;
    const prof_series_t  *s;

    e = ctx->e;
    mode = &prof_modes[e->profile->mode];
    s = &e->profile->series[mode->series];
    order = e->order;

    prof__label__init(&ctx->state[0]);
    ctx->state[1] = ctx->state[0];

    if (mode->series == PROF_SERIES_TIME) {
        ctx->state[0].key = prof_strings_add(&e->strings, "state");
        ctx->state[1].key = ctx->state[0].key;
        ctx->state[0].str = prof_strings_add(&e->strings, "running");
        ctx->state[1].str = prof_strings_add(&e->strings, "waiting");
    }

    for (i = 0; i < s->n; i++) {
        order[i] = i;
    }

    qsort_r(order, s->n, sizeof(uint32_t), prof_pprof_entry_cmp, (void *) s);

    memset(sum, 0, sizeof(sum));

    for (i = 0; i < s->n; i++) {
        entry = prof_series_entry(s, order[i]);

        n = prof_pprof_add(mode, entry, sum);

        if (i + 1 < s->n
            && prof_pprof_entry_cmp(&order[i], &order[i + 1], (void *) s) == 0)
        {
            continue;
        }

        state = &ctx->state[entry->type == PROF_ENTRY_GAP];

        prof_pprof_sample(ctx, entry->node, entry->labels,
                          state->key ? state : NULL, sum, n);

        memset(sum, 0, sizeof(sum));
    }
}


static uint32_t
prof_pprof_add(const prof_mode_t *mode, const prof_entry_t *entry,
    uint64_t *sum)
{
    uint32_t  i, n;

    n = 0;

    if (prof_series_desc[mode->series].counted) {
        sum[n++] += entry->count;
    }

    for (i = 0; mode->measures[i] != PROF_NONE; i++) {
        sum[n++] += entry->values[prof_measures[mode->measures[i]].value];
    }

    return n;
}


static int
prof_pprof_entry_cmp(const void *one, const void *two, void *data)
{
    const prof_series_t *s = data;

    int                  gap1, gap2;
    const prof_entry_t  *e1, *e2;

    e1 = prof_series_entry(s, *(const uint32_t *) one);
    e2 = prof_series_entry(s, *(const uint32_t *) two);

    if (e1->node != e2->node) {
        return e1->node < e2->node ? -1 : 1;
    }

    if (e1->labels != e2->labels) {
        return e1->labels < e2->labels ? -1 : 1;
    }

    gap1 = e1->type == PROF_ENTRY_GAP;
    gap2 = e2->type == PROF_ENTRY_GAP;

    return gap1 - gap2;
}


static void
prof_pprof_sample(prof_pprof_ctx_t *ctx, uint32_t node, uint32_t labels,
    Prof__Label *state, const uint64_t *sums, uint32_t n)
{
    int64_t        values[PROF_PPROF_VALUES];
    uint32_t       i;
    uint64_t       any;
    Prof__Sample   s, *sample;
    Prof__Profile  part;

    sample = &s;
    any = 0;

    for (i = 0; i < n; i++) {
        values[i] = prof_encode_pprof_int(sums[i]);
        any |= sums[i];
    }

    if (any == 0) {
        return;
    }

    prof__sample__init(&s);

    s.n_location_id = prof_pprof_stack(ctx->e, node);
    s.location_id = ctx->e->stack;
    s.n_value = n;
    s.value = values;
    s.n_label = prof_pprof_labels(ctx, labels, state);
    s.label = ctx->label;

    prof__profile__init(&part);
    part.n_sample = 1;
    part.sample = &sample;

    prof_encode_pprof_write(ctx->e, &part);
}


/*
 * Lists the labels of a sample, and returns their number.  A label of the
 * sample replaces a label of the profile with the same name.
 */

static size_t
prof_pprof_labels(prof_pprof_ctx_t *ctx, uint32_t labels, Prof__Label *state)
{
    uint32_t             i, n, own;
    Prof__Label         *label;
    prof_pprof_t        *e;
    const prof_label_t  *l;

    e = ctx->e;
    n = 0;

    if (state) {
        ctx->label[n++] = state;
    }

    for (own = 0;
         labels != PROF_NONE && own < PROF_MAX_LABELS;
         labels = e->profile->labels[labels].rest)
    {
        l = &e->profile->labels[labels];
        label = &ctx->own[own++];

        prof__label__init(label);
        label->key = prof_strings_add(&e->strings, l->name);

        if (l->unit) {
            label->num = prof_encode_pprof_int(strtoull(l->value, NULL, 10));
            label->num_unit = prof_strings_add(&e->strings, l->unit);

        } else {
            label->str = prof_strings_add(&e->strings, l->value);
        }

        ctx->label[n++] = label;
    }

    own = n;

    for (i = 0; i < e->nlabels; i++) {
        if (!prof_pprof_has_label(ctx, e->labels[i].key, own)) {
            ctx->label[n++] = &e->labels[i];
        }
    }

    return n;
}


static int
prof_pprof_has_label(prof_pprof_ctx_t *ctx, int64_t key, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (ctx->label[i]->key == key) {
            return 1;
        }
    }

    return 0;
}


static size_t
prof_pprof_stack(prof_pprof_t *e, uint32_t node)
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


static void
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
