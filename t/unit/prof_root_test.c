
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 */


#include "tap.h"

#include "prof_fixture.h"
#include "formats/prof_encode.h"
#include "formats/prof_root.h"


static void test_parse(void);
static void test_keep(void);
static void test_unknown(void);
static void test_markup(void);
static prof_profile_t *make(const char *leaf);
static const char *folded(const prof_profile_t *p, prof_buf_t *b);


/* FNV-1a of "main;work;", by another program */
#define TEST_WORK  0x7c373a8du


int
main(void)
{
    test_parse();
    test_keep();
    test_unknown();
    test_markup();

    return done_testing();
}


static void
test_parse(void)
{
    uint32_t  hash;

    ok(prof_root_parse("0", 1, &hash) == PROF_OK && hash == 0,
       "one digit is a hash");
    ok(prof_root_parse("89abcdef", 8, &hash) == PROF_OK && hash == 0x89abcdef,
       "eight digits are a hash");

    is_int(prof_root_parse("", 0, &hash), PROF_ERROR,
           "an empty text is no hash");
    is_int(prof_root_parse("123456789", 9, &hash), PROF_ERROR,
           "nine digits are no hash");
    is_int(prof_root_parse("12g", 3, &hash), PROF_ERROR,
           "another letter is no digit");
    is_int(prof_root_parse("AB", 2, &hash), PROF_ERROR,
           "an upper-case letter is no digit");
    is_int(prof_root_parse("1\0", 2, &hash), PROF_ERROR,
           "a null byte is no digit");
}


static void
test_keep(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = make("leaf");

    is_int(prof_root_keep(p, TEST_WORK), PROF_OK, "the box is found");
    is_str(folded(p, &b), "main;work 10\nmain;work;leaf 20\n",
           "only stacks through the box remain");
    prof_buf_free(&b);

    is_int(p->aggregated, 1, "the profile has no timeline any more");
    is_int(p->nfacts, 1, "the profile has one more fact");
    is_str(p->facts[0].name, "root", "the fact is the root");
    is_str(p->facts[0].value, "work", "the fact names the box");
    is_int(p->wall, 100000, "the time of the capture remains");

    prof_profile_destroy(p);
}


static void
test_unknown(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = make("leaf");

    is_int(prof_root_keep(p, TEST_WORK + 1), PROF_LIMIT,
           "an unknown box is not found");
    is_str(folded(p, &b),
           "main;rest 30\nmain;work 10\nmain;work;leaf 20\nwork 40\n",
           "an unknown box removes nothing");
    is_int(p->nfacts, 0, "an unknown box adds no fact");
    prof_buf_free(&b);

    prof_profile_destroy(p);
}


/* the hash is that of the text in the markup */

static void
test_markup(void)
{
    prof_buf_t       b;
    prof_profile_t  *p;

    p = make("a<b>");

    /* "main;work;a&lt;b&gt;;" */

    is_int(prof_root_keep(p, 0xdc011e66), PROF_OK, "the box is found");
    is_str(folded(p, &b), "main;work;a<b> 20\n", "the leaf remains");
    prof_buf_free(&b);

    prof_profile_destroy(p);
}


static prof_profile_t *
make(const char *leaf)
{
    char             stack[64];
    uint32_t         object;
    prof_profile_t  *p;

    p = fixture_create("root");
    object = fixture_object(p, "/bin/x", "");

    snprintf(stack, sizeof(stack), "main/work/%s", leaf);

    fixture_entry(p, fixture_stack(p, object, "main/work"),
                  PROF_ENTRY_SAMPLE, 10, 10);
    fixture_entry(p, fixture_stack(p, object, stack), PROF_ENTRY_SAMPLE, 20,
                  20);
    fixture_entry(p, fixture_stack(p, object, "main/rest"),
                  PROF_ENTRY_SAMPLE, 30, 30);
    fixture_entry(p, fixture_stack(p, object, "work"), PROF_ENTRY_GAP, 40, 0);

    p->wall = 100000;

    return p;
}


static const char *
folded(const prof_profile_t *p, prof_buf_t *b)
{
    prof_buf_init(b);

    if (prof_encode_folded.encode(p, b) != PROF_OK) {
        return NULL;
    }

    prof_buf_append(b, "", 1);

    return b->data;
}
