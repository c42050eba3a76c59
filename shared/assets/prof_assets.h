
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Styles and scripts of pictures and pages.  The files beside this one are
 * compiled in unchanged.
 *
 * A document contains each of them alone between the tags of its element.  The
 * policy of the document permits them by their hashes, which are constants.
 * After a change of a file run tools/update-asset-hashes.
 *
 * No file contains a carriage return, "]]>", "</script" or "</style".
 */


#ifndef _PROF_ASSETS_H_INCLUDED_
#define _PROF_ASSETS_H_INCLUDED_


#include "assets/prof_assets_hash.h"
#include "base/prof_base.h"
#include "base/prof_buf.h"


/* each line: a name for C, and the file */

#define PROF_ASSETS(x)                                                        \
    x(theme_css,  "prof_theme.css")                                           \
    x(flame_css,  "prof_flame.css")                                           \
    x(page_css,   "prof_page.css")                                            \
    x(flame_js,   "prof_flame.js")                                            \
    x(page_js,    "prof_page.js")


typedef struct {
    const char  *file;
    const char  *start;
    const char  *end;
    const char  *hash;          /* as in a policy, with quotes */
} prof_asset_t;


PROF_HIDDEN_BEGIN

#define PROF_ASSET_EXTERN(name, file)                                         \
    extern const prof_asset_t  prof_asset_##name;
PROF_ASSETS(PROF_ASSET_EXTERN)
#undef PROF_ASSET_EXTERN

void prof_asset_append(prof_buf_t *b, const prof_asset_t *asset);

PROF_HIDDEN_END


#endif /* _PROF_ASSETS_H_INCLUDED_ */
