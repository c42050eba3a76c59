
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Made by tools/update-asset-hashes.
 */


#ifndef _PROF_ASSETS_HASH_H_INCLUDED_
#define _PROF_ASSETS_HASH_H_INCLUDED_


#define PROF_ASSET_HASH_theme_css                                           \
    "'sha256-9jdNXp93tZ+0zwaXjEQI/cAinrD00NwPrZ4jPZLq+V8='"
#define PROF_ASSET_HASH_flame_css                                           \
    "'sha256-BEPJM19qK3vH5bbzWoTHd5VhYIhYYm3tHWX6sskMu3c='"
#define PROF_ASSET_HASH_page_css                                            \
    "'sha256-nrerWxXBDwiqCheIKTZ1uQwA1Bdkpw8h+iPCXwzCO3g='"
#define PROF_ASSET_HASH_flame_js                                            \
    "'sha256-HwGpa8A01LvUzU06cIhPjSvjMxzzDVx+y/CaXjYMD/U='"
#define PROF_ASSET_HASH_page_js                                             \
    "'sha256-VJLNZ6AMVcX+Tre32ZBUYepbChs9op1N3BMPDnlU/No='"


#endif /* _PROF_ASSETS_HASH_H_INCLUDED_ */
