
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Made by tools/update-asset-hashes.
 */


#ifndef _PROF_ASSETS_HASH_H_INCLUDED_
#define _PROF_ASSETS_HASH_H_INCLUDED_


#define PROF_ASSET_HASH_theme_css                                           \
    "'sha256-ftrQObfY2jxXFjuHkayg0c0F3zdE5uATGYZHSkkzU20='"
#define PROF_ASSET_HASH_flame_css                                           \
    "'sha256-8sbwb99jmE+T3TNyUvC1HU1hiZ+yvgFNw1i1NtnkNnM='"
#define PROF_ASSET_HASH_page_css                                            \
    "'sha256-FXrO3QJkb0+Kx7IEcBgmJSOe+I88KS95d1YDbwf4EfY='"
#define PROF_ASSET_HASH_flame_js                                            \
    "'sha256-7NTheLVBqKRQh9jFN/zidgd82Ck4LttE6ouKTE28vcg='"
#define PROF_ASSET_HASH_page_js                                             \
    "'sha256-O6y7pj74FtRi3HPmLUfnjLmB/ejQN9TtDJR+eCiomRA='"


#endif /* _PROF_ASSETS_HASH_H_INCLUDED_ */
