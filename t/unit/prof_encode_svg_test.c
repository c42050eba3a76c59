
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 *
 * t/profile_browser.t opens such documents in a browser.
 */


#include "tap.h"

#include <inttypes.h>

#include "prof_fixture.h"
#include "prof_document.h"
#include "formats/prof_svg_plot.h"


typedef struct {
    char     class[16];
    double   x;
    double   width;
    int      row;
} box_t;


static void test_typical(void);
static void test_document(void);
static void test_hostile(void);
static void test_empty(void);
static void test_mode(void);
static void test_many(void);
static void test_hidden(void);
static void test_deep(void);
static size_t handlers(const char *text);
static size_t boxes(const char *text, box_t *box, size_t max);
static void check_boxes(const char *text, const char *name);


static const uint32_t  test_measures[] = {
    PROF_MEASURE_WALL, PROF_MEASURE_CPU
};


int
main(void)
{
    test_typical();
    test_document();
    test_hostile();
    test_empty();
    test_mode();
    test_many();
    test_hidden();
    test_deep();

    return done_testing();
}


/* only the boxes: the style and the script around them change often */

static void
test_typical(void)
{
    prof_buf_t        b;
    prof_view_t      *v;
    prof_profile_t   *p;
    prof_svg_plot_t   plot;

    p = fixture_typical();
    v = prof_view_create(p, NULL, test_measures, 2);
    (void) prof_view_order(v, PROF_VIEW_SHARE);

    prof_buf_init(&b);

    is_int(prof_svg_plot_init(&plot, p, v, 0, 100000), PROF_OK,
           "typical: the plot is made");
    is_int(prof_svg_plot_write(&plot, "width=\"100%\"", &b), PROF_OK,
           "typical: the plot is written");
    ok(is_golden(&b, "typical.svg-plot"), "typical: the plot is as recorded");
    is_int(plot.rows, 6, "typical: the plot has six rows");
    is_int(plot.nshown, 8, "typical: the plot has eight boxes");
    is_int(plot.nhidden, 0, "typical - nothing is hidden");
    is_int(plot.kinds[PROF_KIND_PROGRAM], 6,
           "typical: six boxes are of the program");
    is_int(plot.kinds[PROF_KIND_KERNEL], 1,
           "typical: one box is of the kernel");
    is_int(plot.kinds[PROF_KIND_WAITING], 1,
           "typical: one box is of waiting");

    prof_svg_plot_free(&plot);
    prof_buf_free(&b);
    prof_view_destroy(v);
    prof_profile_destroy(p);
}


static void
test_document(void)
{
    char            *markup, *text;
    prof_profile_t  *p;

    p = fixture_typical();
    text = document_create(&prof_encode_svg, p);

    document_xml(text, "document");
    document_policy(text, &prof_encode_svg);

    is_str(prof_encode_svg.content_type, "image/svg+xml",
           "the format has the type of SVG");
    is_int(prof_encode_svg.download, 0,
           "browsers show the format, and do not save it");

    ok(strstr(text, "<title id=\"prof-title\">GET /index.html</title>")
       != NULL, "the picture has an accessible name");
    ok(strstr(text, "252.9 ms from start to end: 2.9 ms running in 2 turns, "
                    "250.0 ms waiting<") != NULL,
       "the picture has the times");
    ok(strstr(text, "3 samples, 1020 Hz (asked: 1000 Hz), lost: 1 (1 too "
                    "late, 0 ring full), truncated: 2<") != NULL,
       "the picture has the samples");
    ok(strstr(text, "CPU clock: 2.5 ms, sum of the stacks: 2.5 ms, the "
                    "profiler&#39;s own time: 6.7 \302\265s<") != NULL,
       "the picture has the clocks");
    ok(strstr(text, "class=\"warn\"") != NULL, "the picture has warnings");
    ok(strstr(text, "<text x=\"18\" y=\"12\">server</text>") != NULL,
       "the picture has a legend");

    check_boxes(text, "typical");

    is_int(document_count(text, "href"), 0, "the picture has no links");

    /* the style precedes the boxes, the script follows them */

    markup = strstr(text, "<defs>");
    *strstr(text, "<script>") = '\0';

    is_int(handlers(markup), 0, "the picture has no event handlers");
    is_int(handlers(" on=a onload=x one two=2\nonclick = y"), 2,
           "the test finds event handlers in markup");
    is_int(document_count(markup, "style="), 0, "attributes have no styles");
    is_int(document_count(markup, "http"), 0,
           "the picture has no references");

    free(text);
    prof_profile_destroy(p);
}


static void
test_hostile(void)
{
    char            *text;
    prof_profile_t  *p;

    p = document_hostile();
    text = document_create(&prof_encode_svg, p);

    document_xml(text, "hostile");
    document_policy(text, &prof_encode_svg);
    check_boxes(text, "hostile");

    is_int(document_count(text, "<evil"), 0,
           "hostile: texts make no elements");
    is_int(document_count(text, "alert('"), 0,
           "hostile: texts make no calls");
    is_int(document_count(text, "\xe2\x80\xae"), 0,
           "hostile - nothing changes the direction");
    ok(document_count(text, "onclick=&quot;alert(&#39;evil&#39;)") > 0,
       "hostile - the texts are there");
    ok(strstr(text, "<title>std::map&lt;std::string, int&gt;::operator[](")
       != NULL, "hostile - C++ is readable");

    free(text);
    prof_profile_destroy(p);
}


static void
test_empty(void)
{
    char            *text;
    prof_profile_t  *p;

    p = fixture_create("GET /");
    text = document_create(&prof_encode_svg, p);

    document_xml(text, "empty");
    ok(strstr(text, "0 samples, the capture used 0.0 \302\265s of CPU time<")
       != NULL, "empty: a line tells that there are no samples");

    free(text);
    prof_profile_destroy(p);

    p = fixture_create("GET /");
    prof_profile_fact(p, "request", "GET / HTTP/1.1", 14);
    fixture_entry(p, fixture_stack(p, PROF_NONE, "run"), PROF_ENTRY_TURN,
                  41000, 38000);
    p->stats.turns = 1;

    text = document_create(&prof_encode_svg, p);

    ok(strstr(text, ">0 samples, the request used 38.0 \302\265s of CPU time: ")
       != NULL, "0 samples: a line tells the CPU time");
    check_boxes(text, "0 samples");

    free(text);
    prof_profile_destroy(p);
}


static void
test_mode(void)
{
    char            *text;
    prof_profile_t  *p;

    p = fixture_typical();
    p->mode = PROF_MODE_CPU;
    text = document_create(&prof_encode_svg, p);

    ok(strstr(text, "data-mode=\"cpu\" data-unit=\"ns\" "
                    "data-total=\"2529000\"") != NULL,
       "the mode of the profile is shown");
    is_int(document_count(text, "[waiting]"), 0, "waiting needs no CPU");

    check_boxes(text, "cpu");

    free(text);
    prof_profile_destroy(p);
}


static void
test_many(void)
{
    char            *text;
    prof_profile_t  *p;

    p = document_many();
    text = document_create(&prof_encode_svg, p);

    ok(strlen(text) < 2000000,
       "many: %zu bytes are below the limit", strlen(text));
    ok(strlen(text) > 1000000, "many - the room is used");
    ok(strstr(text, " boxes are shown, none of the others is wider than ")
       != NULL, "many - what is hidden is told");

    ok(strstr(text, " data-partial=\"\"><rect class=\"prof-area\"") != NULL,
       "many - a box with hidden callees is marked for the search");

    document_xml(text, "many");
    check_boxes(text, "many");

    free(text);
    prof_profile_destroy(p);
}


static void
test_hidden(void)
{
    char            *text;
    uint32_t         i;
    prof_profile_t  *p;

    p = fixture_create("hidden");
    fixture_entry(p, fixture_stack(p, PROF_NONE, "main/run"),
                  PROF_ENTRY_SAMPLE, 100000000, 0);
    fixture_entry(p, fixture_stack(p, PROF_NONE, "main/short/shorter"),
                  PROF_ENTRY_SAMPLE, 4000, 0);

    text = document_create(&prof_encode_svg, p);

    ok(strstr(text, ">2 of 4 boxes are shown, none of the others is wider "
                    "than 0.005%; they have 0% of the time<") != NULL,
       "hidden - the number of boxes is shown");
    ok(strstr(text, "\" data-partial=\"\"><rect") == NULL,
       "hidden - so little does not matter");
    free(text);

    for (i = 0; i < 100; i++) {
        (void) fixture_node(p, 0, fixture_name(p, PROF_TYPE_STAGE, "f"));
        p->frames[p->nframes - 1].start_line = i + 1;
        fixture_entry(p, p->nnodes - 1, PROF_ENTRY_SAMPLE, 4000, 0);
    }

    text = document_create(&prof_encode_svg, p);

    ok(strstr(text, ">2 of 104 boxes are shown, none of the others is wider "
                    "than 0.005%; they have 0.4% of the time<") != NULL,
       "hidden - the share of hidden boxes is their sum");
    ok(strstr(text, "\" data-partial=\"\"><rect") != NULL,
       "hidden - the box is marked for the search");

    free(text);
    prof_profile_destroy(p);
}


static void
test_deep(void)
{
    char            *text;
    uint32_t         f, i, node;
    prof_profile_t  *p;

    p = fixture_create("deep");
    f = fixture_name(p, PROF_TYPE_STAGE, "f");
    node = PROF_NONE;

    for (i = 0; i < 4096; i++) {
        node = fixture_node(p, node, f);
    }

    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1000, 1000);

    text = document_create(&prof_encode_svg, p);

    is_int(document_count(text, "<title>f\n"), PROF_SVG_DEPTH,
           "deep - as many rows as possible are shown");
    ok(strstr(text, "160 of 4096 boxes are shown, those below the first 160 "
                    "frames are not; they have 100% of the time<") != NULL,
       "deep - a text tells that rows are missing");
    check_boxes(text, "deep");

    free(text);
    prof_profile_destroy(p);
}


/* attributes "on...=" are event handlers */

static size_t
handlers(const char *text)
{
    size_t  len, n;

    n = 0;

    for (text = strstr(text, "on"); text; text = strstr(text + 1, "on")) {
        len = strspn(text, "abcdefghijklmnopqrstuvwxyz");

        n += strchr(" \n\t\"'", text[-1]) && len > 2
             && text[len + strspn(text + len, " ")] == '=';
    }

    return n;
}


/* the boxes of the first flamegraph, in order */

static size_t
boxes(const char *text, box_t *box, size_t max)
{
    int     row, y;
    size_t  n;

    n = 0;
    row = -1;

    text = strstr(text, "<svg class=\"prof-zoom\">");

    for ( /* void */ ; text && n < max; text = strchr(text, '\n')) {
        text += *text == '\n';

        if (sscanf(text, "<svg y=\"%d\" height=", &y) == 1) {
            row++;

            if (y != row * PROF_SVG_ROW) {
                return 0;
            }
        }

        if (sscanf(text, "<svg x=\"%lf%%\" width=\"%lf%%\" class=\"%15[^\"]",
                   &box[n].x, &box[n].width, box[n].class)
            == 3)
        {
            box[n++].row = row;
        }

        if (strncmp(text, "</svg></svg>", 12) == 0) {
            break;
        }
    }

    return n;
}


/* each box is on a box of the row above, and beside the others of its row */

static void
check_boxes(const char *text, const char *name)
{
    box_t   *box;
    size_t   above, i, n, outside, overlapping;

    box = calloc(20000, sizeof(box_t));
    if (box == NULL) {
        abort();
    }

    n = boxes(text, box, 20000);
    ok(n > 0, "%s: the picture has %zu boxes", name, n);

    above = 0;
    outside = 0;
    overlapping = 0;

    for (i = 1; i < n; i++) {

        if (box[i].row == box[i - 1].row) {
            overlapping += box[i].x < box[i - 1].x + box[i - 1].width - 2e-4;
        }

        while (above < i
               && (box[above].row < box[i].row - 1
                   || (box[above].row == box[i].row - 1
                       && box[above].x + box[above].width
                          < box[i].x + box[i].width / 2)))
        {
            above++;
        }

        outside += box[above].row != box[i].row - 1
                   || box[i].x < box[above].x - 2e-4
                   || box[i].x + box[i].width
                      > box[above].x + box[above].width + 2e-4;
    }

    is_int(overlapping, 0, "%s - boxes do not overlap", name);
    is_int(outside, 0, "%s - boxes are on their callers", name);

    free(box);
}
