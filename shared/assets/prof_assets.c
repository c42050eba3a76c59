
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "assets/prof_assets.h"


/* the assembler searches the include path of the compiler for the files */

#define PROF_ASSET_DATA(name, file)                                           \
    __asm__(".pushsection .rodata\n"                                          \
            ".hidden prof_asset_" #name "_start\n"                            \
            ".globl prof_asset_" #name "_start\n"                             \
            "prof_asset_" #name "_start:\n"                                   \
            ".incbin \"assets/" file "\"\n"                                   \
            ".hidden prof_asset_" #name "_end\n"                              \
            ".globl prof_asset_" #name "_end\n"                               \
            "prof_asset_" #name "_end:\n"                                     \
            ".byte 0\n"                                                       \
            ".popsection\n");                                                 \
                                                                              \
    extern const char  prof_asset_##name##_start[]                            \
        __attribute__((visibility("hidden")));                                \
    extern const char  prof_asset_##name##_end[]                              \
        __attribute__((visibility("hidden")));                                \
                                                                              \
    const prof_asset_t  prof_asset_##name = {                                 \
        file,                                                                 \
        prof_asset_##name##_start,                                            \
        prof_asset_##name##_end,                                              \
        PROF_ASSET_HASH_##name                                                \
    };

PROF_ASSETS(PROF_ASSET_DATA)


void
prof_asset_append(prof_buf_t *b, const prof_asset_t *asset)
{
    prof_buf_append(b, asset->start, asset->end - asset->start);
}
