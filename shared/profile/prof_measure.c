
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "profile/prof_measure.h"


const prof_series_desc_t  prof_series_desc[] = {
#define PROF_SERIES_ROW(id, name, ordered, counted)                           \
    { name, ordered, counted },
    PROF_SERIES(PROF_SERIES_ROW)
#undef PROF_SERIES_ROW
};


const prof_measure_t  prof_measures[] = {
#define PROF_MEASURE_ROW(id, series, value, mode, name, text, title, whole,   \
                         none, unit)                                          \
    { PROF_SERIES_##series, value, PROF_MODE_##mode, name, text, title,       \
      whole, none, PROF_UNIT_##unit },
    PROF_MEASURES(PROF_MEASURE_ROW)
#undef PROF_MEASURE_ROW
};


const prof_mode_t  prof_modes[] = {
#define PROF_MODE_ROW(id, name, series, first, period, unit, ...)             \
    { name, PROF_SERIES_##series, PROF_MEASURE_##first, period,               \
      PROF_UNIT_##unit, __VA_ARGS__ },
    PROF_MODES(PROF_MODE_ROW)
#undef PROF_MODE_ROW
};


const char *
prof_mode_name(uint32_t mode)
{
    return prof_modes[mode < PROF_MODE_MAX ? mode : 0].name;
}


uint32_t
prof_series_values(uint32_t series)
{
    uint32_t  m, n;

    n = 0;

    for (m = 0; m < PROF_MEASURE_MAX; m++) {
        n += (prof_measures[m].series == series);
    }

    return n;
}


void
prof_measure_value(prof_buf_t *b, uint32_t unit, uint64_t n)
{
    if (unit == PROF_UNIT_NS) {

        if (n < 1000000) {
            prof_buf_printf(b, "%.1f \302\265s", n / 1e3);

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
