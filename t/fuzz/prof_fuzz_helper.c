
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes what the process reads from its helper for names.  The input is a
 * sequence of messages after the greeting: a byte with the length of a message,
 * and its bytes.  The length 255 is an end of the answers.  This program's own
 * prof_spawn() puts the messages into the socket.
 */


#include "base/prof_clock.h"
#include "names/prof_helper.h"
#include "names/prof_spawn.h"
#include "names/prof_unit.h"
#include "names/prof_wire.h"
#include "prof.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>


#define FUZZ_ADDRESSES  20
#define FUZZ_END        255


typedef struct {
    uint32_t  next;             /* the address that may be answered next */
    size_t    bytes;            /* of all texts of answers */
} fuzz_answers_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_names(const prof_profile_object_t *object);
static int fuzz_answer(void *data, uint32_t i, const prof_name_t *name);
static size_t fuzz_text(const char *text);
static void fuzz_units(const prof_profile_object_t *object,
    const prof_profile_t *p);
static void fuzz_message(prof_buf_t *b, const void *data, uint32_t len);
static void fuzz_assert(int ok);


static const uint8_t  *fuzz_data;
static size_t          fuzz_size;
static int             fuzz_other = -1;


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prof_profile_t         p;
    prof_profile_object_t  object;

    memset(&p, 0, sizeof(prof_profile_t));
    memset(&object, 0, sizeof(prof_profile_object_t));

    object.path = (char *) (uintptr_t) "/usr/sbin/nginx";
    object.build_id = (char *) (uintptr_t) "0d7fd93d";

    p.objects = &object;
    p.nobjects = 1;

    fuzz_data = data;
    fuzz_size = size;

    prof_profile_helper("helper");

    fuzz_names(&object);
    fuzz_units(&object, &p);

    prof_helper_done();

    return 0;
}


static void
fuzz_names(const prof_profile_object_t *object)
{
    int                      rc;
    uint32_t                 i;
    prof_name_t              names[FUZZ_ADDRESSES];
    fuzz_answers_t           answers;
    prof_helper_question_t   q;
    uint64_t                 more;

    memset(names, 0, sizeof(names));
    memset(&answers, 0, sizeof(fuzz_answers_t));
    memset(&q, 0, sizeof(prof_helper_question_t));

    for (i = 0; i < FUZZ_ADDRESSES; i++) {
        names[i].pc = 0x1000 + i;
    }

    q.object = object;
    q.debug_root = "/usr/lib/debug";
    q.names = names;
    q.n = FUZZ_ADDRESSES;
    q.deadline = prof_clock(CLOCK_MONOTONIC) + 1000000000;
    q.answer = fuzz_answer;
    q.more = &more;
    q.data = &answers;

    rc = prof_helper_ask(&q);

    fuzz_assert(rc == PROF_OK || rc == PROF_LIMIT);
    fuzz_assert(answers.bytes <= fuzz_size);
}


static int
fuzz_answer(void *data, uint32_t i, const prof_name_t *name)
{
    uint32_t         k;
    fuzz_answers_t  *answers = data;

    fuzz_assert(i >= answers->next && i < FUZZ_ADDRESSES);
    fuzz_assert(name->ninlines <= PROF_MAX_INLINES);

    answers->next = i + 1;
    answers->bytes += fuzz_text(name->name) + fuzz_text(name->file);

    for (k = 0; k < name->ninlines; k++) {
        fuzz_assert(name->inlines[k].name != NULL);

        answers->bytes += fuzz_text(name->inlines[k].name)
                          + fuzz_text(name->inlines[k].file);
    }

    return PROF_OK;
}


static size_t
fuzz_text(const char *text)
{
    return text ? strlen(text) : 0;
}


static void
fuzz_units(const prof_profile_object_t *object, const prof_profile_t *p)
{
    int                   rc;
    uint32_t              i;
    prof_frame_t          f;
    prof_unit_table_t    *table;
    prof_names_object_t   names;

    /* each input asks about another object, of which the cache knows nothing */

    static uint64_t  inputs;

    memset(&names, 0, sizeof(prof_names_object_t));
    names.key[0] = ++inputs;

    rc = prof_unit_find(&table, &names, object, "/usr/lib/debug",
                        prof_clock(CLOCK_MONOTONIC) + 1000000000);

    fuzz_assert(rc == PROF_OK || rc == PROF_LIMIT);
    fuzz_assert(rc == PROF_OK || table == NULL);

    for (i = 0; i < 64; i++) {
        memset(&f, 0, sizeof(prof_frame_t));

        f.function = (uint64_t) 1 << i;

        fuzz_assert(prof_unit_name(table, p, &f) == PROF_OK);
        fuzz_assert((f.name != NULL) == (f.source == PROF_SOURCE_UNIT));

        free(f.name);
    }

    prof_unit_free(table);
}


/* replaces that of prof_spawn.c: each start of the helper sends the input */

int
prof_spawn(prof_spawn_t *s, const char *path, int nice)
{
    int         fds[2];
    size_t      i, len;
    uint32_t    message;
    prof_buf_t  b;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == -1) {
        return PROF_ERROR;
    }

    prof_buf_init(&b);

    message = PROF_WIRE_HELLO;
    fuzz_message(&b, &message, sizeof(message));

    for (i = 0; i < fuzz_size; i += len) {
        len = fuzz_data[i++];

        if (len == FUZZ_END) {
            message = PROF_WIRE_END;
            fuzz_message(&b, &message, sizeof(message));
            len = 0;
            continue;
        }

        if (len > fuzz_size - i) {
            len = fuzz_size - i;
        }

        fuzz_message(&b, fuzz_data + i, len);
    }

    /* one write: the socket has room for the bytes, but not for many writes */

    fuzz_assert(write(fds[1], b.data, b.len) == (ssize_t) b.len);
    prof_buf_free(&b);

    /* the process can still send questions, which are not read */

    fuzz_assert(shutdown(fds[1], SHUT_WR) == 0);

    s->fd = fds[0];
    s->pidfd = -1;
    fuzz_other = fds[1];

    return PROF_OK;
}


void
prof_spawn_end(prof_spawn_t *s)
{
    if (s->fd == -1) {
        return;
    }

    (void) close(s->fd);
    (void) close(fuzz_other);

    s->fd = -1;
    fuzz_other = -1;
}


static void
fuzz_message(prof_buf_t *b, const void *data, uint32_t len)
{
    prof_wire_u32(b, len);
    prof_buf_append(b, data, len);
}


static void
fuzz_assert(int ok)
{
    if (!ok) {
        abort();
    }
}
