
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
    "'sha256-0cxKFHi17osIn7WdS0yyZwA5NlYPgfoMe+J/z1/IOU0='"
#define PROF_ASSET_HASH_page_css                                            \
    "'sha256-aGy83NF4eksje2aOb9ANe6QLTuXRO5pl8+E37xrKtIQ='"
#define PROF_ASSET_HASH_flame_js                                            \
    "'sha256-QwlUxrtbbqsRB54GbR57qpN7yVeAOUoYMboiDgRD8q8='"
#define PROF_ASSET_HASH_page_js                                             \
    "'sha256-3wmtAGUi3UBx28BcIsBLfRM+aMEEu5Hn14cpBY7SOEc='"


#endif /* _PROF_ASSETS_HASH_H_INCLUDED_ */
