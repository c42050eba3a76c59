
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
    "'sha256-WM5LpCF7MFFc621y8Sl+Zw8BbDNB65A99P562bFrdHQ='"
#define PROF_ASSET_HASH_page_css                                            \
    "'sha256-oi8fBHuuwIbeBD52iPg+brHsYVRuAUU/cuUVjZkCrio='"
#define PROF_ASSET_HASH_flame_js                                            \
    "'sha256-A8wRtyR15zJFldg2lukCDFWJR1qhWpoR6SbXbUHR05g='"
#define PROF_ASSET_HASH_page_js                                             \
    "'sha256-O6y7pj74FtRi3HPmLUfnjLmB/ejQN9TtDJR+eCiomRA='"


#endif /* _PROF_ASSETS_HASH_H_INCLUDED_ */
