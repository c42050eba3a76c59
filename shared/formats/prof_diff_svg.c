
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A differential flamegraph.  The widths of boxes are those of "after", and
 * colors show the change.  Functions that are gone appear only in the page.
 */


#include "formats/prof_diff_style.h"
#include "formats/prof_encode.h"
#include "formats/prof_svg_plot.h"


static int prof_diff_svg_encode(const prof_profile_t *before,
    const prof_profile_t *after, uint32_t flags, prof_buf_t *b);


const prof_diff_encoder_t  prof_diff_svg = {
    "svg",
    "image/svg+xml",
    "svg",
    prof_diff_svg_encode,
    PROF_SVG_CSP
};


static int
prof_diff_svg_encode(const prof_profile_t *before,
    const prof_profile_t *after, uint32_t flags, prof_buf_t *b)
{
    int              rc;
    prof_diff_t      d;
    prof_svg_plot_t  plot;

    rc = prof_diff_init(&d, before, after, flags);

    if (rc == PROF_OK) {
        rc = prof_diff_plot(&plot, &d, PROF_DIFF_AFTER, PROF_SVG_SIZE);

        if (rc == PROF_OK) {
            rc = prof_encode_svg_document(&plot, b);
        }

        prof_svg_plot_free(&plot);
    }

    prof_diff_free(&d);

    return prof_buf_failed(b) ? PROF_ERROR : rc;
}
