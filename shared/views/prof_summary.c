
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "profile/prof_measure.h"
#include "views/prof_source.h"
#include "views/prof_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>


#define PROF_SUMMARY_NSEC  1000000000ull


typedef struct {
    prof_summary_pt   fn;
    void             *data;
    int               rc;
} prof_summary_ctx_t;


static void prof_summary_facts(const prof_profile_t *p,
    prof_summary_ctx_t *ctx);
static void prof_summary_times(const prof_profile_t *p,
    prof_summary_ctx_t *ctx);
static void prof_summary_measures(const prof_profile_t *p,
    prof_summary_ctx_t *ctx);
static void prof_summary_stats(const prof_profile_t *p,
    prof_summary_ctx_t *ctx);
static void prof_summary_start(const prof_profile_t *p,
    prof_summary_ctx_t *ctx);
static void prof_summary_text(prof_summary_ctx_t *ctx, const char *name,
    const char *text, const char *value);
static void prof_summary_number(prof_summary_ctx_t *ctx, const char *name,
    const char *text, uint32_t unit, uint64_t number);
static uint64_t prof_summary_lost(const prof_profile_t *p);


int
prof_summary(const prof_profile_t *p, prof_summary_pt fn, void *data)
{
    prof_summary_ctx_t  ctx;

    ctx.fn = fn;
    ctx.data = data;
    ctx.rc = PROF_OK;

    prof_summary_facts(p, &ctx);
    prof_summary_times(p, &ctx);
    prof_summary_measures(p, &ctx);
    prof_summary_stats(p, &ctx);

    return ctx.rc;
}


void
prof_summary_line(const prof_profile_t *p, uint32_t measure, prof_buf_t *b)
{
    prof_buf_printf(b, "%s: %s, ", prof_measures[measure].name, p->title);
    prof_measure_value(b, prof_measures[measure].unit,
                       prof_measure_total(p, measure));

    if (prof_measures[measure].series == PROF_SERIES_MEMORY) {
        prof_buf_puts(b, ", ");
        prof_summary_interval(p, b);
    }

    if (!prof_series_desc[prof_measures[measure].series].counted) {
        return;
    }

    prof_buf_printf(b, ", %" PRIu64 " samples at %" PRIu64 " Hz (asked: %"
                    PRIu32 "), %" PRIu64 " lost",
                    p->stats.samples, prof_summary_frequency(p),
                    p->frequency, prof_summary_lost(p));

    if (p->stats.truncated) {
        prof_buf_printf(b, ", %" PRIu64 " truncated", p->stats.truncated);
    }
}


void
prof_summary_interval(const prof_profile_t *p, prof_buf_t *b)
{
    if (p->alloc_interval == 0) {
        prof_buf_puts(b, "all allocations");
        return;
    }

    prof_buf_puts(b, "one sample each ");
    prof_summary_size(b, p->alloc_interval);
}


void
prof_summary_duration(prof_buf_t *b, uint64_t ns)
{
    prof_measure_value(b, PROF_UNIT_NS, ns);
}


void
prof_summary_size(prof_buf_t *b, uint64_t bytes)
{
    prof_measure_value(b, PROF_UNIT_BYTES, bytes);
}


static void
prof_summary_facts(const prof_profile_t *p, prof_summary_ctx_t *ctx)
{
    uint32_t    i;
    prof_buf_t  names;

    prof_summary_text(ctx, "title", "title", p->title);
    prof_summary_text(ctx, "mode", "mode", prof_modes[p->mode].name);

    if (p->scope) {
        prof_summary_text(ctx, "scope", "scope", p->scope);
    }

    prof_summary_start(p, ctx);

    for (i = 0; i < p->nfacts; i++) {
        prof_summary_text(ctx, p->facts[i].name, p->facts[i].name,
                          p->facts[i].value);
    }

    prof_buf_init(&names);

    prof_source_addresses(p, &names);
    prof_buf_append(&names, "", 1);

    if (prof_buf_failed(&names)) {
        ctx->rc = PROF_ERROR;

    } else if (names.len > 1) {
        prof_summary_text(ctx, "names", "sources of names", names.data);
    }

    prof_buf_free(&names);
}


const char *
prof_summary_not_counted(const prof_profile_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->nfacts; i++) {
        if (strcmp(p->facts[i].name, PROF_FACT_NOT_COUNTED) == 0) {
            return p->facts[i].value;
        }
    }

    return NULL;
}


void
prof_summary_parts(const prof_profile_t *p, prof_summary_parts_t *parts)
{
    uint64_t  idle, running;

    running = (p->running < p->wall) ? p->running : p->wall;

    parts->waiting = p->wall - running;
    parts->cpu = (p->cpu < running) ? p->cpu : running;

    idle = running - parts->cpu;

    parts->no_processor = (p->stats.no_processor_ns < idle)
                          ? p->stats.no_processor_ns : idle;
    idle -= parts->no_processor;

    parts->blocked = (p->stats.blocked_ns < idle) ? p->stats.blocked_ns : idle;
    parts->unknown = idle - parts->blocked;
}


static void
prof_summary_times(const prof_profile_t *p, prof_summary_ctx_t *ctx)
{
    uint32_t              i;
    uint64_t              cpu[PROF_ENTRY_GAP + 1], wall[PROF_ENTRY_GAP + 1];
    const prof_entry_t   *e;
    const prof_series_t  *s;
    prof_summary_parts_t  parts;

    memset(cpu, 0, sizeof(cpu));
    memset(wall, 0, sizeof(wall));

    s = &p->series[PROF_SERIES_TIME];

    for (i = 0; i < s->n; i++) {
        e = prof_series_entry(s, i);

        cpu[e->type] += e->values[PROF_VALUE_CPU];
        wall[e->type] += e->values[PROF_VALUE_WALL];
    }

    if (p->duration) {
        prof_summary_number(ctx, "duration", "time from start to end",
                            PROF_SUMMARY_NS, p->duration);
    }

    prof_summary_number(ctx, "wall",
                        p->duration ? "time of all threads"
                                    : "time from start to end",
                        PROF_SUMMARY_NS, p->wall);
    prof_summary_number(ctx, "running", "time in turns",
                        PROF_SUMMARY_NS, p->running);

    prof_summary_parts(p, &parts);

    prof_summary_number(ctx, "waiting", "time between turns",
                        PROF_SUMMARY_NS, parts.waiting);
    prof_summary_number(ctx, "cpu", "CPU time in turns, by the clock",
                        PROF_SUMMARY_NS, p->cpu);

    prof_summary_number(ctx, "not_running",
                        "time in turns not running, unknown why",
                        PROF_SUMMARY_NS, parts.unknown);

    prof_summary_number(ctx, "sampled_wall", "time the samples stand for",
                        PROF_SUMMARY_NS, wall[PROF_ENTRY_SAMPLE]);
    prof_summary_number(ctx, "sampled_cpu", "CPU time the samples stand for",
                        PROF_SUMMARY_NS, cpu[PROF_ENTRY_SAMPLE]);
    prof_summary_number(ctx, "unsampled_wall", "time in turns without samples",
                        PROF_SUMMARY_NS, wall[PROF_ENTRY_TURN]);
    prof_summary_number(ctx, "unsampled_cpu",
                        "CPU time in turns without samples",
                        PROF_SUMMARY_NS, cpu[PROF_ENTRY_TURN]);

    prof_summary_number(ctx, "frequency_asked", "frequency asked for",
                        PROF_SUMMARY_HZ, p->frequency);
    prof_summary_number(ctx, "frequency_end", "frequency in force at the end",
                        PROF_SUMMARY_HZ, p->frequency_end);
    prof_summary_number(ctx, "frequency_effective",
                        "samples taken for each second in turns",
                        PROF_SUMMARY_HZ, prof_summary_frequency(p));
}


static void
prof_summary_measures(const prof_profile_t *p, prof_summary_ctx_t *ctx)
{
    uint32_t               i, m, n, unit, list[PROF_MEASURE_MAX];
    const prof_measure_t  *measure;

    n = prof_measure_list(p, list);

    for (i = 0; i < n; i++) {
        m = list[i];
        measure = &prof_measures[m];

        if (measure->series != PROF_SERIES_TIME) {
            unit = measure->unit == PROF_UNIT_BYTES ? PROF_SUMMARY_BYTES
                                                    : PROF_SUMMARY_COUNT;
            prof_summary_number(ctx, measure->name, measure->title, unit,
                                prof_measure_total(p, m));
        }
    }

    if (prof_measures[list[n - 1]].series != PROF_SERIES_MEMORY) {
        return;
    }

    prof_summary_number(ctx, "peak_space", "most bytes in use at one time",
                        PROF_SUMMARY_BYTES, p->peak_space);
    prof_summary_number(ctx, "peak_objects",
                        "most allocations in use at one time",
                        PROF_SUMMARY_COUNT, p->peak_objects);
    prof_summary_number(ctx, "alloc_interval",
                        "bytes between two sampled allocations, 0: all",
                        PROF_SUMMARY_BYTES, p->alloc_interval);
}


static void
prof_summary_stats(const prof_profile_t *p, prof_summary_ctx_t *ctx)
{
    size_t                    len;
    uint32_t                  code, exact, i, unit;
    const prof_frame_t       *f;
    const prof_stats_desc_t  *d;

    prof_summary_number(ctx, "lost", "samples lost by any cause",
                        PROF_SUMMARY_COUNT, prof_summary_lost(p));

    for (d = prof_stats_desc; d->name; d++) {
        len = strlen(d->name);

        unit = PROF_SUMMARY_COUNT;

        if (len > 3 && strcmp(d->name + len - 3, "_ns") == 0) {
            unit = PROF_SUMMARY_NS;
        }

        prof_summary_number(ctx, d->name, d->text, unit,
                            prof_stats_get(&p->stats, d));
    }

    code = 0;
    exact = 0;

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        if (prof_frame_is_code(f)) {
            code++;
            exact += prof_frame_is_exact(f);
        }
    }

    prof_summary_number(ctx, "addresses", "distinct addresses in the stacks",
                        PROF_SUMMARY_COUNT, code);
    prof_summary_number(ctx, "addresses_named",
                        "of these, known by the name of their function",
                        PROF_SUMMARY_COUNT, exact);
}


static void
prof_summary_start(const prof_profile_t *p, prof_summary_ctx_t *ctx)
{
    char       text[64];
    size_t     len;
    time_t     sec;
    struct tm  tm;

    sec = (time_t) (p->start_realtime / PROF_SUMMARY_NSEC);

    if (gmtime_r(&sec, &tm) == NULL) {
        return;
    }

    len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);

    (void) snprintf(text + len, sizeof(text) - len, ".%03uZ",
                    (unsigned) (p->start_realtime % PROF_SUMMARY_NSEC
                                / 1000000));

    prof_summary_text(ctx, "start", "start", text);
}


static void
prof_summary_text(prof_summary_ctx_t *ctx, const char *name, const char *text,
    const char *value)
{
    prof_summary_t  item;

    item.name = name;
    item.text = text;
    item.unit = PROF_SUMMARY_TEXT;
    item.value = value;
    item.number = 0;

    if (ctx->rc == PROF_OK) {
        ctx->rc = ctx->fn(ctx->data, &item);
    }
}


static void
prof_summary_number(prof_summary_ctx_t *ctx, const char *name,
    const char *text, uint32_t unit, uint64_t number)
{
    prof_summary_t  item;

    item.name = name;
    item.text = text;
    item.unit = unit;
    item.value = NULL;
    item.number = number;

    if (ctx->rc == PROF_OK) {
        ctx->rc = ctx->fn(ctx->data, &item);
    }
}


static uint64_t
prof_summary_lost(const prof_profile_t *p)
{
    return p->stats.lost_overrun + p->stats.lost_ring;
}


uint64_t
prof_summary_frequency(const prof_profile_t *p)
{
    double  frequency;

    if (p->running == 0) {
        return 0;
    }

    frequency = p->stats.samples * 1e9 / p->running + 0.5;

    /* an archive may contain numbers that no capture makes */

    return frequency < 1e18 ? (uint64_t) frequency : (uint64_t) 1e18;
}
