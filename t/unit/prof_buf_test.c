
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: base
 * runs: beside
 */


#include "tap.h"

#include "base/prof_buf.h"


static void test_append(void);
static void test_printf(void);
static void test_number(void);
static void test_failure(void);


int
main(void)
{
    test_append();
    test_printf();
    test_number();
    test_failure();

    return done_testing();
}


static void
test_append(void)
{
    char        byte;
    size_t      i, wrong;
    prof_buf_t  b;

    prof_buf_init(&b);
    is_int(b.len, 0, "a new buffer is empty");

    prof_buf_append(&b, "", 0);
    ok(b.data == NULL && !prof_buf_failed(&b),
       "a buffer without data stays empty");

    for (i = 0; i < 100000; i++) {
        byte = (char) (i * 31);
        prof_buf_append(&b, &byte, 1);
    }

    prof_buf_puts(&b, "end");

    is_int(b.len, 100003, "a buffer has the length of its data");
    ok(!prof_buf_failed(&b), "a buffer grows without an error");

    wrong = 0;

    for (i = 0; i < 100000; i++) {
        wrong += b.data[i] != (char) (i * 31);
    }

    is_int(wrong, 0, "bytes kept while growing");
    is_mem(b.data + 100000, "end", 3,
           "a string is appended without its null");

    prof_buf_free(&b);
    ok(b.data == NULL && b.len == 0, "a freed buffer is empty");

    prof_buf_puts(&b, "again");
    is_int(b.len, 5, "a freed buffer can be used again");

    prof_buf_free(&b);
}


static void
test_printf(void)
{
    char        want[9001];
    size_t      i;
    prof_buf_t  b;

    prof_buf_init(&b);

    prof_buf_printf(&b, "%s-%d", "a", 7);
    is_int(b.len, 3, "printf: the text has its length");
    is_mem(b.data, "a-7", 3, "printf: the text is formatted");

    prof_buf_free(&b);

    /* longer than the first allocation, and exactly as long */

    memset(want, 'x', 9000);
    want[9000] = '\0';

    prof_buf_printf(&b, "%s", want);
    is_int(b.len, 9000, "printf: a long text has its length");
    is_mem(b.data, want, 9000, "printf: a long text is formatted");

    prof_buf_free(&b);

    for (i = 4090; i < 4100; i++) {
        prof_buf_printf(&b, "%*s", (int) i, "y");

        if (b.len != i || b.data[i - 1] != 'y') {
            break;
        }

        prof_buf_free(&b);
    }

    is_int(i, 4100, "printf: texts of all lengths fit");

    prof_buf_free(&b);
}


static void
test_number(void)
{
    prof_buf_t  b;

    prof_buf_init(&b);

    prof_buf_number(&b, 0);
    prof_buf_puts(&b, " ");
    prof_buf_number(&b, 10);
    prof_buf_puts(&b, " ");
    prof_buf_number(&b, 9007199254740993);
    prof_buf_puts(&b, " ");
    prof_buf_number(&b, UINT64_MAX);
    prof_buf_append(&b, "", 1);

    is_str(b.data, "0 10 9007199254740993 18446744073709551615",
           "numbers are decimal");

    prof_buf_free(&b);
}


static void
test_failure(void)
{
    prof_buf_t  b;

    prof_buf_init(&b);
    prof_buf_puts(&b, "abc");

    /* the length is refused before the data is read */

    prof_buf_append(&b, "x", SIZE_MAX - 1);

    ok(prof_buf_failed(&b), "a text that is too long is refused");
    is_int(b.len, 3, "a failed append adds nothing");

    prof_buf_puts(&b, "def");
    prof_buf_number(&b, 1);
    prof_buf_printf(&b, "%d", 2);

    is_int(b.len, 3, "an append after a failure adds nothing");
    ok(prof_buf_failed(&b), "failure is remembered");

    prof_buf_free(&b);
    ok(!prof_buf_failed(&b), "freeing the data clears the failure");
}
