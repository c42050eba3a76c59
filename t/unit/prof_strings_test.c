
/*
 * Copyright (C) The ngx_http_profile_module authors
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

    is_int(prof_strings_add(&t, ""), 0, "the empty one");
    is_int(prof_strings_add(&t, "a"), 1, "the first");
    is_int(prof_strings_add(&t, "b"), 2, "the second");
    is_int(prof_strings_add(&t, "a"), 1, "the first again");
    is_int(prof_strings_add(&t, "x\ny"), 3, "cleaned");
    is_int(prof_strings_add(&t, "x\ry"), 3, "the same when cleaned");
    is_str(t.data[3], "x?y", "without control characters");

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

    is_int(wrong, 0, "many");
    is_int(t.n, 5004, "each once");

    prof_strings_free(&t);

    return done_testing();
}
