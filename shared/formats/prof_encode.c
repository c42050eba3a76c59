
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_encode.h"

#include <string.h>


const prof_encoder_t  *const prof_encoders[] = {
    &prof_encode_speedscope,
    &prof_encode_pprof,
    &prof_encode_folded,
    &prof_encode_svg,
    &prof_encode_html,
    NULL
};


const prof_encoder_t *
prof_encoder_find(const char *name, size_t len)
{
    size_t  i;

    for (i = 0; prof_encoders[i]; i++) {
        if (strlen(prof_encoders[i]->name) == len
            && memcmp(prof_encoders[i]->name, name, len) == 0)
        {
            return prof_encoders[i];
        }
    }

    return NULL;
}
