
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The names of stages and waits of a capture, and of threads and locations in
 * labels.  The frame of a name is its number.  When there are too many names,
 * the half with the least time (in the mode "object", with the least memory) is
 * given up: the nodes and labels of these names become "[other]", and other
 * names get their numbers.  Names of open spans stay, and names that were just
 * asked for.
 *
 * Context: the capture's thread; not in a signal.
 */


#include "base/prof_hash.h"
#include "capture/prof_process.h"
#include "capture/prof_turn.h"
#include "heap/prof_heap_state.h"

#include <stdlib.h>


/* numbers are frames (PROF_FRAME_NAMED), and those of labels have few bits */

#define PROF_WORDS_MAX        2048
#define PROF_WORDS_LABELLED   ((1 << PROF_LABEL_BITS) - PROF_FRAME_FIXED)
#define PROF_WORDS_FIRST      32

/* a caller asks for fewer names before it uses the first one */
#define PROF_WORDS_HELD       64


static uint32_t prof_words_find(prof_words_t *w, uint32_t type,
    const char *text, size_t len, uint64_t hash);
static uint32_t prof_words_add(prof_capture_t *c, uint32_t type,
    const char *text, size_t len, uint64_t hash);
static int prof_words_is(const prof_words_t *w, uint32_t i, uint32_t type,
    const char *text, size_t len);
static int prof_words_room(prof_capture_t *c);
static int prof_words_grow(prof_words_t *w);
static void prof_words_shed(prof_capture_t *c);
static void prof_words_allocated(prof_words_t *w, const prof_heap_t *h);
static void prof_words_forget(prof_tree_t *t, const prof_words_t *w);
static void prof_words_index(prof_words_t *w);
static uint64_t prof_words_hash(uint32_t type, const char *text, size_t len);


uintptr_t
prof_capture_name(prof_capture_t *c, const char *text, size_t len)
{
    return prof_capture_typed(c, PROF_TYPE_STAGE, text, len);
}


/* most texts are constants, which the recent word of their address finds */

uintptr_t
prof_capture_typed(prof_capture_t *c, uint32_t type, const char *text,
    size_t len)
{
    uint16_t      *recent;
    uint32_t       i;
    uint64_t       hash;
    prof_words_t  *w;

    w = &c->words;
    len = strnlen(text, len);

    recent = &w->recent[(uintptr_t) text / 16 % PROF_WORDS_RECENT];
    i = *recent;

    if (!prof_words_is(w, i, type, text, len)) {

        hash = prof_words_hash(type, text, len);
        i = prof_words_find(w, type, text, len, hash);

        if (i == PROF_NONE) {
            i = prof_words_add(c, type, text, len, hash);
        }

        if (i == PROF_NONE) {
            c->stats.merged_names++;
            return (type == PROF_TYPE_WAITING) ? PROF_FRAME_WAITING
                                               : PROF_FRAME_OTHER;
        }

        *recent = i;
    }

    w->words[i].used = ++w->uses;

    return PROF_FRAME_FIXED + i;
}


static uint32_t
prof_words_find(prof_words_t *w, uint32_t type, const char *text, size_t len,
    uint64_t hash)
{
    uint32_t  i, n;

    if (w->allocated == 0) {
        return PROF_NONE;
    }

    for (i = hash; /* void */ ; i++) {
        n = w->index[i & w->mask];

        if (n == 0) {
            return PROF_NONE;
        }

        if (prof_words_is(w, n - 1, type, text, len)) {
            return n - 1;
        }
    }
}


static int
prof_words_is(const prof_words_t *w, uint32_t i, uint32_t type,
    const char *text, size_t len)
{
    return i < w->n && w->words[i].text && w->words[i].type == type
           && w->words[i].len == len
           && memcmp(w->words[i].text, text, len) == 0;
}


static uint32_t
prof_words_add(prof_capture_t *c, uint32_t type, const char *text, size_t len,
    uint64_t hash)
{
    int            rc;
    char          *copy;
    uint32_t       i, at;
    prof_word_t   *word;
    prof_words_t  *w;

    w = &c->words;

    prof_heap_mute();
    rc = prof_words_room(c);
    copy = (rc == PROF_OK) ? strndup(text, len) : NULL;
    prof_heap_unmute();

    if (copy == NULL) {
        return PROF_NONE;
    }

    i = w->next++;
    w->n = (i < w->n) ? w->n : i + 1;

    word = &w->words[i];

    memset(word, 0, sizeof(prof_word_t));
    word->text = copy;
    word->len = len;
    word->type = type;

    for (at = hash; w->index[at & w->mask]; at++) { /* void */ }

    w->index[at & w->mask] = i + 1;

    return i;
}


/* sets "next" to a free word */

static int
prof_words_room(prof_capture_t *c)
{
    uint32_t       max;
    prof_words_t  *w;

    w = &c->words;
    max = c->labelled ? PROF_WORDS_LABELLED : PROF_WORDS_MAX;

    for ( ;; ) {

        while (w->next < w->n && w->words[w->next].text) {
            w->next++;
        }

        if (w->next < w->n || (w->n < w->allocated && w->n < max)) {
            return PROF_OK;
        }

        if (w->n < max) {
            return prof_words_grow(w);
        }

        if (c->labelled && c->forget == NULL) {
            return PROF_LIMIT;
        }

        prof_words_shed(c);

        if (w->next == w->n) {
            return PROF_LIMIT;
        }
    }
}


static int
prof_words_grow(prof_words_t *w)
{
    uint16_t     *index;
    uint32_t      n;
    prof_word_t  *words;

    n = w->allocated ? 2 * w->allocated : PROF_WORDS_FIRST;

    words = realloc(w->words, n * sizeof(prof_word_t));
    if (words == NULL) {
        return PROF_ERROR;
    }

    w->words = words;

    index = realloc(w->index, 2 * n * sizeof(uint16_t));
    if (index == NULL) {
        return PROF_ERROR;
    }

    w->index = index;
    w->allocated = n;
    w->mask = 2 * n - 1;

    prof_words_index(w);

    return PROF_OK;
}


/*
 * Gives up about half of the words: those with the least time, or with the
 * least bytes if allocations are counted, by powers of two, since sorting would
 * hold the event loop.
 */

static void
prof_words_shed(prof_capture_t *c)
{
    uint32_t       i, n, bits, most, class[65];
    prof_word_t   *word;
    prof_words_t  *w;

    w = &c->words;

    if (c->heap) {
        prof_words_allocated(w, c->heap);
    }

    memset(class, 0, sizeof(class));

    for (i = 0; i < w->n; i++) {
        word = &w->words[i];
        bits = word->weight ? 64 - __builtin_clzll(word->weight) : 0;
        class[bits]++;
    }

    n = 0;

    for (most = 0; n + class[most] < w->n / 2; most++) {
        n += class[most];
    }

    n = w->n / 2;
    w->next = w->n;

    for (i = w->n; i-- > 0 && n; /* void */ ) {
        word = &w->words[i];
        bits = word->weight ? 64 - __builtin_clzll(word->weight) : 0;

        if (bits > most || word->open
            || w->uses - word->used < PROF_WORDS_HELD)
        {
            continue;
        }

        free(word->text);
        word->text = NULL;
        w->next = i;
        n--;

        c->stats.merged_names++;
    }

    prof_words_forget(&c->tree, w);

    if (c->heap) {
        prof_words_forget(&c->heap->tree, w);
    }

    if (c->forget) {
        c->forget(c);
    }

    prof_words_index(w);
}


/* the weight of a word becomes the bytes that were allocated below it */

static void
prof_words_allocated(prof_words_t *w, const prof_heap_t *h)
{
    double                  *sums;
    uint32_t                 i, n, parent;
    const prof_tree_node_t  *nodes;

    n = h->tree.nnodes;
    nodes = h->tree.nodes;

    sums = calloc(n, sizeof(double));
    if (sums == NULL) {
        return;
    }

    for (i = 0; i < w->n; i++) {
        w->words[i].weight = 0;
    }

    /* parents stand before their children */

    for (i = n; i-- > 0; /* void */ ) {
        sums[i] += h->counts[i].alloc_space;
        parent = nodes[i].parent;

        if (parent != PROF_NONE) {
            sums[parent] += sums[i];
        }

        prof_words_weigh(w, prof_key_pc(nodes[i].key), sums[i]);
    }

    free(sums);
}


/* the nodes of words that are free now become "[other]" */

static void
prof_words_forget(prof_tree_t *t, const prof_words_t *w)
{
    uint32_t   i, n;
    uintptr_t  pc;

    for (i = 0; i < t->nnodes; i++) {
        pc = prof_key_pc(t->nodes[i].key);

        if (!prof_frame_is_name(pc) || pc < PROF_FRAME_FIXED) {
            continue;
        }

        n = pc - PROF_FRAME_FIXED;

        if (n < w->n && w->words[n].text == NULL) {
            t->nodes[i].key = prof_key(PROF_FRAME_OTHER, 0);
        }
    }
}


static void
prof_words_index(prof_words_t *w)
{
    uint32_t            i, at;
    const prof_word_t  *word;

    memset(w->index, 0, ((size_t) w->mask + 1) * sizeof(uint16_t));

    for (i = 0; i < w->n; i++) {
        word = &w->words[i];

        if (word->text == NULL) {
            continue;
        }

        at = prof_words_hash(word->type, word->text, word->len);

        while (w->index[at & w->mask]) {
            at++;
        }

        w->index[at & w->mask] = i + 1;
    }
}


static uint64_t
prof_words_hash(uint32_t type, const char *text, size_t len)
{
    return prof_hash_bytes(type, text, len);
}


void
prof_words_open(prof_words_t *w, uintptr_t frame, int open)
{
    if (frame - PROF_FRAME_FIXED < w->n) {
        w->words[frame - PROF_FRAME_FIXED].open += open ? 1 : -1;
    }
}


void
prof_words_weigh(prof_words_t *w, uintptr_t frame, uint64_t wall)
{
    if (frame - PROF_FRAME_FIXED < w->n) {
        w->words[frame - PROF_FRAME_FIXED].weight += wall;
    }
}


void
prof_words_free(prof_words_t *w)
{
    uint32_t  i;

    for (i = 0; i < w->n; i++) {
        free(w->words[i].text);
    }

    free(w->words);
    free(w->index);
}
