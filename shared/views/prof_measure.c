
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "views/prof_measure.h"


const prof_measure_t  prof_measures[] = {
#define PROF_MEASURE_ROW(id, name, text, title, whole, unit)                  \
    { name, text, title, whole, PROF_UNIT_##unit },
    PROF_MEASURES(PROF_MEASURE_ROW)
#undef PROF_MEASURE_ROW
};


uint32_t
prof_measure_list(const prof_profile_t *p, uint32_t *list)
{
    int       memory, time;
    uint32_t  m, n;

    memory = p->mode == PROF_MODE_OBJECT || p->nallocs;
    time = p->mode != PROF_MODE_OBJECT || p->nentries;

    n = 0;

    for (m = 0; m < PROF_MEASURE_MAX; m++) {
        if (prof_measure_is_memory(m) ? memory : time) {
            list[n++] = m;
        }
    }

    return n;
}


uint32_t
prof_measure_first(const prof_profile_t *p)
{
    switch (p->mode) {

    case PROF_MODE_CPU:
        return PROF_MEASURE_CPU;

    case PROF_MODE_OBJECT:
        return p->inuse ? PROF_MEASURE_INUSE_SPACE : PROF_MEASURE_ALLOC_SPACE;

    default:
        return PROF_MEASURE_WALL;
    }
}


const char *
prof_measure_mode(uint32_t measure)
{
    return prof_measure_is_memory(measure) ? "object"
                                           : prof_measures[measure].name;
}


uint64_t
prof_measure_entry(const prof_entry_t *e, uint32_t measure)
{
    switch (measure) {

    case PROF_MEASURE_WALL:
        return e->wall;

    case PROF_MEASURE_CPU:
        return e->cpu;

    default:
        return 0;
    }
}


uint64_t
prof_measure_alloc(const prof_alloc_t *a, uint32_t measure)
{
    switch (measure) {

    case PROF_MEASURE_ALLOC_SPACE:
        return a->alloc_space;

    case PROF_MEASURE_ALLOC_OBJECTS:
        return a->alloc_objects;

    case PROF_MEASURE_INUSE_SPACE:
        return a->inuse_space;

    case PROF_MEASURE_INUSE_OBJECTS:
        return a->inuse_objects;

    default:
        return 0;
    }
}


uint64_t
prof_measure_total(const prof_profile_t *p, uint32_t measure)
{
    uint32_t  i;
    uint64_t  sum;

    if (!prof_measure_is_memory(measure)) {
        return measure == PROF_MEASURE_CPU ? p->cpu : p->wall;
    }

    sum = 0;

    for (i = 0; i < p->nallocs; i++) {
        sum += prof_measure_alloc(&p->allocs[i], measure);
    }

    return sum;
}


void
prof_measure_value(prof_buf_t *b, uint32_t unit, uint64_t n)
{
    if (unit == PROF_UNIT_NS) {

        if (n < 1000000) {
            prof_buf_printf(b, "%.1f us", n / 1e3);

        } else if (n < 10000000000) {
            prof_buf_printf(b, "%.1f ms", n / 1e6);

        } else {
            prof_buf_printf(b, "%.1f s", n / 1e9);
        }

        return;
    }

    if (unit == PROF_UNIT_COUNT || n < 1024) {
        prof_buf_number(b, n);
        prof_buf_puts(b, unit == PROF_UNIT_COUNT ? "" : " B");

    } else if (n < 1024 * 1024) {
        prof_buf_printf(b, "%.1f KB", n / 1024.);

    } else if (n < 10ull * 1024 * 1024 * 1024) {
        prof_buf_printf(b, "%.1f MB", n / 1024. / 1024.);

    } else {
        prof_buf_printf(b, "%.1f GB", n / 1024. / 1024. / 1024.);
    }
}


const char *
prof_measure_unit(uint32_t unit)
{
    static const char  *units[] = { "ns", "bytes", "count" };

    return units[unit];
}
