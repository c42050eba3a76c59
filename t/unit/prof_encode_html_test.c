
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats assets
 * runs: beside
 *
 * t/profile_browser.t opens such pages in a browser.
 */


#include "tap.h"

#include <inttypes.h>

#include "prof_fixture.h"
#include "prof_document.h"


static void test_document(void);
static void test_formats(void);
static void test_tables(void);
static void test_recursion(void);
static void test_mode(void);
static void test_hostile(void);
static void test_empty(void);
static void test_many(void);


int
main(void)
{
    test_document();
    test_formats();
    test_tables();
    test_recursion();
    test_mode();
    test_hostile();
    test_empty();
    test_many();

    return done_testing();
}


static void
test_document(void)
{
    char            *text;
    prof_profile_t  *p;

    p = fixture_typical();
    text = document_create(&prof_encode_html, p);

    document_policy(text, &prof_encode_html);

    is_str(prof_encode_html.content_type, "text/html; charset=utf-8",
           "the format has the type of HTML");
    is_int(prof_encode_html.download, 0,
           "browsers show the format, and do not save it");

    ok(strncmp(text, "<!DOCTYPE html>\n<html lang=\"en\">", 32) == 0,
       "the page is HTML with a language");
    ok(strstr(text, "<title>GET /index.html - profile</title>") != NULL,
       "the page has a title");
    ok(strstr(text, "<h1>GET /index.html</h1>") != NULL,
       "the page has a heading");
    ok(strstr(text, ">250.0 ms waiting<") == NULL
       && strstr(text, ", 250.0 ms waiting</li>") != NULL,
       "the page has notes");

    ok(strstr(text, "<th scope=\"row\">request</th>"
                    "<td>GET /index.html HTTP/1.1</td>") != NULL,
       "the page has a fact");
    ok(strstr(text, "<code>lost_overrun</code></th><td class=\"num\">1</td>")
       != NULL, "the page has a counter");
    ok(strstr(text, "<code>cpu</code></th><td class=\"num\">2.5 ms</td>")
       != NULL, "the page has the CPU clock");
    ok(strstr(text, "<code>sampled_cpu</code></th>"
                    "<td class=\"num\">2.5 ms</td>") != NULL,
       "the page has the sampled sum");
    ok(strstr(text, "<code>frequency_effective</code></th>"
                    "<td class=\"num\">1020 Hz</td>") != NULL,
       "the page has the frequency");
    ok(strstr(text, "<code>own_handler_ns</code></th>"
                    "<td class=\"num\">3.5 \xc2\xb5s</td>") != NULL,
       "the page has the profiler's own time");

    is_int(document_count(text, "<svg class=\"prof-plot\""), 2,
           "the page has a flamegraph of each mode");
    is_int(document_count(text, "style=\""), 0, "attributes have no styles");

    free(text);
    prof_profile_destroy(p);
}


static void
test_formats(void)
{
    char             link[64], *text;
    size_t           i;
    prof_profile_t  *p;

    p = fixture_typical();
    text = document_create(&prof_encode_html, p);

    for (i = 0; prof_encoders[i]; i++) {
        (void) snprintf(link, sizeof(link), "<a data-format=\"%s\"",
                        prof_encoders[i]->name);

        is_int(document_count(text, link),
               prof_encoders[i] != &prof_encode_html,
               "the page has a link to %s if that is another format",
               prof_encoders[i]->name);
    }

    ok(strstr(text, "title=\"Runs the request again") != NULL,
       "a link tells that it runs the request again");

    free(text);
    prof_profile_destroy(p);
}


static void
test_tables(void)
{
    char            *row, *text;
    prof_profile_t  *p;

    p = fixture_typical();
    text = document_create(&prof_encode_html, p);

    row = strstr(text, "<code>handler</code> <small>server</small>");
    ok(row != NULL, "a row has the function and its object");

    if (row) {
        *strstr(row, "</tr>") = '\0';
        ok(strstr(row, "<td class=\"by wall num\" data-value=\"0\"></td>")
           != NULL,
           "the function has its own time");
        ok(strstr(row, "<td class=\"by wall num\" "
                       "data-value=\"2900000\">2.9 ms "
                       "<small>1.1%</small></td>") != NULL,
           "the function has its total time");
        ok(strstr(row, "<td class=\"by cpu num\" "
                       "data-value=\"2490000\">2.5 ms "
                       "<small>98.5%</small></td>") != NULL,
           "the function has its total CPU time");
    }

    free(text);
    text = document_create(&prof_encode_html, p);

    row = strstr(text, "<code title=\"/usr/lib/libc.so.6\">libc.so.6</code>");
    ok(row != NULL, "a row has the object");

    if (row) {
        *strstr(row, "</tr>") = '\0';
        ok(strstr(row, "<td class=\"by wall num\" "
                       "data-value=\"900000\">") != NULL,
           "the object has its own time");
    }

    free(text);
    text = document_create(&prof_encode_html, p);

    row = strstr(text, "</svg>kernel entry</th>");
    ok(row != NULL, "a row has the kind");

    if (row) {
        *strstr(row, "</tr>") = '\0';
        ok(strstr(row, "<td class=\"by cpu num\" "
                       "data-value=\"500000\">") != NULL,
           "the kind has its own CPU time");
    }

    free(text);
    prof_profile_destroy(p);
}


static void
test_recursion(void)
{
    char            *row, *text;
    uint32_t         object;
    prof_profile_t  *p;

    p = fixture_create("recursion");
    object = fixture_object(p, "/usr/bin/server", "");

    fixture_entry(p, fixture_stack(p, object, "f/g/f/g/f"),
                  PROF_ENTRY_SAMPLE, 3000000, 3000000);
    fixture_entry(p, fixture_stack(p, object, "f"), PROF_ENTRY_SAMPLE,
                  1000000, 1000000);
    fixture_entry(p, fixture_stack(p, object, "g"), PROF_ENTRY_SAMPLE,
                  1000000, 1000000);

    text = document_create(&prof_encode_html, p);

    row = strstr(text, "<code>f</code>");
    ok(row && strstr(row, "data-value=\"4000000\">4.0 ms <small>80%</small>")
              < strstr(row, "</tr>"),
       "recursion: the function has its own time");
    ok(row && document_count(row, "data-value=\"12000000\"") == 0,
       "recursion - time is counted once");

    row = strstr(text, "<code>g</code>");
    ok(row && strstr(row, "data-value=\"4000000\">4.0 ms <small>80%</small>")
              < strstr(row, "</tr>"),
       "recursion: the function has its total time");

    free(text);
    prof_profile_destroy(p);
}


static void
test_mode(void)
{
    char            *text;
    prof_profile_t  *p;

    p = fixture_typical();
    text = document_create(&prof_encode_html, p);
    ok(strstr(text, "id=\"prof-wall\" value=\"wall\" data-mode=\"wall\" "
                    "checked>") != NULL, "wall is shown first");
    free(text);

    p->mode = PROF_MODE_CPU;
    text = document_create(&prof_encode_html, p);
    ok(strstr(text, "id=\"prof-cpu\" value=\"cpu\" data-mode=\"cpu\" "
                    "checked>") != NULL,
       "the mode of the profile is shown first");
    free(text);

    prof_profile_destroy(p);
}


static void
test_hostile(void)
{
    char            *text;
    prof_profile_t  *p;

    p = document_hostile();
    text = document_create(&prof_encode_html, p);

    document_policy(text, &prof_encode_html);

    is_int(document_count(text, "<evil"), 0,
           "hostile - texts make no elements");
    is_int(document_count(text, "alert('"), 0, "hostile - texts make no calls");
    is_int(document_count(text, "<!--"), 0, "hostile - texts make no comments");
    ok(strstr(text, "<td>]]&gt;&lt;/script&gt;&lt;script&gt;alert(") != NULL,
       "hostile - texts are shown");

    free(text);
    prof_profile_destroy(p);
}


static void
test_empty(void)
{
    char            *text;
    prof_profile_t  *p;

    p = fixture_create("GET /");
    prof_profile_fact(p, "request", "GET / HTTP/1.1", 14);
    p->cpu = 38000;

    text = document_create(&prof_encode_html, p);

    is_int(document_count(text, "<p class=\"empty\">0 samples, the request "
                                "used 38.0 \xc2\xb5s of CPU time</p>"), 2,
           "empty - a sentence is in place of the picture");
    is_int(document_count(text, "<svg class=\"prof-plot\""), 0,
           "empty - the page has no picture");

    free(text);
    prof_profile_destroy(p);
}


static void
test_many(void)
{
    char            *text;
    prof_profile_t  *p;

    p = document_many();
    text = document_create(&prof_encode_html, p);

    ok(strlen(text) < 2000000,
       "many: %zu bytes are below the limit", strlen(text));
    is_int(document_count(text, " boxes are shown, none of the others is "), 2,
           "many - the number of hidden boxes is shown");
    ok(strstr(text, "The 100 heaviest of 500 functions.") != NULL,
       "many - the number of omitted functions is shown");

    free(text);
    prof_profile_destroy(p);
}
