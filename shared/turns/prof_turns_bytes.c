
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The bytes of a snapshot.  Times of neighbors are near to each other, so their
 * differences are small numbers.
 */


#include "turns/prof_turns_snapshot.h"

#include <stdlib.h>
#include <string.h>


/* a change of the layout is a new version */
#define PROF_TURNS_BYTES  1

/* the least number of bytes of an item, to refuse impossible numbers of them */
#define PROF_TURNS_LEAST  2


typedef struct {
    const unsigned char  *pos;
    const unsigned char  *last;
    int                   failed;
} prof_turns_in_t;


static void prof_turns_put(prof_buf_t *b, uint64_t n);
static void prof_turns_put_text(prof_buf_t *b, const char *s, size_t len);
static void prof_turns_put_lane(prof_buf_t *b, const prof_turns_lane_t *lane);
static void prof_turns_put_run(prof_buf_t *b, const prof_turns_run_t *run,
    uint64_t last);
static void prof_turns_put_request(prof_buf_t *b,
    const prof_turns_request_t *row, uint32_t last);
static void prof_turns_put_address(prof_buf_t *b,
    const prof_turns_address_t *address);

static uint64_t prof_turns_get(prof_turns_in_t *in);
static uint64_t prof_turns_get_below(prof_turns_in_t *in, uint64_t limit);
static char *prof_turns_get_text(prof_turns_in_t *in);
static void prof_turns_get_bytes(prof_turns_in_t *in, void *to, size_t len);
static void prof_turns_get_snapshot(prof_turns_in_t *in,
    prof_turns_snapshot_t *s);
static void prof_turns_get_lane(prof_turns_in_t *in,
    prof_turns_snapshot_t *s, prof_turns_lane_t *lane);
static void prof_turns_get_run(prof_turns_in_t *in, prof_turns_snapshot_t *s,
    prof_turns_run_t *run, uint64_t last);
static void prof_turns_get_request(prof_turns_in_t *in,
    prof_turns_snapshot_t *s, prof_turns_request_t *row, uint32_t last);
static void prof_turns_get_address(prof_turns_in_t *in,
    prof_turns_address_t *address);


void
prof_turns_snapshot_write(const prof_turns_snapshot_t *s, prof_buf_t *b)
{
    uint32_t  i;

    prof_turns_put(b, PROF_TURNS_BYTES);
    prof_turns_put(b, s->now);
    prof_turns_put(b, s->length);
    prof_turns_put(b, s->reason);
    prof_turns_put(b, s->cut);
    prof_turns_put(b, s->worker);
    prof_turns_put(b, s->request);
    prof_turns_put(b, s->run);

    prof_turns_put(b, s->nlocations);

    for (i = 0; i < s->nlocations; i++) {
        prof_turns_put_text(b, s->locations[i].server,
                            strlen(s->locations[i].server));
        prof_turns_put_text(b, s->locations[i].name,
                            strlen(s->locations[i].name));
    }

    prof_turns_put(b, s->nhandlers);

    for (i = 0; i < s->nhandlers; i++) {
        prof_turns_put_text(b, s->handlers[i] ? s->handlers[i] : "",
                            s->handlers[i] ? strlen(s->handlers[i]) : 0);
    }

    prof_turns_put(b, s->nlanes);

    for (i = 0; i < s->nlanes; i++) {
        prof_turns_put_lane(b, &s->lanes[i]);
    }
}


static void
prof_turns_put(prof_buf_t *b, uint64_t n)
{
    size_t         len;
    unsigned char  bytes[10];

    for (len = 0; n >= 0x80; n >>= 7) {
        bytes[len++] = (unsigned char) (n | 0x80);
    }

    bytes[len++] = (unsigned char) n;

    prof_buf_append(b, bytes, len);
}


static void
prof_turns_put_text(prof_buf_t *b, const char *s, size_t len)
{
    prof_turns_put(b, len);
    prof_buf_append(b, s, len);
}


static void
prof_turns_put_lane(prof_buf_t *b, const prof_turns_lane_t *lane)
{
    size_t                    i;
    uint32_t                  number;
    uint64_t                  last;
    const prof_turns_copy_t  *copy;

    copy = &lane->copy;

    prof_turns_put(b, lane->worker);
    prof_turns_put(b, lane->pid);
    prof_turns_put(b, lane->alive);
    prof_turns_put(b, copy->log.ended);
    prof_turns_put(b, copy->log.began);
    prof_turns_put(b, copy->log.wall);
    prof_turns_put(b, copy->log.written);
    prof_turns_put(b, copy->from);

    prof_turns_put(b, copy->nruns);

    for (i = 0, last = 0; i < copy->nruns; i++) {
        prof_turns_put_run(b, &copy->runs[i], last);
        last = copy->runs[i].start;
    }

    prof_turns_put(b, copy->nrequests);

    for (i = 0, number = 0; i < copy->nrequests; i++) {
        prof_turns_put_request(b, &copy->requests[i], number);
        number = copy->requests[i].number;
    }
}


/* runs are ordered by their start */

static void
prof_turns_put_run(prof_buf_t *b, const prof_turns_run_t *run, uint64_t last)
{
    prof_turns_put(b, run->start - last);
    prof_turns_put(b, run->end - run->start);
    prof_turns_put(b, run->handler);
    prof_turns_put(b, run->request);
    prof_turns_put(b, run->stall);
    prof_turns_put(b, run->location);
    prof_turns_put(b, run->cause);
    prof_turns_put(b, run->kind);
    prof_turns_put(b, run->flags);
}


static void
prof_turns_put_request(prof_buf_t *b, const prof_turns_request_t *row,
    uint32_t last)
{
    prof_turns_put(b, row->number - last);
    prof_turns_put(b, row->status);
    prof_turns_put(b, row->location);
    prof_turns_put(b, row->start);
    prof_turns_put(b, row->bytes);
    prof_buf_append(b, row->id, sizeof(row->id));
    prof_turns_put_address(b, &row->client);
    prof_turns_put_address(b, &row->upstream);
    prof_turns_put(b, row->cut);
    prof_turns_put_text(b, row->text, row->len);
}


static void
prof_turns_put_address(prof_buf_t *b, const prof_turns_address_t *address)
{
    prof_turns_put(b, address->family);

    if (address->family) {
        prof_turns_put(b, address->port);
        prof_buf_append(b, address->address, sizeof(address->address));
    }
}


prof_turns_snapshot_t *
prof_turns_snapshot_read(const void *data, size_t len)
{
    prof_turns_in_t         in;
    prof_turns_snapshot_t  *s;

    in.pos = data;
    in.last = in.pos + len;
    in.failed = 0;

    if (prof_turns_get(&in) != PROF_TURNS_BYTES) {
        return NULL;
    }

    s = prof_turns_snapshot_create();
    if (s == NULL) {
        return NULL;
    }

    prof_turns_get_snapshot(&in, s);

    if (in.failed || in.pos != in.last) {
        prof_turns_snapshot_destroy(s);
        return NULL;
    }

    return s;
}


static void
prof_turns_get_snapshot(prof_turns_in_t *in, prof_turns_snapshot_t *s)
{
    char      *server, *name;
    uint32_t   n, i;

    s->now = prof_turns_get(in);
    s->length = prof_turns_get(in);
    s->reason = prof_turns_get_below(in, PROF_TURNS_REASONS);
    s->cut = prof_turns_get_below(in, 2);
    s->worker = prof_turns_get_below(in, UINT32_MAX);
    s->request = prof_turns_get_below(in, (uint64_t) UINT32_MAX + 1);
    s->run = prof_turns_get(in);

    n = prof_turns_get_below(in, UINT16_MAX);

    for (i = 0; i < n && !in->failed; i++) {
        server = prof_turns_get_text(in);
        name = prof_turns_get_text(in);

        if (server == NULL || name == NULL
            || prof_turns_snapshot_location(s, server, strlen(server), name,
                                            strlen(name))
               != PROF_OK)
        {
            in->failed = 1;
        }

        free(server);
        free(name);
    }

    n = prof_turns_get_below(in, PROF_TURNS_HANDLERS + 1);

    for (i = 0; i < n && !in->failed; i++) {
        s->handlers[i] = prof_turns_get_text(in);
        s->nhandlers = i + 1;
    }

    n = prof_turns_get_below(in, UINT16_MAX);

    if (n > (size_t) (in->last - in->pos)) {
        in->failed = 1;
        return;
    }

    s->lanes = calloc((size_t) n + 1, sizeof(prof_turns_lane_t));
    if (s->lanes == NULL) {
        in->failed = 1;
        return;
    }

    for (i = 0; i < n && !in->failed; i++) {
        s->nlanes = i + 1;
        prof_turns_get_lane(in, s, &s->lanes[i]);
    }
}


static void
prof_turns_get_lane(prof_turns_in_t *in, prof_turns_snapshot_t *s,
    prof_turns_lane_t *lane)
{
    size_t              i, n, most;
    uint32_t            number;
    uint64_t            last;
    prof_turns_copy_t  *copy;

    copy = &lane->copy;

    lane->worker = prof_turns_get_below(in, UINT32_MAX);
    lane->pid = prof_turns_get_below(in, UINT32_MAX);
    lane->alive = prof_turns_get_below(in, 2);
    copy->log.ended = prof_turns_get_below(in, 2);
    copy->log.began = prof_turns_get(in);
    copy->log.wall = prof_turns_get(in);
    copy->log.written = prof_turns_get(in);
    copy->from = prof_turns_get(in);

    most = (size_t) (in->last - in->pos) / PROF_TURNS_LEAST;

    n = prof_turns_get_below(in, most + 1);
    copy->runs = calloc(n + 1, sizeof(prof_turns_run_t));

    for (i = 0, last = 0; i < n && copy->runs && !in->failed; i++) {
        prof_turns_get_run(in, s, &copy->runs[i], last);
        last = copy->runs[i].start;
        copy->nruns = i + 1;
    }

    n = prof_turns_get_below(in, most + 1);
    copy->requests = calloc(n + 1, sizeof(prof_turns_request_t));

    for (i = 0, number = 0; i < n && copy->requests && !in->failed; i++) {
        prof_turns_get_request(in, s, &copy->requests[i], number);
        number = copy->requests[i].number;
        copy->nrequests = i + 1;
    }

    in->failed |= (copy->runs == NULL || copy->requests == NULL);
}


static void
prof_turns_get_run(prof_turns_in_t *in, prof_turns_snapshot_t *s,
    prof_turns_run_t *run, uint64_t last)
{
    run->start = last + prof_turns_get(in);
    run->end = run->start + prof_turns_get(in);
    run->handler = prof_turns_get_below(in, (uint64_t) s->nhandlers + 1);
    run->request = prof_turns_get_below(in, (uint64_t) UINT32_MAX + 1);
    run->stall = prof_turns_get_below(in, (uint64_t) UINT32_MAX + 1);
    run->location = prof_turns_get_below(in, (uint64_t) s->nlocations + 1);
    run->cause = prof_turns_get_below(in, UINT8_MAX + 1);
    run->kind = prof_turns_get_below(in, PROF_TURNS_END + 1);
    run->flags = prof_turns_get_below(in, (uint64_t) UINT32_MAX + 1);

    /* sums of times do not wrap */

    if (run->start < last || run->end < run->start
        || run->end > INT64_MAX || run->stall > run->start)
    {
        in->failed = 1;
    }
}


static void
prof_turns_get_request(prof_turns_in_t *in, prof_turns_snapshot_t *s,
    prof_turns_request_t *row, uint32_t last)
{
    uint64_t  step;

    step = prof_turns_get_below(in, (uint64_t) UINT32_MAX + 1);

    if (step == 0 || step > UINT32_MAX - last) {
        in->failed = 1;
    }

    row->number = (uint32_t) (last + step);
    row->status = prof_turns_get_below(in, UINT16_MAX + 1);
    row->location = prof_turns_get_below(in, (uint64_t) s->nlocations + 1);
    row->start = prof_turns_get(in);
    row->bytes = prof_turns_get(in);
    prof_turns_get_bytes(in, row->id, sizeof(row->id));
    prof_turns_get_address(in, &row->client);
    prof_turns_get_address(in, &row->upstream);
    row->cut = prof_turns_get_below(in, UINT16_MAX + 1);
    row->len = prof_turns_get_below(in, PROF_TURNS_TEXT + 1);
    prof_turns_get_bytes(in, row->text, row->len);
}


static void
prof_turns_get_address(prof_turns_in_t *in, prof_turns_address_t *address)
{
    address->family = prof_turns_get_below(in, UINT16_MAX + 1);

    if (address->family) {
        address->port = prof_turns_get_below(in, UINT16_MAX + 1);
        prof_turns_get_bytes(in, address->address, sizeof(address->address));
    }
}


static uint64_t
prof_turns_get(prof_turns_in_t *in)
{
    uint64_t  n;
    uint32_t  shift;

    n = 0;

    for (shift = 0; shift < 64 && in->pos < in->last; shift += 7) {
        n |= (uint64_t) (*in->pos & 0x7f) << shift;

        if (!(*in->pos++ & 0x80)) {
            return in->failed ? 0 : n;
        }
    }

    in->failed = 1;

    return 0;
}


static uint64_t
prof_turns_get_below(prof_turns_in_t *in, uint64_t limit)
{
    uint64_t  n;

    n = prof_turns_get(in);

    if (n < limit) {
        return n;
    }

    in->failed = 1;

    return 0;
}


static char *
prof_turns_get_text(prof_turns_in_t *in)
{
    char    *s;
    size_t   len;

    len = prof_turns_get_below(in, (uint64_t) (in->last - in->pos) + 1);

    s = malloc(len + 1);
    if (s == NULL) {
        in->failed = 1;
        return NULL;
    }

    prof_turns_get_bytes(in, s, len);
    s[len] = '\0';

    return s;
}


static void
prof_turns_get_bytes(prof_turns_in_t *in, void *to, size_t len)
{
    if ((size_t) (in->last - in->pos) < len) {
        in->failed = 1;
        memset(to, 0, len);
        return;
    }

    memcpy(to, in->pos, len);
    in->pos += len;
}
