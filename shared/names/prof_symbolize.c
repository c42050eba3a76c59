
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
    uint64_t                deadline;
    prof_call_t            *calls;      /* by frame */
    prof_profile_object_t  *object;
    prof_names_object_t    *names;      /* frames with names in the cache */
    uint32_t               *frames;
    uint32_t                n;

    /* the frames to look up: in symbol tables, and by the helper */

    uint32_t               *tables;
    uint32_t                ntables;
    uint32_t               *ask;
    uint32_t                nask;
    uint32_t                nanswers;
} prof_symbolize_t;


static int prof_symbolize_locked(prof_profile_t *p, const char *debug_root,
    uint32_t again);
static int prof_symbolize_all(prof_symbolize_t *s, uint32_t *order);
static int prof_symbolize_object(prof_symbolize_t *s);
static int prof_symbolize_known(prof_symbolize_t *s);
static int prof_symbolize_tables(prof_symbolize_t *s);
static int prof_symbolize_ask(prof_symbolize_t *s);
static int prof_symbolize_answer(void *data, uint32_t i,
    const prof_name_t *name);
static int prof_symbolize_units(prof_symbolize_t *s);
static void prof_symbolize_keep(prof_symbolize_t *s, prof_frame_t *f,
    uint32_t complete);
static uint64_t prof_symbolize_stamp(const prof_symbolize_t *s);
static int prof_symbolize_finish(prof_symbolize_t *s, prof_frame_t *f);
static int prof_symbolize_offset(prof_profile_t *p, prof_frame_t *f);
static int prof_symbolize_cmp(const void *one, const void *two, void *data);


/* this lock protects the cache, and all functions that read files for it */

static pthread_mutex_t  prof_symbolize_lock = PTHREAD_MUTEX_INITIALIZER;


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
    prof_symbolize_t   s;

    rc = prof_profile_complete(p);

    if (rc != PROF_OK) {
        return rc;
    }

    (void) pthread_mutex_lock(&prof_symbolize_lock);

    rc = prof_kernel_name_frames(p, &kernel);

    (void) pthread_mutex_unlock(&prof_symbolize_lock);

    if (rc != PROF_OK) {
        return rc;
    }

    memset(&s, 0, sizeof(prof_symbolize_t));

    s.profile = p;
    s.debug_root = debug_root;
    s.again = again;
    s.calls = calloc((size_t) p->nframes + 1, sizeof(prof_call_t));

    /* the memory of three lists of frames */

    order = malloc(3 * ((size_t) p->nframes + 1) * sizeof(uint32_t));

    rc = s.calls && order ? PROF_OK : PROF_ERROR;

    if (rc == PROF_OK) {
        (void) pthread_mutex_lock(&prof_symbolize_lock);

        rc = prof_symbolize_all(&s, order);

        (void) pthread_mutex_unlock(&prof_symbolize_lock);
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
    (void) pthread_mutex_lock(&prof_symbolize_lock);

    prof_names_clear();
    prof_kernel_forget();
    prof_helper_done();

    (void) pthread_mutex_unlock(&prof_symbolize_lock);
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

    rc = PROF_OK;

    for (i = 0; i < n && rc == PROF_OK; i = next) {

        for (next = i + 1; next < n; next++) {
            if (p->frames[order[next]].object != p->frames[order[i]].object) {
                break;
            }
        }

        s->frames = order + i;
        s->n = next - i;
        s->names = NULL;

        if (p->frames[order[i]].object != PROF_NONE) {
            s->object = &p->objects[p->frames[order[i]].object];
            rc = prof_symbolize_object(s);
        }

        for ( /* void */ ; i < next && rc == PROF_OK; i++) {
            rc = prof_symbolize_finish(s, &p->frames[order[i]]);
        }
    }

    return rc;
}


static int
prof_symbolize_object(prof_symbolize_t *s)
{
    char  identity[PATH_MAX];

    if (prof_symbol_identity(s->object, identity, sizeof(identity))
        != PROF_OK)
    {
        return PROF_OK;
    }

    s->names = prof_names_object(identity);

    if (s->names == NULL
        || prof_symbolize_known(s) != PROF_OK
        || prof_symbolize_tables(s) != PROF_OK
        || prof_symbolize_ask(s) != PROF_OK)
    {
        return PROF_ERROR;
    }

    return prof_symbolize_units(s);
}


/* uses names of the cache, and lists the unknown addresses */

static int
prof_symbolize_known(prof_symbolize_t *s)
{
    int                 due;
    uint32_t            i;
    uint64_t            now, stamp;
    prof_frame_t       *f;
    const prof_name_t  *name;

    s->ntables = 0;
    s->nask = 0;

    now = prof_clock(CLOCK_MONOTONIC);
    stamp = prof_symbolize_stamp(s);
    due = s->again || now >= s->names->retry || stamp != s->names->stamp;

    for (i = 0; i < s->n; i++) {
        f = &s->profile->frames[s->frames[i]];

        name = prof_names_find(s->names, prof_frame_pc(f), f->function);

        if (name == NULL) {
            s->tables[s->ntables++] = s->frames[i];
            s->ask[s->nask++] = s->frames[i];
            continue;
        }

        s->calls[s->frames[i]] = name->call;

        if (prof_profile_name(s->profile, f, name) != PROF_OK) {
            return PROF_ERROR;
        }

        if (!name->complete && due) {
            s->ask[s->nask++] = s->frames[i];
        }
    }

    if (due) {
        s->names->retry = now + PROF_NAMES_RETRY;
        s->names->stamp = stamp;
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

    if (now >= s->deadline || now < s->names->pause) {
        s->names->retry = 0;
        s->profile->stats.lost_names += s->nask;
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
    q.answer = prof_symbolize_answer;
    q.data = s;

    s->nanswers = 0;

    rc = prof_helper_ask(&q);

    free(names);

    if (rc != PROF_LIMIT) {
        return rc;
    }

    s->profile->stats.lost_names += s->nask - s->nanswers;

    /*
     * The next profile asks for its names again.  If the helper failed at the
     * first address, profiles do not ask for this object for a while.
     */

    s->names->retry = 0;

    if (s->nanswers == 0) {
        s->names->pause = prof_clock(CLOCK_MONOTONIC) + PROF_NAMES_RETRY;
    }

    return PROF_OK;
}


/* asks for the units of the object, once in a process: units never change */

static int
prof_symbolize_units(prof_symbolize_t *s)
{
    int       rc;
    uint32_t  i;
    uint64_t  now;

    for (i = 0; i < s->n; i++) {
        if (s->profile->frames[s->frames[i]].source < PROF_SOURCE_UNIT) {
            break;
        }
    }

    now = prof_clock(CLOCK_MONOTONIC);

    if (i == s->n || s->names->units || now < s->names->units_pause
        || now >= s->deadline || !prof_role_has(s->object))
    {
        return PROF_OK;
    }

    rc = prof_unit_ask(&s->names->units, s->object, s->debug_root,
                       s->deadline);

    if (rc == PROF_LIMIT) {
        s->names->units_pause = now + PROF_NAMES_RETRY;
        return PROF_OK;
    }

    return rc;
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

    prof_names_put(s->names, &name);
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

    if (f->source < PROF_SOURCE_UNIT && s->names
        && prof_unit_name(s->names->units, p, f) != PROF_OK)
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
