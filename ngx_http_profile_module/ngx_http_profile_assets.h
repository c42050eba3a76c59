
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Pages, styles and scripts of the console and of the bar, compiled in as
 * they are in the directory "assets", and prof_theme.css of the core.
 *
 * Styles and scripts are served below "assets/HASH/", where a new version has
 * another URL.  In pages, "{{NAME}}" stands for the relative URL of the asset
 * NAME, and "{{}}" for that of the console.
 */


#ifndef _NGX_HTTP_PROFILE_ASSETS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ASSETS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


/* a name for C, the directory, the file */

#define NGX_HTTP_PROFILE_ASSETS(x)                                            \
    x(theme_css,     "assets/",  "prof_theme.css")                            \
    x(console_css,   "assets/",  "console.css")                               \
    x(console_js,    "assets/",  "console.js")                                \
    x(status_html,   "assets/",  "status.html")                               \
    x(bar_css,       "assets/",  "bar.css")                                   \
    x(bar_js,        "assets/",  "bar.js")


PROF_HIDDEN_BEGIN

/* ngx_http_profile_assets.c: a file as it is; the name must be one of those */

void ngx_http_profile_asset(const char *name, ngx_str_t *text);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ASSETS_H_INCLUDED_ */
