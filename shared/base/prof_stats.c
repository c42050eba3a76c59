
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_stats.h"


const prof_stats_desc_t  prof_stats_desc[] = {
#define PROF_STATS_DESC(name, text)                                           \
    { #name, text, offsetof(prof_stats_t, name) },
    PROF_STATS(PROF_STATS_DESC)
#undef PROF_STATS_DESC
    { NULL, NULL, 0 }
};


uint64_t
prof_stats_get(const prof_stats_t *st, const prof_stats_desc_t *d)
{
    return *(const uint64_t *) ((const char *) st + d->offset);
}


void
prof_stats_add(prof_stats_t *st, const prof_stats_t *from)
{
#define PROF_STATS_ADD(name, text)  st->name += from->name;
    PROF_STATS(PROF_STATS_ADD)
#undef PROF_STATS_ADD
}
