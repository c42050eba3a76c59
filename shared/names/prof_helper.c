
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "names/prof_helper.h"
#include "base/prof_clock.h"
#include "names/prof_spawn.h"
#include "names/prof_wire.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>


typedef struct {
    prof_spawn_t   program;
    uint64_t       next;        /* no start is permitted before this time */
} prof_helper_t;


/* the priority of the helper that no client waits for: the lowest one */

#define PROF_HELPER_NICE  19


static uint64_t prof_helper_deadline(uint64_t deadline);
static int prof_helper_start(uint64_t deadline);
static int prof_helper_chunk(const prof_helper_question_t *q, uint32_t first,
    uint32_t n, uint64_t deadline);
static void prof_helper_question(prof_buf_t *b,
    const prof_helper_question_t *q, uint32_t first, uint32_t n);
static int prof_helper_answer(const prof_helper_question_t *q,
    const prof_buf_t *b, uint32_t first, uint32_t last, uint32_t *next);
static void prof_helper_failed(int rc);
static int prof_helper_fetches(void);


static const char    *prof_helper_path;
static const char    *prof_helper_error;

static prof_helper_t  prof_helpers[PROF_HELPERS] = {
    { { -1, -1 }, 0 },
    { { -1, -1 }, 0 }
};

static __thread prof_helper_e  prof_helper_caller;


void
prof_profile_helper(const char *path)
{
    prof_helper_path = path;
    prof_wire_limit(UINT64_MAX, UINT64_MAX);
}


void
prof_profile_hurry(uint64_t clients, uint64_t others)
{
    uint64_t  now;

    now = prof_clock(CLOCK_MONOTONIC);

    prof_wire_limit(now + clients, now + others);
}


const char *
prof_profile_helper_error(void)
{
    return __atomic_exchange_n(&prof_helper_error, NULL, __ATOMIC_RELAXED);
}


void
prof_profile_background(void)
{
    prof_helper_caller = PROF_HELPER_NOBODY;
    prof_wire_idle();
}


prof_helper_e
prof_helper_who(void)
{
    return prof_helper_caller;
}


int
prof_helper_exists(void)
{
    return prof_helper_path != NULL;
}


uint64_t
prof_helper_time(void)
{
    return (prof_helper_who() == PROF_HELPER_NOBODY ? PROF_HELPER_PATIENCE
                                                    : PROF_HELPER_TIME)
           + (prof_helper_fetches() ? PROF_HELPER_FETCH_TIME : 0);
}


int
prof_helper_ask(const prof_helper_question_t *q)
{
    int       rc;
    uint32_t  i, n;
    uint64_t  deadline;

    if (prof_helper_path == NULL) {
        return PROF_OK;
    }

    deadline = prof_helper_deadline(q->deadline);

    if (prof_helper_start(deadline) != PROF_OK) {
        return PROF_LIMIT;
    }

    for (i = 0; i < q->n; i += n) {

        n = q->n - i;

        if (n > PROF_WIRE_ADDRESSES) {
            n = PROF_WIRE_ADDRESSES;
        }

        rc = prof_helper_chunk(q, i, n, deadline);

        if (rc != PROF_OK) {
            return rc;
        }
    }

    return PROF_OK;
}


/* returns the deadline for one object, or that of the profile if earlier */

static uint64_t
prof_helper_deadline(uint64_t deadline)
{
    uint64_t  object;

    if (prof_helper_who() == PROF_HELPER_NOBODY) {
        return deadline;
    }

    object = prof_clock(CLOCK_MONOTONIC) + PROF_HELPER_OBJECT_TIME
             + (prof_helper_fetches() ? PROF_HELPER_FETCH_TIME : 0);

    return object < deadline ? object : deadline;
}


int
prof_helper_exchange(const prof_buf_t *question, prof_buf_t *answer,
    uint64_t deadline)
{
    int          rc, fd;
    prof_buf_t   end;
    prof_wire_t  w;

    if (prof_helper_path == NULL) {
        return PROF_OK;
    }

    deadline = prof_helper_deadline(deadline);

    if (prof_helper_start(deadline) != PROF_OK) {
        return PROF_LIMIT;
    }

    prof_buf_init(&end);

    fd = prof_helpers[prof_helper_who()].program.fd;

    rc = prof_wire_send(fd, question, deadline);

    if (rc == PROF_OK) {
        rc = prof_wire_receive(fd, answer, deadline);
    }

    if (rc == PROF_OK) {
        rc = prof_wire_receive(fd, &end, deadline);
    }

    if (rc == PROF_OK) {
        w.pos = end.data;
        w.end = end.data + end.len;
        w.failed = 0;

        if (prof_wire_get_u32(&w) != PROF_WIRE_END) {
            rc = PROF_ERROR;
        }
    }

    prof_buf_free(&end);

    if (rc == PROF_OK) {
        return PROF_OK;
    }

    prof_helper_failed(rc);

    return PROF_LIMIT;
}


static int
prof_helper_start(uint64_t deadline)
{
    int             rc;
    prof_buf_t      b;
    prof_wire_t     w;
    prof_helper_t  *helper;
    struct pollfd   pfd;

    helper = &prof_helpers[prof_helper_who()];

    /* a readable socket is closed at its other end: an idle helper exits */

    pfd.fd = helper->program.fd;
    pfd.events = POLLIN;

    if (helper->program.fd != -1 && poll(&pfd, 1, 0) != 0) {
        prof_spawn_end(&helper->program);
    }

    if (helper->program.fd != -1) {
        return PROF_OK;
    }

    if (prof_clock(CLOCK_MONOTONIC) < helper->next) {
        return PROF_LIMIT;
    }

    prof_buf_init(&b);

    rc = prof_spawn(&helper->program, prof_helper_path,
                    helper == &prof_helpers[PROF_HELPER_NOBODY]
                    ? PROF_HELPER_NICE : 0);

    if (rc == PROF_OK) {
        rc = prof_wire_receive(helper->program.fd, &b, deadline);
    }

    if (rc == PROF_OK) {
        w.pos = b.data;
        w.end = b.data + b.len;
        w.failed = 0;

        if (prof_wire_get_u32(&w) != PROF_WIRE_HELLO || w.pos != w.end) {
            rc = PROF_ERROR;
        }
    }

    prof_buf_free(&b);

    if (rc != PROF_OK) {
        helper->next = prof_clock(CLOCK_MONOTONIC) + PROF_HELPER_PAUSE;
        prof_spawn_end(&helper->program);

        __atomic_store_n(&prof_helper_error, "cannot be started",
                         __ATOMIC_RELAXED);
    }

    return rc;
}


static int
prof_helper_chunk(const prof_helper_question_t *q, uint32_t first, uint32_t n,
    uint64_t deadline)
{
    int            rc;
    uint32_t       last, next;
    prof_buf_t     b;
    prof_spawn_t  *helper;

    prof_buf_init(&b);

    prof_helper_question(&b, q, first, n);

    helper = &prof_helpers[prof_helper_who()].program;

    rc = prof_wire_send(helper->fd, &b, deadline);

    next = first;
    last = first + n;

    while (rc == PROF_OK && next != PROF_WIRE_END) {

        rc = prof_wire_receive(helper->fd, &b, deadline);

        if (rc == PROF_OK) {
            rc = prof_helper_answer(q, &b, first, last, &next);

            if (rc == PROF_ERROR) {
                prof_buf_free(&b);
                prof_spawn_end(helper);
                return PROF_ERROR;
            }

            if (rc == PROF_LIMIT) {
                rc = PROF_ERROR;
            }
        }
    }

    prof_buf_free(&b);

    if (rc == PROF_OK) {
        return PROF_OK;
    }

    prof_helper_failed(rc);

    return PROF_LIMIT;
}


void
prof_helper_begin(prof_buf_t *b, uint32_t question,
    const prof_profile_object_t *o, const char *debug_root)
{
    struct stat  st;

    /*
     * Without a build-id, the caller has checked that the file is the right
     * one.
     */

    if (o->build_id[0] || stat(o->path, &st) == -1) {
        memset(&st, 0, sizeof(struct stat));
    }

    prof_wire_u32(b, question);
    prof_wire_u64(b, st.st_dev);
    prof_wire_u64(b, st.st_ino);
    prof_wire_text(b, o->build_id);
    prof_wire_text(b, o->path);
    prof_wire_text(b, debug_root);
}


static void
prof_helper_question(prof_buf_t *b, const prof_helper_question_t *q,
    uint32_t first, uint32_t n)
{
    uint32_t  i;

    prof_helper_begin(b, PROF_WIRE_NAMES, q->object, q->debug_root);

    prof_wire_u32(b, n);

    for (i = first; i < first + n; i++) {
        prof_wire_u64(b, q->names[i].pc);
        prof_wire_u64(b, q->names[i].function);
        prof_wire_text(b, q->names[i].name);
    }
}


/*
 * Reads one message of the answer.  Sets *next to the index after the last
 * address with an answer, or to PROF_WIRE_END.  Returns PROF_LIMIT if the
 * message is invalid.
 */

static int
prof_helper_answer(const prof_helper_question_t *q, const prof_buf_t *b,
    uint32_t first, uint32_t last, uint32_t *next)
{
    uint32_t       i, index;
    prof_name_t    name;
    prof_wire_t    w;
    prof_inline_t  inlines[PROF_MAX_INLINES];

    w.pos = b->data;
    w.end = b->data + b->len;
    w.failed = 0;

    index = prof_wire_get_u32(&w);

    if (index == PROF_WIRE_END) {
        *next = PROF_WIRE_END;
        *q->more = prof_wire_get_u32(&w) ? PROF_NAMES_SOMETHING
                                         : PROF_NAMES_NOTHING;

        return !w.failed && w.pos == w.end ? PROF_OK : PROF_LIMIT;
    }

    if (index >= last - first || first + index < *next) {
        return PROF_LIMIT;
    }

    *next = first + index + 1;

    memset(&name, 0, sizeof(prof_name_t));
    memset(inlines, 0, sizeof(inlines));

    name.complete = prof_wire_get_u32(&w) != 0;
    name.line = prof_wire_get_u32(&w);
    name.start_line = prof_wire_get_u32(&w);
    name.name = (char *) (uintptr_t) prof_wire_get_text(&w);
    name.file = (char *) (uintptr_t) prof_wire_get_text(&w);
    name.source = name.name == NULL ? PROF_SOURCE_NONE
                  : name.complete ? PROF_SOURCE_DEBUG : PROF_SOURCE_SYMBOLS;
    name.ninlines = prof_wire_get_u32(&w);
    name.inlines = inlines;

    if (name.ninlines > PROF_MAX_INLINES) {
        return PROF_LIMIT;
    }

    for (i = 0; i < name.ninlines; i++) {
        inlines[i].line = prof_wire_get_u32(&w);
        inlines[i].start_line = prof_wire_get_u32(&w);
        inlines[i].name = (char *) (uintptr_t) prof_wire_get_text(&w);
        inlines[i].file = (char *) (uintptr_t) prof_wire_get_text(&w);

        if (inlines[i].name == NULL) {
            return PROF_LIMIT;
        }
    }

    if (w.failed || w.pos != w.end) {
        return PROF_LIMIT;
    }

    return q->answer(q->data, first + index, &name);
}


static void
prof_helper_failed(int rc)
{
    prof_spawn_end(&prof_helpers[prof_helper_who()].program);

    __atomic_store_n(&prof_helper_error,
                     rc == PROF_LIMIT ? "did not answer in time"
                                      : "ended, or gave a wrong answer",
                     __ATOMIC_RELAXED);
}


void
prof_helper_done(void)
{
    uint32_t  i;

    for (i = 0; i < PROF_HELPERS; i++) {
        prof_spawn_end(&prof_helpers[i].program);
    }
}


static int
prof_helper_fetches(void)
{
    const char  *urls;

    urls = getenv("DEBUGINFOD_URLS");

    return urls && urls[0];
}
