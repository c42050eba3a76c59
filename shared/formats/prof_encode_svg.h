
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A flamegraph as a document of its own, whatever it tells.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_ENCODE_SVG_H_INCLUDED_
#define _PROF_ENCODE_SVG_H_INCLUDED_


#include "assets/prof_assets.h"
#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "formats/prof_svg_plot.h"


/* with the script and the style it remains below 2 MB */

#define PROF_SVG_SIZE      1800000

#define PROF_SVG_CSP                                                          \
    "default-src 'none'; "                                                    \
    "style-src " PROF_ASSET_HASH_theme_css " " PROF_ASSET_HASH_flame_css "; " \
    "script-src " PROF_ASSET_HASH_flame_js "; "                               \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "           \
    "sandbox allow-scripts"


PROF_HIDDEN_BEGIN

/* PROF_OK, or PROF_ERROR when memory is short */
int prof_encode_svg_document(const prof_svg_plot_t *plot, prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_ENCODE_SVG_H_INCLUDED_ */
