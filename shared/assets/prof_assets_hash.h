
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Made by tools/update-asset-hashes.
 */


#ifndef _PROF_ASSETS_HASH_H_INCLUDED_
#define _PROF_ASSETS_HASH_H_INCLUDED_


#define PROF_ASSET_HASH_theme_css                                           \
    "'sha256-9zA9LICaz4AGHW7p5+RTqnlpQP6pt5f5Y6B3J1LDfJ0='"
#define PROF_ASSET_HASH_flame_css                                           \
    "'sha256-BEPJM19qK3vH5bbzWoTHd5VhYIhYYm3tHWX6sskMu3c='"
#define PROF_ASSET_HASH_page_css                                            \
    "'sha256-nrerWxXBDwiqCheIKTZ1uQwA1Bdkpw8h+iPCXwzCO3g='"
#define PROF_ASSET_HASH_flame_js                                            \
    "'sha256-WE17IBuNSQ15mnoNvn38smLXZP2omci/6YihHnupmW4='"
#define PROF_ASSET_HASH_page_js                                             \
    "'sha256-VJLNZ6AMVcX+Tre32ZBUYepbChs9op1N3BMPDnlU/No='"


#endif /* _PROF_ASSETS_HASH_H_INCLUDED_ */
