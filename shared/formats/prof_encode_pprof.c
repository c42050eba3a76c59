
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * pprof's profile.proto, compressed by gzip.
 */


#include "formats/prof_encode.h"
#include "formats/prof_encode_pprof.h"
#include "profile/prof_measure.h"
#include "views/prof_summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


#define PROF_PPROF_NSEC    1000000000

/* comments stand above all reports, and in the legend of pictures */

#define PROF_PPROF_LINE    76


typedef struct {
    const char  *name;
    const char  *unit;
} prof_pprof_type_t;


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
static void prof_encode_pprof_strings(prof_pprof_t *e);
static void prof_encode_pprof_append(ProtobufCBuffer *sink, size_t len,
    const uint8_t *data);


/* units, as pprof spells them */

static const char  *prof_pprof_units[] = { "nanoseconds", "bytes", "count" };


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
 * Go, Pyroscope and Parca know "samples/count" and "cpu/nanoseconds" of a CPU
 * profile, and expect no other types in it.
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


/* the line that sums it up, a line for each text, the numbers in few lines */

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
prof_encode_pprof_strings(prof_pprof_t *e)
{
    Prof__Profile  part;

    prof__profile__init(&part);
    part.n_string_table = e->strings.n;
    part.string_table = e->strings.data;

    prof_encode_pprof_write(e, &part);
}


int64_t
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
