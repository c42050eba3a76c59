
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The boxes of a flamegraph as SVG, in a document of its own or in a page.
 *
 * Horizontal lengths are percentages, so the picture has the width of the
 * window without a script.  Each row is a viewport, and each box is a viewport
 * in it, which clips its text.  The rows are in one outer viewport: zooming
 * changes only its "x" and "width".
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_SVG_PLOT_H_INCLUDED_
#define _PROF_SVG_PLOT_H_INCLUDED_


#include "assets/prof_assets.h"
#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "views/prof_kind.h"
#include "views/prof_summary.h"
#include "views/prof_view.h"


/* bytes; with the script and the style, a document remains below 2 MB */

#define PROF_SVG_SIZE      1800000

#define PROF_SVG_CSP                                                          \
    "default-src 'none'; "                                                    \
    "style-src " PROF_ASSET_HASH_theme_css " " PROF_ASSET_HASH_flame_css "; " \
    "script-src " PROF_ASSET_HASH_flame_js "; "                               \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "           \
    "sandbox allow-scripts"


#define PROF_SVG_ROW    18      /* pixels */
#define PROF_SVG_DEPTH  160     /* frames; deeper ones are not shown */

#define PROF_SVG_NAME_MAX  512  /* bytes of a name that a box shows */


typedef struct prof_svg_plot_s  prof_svg_plot_t;


/* for pictures whose colors do not show kinds of code */

typedef struct {

    /* return the class of a box, and append the text after its weight */

    const char         *(*class)(const prof_svg_plot_t *plot, uint32_t node);
    void                (*tell)(const prof_svg_plot_t *plot, uint32_t node,
                                prof_buf_t *b);

    /* calls fn with the lines above the picture */

    void                (*notes)(const prof_svg_plot_t *plot,
                                 prof_notes_pt fn, void *data);

    const prof_kind_t    *legend;       /* all classes; ends with NULL */
} prof_svg_style_t;


struct prof_svg_plot_s {
    const prof_profile_t  *profile;
    const prof_view_t     *view;
    uint32_t               column;      /* column of the view */
    uint32_t               measure;     /* prof_measure_e */
    const char            *mode;        /* the script's name of the measure */
    const prof_svg_style_t
                          *style;       /* NULL: kinds of code */
    const void            *data;        /* of the style */
    uint32_t               rows;        /* with the row of the whole */
    uint64_t               min;         /* the least weight that is shown */
    uint32_t               nshown;
    uint32_t               nhidden;     /* boxes that are too narrow */
    uint32_t               ndeep;       /* wide enough, but too deep */
    uint64_t               hidden;      /* weight of both */
    uint32_t              *wide;        /* nodes that may be wide enough */
    uint32_t               nwide;
    uint32_t               nnodes;      /* of any weight */
    uint32_t               kinds[PROF_KIND_MAX];    /* boxes of the kind */
    uint32_t               ninferred;   /* boxes with an inferred name */
    uint32_t              *cost;        /* bytes of a function's box */
    uint32_t              *kind;        /* kinds of functions */
};


PROF_HIDDEN_BEGIN

/*
 * Chooses the heaviest boxes, for an output of about "size" bytes.  The view
 * was ordered with PROF_VIEW_SHARE.  Returns PROF_OK, or PROF_ERROR if memory
 * is short.
 */
int prof_svg_plot_init(prof_svg_plot_t *plot, const prof_profile_t *p,
    const prof_view_t *v, uint32_t column, size_t size);
void prof_svg_plot_free(prof_svg_plot_t *plot);

/*
 * Appends the element <svg class="prof-plot">. "place" contains its attributes
 * "x", "y" and "width"; its height is rows * PROF_SVG_ROW.  Returns PROF_OK,
 * or PROF_ERROR if memory is short.
 */
int prof_svg_plot_write(const prof_svg_plot_t *plot, const char *place,
    prof_buf_t *b);

/*
 * The class of boxes with an inferred name, which they have besides the class
 * of their kind; and its text for legends.
 */
#define PROF_SVG_INFERRED       "i"
#define PROF_SVG_INFERRED_TEXT  "inferred name"

/* appends the patterns that fill boxes; a document contains them once */
void prof_svg_plot_defs(prof_buf_t *b);

/*
 * Appends "800 of 1000 boxes are shown, ...", without markup, for plots with
 * hidden boxes.
 */
void prof_svg_plot_hidden(const prof_svg_plot_t *plot, prof_buf_t *b);

/*
 * Appends a document with the plot, its notes and its legend.  In
 * prof_encode_svg.c.  Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_encode_svg_document(const prof_svg_plot_t *plot, prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_SVG_PLOT_H_INCLUDED_ */
