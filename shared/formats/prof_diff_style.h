
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * How differences look in a flamegraph: the colors are those of changes.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_DIFF_STYLE_H_INCLUDED_
#define _PROF_DIFF_STYLE_H_INCLUDED_


#include "base/prof_base.h"
#include "views/prof_diff.h"
#include "formats/prof_svg_plot.h"


PROF_HIDDEN_BEGIN

/* for plots of a difference's view, whose data is the difference */
extern const prof_svg_style_t  prof_diff_style;

/* the class of a change from one weight to another */
const char *prof_diff_class(const prof_diff_t *d, uint64_t before,
    uint64_t after);

/* "+12.3 ms", "-1.5 MB"; "+1.25%" of the whole if shares are compared */
void prof_diff_change(const prof_diff_t *d, uint64_t before, uint64_t after,
    prof_buf_t *b);

/*
 * The plot of a column: boxes are as wide as they were before, or after.
 * PROF_OK, or PROF_ERROR when memory is short; to be freed in any case.
 */
int prof_diff_plot(prof_svg_plot_t *plot, const prof_diff_t *d,
    uint32_t column, size_t size);

PROF_HIDDEN_END


#endif /* _PROF_DIFF_STYLE_H_INCLUDED_ */
