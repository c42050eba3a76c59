
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
    "'sha256-4rU99pOxuvS97aVuPyzNEUUpgZUpU0L0WBBFVCzbu5Q='"
#define PROF_ASSET_HASH_flame_js                                            \
    "'sha256-QwlUxrtbbqsRB54GbR57qpN7yVeAOUoYMboiDgRD8q8='"
#define PROF_ASSET_HASH_page_js                                             \
    "'sha256-H2nVQ7oDSHa5su9i7unNdL9ZA6//nl8UyyINj8q9HRA='"


#endif /* _PROF_ASSETS_HASH_H_INCLUDED_ */
