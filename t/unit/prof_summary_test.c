
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: views
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "profile/prof_measure.h"
#include "views/prof_summary.h"


static void test_items(void);
static void test_end(void);
static void test_lines(void);
static void test_durations(void);
static int collect(void *data, const prof_summary_t *item);
static int stop(void *data, const prof_summary_t *item);
static void find(const char *name, const char *value);


static char    items[8192];
static size_t  stops;


int
main(void)
{
    test_items();
    test_end();
    test_lines();
    test_durations();

    return done_testing();
}


static void
test_items(void)
{
    prof_profile_t  *p;

    p = fixture_typical();

    is_int(prof_summary(p, collect, items), PROF_OK,
           "the summary is complete");

    find("title", "GET /index.html");
    find("mode", "wall");
    find("start", "2023-11-14T22:13:20.123Z");
    find("request", "GET /index.html HTTP/1.1");
    find("wall", "252940000 ns");
    find("running", "2940000 ns");
    find("waiting", "250000000 ns");
    find("cpu", "2529000 ns");
    find("sampled_wall", "2900000 ns");
    find("sampled_cpu", "2490000 ns");
    find("unsampled_wall", "40000 ns");
    find("unsampled_cpu", "39000 ns");
    find("frequency_asked", "1000 Hz");
    find("frequency_end", "500 Hz");
    find("frequency_effective", "1020 Hz");
    find("samples", "3");
    find("lost", "1");
    find("lost_overrun", "1");
    find("lost_ring", "0");
    find("truncated", "2");
    find("turns", "2");
    find("no_processor_ns", "300000 ns");
    find("blocked_ns", "100000 ns");
    find("not_running", "11000 ns");
    find("own_start_ns", "2000 ns");
    find("own_handler_ns", "3500 ns");
    find("addresses", "7");
    find("addresses_named", "7");

    prof_profile_destroy(p);

    /* each counter has its item, and one sum contains all losses */

    p = fixture_create("losses");
    p->stats.lost_overrun = 100;
    p->stats.lost_ring = 20;
    items[0] = '\0';

    (void) prof_summary(p, collect, items);

    find("lost", "120");
    find("frequency_effective", "0 Hz");

    prof_profile_destroy(p);
}


static void
test_end(void)
{
    prof_profile_t  *p;

    p = fixture_create("end");

    is_int(prof_summary(p, stop, NULL), PROF_LIMIT,
           "the callback stops the summary");
    is_int(stops, 3, "the callback is not called again");

    prof_profile_destroy(p);
}


static void
test_lines(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = fixture_typical();

    prof_buf_init(&b);
    prof_summary_line(p, PROF_MEASURE_WALL, &b);
    prof_buf_append(&b, "", 1);
    is_str(b.data, "wall: GET /index.html, 252.9 ms, 3 samples at 1020 Hz"
           " (asked: 1000), 1 lost, 2 truncated",
           "a line summarizes wall time");
    prof_buf_free(&b);

    p->stats.truncated = 0;
    prof_summary_line(p, PROF_MEASURE_CPU, &b);
    prof_buf_append(&b, "", 1);
    is_str(b.data, "cpu: GET /index.html, 2.5 ms, 3 samples at 1020 Hz"
           " (asked: 1000), 1 lost",
           "a line of CPU time has no truncated stacks");
    prof_buf_free(&b);

    prof_profile_destroy(p);
}


static void
test_durations(void)
{
    prof_buf_t  b;

    prof_buf_init(&b);

    prof_summary_duration(&b, 0);
    prof_buf_puts(&b, "|");
    prof_summary_duration(&b, 999900);
    prof_buf_puts(&b, "|");
    prof_summary_duration(&b, 1000000);
    prof_buf_puts(&b, "|");
    prof_summary_duration(&b, 9999000000);
    prof_buf_puts(&b, "|");
    prof_summary_duration(&b, 3600000000000);
    prof_buf_append(&b, "", 1);

    is_str(b.data, "0.0 \xc2\xb5s|999.9 \xc2\xb5s|1.0 ms|9999.0 ms|3600.0 s",
           "durations have one decimal and a unit");

    prof_buf_free(&b);
}


static int
collect(void *data, const prof_summary_t *item)
{
    char                line[256];
    static const char  *units[] = { "", "", " Hz", " ns", " B" };

    if (item->unit == PROF_SUMMARY_TEXT) {
        (void) snprintf(line, sizeof(line), "|%s=%s|", item->name,
                        item->value);

    } else {
        (void) snprintf(line, sizeof(line), "|%s=%" PRIu64 "%s|", item->name,
                        item->number, units[item->unit]);
    }

    (void) strncat(data, line, sizeof(items) - strlen(data) - 1);

    return item->text && item->text[0] ? PROF_OK : PROF_ERROR;
}


static int
stop(void *data, const prof_summary_t *item)
{
    return ++stops == 3 ? PROF_LIMIT : PROF_OK;
}


static void
find(const char *name, const char *value)
{
    char         want[256];
    const char  *p;

    (void) snprintf(want, sizeof(want), "|%s=", name);
    p = strstr(items, want);

    if (!ok(p != NULL, "%s is there", name)) {
        return;
    }

    p += strlen(want);
    (void) snprintf(want, sizeof(want), "%.*s", (int) strcspn(p, "|"), p);

    is_str(want, value, "%s has its value", name);
}
