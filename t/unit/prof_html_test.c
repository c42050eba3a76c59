
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: html
 * runs: beside
 */


#include "tap.h"

#include "html/prof_html.h"


/* "|" marks the expected end of the body */

static const char  *test_pages[] = {

    /* end tags */

    "<html><body><p>text</p>|</body></html>",
    "|</body>",
    "|</BODY>",
    "|</bOdY >",
    "|</body\t>",
    "|</body/>",
    "|</body a=\"b\">",
    "a < b, a << b, <3, </3, </> |</body>",
    "<<|</body>",
    "<</</b</bo</bod<</body>",
    "< </ </b></bo></bod>|</body>",
    "|</body></body>",
    "a</bodyguard></bod></bodies></ body></b ody><body>|</body>",
    "no end",
    "</body",
    "</bod",
    "</",
    "<",
    "",

    /* attributes */

    "<p title=\"</body>\">|</body>",
    "<p title='</body>'>|</body>",
    "<p title = \"</body>'\">|</body>",
    "<p title=a\"b>|</body>",
    "<p title=a/b='>|</body>",
    "<p a\"b'>|</body>",
    "<p =\"x>|</body>\">",
    "<p a=/ ='>|</body>",
    "<p a=''b=\"</body>\">|</body>",
    "<p a/=\"x>|</body>",
    "<p a= >|</body>",
    "</p title=\"</body>\">|</body>",
    "<p </body></p>|</body>",

    /* comments, doctypes */

    "<!DOCTYPE html>|</body>",
    "<!-- </body> -->|</body>",
    "<!-->|</body>",
    "<!--->|</body>",
    "<!---->|</body>",
    "<!----->|</body>",
    "<!-- > </body> -- > -->|</body>",
    "<!-- --!>|</body>",
    "<!-- --!-></body>--!--->|</body>",
    "<!-- --!-->|</body>",

    "<!- </body>|</body>",
    "<! </body>|</body>",
    "<? </body>|</body>",
    "<?xml version=\"1.0\"?>|</body>",
    "</! </body>|</body>",
    "<!-- </body>",

    /* texts */

    "<script>var s = '</body>';</script>|</body>",
    "<SCRIPT src=x>'</body>'</Script >|</body>",
    "<script></scripts></script-></script<</script>|</body>",
    "<script><</</s</script/>|</body>",
    "<style>/* </body> */</style>|</body>",
    "<textarea></body></textarea>|</body>",
    "<title></body></title>|</body>",
    "<noscript></body></noscript>|</body>",
    "<xmp></body></xmp><plaintext></body>",
    "<titles>|</body>",
    "</title>|</body>",
    "<scripting-element>|</body>",
    "<style><!-- </style>|</body>",

    /* a script in a comment of a script */

    "<script><!-- <script></script></body> --></script>|</body>",
    "<script><!-- <script></script> </script>|</body>",
    "<script><!-- <scripts> </script>|</body>",
    "<script><!-- <b> --> <script> </script>|</body>",
    "<script><!--></script>|</body>",
    "<script><!-- <script> --> </script>|</body>",
    "<script><!-- <SCRIPT\t</script </body>--!></script>|</body>",
    "<script><!- <script></script>|</body>",
    "<script><!-- -- > <script></script></body></script>|</body>",
    "<script><!-- <script>a</script></body>--</script>|</body>",

    NULL
};


typedef struct {
    prof_html_t    scan;
    unsigned char  held[PROF_HTML_HELD];
    size_t         nheld;
    int            found;
    char           out[512];
    size_t         len;
} test_page_t;


static void test_splits(const char *page);
static void test_read(test_page_t *page, const char *s, size_t len);
static void test_put(test_page_t *page, const void *s, size_t len);
static int test_is(test_page_t *page, const char *want);


int
main(void)
{
    const char  **page;

    for (page = test_pages; *page; page++) {
        test_splits(*page);
    }

    return done_testing();
}


/* in one piece, in all pairs and triples of pieces, and byte by byte */

static void
test_splits(const char *want)
{
    char         in[512];
    size_t       i, j, len;
    unsigned     bad, tried;
    const char  *mark;
    test_page_t  page;

    mark = strchr(want, '|');
    len = strlen(want);
    memcpy(in, want, len);

    if (mark) {
        len--;
        memmove(in + (mark - want), mark + 1, len - (size_t) (mark - want));
    }

    in[len] = '\0';
    bad = 0;
    tried = 0;

    for (i = 0; i <= len; i++) {
        for (j = i; j <= len; j++) {
            memset(&page, 0, sizeof(test_page_t));
            prof_html_init(&page.scan);

            test_read(&page, in, i);
            test_read(&page, in + i, j - i);
            test_read(&page, in + j, len - j);

            bad += !test_is(&page, want);
            tried++;
        }
    }

    memset(&page, 0, sizeof(test_page_t));
    prof_html_init(&page.scan);

    for (i = 0; i < len; i++) {
        test_read(&page, in + i, 1);
    }

    bad += !test_is(&page, want);

    is_int(bad, 0, "all %u splits give: %s", tried + 1, want);

    if (bad) {
        diag("last: %.*s", (int) page.len, page.out);
    }
}


/* as a filter does it: undecided bytes are held back */

static void
test_read(test_page_t *page, const char *s, size_t len)
{
    int        found;
    size_t     before;
    ptrdiff_t  at;

    if (page->found) {
        test_put(page, s, len);
        return;
    }

    found = prof_html_scan(&page->scan, (const unsigned char *) s, len, &at);

    before = at < 0 ? page->nheld - (size_t) -at : page->nheld;

    test_put(page, page->held, before);
    memmove(page->held, page->held + before, page->nheld - before);
    page->nheld -= before;

    if (at > 0) {
        test_put(page, s, (size_t) at);
        s += at;
        len -= (size_t) at;
    }

    if (found) {
        page->found = 1;
        test_put(page, "|", 1);
        test_put(page, page->held, page->nheld);
        test_put(page, s, len);
        page->nheld = 0;
        return;
    }

    if (page->nheld + len > PROF_HTML_HELD) {
        test_put(page, "too much is held", 16);
        return;
    }

    memcpy(page->held + page->nheld, s, len);
    page->nheld += len;
}


static void
test_put(test_page_t *page, const void *s, size_t len)
{
    memcpy(page->out + page->len, s, len);
    page->len += len;
}


static int
test_is(test_page_t *page, const char *want)
{
    test_put(page, page->held, page->nheld);

    return page->len == strlen(want)
           && memcmp(page->out, want, page->len) == 0;
}
