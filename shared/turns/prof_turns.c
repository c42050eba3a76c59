
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Making and reading a turn log.
 */


#include "base/prof_clock.h"
#include "turns/prof_turns.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


/* one request has two to three turns, and many runs are for no request */
#define PROF_TURNS_PER_REQUEST  4

/* attempts to read the open runs of a process that writes meanwhile */
#define PROF_TURNS_TRIALS       16

#define PROF_TURNS_MIN          256
#define PROF_TURNS_MAX          (1 << 30)


static uint32_t prof_turns_nruns(size_t runs);
static uint32_t prof_turns_nrequests(uint32_t nruns);
static void prof_turns_close(prof_turns_writer_t *w, uint64_t now);
static void prof_turns_mark(prof_turns_writer_t *w, prof_turns_kind_e kind);
static void prof_turns_copy_open(const prof_turns_log_t *log,
    prof_turns_copy_t *copy);
static int prof_turns_copy_runs(const prof_turns_log_t *log, uint64_t from,
    prof_turns_copy_t *copy);
static int prof_turns_copy_requests(const prof_turns_log_t *log,
    prof_turns_copy_t *copy);
static int prof_turns_compare_runs(const void *one, const void *two);
static int prof_turns_compare_requests(const void *one, const void *two);


static const char  prof_turns_magic[8] = "NPTURNS";


static uint32_t
prof_turns_nruns(size_t runs)
{
    size_t  n;

    n = runs / sizeof(prof_turns_run_t);

    return (uint32_t) (n < PROF_TURNS_MIN ? PROF_TURNS_MIN
                       : n < PROF_TURNS_MAX ? n : PROF_TURNS_MAX);
}


static uint32_t
prof_turns_nrequests(uint32_t nruns)
{
    uint32_t  n;

    for (n = 1; 2 * n <= nruns / PROF_TURNS_PER_REQUEST; n *= 2) { /* void */ }

    return n;
}


size_t
prof_turns_size(size_t runs)
{
    uint32_t  n;

    n = prof_turns_nruns(runs);

    return sizeof(prof_turns_log_t)
           + n * sizeof(prof_turns_run_t)
           + prof_turns_nrequests(n) * sizeof(prof_turns_request_t);
}


void
prof_turns_init(prof_turns_log_t *log, size_t runs)
{
    log->version = PROF_TURNS_VERSION;
    log->run_size = sizeof(prof_turns_run_t);
    log->request_size = sizeof(prof_turns_request_t);
    log->nruns = prof_turns_nruns(runs);
    log->nrequests = prof_turns_nrequests(log->nruns);

    memcpy(log->magic, prof_turns_magic, sizeof(prof_turns_magic));
}


void
prof_turns_begin(prof_turns_writer_t *w, prof_turns_log_t *log, uint64_t owner)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    w->log = log;
    w->run = prof_turns_runs(log) + log->written % log->nruns;
    w->last = prof_turns_runs(log) + log->nruns - 1;
    w->rows = prof_turns_requests(log);
    w->mask = log->nrequests - 1;
    w->row = NULL;
    w->depth = 0;

    log->began = prof_clock(CLOCK_MONOTONIC);

    if (log->owner && !log->ended) {
        prof_turns_close(w, log->began);
    }

    log->depth = 0;
    log->ended = 0;
    log->wall = (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec - log->began;

    prof_turns_mark(w, PROF_TURNS_BEGIN);

    /* a reader that sees the owner also sees that it has no open run */

    __atomic_store_n(&log->owner, owner, __ATOMIC_RELEASE);
}


/* ends the runs of a dead process, which may have written anything */

static void
prof_turns_close(prof_turns_writer_t *w, uint64_t now)
{
    uint32_t               depth;
    prof_turns_log_t      *log;
    prof_turns_request_t  *row;

    log = w->log;
    depth = log->depth < PROF_TURNS_DEPTH ? log->depth : PROF_TURNS_DEPTH;

    while (depth--) {
        row = prof_turns_row(log, w->run->request);

        w->run->end = now;
        w->run->location = row ? row->location : 0;
        w->run->flags |= PROF_TURNS_DIED;

        prof_turns_written(w);

        if (depth) {
            *w->run = log->outer[depth - 1];
        }
    }
}


void
prof_turns_end(prof_turns_writer_t *w)
{
    prof_turns_mark(w, PROF_TURNS_END);

    w->log->depth = 0;
    w->log->ended = 1;

    w->log = NULL;
    w->depth = 0;
}


static void
prof_turns_mark(prof_turns_writer_t *w, prof_turns_kind_e kind)
{
    prof_turns_set(w->run, prof_clock(CLOCK_MONOTONIC), 0, kind, 0);
    w->run->end = w->run->start;

    prof_turns_written(w);
}


int
prof_turns_read(const prof_turns_log_t *log, uint64_t from,
    prof_turns_copy_t *copy)
{
    memset(copy, 0, sizeof(prof_turns_copy_t));

    if (memcmp(log->magic, prof_turns_magic, sizeof(prof_turns_magic)) != 0
        || log->version != PROF_TURNS_VERSION
        || log->run_size != sizeof(prof_turns_run_t)
        || log->request_size != sizeof(prof_turns_request_t))
    {
        return PROF_ERROR;
    }

    copy->log = *log;

    prof_turns_copy_open(log, copy);

    if (prof_turns_copy_runs(log, from, copy) != PROF_OK
        || prof_turns_copy_requests(log, copy) != PROF_OK)
    {
        prof_turns_free(copy);
        return PROF_ERROR;
    }

    return PROF_OK;
}


/*
 * A run that begins or ends changes the depth or the number of written runs.
 * So the records are not torn if both were the same before and afterwards.
 */

static void
prof_turns_copy_open(const prof_turns_log_t *log, prof_turns_copy_t *copy)
{
    int       i;
    uint32_t  depth, n, k;
    uint64_t  written;

    for (i = 0; i < PROF_TURNS_TRIALS; i++) {
        depth = __atomic_load_n(&log->depth, __ATOMIC_ACQUIRE);
        written = __atomic_load_n(&log->written, __ATOMIC_ACQUIRE);

        n = depth < PROF_TURNS_DEPTH ? depth : PROF_TURNS_DEPTH;

        for (k = 0; k + 1 < n; k++) {
            copy->open[k] = log->outer[k];
        }

        if (n) {
            copy->open[k] = prof_turns_runs(log)[written % log->nruns];
        }

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

        if (__atomic_load_n(&log->depth, __ATOMIC_RELAXED) == depth
            && __atomic_load_n(&log->written, __ATOMIC_RELAXED) == written)
        {
            copy->nopen = n;
            return;
        }
    }
}


/*
 * Runs are written when they end, so the ring is ordered by their end, and the
 * first run to copy is found from the newest one backwards.
 */

static int
prof_turns_copy_runs(const prof_turns_log_t *log, uint64_t from,
    prof_turns_copy_t *copy)
{
    size_t             i, n, lost;
    uint64_t           first, last, now;
    prof_turns_run_t  *ring;

    ring = prof_turns_runs(log);

    last = __atomic_load_n(&log->written, __ATOMIC_ACQUIRE);
    first = last > log->nruns ? last - log->nruns : 0;

    n = (size_t) (last - first);

    for (i = 0; i < n; i++) {
        if (ring[(last - 1 - i) % log->nruns].end < from) {
            break;
        }
    }

    copy->from = (i == n && first) ? UINT64_MAX : from;

    first = last - i;
    n = i;

    copy->runs = malloc((n + 1) * sizeof(prof_turns_run_t));
    if (copy->runs == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < n; i++) {
        copy->runs[i] = ring[(first + i) % log->nruns];
    }

    /* the writer may have written since then, and is writing one more */

    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    now = __atomic_load_n(&log->written, __ATOMIC_RELAXED) + 1;
    lost = 0;

    if (now > log->nruns && now - log->nruns > first) {
        lost = (size_t) (now - log->nruns - first);
        lost = lost < n ? lost : n;

        copy->from = UINT64_MAX;
    }

    copy->nruns = n - lost;

    if (copy->from == UINT64_MAX && copy->nruns) {
        copy->from = copy->runs[lost].end;
    }

    memmove(copy->runs, copy->runs + lost,
            copy->nruns * sizeof(prof_turns_run_t));

    qsort(copy->runs, copy->nruns, sizeof(prof_turns_run_t),
          prof_turns_compare_runs);

    return PROF_OK;
}


/* an outer run begins with its inner run or before it, and ends later */

static int
prof_turns_compare_runs(const void *one, const void *two)
{
    const prof_turns_run_t  *a = one, *b = two;

    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }

    return a->end > b->end ? -1 : a->end < b->end;
}


static int
prof_turns_copy_requests(const prof_turns_log_t *log, prof_turns_copy_t *copy)
{
    size_t                       i, n;
    uint32_t                     number, *numbers;
    prof_turns_request_t        *to;
    const prof_turns_request_t  *row;

    n = copy->nruns + copy->nopen;

    numbers = malloc((n + 1) * sizeof(uint32_t));
    copy->requests = malloc(((n < log->nrequests) ? n + 1 : log->nrequests)
                            * sizeof(prof_turns_request_t));

    if (numbers == NULL || copy->requests == NULL) {
        free(numbers);
        return PROF_ERROR;
    }

    for (i = 0; i < copy->nruns; i++) {
        numbers[i] = copy->runs[i].request;
    }

    for (i = 0; i < copy->nopen; i++) {
        numbers[copy->nruns + i] = copy->open[i].request;
    }

    qsort(numbers, n, sizeof(uint32_t), prof_turns_compare_requests);

    for (i = 0; i < n; i++) {
        number = numbers[i];

        if (number == 0 || (i && number == numbers[i - 1])) {
            continue;
        }

        row = prof_turns_requests(log) + (number & (log->nrequests - 1));

        if (__atomic_load_n(&row->number, __ATOMIC_ACQUIRE) != number) {
            continue;
        }

        to = &copy->requests[copy->nrequests];
        *to = *row;

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

        if (__atomic_load_n(&row->number, __ATOMIC_RELAXED) != number) {
            continue;
        }

        if (to->status == 0) {
            memset(&to->bytes, 0, offsetof(prof_turns_request_t, len)
                                  - offsetof(prof_turns_request_t, bytes));
        }

        to->number = number;
        to->len = to->len < PROF_TURNS_TEXT ? to->len : PROF_TURNS_TEXT;

        copy->nrequests++;
    }

    free(numbers);

    return PROF_OK;
}


static int
prof_turns_compare_requests(const void *one, const void *two)
{
    uint32_t  a, b;

    /* the number is the first member of a row */

    a = *(const uint32_t *) one;
    b = *(const uint32_t *) two;

    return a < b ? -1 : a > b;
}


/* the writer writes the next record meanwhile, so the one after it counts */

uint64_t
prof_turns_reach(const prof_turns_log_t *log)
{
    uint64_t  written;

    written = __atomic_load_n(&log->written, __ATOMIC_ACQUIRE);

    if (written + 1 < log->nruns) {
        return written ? prof_turns_runs(log)[0].end : 0;
    }

    return prof_turns_runs(log)[(written + 1) % log->nruns].end;
}


void
prof_turns_free(prof_turns_copy_t *copy)
{
    free(copy->runs);
    free(copy->requests);
    memset(copy, 0, sizeof(prof_turns_copy_t));
}


int
prof_turns_add_open(prof_turns_copy_t *copy, uint64_t now)
{
    size_t                       i, k, n;
    prof_turns_run_t            *run;
    const prof_turns_request_t  *row;

    n = copy->nruns;

    run = realloc(copy->runs, (n + copy->nopen + 1) * sizeof(prof_turns_run_t));
    if (run == NULL) {
        return PROF_ERROR;
    }

    copy->runs = run;

    for (i = 0; i < copy->nopen; i++) {
        run = &copy->runs[copy->nruns];
        *run = copy->open[i];

        /* the run may have ended before the runs were copied */

        for (k = 0; k < n; k++) {
            if (copy->runs[k].start == run->start
                && copy->runs[k].handler == run->handler)
            {
                break;
            }
        }

        if (k == n && run->start <= now) {
            row = prof_turns_find(copy, run->request);

            run->end = now;
            run->location = row ? row->location : 0;
            run->flags |= PROF_TURNS_OPEN;
            copy->nruns++;
        }
    }

    qsort(copy->runs, copy->nruns, sizeof(prof_turns_run_t),
          prof_turns_compare_runs);

    return PROF_OK;
}


void
prof_turns_forget(prof_turns_copy_t *copy)
{
    char                        *used;
    size_t                       i, n;
    const prof_turns_request_t  *row;

    used = calloc(copy->nrequests + 1, 1);
    if (used == NULL) {
        return;
    }

    for (i = 0; i < copy->nruns; i++) {
        row = prof_turns_find(copy, copy->runs[i].request);

        if (row) {
            used[row - copy->requests] = 1;
        }
    }

    for (i = 0, n = 0; i < copy->nrequests; i++) {
        if (used[i]) {
            copy->requests[n++] = copy->requests[i];
        }
    }

    copy->nrequests = n;

    free(used);
}


const prof_turns_request_t *
prof_turns_find(const prof_turns_copy_t *copy, uint32_t number)
{
    return number ? bsearch(&number, copy->requests, copy->nrequests,
                            sizeof(prof_turns_request_t),
                            prof_turns_compare_requests) : NULL;
}
