
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 */


#include "tap.h"

#include "formats/prof_strings.h"


int
main(void)
{
    char            text[32];
    uint32_t        i, wrong;
    prof_strings_t  t;

    prof_strings_init(&t);

    is_int(prof_strings_add(&t, ""), 0, "the empty string has the index 0");
    is_int(prof_strings_add(&t, "a"), 1, "the first string has the index 1");
    is_int(prof_strings_add(&t, "b"), 2, "the second string has the index 2");
    is_int(prof_strings_add(&t, "a"), 1,
           "a string that is added again keeps its index");
    is_int(prof_strings_add(&t, "x\ny"), 3, "a control character is replaced");
    is_int(prof_strings_add(&t, "x\ry"), 3,
           "equal strings after the replacement have one index");
    is_str(t.data[3], "x?y", "control characters are replaced");

    wrong = 0;

    for (i = 0; i < 5000; i++) {
        (void) snprintf(text, sizeof(text), "string %u", i);
        wrong += prof_strings_add(&t, text) != 4 + i;
    }

    for (i = 0; i < 5000; i++) {
        (void) snprintf(text, sizeof(text), "string %u", i);
        wrong += prof_strings_add(&t, text) != 4 + i;
        wrong += strcmp(t.data[4 + i], text) != 0;
    }

    is_int(wrong, 0, "thousands of strings have consecutive indexes");
    is_int(t.n, 5004, "each string is stored once");

    prof_strings_free(&t);

    return done_testing();
}
