
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Made by tools/update-asset-hashes.
 */


#ifndef _PROF_ASSETS_HASH_H_INCLUDED_
#define _PROF_ASSETS_HASH_H_INCLUDED_


#define PROF_ASSET_HASH_theme_css                                           \
    "'sha256-cNN+ofKPBQ4F8EztfmnxTOxymd4rYahFC1KdoWoY8ZE='"
#define PROF_ASSET_HASH_flame_css                                           \
    "'sha256-53yPd9U1GsGMGSslac6N6iHTP6h8JeJN6EGC8SPT0ro='"
#define PROF_ASSET_HASH_page_css                                            \
    "'sha256-rg7qiARtq1p33pjhpmOFtrHawpuLKMsYlmtrcNYhSa0='"
#define PROF_ASSET_HASH_flame_js                                            \
    "'sha256-ypD/MbkUXnCshwSrg9obbYSqn1kmxBVeqVZCL1xbZOs='"
#define PROF_ASSET_HASH_page_js                                             \
    "'sha256-u/vup+4gp3JhtjyQrbPyECc2b4ekzLe8IeCP6z92yZY='"


#endif /* _PROF_ASSETS_HASH_H_INCLUDED_ */
