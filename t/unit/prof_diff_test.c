
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats views
 * runs: beside
 *
 * Differences of two profiles.
 */


#include "tap.h"

#include "prof_fixture.h"
#include "prof_document.h"
#include "views/prof_diff.h"
#include "formats/prof_diff_style.h"


static void test_weights(void);
static void test_normalized(void);
static void test_classes(void);
static void test_measures(void);
static void test_builds(void);
static void test_html(void);
static void test_svg(void);
static void test_hostile(void);
static void test_many(void);
static prof_profile_t *test_before(void);
static prof_profile_t *test_after(void);
static uint32_t test_node(const prof_diff_t *d, const char *name);
static char *test_encode(const prof_diff_encoder_t *e,
    const prof_profile_t *before, const prof_profile_t *after,
    uint32_t flags);
static void test_policy(const char *text, const prof_diff_encoder_t *e);


int
main(void)
{
    test_weights();
    test_normalized();
    test_classes();
    test_measures();
    test_builds();
    test_html();
    test_svg();
    test_hostile();
    test_many();

    return done_testing();
}


static void
test_weights(void)
{
    uint32_t         n;
    prof_buf_t       b;
    prof_diff_t      d;
    prof_profile_t  *after, *before;

    before = test_before();
    after = test_after();

    is_int(prof_diff_init(&d, before, after, 0), PROF_OK,
           "two profiles have a difference");

    is_int(d.measure, PROF_MEASURE_WALL, "the difference is that of wall time");
    is_int(d.view->whole[PROF_DIFF_BEFORE], before->wall,
           "the first column has the whole time before");
    is_int(d.view->whole[PROF_DIFF_AFTER], after->wall,
           "the second column has the whole time after");

    n = test_node(&d, "parse");
    is_int(prof_view_self(d.view, n, PROF_DIFF_BEFORE), 4000000,
           "a function has its time before");
    is_int(prof_view_self(d.view, n, PROF_DIFF_AFTER), 10000000,
           "a function has its time after");

    n = test_node(&d, "gone");
    is_int(prof_view_total(d.view, n, PROF_DIFF_BEFORE), 3000000,
           "a removed function has its time before");
    is_int(prof_view_total(d.view, n, PROF_DIFF_AFTER), 0,
           "a removed function has no time after");

    n = test_node(&d, "new");
    is_int(prof_view_total(d.view, n, PROF_DIFF_BEFORE), 0,
           "a new function has no time before");
    is_int(prof_view_total(d.view, n, PROF_DIFF_AFTER), 1000000,
           "a new function has its time after");

    prof_buf_init(&b);
    prof_diff_change(&d, 4000000, 10000000, &b);
    prof_buf_puts(&b, "|");
    prof_diff_change(&d, 3000000, 0, &b);
    prof_buf_puts(&b, "|");
    prof_diff_change(&d, 7, 7, &b);
    prof_buf_append(&b, "", 1);
    is_str(b.data, "+6.0 ms|-3.0 ms|0.0 \302\265s", "changes as texts");
    prof_buf_free(&b);

    prof_diff_free(&d);
    prof_profile_destroy(before);
    prof_profile_destroy(after);
}


/* the same load twice, the second one longer */

static void
test_normalized(void)
{
    uint32_t         i;
    prof_buf_t       b;
    prof_diff_t      d;
    prof_profile_t  *after, *before;

    before = test_before();
    after = test_before();

    for (i = 0; i < ntimes(after); i++) {
        wall_of(after, i) *= 3;
    }

    (void) prof_diff_init(&d, before, after, 0);
    is_str(prof_diff_class(&d, 4000000, 12000000), "more3",
           "three times as much has the third class");
    prof_diff_free(&d);

    (void) prof_diff_init(&d, before, after, PROF_DIFF_NORMALIZED);
    is_str(prof_diff_class(&d, 4000000, 12000000), "same",
           "a function with three times the weight may have the same share");
    is_int(prof_diff_scale(&d, 4000000), 12000000,
           "shares scale the weight before");

    prof_buf_init(&b);
    prof_diff_change(&d, 1000000, 6000000, &b);
    prof_buf_append(&b, "", 1);
    is_str(b.data, "+12.5%", "change of the share");
    prof_buf_free(&b);

    prof_diff_free(&d);
    prof_profile_destroy(before);
    prof_profile_destroy(after);
}


static void
test_classes(void)
{
    prof_diff_t      d;
    prof_profile_t  *after, *before;

    before = test_before();
    after = test_after();
    (void) prof_diff_init(&d, before, after, 0);

    is_str(prof_diff_class(&d, 1000000, 1000000), "same",
           "equal weights are the same");
    is_str(prof_diff_class(&d, 1000000, 1010000), "same",
           "nearly equal weights are the same");
    is_str(prof_diff_class(&d, 1000000, 1100000), "more1",
           "a tenth more has the first class");
    is_str(prof_diff_class(&d, 1000000, 1500000), "more2",
           "half more has the second class");
    is_str(prof_diff_class(&d, 1000000, 5000000), "more3",
           "five times as much has the third class");
    is_str(prof_diff_class(&d, 0, 5000000), "more3",
           "a new function has the third class");
    is_str(prof_diff_class(&d, 1100000, 1000000), "less1",
           "a tenth less has the first class");
    is_str(prof_diff_class(&d, 1500000, 1000000), "less2",
           "a third less has the second class");
    is_str(prof_diff_class(&d, 5000000, 1000000), "less3",
           "a fifth has the third class");
    is_str(prof_diff_class(&d, 5000000, 0), "less3",
           "a removed function has the third class");
    is_str(prof_diff_class(&d, 0, 1000), "same",
           "a new function of hardly any weight has no class");
    is_str(prof_diff_class(&d, 0, 0), "same",
           "a function without weight has no class");

    prof_diff_free(&d);
    prof_profile_destroy(before);
    prof_profile_destroy(after);
}


static void
test_measures(void)
{
    prof_diff_t      d;
    prof_profile_t  *after, *before;

    before = fixture_full();
    after = fixture_full();

    after->mode = PROF_MODE_CPU;
    (void) prof_diff_init(&d, before, after, 0);
    is_int(d.measure, PROF_MEASURE_CPU,
           "the difference has the mode of after");
    is_int(d.view->whole[PROF_DIFF_AFTER], after->cpu,
           "the difference has the weights of this mode");
    prof_diff_free(&d);

    after->mode = PROF_MODE_OBJECT;
    (void) prof_diff_init(&d, before, after, 0);
    is_int(d.measure, PROF_MEASURE_ALLOC_SPACE,
           "profiles of memory have the measure of memory");
    is_int(d.view->whole[PROF_DIFF_BEFORE], 40960,
           "the difference has the bytes before");
    prof_diff_free(&d);

    nallocs(before) = 0;
    (void) prof_diff_init(&d, before, after, 0);
    is_int(d.measure, PROF_MEASURE_WALL,
           "the measure is one that both profiles have");
    prof_diff_free(&d);

    prof_profile_destroy(before);
    prof_profile_destroy(after);
}


/*
 * Another build has other addresses, and uses the old ones for other
 * functions.
 */

static void
test_builds(void)
{
    uint32_t         n;
    prof_diff_t      d;
    prof_profile_t  *after, *before;

    before = fixture_create("before");
    fixture_object(before, "/usr/sbin/server", "aa");
    fixture_entry(before, fixture_stack(before, 0, "main/parse"),
                  PROF_ENTRY_SAMPLE, 1000, 0);
    fixture_entry(before, fixture_stack(before, 0, "main/server+0x10"),
                  PROF_ENTRY_SAMPLE, 10, 0);
    before->frames[2].source = PROF_SOURCE_OFFSET;

    after = fixture_create("after");
    fixture_object(after, "/usr/sbin/server", "bb");
    fixture_frame(after, 0, 0x1000, "another");
    fixture_entry(after, fixture_stack(after, 0, "main/parse"),
                  PROF_ENTRY_SAMPLE, 3000, 0);
    fixture_entry(after, fixture_stack(after, 0, "main/server+0x10"),
                  PROF_ENTRY_SAMPLE, 30, 0);
    after->frames[3].source = PROF_SOURCE_OFFSET;

    (void) prof_diff_init(&d, before, after, 0);

    n = test_node(&d, "parse");
    is_int(prof_view_self(d.view, n, PROF_DIFF_BEFORE), 1000,
           "another build: a function has its time before");
    is_int(prof_view_self(d.view, n, PROF_DIFF_AFTER), 3000,
           "another build: a function has its time after");

    n = test_node(&d, "server+0x10");
    ok(prof_view_self(d.view, n, PROF_DIFF_BEFORE) == 0
       || prof_view_self(d.view, n, PROF_DIFF_AFTER) == 0,
       "another build - an offset is not the same function");

    prof_diff_free(&d);
    prof_profile_destroy(before);
    prof_profile_destroy(after);
}


static void
test_html(void)
{
    char            *text;
    prof_profile_t  *after, *before;

    before = test_before();
    after = test_after();

    text = test_encode(&prof_diff_html, before, after, 0);
    test_policy(text, &prof_diff_html);

    is_int(document_count(text, "<svg class=\"prof-plot\""), 2,
           "html: the page has two flamegraphs");
    ok(strstr(text, "data-mode=\"after\" data-unit=\"ns\" "
                    "data-total=\"12000000\"") != NULL,
       "html: one has the widths after");
    ok(strstr(text, "data-mode=\"before\" data-unit=\"ns\" "
                    "data-total=\"8000000\"") != NULL,
       "html: one has the widths before");
    ok(strstr(text, "class=\"more3\"><title>parse\n10.0 ms, 83.33%, self "
                    "10.0 ms; before 4.0 ms, 50%; change +6.0 ms\nserver")
       != NULL, "html: a box has both weights");
    ok(strstr(text, "<li>Change: +4.0 ms</li>") != NULL,
       "html: the table has the sum");

    /* the first row is the largest change */

    ok(strstr(text, "<tbody>\n<tr><th scope=\"row\"><svg class=\"chip more3\" "
                    "aria-hidden=\"true\"><rect width=\"100%\" "
                    "height=\"100%\"/></svg><code>parse</code>") != NULL,
       "html: the table begins with the largest change");
    ok(strstr(text, "<td class=\"num\" data-value=\"-3000000\">-3.0 ms</td>")
       != NULL, "html: the table has a smaller weight");

    free(text);

    text = test_encode(&prof_diff_html, before, after, PROF_DIFF_NORMALIZED);
    ok(strstr(text, "shares of the whole are compared") != NULL,
       "html: a line tells that shares are compared");
    ok(strstr(text, "; change +33.33%") != NULL, "html - change of a share");
    free(text);

    prof_profile_destroy(before);
    prof_profile_destroy(after);
}


static void
test_svg(void)
{
    char            *text;
    prof_profile_t  *after, *before;

    before = test_before();
    after = test_after();

    text = test_encode(&prof_diff_svg, before, after, 0);
    test_policy(text, &prof_diff_svg);
    document_xml(text, "svg");

    ok(strstr(text, ">Before: wall: GET /a, 8.0 ms") != NULL,
       "svg: the picture has the summary before");
    ok(strstr(text, ">After: wall: GET /a, 12.0 ms") != NULL,
       "svg: the picture has the summary after");
    ok(strstr(text, ">60% more, or new<") != NULL,
       "svg: the legend has the classes");
    is_int(document_count(text, "<title>gone"), 0,
           "svg - what is gone has no width");
    is_int(document_count(text, "<title>new"), 1, "svg - what is new");

    free(text);

    text = test_encode(&prof_diff_svg, after, after, 0);
    is_int(document_count(text, "%\" class=\"more")
           + document_count(text, "%\" class=\"less"), 0,
           "svg: equal profiles have no changes");
    free(text);

    prof_profile_destroy(before);
    prof_profile_destroy(after);

    ok(prof_diff_find("svg", 3) == &prof_diff_svg,
       "a format is found by its name");
    ok(prof_diff_find("html", 4) == &prof_diff_html, "html is found");
    ok(prof_diff_find("pprof", 5) == NULL, "pprof does that itself");
}


static void
test_hostile(void)
{
    char            *text;
    prof_profile_t  *hostile, *empty;

    hostile = document_hostile();
    empty = fixture_create("");

    text = test_encode(&prof_diff_html, empty, hostile, 0);
    test_policy(text, &prof_diff_html);
    ok(strstr(text, "<img") == NULL, "hostile: names make no elements");
    free(text);

    text = test_encode(&prof_diff_svg, hostile, empty, PROF_DIFF_NORMALIZED);
    document_xml(text, "hostile");
    free(text);

    text = test_encode(&prof_diff_html, empty, empty, 0);
    is_int(document_count(text, "<p class=\"empty\">"), 2, "both are empty");
    free(text);

    prof_profile_destroy(hostile);
    prof_profile_destroy(empty);
}


static void
test_many(void)
{
    char            *text;
    prof_profile_t  *after, *before;

    before = document_many();
    after = document_many();

    text = test_encode(&prof_diff_html, before, after, 0);
    ok(strlen(text) < 2000000,
       "many: %zu bytes are below the limit", strlen(text));
    free(text);

    prof_profile_destroy(before);
    prof_profile_destroy(after);
}


static prof_profile_t *
test_before(void)
{
    uint32_t         exe;
    prof_profile_t  *p;

    p = fixture_create("GET /a");
    exe = fixture_object(p, "/usr/sbin/server", "aa");

    fixture_entry(p, fixture_stack(p, exe, "main/parse"), PROF_ENTRY_SAMPLE,
                  4000000, 4000000);
    fixture_entry(p, fixture_stack(p, exe, "main/gone"), PROF_ENTRY_SAMPLE,
                  3000000, 3000000);
    fixture_entry(p, fixture_stack(p, exe, "main/send"), PROF_ENTRY_SAMPLE,
                  1000000, 1000000);

    return p;
}


static prof_profile_t *
test_after(void)
{
    uint32_t         exe;
    prof_profile_t  *p;

    p = fixture_create("GET /a");
    exe = fixture_object(p, "/usr/sbin/server", "aa");

    fixture_entry(p, fixture_stack(p, exe, "main/send"), PROF_ENTRY_SAMPLE,
                  1000000, 1000000);
    fixture_entry(p, fixture_stack(p, exe, "main/new"), PROF_ENTRY_SAMPLE,
                  1000000, 1000000);
    fixture_entry(p, fixture_stack(p, exe, "main/parse"), PROF_ENTRY_SAMPLE,
                  10000000, 10000000);

    return p;
}


/* returns the first node of this name */

static uint32_t
test_node(const prof_diff_t *d, const char *name)
{
    uint32_t  i;

    for (i = 0; i < d->view->nnodes; i++) {
        if (strcmp(d->view->functions[d->view->nodes[i].function].name, name)
            == 0)
        {
            return i;
        }
    }

    diag("no node %s", name);
    abort();
}


static char *
test_encode(const prof_diff_encoder_t *e, const prof_profile_t *before,
    const prof_profile_t *after, uint32_t flags)
{
    char        *text;
    prof_buf_t   b;

    prof_buf_init(&b);

    is_int(e->encode(before, after, flags, &b), PROF_OK,
           "%s: the difference is encoded",
           e->name);

    text = strndup(b.data, b.len);
    if (text == NULL) {
        abort();
    }

    prof_buf_free(&b);

    return text;
}


static void
test_policy(const char *text, const prof_diff_encoder_t *e)
{
    prof_encoder_t  encoder;

    memset(&encoder, 0, sizeof(prof_encoder_t));

    encoder.name = e->name;
    encoder.csp = e->csp;

    document_policy(text, &encoder);
}
