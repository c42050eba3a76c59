
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Making snapshots of logs.
 */


#include "turns/prof_turns_snapshot.h"

#include <stdlib.h>
#include <string.h>


/* bytes of a run, and of a request without its text, in most snapshots */
#define PROF_TURNS_RUN_BYTES      14
#define PROF_TURNS_REQUEST_BYTES  48


static uint32_t prof_turns_snapshot_handler(prof_turns_snapshot_t *s,
    uint64_t pc);
static uint16_t prof_turns_snapshot_number(uint32_t base, uint32_t n,
    uint16_t number);
static size_t prof_turns_snapshot_bytes(const prof_turns_snapshot_t *s);


prof_turns_snapshot_t *
prof_turns_snapshot_create(void)
{
    prof_turns_snapshot_t  *s;

    s = calloc(1, sizeof(prof_turns_snapshot_t));
    if (s == NULL) {
        return NULL;
    }

    s->handlers = calloc(PROF_TURNS_HANDLERS, sizeof(char *));
    s->pcs = calloc(PROF_TURNS_HANDLERS, sizeof(uintptr_t));

    if (s->handlers == NULL || s->pcs == NULL) {
        prof_turns_snapshot_destroy(s);
        return NULL;
    }

    return s;
}


void
prof_turns_snapshot_destroy(prof_turns_snapshot_t *s)
{
    uint32_t  i;

    if (s == NULL) {
        return;
    }

    for (i = 0; i < s->nlocations; i++) {
        free(s->locations[i].server);
        free(s->locations[i].name);
    }

    for (i = 0; i < s->nhandlers; i++) {
        free(s->handlers[i]);
    }

    for (i = 0; i < s->nlanes; i++) {
        prof_turns_free(&s->lanes[i].copy);
    }

    free(s->locations);
    free(s->handlers);
    free(s->pcs);
    free(s->lanes);
    free(s);
}


int
prof_turns_snapshot_location(prof_turns_snapshot_t *s, const char *server,
    size_t server_len, const char *name, size_t name_len)
{
    prof_turns_location_t  *l;

    l = realloc(s->locations,
                (s->nlocations + 1) * sizeof(prof_turns_location_t));
    if (l == NULL) {
        return PROF_ERROR;
    }

    s->locations = l;
    l += s->nlocations;

    l->server = strndup(server, server_len);
    l->name = strndup(name, name_len);

    if (l->server == NULL || l->name == NULL) {
        free(l->server);
        free(l->name);
        return PROF_ERROR;
    }

    s->nlocations++;

    return PROF_OK;
}


prof_turns_lane_t *
prof_turns_snapshot_add(prof_turns_snapshot_t *s, prof_turns_copy_t *copy,
    uint32_t base, uint32_t n)
{
    size_t                 i, valid;
    prof_turns_run_t      *run;
    prof_turns_lane_t     *lane;
    prof_turns_request_t  *row;

    lane = realloc(s->lanes, (s->nlanes + 1) * sizeof(prof_turns_lane_t));
    if (lane == NULL) {
        prof_turns_free(copy);
        return NULL;
    }

    s->lanes = lane;
    lane = &s->lanes[s->nlanes++];

    memset(lane, 0, sizeof(prof_turns_lane_t));
    lane->copy = *copy;

    for (i = 0, valid = 0; i < copy->nruns; i++) {
        run = &lane->copy.runs[valid];
        *run = copy->runs[i];

        /* a dead process may have written anything */

        if (run->end < run->start || run->end > INT64_MAX
            || run->kind > PROF_TURNS_END)
        {
            continue;
        }

        valid++;

        run->stall = run->stall < run->start ? run->stall : 0;
        run->handler = prof_turns_snapshot_handler(s, run->handler);
        run->location = prof_turns_snapshot_number(base, n, run->location);
    }

    lane->copy.nruns = valid;

    for (i = 0; i < copy->nrequests; i++) {
        row = &lane->copy.requests[i];
        row->location = prof_turns_snapshot_number(base, n, row->location);
    }

    return lane;
}


/* returns the index of the handler plus 1; further handlers have no name */

static uint32_t
prof_turns_snapshot_handler(prof_turns_snapshot_t *s, uint64_t pc)
{
    uint32_t  i;

    if (pc == 0) {
        return 0;
    }

    for (i = 0; i < s->nhandlers; i++) {
        if (s->pcs[i] == pc) {
            return i + 1;
        }
    }

    if (i == PROF_TURNS_HANDLERS) {
        return 0;
    }

    s->pcs[s->nhandlers++] = pc;

    return i + 1;
}


static uint16_t
prof_turns_snapshot_number(uint32_t base, uint32_t n, uint16_t number)
{
    return (number == 0 || number > n || base + number > UINT16_MAX)
           ? 0 : (uint16_t) (base + number);
}


void
prof_turns_snapshot_cut(prof_turns_snapshot_t *s, size_t bytes)
{
    size_t              i, n, all;
    uint64_t            from;
    prof_turns_copy_t  *copy;

    all = prof_turns_snapshot_bytes(s);

    if (all <= bytes) {
        return;
    }

    s->cut = 1;

    for (i = 0; i < s->nlanes; i++) {
        copy = &s->lanes[i].copy;

        n = (size_t) ((double) copy->nruns * bytes / all);

        /* a run that began earlier and ended later stays away as well */

        from = n ? copy->runs[copy->nruns - n].start : copy->from;

        memmove(copy->runs, copy->runs + copy->nruns - n,
                n * sizeof(prof_turns_run_t));

        copy->nruns = n;
        copy->from = from > copy->from ? from : copy->from;

        prof_turns_forget(copy);
    }
}


static size_t
prof_turns_snapshot_bytes(const prof_turns_snapshot_t *s)
{
    size_t                    i, k, bytes;
    const prof_turns_copy_t  *copy;

    bytes = 0;

    for (i = 0; i < s->nlanes; i++) {
        copy = &s->lanes[i].copy;
        bytes += copy->nruns * PROF_TURNS_RUN_BYTES;

        for (k = 0; k < copy->nrequests; k++) {
            bytes += PROF_TURNS_REQUEST_BYTES + copy->requests[k].len;
        }
    }

    return bytes;
}
