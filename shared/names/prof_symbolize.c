
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Names for all frames of a profile.  This file collects the addresses of each
 * object and takes names from the cache.  It looks up the other addresses
 * together, in the object's own symbol tables and then with the helper
 * process.  A frame that still has no name gets the object and the offset.
 */


#include "names/prof_helper.h"
#include "base/prof_clock.h"
#include "names/prof_kernel_names.h"
#include "names/prof_later.h"
#include "names/prof_mangled.h"
#include "names/prof_names.h"
#include "names/prof_role.h"
#include "names/prof_symbol.h"
#include "names/prof_symbolize.h"
#include "names/prof_syscall.h"
#include "names/prof_unit.h"
#include "names/prof_wire.h"
#include "profile/prof_profile.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>


/* the frames of one object, sorted by address */

typedef struct {
    prof_profile_t         *profile;
    const char             *debug_root;
    uint32_t                again;      /* look up incomplete names */
    uint32_t                late;       /* what a client did not get in time */
    uint64_t                deadline;
    prof_call_t            *calls;      /* by frame */
    prof_profile_object_t  *object;
    prof_names_object_t     names;      /* what the cache knows about it */
    prof_names_found_t      found;
    prof_unit_table_t      *units;      /* NULL: unknown */
    uint32_t               *frames;
    uint32_t                n;

    /* the frames to look up: in symbol tables, and by the helper */

    uint32_t               *tables;
    uint32_t                ntables;
    uint32_t               *ask;
    uint32_t                nask;
    uint32_t                nanswers;

    /* frames of all objects, to look up when no client waits */

    uint32_t               *later;
    uint32_t                nlater;
} prof_symbolize_t;


static int prof_symbolize_locked(prof_profile_t *p, const char *debug_root,
    uint32_t again);
static int prof_symbolize_all(prof_symbolize_t *s, uint32_t *order);
static int prof_symbolize_object(prof_symbolize_t *s);
static int prof_symbolize_names(prof_symbolize_t *s);
static int prof_symbolize_known(prof_symbolize_t *s);
static int prof_symbolize_tables(prof_symbolize_t *s);
static void prof_symbolize_choose(prof_symbolize_t *s);
static int prof_symbolize_ask(prof_symbolize_t *s);
static void prof_symbolize_lost(prof_symbolize_t *s, uint32_t first);
static int prof_symbolize_answer(void *data, uint32_t i,
    const prof_name_t *name);
static int prof_symbolize_units(prof_symbolize_t *s);
static void prof_symbolize_keep(prof_symbolize_t *s, prof_frame_t *f,
    uint32_t complete);
static uint64_t prof_symbolize_stamp(const prof_symbolize_t *s);
static int prof_symbolize_finish(prof_symbolize_t *s, prof_frame_t *f);
static int prof_symbolize_offset(prof_profile_t *p, prof_frame_t *f);
static int prof_symbolize_cmp(const void *one, const void *two, void *data);


/*
 * Each helper has a lock, so a thread for which a client waits does not wait
 * for a thread of the lowest priority.
 */

static pthread_mutex_t  prof_symbolize_locks[PROF_HELPERS] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER
};

/* protects the names of the kernel's functions */

static pthread_mutex_t  prof_symbolize_kernel = PTHREAD_MUTEX_INITIALIZER;


int
prof_profile_symbolize(prof_profile_t *p)
{
    return prof_symbolize(p, PROF_SYMBOL_DEBUG_ROOT);
}


int
prof_symbolize(prof_profile_t *p, const char *debug_root)
{
    return prof_symbolize_locked(p, debug_root, 0);
}


int
prof_symbolize_again(prof_profile_t *p, const char *debug_root)
{
    return prof_symbolize_locked(p, debug_root, 1);
}


static int
prof_symbolize_locked(prof_profile_t *p, const char *debug_root,
    uint32_t again)
{
    int                rc;
    uint32_t           kernel, *order;
    pthread_mutex_t   *lock;
    prof_symbolize_t   s;

    rc = prof_profile_complete(p);

    if (rc != PROF_OK) {
        return rc;
    }

    (void) pthread_mutex_lock(&prof_symbolize_kernel);

    rc = prof_kernel_name_frames(p, &kernel);

    (void) pthread_mutex_unlock(&prof_symbolize_kernel);

    if (rc != PROF_OK) {
        return rc;
    }

    memset(&s, 0, sizeof(prof_symbolize_t));

    s.profile = p;
    s.debug_root = debug_root;
    s.again = again;
    s.late = again && prof_helper_who() == PROF_HELPER_NOBODY;
    s.calls = calloc((size_t) p->nframes + 1, sizeof(prof_call_t));

    /*
     * the memory of four lists of frames; the last one may have a frame of each
     * object twice
     */

    order = malloc(5 * ((size_t) p->nframes + 1) * sizeof(uint32_t));

    rc = s.calls && order ? PROF_OK : PROF_ERROR;

    if (rc == PROF_OK) {
        lock = &prof_symbolize_locks[prof_helper_who()];

        (void) pthread_mutex_lock(lock);

        rc = prof_symbolize_all(&s, order);

        (void) pthread_mutex_unlock(lock);

        if (rc == PROF_OK && s.nlater) {
            prof_later_add(p, s.later, s.nlater, debug_root);
        }
    }

    if (rc == PROF_OK) {
        rc = prof_syscall_frames(p, s.calls);
    }

    if (rc == PROF_OK && kernel) {
        rc = prof_kernel_join(p);
    }

    free(order);
    free(s.calls);

    return rc;
}


void
prof_profile_forget(void)
{
    prof_later_forget();
    prof_names_clear();
    prof_kernel_forget();
    prof_helper_done();
}


int
prof_profile_share(uint64_t key)
{
    return prof_names_share(key);
}


int
prof_profile_first(void)
{
    return prof_names_first();
}


static int
prof_symbolize_all(prof_symbolize_t *s, uint32_t *order)
{
    int              rc;
    uint32_t         i, n, next;
    prof_profile_t  *p;

    n = 0;
    p = s->profile;

    for (i = 0; i < p->nframes; i++) {
        if (p->frames[i].name == NULL) {
            order[n++] = i;
        }
    }

    qsort_r(order, n, sizeof(uint32_t), prof_symbolize_cmp, p->frames);

    s->deadline = prof_clock(CLOCK_MONOTONIC) + prof_helper_time();
    s->tables = order + n;
    s->ask = s->tables + n;
    s->later = s->ask + n;

    prof_buf_init(&s->found.data);

    rc = PROF_OK;

    for (i = 0; i < n && rc == PROF_OK; i = next) {

        for (next = i + 1; next < n; next++) {
            if (p->frames[order[next]].object != p->frames[order[i]].object) {
                break;
            }
        }

        s->frames = order + i;
        s->n = next - i;
        s->units = NULL;

        if (p->frames[order[i]].object == PROF_NONE) {
            /* void */

        } else if (prof_helper_who() == PROF_HELPER_NOBODY && prof_wire_late())
        {
            /* the process exits, and the lowest priority may take long */

            p->stats.lost_names += s->n;

        } else {
            s->object = &p->objects[p->frames[order[i]].object];
            rc = prof_symbolize_object(s);
        }

        for ( /* void */ ; i < next && rc == PROF_OK; i++) {
            rc = prof_symbolize_finish(s, &p->frames[order[i]]);
        }

        prof_unit_free(s->units);
    }

    prof_buf_free(&s->found.data);

    return rc;
}


static int
prof_symbolize_object(prof_symbolize_t *s)
{
    int                   rc;
    char                  identity[PATH_MAX];
    prof_names_object_t   before;

    if (prof_symbol_identity(s->object, identity, sizeof(identity))
        != PROF_OK)
    {
        return PROF_OK;
    }

    prof_names_object(&s->names, identity, s->debug_root);
    before = s->names;

    rc = prof_symbolize_names(s);

    if (memcmp(&before, &s->names, sizeof(prof_names_object_t)) != 0) {
        prof_names_object_put(&s->names);
    }

    return rc;
}


static int
prof_symbolize_names(prof_symbolize_t *s)
{
    if (prof_symbolize_known(s) != PROF_OK
        || prof_symbolize_tables(s) != PROF_OK)
    {
        return PROF_ERROR;
    }

    prof_symbolize_choose(s);

    return prof_symbolize_ask(s) == PROF_OK ? prof_symbolize_units(s)
                                            : PROF_ERROR;
}


/* uses names of the cache, and lists the unknown and incomplete addresses */

static int
prof_symbolize_known(prof_symbolize_t *s)
{
    uint32_t            i;
    prof_frame_t       *f;
    const prof_name_t  *name;

    s->ntables = 0;
    s->nask = 0;

    for (i = 0; i < s->n; i++) {
        f = &s->profile->frames[s->frames[i]];

        name = prof_names_find(&s->names, prof_frame_pc(f), f->function,
                               &s->found);

        if (name == NULL) {
            s->tables[s->ntables++] = s->frames[i];
            s->ask[s->nask++] = s->frames[i];
            continue;
        }

        s->calls[s->frames[i]] = name->call;

        if (prof_profile_name(s->profile, f, name) != PROF_OK) {
            return PROF_ERROR;
        }

        if (!name->complete) {
            s->ask[s->nask++] = s->frames[i];
        }
    }

    return PROF_OK;
}


static int
prof_symbolize_tables(prof_symbolize_t *s)
{
    int             rc;
    uint32_t        i;
    prof_frame_t   *f;
    prof_symbol_t  *syms;

    if (s->ntables == 0) {
        return PROF_OK;
    }

    syms = calloc(s->ntables, sizeof(prof_symbol_t));
    if (syms == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < s->ntables; i++) {
        f = &s->profile->frames[s->tables[i]];

        syms[i].pc = prof_frame_pc(f);
        syms[i].function = f->function;
        syms[i].len = f->function_len;
        syms[i].interrupted = f->type == PROF_TYPE_CODE;
    }

    rc = prof_symbol_find(s->object, syms, s->ntables);

    for (i = 0; i < s->ntables; i++) {
        f = &s->profile->frames[s->tables[i]];

        s->calls[s->tables[i]] = syms[i].call;

        f->name = syms[i].name;
        f->source = f->name ? PROF_SOURCE_SYMBOLS : PROF_SOURCE_NONE;

        prof_symbolize_keep(s, f, 0);
    }

    free(syms);

    return rc;
}


/*
 * Chooses which of the listed addresses the helper is asked for.  It has
 * nothing for most objects of a distribution, and the cache knows this of an
 * object.  Later the helper may have more, so it is asked again after some
 * time, but then no client waits for it.  The debug file in its usual place is
 * seen at once.
 */

static void
prof_symbolize_choose(prof_symbolize_t *s)
{
    int            all, due, again, unknown;
    uint32_t       i, j, n, frame;
    uint64_t       now, stamp;
    prof_frame_t  *f;

    now = prof_clock(CLOCK_MONOTONIC);
    stamp = prof_symbolize_stamp(s);

    due = now >= s->names.retry;

    all = s->again || stamp != s->names.stamp
          || s->names.more == PROF_NAMES_UNKNOWN
          || (due && prof_helper_who() == PROF_HELPER_NOBODY);

    again = !all && due;
    n = 0;
    j = 0;

    for (i = 0; i < s->nask; i++) {
        frame = s->ask[i];
        f = &s->profile->frames[frame];

        /* both lists have the same order */

        unknown = j < s->ntables && s->tables[j] == frame;
        j += unknown;

        if (all
            || (unknown
                && (s->names.more == PROF_NAMES_SOMETHING
                    || (f->name && prof_mangled(f->name)))))
        {
            s->ask[n++] = frame;

        } else if (again) {
            s->later[s->nlater++] = frame;
        }
    }

    s->nask = n;

    if (all || again) {
        s->names.retry = now + PROF_NAMES_RETRY;
        s->names.stamp = stamp;
    }
}


static int
prof_symbolize_ask(prof_symbolize_t *s)
{
    int                      rc;
    uint32_t                 i;
    uint64_t                 now;
    prof_name_t             *names;
    prof_frame_t            *f;
    prof_helper_question_t   q;

    if (s->nask == 0) {
        return PROF_OK;
    }

    now = prof_clock(CLOCK_MONOTONIC);

    if (now < s->names.pause && !s->late) {
        s->names.retry = 0;
        s->profile->stats.lost_names += s->nask;
        return PROF_OK;
    }

    if (now >= s->deadline) {
        prof_symbolize_lost(s, 0);
        return PROF_OK;
    }

    names = calloc(s->nask, sizeof(prof_name_t));
    if (names == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < s->nask; i++) {
        f = &s->profile->frames[s->ask[i]];

        names[i].pc = prof_frame_pc(f);
        names[i].function = f->function;
        names[i].name = f->name;
    }

    q.object = s->object;
    q.debug_root = s->debug_root;
    q.names = names;
    q.n = s->nask;
    q.deadline = s->deadline;
    q.more = &s->names.more;
    q.answer = prof_symbolize_answer;
    q.data = s;

    s->nanswers = 0;

    rc = prof_helper_ask(&q);

    free(names);

    if (rc == PROF_OK) {
        s->names.pause = 0;
    }

    if (rc != PROF_LIMIT) {
        return rc;
    }

    /*
     * If the helper failed at the first address, profiles do not ask for this
     * object for a while.
     */

    if (s->nanswers == 0) {
        s->names.pause = prof_clock(CLOCK_MONOTONIC) + PROF_NAMES_RETRY;
    }

    prof_symbolize_lost(s, s->nanswers);

    return PROF_OK;
}


/* the addresses from this one on have no answer in time */

static void
prof_symbolize_lost(prof_symbolize_t *s, uint32_t first)
{
    s->names.retry = 0;
    s->profile->stats.lost_names += s->nask - first;

    if (prof_helper_who() == PROF_HELPER_NOBODY) {
        return;
    }

    while (first < s->nask) {
        s->later[s->nlater++] = s->ask[first++];
    }
}


/* finds the units of the object if a function has no better name */

static int
prof_symbolize_units(prof_symbolize_t *s)
{
    int       rc, paused;
    uint32_t  i;

    for (i = 0; i < s->n; i++) {
        if (s->profile->frames[s->frames[i]].source < PROF_SOURCE_UNIT) {
            break;
        }
    }

    if (i == s->n || !prof_role_has(s->object)) {
        return PROF_OK;
    }

    paused = !s->late && prof_clock(CLOCK_MONOTONIC) < s->names.units_pause;

    rc = prof_unit_find(&s->units, &s->names, s->object, s->debug_root,
                        paused ? 0 : s->deadline);

    if (rc != PROF_LIMIT) {
        return rc;
    }

    if (!paused) {
        s->names.units_pause = prof_clock(CLOCK_MONOTONIC) + PROF_NAMES_RETRY;

        if (prof_helper_who() == PROF_HELPER_CLIENT) {
            s->later[s->nlater++] = s->frames[i];
        }
    }

    return PROF_OK;
}


static int
prof_symbolize_answer(void *data, uint32_t i, const prof_name_t *name)
{
    prof_symbolize_t *s = data;

    prof_frame_t  *f;

    f = &s->profile->frames[s->ask[i]];
    s->nanswers = i + 1;

    /* the frame keeps the parts of its name that the answer lacks */

    if (prof_profile_name(s->profile, f, name) != PROF_OK) {
        return PROF_ERROR;
    }

    prof_symbolize_keep(s, f, name->complete);

    return PROF_OK;
}


static void
prof_symbolize_keep(prof_symbolize_t *s, prof_frame_t *f, uint32_t complete)
{
    prof_name_t  name;

    name.pc = prof_frame_pc(f);
    name.function = f->function;
    name.call = s->calls[f - s->profile->frames];
    name.complete = complete;
    name.source = f->source;
    name.line = f->line;
    name.start_line = f->start_line;
    name.ninlines = f->ninlines;
    name.name = f->name;
    name.file = f->file;
    name.inlines = s->profile->inlines + f->inlines;

    prof_names_put(&s->names, &name);
}


/* returns a number that changes when the debug file appears or changes */

static uint64_t
prof_symbolize_stamp(const prof_symbolize_t *s)
{
    char         path[PATH_MAX];
    struct stat  st;

    if (prof_symbol_debug_path(s->object, s->debug_root, path, sizeof(path))
        != PROF_OK
        || stat(path, &st) == -1)
    {
        return 0;
    }

    return ((uint64_t) st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec)
           ^ ((uint64_t) st.st_ino << 40) ^ (uint64_t) st.st_size;
}


static int
prof_symbolize_finish(prof_symbolize_t *s, prof_frame_t *f)
{
    prof_profile_t  *p;

    p = s->profile;

    if (f->source < PROF_SOURCE_ROLE && prof_role_name(p, f) != PROF_OK) {
        return PROF_ERROR;
    }

    if (f->source < PROF_SOURCE_UNIT && s->units
        && prof_unit_name(s->units, p, f) != PROF_OK)
    {
        return PROF_ERROR;
    }

    return f->name ? prof_mangled_prefix(&f->name)
                   : prof_symbolize_offset(p, f);
}


static int
prof_symbolize_offset(prof_profile_t *p, prof_frame_t *f)
{
    char      *name;
    uint64_t   offset;

    f->source = PROF_SOURCE_OFFSET;

    /*
     * The code was made at run time.  With its address, each place in the code
     * would be a function of its own.  The address also means nothing in
     * another process.
     */

    if (f->object == PROF_NONE) {
        f->name = strdup("[anonymous code]");
        return f->name ? PROF_OK : PROF_ERROR;
    }

    offset = f->function ? f->function : f->pc;

    if (asprintf(&name, "%s+0x%" PRIx64,
                 prof_path_file(p->objects[f->object].path), offset)
        == -1)
    {
        return PROF_ERROR;
    }

    f->name = name;

    return PROF_OK;
}


static int
prof_symbolize_cmp(const void *one, const void *two, void *data)
{
    uint64_t             pc1, pc2;
    prof_frame_t        *frames;
    const prof_frame_t  *f1, *f2;

    frames = data;
    f1 = &frames[*(const uint32_t *) one];
    f2 = &frames[*(const uint32_t *) two];

    if (f1->object != f2->object) {
        return f1->object < f2->object ? -1 : 1;
    }

    pc1 = prof_frame_pc(f1);
    pc2 = prof_frame_pc(f2);

    return pc1 < pc2 ? -1 : pc1 > pc2;
}
