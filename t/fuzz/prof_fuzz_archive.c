
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes archives.  The first byte decides whether the rest is an archive, or
 * the content of an archive with the right checksum.  A profile that was read
 * must stay the same when it is written and read again.  Encoders must accept
 * it: alone, merged with itself, and compared with itself.
 */


#include "prof_repack.h"
#include "archive/prof_archive.h"
#include "views/prof_diff.h"
#include "formats/prof_encode.h"
#include "names/prof_symbolize.h"
#include "profile/prof_merge.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_profile(prof_profile_t *p, uint8_t choice);
static void fuzz_assert(int ok);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prof_buf_t       b;
    const char      *err;
    prof_profile_t  *p;

    if (size == 0) {
        return 0;
    }

    prof_buf_init(&b);

    if (data[0] % 8) {
        repack(data + 1, size - 1, &b);

    } else {
        prof_buf_append(&b, data + 1, size - 1);
    }

    p = prof_archive_read(b.data, b.len, &err);

    fuzz_assert((p == NULL) == (err != NULL));

    if (p) {
        fuzz_profile(p, data[0] >> 3);
    }

    prof_profile_destroy(p);
    prof_buf_free(&b);

    return 0;
}


static void
fuzz_profile(prof_profile_t *p, uint8_t choice)
{
    size_t                 n;
    uint32_t               i;
    prof_buf_t             again, b, diff, out;
    prof_profile_t        *copy, *merged;
    const prof_profile_t  *both[2];

    for (n = 0; prof_encoders[n]; n++) { /* void */ }

    prof_buf_init(&b);
    prof_buf_init(&again);
    prof_buf_init(&out);
    prof_buf_init(&diff);

    fuzz_assert(prof_archive_write(p, &b) == PROF_OK);

    copy = prof_archive_read(b.data, b.len, NULL);
    fuzz_assert(copy != NULL);

    fuzz_assert(prof_archive_write(copy, &again) == PROF_OK);
    fuzz_assert(b.len == again.len
                && memcmp(b.data, again.data, b.len) == 0);

    /* no file is looked up, since no file has such a path or build-id */

    for (i = 0; i < p->nobjects; i++) {
        p->objects[i].path[0] = '\0';
        p->objects[i].build_id[0] = '\0';
        copy->objects[i].path[0] = '\0';
        copy->objects[i].build_id[0] = '\0';
    }

    fuzz_assert(prof_profile_symbolize(p) == PROF_OK);

    both[0] = p;
    both[1] = copy;
    merged = prof_profile_merge(both, NULL, 2, p->title, choice % 2);
    fuzz_assert(merged != NULL && prof_profile_symbolize(merged) == PROF_OK);

    fuzz_assert(prof_encoders[choice % n]->encode(choice % 3 ? merged : p,
                                                  &out)
                == PROF_OK);

    fuzz_assert(prof_profile_symbolize(copy) == PROF_OK);
    fuzz_assert(prof_diff_encoders[choice % 2]->encode(p, merged, choice % 2,
                                                       &diff)
                == PROF_OK);

    prof_buf_free(&diff);
    prof_profile_destroy(merged);
    prof_profile_destroy(copy);
    prof_buf_free(&b);
    prof_buf_free(&again);
    prof_buf_free(&out);
}


static void
fuzz_assert(int ok)
{
    if (!ok) {
        abort();
    }
}
