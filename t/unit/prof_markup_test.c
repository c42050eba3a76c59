
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 */


#include "tap.h"

#include "formats/prof_text.h"

#include <stdlib.h>
#include <string.h>


static void test_text(void);
static void test_cut(void);
static void test_percent(void);
static void check_text(const char *in, size_t max, const char *out);
static void check_percent(uint64_t part, uint64_t whole, uint32_t decimals,
    const char *out);


int
main(void)
{
    test_text();
    test_cut();
    test_percent();

    return done_testing();
}


static void
test_text(void)
{
    check_text("", 8, "");
    check_text("plain", 8, "plain");
    check_text("<a b='c' d=\"e\">&", 99,
               "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
    check_text("a\n\t\x01\x7f" "b", 99,
               "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" "b");
    check_text("\xc2\x85", 99, "\xef\xbf\xbd");
    check_text("\xc2\xa0", 99, "\xc2\xa0");
    check_text("\xff", 99, "\xef\xbf\xbd");
    check_text("\xe2\x82\xac\xf0\x9f\x94\xa5", 99,
               "\xe2\x82\xac\xf0\x9f\x94\xa5");
    check_text("\xe2\x80\xae" "abc", 99, "\xef\xbf\xbd" "abc");
    check_text("\xd8\x9c", 99, "\xef\xbf\xbd");
    check_text("\xef\xbf\xbe", 99, "\xef\xbf\xbd");
}


static void
test_cut(void)
{
    check_text("12345", 5, "12345");
    check_text("123456", 5, "12345\xe2\x80\xa6");
    check_text("<<<", 3, "&lt;&lt;&lt;");
    check_text("<<<", 2, "&lt;&lt;\xe2\x80\xa6");
    check_text("1234\xe2\x82\xac", 5, "1234\xe2\x80\xa6");
    check_text("1234\xe2\x82\xac", 7, "1234\xe2\x82\xac");
}


static void
test_percent(void)
{
    check_percent(0, 0, 4, "0");
    check_percent(1, 1, 4, "100");
    check_percent(1, 2, 0, "50");
    check_percent(1, 3, 4, "33.3333");
    check_percent(2, 3, 2, "66.67");
    check_percent(1, 8, 2, "12.5");
    check_percent(1, 1000, 4, "0.1");
    check_percent(1, 10000000, 4, "0");
    check_percent(UINT64_MAX, UINT64_MAX, 4, "100");
    check_percent(UINT64_MAX / 4, UINT64_MAX, 3, "25");
}


static void
check_text(const char *in, size_t max, const char *out)
{
    prof_buf_t  b;

    prof_buf_init(&b);
    prof_markup_text(&b, in, strlen(in), max);
    prof_buf_append(&b, "", 1);
    is_str(b.data, out, "text \"%s\"", out);
    prof_buf_free(&b);
}


static void
check_percent(uint64_t part, uint64_t whole, uint32_t decimals,
    const char *out)
{
    prof_buf_t  b;

    prof_buf_init(&b);
    prof_markup_percent(&b, part, whole, decimals);
    prof_buf_append(&b, "", 1);
    is_str(b.data, out, "%s%%", out);
    prof_buf_free(&b);
}
