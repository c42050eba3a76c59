
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The style of differential flamegraphs: colors show changes.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_DIFF_STYLE_H_INCLUDED_
#define _PROF_DIFF_STYLE_H_INCLUDED_


#include "base/prof_base.h"
#include "views/prof_diff.h"
#include "formats/prof_svg_plot.h"


PROF_HIDDEN_BEGIN

/* the style for plots of the view of a prof_diff_t, the plot's data */
extern const prof_svg_style_t  prof_diff_style;

/* returns the class of a change from one weight to another */
const char *prof_diff_class(const prof_diff_t *d, uint64_t before,
    uint64_t after);

/*
 * appends "+12.3 ms" or "-1.5 MB"; "+1.25%" of the whole if shares are
 * compared
 */
void prof_diff_change(const prof_diff_t *d, uint64_t before, uint64_t after,
    prof_buf_t *b);

/*
 * Makes the plot of a column: PROF_DIFF_BEFORE or PROF_DIFF_AFTER decides the
 * widths of boxes.  Returns PROF_OK, or PROF_ERROR if memory is short.  The
 * caller frees the plot in both cases.
 */
int prof_diff_plot(prof_svg_plot_t *plot, const prof_diff_t *d,
    uint32_t column, size_t size);

PROF_HIDDEN_END


#endif /* _PROF_DIFF_STYLE_H_INCLUDED_ */
