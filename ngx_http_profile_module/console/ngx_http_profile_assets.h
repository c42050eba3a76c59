
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Pages, styles and scripts of the console and of the bar, compiled in as
 * they are in the directory "assets", and prof_theme.css of the core.
 *
 * Styles and scripts are served below "assets/HASH/", where a new version has
 * another URL.  In pages stand
 *
 *     {{}}           for the URL of the console
 *     {{NAME}}       for the URL of the asset NAME; if it is HTML, for itself
 *     {{:id}}        for a profile's id
 *     {{:viewer}}    for "on" if there is a viewer, or "off"
 *     {{:at NAME}}   for an attribute of links to NAME, if that is this page
 */


#ifndef _NGX_HTTP_PROFILE_ASSETS_H_INCLUDED_
#define _NGX_HTTP_PROFILE_ASSETS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "prof.h"


/* a name for C, the directory, the file */

#define NGX_HTTP_PROFILE_ASSETS(x)                                            \
    x(theme_css,      "assets/",  "prof_theme.css")                           \
    x(icon_svg,       "assets/",  "icon.svg")                                 \
    x(console_css,    "assets/",  "console.css")                              \
    x(console_js,     "assets/",  "console.js")                               \
    x(head_html,      "assets/",  "head.html")                                \
    x(top_html,       "assets/",  "top.html")                                 \
    x(profiles_html,  "assets/",  "profiles.html")                            \
    x(profiles_js,    "assets/",  "profiles.js")                              \
    x(capture_js,     "assets/",  "capture.js")                               \
    x(profile_html,   "assets/",  "profile.html")                             \
    x(profile_js,     "assets/",  "profile.js")                               \
    x(diff_html,      "assets/",  "diff.html")                                \
    x(diff_js,        "assets/",  "diff.js")                                  \
    x(status_html,    "assets/",  "status.html")                              \
    x(status_js,      "assets/",  "status.js")                                \
    x(pprof_html,     "assets/",  "pprof.html")                               \
    x(bar_css,        "assets/",  "bar.css")                                  \
    x(bar_dom_js,     "assets/",  "bar_dom.js")                               \
    x(bar_facts_js,   "assets/",  "bar_facts.js")                             \
    x(bar_orders_js,  "assets/",  "bar_orders.js")                            \
    x(bar_panels_js,  "assets/",  "bar_panels.js")                            \
    x(bar_js,         "assets/",  "bar.js")


PROF_HIDDEN_BEGIN

/* ngx_http_profile_assets.c: a file as it is; the name must be one of those */

void ngx_http_profile_asset(const char *name, ngx_str_t *text);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_ASSETS_H_INCLUDED_ */
