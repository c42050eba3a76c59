
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The parts of pages with flamegraphs.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_HTML_PAGE_H_INCLUDED_
#define _PROF_HTML_PAGE_H_INCLUDED_


#include "assets/prof_assets.h"
#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "views/prof_view.h"


#define PROF_HTML_TEXT_MAX  2048

#define PROF_HTML_CSP                                                         \
    "default-src 'none'; "                                                    \
    "style-src " PROF_ASSET_HASH_theme_css " " PROF_ASSET_HASH_flame_css " "  \
    PROF_ASSET_HASH_page_css "; "                                             \
    "script-src " PROF_ASSET_HASH_flame_js " " PROF_ASSET_HASH_page_js "; "   \
    "img-src data:; "                                                         \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "           \
    "sandbox allow-scripts allow-downloads"


PROF_HIDDEN_BEGIN

/* appends the beginning of a page, up to the heading in "header" */
void prof_html_page_open(prof_buf_t *b, const char *title,
    const char *suffix);

/* appends the end of a page, from the end of the element "main" */
void prof_html_page_close(prof_buf_t *b);

/* appends a text, escaped; a long text is cut */
void prof_html_text(prof_buf_t *b, const char *s);

/* appends a line of prof_notes() as an item of a list; data is the buffer */
void prof_html_note(void *data, const prof_buf_t *line, int warning);

/*
 * Appends tables of self and total weights: by function, by module or library,
 * and by kind of code.  Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_html_tables(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b);

/*
 * Appends a table of the sets of labels, workers and threads, if there are at
 * least two of them.  Returns PROF_OK, or PROF_ERROR if memory is short.
 */
int prof_html_labels(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_HTML_PAGE_H_INCLUDED_ */
