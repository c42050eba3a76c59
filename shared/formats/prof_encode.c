
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_encode.h"

#include <string.h>


const prof_encoder_t  *const prof_encoders[] = {
#define PROF_ENCODER_ROW(name)  &prof_encode_##name,
    PROF_ENCODERS(PROF_ENCODER_ROW)
#undef PROF_ENCODER_ROW
    NULL
};


const prof_diff_encoder_t  *const prof_diff_encoders[] = {
#define PROF_DIFF_ROW(name)  &prof_diff_##name,
    PROF_DIFF_ENCODERS(PROF_DIFF_ROW)
#undef PROF_DIFF_ROW
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


const prof_diff_encoder_t *
prof_diff_find(const char *name, size_t len)
{
    size_t  i;

    for (i = 0; prof_diff_encoders[i]; i++) {
        if (strlen(prof_diff_encoders[i]->name) == len
            && memcmp(prof_diff_encoders[i]->name, name, len) == 0)
        {
            return prof_diff_encoders[i];
        }
    }

    return NULL;
}
