
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Makes the profile of a capture, in two steps.  When the capture ends, its
 * thread makes a draft.  The draft takes the memory of the capture, and holds
 * the snapshot of the unwind tables and the names of script functions.  So the
 * first step costs the same for captures of all sizes.
 *
 * In the second step, addresses of this process become addresses within
 * objects.  This step uses only what the draft owns or holds, so the process
 * may have unloaded objects meanwhile.
 *
 * Context: the capture's thread, and any thread for the second step.
 */


#include "capture/prof_process.h"
#include "capture/prof_turn.h"
#include "base/prof_hash.h"
#include "heap/prof_heap_state.h"
#include "scripts/prof_scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>


/*
 * The draft owns its members.  The nodes of the tree are in the memory of the
 * series "time".
 */

typedef struct {
    prof_draft_t           draft;       /* the first member */
    prof_tree_t            tree;
    prof_heap_t           *heap;        /* NULL: allocations were not counted */
    prof_beside_t          beside;      /* the waits of the timeline */
    uint32_t               max;         /* entries of the timeline that fit */
    uint64_t               end;         /* of the timeline */
    const prof_unwind_t   *unwind;
    prof_traces_t         *traces;      /* NULL: no trace labels */
    uint32_t               labelled;    /* as in the capture */

    /* used while the profile is completed */

    prof_profile_t        *profile;
    const prof_object_t  **objects;     /* objects of the profile */
    uint64_t              *keys;        /* keys of the frames */
    uint32_t              *buckets;     /* hash of keys -> frame */
    uint32_t               mask;

    prof_words_t           words;
} prof_finish_t;


typedef struct {
    uint32_t               type;        /* prof_type_e */
    const char            *name;
} prof_fixed_t;


static prof_profile_t *prof_finish_create(const char *title);
static void prof_finish_take(prof_finish_t *f, prof_heap_t *h);
static void prof_finish_destroy(prof_draft_t *d);
static int prof_finish_complete(prof_profile_t *p, prof_draft_t *d);
static void prof_finish_waits(prof_finish_t *f);
static int prof_finish_start(prof_finish_t *f, uint32_t nodes);
static int prof_finish_nodes(prof_finish_t *f, const prof_tree_t *tree);
static int prof_finish_heap(prof_finish_t *f);
static void prof_finish_allocs(prof_series_t *s, const prof_heap_t *h,
    uint32_t base);
static void prof_finish_labels(prof_finish_t *f);
static uint32_t prof_finish_set(const prof_finish_t *f, uint32_t label);
static uint32_t prof_finish_frame(prof_finish_t *f, uint64_t key);
static int prof_finish_address(prof_finish_t *f, prof_frame_t *frame,
    uint64_t key);
static int prof_finish_name(const prof_finish_t *f, prof_frame_t *frame,
    uintptr_t pc);
static int prof_finish_script(prof_frame_t *frame, uintptr_t key);
static uint32_t prof_finish_object(prof_finish_t *f, const prof_object_t *obj);


/* the fixed frames by number; number 0 is an address of a damaged stack */

static const prof_fixed_t  prof_finish_fixed[PROF_FRAME_FIXED] = {
    { PROF_TYPE_NOTE, "[bad stack]" },
    [PROF_FRAME_TRUNCATED] = { PROF_TYPE_NOTE, "[truncated]" },
    [PROF_FRAME_NO_UNWIND] = { PROF_TYPE_NOTE, "[no unwind info]" },
    [PROF_FRAME_BAD_STACK] = { PROF_TYPE_NOTE, "[bad stack]" },
    [PROF_FRAME_TREE_FULL] = { PROF_TYPE_NOTE, "[call tree full]" },
    [PROF_FRAME_WAITING] = { PROF_TYPE_WAITING, "[waiting]" },
    [PROF_FRAME_TURN] = { PROF_TYPE_NOTE, "[turn]" },
    [PROF_FRAME_OTHER] = { PROF_TYPE_STAGE, "[other]" },
    [PROF_FRAME_ELIDED] = { PROF_TYPE_NOTE, "[frames left out]" },
    [PROF_FRAME_BESIDE] = { PROF_TYPE_STAGE, "beside" }
};


prof_profile_t *
prof_capture_finish(prof_capture_t *c, const char *title)
{
    prof_finish_t   *f;
    prof_series_t   *time;
    prof_profile_t  *p;

    p = prof_finish_create(title);
    if (p == NULL) {
        return NULL;
    }

    p->mode = c->mode;
    p->start_realtime = c->start_realtime;
    p->ended = c->counted;
    p->frequency = c->frequency;
    p->frequency_end = 1000000000 / c->period;
    p->wall = c->wall;
    p->running = c->running;
    p->cpu = c->cpu;
    p->stats = c->stats;

    f = (prof_finish_t *) p->draft;

    f->words = c->words;
    memset(&c->words, 0, sizeof(prof_words_t));

    f->traces = c->traces;
    c->traces = NULL;

    f->labelled = c->labelled;

    f->beside = c->beside;
    f->max = c->timeline.max;
    f->end = c->counted;
    memset(&c->beside, 0, sizeof(prof_beside_t));

    f->tree = c->tree;
    f->draft.size += c->tree.nnodes
                     * (sizeof(prof_tree_node_t) + sizeof(prof_node_t));

    time = &p->series[PROF_SERIES_TIME];

    time->entries = (char *) c->timeline.entries;
    time->n = c->timeline.n;
    time->memory = c->memory;
    time->memory_size = c->memory_size;

    c->memory = NULL;
    c->tree.nnodes = 0;
    prof_entries_init(&c->timeline, NULL, 0, 0);

    return p;
}


void
prof_capture_settle(prof_capture_t *c, prof_profile_t *p)
{
    if (c->heap) {
        prof_finish_take((prof_finish_t *) p->draft, c->heap);
        c->heap = NULL;
    }
}


prof_profile_t *
prof_heap_finish(prof_heap_t *h, const char *title)
{
    prof_profile_t  *p;

    prof_heap_mute();

    p = prof_finish_create(title);

    if (p) {
        p->mode = PROF_MODE_OBJECT;
        p->start_realtime = h->start_realtime;
        p->duration = prof_clock(CLOCK_MONOTONIC) - h->start;

        prof_finish_take((prof_finish_t *) p->draft, h);

    } else {
        prof_heap_destroy(h);
    }

    prof_heap_unmute();

    return p;
}


void
prof_draft_addresses(prof_profile_t *p, const uintptr_t *pcs, uint32_t n,
    uint32_t *nodes)
{
    uint32_t        i;
    uintptr_t       pc;
    prof_stats_t    stats;
    prof_finish_t  *f;

    f = (prof_finish_t *) p->draft;

    memset(&stats, 0, sizeof(prof_stats_t));

    for (i = 0; i < n; i++) {
        pc = pcs[i];

        if (prof_frame_is_name(pc) || prof_frame_is_script(pc)) {
            nodes[i] = PROF_NONE;
            continue;
        }

        (void) prof_unwind_mark(&f->unwind, 1, &pc, 0);
        nodes[i] = prof_tree_frame(&f->tree, PROF_NONE, pc, &stats);
    }
}


/* makes a draft without samples */

static prof_profile_t *
prof_finish_create(const char *title)
{
    prof_finish_t        *f;
    prof_profile_t       *p;
    const prof_unwind_t  *unwind;

    unwind = prof_process_unwind_take();

    if (unwind == NULL) {
        return NULL;
    }

    p = prof_profile_create(title);
    if (p == NULL) {
        prof_unwind_release(unwind);
        return NULL;
    }

    f = calloc(1, sizeof(prof_finish_t));
    if (f == NULL) {
        prof_unwind_release(unwind);
        prof_profile_destroy(p);
        return NULL;
    }

    f->draft.complete = prof_finish_complete;
    f->draft.destroy = prof_finish_destroy;
    f->draft.size = sizeof(prof_finish_t);
    f->unwind = unwind;

    prof_process_hold();

    p->draft = &f->draft;

    return p;
}


static void
prof_finish_take(prof_finish_t *f, prof_heap_t *h)
{
    prof_heap_end(h);

    f->heap = h;
    f->draft.size += prof_heap_size(h)
                     + h->tree.nnodes * (sizeof(prof_node_t)
                                         + sizeof(prof_heap_count_t));
}


static void
prof_finish_destroy(prof_draft_t *d)
{
    prof_finish_t  *f;

    f = (prof_finish_t *) d;

    prof_words_free(&f->words);

    if (f->traces) {
        prof_traces_destroy(f->traces);
    }

    if (f->heap) {
        prof_heap_free(f->heap);
    }

    free(f->beside.waits);
    free(f->objects);
    free(f->keys);
    free(f->buckets);

    prof_unwind_release(f->unwind);
    prof_process_release();

    free(f);
}


static int
prof_finish_complete(prof_profile_t *p, prof_draft_t *d)
{
    uint32_t        n;
    prof_finish_t  *f;

    f = (prof_finish_t *) d;
    f->profile = p;

    /* a thread that is still in a hook may add nodes to the heap */

    if (f->heap && !f->heap->left) {
        return PROF_ERROR;
    }

    if (f->beside.n) {
        prof_finish_waits(f);
    }

    n = f->tree.nnodes + (f->heap ? f->heap->tree.nnodes : 0);

    if (prof_finish_start(f, n) != PROF_OK
        || prof_finish_nodes(f, &f->tree) != PROF_OK
        || (f->heap && prof_finish_heap(f) != PROF_OK))
    {
        return PROF_ERROR;
    }

    prof_finish_labels(f);

    return PROF_OK;
}


/* may add nodes and entries to the profile */

static void
prof_finish_waits(prof_finish_t *f)
{
    prof_series_t   *time;
    prof_entries_t   timeline;

    time = &f->profile->series[PROF_SERIES_TIME];

    timeline.entries = (prof_interval_t *) time->entries;
    timeline.n = time->n;
    timeline.max = f->max;

    prof_beside_divide(&f->beside, &f->tree, &timeline, f->end,
                       &f->profile->stats);

    time->n = timeline.n;

    f->beside.waits = NULL;
}


static int
prof_finish_start(prof_finish_t *f, uint32_t nodes)
{
    uint32_t              n, size;
    prof_profile_t       *p;
    prof_unwind_info_t    info;
    const prof_object_t  *obj;

    p = f->profile;

    prof_unwind_info(f->unwind, &info);
    n = info.objects + info.unloaded;

    for (size = 64; size < 2 * nodes; size *= 2) { /* void */ }

    f->mask = size - 1;
    f->objects = malloc((n + 1) * sizeof(prof_object_t *));
    f->buckets = malloc(size * sizeof(uint32_t));
    f->keys = malloc(nodes * sizeof(uint64_t));
    p->objects = calloc(n + 1, sizeof(prof_profile_object_t));
    p->frames = calloc(nodes, sizeof(prof_frame_t));
    p->nodes = malloc(nodes * sizeof(prof_node_t));

    if (f->objects == NULL || f->buckets == NULL || f->keys == NULL
        || p->objects == NULL || p->frames == NULL || p->nodes == NULL)
    {
        return PROF_ERROR;
    }

    memset(f->buckets, 0xff, size * sizeof(uint32_t));

    /* the program is the first object even if none of its code was sampled */

    obj = prof_unwind_object(f->unwind, getauxval(AT_ENTRY));

    if (obj && prof_finish_object(f, obj) == PROF_NONE) {
        return PROF_ERROR;
    }

    return PROF_OK;
}


/* appends the nodes of the tree to the nodes of the profile */

static int
prof_finish_nodes(prof_finish_t *f, const prof_tree_t *tree)
{
    uint32_t                 i, base;
    prof_node_t             *to;
    prof_profile_t          *p;
    const prof_tree_node_t  *node;

    p = f->profile;
    base = p->nnodes;

    for (i = 0; i < tree->nnodes; i++) {
        node = &tree->nodes[i];
        to = &p->nodes[base + i];

        to->parent = (node->parent == PROF_NONE) ? PROF_NONE
                                                 : base + node->parent;
        to->frame = prof_finish_frame(f, node->key);
        p->nnodes++;

        if (to->frame == PROF_NONE) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


/* makes the series "memory" of the heap, which no other thread uses now */

static int
prof_finish_heap(prof_finish_t *f)
{
    prof_heap_t     *h;
    prof_series_t   *memory;
    prof_profile_t  *p;

    h = f->heap;
    p = f->profile;

    memory = &p->series[PROF_SERIES_MEMORY];
    memory->entries = malloc(h->tree.nnodes * memory->size);

    if (memory->entries == NULL) {
        return PROF_ERROR;
    }

    p->alloc_interval = h->interval;
    p->peak_objects = h->peak_objects + 0.5;
    p->peak_space = h->peak_space + 0.5;

    h->stats.lost_hooks = h->missed;
    prof_stats_add(&p->stats, &h->stats);

    prof_finish_allocs(memory, h, p->nnodes);

    return prof_finish_nodes(f, &h->tree);
}


static void
prof_finish_allocs(prof_series_t *s, const prof_heap_t *h, uint32_t base)
{
    uint32_t                  i;
    prof_entry_t             *e;
    const prof_heap_count_t  *count;

    for (i = 0; i < h->tree.nnodes; i++) {
        count = &h->counts[i];

        if (count->alloc_objects == 0) {
            continue;
        }

        e = prof_series_entry(s, s->n);
        s->n++;

        e->node = base + i;
        e->type = 0;
        e->labels = PROF_NONE;
        e->count = 0;
        e->values[PROF_VALUE_ALLOC_OBJECTS] = count->alloc_objects + 0.5;
        e->values[PROF_VALUE_ALLOC_SPACE] = count->alloc_space + 0.5;
        e->values[PROF_VALUE_INUSE_OBJECTS] = count->inuse_objects + 0.5;
        e->values[PROF_VALUE_INUSE_SPACE] = count->inuse_space + 0.5;
    }
}


/*
 * Replaces the numbers of names and traces in entries by sets of labels.  In
 * captures without labels, entries that still wait for a sample have a number.
 */

static void
prof_finish_labels(prof_finish_t *f)
{
    uint32_t        i;
    prof_entry_t   *e;
    prof_series_t  *s;

    s = &f->profile->series[PROF_SERIES_TIME];

    for (i = 0; i < s->n; i++) {
        e = prof_series_entry(s, i);

        if (e->labels != PROF_NONE) {
            e->labels = f->labelled ? prof_finish_set(f, e->labels)
                                    : PROF_NONE;
        }
    }
}


static uint32_t
prof_finish_set(const prof_finish_t *f, uint32_t label)
{
    uint32_t         i, set, mask, name, trace;
    const char      *text;
    prof_profile_t  *p;

    static const char  *labels[] = { "thread", "location" };

    p = f->profile;

    mask = (1 << PROF_LABEL_BITS) - 1;
    trace = label >> PROF_LABEL_TRACE;
    set = PROF_NONE;

    for (i = 0; i < 2; i++, label >>= PROF_LABEL_BITS) {
        name = label & mask;

        text = (name - PROF_FRAME_FIXED < f->words.n)
               ? f->words.words[name - PROF_FRAME_FIXED].text
               : name == PROF_FRAME_OTHER
               ? prof_finish_fixed[PROF_FRAME_OTHER].name : NULL;

        if (text) {
            set = prof_profile_labels(p, set, labels[i], text, NULL);
        }
    }

    return trace ? prof_traces_labels(f->traces, trace, p, set) : set;
}


static uint32_t
prof_finish_frame(prof_finish_t *f, uint64_t key)
{
    uint32_t         i, n;
    prof_profile_t  *p;

    p = f->profile;

    if (prof_frame_is_script(prof_key_pc(key))) {
        key &= ~(uint64_t) 1;
    }

    for (i = prof_hash(key) >> 32; /* void */ ; i++) {

        n = f->buckets[i & f->mask];

        if (n == PROF_NONE) {
            break;
        }

        if (f->keys[n] == key) {
            return n;
        }
    }

    n = p->nframes++;

    f->buckets[i & f->mask] = n;
    f->keys[n] = key;

    if (prof_finish_address(f, &p->frames[n], key) != PROF_OK) {
        return PROF_NONE;
    }

    return n;
}


static int
prof_finish_address(prof_finish_t *f, prof_frame_t *frame, uint64_t key)
{
    size_t                len;
    uintptr_t             pc, at, start;
    const prof_object_t  *obj;

    pc = prof_key_pc(key);

    frame->object = PROF_NONE;

    if (prof_frame_is_name(pc)) {
        return prof_finish_name(f, frame, pc);
    }

    if (prof_frame_is_script(pc)) {
        return prof_finish_script(frame, pc);
    }

    if (prof_frame_is_kernel(pc)) {
        frame->type = PROF_TYPE_KERNEL;
        frame->pc = pc - prof_key_call(key);
        return PROF_OK;
    }

    frame->type = prof_key_call(key) ? PROF_TYPE_RETURN : PROF_TYPE_CODE;
    frame->pc = prof_unwind_unmark(pc);

    at = frame->type == PROF_TYPE_RETURN ? pc - 1 : pc;

    obj = prof_unwind_find(f->unwind, at, &start, &len);
    if (obj == NULL) {
        return PROF_OK;
    }

    frame->object = prof_finish_object(f, obj);
    if (frame->object == PROF_NONE) {
        return PROF_ERROR;
    }

    frame->pc = prof_unwind_address(pc) - obj->base;

    if (start) {
        frame->function = start - obj->base;
        frame->function_len = len;
    }

    return PROF_OK;
}


static int
prof_finish_name(const prof_finish_t *f, prof_frame_t *frame, uintptr_t pc)
{
    const char         *name;
    const prof_word_t  *word;

    if (pc - PROF_FRAME_FIXED < f->words.n) {
        word = &f->words.words[pc - PROF_FRAME_FIXED];
        frame->type = word->type;
        name = word->text;

    } else {
        pc = pc < PROF_FRAME_FIXED ? pc : PROF_FRAME_BAD_STACK;
        frame->type = prof_finish_fixed[pc].type;
        name = prof_finish_fixed[pc].name;
    }

    frame->name = strdup(name);

    return frame->name ? PROF_OK : PROF_ERROR;
}


/* names the frame of a script; the first line replaces a missing name */

static int
prof_finish_script(prof_frame_t *frame, uintptr_t key)
{
    prof_script_t  s;

    frame->type = PROF_TYPE_SCRIPT;

    if (prof_script_find(key, &s) != PROF_OK) {
        frame->name = strdup("[script]");
        return frame->name ? PROF_OK : PROF_ERROR;
    }

    frame->source = PROF_SOURCE_SCRIPT;
    frame->line = s.line;
    frame->start_line = s.start_line;

    if (s.function_len) {
        frame->name = strndup(s.function, s.function_len);

    } else if (s.start_line == 0) {
        frame->name = strdup("main chunk");

    } else if (asprintf(&frame->name, "function at line %u", s.start_line)
               == -1)
    {
        frame->name = NULL;
    }

    if (frame->name == NULL) {
        return PROF_ERROR;
    }

    if (s.file_len) {
        frame->file = strndup(s.file, s.file_len);
        return frame->file ? PROF_OK : PROF_ERROR;
    }

    return PROF_OK;
}


static uint32_t
prof_finish_object(prof_finish_t *f, const prof_object_t *obj)
{
    char                   *hex;
    uint32_t                i, n;
    prof_profile_t         *p;
    prof_profile_object_t  *po;

    p = f->profile;

    for (n = p->nobjects; n > 0; n--) {

        if (f->objects[n - 1] == obj) {
            return n - 1;
        }
    }

    hex = malloc(2 * obj->build_id_len + 1);
    if (hex == NULL) {
        return PROF_NONE;
    }

    for (i = 0; i < obj->build_id_len; i++) {
        hex[2 * i] = "0123456789abcdef"[obj->build_id[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[obj->build_id[i] & 0xf];
    }

    hex[2 * i] = '\0';

    n = p->nobjects++;
    f->objects[n] = obj;

    po = &p->objects[n];

    po->build_id = hex;
    po->path = strdup(obj->path);
    po->base = obj->base;
    po->start = obj->start - obj->base;
    po->end = obj->end - obj->base;
    po->offset = obj->offset;

    return po->path ? n : PROF_NONE;
}
