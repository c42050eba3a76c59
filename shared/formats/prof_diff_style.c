
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_diff_style.h"
#include "formats/prof_text.h"
#include "profile/prof_measure.h"
#include "views/prof_summary.h"


/* colors do not show changes of less than 1 / 2000 of the whole */

#define PROF_DIFF_SHARE   2000

/* limits of darker colors, in percent of the larger weight */

#define PROF_DIFF_SMALL   2
#define PROF_DIFF_MEDIUM  20
#define PROF_DIFF_LARGE   60


static const char *prof_diff_style_class(const prof_svg_plot_t *plot,
    uint32_t node);
static void prof_diff_style_tell(const prof_svg_plot_t *plot, uint32_t node,
    prof_buf_t *b);
static void prof_diff_style_notes(const prof_svg_plot_t *plot,
    prof_notes_pt fn, void *data);


static const prof_kind_t  prof_diff_legend[] = {
    { "more3", "60% more, or new" },
    { "more2", "20% more" },
    { "more1", "2% more" },
    { "same",  "the same" },
    { "less1", "2% less" },
    { "less2", "20% less" },
    { "less3", "60% less, or gone" },
    { NULL, NULL }
};


const prof_svg_style_t  prof_diff_style = {
    prof_diff_style_class,
    prof_diff_style_tell,
    prof_diff_style_notes,
    prof_diff_legend
};


int
prof_diff_plot(prof_svg_plot_t *plot, const prof_diff_t *d, uint32_t column,
    size_t size)
{
    int  rc;

    rc = prof_svg_plot_init(plot, d->merged, d->view, column, size);

    plot->mode = column == PROF_DIFF_AFTER ? "after" : "before";
    plot->style = &prof_diff_style;
    plot->data = d;

    return rc;
}


const char *
prof_diff_class(const prof_diff_t *d, uint64_t before, uint64_t after)
{
    double       change, large, part;
    const char  *const *classes;

    static const char  *more[] = { "same", "more1", "more2", "more3" };
    static const char  *less[] = { "same", "less1", "less2", "less3" };

    before = prof_diff_scale(d, before);

    classes = after > before ? more : less;
    large = after > before ? after : before;
    change = after > before ? after - before : before - after;

    if (change * PROF_DIFF_SHARE < d->view->whole[PROF_DIFF_AFTER]) {
        return classes[0];
    }

    part = change / large * 100;

    return classes[(part >= PROF_DIFF_SMALL) + (part >= PROF_DIFF_MEDIUM)
                   + (part >= PROF_DIFF_LARGE)];
}


static const char *
prof_diff_style_class(const prof_svg_plot_t *plot, uint32_t node)
{
    return prof_diff_class(plot->data,
                           prof_view_total(plot->view, node,
                                           PROF_DIFF_BEFORE),
                           prof_view_total(plot->view, node,
                                           PROF_DIFF_AFTER));
}


/* appends "; before 8.0 ms, 3.10%; change +4.3 ms" */

static void
prof_diff_style_tell(const prof_svg_plot_t *plot, uint32_t node,
    prof_buf_t *b)
{
    uint32_t            other;
    uint64_t            after, before, weight;
    const prof_diff_t  *d;

    d = plot->data;

    before = prof_view_total(plot->view, node, PROF_DIFF_BEFORE);
    after = prof_view_total(plot->view, node, PROF_DIFF_AFTER);

    other = plot->column == PROF_DIFF_AFTER ? PROF_DIFF_BEFORE
                                            : PROF_DIFF_AFTER;
    weight = prof_view_total(plot->view, node, other);

    prof_buf_puts(b, other == PROF_DIFF_BEFORE ? "; before " : "; after ");
    prof_measure_value(b, prof_measures[plot->measure].unit, weight);
    prof_buf_puts(b, ", ");
    prof_markup_percent(b, weight, plot->view->whole[other], 2);
    prof_buf_puts(b, "%; change ");
    prof_diff_change(d, before, after, b);
}


static void
prof_diff_style_notes(const prof_svg_plot_t *plot, prof_notes_pt fn,
    void *data)
{
    uint32_t            i;
    prof_buf_t          line;
    const prof_diff_t  *d;

    d = plot->data;

    for (i = 0; i < 2; i++) {
        prof_buf_init(&line);
        prof_buf_puts(&line, i ? "After: " : "Before: ");
        prof_summary_line(d->profile[i], d->measure, &line);

        if (!prof_buf_failed(&line)) {
            fn(data, &line, 0);
        }

        prof_buf_free(&line);
    }

    prof_buf_puts(&line, "Change: ");

    if (d->flags & PROF_DIFF_NORMALIZED) {
        prof_buf_puts(&line, "shares of the whole are compared");

    } else {
        prof_diff_change(d, d->view->whole[PROF_DIFF_BEFORE],
                         d->view->whole[PROF_DIFF_AFTER], &line);
    }

    if (!prof_buf_failed(&line)) {
        fn(data, &line, 0);
    }

    prof_buf_free(&line);
}


void
prof_diff_change(const prof_diff_t *d, uint64_t before, uint64_t after,
    prof_buf_t *b)
{
    uint64_t  change;

    before = prof_diff_scale(d, before);
    change = after > before ? after - before : before - after;

    prof_buf_puts(b, after > before ? "+" : after < before ? "-" : "");

    if (d->flags & PROF_DIFF_NORMALIZED) {
        prof_markup_percent(b, change, d->view->whole[PROF_DIFF_AFTER], 2);
        prof_buf_puts(b, "%");

    } else {
        prof_measure_value(b, prof_measures[d->measure].unit, change);
    }
}
