
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "profile/prof_measure.h"
#include "views/prof_summary.h"

#include <inttypes.h>
#include <string.h>


/* notes do not mention fewer lost samples */
#define PROF_NOTES_LOST_MIN  10


typedef struct {
    const prof_profile_t  *profile;
    prof_notes_pt          fn;
    void                  *data;
    prof_buf_t             line;
} prof_notes_ctx_t;


static void prof_notes_root(prof_notes_ctx_t *ctx);
static void prof_notes_memory(prof_notes_ctx_t *ctx);
static void prof_notes_not_counted(prof_notes_ctx_t *ctx);
static void prof_notes_objects(prof_notes_ctx_t *ctx, const char *text,
    uint64_t space, uint64_t objects);
static void prof_notes_times(prof_notes_ctx_t *ctx);
static void prof_notes_parts(prof_notes_ctx_t *ctx);
static void prof_notes_samples(prof_notes_ctx_t *ctx);
static void prof_notes_clock(prof_notes_ctx_t *ctx);
static void prof_notes_doubts(prof_notes_ctx_t *ctx);
static void prof_notes_lost(prof_notes_ctx_t *ctx);
static void prof_notes_count(prof_notes_ctx_t *ctx, uint64_t n,
    const char *text);
static void prof_notes_line(prof_notes_ctx_t *ctx, int warning);


void
prof_notes(const prof_profile_t *p, prof_notes_pt fn, void *data)
{
    uint32_t          n, list[PROF_MEASURE_MAX];
    prof_notes_ctx_t  ctx;

    ctx.profile = p;
    ctx.fn = fn;
    ctx.data = data;
    prof_buf_init(&ctx.line);

    prof_notes_root(&ctx);

    n = prof_measure_list(p, list);

    if (prof_measures[list[n - 1]].series == PROF_SERIES_MEMORY) {
        prof_notes_memory(&ctx);
    }

    if (prof_measures[list[0]].series == PROF_SERIES_TIME) {
        prof_notes_times(&ctx);
        prof_notes_samples(&ctx);
        prof_notes_clock(&ctx);
        prof_notes_doubts(&ctx);
    }

    prof_buf_free(&ctx.line);
}


void
prof_notes_empty(const prof_profile_t *p, prof_buf_t *b)
{
    uint32_t     i;
    const char  *what;

    what = "capture";

    for (i = 0; i < p->nfacts; i++) {
        if (strcmp(p->facts[i].name, "request") == 0) {
            what = "request";
        }
    }

    prof_buf_printf(b, "%" PRIu64 " samples, the %s used ", p->stats.samples,
                    what);
    prof_summary_duration(b, p->cpu);
    prof_buf_puts(b, " of CPU time");
}


/* prof_root_keep() adds the fact */

static void
prof_notes_root(prof_notes_ctx_t *ctx)
{
    uint32_t            i;
    const prof_fact_t  *fact;

    for (i = 0; i < ctx->profile->nfacts; i++) {
        fact = &ctx->profile->facts[i];

        if (strcmp(fact->name, "root") == 0) {
            prof_buf_printf(&ctx->line, "Only stacks through %s are shown; "
                            "times and counters are those of the whole "
                            "capture", fact->value);
            prof_notes_line(ctx, 0);
        }
    }
}


static void
prof_notes_memory(prof_notes_ctx_t *ctx)
{
    const prof_profile_t  *p;

    p = ctx->profile;

    prof_notes_objects(ctx, "Allocated: ",
                       prof_measure_total(p, PROF_MEASURE_ALLOC_SPACE),
                       prof_measure_total(p, PROF_MEASURE_ALLOC_OBJECTS));
    prof_notes_objects(ctx, ", in use at the end: ",
                       prof_measure_total(p, PROF_MEASURE_INUSE_SPACE),
                       prof_measure_total(p, PROF_MEASURE_INUSE_OBJECTS));

    if (p->peak_space) {
        prof_notes_objects(ctx, ", at most at one time: ", p->peak_space,
                           p->peak_objects);
    }

    prof_notes_line(ctx, 0);

    prof_notes_not_counted(ctx);

    if (p->alloc_interval) {
        prof_buf_puts(&ctx->line, "Allocations were sampled, ");
        prof_summary_interval(p, &ctx->line);
        prof_buf_puts(&ctx->line, ": all numbers of them are estimates");
        prof_notes_line(ctx, 0);
    }

    if (p->stats.lost_live) {
        prof_buf_printf(&ctx->line, "More allocations at a time than can be "
                        "followed: %" PRIu64 " are not among those in use",
                        p->stats.lost_live);
        prof_notes_line(ctx, 1);
    }

    if (p->stats.lost_hooks) {
        prof_buf_printf(&ctx->line, "Allocations or frees that could not be "
                        "counted: %" PRIu64, p->stats.lost_hooks);
        prof_notes_line(ctx, 1);
    }
}


static void
prof_notes_not_counted(prof_notes_ctx_t *ctx)
{
    const char  *text;

    text = prof_summary_not_counted(ctx->profile);

    if (text) {
        prof_buf_printf(&ctx->line, "Not counted: %s", text);
        prof_notes_line(ctx, prof_measure_total(ctx->profile,
                                                PROF_MEASURE_ALLOC_SPACE)
                             == 0);
    }
}


static void
prof_notes_objects(prof_notes_ctx_t *ctx, const char *text, uint64_t space,
    uint64_t objects)
{
    prof_buf_puts(&ctx->line, text);
    prof_summary_size(&ctx->line, space);
    prof_buf_printf(&ctx->line, " in %" PRIu64 " object%s", objects,
                    objects == 1 ? "" : "s");
}


static void
prof_notes_times(prof_notes_ctx_t *ctx)
{
    const prof_profile_t  *p;

    p = ctx->profile;

    if (p->duration) {
        prof_summary_duration(&ctx->line, p->duration);
        prof_buf_puts(&ctx->line, " from start to end, ");
    }

    prof_summary_duration(&ctx->line, p->wall);
    prof_buf_puts(&ctx->line, p->duration ? " of all threads: "
                                          : " from start to end: ");
    prof_summary_duration(&ctx->line, p->running);
    prof_buf_puts(&ctx->line, " running");

    /* captures of workers have no turns */

    if (p->stats.turns) {
        prof_buf_printf(&ctx->line, " in %" PRIu64 " turn%s", p->stats.turns,
                        p->stats.turns == 1 ? "" : "s");
    }

    prof_buf_puts(&ctx->line, ", ");
    prof_summary_duration(&ctx->line,
                          p->wall > p->running ? p->wall - p->running : 0);
    prof_buf_puts(&ctx->line, " waiting");

    prof_notes_line(ctx, 0);

    prof_notes_parts(ctx);
}


/* the parts of all time in hundredths, which add up to a whole */

static void
prof_notes_parts(prof_notes_ctx_t *ctx)
{
    size_t                i, n;
    uint64_t              rest;
    const char           *comma;
    prof_summary_parts_t  parts;

    const struct {
        const char  *text;
        uint64_t    *value;
    } rows[] = {
        { "CPU", &parts.cpu },
        { "no processor", &parts.no_processor },
        { "blocked in a call", &parts.blocked },
        { "not running, unknown why", &parts.unknown },
        { "waiting", &parts.waiting }
    };

    prof_summary_parts(ctx->profile, &parts);

    if (ctx->profile->wall == 0) {
        return;
    }

    /* the largest part gets what rounding leaves */

    n = 0;
    rest = 1000;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        *rows[i].value = (uint64_t) (1000. * *rows[i].value
                                     / ctx->profile->wall);
        rest -= *rows[i].value;

        if (*rows[i].value > *rows[n].value) {
            n = i;
        }
    }

    *rows[n].value += rest;

    comma = "Of all time: ";

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {

        if (*rows[i].value) {
            prof_buf_printf(&ctx->line, "%s%" PRIu64 ".%" PRIu64 "%% %s",
                            comma, *rows[i].value / 10, *rows[i].value % 10,
                            rows[i].text);
            comma = ", ";
        }
    }

    prof_notes_line(ctx, 0);
}


static void
prof_notes_samples(prof_notes_ctx_t *ctx)
{
    uint64_t               lost;
    const prof_stats_t    *st;
    const prof_profile_t  *p;

    p = ctx->profile;
    st = &p->stats;

    lost = st->lost_overrun + st->lost_ring;

    prof_buf_printf(&ctx->line, "%" PRIu64 " sample%s, ", st->samples,
                    st->samples == 1 ? "" : "s");
    prof_buf_number(&ctx->line, prof_summary_frequency(p));
    prof_buf_printf(&ctx->line, " Hz (asked: %" PRIu32 " Hz), lost: %" PRIu64,
                    p->frequency, lost);

    if (lost) {
        prof_buf_printf(&ctx->line, " (%" PRIu64 " too late, %" PRIu64
                        " ring full)", st->lost_overrun, st->lost_ring);
    }

    prof_buf_printf(&ctx->line, ", truncated: %" PRIu64, st->truncated);

    prof_notes_line(ctx, 0);
}


static void
prof_notes_clock(prof_notes_ctx_t *ctx)
{
    uint32_t               i;
    uint64_t               cpu;
    const prof_series_t   *s;
    const prof_profile_t  *p;

    p = ctx->profile;
    s = &p->series[PROF_SERIES_TIME];
    cpu = 0;

    for (i = 0; i < s->n; i++) {
        cpu += prof_series_entry(s, i)->values[PROF_VALUE_CPU];
    }

    prof_buf_puts(&ctx->line, "CPU clock: ");
    prof_summary_duration(&ctx->line, p->cpu);
    prof_buf_puts(&ctx->line, ", sum of the stacks: ");
    prof_summary_duration(&ctx->line, cpu);
    prof_buf_puts(&ctx->line, ", the profiler's own time: ");
    prof_summary_duration(&ctx->line, p->stats.own_start_ns
                                      + p->stats.own_handler_ns
                                      + p->stats.own_fold_ns);

    prof_notes_line(ctx, 0);
}


static void
prof_notes_doubts(prof_notes_ctx_t *ctx)
{
    double                 due;
    const prof_stats_t    *st;
    const prof_profile_t  *p;

    p = ctx->profile;
    st = &p->stats;

    if (st->samples == 0) {
        prof_notes_empty(p, &ctx->line);
        prof_buf_puts(&ctx->line, st->turns ? ": turns are shown as a whole"
                                            : "");
        prof_notes_line(ctx, 1);

    } else {
        /* a thread that is stopped or waits in a call may have no samples */

        due = (p->cpu < p->running ? p->cpu : p->running) * 1e-9
              * p->frequency;

        if (st->samples + st->postponed < due / 2 && p->running > 100000000) {
            prof_buf_puts(&ctx->line, "Sampled at less than half of the "
                          "frequency that was asked for");
            prof_notes_line(ctx, 1);
        }
    }

    prof_notes_lost(ctx);

    prof_notes_count(ctx, st->lost_traces,
                     "without their trace, of which there were too many");
    prof_notes_count(ctx, st->truncated, "deeper than the limit");
    prof_notes_count(ctx, st->no_unwind,
                     "end at code without unwind information");
    prof_notes_count(ctx, st->bad_stack, "end at an unreadable address");
    prof_notes_count(ctx, st->lost_tree,
                     "cut because the call tree was full");
}


/*
 * A timer that expired while the thread was stopped, because another process
 * had the processor, does not make the picture coarse: all of these samples
 * would have had the same stack.  The reader is told why samples are missing.
 * Other losses make the picture coarse.  A few samples of a short capture are
 * lost by chance.
 */

static void
prof_notes_lost(prof_notes_ctx_t *ctx)
{
    double                 few;
    uint64_t               lost, stopped;
    const prof_stats_t    *st;
    const prof_profile_t  *p;

    p = ctx->profile;
    st = &p->stats;

    few = st->samples / 10.;
    lost = st->lost_overrun + st->lost_ring;

    stopped = p->running > p->cpu
              ? (p->running - p->cpu) * 1e-9 * p->frequency : 0;

    if (stopped > st->lost_overrun) {
        stopped = st->lost_overrun;
    }

    if (stopped >= PROF_NOTES_LOST_MIN && stopped > few) {
        prof_buf_printf(&ctx->line, "The machine was busy: %" PRIu64 " of %"
                        PRIu64 " samples were not taken because the process "
                        "did not get the CPU", stopped, st->samples + lost);
        prof_notes_line(ctx, 1);
    }

    lost -= stopped;

    if (lost >= PROF_NOTES_LOST_MIN && lost > few) {
        prof_buf_puts(&ctx->line, "More than one in ten samples was lost");
        prof_notes_line(ctx, 1);
    }
}


static void
prof_notes_count(prof_notes_ctx_t *ctx, uint64_t n, const char *text)
{
    if (n == 0) {
        return;
    }

    prof_buf_printf(&ctx->line, "Stacks %s: %" PRIu64, text, n);
    prof_notes_line(ctx, 1);
}


static void
prof_notes_line(prof_notes_ctx_t *ctx, int warning)
{
    if (!prof_buf_failed(&ctx->line)) {
        ctx->fn(ctx->data, &ctx->line, warning);
    }

    prof_buf_free(&ctx->line);
}
