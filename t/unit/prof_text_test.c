
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 */


#include "tap.h"

#include "formats/prof_text.h"


typedef struct {
    const char  *in;
    const char  *out;
    const char  *name;
} test_text_t;


#define R  "\xef\xbf\xbd"


static const test_text_t  tests[] = {
    { "", "", "empty" },
    { "plain", "plain", "ASCII" },
    { "a\x01\n\x7f", "a\x01\n\x7f", "control characters are characters" },
    { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5",
      "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5", "2, 3 and 4 bytes" },
    { "\x80", R, "continuation alone" },
    { "a\xff" "b", "a" R "b", "no such byte" },
    { "\xc3", R, "cut after 1 of 2" },
    { "\xe2\x82", R R, "cut after 2 of 3" },
    { "\xf0\x9f\x94", R R R, "cut after 3 of 4" },
    { "\xc3(", R "(", "not continued" },
    { "\xc0\xaf", R R, "overlong, 2 bytes" },
    { "\xe0\x80\xaf", R R R, "overlong, 3 bytes" },
    { "\xf0\x80\x80\xaf", R R R R, "overlong, 4 bytes" },
    { "\xed\xa0\x80", R R R, "surrogate" },
    { "\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80",
      "beside the surrogates" },
    { "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", "the last character" },
    { "\xf4\x90\x80\x80", R R R R, "one past the last" },
    { "\xf8\x88\x80\x80\x80", R R R R R, "5 bytes" },
    { NULL, NULL, NULL }
};


int
main(void)
{
    char               *text;
    size_t              len;
    const test_text_t  *t;

    for (t = tests; t->in; t++) {
        len = strlen(t->in);
        text = prof_text_utf8(t->in, &len);

        is_str(text, t->out, "%s is escaped", t->name);
        is_int(len, strlen(t->out), "%s: the text has its length", t->name);

        free(text);
    }

    len = 3;
    text = prof_text_utf8("a\0b", &len);
    is_mem(text, "a\0b", 4, "a null character is kept");
    free(text);

    is_int(prof_text_char("\xe2\x82\xac", 2), 0,
           "a character does not exceed the given length");
    is_int(prof_text_char("\xe2\x82\xac", 3), 3,
           "a whole character has its length");
    is_int(prof_text_char("", 0), 0, "no bytes are no character");

    return done_testing();
}
